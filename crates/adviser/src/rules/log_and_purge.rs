//! InnoDB's redo log, and the purge of old row versions.

use super::{Case, Found, median, percent};
use crate::innodb_status::InnodbStatus;
use crate::number::short;
use crate::reading::Brand;
use crate::report::{Finding, Setting, Unit};
use crate::rule::Unjudged;

/// Beyond this share of its limit the checkpoint age is high, percent. From about 88 % (7/8) on,
/// InnoDB flushes as fast as it can.
const AGE_PERCENT_MAX: f64 = 75.0;
/// A server that doesn't say how old a checkpoint may become allows about this share of the log.
const USABLE_PERCENT: f64 = 80.0;
/// For so long a log should take what is written, seconds.
const LOG_SECONDS_MIN: f64 = 1_800.0;
const MIB: f64 = 1_048_576.0;

/// Beyond this the history list is too long even if it doesn't grow, transactions.
const HISTORY_LENGTH_MAX: f64 = 1_000_000.0;
/// Beyond this it is too long if it grows, transactions. A busy server that keeps up has some
/// thousands.
const GROWING_LENGTH_MAX: f64 = 100_000.0;
/// The same while a transaction that may be the reason is open.
const HELD_LENGTH_MAX: f64 = 5_000.0;
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

    /// What to begin with at so many bytes a second. Not much more than the pool has: the log is
    /// for the dirty pages there.
    fn suggestion(&self, case: &Case<'_>, bytes_per_s: f64) -> Result<Setting, Unjudged> {
        let pool = case.variable("innodb_buffer_pool_size")?;
        let twice = 2.0 * self.bytes;
        let wanted = (bytes_per_s * LOG_SECONDS_MIN).clamp(twice, pool.max(twice));
        let mut whole = 64.0 * MIB;
        while whole < wanted {
            whole *= 2.0;
        }
        Ok(case.set_bytes(self.setting, whole / self.files, self.is_dynamic))
    }
}

pub(super) fn redo_log_small(case: &mut Case<'_>) -> Found {
    let log = RedoLog::of(case)?;
    let ages = case.reading.each_of_innodb(InnodbStatus::checkpoint_age)?;
    let age = median(ages).ok_or(Unjudged::NotReported)?;
    let sequence = |status: &InnodbStatus| status.log_sequence_number;
    let written = match case.reading.each_of_innodb(sequence)?.as_slice() {
        [first, .., last] => (last - first) / case.reading.seconds(),
        _ => return Err(Unjudged::NotReported),
    };
    let age_max = case
        .reading
        .status("Innodb_checkpoint_max_age")
        .unwrap_or(log.bytes * USABLE_PERCENT / 100.0);
    case.note("size of the redo log", log.bytes, Unit::Bytes);
    case.note("checkpoint age, median", age, Unit::Bytes);
    let share = percent(age, age_max);
    case.note("of the most that it may be", share, Unit::Percent);
    case.note("redo written", written, Unit::BytesPerSecond);
    let lasts_s = log.bytes / written;
    // Where little is written, pages are written out in time, however old the oldest is.
    if share < AGE_PERCENT_MAX || lasts_s >= LOG_SECONDS_MIN {
        return Ok(None);
    }
    Ok(Some(Finding {
        meaning: format!(
            "At this rate the log is full after {} s. InnoDB then flushes pages in a hurry, and \
             statements that write wait for it.",
            short(lasts_s)
        ),
        remedy: "Make it large enough for half an hour of writes. More than the buffer pool is \
                 seldom needed. A larger log makes recovery after a crash take longer."
            .to_owned(),
        settings: vec![log.suggestion(case, written)?],
    }))
}

pub(super) fn purge_behind(case: &mut Case<'_>) -> Found {
    let lengths = case
        .reading
        .each_of_innodb(|status| status.history_length)?;
    let [first, .., last] = lengths[..] else {
        return Err(Unjudged::NotReported);
    };
    case.note("history list length at first", first, Unit::Number);
    case.note("history list length at last", last, Unit::Number);
    // It goes up and down a little, as the purge goes on in batches.
    let (early, late) = lengths.split_at(lengths.len() / 2);
    let is_growing = last > first && median(late.to_vec()) > median(early.to_vec());
    let oldest = case.reading.last().and_then(|last| last.oldest_transaction);
    let oldest = oldest.filter(|oldest| oldest.seconds >= TRANSACTION_S_MAX);
    let growing_max = oldest.map_or(GROWING_LENGTH_MAX, |_| HELD_LENGTH_MAX);
    if last < HISTORY_LENGTH_MAX && !(is_growing && last >= growing_max) {
        return Ok(None);
    }
    let meaning = "Reads step over old versions of rows, and undo logs grow.".to_owned();
    if let Some(oldest) = oldest {
        case.note(
            "oldest transaction, open for",
            oldest.seconds,
            Unit::Seconds,
        );
        return Ok(Some(Finding {
            meaning,
            remedy: match oldest.connection_id {
                0 => "A prepared XA transaction may hold the purge up. XA RECOVER lists it: have \
                      it committed or rolled back."
                    .to_owned(),
                id => format!(
                    "The transaction of connection {id} may hold the purge up. Have its client \
                     commit, or end it: KILL {id} rolls it back. Find out why it stays open."
                ),
            },
            settings: Vec::new(),
        }));
    }
    let threads = case.variable("innodb_purge_threads")?;
    Ok(Some(Finding {
        meaning,
        remedy: "No old transaction was open at the last look, so the purge itself is probably \
                 too slow. Give it more threads, and check that the disks keep up."
            .to_owned(),
        settings: vec![case.set(
            "innodb_purge_threads",
            (2.0 * threads).min(32.0),
            case.reading.is_since(Brand::MariaDb, (10, 5, 2)),
        )],
    }))
}
