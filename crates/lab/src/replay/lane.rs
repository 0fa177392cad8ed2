//! One connection to a target: sends its part of what is planned.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use remora_wire::command::ResponseKind;

use super::event::{Action, Bytes, Execution, use_target};
use super::measured::Sample;
use super::plan::{LeftOut, Plan, Step, shortened};
use remora_testkit::client::{Answer, Client, ClientError, ConnectOptions, StatementId};
use remora_testkit::interrupt;

const QUIT: u8 = 0x01;
const INIT_DB: u8 = 0x02;
const STMT_EXECUTE: u8 = 0x17;

/// How many prepared statements a connection keeps.
const PREPARED_MAX: usize = 1_000;
/// How many samples are handed over at once, and after how long at the latest.
const SAMPLES_MAX: usize = 128;
const SAMPLES_KEPT: Duration = Duration::from_millis(500);
/// How long to wait after a connection that failed.
const PAUSE: Duration = Duration::from_millis(100);
/// A target that has answered nothing for so long, while connections to it fail, is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Before the first statement is due.
const HEAD_START: Duration = Duration::from_millis(100);
const HEAD_START_OF_LANE: Duration = Duration::from_millis(2);
const HEAD_START_MAX: Duration = Duration::from_secs(2);

/// How fast a capture is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// So many times as fast as it was captured.
    Times(f64),
    /// Each connection sends as soon as it has its answer.
    Max,
}

impl Speed {
    /// When something is due, since the beginning; `None`: as soon as possible.
    pub fn due(self, at: Duration) -> Option<Duration> {
        match self {
            Speed::Times(times) => Some(at.div_f64(times)),
            Speed::Max => None,
        }
    }
}

/// What the lanes of a turn share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) connect: &'a ConnectOptions,
    pub(super) speed: Speed,
    /// Whether what each read gave is kept.
    pub(super) with_digests: bool,
    pub(super) begun: Instant,
    pub(super) is_stopped: AtomicBool,
    pub(super) why_stopped: Mutex<Option<String>>,
    /// When anything was answered last.
    last_good: Mutex<Instant>,
    /// The sockets of the lanes, so that a wait for an answer can be broken off.
    sockets: Mutex<HashMap<usize, std::net::TcpStream>>,
}

