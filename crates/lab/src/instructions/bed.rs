//! A private server, and Remora under callgrind in front of it, with nothing to do but what it is
//! asked.

use std::time::Duration;

use anyhow::{Context as _, bail};

use remora_testkit::metrics::Metrics;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::{Kind, Server, ServerOptions, numbers};

use super::callgrind::{Callgrind, ThreadNumber};
use super::paths::{Connections, Path};

/// The first row of each table. All keys have as many digits.
pub(super) const ROW_FIRST: u32 = 10_001;
/// Rows of each table.
pub(super) const ROWS: u32 = 10_000;

/// Longest wait for Remora to finish what it was asked for.
const PATIENCE: Duration = Duration::from_mins(3);

/// Options that keep Remora from doing anything by the clock, as far as that can be. The fences of
/// a batch of writes are lowered together: whether the next write meets a question for the
/// watermark would depend on the clock.
const QUIET: [(&str, &str); 8] = [
    ("follow.check_age_ms_max", "3600000"),
    ("follow.heartbeat_ms", "60000"),
    ("follow.watermark_interval_us_min", "1000000"),
    ("follow.lag_ms_max", "1800000"),
    ("observe.verify_timeout_ms", "3600000"),
    ("upstream.query_timeout_ms", "60000"),
    ("workers.server_contact_ms", "3600000"),
    ("cache.sweep_interval_ms", "60000"),
];

/// Everything that runs. Dropped in this order.
pub(super) struct Bed {
    connections: Connections,
    remora: Remora,
    _server: Server,
    callgrind: Callgrind,
    threads: Vec<(String, ThreadNumber)>,
}

impl Bed {
    /// Starts everything.
    pub(super) fn start() -> anyhow::Result<Bed> {
        let mut callgrind = Callgrind::find()?;
        let server = Server::start(ServerOptions {
            kind: Some(Kind::MariaDb1011),
            ..ServerOptions::default()
        })?;
        server.execute(tables())?;
        let options = RemoraOptions {
            under: callgrind.command(),
            threads: Some(1),
            set: QUIET
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..RemoraOptions::following()
        };
        let remora = Remora::start(&server, &options)?;
        let through = server.app().at(remora.address()).connect()?;
        let mut connections = Connections::new(through, server.app().connect()?)?;
        make_known(&mut connections, &remora)?;
        let threads = callgrind.threads(remora.id())?.into_iter().collect();
        Ok(Bed {
            connections,
            remora,
            _server: server,
            callgrind,
            threads,
        })
    }

    /// Takes a path so often that what is done once only is done.
    pub(super) fn warm_up(&mut self, path: Path) -> anyhow::Result<()> {
        self.take(path, path.warm_up_times())
    }

    /// Takes a path as often as makes a batch; gives the instructions for one time. `profiles`: the
    /// directory for where they went.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn measure(
        &mut self,
        path: Path,
        profiles: Option<&std::path::Path>,
    ) -> anyhow::Result<f64> {
        self.callgrind.zero(self.remora.id())?;
        self.take(path, path.times())?;
        let kept = profiles.map(|directory| directory.join(path.name()));
        let counts = self.callgrind.take(self.remora.id(), kept.as_deref())?;
        let count = counts.get(&self.thread(path.thread())?).copied();
        let count =
            count.with_context(|| format!("callgrind says nothing of {}", path.thread()))?;
        Ok(count as f64 / f64::from(path.times()))
    }

    /// Takes a path this often, one time after the other, and waits until Remora is done.
    ///
    /// # Errors
    /// Remora says that it went another way.
    fn take(&mut self, path: Path, times: u32) -> anyhow::Result<()> {
        let before = taken_before(path, &self.remora)?;
        // What happens at the server comes to Remora all at once, for how it comes in pieces
        // depends on the clock.
        if !path.is_asked_of_remora() {
            self.remora.freeze()?;
        }
        for _ in 0..times {
            path.take(&mut self.connections)?;
        }
        if !path.is_asked_of_remora() {
            self.remora.thaw()?;
        }
        let expected = before + f64::from(times);
        let mut last = None;
        let remora = &self.remora;
        wait_for("Remora to be done", PATIENCE, || {
            let metrics = last.insert(remora.metrics()?);
            let is_done =
                path.taken(metrics) >= expected && metrics.sum("remora_fence_batches") == 0.0;
            Ok(is_done.then_some(()))
        })
        .with_context(|| not_taken(path, times, last.as_ref()))?;
        let taken = last.as_ref().map_or(0.0, |metrics| path.taken(metrics));
        if taken > expected {
            bail!(
                "{} was taken {} times instead of {times}",
                path.name(),
                taken - before
            );
        }
        Ok(())
    }

    fn thread(&self, name: &str) -> anyhow::Result<ThreadNumber> {
        let named = self.threads.iter().find(|(known, _)| known == name);
        let (_, number) = named.with_context(|| {
            format!("Remora has no thread named {name}; name the one that does the work now")
        })?;
        Ok(*number)
    }
}

