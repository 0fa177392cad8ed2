//! What a changed row costs the follower when a million results of the table are held.
//!
//! A real server's log of single-row updates is read from its file, and replayed again and again
//! through what the follower does with each event: decoding, the rows' tags, the transaction, the
//! touches. The socket isn't part of it. The results are put into the store directly, with the tags
//! that the product gives to `SELECT c FROM sbtest1 WHERE id = n`; the answers are made up.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use remora_binlog::{Commit, DecoderLimits, StreamDecoder, Touched, Transactions};
use remora_cache::{
    AsOf, BrokenRules, BrokenTags, ColumnSet, INTERVAL_LEVELS, KeyRef, NewEntry, Position, Scope,
    Shape, ShapeColumn, ShapesLimits, Store, StoreLimits, TableTags, Timeline, TimelineLimits,
    Value,
};
use remora_engine::tags::{ChangeTags, Codec, TableShapes, Telling};
use remora_upstream::logged::meaning;
use serde_json::json;

use super::arms::BENCH_SCHEMA;
use super::mark::{Mark, PartReport};
use super::{Size, arms};
use crate::progress::Progress;
use crate::stats::median;
use crate::table::{Table, grouped};
use crate::usage::own_thread_cpu_time;
use remora_testkit::servers::Server;
use remora_testkit::sysbench::{Length, Sysbench};

/// Results held.
const HELD: i64 = 1_000_000;
/// Transactions in the log, each of one row.
const TRANSACTIONS: u64 = 20_000;
/// Rows that one further transaction changes.
const BULK_ROWS: u64 = 20_000;
/// How many shapes the arms have.
const SHAPES: [usize; 3] = [0, 1, 16];
/// Microseconds of the follower's processor for a changed row.
const ROW_US_MAX: f64 = 5.0;
/// sysbench's columns in the table: `id` and `k`; `c` is the one that is read and changed.
const ID: u16 = 0;
const K: u16 = 1;
const C: usize = 2;
/// The product's own defaults.
const TAG_SLOTS: usize = 2 << 20;
const FENCE_SLOTS: usize = 65_536;
const TAGS_MAX: usize = 65_536;
const SCOPE: Scope = Scope::new(1).unwrap();
/// Where a file of the log has its first event.
const FIRST_EVENT: usize = 4;
/// Of an event's header: where its length stands.
const LENGTH: Range<usize> = 9..13;

/// A file of the log, cut into events.
struct Log {
    bytes: Vec<u8>,
    events: Vec<Range<usize>>,
    /// Rows that it changes.
    rows: u64,
}

/// A cache with so many shapes, as the follower sees it.
struct Bed {
    timeline: Arc<Timeline>,
    shapes: TableShapes,
    store: Store,
    /// Replays so far: each is a later file of the log.
    replays: u32,
}

/// Measures.
pub(super) fn run(
    server: &Server,
    size: Size,
    progress: &mut Progress,
) -> anyhow::Result<PartReport> {
    progress.step("changes: writing a log");
    let logs = [
        ("one row a transaction", single_rows(server, size)?),
        ("all in one transaction", bulk(server)?),
    ];
    progress.step("changes: holding a million results");
    let mut beds = SHAPES
        .map(Bed::new)
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut samples = vec![vec![Vec::new(); beds.len()]; logs.len()];
    for round in 1..=size.rounds {
        progress.step(&format!("changes: round {round} of {}", size.rounds));
        for (log, samples) in logs.iter().zip(&mut samples) {
            for (bed, samples) in beds.iter_mut().zip(samples) {
                let used = bed.replay(&log.1)?;
                #[allow(clippy::cast_precision_loss)]
                samples.push(used.as_secs_f64() * 1e6 / log.1.rows as f64);
            }
        }
    }
    let kept = beds.iter().map(Bed::servable).collect::<Vec<_>>();
    report(&logs.map(|(name, _)| name), &samples, &kept)
}

