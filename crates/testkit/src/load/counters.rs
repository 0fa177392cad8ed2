//! Counters, read and written by many clients in many forms, each read judged by the oracle.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::oracle::{Oracle, Route, StaleRead};
use super::random::Random;
use crate::client::{Client, ClientError, ConnectOptions};
use crate::interrupt;

/// How many stale reads are kept; the others are counted.
const STALE_KEPT_MAX: usize = 20;
/// How long a client waits before it connects again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(5);
/// The most counters that one read reads.
const READ_MAX: usize = 4;

/// A table of counters: `id`, `value`, and a `note` to make rows a little longer.
#[derive(Debug, Clone)]
pub struct CounterTable {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: String,
    /// How many counters it holds; their `id` is 0 and up.
    pub rows: usize,
}

impl CounterTable {
    /// So many counters in an InnoDB table named `counters`.
    pub fn new(rows: usize) -> CounterTable {
        CounterTable {
            name: "counters".to_owned(),
            engine: "InnoDB".to_owned(),
            rows,
        }
    }

    /// Creates it, all values 0.
    pub fn create(&self, client: &mut Client) -> Result<(), ClientError> {
        let CounterTable { name, engine, rows } = self;
        client.query(&format!("DROP TABLE IF EXISTS {name}"))?;
        client.query(&format!(
            "CREATE TABLE {name} (id INT PRIMARY KEY, value BIGINT NOT NULL, note VARCHAR(40) NOT NULL) \
             ENGINE={engine}"
        ))?;
        let values: Vec<String> = (0..*rows)
            .map(|id| format!("({id}, 0, 'counter {id}')"))
            .collect();
        for chunk in values.chunks(1_000) {
            client.query(&format!("INSERT INTO {name} VALUES {}", chunk.join(", ")))?;
        }
        Ok(())
    }
}

/// The forms of a read. Each returns `id` and `value` of the counters it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadForm {
    One,
    Several,
    Range,
    Join,
    /// In a `READ COMMITTED` transaction.
    Transaction,
}

const READ_FORMS: [ReadForm; 5] = [
    ReadForm::One,
    ReadForm::Several,
    ReadForm::Range,
    ReadForm::Join,
    ReadForm::Transaction,
];

/// The forms of a write of one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteForm {
    Update,
    Transaction,
    Upsert,
    MultiStatement,
    Replace,
}

const WRITE_FORMS: [WriteForm; 5] = [
    WriteForm::Update,
    WriteForm::Transaction,
    WriteForm::Upsert,
    WriteForm::MultiStatement,
    WriteForm::Replace,
];

/// When a load ends.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    /// After so many checked reads …
    pub reads: u64,
    /// … or after so long, whichever comes first.
    pub time: Duration,
}

/// Who reads and writes, and how.
#[derive(Debug, Clone)]
pub struct CounterLoad {
    /// The counters.
    pub table: CounterTable,
    /// How clients connect to Remora.
    pub through: ConnectOptions,
    /// How clients connect to the server.
    pub direct: ConnectOptions,
    /// Clients that read through Remora.
    pub readers: usize,
    /// Clients that write through Remora.
    pub writers_through: usize,
    /// Clients that write to the server directly.
    pub writers_direct: usize,
    /// Pause of a writer between two writes, so that reads can hit in between.
    pub write_pause: Duration,
    /// Whether clients whose connection dies connect again. If not, the first error ends the load.
    pub survive_errors: bool,
    /// Chooses counters and forms.
    pub seed: u64,
}

/// What a load found.
#[derive(Debug, Clone, Default)]
pub struct CounterReport {
    /// Reads that were checked.
    pub reads: u64,
    /// Writes through Remora that had their `OK`.
    pub writes_through: u64,
    /// Direct writes that had their `OK`.
    pub writes_direct: u64,
    /// Errors that clients met and survived.
    pub errors: u64,
    /// One of them.
    pub an_error: Option<String>,
    /// Values that were older than allowed.
    pub stale_count: u64,
    /// The first of them.
    pub stale: Vec<StaleRead>,
    /// Values that nobody had written, in words.
    pub impossible: Vec<String>,
}

/// What all clients of a running load share.
struct Run<'a> {
    load: &'a CounterLoad,
    oracle: &'a Oracle,
    until: Until,
    started: Instant,
    stop: AtomicBool,
    reads: AtomicU64,
    writes_through: AtomicU64,
    writes_direct: AtomicU64,
    findings: Mutex<CounterReport>,
}

