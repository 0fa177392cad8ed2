//! Readings that somebody asks for on the dashboard: one at a time, on the admin thread.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use remora_adviser::Report;
use remora_upstream::UpstreamConfig;
use tokio::sync::Notify;

use super::{AdviseError, Pace, ask};

/// How the server is read for the dashboard.
const PACE: Pace = Pace {
    length: Duration::from_secs(10),
    interval: Duration::from_secs(1),
};

/// How far a reading is.
#[derive(Debug, Clone)]
pub enum Progress {
    /// Nobody has asked.
    NotAsked,
    /// The server is being read.
    Reading {
        /// For how long already.
        since: Duration,
        /// For how long in all.
        length: Duration,
    },
    /// This came of the last one.
    Done(Box<Report>),
    /// The last one came to nothing.
    Failed(String),
}

/// Takes the wish for a reading, and keeps what came of the last one.
#[derive(Debug)]
pub struct ReadingOnDemand {
    config: UpstreamConfig,
    processors: Option<u32>,
    progress: Mutex<Progress>,
    asked: Notify,
}

impl ReadingOnDemand {
    /// One that asks the server as `config` says, which has so many processors.
    pub fn new(config: UpstreamConfig, processors: Option<u32>) -> ReadingOnDemand {
        ReadingOnDemand {
            config,
            processors,
            progress: Mutex::new(Progress::NotAsked),
            asked: Notify::new(),
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.lock().clone()
    }

    /// Asks for a reading. One that is under way counts.
    pub fn ask(&self) {
        let mut progress = self.lock();
        if !matches!(*progress, Progress::Reading { .. }) {
            *progress = reading(Duration::ZERO);
            self.asked.notify_one();
        }
    }

    /// Does what is asked for, for ever.
    pub async fn work(&self) {
        loop {
            self.asked.notified().await;
            let done = match self.read().await {
                Ok(report) => Progress::Done(Box::new(report)),
                Err(error) => Progress::Failed(error.to_string()),
            };
            *self.lock() = done;
        }
    }

    async fn read(&self) -> Result<Report, AdviseError> {
        let note = |since| *self.lock() = reading(since);
        ask(&self.config, self.processors, PACE, note).await
    }

    /// Only the admin thread takes it, so nobody waits.
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reading(since: Duration) -> Progress {
    Progress::Reading {
        since,
        length: PACE.length,
    }
}
