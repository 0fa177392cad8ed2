//! The first read of a transaction at `REPEATABLE READ`, with
//! `cache.transaction_reads = "after_snapshot"`: memory can answer it, too.
//!
//! It is the first read with which the server makes the transaction's snapshot. If memory has its
//! result, the server is told to make the snapshot instead, by
//! `START TRANSACTION WITH CONSISTENT SNAPSHOT`, which is cheaper than most reads. Then the rule of
//! all reads inside a snapshot decides; see [`remora_cache::Snapshot`]. If that rule says no, or
//! its proof doesn't come in time, the server answers in the transaction that it has opened.
//!
//! # Why the snapshot is the server's
//!
//! It is made between the client's message and the answer, as with the read itself. But it may only
//! be made if the read would have made it. In `BEGIN; SELECT … WHERE 1 = 0` the server makes none,
//! and the next read shows what was committed meanwhile; from an earlier snapshot it would be an
//! old row. So the stored answer must prove that the server can't give it without a look at an
//! `InnoDB` table: by a row, or by what the statement says ([`Evidence`]). As the result is
//! current, the server's own answer would be the same. A result carries that in its note.
//!
//! # When it pays
//!
//! Two round trips take the place of one: the server makes the snapshot, and tells where its log
//! ends. Where more reads follow, the second is needed in any case. So each worker keeps in mind
//! for each digest whether reads have followed it lately, or whether it was slow. The results of
//! others aren't kept, and they go to the server as they come.

use std::cell::Cell;
use std::time::Duration;

use remora_cache::{BrokenSnapshots, Entry};
use remora_engine::key::{Label, Note};
use remora_sql::Transaction;

use super::Session;
use super::exchange::Plan;

/// A first read that takes longer at the server is slow, whatever follows it.
const SLOW: Duration = Duration::from_millis(1);
/// After so many transactions of a slow read alone the server is asked again.
const SLOW_FOR: u8 = 16;

/// Whether it pays to have memory answer a first read, by its digest: a worker's guess.
///
/// Digests that share a place share the guess.
#[derive(Debug)]
pub(crate) struct FirstReads {
    places: [Cell<Guess>; FirstReads::PLACES],
    /// A read that takes longer at the server is slow.
    slow: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Guess {
    /// Half or more of [`Guess::MAX`]: more reads follow.
    followed: u8,
    /// For so many more transactions without another read it counts as slow.
    slow_for: u8,
}

impl Guess {
    const MAX: u8 = 3;
    const UNKNOWN: Guess = Guess {
        followed: 2,
        slow_for: 0,
    };

    fn followed(&mut self) {
        self.followed = (self.followed + 1).min(Guess::MAX);
    }

    fn alone(&mut self) {
        self.followed = self.followed.saturating_sub(1);
        self.slow_for = self.slow_for.saturating_sub(1);
    }
}

impl Default for FirstReads {
    fn default() -> FirstReads {
        FirstReads {
            places: [const { Cell::new(Guess::UNKNOWN) }; FirstReads::PLACES],
            slow: SLOW,
        }
    }
}

impl FirstReads {
    const PLACES: usize = 256;

    /// With another idea of what is slow.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn with_slow(slow: Duration) -> FirstReads {
        FirstReads {
            slow,
            ..FirstReads::default()
        }
    }

    fn place(&self, label: Label) -> &Cell<Guess> {
        &self.places[label.number() as usize % Self::PLACES]
    }

    fn pays(&self, label: Label) -> bool {
        let guess = self.place(label).get();
        guess.slow_for > 0 || guess.followed > Guess::MAX / 2
    }

    fn update(&self, label: Label, change: impl FnOnce(&mut Guess)) {
        let place = self.place(label);
        let mut guess = place.get();
        change(&mut guess);
        place.set(guess);
    }
}

/// The first read of the open transaction, while none has followed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstRead {
    label: Label,
    is_answered: bool,
}

impl Session {
    /// Whether the server should make the snapshot for a result that memory has, if that is of a
    /// transaction's first read.
    pub(super) fn should_make_snapshot(&self, entry: &Entry) -> bool {
        let note = Note::of(entry);
        if !note.makes_snapshot {
            // Reading it anew would not help the next one.
            let useless = |guess: &mut Guess| guess.followed = 0;
            self.worker.first_reads.update(note.label, useless);
        }
        let is_broken = self.shared.timeline.broken().snapshots == BrokenSnapshots::FirstReads;
        self.server_makes_snapshots
            && (is_broken || note.makes_snapshot && self.worker.first_reads.pays(note.label))
    }

    /// Whether the answer to a first read of this digest is worth keeping.
    pub(super) fn keeps_first_read(&self, label: Label) -> bool {
        self.server_makes_snapshots && self.worker.first_reads.pays(label)
    }

    /// The server makes the snapshot for such a read, which then is looked at again.
    pub(super) fn begins_with(&mut self, label: Label) {
        self.first_read = Some(FirstRead {
            label,
            is_answered: false,
        });
    }

    /// Memory has answered a read, or the server is about to.
    pub(super) fn note_read(&mut self, label: Label) {
        if self.state.must_have_snapshot() {
            self.first_read = Some(FirstRead {
                label,
                is_answered: true,
            });
            return;
        }
        let Some(first) = &mut self.first_read else {
            return;
        };
        if first.is_answered {
            let first = first.label;
            self.first_read = None;
            self.worker.first_reads.update(first, Guess::followed);
        } else {
            first.is_answered = true;
        }
    }

    /// A statement is about to go to the server.
    pub(super) fn note_forwarded(&mut self, plan: &Plan) {
        match (plan.effects.transaction, plan.counted) {
            (Transaction::Commit | Transaction::Rollback | Transaction::Begin, _) => {
                if let Some(first) = self.first_read.take() {
                    self.worker.first_reads.update(first.label, Guess::alone);
                }
            }
            (_, Some((label, _))) => self.note_read(label),
            (_, None) => {}
        }
    }

    /// The server has answered a statement after so long.
    pub(super) fn note_server_took(&self, label: Label, took: Duration) {
        let is_first = |first: &FirstRead| first.label == label;
        if self.first_read.as_ref().is_some_and(is_first) {
            let slow_for = if took > self.worker.first_reads.slow {
                SLOW_FOR
            } else {
                0
            };
            let slow = |guess: &mut Guess| guess.slow_for = slow_for;
            self.worker.first_reads.update(label, slow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_given_up_when_nothing_follows_and_taken_up_when_something_does() {
        let (guesses, label) = (FirstReads::default(), Label::from_number(7));
        assert!(guesses.pays(label), "nothing is known");
        guesses.update(label, Guess::alone);
        assert!(!guesses.pays(label));
        guesses.update(label, Guess::followed);
        assert!(guesses.pays(label));
    }

    #[test]
    fn a_slow_one_is_measured_again_now_and_then() {
        let (guesses, label) = (FirstReads::default(), Label::from_number(7));
        guesses.update(label, |guess| guess.slow_for = SLOW_FOR);
        for _ in 0..SLOW_FOR {
            assert!(guesses.pays(label));
            guesses.update(label, Guess::alone);
        }
        assert!(!guesses.pays(label));
    }
}
