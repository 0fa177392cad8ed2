//! Transactions that memory answers before the server knows of them: `cache.transaction_reads =
//! "early"`.

use remora_cache::{BrokenRules, BrokenSnapshots};
use remora_testkit::client::{Client, ClientError, ConnectOptions, Value};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;
use remora_wire::compress::Algorithm;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same, lease};
use remora_behaviour::outcome::is_unproven;

const READ: &str = "SELECT id, amount FROM accounts WHERE id IN (1, 2) ORDER BY id";
const OTHER: &str = "SELECT amount FROM accounts WHERE id = 3";
const NOTE: &str = "SELECT note FROM notes WHERE id = 1";
const WRITE: &str = "UPDATE accounts SET amount = amount + 1 WHERE id = 1";
const WRITE_OTHER: &str = "UPDATE accounts SET amount = amount + 1 WHERE id = 3";

const TABLES: [&str; 4] = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, amount BIGINT NOT NULL, memo VARCHAR(20)) ENGINE=InnoDB",
    "INSERT INTO accounts VALUES (1, 100, ''), (2, 200, ''), (3, 300, '')",
    "CREATE TABLE notes (id INT PRIMARY KEY, note VARCHAR(20) NOT NULL) ENGINE=InnoDB",
    "INSERT INTO notes VALUES (1, 'one'), (2, 'two')",
];

fn options() -> RemoraOptions {
    RemoraOptions::following().with("cache.transaction_reads", "early")
}

fn front(schema: &str) -> Front {
    let front = Front::with(schema, options(), &TABLES);
    in_memory(&front);
    front
}

/// Has the answers inside transactions in memory, and the flags where those begin and end known.
fn warm(front: &Front, begin: &[&str]) {
    let mut guest = front.guest();
    for sql in [READ, OTHER, NOTE] {
        let expected = expected(front, begin, sql);
        let hit = wait_for("a transaction from memory", PATIENCE, || {
            guest.setup(begin);
            let seen = guest.run(sql);
            assert_same(sql, &seen.bytes, &expected);
            guest.setup(&["COMMIT"]);
            Ok((seen.outcome == "hit").then_some(()))
        });
        hit.unwrap();
    }
}

fn in_memory(front: &Front) {
    // A new shape's first results are coarse: they would be dropped by any change of the table.
    warm(front, &["BEGIN"]);
    for write in [
        WRITE,
        WRITE_OTHER,
        "UPDATE notes SET note = 'changed' WHERE id = 1",
    ] {
        front.direct().query(write).unwrap();
    }
    front.settle();
    warm(front, &["BEGIN"]);
}

/// What the server itself answers first in such a transaction.
fn expected(front: &Front, begin: &[&str], sql: &str) -> Vec<u8> {
    let mut direct = front.direct();
    for statement in begin {
        direct.query(statement).unwrap();
    }
    direct.query_bytes(sql).unwrap().to_vec()
}

/// A transaction whose first read memory answers.
fn begin_with<'f>(front: &'f Front, sql: &str) -> Guest<'f> {
    let expected = expected(front, &["BEGIN"], sql);
    let mut guest = front.guest();
    guest.setup(&["SELECT 1"]);
    let begun = wait_for("the follower to be proven", PATIENCE, || {
        guest.setup(&["BEGIN"]);
        let seen = guest.run(sql);
        assert_same(sql, &seen.bytes, &expected);
        if seen.outcome == "hit" {
            return Ok(Some(()));
        }
        assert!(is_unproven(seen.outcome), "{}", seen.outcome);
        guest.setup(&["ROLLBACK"]);
        Ok(None)
    });
    begun.unwrap();
    guest
}

fn fails_with(guest: &mut Guest<'_>, sql: &str) -> (&'static str, Option<u16>) {
    let (outcome, answer) = guest.observe(|client| client.query(sql).map(drop));
    (outcome, answer.err().as_ref().and_then(ClientError::code))
}

fn amounts(front: &Front) -> Vec<u8> {
    let sql = "SELECT id, amount FROM accounts ORDER BY id";
    front.direct().query_bytes(sql).unwrap().to_vec()
}

