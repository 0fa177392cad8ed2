//! The order of moments: the snapshot and the commit of each transaction.
//!
//! An edge says that a moment was before another. If the edges go round in a circle, what was seen
//! can't have been so.

use std::collections::VecDeque;

use super::lists::{Lists, SnapshotRead};
use super::{Anomaly, Key, Kind, Span, Transaction, describe};

/// Why one moment was before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// A commit's append stands before the other's in this list: Adya's ww.
    Appended(Key),
    /// A snapshot shows the commit's append to this list: wr.
    Seen(Key),
    /// A snapshot doesn't show it: rw.
    Missed(Key),
    /// A transaction's snapshot was made before it was committed.
    Own,
    /// The one was answered before the other was sent.
    Time,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    why: Why,
}

/// Of a transaction's two moments.
fn snapshot(transaction: usize) -> usize {
    2 * transaction
}

fn commit(transaction: usize) -> usize {
    2 * transaction + 1
}

/// The moments, and behind them points in time.
#[derive(Debug)]
struct Graph {
    nodes: usize,
    /// By the node from which they go.
    edges: Vec<Vec<Edge>>,
}

/// A contradiction between what was seen, or between that and the time, if there is one. It is
/// looked for among few reasons first, so that it gets the name of the gravest.
pub(super) fn contradiction(history: &[Transaction], lists: &Lists) -> Option<Anomaly> {
    let graph = Graph::of(history, lists);
    let is_append = |why| matches!(why, Why::Appended(_));
    let is_flow = |why| !matches!(why, Why::Missed(_) | Why::Time);
    let is_logical = |why| why != Why::Time;
    let found = None
        .or_else(|| Some((Kind::DirtyWrite, graph.cycle(is_append)?)))
        .or_else(|| Some((Kind::CircularFlow, graph.cycle(is_flow)?)))
        .or_else(|| Some((Kind::ReadSkew, graph.cycle_with_one_miss()?)))
        .or_else(|| Some((Kind::LongFork, graph.cycle(is_logical)?)))
        .or_else(|| Some((Kind::RealTime, graph.cycle(|_| true)?)));
    found.map(|(kind, cycle)| Anomaly {
        kind,
        words: in_words(history, &cycle),
    })
}

impl Graph {
    fn of(history: &[Transaction], lists: &Lists) -> Graph {
        let moments = 2 * history.len();
        let mut graph = Graph {
            nodes: moments,
            edges: vec![Vec::new(); moments],
        };
        for key in lists.keys() {
            graph.add_appends(key, history, lists);
        }
        graph.add_reads(history, lists);
        for (number, transaction) in history.iter().enumerate() {
            if transaction.snapshot.is_some() && transaction.commit.is_some() {
                graph.add(snapshot(number), commit(number), Why::Own);
            }
        }
        graph.add_time(history);
        graph
    }

    fn add(&mut self, from: usize, to: usize, why: Why) {
        self.edges[from].push(Edge { from, to, why });
    }

    fn add_appends(&mut self, key: Key, history: &[Transaction], lists: &Lists) {
        let mut before = None;
        for author in lists.authors(key, history).flatten() {
            if let Some(before) = before.filter(|before| *before != author) {
                self.add(commit(before), commit(author), Why::Appended(key));
            }
            before = Some(author);
        }
    }

    fn add_reads(&mut self, history: &[Transaction], lists: &Lists) {
        let authors = |key| -> Vec<Option<usize>> { lists.authors(key, history).collect() };
        let authors: std::collections::HashMap<Key, _> =
            lists.keys().map(|key| (key, authors(key))).collect();
        for read in &lists.reads {
            let SnapshotRead {
                transaction,
                key,
                length,
            } = *read;
            let (seen, missed) = authors[&key].split_at(length);
            let others = |author: &usize| *author != transaction;
            if let Some(author) = seen.last().copied().flatten().filter(others) {
                self.add(commit(author), snapshot(transaction), Why::Seen(key));
            }
            // The appends that come later follow from the first. In which order those came that
            // nobody read isn't known.
            match missed.first() {
                Some(next) => self.add_miss(transaction, next.filter(others), key),
                None => {
                    for next in lists.unseen(key) {
                        self.add_miss(transaction, Some(*next).filter(others), key);
                    }
                }
            }
        }
    }

    fn add_miss(&mut self, reader: usize, author: Option<usize>, key: Key) {
        if let Some(author) = author {
            self.add(snapshot(reader), commit(author), Why::Missed(key));
        }
    }

