//! Reads inside transactions at `REPEATABLE READ`: whoever answers them, all show one moment.

use remora_testkit::client::{Client, Value};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same, lease};

/// What begins transactions here: its answer has a row, so it takes the snapshot.
const FIRST: &str = "SELECT note FROM notes WHERE id = 1";
/// What memory may answer afterwards.
const READ: &str = "SELECT id, amount FROM accounts WHERE id IN (1, 2) ORDER BY id";
const WRITE: &str = "UPDATE accounts SET amount = amount + 1 WHERE id = 1";

const TABLES: [&str; 8] = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, amount BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO accounts VALUES (1, 100), (2, 200), (3, 300)",
    "CREATE TABLE notes (id INT PRIMARY KEY, note VARCHAR(20) NOT NULL) ENGINE=InnoDB",
    "INSERT INTO notes VALUES (1, 'one'), (2, 'two')",
    "CREATE TABLE nothing (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE things (small TINYINT NOT NULL, label VARCHAR(5) CHARACTER SET latin1 NOT NULL,
        raw VARBINARY(5), free TEXT CHARACTER SET utf8mb4, big BIGINT UNSIGNED, day DATE,
        PRIMARY KEY (small, label), UNIQUE KEY (raw), KEY (big)) ENGINE=InnoDB",
    "INSERT INTO things VALUES (1, 'one', 'r', 'f', 1, '2026-01-01')",
    "CREATE TABLE parts (id INT PRIMARY KEY) ENGINE=InnoDB
        PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10))",
];

/// What the server itself answers inside a transaction of this kind.
fn expected(front: &Front, begin: &[&str]) -> Vec<u8> {
    let mut direct = front.direct();
    for sql in begin {
        direct.query(sql).unwrap();
    }
    direct.query(FIRST).unwrap();
    direct.query_bytes(READ).unwrap().to_vec()
}

/// Begins a transaction and takes its snapshot.
fn begin(guest: &mut Guest<'_>) {
    guest.setup(&["BEGIN", FIRST]);
}

/// Changes an account past Remora, and waits until transactions that begin from now on are known to
/// have that.
fn write_elsewhere(front: &Front) {
    front.direct().query(WRITE).unwrap();
    front.settle();
}

/// Begins transactions until memory answers what it should.
fn hits_in_one(guest: &mut Guest<'_>, begin: &[&str], expected: &[u8]) {
    let hit = wait_for("a hit in a transaction", PATIENCE, || {
        guest.setup(begin);
        guest.setup(&[FIRST]);
        for _ in 0..3 {
            let seen = guest.run(READ);
            assert_same(READ, &seen.bytes, expected);
            if seen.outcome == "hit" {
                return Ok(Some(()));
            }
        }
        guest.setup(&["ROLLBACK"]);
        Ok(None)
    });
    hit.unwrap();
}

/// Has the answer to `READ` inside transactions in memory.
fn warm(front: &Front) {
    let expected = expected(front, &["BEGIN"]);
    hits_in_one(&mut front.guest(), &["BEGIN"], &expected);
}

fn in_memory(front: &Front) {
    // A new shape's first results are coarse: they would be dropped by any change of the table.
    warm(front);
    write_elsewhere(front);
    warm(front);
}

#[test]
fn memory_answers_a_transactions_reads_after_the_first() {
    let front = Front::new("after_the_first", &TABLES);
    for setup in [
        &["BEGIN"][..],
        &["START TRANSACTION"],
        &["START TRANSACTION READ ONLY"],
        &["START TRANSACTION WITH CONSISTENT SNAPSHOT"],
        &["SET autocommit = 0"],
        &["SET autocommit = 0", "BEGIN"],
        &["BEGIN", "SAVEPOINT a", "ROLLBACK TO a"],
        &["BEGIN", FIRST, "COMMIT AND CHAIN"],
        &["BEGIN", FIRST, "ROLLBACK", "BEGIN"],
    ] {
        let expected = expected(&front, setup);
        hits_in_one(&mut front.guest(), setup, &expected);
        // Another transaction of the same kind finds it there.
        let mut other = front.guest();
        other.setup(setup);
        other.setup(&[FIRST]);
        other.still_hits(READ, &expected);
    }
}