/// How many statements the server has run, but for that which asks.
fn statements(client: &mut Client, name: &str) -> u64 {
    let rows = client
        .query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))
        .unwrap();
    let value = rows.rows().unwrap()[0][1].clone().unwrap();
    String::from_utf8(value).unwrap().parse().unwrap()
}

#[test]
fn a_transaction_that_memory_answers_wholly_is_as_from_the_server_and_does_not_reach_it() {
    let front = front("wholly");
    let begins: [&[&str]; 5] = [
        &["BEGIN"],
        &["START TRANSACTION"],
        &["START TRANSACTION READ ONLY"],
        &[],
        &["BEGIN"],
    ];
    // While a connection ends, the server's sums may lack its counts.
    let mut kept = Vec::new();
    for (nth, begin) in begins.into_iter().enumerate() {
        for end in ["COMMIT", "ROLLBACK"] {
            let autocommit = if nth >= 3 {
                "SET autocommit = 0"
            } else {
                "SET autocommit = 1"
            };
            let mut guest = front.guest();
            let mut direct = front.direct();
            direct.query(autocommit).unwrap();
            guest.setup(&[autocommit]);
            let script: Vec<&str> = begin
                .iter()
                .copied()
                .chain([READ, OTHER, READ, end])
                .collect();
            let all_answered = wait_for("a transaction from memory", PATIENCE, || {
                let begun = statements(&mut direct, "Com_begin");
                let ended =
                    statements(&mut direct, "Com_commit") + statements(&mut direct, "Com_rollback");
                let mut outcomes = Vec::new();
                for sql in &script {
                    let seen = guest.run(sql);
                    assert_same(sql, &seen.bytes, direct.query_bytes(sql).unwrap());
                    outcomes.push(seen.outcome);
                }
                let wanted: Vec<_> = script
                    .iter()
                    .map(|sql| {
                        if sql.starts_with("SELECT") {
                            "hit"
                        } else {
                            "transaction"
                        }
                    })
                    .collect();
                if outcomes != wanted {
                    return Ok(None);
                }
                // The direct connection's own.
                assert_eq!(
                    statements(&mut direct, "Com_begin") - begun,
                    begin.len() as u64
                );
                let ends =
                    statements(&mut direct, "Com_commit") + statements(&mut direct, "Com_rollback");
                assert_eq!(ends - ended, 1);
                Ok(Some(()))
            });
            all_answered.unwrap();
            kept.push((guest, direct));
        }
    }
}

#[test]
fn every_flavour_of_client_gets_the_servers_bytes() {
    let front = front("flavours");
    for options in front.flavours() {
        let same = |options: &ConnectOptions| {
            let mut guest = front.guest_as(options);
            let mut direct = options.connect().unwrap();
            for _ in 0..4 {
                for sql in [
                    "BEGIN",
                    READ,
                    "COMMIT",
                    "START TRANSACTION READ ONLY",
                    OTHER,
                    "ROLLBACK",
                ] {
                    let expected = direct.query_bytes(sql).unwrap().to_vec();
                    assert_same(sql, &guest.run(sql).bytes, &expected);
                }
            }
        };
        if options.further.has(Capabilities::MARIADB_EXTENDED_METADATA)
            && Kind::from_environment().unwrap().is_mysql()
        {
            continue;
        }
        same(&options);
    }
}

/// Memory answers a read. Then what that has read is changed, and after it what is to be read next.
fn change_between_reads(front: &Front) -> (Guest<'_>, (&'static str, Option<u16>)) {
    let mut guest = begin_with(front, READ);
    front.direct().query(WRITE).unwrap();
    front.direct().query(WRITE_OTHER).unwrap();
    front.settle();
    warm(front, &["BEGIN"]);
    let seen = fails_with(&mut guest, OTHER);
    (guest, seen)
}

#[test]
fn what_memory_answers_shows_one_moment() {
    let front = front("one_moment");
    let before = expected(&front, &["BEGIN"], OTHER);
    let (mut guest, seen) = change_between_reads(&front);
    assert_eq!(seen, ("conflict", Some(1213)));
    // The transaction is over; the next one sees the new rows.
    let after = expected(&front, &["BEGIN"], OTHER);
    assert_ne!(before, after);
    guest.setup(&["BEGIN"]);
    assert_same(OTHER, &guest.run(OTHER).bytes, &after);
    guest.setup(&["COMMIT"]);
}

