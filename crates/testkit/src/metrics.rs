//! Reading Remora's HTTP pages.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

const PATIENCE: Duration = crate::process::PATIENCE;

/// An answer to an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status, e.g. 200.
    pub status: u16,
    /// What follows the head.
    pub body: String,
}

impl Page {
    /// Whether the status says success.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Asks for a page. A machine that stands still between connecting and asking gets no answer, so
/// it asks again then.
pub fn get(address: SocketAddr, path: &str) -> anyhow::Result<Page> {
    const ATTEMPTS: usize = 5;
    let connect = || TcpStream::connect_timeout(&address, PATIENCE);
    for _ in 1..ATTEMPTS {
        if let Ok(page) = ask(connect()?, address, "GET", path, "") {
            return Ok(page);
        }
    }
    ask(connect()?, address, "GET", path, "")
}

/// Asks for something to be done; `headers` are lines that each end in CR LF.
pub fn post(address: SocketAddr, path: &str, headers: &str) -> anyhow::Result<Page> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    ask(stream, address, "POST", path, headers)
}

fn ask(
    mut stream: TcpStream,
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
) -> anyhow::Result<Page> {
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("not an HTTP answer")?;
    let status = head
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .context("an HTTP answer without a status")?;
    Ok(Page {
        status,
        body: body.to_owned(),
    })
}

/// One value of a metrics page.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: String,
    /// What stands between the braces, as written.
    labels: String,
    value: f64,
}

/// A page in Prometheus' text format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    samples: Vec<Sample>,
}

impl Metrics {
    /// Asks for `/metrics`.
    pub fn fetch(address: SocketAddr) -> anyhow::Result<Metrics> {
        let page = get(address, "/metrics").context("can't read Remora's metrics")?;
        if !page.is_ok() {
            bail!("Remora's metrics answered with status {}", page.status);
        }
        Ok(Metrics::parse(&page.body))
    }

    /// Reads a page; lines that aren't values are left out.
    pub fn parse(text: &str) -> Metrics {
        Metrics {
            samples: text.lines().filter_map(Sample::parse).collect(),
        }
    }

    /// The sum of all values with this name, over all labels. 0 if there is none.
    pub fn sum(&self, name: &str) -> f64 {
        self.samples
            .iter()
            .filter(|sample| sample.name == name)
            .map(|sample| sample.value)
            .sum()
    }

    /// The sum of the values with this name whose labels include `label="value"`.
    pub fn sum_where(&self, name: &str, label: &str, value: &str) -> f64 {
        let wanted = format!("{label}=\"{value}\"");
        let matches =
            |sample: &&Sample| sample.name == name && sample.labels.split(',').any(|l| l == wanted);
        self.samples
            .iter()
            .filter(matches)
            .map(|sample| sample.value)
            .sum()
    }

    /// The labels, as written, of the values with this name, each with its value.
    pub fn labelled(&self, name: &str) -> Vec<(&str, f64)> {
        let named = self.samples.iter().filter(|sample| sample.name == name);
        named
            .map(|sample| (sample.labels.as_str(), sample.value))
            .collect()
    }

    /// Whether there is a value with this name.
    pub fn has(&self, name: &str) -> bool {
        self.samples.iter().any(|sample| sample.name == name)
    }
}

impl Sample {
    fn parse(line: &str) -> Option<Sample> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let (series, value) = match line.rfind('}') {
            Some(end) => line.split_at_checked(end + 1)?,
            None => line.split_once(' ')?,
        };
        let value = value.split_whitespace().next()?.parse().ok()?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.trim_end_matches('}').to_owned();
        Some(Sample {
            name: name.to_owned(),
            labels,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_summed_over_labels() {
        let page = "# HELP x y\n# TYPE x counter\nx_total{reason=\"a\",k=\"1\"} 3\n\
                    x_total{reason=\"b\",k=\"1\"} 4\ny 2.5\n# EOF\n";
        let metrics = Metrics::parse(page);
        assert!((metrics.sum("x_total") - 7.0).abs() < 1e-9);
        assert!((metrics.sum_where("x_total", "reason", "b") - 4.0).abs() < 1e-9);
        assert!((metrics.sum("y") - 2.5).abs() < 1e-9);
        assert!(!metrics.has("z"));
    }
}
