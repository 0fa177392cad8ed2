//! A Remora inside this process, for tests: always of the same build, and with rules that can be
//! broken.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use remora::app::App;
use remora::config::{Override, Settings};
use remora_cache::BrokenRules;

use super::remora::{RemoraOptions, is_caching, why_not_caching};
use crate::metrics::Metrics;
use crate::process::wait_for;
use crate::servers::Server;

/// Longest wait until it serves from memory.
const PATIENCE: Duration = crate::process::PATIENCE;

/// A running Remora. It stops, after its grace period, when dropped.
pub struct InProcessRemora {
    app: Option<App>,
    address: SocketAddr,
    admin: SocketAddr,
}

impl InProcessRemora {
    /// Starts one in front of `server` and waits until it caches, if it follows.
    pub fn start(server: &Server, options: &RemoraOptions) -> anyhow::Result<InProcessRemora> {
        InProcessRemora::start_broken(server, options, BrokenRules::default())
    }

    /// The same with rules of consistency broken, for tests that must notice it.
    pub fn start_broken(
        server: &Server,
        options: &RemoraOptions,
        broken: BrokenRules,
    ) -> anyhow::Result<InProcessRemora> {
        let mut overrides = vec![
            assignment("listen.addresses".to_owned(), "127.0.0.1:0".to_owned()),
            assignment("admin.listen".to_owned(), "127.0.0.1:0".to_owned()),
            assignment("follow.server_id".to_owned(), server_id().to_string()),
        ];
        let given = options.assignments(server).into_iter();
        overrides.extend(given.map(|(option, value)| assignment(option, value)));
        let settings = Settings::load(options.config.as_deref(), &overrides)
            .context("Remora refuses its options")?;
        let app = App::start_with(&settings, broken).context("Remora did not start")?;
        let address = match app.endpoints().first().map(ToString::to_string) {
            Some(text) => text
                .parse()
                .with_context(|| format!("not an address: {text}"))?,
            None => bail!("Remora listens nowhere"),
        };
        let admin = app
            .admin_address()
            .context("Remora has no admin listener")?;
        let remora = InProcessRemora {
            app: Some(app),
            address,
            admin,
        };
        if options.follow {
            remora.wait_until_caching()?;
        }
        Ok(remora)
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its metrics and its health are.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Its metrics now.
    pub fn metrics(&self) -> anyhow::Result<Metrics> {
        Metrics::fetch(self.admin)
    }

    /// Waits until it serves from memory (again).
    pub fn wait_until_caching(&self) -> anyhow::Result<()> {
        wait_for("Remora to serve from memory", PATIENCE, || {
            Ok(is_caching(self.admin))
        })
        .map_err(|error| anyhow!("{error:#}; {}", why_not_caching(self.admin)))
    }

    /// What runs; for tests that look inside.
    pub fn app(&self) -> Option<&App> {
        self.app.as_ref()
    }
}

impl Drop for InProcessRemora {
    fn drop(&mut self) {
        if let Some(app) = self.app.take() {
            app.stop();
        }
    }
}

fn assignment(option: String, value: String) -> Override {
    Override {
        flag: format!("test option {option}"),
        option,
        value,
    }
}

/// Its own for each Remora of this process: a number among the server's replicas must be.
fn server_id() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