#[test]
fn prepared_statements_are_answered_inside_transactions() {
    let front = Front::new("prepared_inside", &TABLES);
    let sql = "SELECT amount FROM accounts WHERE id = ?";
    let mut guest = front.guest();
    let (_, statement) = guest.observe(|client| client.prepare(sql.as_bytes()).unwrap());
    begin(&mut guest);
    let hit = wait_for("a hit", PATIENCE, || {
        let (outcome, ()) = guest.observe(|client| {
            client.execute(statement, &[Value::Int(2)]).unwrap();
        });
        Ok((outcome == "hit").then_some(()))
    });
    hit.unwrap();
}

#[test]
fn nothing_newer_than_the_snapshot_is_seen() {
    let front = Front::new("nothing_newer", &TABLES);
    in_memory(&front);
    let before = expected(&front, &["BEGIN"]);
    let mut guest = front.guest();
    begin(&mut guest);
    guest.still_hits(READ, &before);
    front.guest().setup(&[WRITE]);
    front.catch_up();
    // The newer result comes into memory, for whoever began later.
    warm(&front);
    let after = expected(&front, &["BEGIN"]);
    assert_ne!(before, after);
    for _ in 0..3 {
        guest.still("unservable_newer_than_snapshot", READ, &before);
    }
    // What is as it was is served all the same.
    guest.setup(&["COMMIT"]);
    begin(&mut guest);
    guest.still_hits(READ, &after);
}

/// The log was read without the shape of the result, which nobody had asked for until then.
#[test]
fn nothing_newer_than_the_snapshot_is_seen_in_a_new_shape() {
    let front = Front::new("newer_in_new_shape", &TABLES);
    let before = expected(&front, &["BEGIN"]);
    let note = front.direct().query_bytes(FIRST).unwrap().to_vec();
    front.guest().becomes_hit(FIRST, &note);
    let mut guest = front.guest();
    begin(&mut guest);
    write_elsewhere(&front);
    // Now the shape is registered.
    warm(&front);
    // Its first results depend on the whole table; this drops them.
    front
        .direct()
        .query("UPDATE accounts SET amount = 0 WHERE id = 3")
        .unwrap();
    front.catch_up();
    warm(&front);
    assert_same(READ, &guest.run(READ).bytes, &before);
}

#[test]
fn nothing_older_than_the_snapshot_is_seen() {
    let (front, gate) = Front::behind_gate(
        lease(),
        "nothing_older",
        RemoraOptions::following().with("cache.snapshot_wait_ms_max", "1"),
        &TABLES,
    );
    in_memory(&front);
    let before = expected(&front, &["BEGIN"]);
    let mut old = front.guest();
    begin(&mut old);
    old.still_hits(READ, &before);
    gate.hold(true);
    // Nothing tells Remora of this, so outside a transaction the old row may be served for a while.
    front.direct().query(WRITE).unwrap();
    let after = expected(&front, &["BEGIN"]);
    assert_ne!(before, after);
    let mut guest = front.guest();
    begin(&mut guest);
    for _ in 0..5 {
        guest.still("unservable_snapshot_unproven", READ, &after);
    }
    // A snapshot from before goes on as it was.
    old.still_hits(READ, &before);
    gate.hold(false);
    front.catch_up();
    hits_in_one(&mut guest, &["ROLLBACK", "BEGIN"], &after);
    assert_same(READ, &old.run(READ).bytes, &before);
}

/// Begins a transaction with a read, on both sides, and changes accounts: then the server itself
/// tells whether the read has taken the snapshot.
fn reads_before_a_change<'f>(front: &'f Front, read: &str) -> (Guest<'f>, Vec<u8>) {
    let mut guest = front.guest();
    let mut direct = front.direct();
    direct.query("BEGIN").unwrap();
    guest.setup(&["BEGIN"]);
    for _ in 0..2 {
        guest.setup(&[read]);
        direct.query(read).unwrap();
    }
    write_elsewhere(front);
    (guest, direct.query_bytes(READ).unwrap().to_vec())
}

