//! Remora's follower and watermark, without the rest.

use std::sync::Arc;

use remora::config::Options;
use remora::config::options::UpstreamOptions;
use remora::config::server_link;
use remora_cache::{BrokenRules, Position, ShapesLimits, Timeline, TimelineLimits};
use remora_net::Endpoint;
use remora_testkit::servers::{FOLLOW_PASSWORD, FOLLOW_USER, Server};
use remora_upstream::client::Account;
use remora_upstream::clock::Clock;
use remora_upstream::{UpstreamConfig, UpstreamShared};

/// Remora's follower, on a thread of its own for as long as the process lives.
pub(super) struct Follower {
    shared: Arc<UpstreamShared>,
    timeline: Arc<Timeline>,
}

impl Follower {
    pub(super) fn start(server: &Server) -> Follower {
        let options = Options::default();
        let upstream = UpstreamOptions {
            address: Endpoint::Tcp {
                host: server.address().ip().to_string(),
                port: server.address().port(),
            },
            connect_timeout_ms: 10_000,
            ..options.upstream
        };
        let config = UpstreamConfig {
            link: Arc::new(server_link(&options.listen, &upstream).unwrap()),
            account: Account {
                user: FOLLOW_USER.into(),
                password: FOLLOW_PASSWORD.into(),
            },
            server_id: 3_000_000_001,
            lag_ms_max: 1_000,
            ask_interval_us_min: 500,
            ask_interval_us_max: 10_000,
            query_timeout_ms: 10_000,
            reconnect_ms_min: 5,
            reconnect_ms_max: 100,
            catalogue_tables_max: 100,
            catalogue_queue_max: 100,
            catalogue_batch_max: 16,
            catalogue_scan_timeout_ms: 10_000,
            catalogue_views_max: 100,
            check_age_ms_max: 10_000,
            table_counts_max: 16,
            transaction_tables_max: 16,
            transaction_tags_max: 1_000,
            shapes: ShapesLimits {
                table_shapes_max: 0,
                tables_max: 0,
            },
            event_bytes_max: 1 << 20,
            settle_ms_max: 0,
            heartbeat_ms: 100,
        };
        let limits = TimelineLimits {
            tag_slots: 64,
            fence_slots: 64,
            lag_ms_max: config.lag_ms_max,
        };
        let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
        let clock = Clock::start();
        let shared = Arc::new(UpstreamShared::new(&config, Arc::clone(&timeline), clock));
        let follower = Follower {
            shared: Arc::clone(&shared),
            timeline: Arc::clone(&timeline),
        };
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
                std::future::pending(),
            ));
        });
        follower
    }

    /// The watermark as a fill would take it; asks for a newer one.
    pub(super) fn watermark(&self) -> Option<Position> {
        self.shared.wake();
        self.timeline.as_of().map(remora_cache::AsOf::position)
    }
}
