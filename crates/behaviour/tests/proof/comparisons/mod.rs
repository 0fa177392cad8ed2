//! Whether a row that a server finds by a condition has one of the condition's tags, for each type
//! of column that narrows reads and each way to write a constant.
//!
//! Every value of a list is stored in every type of column; then rows are asked for by `=`, `IN`,
//! `BETWEEN` and open ranges with constants from the same list, as text and as bound parameters,
//! with and without an index, under several `sql_mode`s and character sets. Each row that the
//! server finds is then taken from its log: its change must drop the result.
//!
//! The seed is fixed, so that a run fails only for its own change; `REMORA_COMPARISONS_SEED`
//! chooses another, and `make soak` a new one each time.

mod conditions;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use remora_engine::facts::{ColumnFacts, ColumnKind, TableFacts};
use remora_engine::settings::string_conversion;
use remora_engine::tags::{
    ChangeTags, Purpose, ReadTables, ReadTags, TableShapes, Telling, bind, fences_of_write,
    tags_of_read,
};

use self::conditions::{Condition, Given, columns, conditions};
use remora_binlog::{DecoderLimits, Event, EventHeader, Field, Rows, StreamDecoder};
use remora_cache::{
    AsOf, BrokenRules, BrokenTags, FenceScope, Position, Shapes, ShapesLimits, TableTags, Tag,
    Timeline, TimelineLimits,
};
use remora_sql::{Dialect, analyse, analyse_prepared};
use remora_testkit::client::{Client, Value};
use remora_testkit::load::Random;
use remora_testkit::servers::{SCHEMA, Server, ServerOptions};

/// Writes whose fences are compared with the reads, for each column.
const WRITES: usize = 30;
const MAGIC_BYTES: usize = 4;
const MODES: &[&str] = &[
    "",
    "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
    "ALLOW_INVALID_DATES",
    "TIME_ROUND_FRACTIONAL",
    "TIME_TRUNCATE_FRACTIONAL",
    "PAD_CHAR_TO_FULL_LENGTH",
    "NO_UNSIGNED_SUBTRACTION",
];

/// `character_set_client`, and `collation_connection` with its character set. Which of them convert
/// strings is for Remora to know. Pairs that give `charset_unsafe` are left out.
const CHARSETS: &[[&str; 3]] = &[
    ["utf8mb4", "utf8mb4_general_ci", "utf8mb4"],
    ["utf8mb4", "latin1_swedish_ci", "latin1"],
    ["utf8mb4", "utf16_general_ci", "utf16"],
    ["utf8mb4", "binary", "binary"],
    ["binary", "utf8mb4_general_ci", "utf8mb4"],
    ["binary", "binary", "binary"],
    ["latin1", "utf8mb4_general_ci", "utf8mb4"],
    ["latin1", "latin1_swedish_ci", "latin1"],
];

/// A read, with what the server finds.
struct Asked {
    condition: Condition,
    mode: &'static str,
    charsets: &'static [&'static str; 3],
    found: BTreeSet<i128>,
}

struct Bench {
    server: Server,
    client: Client,
    random: Random,
    modes: Vec<&'static str>,
}

impl Bench {
    fn start() -> Bench {
        let seed = std::env::var("REMORA_COMPARISONS_SEED").ok();
        let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("REMORA_COMPARISONS_SEED={seed}");
        let server = Server::start(ServerOptions::default()).unwrap();
        let mut client = server.root().unwrap();
        client.query(&format!("USE {SCHEMA}")).unwrap();
        client.query("SET NAMES utf8mb4").unwrap();
        let has = |mode: &&&str| client.query(&format!("SET sql_mode = '{mode}'")).is_ok();
        let modes = MODES.iter().filter(has).copied().collect();
        Bench {
            client,
            server,
            random: Random::new(seed),
            modes,
        }
    }

