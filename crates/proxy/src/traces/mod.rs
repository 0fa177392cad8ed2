//! Where the time of single statements went: a share of them is traced, stage by stage, as
//! `SHOW PROFILE` does.
//!
//! Whether a statement is traced is decided before it is looked at (`observe.trace_sample`). One
//! that isn't pays for a branch here and there and reads no clock more than before. One that is
//! carries a `Recorder`, which gives each moment between its first byte and its end to one
//! [`Stage`](remora_engine::reason::Stage): so the stages of a trace always sum up to its time.
//! What recording itself takes is left out of it.
//!
//! | file | what it is |
//! |---|---|
//! | `recorder` | what a statement under way carries |
//! | `trace` | what is left of it: plain values |
//! | `parent` | the trace of the application that a statement belongs to |
//! | `ring` | the newest ones, for `GET /traces` |
//! | `exporter`, `otlp` | sending them to an OpenTelemetry collector |
//! | `report`, `text` | how they are shown to programs and to people |

mod exporter;
mod otlp;
mod parent;
mod recorder;
mod report;
mod ring;
mod text;
mod trace;

use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use self::exporter::Exporter;
pub use self::parent::Parent;
pub(crate) use self::recorder::{About, Recorder};
pub(crate) use self::report::microseconds;
pub use self::report::{StageReport, TraceReport};
pub use self::text::table;
pub use self::trace::{Trace, TracedCommand};

use remora_engine::reason::Limit;
use remora_sql::Digest;

use self::ring::Ring;
use crate::metrics::Metrics;

/// Where finished traces go.
#[derive(Debug)]
pub struct Traces {
    share: f64,
    ring: Ring,
    exporter: Option<Exporter>,
    metrics: Arc<Metrics>,
}

impl Traces {
    /// For a share of the statements, with room for so many traces, and perhaps with somebody to
    /// send them to.
    pub fn new(
        share: f64,
        count_max: usize,
        exporter: Option<Exporter>,
        metrics: Arc<Metrics>,
    ) -> Traces {
        Traces {
            share,
            ring: Ring::new(count_max),
            exporter,
            metrics,
        }
    }

    /// The share of the statements that is traced.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Takes a finished one. Its client has its answer.
    pub fn add(&self, trace: Trace) {
        self.metrics.rare.traces.fetch_add(1, Ordering::Relaxed);
        let trace = Arc::new(trace);
        if let Some(exporter) = &self.exporter {
            exporter.push(Arc::clone(&trace));
        }
        if self.ring.push(trace) {
            self.metrics.rare.count_limit(Limit::Traces);
        }
    }

    /// Those that are kept and of this digest, if one is asked for; the newest first, at most so
    /// many.
    pub fn report(&self, digest: Option<Digest>, count_max: usize) -> Vec<TraceReport> {
        let is_asked_for = |trace: &&Arc<Trace>| {
            let of = trace.statement.as_ref().map(|(digest, _)| *digest);
            digest.is_none() || of == digest
        };
        let newest = self.newest();
        let asked_for = newest.iter().filter(is_asked_for).take(count_max);
        asked_for.map(|trace| TraceReport::from(&**trace)).collect()
    }

    /// Those that are kept, the newest first.
    pub fn newest(&self) -> Vec<Arc<Trace>> {
        self.ring.newest()
    }
}
