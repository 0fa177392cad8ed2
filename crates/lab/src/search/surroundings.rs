//! What happens around the statements: commits whose rows come late, facts and privileges that
//! change while the server runs, another server behind the same address.
//!
//! All of it is SQL with a [`Route`], so that a case can be written, made smaller and run again
//! like any other.

use clap::ValueEnum;
use remora_testkit::servers::{FOLLOW_USER, Kind};

use super::changes;
use super::dice::Dice;
use super::hidden::turn;
use super::questions::any_table;
use super::schema::Schema;
use super::script::{Change, READER, READER_PASSWORD, ROW_IMAGES, Route, Script, Statement};

/// What else happens in the cases of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Surroundings {
    /// Commits of all kinds whose rows can be seen long after the log has told of them, while
    /// others ask.
    LateCommits,
    /// The follower's privileges, the server's settings and the privileges of those who ask are
    /// taken away and given back.
    Facts,
    /// The address leads to another server with other rows, for new connections.
    TwoServers,
    /// Statements that write, with large answers that their client doesn't take.
    SlowReaders,
}

/// Share of the changes that are of the surroundings, of a hundred.
const SHARE_LATE: usize = 70;
const SHARE_OF_FACTS: usize = 35;
const SHARE_OF_PRIVILEGES: usize = 25;
const SHARE_TO_OTHER: usize = 40;
const SHARE_SLOW: usize = 40;
/// Functions of a case whose answers nobody takes.
const SLOW_FUNCTIONS: usize = 2;
/// Share of cases about facts in which those who ask have an account of their own, of a hundred.
const SHARE_WITH_READER: usize = 60;

/// What many rows are made of.
const DIGITS: [&str; 2] = [
    "CREATE TABLE digits (d INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
];
/// A table whose commits take long: InnoDB puts the words of a new row into the index between the
/// log and the commit.
const LATE_SETUP: [&str; 4] = [
    "CREATE TABLE late_words (body LONGTEXT) ENGINE=InnoDB",
    "SET SESSION group_concat_max_len = 10000000",
    // 60,000 words.
    "INSERT INTO late_words SELECT GROUP_CONCAT(CONCAT('w', a.d, b.d, c.d, d.d, e.d, 'x') SEPARATOR ' ') \
     FROM digits a, digits b, digits c, digits d, digits e WHERE e.d < 6",
    "CREATE TABLE late_rows (id INT AUTO_INCREMENT PRIMARY KEY, body LONGTEXT, FULLTEXT KEY (body)) \
     ENGINE=InnoDB",
];
const LATE_ROW: &str = "INSERT INTO late_rows (body) SELECT body FROM late_words";
/// With this engine there are no two phases.
const ARIA_SETUP: [&str; 2] = [
    "CREATE TABLE late_aria (body LONGTEXT) ENGINE=Aria TRANSACTIONAL=1",
    "INSERT INTO late_aria SELECT body FROM late_words",
];
const LATE_ROW_FROM_ARIA: &str = "INSERT INTO late_rows (body) SELECT body FROM late_aria";

/// How a transaction ends whose rows come late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Prepared,
    PreparedElsewhere,
    OnePhase,
    Plain,
    WithoutTwoPhases,
}

impl Surroundings {
    /// Adds what is needed to the beginning of a case, and makes its changes.
    pub(super) fn surround(
        self,
        dice: &mut Dice,
        schema: &mut Schema,
        script: &mut Script,
        changes_min: usize,
    ) {
        self.set_up(dice, schema, script);
        while script.changes.len() < changes_min {
            let number = script.changes.len();
            let made = self.changes(dice, schema, script, number);
            script.changes.extend(made);
        }
    }

    fn set_up(self, dice: &mut Dice, schema: &Schema, script: &mut Script) {
        match self {
            Surroundings::LateCommits => {
                script.setup.extend(DIGITS.map(str::to_owned));
                script.setup.extend(LATE_SETUP.map(str::to_owned));
                if sees_unordered(schema.kind) {
                    script.setup.extend(ARIA_SETUP.map(str::to_owned));
                }
            }
            Surroundings::Facts => {
                script.reads_as_reader = dice.chance(SHARE_WITH_READER);
                if script.reads_as_reader {
                    script.setup.extend(reader(schema));
                }
            }
            Surroundings::SlowReaders => {
                script.setup.extend(DIGITS.map(str::to_owned));
                script.setup.extend(slow_code(dice, schema));
            }
            Surroundings::TwoServers => {
                for table in schema.base_tables() {
                    script.other_setup.push(plain(&turn(dice, table)));
                    let delete = format!("DELETE FROM {} ORDER BY id LIMIT 1", table.name);
                    script.other_setup.push(delete);
                }
            }
        }
    }