    fn choose_mode(&mut self) -> &'static str {
        let mode = self.modes[self.random.below(self.modes.len())];
        // Else the mode's name might be converted, too.
        self.client.query("SET NAMES utf8mb4").unwrap();
        self.client
            .query(&format!("SET sql_mode = '{mode}'"))
            .unwrap();
        mode
    }

    fn choose_charsets(&mut self) -> &'static [&'static str; 3] {
        let charsets = &CHARSETS[self.random.below(CHARSETS.len())];
        let [client, collation, _] = charsets;
        self.client
            .query(&format!(
                "SET character_set_client = {client}, collation_connection = {collation}"
            ))
            .unwrap();
        charsets
    }

    /// A row for each value: it stands in all columns, as far as they take it.
    fn store(&mut self) {
        let definitions: Vec<String> = columns()
            .iter()
            .enumerate()
            .map(|(at, (definition, _))| format!("c{at} {definition}"))
            .collect();
        // A server may compare otherwise where it looks up in an index.
        let key = |(at, (definition, _)): (usize, &(&str, ColumnKind))| {
            let is_long = ["TEXT", "BLOB"]
                .iter()
                .any(|one| definition.starts_with(one));
            let length = if is_long { "(40)" } else { "" };
            format!("KEY (c{at}{length})")
        };
        let keys: Vec<_> = columns().iter().enumerate().map(key).collect();
        let create = format!(
            "CREATE TABLE t (id INT PRIMARY KEY, {}, pad INT, {}) ENGINE=InnoDB",
            definitions.join(", "),
            keys.join(", ")
        );
        self.client.query("SET sql_mode = ''").unwrap();
        self.client.query(&create).unwrap();
        for (id, value) in Given::all().into_iter().enumerate() {
            self.choose_mode();
            let values = vec![value.written(); columns().len()].join(", ");
            let insert = format!("INSERT IGNORE INTO t VALUES ({id}, {values}, 0)");
            self.client
                .query(&insert)
                .unwrap_or_else(|error| panic!("{insert}: {error}"));
        }
    }

    fn ask(&mut self, conditions: Vec<Condition>) -> Vec<Asked> {
        let (mut mode, mut charsets) = ("", &CHARSETS[0]);
        let mut asked = Vec::new();
        for (at, condition) in conditions.into_iter().enumerate() {
            if at % 20 == 0 {
                mode = self.choose_mode();
                charsets = self.choose_charsets();
            }
            let hint = match self.random.below(2) {
                0 => String::new(),
                _ => format!("IGNORE INDEX (c{})", condition.column),
            };
            let text = format!("SELECT id FROM t {hint} WHERE {}", condition.text());
            let rows = if condition.is_bound {
                // Each on its own: MySQL 8.0 goes by the types of earlier executions. Remora leaves
                // those to it.
                let statement = self.client.prepare(text.as_bytes()).unwrap();
                let values: Vec<Value> = condition.constants.iter().map(|one| one.sent()).collect();
                let answer = self.client.execute(statement, &values);
                let rows = answer.map(|answer| answer.binary_rows().unwrap());
                self.client.close_statement(statement).unwrap();
                rows
            } else {
                self.client
                    .query(&text)
                    .map(|answer| answer.rows().unwrap())
            };
            // MySQL 8.0 refuses some dates.
            let Ok(rows) = rows else { continue };
            let id = |row: &Vec<Option<Vec<u8>>>| {
                let text = String::from_utf8(row[0].clone().unwrap()).unwrap();
                text.parse::<i128>().unwrap()
            };
            let found = rows.iter().map(id).collect();
            asked.push(Asked {
                condition,
                mode,
                charsets,
                found,
            });
        }
        asked
    }

    /// The rows of the table in the log, each by its key.
    fn logged(&self) -> Vec<(i128, Event)> {
        let directory = self.server.log_path().parent().unwrap().join("data");
        let log = std::fs::read(directory.join("binlog.000001")).unwrap();
        let mut decoder = StreamDecoder::new(
            "binlog".into(),
            MAGIC_BYTES as u64,
            DecoderLimits::default(),
        );
        let mut rest = &log[MAGIC_BYTES..];
        let mut logged = Vec::new();
        while !rest.is_empty() {
            let length = EventHeader::parse(rest).unwrap().event_bytes as usize;
            let decoded = decoder.decode(&rest[..length]).unwrap();
            rest = &rest[length..];
            let event = decoded.event;
            if let Event::Rows {
                table: Some(table),
                rows: Some(rows),
                ..
            } = &event
                && table.table.table == "t"
            {
                let id = key(rows);
                logged.push((id, event));
            }
        }
        logged
    }
}