#[test]
fn a_read_that_may_not_have_looked_at_a_table_takes_no_snapshot() {
    let front = Front::new("no_look", &TABLES);
    in_memory(&front);
    for read in [
        "SELECT id FROM accounts WHERE 1 = 0",
        "SELECT COUNT(*) FROM accounts WHERE 1 = 0",
        "SELECT MAX(id) FROM accounts WHERE id = NULL",
        "SELECT id FROM accounts LIMIT 0",
        "SELECT id FROM accounts WHERE id = 7 LIMIT 3, 0",
        "SELECT id FROM accounts WHERE id = 7 LIMIT 00 OFFSET 3",
        "SELECT id FROM accounts WHERE id = 7 AND id = 8",
        "SELECT id FROM accounts WHERE id = 7 AND id IN (8, 9)",
        "SELECT id FROM accounts WHERE id = 7 AND 1 = 0",
        "SELECT id FROM accounts WHERE id = 7 AND id > 9 AND id < 8",
        "SELECT id FROM accounts WHERE id IN (NULL)",
        "SELECT small FROM things WHERE small = 1000",
        "SELECT small FROM things WHERE small > 127",
        "SELECT small FROM things WHERE big = -1",
        "SELECT small FROM things WHERE label = 'longer'",
        "SELECT small FROM things WHERE raw = 'longer'",
        "SELECT small FROM things WHERE raw = ''",
        "SELECT small FROM things WHERE small = 1 AND label = 'longer'",
        "SELECT small FROM things WHERE label IS NULL",
        "SELECT small FROM things WHERE label = CONVERT(0xE282AC USING utf8mb4)",
        "SELECT id FROM parts WHERE id = 50",
        "SELECT 1",
        "SELECT 1 UNION SELECT id FROM nothing",
        "DO SLEEP(0)",
        "UPDATE nothing SET id = 1",
    ] {
        let (mut guest, expected) = reads_before_a_change(&front, read);
        let seen = guest.run(READ);
        assert_ne!(seen.outcome, "hit", "{read}");
        assert_same(read, &seen.bytes, &expected);
        for _ in 0..3 {
            assert_same(read, &guest.run(READ).bytes, &expected);
        }
    }
}

#[test]
fn a_read_without_rows_takes_the_snapshot_if_it_must_have_looked() {
    let front = Front::new("looks", &TABLES);
    for read in [
        "SELECT id FROM nothing",
        "SELECT id FROM nothing LIMIT 1",
        "SELECT id FROM nothing WHERE id = 7",
        "SELECT DISTINCT id FROM nothing WHERE id IN (7, -8) ORDER BY id DESC LIMIT 0, 2",
        "SELECT amount FROM accounts WHERE id = 7 LIMIT 1 OFFSET 1",
        "SELECT amount FROM accounts WHERE amount = 7",
        "SELECT amount FROM accounts AS a WHERE a.id = 1 AND a.amount = 7",
        "SELECT * FROM things WHERE small = 127",
        "SELECT * FROM things WHERE small = -128 AND label = 'small'",
        "SELECT * FROM things WHERE (label = 'ONE' OR label = 'two') AND small = 2",
        "SELECT * FROM things WHERE raw = 'bytes'",
        "SELECT * FROM things WHERE free = 'free' AND big = 18446744073709551615",
        "SELECT * FROM things WHERE big IN (0, 2, 3)",
    ] {
        let hit = wait_for("a hit behind a read without rows", PATIENCE, || {
            let (mut guest, expected) = reads_before_a_change(&front, read);
            // The server itself shows what was so before the change.
            assert_ne!(expected, self::expected(&front, &["BEGIN"]), "{read}");
            let seen = guest.run(FIRST);
            assert_same(read, &guest.run(READ).bytes, &expected);
            Ok((seen.outcome == "hit").then_some(()))
        });
        assert!(hit.is_ok(), "{read}: {hit:?}");
    }
}

/// Runs the same on both, and expects the same answers.
struct Both<'f> {
    guest: Guest<'f>,
    direct: Client,
}

impl Both<'_> {
    fn run(&mut self, sql: &str) {
        let expected = self.direct.query_bytes(sql).unwrap().to_vec();
        assert_same(sql, &self.guest.run(sql).bytes, &expected);
    }

    /// The transaction's reads come from memory: not the first of a kind, perhaps.
    fn hits(&mut self, sql: &str) {
        let expected = self.direct.query_bytes(sql).unwrap().to_vec();
        self.guest.becomes_hit(sql, &expected);
    }
}

#[test]
fn each_end_of_a_transaction_ends_its_snapshot() {
    let front = Front::new("ends", &TABLES);
    in_memory(&front);
    for (ends, begins_itself) in [
        (&["COMMIT", "BEGIN"][..], false),
        (&["ROLLBACK", "BEGIN"], false),
        (&["BEGIN"], false),
        (&["START TRANSACTION"], false),
        (&["COMMIT AND CHAIN"], false),
        (&["ROLLBACK AND CHAIN"], false),
        (&["ALTER TABLE nothing COMMENT 'x'", "BEGIN"], false),
        (&["COMMIT"], true),
        (&["ROLLBACK"], true),
        (&["ALTER TABLE nothing COMMENT 'x'"], true),
        (&["TRUNCATE nothing"], true),
        (&["SET autocommit = 1", "SET autocommit = 0"], true),
    ] {
        let (guest, direct) = (front.guest(), front.direct());
        let mut both = Both { guest, direct };
        let begins = if begins_itself {
            "SET autocommit = 0"
        } else {
            "BEGIN"
        };
        both.run(begins);
        both.run(FIRST);
        both.hits(READ);
        write_elsewhere(&front);
        both.run(READ);
        for end in ends {
            both.guest.setup(&[end]);
            both.direct.query(end).unwrap();
        }
        both.run(READ);
        both.run(FIRST);
        both.hits(READ);
    }
}

