//! Transactions that drivers begin by `SET autocommit = 0` and end by `SET autocommit = 1`, or for
//! which they say `SET SESSION TRANSACTION READ ONLY`.

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, Guest, OTHER_PASSWORD, PATIENCE, assert_same, lease};

/// Its answer has a row, so it takes a transaction's snapshot.
const FIRST: &str = "SELECT note FROM notes WHERE id = 1";
const READ: &str = "SELECT id, amount FROM accounts WHERE id IN (1, 2) ORDER BY id";
const WRITE: &str = "UPDATE accounts SET amount = amount + 1 WHERE id = 1";
const OFF: &str = "SET autocommit = 0";
const ON: &str = "SET autocommit = 1";

const TABLES: [&str; 4] = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, amount BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO accounts VALUES (1, 100), (2, 200), (3, 300)",
    "CREATE TABLE notes (id INT PRIMARY KEY, note VARCHAR(20) NOT NULL) ENGINE=InnoDB",
    "INSERT INTO notes VALUES (1, 'one'), (2, 'two')",
];

/// What a session sends its server.
pub(crate) struct Log {
    root: Client,
    session: String,
}

impl Log {
    /// Of this guest.
    pub(crate) fn of(front: &Front, guest: &mut Guest<'_>) -> Log {
        let mut root = front.server().root().unwrap();
        for sql in [
            "SET GLOBAL log_output = 'TABLE'",
            "SET GLOBAL general_log = 1",
        ] {
            root.query(sql).unwrap();
        }
        let session = guest.value("SELECT CONNECTION_ID()").0.unwrap();
        Log { root, session }
    }

    /// The statements so far.
    pub(crate) fn statements(&mut self) -> Vec<String> {
        let session = &self.session;
        let sql = format!(
            "SELECT CONVERT(argument USING utf8) FROM mysql.general_log WHERE thread_id = {session} AND command_type = 'Query'"
        );
        let answer = self.root.query(&sql).unwrap();
        let rows = answer.rows().unwrap().into_iter();
        rows.map(|mut row| String::from_utf8(row.remove(0).unwrap()).unwrap())
            .collect()
    }

    /// How often it was asked for its settings.
    pub(crate) fn questions(&mut self) -> usize {
        let statements = self.statements();
        let asks = |text: &&String| text.contains("CURRENT_USER()");
        statements.iter().filter(asks).count()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.root.query("SET GLOBAL general_log = 0").ok();
    }
}

/// Runs the same on both, and expects the same answers. Gives the outcomes.
pub(crate) fn run(
    guest: &mut Guest<'_>,
    direct: &mut Client,
    script: &[&str],
) -> Vec<&'static str> {
    let both = |sql: &&str| {
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        let seen = guest.run(sql);
        assert_same(sql, &seen.bytes, &expected);
        seen.outcome
    };
    script.iter().map(both).collect()
}

#[test]
fn the_server_is_asked_once_what_settings_transactions_without_autocommit_have() {
    let front = Front::new("autocommit_asks", &TABLES);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    let mut log = Log::of(&front, &mut guest);
    let script = [OFF, FIRST, READ, "COMMIT", ON, READ];
    let never_asked = wait_for("transactions without a question", PATIENCE, || {
        let before = log.questions();
        for _ in 0..3 {
            let outcomes = run(&mut guest, &mut direct, &script);
            if outcomes[2] != "hit" || outcomes[5] != "hit" {
                return Ok(None);
            }
        }
        // It is asked anew when the follower has a new session.
        Ok((log.questions() == before).then_some(()))
    });
    never_asked.unwrap();
    // A value that is computed is asked for.
    for set in [
        "SET autocommit = 1 - 1",
        "SET NAMES utf8mb4, autocommit = 0",
    ] {
        let before = log.questions();
        run(&mut guest, &mut direct, &[set, FIRST, READ, "COMMIT", ON]);
        assert!(log.questions() > before, "{set}");
    }
}

