//! What Remora says became of a command, from its own counters.

use remora_engine::reason::Outcome;
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::InProcessRemora;

/// The label of an answer from memory.
pub const HIT: &str = "hit";
/// The label of a command that Remora didn't count in time.
pub const UNCOUNTED: &str = "not counted";

/// How often each outcome has been counted, in the order of [`Outcome::all`].
pub(crate) fn counts(remora: &InProcessRemora) -> Vec<u64> {
    let Some(app) = remora.app() else {
        return Vec::new();
    };
    let workers = app.shared().metrics.workers();
    let count = |outcome: &Outcome| workers.iter().map(|one| one.outcome(*outcome)).sum();
    Outcome::all().iter().map(count).collect()
}

/// Runs one command through a Remora that nobody else uses meanwhile; gives its outcome.
pub fn observe<T>(remora: &InProcessRemora, run: impl FnOnce() -> T) -> (T, &'static str) {
    let before = counts(remora);
    let value = run();
    let counted = wait_for("a command to be counted", PATIENCE, || {
        let now = counts(remora);
        let changed = now.iter().zip(&before).position(|(now, then)| now != then);
        Ok(changed.and_then(|index| Outcome::all().get(index)))
    });
    (value, counted.map_or(UNCOUNTED, |outcome| label(*outcome)))
}

/// `hit`, `fill`, `write`, or the reason of a bypass.
pub(crate) fn label(outcome: Outcome) -> &'static str {
    match outcome.reason() {
        "" => outcome.as_str(),
        reason => reason,
    }
}

/// Beginnings of the labels of what may become an answer from memory when the statement is sent
/// again.
const PASSING: [&str; 15] = [
    "fill",
    "watermark_behind",
    "table_loading",
    "table_missing",
    "table_visible_late",
    "table_unknown",
    "follower_not_live",
    "settings_unknown",
    "status_uncertain",
    "next_transaction_differs",
    "prepared_before_definition",
    "prepared_elsewhere",
    "unservable_",
    "snapshot_",
    "outdated_",
];

/// Whether the label says no more than that the last proof of the follower is too old for a moment.
pub fn is_unproven(label: &str) -> bool {
    let labels = [
        "follower_not_live",
        "unservable_not_live",
        "unservable_behind",
        "unservable_snapshot_unproven",
    ];
    labels.contains(&label)
}

/// Whether the same statement may come to be answered from memory if it is sent again.
pub fn is_passing(label: &str) -> bool {
    PASSING.iter().any(|beginning| label.starts_with(beginning))
}
