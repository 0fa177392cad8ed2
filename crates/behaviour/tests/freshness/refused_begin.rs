//! The server refuses what was answered in its place: a `BEGIN`, or a `SET` around transactions.
//!
//! An account has used up its `MAX_QUERIES_PER_HOUR` when the server first hears of the
//! transaction. The client gets the server's error for the statement that came with it. What it
//! does then is outside of a transaction, as it is behind a `BEGIN` that fails directly.

use remora_testkit::client::{Client, ClientError, ConnectOptions, Value};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same};

const PASSWORD: &str = "limited-password";
const STATEMENTS_PER_HOUR: u32 = 400;
/// `ER_USER_LIMIT_REACHED`.
const LIMIT_REACHED: u16 = 1226;

const KNOWN: &str = "SELECT amount FROM accounts WHERE id = 1";
const UNKNOWN: &str = "SELECT memo FROM accounts WHERE id = 2";
const WRITE: &str = "UPDATE accounts SET amount = amount + 1 WHERE id = 3";
const WRITTEN: &str = "SELECT amount FROM accounts WHERE id = 3";

const TABLES: [&str; 2] = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, amount BIGINT NOT NULL, memo VARCHAR(20)) ENGINE=InnoDB",
    "INSERT INTO accounts VALUES (1, 100, ''), (2, 200, ''), (3, 300, '')",
];

struct Limited {
    front: Front,
    account: String,
}

impl Limited {
    fn new(schema: &str, mode: &str) -> Limited {
        let options = RemoraOptions::following().with("cache.transaction_reads", mode);
        let front = Front::with(schema, options, &TABLES);
        // MySQL 5.6 takes names of 16 characters.
        let account = format!("{schema}_u");
        let kind = front.server().kind();
        let mut root = front.direct();
        let identified = kind.identified_by(PASSWORD);
        let limit = match kind {
            Kind::MySql80 => {
                format!("ALTER USER {account} WITH MAX_QUERIES_PER_HOUR {STATEMENTS_PER_HOUR}")
            }
            _ => format!(
                "GRANT USAGE ON *.* TO {account} WITH MAX_QUERIES_PER_HOUR {STATEMENTS_PER_HOUR}"
            ),
        };
        for sql in [
            format!("CREATE USER {account} {identified}"),
            format!("GRANT ALL ON {schema}.* TO {account}"),
            limit,
        ] {
            root.query(&sql).unwrap();
        }
        front.settle();
        Limited { front, account }
    }

    fn options(&self) -> ConnectOptions {
        ConnectOptions::new(self.front.options().address, &self.account, PASSWORD)
            .schema(self.front.schema())
    }

    /// A session that memory answers, and for which it may begin transactions.
    fn guest(&self) -> Guest<'_> {
        let mut guest = self.front.guest_as(&self.options());
        self.warm(&mut guest, KNOWN);
        self.begin_the_next_hour();
        guest.setup(&["BEGIN", KNOWN, "ROLLBACK"]);
        guest
    }

    /// The account may run nothing more.
    fn use_up(&self) {
        let mut direct = self.options().connect().unwrap();
        let is_used_up = (0..=STATEMENTS_PER_HOUR).any(|_| {
            let answer = direct.query("SELECT 1").map(drop);
            answer.is_err_and(|error| code(&error) == Some(LIMIT_REACHED))
        });
        assert!(is_used_up);
    }

    /// It may again.
    fn begin_the_next_hour(&self) {
        let sql = "FLUSH NO_WRITE_TO_BINLOG USER_RESOURCES";
        self.front.direct().query(sql).unwrap();
    }

    fn written(&self) -> String {
        let mut direct = self.front.direct();
        direct.query_value(WRITTEN).unwrap().unwrap()
    }

    /// No transaction is open: what is written is there for everybody at once.
    fn assert_outside_transaction(&self, guest: &mut Guest<'_>) {
        let before: u32 = self.written().parse().unwrap();
        guest.setup(&[WRITE]);
        let after = self.written();
        assert_eq!(after, (before + 1).to_string());
        guest.setup(&["ROLLBACK"]);
        assert_eq!(guest.value(WRITTEN).0, Some(after.clone()));
        // And so with the next transaction.
        guest.setup(&["BEGIN", WRITE]);
        assert_eq!(self.written(), after);
        guest.setup(&["ROLLBACK"]);
        self.warm(guest, WRITTEN);
    }

    /// Asks until the answer comes from memory, which may take more than the account has.
    fn warm(&self, guest: &mut Guest<'_>, sql: &str) {
        let expected = self.front.direct().query_bytes(sql).unwrap().to_vec();
        let hit = wait_for("a hit", PATIENCE, || {
            self.begin_the_next_hour();
            let seen = guest.run(sql);
            assert_same(sql, &seen.bytes, &expected);
            Ok((seen.outcome == "hit").then_some(()))
        });
        hit.unwrap();
    }
}

