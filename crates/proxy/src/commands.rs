//! What `remora serve`, `remora check` and `remora advise` do, once the settings are known.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use remora_adviser::Report;
use remora_net::tls::TlsError;
use remora_upstream::UpstreamConfig;
use remora_upstream::check::{Severity, check, is_caching_off};
use remora_upstream::client::ClientError;
use remora_upstream::server_facts::ServerFacts;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::advise::{self, AdviseError, Pace};
use crate::app::{App, StartError, upstream_config};
use crate::config::{Settings, server_link};
use crate::listeners;
use crate::service_manager::ServiceManager;

/// Serves until SIGTERM or SIGINT. SIGHUP has certificates, keys, the admin listener's token and
/// the rules read again.
pub fn serve(settings: &Settings) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // Before anything listens, so that no signal is missed.
    let (mut terminate, mut interrupt, mut hang_up) = runtime.block_on(async {
        Ok::<_, io::Error>((
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ))
    })?;
    let manager = ServiceManager::from_environment();
    let app = App::start_on(
        settings,
        listeners::bind_or_take(&settings.listen, manager)?,
    )?;
    for endpoint in app.endpoints() {
        tracing::info!(
            "serving clients on {endpoint}, server at {}",
            settings.upstream.address
        );
    }
    if let Some(address) = app.admin_address() {
        tracing::info!("metrics and health on http://{address}");
    }
    manager.ready();
    runtime.block_on(async {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hang_up.recv() => {
                    manager.reloading();
                    reload(&app);
                    manager.ready();
                }
            }
        }
    });
    manager.stopping();
    tracing::info!("stopping: running statements and open transactions may finish");
    app.stop();
    Ok(())
}

/// Reads what may change while Remora runs.
fn reload(app: &App) {
    match app.reload_certificates() {
        Ok(()) => tracing::info!("certificates and keys were read again"),
        Err(error) => tracing::error!("certificates and keys stay as they are: {error}"),
    }
    // The log tells what came of it.
    if app.has_configuration_file() {
        let _ = app.reload_rules();
    }
    if let Err(error) = app.reload_token() {
        tracing::error!("the admin listener's token stays as it is: {error}");
    }
}

/// Why the server could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no account to look with.
    #[error("follow.user: got nothing, accepts the name of Remora's account on the server")]
    NoAccount,
    /// A certificate or key can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server can't be asked.
    #[error("the server at upstream.address can't be asked as follow.user: {0}")]
    Server(#[from] ClientError),
    /// The adviser has nothing to say.
    #[error(transparent)]
    Advice(#[from] AdviseError),
    /// The findings can't be printed.
    #[error("can't write: {0}")]
    Output(#[from] io::Error),
}

/// Reads the server for a while and gives what the adviser says. `progress` is called after each
/// look, with the time since the first.
pub fn advise(
    settings: &Settings,
    processors: Option<u32>,
    pace: Pace,
    progress: impl FnMut(Duration),
) -> Result<Report, AskError> {
    let (runtime, config) = asking(settings)?;
    let processors = processors.or_else(|| settings.processors_of_server());
    let report = runtime.block_on(advise::ask(&config, processors, pace, progress))?;
    Ok(report)
}

/// With what the server is asked, as Remora's own account.
fn asking(settings: &Settings) -> Result<(Runtime, UpstreamConfig), AskError> {
    let account = settings.account.clone().ok_or(AskError::NoAccount)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let link = Arc::new(server_link(&settings.listen, &settings.upstream)?);
    Ok((runtime, upstream_config(settings, account, link)))
}

/// Looks at the server and prints what was found. Gives whether caching can be on.
pub fn check_server(settings: &Settings, output: &mut impl Write) -> Result<bool, AskError> {
    let (runtime, config) = asking(settings)?;
    let facts = runtime.block_on(gather(&config))?;
    let findings = check(&facts, settings.follow.server_id);
    for finding in &findings {
        let mark = match finding.severity {
            Severity::Good => "ok      ",
            Severity::Warning => "warning ",
            Severity::CachingOff => "PROBLEM ",
        };
        writeln!(
            output,
            "{mark}{}: {}",
            finding.subject.as_str(),
            finding.meaning
        )?;
        if !finding.remedy.is_empty() {
            writeln!(output, "        fix it with: {}", finding.remedy)?;
        }
    }
    let can_cache = !is_caching_off(&findings);
    let verdict = if can_cache {
        "Caching can be on."
    } else {
        "Caching will be off until each PROBLEM is fixed; Remora passes everything through."
    };
    writeln!(output, "\n{verdict}")?;
    Ok(can_cache)
}

async fn gather(config: &UpstreamConfig) -> Result<ServerFacts, ClientError> {
    let mut client = remora_upstream::connect(config).await?;
    ServerFacts::gather(&mut client).await
}
