//! Asks the server how far its commits are visible, proves that the follower has caught up, and
//! lowers fences.
//!
//! One question at a time, and only when somebody needs the answer: a fence was answered, a fill
//! saw a change above the watermark, or the last proof grows old. The order is what makes it right:
//!
//! 1. take the answered fences, note the time;
//! 2. ask; the server answers what can be seen: on MariaDB a position, on MySQL a set of GTIDs;
//! 3. the watermark becomes the position that this stands for, as the follower comes there;
//! 4. when the follower has applied all that the answer names, lower those fences and prove for the
//!    noted time.
//!
//! **A server can close its log**, if it can't write to it or can't begin the next file, and go on
//! without one. So an answer that lowers fences also tells that the log is open: MySQL's set is
//! asked for with the log's state, and MariaDB is asked for both. Otherwise a write through Remora
//! would be missing until a check finds the log closed. Other questions leave the log's state
//! alone: to tell it the server waits for its log, and a large transaction may be copied into that.
//!
//! Reads inside transactions need to know where the log ends. That question lowers fences and
//! proves in the same way; it leaves the watermark as it is.
//!
//! | file | whose answers it weighs |
//! |---|---|
//! | `position` | MariaDB's |
//! | `gtid` | MySQL's |
//! | `idle` | what connections are doing, where neither tells |
//!
//! [`want`](crate::want) says who wants a watermark, `pace` how often it is asked for one then.
//!
//! What is known of the commits themselves is in [`commits`](crate::commits).
//!
//! **Why the watermark stays behind the follower.** What the server tells isn't true of every kind
//! of commit, and of which kind a commit is the log says. So the watermark moves to what was told
//! only as far as the follower has read, and stops before a commit that the answer doesn't tell
//! ([`UntoldCommits`](crate::commits::UntoldCommits)). It goes on with the follower; the server
//! isn't asked again for that.
//!
//! A fill with `as_of = P` has seen every commit up to `P`. A commit above `P` sets
//! `changed_at > P`, and the entry is refused from then on. Until that event arrives such an entry
//! can be served although the commit has happened: that is the lag of any follower, bounded by the
//! proofs (step 4), not by the watermark.

mod gtid;
mod idle;
mod pace;
mod position;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use remora_binlog::GtidSet;
use remora_cache::{BrokenSurroundings, EndQuestion, Epoch, FenceBatch, Position, Timeline};
use remora_engine::reason::RestartReason;
use remora_wire::rows::Row;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use self::gtid::GtidSource;
use self::pace::Pace;
use self::position::PositionSource;
use super::UpstreamConfig;
use super::client::{Client, ClientError, text};
use super::lost::Lost;
use super::place::LogName;
use super::progress::Progress;
use super::server_facts::{ServerFacts, Visibility};
use super::state::{UpstreamShared, count};
use super::want::Want;

/// Questions whose answers the follower has yet to catch up with. With more, asking waits.
const PENDING_MAX: usize = 64;
/// With more than these the follower may be waiting for what never comes.
const PENDING_CROWDED: usize = PENDING_MAX / 2;
/// While nothing has been proven yet, the server is asked again after this; then after twice that,
/// and so on up to the interval between probes. The first answer may leave open what the second one
/// tells: whether commits that were on their way at the start have become visible.
const UNPROVEN_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// The follower is taken for stuck after this many times `lag_ms_max` without an event.
const STUCK_LAGS: u64 = 5;

/// A position that a server has given, of the file that the name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) name: LogName,
    pub(super) offset: u64,
}

impl Answered {
    /// Reads a file's name and an offset as the server gives them.
    fn read(file: &str, offset: Option<&str>) -> Result<Answered, Lost> {
        let name = LogName::parse(file);
        let offset = offset.and_then(|offset| offset.parse().ok());
        match (name, offset) {
            (Some(name), Some(offset)) => Ok(Answered { name, offset }),
            _ => Err(Lost::restart(
                RestartReason::PositionUnplaceable,
                format!("the log file is named {file}"),
            )),
        }
    }

    /// Its place in the log whose files are named `base`.
    fn place(&self, base: &str) -> Result<Position, Lost> {
        let Answered { name, offset } = self;
        if name.base != base {
            let what = format!("the log's files are now named {}", name.base);
            return Err(Lost::restart(RestartReason::LogChanged, what));
        }
        Position::new(name.number, *offset).ok_or_else(|| {
            let what = format!("{} has an offset of {offset}", name.file());
            Lost::restart(RestartReason::PositionUnplaceable, what)
        })
    }
}

/// Asks for the state of the log. `question` is [`ServerFacts::log_status_question`]. A server that
/// has closed its log answers with nothing.
async fn log_status(client: &mut Client, question: &str) -> Result<Row, Lost> {
    let mut rows = client.query(question, 10).await?;
    rows.pop()
        .ok_or_else(|| ClientError::Answer("no log").into())
}

