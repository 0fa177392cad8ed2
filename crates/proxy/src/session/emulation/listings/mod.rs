//! What `SHOW REMORA` lists. `docs/query-cache.md` has the columns; they only ever get more at the
//! end.
//!
//! A listing is made on the worker of the session that asks, in steps between which the worker's
//! other sessions have their turn. It takes no lock that a hit waits for.
//!
//! | file | what it lists |
//! |---|---|
//! | `entries` | the results in memory |
//! | `digests` | what was counted of each digest |
//! | `tables` | the tables whose definitions are known |
//! | `sessions` | the sessions |
//! | `reasons` | outcomes and reasons |
//! | `rows` | collecting rows up to the limits |

mod digests;
mod entries;
mod reasons;
mod rows;
mod sessions;
mod tables;

use remora_engine::reason::Limit;
use remora_sql::Pattern;
use remora_wire::result_set::Column;

use self::rows::Row;
use crate::shared::Shared;

/// What `SHOW REMORA` can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// The results in memory.
    Entries,
    /// What was counted of each digest.
    Digests,
    /// The tables whose definitions are known.
    Tables,
    /// The sessions.
    Sessions,
    /// Every outcome and reason, and how often it was counted.
    Reasons,
}

impl Listing {
    /// Every one.
    pub(crate) const ALL: [Listing; 5] = [
        Listing::Entries,
        Listing::Digests,
        Listing::Tables,
        Listing::Sessions,
        Listing::Reasons,
    ];

    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Listing::Entries => "ENTRIES",
            Listing::Digests => "DIGESTS",
            Listing::Tables => "TABLES",
            Listing::Sessions => "SESSIONS",
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

    /// How many rows at most.
    fn limit(&self) -> usize {
        self.limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(usize::MAX)
    }
}

/// Columns, and rows with a field for each; `None` is NULL.
#[derive(Debug)]
pub(crate) struct Table {
    /// The columns.
    pub(crate) columns: Vec<Column>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
}

/// Lists what is wanted, at most `query_cache.rows_max` rows.
pub(crate) async fn list(shared: &Shared, listing: Listing, wanted: &Wanted<'_>) -> Table {
    let listed = match listing {
        Listing::Entries => entries::list(shared, wanted).await,
        Listing::Digests => digests::list(shared, wanted).await,
        Listing::Tables => tables::list(shared, wanted).await,
        Listing::Sessions => sessions::list(shared, wanted),
        Listing::Reasons => reasons::list(shared, wanted),
    };
    if listed.is_cut {
        shared.metrics.rare.count_limit(Limit::ShownRows);
    }
    let columns = match listing {
        Listing::Entries => entries::columns(),
        Listing::Digests => digests::columns(),
        Listing::Tables => tables::columns(),
        Listing::Sessions => sessions::columns(),
        Listing::Reasons => reasons::columns(),
    };
    Table {
        columns,
        rows: listed.rows,
    }
}

/// Text for a field, no longer than is shown.
fn shortened(text: &str) -> String {
    /// The longest text in a field, characters.
    const CHARS_MAX: usize = 1_024;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { "YES" } else { "NO" }.to_owned()
}
