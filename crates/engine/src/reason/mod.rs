//! What became of a statement, and why. One set of enums for metrics, logs and documents.
//!
//! A statement has exactly one [`Outcome`]. One that went to the server without need of a fence
//! carries the reason, [`Bypass`]: a variant with a stable `snake_case` label and a sentence. No
//! two share a label. The label is what `remora_statements_total{reason="…"}` shows and what
//! `docs/reasons.md` explains.

mod bypass;
mod page;
mod sets;

use std::sync::LazyLock;

pub use bypass::{About, Bypass};
pub use page::reference_markdown;
pub use remora_reason::Reason;
pub use sets::{
    CachingOff, Coarse, Limit, NotVerified, RestartReason, RuleOutcome, RulesReload, Stage,
    StateNotSaved, StateOutcome, TableRefusal, TraceDropped, Verdict,
};

/// A reason in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Words {
    /// The stable label.
    pub reason: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl Words {
    /// Of a reason.
    pub fn of(reason: impl Reason) -> Words {
        Words {
            reason: reason.as_str(),
            meaning: reason.describe(),
        }
    }
}

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from memory.
    Hit,
    /// Not in memory, or outdated there; answered by the server and kept.
    Fill,
    /// May change data; sent to the server behind a fence.
    Write,
    /// Begins or ends a transaction, or sets transaction defaults, and the server needn't know of
    /// it now; answered in its place.
    Transaction,
    /// Refused, because its transaction can't go on as memory has begun it, or can't be opened.
    Conflict,
    /// Refused, because too many statements were at the server.
    Refused,
    /// Answered by the server and not kept, for this reason.
    Bypass(Bypass),
}

impl Outcome {
    /// The outcomes without a reason: they take the first places.
    const PLAIN: [Self; 6] = [
        Self::Hit,
        Self::Fill,
        Self::Write,
        Self::Transaction,
        Self::Conflict,
        Self::Refused,
    ];

    /// How many different outcomes there are, reasons included.
    pub const COUNT: usize = Self::PLAIN.len() + Bypass::COUNT;

    /// Its place among all outcomes, below [`Outcome::COUNT`]. Not stable between versions.
    #[inline]
    pub fn index(self) -> usize {
        match self {
            Self::Hit => 0,
            Self::Fill => 1,
            Self::Write => 2,
            Self::Transaction => 3,
            Self::Conflict => 4,
            Self::Refused => 5,
            Self::Bypass(bypass) => Self::PLAIN.len() + bypass.index(),
        }
    }

    /// Every outcome, reasons included, in the order of [`Outcome::index`].
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Outcome>> = LazyLock::new(|| {
            let bypasses = Bypass::all().map(Outcome::Bypass);
            Outcome::PLAIN.into_iter().chain(bypasses).collect()
        });
        &ALL
    }

    /// The label of the kind of outcome: `hit`, `fill`, `write`, `transaction`, `conflict`,
    /// `refused` or `bypass`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Fill => "fill",
            Self::Write => "write",
            Self::Transaction => "transaction",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Bypass(_) => "bypass",
        }
    }

    /// The label of the reason; empty for outcomes that need none.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Hit
            | Self::Fill
            | Self::Write
            | Self::Transaction
            | Self::Conflict
            | Self::Refused => "",
            Self::Bypass(bypass) => bypass.as_str(),
        }
    }

    /// What it means, in a sentence for operators.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Hit => "Answered from memory.",
            Self::Fill => {
                "Not in memory, or outdated there; answered by the server and kept. With `cache.transaction_reads = \"early\"` also a result that waits to be kept."
            }
            Self::Write => "May change data; sent to the server behind a fence.",
            Self::Transaction => {
                "Answered by Remora itself. It begins a transaction or sets transaction defaults (`SET autocommit = 0`): the server is told before anything else that it answers. Or it ends a transaction that the server doesn't know of."
            }
            Self::Conflict => {
                "Not run. With `cache.transaction_reads = \"early\"`: what memory answered in this transaction has changed, and the client got error 1213 (try restarting transaction). Or the server refused to open a transaction whose `BEGIN` Remora had answered, and Remora had to open it first. The client got the server's error."
            }
            Self::Refused => {
                "Not run: as many statements as `upstream.statements_max` allows were at the server, and this one had waited as long as it may, or the queue was full. The client got error 1637."
            }
            Self::Bypass(bypass) => bypass.describe(),
        }
    }

    /// Whether the statement was one that memory might have answered and the server did.
    #[inline]
    pub const fn is_miss(self) -> bool {
        match self {
            Self::Hit | Self::Write | Self::Transaction | Self::Conflict | Self::Refused => false,
            Self::Fill => true,
            Self::Bypass(bypass) => bypass.is_miss(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use remora_cache::{FillRefused, Unservable};

    use super::*;

    #[test]
    fn an_outcomes_index_is_its_place_among_all() {
        assert_eq!(Outcome::all().len(), Outcome::COUNT);
        for (index, outcome) in Outcome::all().iter().enumerate() {
            assert_eq!(outcome.index(), index, "{outcome:?}");
        }
        let changed = |tag| Outcome::Bypass(Bypass::Outdated(Unservable::Changed(tag))).index();
        assert_eq!(changed(0), changed(7));
    }

    #[test]
    fn no_two_reasons_share_a_label_and_each_is_described() {
        let mut seen = HashSet::new();
        for bypass in Bypass::all() {
            let label = bypass.as_str();
            assert!(seen.insert(label), "{label} twice");
            let is_snake_case = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(label.chars().all(is_snake_case), "{label}");
            assert!(
                bypass.describe().ends_with('.'),
                "{label} is not described by a sentence"
            );
        }
    }

    #[test]
    fn a_miss_is_a_read_that_memory_might_have_answered() {
        assert!(Outcome::Fill.is_miss());
        assert!(Bypass::WatermarkBehind.is_miss());
        assert!(Bypass::Fill(FillRefused::InFlight).is_miss());
        assert!(!Outcome::Hit.is_miss());
        assert!(!Outcome::Write.is_miss());
        assert!(!Bypass::AutocommitOff.is_miss());
        assert!(!Bypass::FollowerNotLive.is_miss());
    }
}
