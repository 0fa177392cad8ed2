//! What one process leaves to the next: where it had stopped following, and on which server.
//!
//! It is the memory of a session with the server, in a form that can be written down. The next
//! process goes on as after a lost connection: the last event that was applied must come first and
//! be the same. That proves that the log is the same one and that nothing of it is missed.
//!
//! A process leaves something only if it is *settled*: no fence waits to be lowered, every commit
//! that it has read is known to be visible, and it knows of none that it hasn't read. So nothing
//! that is on its way has to be written down. [`remora_cache::SavedResults`] has the argument for
//! the results.

use std::time::Duration;

use remora_binlog::GtidSet;
use remora_cache::{Position, SavedResults, Timeline};
use remora_engine::facts::Instance;
use remora_engine::reason::StateOutcome;
use remora_engine::settings::SettingsQuery;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::commits::{Ledger, UnorderedTables, UntoldCommits};
use super::lost::Lost;
use super::place::LastEvent;
use super::progress::{KnownCommits, Progress};
use super::server_facts::{ServerFacts, Visibility};
use super::state::UpstreamShared;

/// While it isn't settled, the server is asked again after this.
const SETTLING_INTERVAL: Duration = Duration::from_millis(5);

/// Where a process had stopped following, and on which server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLog {
    /// The last event applied.
    pub(super) last: LastEvent,
    /// Every commit in files before this one is visible.
    pub(super) settled_file: u64,
    /// The file in which the timeline was restarted.
    pub(super) start_file: u64,
    /// Where the last commit ended that was applied: [`Position::to_bits`].
    last_commit: u64,
    /// Everything up to here had been applied, and can be seen: [`Position::to_bits`].
    end: u64,
    /// All transactions up to there; none on MariaDB.
    transactions: Option<String>,
    /// From where the server sees Remora connect: privileges belong to hosts.
    seen_from: String,
    instance: Instance,
    replication_trace: String,
    privilege_settings: String,
    asked_fields: String,
}

/// Takes the results over, once it is certain that the log goes on. It is given the question that
/// sessions ask.
pub type TakeResults =
    Box<dyn FnOnce(&SettingsQuery, SavedResults) -> Result<(), StateOutcome> + Send>;

/// What another process has left.
pub struct Resumption {
    /// Where it had stopped.
    pub log: SavedLog,
    /// From then on it is too old.
    pub good_until: Instant,
    /// Takes its results over.
    pub take_results: TakeResults,
    /// Told once what has become of it.
    pub tell: Box<dyn Fn(StateOutcome) + Send>,
}

/// What a session goes on with after a resumption.
pub(super) struct Resumed {
    pub(super) last: LastEvent,
    pub(super) commits: KnownCommits,
}

impl SavedLog {
    /// What is left of a settled process. `None` if it isn't.
    pub(super) fn of(
        last: Option<LastEvent>,
        progress: &Progress,
        shared: &UpstreamShared,
        facts: &ServerFacts,
    ) -> Option<SavedLog> {
        let timeline = &shared.timeline;
        if !is_settled(progress, timeline) {
            return None;
        }
        Some(SavedLog {
            last: last?,
            settled_file: progress.settled_file(),
            start_file: progress.start_file(),
            last_commit: progress.last_commit().to_bits(),
            end: timeline.visible().to_bits(),
            transactions: progress.ledger().map(|ledger| ledger.borrow().applied()),
            seen_from: facts.seen_from.clone(),
            instance: facts.instance.clone(),
            replication_trace: facts.replication_trace(),
            // They may have changed since the session began.
            privilege_settings: shared.privilege_settings()?,
            asked_fields: facts.settings_query().asked_fields().to_owned(),
        })
    }

