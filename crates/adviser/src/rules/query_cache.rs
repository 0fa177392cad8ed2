//! The query cache of MariaDB, and of MySQL before 8.0.

use super::{Case, Found, percent};
use crate::report::{Finding, Setting, Unit};
use crate::rule::Unjudged;

/// With fewer hits and stored results nothing can be said.
const USES_MIN: f64 = 100.0;
/// Each stored result should be asked for again so often.
const HITS_PER_INSERT_MIN: f64 = 1.0;
/// This share of the stored results may be thrown out for lack of memory, percent.
const PRUNED_PERCENT_MAX: f64 = 50.0;
/// Beyond this share of free blocks the memory is in pieces, percent.
const FRAGMENTED_PERCENT_MAX: f64 = 30.0;

pub(super) fn query_cache_costs(case: &mut Case<'_>) -> Found {
    let variables = &case.reading.variables;
    let is_off = variables
        .text("query_cache_type")
        .is_none_or(|kind| kind == "OFF" || kind == "0");
    if is_off || variables.number("query_cache_size") == Some(0.0) {
        return Err(Unjudged::NotUsed);
    }
    let hits = case.growth("Qcache_hits")?;
    let inserts = case.growth("Qcache_inserts")?;
    let prunes = case.growth("Qcache_lowmem_prunes")?;
    case.note("hits", hits, Unit::Number);
    case.note("results stored", inserts, Unit::Number);
    case.note("thrown out for lack of memory", prunes, Unit::Number);
    if hits + inserts < USES_MIN {
        return Err(Unjudged::TooLittle);
    }
    let free = case.reading.status("Qcache_free_blocks");
    let blocks = case.reading.status("Qcache_total_blocks");
    let pieces = match (free, blocks) {
        (Some(free), Some(blocks)) => percent(free, blocks),
        _ => return Err(Unjudged::NotReported),
    };
    case.note("free blocks", pieces, Unit::Percent);
    let meaning = if hits < HITS_PER_INSERT_MIN * inserts {
        "Most results are stored and never asked for again."
    } else if percent(prunes, inserts) > PRUNED_PERCENT_MAX && pieces > FRAGMENTED_PERCENT_MAX {
        "Its memory is in pieces, so results are thrown out to make room for others."
    } else {
        return Ok(None);
    };
    let now = variables.text("query_cache_type").unwrap_or("ON");
    Ok(Some(Finding {
        meaning: format!(
            "{meaning} Reads take its one lock, and a change drops all results of the table."
        ),
        remedy: "Switch it off; open connections keep it until they reconnect. Remora keeps \
                 results without that lock, and drops only those that a change can have touched."
            .to_owned(),
        settings: vec![
            Setting {
                name: "query_cache_type",
                now: now.to_owned(),
                suggested: "OFF".to_owned(),
                unit: Unit::Number,
                is_dynamic: true,
            },
            case.set_bytes("query_cache_size", 0.0, true),
        ],
    }))
}
