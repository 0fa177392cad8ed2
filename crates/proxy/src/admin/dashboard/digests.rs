//! `/dashboard/digests` and `/dashboard/digest`: what the page shows of the digests.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use remora_engine::reason::Outcome;
use remora_sql::Digest;
use serde::Serialize;

use super::super::{Sources, answer_text, query};
use super::digest_history::Recent;
use super::live::number;
use super::{answer_json, lock};
use crate::digests::{DigestReport, Digests};
use crate::metrics::{BUCKETS, bucket_bound_seconds};

/// The most digests that are sent at once.
const SHOWN_MAX: usize = 500;

/// What digests can be sorted by, as the page calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortColumn {
    Statement,
    Calls,
    HitRatio,
    Time,
    Saved,
    MissP99,
    Outdated,
}

impl SortColumn {
    const ALL: [(&'static str, SortColumn); 7] = [
        ("statement", SortColumn::Statement),
        ("calls", SortColumn::Calls),
        ("hit_ratio", SortColumn::HitRatio),
        ("time", SortColumn::Time),
        ("saved", SortColumn::Saved),
        ("miss_p99", SortColumn::MissP99),
        ("outdated", SortColumn::Outdated),
    ];

    fn named(name: &[u8]) -> Option<SortColumn> {
        let known = Self::ALL.iter().find(|(known, _)| known.as_bytes() == name);
        known.map(|(_, column)| *column)
    }

    fn compare(self, one: &DigestReport, other: &DigestReport) -> std::cmp::Ordering {
        let by = |key: fn(&DigestReport) -> u64| key(one).cmp(&key(other));
        match self {
            SortColumn::Statement => one.text.cmp(&other.text),
            SortColumn::Calls => by(|digest| digest.calls),
            // A ratio in millionths.
            SortColumn::HitRatio => by(|digest| digest.hits * 1_000_000 / digest.calls.max(1)),
            SortColumn::Time => by(|digest| digest.hit_us + digest.miss_us),
            SortColumn::Saved => by(|digest| digest.saved_us),
            SortColumn::MissP99 => by(|digest| digest.miss_p99_us.unwrap_or(0)),
            SortColumn::Outdated => by(|digest| digest.outdated),
        }
    }
}

/// What the page asks for.
#[derive(Debug)]
struct Asked {
    /// In lower case; a statement must hold every word.
    words: Vec<String>,
    column: SortColumn,
    ascending: bool,
    count: usize,
}

impl Asked {
    fn read(uri: &Uri) -> Asked {
        let mut asked = Asked {
            words: Vec::new(),
            column: SortColumn::Time,
            ascending: false,
            count: 50,
        };
        for (name, value) in query::pairs(uri.query().unwrap_or_default()) {
            match &name[..] {
                b"search" => {
                    let search = String::from_utf8_lossy(&value).to_lowercase();
                    asked.words = search.split_whitespace().map(str::to_owned).collect();
                }
                b"sort" => asked.column = SortColumn::named(&value).unwrap_or(SortColumn::Time),
                b"direction" => asked.ascending = value == b"ascending",
                b"count" => {
                    let count = usize::try_from(number(&value)).unwrap_or(SHOWN_MAX);
                    asked.count = count.min(SHOWN_MAX);
                }
                _ => {}
            }
        }
        asked
    }

    fn admits(&self, digest: &DigestReport) -> bool {
        if digest.calls == 0 {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        let text = digest.text.as_deref().unwrap_or_default().to_lowercase();
        let number = digest.digest.as_deref().unwrap_or_default();
        let holds = |word: &String| text.contains(word) || number.starts_with(word.as_str());
        self.words.iter().all(holds)
    }
}

#[derive(Debug, Serialize)]
struct Answer {
    /// How many were counted.
    counted: usize,
    /// How many were found.
    found: usize,
    /// How many are sent at most, whatever is asked.
    shown_max: usize,
    /// What this answer took: the page asks less often where it takes long.
    took_us: u64,
    digests: Vec<DigestReport>,
}

/// Answers `GET /dashboard/digests?search=…&sort=…&direction=…&count=…`.
pub(super) async fn show_some(State(sources): State<Arc<Sources>>, uri: Uri) -> Response {
    let Some(digests) = table(&sources) else {
        return nothing();
    };
    let begun = Instant::now();
    let asked = Asked::read(&uri);
    let mut all = digests.report();
    let counted = all.iter().filter(|digest| digest.calls > 0).count();
    all.retain(|digest| asked.admits(digest));
    let found = all.len();
    all.sort_by(|one, other| {
        let order = asked.column.compare(one, other);
        let order = if asked.ascending {
            order
        } else {
            order.reverse()
        };
        // So that equals don't change places from one answer to the next.
        order.then_with(|| one.digest.cmp(&other.digest))
    });
    all.truncate(asked.count);
    answer_json(&Answer {
        counted,
        found,
        shown_max: SHOWN_MAX,
        took_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        digests: all,
    })
}

/// A digest with what its page shows.
#[derive(Debug, Serialize)]
struct One {
    #[serde(flatten)]
    report: DigestReport,
    uptime_ms: u64,
    /// Upper bounds of the classes of durations, microseconds; the last has none.
    bounds_us: Vec<f64>,
    hit_counts: Vec<u64>,
    miss_counts: Vec<u64>,
    /// What each of the reasons means, in their order.
    meanings: Vec<&'static str>,
    history: Option<Recent>,
}

/// Answers `GET /dashboard/digest?number=…`; that of all without a place of their own with
/// `number=others`.
pub(super) async fn show_one(State(sources): State<Arc<Sources>>, uri: Uri) -> Response {
    let Some(digests) = table(&sources) else {
        return nothing();
    };
    let asked = query::pairs(uri.query().unwrap_or_default())
        .find(|(name, _)| name == b"number")
        .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
        .unwrap_or_default();
    let digest = u64::from_str_radix(&asked, 16)
        .ok()
        .map(Digest::from_number);
    if digest.is_none() && asked != "others" {
        let why = format!("number: got \"{asked}\", accepts a digest's 16 digits, or others\n");
        return answer_text(StatusCode::BAD_REQUEST, why);
    }
    let Some(report) = digests.report_of(digest) else {
        let why = "no such digest is counted; another may have got its place\n";
        return answer_text(StatusCode::NOT_FOUND, why.to_owned());
    };
    let meanings = report.refusals.iter();
    answer_json(&One {
        uptime_ms: super::history::whole_ms(sources.started.elapsed()),
        bounds_us: (0..BUCKETS - 1)
            .map(|bucket| (bucket_bound_seconds(bucket) * 1e6).round())
            .collect(),
        hit_counts: report.hit_buckets.to_vec(),
        miss_counts: report.miss_buckets.to_vec(),
        meanings: meanings.map(|refused| meaning(&refused.reason)).collect(),
        history: digest.and_then(|digest| lock(&sources.dashboard.digests).of(digest)),
        report,
    })
}

/// The sentence of a reason.
fn meaning(reason: &str) -> &'static str {
    let outcome = Outcome::all()
        .iter()
        .find(|outcome| outcome.reason() == reason);
    outcome.map_or("", |outcome| outcome.describe())
}

fn table(sources: &Sources) -> Option<&Digests> {
    Some(sources.tools.explainer.as_ref()?.digest_table())
}

fn nothing() -> Response {
    answer_text(
        StatusCode::NOT_FOUND,
        "nothing is counted here\n".to_owned(),
    )
}
