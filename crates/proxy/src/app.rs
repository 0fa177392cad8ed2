//! The whole of a running Remora: everything is built here, in the order in which it depends on the
//! rest; bound early, served late.
//!
//! ```text
//! threads     acceptor ──► worker 0 … worker n        follower            admin
//!             listeners,   sessions, each on          binary log,         metrics,
//!             sweep        one worker for life        watermark,          health
//!                                                     catalogue
//! shared      timeline, store, fills in flight, fingerprints, catalogue, counters
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;
use std::time::Duration;

use remora_cache::{
    BrokenRules, FillsInFlight, ShapesLimits, Store, StoreLimits, Timeline, TimelineLimits,
};
use remora_engine::emulation::{Configured, EmulationLimits, QueryCacheSettings};
use remora_engine::reason::StateOutcome;
use remora_engine::settings::{FingerprintLimits, Fingerprints};
use remora_net::tls::TlsError;
use remora_net::{Bound, Endpoint, Listener};
use remora_upstream::client::Account;
use remora_upstream::clock::Clock;
use remora_upstream::link::ServerLink;
use remora_upstream::saved::{Resumption, SavedLog};
use remora_upstream::{UpstreamConfig, UpstreamShared, UpstreamState};
use tokio::sync::{mpsc, oneshot, watch};

use crate::acceptor::Acceptor;
use crate::admin::{self, AdminError, AdminHandle, AdminToken, Control, TokenError, Tools};
use crate::advise::on_demand::ReadingOnDemand;
use crate::config::{Settings, server_link};
use crate::digests::Digests;
use crate::explain::Explainer;
use crate::listeners;
pub use crate::listeners::ListenError;
use crate::metrics::Metrics;
use crate::observe::{Observer, configured_off};
use crate::shared::{
    BacklogRoom, LastAttempt, ReloadError, Reloaded, Restored, RulesInForce, SessionLimits,
    Sessions, Shared, Turns,
};
use crate::state_file::{self, StateFile, StateOptions};
use crate::sweep;
use crate::traces::{Exporter, Traces};
use crate::verification::{SwitchedOff, Verification};
use crate::worker::{self, Phase, WorkerHandle};

/// Why Remora could not start. Each says which option to change.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listening address can't be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A certificate or key can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The admin listener's token can't be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The admin listener can't be started.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The system refuses a thread or an event queue.
    #[error(
        "can't start a thread: {0}; the system's limits on threads or open files may be too low"
    )]
    System(#[from] io::Error),
}

/// A running Remora. Several may run in one process; nothing of it is global.
pub struct App {
    shared: Arc<Shared>,
    endpoints: Vec<Endpoint>,
    phase: watch::Sender<Phase>,
    threads: Vec<JoinHandle<()>>,
    admin: Option<AdminHandle>,
    admin_token: Arc<AdminToken>,
    follower: Option<JoinHandle<Option<SavedLog>>>,
    /// Dropped to end the follower.
    stop_follower: Option<oneshot::Sender<()>>,
    /// Where results are saved for the next process.
    state: Option<StateOptions>,
}

impl App {
    /// Starts everything that the settings ask for. When this returns, clients can connect.
    pub fn start(settings: &Settings) -> Result<App, StartError> {
        App::start_with(settings, BrokenRules::default())
    }

    /// The same on sockets that are bound already, see [`listeners::bind_or_take`].
    pub(crate) fn start_on(settings: &Settings, bound: Vec<Bound>) -> Result<App, StartError> {
        App::start_on_with(settings, bound, BrokenRules::default())
    }

    /// The same with rules of consistency broken, for the tests that must notice it.
    #[doc(hidden)]
    pub fn start_with(settings: &Settings, broken: BrokenRules) -> Result<App, StartError> {
        App::start_on_with(settings, listeners::bind(&settings.listen)?, broken)
    }

