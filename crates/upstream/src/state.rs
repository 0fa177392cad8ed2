//! What the follower's thread tells the others: states, counters, and the bells to ring.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use remora_cache::{Snapshot, Timeline};
use remora_engine::facts::Instance;
use remora_engine::reason::{CachingOff, RestartReason};
use remora_engine::settings::SettingsQuery;
use remora_engine::tags::TableShapes;
use remora_sql::{Dialect, Natives};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::UpstreamConfig;
use super::catalogue::Catalogue;
use super::check::{Finding, Severity};
use super::privileges::Privileges;
use super::table_changes::TableChanges;
use super::want::Wanted;
use crate::clock::{BEGINS_AT_MS, Clock};

/// What the follower is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamState {
    /// It hasn't followed yet.
    Connecting,
    /// The server isn't set up for it: what would have to be fixed.
    CachingOff(Arc<[Finding]>),
    /// The server refused the account or the request; in its words.
    Refused(Arc<str>),
    /// It follows. `lagging`: not proven to be within `lag_ms_max`.
    Following {
        /// Hits have stopped because the last proof is too old, or there is none yet.
        lagging: bool,
    },
    /// It follows, and the last check of the server is older than `check_age_ms_max`.
    Unchecked,
    /// It lost the connection and tries again; why.
    Lost(Arc<str>),
}

impl UpstreamState {
    /// The reason for `/readyz` and `remora_caching`; `None` while results are served.
    pub fn caching_off(&self) -> Option<CachingOff> {
        match self {
            UpstreamState::Connecting => Some(CachingOff::Starting),
            UpstreamState::CachingOff(_) => Some(CachingOff::ServerUnsuitable),
            UpstreamState::Refused(_) => Some(CachingOff::FollowerRefused),
            UpstreamState::Following { lagging: true } => Some(CachingOff::Lagging),
            UpstreamState::Following { lagging: false } => None,
            UpstreamState::Unchecked => Some(CachingOff::Unchecked),
            UpstreamState::Lost(_) => Some(CachingOff::FollowerLost),
        }
    }

    /// The findings that keep caching off; none in other states.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        let all: &[Finding] = match self {
            UpstreamState::CachingOff(findings) => findings,
            _ => &[],
        };
        all.iter()
            .filter(|finding| finding.severity == Severity::CachingOff)
    }
}

