//! One session with the server: the follower, the watermark, the checks and the catalogue's loader,
//! each on a connection of its own, begun and ended together.
//!
//! They belong together because positions only mean something for one running server. If the
//! watermark's connection were made anew by itself, a server put in the old one's place could
//! answer a position that "has been applied already" in another log. So the loss of either ends the
//! session, the timeline is suspended, and the next session proves on the log itself that it goes
//! on where the last one stopped, or begins anew.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use remora_cache::Position;
use remora_engine::facts::Instance;
use remora_engine::reason::{RestartReason, StateOutcome};
use tokio::time::Instant;

use super::applier::Start;
use super::catalogue::loader::{self, ScanLimits};
use super::check::{Finding, check, is_caching_off};
use super::client::{Client, ClientError};
use super::follower::Follower;
use super::mark::Mark;
use super::place::LastEvent;
use super::recheck::{Asked, CheckDate, Checked, Recheck};
use super::saved::{Resumption, SavedLog, Stop, until_settled};
use super::server_facts::{ServerFacts, Visibility};
use super::state::{UpstreamShared, UpstreamState, count};
use super::watermark::{self, Ledger, UnorderedTables, UntoldCommits, Watermark};
use super::{UpstreamConfig, connect};

/// The offset of a log file's first event, behind the file's magic number.
pub(super) const FILE_BEGINS_AT: u64 = 4;

/// Why a session ended.
#[derive(Debug)]
pub(super) enum Lost {
    /// A connection failed. Whether the log goes on is for the next session to prove.
    Connection(ClientError),
    /// The follower doesn't arrive where the server says that it is.
    Stuck,
    /// The server isn't set up to be followed.
    Unsuitable(Arc<[Finding]>),
    /// The log doesn't go on: everything is forgotten and the next session begins anew.
    Restart(RestartReason, String),
    /// The account has been given a privilege that only new connections have.
    PrivilegeGiven,
    /// Remora stops, and nothing is on its way any more.
    Stopped,
}

impl Lost {
    pub(super) fn restart(reason: RestartReason, what: impl Into<String>) -> Lost {
        Lost::Restart(reason, what.into())
    }

    /// What happened, in a line.
    pub(super) fn describe(&self) -> String {
        match self {
            Lost::Connection(error) => error.to_string(),
            Lost::Stuck => "no event came although the server's log went on".to_owned(),
            Lost::Unsuitable(_) => "the server isn't set up to be followed".to_owned(),
            Lost::Restart(reason, what) => format!("{} ({what})", reason.describe()),
            Lost::PrivilegeGiven => {
                "the account has been given PROCESS, which new connections have".to_owned()
            }
            Lost::Stopped => "Remora stops".to_owned(),
        }
    }
}

impl From<ClientError> for Lost {
    fn from(error: ClientError) -> Lost {
        Lost::Connection(error)
    }
}

/// How far a session has come; shared by its parts, which run on one thread.
#[derive(Debug)]
pub(super) struct Progress {
    verified: Cell<bool>,
    resumption_due: Cell<bool>,
    last_event: Cell<Instant>,
    /// Every commit in files before this one is visible.
    settled_file: Cell<u64>,
    /// Where the last commit ended that was applied.
    last_commit: Cell<Position>,
    /// The file in which the timeline was begun anew. What lies before it was never read.
    start_file: u64,
    /// MySQL's transactions; none on MariaDB.
    ledger: Option<RefCell<Ledger>>,
    /// MariaDB's commits that its position doesn't tell; none on MySQL, whose ledger has them.
    untold: RefCell<UntoldCommits>,
    /// What MariaDB changed in such commits that nothing else tells, either.
    unordered: RefCell<UnorderedTables>,
    /// The account sees when the server's other connections are idle, and they are at times.
    sees_idle: bool,
    check_date: CheckDate,
}

impl Progress {
    fn new(resumes: bool, memory: &mut Memory, sees_idle: bool, check_date: CheckDate) -> Progress {
        Progress {
            verified: Cell::new(false),
            resumption_due: Cell::new(resumes),
            last_event: Cell::new(Instant::now()),
            settled_file: Cell::new(memory.settled_file),
            last_commit: Cell::new(memory.last_commit),
            start_file: memory.start_file,
            ledger: memory.ledger.take().map(RefCell::new),
            untold: RefCell::new(std::mem::take(&mut memory.untold)),
            unordered: RefCell::new(std::mem::take(&mut memory.unordered)),
            sees_idle,
            check_date,
        }
    }

    /// For the simulation: the progress of a first session with MariaDB.
    #[cfg(any(test, fuzzing))]
    pub(super) fn simulated(shared: &UpstreamShared) -> Progress {
        let check_date = CheckDate::with_bounds(u64::MAX, 0, Asked::now(shared));
        Progress::new(false, &mut Memory::new(None), true, check_date)
    }

    /// What the follower knows of MySQL's transactions; none on MariaDB.
    pub(super) fn ledger(&self) -> Option<&RefCell<Ledger>> {
        self.ledger.as_ref()
    }

    /// The commits that MariaDB's position doesn't tell, and that wait for something else to.
    pub(super) fn untold(&self) -> &RefCell<UntoldCommits> {
        &self.untold
    }

    /// The tables that were changed in commits that nothing tells.
    pub(super) fn unordered(&self) -> &RefCell<UnorderedTables> {
        &self.unordered
    }

    /// Whether it can be known when all connections have been idle.
    pub(super) fn sees_idle(&self) -> bool {
        self.sees_idle
    }

    /// Leaves what is known of commits to the next session.
    fn leave(self, memory: &mut Memory) {
        memory.ledger = self.ledger.map(RefCell::into_inner);
        memory.untold = self.untold.into_inner();
        memory.unordered = self.unordered.into_inner();
    }

