//! One session with the server: the follower, the watermark, the checks and the catalogue's loader,
//! each on a connection of its own, begun and ended together.
//!
//! They belong together because positions only mean something for one running server. If the
//! watermark's connection were made anew by itself, a server put in the old one's place could
//! answer a position that "has been applied already" in another log. So the loss of either ends the
//! session, the timeline is suspended, and the next session proves on the log itself that it goes
//! on where the last one stopped, or starts over.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use remora_cache::Position;
use remora_engine::facts::Instance;
use remora_engine::reason::{RestartReason, StateOutcome};

use super::applier::Start;
use super::check::{check, is_caching_off};
use super::check_date::{AskedAt, CheckDate};
use super::client::Client;
use super::commits::Ledger;
use super::follower::Follower;
use super::loader::{self, ScanLimits};
use super::lost::Lost;
use super::mark::Mark;
use super::place::{FILE_BEGINS_AT, LastEvent};
use super::progress::{KnownCommits, Progress};
use super::recheck::{Checked, Recheck};
use super::saved::{Resumption, SavedLog, Stop, until_settled};
use super::server_facts::{ServerFacts, Visibility};
use super::state::{UpstreamShared, UpstreamState, count};
use super::watermark::{self, Watermark};
use super::{UpstreamConfig, connect};

/// What one session leaves to the next.
pub(super) struct Memory {
    /// The last event applied, if the log may go on from it.
    last: Option<LastEvent>,
    /// Why the next one starts over, if it does.
    reason: RestartReason,
    /// Of the log that goes on.
    commits: KnownCommits,
    /// The server that was followed, and its [`ServerFacts::replication_trace`].
    followed: Option<(Instance, String)>,
    /// The timeline has been restarted since everything was forgotten.
    keeps_results: bool,
    /// What an earlier process has left, until it has been compared with the server.
    resumption: Option<Resumption>,
    /// What is left to the next process, if this one has come to an end where it can be.
    pub(super) saved: Option<SavedLog>,
    /// The session that just ended had followed the right log.
    pub(super) had_followed: bool,
}

impl Memory {
    /// Of a process that has followed nothing yet, and has been left this by an earlier one.
    pub(super) fn new(resumption: Option<Resumption>) -> Memory {
        Memory {
            resumption,
            saved: None,
            last: None,
            reason: RestartReason::FirstStart,
            commits: KnownCommits::none_before(0, None),
            followed: None,
            keeps_results: false,
            had_followed: false,
        }
    }

    fn restart_because(&mut self, reason: RestartReason) {
        self.last = None;
        self.reason = reason;
    }

    /// Whether the log can go on at this server from where it was left.
    fn compare(&mut self, facts: &ServerFacts) {
        let now = (facts.instance.clone(), facts.replication_trace());
        if let Some(before) = self.followed.as_ref().filter(|_| self.last.is_some()) {
            if before.0 != now.0 {
                self.restart_because(RestartReason::LogChanged);
            } else if before.1 != now.1 {
                self.restart_because(RestartReason::ChangesUnlogged);
            } else if self.commits.ledger.is_some() == (facts.visibility() == Visibility::Position)
            {
                // A server of the other family: nothing that is remembered is about its log.
                self.last = None;
            }
        }
        self.followed = Some(now);
    }

    /// What waits for a server that can't be followed doesn't wait for ever.
    fn give_up_what_is_too_old(&mut self) {
        if let Some(left) = self.resumption.take_if(|left| left.is_too_old()) {
            (left.tell)(StateOutcome::TooOld);
        }
    }

    /// Goes on where an earlier process had stopped, if that can be. Once.
    fn resume(&mut self, shared: &UpstreamShared, facts: &ServerFacts) {
        let resumption = self.resumption.take();
        let Some(resumed) = resumption.and_then(|left| left.resume(shared, facts)) else {
            return;
        };
        self.commits = resumed.commits;
        self.last = Some(resumed.last);
        self.keeps_results = true;
    }
}

/// Runs a session until it is lost. Afterwards the timeline is suspended.
pub(super) async fn run(
    config: &UpstreamConfig,
    shared: &UpstreamShared,
    memory: &mut Memory,
    stop: &Stop,
) -> Lost {
    memory.had_followed = false;
    memory.give_up_what_is_too_old();
    let lost = match Box::pin(follow(config, shared, memory, stop)).await {
        Ok(never) => match never {},
        Err(lost) => lost,
    };
    shared.timeline.suspend();
    match &lost {
        Lost::Restart(reason, _) => memory.restart_because(*reason),
        Lost::Unsuitable(_) if memory.keeps_results => {
            // Changes may have been missed since the last check that found nothing.
            memory.restart_because(RestartReason::ServerUnsuitable);
            memory.keeps_results = false;
            shared.timeline.forget();
        }
        Lost::Unsuitable(_) => {
            if let Some(left) = memory.resumption.take() {
                (left.tell)(StateOutcome::Unsuitable);
            }
        }
        Lost::Connection(_) | Lost::Stuck | Lost::PrivilegeGiven | Lost::Stopped => {}
    }
    lost
}

