//! InnoDB's buffer pool: what is read past it, and how it is written out.

use super::{Case, Found, median, percent};
use crate::report::{Finding, Unit, Unjudged};

/// So many pages may be read from disk in a second, whatever the share: disks do that easily.
const READS_PER_S_MIN: f64 = 50.0;
/// This share of the pages that statements want may be read from disk, percent.
const MISS_PERCENT_MAX: f64 = 1.0;
/// A pool with more free pages than this isn't too small: it is still filling, percent.
const FREE_PERCENT_MAX: f64 = 10.0;
/// A pool whose changed pages reach this share of what is allowed has too many, percent.
const DIRTY_PERCENT_MAX: f64 = 90.0;
/// InnoDB writes as fast as it may at this share of what it may write in a second, percent.
const FLUSHED_PERCENT_MIN: f64 = 90.0;
/// By less than this share the changed pages vary when they are neither more nor fewer, percent.
const VARIATION_PERCENT: f64 = 5.0;

pub(super) fn buffer_pool_small(case: &mut Case<'_>) -> Found {
    let reads = case.rate("Innodb_buffer_pool_reads")?;
    let requests = case.rate("Innodb_buffer_pool_read_requests")?;
    let total = case.status("Innodb_buffer_pool_pages_total")?;
    let free = case.status("Innodb_buffer_pool_pages_free")?;
    let misses = percent(reads, requests);
    case.note("pages that weren't in the pool", misses, Unit::Percent);
    let is_full = percent(free, total) <= FREE_PERCENT_MAX;
    if !is_full || reads < READS_PER_S_MIN || misses < MISS_PERCENT_MAX {
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
        remedy:
            "Give the pool more of the machine's memory: up to 70 or 80 % if nothing else runs \
                 there. If there is none, look for reads without an index first."
                .to_owned(),
        settings: vec![case.set(
            "innodb_buffer_pool_size",
            2.0 * bytes,
            can_grow && can_change,
        )],
    }))
}

pub(super) fn free_pages_short(case: &mut Case<'_>) -> Found {
    let waits = case.rate("Innodb_buffer_pool_wait_free")?;
    if waits <= 0.0 {
        return Ok(None);
    }
    let depth = case.variable("innodb_lru_scan_depth")?;
    let capacity = case.variable("innodb_io_capacity")?;
    Ok(Some(Finding {
        meaning: "No page was free, so statements had to write one out before they could read."
            .to_owned(),
        remedy: "Have pages freed ahead: more at a time, and with more writes a second if the \
                 disks can. A larger pool helps as well."
            .to_owned(),
        settings: vec![
            case.set("innodb_lru_scan_depth", 2.0 * depth, true),
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
    case.note("changed pages, median", share, Unit::Percent);
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
        meaning: "As many pages of the pool are changed as may be. InnoDB writes no faster than \
                  innodb_io_capacity lets it."
            .to_owned(),
        remedy: "Tell InnoDB how many writes a second the disks can do. Solid-state disks do \
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