/// What a lane has kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By number and state, or what befell the connection.
    pub(super) errors: BTreeMap<String, LeftOut>,
    /// For each read that can be compared its place in the plan and what its rows come to.
    pub(super) digests: Vec<(u32, u64)>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        connect: &'a ConnectOptions,
        speed: Speed,
        with_digests: bool,
    ) -> Shared<'a> {
        let now = Instant::now();
        let lanes = u32::try_from(plan.lanes.len()).unwrap_or(u32::MAX);
        // So that those that are due at once have connected by then.
        let head_start = HEAD_START.saturating_add(HEAD_START_OF_LANE.saturating_mul(lanes));
        Shared {
            plan,
            connect,
            speed,
            with_digests,
            begun: match speed {
                Speed::Times(_) => now + head_start.min(HEAD_START_MAX),
                Speed::Max => now,
            },
            is_stopped: AtomicBool::new(false),
            why_stopped: Mutex::new(None),
            last_good: Mutex::new(now),
            sockets: Mutex::new(HashMap::new()),
        }
    }

    /// Whether lanes shall end.
    pub(super) fn is_over(&self) -> bool {
        interrupt::is_set() || self.is_stopped.load(Ordering::Relaxed)
    }

    /// Ends the waits for answers.
    pub(super) fn break_off(&self) {
        for socket in locked(&self.sockets).values() {
            // It may have been closed.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    fn stop(&self, why: String) {
        locked(&self.why_stopped).get_or_insert(why);
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection with what is known of its session.
struct Session {
    client: Client,
    schema: Option<Bytes>,
    prepared: HashMap<Bytes, StatementId>,
}

/// A lane at work.
struct Lane<'a> {
    shared: &'a Shared<'a>,
    number: usize,
    session: Option<Session>,
    samples: Vec<Sample>,
    handed_over: Instant,
    sender: mpsc::SyncSender<Vec<Sample>>,
    kept: Kept,
}

/// Sends the steps of a lane, one after another.
pub(super) fn run(
    shared: &Shared<'_>,
    number: usize,
    sender: mpsc::SyncSender<Vec<Sample>>,
) -> Kept {
    let mut lane = Lane {
        shared,
        number,
        session: None,
        samples: Vec::new(),
        handed_over: Instant::now(),
        sender,
        kept: Kept::default(),
    };
    let places = shared
        .plan
        .lanes
        .get(number)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for place in places {
        let step = usize::try_from(*place)
            .ok()
            .and_then(|place| shared.plan.steps.get(place));
        let Some(step) = step else { continue };
        if shared.is_over() || !lane.step(*place, step) {
            break;
        }
    }
    lane.leave();
    lane.hand_over();
    lane.kept
}

impl Lane<'_> {
    /// Does one step; false if the lane shall end.
    fn step(&mut self, place: u32, step: &Step) -> bool {
        if step.begins_connection {
            self.leave();
        }
        let ready = self.prepare(step);
        let due = self
            .shared
            .speed
            .due(step.at)
            .map(|due| self.shared.begun + due);
        if !self.wait_until(due) {
            return false;
        }
        let sent = Instant::now();
        let outcome = ready.and_then(|()| self.send(step));
        let answered = Instant::now();
        if self.shared.is_over() && matches!(outcome, Err(ClientError::Io(_))) {
            // It was broken off.
            return false;
        }
        self.samples.push(Sample {
            answered: answered.saturating_duration_since(self.shared.begun),
            latency: answered - sent,
            from_due: due.map(|due| answered.saturating_duration_since(due)),
            lag: due.map(|due| sent.saturating_duration_since(due)),
            failed: outcome.is_err(),
            is_read: step.is_read,
        });
        match outcome {
            Ok(digest) => {
                *locked(&self.shared.last_good) = answered;
                self.kept
                    .digests
                    .extend(digest.map(|digest| (place, digest)));
            }
            Err(error) => self.failed(step, &error),
        }
        if self.samples.len() >= SAMPLES_MAX || self.handed_over.elapsed() > SAMPLES_KEPT {
            self.hand_over();
        }
        true
    }

    /// Waits until something is due; false if the lane shall end.
    fn wait_until(&mut self, due: Option<Instant>) -> bool {
        const SLICE: Duration = Duration::from_millis(20);
        let Some(due) = due else { return true };
        if due.saturating_duration_since(Instant::now()) > SLICE {
            self.hand_over();
        }
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            if self.shared.is_over() {
                return false;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    /// Has a connection with the schema and the prepared statement that the step needs.
    fn prepare(&mut self, step: &Step) -> Result<(), ClientError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.connect()?,
        };
        let prepared = session.prepare(step);
        // A server's error leaves the connection as it was.
        if !matches!(prepared, Err(ClientError::Io(_) | ClientError::Wire(_))) {
            self.session = Some(session);
        }
        prepared
    }

    fn connect(&self) -> Result<Session, ClientError> {
        let client = self.shared.connect.connect()?;
        if let Ok(socket) = client.stream().try_clone() {
            locked(&self.shared.sockets).insert(self.number, socket);
        }
        Ok(Session {
            client,
            schema: None,
            prepared: HashMap::new(),
        })
    }

    fn send(&mut self, step: &Step) -> Result<Option<u64>, ClientError> {
        let Some(session) = &mut self.session else {
            return Err(ClientError::Io(std::io::ErrorKind::NotConnected.into()));
        };
        let answer = session.send(step)?;
        Ok((self.shared.with_digests && step.is_comparable).then(|| digest(&answer)))
    }

    fn failed(&mut self, step: &Step, error: &ClientError) {
        let (name, text) = (error_name(error), statement_text(&step.action));
        let one = self.kept.errors.entry(name).or_insert_with(|| LeftOut {
            count: 0,
            example: format!("{error}: {}", shortened(text)),
        });
        one.count += 1;
        if matches!(error, ClientError::Server(_)) && self.session.is_some() {
            *locked(&self.shared.last_good) = Instant::now();
            return;
        }
        self.session = None;
        if locked(&self.shared.last_good).elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            self.shared.stop(format!(
                "it has answered nothing for {seconds} s; the last failure: {error}"
            ));
        }
        std::thread::sleep(PAUSE);
    }

    /// Closes the connection in the protocol's way.
    fn leave(&mut self) {
        locked(&self.shared.sockets).remove(&self.number);
        if let Some(mut session) = self.session.take() {
            // Whatever comes of it, the connection ends.
            let _ = session.client.command(QUIT, &[], ResponseKind::Nothing);
        }
    }

    fn hand_over(&mut self) {
        self.handed_over = Instant::now();
        if !self.samples.is_empty() {
            // The one who takes them outlives the lanes.
            let _ = self.sender.send(std::mem::take(&mut self.samples));
        }
    }
}

