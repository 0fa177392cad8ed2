//! The statements that begin, end and describe transactions, in any order: also in orders that no
//! application means to send, and in which servers do what nobody expects.
//!
//! Each statement is sent to Remora and to the server, each on a connection of its own, and both
//! must answer the same bytes, flags included.

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::load::Random;
use remora_testkit::proxies::RemoraOptions;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::{Front, Guest, assert_same};

const NOTE: &str = "SELECT note FROM notes WHERE id = 1";
const READ: &str = "SELECT id, amount FROM accounts WHERE id IN (1, 2) ORDER BY id";
const OTHER: &str = "SELECT amount FROM accounts WHERE id = 3";

const TABLES: [&str; 6] = [
    "CREATE TABLE accounts (id INT PRIMARY KEY, amount BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO accounts VALUES (1, 100), (2, 200), (3, 300)",
    "CREATE TABLE notes (id INT PRIMARY KEY, note INT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO notes VALUES (1, 1), (2, 2)",
    // A query in a `SET` may lock what it reads. Nobody writes here.
    "CREATE TABLE constants (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO constants VALUES (1), (2)",
];
/// Somebody else changes every row. Not sent by the pair.
const WRITE: &str = "(write)";
const MODES: [&str; 3] = ["off", "after_snapshot", "early"];

/// `COM_RESET_CONNECTION`, which MySQL 5.6 hasn't.
const RESET: u8 = 0x1f;

fn front(schema: &str, mode: &str) -> Front {
    let options = RemoraOptions::following().with("cache.transaction_reads", mode);
    Front::with(&format!("{schema}_{mode}"), options, &TABLES)
}

/// A connection through Remora and one past it, to which the same happens.
struct Pair<'f> {
    guest: Guest<'f>,
    direct: Client,
    /// What happened so far.
    story: Vec<String>,
}

impl<'f> Pair<'f> {
    fn new(front: &'f Front) -> Pair<'f> {
        Pair {
            guest: front.guest(),
            direct: front.direct(),
            story: Vec::new(),
        }
    }

    /// Sends both the statement; gives the outcome.
    fn run(&mut self, sql: &str) -> &'static str {
        let expected = self.direct.query_bytes(sql).unwrap().to_vec();
        let seen = self.guest.run(sql);
        self.story.push(format!("{sql} [{}]", seen.outcome));
        if seen.outcome != "conflict" {
            assert_same(&self.story.join("; "), &seen.bytes, &expected);
        }
        seen.outcome
    }

    fn reset(&mut self, options: &ConnectOptions, has_reset: bool) {
        if has_reset {
            let reset = |client: &mut Client| {
                let answer = client.command(RESET, &[], ResponseKind::Single);
                answer.unwrap().bytes().to_vec()
            };
            let expected = reset(&mut self.direct);
            let (_, seen) = self.guest.observe(reset);
            assert_same("COM_RESET_CONNECTION", &seen, &expected);
        } else {
            self.direct.change_user(options).unwrap();
            self.guest.client().change_user(options).unwrap();
        }
        self.story = vec!["reset".to_owned()];
    }
}

/// Who changes all rows.
struct Writer(Client);

impl Writer {
    fn new(front: &Front) -> Writer {
        let mut client = front.direct();
        client
            .query("SET autocommit = 1, innodb_lock_wait_timeout = 1")
            .unwrap();
        Writer(client)
    }

    /// Whether the server knows `COM_RESET_CONNECTION`. This may end the connection.
    fn knows_reset(&mut self) -> bool {
        self.0.command(RESET, &[], ResponseKind::Single).is_ok()
    }

    fn write(&mut self, front: &Front) {
        for sql in [
            "UPDATE accounts SET amount = amount + 1",
            "UPDATE notes SET note = note + 1",
        ] {
            self.0.query(sql).unwrap();
        }
        front.settle();
    }

    /// Has what is true now in memory, for those who read outside transactions.
    fn keep(&mut self, by: &mut Guest<'_>) {
        for sql in [READ, NOTE] {
            let expected = self.0.query_bytes(sql).unwrap().to_vec();
            by.becomes_hit(sql, &expected);
        }
    }
}

/// Runs these statements on a pair. After each write the newest rows are in memory for others, who
/// always read outside transactions.
fn answers_are_the_servers(front: &Front, statements: &[&str]) {
    let mut writer = Writer::new(front);
    let mut others = front.guest();
    others.setup(&["SET autocommit = 1"]);
    writer.keep(&mut others);
    let mut pair = Pair::new(front);
    for sql in statements {
        if *sql == WRITE {
            writer.write(front);
            writer.keep(&mut others);
        } else {
            pair.run(sql);
        }
    }
    // What the pair has read must not have become what others get.
    writer.write(front);
    pair.guest.run(READ);
    writer.keep(&mut others);
}

