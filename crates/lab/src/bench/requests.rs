//! The statements of sysbench's `oltp_read_write`, and what a perfect cache would answer of them
//! from memory.

use std::collections::HashMap;

use remora_testkit::load::random::Random;

/// Rows of a range.
const RANGE: usize = 100;
/// sysbench's counts of a transaction.
const POINT_SELECTS: usize = 10;

/// The columns that a statement reads or changes, besides `id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// `k`.
    K,
    /// `c`.
    C,
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Reads a column of the rows from the first to the last.
    Read(Column, usize, usize),
    /// Changes a column of a row.
    Update(Column, usize),
    /// Deletes or inserts a row.
    Existence(usize),
}

/// A statement and its meaning.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// As it is sent.
    pub(super) text: String,
    /// What it does.
    pub(super) action: Action,
}

/// One transaction's statements, as with `--skip-trx=on`, with keys from 1 to `keys` with equal
/// chances.
pub(super) fn transaction(random: &mut Random, keys: usize) -> Vec<Request> {
    let mut requests = Vec::new();
    let key = |random: &mut Random| 1 + random.below(keys);
    for _ in 0..POINT_SELECTS {
        let id = key(random);
        let text = format!("SELECT c FROM sbtest1 WHERE id={id}");
        requests.push((text, Action::Read(Column::C, id, id)));
    }
    for (list, column, end) in [
        ("c", Column::C, ""),
        ("SUM(k)", Column::K, ""),
        ("c", Column::C, " ORDER BY c"),
        ("DISTINCT c", Column::C, " ORDER BY c"),
    ] {
        let first = key(random);
        let last = first + RANGE - 1;
        let text = format!("SELECT {list} FROM sbtest1 WHERE id BETWEEN {first} AND {last}{end}");
        requests.push((text, Action::Read(column, first, last)));
    }
    let id = key(random);
    let text = format!("UPDATE sbtest1 SET k=k+1 WHERE id={id}");
    requests.push((text, Action::Update(Column::K, id)));
    let id = key(random);
    let text = format!(
        "UPDATE sbtest1 SET c='{}' WHERE id={id}",
        digits(random, 10)
    );
    requests.push((text, Action::Update(Column::C, id)));
    let id = key(random);
    let text = format!("DELETE FROM sbtest1 WHERE id={id}");
    requests.push((text, Action::Existence(id)));
    let text = format!(
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES ({id}, {}, '{}', '{}')",
        key(random),
        digits(random, 10),
        digits(random, 5)
    );
    requests.push((text, Action::Existence(id)));
    let requests = requests.into_iter();
    requests
        .map(|(text, action)| Request { text, action })
        .collect()
}

/// Groups of eleven digits, as sysbench fills its text columns.
fn digits(random: &mut Random, groups: usize) -> String {
    let groups = (0..groups).map(|_| format!("{:011}", random.below(100_000_000_000)));
    groups.collect::<Vec<_>>().join("-")
}

/// Knows of each request whether an earlier answer still holds: whether the same text was answered
/// before, and nothing that it reads has been written since.
#[derive(Debug)]
pub(super) struct Oracle {
    /// When each text was last answered.
    answered_at: HashMap<String, u64>,
    /// When each row's `k`, and its `c`, was last written. An insertion and a deletion write both.
    written_at: [Vec<u64>; 2],
    now: u64,
    /// Reads so far.
    pub(super) reads: u64,
    /// Those of them that an earlier answer would have answered.
    pub(super) hits: u64,
}

impl Oracle {
    /// For keys from 1 to `keys`.
    pub(super) fn new(keys: usize) -> Oracle {
        let never = || vec![0; keys + RANGE + 1];
        Oracle {
            answered_at: HashMap::new(),
            written_at: [never(), never()],
            now: 0,
            reads: 0,
            hits: 0,
        }
    }

    /// The next request, of one client that waits for each answer.
    pub(super) fn take(&mut self, request: &Request) {
        self.now += 1;
        match request.action {
            Action::Read(column, first, last) => {
                self.reads += 1;
                let written = &self.written_at[column as usize][first..=last];
                let written_at = written.iter().copied().max().unwrap_or_default();
                match self.answered_at.get_mut(&request.text) {
                    Some(answered_at) => {
                        self.hits += u64::from(*answered_at > written_at);
                        *answered_at = self.now;
                    }
                    None => {
                        self.answered_at.insert(request.text.clone(), self.now);
                    }
                }
            }
            Action::Update(column, id) => self.written_at[column as usize][id] = self.now,
            Action::Existence(id) => {
                for column in &mut self.written_at {
                    column[id] = self.now;
                }
            }
        }
    }

    /// The share of reads that it would have answered.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn ratio(&self) -> f64 {
        self.hits as f64 / self.reads.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(column: Column, first: usize, last: usize) -> Request {
        Request {
            text: format!("{column:?} {first} {last}"),
            action: Action::Read(column, first, last),
        }
    }

    fn change(action: Action) -> Request {
        let text = String::new();
        Request { text, action }
    }

    #[test]
    fn an_answer_holds_until_what_it_reads_is_written() {
        let mut oracle = Oracle::new(10);
        let mut is_hit = |request: &Request| {
            let before = oracle.hits;
            oracle.take(request);
            oracle.hits > before
        };
        let (row, range) = (read(Column::C, 5, 5), read(Column::K, 1, 4));
        assert!(!is_hit(&row) && !is_hit(&range));
        assert!(is_hit(&row) && is_hit(&range));
        is_hit(&change(Action::Update(Column::K, 5)));
        is_hit(&change(Action::Update(Column::C, 4)));
        assert!(is_hit(&row) && is_hit(&range));
        is_hit(&change(Action::Update(Column::C, 5)));
        is_hit(&change(Action::Existence(4)));
        assert!(!is_hit(&row) && !is_hit(&range));
        assert!(is_hit(&row) && is_hit(&range));
    }

    #[test]
    fn a_transaction_is_that_of_sysbench() {
        let requests = transaction(&mut Random::new(1), 1_000);
        let reads = |r: &&Request| matches!(r.action, Action::Read(..));
        assert_eq!(requests.len(), 18);
        assert_eq!(requests.iter().filter(reads).count(), 14);
    }
}
