//! The results of a statement that are in memory.

use remora_cache::{Entry, StoreCursor};
use remora_engine::key::fingerprint_of;
use remora_engine::reason::Words;
use serde::Serialize;

use crate::shared::Shared;

/// How many places of the store are looked at before others of the same thread have a turn.
const STEP_PLACES: usize = 1_024;
/// How many results are described one by one.
const RESULTS_SHOWN_MAX: usize = 32;
/// The end of an execution's key: the length of the statement's text, as `session::prepared` puts
/// it.
const LENGTH_BYTES: usize = size_of::<u64>();

/// The results of a statement that are in memory, whatever account, schema and settings they are
/// for unless a fingerprint was named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// How many.
    pub results: usize,
    /// How many of them could be served now.
    pub servable: usize,
    /// The memory that they take.
    pub bytes: usize,
    /// The first of them.
    pub shown: Vec<HeldResult>,
}

/// A result in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HeldResult {
    /// It is of an execution of the prepared statement; else of the statement as text.
    pub is_prepared: bool,
    /// The memory that it takes.
    pub bytes: usize,
    /// How many tags it has.
    pub tags: usize,
    /// Why it can't be served now. `None`: it can.
    pub unservable: Option<Words>,
    /// Whether it was a hit since the eviction's hand last passed it, or since it was stored.
    pub was_asked_for: bool,
}

/// Looks through the whole store, in steps that hold up neither look-ups nor the other pages of the
/// admin listener.
///
/// With a fingerprint only those of its sessions are looked for.
pub(super) async fn find(shared: &Shared, text: &[u8], fingerprint: Option<u64>) -> Held {
    let is_meant = |entry: &Entry| fingerprint.is_none_or(|id| fingerprint_of(entry.scope()) == id);
    let mut held = Held::default();
    let mut next = Some(StoreCursor::default());
    while let Some(from) = next {
        let now_ms = shared.clock.now_ms();
        next = shared.store.walk_step(from, STEP_PLACES, |entry| {
            if let Some(is_prepared) = is_of(entry, text)
                && is_meant(entry)
            {
                held.add(shared, entry, is_prepared, now_ms);
            }
        });
        tokio::task::yield_now().await;
    }
    held
}

/// Whether an entry is of the statement; if so whether by an execution of it.
fn is_of(entry: &Entry, text: &[u8]) -> Option<bool> {
    let rest = entry.text().strip_prefix(text)?;
    if rest.is_empty() {
        return Some(false);
    }
    let length = rest.last_chunk::<LENGTH_BYTES>()?;
    (u64::from_le_bytes(*length) == text.len() as u64).then_some(true)
}

impl Held {
    fn add(&mut self, shared: &Shared, entry: &Entry, is_prepared: bool, now_ms: u64) {
        let unservable = shared.why_unservable(entry, now_ms);
        self.results += 1;
        self.servable += usize::from(unservable.is_none());
        self.bytes += entry.cost();
        if self.shown.len() < RESULTS_SHOWN_MAX {
            self.shown.push(HeldResult {
                is_prepared,
                bytes: entry.cost(),
                tags: entry.tags().len(),
                unservable,
                was_asked_for: entry.was_asked_for(),
            });
        }
    }
}