/// The server forgets a snapshot that it took behind the savepoint.
#[test]
fn going_back_to_a_savepoint_from_before_the_snapshot_takes_the_snapshot_back() {
    let options = RemoraOptions::following();
    let (front, gate) = Front::behind_gate(lease(), "savepoints", options, &TABLES);
    in_memory(&front);
    let (guest, direct) = (front.guest(), front.direct());
    let mut both = Both { guest, direct };
    for sql in ["BEGIN", "SAVEPOINT a", FIRST] {
        both.run(sql);
    }
    both.hits(READ);
    both.run("ROLLBACK TO a");
    // Nothing tells Remora of this. The server's next snapshot has it.
    gate.hold(true);
    front.direct().query(WRITE).unwrap();
    for _ in 0..3 {
        both.run(READ);
    }
    gate.hold(false);
}

/// A statement's names mean what they meant when it was prepared.
#[test]
fn a_statement_that_was_prepared_in_another_schema_tells_nothing_of_the_snapshot() {
    let front = Front::new("prepared_elsewhere", &TABLES);
    front
        .direct()
        .query("CREATE DATABASE prepared_here")
        .unwrap();
    let mut guest = front.guest();
    guest.setup(&["CREATE TABLE prepared_here.notes (id INT, note INT) ENGINE=MyISAM"]);
    guest.setup(&["INSERT INTO prepared_here.notes VALUES (1, 1)"]);
    in_memory(&front);
    guest.setup(&["USE prepared_here"]);
    let sql = "SELECT note FROM notes WHERE id = ?";
    let (_, statement) = guest.observe(|client| client.prepare(sql.as_bytes()).unwrap());
    guest.setup(&[&format!("USE {}", front.schema()), "BEGIN"]);
    for _ in 0..3 {
        let (_, ()) = guest.observe(|client| {
            client.execute(statement, &[Value::Int(1)]).unwrap();
        });
    }
    assert_ne!(guest.run(READ).outcome, "hit", "there is no snapshot yet");
    guest.setup(&["COMMIT"]);
    front.direct().query("DROP DATABASE prepared_here").unwrap();
}

#[test]
fn after_an_error_the_snapshot_is_in_doubt() {
    let front = Front::new("in_doubt", &TABLES);
    in_memory(&front);
    let (guest, direct) = (front.guest(), front.direct());
    let mut both = Both { guest, direct };
    both.run("SET autocommit = 0");
    both.run("SET innodb_lock_wait_timeout = 1");
    both.run(FIRST);
    both.hits(READ);
    // Another transaction waits for this one's lock, and this one for that: a deadlock ends one.
    both.guest
        .setup(&["UPDATE notes SET note = 'x' WHERE id = 1"]);
    both.guest.setup(&["ROLLBACK"]);
    both.direct.query("ROLLBACK").unwrap();
    both.run(FIRST);
    both.hits(READ);
    let failing = "SELECT missing FROM accounts";
    assert!(both.direct.query(failing).is_err());
    both.guest.observe(|client| client.query(failing).is_err());
    both.run(READ);
    both.hits(READ);
}

