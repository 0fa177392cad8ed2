//! The first read of a transaction at `REPEATABLE READ`, answered from memory when the server has
//! made the snapshot: what it shows, and all that follows, is what the server would show.

use remora_cache::{BrokenRules, BrokenSnapshots};
use remora_testkit::client::Value;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same, lease};

const FIRST: &str = "SELECT note FROM notes WHERE id = 1";
const READ: &str = "SELECT id, amount FROM accounts ORDER BY id";
const WRITE: &str = "UPDATE accounts SET amount = amount + 1 WHERE id = 1";
/// The server answers it without a look at any table.
const NO_LOOK: &str = "SELECT note FROM notes WHERE 1 = 0";
/// It has no rows, and the server must look.
const EMPTY: &str = "SELECT note FROM notes WHERE id = 7";

const TABLES: [&str; 4] = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, amount BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO accounts VALUES (1, 100), (2, 200)",
    "CREATE TABLE notes (id INT PRIMARY KEY, note VARCHAR(20) NOT NULL) ENGINE=InnoDB",
    "INSERT INTO notes VALUES (1, 'one'), (2, 'two')",
];

/// The ways in which a transaction begins here.
const BEGINS: [&[&str]; 4] = [
    &["BEGIN"],
    &["START TRANSACTION READ ONLY"],
    &["SET autocommit = 0"],
    &["SET autocommit = 0", "BEGIN"],
];

/// What the server itself answers to a statement inside a transaction of this kind.
fn expected(front: &Front, begin: &[&str], sql: &str) -> Vec<u8> {
    let mut direct = front.direct();
    for sql in begin {
        direct.query(sql).unwrap();
    }
    direct.query_bytes(sql).unwrap().to_vec()
}

/// Runs transactions of this first read and another one until memory has answered it, which also
/// has the other's result in memory. The last one is left open.
fn begins_from_memory<'f>(front: &'f Front, begin: &[&str], first: &str) -> Guest<'f> {
    let (of_first, of_read) = (expected(front, begin, first), expected(front, begin, READ));
    let guest = wait_for("a first read from memory", PATIENCE, || {
        let mut guest = front.guest();
        guest.setup(begin);
        let seen = guest.run(first);
        assert_same(first, &seen.bytes, &of_first);
        assert_same(READ, &guest.run(READ).bytes, &of_read);
        if seen.outcome == "hit" && guest.run(READ).outcome == "hit" {
            return Ok(Some(guest));
        }
        guest.setup(&["COMMIT"]);
        Ok(None)
    });
    guest.unwrap()
}

fn write_elsewhere(front: &Front) {
    front.direct().query(WRITE).unwrap();
    front.settle();
}

#[test]
fn memory_answers_the_first_read_of_a_transaction_in_the_snapshot_that_the_server_makes() {
    let front = Front::new("first_reads", &TABLES);
    for begin in BEGINS {
        for first in [FIRST, EMPTY] {
            let of_first = expected(&front, begin, first);
            let before = expected(&front, begin, READ);
            let mut guest = begins_from_memory(&front, begin, first);
            // The transaction goes on to show what was so when it began, whoever answers.
            write_elsewhere(&front);
            for _ in 0..3 {
                assert_same(READ, &guest.run(READ).bytes, &before);
                assert_same(first, &guest.run(first).bytes, &of_first);
            }
            guest.setup(&["COMMIT"]);
            // And the next one what is so then.
            let after = expected(&front, begin, READ);
            assert_ne!(before, after);
            guest.setup(begin);
            assert_same(first, &guest.run(first).bytes, &of_first);
            assert_same(READ, &guest.run(READ).bytes, &after);
        }
    }
}

#[test]
fn the_transaction_is_the_servers_own() {
    let front = Front::new("first_reads_own", &TABLES);
    let mut guest = begins_from_memory(&front, &["BEGIN"], FIRST);
    // It writes, is seen by nobody, and can be rolled back.
    guest.setup(&[WRITE]);
    let own = guest.value("SELECT amount FROM accounts WHERE id = 1").0;
    assert_eq!(own.as_deref(), Some("101"));
    let mut direct = front.direct();
    let others = direct.query_value("SELECT amount FROM accounts WHERE id = 1");
    assert_eq!(others.unwrap().as_deref(), Some("100"));
    guest.setup(&["ROLLBACK"]);
    let mut guest = begins_from_memory(&front, &["START TRANSACTION READ ONLY"], FIRST);
    assert!(guest.client().query(WRITE).is_err(), "it reads only");
}