fn key(rows: &Rows) -> i128 {
    let mut found = None;
    rows.for_each(|row| {
        let image = row.after.unwrap();
        let Field::Bytes(bytes) = image.field(0) else {
            panic!("a row without a key")
        };
        assert!(found.is_none(), "two rows in one event");
        found = rows.map().columns[0].kind.integer(bytes, false);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    found.unwrap()
}

/// Remora's side: the tags of the reads, and what the rows touch.
struct Judge {
    timeline: Arc<Timeline>,
    shapes: TableShapes,
    table: TableTags,
    facts: Arc<TableFacts>,
    broken: BrokenTags,
}

impl Judge {
    fn new(broken: BrokenTags) -> Judge {
        let limits = TimelineLimits {
            tag_slots: 1 << 20,
            fence_slots: 1 << 20,
            lag_ms_max: 1_000,
        };
        let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
        timeline.restart(Position::new(1, 4).unwrap());
        timeline.prove(timeline.epoch(), 0);
        let limits = ShapesLimits {
            table_shapes_max: 1_000,
            tables_max: 10,
        };
        Judge {
            shapes: Shapes::new(Arc::clone(&timeline), limits),
            timeline,
            table: TableTags::new(SCHEMA, "t"),
            facts: Arc::new(facts()),
            broken,
        }
    }

    fn as_of(&self) -> AsOf {
        self.timeline.as_of().unwrap()
    }

    /// The tags of `SELECT id FROM t WHERE …`.
    fn tags(&self, asked: &Asked) -> Vec<Tag> {
        let condition = &asked.condition;
        let [client, _, connection] = asked.charsets;
        let text = format!("SELECT id FROM t WHERE {}", condition.text());
        let analyse = if condition.is_bound {
            analyse_prepared
        } else {
            analyse
        };
        let select = analyse(text.as_bytes(), Dialect::default())
            .cacheable
            .unwrap();
        let under = ReadTags {
            shapes: &self.shapes,
            as_of: self.as_of(),
            broken: self.broken,
            bound: &condition.bound(),
            conversion: string_conversion(client, connection),
            purpose: Purpose::Result,
        };
        let table = ReadTables {
            tags: self.table,
            facts: Arc::clone(&self.facts),
        };
        tags_of_read(&select, &[table], &under, |_| None)
    }

    /// Which of the reads the insertion of this row, the `number`-th change, drops.
    fn drops(&self, number: usize, row: &Event, reads: &[Vec<Tag>]) -> Vec<bool> {
        let (as_of, at) = (self.as_of(), Position::new(1, 100 + number as u64).unwrap());
        let mut change = ChangeTags::new(10_000, self.broken);
        self.timeline.begin_commit(at);
        change.take(row, &self.shapes);
        let tables = [(self.table, Telling::Rows)];
        change.touch(&self.timeline, &self.shapes, at, tables.into_iter());
        let is_dropped = |tags: &Vec<Tag>| self.timeline.check(as_of, tags, 0).is_err();
        let dropped = reads.iter().map(is_dropped).collect();
        self.timeline.set_applied(at);
        self.timeline.advance_visible(self.timeline.epoch(), at);
        dropped
    }

    /// What an `UPDATE` of these rows fences.
    fn fences(&self, asked: &Asked) -> Vec<Tag> {
        let condition = &asked.condition;
        let text = format!("UPDATE t SET pad = 1 WHERE {}", condition.text());
        let analyse = if condition.is_bound {
            analyse_prepared
        } else {
            analyse
        };
        let mut narrowed = analyse(text.as_bytes(), Dialect::default()).narrowed;
        if let Some(narrowed) = &mut narrowed {
            bind(narrowed, &condition.bound());
        }
        fences_of_write(self.table, &self.facts, narrowed.as_ref())
    }
}

fn facts() -> TableFacts {
    let column = |name: String, kind, is_nullable| ColumnFacts {
        is_nullable,
        ..ColumnFacts::new(&name, kind)
    };
    let integer = ColumnKind::Integer {
        bytes: 4,
        unsigned: false,
    };
    let mut all = vec![column("id".to_owned(), integer.clone(), false)];
    let kinds = columns().into_iter().enumerate();
    all.extend(kinds.map(|(at, (_, kind))| column(format!("c{at}"), kind, true)));
    all.push(column("pad".to_owned(), integer, true));
    TableFacts {
        cacheable: Ok(()),
        tag: Tag::table(SCHEMA, "t"),
        writes_are_foreseeable: true,
        is_transactional: true,
        is_partitioned: false,
        cascades_to: Vec::new(),
        cascaded_from: Vec::new(),
        cascade_parents: Vec::new(),
        view_of: Vec::new(),
        columns: all.into(),
        columns_match_log: true,
        key_columns: [0].into(),
        has_other_unique_keys: false,
    }
}

/// Rows that the server finds and Remora would not have dropped the result for; and, of each
/// column, how many pairs of a read and a row that it doesn't find are kept, of how many.
fn judge(
    judge: &Judge,
    asked: &[Asked],
    logged: &[(i128, Event)],
) -> (Vec<String>, Vec<(usize, usize)>) {
    let reads: Vec<Vec<Tag>> = asked.iter().map(|one| judge.tags(one)).collect();
    // One row of each read is enough to show it.
    let mut reported = HashSet::new();
    let mut bad = Vec::new();
    let mut kept = vec![(0, 0); columns().len()];
    for (number, (id, row)) in logged.iter().enumerate() {
        let dropped = judge.drops(number, row, &reads);
        for (one, is_dropped) in asked.iter().zip(dropped) {
            let column = one.condition.column;
            if one.found.contains(id) {
                if !is_dropped && reported.insert(std::ptr::from_ref(one)) {
                    let (definition, _) = columns()[column];
                    let stored = Given::all()[usize::try_from(*id).unwrap()];
                    bad.push(format!(
                        "{definition}: {} (bound: {}, {:?}, sql_mode '{}', {:?}) finds the row of {stored:?}",
                        one.condition.form,
                        one.condition.is_bound,
                        one.condition.constants,
                        one.mode,
                        one.charsets
                    ));
                }
            } else {
                kept[column].0 += usize::from(!is_dropped);
                kept[column].1 += 1;
            }
        }
    }
    (bad, kept)
}

fn shown(bad: &[String]) -> String {
    let first: Vec<&str> = bad.iter().take(60).map(String::as_str).collect();
    format!("{} in all:\n{}", bad.len(), first.join("\n"))
}

/// Writes whose fences leave a read alone although both find a row.
fn unfenced(judge: &Judge, asked: &[Asked], random: &mut Random) -> Vec<String> {
    let reads: Vec<(&Asked, Vec<Tag>)> = asked.iter().map(|one| (one, judge.tags(one))).collect();
    let as_of = judge.as_of();
    let mut bad = Vec::new();
    for column in 0..columns().len() {
        let of_column: Vec<_> = reads
            .iter()
            .filter(|(one, _)| one.condition.column == column)
            .collect();
        for _ in 0..WRITES {
            let (write, _) = of_column[random.below(of_column.len())];
            let fence = judge
                .timeline
                .raise(FenceScope::Tables(judge.fences(write)));
            let concerned = of_column
                .iter()
                .filter(|(read, _)| !read.found.is_disjoint(&write.found));
            for (read, tags) in concerned {
                if judge.timeline.check(as_of, tags, 0).is_ok() {
                    bad.push(format!(
                        "{:?} leaves {:?}",
                        write.condition.text(),
                        read.condition.text()
                    ));
                }
            }
            fence.answered();
            judge.timeline.take_answered().lower();
        }
    }
    bad
}

#[test]
fn a_row_that_the_server_finds_drops_the_result() {
    let mut bench = Bench::start();
    bench.store();
    let logged = bench.logged();
    assert_eq!(logged.len(), Given::all().len());
    let mut random = bench.random.clone();
    let wanted: Vec<Condition> = (0..columns().len())
        .flat_map(|column| conditions(column, &mut random))
        .collect();
    let asked = bench.ask(wanted);
    let found: usize = asked.iter().map(|one| one.found.len()).sum();
    println!(
        "{} conditions, {} rows, {found} found",
        asked.len(),
        logged.len()
    );
    let right = Judge::new(BrokenTags::Right);
    let (bad, kept) = judge(&right, &asked, &logged);
    for ((definition, _), (kept, of)) in columns().iter().zip(&kept) {
        println!(
            "{definition}: {kept} of {of} pairs of a read and a row that it doesn't find are told apart"
        );
    }
    assert!(bad.is_empty(), "{}", shown(&bad));
    assert!(
        kept.iter().all(|(kept, of)| kept * 100 > *of),
        "a column that narrows nothing: {kept:?}"
    );
    let bad = unfenced(&right, &asked, &mut random);
    assert!(bad.is_empty(), "{}", shown(&bad));
    // The same questions find tags that are too fine.
    for broken in [BrokenTags::TextFolding, BrokenTags::IntervalBounds] {
        let (bad, _) = judge(&Judge::new(broken), &asked, &logged);
        println!("{broken:?}: {}", bad.first().map_or("", String::as_str));
        assert!(!bad.is_empty(), "{broken:?} was not noticed");
    }
}
