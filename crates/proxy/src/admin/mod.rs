//! The HTTP listener for metrics, health and explanations, on a thread and runtime of its own: it
//! answers while every worker is busy.
//!
//! | path | answers |
//! |---|---|
//! | `/` | the dashboard to a browser, the list of paths to others |
//! | `/dashboard` | a page that shows what Remora does |
//! | `/metrics` | all metrics, for Prometheus |
//! | `/digests` | what became of each query, by digest |
//! | `/traces` | where the time of single statements went |
//! | `/explain` | what Remora makes of a statement, and what it holds of it |
//! | `/healthz` | 200 while the process runs: restart it if this fails |
//! | `/readyz` | 200 while clients can be served, else 503: send clients elsewhere if this fails |
//! | `/rules` | the rules in force, and how often each has decided |
//! | `POST /rules/reload` | reads the rules again; needs the token |
//! | `POST /flush` | drops every result; needs the token |
//!
//! Caching being off doesn't make Remora unready: it then passes everything through, and clients
//! are served. The body says so in a line of its own, `caching: on` or `caching: off (reason)`, and
//! `remora_caching` is the metric to alert on.

pub mod client;
mod control;
mod dashboard;
mod explain;
mod host;
mod listener;
mod query;
mod token;
mod traces;

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use remora_engine::reason::CachingOff;
use tokio::sync::oneshot;

pub use self::control::Control;
use self::dashboard::Dashboard;
use self::host::{HostNames, require_known_host};
use self::listener::BoundedListener;
pub use self::token::{AdminToken, TokenError};
use crate::advise::on_demand::ReadingOnDemand;
use crate::config::options::AdminOptions;
use crate::explain::Explainer;
use crate::metrics::{self, Caching, Metrics, Observation, Observed, Reachability};

/// Why the admin listener could not be started. Its text names the option and what to do.
#[derive(Debug, thiserror::Error)]
#[error(
    "admin.listen: got {address}, which can't be listened on ({source}); accepts a free address, or off"
)]
pub struct AdminError {
    address: SocketAddr,
    source: io::Error,
}

/// A running admin listener. It stops when this is dropped.
#[derive(Debug)]
pub struct AdminHandle {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminHandle {
    /// Where it listens: the port that the system chose, if it was to choose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening. Returns when the port is free again.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for AdminHandle {
    fn drop(&mut self) {
        // The thread may have ended by itself; either way there is nothing left to tell it.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the handlers ask.
struct Sources {
    metrics: Arc<Metrics>,
    observed: Arc<dyn Observed>,
    tools: Tools,
    started: Instant,
    dashboard: Dashboard,
}

/// What the listener can do beside telling what is counted.
#[derive(Default)]
pub struct Tools {
    /// Explains statements, and knows the digests.
    pub explainer: Option<Explainer>,
    /// Changes something. Without it nothing can be changed.
    pub control: Option<Control>,
    /// Reads the server, to say what limits it.
    pub reading: Option<ReadingOnDemand>,
}

/// Listens at the address and starts to answer.
pub fn start(
    address: SocketAddr,
    options: &AdminOptions,
    metrics: Arc<Metrics>,
    observed: Arc<dyn Observed>,
    tools: Tools,
) -> Result<AdminHandle, AdminError> {
    let failed = |source| AdminError { address, source };
    let socket = std::net::TcpListener::bind(address).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let sources = Arc::new(Sources {
        dashboard: Dashboard::new(&metrics, &observed.observe()),
        metrics,
        observed,
        tools,
        started: Instant::now(),
    });
    let options = options.clone();
    let names = Arc::new(HostNames::new(bound, &options.hosts));
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("remora-admin".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(socket, &options, names, Arc::clone(&sources)) => {}
                    () = dashboard::sample(&sources) => {}
                    () = read_server(&sources) => {}
                    _ = stopped => {}
                }
            });
        })
        .map_err(failed)?;
    Ok(AdminHandle {
        address: bound,
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Reads the server when somebody asks for it.
async fn read_server(sources: &Sources) {
    match &sources.tools.reading {
        Some(reading) => reading.work().await,
        None => std::future::pending().await,
    }
}

async fn serve(
    socket: std::net::TcpListener,
    options: &AdminOptions,
    names: Arc<HostNames>,
    sources: Arc<Sources>,
) {
    let listener = match BoundedListener::new(socket, options) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the admin listener could not be started");
            return;
        }
    };
    let changing = |handler: MethodRouter<Arc<Sources>>| {
        let sources = Arc::clone(&sources);
        handler.route_layer(from_fn_with_state(sources, control::require_token))
    };
    let router = Router::new()
        .route("/", get(show_front))
        .route("/metrics", get(show_metrics))
        .route("/digests", get(show_digests))
        .route("/traces", get(traces::show))
        .route("/explain", get(explain::show).post(explain::show))
        .route("/healthz", get(show_health))
        .route("/readyz", get(show_readiness))
        .route("/rules", get(control::show_rules))
        .route("/rules/reload", changing(post(control::reload_rules)))
        .route("/flush", changing(post(control::flush)))
        .merge(dashboard::routes())
        .fallback(refuse_path)
        .layer(from_fn_with_state(names, require_known_host))
        .layer(map_response(close_after))
        .with_state(Arc::clone(&sources));
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the admin listener ended");
    }
}