#[test]
fn what_the_transaction_has_written_comes_from_the_server_and_the_rest_from_memory() {
    const OTHER: &str = "SELECT amount FROM accounts WHERE id = 3";
    const OTHER_TABLE: &str = "SELECT note FROM notes WHERE id = 2";
    let front = Front::new("own_writes", &TABLES);
    in_memory(&front);
    for level in ["REPEATABLE READ", "READ COMMITTED"] {
        let (guest, direct) = (front.guest(), front.direct());
        let mut both = Both { guest, direct };
        both.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        both.run("BEGIN");
        both.run(FIRST);
        for read in [READ, OTHER, OTHER_TABLE] {
            both.hits(read);
        }
        // The direct connection can't write the same row, so it knows what others see.
        let before = both.direct.query_bytes(READ).unwrap().to_vec();
        both.guest.setup(&[WRITE]);
        for _ in 0..3 {
            let seen = both.guest.run(READ);
            assert_ne!(seen.outcome, "hit");
            assert_ne!(seen.bytes, before);
        }
        for read in [OTHER, OTHER_TABLE] {
            let expected = both.direct.query_bytes(read).unwrap().to_vec();
            both.guest.still_hits(read, &expected);
        }
        // What it reads now comes into memory for others only without its own rows.
        both.guest
            .setup(&["UPDATE notes SET note = 'own'", OTHER_TABLE, READ]);
        both.hits(OTHER);
        let mut other = front.guest();
        other.setup(&["BEGIN", FIRST]);
        both.direct.query("ROLLBACK").unwrap();
        for read in [OTHER_TABLE, READ] {
            let expected = both.direct.query_bytes(read).unwrap().to_vec();
            both.direct.query("BEGIN").unwrap();
            let inside = both.direct.query_bytes(read).unwrap().to_vec();
            both.direct.query("ROLLBACK").unwrap();
            assert_ne!(expected, inside, "the flags differ");
            other.becomes_hit(read, &inside);
        }
        both.guest.setup(&["ROLLBACK"]);
        both.run("BEGIN");
        both.run(FIRST);
        both.hits(READ);
    }
}

/// A new parent has no children, so the children's results stay. One that takes another's place
/// takes the children with it.
#[test]
fn a_transactions_own_new_parents_leave_results_of_children_in_memory() {
    const CHILDREN: &str = "SELECT id FROM members WHERE family_id = 1";
    const PARENT: &str = "SELECT name FROM families WHERE id = 1";
    const NEW: &str = "SELECT name FROM families WHERE id = 9";
    const REPLIES: &str = "SELECT id FROM replies WHERE post_id = 'a'";
    let families = [
        "CREATE TABLE families (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE members (id INT PRIMARY KEY, family_id INT, FOREIGN KEY (family_id) \
         REFERENCES families (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE posts (id CHAR(4) PRIMARY KEY, title VARCHAR(20))",
        "CREATE TABLE replies (id INT PRIMARY KEY, post_id CHAR(4), FOREIGN KEY (post_id) \
         REFERENCES posts (id) ON DELETE CASCADE)",
        "INSERT INTO families VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO members VALUES (1, 1), (2, 1), (3, 2)",
        "INSERT INTO posts VALUES ('a', 'a'), ('b', 'b')",
        "INSERT INTO replies VALUES (1, 'a'), (2, 'a'), (3, 'b')",
    ];
    let front = Front::new("own_parents", &[&TABLES[..], &families[..]].concat());
    in_memory(&front);
    for level in ["REPEATABLE READ", "READ COMMITTED"] {
        let (guest, direct) = (front.guest(), front.direct());
        let mut both = Both { guest, direct };
        both.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        both.run("BEGIN");
        both.run(FIRST);
        for read in [CHILDREN, PARENT, NEW, REPLIES] {
            both.hits(read);
        }
        both.guest
            .setup(&["INSERT INTO families (id, name) VALUES (9, 'new')"]);
        // Its key isn't narrowed.
        both.guest
            .setup(&["INSERT INTO posts VALUES ('new', 'new'), ('old', 'new')"]);
        for read in [CHILDREN, PARENT, REPLIES] {
            let expected = both.direct.query_bytes(read).unwrap().to_vec();
            both.guest.still_hits(read, &expected);
        }
        let before = both.direct.query_bytes(NEW).unwrap().to_vec();
        let own = both.guest.run(NEW);
        assert!(own.outcome != "hit" && own.bytes != before, "its own row");
        for (read, change) in [
            (
                CHILDREN,
                "REPLACE INTO families (id, name) VALUES (1, 'other')",
            ),
            (REPLIES, "DELETE FROM posts WHERE id = 'a'"),
        ] {
            let before = both.direct.query_bytes(read).unwrap().to_vec();
            both.guest.setup(&[change]);
            for _ in 0..3 {
                let gone = both.guest.run(read);
                assert!(gone.outcome != "hit" && gone.bytes != before, "{change}");
            }
        }
        both.guest.setup(&["ROLLBACK"]);
        both.direct.query("ROLLBACK").unwrap();
    }
}

#[test]
fn an_operator_can_turn_it_off() {
    let options = RemoraOptions::following().with("cache.transaction_reads", "off");
    let front = Front::with("turned_off", options, &TABLES);
    let mut guest = front.guest();
    begin(&mut guest);
    guest.always_passes(READ, "in_transaction");
}