fn code(error: &ClientError) -> Option<u16> {
    error.code()
}

fn is_refused(answer: Result<(), ClientError>) -> bool {
    answer.is_err_and(|error| code(&error) == Some(LIMIT_REACHED))
}

fn try_statement(guest: &mut Guest<'_>, sql: &str) -> (&'static str, bool) {
    let (outcome, answer) = guest.observe(|client: &mut Client| client.query(sql).map(drop));
    (outcome, is_refused(answer))
}

#[test]
fn the_client_gets_the_error_and_no_transaction_is_open() {
    for (nth, mode) in ["after_snapshot", "early"].into_iter().enumerate() {
        let limited = Limited::new(&format!("no_begin_{nth}"), mode);
        for first in [UNKNOWN, WRITE, "SAVEPOINT here", "SET @a = 1"] {
            let mut guest = limited.guest();
            let before = limited.written();
            limited.use_up();
            assert_eq!(guest.run("BEGIN").outcome, "transaction", "{mode}");
            assert!(try_statement(&mut guest, first).1, "{mode}, {first}");
            // As for any statement of this account.
            assert!(try_statement(&mut guest, UNKNOWN).1, "{mode}, {first}");
            limited.begin_the_next_hour();
            assert_eq!(limited.written(), before, "{mode}, {first}");
            limited.assert_outside_transaction(&mut guest);
        }
    }
}

#[test]
fn a_begin_refused_after_a_hit_is_a_conflict() {
    let limited = Limited::new("no_snapshot", "early");
    for next in [UNKNOWN, WRITE] {
        let mut guest = limited.guest();
        let before = limited.written();
        let hit = wait_for("a transaction from memory", PATIENCE, || {
            limited.begin_the_next_hour();
            guest.setup(&["BEGIN"]);
            let (outcome, _) = guest.observe(|client| client.query(KNOWN).map(drop));
            if outcome != "hit" {
                guest.setup(&["ROLLBACK"]);
            }
            Ok((outcome == "hit").then_some(()))
        });
        hit.unwrap();
        limited.use_up();
        let (outcome, refused) = try_statement(&mut guest, next);
        assert!(refused, "{next}: {outcome}");
        assert_eq!(outcome, "conflict", "{next}");
        limited.begin_the_next_hour();
        assert_eq!(limited.written(), before, "{next}");
        limited.assert_outside_transaction(&mut guest);
    }
}

/// The client believes that the server knows its parameters' types. Only the end of the connection
/// tells it otherwise.
#[test]
fn an_execution_that_is_refused_ends_the_connection() {
    let limited = Limited::new("no_execution", "after_snapshot");
    let mut guest = limited.guest();
    let sql = "UPDATE accounts SET amount = amount + ? WHERE id = 3";
    let (_, statement) = guest.observe(|client| client.prepare(sql.as_bytes()).unwrap());
    let before = limited.written();
    limited.use_up();
    guest.setup(&["BEGIN"]);
    let client = guest.client();
    let answer = client.execute(statement, &[Value::Int(1)]).map(drop);
    assert!(is_refused(answer));
    limited.begin_the_next_hour();
    client.query("SELECT 1").unwrap_err();
    assert_eq!(limited.written(), before);
}

/// The client was told that the setting holds. Only the end of the connection tells it otherwise.
#[test]
fn a_set_that_is_refused_ends_the_connection() {
    let limited = Limited::new("no_set", "after_snapshot");
    let (off, on) = ("SET autocommit = 0", "SET autocommit = 1");
    for next in [UNKNOWN, WRITE, "COMMIT"] {
        let mut guest = limited.guest();
        let at_once = wait_for("SETs that are answered at once", PATIENCE, || {
            limited.begin_the_next_hour();
            let outcomes = [off, on, off].map(|set| guest.run(set).outcome);
            if outcomes != ["transaction"; 3] {
                guest.setup(&[on, UNKNOWN]);
            }
            Ok((outcomes == ["transaction"; 3]).then_some(()))
        });
        at_once.unwrap();
        let before = limited.written();
        limited.use_up();
        assert!(is_refused(guest.client().query(next).map(drop)), "{next}");
        limited.begin_the_next_hour();
        let lost = guest.client().query(UNKNOWN).unwrap_err();
        assert!(matches!(lost, ClientError::Io(_)), "{next}: {lost}");
        assert_eq!(limited.written(), before, "{next}");
    }
}
