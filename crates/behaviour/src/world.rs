//! A server with a Remora in front of it, and what the tests of faults do with them.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    reason = "a test fails by panicking"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::load::{CounterLoad, CounterReport, CounterTable, Oracle, Random, Until};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{FOLLOW_USER, Kind, Server, ServerOptions};

/// For how long a result may lack a change that was made elsewhere.
pub const LAG_MS_MAX: u64 = 300;
/// That, with the rounding of Remora's clock.
pub const LAG: Duration = Duration::from_millis(LAG_MS_MAX + 2);
pub use remora_testkit::process::PATIENCE;
/// So many hits say that caching goes on.
const HITS: f64 = 300.0;
const COUNTERS: usize = 40;

/// A server and a Remora.
pub struct World {
    // Dropped in this order.
    /// The Remora.
    pub remora: InProcessRemora,
    /// The server behind it.
    pub server: Server,
}

impl World {
    /// In front of a server of its own.
    pub fn new() -> World {
        World::with_server(Server::start(ServerOptions::default()).unwrap())
    }

    /// In front of this server.
    pub fn with_server(server: Server) -> World {
        let options = RemoraOptions::storing_all()
            .with("follow.lag_ms_max", &LAG_MS_MAX.to_string())
            .with("follow.heartbeat_ms", "50")
            .with("follow.reconnect_ms_min", "5")
            .with("follow.reconnect_ms_max", "200")
            .with("upstream.query_timeout_ms", "2000")
            .with("shutdown.grace_ms", "500");
        let remora = InProcessRemora::start(&server, &options).unwrap();
        World { remora, server }
    }

    /// How an application connects through Remora.
    pub fn through(&self) -> ConnectOptions {
        self.server.app().at(self.remora.address())
    }

    /// A client through Remora.
    pub fn client(&self) -> Client {
        self.through().connect().unwrap()
    }

    /// A client of the server.
    pub fn direct(&self) -> Client {
        self.server.app().connect().unwrap()
    }

    /// How many statements have been answered from memory.
    pub fn hits(&self) -> f64 {
        self.remora.metrics().unwrap().sum("remora_hits_total")
    }

    /// How often everything was forgotten for this reason.
    pub fn forgotten(&self, reason: &str) -> f64 {
        let metrics = self.remora.metrics().unwrap();
        metrics.sum_where("remora_forgotten_total", "reason", reason)
    }

    /// How often everything was forgotten.
    pub fn forgotten_at_all(&self) -> f64 {
        self.remora.metrics().unwrap().sum("remora_forgotten_total")
    }

    /// Waits until clients that ask are answered from memory.
    pub fn wait_for_hits(&self) {
        let before = self.hits();
        wait_for("hits", PATIENCE, || {
            Ok((self.hits() >= before + HITS).then_some(()))
        })
        .unwrap();
    }

    /// Asks until an answer comes from memory, each of which must be `expected`.
    pub fn expect_hit(&self, client: &mut Client, text: &str, expected: &[u8]) {
        let what = format!("a hit of {text}");
        wait_for(&what, PATIENCE, || {
            let before = self.hits();
            assert_eq!(client.query_bytes(text).unwrap(), expected, "{text}");
            Ok((self.hits() > before).then_some(()))
        })
        .unwrap();
    }

    /// What the server itself answers.
    pub fn truth(&self, text: &str) -> Vec<u8> {
        self.direct().query_bytes(text).unwrap().to_vec()
    }

    /// Waits until all that was committed so far has dropped its results.
    pub fn catch_up(&self) {
        crate::front::catch_up(&self.remora);
    }

    /// Has the server's answer to each text in memory. What was changed elsewhere before is seen
    /// first: until then a result from before the change may be served, within the lag, even if the
    /// server has answered others with newer rows.
    pub fn warm(&self, texts: &[&str]) {
        self.catch_up();
        let mut client = self.client();
        for text in texts {
            let truth = self.truth(text);
            self.expect_hit(&mut client, text, &truth);
        }
    }

