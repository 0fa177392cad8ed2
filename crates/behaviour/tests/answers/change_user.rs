//! A change of user that the server refuses: MySQL ends the connection, MariaDB keeps it.

use remora_testkit::client::{Client, ClientError, ConnectOptions, StatementId};
use remora_testkit::process::wait_for;
use remora_wire::response::ServerError;

use remora_behaviour::front::{Front, OTHER_PASSWORD, OTHER_USER, PATIENCE, assert_same};

const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
];
const READ: &str = "SELECT a, s FROM t ORDER BY a";

/// More refusals than MariaDB bears before it no longer looks at the password. Each takes it a
/// second.
const ROUNDS_MAX: usize = 5;

/// `ER_UNKNOWN_STMT_HANDLER`
const UNKNOWN_STATEMENT: u16 = 1243;

/// What a session is made different by.
const SETUPS: [&[&str]; 4] = [
    &[],
    &["SET sql_select_limit = 2, @x = 'set'"],
    &["BEGIN", "INSERT INTO t VALUES (9, 'of nobody')"],
    &[
        "CREATE TEMPORARY TABLE temporary (a INT)",
        "SET autocommit = 0",
    ],
];

/// What tells of it.
const PROBES: [&str; 7] = [
    READ,
    "SELECT CURRENT_USER(), DATABASE()",
    "SELECT @x, @@sql_select_limit, @@autocommit, @@sql_mode",
    "SHOW SESSION VARIABLES LIKE 'character_set_%'",
    "SELECT COUNT(*) FROM temporary",
    "SELECT COUNT(*) FROM t",
    READ,
];

/// A change of user that is refused.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    Password,
    Account,
    Schema,
}

const WRONGS: [Wrong; 3] = [Wrong::Password, Wrong::Account, Wrong::Schema];

impl Wrong {
    fn options(self, front: &Front) -> ConnectOptions {
        let (user, password, schema) = match self {
            Wrong::Password => (OTHER_USER, "not the password", front.schema()),
            Wrong::Account => ("nobody", OTHER_PASSWORD, front.schema()),
            Wrong::Schema => (OTHER_USER, OTHER_PASSWORD, "no_such_schema"),
        };
        ConnectOptions::new(front.options().address, user, password).schema(schema)
    }
}

/// What a client gets.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Bytes(Vec<u8>),
    Error(u16, String),
    /// The connection is gone.
    End,
}

fn got<T>(result: Result<T, ClientError>, bytes: impl FnOnce(T) -> Vec<u8>) -> Got {
    match result {
        Ok(value) => Got::Bytes(bytes(value)),
        // Its text has the statement's number, which some servers count for all connections.
        Err(ClientError::Server(error)) if error.code == UNKNOWN_STATEMENT => {
            Got::Error(error.code, String::new())
        }
        Err(ClientError::Server(ServerError { code, message, .. })) => Got::Error(code, message),
        Err(_) => Got::End,
    }
}

fn query(client: &mut Client, sql: &str) -> Got {
    got(client.query_bytes(sql), <[u8]>::to_vec)
}

fn execute(client: &mut Client, id: StatementId) -> Got {
    let result = client.execute(id, &[]).map(drop);
    got(result, |()| client.answer_bytes().to_vec())
}

fn change(client: &mut Client, options: &ConnectOptions) -> Got {
    got(client.change_user(options), |()| Vec::new())
}

/// Sets a session up and has its changes of user refused. Gives all that it got.
fn tell(
    mut client: Client,
    front: &Front,
    setup: &[&str],
    wrong: Wrong,
    rounds: usize,
) -> Vec<Got> {
    let mut all = Vec::new();
    for _ in 0..rounds {
        let prepared = client.prepare(READ.as_bytes());
        for sql in setup {
            all.push(query(&mut client, sql));
        }
        all.push(change(&mut client, &wrong.options(front)));
        if let Ok(id) = prepared {
            all.push(execute(&mut client, id));
            all.push(execute(&mut client, id));
        }
        for probe in PROBES {
            all.push(query(&mut client, probe));
        }
        // Whoever opened a transaction leaves the table as it was.
        all.push(query(&mut client, "ROLLBACK"));
        all.push(query(
            &mut client,
            "DROP TEMPORARY TABLE IF EXISTS temporary",
        ));
    }
    let right = ConnectOptions::new(front.options().address, OTHER_USER, OTHER_PASSWORD);
    all.push(change(&mut client, &right.schema(front.schema())));
    for probe in PROBES {
        all.push(query(&mut client, probe));
    }
    all
}

#[test]
fn a_refused_change_of_user_leaves_what_the_server_leaves() {
    let front = Front::new("user_refused", &T);
    for (wrong, setup, rounds) in [
        (Wrong::Password, SETUPS[0], ROUNDS_MAX),
        (Wrong::Password, SETUPS[1], 1),
        (Wrong::Password, SETUPS[2], 1),
        (Wrong::Password, SETUPS[3], 1),
        (Wrong::Account, SETUPS[1], 1),
        (Wrong::Schema, SETUPS[3], 1),
    ] {
        let direct = tell(front.direct(), &front, setup, wrong, rounds);
        let through = front.options().at(front.remora().address());
        let through = through.connect().unwrap();
        let seen = tell(through, &front, setup, wrong, rounds);
        assert_eq!(seen.len(), direct.len(), "{wrong:?} {setup:?}");
        for (at, (seen, direct)) in seen.iter().zip(&direct).enumerate() {
            assert_eq!(seen, direct, "{wrong:?} {setup:?}, step {at}");
        }
    }
}

#[test]
fn a_session_whose_change_of_user_was_refused_is_served_from_memory_again() {
    let front = Front::new("user_kept", &T);
    let mut direct = front.direct();
    let through = front.options().at(front.remora().address());
    let mut client = through.connect().unwrap();
    for wrong in WRONGS {
        for client in [&mut direct, &mut client] {
            client.query("SET sql_select_limit = 1").unwrap();
        }
        let expected = change(&mut direct, &wrong.options(&front));
        assert_eq!(change(&mut client, &wrong.options(&front)), expected);
        if front.server().kind().is_mysql() {
            assert_eq!(query(&mut client, READ), query(&mut direct, READ));
            client = through.connect().unwrap();
            direct = front.direct();
        }
        let expected = direct.query_bytes(READ).unwrap().to_vec();
        let before = front.hits();
        wait_for("a hit", PATIENCE, || {
            let seen = client.query_bytes(READ).unwrap();
            assert_same(READ, seen, &expected);
            Ok((front.hits() > before).then_some(()))
        })
        .unwrap();
    }
}