/// Where the log ends, by its state: at or after each commit that can be seen.
fn end_of(log_status: &Row) -> Result<Answered, Lost> {
    let file = text(log_status, 0).unwrap_or_default();
    Answered::read(file, text(log_status, 1))
}

/// Asks where the log ends: at or after each commit that can be seen.
pub(super) async fn end_of_log(client: &mut Client, question: &str) -> Result<Answered, Lost> {
    end_of(&log_status(client, question).await?)
}

/// What an answer is worth.
struct Worth {
    /// How far reads can see for certain, if that is news.
    visible: Option<Position>,
    complete: Complete,
}

/// What the follower must have applied to have all that could be seen when the question was asked.
enum Complete {
    /// Everything up to here.
    At(Position),
    /// These transactions, and everything up to `end` unless that has been reached: where the log
    /// ended when the set was known.
    Transactions {
        executed: GtidSet,
        end: Option<Position>,
    },
}

/// Asks for the state of the log that the follower has applied so far. Gives where it ends, too.
async fn status_of_followed_log(
    client: &mut Client,
    question: &str,
    base: &str,
    timeline: &Timeline,
) -> Result<(Position, Row), Lost> {
    let applied = timeline.applied();
    let status = log_status(client, question).await?;
    let end = end_of(&status)?.place(base)?;
    if end < applied {
        let what = format!("the log was applied up to {applied} and ends at {end}");
        return Err(Lost::restart(RestartReason::PositionWentBack, what));
    }
    Ok((end, status))
}

/// How a server's answers are asked for and weighed.
enum Source<'a> {
    Positions(PositionSource<'a>),
    Gtids(GtidSource<'a>),
}

/// The two kinds of questions.
enum Question {
    /// How far reads can see.
    Watermark,
    /// Where the log ends.
    End,
}

/// When which question may be asked. The timer counts in whole milliseconds. What a transaction
/// waits for is asked at once; one answer is for all that wait.
struct Due {
    /// A watermark that is wanted.
    watermark: Pace,
    /// A watermark in any case.
    probe: Instant,
    /// After how long the next one is asked for in any case while nothing has been proven.
    unproven_interval: Duration,
    /// The log's end, if nobody waits for it, not before.
    end_soon: Instant,
}

impl Due {
    fn at(now: Instant, watermark: Pace) -> Due {
        Due {
            watermark,
            probe: now,
            unproven_interval: UNPROVEN_INTERVAL_MIN,
            end_soon: now,
        }
    }

    /// The watermark was asked for, and answered.
    fn asked_for_watermark(&mut self, asker: &Watermark<'_>, asked_at: Instant, want: Want) {
        self.watermark.asked(asked_at, want);
        let interval = if asker.shared.timeline.is_live() {
            self.unproven_interval = UNPROVEN_INTERVAL_MIN;
            asker.probe_interval
        } else {
            let interval = self.unproven_interval.min(asker.probe_interval);
            self.unproven_interval = interval * 2;
            interval
        };
        self.probe = asked_at + interval;
    }

    /// When something is to be asked unless the bell rings before; `None`: at once.
    fn next(&self, shared: &UpstreamShared, want: Want) -> Option<Instant> {
        if shared.is_end_wanted() {
            return None;
        }
        let mut next = self.probe;
        if want != Want::Nothing {
            next = next.min(self.watermark.due(want)?);
        }
        if shared.is_end_wanted_soon() {
            next = next.min(self.end_soon);
        }
        Some(next)
    }

    /// What is to be asked now. The watermark goes first: it is seldom due, and fences wait for it.
    fn what(&self, shared: &UpstreamShared, want: Want, now: Instant) -> Option<Question> {
        let is_due = self.watermark.due(want).is_none_or(|due| now >= due);
        let watermark = want != Want::Nothing && is_due;
        let end = shared.is_end_wanted_soon() && now >= self.end_soon;
        if now >= self.probe || watermark {
            Some(Question::Watermark)
        } else if shared.is_end_wanted() || end {
            Some(Question::End)
        } else {
            None
        }
    }
}

struct Pending {
    complete: Complete,
    epoch: Epoch,
    asked_at_ms: u64,
    answered_at: Instant,
    batch: FenceBatch,
    /// Its number, if the question was where the log ends.
    end_question: Option<EndQuestion>,
}

/// The watermark's side of one session with the server.
pub(super) struct Watermark<'a> {
    shared: &'a UpstreamShared,
    progress: &'a Progress,
    source: Source<'a>,
    base: &'a str,
    end_question: &'static str,
    /// How far reads can see, by the server's last answer that said so, and when it was asked.
    told: Cell<Option<(Epoch, Position)>>,
    pending: RefCell<VecDeque<Pending>>,
    /// Rung when `pending` has become shorter.
    room: Notify,
    interval_min: Duration,
    interval_max: Duration,
    probe_interval: Duration,
    stuck_after: Duration,
}