async fn follow(
    config: &UpstreamConfig,
    shared: &UpstreamShared,
    memory: &mut Memory,
    stop: &Stop,
) -> Result<Infallible, Lost> {
    let asked = AskedAt::now(shared);
    let mut control = connect(config).await?;
    count(&shared.counters.reached, 1);
    let facts = ServerFacts::gather(&mut control).await?;
    shared.set_instance(facts.instance.clone());
    shared.set_settings_query(facts.settings_query());
    shared.set_natives(facts.natives());
    shared.set_logins(facts.logins_run_code(), facts.logins_set_next_transaction());
    shared.saw_privilege_settings(facts.privilege_settings());
    let findings = check(&facts, config.server_id);
    if is_caching_off(&findings) {
        return Err(Lost::Unsuitable(findings.into()));
    }
    shared
        .catalogue
        .set_lower_case_table_names(facts.lower_case_table_names().unwrap_or(0));
    let mark = Mark::set(&mut control, config.server_id).await?;
    let checked = Checked {
        facts,
        mark,
        broken: shared.timeline.broken().surroundings,
    };
    let facts = &checked.facts;
    let mut dump = checked.connect(config).await?;
    memory.compare(facts);
    memory.resume(shared, facts);
    let (start, base) = match memory.last.clone() {
        Some(last) => {
            let base = last.name.base.clone();
            if let Some(ledger) = &mut memory.commits.ledger {
                ledger.confirm_again();
            }
            (Start::Again(last), base)
        }
        None => restart(shared, memory, facts, &mut control).await?,
    };
    let is_again = matches!(start, Start::Again(_));
    // The appliers of a replica are never idle.
    let sees_idle = facts.sees_processes && facts.replication.threads == 0;
    let check_date = CheckDate::new(config, asked);
    let commits = std::mem::replace(&mut memory.commits, KnownCommits::none_before(0, None));
    let progress = Progress::new(is_again, commits, sees_idle, check_date);
    let mut follower = Follower::new(config, shared, &progress, start);
    if let Err(lost) = follower.request(config, &mut dump).await {
        drop(follower);
        memory.commits = progress.into_commits();
        return Err(lost);
    }
    count(&shared.counters.connections, 1);
    shared.checked(asked.at_ms());
    // If the timeline had to be restarted, that is done by now: nothing may go by the mark before
    // the timeline is of this server.
    let mark = checked.mark.shown(shared.next_mark_number());
    shared.set_settings_query(facts.settings_query().with_mark(mark));
    shared.set_state(UpstreamState::Following { lagging: true });
    tracing::info!(server = %facts.version, base, "following the binary log");
    let watermark = Watermark::new(config, shared, &progress, facts, &base);
    let recheck = Recheck::new(config, shared, &progress, &checked);
    let lost = tokio::select! {
        lost = follower.run(&mut dump) => lost,
        lost = watermark.run(&mut control) => lost,
        lost = recheck.run() => lost,
        lost = load_catalogue(config, shared, &checked) => lost,
        lost = until_settled(shared, &progress, stop) => lost,
    };
    tracing::debug!(events = follower.events(), "session over");
    memory.had_followed = progress.is_verified();
    memory.last = follower.into_last();
    if matches!(lost, Lost::Stopped) {
        memory.saved = SavedLog::of(memory.last.clone(), &progress, shared, facts);
    }
    drop(watermark);
    memory.commits = progress.into_commits();
    memory.reason = RestartReason::NothingToCompare;
    Err(lost)
}

/// Begins at the beginning of the server's present file: the events there say when the commits of
/// the file before are visible (MariaDB) or which they are (MySQL), and until they are nothing is
/// served.
async fn restart(
    shared: &UpstreamShared,
    memory: &mut Memory,
    facts: &ServerFacts,
    control: &mut Client,
) -> Result<(Start, String), Lost> {
    let question = facts.log_status_question();
    let name = watermark::end_of_log(control, question).await?.name;
    let offset = FILE_BEGINS_AT;
    let at = Position::new(name.number, offset).ok_or_else(|| {
        let what = format!("the log file is named {}", name.file());
        Lost::restart(RestartReason::PositionUnplaceable, what)
    })?;
    let ledger = match facts.visibility() {
        Visibility::Position => None,
        visibility => Some(Ledger::new(visibility, at)),
    };
    memory.commits = KnownCommits::none_before(name.number, ledger);
    shared.table_changes.forget_positions();
    memory.keeps_results = true;
    shared.timeline.restart(at);
    // Between the logs nobody has seen whether they did.
    shared.privileges.changed();
    let reason = memory.reason;
    let index = RestartReason::ALL
        .iter()
        .position(|known| *known == reason)
        .unwrap_or(0);
    shared.counters.restarts[index].fetch_add(1, Ordering::Relaxed);
    tracing::info!(reason = reason.as_str(), position = %at, "the timeline restarts");
    let base = name.base.clone();
    Ok((Start::Anew(name, offset), base))
}

/// Loads tables until something is found about the server, on connections of its own: their loss
/// costs nothing but a reconnection.
async fn load_catalogue(
    config: &UpstreamConfig,
    shared: &UpstreamShared,
    checked: &Checked,
) -> Lost {
    loop {
        match load_on_a_connection(config, shared, checked).await {
            Ok(()) => {}
            Err(Lost::Connection(error)) => {
                tracing::warn!(%error, "can't load table definitions; trying again");
                let wait_ms = config.reconnect_ms_max.min(1_000);
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            }
            Err(lost) => return lost,
        }
    }
}

async fn load_on_a_connection(
    config: &UpstreamConfig,
    shared: &UpstreamShared,
    checked: &Checked,
) -> Result<(), Lost> {
    let privileges = shared.privilege_epoch();
    let limits = ScanLimits {
        time: Duration::from_millis(config.catalogue_scan_timeout_ms),
        views_max: config.catalogue_views_max,
    };
    let mut client = checked.connect(config).await?;
    // Without the privileges it would see fewer triggers and foreign keys than there are.
    checked.look(&mut client, config).await?;
    loader::run(shared, &mut client, &checked.facts, privileges, limits).await?;
    Ok(())
}
