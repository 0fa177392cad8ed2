//! Asks a running Remora's admin listener over HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::query::encode;

/// How long connecting, and each step of the answer, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// What `remora explain` asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The statement.
    pub statement: String,
    /// The default schema.
    pub schema: Option<String>,
    /// The session's account.
    pub account: Option<String>,
    /// JSON instead of words.
    pub json: bool,
    /// `sql_mode` has `ANSI_QUOTES`.
    pub ansi_quotes: bool,
    /// `sql_mode` has `NO_BACKSLASH_ESCAPES`.
    pub no_backslash_escapes: bool,
}

/// Why there is no answer. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing listens there.
    #[error(
        "nothing answers at {address} ({source}); start `remora serve` with admin.listen there, or name the address of its admin listener with --admin"
    )]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The connection broke, or something else than Remora answered.
    #[error(
        "{address} did not answer as Remora does ({why}); name the address of its admin listener with --admin"
    )]
    NotRemora {
        /// Where.
        address: SocketAddr,
        /// What was wrong.
        why: String,
    },
    /// The question was wrong.
    #[error("{0}")]
    Refused(String),
}

/// Asks for an explanation: the page as it came.
pub fn ask(address: SocketAddr, request: &Request) -> Result<String, AskError> {
    send(
        address,
        "/explain",
        &head(address, request),
        request.statement.as_bytes(),
    )
}

/// Asks for what was counted of each digest: JSON.
pub fn digests(address: SocketAddr) -> Result<String, AskError> {
    get(address, "/digests")
}

/// Asks for the newest traces, at most so many, and with a digest only for those of it: JSON.
pub fn traces(
    address: SocketAddr,
    digest: Option<&str>,
    count_max: usize,
) -> Result<String, AskError> {
    let of_digest = digest.map_or(String::new(), |digest| {
        format!("&digest={}", encode(digest.as_bytes()))
    });
    get(address, &format!("/traces?limit={count_max}{of_digest}"))
}

/// Asks for all metrics, in the text form of Prometheus.
pub fn metrics(address: SocketAddr) -> Result<String, AskError> {
    get(address, "/metrics")
}

fn get(address: SocketAddr, path: &str) -> Result<String, AskError> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    send(address, path, &head, b"")
}

fn send(address: SocketAddr, path: &str, head: &str, body: &[u8]) -> Result<String, AskError> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)
        .map_err(|source| AskError::Unreachable { address, source })?;
    let not_remora = |why: String| AskError::NotRemora { address, why };
    let answer = exchange(stream, head, body);
    let answer = answer.map_err(|error| not_remora(error.to_string()))?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| not_remora("no HTTP answer".to_owned()))?;
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        Some("400" | "413") => Err(AskError::Refused(body.trim_end().to_owned())),
        Some("404") => Err(not_remora(format!("it has no {path}: an older version?"))),
        _ => Err(not_remora(
            head.lines().next().unwrap_or_default().to_owned(),
        )),
    }
}

fn head(address: SocketAddr, request: &Request) -> String {
    let mut query = Vec::new();
    if let Some(schema) = &request.schema {
        query.push(format!("schema={}", encode(schema.as_bytes())));
    }
    if let Some(account) = &request.account {
        query.push(format!("account={}", encode(account.as_bytes())));
    }
    for (name, is_set) in [
        ("ansi_quotes", request.ansi_quotes),
        ("no_backslash_escapes", request.no_backslash_escapes),
    ] {
        if is_set {
            query.push(format!("{name}=1"));
        }
    }
    let accept = if request.json {
        "application/json"
    } else {
        "text/plain"
    };
    format!(
        "POST /explain?{} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        query.join("&"),
        request.statement.len(),
    )
}

fn exchange(mut stream: TcpStream, head: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}