/// Counters since the start, and the latest measurements.
#[derive(Debug, Default)]
pub struct UpstreamCounters {
    /// From the server's last answer to a position question until that position was applied,
    /// microseconds; 0 if it was applied already.
    pub lag_us_last: AtomicU64,
    /// The largest of those.
    pub lag_us_max: AtomicU64,
    /// Events read from the log.
    pub events: AtomicU64,
    /// Bytes of events.
    pub event_bytes: AtomicU64,
    /// Events of which only the beginning was read because of their length.
    pub events_oversized: AtomicU64,
    /// Commits applied.
    pub commits: AtomicU64,
    /// Commits that counted as a change of everything.
    pub commits_of_everything: AtomicU64,
    /// Commits with more tables than are told apart.
    pub commits_over_bound: AtomicU64,
    /// Transactions with more tags than are told apart.
    pub transactions_of_many_tags: AtomicU64,
    /// Questions that were not answered in time.
    pub timeouts: AtomicU64,
    /// Times that the server was reached in order to follow it, whatever came of that, and that it
    /// answered then.
    pub reached: AtomicU64,
    /// Connections established to follow the log.
    pub connections: AtomicU64,
    /// Restarts of the timeline, by the index of their reason in [`RestartReason::ALL`].
    pub restarts: [AtomicU64; RestartReason::ALL.len()],
    /// Position questions asked.
    pub asks: AtomicU64,
    /// Questions where the log ends, for reads in transactions.
    pub end_asks: AtomicU64,
    /// Checks of the server after the first of a session.
    pub checks: AtomicU64,
    /// Those that could not be made, or not to the end.
    pub checks_failed: AtomicU64,
    /// Times that the last good check became too old.
    pub checks_late: AtomicU64,
    /// Batches of fences that wait for their position to be applied.
    pub batches_waiting: AtomicU64,
    /// Tables loaded into the catalogue.
    pub catalogue_loads: AtomicU64,
    /// Questions on all foreign keys that were not answered in time.
    pub catalogue_scan_timeouts: AtomicU64,
    /// Rounds of questions in which they were.
    pub catalogue_batches: AtomicU64,
    /// Lists of views given up because there were too many.
    pub catalogue_views_over_bound: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// Hits read it, and what else workers share here is written with each fill.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OnItsOwnLine(AtomicU64);

/// What the follower's thread shares with the workers and the admin thread.
pub struct UpstreamShared {
    /// What tables are.
    pub catalogue: Catalogue,
    /// The shapes by which results are tagged.
    pub shapes: TableShapes,
    /// How often each table was changed.
    pub table_changes: TableChanges,
    /// Counters.
    pub counters: UpstreamCounters,
    /// When privileges changed.
    pub privileges: Arc<Privileges>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) clock: Clock,
    /// Rung when somebody needs a newer watermark, or to know where the log ends.
    pub(super) watermark_bell: Notify,
    pub(super) watermark_wanted: Wanted,
    end_wanted: AtomicBool,
    end_wanted_soon: AtomicBool,
    /// Rung when the follower has applied everything up to an end of the log.
    pub(super) end_bell: Notify,
    /// Rung when the watermark has moved.
    pub(super) visible_bell: Notify,
    /// Rung when the follower has applied more.
    pub(super) applied_bell: Notify,
    /// Rung when the server is to be checked again soon.
    pub(super) check_bell: Notify,
    lag_ms_max: u64,
    check_age_ms_max: u64,
    /// The moment before the questions of the last check that found nothing against caching; 0
    /// before the first.
    checked_at_ms: AtomicU64,
    state: RwLock<UpstreamState>,
    settings_query: RwLock<Option<Arc<SettingsQuery>>>,
    /// The number of the mark that the question asks for.
    mark_number: OnItsOwnLine,
    marks: AtomicU64,
    /// The server that is followed, or was last.
    instance: RwLock<Option<Instance>>,
    logins_run_code: AtomicBool,
    /// The server's settings of privileges, as they were when it was last asked.
    privilege_settings: Mutex<Option<String>>,
    logins_set_next_transaction: AtomicBool,
    /// [`Natives::index`] of the server's functions.
    natives: AtomicU8,
}

impl UpstreamShared {
    /// For one server. `clock` must be the one that the sessions read.
    pub fn new(config: &UpstreamConfig, timeline: Arc<Timeline>, clock: Clock) -> UpstreamShared {
        UpstreamShared {
            catalogue: Catalogue::new(
                Arc::clone(&timeline),
                config.catalogue_tables_max,
                config.catalogue_queue_max,
                config.catalogue_batch_max,
            ),
            shapes: TableShapes::new(Arc::clone(&timeline), config.shapes),
            table_changes: TableChanges::new(config.table_counts_max),
            counters: UpstreamCounters::default(),
            timeline,
            clock,
            watermark_bell: Notify::new(),
            watermark_wanted: Wanted::default(),
            end_wanted: AtomicBool::new(false),
            end_wanted_soon: AtomicBool::new(false),
            end_bell: Notify::new(),
            visible_bell: Notify::new(),
            applied_bell: Notify::new(),
            privileges: Arc::default(),
            check_bell: Notify::new(),
            lag_ms_max: config.lag_ms_max,
            check_age_ms_max: config.check_age_ms_max,
            checked_at_ms: AtomicU64::new(0),
            state: RwLock::new(UpstreamState::Connecting),
            settings_query: RwLock::new(None),
            mark_number: OnItsOwnLine::default(),
            marks: AtomicU64::new(0),
            instance: RwLock::new(None),
            logins_run_code: AtomicBool::new(true),
            privilege_settings: Mutex::new(None),
            logins_set_next_transaction: AtomicBool::new(false),
            natives: AtomicU8::new(Natives::Oldest.index()),
        }
    }

