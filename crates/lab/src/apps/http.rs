//! A browser as a crawler needs it: requests, one after the other, and cookies.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, REFERER, SET_COOKIE};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::html::FormShown;

/// The host that all requests name, wherever the application listens: so its pages have the same
/// links directly and through Remora.
pub(super) const SITE: &str = "site.test";
/// Longest wait for a page.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longest page, bytes.
const PAGE_BYTES_MAX: usize = 8 << 20;
/// How many redirections in a row are followed.
const REDIRECTIONS_MAX: usize = 5;

/// One person's browser: what it holds of cookies is sent with every request.
#[derive(Debug)]
pub(super) struct Browser {
    runtime: Runtime,
    cookies: BTreeMap<String, String>,
}

/// A page as it came.
#[derive(Debug, Clone)]
pub(super) struct Page {
    /// The path that it came from at last.
    pub(super) path: String,
    /// The status, e.g. 200.
    pub(super) status: u16,
    /// What it holds. What isn't UTF-8 is replaced.
    pub(super) body: String,
    /// From connecting to the last byte, redirections included.
    pub(super) took: Duration,
}

impl Page {
    /// # Errors
    /// The application failed.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.status >= 500 {
            let beginning: String = self.body.chars().take(500).collect();
            bail!("{}: status {}: {beginning}", self.path, self.status);
        }
        Ok(())
    }
}

impl Browser {
    /// One without cookies.
    pub(super) fn new() -> anyhow::Result<Browser> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("can't start a runtime")?;
        Ok(Browser {
            runtime,
            cookies: BTreeMap::new(),
        })
    }

    /// Asks for a page of the application that listens at `address`.
    pub(super) fn get(&mut self, address: SocketAddr, path: &str) -> anyhow::Result<Page> {
        self.send(address, path, None)
    }

    /// Sends a form that stands on `page`, with these values in place of its own.
    pub(super) fn submit(
        &mut self,
        address: SocketAddr,
        page: &str,
        form: &FormShown,
        values: &BTreeMap<String, String>,
    ) -> anyhow::Result<Page> {
        let kept = form
            .fields
            .iter()
            .filter(|(name, _)| !values.contains_key(name));
        let all = kept.map(|(name, value)| (name, value)).chain(values);
        let body: Vec<String> = all
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        let action = match form.action.as_str() {
            "" => page.to_owned(),
            action => path_of(page, action).context("the form is sent to another site")?,
        };
        self.send(address, &action, Some((page, body.join("&"))))
    }

    /// Sends a request and follows redirections; `form` is the page that a form stands on and what
    /// it sends.
    fn send(
        &mut self,
        address: SocketAddr,
        path: &str,
        mut form: Option<(&str, String)>,
    ) -> anyhow::Result<Page> {
        let started = Instant::now();
        let mut path = path.to_owned();
        for _ in 0..=REDIRECTIONS_MAX {
            let request = self.request(&path, form.take())?;
            let answered = async {
                let exchange = tokio::time::timeout(PATIENCE, exchange(address, request));
                exchange.await.context("no answer in time")?
            };
            let answered = self.runtime.block_on(answered);
            let (response, body) = answered.with_context(|| format!("can't fetch {path}"))?;
            self.keep_cookies(&response);
            let target = response.headers().get(LOCATION);
            if let Some(target) = target.filter(|_| response.status().is_redirection()) {
                let target = target.to_str().context("a redirection to no text")?;
                path = path_of(&path, target)
                    .with_context(|| format!("{path} redirects to another site: {target}"))?;
                continue;
            }
            return Ok(Page {
                path,
                status: response.status().as_u16(),
                body: String::from_utf8_lossy(&body).into_owned(),
                took: started.elapsed(),
            });
        }
        bail!("{path}: more than {REDIRECTIONS_MAX} redirections in a row")
    }

    fn request(
        &self,
        path: &str,
        form: Option<(&str, String)>,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().uri(path).header(HOST, SITE);
        if !self.cookies.is_empty() {
            let cookies: Vec<String> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            request = request.header(COOKIE, cookies.join("; "));
        }
        let body = match form {
            None => request.body(Full::default()),
            Some((page, body)) => request
                .method("POST")
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header(REFERER, format!("http://{SITE}{page}"))
                .body(Full::from(body)),
        };
        body.with_context(|| format!("{path} is no path"))
    }

    fn keep_cookies(&mut self, response: &Response<()>) {
        for cookie in response.headers().get_all(SET_COOKIE) {
            let text = cookie.to_str().unwrap_or_default();
            let pair = text.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies
                    .insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
    }
}

/// One request on a connection of its own.
async fn exchange(
    address: SocketAddr,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(Response<()>, Bytes)> {
    let stream = TcpStream::connect(address).await.context("can't connect")?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // What goes wrong with the connection shows in the answer.
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, PAGE_BYTES_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?;
    Ok((Response::from_parts(head, ()), body.to_bytes()))
}

/// The path on this site that a link on the page at `base` leads to; `None` if it leads elsewhere.
pub(super) fn path_of(base: &str, link: &str) -> Option<String> {
    let link = link.trim().split('#').next().unwrap_or_default();
    let own = [format!("http://{SITE}"), format!("//{SITE}")];
    let path = own.iter().find_map(|own| link.strip_prefix(own));
    let path = match path {
        Some("") => "/",
        Some(path) if path.starts_with(['/', '?']) => path,
        Some(_) => return None,
        None => link,
    };
    // Spaces and all beyond ASCII can't stand in a request.
    let path: String = path
        .bytes()
        .map(|byte| match byte {
            b'!'..=b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    let (directory, _) = base.split('?').next()?.rsplit_once('/')?;
    match path.as_bytes() {
        [] | [b'/', b'/', ..] => None,
        [b'/', ..] => Some(path),
        [b'?', ..] => Some(format!("{}{path}", base.split('?').next()?)),
        _ if path.contains(':') => None,
        _ => Some(format!("{directory}/{path}")),
    }
}

/// A text as it stands in a form that is sent.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_paths_of_this_site_or_nowhere() {
        let path = |link| path_of("/a/b?c", link);
        assert_eq!(path("/x#y").as_deref(), Some("/x"));
        assert_eq!(path("x").as_deref(), Some("/a/x"));
        assert_eq!(path("?x=1").as_deref(), Some("/a/b?x=1"));
        assert_eq!(path("http://site.test").as_deref(), Some("/"));
        assert_eq!(path("http://site.test/ü").as_deref(), Some("/%C3%BC"));
        for elsewhere in [
            "http://other.test/",
            "//other.test/",
            "mailto:a@b",
            "javascript:void(0)",
            "#top",
            "http://site.test.other/",
        ] {
            assert_eq!(path(elsewhere), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_form_is_sent_byte_by_byte() {
        assert_eq!(encoded("a b&ü"), "a%20b%26%C3%BC");
    }
}