    fn start_on_with(
        settings: &Settings,
        bound: Vec<Bound>,
        broken: BrokenRules,
    ) -> Result<App, StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let endpoints = bound
            .iter()
            .map(Bound::endpoint)
            .collect::<io::Result<Vec<_>>>()?;
        let listeners = runtime.block_on(async {
            let listeners = bound.into_iter().map(Bound::into_listener);
            listeners.collect::<io::Result<Vec<_>>>()
        })?;
        let metrics = Metrics::new(settings.workers.threads);
        let link = Arc::new(server_link(&settings.listen, &settings.upstream)?);
        let admin_token = Arc::new(AdminToken::load(settings.admin.token_file.as_deref())?);
        let exporter = Exporter::start(&settings.opentelemetry, &metrics)?;
        let shared = build_shared(settings, broken, &metrics, link, exporter);
        let (phase, watched) = watch::channel(Phase::Running);
        let loads: Vec<Arc<AtomicUsize>> = (0..settings.workers.threads)
            .map(|_| Arc::default())
            .collect();
        let mut app = App {
            shared: Arc::clone(&shared),
            endpoints,
            phase,
            threads: Vec::new(),
            admin: None,
            admin_token,
            follower: None,
            stop_follower: None,
            state: StateOptions::of(settings),
        };
        // Before anybody can connect.
        let epoch = shared.store.epoch();
        app.start_admin(settings, &loads)?;
        // After what may fail, for it can be taken once only.
        let resumption = app.take_state(epoch);
        app.start_follower(settings, resumption)?;
        let workers = app.start_workers(&metrics, &loads, &watched)?;
        let acceptor = Acceptor {
            workers,
            connections_max: settings.workers.connections_max,
            metrics,
        };
        app.start_acceptor(runtime, acceptor, listeners, watched, settings)?;
        Ok(app)
    }

    /// Where clients can connect to, with the ports that the system chose.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Where metrics and health are served, if they are.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(AdminHandle::address)
    }

    /// What the sessions share; for tests and for embedding.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Reads certificates and keys again, for connections to come. If one of them is wrong, nothing
    /// changes.
    pub fn reload_certificates(&self) -> Result<(), TlsError> {
        self.shared.link.tls().reload()
    }

    /// Whether there is a file whose rules can be read again.
    pub fn has_configuration_file(&self) -> bool {
        self.shared.rules.has_file()
    }

    /// Reads the rules again. If anything in the file is wrong, the old ones stay in force.
    pub fn reload_rules(&self) -> Result<Reloaded, ReloadError> {
        self.shared.reload_rules()
    }

    /// Reads the admin listener's token again. If the file is wrong, nothing changes.
    pub fn reload_token(&self) -> Result<(), TokenError> {
        self.admin_token.reload()
    }

    /// Stops accepting, lets running statements and open transactions finish within the grace
    /// period, and ends.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        let cut_before = self.shared.timeline.cut_writes();
        self.phase.send_replace(Phase::Draining);
        let mut has_panicked = false;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; the others are still to be ended.
            has_panicked |= thread.join().is_err();
        }
        let is_cut = has_panicked || self.shared.timeline.cut_writes() != cut_before;
        // Last, so that fences of the last writes and metrics are served to the end.
        drop(self.stop_follower.take());
        let followed = self.follower.take().map(JoinHandle::join);
        drop(self.admin.take());
        if let (Some(options), Some(log)) = (self.state.take(), followed) {
            state_file::save(&self.shared, log.ok().flatten(), is_cut, &options);
        }
    }

    /// Takes what the previous process has saved. Also where nothing will be cached: what happens
    /// from now on isn't known to it.
    fn take_state(&self, epoch: u64) -> Option<Resumption> {
        let options = self.state.as_ref()?;
        match StateFile::take(&self.shared, options) {
            Ok(file) => Some(file.into_resumption(&self.shared, epoch)),
            Err(wrong) => {
                self.shared.restored.tell(wrong);
                None
            }
        }
    }

    /// Starts the admin listener, if the settings ask for one.
    fn start_admin(
        &mut self,
        settings: &Settings,
        loads: &[Arc<AtomicUsize>],
    ) -> Result<(), StartError> {
        let Some(address) = settings.admin_listen else {
            return Ok(());
        };
        let shared = &self.shared;
        let observer = Observer::new(
            Arc::clone(shared),
            loads.to_vec(),
            self.phase.subscribe(),
            settings,
        );
        let explainer = Explainer::new(
            Arc::clone(shared),
            Duration::from_millis(settings.admin.request_timeout_ms),
        );
        let control = Control {
            shared: Arc::clone(shared),
            token: Arc::clone(&self.admin_token),
        };
        let reading = settings.account.clone().map(|account| {
            let config = upstream_config(settings, account, Arc::clone(&shared.link));
            ReadingOnDemand::new(config, settings.processors_of_server())
        });
        self.admin = Some(admin::start(
            address,
            &settings.admin,
            Arc::clone(&shared.metrics),
            Arc::new(observer),
            Tools {
                explainer: Some(explainer),
                control: Some(control),
                reading,
            },
        )?);
        Ok(())
    }

    /// Starts to follow the server, if the settings allow anything to be cached.
    fn start_follower(
        &mut self,
        settings: &Settings,
        resumption: Option<Resumption>,
    ) -> io::Result<()> {
        let Some(account) = settings.account.clone().filter(|_| settings.cache.enabled) else {
            if let Some(resumption) = resumption {
                (resumption.tell)(StateOutcome::Unsuitable);
            }
            return Ok(());
        };
        let config = upstream_config(settings, account, Arc::clone(&self.shared.link));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let timeline = Arc::clone(&self.shared.timeline);
        let shared = Arc::clone(&self.shared.upstream);
        let run = move || {
            let stopped = async {
                // An error says that the sender was dropped, which is how it is told.
                let _ = stopped.await;
            };
            runtime.block_on(remora_upstream::run(
                config, timeline, shared, resumption, stopped,
            ))
        };
        self.follower = Some(spawn_named("remora-follower".to_owned(), run)?);
        self.stop_follower = Some(stop);
        Ok(())
    }

    fn start_workers(
        &mut self,
        metrics: &Metrics,
        loads: &[Arc<AtomicUsize>],
        phase: &watch::Receiver<Phase>,
    ) -> io::Result<Vec<WorkerHandle>> {
        let mut workers = Vec::new();
        for (number, (metrics, load)) in metrics.workers().iter().zip(loads).enumerate() {
            let (connections, incoming) = mpsc::unbounded_channel();
            workers.push(WorkerHandle {
                connections,
                load: Arc::clone(load),
            });
            let (shared, metrics) = (Arc::clone(&self.shared), Arc::clone(metrics));
            let Some(digests) = shared.digests.worker(number) else {
                break;
            };
            let (load, phase) = (Arc::clone(load), phase.clone());
            let run = move || {
                if let Err(error) = worker::run(&shared, metrics, digests, incoming, &load, phase) {
                    tracing::error!(%error, "a worker can't run");
                }
            };
            self.threads
                .push(spawn_named(format!("remora-worker-{number}"), run)?);
        }
        Ok(workers)
    }

    fn start_acceptor(
        &mut self,
        runtime: tokio::runtime::Runtime,
        acceptor: Acceptor,
        listeners: Vec<Listener>,
        phase: watch::Receiver<Phase>,
        settings: &Settings,
    ) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let interval = Duration::from_millis(settings.cache.sweep_interval_ms);
        let entries_max = settings.cache.sweep_entries_max;
        let is_followed = self.follower.is_some();
        let wait = self
            .state
            .as_ref()
            .filter(|_| is_followed)
            .map(|_| Duration::from_millis(settings.cache.state_read_ms_max));
        let run = move || {
            runtime.block_on(async {
                if let Some(wait) = wait {
                    until_followed(&shared, wait, phase.clone()).await;
                }
                tokio::select! {
                    () = acceptor.run(listeners, phase) => {}
                    () = sweep::run(shared, interval, entries_max) => {}
                }
            });
        };
        self.threads
            .push(spawn_named("remora-acceptor".to_owned(), run)?);
        Ok(())
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn spawn_named<T: Send + 'static>(
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name).spawn(run)
}