    /// A newer watermark is needed soon: somebody waits for it, or a fill would be outdated as soon
    /// as it is kept.
    pub fn wake(&self) {
        if self.watermark_wanted.soon() {
            self.watermark_bell.notify_one();
        }
    }

    /// A newer watermark lowers a fence that was answered. Unless somebody is turned away for that
    /// fence ([`UpstreamShared::turned_away`]), there is time.
    pub fn want_watermark(&self) {
        if self.watermark_wanted.in_time() {
            self.watermark_bell.notify_one();
        }
    }

    /// Somebody wasn't served from memory for want of a newer watermark. If one is wanted, it is
    /// asked for soon.
    pub fn turned_away(&self) {
        if self.watermark_wanted.turned_away() {
            self.watermark_bell.notify_one();
        }
    }

    /// The server is to be asked at once where its log ends: a transaction waits for a proof about
    /// its snapshot. A question that is on its way is too early.
    pub fn ask_for_end(&self) {
        if !self.end_wanted.swap(true, Ordering::SeqCst) {
            self.watermark_bell.notify_one();
        }
    }

    /// The same when there is time: nobody waits, but what a transaction reads can be kept only
    /// with such a proof.
    pub fn ask_for_end_soon(&self) {
        if !self.end_wanted_soon.swap(true, Ordering::SeqCst) {
            self.watermark_bell.notify_one();
        }
    }

    /// Whether it is wanted where the log ends.
    pub(super) fn is_end_wanted(&self) -> bool {
        self.end_wanted.load(Ordering::SeqCst)
    }

    /// Whether where the log ends is wanted, though nobody waits for it.
    pub(super) fn is_end_wanted_soon(&self) -> bool {
        self.end_wanted_soon.load(Ordering::SeqCst)
    }

    /// The server is about to be asked where its log ends.
    pub(super) fn take_end_wanted(&self) {
        self.end_wanted.store(false, Ordering::SeqCst);
        self.end_wanted_soon.store(false, Ordering::SeqCst);
    }