fn report(logs: &[&str], samples: &[Vec<Vec<f64>>], kept: &[usize]) -> anyhow::Result<PartReport> {
    let mut table = Table::new(&["log", "shapes", "µs per row", "of no shapes"]);
    let (mut marks, mut figures) = (Vec::new(), Vec::new());
    for (log, samples) in logs.iter().zip(samples) {
        let medians: Vec<f64> = samples.iter().map(|samples| median(samples)).collect();
        let none = medians.first().copied().unwrap_or_default();
        for (shapes, &row_us) in SHAPES.iter().zip(&medians) {
            table.row([
                (*log).to_owned(),
                shapes.to_string(),
                format!("{row_us:.2}"),
                format!("{:.2}", row_us / none),
            ]);
            figures.push(json!({"log": log, "shapes": shapes, "row_us": row_us}));
            if *shapes > 1 {
                let what = format!("changed row, {shapes} shapes, {log}");
                marks.push(Mark::at_most(what, ROW_US_MAX, row_us, "µs"));
            }
        }
    }
    let [none, one, many] = kept else {
        bail!("not as many arms as were measured");
    };
    // The proof that the touches were made, and no more of them than need be.
    if *none != 0 || *one == 0 || many > one {
        bail!("of the results {none}, {one} and {many} are left with no, 1 and 16 shapes");
    }
    let left = |kept: &usize| {
        #[allow(clippy::cast_precision_loss)]
        grouped(*kept as f64)
    };
    Ok(PartReport {
        title: format!(
            "replaying a server's log of row updates in memory; follower's processor time, 1,000,000 results held. \
             Afterwards {} of them may still be served without shapes, {} with one, {} with 16.",
            left(none),
            left(one),
            left(many)
        ),
        table,
        marks,
        figures: json!({"arms": figures, "held": HELD, "servable_after": kept}),
    })
}

/// `SELECT`s of 16 kinds that all read the column that changes.
fn all_shapes(table: TableTags) -> Vec<Shape<Codec>> {
    let codec = Codec::Integer {
        bytes: 4,
        unsigned: false,
    };
    let column = |ordinal| ShapeColumn { ordinal, codec };
    let mut reads = ColumnSet::EMPTY;
    reads.insert(C);
    let mut shapes = vec![
        Shape::equal(table, &[column(ID)], reads),
        Shape::equal(table, &[column(K)], reads),
        Shape::equal(table, &[column(ID), column(K)], reads),
        Shape::equal(table, &[], reads),
    ];
    for ordinal in [ID, K] {
        let levels = INTERVAL_LEVELS.into_iter().take(6);
        shapes.extend(levels.map(|level| Shape::interval(table, column(ordinal), level, reads)));
    }
    shapes
}

impl Bed {
    fn new(shapes: usize) -> anyhow::Result<Bed> {
        let timeline = Arc::new(Timeline::new(
            TimelineLimits {
                tag_slots: TAG_SLOTS,
                fence_slots: FENCE_SLOTS,
                lag_ms_max: 1_000,
            },
            BrokenRules::default(),
        ));
        timeline.restart(Position::new(1, 1).context("a position")?);
        timeline.prove(timeline.epoch(), 1);
        let limits = ShapesLimits {
            // From half of them on they would be made coarser.
            table_shapes_max: 2 * shapes,
            tables_max: 1,
        };
        let bed = Bed {
            shapes: TableShapes::new(Arc::clone(&timeline), limits),
            timeline,
            store: Store::new(StoreLimits {
                memory_bytes_max: 4 << 30,
                result_bytes_max: 1 << 20,
                shards: 64,
            }),
            replays: 0,
        };
        bed.fill(shapes)?;
        Ok(bed)
    }

    /// Registers the shapes and stores the results, with the first of them.
    fn fill(&self, shapes: usize) -> anyhow::Result<()> {
        let table = TableTags::new(BENCH_SCHEMA, "sbtest1");
        let as_of = self.as_of()?;
        let wanted = all_shapes(table);
        let mut first = None;
        for shape in wanted.iter().take(shapes) {
            let found = self.shapes.find(table, shape, as_of);
            let found = found.map_err(|why| anyhow::anyhow!("a shape was refused: {why:?}"))?;
            first.get_or_insert(found);
        }
        let response = [b'x'; 195];
        for id in 1..=HELD {
            let tags = match &first {
                Some(shape) => vec![
                    table.whole(),
                    table.column(ID),
                    shape.tag(table, &[Value::Integer(id.into()).hash()]),
                ],
                None => vec![table.any()],
            };
            let stored = self.store.insert(&NewEntry {
                key: KeyRef {
                    scope: SCOPE,
                    text: text(id).as_bytes(),
                },
                tags: &tags,
                as_of,
                response: &response,
                label: 0,
                epoch: self.store.epoch(),
                expires_at_ms: None,
            });
            stored.map_err(|why| anyhow::anyhow!("a result wasn't stored: {why:?}"))?;
        }
        Ok(())
    }