    fn changes(
        self,
        dice: &mut Dice,
        schema: &mut Schema,
        script: &Script,
        number: usize,
    ) -> Vec<Change> {
        match self {
            Surroundings::LateCommits if dice.chance(SHARE_LATE) => {
                vec![late(dice, schema, number)]
            }
            Surroundings::Facts if dice.chance(SHARE_OF_FACTS) => facts(dice, schema, number),
            Surroundings::Facts if script.reads_as_reader && dice.chance(SHARE_OF_PRIVILEGES) => {
                vec![privilege(dice, schema)]
            }
            Surroundings::TwoServers if dice.chance(SHARE_TO_OTHER) => {
                vec![to_other(dice, schema)]
            }
            Surroundings::SlowReaders if dice.chance(SHARE_SLOW) => vec![slow(dice)],
            _ => {
                let questions = &script.questions;
                vec![changes::random(dice, schema, number, questions, false)]
            }
        }
    }
}

fn plain(marked: &str) -> String {
    Statement::plain(marked).text
}

fn change(route: Route, kind: &str, texts: impl IntoIterator<Item = String>) -> Change {
    Change {
        route,
        image: ROW_IMAGES[0].to_owned(),
        kind: kind.to_owned(),
        statements: texts.into_iter().map(Statement::plain).collect(),
        ends_elsewhere: false,
        asks: Vec::new(),
    }
}

/// Whether Remora's account sees there when a commit without two phases is over. Elsewhere what
/// such a commit changed isn't cached for a long time, and nothing could be found out.
fn sees_unordered(kind: Kind) -> bool {
    kind == Kind::MariaDb1011
}

// ---- Late commits ------------------------------------------------------------------------------

impl Ending {
    fn random(dice: &mut Dice, kind: Kind) -> Ending {
        // MySQL 5.6 rolls back what a connection that ends has prepared.
        let elsewhere = if kind == Kind::MySql56 { 0 } else { 20 };
        let without_two_phases = if sees_unordered(kind) { 20 } else { 0 };
        dice.weighted(&[
            (30, Ending::Prepared),
            (elsewhere, Ending::PreparedElsewhere),
            (15, Ending::OnePhase),
            (15, Ending::Plain),
            (without_two_phases, Ending::WithoutTwoPhases),
        ])
    }

    fn as_str(self) -> &'static str {
        match self {
            Ending::Prepared => "late-xa",
            Ending::PreparedElsewhere => "late-xa-elsewhere",
            Ending::OnePhase => "late-xa-one-phase",
            Ending::Plain => "late-transaction",
            Ending::WithoutTwoPhases => "late-without-two-phases",
        }
    }

    /// What begins and what ends a transaction of this name.
    fn around(self, name: &str) -> (String, Vec<String>) {
        let begin = format!("XA START {name}");
        let end = format!("XA END {name}");
        match self {
            Ending::Prepared | Ending::PreparedElsewhere => {
                let prepare = format!("XA PREPARE {name}");
                (begin, vec![end, prepare, format!("XA COMMIT {name}")])
            }
            Ending::OnePhase => (begin, vec![end, format!("XA COMMIT {name} ONE PHASE")]),
            Ending::Plain | Ending::WithoutTwoPhases => {
                ("BEGIN".to_owned(), vec!["COMMIT".to_owned()])
            }
        }
    }
}

/// A transaction the rows of which come late.
fn late(dice: &mut Dice, schema: &Schema, number: usize) -> Change {
    let kind = schema.kind;
    let ending = Ending::random(dice, kind);
    let (begin, ends) = ending.around(&format!("'x{number}'"));
    let waits = waits(dice, kind);
    let mut texts: Vec<String> = waits.iter().map(ToString::to_string).collect();
    texts.push(begin);
    for _ in 0..dice.number(1, 3) {
        let table = any_table(dice, schema);
        texts.push(turn(dice, table));
    }
    let count = dice.index(3);
    let others = changes::writes(dice, schema, count).into_iter();
    let plain_ones = others.filter(|one| one.values.is_none());
    texts.extend(plain_ones.map(|one| one.text));
    // Where commits wait by themselves it is late enough.
    if waits.is_empty() || !kind.is_mysql() || dice.chance(25) {
        let row = if ending == Ending::WithoutTwoPhases {
            LATE_ROW_FROM_ARIA
        } else {
            LATE_ROW
        };
        texts.push(row.to_owned());
    }
    texts.extend(ends);
    let route = dice.weighted(&[(65, Route::Late), (35, Route::LateThrough)]);
    Change {
        ends_elsewhere: ending == Ending::PreparedElsewhere,
        ..change(route, ending.as_str(), texts)
    }
}

