//! What a search has counted, by shape.

use std::collections::BTreeMap;
use std::fmt;

use crate::table::{Table, grouped};

/// Counts of one shape.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Queries.
    pub questions: u64,
    /// Those of them whose results were in memory before any change.
    pub held: u64,
    /// Pairs of a query and a change.
    pub pairs: u64,
    /// Pairs in which the server's answer was another one afterwards.
    pub changed: u64,
    /// Pairs in which the result was in memory before, and was asked for only when the change had
    /// been read from the log.
    pub measured: u64,
    /// Those of them in which memory didn't answer any more.
    pub dropped: u64,
    /// Those of them in which the server's answer had changed.
    pub dropped_rightly: u64,
    /// Questions right after a write through Remora.
    pub at_once: u64,
    /// Those of them that memory answered.
    pub at_once_hits: u64,
    /// Rows in another order, which the server may give as it likes.
    pub order: u64,
    /// Other flags or another count of warnings.
    pub ends: u64,
    /// Those of them that came from memory.
    pub ends_from_memory: u64,
    /// Comparisons given up because the server itself answers now so, now otherwise.
    pub unstable: u64,
}

/// Counts by shape.
#[derive(Debug, Default, Clone)]
pub struct Tallies(BTreeMap<String, Tally>);

impl Tally {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Tally) {
        self.questions += other.questions;
        self.held += other.held;
        self.pairs += other.pairs;
        self.changed += other.changed;
        self.measured += other.measured;
        self.dropped += other.dropped;
        self.dropped_rightly += other.dropped_rightly;
        self.at_once += other.at_once;
        self.at_once_hits += other.at_once_hits;
        self.order += other.order;
        self.ends += other.ends;
        self.ends_from_memory += other.ends_from_memory;
        self.unstable += other.unstable;
    }

    /// Dropped results that had really changed, percent.
    pub fn precision(&self) -> f64 {
        share(self.dropped_rightly, self.dropped)
    }
}

impl Tallies {
    /// The counts of a shape.
    pub(super) fn of(&mut self, shape: &str) -> &mut Tally {
        self.0.entry(shape.to_owned()).or_default()
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Tallies) {
        for (shape, tally) in &other.0 {
            self.of(shape).add(tally);
        }
    }

    /// Over all shapes.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.0.values().for_each(|one| total.add(one));
        total
    }
}

#[allow(clippy::cast_precision_loss)]
fn share(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        part as f64 * 100.0 / of as f64
    }
}

const HEADS: [&str; 12] = [
    "shape",
    "queries",
    "held",
    "pairs",
    "changed",
    "measured",
    "survived",
    "dropped",
    "rightly",
    "precision",
    "at once",
    "hits",
];

impl fmt::Display for Tallies {
    /// A table, and below it what its columns mean.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[allow(clippy::cast_precision_loss)]
        let number = |value: u64| grouped(value as f64);
        let mut table = Table::new(&HEADS);
        let total = self.total();
        let all = self.0.iter().map(|(shape, tally)| (shape.as_str(), tally));
        for (shape, tally) in all.chain([("all", &total)]) {
            table.row([
                shape.to_owned(),
                number(tally.questions),
                number(tally.held),
                number(tally.pairs),
                number(tally.changed),
                number(tally.measured),
                number(tally.measured - tally.dropped),
                number(tally.dropped),
                number(tally.dropped_rightly),
                format!("{:.1} %", tally.precision()),
                number(tally.at_once),
                number(tally.at_once_hits),
            ]);
        }
        writeln!(f, "{table}")?;
        writeln!(
            f,
            "measured: held before, asked when the change had been read from the log; survived or dropped then; rightly: the answer \
             had changed;\nprecision: rightly of dropped; at once: asked right after a write through Remora, half of them with the log held back, and hits of these."
        )?;
        writeln!(
            f,
            "besides: {} times rows in another order, {} other flags or warnings ({} from memory), {} given up as the server itself is undecided",
            total.order, total.ends, total.ends_from_memory, total.unstable
        )
    }
}