/// Of each kind of transaction its first asks, and no other.
#[test]
fn the_server_is_asked_once_what_settings_read_only_transactions_have() {
    let front = Front::new("read_only_asks", &TABLES);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    let mut log = Log::of(&front, &mut guest);
    for kind in ["READ ONLY", "READ WRITE"] {
        let level = "ISOLATION LEVEL READ COMMITTED";
        let begin = format!("SET SESSION TRANSACTION {kind}");
        let begin_other = format!("SET SESSION TRANSACTION {level}, {kind}");
        let back = "SET SESSION TRANSACTION READ WRITE, ISOLATION LEVEL REPEATABLE READ";
        let scripts: [&[&str]; 3] = [
            &[&begin, OFF, FIRST, READ, "COMMIT", ON, back, READ],
            &[&begin, "BEGIN", FIRST, READ, "COMMIT", back, READ],
            &[&begin_other, "BEGIN", FIRST, READ, "COMMIT", back, READ],
        ];
        for script in scripts {
            let never_asked = wait_for("transactions without a question", PATIENCE, || {
                let before = log.questions();
                for _ in 0..3 {
                    let outcomes = run(&mut guest, &mut direct, script);
                    let read = script.iter().position(|sql| *sql == READ).unwrap();
                    if outcomes[read] != "hit" || outcomes.last() != Some(&"hit") {
                        return Ok(None);
                    }
                }
                Ok((log.questions() == before).then_some(()))
            });
            never_asked.unwrap();
        }
    }
    // Other sessions with the same settings ask at their beginning, and no more.
    let only_at_the_beginning = wait_for("a session that asks once", PATIENCE, || {
        let (mut other, mut direct) = (front.guest(), front.direct());
        run(&mut other, &mut direct, &[READ]);
        let mut log = Log::of(&front, &mut other);
        let before = log.questions();
        let script = ["SET SESSION TRANSACTION READ ONLY", "BEGIN", FIRST, READ];
        run(&mut other, &mut direct, &script);
        let write = "UPDATE notes SET note = 'x' WHERE id = 1";
        let (_, answer) = other.observe(|client| client.query(write).map(drop));
        assert!(answer.is_err(), "it only reads");
        assert!(direct.query(write).is_err());
        run(&mut other, &mut direct, &["COMMIT", READ]);
        if log.questions() > before {
            return Ok(None);
        }
        // A value that is computed is asked for.
        let new_name = direct.query("SELECT @@transaction_read_only").is_ok();
        let name = if new_name {
            "transaction_read_only"
        } else {
            "tx_read_only"
        };
        let set = format!("SET SESSION {name} = 1 - 1");
        run(&mut other, &mut direct, &[&set, READ]);
        assert!(log.questions() > before);
        Ok(Some(()))
    });
    only_at_the_beginning.unwrap();
}

#[test]
fn what_memory_answers_wholly_sends_the_server_nothing() {
    let options = RemoraOptions::following().with("cache.transaction_reads", "early");
    let front = Front::with("autocommit_early", options, &TABLES);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    let mut log = Log::of(&front, &mut guest);
    let script = [OFF, READ, FIRST, "COMMIT", ON];
    let sent = wait_for("a transaction from memory", PATIENCE, || {
        let before = log.statements().len();
        run(&mut guest, &mut direct, &script);
        let sent = log.statements().split_off(before);
        Ok(sent.is_empty().then_some(()))
    });
    sent.unwrap();
}

#[test]
fn what_is_committed_by_autocommit_is_seen_by_the_next_reader() {
    let options = RemoraOptions::following();
    let (front, gate) = Front::behind_gate(lease(), "autocommit_fences", options, &TABLES);
    let (mut guest, mut other, mut direct) = (front.guest(), front.guest(), front.direct());
    let mut script = vec![OFF, WRITE];
    for own in [false, true] {
        let before = direct.query_bytes(READ).unwrap().to_vec();
        other.becomes_hit(READ, &before);
        if own {
            // From memory, in the transaction that then writes.
            let read = wait_for("a hit in the transaction", PATIENCE, || {
                guest.setup(&[OFF, FIRST]);
                let is_hit = guest.run(READ).outcome == "hit";
                if !is_hit {
                    guest.setup(&["COMMIT", ON]);
                }
                Ok(is_hit.then_some(()))
            });
            read.unwrap();
            script = vec![WRITE];
        }
        // The log tells nothing of it.
        gate.hold(true);
        guest.setup(&script);
        let own = guest.run(READ);
        assert_ne!(own.outcome, "hit");
        // What opens a transaction is fenced until it is known that it hasn't committed.
        other.becomes_hit(READ, &before);
        guest.setup(&[ON]);
        let after = direct.query_bytes(READ).unwrap().to_vec();
        assert_ne!(after, before);
        for reader in [&mut other, &mut guest] {
            let seen = reader.run(READ);
            assert_ne!(seen.outcome, "hit");
            assert_same(READ, &seen.bytes, &after);
        }
        gate.hold(false);
        guest.becomes_hit(READ, &after);
    }
}

/// Without autocommit the server keeps a table's lock until the transaction ends. If the table has
/// no transactions, or the statement has failed, its status doesn't show one.
#[test]
fn the_end_of_a_transaction_lets_go_of_tables_that_no_status_tells_of() {
    let setup = [
        "CREATE TABLE plain (a INT) ENGINE=MyISAM",
        "INSERT INTO plain VALUES (1)",
    ];
    let front = Front::new("autocommit_locks", &setup);
    let (mut guest, mut other) = (front.guest(), front.direct());
    guest.setup(&[OFF]);
    other.query("SET lock_wait_timeout = 20").unwrap();
    // The first ends teach Remora what the server answers.
    for end in ["COMMIT", "ROLLBACK", "BEGIN", "COMMIT", "ROLLBACK", "BEGIN"] {
        for failing in [false, true] {
            guest.run("SELECT a FROM plain");
            if failing {
                assert!(guest.client().query("SELECT b FROM plain").is_err());
                guest.run("SET @a = 1");
            }
            guest.run(end);
            other.query("ALTER TABLE plain COMMENT 'x'").unwrap();
        }
    }
}

