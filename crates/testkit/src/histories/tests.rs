//! Small histories, each with what must be found in it.

use super::{Element, Key, Kind, Span, Step, Transaction, check};

#[allow(clippy::unnecessary_wraps, reason = "as a transaction has it")]
fn span(sent_ns: u64, answered_ns: u64) -> Option<Span> {
    Some(Span {
        sent_ns,
        answered_ns,
    })
}

fn read(key: Key, list: &[Element]) -> Step {
    Step::Read(key, list.to_vec())
}

fn append(key: Key, element: Element) -> Step {
    Step::Append(key, element)
}

/// A transaction beside all others: nothing is known of its times.
fn beside(steps: &[Step]) -> Transaction {
    let reads = steps.iter().any(|step| matches!(step, Step::Read(..)));
    Transaction {
        client: "a test".to_owned(),
        steps: steps.to_vec(),
        snapshot: span(0, u64::MAX).filter(|_| reads),
        commit: span(0, u64::MAX),
    }
}

fn rolled_back(steps: &[Step]) -> Transaction {
    Transaction {
        commit: None,
        ..beside(steps)
    }
}

fn kinds(history: &[Transaction]) -> Vec<Kind> {
    check(history).iter().map(|anomaly| anomaly.kind).collect()
}

fn assert_clean(history: &[Transaction]) {
    assert_eq!(check(history), []);
}

#[test]
fn transactions_one_after_the_other_are_clean() {
    let mut first = beside(&[append(1, 10), append(2, 20)]);
    first.commit = span(5, 6);
    let mut second = beside(&[read(1, &[10]), append(1, 11), read(1, &[10, 11])]);
    (second.snapshot, second.commit) = (span(7, 8), span(9, 10));
    let mut third = beside(&[read(1, &[10, 11]), read(2, &[20]), read(3, &[])]);
    (third.snapshot, third.commit) = (span(11, 12), span(13, 14));
    assert_clean(&[first, second, third]);
}

#[test]
fn a_snapshot_may_be_older_than_the_present() {
    let mut early = beside(&[read(1, &[]), read(2, &[])]);
    (early.snapshot, early.commit) = (span(0, 1), span(10, 11));
    let mut write = beside(&[append(1, 10), append(2, 20)]);
    write.commit = span(3, 4);
    assert_clean(&[early, write]);
}

#[test]
fn lost_updates_and_write_skew_are_allowed() {
    // Both saw the empty list; the second append works on the newest one.
    assert_clean(&[
        beside(&[read(1, &[]), append(1, 10)]),
        beside(&[read(1, &[]), append(1, 11), read(1, &[10, 11])]),
    ]);
    assert_clean(&[
        beside(&[read(1, &[]), append(2, 20)]),
        beside(&[read(2, &[]), append(1, 10)]),
        beside(&[read(1, &[10]), read(2, &[20])]),
    ]);
}

#[test]
fn what_is_rolled_back_was_its_own() {
    assert_clean(&[
        beside(&[append(1, 10)]),
        rolled_back(&[append(1, 11), read(1, &[10, 11])]),
        beside(&[append(1, 12), read(1, &[10, 12])]),
    ]);
}

#[test]
fn an_element_that_nobody_appended_is_found() {
    assert_eq!(kinds(&[beside(&[read(1, &[10])])]), [Kind::NeverWritten]);
    let elsewhere = [beside(&[append(2, 10)]), beside(&[read(1, &[10])])];
    assert!(kinds(&elsewhere).contains(&Kind::NeverWritten));
}

#[test]
fn a_read_of_what_was_rolled_back_is_found() {
    let history = [
        rolled_back(&[append(1, 10)]),
        beside(&[read(1, &[10])]),
        beside(&[append(1, 11)]),
    ];
    assert!(kinds(&history).contains(&Kind::AbortedRead));
}

#[test]
fn a_read_between_two_appends_is_found() {
    let history = [
        beside(&[append(1, 10), append(1, 11)]),
        beside(&[read(1, &[10])]),
        beside(&[read(1, &[10, 11])]),
    ];
    assert!(kinds(&history).contains(&Kind::IntermediateRead));
}

#[test]
fn an_element_that_is_there_twice_is_found() {
    let history = [beside(&[append(1, 10)]), beside(&[read(1, &[10, 10])])];
    assert!(kinds(&history).contains(&Kind::Twice));
}

#[test]
fn lists_that_do_not_continue_each_other_are_found() {
    let history = [
        beside(&[append(1, 10)]),
        beside(&[append(1, 11)]),
        beside(&[read(1, &[10, 11])]),
        beside(&[read(1, &[11])]),
    ];
    assert_eq!(kinds(&history), [Kind::IncompatibleOrder]);
}