/// How often a path was taken until now. A statement may be counted a moment after its answer: so
/// the count must be the same twice.
fn taken_before(path: Path, remora: &Remora) -> anyhow::Result<f64> {
    let mut last = None;
    wait_for("Remora's counters to rest", PATIENCE, || {
        let taken = path.taken(&remora.metrics()?);
        let is_same = last
            .replace(taken)
            .is_some_and(|before: f64| before.total_cmp(&taken).is_eq());
        Ok(is_same.then_some(taken))
    })
}

/// Asks for what is read until memory answers, so that definitions are loaded: of the table, too,
/// that is only changed later, so that changes of its rows are looked at as those of a table that
/// is read by key.
fn make_known(connections: &mut Connections, remora: &Remora) -> anyhow::Result<()> {
    let answers_from_memory = |ask: &mut dyn FnMut() -> anyhow::Result<()>| {
        let hits_before = Path::Hit.taken(&remora.metrics()?);
        wait_for("a hit", PATIENCE, || {
            ask()?;
            let hits = Path::Hit.taken(&remora.metrics()?);
            Ok((hits > hits_before).then_some(()))
        })
    };
    answers_from_memory(&mut || Path::Hit.take(connections))?;
    answers_from_memory(&mut || Path::PreparedHit.take(connections))?;
    answers_from_memory(&mut || {
        let text = format!("SELECT c FROM written WHERE id={ROW_FIRST}");
        connections.through.query(&text)?;
        Ok(())
    })
}

/// What became of statements that should have gone a certain way.
fn not_taken(path: Path, times: u32, metrics: Option<&Metrics>) -> String {
    let outcomes = metrics.map(|metrics| metrics.labelled("remora_statements_total"));
    let seen: Vec<String> = outcomes
        .into_iter()
        .flatten()
        .filter(|(_, count)| *count > 0.0)
        .map(|(labels, count)| format!("{labels} {count}"))
        .collect();
    format!(
        "Remora did not go the way {} {times} times more; all its statements: {}. \
         Correct the statement in crates/lab/src/instructions/paths.rs, or find why it is no longer taken that way",
        path.name(),
        seen.join("; ")
    )
}

/// The statements that make the tables, each of them as sysbench's.
fn tables() -> Vec<String> {
    let make = |name: &str| {
        let rows = numbers(ROWS);
        [
            format!(
                "CREATE TABLE {name} (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"
            ),
            format!(
                "INSERT INTO {name} SELECT {ROW_FIRST} - 1 + seq, seq, RPAD(seq, 119, '0-1-2-3'), RPAD(seq, 59, '4-5-6-7') \
                 FROM {rows}"
            ),
        ]
    };
    ["items", "written"].into_iter().flat_map(make).collect()
}
