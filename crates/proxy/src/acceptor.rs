//! Accepting connections and handing each to the worker that has the fewest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use remora_engine::reason::Limit;
use remora_net::{Accepted, Listener};
use remora_wire::response::ServerError;
use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::worker::{Phase, WorkerHandle};

/// How long accepting pauses when the system refuses, for want of file descriptors say.
const PAUSE_AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// What the acceptor needs to hand connections out.
pub(crate) struct Acceptor {
    /// The workers.
    pub workers: Vec<WorkerHandle>,
    /// Connections of all workers that may be open at once.
    pub connections_max: usize,
    /// Where connections are counted.
    pub metrics: Arc<Metrics>,
}

impl Acceptor {
    /// Accepts from all listeners until the shutdown begins.
    pub(crate) async fn run(self, listeners: Vec<Listener>, phase: watch::Receiver<Phase>) {
        let acceptor = Arc::new(self);
        let mut accepting = tokio::task::JoinSet::new();
        for listener in listeners {
            let acceptor = Arc::clone(&acceptor);
            let mut phase = phase.clone();
            accepting.spawn(async move {
                let draining = phase.wait_for(|phase| *phase != Phase::Running);
                tokio::select! {
                    () = acceptor.accept_from(&listener) => {}
                    _ = draining => {}
                }
            });
        }
        accepting.join_all().await;
    }

    async fn accept_from(&self, listener: &Listener) {
        loop {
            match listener.accept().await {
                Ok(accepted) => self.hand_out(accepted),
                Err(error) => {
                    tracing::warn!(%error, "can't accept a connection; trying again");
                    tokio::time::sleep(PAUSE_AFTER_REFUSAL).await;
                }
            }
        }
    }

    fn hand_out(&self, accepted: Accepted) {
        self.metrics
            .rare
            .connections_accepted
            .fetch_add(1, Ordering::Relaxed);
        let load = |worker: &WorkerHandle| worker.load.load(Ordering::Relaxed);
        let open: usize = self.workers.iter().map(load).sum();
        if open >= self.connections_max {
            self.metrics.rare.count_limit(Limit::Connections);
            refuse(&accepted);
            return;
        }
        let Some(worker) = self.workers.iter().min_by_key(|worker| load(worker)) else {
            return;
        };
        worker.load.fetch_add(1, Ordering::Relaxed);
        if worker.connections.send(accepted).is_err() {
            // The worker has ended: Remora is shutting down.
            worker.load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Tells a client what a server would tell it, if its socket takes that at once.
fn refuse(accepted: &Accepted) {
    let packet = ServerError::new(1040, "08004", "Too many connections").packet(0);
    // A fresh socket takes so few bytes; if it doesn't, the client sees a closed connection.
    let _ = accepted.write_now(&packet);
}

/// How many connections all workers have.
pub(crate) fn open_connections(loads: &[Arc<AtomicUsize>]) -> usize {
    loads.iter().map(|load| load.load(Ordering::Relaxed)).sum()
}