    /// After a change through Remora: every connection must get what the server says.
    pub fn expect_truth_now(&self, clients: &mut [Client], text: &str) {
        let truth = self.truth(text);
        for client in clients {
            assert_eq!(client.query_bytes(text).unwrap(), truth, "{text}");
        }
    }

    /// After a change elsewhere that was answered at `answered_at`: reads sent after the lag must
    /// have it.
    pub fn expect_truth_soon(&self, clients: &mut [Client], text: &str, answered_at: Instant) {
        let truth = self.truth(text);
        loop {
            let may_lag = answered_at.elapsed() <= LAG;
            let all_right = clients
                .iter_mut()
                .all(|client| client.query_bytes(text).unwrap() == truth);
            if all_right {
                return;
            }
            assert!(may_lag, "older than {LAG:?}: {text}");
        }
    }

    /// Ends all connections of Remora's own, as the server's administrator could.
    pub fn cut_follower(&self) {
        cut_follower(&self.server);
    }

    /// Cuts the follower and keeps it away while `meanwhile` runs.
    pub fn while_cut(&self, meanwhile: impl FnOnce()) {
        let unlogged = |statement: String| {
            let mut root = self.server.root().unwrap();
            root.query("SET sql_log_bin = 0").unwrap();
            root.query(&statement).unwrap();
        };
        // Where accounts can't be locked, it gets another name.
        let (lock, unlock) = if self.server.kind() == Kind::MySql56 {
            let rename = |from: &str, to: &str| format!("RENAME USER {from}@'%' TO {to}@'%'");
            (rename(FOLLOW_USER, "away"), rename("away", FOLLOW_USER))
        } else {
            let alter = |how: &str| format!("ALTER USER {FOLLOW_USER}@'%' ACCOUNT {how}");
            (alter("LOCK"), alter("UNLOCK"))
        };
        unlogged(lock);
        self.cut_follower();
        wait_for("Remora to notice", PATIENCE, || {
            let caching = self.remora.metrics()?.sum("remora_caching");
            Ok((caching < 0.5).then_some(()))
        })
        .unwrap();
        meanwhile();
        unlogged(unlock);
        self.remora.wait_until_caching().unwrap();
    }

    /// Lets clients read and write counters while `faults` happen; what they found must be nothing.
    pub fn under_load(&mut self, faults: impl FnOnce(&mut World)) -> CounterReport {
        let table = CounterTable::new(COUNTERS);
        table.create(&mut self.direct()).unwrap();
        let oracle = Oracle::new(COUNTERS, 0, LAG);
        let load = self.load(table);
        println!("seed {}", load.seed);
        let until = Until {
            reads: u64::MAX,
            // It ends with the faults.
            time: Duration::from_hours(1),
        };
        let over = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            let running = scope.spawn(|| load.run(&oracle, until, || over.load(Ordering::SeqCst)));
            // Also when a check below fails.
            let ending = SetWhenDropped(&over);
            self.wait_for_hits();
            faults(self);
            self.wait_for_hits();
            drop(ending);
            running.join().unwrap().unwrap()
        });
        println!(
            "{} reads, {} writes through Remora, {} direct, {} errors",
            report.reads, report.writes_through, report.writes_direct, report.errors
        );
        let stale: Vec<String> = report.stale.iter().map(ToString::to_string).collect();
        assert_eq!(stale, Vec::<String>::new());
        assert_eq!(report.impossible, Vec::<String>::new());
        report
    }

    fn load(&self, table: CounterTable) -> CounterLoad {
        CounterLoad {
            table,
            through: self.through(),
            direct: self.server.app(),
            readers: 4,
            writers_through: 1,
            writers_direct: 1,
            write_pause: Duration::from_millis(25),
            survive_errors: true,
            seed: Random::fresh_seed(),
        }
    }
}

/// Ends all connections of Remora's own to a server, as its administrator could.
pub fn cut_follower(server: &Server) {
    let mut root = server.root().unwrap();
    let list =
        format!("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{FOLLOW_USER}'");
    for row in root.query(&list).unwrap().rows().unwrap() {
        let id = String::from_utf8(row[0].clone().unwrap()).unwrap();
        // It may have ended by itself.
        let _ = root.query(&format!("KILL {id}"));
    }
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
