//! Settings that are read from memory, and those that follow from the `SET` before.

use remora_testkit::client::Client;
use remora_testkit::load::Random;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, Guest, PATIENCE, assert_same};

use super::autocommit_transactions::{Log, run};

const TABLES: [&str; 2] = [
    "CREATE TABLE notes (id INT PRIMARY KEY, note VARCHAR(20) NOT NULL) ENGINE=InnoDB CHARACTER SET utf8",
    "INSERT INTO notes VALUES (1, 'one'), (2, 'b\u{e4}r')",
];
const MODE: &str = "SELECT @@SESSION.sql_mode";
const READ: &str = "SELECT note FROM notes WHERE id = 2";

/// The server opens no transaction for a read of settings alone, and makes no snapshot.
#[test]
fn a_read_of_settings_is_no_part_of_a_transaction() {
    for mode in ["after_snapshot", "early"] {
        let options = RemoraOptions::following().with("cache.transaction_reads", mode);
        let front = Front::with("settings_only", options, &TABLES);
        let other = "SELECT @@session.time_zone";
        for round in 0..8 {
            let (mut guest, mut direct) = (front.guest(), front.direct());
            let one = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
            let off = "SET autocommit = 0";
            run(
                &mut guest,
                &mut direct,
                &[MODE, off, MODE, other, one, MODE],
            );
            run(
                &mut guest,
                &mut direct,
                &[READ, MODE, "COMMIT", MODE, other],
            );
            let (mut guest, mut direct) = (front.guest(), front.direct());
            run(&mut guest, &mut direct, &[MODE, "BEGIN", MODE, other]);
            // A locking read makes no snapshot. What is committed now is in the one after it.
            let lock = "SELECT id FROM notes WHERE id = 9 FOR UPDATE";
            run(&mut guest, &mut direct, &[lock]);
            let write = format!("UPDATE notes SET note = 'round {round}' WHERE id = 2");
            front.direct().query(&write).unwrap();
            run(&mut guest, &mut direct, &[READ, "COMMIT"]);
            // What is kept for transactions waits for this.
            front.settle();
        }
        let drop = format!("DROP DATABASE {}", front.schema());
        front.direct().query(&drop).unwrap();
    }
}

/// What an application that connects for each page says at first. No server warns of this mode:
/// behind a warning, MySQL 5.6 would be asked for the first read.
const PAGE: [&str; 5] = [
    "SET NAMES utf8 COLLATE utf8_unicode_ci",
    MODE,
    "SET SESSION sql_mode='NO_UNSIGNED_SUBTRACTION'",
    MODE,
    READ,
];

#[test]
fn a_page_asks_once_and_reads_its_settings_from_memory() {
    let front = Front::new("pages", &TABLES);
    let one_question = wait_for("a page with one question", PATIENCE, || {
        let (mut guest, mut direct) = (front.guest(), front.direct());
        let mut log = Log::of(&front, &mut guest);
        let before = log.questions();
        let outcomes = run(&mut guest, &mut direct, &PAGE);
        let from_memory = [1, 3, 4].iter().all(|at| outcomes[*at] == "hit");
        Ok((from_memory && log.questions() <= before + 1).then_some(()))
    });
    one_question.unwrap();
}

/// Statements that change settings. Not every server accepts each.
const CHANGES: [&str; 26] = [
    "SET NAMES utf8",
    "SET NAMES latin1",
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET NAMES utf8 COLLATE no_such_collation",
    "SET NAMES DEFAULT",
    "SET collation_connection = latin1_german1_ci",
    "SET character_set_results = NULL",
    "SET character_set_results = latin1",
    "SET sql_mode = ''",
    "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = 'STRICT_ALL_TABLES', time_zone = '+02:00'",
    "SET @@session.sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')",
    "SET sql_mode = DEFAULT",
    "SET time_zone = '+00:00'",
    "SET time_zone = '+99:00'",
    "SET sql_select_limit = 1, sql_mode = 'NO_SUCH_MODE'",
    "SET sql_select_limit = 1",
    "SET sql_select_limit = DEFAULT",
    "SET group_concat_max_len = 4, div_precision_increment = 2",
    "SET group_concat_max_len = 1000",
    RESTORE,
    "SET GLOBAL div_precision_increment = 6",
    "SET div_precision_increment = DEFAULT",
    "SET autocommit = 1",
    "SET @mode = 'ANSI', sql_mode = @mode",
    "SET sql_auto_is_null = 0, foreign_key_checks = 1",
];

/// What the server had before.
const RESTORE: &str = "SET GLOBAL div_precision_increment = 4";

/// Reads whose answers show the settings.
const READS: [&str; 4] = [
    "SELECT @@session.sql_mode, @@time_zone, @@sql_select_limit, @@group_concat_max_len",
    "SELECT @@character_set_client, @@character_set_results, @@collation_connection, @@div_precision_increment",
    "SELECT id, note, 'x' FROM notes ORDER BY id",
    "SELECT GROUP_CONCAT(note ORDER BY id), 1 / 3 FROM notes",
];

/// A session through Remora, and one past it that does the same.
struct Pair<'f> {
    guest: Guest<'f>,
    direct: Client,
    said: Vec<&'static str>,
}

impl<'f> Pair<'f> {
    fn new(front: &'f Front) -> Pair<'f> {
        Pair {
            guest: front.guest(),
            direct: front.direct(),
            said: Vec::new(),
        }
    }

    /// Gives whether memory answered.
    fn run(&mut self, sql: &'static str) -> bool {
        self.said.push(sql);
        let _ = self.direct.query_raw(sql.as_bytes()).map(drop);
        let expected = self.direct.answer_bytes().to_vec();
        let (outcome, _) = self
            .guest
            .observe(|client| client.query_raw(sql.as_bytes()).map(drop));
        let seen = self.guest.client().answer_bytes();
        assert_same(&format!("{:?}", self.said), seen, &expected);
        outcome == "hit"
    }
}

/// Any changes in any order, in sessions that begin alike. The seed is fixed, so that a run fails
/// only for its own change; `REMORA_SETTINGS_SEED` chooses another, and `make soak` a new one.
#[test]
fn settings_match_the_server_after_any_changes() {
    let seed = std::env::var("REMORA_SETTINGS_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("REMORA_SETTINGS_SEED={seed}");
    let mut random = Random::new(seed);
    let front = Front::new("any_changes", &TABLES);
    let mut hits = 0;
    for _ in 0..120 {
        let mut pair = Pair::new(&front);
        for _ in 0..6 {
            // Few of them, so that sessions often do the same.
            let change = CHANGES[random.below(CHANGES.len())];
            pair.run(change);
            if random.below(2) == 0 {
                hits += u64::from(pair.run(READS[random.below(READS.len())]));
            }
        }
    }
    front.direct().query(CHANGES[20]).unwrap();
    println!("{hits} hits");
    assert!(hits > 0);
}