/// Has the server's commits wait for each other. What is set is set back when the change is over.
fn waits(dice: &mut Dice, kind: Kind) -> &'static [&'static str] {
    // Between the sending of the events and the commit in the engine.
    const MYSQL: &[&str] = &["SET GLOBAL binlog_group_commit_sync_delay = 40000"];
    const MARIADB: &[&str] = &[
        "SET GLOBAL binlog_commit_wait_count = 3",
        "SET GLOBAL binlog_commit_wait_usec = 20000",
    ];
    match kind {
        Kind::MySql80 | Kind::MySql57 if dice.chance(70) => MYSQL,
        Kind::MariaDb1011 | Kind::MariaDb114 if dice.chance(30) => MARIADB,
        _ => &[],
    }
}

// ---- Facts -------------------------------------------------------------------------------------

/// The account of those who ask, with the right to read everything that there is to ask for.
fn reader(schema: &Schema) -> Vec<String> {
    let account = format!("{READER}@'%'");
    let make = if schema.kind == Kind::MySql56 {
        format!("GRANT USAGE ON *.* TO {account} IDENTIFIED BY '{READER_PASSWORD}'")
    } else {
        let identified = schema.kind.identified_by(READER_PASSWORD);
        format!("CREATE USER {account} {identified}")
    };
    let mut all = vec![format!("DROP USER {account}"), make];
    all.extend(readable(schema).iter().map(|name| grant_to_read(name)));
    all
}

/// Tables and views.
fn readable(schema: &Schema) -> Vec<String> {
    let tables = schema.tables.iter().map(|one| one.name.clone());
    tables.chain(schema.code.reading.iter().cloned()).collect()
}

fn grant_to_read(name: &str) -> String {
    format!("GRANT SELECT ON {name} TO {READER}@'%'")
}

/// What those who ask may read changes.
fn privilege(dice: &mut Dice, schema: &Schema) -> Change {
    let name = dice.pick(&readable(schema)).clone();
    let revoke = format!("REVOKE SELECT ON {name} FROM {READER}@'%'");
    let column = format!("GRANT SELECT (id) ON {name} TO {READER}@'%'");
    let texts = match dice.index(5) {
        0 | 1 => vec![revoke],
        2 => vec![revoke, column],
        3 => vec![grant_to_read(&name)],
        _ => readable(schema)
            .iter()
            .map(|one| grant_to_read(one))
            .collect(),
    };
    let route = dice.weighted(&[
        (25, Route::ThroughHeld),
        (25, Route::ThroughAtOnce),
        (15, Route::Through),
        (35, Route::Direct),
    ]);
    change(route, "privilege", texts)
}

/// A fact changes, something is done under it, and it is changed back.
fn facts(dice: &mut Dice, schema: &Schema, number: usize) -> Vec<Change> {
    let (mut taken, mut back) = fact(dice, schema.kind);
    let is_of_triggers = taken.contains(" TRIGGER ");
    if dice.chance(40) {
        (taken, back) = (unlogged(&taken), unlogged(&back));
    }
    let split = |texts: &str| texts.split("; ").map(str::to_owned).collect::<Vec<_>>();
    let mut all = vec![change(Route::Fact, "fact", split(&taken))];
    let writes = if is_of_triggers {
        trigger(dice, schema, number)
    } else {
        None
    };
    let write = |route: Route, text: &str| change(route, "fact-write", [text.to_owned()]);
    if let Some((trigger, write_twice)) = &writes {
        all.push(write(Route::Direct, trigger));
        all.push(write(Route::ThroughHeld, write_twice));
        all.push(write(Route::ThroughAtOnce, write_twice));
    } else {
        for _ in 0..2 {
            let table = any_table(dice, schema);
            let text = plain(&turn(dice, table));
            all.push(write(Route::ThroughHeld, &text));
        }
    }
    all.push(change(Route::Restored, "fact-restored", split(&back)));
    if let Some((_, write_twice)) = &writes {
        all.push(write(Route::ThroughHeld, write_twice));
    }
    all
}

