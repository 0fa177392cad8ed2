//! The name by which a request calls this host.
//!
//! A web page that somebody visits can have its own name lead to this host's loopback address (DNS
//! rebinding); to the browser what is answered here is then the page's own, and its script may read
//! it. What gives it away is the name in the request. So a listener on a loopback address answers
//! to addresses and to `localhost`, and any to the names of `admin.hosts`. One that others can
//! reach anyway answers to every name, unless `admin.hosts` has some.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::Response;

use super::answer_text;
use crate::config::HostName;

/// The names that a listener answers to.
#[derive(Debug)]
pub(super) struct HostNames {
    named: Vec<HostName>,
    /// Whether any other is answered, too.
    any: bool,
}

impl HostNames {
    pub(super) fn new(address: SocketAddr, named: &[HostName]) -> HostNames {
        HostNames {
            named: named.to_vec(),
            any: named.is_empty() && !address.ip().to_canonical().is_loopback(),
        }
    }

    /// Whether a request for this host and port is answered.
    fn admits(&self, host: &str) -> bool {
        if self.any {
            return true;
        }
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        let name = authority.host();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.named.iter().any(|known| known.is(name))
    }
}

/// Lets only requests through that call this host by a name of its own. One without a name comes
/// from no browser.
pub(super) async fn require_known_host(
    State(names): State<Arc<HostNames>>,
    request: Request,
    next: Next,
) -> Response {
    let mut given = request.headers().get_all(HOST).iter();
    let is_known = match (given.next(), given.next()) {
        (None, _) => true,
        (Some(host), None) => host.to_str().is_ok_and(|host| names.admits(host)),
        (Some(_), Some(_)) => false,
    };
    if is_known {
        return next.run(request).await;
    }
    answer_text(
        StatusCode::MISDIRECTED_REQUEST,
        "Host: got a name that this listener does not answer to; accepts an IP address, localhost, or a name in admin.hosts\n"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(address: &str, named: &[&str]) -> HostNames {
        let named: Vec<HostName> = named.iter().map(|name| name.parse().unwrap()).collect();
        HostNames::new(address.parse().unwrap(), &named)
    }

    #[test]
    fn a_listener_on_loopback_answers_to_addresses_localhost_and_its_names() {
        for address in ["127.0.0.1:9307", "[::1]:9307", "[::ffff:127.0.0.1]:9307"] {
            let names = names(address, &["remora.example.org"]);
            for known in [
                "127.0.0.1",
                "127.0.0.1:9307",
                "[::1]:9307",
                "10.0.0.7:80",
                "localhost:9307",
                "LOCALHOST",
                "remora.example.org",
                "Remora.Example.Org:8080",
            ] {
                assert!(names.admits(known), "{known}");
            }
            for unknown in [
                "",
                "evil.example",
                "localhost.evil.example",
                "127.0.0.1.evil.example:9307",
                "x@evil.example",
                "evil example",
            ] {
                assert!(!names.admits(unknown), "{unknown}");
            }
        }
    }

    #[test]
    fn a_listener_that_others_reach_answers_to_every_name_unless_it_has_some() {
        assert!(names("0.0.0.0:9307", &[]).admits("remora:9307"));
        let named = names("10.0.0.7:9307", &["remora"]);
        assert!(named.admits("remora:9307"));
        assert!(named.admits("10.0.0.7"));
        assert!(!named.admits("other"));
    }
}
