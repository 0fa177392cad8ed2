//! A worker: one thread, one single-threaded runtime, and the sessions that live on it.
//!
//! Nothing of a session is shared with another worker except the caches, so a hit takes no lock.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use remora_engine::reason::Limit;
use remora_net::Accepted;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use crate::digests::WorkerDigests;
use crate::metrics::WorkerMetrics;
use crate::session::{self, ClientConnection, WorkerContext};
use crate::shared::Shared;

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
    /// No new connections or transactions. Running statements and open transactions may finish.
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
    let worker = Rc::new(WorkerContext::new(shared, metrics, digests));
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
    worker: &Rc<WorkerContext>,
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

fn spawn(
    shared: &Arc<Shared>,
    worker: &Rc<WorkerContext>,
    accepted: Accepted,
    load: &Arc<AtomicUsize>,
) {
    let counted = Counted(Arc::clone(load));
    let client = match accepted.into_stream() {
        Ok(stream) => Rc::new(ClientConnection::new(stream)),
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
        session::serve(shared, worker, client, None).await;
        drop(counted);
    });
}