/// What changes a fact, and what changes it back.
fn fact(dice: &mut Dice, kind: Kind) -> (String, String) {
    let privilege = |name: &str| {
        (
            format!("REVOKE {name} ON *.* FROM {FOLLOW_USER}@'%'"),
            format!("GRANT {name} ON *.* TO {FOLLOW_USER}@'%'"),
        )
    };
    let setting = |name: &str, value: &str, usual: &str| {
        (
            format!("SET GLOBAL {name} = {value}"),
            format!("SET GLOBAL {name} = {usual}"),
        )
    };
    let has_process = matches!(kind, Kind::MariaDb1011 | Kind::MySql57 | Kind::MySql56);
    let has_gtid_modes = matches!(kind, Kind::MySql80 | Kind::MySql57);
    match dice.weighted(&[
        (55, 0),
        (15, 1),
        (if has_process { 10 } else { 0 }, 2),
        (15, 3),
        (5, 4),
        (10, 5),
        (if has_gtid_modes { 10 } else { 0 }, 6),
    ]) {
        0 => privilege("TRIGGER"),
        1 => privilege("SHOW VIEW"),
        2 => privilege("PROCESS"),
        3 => setting("binlog_format", "MIXED", "ROW"),
        4 => setting("binlog_format", "STATEMENT", "ROW"),
        5 => setting("binlog_row_image", "MINIMAL", "FULL"),
        _ => setting("gtid_mode", "ON_PERMISSIVE", "ON"),
    }
}

/// The same without a word in the log.
fn unlogged(text: &str) -> String {
    format!("SET sql_log_bin = 0; {text}; SET sql_log_bin = 1")
}

/// A trigger that writes another table than its own, and a write that runs it. `None`: there is one
/// table only.
fn trigger(dice: &mut Dice, schema: &Schema, number: usize) -> Option<(String, String)> {
    let tables = schema.base_tables();
    // Not the other way round: none calls itself.
    let to = dice.number(1, tables.len().max(2) - 1);
    let to_table = tables.get(to)?;
    let from = tables[dice.index(to)];
    let when = dice.word(&["BEFORE", "AFTER"]);
    let trigger = format!(
        "CREATE TRIGGER trf{number} {when} UPDATE ON {} FOR EACH ROW {}",
        from.name,
        turn(dice, to_table)
    );
    Some((plain(&trigger), plain(&turn(dice, from))))
}

// ---- Two servers -------------------------------------------------------------------------------

/// Writes that are sent while the address leads to the other server.
fn to_other(dice: &mut Dice, schema: &Schema) -> Change {
    let route = dice.weighted(&[(60, Route::Other), (40, Route::OtherFollowed)]);
    let texts: Vec<String> = (0..dice.number(1, 2))
        .map(|_| {
            let table = any_table(dice, schema);
            turn(dice, table)
        })
        .collect();
    change(route, "other-server", texts)
}

// ---- Slow readers ------------------------------------------------------------------------------

/// Functions that write, each with a view that calls it.
fn slow_code(dice: &mut Dice, schema: &Schema) -> Vec<String> {
    let mut all = Vec::new();
    for number in 0..SLOW_FUNCTIONS {
        let table = any_table(dice, schema);
        let body = plain(&turn(dice, table));
        all.push(format!(
            "CREATE FUNCTION slow{number}() RETURNS INT MODIFIES SQL DATA BEGIN {body}; RETURN 1; END"
        ));
        all.push(format!(
            "CREATE VIEW slow_view{number} AS SELECT slow{number}() AS x FROM digits"
        ));
    }
    all
}

/// A large answer, each row of which writes. What a row turns the next turns back: their number is
/// odd.
fn slow(dice: &mut Dice) -> Change {
    let number = dice.index(SLOW_FUNCTIONS);
    let text = if dice.chance(70) {
        format!(
            "SELECT slow{number}(), REPEAT('x', 60000) FROM digits a, digits b, digits c \
             WHERE a.d < 7 AND b.d < 7 AND c.d < 7"
        )
    } else {
        format!(
            "SELECT x, REPEAT('x', 60000) FROM slow_view{number}, digits b, digits c \
             WHERE b.d < 5 AND c.d < 7 LIMIT 343"
        )
    };
    change(Route::Slow, "slow-reader", [text])
}