    /// Asks where the log ends, and waits until the follower is proven to have applied all that the
    /// snapshot can show. Gives whether that was so within `limit`.
    pub async fn until_covered(&self, snapshot: Snapshot, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            let proven = self.end_bell.notified();
            if self.timeline.covers(snapshot) {
                return true;
            }
            self.ask_for_end();
            if timeout_at(deadline, proven).await.is_err() {
                return self.timeline.covers(snapshot);
            }
        }
    }

    /// How often privileges are known to have changed.
    #[inline]
    pub fn privilege_epoch(&self) -> u64 {
        self.privileges.epoch()
    }

    /// The dialect, as a server of this age reads it.
    pub fn aged(&self, dialect: Dialect) -> Dialect {
        Dialect {
            natives: self.natives(),
            ..dialect
        }
    }

    fn natives(&self) -> Natives {
        Natives::from_index(self.natives.load(Ordering::SeqCst))
    }

    /// Whether a statement that names no table leaves the server's list of warnings as it is.
    #[inline]
    pub fn keeps_warnings(&self) -> bool {
        self.natives().keep_warnings()
    }

    /// Whether a login may run statements of the server's, which the session hasn't sent.
    pub fn logins_run_code(&self) -> bool {
        self.logins_run_code.load(Ordering::SeqCst)
    }

    /// Whether one of those may say what the session's first transaction is like.
    pub fn logins_set_next_transaction(&self) -> bool {
        self.logins_set_next_transaction.load(Ordering::SeqCst)
    }

    pub(super) fn set_logins(&self, run_code: bool, set_next_transaction: bool) {
        self.logins_run_code.store(run_code, Ordering::SeqCst);
        self.logins_set_next_transaction
            .store(set_next_transaction, Ordering::SeqCst);
    }

    /// The server has these settings of privileges. If it had others before, what sessions may read
    /// has changed, without a word in the log.
    pub(super) fn saw_privilege_settings(&self, settings: String) {
        let mut known = self
            .privilege_settings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() == Some(&settings) {
            return;
        }
        if known.replace(settings).is_some() {
            tracing::info!(
                "the server's settings of privileges have changed, everything is forgotten"
            );
            // In this order, as for a change through Remora: a session from before it doesn't fill
            // what a later one finds.
            self.privileges.changed();
            self.timeline.forget();
        }
    }

    /// Those that it had then.
    pub(super) fn privilege_settings(&self) -> Option<String> {
        let known = self.privilege_settings.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_natives(&self, natives: Natives) {
        self.natives.store(natives.index(), Ordering::SeqCst);
    }

    /// The question for a session's settings; `None` until the server is known.
    pub fn settings_query(&self) -> Option<Arc<SettingsQuery>> {
        self.settings_query
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The question that sessions ask from now on. One without a mark takes the place only of one
    /// for other settings.
    pub(super) fn set_settings_query(&self, query: SettingsQuery) {
        let mut slot = self
            .settings_query
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let is_known = slot.as_deref().is_some_and(|old| old.is_like(&query));
        if query.mark_number() == 0 && is_known {
            return;
        }
        let number = query.mark_number();
        self.mark_number.0.store(number, Ordering::SeqCst);
        *slot = Some(Arc::new(query));
    }

    /// The number of the mark by which a session knows that it is on the server that is followed.
    /// What a session has seen of another mark says nothing any more.
    #[inline]
    pub fn mark_number(&self) -> u64 {
        self.mark_number.0.load(Ordering::SeqCst)
    }

    /// A number that no mark has had.
    pub(super) fn next_mark_number(&self) -> u64 {
        self.marks.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether a session that speaks to this server speaks to the one that is followed.
    pub fn follows(&self, instance: &Instance) -> bool {
        let followed = self.instance.read().unwrap_or_else(PoisonError::into_inner);
        followed.as_ref() == Some(instance)
    }

    pub(super) fn set_instance(&self, instance: Instance) {
        let mut followed = self
            .instance
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *followed = Some(instance);
    }

    /// What the follower is doing.
    pub fn state(&self) -> UpstreamState {
        let state = self
            .state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match state {
            // Until the views are known, each statement that reads a table may run code.
            UpstreamState::Following { .. } if !self.catalogue.hidden_code.was_asked() => {
                UpstreamState::Connecting
            }
            UpstreamState::Following { .. } if self.check_age_ms() > self.check_age_ms_max => {
                UpstreamState::Unchecked
            }
            UpstreamState::Following { .. } => {
                let age = self
                    .clock
                    .now_ms()
                    .saturating_sub(self.timeline.proved_at_ms());
                let lagging = !self.timeline.is_live() || age > self.lag_ms_max;
                UpstreamState::Following { lagging }
            }
            other => other,
        }
    }

    /// The time since the questions of the last check that found nothing against caching,
    /// milliseconds; since the start, before the first.
    pub fn check_age_ms(&self) -> u64 {
        let checked_at_ms = self.checked_at_ms().unwrap_or(BEGINS_AT_MS);
        self.clock.now_ms().saturating_sub(checked_at_ms)
    }

    /// The same; `None` before the first.
    pub fn check_age(&self) -> Option<Duration> {
        self.checked_at_ms()?;
        Some(Duration::from_millis(self.check_age_ms()))
    }

    pub(super) fn checked_at_ms(&self) -> Option<u64> {
        let checked_at_ms = self.checked_at_ms.load(Ordering::Relaxed);
        (checked_at_ms > 0).then_some(checked_at_ms)
    }

    pub(super) fn checked(&self, at_ms: u64) {
        self.checked_at_ms.store(at_ms, Ordering::Relaxed);
    }

    pub(super) fn set_state(&self, state: UpstreamState) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// How often the server was reached in order to follow it.
    pub fn reached(&self) -> u64 {
        self.counters.reached.load(Ordering::Relaxed)
    }

    /// How often the timeline was restarted, by the label of the reason.
    pub fn restarts(&self) -> Vec<(&'static str, u64)> {
        let counts = self
            .counters
            .restarts
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        RestartReason::ALL
            .iter()
            .map(|reason| reason.as_str())
            .zip(counts)
            .collect()
    }
}