fn in_all_modes(schema: &str, statements: &[&str]) {
    for mode in MODES {
        answers_are_the_servers(&front(schema, mode), statements);
    }
}

/// MySQL tells such a session in each answer that autocommit is on.
#[test]
fn sessions_begin_with_autocommit_off_by_the_global_setting() {
    for mode in MODES {
        let front = front("any_order_global", mode);
        let mut root = front.server().root().unwrap();
        root.query("SET GLOBAL autocommit = 0").unwrap();
        let off = "SET autocommit = 0";
        answers_are_the_servers(
            &front,
            &[
                READ, WRITE, READ, WRITE, READ, "COMMIT", off, READ, WRITE, READ,
            ],
        );
        root.query("SET GLOBAL autocommit = 1").unwrap();
    }
}

/// The server keeps the snapshot of the query, and shows old rows from then on.
#[test]
fn a_query_in_the_statement_that_turns_autocommit_off_may_leave_its_snapshot() {
    for (nth, ends) in [
        &["COMMIT", "SET autocommit = 1"][..],
        &["SET autocommit = 1"],
    ]
    .into_iter()
    .enumerate()
    {
        for query in ["(SELECT COUNT(*) * 0 FROM constants)", "zero()"] {
            let set = format!("SET autocommit = {query}");
            let mut statements = vec![set.as_str(), "BEGIN", READ];
            statements.extend(ends);
            statements.extend([WRITE, READ, READ, WRITE, READ]);
            for mode in MODES {
                let front = front(&format!("any_order_query_{nth}_{}", query.len()), mode);
                let mut root = front.server().root().unwrap();
                let zero = "CREATE FUNCTION zero() RETURNS INT READS SQL DATA \
                            RETURN (SELECT COUNT(*) * 0 FROM constants)";
                root.query(&format!("USE {}", front.schema())).unwrap();
                root.query("SET GLOBAL log_bin_trust_function_creators = 1")
                    .unwrap();
                root.query(zero).unwrap();
                answers_are_the_servers(&front, &statements);
            }
        }
    }
}

/// The next one has the isolation level of the last then.
#[test]
fn a_transaction_ends_without_commit_and_the_next_begins() {
    in_all_modes(
        "any_order_level",
        &[
            "SET autocommit = 0",
            NOTE,
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET autocommit = 1",
            "BEGIN",
            NOTE,
            WRITE,
            READ,
            "COMMIT",
            READ,
            "BEGIN",
            NOTE,
            READ,
            WRITE,
            READ,
            "COMMIT",
        ],
    );
}

/// The same for the access mode, until a statement on its own has read a table.
#[test]
fn a_read_only_transaction_ends_without_commit() {
    in_all_modes(
        "any_order_access",
        &[
            "SET autocommit = 0",
            "START TRANSACTION READ ONLY",
            NOTE,
            "SET autocommit = 1",
            READ,
            "UPDATE accounts SET amount = amount WHERE id = 99",
            "START TRANSACTION READ ONLY",
            "BEGIN",
            READ,
            "UPDATE accounts SET amount = amount WHERE id = 99",
            "COMMIT",
        ],
    );
}

/// The same where memory has answered what the transaction read.
#[test]
fn a_read_only_transaction_from_memory_ends_without_commit() {
    for mode in MODES {
        let front = front("any_order_hits", mode);
        let mut pair = Pair::new(&front);
        let read_only = "START TRANSACTION READ ONLY";
        pair.run("SET autocommit = 0");
        for _ in 0..4 {
            for sql in [read_only, READ, "COMMIT", "BEGIN", READ, "COMMIT"] {
                pair.run(sql);
            }
        }
        for sql in [
            read_only,
            READ,
            "SELECT @@autocommit",
            "SET autocommit = 1",
            READ,
            "BEGIN",
            "UPDATE accounts SET amount = amount WHERE id = 99",
            "COMMIT",
        ] {
            pair.run(sql);
        }
    }
}

#[test]
fn what_one_session_says_of_its_next_transaction_does_not_count_for_others() {
    for mode in MODES {
        let front = front("any_order_others", mode);
        let mut one = Pair::new(&front);
        for sql in [
            "BEGIN",
            READ,
            "COMMIT",
            "SET TRANSACTION READ ONLY",
            "BEGIN",
            READ,
            "COMMIT",
        ] {
            one.run(sql);
        }
        let mut other = Pair::new(&front);
        for sql in [READ, "BEGIN", READ, "COMMIT"] {
            other.run(sql);
        }
    }
}

