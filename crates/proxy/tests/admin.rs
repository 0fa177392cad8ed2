//! The admin listener, asked over real connections.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use remora::admin::{self, AdminHandle, Tools};
use remora::config::options::AdminOptions;
use remora::metrics::{
    Caching, FollowerObservation, Kind, Metrics, Observation, Observed, Reachability,
    RulesObservation, StatementsObservation, StoreObservation, declared,
};
use remora_engine::reason::{Bypass, CachingOff, Limit, Outcome, StateOutcome};

/// A Remora that is in whatever state the test puts it.
struct Scripted(Mutex<Observation>);

impl Observed for Scripted {
    fn observe(&self) -> Observation {
        self.0.lock().unwrap().clone()
    }
}

fn healthy() -> Observation {
    Observation {
        caching: Caching::On,
        upstream: Reachability::Reachable,
        statements: Some(StatementsObservation {
            running: 4,
            waiting: 1,
        }),
        connections: 7,
        fingerprints: 3,
        digests: 2,
        digests_off: 0,
        shape_tables: 0,
        shapes: 0,
        catalogue_tables: 11,
        limits: Vec::new(),
        rules: RulesObservation::default(),
        catalogue_loads: 12,
        catalogue_batches: 7,
        store: StoreObservation {
            entries: 5,
            bytes: 4_096,
            bytes_max: 1 << 20,
            evictions: vec![("small_queue", 2)],
            invalidations: vec![("changed", 9)],
            fills_in_flight: 1,
            fill_waiters: 0,
            restored_outcome: Some(StateOutcome::Restored),
            restored: 3,
        },
        follower: FollowerObservation {
            lag: Some(Duration::from_millis(250)),
            applied_file: 4,
            applied_offset: 1_234,
            check_age: Some(Duration::from_millis(500)),
            checks: 12,
            forgotten: vec![("purged", 1)],
            ..FollowerObservation::default()
        },
    }
}

struct Running {
    admin: AdminHandle,
    metrics: Arc<Metrics>,
    state: Arc<Scripted>,
}

fn start(options: &AdminOptions) -> Running {
    let metrics = Metrics::new(2);
    let state = Arc::new(Scripted(Mutex::new(healthy())));
    let observed = Arc::<Scripted>::clone(&state);
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let admin = admin::start(
        any_port,
        options,
        Arc::clone(&metrics),
        observed,
        Tools::default(),
    )
    .unwrap();
    Running {
        admin,
        metrics,
        state,
    }
}

impl Running {
    fn change(&self, change: impl FnOnce(&mut Observation)) {
        change(&mut self.state.0.lock().unwrap());
    }

