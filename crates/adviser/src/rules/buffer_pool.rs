//! InnoDB's buffer pool: what isn't in it, and how it is flushed.

use super::{Case, Found, median, percent};
use crate::report::{Finding, Unit};
use crate::rule::Unjudged;

/// So many pages may be read from disk in a second, whatever the share: disks do that easily.
const READS_PER_S_MIN: f64 = 50.0;
/// So many are many, whatever the share.
const READS_PER_S_MAX: f64 = 1_000.0;
/// This share of the pages that statements want may be read from disk, percent.
const MISS_PERCENT_MAX: f64 = 1.0;
/// A pool with more free pages than this isn't too small: it is still filling, percent.
const FREE_PERCENT_MAX: f64 = 10.0;
/// So often in a second a statement may wait for a free page.
const WAITS_PER_S_MAX: f64 = 1.0;
/// A pool whose dirty pages reach this share of what is allowed has too many, percent.
const DIRTY_PERCENT_MAX: f64 = 90.0;
/// InnoDB flushes as fast as it may at this share of `innodb_io_capacity`, percent.
const FLUSHED_PERCENT_MIN: f64 = 90.0;
/// A fall of the dirty pages by less than this counts as none, percent.
const VARIATION_PERCENT: f64 = 5.0;

pub(super) fn buffer_pool_small(case: &mut Case<'_>) -> Found {
    let reads = case.rate("Innodb_buffer_pool_reads")?;
    let requests = case.rate("Innodb_buffer_pool_read_requests")?;
    let total = case.status("Innodb_buffer_pool_pages_total")?;
    let free = case.reading.each_status("Innodb_buffer_pool_pages_free");
    let free = free.into_iter().reduce(f64::min);
    let free = free.ok_or(Unjudged::NotReported)?;
    case.note("free pages, the fewest", free, Unit::Number);
    // So many are kept free for the next reads, however small the pool is.
    let instances = case
        .reading
        .variables
        .number("innodb_buffer_pool_instances");
    let kept = case.variable("innodb_lru_scan_depth")? * instances.unwrap_or(1.0).max(1.0);
    let free = (free - kept).max(0.0);
    let misses = percent(reads, requests);
    case.note("pages that weren't in the pool", misses, Unit::Percent);
    let is_full = percent(free, total) <= FREE_PERCENT_MAX;
    let is_many = reads >= READS_PER_S_MAX || misses >= MISS_PERCENT_MAX;
    if !is_full || reads < READS_PER_S_MIN || !is_many {
        return Ok(None);
    }
    let bytes = case.variable("innodb_buffer_pool_size")?;
    // Newer MariaDB reserves addresses at its start, and can't grow beyond them.
    let bytes_max = case.reading.variables.number("innodb_buffer_pool_size_max");
    let can_grow = bytes_max.is_none_or(|most| most >= 2.0 * bytes);
    // MySQL 5.6 can't change it while it runs.
    let can_change = case.is_mariadb() || case.reading.server.release >= (5, 7, 0);
    Ok(Some(Finding {
        meaning: "The pool is full, and statements wait for pages from disk.".to_owned(),
        remedy: "Check the machine's free memory first: Remora doesn't know it. Up to 70 or 80 % \
                 of the memory may go to the pool if nothing else runs there. If there is none \
                 left, look for reads without an index."
            .to_owned(),
        settings: vec![case.set_bytes(
            "innodb_buffer_pool_size",
            2.0 * bytes,
            can_grow && can_change,
        )],
    }))
}

pub(super) fn free_pages_short(case: &mut Case<'_>) -> Found {
    let waits = case.rate("Innodb_buffer_pool_wait_free")?;
    if waits < WAITS_PER_S_MAX {
        return Ok(None);
    }
    let depth = case.variable("innodb_lru_scan_depth")?;
    let capacity = case.variable("innodb_io_capacity")?;
    Ok(Some(Finding {
        meaning: "No page was free, so statements had to write one out before they could read."
            .to_owned(),
        remedy: "Let InnoDB free more pages ahead: raise innodb_lru_scan_depth. If the disks can \
                 take more writes, raise innodb_io_capacity, too. A larger pool also helps."
            .to_owned(),
        settings: vec![
            case.set("innodb_lru_scan_depth", 2.0 * depth, true),
            // First, as it limits the other.
            case.set("innodb_io_capacity_max", 4.0 * capacity, true),
            case.set("innodb_io_capacity", 2.0 * capacity, true),
        ],
    }))
}

pub(super) fn io_capacity_low(case: &mut Case<'_>) -> Found {
    let shares = case.reading.each(|sample| {
        let dirty = sample.status.number("Innodb_buffer_pool_pages_dirty")?;
        let total = sample.status.number("Innodb_buffer_pool_pages_total")?;
        Some(percent(dirty, total))
    });
    let is_shrinking = match (shares.first(), shares.last()) {
        (Some(first), Some(last)) => percent(*last, *first) < 100.0 - VARIATION_PERCENT,
        _ => return Err(Unjudged::NotReported),
    };
    let share = median(shares).ok_or(Unjudged::NotReported)?;
    let allowed = case.variable("innodb_max_dirty_pages_pct")?;
    let capacity = case.variable("innodb_io_capacity")?;
    case.note("dirty pages of the pool, median", share, Unit::Percent);
    case.note("innodb_max_dirty_pages_pct", allowed, Unit::Percent);
    let flushed = case.rate("Innodb_buffer_pool_pages_flushed")?;
    case.note("innodb_io_capacity", capacity, Unit::PerSecond);
    let has_too_many = allowed > 0.0 && percent(share, allowed) >= DIRTY_PERCENT_MAX;
    let is_at_limit = percent(flushed, capacity) >= FLUSHED_PERCENT_MIN;
    // What is left of earlier writes goes away by itself.
    if !has_too_many || !is_at_limit || is_shrinking {
        return Ok(None);
    }
    let capacity_max = case.variable("innodb_io_capacity_max")?;
    Ok(Some(Finding {
        meaning: "The pool is near innodb_max_dirty_pages_pct. InnoDB flushes as fast as \
                  innodb_io_capacity lets it."
            .to_owned(),
        remedy: "Tell InnoDB how many writes a second the disks can do. Solid-state disks can do \
                 thousands."
            .to_owned(),
        settings: vec![
            case.set(
                "innodb_io_capacity_max",
                capacity_max.max(4.0 * capacity),
                true,
            ),
            case.set("innodb_io_capacity", 2.0 * capacity, true),
        ],
    }))
}
