//! Collecting rows up to the limits.

use super::Wanted;
use crate::shared::Shared;

/// A field for each column; `None` is NULL.
pub(crate) type Row = Vec<Option<String>>;

/// Rows, and whether there would have been more than are ever shown.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) rows: Vec<Row>,
    pub(super) is_cut: bool,
}

/// Rows in the order of a key; of too many, the first.
#[derive(Debug)]
pub(super) struct Sorted<K> {
    rows: Vec<(K, Row)>,
    /// The most that are shown, whatever is asked.
    rows_max: usize,
    /// The most that are asked for.
    limit: usize,
    is_cut: bool,
}

impl<K: Ord> Sorted<K> {
    pub(super) fn new(shared: &Shared, wanted: &Wanted<'_>) -> Sorted<K> {
        Sorted::up_to(shared.emulation.rows_max, wanted.limit())
    }

    fn up_to(rows_max: usize, limit: usize) -> Sorted<K> {
        Sorted {
            rows: Vec::new(),
            rows_max,
            limit,
            is_cut: false,
        }
    }

    pub(super) fn push(&mut self, key: K, row: Row) {
        self.rows.push((key, row));
        // Seldom enough that a row costs next to nothing, and never many more than are shown.
        if self.rows.len() > 2 * self.rows_max {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rows.sort_by(|one, other| one.0.cmp(&other.0));
        self.is_cut |= self.rows.len() > self.rows_max && self.limit > self.rows_max;
        self.rows.truncate(self.rows_max.min(self.limit));
    }

    pub(super) fn finish(mut self) -> Listed {
        self.cut();
        Listed {
            rows: self.rows.into_iter().map(|(_, row)| row).collect(),
            is_cut: self.is_cut,
        }
    }
}

/// Rows as they come; of too many, the first that came.
#[derive(Debug)]
pub(super) struct FirstCome {
    rows: Vec<Row>,
    rows_max: usize,
    limit: usize,
    is_cut: bool,
}

impl FirstCome {
    pub(super) fn new(shared: &Shared, wanted: &Wanted<'_>) -> FirstCome {
        FirstCome {
            rows: Vec::new(),
            rows_max: shared.emulation.rows_max,
            limit: wanted.limit(),
            is_cut: false,
        }
    }

    pub(super) fn push(&mut self, row: Row) {
        if self.is_full() {
            return;
        }
        if self.rows.len() == self.rows_max {
            self.is_cut = true;
            return;
        }
        self.rows.push(row);
    }

    /// Whether nothing more is wanted.
    pub(super) fn is_full(&self) -> bool {
        self.is_cut || self.rows.len() >= self.limit
    }

    pub(super) fn finish(self) -> Listed {
        Listed {
            rows: self.rows,
            is_cut: self.is_cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(keys: impl IntoIterator<Item = u32>, rows_max: usize, limit: usize) -> Listed {
        let mut sorted = Sorted::up_to(rows_max, limit);
        for key in keys {
            sorted.push(key, vec![Some(key.to_string())]);
        }
        sorted.finish()
    }

    #[test]
    fn the_first_by_key_stay_and_a_cut_is_told() {
        let keys = (0..100).map(|at| at * 37 % 101);
        let listed = sorted(keys.clone(), 3, usize::MAX);
        let rows: Vec<_> = listed
            .rows
            .iter()
            .map(|row| row[0].clone().unwrap())
            .collect();
        assert_eq!(
            (&rows[..], listed.is_cut),
            (&["0".to_owned(), "1".into(), "2".into()][..], true)
        );
        let listed = sorted(keys.clone(), 100, usize::MAX);
        assert_eq!((listed.rows.len(), listed.is_cut), (100, false));
        // What the client doesn't want isn't missing.
        let listed = sorted(keys, 3, 2);
        assert_eq!((listed.rows.len(), listed.is_cut), (2, false));
    }
}
