//! What was counted of a digest, for people and programs.

use remora_engine::reason::Outcome;
use remora_upstream::clock::BEGINS_AT_MS;
use serde::{Deserialize, Serialize};

use super::About;
use super::outdated_by::OutdatedByCounts;
use crate::metrics::{BUCKETS, bucket_bound_seconds};

/// A reason for which statements of a digest went to the server, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The reason's label, as in metrics and `docs/reasons.md`.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// A table whose changes outdated results of a digest, and how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutdatedByTable {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// How many. One that several tables outdated counts for each.
    pub count: u64,
}

/// What was counted of a digest since it got its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DigestReport {
    /// Its number, 16 hexadecimal digits; none for all without a place of their own.
    pub digest: Option<String>,
    /// The normalised text, without any value.
    pub text: Option<String>,
    /// When it got its place, milliseconds after Remora's start.
    pub since_ms: u64,
    /// Statements.
    pub calls: u64,
    /// Those that memory answered.
    pub hits: u64,
    /// Those that the server answered.
    pub misses: u64,
    /// Of those, the ones that may have changed something.
    pub writes: u64,
    /// Of those, the ones whose results were kept.
    pub fills: u64,
    /// Results that were dropped because a change had outdated them.
    pub outdated: u64,
    /// The tables whose changes did that, the most frequent first.
    #[serde(default)]
    pub outdated_by: Vec<OutdatedByTable>,
    /// The same of further tables.
    #[serde(default)]
    pub outdated_by_other_tables: u64,
    /// Those that were outdated by a commit that may have changed anything, or by a log that was
    /// lost.
    #[serde(default)]
    pub outdated_by_everything: u64,
    /// Those of which it can't be told: something else shared a place with what they depend on.
    #[serde(default)]
    pub outdated_by_unknown: u64,
    /// Bytes of the responses from memory.
    pub hit_bytes: u64,
    /// Time of all hits, microseconds.
    pub hit_us: u64,
    /// Time of all misses, microseconds.
    pub miss_us: u64,
    /// What the hits would have taken longer at the server, by the mean of the misses,
    /// microseconds; 0 if none was measured.
    pub saved_us: u64,
    /// Of hits: the upper bound of the bucket that holds the 99th percentile, microseconds; none
    /// without a hit.
    pub hit_p99_us: Option<u64>,
    /// The same of misses.
    pub miss_p99_us: Option<u64>,
    /// Why others were not kept, the most frequent first.
    pub refusals: Vec<Refused>,
    /// Those of further reasons.
    pub refusals_of_other_reasons: u64,
    /// Whether at least one worker stores only a sample of its results.
    #[serde(default)]
    pub only_a_sample: bool,
    /// Hits by how long they took; bounds as in the metrics.
    #[serde(skip)]
    pub hit_buckets: [u64; BUCKETS],
    /// Misses by how long they took.
    #[serde(skip)]
    pub miss_buckets: [u64; BUCKETS],
}

impl DigestReport {
    pub(super) fn new(about: Option<&About>) -> DigestReport {
        DigestReport {
            digest: about.map(|about| about.digest.to_string()),
            text: about.map(|about| about.text.clone()),
            since_ms: about.map_or(0, |about| about.since_ms.saturating_sub(BEGINS_AT_MS)),
            calls: 0,
            hits: 0,
            misses: 0,
            writes: 0,
            fills: 0,
            outdated: 0,
            outdated_by: Vec::new(),
            outdated_by_other_tables: 0,
            outdated_by_everything: 0,
            outdated_by_unknown: 0,
            hit_bytes: 0,
            hit_us: 0,
            miss_us: 0,
            saved_us: 0,
            hit_p99_us: None,
            miss_p99_us: None,
            refusals: Vec::new(),
            refusals_of_other_reasons: 0,
            only_a_sample: false,
            hit_buckets: [0; BUCKETS],
            miss_buckets: [0; BUCKETS],
        }
    }

    pub(super) fn add_refusals(&mut self, outcome: Outcome, count: u64) {
        let reason = match outcome.reason() {
            "" => outcome.as_str(),
            reason => reason,
        };
        match self
            .refusals
            .iter_mut()
            .find(|known| known.reason == reason)
        {
            Some(known) => known.count += count,
            None => self.refusals.push(Refused {
                reason: reason.to_owned(),
                count,
            }),
        }
    }