/// Waits until the server is followed and what the previous process has saved is served, or can't
/// be; at most this long. Clients wait for that in the listeners' queues.
///
/// Of a statement that came before nobody would know yet what code it runs, and everything would be
/// forgotten for it. And sessions from before the beginning share nothing with later ones, for
/// nobody knows how privileges changed in between: what they read couldn't be left to the next
/// process.
async fn until_followed(shared: &Shared, limit: Duration, mut phase: watch::Receiver<Phase>) {
    const INTERVAL: Duration = Duration::from_millis(2);
    let is_beginning = || match shared.upstream.state() {
        UpstreamState::Connecting | UpstreamState::Following { lagging: true } => true,
        // Its log doesn't go on, for instance: following restarts in a moment.
        UpstreamState::Lost(_) => shared.upstream.reached() > 0,
        UpstreamState::Following { lagging: false }
        | UpstreamState::CachingOff(_)
        | UpstreamState::Refused(_)
        | UpstreamState::Unchecked => false,
    };
    let followed = async {
        while is_beginning() {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::select! {
        _ = tokio::time::timeout(limit, followed) => {}
        _ = phase.wait_for(|phase| *phase != Phase::Running) => {}
    }
}

/// What all sessions share. `broken` are rules that tests break.
pub(crate) fn build_shared(
    settings: &Settings,
    broken: BrokenRules,
    metrics: &Arc<Metrics>,
    link: Arc<ServerLink>,
    exporter: Option<Exporter>,
) -> Arc<Shared> {
    let cache = &settings.cache;
    let limits = TimelineLimits {
        tag_slots: cache.tag_slots,
        fence_slots: cache.fence_slots,
        lag_ms_max: settings.follow.lag_ms_max,
    };
    let timeline = Arc::new(Timeline::new(limits, broken));
    let clock = Clock::start();
    let nobody = Account {
        user: String::new(),
        password: String::new(),
    };
    let account = settings.account.clone().unwrap_or(nobody);
    let config = upstream_config(settings, account, Arc::clone(&link));
    let judge = Arc::clone(&timeline);
    let store = Store::with_judge(
        StoreLimits {
            memory_bytes_max: cache.memory_bytes_max.bytes(),
            result_bytes_max: cache.result_bytes_max.bytes(),
            shards: cache.shards,
        },
        Box::new(move |entry| sweep::outdated(&judge, entry, clock.now_ms())),
    );
    let store = Arc::new(store);
    Arc::new(Shared {
        clock,
        upstream: Arc::new(UpstreamShared::new(&config, Arc::clone(&timeline), clock)),
        last_attempt: LastAttempt::none(),
        timeline,
        store: Arc::clone(&store),
        fills: FillsInFlight::new(cache.fills_in_flight_max, cache.fill_waiters_max),
        turns: turns(settings),
        fingerprints: Fingerprints::new(FingerprintLimits {
            count_max: cache.fingerprints_max,
            bytes_max: cache.fingerprints_bytes_max.bytes(),
        }),
        link,
        proxy_protocol_from: settings.listen.proxy_protocol_from.clone().into(),
        metrics: Arc::clone(metrics),
        rules: RulesInForce::new(settings.rules.clone(), settings.source.clone()),
        digests: Digests::new(settings.workers.threads, settings.digests.count_max),
        verification: verification(settings),
        sessions: Sessions::default(),
        traces: Traces::new(
            settings.observe.trace_sample,
            settings.observe.traces_max,
            exporter,
            Arc::clone(metrics),
        ),
        emulation: EmulationLimits {
            enabled: settings.query_cache.statements,
            merged_bytes_max: settings.query_cache.merged_bytes_max.bytes(),
            rows_max: settings.query_cache.rows_max,
            show_literals: settings.query_cache.show_literals,
            configured_off: configured_off(settings),
        },
        query_cache: QueryCacheSettings::new(Configured {
            cache_type: settings.query_cache.cache_type,
            size_bytes: store.stats().memory_bytes_max,
            limit_bytes: cache.result_bytes_max.bytes(),
            strip_comments: cache.strip_comments,
        }),
        backlogs: Arc::new(BacklogRoom::new(
            settings.workers.fenced_answer_bytes_max.bytes(),
        )),
        restored: Restored::default(),
        limits: session_limits(settings),
    })
}

/// The statements at the server, if their number is limited.
fn turns(settings: &Settings) -> Option<Arc<Turns>> {
    let upstream = &settings.upstream;
    let turns = || {
        Arc::new(Turns::new(
            upstream.statements_max,
            upstream.statements_waiting_max,
        ))
    };
    (upstream.statements_max > 0).then(turns)
}

/// The limits of a session.
fn session_limits(settings: &Settings) -> SessionLimits {
    let cache = &settings.cache;
    SessionLimits {
        statement_bytes_max: cache.statement_bytes_max.bytes(),
        read_bytes_max: settings.workers.read_bytes_max.bytes(),
        prepared_statements_max: settings.workers.prepared_statements_max,
        prepared_text_bytes_max: settings.workers.prepared_text_bytes_max.bytes(),
        proxy_protocol_timeout: Duration::from_millis(settings.listen.proxy_protocol_timeout_ms),
        server_contact_ms_max: settings.workers.server_contact_ms,
        storing: cache.storing,
        known_statements_max: settings.digests.known_max,
        transaction_reads: cache.transaction_reads,
        snapshot_wait: Duration::from_millis(cache.snapshot_wait_ms_max),
        early_reads_max: cache.early_reads_max,
        waiting_fills_max: cache.waiting_fills_max,
        fill_wait: Duration::from_millis(cache.fill_wait_ms_max),
        statement_wait: Duration::from_millis(settings.upstream.statement_wait_ms_max),
        definition_wait: Duration::from_millis(settings.follow.definition_wait_ms),
        // What such text has changed counts like what is changed elsewhere.
        unseen_text_wait: Duration::from_millis(settings.follow.lag_ms_max),
        fenced_answer_wait: Duration::from_millis(settings.workers.fenced_answer_wait_ms),
        shutdown_grace: Duration::from_millis(settings.shutdown.grace_ms),
    }
}

fn verification(settings: &Settings) -> Verification {
    let observe = &settings.observe;
    Verification {
        share: observe.verify_sample,
        timeout: Duration::from_millis(observe.verify_timeout_ms),
        lag_ms_max: settings.follow.lag_ms_max,
        disables_digest: observe.verify_disables_digest,
        off: SwitchedOff::new(observe.verify_digests_off_max),
    }
}

/// What the follower needs of the settings.
pub(crate) fn upstream_config(
    settings: &Settings,
    account: Account,
    link: Arc<ServerLink>,
) -> UpstreamConfig {
    let follow = &settings.follow;
    UpstreamConfig {
        link,
        account,
        server_id: follow.server_id,
        lag_ms_max: follow.lag_ms_max,
        check_age_ms_max: follow.check_age_ms_max,
        ask_interval_us_min: follow.watermark_interval_us_min,
        ask_interval_us_max: follow.watermark_interval_us_max,
        query_timeout_ms: settings.upstream.query_timeout_ms,
        reconnect_ms_min: follow.reconnect_ms_min,
        reconnect_ms_max: follow.reconnect_ms_max,
        catalogue_tables_max: follow.catalogue_tables_max,
        catalogue_queue_max: follow.catalogue_queue_max,
        catalogue_batch_max: follow.catalogue_batch_max,
        catalogue_scan_timeout_ms: follow.catalogue_scan_timeout_ms,
        catalogue_views_max: follow.catalogue_views_max,
        table_counts_max: follow.table_counts_max,
        transaction_tables_max: follow.transaction_tables_max,
        transaction_tags_max: follow.transaction_tags_max,
        shapes: ShapesLimits {
            table_shapes_max: settings.cache.table_shapes_max,
            tables_max: settings.cache.shape_tables_max,
        },
        event_bytes_max: follow.event_bytes_max.bytes(),
        heartbeat_ms: follow.heartbeat_ms,
        settle_ms_max: settings
            .cache
            .state_file
            .as_ref()
            .map_or(0, |_| follow.lag_ms_max),
    }
}