    fn as_of(&self) -> anyhow::Result<AsOf> {
        self.timeline.as_of().context("the timeline isn't live")
    }

    /// What the follower does with each event; gives the processor time.
    fn replay(&mut self, log: &Log) -> anyhow::Result<Duration> {
        self.replays += 1;
        let file = self.replays + 1;
        let mut decoder =
            StreamDecoder::new(format!("binlog.{file:06}"), 4, DecoderLimits::default());
        let mut transactions = Transactions::new(1_024);
        let mut tags = ChangeTags::new(TAGS_MAX, BrokenTags::Right);
        let before = own_thread_cpu_time();
        for event in &log.events {
            let offset_before = decoder.offset();
            let decoded = decoder.decode(&log.bytes[event.clone()])?;
            tags.take(&decoded.event, &self.shapes);
            let commits = transactions.apply(&decoded, offset_before, meaning);
            for commit in commits.into_iter().flatten() {
                self.apply(&commit, &mut tags, file)?;
            }
        }
        Ok(own_thread_cpu_time().saturating_sub(before))
    }

    fn apply(&self, commit: &Commit, tags: &mut ChangeTags, file: u32) -> anyhow::Result<()> {
        let at = Position::new(file.into(), commit.end_offset).context("a position")?;
        self.timeline.begin_commit(at);
        match &commit.touched {
            Touched::Tables(tables) => {
                let named = tables.iter().map(|table| {
                    let tags = TableTags::new(&table.schema, &table.table);
                    (tags, Telling::Rows)
                });
                tags.touch(&self.timeline, &self.shapes, at, named);
            }
            Touched::Everything => bail!("a commit in the log is of everything"),
        }
        if !commit.touched.is_nothing() {
            tags.clear();
        }
        self.timeline.set_applied(at);
        Ok(())
    }

    /// How many of the results may still be served.
    fn servable(&self) -> usize {
        let is_servable = |id: &i64| {
            let text = text(*id);
            let key = KeyRef {
                scope: SCOPE,
                text: text.as_bytes(),
            };
            let check = self.store.with(&key, key.digest(), |entry| {
                self.timeline
                    .check_tags(entry.as_of(), entry.tags(), 1)
                    .is_ok()
            });
            check == Some(true)
        };
        (1..=HELD).filter(is_servable).count()
    }
}

fn text(id: i64) -> String {
    format!("SELECT c FROM sbtest1 WHERE id={id}")
}

/// A log of sysbench's updates of `c`.
fn single_rows(server: &Server, size: Size) -> anyhow::Result<Log> {
    let mut sysbench = Sysbench::new("oltp_update_non_index", server.address(), BENCH_SCHEMA);
    sysbench.rows = size.rows();
    sysbench.threads = 4;
    sysbench.further = vec!["--rand-type=uniform".to_owned()];
    server.execute(["FLUSH BINARY LOGS"])?;
    sysbench.run(Length::Events(TRANSACTIONS))?;
    Log::of_last_file(server, TRANSACTIONS)
}

/// A log of one statement that changes many rows.
fn bulk(server: &Server) -> anyhow::Result<Log> {
    server.execute([
        "FLUSH BINARY LOGS".to_owned(),
        format!(
            "UPDATE {BENCH_SCHEMA}.sbtest1 SET c = REVERSE(c) WHERE id <= {}",
            BULK_ROWS.min(arms::ROWS.into())
        ),
    ])?;
    Log::of_last_file(server, BULK_ROWS)
}

impl Log {
    /// The file that the server writes now.
    fn of_last_file(server: &Server, rows: u64) -> anyhow::Result<Log> {
        let position = server.position()?;
        let (file, _) = position.split_once(':').context("a position")?;
        let directory = server.root()?.query_value("SELECT @@datadir")?;
        let path = PathBuf::from(directory.context("no data directory")?).join(file);
        let bytes =
            std::fs::read(&path).with_context(|| format!("can't read {}", path.display()))?;
        let mut events = Vec::new();
        let mut at = FIRST_EVENT;
        while let Some(header) = bytes.get(at..at + LENGTH.end) {
            let length = header.get(LENGTH).and_then(|field| field.try_into().ok());
            let length = length.map_or(0, u32::from_le_bytes) as usize;
            if length == 0 || at + length > bytes.len() {
                break;
            }
            events.push(at..at + length);
            at += length;
        }
        Ok(Log {
            bytes,
            events,
            rows,
        })
    }
}
