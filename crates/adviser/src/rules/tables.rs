//! The caches of open tables and of their definitions.

use super::{Case, Found, percent};
use crate::report::Finding;

/// So many may be opened in a second.
const OPENED_PER_S_MAX: f64 = 1.0;
/// A cache that is full to less than this isn't too small, percent.
const FULL_PERCENT_MIN: f64 = 90.0;

pub(super) fn table_cache_small(case: &mut Case<'_>) -> Found {
    // Tables that were closed to make room. The cache has parts, and one may be full alone.
    let closed = case.rate("Table_open_cache_overflows")?;
    case.rate("Opened_tables")?;
    case.status("Open_tables")?;
    let most = case.variable("table_open_cache")?;
    if closed < OPENED_PER_S_MAX {
        return Ok(None);
    }
    Ok(Some(Finding {
        meaning: "The cache is full. Tables are closed to open others, and statements wait for \
                  that."
            .to_owned(),
        remedy: "Make it as large as the statements that run at once, times the tables in each. \
                 Open tables take open files: check open_files_limit. Raising that takes a restart."
            .to_owned(),
        settings: vec![case.set("table_open_cache", 2.0 * most, true)],
    }))
}

pub(super) fn definition_cache_small(case: &mut Case<'_>) -> Found {
    let opened = case.rate("Opened_table_definitions")?;
    let open = case.status("Open_table_definitions")?;
    let most = case.variable("table_definition_cache")?;
    if opened < OPENED_PER_S_MAX || percent(open, most) < FULL_PERCENT_MIN {
        return Ok(None);
    }
    Ok(Some(Finding {
        meaning: "The cache is full. Definitions are read from disk again and again.".to_owned(),
        remedy: "Give it room for all tables that are in use.".to_owned(),
        settings: vec![case.set("table_definition_cache", 2.0 * most, true)],
    }))
}
