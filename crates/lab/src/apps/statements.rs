//! What became of an application's statements: by Remora's digests, and by the server's log.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use remora::digests::DigestReport;
use remora_testkit::metrics;

use crate::replay::event::Action;
use crate::replay::reading::{Format, Settings, read_bytes};

/// Statements that are read from the server's log at most.
const LOGGED_MAX: usize = 10_000_000;

/// What Remora says of the SELECTs that it has seen, by their digests' texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Selects(BTreeMap<String, Counted>);

/// What became of SELECTs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// All of them.
    pub(super) calls: u64,
    /// Those answered from memory.
    pub(super) hits: u64,
    /// Those answered by the server whose results were kept.
    pub(super) fills: u64,
    /// The others, by the reason why their results weren't kept.
    pub(super) refused: BTreeMap<String, u64>,
    /// Results that were outdated, by the table that outdated them.
    pub(super) outdated_by: BTreeMap<String, u64>,
}

impl Counted {
    /// The share that was answered from memory.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn hit_share(&self) -> f64 {
        self.hits as f64 / self.calls.max(1) as f64
    }

    fn combine(&mut self, other: &Counted, with: impl Fn(u64, u64) -> u64) {
        self.calls = with(self.calls, other.calls);
        self.hits = with(self.hits, other.hits);
        self.fills = with(self.fills, other.fills);
        let pairs = [
            (&mut self.refused, &other.refused),
            (&mut self.outdated_by, &other.outdated_by),
        ];
        for (own, others) in pairs {
            for (name, count) in others {
                let own = own.entry(name.clone()).or_default();
                *own = with(*own, *count);
            }
            own.retain(|_, count| *count > 0);
        }
    }
}

impl From<&DigestReport> for Counted {
    fn from(digest: &DigestReport) -> Counted {
        let refused = digest.refusals.iter();
        let outdated_by = digest.outdated_by.iter();
        Counted {
            calls: digest.calls,
            hits: digest.hits,
            fills: digest.fills,
            refused: refused.map(|one| (one.reason.clone(), one.count)).collect(),
            outdated_by: outdated_by
                .map(|one| (one.table.clone(), one.count))
                .collect(),
        }
    }
}

impl Selects {
    /// Asks Remora.
    pub(super) fn of(admin: SocketAddr) -> anyhow::Result<Selects> {
        let page = metrics::get(admin, "/digests")?;
        let all: Vec<DigestReport> =
            serde_json::from_str(&page.body).context("can't understand Remora's digests")?;
        let read = all.iter().filter_map(|digest| {
            let text = digest.text.clone()?;
            is_select(text.as_bytes()).then(|| (text, Counted::from(digest)))
        });
        Ok(Selects(read.collect()))
    }

    /// What has been counted since an earlier moment.
    pub(super) fn since(mut self, earlier: &Selects) -> Selects {
        for (text, counted) in &mut self.0 {
            if let Some(earlier) = earlier.0.get(text) {
                counted.combine(earlier, u64::saturating_sub);
            }
        }
        self.0.retain(|_, counted| counted.calls > 0);
        self
    }

    /// Adds what was counted at another time.
    pub(super) fn add(&mut self, other: &Selects) {
        for (text, counted) in &other.0 {
            let own = self.0.entry(text.clone()).or_default();
            own.combine(counted, |a, b| a + b);
        }
    }

    /// All together.
    pub(super) fn sum(&self) -> Counted {
        let mut sum = Counted::default();
        for counted in self.0.values() {
            sum.combine(counted, |a, b| a + b);
        }
        sum
    }

    /// The digests of which most statements went to the server.
    pub(super) fn costliest(&self) -> Vec<(&str, &Counted)> {
        let mut all: Vec<(&str, &Counted)> = self
            .0
            .iter()
            .map(|(text, counted)| (text.as_str(), counted))
            .collect();
        all.sort_by_key(|(_, counted)| std::cmp::Reverse(counted.calls - counted.hits));
        all.truncate(SHOWN);
        all
    }
}

/// How many digests are shown.
const SHOWN: usize = 15;

/// What a server's general log says of the SELECTs that it was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Logged {
    /// All of them.
    pub(super) selects: u64,
    /// Those that had been sent before with the same text and default schema. No cache of results
    /// by their text can answer more.
    pub(super) repeated: u64,
}

impl Logged {
    /// Reads a log.
    pub(super) fn of(log: &Path) -> anyhow::Result<Logged> {
        let bytes = std::fs::read(log).with_context(|| format!("can't read {}", log.display()))?;
        let settings = Settings {
            format: Some(Format::General),
            port: 0,
            skip_malformed: true,
            statements_max: LOGGED_MAX,
        };
        let captured = read_bytes(&bytes, Format::General, &settings)?;
        let mut logged = Logged::default();
        let mut known = HashSet::new();
        for event in captured.events {
            let (text, values) = match event.action {
                Action::Query(text) => (text, Vec::new()),
                Action::Execution(execution) => (execution.text.clone(), execution.values.clone()),
                Action::Quit => continue,
            };
            if is_select(&text) {
                logged.selects += 1;
                logged.repeated += u64::from(!known.insert((event.schema, text, values)));
            }
        }
        Ok(logged)
    }
}

/// Whether a statement is a SELECT, as its first word says.
fn is_select(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"(").unwrap_or(text).trim_ascii_start();
    let word = text.get(..6).unwrap_or_default();
    word.eq_ignore_ascii_case(b"SELECT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_the_same_text_in_the_same_schema() {
        let log = scratch(
            "261126  5:00:00\t    3 Connect\tapp@localhost on a using TCP/IP\n\
             \t\t    3 Query\tSELECT 1\n\
             \t\t    3 Query\tSELECT 2\n\
             \t\t    3 Query\tselect 1\n\
             \t\t    3 Query\tUPDATE t SET a = 1\n\
             \t\t    3 Query\tSELECT 1\n\
             \t\t    3 Init DB\tb\n\
             \t\t    3 Query\tSELECT 1\n",
        );
        let logged = Logged::of(log.path()).unwrap();
        assert_eq!(
            logged,
            Logged {
                selects: 5,
                repeated: 1
            }
        );
    }

    fn scratch(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }
}