impl CounterLoad {
    /// Reads and writes until the limit is reached, `stop` says so, or the user asks to stop.
    ///
    /// # Errors
    /// A client met an error, unless the load survives errors.
    pub fn run(
        &self,
        oracle: &Oracle,
        until: Until,
        mut stop: impl FnMut() -> bool,
    ) -> anyhow::Result<CounterReport> {
        let run = Run {
            load: self,
            oracle,
            until,
            started: Instant::now(),
            stop: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            writes_through: AtomicU64::new(0),
            writes_direct: AtomicU64::new(0),
            findings: Mutex::new(CounterReport::default()),
        };
        let outcome = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut seeds = Random::new(self.seed);
            for role in self.roles() {
                let (run, random) = (&run, Random::new(seeds.next()));
                threads.push(scope.spawn(move || run.client(role, random)));
            }
            while !threads
                .iter()
                .all(std::thread::ScopedJoinHandle::is_finished)
            {
                if stop() || interrupt::is_set() {
                    run.stop.store(true, Ordering::SeqCst);
                }
                std::thread::sleep(RECONNECT_PAUSE);
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<()>>| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(anyhow::anyhow!("a client panicked")))
            };
            threads
                .into_iter()
                .map(join)
                .collect::<anyhow::Result<Vec<()>>>()
        });
        outcome?;
        interrupt::check()?;
        Ok(run.report())
    }

    fn roles(&self) -> impl Iterator<Item = Role> {
        std::iter::repeat_n(Role::Reader, self.readers)
            .chain(std::iter::repeat_n(
                Role::Writer(Route::Through),
                self.writers_through,
            ))
            .chain(std::iter::repeat_n(
                Role::Writer(Route::Direct),
                self.writers_direct,
            ))
    }
}

#[derive(Debug, Clone, Copy)]
enum Role {
    Reader,
    Writer(Route),
}

