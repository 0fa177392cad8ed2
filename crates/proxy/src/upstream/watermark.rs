//! Asks the server how far its commits are visible, proves that the follower has caught up, and
//! lowers fences.
//!
//! One question at a time, and only when somebody needs the answer: a fence was answered, a fill
//! saw a change above the watermark, or the last proof grows old. The order is what makes it right:
//!
//! 1. take the answered fences, note the time;
//! 2. ask; the server answers the position `P`;
//! 3. the watermark becomes `P`;
//! 4. when the follower has applied `P`, lower those fences and prove for the noted time.
//!
//! **When the log goes on in the next file**, MariaDB's answer isn't to be trusted for a while. It names
//! the new file at once, although the last commits of the old one may still be invisible; and one of those then
//! sets the answer's offset to its own, which is one of the old file. So in a new file:
//!
//! - The watermark stays where it is until the follower has read a checkpoint event that names the new
//!   file: the server writes it when all commits of older files have been made visible. From then on it
//!   may be at the new file's beginning.
//! - An answer asked for after that is believed if the last commit that the follower has applied ends there, or
//!   if it differs from one before: then a commit of the new file has set it. From then on all answers in this
//!   file are.
//!   The checkpoint event itself also sets the answer, past commits that are on their way: if nothing is
//!   committed behind it, tables that have changed in this file can't be cached until something is.
//! - Until then proofs and fences go by the end of the log (`SHOW MASTER STATUS`), which is never before
//!   a visible commit.
//!
//! **Why the watermark may move before the follower has applied `P`.** It says what a read sent now
//! will see, and nothing of what the follower knows. A fill with `as_of = P` has seen every commit up
//! to `P`; if the event of such a commit arrives later, it sets `changed_at <= P`, and the entry
//! rightly stays valid. A commit above `P` sets `changed_at > P`, and the entry is refused from then
//! on. Until that event arrives such an entry can be served although the commit has happened: that
//! is the lag of any follower, bounded by the proofs (step 4), not by the watermark.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use remora_cache::{Epoch, FenceBatch, Position};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::UpstreamConfig;
use super::client::{Client, ClientError, text};
use super::place::LogName;
use super::session::{FILE_BEGINS_AT, Lost, Progress};
use super::state::{RestartReason, UpstreamShared, count};

/// Questions whose positions the follower has yet to apply. With more, asking waits.
const PENDING_MAX: usize = 64;
/// Both the file and the offset; consistent with each other within one `SHOW STATUS`.
const QUESTION: &str = "SHOW STATUS LIKE 'binlog_snapshot_%'";
/// The follower is taken for stuck after this many times `lag_ms_max` without an event.
const STUCK_LAGS: u64 = 5;

/// A position that a server has given, of the file that the name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) name: LogName,
    pub(super) offset: u64,
}

/// Asks the server how far its commits are visible.
pub(super) async fn ask(client: &mut Client) -> Result<Answered, Lost> {
    let rows = client.query(QUESTION, 10).await?;
    let value = |name: &str| {
        let is_it = |row: &&Vec<_>| text(row, 0).is_some_and(|key| key.eq_ignore_ascii_case(name));
        rows.iter().find(is_it).and_then(|row| text(row, 1))
    };
    let file = value("binlog_snapshot_file");
    let offset = value("binlog_snapshot_position").and_then(|offset| offset.parse().ok());
    let (Some(file), Some(offset)) = (file, offset) else {
        return Err(ClientError::Answer("no binlog_snapshot_file and _position").into());
    };
    let name = LogName::parse(file).ok_or_else(|| {
        Lost::restart(
            RestartReason::PositionUnplaceable,
            format!("the log file is named {file}"),
        )
    })?;
    Ok(Answered { name, offset })
}

/// Asks where the log ends: at or after each commit that can be seen.
pub(super) async fn end_of_log(client: &mut Client) -> Result<Answered, Lost> {
    let rows = client.query("SHOW MASTER STATUS", 10).await?;
    let row = rows.first().ok_or(ClientError::Answer("no log"))?;
    let file = text(row, 0).unwrap_or_default();
    let offset = text(row, 1).and_then(|offset| offset.parse().ok());
    match (LogName::parse(file), offset) {
        (Some(name), Some(offset)) => Ok(Answered { name, offset }),
        _ => Err(Lost::restart(
            RestartReason::PositionUnplaceable,
            format!("the log file is named {file}"),
        )),
    }
}

/// What an answer is worth.
struct Worth {
    /// How far reads can see for certain, if that is news.
    visible: Option<Position>,
    /// When the follower has applied this, it has all that could be seen when the question was asked.
    complete: Position,
}

struct Pending {
    position: Position,
    epoch: Epoch,
    asked_at_ms: u64,
    answered_at: Instant,
    batch: FenceBatch,
}

/// The watermark's side of one session with the server.
pub(super) struct Watermark<'a> {
    shared: &'a UpstreamShared,
    progress: &'a Progress,
    base: &'a str,
    /// The file in which answers are believed.
    trusted_file: Cell<Option<u64>>,
    /// An answer that wasn't, since the file was known to be settled.
    doubted: Cell<Option<Position>>,
    pending: RefCell<VecDeque<Pending>>,
    /// Rung when `pending` has become shorter.
    room: Notify,
    interval_min: Duration,
    probe_interval: Duration,
    stuck_after: Duration,
}