/// A reset doesn't end what the server has lost sight of.
#[test]
fn a_reset_behind_such_a_query_does_not_end_its_snapshot() {
    let front = front("any_order_reset", "after_snapshot");
    let mut writer = Writer::new(&front);
    let mut others = front.guest();
    let has_reset = writer.knows_reset();
    writer = Writer::new(&front);
    writer.keep(&mut others);
    let mut pair = Pair::new(&front);
    pair.run("SET autocommit = (SELECT COUNT(*) * 0 FROM constants)");
    writer.write(&front);
    pair.reset(&front.options(), has_reset);
    pair.run(READ);
    writer.keep(&mut others);
}

/// The function's value counts for the next transaction only.
#[test]
fn a_function_says_what_the_next_transaction_is_like() {
    for mode in MODES {
        let front = front("any_order_function", mode);
        let mut direct = front.direct();
        let new_name = direct.query("SELECT @@transaction_isolation").is_ok();
        let variable = if new_name {
            "transaction_isolation"
        } else {
            "tx_isolation"
        };
        let mut root = front.server().root().unwrap();
        root.query(&format!("USE {}", front.schema())).unwrap();
        for sql in [
            "SET GLOBAL log_bin_trust_function_creators = 1",
            "CREATE FUNCTION dirty() RETURNS VARCHAR(20) DETERMINISTIC NO SQL RETURN 'READ-UNCOMMITTED'",
            "CREATE FUNCTION clean() RETURNS VARCHAR(20) DETERMINISTIC NO SQL RETURN 'READ-COMMITTED'",
        ] {
            root.query(sql).unwrap();
        }
        let mut others = front.guest();
        let mut pair = Pair::new(&front);
        pair.run(READ);
        let mut writer = Writer::new(&front);
        writer.keep(&mut others);
        pair.run(&format!("SET @@{variable} = dirty()"));
        for sql in ["BEGIN", "UPDATE accounts SET amount = amount + 1"] {
            writer.0.query(sql).unwrap();
        }
        pair.run(READ);
        writer.0.query("ROLLBACK").unwrap();
        writer.keep(&mut others);

        let mut pair = Pair::new(&front);
        let set = format!("SET SESSION {variable} = clean()");
        for sql in [
            "SET autocommit = 0",
            READ,
            &set,
            "SET autocommit = 1",
            "BEGIN",
            NOTE,
        ] {
            pair.run(sql);
        }
        writer.write(&front);
        pair.run(OTHER);
        pair.run(READ);
        others.setup(&["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"]);
        writer.keep(&mut others);
    }
}

/// With the flag that none is open the server goes on with `BEGIN`, until it is told otherwise.
#[test]
fn a_deadlock_rolls_a_transaction_back_and_leaves_it_begun() {
    for mode in MODES {
        let front = front("any_order_deadlock", mode);
        let mut pair = Pair::new(&front);
        for sql in ["BEGIN", READ, "COMMIT", READ, "ROLLBACK", READ] {
            pair.run(sql);
        }
        fall_victim(&front, &mut pair.direct);
        fall_victim(&front, pair.guest.client());
        for sql in [
            "SELECT 1",
            READ,
            "SELECT @@autocommit",
            "ROLLBACK",
            "UPDATE accounts SET amount = amount WHERE id = 3",
            READ,
            "COMMIT",
        ] {
            pair.run(sql);
        }
        fall_victim(&front, &mut pair.direct);
        fall_victim(&front, pair.guest.client());
        let update = "UPDATE accounts SET amount = amount WHERE id = 3";
        for sql in ["SELECT 1", "COMMIT", update, READ, "COMMIT"] {
            pair.run(sql);
        }
    }
}

/// Its transaction is rolled back for somebody else's, which has changed more.
fn fall_victim(front: &Front, client: &mut Client) {
    let mut other = front.direct();
    other.query("BEGIN").unwrap();
    client.query("BEGIN").unwrap();
    let lock = "SELECT note FROM notes WHERE id = 1 FOR UPDATE";
    client.query(lock).unwrap();
    other
        .query("UPDATE accounts SET amount = amount + 1")
        .unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| other.query(lock).map(drop));
        let error = client.query("UPDATE accounts SET amount = 0 WHERE id = 1");
        assert_eq!(error.unwrap_err().code(), Some(1213));
        waits.join().unwrap().unwrap();
    });
    other.query("ROLLBACK").unwrap();
}