impl<'a> Watermark<'a> {
    pub(super) fn new(
        config: &UpstreamConfig,
        shared: &'a UpstreamShared,
        progress: &'a Progress,
        facts: &ServerFacts,
        base: &'a str,
    ) -> Watermark<'a> {
        let question = facts.log_status_question();
        let source = match facts.visibility() {
            Visibility::Position => {
                Source::Positions(PositionSource::new(shared, progress, base, question))
            }
            visibility => Source::Gtids(GtidSource::new(
                shared, progress, base, question, visibility,
            )),
        };
        Watermark {
            shared,
            progress,
            source,
            base,
            end_question: question,
            told: Cell::new(None),
            pending: RefCell::new(VecDeque::new()),
            room: Notify::new(),
            interval_min: Duration::from_micros(config.ask_interval_us_min),
            interval_max: Duration::from_micros(config.ask_interval_us_max),
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
        let pace = Pace::new(self.interval_min, self.interval_max);
        let mut due = Due::at(Instant::now(), pace);
        loop {
            if let Some(at) = due.next(self.shared, self.want()) {
                let _ = timeout_at(at, self.shared.watermark_bell.notified()).await;
            }
            while self.pending.borrow().len() >= PENDING_MAX {
                self.room.notified().await;
            }
            let now = Instant::now();
            let want = self.want();
            let question = match due.what(self.shared, want, now) {
                Some(Question::End) if self.proofs_need_an_end() => Some(Question::Watermark),
                question => question,
            };
            let asked = match question {
                Some(Question::Watermark) => {
                    // Of both, the more urgent one: what is wanted may have come in between.
                    let want = want.max(self.shared.watermark_wanted.take());
                    let asked = self.ask_for_watermark(client).await;
                    due.asked_for_watermark(self, now, want);
                    asked
                }
                Some(Question::End) => {
                    self.shared.take_end_wanted();
                    due.end_soon = now + self.interval_min;
                    self.ask_for_end(client).await
                }
                None => Ok(()),
            };
            if let Err(lost) = asked {
                return lost;
            }
        }
    }

    /// Who wants a newer watermark. Where it takes several answers until a commit is known to be
    /// visible, they are asked for soon.
    fn want(&self) -> Want {
        let gathers_evidence = match &self.source {
            Source::Positions(source) => source.waits_for_idle(),
            Source::Gtids(source) => source.waits_for_idle(),
        };
        match self.shared.watermark_wanted.now() {
            Want::InTime if gathers_evidence => Want::Soon,
            want => want,
        }
    }

    /// Asks where the log ends: at or after all that could be seen when it was asked. It proves the
    /// same about the follower as the watermark's question and costs less, but doesn't move the
    /// watermark.
    async fn ask_for_end(&self, client: &mut Client) -> Result<(), Lost> {
        let timeline = &self.shared.timeline;
        let epoch = timeline.epoch();
        let batch = timeline.take_answered();
        let asked_at_ms = self.shared.clock.now_ms();
        let question = timeline.begin_end_question();
        count(&self.shared.counters.end_asks, 1);
        let (end, _) =
            status_of_followed_log(client, self.end_question, self.base, timeline).await?;
        let pending = Pending {
            complete: Complete::At(end),
            epoch,
            asked_at_ms,
            answered_at: Instant::now(),
            batch,
            end_question: Some(question),
        };
        self.await_follower(pending)
    }

    async fn ask_for_watermark(&self, client: &mut Client) -> Result<(), Lost> {
        let timeline = &self.shared.timeline;
        let epoch = timeline.epoch();
        let batch = timeline.take_answered();
        let lowers = !batch.is_empty();
        let asked_at_ms = self.shared.clock.now_ms();
        count(&self.shared.counters.asks, 1);
        let worth = match &self.source {
            Source::Positions(source) => source.ask(client, self.told_last(), lowers).await?,
            Source::Gtids(source) => source.ask(client, self.is_waiting_long(), lowers).await?,
        };
        count(&self.shared.counters.reached, 1);
        if let Some(visible) = worth.visible {
            self.told.set(Some((epoch, visible)));
        }
        let pending = Pending {
            complete: worth.complete,
            epoch,
            asked_at_ms,
            answered_at: Instant::now(),
            batch,
            end_question: None,
        };
        self.await_follower(pending)
    }

    /// The follower has yet to catch up with an answer, unless it has already.
    fn await_follower(&self, pending: Pending) -> Result<(), Lost> {
        self.pending.borrow_mut().push_back(pending);
        self.settle()
    }