impl<'a> Watermark<'a> {
    pub(super) fn new(
        config: &UpstreamConfig,
        shared: &'a UpstreamShared,
        progress: &'a Progress,
        base: &'a str,
    ) -> Watermark<'a> {
        Watermark {
            shared,
            progress,
            base,
            trusted_file: Cell::new(None),
            doubted: Cell::new(None),
            pending: RefCell::new(VecDeque::new()),
            room: Notify::new(),
            interval_min: Duration::from_micros(config.ask_interval_us_min),
            probe_interval: Duration::from_millis((config.lag_ms_max / 4).max(1)),
            stuck_after: Duration::from_millis(config.lag_ms_max.max(200) * STUCK_LAGS),
        }
    }

    /// Asks and settles until the connection or the log is lost.
    pub(super) async fn run(&self, client: &mut Client) -> Lost {
        tokio::select! {
            lost = self.ask_for_ever(client) => lost,
            lost = self.settle_for_ever() => lost,
        }
    }

    async fn ask_for_ever(&self, client: &mut Client) -> Lost {
        let mut next_probe = Instant::now();
        loop {
            let _ = timeout_at(next_probe, self.shared.watermark_bell.notified()).await;
            while self.pending.borrow().len() >= PENDING_MAX {
                self.room.notified().await;
            }
            let asked = Instant::now();
            if let Err(lost) = self.ask_once(client).await {
                return lost;
            }
            next_probe = asked + self.probe_interval;
            // An idle asker never waits. Under load this is what limits the questions, each of which
            // costs the server over 100 microseconds; the timer counts in whole milliseconds.
            sleep_until(asked + self.interval_min).await;
        }
    }

    async fn ask_once(&self, client: &mut Client) -> Result<(), Lost> {
        let timeline = &self.shared.timeline;
        let epoch = timeline.epoch();
        let batch = timeline.take_answered();
        let asked_at_ms = self.shared.clock.now_ms();
        count(&self.shared.counters.asks, 1);
        let settled_file = self.progress.settled_file();
        let position = self.place(&ask(client).await?)?;
        if position < timeline.visible() {
            let what = format!(
                "the server was at {} and says {position}",
                timeline.visible()
            );
            return Err(Lost::restart(RestartReason::PositionWentBack, what));
        }
        let worth = self.weigh(client, position, settled_file).await?;
        if let Some(visible) = worth.visible {
            timeline.advance_visible(epoch, visible);
            self.shared.visible_bell.notify_waiters();
        }
        let answered_at = Instant::now();
        let pending = Pending {
            position: worth.complete,
            epoch,
            asked_at_ms,
            answered_at,
            batch,
        };
        self.pending.borrow_mut().push_back(pending);
        self.settle();
        Ok(())
    }

    fn place(&self, answered: &Answered) -> Result<Position, Lost> {
        let Answered { name, offset } = answered;
        if name.base != self.base {
            let what = format!("the log's files are now named {}", name.base);
            return Err(Lost::restart(RestartReason::LogChanged, what));
        }
        Position::new(name.number, *offset).ok_or_else(|| {
            let what = format!("{} has an offset of {offset}", name.file());
            Lost::restart(RestartReason::PositionUnplaceable, what)
        })
    }

    /// Finds out how far an answer can be believed. `settled_file` is of before it was asked for.
    async fn weigh(
        &self,
        client: &mut Client,
        position: Position,
        settled_file: u64,
    ) -> Result<Worth, Lost> {
        let file = position.file_number();
        if self.trusted_file.get() == Some(file) {
            return Ok(Worth {
                visible: Some(position),
                complete: position,
            });
        }
        let end = self.place(&end_of_log(client).await?)?;
        if settled_file < file {
            return Ok(Worth {
                visible: None,
                complete: end,
            });
        }
        let before = self.doubted.replace(Some(position));
        let has_moved = before.is_some_and(|before| {
            before.file_number() == file && before.offset() != position.offset()
        });
        if has_moved || position == self.progress.last_commit() {
            self.trusted_file.set(Some(file));
            return Ok(Worth {
                visible: Some(position),
                complete: end,
            });
        }
        Ok(Worth {
            visible: Position::new(file, FILE_BEGINS_AT),
            complete: end,
        })
    }

    async fn settle_for_ever(&self) -> Lost {
        loop {
            let oldest = self
                .pending
                .borrow()
                .front()
                .map(|pending| pending.answered_at);
            let deadline = oldest
                .unwrap_or_else(Instant::now)
                .max(self.progress.last_event())
                + self.stuck_after;
            let heard = timeout_at(deadline, self.shared.applied_bell.notified())
                .await
                .is_ok();
            self.settle();
            let is_waiting =
                oldest.is_some() && oldest == self.pending.borrow().front().map(|p| p.answered_at);
            if !heard && is_waiting && self.progress.last_event().elapsed() >= self.stuck_after {
                return Lost::Stuck;
            }
        }
    }

    /// Lowers and proves what the follower has caught up with.
    fn settle(&self) {
        let shared = self.shared;
        // Before the follower has shown that it reads the right log, its position means nothing.
        while self.progress.knows_all() {
            let mut queue = self.pending.borrow_mut();
            let is_due = |pending: &mut Pending| shared.timeline.applied() >= pending.position;
            let Some(pending) = queue.pop_front_if(is_due) else {
                break;
            };
            if self.progress.take_resumption() {
                shared.timeline.resume();
            }
            if shared.timeline.prove(pending.epoch, pending.asked_at_ms) {
                pending.batch.lower();
                let lag = pending.answered_at.elapsed().as_micros();
                let lag_us = u64::try_from(lag).unwrap_or(u64::MAX);
                shared.counters.lag_us_last.store(lag_us, Ordering::Relaxed);
                shared
                    .counters
                    .lag_us_max
                    .fetch_max(lag_us, Ordering::Relaxed);
            }
            self.room.notify_one();
        }
        let waiting = self.pending.borrow().len() as u64;
        shared
            .counters
            .batches_waiting
            .store(waiting, Ordering::Relaxed);
    }
}