const PATHS: &str = "Remora\n\n\
    /dashboard  a page for browsers that shows what Remora does, live\n\
    /metrics    metrics for Prometheus\n\
    /digests    what became of each query: JSON, by digest\n\
    /traces     where the time of single statements went: ?digest=…&limit=…; JSON, the newest first\n\
    /explain    what becomes of a statement: ?schema=…&sql=…, or POST it; Accept: text/plain for words\n\
    /healthz    200 while the process runs\n\
    /readyz     200 while clients can be served; says whether caching is on\n\
    /rules      the rules in force, and how often each has decided: JSON\n\n\
    POST /rules/reload  reads the rules again; needs the token of admin.token_file\n\
    POST /flush         drops every result; needs the token of admin.token_file\n";

/// Closes the connection after its answer, so that an idle one holds no place.
async fn close_after(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response {
    (status, [(CONTENT_TYPE, content_type)], body).into_response()
}

fn answer_text(status: StatusCode, body: String) -> Response {
    answer(status, "text/plain; charset=utf-8", body)
}

async fn show_front(headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        return dashboard::page().await;
    }
    answer_text(StatusCode::OK, PATHS.to_owned())
}

async fn refuse_path() -> Response {
    answer_text(StatusCode::NOT_FOUND, format!("no such path\n\n{PATHS}"))
}

async fn show_health() -> Response {
    answer_text(StatusCode::OK, "ok\n".to_owned())
}

async fn show_metrics(State(sources): State<Arc<Sources>>) -> Response {
    let observation = sources.observed.observe();
    match metrics::encode(&sources.metrics, observation, sources.started.elapsed()) {
        Ok(text) => answer(StatusCode::OK, metrics::CONTENT_TYPE, text),
        Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn show_digests(State(sources): State<Arc<Sources>>) -> Response {
    let Some(explainer) = &sources.tools.explainer else {
        return answer_text(
            StatusCode::NOT_FOUND,
            "nothing is counted here\n".to_owned(),
        );
    };
    match serde_json::to_string_pretty(&explainer.digests()) {
        Ok(json) => answer(StatusCode::OK, "application/json", json + "\n"),
        Err(error) => answer_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn show_readiness(State(sources): State<Arc<Sources>>) -> Response {
    let (is_ready, body) = readiness(&sources.observed.observe());
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    answer_text(status, body)
}

/// Whether clients can be served, and the page that says it.
fn readiness(state: &Observation) -> (bool, String) {
    let is_stopping = state.caching == Caching::Off(CachingOff::Stopping);
    let is_ready = !is_stopping && !matches!(state.upstream, Reachability::Unreachable(_));
    let mut body = String::from(if is_ready { "ready\n" } else { "not ready\n" });
    let _ = match &state.upstream {
        Reachability::Untried => writeln!(body, "upstream: not tried yet"),
        Reachability::Reachable => writeln!(body, "upstream: reachable"),
        Reachability::Unreachable(why) => writeln!(body, "upstream: unreachable ({why})"),
    };
    let _ = match state.caching {
        Caching::On => writeln!(body, "caching: on"),
        Caching::Off(reason) => {
            writeln!(
                body,
                "caching: off ({})\n{}",
                reason.as_str(),
                reason.describe()
            )
        }
    };
    for (subject, meaning) in &state.follower.findings {
        let _ = writeln!(body, "{subject}: {meaning}");
    }
    (is_ready, body)
}