/// What a pair may send, and how often of a hundred or so.
const STATEMENTS: [(usize, &str); 48] = [
    (14, READ),
    (14, NOTE),
    (10, OTHER),
    (1, "SELECT 1"),
    (1, "SELECT @@autocommit"),
    (1, "SELECT amount FROM accounts WHERE 1 = 0"),
    (1, "SELECT * FROM no_such"),
    (12, "BEGIN"),
    (3, "START TRANSACTION READ ONLY"),
    (1, "START TRANSACTION READ WRITE"),
    (1, "START TRANSACTION WITH CONSISTENT SNAPSHOT"),
    (14, "COMMIT"),
    (4, "ROLLBACK"),
    (1, "COMMIT AND CHAIN"),
    (1, "ROLLBACK AND CHAIN"),
    (1, "SAVEPOINT s"),
    (1, "ROLLBACK TO s"),
    (3, "SET autocommit = 0"),
    (3, "SET autocommit=1"),
    (2, "SET @@session.autocommit = OFF"),
    (2, "set LOCAL autocommit = TRUE"),
    (1, "/*!40101 SET autocommit = 0 */"),
    (1, "SET autocommit = 0, autocommit = 1"),
    (1, "SET autocommit = 1, autocommit = 0"),
    (1, "SET autocommit = 1 - 1"),
    (1, "SET autocommit = 'x'"),
    (1, "SET autocommit = 0, lock_wait_timeout = 'x'"),
    (1, "SET autocommit = 1, sql_mode = 'no_such'"),
    (1, "SET autocommit = DEFAULT"),
    (1, "SET @a = (SELECT id FROM constants WHERE id = 2)"),
    (1, "SET NAMES latin1, autocommit = 0"),
    (1, "SET NAMES utf8"),
    (3, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"),
    (4, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
    (
        1,
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    ),
    (
        1,
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    ),
    (
        2,
        "SET SESSION TRANSACTION READ WRITE, ISOLATION LEVEL REPEATABLE READ",
    ),
    (1, "SET SESSION TRANSACTION READ ONLY, READ ONLY"),
    (2, "SET SESSION TRANSACTION READ ONLY"),
    (4, "SET SESSION TRANSACTION READ WRITE"),
    (1, "SET TRANSACTION READ ONLY"),
    (1, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
    (1, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
    (3, "UPDATE accounts SET amount = amount WHERE id = 99"),
    (1, "CREATE TABLE notes (id INT)"),
    (1, "SET completion_type = 1"),
    (1, "SET completion_type = 0"),
    (6, WRITE),
];
/// After so many statements a pair is reset, on average.
const RESET_AFTER: usize = 40;
const PAIRS: usize = 3;

/// Statements in each mode, unless `REMORA_ANY_ORDER_STEPS` says otherwise. They are always the
/// same, unless `REMORA_ANY_ORDER_SEED` gives another seed: `make soak` looks for new ones.
const STEPS: usize = 1_500;

#[test]
fn any_order_of_statements_gets_the_servers_answers() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let seed = number("REMORA_ANY_ORDER_SEED").unwrap_or(1);
    let steps = number("REMORA_ANY_ORDER_STEPS").map_or(STEPS, |steps| steps.try_into().unwrap());
    println!("REMORA_ANY_ORDER_SEED={seed}");
    for mode in MODES {
        any_order(&front("any_order", mode), steps, &mut Random::new(seed));
    }
    // With `sample`, most reads are relayed without being analysed.
    let options = RemoraOptions::following().with("cache.storing", "sample");
    let front = Front::with("any_order_sample", options, &TABLES);
    any_order(&front, steps, &mut Random::new(seed));
}

fn any_order(front: &Front, steps: usize, random: &mut Random) {
    let mut writer = Writer::new(front);
    let has_reset = writer.knows_reset();
    writer = Writer::new(front);
    let mut pairs: Vec<_> = (0..PAIRS).map(|_| Pair::new(front)).collect();
    let total: usize = STATEMENTS.iter().map(|(often, _)| often).sum();
    for _ in 0..steps {
        let mut at = random.below(total);
        let chosen = STATEMENTS.iter().find(|(often, _)| {
            let is_it = at < *often;
            at = at.wrapping_sub(*often);
            is_it
        });
        let &(_, sql) = chosen.unwrap();
        if sql == WRITE {
            writer.write(front);
            for pair in &mut pairs {
                pair.story.push(WRITE.to_owned());
            }
            continue;
        }
        let pair = &mut pairs[random.below(PAIRS)];
        let outcome = pair.run(sql);
        // What was refused hasn't been done, and past Remora it has.
        if outcome == "conflict" || random.below(RESET_AFTER) == 0 {
            pair.reset(&front.options(), has_reset);
        }
    }
}