#[test]
fn a_list_that_changes_within_a_transaction_is_found() {
    let history = [
        beside(&[append(1, 10)]),
        beside(&[read(1, &[]), read(1, &[10])]),
    ];
    assert!(kinds(&history).contains(&Kind::UnrepeatableRead));
    // An own append locks the list.
    let history = [
        beside(&[append(1, 10)]),
        beside(&[append(1, 11), read(1, &[11]), read(1, &[10, 11])]),
    ];
    assert!(kinds(&history).contains(&Kind::UnrepeatableRead));
}

#[test]
fn an_own_append_that_is_not_seen_is_found() {
    let history = [
        beside(&[append(1, 10)]),
        beside(&[append(1, 11), read(1, &[10])]),
        beside(&[read(1, &[10, 11])]),
    ];
    assert_eq!(kinds(&history), [Kind::OwnAppendMissing]);
}

#[test]
fn appends_in_two_orders_are_found() {
    let history = [
        beside(&[append(1, 10), append(2, 20)]),
        beside(&[append(1, 11), append(2, 21)]),
        beside(&[read(1, &[10, 11])]),
        beside(&[read(2, &[21, 20])]),
    ];
    assert_eq!(kinds(&history), [Kind::DirtyWrite]);
}

#[test]
fn transactions_that_saw_each_other_are_found() {
    let history = [
        beside(&[read(2, &[20]), append(1, 10)]),
        beside(&[read(1, &[10]), append(2, 20)]),
    ];
    assert_eq!(kinds(&history), [Kind::CircularFlow]);
}

#[test]
fn a_transaction_that_saw_half_of_another_is_found() {
    let write = beside(&[append(1, 10), append(2, 20)]);
    let last = beside(&[read(1, &[10]), read(2, &[20])]);
    let skewed = beside(&[read(1, &[10]), read(2, &[])]);
    assert_eq!(kinds(&[write.clone(), skewed, last]), [Kind::ReadSkew]);
    // The append that was missed needn't have been read by anybody.
    let skewed = beside(&[read(1, &[10]), read(2, &[])]);
    assert_eq!(kinds(&[write, skewed]), [Kind::ReadSkew]);
}

#[test]
fn a_skew_over_several_transactions_is_found() {
    let history = [
        beside(&[append(1, 10)]),
        beside(&[read(1, &[10]), append(2, 20)]),
        beside(&[read(1, &[]), read(2, &[20])]),
        beside(&[read(1, &[10]), read(2, &[20])]),
    ];
    assert_eq!(kinds(&history), [Kind::ReadSkew]);
}

#[test]
fn a_skew_counts_also_in_a_transaction_that_writes_or_is_rolled_back() {
    let write = beside(&[append(1, 10), append(2, 20)]);
    let steps = [read(1, &[10]), append(3, 30), read(2, &[])];
    assert_eq!(
        kinds(&[write.clone(), beside(&steps), beside(&[read(3, &[30])])]),
        [Kind::ReadSkew]
    );
    assert_eq!(kinds(&[write, rolled_back(&steps)]), [Kind::ReadSkew]);
}

#[test]
fn two_orders_of_the_same_commits_are_found() {
    let history = [
        beside(&[append(1, 10)]),
        beside(&[append(2, 20)]),
        beside(&[read(1, &[10]), read(2, &[])]),
        beside(&[read(1, &[]), read(2, &[20])]),
    ];
    assert_eq!(kinds(&history), [Kind::LongFork]);
}

#[test]
fn a_commit_that_was_answered_before_must_be_seen() {
    let mut write = beside(&[append(1, 10)]);
    write.commit = span(3, 5);
    let mut late = beside(&[read(1, &[])]);
    (late.snapshot, late.commit) = (span(6, 7), span(8, 9));
    assert_eq!(kinds(&[write.clone(), late.clone()]), [Kind::RealTime]);
    // They overlap: either is right.
    late.snapshot = span(5, 7);
    assert_clean(&[write, late]);
}

#[test]
fn a_commit_that_was_sent_afterwards_must_not_be_seen() {
    let mut early = beside(&[read(2, &[]), read(1, &[10])]);
    (early.snapshot, early.commit) = (span(0, 2), span(10, 11));
    let mut write = beside(&[append(1, 10)]);
    write.commit = span(3, 5);
    assert_eq!(kinds(&[early.clone(), write.clone()]), [Kind::RealTime]);
    early.snapshot = span(0, 3);
    assert_clean(&[early, write]);
}