#[test]
fn two_moments_are_seen_if_what_memory_has_answered_is_not_looked_at_again() {
    let broken = BrokenRules {
        snapshots: BrokenSnapshots::EarlyHits,
        ..BrokenRules::default()
    };
    let front = Front::breaking(broken, lease(), "two_moments", options(), &TABLES);
    in_memory(&front);
    let seen = wait_for("the follower to be proven", PATIENCE, || {
        let (_, seen) = change_between_reads(&front);
        Ok((!is_unproven(seen.0)).then_some(seen))
    });
    assert_eq!(seen.unwrap(), ("hit", None));
}

/// A read for which the server makes no snapshot.
const NO_LOOK: &str = "SELECT note FROM notes WHERE 1 = 0";

#[test]
fn what_needs_no_snapshot_binds_the_transaction_to_no_moment() {
    let front = front("early_no_look");
    let lock = "SELECT note FROM notes WHERE id = 2 FOR UPDATE";
    // Cache every result that can be cached.
    for _ in 0..4 {
        let mut guest = front.guest();
        guest.setup(&["BEGIN", NO_LOOK, READ, "COMMIT"]);
        front.settle();
    }
    let mut guest = front.guest();
    guest.setup(&["BEGIN", NO_LOOK, lock]);
    let before = amounts(&front);
    front.guest().setup(&[WRITE]);
    let seen = guest.run(READ).bytes;
    guest.setup(&["COMMIT"]);
    // A direct connection sees the write, too.
    let mut direct = front.direct();
    for sql in ["BEGIN", NO_LOOK, lock] {
        direct.query(sql).unwrap();
    }
    let expected = direct.query_bytes(READ).unwrap().to_vec();
    assert_same(READ, &seen, &expected);
    assert_ne!(amounts(&front), before, "the write changed nothing");
}

#[test]
fn a_change_of_something_else_does_not_matter() {
    let front = front("something_else");
    let mut guest = begin_with(&front, READ);
    front.direct().query(WRITE_OTHER).unwrap();
    front.settle();
    // The server's snapshot is made now: what memory has answered holds in it.
    let other = expected(&front, &["BEGIN"], OTHER);
    let read = expected(&front, &["BEGIN"], READ);
    assert_same(OTHER, &guest.run(OTHER).bytes, &other);
    front.direct().query(WRITE).unwrap();
    front.direct().query(WRITE_OTHER).unwrap();
    front.settle();
    for _ in 0..3 {
        assert_same(READ, &guest.run(READ).bytes, &read);
        assert_same(OTHER, &guest.run(OTHER).bytes, &other);
    }
}

#[test]
fn a_transaction_that_writes_after_memory_has_answered_is_one_on_the_server() {
    let front = front("then_writes");
    for end in ["COMMIT", "ROLLBACK"] {
        let before = amounts(&front);
        let mut guest = begin_with(&front, READ);
        let mut direct = front.direct();
        direct.query("BEGIN").unwrap();
        let read = direct.query_bytes(READ).unwrap().to_vec();
        guest.setup(&[WRITE_OTHER, "SAVEPOINT here", WRITE, "ROLLBACK TO here"]);
        assert_same(READ, &guest.run(READ).bytes, &read);
        let (own, _) = guest.value(OTHER);
        assert_eq!(amounts(&front), before, "not committed yet");
        guest.setup(&[end]);
        let after = amounts(&front);
        assert_eq!(after == before, end == "ROLLBACK");
        if end == "COMMIT" {
            assert_eq!(front.direct().query_value(OTHER).unwrap(), own);
        }
        front.settle();
        warm(&front, &["BEGIN"]);
    }
}

