//! Judges what transactions have seen and done, in the manner of Elle.
//!
//! Each key holds a list, and a write appends an element that nobody else appends. So a list that
//! was read tells which writes it shows, and in which order they were made. Source: Kingsbury and
//! Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", 2020.
//!
//! **What is allowed** is what InnoDB's `REPEATABLE READ` promises on one server:
//!
//! - Reads of keys to which the transaction hasn't appended show the state at one moment, that of
//!   its *snapshot*.
//! - An append works on the newest list, which others may have lengthened since the snapshot, and
//!   locks it. What the transaction reads there from then on is that list.
//! - All appends of a transaction become visible at one moment, that of its *commit*.
//!
//! So a transaction isn't one moment but two, and lost updates and write skew are allowed. All
//! moments together must have an order. Each thing that was seen, or not seen, says which of two
//! moments was first; so does the time, as each moment lies between a question and its answer. If
//! these contradict each other there is a cycle (`graph.rs`), with the name that Adya gave it.
//!
//! This is a pure function of what was recorded: [`check`].

mod graph;
mod lists;
#[cfg(test)]
mod tests;

use std::fmt::Display;

/// Which list.
pub type Key = usize;
/// What is appended: only once, and to one list.
pub type Element = u64;

/// What a transaction did, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It read a whole list.
    Read(Key, Vec<Element>),
    /// It appended to a list.
    Append(Key, Element),
}

/// Something happened between these two moments, in nanoseconds of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When the question was sent.
    pub sent_ns: u64,
    /// When its answer was there.
    pub answered_ns: u64,
}

/// A transaction that has ended.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Who ran it, and how; for findings.
    pub client: String,
    /// What it did.
    pub steps: Vec<Step>,
    /// When its snapshot was made; `None`: it read nothing.
    pub snapshot: Option<Span>,
    /// When it was committed; `None`: it was rolled back.
    pub commit: Option<Span>,
}

/// What can be wrong with a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An element that nobody appended to this list was read.
    NeverWritten,
    /// G1a: an element of a transaction that was rolled back was read.
    AbortedRead,
    /// G1b: a list was read between two appends of one transaction.
    IntermediateRead,
    /// An element stands in a list twice.
    Twice,
    /// Of two lists that were read of one key, none continues the other.
    IncompatibleOrder,
    /// A transaction read a list twice and it differed, though it had not appended to it.
    UnrepeatableRead,
    /// A transaction didn't see what it had itself appended.
    OwnAppendMissing,
    /// G0: appends of two transactions stand in different orders in different lists.
    DirtyWrite,
    /// G1c: what transactions have seen of each other goes round in a circle.
    CircularFlow,
    /// G-single: a transaction saw one effect and missed another that was there before.
    ReadSkew,
    /// Transactions saw effects in different orders.
    LongFork,
    /// What was seen can be ordered, but not in the order of time.
    RealTime,
}

/// Something that is wrong with a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// What.
    pub kind: Kind,
    /// The same in words, with the transactions.
    pub words: String,
}

impl Display for Anomaly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.words)
    }
}

/// All that is wrong with a history; of contradictions between moments only the first.
pub fn check(history: &[Transaction]) -> Vec<Anomaly> {
    let (lists, mut anomalies) = lists::Lists::of(history);
    anomalies.extend(graph::contradiction(history, &lists));
    anomalies
}

/// A transaction's number and all that it did.
fn describe(history: &[Transaction], number: usize) -> String {
    let transaction = &history[number];
    let steps = transaction.steps.iter().map(|step| match step {
        Step::Read(key, list) => format!("read {key}: {list:?}"),
        Step::Append(key, element) => format!("append to {key}: {element}"),
    });
    let end = match transaction.commit {
        Some(span) => format!("committed {span}"),
        None => "rolled back".to_owned(),
    };
    let snapshot = match transaction.snapshot {
        Some(span) => format!("snapshot made {span}"),
        None => "no snapshot".to_owned(),
    };
    let steps = steps.collect::<Vec<_>>().join("; ");
    format!(
        "T{number} ({}): {snapshot}; {steps}; {end}",
        transaction.client
    )
}

impl Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sent, answered) = (self.sent_ns / 1_000, self.answered_ns / 1_000);
        write!(f, "between {sent} and {answered} us")
    }
}