    /// Whether the follower should have caught up with an answer by now.
    fn is_waiting_long(&self) -> bool {
        let pending = self.pending.borrow();
        let is_old = |pending: &Pending| pending.answered_at.elapsed() >= self.probe_interval;
        pending.len() >= PENDING_CROWDED || pending.front().is_some_and(is_old)
    }

    /// Whether the proofs wait for an answer whose transactions aren't all in the log, perhaps, and
    /// it isn't known where that ended then. Only a question for the watermark finds that out.
    fn proofs_need_an_end(&self) -> bool {
        let is_waiting_long = self.is_waiting_long();
        let pending = self.pending.borrow();
        let has_end = |pending: &Pending| {
            matches!(
                pending.complete,
                Complete::Transactions { end: Some(_), .. }
            )
        };
        let lacks_end =
            |front: &Pending| matches!(front.complete, Complete::Transactions { end: None, .. });
        is_waiting_long && pending.front().is_some_and(lacks_end) && !pending.iter().any(has_end)
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
            if let Err(lost) = self.settle() {
                return lost;
            }
            let is_waiting =
                oldest.is_some() && oldest == self.pending.borrow().front().map(|p| p.answered_at);
            let is_waiting = is_waiting && !self.progress.check_date().is_too_old();
            if !heard && is_waiting && self.progress.last_event().elapsed() >= self.stuck_after {
                return Lost::Stuck;
            }
        }
    }

    /// The furthest that the server has told: it never goes back.
    fn told_last(&self) -> Position {
        let visible = self.shared.timeline.visible();
        self.told
            .get()
            .map_or(visible, |(_, told)| told.max(visible))
    }

    /// Moves the watermark to what the server has told, as far as the follower has read.
    fn advance(&self) {
        let Some((epoch, told)) = self.told.get() else {
            return;
        };
        let timeline = &self.shared.timeline;
        // First how far it has read: what it has read up to there is noted.
        let applied = timeline.applied();
        let read = told.min(applied);
        let visible = match (&self.source, timeline.broken().surroundings) {
            (Source::Positions(_), BrokenSurroundings::LateCommits) => read,
            (Source::Gtids(_), BrokenSurroundings::LateCommits) => applied,
            _ => self.progress.untold().borrow().visible(read),
        };
        if visible > timeline.visible() {
            timeline.advance_visible(epoch, visible);
            self.shared.visible_bell.notify_waiters();
        }
    }

    /// Lowers and proves what the follower has caught up with.
    fn settle(&self) -> Result<(), Lost> {
        self.advance();
        let shared = self.shared;
        // Before the follower has shown that it reads the right log, its position means nothing.
        let check_date = self.progress.check_date();
        while self.progress.knows_all() && !check_date.is_too_old() {
            self.confirm()?;
            let is_due = |pending: &mut Pending| {
                self.progress.is_confirmed() && self.is_complete(&pending.complete)
            };
            let Some(pending) = self.pending.borrow_mut().pop_front_if(is_due) else {
                break;
            };
            if self.progress.take_resumption() {
                shared.timeline.resume();
            }
            let proved_at_ms = check_date.bound(pending.asked_at_ms);
            if shared.timeline.prove(pending.epoch, proved_at_ms) {
                if let Some(question) = pending.end_question {
                    shared.timeline.prove_end(pending.epoch, question);
                    shared.end_bell.notify_waiters();
                }
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
        Ok(())
    }

    /// Whether the follower has applied it.
    fn is_complete(&self, complete: &Complete) -> bool {
        match complete {
            Complete::At(position) => self.shared.timeline.applied() >= *position,
            Complete::Transactions { executed, end } => {
                let ledger = self.progress.ledger();
                end.is_none() && ledger.is_some_and(|ledger| ledger.borrow().knows(executed))
            }
        }
    }

    /// Where the log ended at an answer, the follower must have applied all that the answer names.
    /// If it lacks something, that was executed past the log: by a replica that doesn't log what it
    /// replicates, say. Nobody knows what it changed.
    fn confirm(&self) -> Result<(), Lost> {
        let Some(ledger) = self.progress.ledger() else {
            return Ok(());
        };
        let applied = self.shared.timeline.applied();
        for pending in &mut *self.pending.borrow_mut() {
            let Complete::Transactions { executed, end } = &mut pending.complete else {
                continue;
            };
            if end.take_if(|end| applied >= *end).is_some()
                && !ledger.borrow_mut().confirm(executed)
            {
                let what = "gtid_executed has transactions that no log has: from SET GLOBAL \
                            gtid_purged, or replicated while log_slave_updates was off";
                return Err(Lost::restart(RestartReason::ChangesUnlogged, what));
            }
        }
        Ok(())
    }
}