/// What memory answered without the server's knowledge doesn't matter to such an end.
#[test]
fn the_end_for_locks_is_not_refused_for_what_memory_has_answered() {
    let plain = ["CREATE TABLE plain (a INT) ENGINE=MyISAM"];
    let setup: Vec<_> = TABLES.into_iter().chain(plain).collect();
    let options = RemoraOptions::following().with("cache.transaction_reads", "early");
    let front = Front::with("autocommit_early_locks", options, &setup);
    let mut guest = front.guest();
    guest.setup(&[OFF]);
    for end in ["COMMIT", "ROLLBACK", "BEGIN"] {
        wait_for("a hit behind another table's lock", PATIENCE, || {
            guest.run("COMMIT");
            guest.run("SELECT a FROM plain");
            Ok((guest.run(READ).outcome == "hit").then_some(()))
        })
        .unwrap();
        front.direct().query(WRITE).unwrap();
        front.catch_up();
        let seen = guest.run(end);
        assert_eq!(seen.bytes[4], 0, "{end} is answered with OK");
        guest.run("COMMIT");
    }
}

/// A read whose kept result may not be served yet goes to the server, and takes metadata locks
/// there. So the `COMMIT` after it must reach the server.
#[test]
fn a_read_that_memory_may_not_serve_yet_takes_locks() {
    let engine = if lease().kind().is_mysql() {
        "MEMORY"
    } else {
        "InnoDB"
    };
    let table = format!("CREATE TABLE plain (a INT) ENGINE={engine}");
    let setup: Vec<_> = TABLES.into_iter().chain([&table[..]]).collect();
    let options = RemoraOptions::following().with("cache.transaction_reads", "early");
    let (front, gate) = Front::behind_gate(lease(), "autocommit_held_locks", options, &setup);
    let (mut filler, mut writer) = (front.guest(), front.guest());
    filler.setup(&[OFF]);
    let mut fill = || {
        wait_for("a hit in a transaction", PATIENCE, || {
            filler.run("COMMIT");
            filler.run(FIRST);
            Ok((filler.run("SELECT a FROM plain").outcome == "hit").then_some(()))
        })
        .unwrap();
        filler.run("COMMIT");
    };
    fill();
    for end in ["COMMIT", "ROLLBACK", "BEGIN"] {
        gate.hold(true);
        writer.setup(&["INSERT INTO plain VALUES (1)"]);
        let mut guest = front.guest();
        guest.setup(&[OFF]);
        let seen = guest.run("SELECT a FROM plain");
        assert_ne!(seen.outcome, "hit");
        guest.run(end);
        let mut other = front.direct();
        other.query("SET lock_wait_timeout = 20").unwrap();
        let altered = other.query(&format!("ALTER TABLE plain COMMENT '{end}'"));
        gate.hold(false);
        altered.unwrap();
        fill();
    }
}

/// The server's answer to a login is from before `init_connect`.
#[test]
fn logins_may_turn_autocommit_off() {
    let front = Front::new("autocommit_logins", &TABLES);
    let mut root = front.server().root().unwrap();
    let identified = front.server().kind().identified_by(OTHER_PASSWORD);
    let schema = front.schema();
    for sql in [
        format!("CREATE USER modest@'%' {identified}"),
        format!("GRANT SELECT ON {schema}.* TO modest@'%'"),
    ] {
        root.query(&sql).unwrap();
    }
    let modest = ConnectOptions {
        user: "modest".to_owned(),
        password: OTHER_PASSWORD.to_owned(),
        ..front.options()
    };
    let outside = modest
        .connect()
        .unwrap()
        .query_bytes(READ)
        .unwrap()
        .to_vec();
    front.guest_as(&modest).becomes_hit(READ, &outside);
    root.query("SET GLOBAL init_connect = 'SET autocommit = 0'")
        .unwrap();
    let inside = modest
        .connect()
        .unwrap()
        .query_bytes(READ)
        .unwrap()
        .to_vec();
    let seen = front.guest_as(&modest).run(READ);
    root.query("SET GLOBAL init_connect = ''").unwrap();
    root.query("DROP USER modest@'%'").unwrap();
    assert_ne!(inside, outside, "the flags differ");
    assert_same(READ, &seen.bytes, &inside);
    assert_ne!(seen.outcome, "hit");
}
