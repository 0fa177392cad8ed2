//! A follower on a thread of its own.

use std::sync::Arc;
use std::thread::JoinHandle;

use remora_cache::{
    AsOf, BrokenRules, FenceScope, ShapesLimits, Tag, Timeline, TimelineLimits, Unservable,
};
use remora_engine::facts::TableFacts;
use remora_engine::reason::RestartReason;
use remora_upstream::catalogue::Lookup;
use remora_upstream::client::Account;
use remora_upstream::clock::Clock;
use remora_upstream::{UpstreamConfig, UpstreamShared, UpstreamState};

use super::server::{PASSWORD, Server, link_to, wait_until};

const LAG_MS_MAX: u64 = 1_000;

/// A running follower.
pub(crate) struct Follower {
    pub(crate) shared: Arc<UpstreamShared>,
    pub(crate) timeline: Arc<Timeline>,
    clock: Clock,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

pub(crate) fn config(server: &Server) -> UpstreamConfig {
    UpstreamConfig {
        link: Arc::new(link_to(&server.endpoint(), 2_000)),
        account: Account {
            user: "remora".into(),
            password: PASSWORD.into(),
        },
        server_id: 3_000_000_001,
        lag_ms_max: LAG_MS_MAX,
        check_age_ms_max: 2_000,
        ask_interval_us_min: 500,
        ask_interval_us_max: 10_000,
        query_timeout_ms: 2_000,
        reconnect_ms_min: 5,
        reconnect_ms_max: 100,
        catalogue_tables_max: 1_000,
        catalogue_queue_max: 100,
        catalogue_batch_max: 16,
        catalogue_scan_timeout_ms: 10_000,
        catalogue_views_max: 1_000,
        table_counts_max: 16,
        transaction_tables_max: 16,
        transaction_tags_max: 1_000,
        shapes: ShapesLimits {
            table_shapes_max: 16,
            tables_max: 1_000,
        },
        event_bytes_max: 1 << 20,
        settle_ms_max: 0,
        heartbeat_ms: 100,
    }
}

impl Follower {
    pub(crate) fn start(config: UpstreamConfig) -> Follower {
        let limits = TimelineLimits {
            tag_slots: 4_096,
            fence_slots: 4_096,
            lag_ms_max: LAG_MS_MAX,
        };
        let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
        let clock = Clock::start();
        let shared = Arc::new(UpstreamShared::new(&config, Arc::clone(&timeline), clock));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = {
            let (timeline, shared) = (Arc::clone(&timeline), Arc::clone(&shared));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(remora_upstream::run(
                    config,
                    timeline,
                    shared,
                    None,
                    async {
                        let _ = stopped.await;
                    },
                ));
            })
        };
        Follower {
            shared,
            timeline,
            clock,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn start_live(server: &Server) -> Follower {
        let follower = Follower::start(config(server));
        follower.wait_live();
        follower
    }

    pub(crate) fn wait_live(&self) {
        wait_until("the follower is live", || {
            self.shared.state() == UpstreamState::Following { lagging: false }
        });
    }

    /// A watermark at which nothing of `tags` is known to be newer: what a fill would take.
    pub(crate) fn as_of(&self, tags: &[Tag]) -> AsOf {
        let mut as_of = None;
        wait_until("a fresh watermark", || {
            if self.timeline.needs_fresher_watermark(tags) {
                self.shared.wake();
                return false;
            }
            as_of = self.timeline.as_of();
            as_of.is_some_and(|as_of| self.check(as_of, tags).is_ok())
        });
        as_of.unwrap()
    }

    pub(crate) fn check(&self, as_of: AsOf, tags: &[Tag]) -> Result<(), Unservable> {
        self.timeline.check(as_of, tags, self.clock.now_ms())
    }

    /// Nothing has touched it. Following may be late for a moment.
    pub(crate) fn assert_servable(&self, as_of: AsOf, tags: &[Tag]) {
        let mut seen = Ok(());
        wait_until("following to be in time", || {
            seen = self.check(as_of, tags);
            !matches!(seen, Err(Unservable::Behind | Unservable::NotLive))
        });
        assert_eq!(seen, Ok(()));
    }

    pub(crate) fn wait_outdated(&self, what: &str, as_of: AsOf, tags: &[Tag]) {
        wait_until(what, || {
            self.timeline
                .outdated(as_of, tags.iter().copied())
                .is_some()
        });
    }

    /// Everything that the server has now has been applied: as a fence would wait for it.
    pub(crate) fn catch_up(&self) {
        let tag = Tag::table("nowhere", "fence");
        self.timeline
            .raise(FenceScope::Tables(vec![tag]))
            .answered();
        self.shared.wake();
        wait_until("the fence is lowered", || {
            self.timeline
                .as_of()
                .is_some_and(|as_of| self.check(as_of, &[tag]).is_ok())
        });
    }

    pub(crate) fn facts(&self, table: &str) -> Arc<TableFacts> {
        let mut facts = None;
        wait_until(table, || {
            if let Lookup::Known(known) = self.shared.catalogue.lookup("app", table) {
                facts = Some(known);
            }
            facts.is_some()
        });
        facts.unwrap()
    }

    pub(crate) fn restarts(&self, reason: RestartReason) -> u64 {
        let label = reason.as_str();
        self.shared
            .restarts()
            .into_iter()
            .find(|(name, _)| *name == label)
            .unwrap()
            .1
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

pub(crate) fn table(name: &str) -> [Tag; 1] {
    [Tag::table("app", name)]
}