    /// A moment lies before all that was sent after its answer. Points in time, each before the
    /// next, say so with few edges.
    fn add_time(&mut self, history: &[Transaction]) {
        let mut spans: Vec<(usize, Span)> = Vec::new();
        for (number, transaction) in history.iter().enumerate() {
            spans.extend(transaction.snapshot.map(|span| (snapshot(number), span)));
            spans.extend(transaction.commit.map(|span| (commit(number), span)));
        }
        let mut by_sent = spans.clone();
        spans.sort_by_key(|(_, span)| span.answered_ns);
        by_sent.sort_by_key(|(_, span)| span.sent_ns);
        let mut answered = spans.into_iter().peekable();
        let mut point = None;
        for (moment, span) in by_sent {
            let is_over = |(_, before): &(usize, Span)| before.answered_ns < span.sent_ns;
            while let Some((over, _)) = answered.next_if(is_over) {
                let next = self.nodes;
                self.nodes += 1;
                self.edges.push(Vec::new());
                if let Some(point) = point {
                    self.add(point, next, Why::Time);
                }
                self.add(over, next, Why::Time);
                point = Some(next);
            }
            if let Some(point) = point {
                self.add(point, moment, Why::Time);
            }
        }
    }

    /// A short cycle of edges that are allowed.
    fn cycle(&self, is_allowed: impl Fn(Why) -> bool) -> Option<Vec<Edge>> {
        /// From so many nodes the shortest is looked for.
        const TRIES: usize = 100;
        let suspects = self.suspects(&is_allowed);
        let nodes = (0..self.nodes).filter(|node| suspects[*node]).take(TRIES);
        let cycles = nodes.filter_map(|node| self.path(node, node, &is_allowed));
        // Those suspects may lie between two cycles, in none.
        let shortest = cycles.min_by_key(Vec::len);
        shortest.or_else(|| {
            let mut nodes = (0..self.nodes).filter(|node| suspects[*node]);
            nodes.find_map(|node| self.path(node, node, &is_allowed))
        })
    }

    /// The same without the time, and with one commit that was missed.
    fn cycle_with_one_miss(&self) -> Option<Vec<Edge>> {
        let suspects = self.suspects(|why| why != Why::Time);
        let is_flow = |why| !matches!(why, Why::Missed(_) | Why::Time);
        let misses = self.edges.iter().flatten().filter(|edge| {
            matches!(edge.why, Why::Missed(_)) && suspects[edge.from] && suspects[edge.to]
        });
        let close = |miss: &Edge| {
            let mut cycle = vec![*miss];
            cycle.extend(self.path(miss.to, miss.from, is_flow)?);
            Some(cycle)
        };
        misses.filter_map(close).min_by_key(Vec::len)
    }

    /// What is left of the nodes when those that end no edge are taken away, again and again: all
    /// that lie on cycles, and some behind them.
    fn suspects(&self, is_allowed: impl Fn(Why) -> bool) -> Vec<bool> {
        let allowed = |node: usize| self.edges[node].iter().filter(|edge| is_allowed(edge.why));
        let mut before = vec![0_usize; self.nodes];
        for edge in (0..self.nodes).flat_map(allowed) {
            before[edge.to] += 1;
        }
        let mut free: Vec<usize> = (0..self.nodes).filter(|node| before[*node] == 0).collect();
        while let Some(node) = free.pop() {
            for edge in allowed(node) {
                before[edge.to] -= 1;
                if before[edge.to] == 0 {
                    free.push(edge.to);
                }
            }
        }
        before.into_iter().map(|count| count > 0).collect()
    }

    /// The shortest way by one edge or more.
    fn path(&self, from: usize, to: usize, is_allowed: impl Fn(Why) -> bool) -> Option<Vec<Edge>> {
        let mut came_by: Vec<Option<Edge>> = vec![None; self.nodes];
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            for edge in self.edges[node].iter().filter(|edge| is_allowed(edge.why)) {
                if came_by[edge.to].is_none() {
                    came_by[edge.to] = Some(*edge);
                    next.push_back(edge.to);
                }
            }
            if came_by[to].is_some() {
                break;
            }
        }
        let mut path = vec![came_by[to]?];
        while path[path.len() - 1].from != from {
            path.push(came_by[path[path.len() - 1].from]?);
        }
        path.reverse();
        Some(path)
    }
}

fn in_words(history: &[Transaction], cycle: &[Edge]) -> String {
    let is_moment = |node: usize| node < 2 * history.len();
    let name = |node: usize| match node % 2 {
        _ if !is_moment(node) => "a point in time".to_owned(),
        0 => format!("T{}'s snapshot", node / 2),
        _ => format!("T{}'s commit", node / 2),
    };
    let edges = cycle.iter().map(|edge| {
        let why = match edge.why {
            Why::Appended(key) => format!("whose append to {key} comes behind it"),
            Why::Seen(key) => format!("which shows its append to {key}"),
            Why::Missed(key) => format!("whose append to {key} it lacks"),
            Why::Own => "of the same transaction".to_owned(),
            Why::Time => "sent after its answer".to_owned(),
        };
        format!("{} before {}, {why}", name(edge.from), name(edge.to))
    });
    let moments = cycle
        .iter()
        .map(|edge| edge.from)
        .filter(|node| is_moment(*node));
    let mut numbers: Vec<usize> = moments.map(|node| node / 2).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let transactions = numbers.into_iter().map(|number| describe(history, number));
    edges.chain(transactions).collect::<Vec<_>>().join("\n")
}