    /// What a session goes on with on this server. What is wrong with it, if something is: then
    /// nothing of what was left holds.
    fn compare(self, facts: &ServerFacts) -> Result<Resumed, StateOutcome> {
        let is_same_server =
            self.instance == facts.instance && self.replication_trace == facts.replication_trace();
        let visibility = facts.visibility();
        let ledger = match (self.transactions, visibility) {
            (None, Visibility::Position) => None,
            (Some(transactions), Visibility::Gtids { .. } | Visibility::NeverTold) => {
                let applied: Option<GtidSet> = transactions.parse().ok();
                let applied = applied.ok_or(StateOutcome::Damaged)?;
                Some(Ledger::resumed(visibility, applied))
            }
            _ => return Err(StateOutcome::OtherServer),
        };
        if !is_same_server {
            return Err(StateOutcome::OtherServer);
        }
        if self.privilege_settings != facts.privilege_settings()
            || self.seen_from != facts.seen_from
            || self.asked_fields != facts.settings_query().asked_fields()
        {
            return Err(StateOutcome::OtherSettings);
        }
        Ok(Resumed {
            last: self.last,
            commits: KnownCommits {
                settled_file: self.settled_file,
                // A settled process has seen all before it.
                checkpoint: None,
                last: Position::from_bits(self.last_commit),
                start_file: self.start_file,
                ledger,
                // A settled process has none.
                untold: UntoldCommits::default(),
                unordered: UnorderedTables::default(),
            },
        })
    }
}

impl Resumption {
    /// Whether it has waited too long for the server.
    pub(super) fn is_too_old(&self) -> bool {
        Instant::now() >= self.good_until
    }

    /// Begins where the other process had stopped, and takes its results over. `None` if that can't
    /// be: then the session starts over, and with it everything is forgotten that was taken over.
    pub(super) fn resume(self, shared: &UpstreamShared, facts: &ServerFacts) -> Option<Resumed> {
        let end = Position::from_bits(self.log.end);
        let is_good = (!self.is_too_old()).then_some(());
        let resumed = is_good.ok_or(StateOutcome::TooOld).and_then(|()| {
            let resumed = self.log.compare(facts)?;
            let results = shared.timeline.resume_saved(end);
            let results = results.ok_or(StateOutcome::Forgotten)?;
            (self.take_results)(&facts.settings_query(), results)?;
            Ok(resumed)
        });
        let outcome = resumed.as_ref().err().copied();
        (self.tell)(outcome.unwrap_or(StateOutcome::Restored));
        resumed.ok()
    }
}

/// Whether nothing is on its way that the next process would have to know of. Everything that the
/// session has read of the log is applied and can be seen.
fn is_settled(progress: &Progress, timeline: &Timeline) -> bool {
    let is_ledger_settled = |ledger: &std::cell::RefCell<Ledger>| ledger.borrow().is_settled();
    progress.knows_all()
        && timeline.visible() >= progress.last_commit()
        && progress.ledger().is_none_or(is_ledger_settled)
        && progress.untold().borrow().is_empty()
        && !progress.unordered().borrow().has_fences()
}

/// Waits until Remora is to stop, and then until it is settled, all fences are lowered, and the
/// server has been checked once more.
pub(super) async fn until_settled(
    shared: &UpstreamShared,
    progress: &Progress,
    stop: &Stop,
) -> Lost {
    stop.asked().await;
    let timeline = &shared.timeline;
    let stopped_at_ms = shared.clock.now_ms();
    let is_checked = || shared.checked_at_ms() >= Some(stopped_at_ms);
    shared.check_bell.notify_one();
    while timeline.has_fences() || !is_settled(progress, timeline) || !is_checked() {
        let moved = shared.visible_bell.notified();
        shared.wake();
        // Whether fences have been lowered is told by no bell.
        let _ = timeout(SETTLING_INTERVAL, moved).await;
    }
    Lost::Stopped
}

/// Tells a session that Remora is about to stop.
#[derive(Debug)]
pub(super) struct Stop(tokio::sync::watch::Sender<bool>);

impl Stop {
    pub(super) fn new() -> Stop {
        Stop(tokio::sync::watch::Sender::new(false))
    }

    /// Remora is about to stop.
    pub(super) fn ask(&self) {
        self.0.send_replace(true);
    }

    async fn asked(&self) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|asked| *asked).await;
    }
}