#[test]
fn what_has_changed_since_is_refused_and_nothing_is_written() {
    let front = front("refused");
    for statement in [
        WRITE_OTHER,
        "SELECT COUNT(*) FROM accounts FOR UPDATE",
        "SAVEPOINT here",
        "SELECT 1",
        "SET @a = 1",
        "COMMIT AND CHAIN",
    ] {
        let mut guest = begin_with(&front, READ);
        front.direct().query(WRITE).unwrap();
        let before = amounts(&front);
        front.settle();
        let (outcome, code) = fails_with(&mut guest, statement);
        assert_eq!((outcome, code), ("conflict", Some(1213)), "{statement}");
        assert_eq!(amounts(&front), before, "{statement}");
        guest.setup(&["BEGIN", WRITE_OTHER, "COMMIT"]);
        assert_ne!(amounts(&front), before, "{statement}");
        front.settle();
        warm(&front, &["BEGIN"]);
    }
}

/// Nothing has told Remora of the change: the server is asked once more, in the snapshot.
#[test]
fn what_has_changed_unseen_is_refused_and_what_has_not_goes_on() {
    let options = options().with("cache.snapshot_wait_ms_max", "1");
    let (front, gate) = Front::behind_gate(lease(), "changed_unseen", options, &TABLES);
    in_memory(&front);
    let mut changed = begin_with(&front, READ);
    let mut unchanged = begin_with(&front, OTHER);
    gate.hold(true);
    front.direct().query(WRITE).unwrap();
    let locking = "SELECT note FROM notes WHERE id = 2 FOR UPDATE";
    let refused = fails_with(&mut changed, locking);
    let locked = fails_with(&mut unchanged, locking);
    let other = unchanged.run(OTHER).bytes;
    gate.hold(false);
    assert_eq!(refused, ("conflict", Some(1213)));
    assert_eq!(locked.1, None);
    assert_same(OTHER, &other, &expected(&front, &["BEGIN"], OTHER));
}

/// The tags say that something has changed, and the answer is the same.
#[test]
fn a_change_that_leaves_the_answer_as_it_was_is_no_conflict() {
    let front = front("same_answer");
    let mut guest = begin_with(&front, READ);
    for change in ["+ 1", "- 1"] {
        let write = format!("UPDATE accounts SET amount = amount {change} WHERE id = 1");
        front.direct().query(&write).unwrap();
    }
    front.settle();
    guest.setup(&[WRITE_OTHER, "COMMIT"]);
}

#[test]
fn prepared_statements_are_answered_and_checked_like_others() {
    let front = front("prepared");
    let sql = "SELECT amount FROM accounts WHERE id = ?";
    for is_changed in [false, true] {
        let mut guest = front.guest();
        let (_, statement) = guest.observe(|client| client.prepare(sql.as_bytes()).unwrap());
        let hit = wait_for("a hit", PATIENCE, || {
            guest.setup(&["ROLLBACK", "BEGIN"]);
            let (outcome, ()) = guest.observe(|client| {
                client.execute(statement, &[Value::Int(2)]).unwrap();
            });
            Ok((outcome == "hit").then_some(()))
        });
        hit.unwrap();
        if is_changed {
            let write = "UPDATE accounts SET amount = amount + 1 WHERE id = 2";
            front.direct().query(write).unwrap();
            front.settle();
        }
        let (outcome, code) = fails_with(&mut guest, WRITE_OTHER);
        if is_changed {
            assert_eq!((outcome, code), ("conflict", Some(1213)));
        } else {
            assert_eq!((outcome, code), ("write", None));
        }
        guest.setup(&["ROLLBACK"]);
    }
}

#[test]
fn what_a_client_asks_about_the_statement_before_is_right() {
    let front = front("diagnostics");
    let questions = ["SELECT FOUND_ROWS()", "SELECT ROW_COUNT()", "SHOW WARNINGS"];
    let scripts: [&[&str]; 6] = [
        &["BEGIN"],
        &["BEGIN", READ],
        &["BEGIN", READ, OTHER],
        &["BEGIN", READ, "COMMIT"],
        &[READ, "BEGIN"],
        &["BEGIN", READ, "ROLLBACK", "BEGIN"],
    ];
    for script in scripts {
        for question in questions {
            let (mut guest, mut direct) = (front.guest(), front.direct());
            // Else a question of Remora's own is what the server has run last.
            let last = "SELECT 1 UNION SELECT 2 UNION SELECT 3";
            guest.setup(&[READ, last]);
            direct.query(last).unwrap();
            for sql in script {
                let expected = direct.query_bytes(sql).unwrap().to_vec();
                assert_same(sql, &guest.run(sql).bytes, &expected);
            }
            let expected = direct.query_bytes(question).unwrap().to_vec();
            let seen = guest.run(question).bytes;
            assert_same(&format!("{script:?}, {question}"), &seen, &expected);
            for sql in ["COMMIT", READ] {
                let expected = direct.query_bytes(sql).unwrap().to_vec();
                assert_same(sql, &guest.run(sql).bytes, &expected);
            }
        }
    }
}

