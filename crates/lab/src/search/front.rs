//! The Remora that is searched: one inside this process, which can be looked into and broken, or
//! the program of any build, of which its pages tell the same.

use std::net::SocketAddr;
use std::path::PathBuf;

use remora_cache::BrokenRules;
use remora_engine::reason::Outcome;
use remora_testkit::metrics;
use remora_testkit::proxies::{InProcessRemora, Remora, RemoraOptions};
use remora_testkit::servers::Server;
use remora_upstream::UpstreamState;

/// Which Remora is searched.
#[derive(Debug, Clone, Default)]
pub struct Build {
    /// The program of another build; `None`: this build.
    pub program: Option<PathBuf>,
    /// What is broken on purpose; only this build can be broken.
    pub broken: BrokenRules,
}

/// Statements counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) all: u64,
    /// Of these, those that were answered from memory.
    pub(super) hits: u64,
}

pub(super) enum Front {
    Inside(Box<InProcessRemora>),
    Program(Box<Remora>),
}

impl Front {
    pub(super) fn start(
        server: &Server,
        options: RemoraOptions,
        build: &Build,
    ) -> anyhow::Result<Front> {
        let Some(program) = &build.program else {
            let remora = InProcessRemora::start_broken(server, &options, build.broken)?;
            return Ok(Front::Inside(Box::new(remora)));
        };
        let program = Some(program.clone());
        let remora = Remora::start(server, &RemoraOptions { program, ..options })?;
        Ok(Front::Program(Box::new(remora)))
    }

    /// Where clients connect to.
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Front::Inside(remora) => remora.address(),
            Front::Program(remora) => remora.address(),
        }
    }

    pub(super) fn counts(&self) -> anyhow::Result<Counts> {
        match self {
            Front::Inside(remora) => Ok(counted_inside(remora)),
            Front::Program(remora) => {
                let page = remora.metrics()?;
                Ok(Counts {
                    all: whole(page.sum("remora_statements_total")),
                    hits: whole(page.sum("remora_hits_total")),
                })
            }
        }
    }

    /// Whether it has found the server unfit.
    pub(super) fn is_off(&self) -> anyhow::Result<bool> {
        match self {
            Front::Inside(remora) => {
                let state = remora.app().map(|app| app.shared().upstream.state());
                Ok(matches!(state, Some(UpstreamState::CachingOff(_))))
            }
            Front::Program(remora) => {
                let page = metrics::get(remora.admin(), "/readyz")?;
                Ok(page.body.contains("caching: off (server_unsuitable)"))
            }
        }
    }

    /// Whether it knows which views run code. Until then it takes each for one that does, and
    /// nothing could be found out about what it makes of them. A program's pages don't tell.
    pub(super) fn knows_views(&self) -> bool {
        match self {
            Front::Inside(remora) => {
                let app = remora.app();
                app.is_some_and(|app| app.shared().upstream.catalogue.hidden_code.is_known())
            }
            Front::Program(_) => true,
        }
    }
}

fn counted_inside(remora: &InProcessRemora) -> Counts {
    let Some(app) = remora.app() else {
        return Counts { all: 0, hits: 0 };
    };
    let workers = app.shared().metrics.workers();
    let count = |outcome: Outcome| -> u64 { workers.iter().map(|one| one.outcome(outcome)).sum() };
    Counts {
        all: Outcome::all().iter().map(|outcome| count(*outcome)).sum(),
        hits: count(Outcome::Hit),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter of statements is a small whole number"
)]
fn whole(value: f64) -> u64 {
    value as u64
}