#[test]
fn executions_come_from_memory_likewise() {
    let front = Front::new("first_reads_prepared", &TABLES);
    let mut guest = front.guest();
    let prepare = |guest: &mut Guest<'_>, sql: &str| {
        guest
            .observe(|client| client.prepare(sql.as_bytes()).unwrap())
            .1
    };
    let first = prepare(&mut guest, "SELECT note FROM notes WHERE id = ?");
    let second = prepare(&mut guest, "SELECT amount FROM accounts WHERE id = ?");
    let execute = |guest: &mut Guest<'_>, statement| {
        let run = |client: &mut remora_testkit::client::Client| {
            client.execute(statement, &[Value::Int(1)]).unwrap();
        };
        guest.observe(run).0
    };
    let hit = wait_for("a first execution from memory", PATIENCE, || {
        guest.setup(&["BEGIN"]);
        let outcome = execute(&mut guest, first);
        execute(&mut guest, second);
        guest.setup(&["COMMIT"]);
        Ok((outcome == "hit").then_some(()))
    });
    hit.unwrap();
}

/// With autocommit off a savepoint stands in the transaction that the next read begins, and the
/// status flags don't tell.
#[test]
fn a_savepoint_before_the_first_read_stays() {
    let front = Front::new("first_reads_save", &TABLES);
    let begin = &["SET autocommit = 0"][..];
    drop(begins_from_memory(&front, begin, FIRST));
    let mut guest = front.guest();
    guest.setup(begin);
    guest.setup(&["SAVEPOINT a", FIRST, "ROLLBACK TO a", "RELEASE SAVEPOINT a"]);
    guest.setup(&["COMMIT", "SAVEPOINT b", "COMMIT"]);
    let gone = guest.client().query("RELEASE SAVEPOINT b");
    assert!(gone.is_err(), "the transaction has ended");
}

/// Under `sql_select_limit = 0` the server looks at no table.
#[test]
fn a_session_that_selects_nothing_makes_no_snapshot() {
    let front = Front::new("first_reads_limit", &TABLES);
    drop(begins_from_memory(&front, &["BEGIN"], EMPTY));
    for _ in 0..5 {
        let mut guest = front.guest();
        guest.setup(&["SET sql_select_limit = 0", "BEGIN", EMPTY]);
        write_elsewhere(&front);
        let limited = "SELECT id, amount FROM accounts ORDER BY id LIMIT 10";
        let after = expected(&front, &["BEGIN"], limited);
        assert_same(limited, &guest.run(limited).bytes, &after);
    }
}

#[test]
fn a_read_that_nothing_follows_goes_to_the_server_as_it_comes() {
    let front = Front::new("first_reads_alone", &TABLES);
    let of_first = expected(&front, &["BEGIN"], FIRST);
    drop(begins_from_memory(&front, &["BEGIN"], FIRST));
    let mut guest = front.guest();
    let alone = wait_for("that nothing follows to be noticed", PATIENCE, || {
        guest.setup(&["BEGIN"]);
        let seen = guest.run(FIRST);
        assert_same(FIRST, &seen.bytes, &of_first);
        guest.setup(&["COMMIT"]);
        Ok((seen.outcome == "snapshot_not_made").then_some(()))
    });
    alone.unwrap();
    // And again that something does.
    drop(begins_from_memory(&front, &["BEGIN"], FIRST));
}

/// Transactions that begin with what the server answers without a look, then a change elsewhere.
/// Gives whether memory has answered the first read, and whether the next shows the change.
fn change_behind_no_look(front: &Front) -> (&'static str, bool) {
    // It is in memory, from inside a transaction.
    let hit = wait_for("a result without a look", PATIENCE, || {
        let mut guest = front.guest();
        guest.setup(&["BEGIN", NO_LOOK, FIRST]);
        let outcome = guest.run(NO_LOOK).outcome;
        guest.setup(&[READ]);
        Ok((outcome == "hit").then_some(()))
    });
    hit.unwrap();
    let mut guest = front.guest();
    guest.setup(&["BEGIN"]);
    let seen = guest.run(NO_LOOK);
    write_elsewhere(front);
    let after = expected(front, &["BEGIN"], READ);
    (seen.outcome, guest.run(READ).bytes == after)
}

#[test]
fn no_snapshot_is_made_where_the_server_would_make_none() {
    let front = Front::new("first_reads_no_look", &TABLES);
    for _ in 0..3 {
        let (outcome, is_new) = change_behind_no_look(&front);
        assert_ne!(outcome, "hit");
        assert!(is_new, "the server's own transaction shows it");
    }
}

#[test]
fn an_old_row_is_seen_if_any_result_makes_the_snapshot() {
    let broken = BrokenRules {
        snapshots: BrokenSnapshots::FirstReads,
        ..BrokenRules::default()
    };
    let options = RemoraOptions::storing_all();
    let front = Front::breaking(broken, lease(), "first_reads_broken", options, &TABLES);
    let old = wait_for("an old row", PATIENCE, || {
        let (outcome, is_new) = change_behind_no_look(&front);
        Ok((outcome == "hit" && !is_new).then_some(()))
    });
    old.unwrap();
}