impl Run<'_> {
    fn report(self) -> CounterReport {
        let mut report = self
            .findings
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        report.reads = self.reads.into_inner();
        report.writes_through = self.writes_through.into_inner();
        report.writes_direct = self.writes_direct.into_inner();
        report
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.reads.load(Ordering::Relaxed) >= self.until.reads
            || self.started.elapsed() >= self.until.time
    }

    fn note(&self, change: impl FnOnce(&mut CounterReport)) {
        change(
            &mut self
                .findings
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
    }

    /// One client from its start to the load's end, through as many connections as it takes.
    fn client(&self, role: Role, mut random: Random) -> anyhow::Result<()> {
        while !self.is_over() {
            let outcome = self.connection(role, &mut random);
            let Err(error) = outcome else { continue };
            if !self.load.survive_errors {
                self.stop.store(true, Ordering::SeqCst);
                return Err(error).with_context(|| format!("a client of the load ({role:?})"));
            }
            self.note(|report| {
                report.errors += 1;
                report.an_error.get_or_insert_with(|| error.to_string());
            });
            std::thread::sleep(RECONNECT_PAUSE);
        }
        Ok(())
    }

    fn connection(&self, role: Role, random: &mut Random) -> anyhow::Result<()> {
        let options = match role {
            Role::Reader | Role::Writer(Route::Through) => &self.load.through,
            Role::Writer(Route::Direct) => &self.load.direct,
        };
        let mut client = options.connect()?;
        client.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        while !self.is_over() {
            match role {
                Role::Reader => self.read(&mut client, random)?,
                Role::Writer(route) => {
                    self.write(&mut client, route, random)?;
                    std::thread::sleep(self.load.write_pause);
                }
            }
        }
        Ok(())
    }

    fn read(&self, client: &mut Client, random: &mut Random) -> anyhow::Result<()> {
        let form = READ_FORMS[random.below(READ_FORMS.len())];
        // Ranges begin at multiples of their length, so that texts repeat.
        let first = random.below(self.oracle.len()) / READ_MAX * READ_MAX;
        let last = (first + READ_MAX).min(self.oracle.len()) - 1;
        let single = first + random.below(last - first + 1);
        let text = self.read_text(form, single, first, last);
        if form == ReadForm::Transaction {
            client.query("BEGIN")?;
        }
        let floors: Vec<_> = (first..=last)
            .map(|id| self.oracle.before_read(id))
            .collect();
        let rows = client.query(&text)?.rows()?;
        if form == ReadForm::Transaction {
            client.query("COMMIT")?;
        }
        for row in &rows {
            let number = |index: usize| -> Option<u64> {
                std::str::from_utf8(row.get(index)?.as_deref()?)
                    .ok()?
                    .parse()
                    .ok()
            };
            let (id, value) = number(0)
                .zip(number(1))
                .context("a row without two numbers")?;
            let id = usize::try_from(id)?;
            let floor = *floors
                .get(id.wrapping_sub(first))
                .context("a row nobody asked for")?;
            if let Err(stale) = self.oracle.judge(floor, value, || text.clone()) {
                self.found(stale);
            }
            if let Err(impossible) = self.oracle.judge_newest(id, value) {
                self.note(|report| report.impossible.push(format!("{impossible:?} {text}")));
            }
        }
        let expected = match form {
            ReadForm::One | ReadForm::Transaction => 1,
            ReadForm::Several | ReadForm::Range | ReadForm::Join => last - first + 1,
        };
        if rows.len() != expected {
            let seen = rows.len();
            let words = format!("{seen} rows, not {expected}: {text}");
            self.note(|report| report.impossible.push(words));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn read_text(&self, form: ReadForm, single: usize, first: usize, last: usize) -> String {
        let name = &self.load.table.name;
        match form {
            ReadForm::One => format!("SELECT id, value FROM {name} WHERE id = {single}"),
            ReadForm::Transaction => format!("select id, value from {name} where id={single}"),
            ReadForm::Range => {
                format!("SELECT id, value, note FROM {name} WHERE id BETWEEN {first} AND {last}")
            }
            ReadForm::Several => {
                let ids: Vec<String> = (first..=last).map(|id| id.to_string()).collect();
                format!(
                    "SELECT id, value FROM {name} WHERE id IN ({})",
                    ids.join(", ")
                )
            }
            ReadForm::Join => format!(
                "SELECT a.id, a.value FROM {name} a JOIN {name} b ON a.id = b.id \
                 WHERE b.id >= {first} AND b.id <= {last} ORDER BY a.id"
            ),
        }
    }

    fn found(&self, mut stale: Box<StaleRead>) {
        self.note(|report| report.stale_count += 1);
        stale.position = self.position();
        self.note(|report| {
            if report.stale.len() < STALE_KEPT_MAX {
                report.stale.push(*stale);
            }
        });
    }

    fn position(&self) -> Option<String> {
        let mut client = self.load.direct.connect().ok()?;
        let rows = client.query("SHOW MASTER STATUS").ok()?.rows().ok()?;
        let field = |index: usize| rows.first()?.get(index)?.clone();
        let (file, offset) = field(0).zip(field(1))?;
        Some(format!(
            "{}:{}",
            String::from_utf8_lossy(&file),
            String::from_utf8_lossy(&offset)
        ))
    }

    fn write(
        &self,
        client: &mut Client,
        route: Route,
        random: &mut Random,
    ) -> Result<(), ClientError> {
        let id = random.below(self.oracle.len());
        // Where connections may die, a write of unknown outcome can still be on its way when the
        // next is done, so each must keep the counter from falling. `REPLACE` can't.
        let forms = WRITE_FORMS.len() - usize::from(self.load.survive_errors);
        let form = WRITE_FORMS[random.below(forms)];
        let name = &self.load.table.name;
        let turn = self.oracle.begin_write(id);
        let value = turn.value();
        let update =
            format!("UPDATE {name} SET value = {value} WHERE id = {id} AND value < {value}");
        let row = format!("({id}, {value}, 'counter {id}')");
        match form {
            WriteForm::Update => client.query(&update).map(drop)?,
            WriteForm::MultiStatement => client.query(&format!("{update}; DO 1")).map(drop)?,
            WriteForm::Replace => {
                client
                    .query(&format!("REPLACE INTO {name} VALUES {row}"))
                    .map(drop)?;
            }
            WriteForm::Upsert => {
                let insert = format!("INSERT INTO {name} VALUES {row}");
                let text = format!(
                    "{insert} ON DUPLICATE KEY UPDATE value = GREATEST(value, VALUES(value))"
                );
                client.query(&text).map(drop)?;
            }
            WriteForm::Transaction => {
                client.query("START TRANSACTION")?;
                client.query(&update)?;
                client.query("COMMIT")?;
            }
        }
        turn.done(route);
        let count = match route {
            Route::Through => &self.writes_through,
            Route::Direct => &self.writes_direct,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