#[test]
fn a_session_that_is_reset_leaves_its_transaction() {
    const RESET: u8 = 0x1f;
    let front = front("reset");
    if front.server().kind() == Kind::MySql56 {
        return;
    }
    let mut guest = begin_with(&front, READ);
    front.direct().query(WRITE).unwrap();
    front.settle();
    guest.command(RESET, &[], ResponseKind::Single);
    let expected = front.direct().query_bytes(OTHER).unwrap().to_vec();
    assert_same(OTHER, &guest.run(OTHER).bytes, &expected);
}

#[test]
fn more_than_is_remembered_goes_to_the_server_and_shows() {
    let options = options().with("cache.early_reads_max", "2");
    let front = Front::with("remembered", options, &TABLES);
    in_memory(&front);
    let mut guest = begin_with(&front, READ);
    let read = expected(&front, &["BEGIN"], READ);
    for _ in 0..4 {
        assert_same(READ, &guest.run(READ).bytes, &read);
    }
    let reached = front.remora().metrics().unwrap().sum_where(
        "remora_limit_reached_total",
        "limit",
        "cache.early_reads_max",
    );
    assert!(reached >= 1.0);
    guest.setup(&[WRITE_OTHER, "COMMIT"]);
}

#[test]
fn results_beyond_those_that_may_wait_for_proof_are_not_kept_and_it_shows() {
    let options = options()
        .with("cache.waiting_fills_max", "1")
        .with("cache.snapshot_wait_ms_max", "0");
    let (front, gate) = Front::behind_gate(lease(), "may_wait", options, &TABLES);
    in_memory(&front);
    for write in [WRITE, WRITE_OTHER] {
        front.direct().query(write).unwrap();
    }
    front.settle();
    gate.hold(true);
    // Where the log ends now isn't reached while it is held back.
    front
        .direct()
        .query("UPDATE notes SET note = 'held' WHERE id = 2")
        .unwrap();
    let mut guest = front.guest();
    for sql in [READ, OTHER] {
        guest.setup(&["BEGIN", sql, "COMMIT"]);
    }
    gate.hold(false);
    let reached = front.remora().metrics().unwrap().sum_where(
        "remora_limit_reached_total",
        "limit",
        "cache.waiting_fills_max",
    );
    assert!(reached >= 1.0);
}

/// `COMMIT` begins another transaction then, or ends the session.
#[test]
fn what_a_setting_makes_of_a_commit_is_left_to_the_server() {
    let front = front("completion");
    let (mut guest, mut direct) = (front.guest(), front.direct());
    let read = expected(&front, &["BEGIN"], READ);
    for sql in ["SET completion_type = 1", "BEGIN", READ, "COMMIT", READ] {
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        assert_same(sql, &guest.run(sql).bytes, &expected);
    }
    front.direct().query(WRITE).unwrap();
    front.settle();
    assert_same(READ, &guest.run(READ).bytes, &read);
    let mut leaving = front.guest();
    leaving.setup(&["SET completion_type = 2", "BEGIN", READ, "COMMIT"]);
    assert!(leaving.client().query("SELECT 1").is_err());
}