impl Session {
    fn prepare(&mut self, step: &Step) -> Result<(), ClientError> {
        if let Some(schema) = step.schema.as_ref().filter(|schema| !schema.is_empty())
            && self.schema.as_ref() != Some(schema)
        {
            self.client.command(INIT_DB, schema, ResponseKind::Single)?;
            self.schema = Some(Bytes::clone(schema));
        }
        let Action::Execution(execution) = &step.action else {
            return Ok(());
        };
        if self.prepared.contains_key(&execution.text) {
            return Ok(());
        }
        if self.prepared.len() >= PREPARED_MAX {
            for (_, statement) in self.prepared.drain() {
                self.client.close_statement(statement)?;
            }
        }
        let statement = self.client.prepare(&execution.text)?;
        self.prepared
            .insert(Bytes::clone(&execution.text), statement);
        Ok(())
    }

    fn send(&mut self, step: &Step) -> Result<Answer<'_>, ClientError> {
        match &step.action {
            Action::Query(text) => {
                let answer = self.client.query_raw(text)?;
                if let Some(schema) = use_target(text) {
                    self.schema = Some(schema.into());
                }
                Ok(answer)
            }
            Action::Execution(execution) => {
                let statement = self.prepared.get(&execution.text).copied();
                let statement = statement.ok_or(remora_wire::WireError::Malformed("execution"))?;
                let body = execution_body(statement, execution);
                self.client
                    .command(STMT_EXECUTE, &body, ResponseKind::Results)
            }
            Action::Quit => Err(remora_wire::WireError::Malformed("statement").into()),
        }
    }
}

/// A one-off connection for asking something again.
pub(super) struct Asker(Session);

impl Asker {
    pub(super) fn connect(options: &ConnectOptions) -> Result<Asker, ClientError> {
        Ok(Asker(Session {
            client: options.connect()?,
            schema: None,
            prepared: HashMap::new(),
        }))
    }

    /// What a read's rows come to.
    pub(super) fn ask(&mut self, step: &Step) -> Result<u64, ClientError> {
        self.0.prepare(step)?;
        Ok(digest(&self.0.send(step)?))
    }
}

/// The body of an execution with the values as they were captured. No cursor is asked for: the rows
/// come at once.
fn execution_body(statement: StatementId, execution: &Execution) -> Vec<u8> {
    let mut body = statement.0.to_le_bytes().to_vec();
    body.push(0);
    body.extend(1_u32.to_le_bytes());
    if execution.parameters() > 0 {
        let nulls = execution
            .parameters()
            .div_ceil(8)
            .min(execution.values.len());
        let (nulls, values) = execution.values.split_at(nulls);
        body.extend_from_slice(nulls);
        body.push(1);
        body.extend_from_slice(&execution.types);
        body.extend_from_slice(values);
    }
    body
}

/// A number that is the same for the same rows, in any order.
fn digest(answer: &Answer<'_>) -> u64 {
    let mut rows: Vec<u64> = answer.row_payloads().map(hash).collect();
    rows.sort_unstable();
    hash(&rows)
}

fn hash<T: std::hash::Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn error_name(error: &ClientError) -> String {
    match error {
        ClientError::Server(error) => format!("{} ({})", error.code, error.sql_state),
        ClientError::Io(_) => "connection lost or refused".to_owned(),
        ClientError::Wire(_) => "answer that can't be read".to_owned(),
    }
}

/// The text of what was sent.
pub(super) fn statement_text(action: &Action) -> &[u8] {
    match action {
        Action::Query(text) => text,
        Action::Execution(execution) => &execution.text,
        Action::Quit => &[],
    }
}
