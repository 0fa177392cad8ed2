//! A worker: one thread, one single-threaded runtime, and the sessions that live on it.
//!
//! Nothing of a session is shared with another worker except the caches, so a hit takes no lock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::Shutdown;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use crate::digests::{Digester, WorkerDigests};
use crate::metrics::WorkerMetrics;
use crate::net::{Accepted, Stream};
use crate::reason::Limit;
use crate::sampler::{Countdown, Sampler};
use crate::session;
use crate::session::fill::WaitingFill;
use crate::session::first_read::FirstReads;
use crate::shared::Shared;

/// The largest buffer that is kept for the next answer, bytes: room for as much as is cached unless
/// configured otherwise.
const CAPTURE_BYTES_KEPT: usize = 1024 * 1024;

/// What the sessions of one worker share.
pub(crate) struct Worker {
    /// Where bytes are read to and handled, for all sessions. Nobody holds it across a wait.
    pub scratch: RefCell<Box<[u8]>>,
    /// What the last answer that came in several pieces was captured in, for the next one.
    capture_buffer: Cell<Vec<u8>>,
    /// Results of transactions that are kept when it is proven that they show one moment: at most
    /// `cache.waiting_fills_max`.
    pub waiting_fills: RefCell<VecDeque<WaitingFill>>,
    /// Whether it pays that memory answers the first reads of transactions.
    pub(crate) first_reads: FirstReads,
    /// The last text that a statement was looked up by, where that isn't its own: room for the next
    /// one. It is no longer than `cache.statement_bytes_max`.
    pub key_text: Cell<Vec<u8>>,
    /// This worker's counters.
    pub metrics: Arc<WorkerMetrics>,
    /// Its counters of digests, and what it needs to find them.
    pub digests: Digester,
    /// Chooses the hits that are verified.
    pub verify: Sampler,
    /// Chooses the statements that are traced.
    pub trace: Countdown,
    clients: RefCell<Vec<Weak<Stream>>>,
    /// Clients seem to have left, but it is Remora that no longer listens.
    is_stopping: Cell<bool>,
}

/// The acceptor's end of a worker.
#[derive(Debug, Clone)]
pub(crate) struct WorkerHandle {
    /// Connections waiting here are bounded by `connections_max`, which counts them.
    pub connections: mpsc::UnboundedSender<Accepted>,
    /// How many connections the worker has.
    pub load: Arc<AtomicUsize>,
}

/// How far a shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Serving.
    Running,
    /// No new connections or statements; running statements may finish.
    Draining,
}

/// Counts a connection while it lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a worker on the calling thread until the shutdown is over.
pub(crate) fn run(
    shared: &Arc<Shared>,
    metrics: Arc<WorkerMetrics>,
    digests: Arc<WorkerDigests>,
    incoming: mpsc::UnboundedReceiver<Accepted>,
    load: &Arc<AtomicUsize>,
    phase: watch::Receiver<Phase>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let worker = Rc::new(Worker {
        scratch: RefCell::new(vec![0; shared.limits.read_bytes_max].into_boxed_slice()),
        capture_buffer: Cell::default(),
        waiting_fills: RefCell::default(),
        first_reads: FirstReads::default(),
        key_text: Cell::default(),
        metrics,
        digests: Digester::new(digests, shared.limits.known_statements_max),
        verify: Sampler::new(shared.verification.share),
        trace: Countdown::new(shared.traces.share()),
        clients: RefCell::new(Vec::new()),
        is_stopping: Cell::new(false),
    });
    let sessions = LocalSet::new();
    let grace = shared.limits.shutdown_grace;
    // A separate task: `run_until` polls its own future whenever any session wakes.
    let accepting = {
        let (shared, worker, load) = (Arc::clone(shared), Rc::clone(&worker), Arc::clone(load));
        sessions.spawn_local(async move {
            accept(&shared, &worker, &load, incoming, phase).await;
        })
    };
    // It can only fail by panicking, and then the worker must panic too.
    if let Err(error) = runtime.block_on(sessions.run_until(accepting))
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
    worker.stop_reading();
    runtime.block_on(async {
        // Whatever has not ended by then is dropped with its connections.
        if tokio::time::timeout(grace, sessions).await.is_err() {
            shared.metrics.rare.count_limit(Limit::GracePeriod);
        }
    });
    runtime.shutdown_timeout(Duration::ZERO);
    Ok(())
}

/// Starts a session for each accepted client, until the worker must stop.
async fn accept(
    shared: &Arc<Shared>,
    worker: &Rc<Worker>,
    load: &Arc<AtomicUsize>,
    mut incoming: mpsc::UnboundedReceiver<Accepted>,
    mut phase: watch::Receiver<Phase>,
) {
    loop {
        tokio::select! {
            accepted = incoming.recv() => match accepted {
                Some(accepted) => spawn(shared, worker, accepted, load),
                None => break,
            },
            changed = phase.wait_for(|phase| *phase != Phase::Running) => {
                drop(changed);
                break;
            }
        }
    }
}

fn spawn(shared: &Arc<Shared>, worker: &Rc<Worker>, accepted: Accepted, load: &Arc<AtomicUsize>) {
    let counted = Counted(Arc::clone(load));
    let client = match accepted.into_stream() {
        Ok(stream) => Rc::new(stream),
        Err(error) => {
            tracing::debug!(%error, "a connection was gone before it could be served");
            return;
        }
    };
    worker.remember(&client);
    let (shared, worker) = (Arc::clone(shared), Rc::clone(worker));
    tokio::task::spawn_local(async move {
        // Made in here: a future that is captured and then awaited is there twice, in each
        // connection.
        session::serve(shared, worker, client).await;
        drop(counted);
    });
}

impl Worker {
    /// An empty buffer for an answer that comes in several pieces. It has room already if one has
    /// been kept.
    pub(crate) fn capture_buffer(&self) -> Vec<u8> {
        self.capture_buffer.take()
    }

    /// Keeps a buffer for the next such answer, so that it needn't grow from nothing, unless it is
    /// very large.
    pub(crate) fn keep_capture_buffer(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= CAPTURE_BYTES_KEPT {
            buffer.clear();
            self.capture_buffer.set(buffer);
        }
    }

    /// Whether Remora is about to stop, and nothing more is read from clients.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    fn remember(&self, client: &Rc<Stream>) {
        let mut clients = self.clients.borrow_mut();
        if clients.len() == clients.capacity() {
            clients.retain(|client| client.strong_count() > 0);
        }
        clients.push(Rc::downgrade(client));
    }

    /// Ends the clients' side of each connection: an idle session sees its client leave, a running
    /// statement is answered first.
    fn stop_reading(&self) {
        self.is_stopping.set(true);
        for client in self.clients.borrow().iter().filter_map(Weak::upgrade) {
            // A socket that is closed already needs nothing.
            let _ = client.shutdown(Shutdown::Read);
        }
    }
}