    pub(super) fn add_outdated_by(&mut self, by: &OutdatedByCounts) {
        self.outdated_by_other_tables += by.other_tables;
        self.outdated_by_everything += by.everything;
        self.outdated_by_unknown += by.unknown;
        for ((schema, table), count) in &by.tables {
            let known = self
                .outdated_by
                .iter_mut()
                .find(|known| known.schema == *schema && known.table == *table);
            match known {
                Some(known) => known.count += count,
                None => self.outdated_by.push(OutdatedByTable {
                    schema: schema.clone(),
                    table: table.clone(),
                    count: *count,
                }),
            }
        }
    }

    /// What was counted after `before`, which is of the same digest.
    fn less(&self, before: &DigestReport) -> DigestReport {
        let mut rest = self.clone();
        for (rest, before) in [
            (&mut rest.hits, before.hits),
            (&mut rest.misses, before.misses),
            (&mut rest.writes, before.writes),
            (&mut rest.fills, before.fills),
            (&mut rest.outdated, before.outdated),
            (
                &mut rest.outdated_by_other_tables,
                before.outdated_by_other_tables,
            ),
            (
                &mut rest.outdated_by_everything,
                before.outdated_by_everything,
            ),
            (&mut rest.outdated_by_unknown, before.outdated_by_unknown),
            (&mut rest.hit_bytes, before.hit_bytes),
            (&mut rest.hit_us, before.hit_us),
            (&mut rest.miss_us, before.miss_us),
            (
                &mut rest.refusals_of_other_reasons,
                before.refusals_of_other_reasons,
            ),
        ] {
            *rest = rest.saturating_sub(before);
        }
        for refused in &mut rest.refusals {
            let known = before
                .refusals
                .iter()
                .find(|known| known.reason == refused.reason);
            refused.count -= known.map_or(0, |known| known.count).min(refused.count);
        }
        rest.refusals.retain(|refused| refused.count > 0);
        for by in &mut rest.outdated_by {
            let known = before
                .outdated_by
                .iter()
                .find(|known| known.schema == by.schema && known.table == by.table);
            by.count -= known.map_or(0, |known| known.count).min(by.count);
        }
        rest.outdated_by.retain(|by| by.count > 0);
        rest.work_out();
        rest
    }

    /// Works out what follows from the sums.
    pub(super) fn finish(&mut self) {
        self.work_out();
        self.hit_p99_us = percentile_us(&self.hit_buckets, 99);
        self.miss_p99_us = percentile_us(&self.miss_buckets, 99);
    }

    fn work_out(&mut self) {
        self.calls = self.hits + self.misses;
        self.saved_us = (u128::from(self.miss_us) * u128::from(self.hits))
            .checked_div(u128::from(self.misses))
            .and_then(|would| u64::try_from(would).ok())
            .unwrap_or(0)
            .saturating_sub(self.hit_us);
        self.refusals
            .sort_by_key(|refused| std::cmp::Reverse(refused.count));
        self.outdated_by
            .sort_by_key(|by| std::cmp::Reverse(by.count));
    }
}

/// What was counted of each digest between two reports of one Remora. Percentiles stay those of the
/// whole time.
pub fn since(now: &[DigestReport], before: &[DigestReport]) -> Vec<DigestReport> {
    let key = |digest: &DigestReport| (digest.digest.clone(), digest.since_ms);
    let before: std::collections::HashMap<_, _> =
        before.iter().map(|digest| (key(digest), digest)).collect();
    now.iter()
        .map(|digest| {
            // What wasn't there before began meanwhile, or another Remora did.
            let known = before.get(&key(digest));
            known.map_or_else(|| digest.clone(), |before| digest.less(before))
        })
        .collect()
}

/// The upper bound of the bucket that a percentile falls into, microseconds; the longest that is
/// told apart if it is in the last.
fn percentile_us(buckets: &[u64; BUCKETS], percent: u64) -> Option<u64> {
    let count: u64 = buckets.iter().sum();
    let rank = (count * percent).div_ceil(100).max(1);
    let mut seen = 0;
    let bucket = buckets.iter().position(|bucket| {
        seen += bucket;
        seen >= rank
    })?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bound = |bucket: usize| (bucket_bound_seconds(bucket) * 1e6) as u64;
    Some(bound(bucket.min(BUCKETS - 2)))
}
