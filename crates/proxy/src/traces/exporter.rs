//! Sends traces to an OpenTelemetry collector, on a thread of its own. Nobody waits for it: what it
//! can't take is dropped and counted.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use remora_engine::reason::{Limit, TraceDropped};

use super::Trace;
use super::otlp::{Numbers, body};
use crate::config::{Collector, OpenTelemetryOptions};
use crate::metrics::Metrics;

/// The most traces that are sent at once.
const BATCH_MAX: usize = 512;
/// How long nothing is sent after the collector didn't take something.
const PAUSE: Duration = Duration::from_secs(1);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Where traces wait to be sent.
#[derive(Debug)]
pub struct Exporter {
    queue: SyncSender<Arc<Trace>>,
    metrics: Arc<Metrics>,
}

impl Exporter {
    /// Starts a thread that sends, if the options name a collector. It ends with what this gives.
    pub fn start(
        options: &OpenTelemetryOptions,
        metrics: &Arc<Metrics>,
    ) -> io::Result<Option<Exporter>> {
        let endpoint = options.endpoint.as_deref();
        let Some(collector) = endpoint.and_then(Collector::at) else {
            return Ok(None);
        };
        let (queue, waiting) = sync_channel(options.queue_max);
        let mut sender = Sending {
            collector,
            service_name: options.service_name.clone(),
            timeout: Duration::from_millis(options.timeout_ms),
            metrics: Arc::clone(metrics),
            numbers: Numbers::default(),
            paused_until: None,
        };
        std::thread::Builder::new()
            .name("remora-otlp".to_owned())
            .spawn(move || sender.run(&waiting))?;
        Ok(Some(Exporter {
            queue,
            metrics: Arc::clone(metrics),
        }))
    }

    /// Has one sent, if there is room for it.
    pub(super) fn push(&self, trace: Arc<Trace>) {
        match self.queue.try_send(trace) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.metrics.rare.count_limit(Limit::TraceQueue);
                let why = TraceDropped::QueueFull;
                self.metrics.rare.count_traces_dropped(why, 1);
            }
            Err(TrySendError::Disconnected(_)) => {
                let why = TraceDropped::Unreachable;
                self.metrics.rare.count_traces_dropped(why, 1);
            }
        }
    }
}

/// What the thread has.
struct Sending {
    collector: Collector,
    service_name: String,
    timeout: Duration,
    metrics: Arc<Metrics>,
    numbers: Numbers,
    paused_until: Option<Instant>,
}

impl Sending {
    /// Sends until nobody is left who could have anything sent.
    fn run(&mut self, waiting: &Receiver<Arc<Trace>>) {
        while let Ok(first) = waiting.recv() {
            let further = waiting.try_iter().take(BATCH_MAX - 1);
            let batch: Vec<Arc<Trace>> = std::iter::once(first).chain(further).collect();
            if let Err(why) = self.send(&batch) {
                let count = batch.len() as u64;
                self.metrics.rare.count_traces_dropped(why, count);
            }
        }
    }

    fn send(&mut self, batch: &[Arc<Trace>]) -> Result<(), TraceDropped> {
        if self
            .paused_until
            .is_some_and(|until| Instant::now() < until)
        {
            return Err(TraceDropped::Unreachable);
        }
        let traces: Vec<&Trace> = batch.iter().map(|trace| &**trace).collect();
        let body = body(&self.service_name, &traces, &mut self.numbers).to_string();
        let status = self.post(body.as_bytes());
        let sent = match status {
            Ok(status) if (200..300).contains(&status) => Ok(()),
            Ok(status) => {
                tracing::debug!(status, "the OpenTelemetry collector refused traces");
                Err(TraceDropped::Refused)
            }
            Err(error) => {
                let kind = error.kind();
                if matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
                    self.metrics.rare.count_limit(Limit::TraceTime);
                }
                tracing::debug!(%error, "the OpenTelemetry collector can't be reached");
                Err(TraceDropped::Unreachable)
            }
        };
        self.paused_until = sent.is_err().then(|| Instant::now() + PAUSE);
        sent
    }

    /// Posts a body; gives the status of the answer.
    fn post(&self, body: &[u8]) -> io::Result<u16> {
        let Collector { host, port, path } = &self.collector;
        let give_up = Instant::now() + self.timeout;
        let mut stream = connect((host.as_str(), *port), give_up)?;
        stream.set_write_timeout(Some(self.timeout))?;
        let address = stream.peer_addr()?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat())?;
        status_of(&mut stream, give_up)
    }
}

/// Connects to the first address of a host that takes the connection.
fn connect(host: impl ToSocketAddrs, give_up: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in host.to_socket_addrs()? {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Reads as much of an answer as has its status.
fn status_of(stream: &mut TcpStream, give_up: Instant) -> io::Result<u16> {
    let mut answer = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut chunk)?;
        answer.extend_from_slice(&chunk[..count]);
        let has_line = answer.windows(2).any(|pair| pair == b"\r\n");
        if has_line || count == 0 || answer.len() as u64 > ANSWER_BYTES_MAX {
            break;
        }
    }
    let line = String::from_utf8_lossy(&answer);
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