    /// The status and the body.
    fn get(&self, path: &str) -> (u16, String) {
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    fn request(&self, text: &str) -> (u16, String) {
        let answer = self.ask(text).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// All that comes, which may be nothing.
    fn ask(&self, text: &str) -> io::Result<String> {
        let mut connection = TcpStream::connect(self.admin.address())?;
        connection.set_read_timeout(Some(Duration::from_secs(30)))?;
        connection.write_all(text.as_bytes())?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn metrics_page(&self) -> String {
        let (status, page) = self.get("/metrics");
        assert_eq!(status, 200);
        page
    }
}

/// The value of the sample that begins like this.
fn sample(page: &str, series: &str) -> Option<f64> {
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    line.parse().ok()
}

#[test]
fn each_path_answers_and_others_are_refused() {
    let remora = start(&AdminOptions::default());
    let (status, body) = remora.get("/");
    assert_eq!(status, 200);
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert!(body.contains(path), "{body}");
        assert_eq!(remora.get(path).0, 200, "{path}");
    }
    assert_eq!(remora.get("/nothing").0, 404);
    assert_eq!(
        remora
            .request("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .0,
        405
    );
    assert_eq!(remora.get("/healthz").1, "ok\n");
}

#[test]
fn it_is_ready_without_caching_and_says_why_it_does_not_cache() {
    let remora = start(&AdminOptions::default());
    assert_eq!(
        remora.get("/readyz"),
        (200, "ready\nupstream: reachable\ncaching: on\n".to_owned())
    );
    remora.change(|state| state.caching = Caching::Off(CachingOff::FollowerLost));
    let (status, body) = remora.get("/readyz");
    assert_eq!(status, 200);
    assert!(body.contains("caching: off (follower_lost)\n"), "{body}");
    assert!(body.contains(CachingOff::FollowerLost.describe()), "{body}");
}

#[test]
fn what_was_found_about_the_server_is_told() {
    let remora = start(&AdminOptions::default());
    remora.change(|state| {
        state.caching = Caching::Off(CachingOff::ServerUnsuitable);
        let meaning = "binlog_format is MIXED.".to_owned();
        state.follower.findings = vec![("log_format", meaning)];
    });
    let (status, body) = remora.get("/readyz");
    assert_eq!(status, 200);
    assert!(
        body.ends_with("\nlog_format: binlog_format is MIXED.\n"),
        "{body}"
    );
    let metrics = remora.get("/metrics").1;
    let line = "remora_server_findings{subject=\"log_format\"} 1\n";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn it_is_not_ready_without_its_server_or_while_it_stops() {
    let remora = start(&AdminOptions::default());
    remora.change(|state| state.upstream = Reachability::Unreachable("refused".to_owned()));
    let (status, body) = remora.get("/readyz");
    assert_eq!(status, 503);
    assert!(
        body.starts_with("not ready\nupstream: unreachable (refused)\n"),
        "{body}"
    );
    remora.change(|state| {
        state.upstream = Reachability::Reachable;
        state.caching = Caching::Off(CachingOff::Stopping);
    });
    assert_eq!(remora.get("/readyz").0, 503);
    assert_eq!(remora.get("/healthz").0, 200);
    remora.change(|state| {
        state.upstream = Reachability::Untried;
        state.caching = Caching::Off(CachingOff::Starting);
    });
    assert_eq!(remora.get("/readyz").0, 200);
}

#[test]
fn a_scrape_sums_the_workers() {
    let remora = start(&AdminOptions::default());
    let (one, other) = (
        remora.metrics.worker(0).unwrap(),
        remora.metrics.worker(1).unwrap(),
    );
    one.count_hit(100, Duration::from_micros(3));
    other.count_hit(50, Duration::from_micros(300));
    other.count(Outcome::Fill);
    other.count(Outcome::Bypass(Bypass::AutocommitOff));
    other.count(Outcome::Bypass(Bypass::WatermarkBehind));
    remora.metrics.rare.count_limit(Limit::Connections);
    let page = remora.metrics_page();
    for (series, value) in [
        ("remora_statements_total{outcome=\"hit\",reason=\"\"}", 2.0),
        (
            "remora_statements_total{outcome=\"bypass\",reason=\"autocommit_off\"}",
            1.0,
        ),
        (
            "remora_statements_total{outcome=\"write\",reason=\"\"}",
            0.0,
        ),
        ("remora_hits_total", 2.0),
        ("remora_misses_total", 2.0),
        ("remora_hit_bytes_total", 150.0),
        ("remora_hit_duration_seconds_count", 2.0),
        ("remora_hit_duration_seconds_bucket{le=\"0.000004\"}", 1.0),
        ("remora_hit_duration_seconds_bucket{le=\"+Inf\"}", 2.0),
        (
            "remora_limit_reached_total{limit=\"workers.connections_max\"}",
            1.0,
        ),
        ("remora_connections", 7.0),
        ("remora_store_bytes", 4_096.0),
        ("remora_evictions_total{reason=\"small_queue\"}", 2.0),
        ("remora_invalidations_total{reason=\"changed\"}", 9.0),
        ("remora_forgotten_total{reason=\"purged\"}", 1.0),
        ("remora_follower_lag_seconds", 0.25),
        ("remora_server_check_age_seconds", 0.5),
        ("remora_server_checks_total", 12.0),
        ("remora_caching{reason=\"\"}", 1.0),
        ("remora_upstream_up", 1.0),
    ] {
        assert_eq!(sample(&page, series), Some(value), "{series} in\n{page}");
    }
}

#[test]
fn every_declared_metric_is_shown_as_declared_and_no_other() {
    let remora = start(&AdminOptions::default());
    let page = remora.metrics_page();
    let shown: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let declared: Vec<_> = declared()
        .iter()
        .map(|metric| {
            let family = match metric.kind {
                Kind::Counter => metric.name.trim_end_matches("_total"),
                Kind::Gauge | Kind::Histogram => metric.name,
            };
            format!("{family} {}", metric.kind.as_str())
        })
        .collect();
    assert_eq!(shown, declared);
    for metric in remora::metrics::declared() {
        assert!(
            page.contains(&format!(" {}.\n", metric.help)),
            "{}",
            metric.name
        );
    }
    assert!(page.ends_with("# EOF\n"));
}

#[test]
fn silent_connections_do_not_keep_others_out() {
    let options = AdminOptions {
        connections_max: 2,
        request_timeout_ms: 50,
        ..Default::default()
    };
    let remora = start(&options);
    let silent: Vec<_> = (0..5)
        .map(|_| TcpStream::connect(remora.admin.address()).unwrap())
        .collect();
    // On a busy machine a request may last longer than its own connection lives.
    let is_answered = || {
        let answer = remora.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
    };
    let end = Instant::now() + Duration::from_mins(2);
    while !is_answered() {
        assert!(Instant::now() < end, "others are kept out");
    }
    drop(silent);
}

#[test]
fn a_request_by_another_hosts_name_gets_nothing() {
    let remora = start(&AdminOptions::default());
    for path in ["/", "/metrics", "/dashboard", "/healthz", "/nothing"] {
        for host in ["evil.example", "127.0.0.1.evil.example:9307"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let (status, body) = remora.request(&request);
            assert_eq!(status, 421, "{path} {host}");
            assert!(body.starts_with("Host: got a name"), "{body}");
            assert!(body.contains("admin.hosts"), "{body}");
        }
    }
    let named = start(&AdminOptions {
        hosts: vec!["remora.example.org".parse().unwrap()],
        ..Default::default()
    });
    let by_name = "GET /healthz HTTP/1.1\r\nHost: remora.example.org\r\n\r\n";
    assert_eq!(named.request(by_name).0, 200);
    assert_eq!(remora.request(by_name).0, 421);
    let without = "GET /healthz HTTP/1.0\r\n\r\n";
    assert_eq!(remora.request(without).0, 200);
}

#[test]
fn its_port_is_free_again_when_it_has_stopped() {
    let remora = start(&AdminOptions::default());
    let address = remora.admin.address();
    let metrics = Arc::clone(&remora.metrics);
    let state = Arc::<Scripted>::clone(&remora.state);
    let taken = admin::start(
        address,
        &AdminOptions::default(),
        metrics,
        state,
        Tools::default(),
    )
    .unwrap_err();
    assert!(
        taken
            .to_string()
            .starts_with(&format!("admin.listen: got {address}, ")),
        "{taken}"
    );
    remora.admin.stop();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn it_answers_while_every_core_is_busy() {
    let remora = start(&AdminOptions::default());
    let is_done = AtomicBool::new(false);
    let cores = std::thread::available_parallelism().map_or(2, NonZero::get);
    std::thread::scope(|scope| {
        for worker in (0..2 * cores).map(|number| remora.metrics.worker(number % 2).unwrap()) {
            let is_done = &is_done;
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    worker.count(Outcome::Fill);
                }
            });
        }
        let fills = || {
            let page = remora.metrics_page();
            sample(
                &page,
                "remora_statements_total{outcome=\"fill\",reason=\"\"}",
            )
            .unwrap()
        };
        let first = fills();
        while fills() <= first {}
        is_done.store(true, Ordering::Relaxed);
    });
}
