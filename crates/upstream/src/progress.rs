//! How far a session with the server has come, and what it knows of the log's commits.

use std::cell::{Cell, RefCell};

use remora_cache::Position;
use tokio::time::Instant;

use crate::check_date::CheckDate;
use crate::commits::{Ledger, UnorderedTables, UntoldCommits};

/// What is known of the log's commits. One session hands it to the next.
#[derive(Debug)]
pub(crate) struct KnownCommits {
    /// Every commit in files before this one is visible.
    pub(crate) settled_file: u64,
    /// Where the last checkpoint event ended, unless all before it is known to be visible.
    pub(crate) checkpoint: Option<Position>,
    /// Where the last commit ended that was applied.
    pub(crate) last: Position,
    /// The file in which the timeline was restarted. What lies before it was never read.
    pub(crate) start_file: u64,
    /// MySQL's transactions; none on MariaDB.
    pub(crate) ledger: Option<Ledger>,
    /// MariaDB's commits that its position doesn't tell; none on MySQL, whose ledger has them.
    pub(crate) untold: UntoldCommits,
    /// What MariaDB changed in such commits that nothing else tells, either.
    pub(crate) unordered: UnorderedTables,
}

impl KnownCommits {
    /// No commit is known yet. Nothing before this file was read.
    pub(crate) fn none_before(start_file: u64, ledger: Option<Ledger>) -> KnownCommits {
        KnownCommits {
            settled_file: 0,
            checkpoint: None,
            last: Position::ZERO,
            start_file,
            ledger,
            untold: UntoldCommits::default(),
            unordered: UnorderedTables::default(),
        }
    }
}

/// How far a session has come; shared by its parts, which run on one thread.
#[derive(Debug)]
pub(crate) struct Progress {
    verified: Cell<bool>,
    resumption_due: Cell<bool>,
    last_event: Cell<Instant>,
    /// Every commit in files before this one is visible.
    settled_file: Cell<u64>,
    /// Where the last checkpoint event ended that said so.
    checkpoint: Cell<Option<Position>>,
    /// Where the last commit ended that was applied.
    last_commit: Cell<Position>,
    /// The file in which the timeline was restarted. What lies before it was never read.
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
    /// `resumes`: the timeline is suspended, and goes on.
    pub(crate) fn new(
        resumes: bool,
        commits: KnownCommits,
        sees_idle: bool,
        check_date: CheckDate,
    ) -> Progress {
        Progress {
            verified: Cell::new(false),
            resumption_due: Cell::new(resumes),
            last_event: Cell::new(Instant::now()),
            settled_file: Cell::new(commits.settled_file),
            checkpoint: Cell::new(commits.checkpoint),
            last_commit: Cell::new(commits.last),
            start_file: commits.start_file,
            ledger: commits.ledger.map(RefCell::new),
            untold: RefCell::new(commits.untold),
            unordered: RefCell::new(commits.unordered),
            sees_idle,
            check_date,
        }
    }

    /// For the simulation: the progress of a first session with MariaDB.
    #[cfg(any(test, fuzzing, feature = "simulation"))]
    pub(crate) fn simulated(shared: &crate::UpstreamShared) -> Progress {
        let asked = crate::check_date::AskedAt::now(shared);
        let check_date = CheckDate::with_bounds(u64::MAX, 0, asked);
        Progress::new(false, KnownCommits::none_before(0, None), true, check_date)
    }

    /// What the follower knows of MySQL's transactions; none on MariaDB.
    pub(crate) fn ledger(&self) -> Option<&RefCell<Ledger>> {
        self.ledger.as_ref()
    }

    /// The commits that MariaDB's position doesn't tell, and that wait for something else to.
    pub(crate) fn untold(&self) -> &RefCell<UntoldCommits> {
        &self.untold
    }

    /// The tables that were changed in commits that nothing tells.
    pub(crate) fn unordered(&self) -> &RefCell<UnorderedTables> {
        &self.unordered
    }

    /// Whether it can be known when all connections have been idle.
    pub(crate) fn sees_idle(&self) -> bool {
        self.sees_idle
    }

    /// Leaves what is known of commits to the next session.
    pub(crate) fn into_commits(self) -> KnownCommits {
        KnownCommits {
            settled_file: self.settled_file.get(),
            checkpoint: self.checkpoint.get(),
            last: self.last_commit.get(),
            start_file: self.start_file,
            ledger: self.ledger.map(RefCell::into_inner),
            untold: self.untold.into_inner(),
            unordered: self.unordered.into_inner(),
        }
    }

    /// The stream has been shown to be the right log.
    pub(crate) fn verified(&self) {
        self.verified.set(true);
    }

    pub(crate) fn is_verified(&self) -> bool {
        self.verified.get()
    }

    /// Every commit in files before this one is visible: so says a checkpoint event, which ends at
    /// `checkpoint`.
    pub(crate) fn settled(&self, file_number: u64, checkpoint: Position) {
        self.checkpoint.set(Some(checkpoint));
        self.settled_file
            .set(self.settled_file.get().max(file_number));
    }

    pub(crate) fn checkpoint(&self) -> Option<Position> {
        self.checkpoint.get()
    }

    pub(crate) fn settled_file(&self) -> u64 {
        self.settled_file.get()
    }

    /// A commit was applied that ended at `at`.
    pub(crate) fn changed(&self, at: Position) {
        self.last_commit.set(at);
    }

    pub(crate) fn last_commit(&self) -> Position {
        self.last_commit.get()
    }

    /// Whether the follower knows all that may still become visible: it doesn't while a commit in a
    /// file that it never read is on its way.
    pub(crate) fn knows_all(&self) -> bool {
        let is_base_visible = match &self.ledger {
            Some(ledger) => ledger.borrow().is_base_visible(),
            None => self.settled_file() >= self.start_file,
        };
        self.is_verified() && is_base_visible
    }

    /// Whether it is known that the server has executed nothing past the log while nobody followed.
    /// Always true on MariaDB, whose answers tell nothing of this. There `Memory::compare` does it,
    /// with `ServerFacts::replication_trace`.
    pub(crate) fn is_confirmed(&self) -> bool {
        let ledger = self.ledger.as_ref();
        ledger.is_none_or(|ledger| ledger.borrow().is_confirmed())
    }

    /// An event arrived that isn't a heartbeat, or more of one that takes several reads.
    pub(crate) fn saw_event(&self) {
        self.last_event.set(Instant::now());
    }

    pub(crate) fn last_event(&self) -> Instant {
        self.last_event.get()
    }

    /// How old the last good check of the server is.
    pub(crate) fn check_date(&self) -> &CheckDate {
        &self.check_date
    }

    /// The timeline is suspended until the next proof.
    pub(crate) fn resume_when_proven(&self) {
        self.resumption_due.set(true);
    }

    /// The file in which the timeline was restarted.
    pub(crate) fn start_file(&self) -> u64 {
        self.start_file
    }

    /// True once, if the timeline is still suspended from the session before, or from when the
    /// server could not be checked.
    pub(crate) fn take_resumption(&self) -> bool {
        self.resumption_due.replace(false)
    }
}