/// What doesn't read is sent when the server has opened the transaction, in every mode.
#[test]
fn a_transaction_is_opened_on_the_server_with_its_first_statement() {
    for mode in ["after_snapshot", "early"] {
        let options = RemoraOptions::following().with("cache.transaction_reads", mode);
        let front = Front::with("first_statement", options, &TABLES);
        let (mut guest, mut direct) = (front.guest(), front.direct());
        guest.setup(&["BEGIN", READ, "COMMIT"]);
        for first in [
            READ,
            "SELECT id FROM accounts WHERE id = 9",
            "SELECT 1",
            "SELECT id FROM accounts WHERE id = 3 FOR UPDATE",
            "UPDATE accounts SET memo = 'x' WHERE id = 3",
            "SELECT wrong FROM accounts",
            "SAVEPOINT here",
            "SET @a = 1",
        ] {
            let before = statements(&mut direct, "Com_begin");
            guest.setup(&["BEGIN"]);
            assert_eq!(statements(&mut direct, "Com_begin"), before, "{mode}");
            direct.query("BEGIN").unwrap();
            let expected = direct.query_raw(first.as_bytes()).map(drop);
            let wanted = direct.answer_bytes().to_vec();
            direct.query("ROLLBACK").unwrap();
            let (_, answer) = guest.observe(|client| client.query_raw(first.as_bytes()).map(drop));
            assert_eq!(answer.is_ok(), expected.is_ok(), "{mode}: {first}");
            assert_same(first, guest.client().answer_bytes(), &wanted);
            // The direct connection's own, and this one.
            assert_eq!(statements(&mut direct, "Com_begin"), before + 2, "{mode}");
            guest.setup(&["ROLLBACK"]);
        }
        guest.setup(&["BEGIN", "COMMIT", "BEGIN", "BEGIN", WRITE, "ROLLBACK"]);
        drop(guest);
        front
            .direct()
            .query(&format!("DROP DATABASE {}", front.schema()))
            .unwrap();
    }
}

#[test]
fn compressed_clients_get_the_same() {
    for mode in ["after_snapshot", "early"] {
        let options = RemoraOptions::following().with("cache.transaction_reads", mode);
        let front = Front::with(&format!("compressed_{mode}"), options, &TABLES);
        let options = ConnectOptions {
            compression: Some(Algorithm::Zlib),
            ..front.options()
        };
        let (mut guest, mut direct) = (front.guest_as(&options), options.connect().unwrap());
        // So long that it takes more than one packet, compressed or not.
        let long = format!("{OTHER} AND '{}' <> ''", "x".repeat(100_000));
        for round in 0..4 {
            let other = format!("SELECT amount, {round} FROM accounts WHERE id = 3");
            for sql in [
                "BEGIN", READ, &other, "COMMIT", "BEGIN", &long, READ, "ROLLBACK",
            ] {
                let expected = direct.query_bytes(sql).unwrap().to_vec();
                assert_same(mode, &guest.run(sql).bytes, &expected);
            }
        }
    }
}

/// A message that is too long to be held is taken from the client, and not run.
#[test]
fn a_long_statement_is_refused_too() {
    let options = options().with("cache.statement_bytes_max", "1KiB");
    let front = Front::with("long_refused", options, &TABLES);
    in_memory(&front);
    for length in [2_000, 200_000] {
        let mut guest = begin_with(&front, READ);
        front.direct().query(WRITE).unwrap();
        let before = amounts(&front);
        front.settle();
        let long = format!("{WRITE_OTHER} AND '{}' <> ''", "x".repeat(length));
        let (outcome, code) = fails_with(&mut guest, &long);
        assert_eq!((outcome, code), ("conflict", Some(1213)));
        assert_eq!(amounts(&front), before);
        guest.setup(&["BEGIN", &long, "COMMIT"]);
        assert_ne!(amounts(&front), before);
        front.settle();
        warm(&front, &["BEGIN"]);
    }
}

#[test]
fn a_hit_under_explain_analyze_counts_as_a_read_of_the_transaction() {
    let front = front("early_analysed");
    let analysed = format!("EXPLAIN REMORA ANALYZE {READ}");
    let mut guest = front.guest();
    wait_for("a hit to be analysed", PATIENCE, || {
        guest.setup(&["BEGIN"]);
        let seen = guest.run(&analysed);
        if seen.outcome == "hit" {
            return Ok(Some(()));
        }
        guest.setup(&["ROLLBACK"]);
        Ok(None)
    })
    .unwrap();
    front.direct().query(WRITE).unwrap();
    front.settle();
    // The server opens the transaction now, and its state no longer has what memory has read.
    let seen = fails_with(&mut guest, WRITE_OTHER);
    assert_eq!(seen, ("conflict", Some(1213)));
}
