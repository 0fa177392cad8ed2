//! The options of `[opentelemetry]`, and where its traces go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use remora_net::Endpoint;

/// What is added to an endpoint's own path.
const TRACES_PATH: &str = "/v1/traces";

/// Sending traces to an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OpenTelemetryOptions {
    /// The collector that traced statements are sent to, as OTLP over HTTP in JSON:
    /// `http://host:port`, to which `/v1/traces` is added. Without it none are sent. There is no
    /// TLS: the collector should be on this host.
    #[schemars(example = &"http://127.0.0.1:4318")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// What Remora is called there (`service.name`).
    pub service_name: String,
    /// Traces that may wait to be sent. Further ones are dropped.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queue_max: usize,
    /// Time for the collector to take what is sent to it, up to 512 traces. After it, they are
    /// dropped.
    #[schemars(range(min = 10, max = 600_000))]
    pub timeout_ms: u64,
}

impl Default for OpenTelemetryOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            service_name: "remora".to_owned(),
            queue_max: 2_048,
            timeout_ms: 2_000,
        }
    }
}

/// A collector's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path that takes traces.
    pub path: String,
}

impl Collector {
    /// The one with this endpoint, if it can be read.
    pub fn at(endpoint: &str) -> Option<Collector> {
        let rest = endpoint.strip_prefix("http://")?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains(['?', '#']) {
            return None;
        }
        match authority.parse().ok()? {
            Endpoint::Tcp { host, port } => Some(Collector {
                host,
                port,
                path: format!("{}{TRACES_PATH}", path.trim_end_matches('/')),
            }),
            Endpoint::Unix(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_read() {
        let path = |endpoint| Collector::at(endpoint).map(|it| (it.host, it.port, it.path));
        let local = |path: &str| Some(("127.0.0.1".to_owned(), 4318, path.to_owned()));
        assert_eq!(path("http://127.0.0.1:4318"), local("/v1/traces"));
        assert_eq!(path("http://127.0.0.1:4318/"), local("/v1/traces"));
        assert_eq!(path("http://127.0.0.1:4318/a/b"), local("/a/b/v1/traces"));
        assert_eq!(Collector::at("http://[::1]:1").unwrap().host, "::1");
        for wrong in [
            "",
            "http://",
            "127.0.0.1:4318",
            "http://a",
            "https://a:1",
            "http://a:1/ b",
        ] {
            assert_eq!(Collector::at(wrong), None, "{wrong}");
        }
    }
}
