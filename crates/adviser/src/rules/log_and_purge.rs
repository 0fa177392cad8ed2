//! InnoDB's redo log, and the purge of old row versions.

use super::{Case, Found, median, percent};
use crate::reading::Brand;
use crate::report::{Finding, Setting, Unit, Unjudged};

/// Beyond this share of its limit the checkpoint age is high, percent. InnoDB writes pages without
/// regard for statements from about 88 % on, and eagerly before that.
const AGE_PERCENT_MAX: f64 = 75.0;
/// A server that doesn't say how old a checkpoint may become allows about this share of the log.
const USABLE_PERCENT: f64 = 80.0;
/// For so long a log should take what is written, seconds.
const LOG_SECONDS_MIN: f64 = 1_800.0;
const MIB: f64 = 1_048_576.0;

/// As many transactions may wait for their purge, as long as there aren't more and more of them.
const HISTORY_LENGTH_MAX: f64 = 1_000_000.0;
/// From so many on it matters that there are more and more of them.
const HISTORY_LENGTH_MIN: f64 = 5_000.0;
/// A transaction that is open for so long holds the purge up, seconds.
const TRANSACTION_S_MAX: f64 = 10.0;

/// The log, as the operator sets its size.
struct RedoLog {
    bytes: f64,
    /// What is set: the size of all of it, or of each of its files.
    setting: &'static str,
    files: f64,
    is_dynamic: bool,
}

impl RedoLog {
    fn of(case: &Case<'_>) -> Result<RedoLog, Unjudged> {
        // MySQL 8.0.30 and later.
        if let Some(bytes) = case.reading.status("Innodb_redo_log_capacity_resized") {
            return Ok(RedoLog {
                bytes,
                setting: "innodb_redo_log_capacity",
                files: 1.0,
                is_dynamic: true,
            });
        }
        let files = case
            .reading
            .variables
            .number("innodb_log_files_in_group")
            .unwrap_or(1.0);
        Ok(RedoLog {
            bytes: case.variable("innodb_log_file_size")? * files,
            setting: "innodb_log_file_size",
            files,
            is_dynamic: case.reading.is_since(Brand::MariaDb, (10, 9, 0)),
        })
    }

    /// What to begin with at so many bytes a second. No more than the pool has: the log is for the
    /// changed pages there.
    fn suggestion(&self, case: &Case<'_>, bytes_per_s: f64) -> Result<Setting, Unjudged> {
        let pool = case.variable("innodb_buffer_pool_size")?;
        let twice = 2.0 * self.bytes;
        let wanted = (bytes_per_s * LOG_SECONDS_MIN).clamp(twice, pool.max(twice));
        let mut whole = 64.0 * MIB;
        while whole < wanted {
            whole *= 2.0;
        }
        Ok(case.set(self.setting, whole / self.files, self.is_dynamic))
    }
}

pub(super) fn redo_log_small(case: &mut Case<'_>) -> Found {
    let log = RedoLog::of(case)?;
    let ages = case
        .reading
        .each(|sample| Some(sample.innodb.as_ref()?.checkpoint_age()));
    let age = median(ages).ok_or(Unjudged::NoPrivilege)?;
    let written = case
        .reading
        .each(|sample| Some(sample.innodb.as_ref()?.log_sequence_number));
    let written = match (written.first(), written.last()) {
        (Some(first), Some(last)) => (last - first) / case.reading.seconds(),
        _ => return Err(Unjudged::NoPrivilege),
    };
    let age_max = case
        .reading
        .status("Innodb_checkpoint_max_age")
        .unwrap_or(log.bytes * USABLE_PERCENT / 100.0);
    case.note("size of the redo log", log.bytes, Unit::Bytes);
    case.note("checkpoint age, median", age, Unit::Bytes);
    let share = percent(age, age_max);
    case.note("of what the log allows", share, Unit::Percent);
    case.note("redo written", written, Unit::BytesPerSecond);
    let lasts_s = log.bytes / written;
    // Where little is written, pages are written out in time, however old the oldest is.
    if share < AGE_PERCENT_MAX || lasts_s >= LOG_SECONDS_MIN {
        return Ok(None);
    }
    Ok(Some(Finding {
        meaning: format!(
            "At this rate the log is full after {lasts_s:.0} s. InnoDB then writes changed pages \
             out in a hurry, and statements that write wait for that."
        ),
        remedy: "Give it room for the writes of half an hour, or as much as the buffer pool has. \
                 Recovery after a crash takes longer."
            .to_owned(),
        settings: vec![log.suggestion(case, written)?],
    }))
}

pub(super) fn purge_behind(case: &mut Case<'_>) -> Found {
    let lengths = case
        .reading
        .each(|sample| Some(sample.innodb.as_ref()?.history_length));
    let (Some(first), Some(last)) = (lengths.first().copied(), lengths.last().copied()) else {
        return Err(Unjudged::NoPrivilege);
    };
    case.note("history list length at first", first, Unit::Number);
    case.note("history list length at last", last, Unit::Number);
    let is_growing = last > first && lengths.is_sorted();
    if last < HISTORY_LENGTH_MAX && (last < HISTORY_LENGTH_MIN || !is_growing) {
        return Ok(None);
    }
    let meaning = "Reads step over old versions of rows, and undo logs grow.".to_owned();
    let oldest = case.reading.last().and_then(|last| last.oldest_transaction);
    if let Some(oldest) = oldest.filter(|oldest| oldest.seconds >= TRANSACTION_S_MAX) {
        case.note(
            "oldest transaction, open for",
            oldest.seconds,
            Unit::Seconds,
        );
        return Ok(Some(Finding {
            meaning,
            remedy: format!(
                "End the transaction of connection {}: nothing newer is purged while it is open. \
                 Find out why its client leaves it open.",
                oldest.connection_id
            ),
            settings: Vec::new(),
        }));
    }
    let threads = case.variable("innodb_purge_threads")?;
    Ok(Some(Finding {
        meaning,
        remedy: "No transaction has been open for long, so the purge itself is too slow. Give it \
                 more threads, and the disks room to write."
            .to_owned(),
        settings: vec![case.set(
            "innodb_purge_threads",
            (2.0 * threads).min(32.0),
            case.reading.is_since(Brand::MariaDb, (10, 5, 2)),
        )],
    }))
}