    /// The stream has been shown to be the right log.
    pub(super) fn verified(&self) {
        self.verified.set(true);
    }

    pub(super) fn is_verified(&self) -> bool {
        self.verified.get()
    }

    /// Every commit in files before this one is visible.
    pub(super) fn settled(&self, file_number: u64) {
        self.settled_file
            .set(self.settled_file.get().max(file_number));
    }

    pub(super) fn settled_file(&self) -> u64 {
        self.settled_file.get()
    }

    /// A commit was applied that ended at `at`.
    pub(super) fn changed(&self, at: Position) {
        self.last_commit.set(at);
    }

    pub(super) fn last_commit(&self) -> Position {
        self.last_commit.get()
    }

    /// Whether the follower knows all that may still become visible: it doesn't while a commit in a
    /// file that it never read is on its way.
    pub(super) fn knows_all(&self) -> bool {
        let is_base_visible = match &self.ledger {
            Some(ledger) => ledger.borrow().is_base_visible(),
            None => self.settled_file() >= self.start_file,
        };
        self.is_verified() && is_base_visible
    }

    /// An event arrived that isn't a heartbeat, or more of one that takes several reads.
    pub(super) fn saw_event(&self) {
        self.last_event.set(Instant::now());
    }

    pub(super) fn last_event(&self) -> Instant {
        self.last_event.get()
    }

    /// How old the last good check of the server is.
    pub(super) fn check_date(&self) -> &CheckDate {
        &self.check_date
    }

    /// The timeline is suspended until the next proof.
    pub(super) fn resume_when_proven(&self) {
        self.resumption_due.set(true);
    }

    /// The file in which the timeline was begun anew.
    pub(super) fn start_file(&self) -> u64 {
        self.start_file
    }

    /// True once, if the timeline is still suspended from the session before, or from when the
    /// server could not be checked.
    pub(super) fn take_resumption(&self) -> bool {
        self.resumption_due.replace(false)
    }
}

/// What one session leaves to the next.
pub(super) struct Memory {
    /// The last event applied, if the log may go on from it.
    last: Option<LastEvent>,
    /// Why the next one begins anew, if it does.
    reason: RestartReason,
    /// Of the log that goes on: every commit in files before this one is visible.
    settled_file: u64,
    /// Where the last commit ended that was applied.
    last_commit: Position,
    /// The file in which the timeline was begun anew.
    start_file: u64,
    /// What is known of MySQL's transactions.
    ledger: Option<Ledger>,
    /// MariaDB's commits that its position doesn't tell.
    untold: UntoldCommits,
    /// What MariaDB changed in such commits that nothing else tells, either.
    unordered: UnorderedTables,
    /// The server that was followed, and how far it had replicated what isn't in its log.
    followed: Option<(Instance, String)>,
    /// The timeline has been begun anew since everything was forgotten.
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
            settled_file: 0,
            last_commit: Position::ZERO,
            start_file: 0,
            ledger: None,
            untold: UntoldCommits::default(),
            unordered: UnorderedTables::default(),
            followed: None,
            keeps_results: false,
            had_followed: false,
        }
    }

    fn begin_anew_because(&mut self, reason: RestartReason) {
        self.last = None;
        self.reason = reason;
    }

    /// Whether the log can go on at this server from where it was left.
    fn compare(&mut self, facts: &ServerFacts) {
        let replicated = facts.replicated_unlogged().to_owned();
        let now = (facts.instance.clone(), replicated);
        if let Some(before) = self.followed.as_ref().filter(|_| self.last.is_some()) {
            if before.0 != now.0 {
                self.begin_anew_because(RestartReason::LogChanged);
            } else if before.1 != now.1 {
                self.begin_anew_because(RestartReason::ChangesUnlogged);
            } else if self.ledger.is_some() == (facts.visibility() == Visibility::Position) {
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
        self.settled_file = resumed.settled_file;
        self.last_commit = resumed.last_commit;
        self.start_file = resumed.start_file;
        self.ledger = resumed.ledger;
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
        Lost::Restart(reason, _) => memory.begin_anew_because(*reason),
        Lost::Unsuitable(_) if memory.keeps_results => {
            // Changes may have been missed since the last check that found nothing.
            memory.begin_anew_because(RestartReason::ServerUnsuitable);
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
    let asked = Asked::now(shared);
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
            (Start::Again(last), base)
        }
        None => begin_anew(shared, memory, facts, &mut control).await?,
    };
    let is_again = matches!(start, Start::Again(_));
    // The appliers of a replica are never idle.
    let sees_idle = facts.sees_processes && facts.replica_threads == 0;
    let check_date = CheckDate::new(config, asked);
    let progress = Progress::new(is_again, memory, sees_idle, check_date);
    let server_id = facts.instance.server_id;
    let mut follower = Follower::new(config, shared, &progress, server_id, start);
    if let Err(lost) = follower.request(config, &mut dump).await {
        drop(follower);
        progress.leave(memory);
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
    memory.settled_file = progress.settled_file();
    memory.last_commit = progress.last_commit();
    drop(watermark);
    progress.leave(memory);
    memory.reason = RestartReason::NothingToCompare;
    Err(lost)
}

/// Begins at the beginning of the server's present file: the events there say when the commits of
/// the file before are visible (MariaDB) or which they are (MySQL), and until they are nothing is
/// served.
async fn begin_anew(
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
    memory.settled_file = 0;
    memory.last_commit = Position::ZERO;
    memory.start_file = name.number;
    memory.ledger = match facts.visibility() {
        Visibility::Position => None,
        visibility => Some(Ledger::new(visibility, at)),
    };
    memory.untold = UntoldCommits::default();
    memory.unordered = UnorderedTables::default();
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
