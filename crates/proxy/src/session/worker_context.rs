//! What the sessions of one worker share: buffers, counters, guesses. Nobody else touches it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use super::client_connection::ClientConnection;
use super::fill::WaitingFill;
use super::first_read::FirstReads;
use crate::digests::{Digester, WorkerDigests};
use crate::metrics::WorkerMetrics;
use crate::sampler::{Countdown, Sampler};
use crate::shared::Shared;

/// The largest buffer that is kept for the next answer, bytes: room for as much as is cached unless
/// configured otherwise.
const CAPTURE_BYTES_KEPT: usize = 1024 * 1024;

/// What the sessions of one worker share.
pub(crate) struct WorkerContext {
    /// Where bytes are read to and handled, for all sessions. Nobody holds it across a wait.
    pub scratch: RefCell<Box<[u8]>>,
    /// What the last answer that came in several pieces was captured in, for the next one.
    capture_buffer: Cell<Vec<u8>>,
    /// Results of transactions that are kept when it is proven that they show one moment: at most
    /// `cache.waiting_fills_max`.
    pub waiting_fills: RefCell<VecDeque<WaitingFill>>,
    /// Whether it pays that memory answers the first reads of transactions.
    pub first_reads: FirstReads,
    /// A buffer for the text that a statement is looked up by, where that isn't its own. It is no
    /// longer than `cache.statement_bytes_max`.
    pub key_text: Cell<Vec<u8>>,
    /// This worker's counters.
    pub metrics: Arc<WorkerMetrics>,
    /// Its counters of digests, and what it needs to find them.
    pub digests: Digester,
    /// Chooses the hits that are verified.
    pub verify: Sampler,
    /// Chooses the statements that are traced.
    pub trace: Countdown,
    clients: RefCell<Vec<Weak<ClientConnection>>>,
    is_stopping: Cell<bool>,
}

impl WorkerContext {
    /// For a worker with these counters.
    pub(crate) fn new(
        shared: &Shared,
        metrics: Arc<WorkerMetrics>,
        digests: Arc<WorkerDigests>,
    ) -> WorkerContext {
        WorkerContext {
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
        }
    }

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
            // Another session may have given one back meanwhile.
            let other = self.capture_buffer.take();
            let larger = if other.capacity() > buffer.capacity() {
                other
            } else {
                buffer
            };
            self.capture_buffer.set(larger);
        }
    }

    /// Whether Remora is about to stop: no client begins anything any more.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Knows of a client's connection from now on.
    pub(crate) fn remember(&self, client: &Rc<ClientConnection>) {
        let mut clients = self.clients.borrow_mut();
        if clients.len() == clients.capacity() {
            clients.retain(|client| client.strong_count() > 0);
        }
        clients.push(Rc::downgrade(client));
    }

    /// Ends the sessions that are idle: each sees its client leave. The others go on until their
    /// statement is answered and their transaction has ended.
    pub(crate) fn stop_reading(&self) {
        self.is_stopping.set(true);
        for client in self.clients.borrow().iter().filter_map(Weak::upgrade) {
            client.stop_reading();
        }
    }
}
