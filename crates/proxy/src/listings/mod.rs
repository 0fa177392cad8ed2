//! What `SHOW REMORA` lists. `docs/query-cache.md` has the columns; they only ever get more at the end.

mod reasons;

use remora_sql::Pattern;
use remora_wire::result_set::Column;

use crate::shared::Shared;

/// A listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Every outcome and reason, and how often it was counted.
    Reasons,
}

impl Listing {
    /// Every one.
    pub(crate) const ALL: [Listing; 1] = [Listing::Reasons];

    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Listing::Reasons => "REASONS",
        }
    }

    /// The one with this name, which is in capitals.
    pub(crate) fn named(name: &str) -> Option<Listing> {
        Listing::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Which rows are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'s> {
    /// By the column that the listing is about.
    pub(crate) pattern: Option<&'s Pattern>,
    /// How many at most.
    pub(crate) limit: Option<u64>,
}

impl Wanted<'_> {
    /// Whether a row about this is wanted.
    fn takes(&self, name: &str) -> bool {
        self.pattern.is_none_or(|pattern| pattern.matches(name))
    }
}

/// Columns, and rows with a field for each; `None` is NULL.
#[derive(Debug)]
pub(crate) struct Table {
    /// The columns.
    pub(crate) columns: Vec<Column>,
    /// The rows.
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

/// Lists what is wanted.
pub(crate) async fn list(shared: &Shared, listing: Listing, wanted: &Wanted<'_>) -> Table {
    let mut table = match listing {
        Listing::Reasons => reasons::list(shared, wanted),
    };
    if let Some(limit) = wanted.limit {
        table
            .rows
            .truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    table
}
