//! What may be served inside a transaction at `REPEATABLE READ`, one condition at a time. The
//! simulation and the model have them all at once.
//!
//! Servers: none
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use remora_cache::{
    AsOf, BrokenRules, BrokenSnapshots, ColumnSet, EarlyRead, FenceScope, Position, Shape,
    ShapeColumn, Shapes, ShapesLimits, Snapshot, TableTags, Tag, Timeline, TimelineLimits,
    TooCoarse, Unservable, Value,
};

const LIMITS: TimelineLimits = TimelineLimits {
    tag_slots: 1024,
    fence_slots: 64,
    lag_ms_max: 10,
};

fn at(offset: u64) -> Position {
    Position::new(1, offset).unwrap()
}

fn lines() -> Tag {
    Tag::table("shop", "lines")
}

fn orders() -> Tag {
    Tag::table("shop", "orders")
}

fn live_with(snapshots: BrokenSnapshots) -> Arc<Timeline> {
    let broken = BrokenRules {
        snapshots,
        ..BrokenRules::default()
    };
    let timeline = Arc::new(Timeline::new(LIMITS, broken));
    timeline.restart(at(100));
    assert!(timeline.prove(timeline.epoch(), 1000));
    timeline
}

fn live() -> Arc<Timeline> {
    live_with(BrokenSnapshots::Right)
}

/// A commit that touches these, applied and visible.
fn commit(timeline: &Timeline, tags: &[Tag], offset: u64) {
    timeline.begin_commit(at(offset));
    for tag in tags {
        timeline.touch(*tag, at(offset));
    }
    timeline.set_applied(at(offset));
    timeline.advance_visible(timeline.epoch(), at(offset));
}

/// A transaction that begins, and gets its first row, now.
fn snapshot(timeline: &Timeline) -> Snapshot {
    Snapshot {
        low: timeline.as_of().unwrap(),
        made_after: timeline.end_questions(),
    }
}

/// The server is asked where its log ends, and the follower has applied that.
fn prove_end(timeline: &Timeline) {
    let epoch = timeline.epoch();
    let question = timeline.begin_end_question();
    timeline.prove_end(epoch, question);
}

fn proven_snapshot(timeline: &Timeline) -> Snapshot {
    let snapshot = snapshot(timeline);
    prove_end(timeline);
    snapshot
}

fn check(timeline: &Timeline, as_of: AsOf, snapshot: Snapshot) -> Result<(), Unservable> {
    timeline.check_in_snapshot(as_of, [orders()].into_iter(), 1000, snapshot)
}

// ---- What the snapshot shows at least ----------------------------------------------------------

#[test]
fn what_an_earlier_transaction_has_read_is_served_if_nothing_has_changed_it() {
    let timeline = live();
    let earlier = snapshot(&timeline);
    commit(&timeline, &[Tag::table("shop", "other")], 200);
    let later = proven_snapshot(&timeline);
    assert_eq!(check(&timeline, earlier.low, later), Ok(()));
    assert_eq!(check(&timeline, earlier.low, earlier), Ok(()));
}

#[test]
fn a_result_that_is_newer_than_the_snapshot_is_refused_whatever_has_been_touched() {
    let timeline = live();
    let open = snapshot(&timeline);
    commit(&timeline, &[Tag::table("shop", "other")], 200);
    let newer = proven_snapshot(&timeline);
    assert!(!timeline.has_changed_since(open.low, [orders()].into_iter()));
    let refused = check(&timeline, newer.low, open);
    assert_eq!(refused, Err(Unservable::NewerThanSnapshot));
    assert_eq!(
        Unservable::NewerThanSnapshot.invalidation(),
        None,
        "transactions that have begun later may have it"
    );
    assert_eq!(check(&timeline, newer.low, newer), Ok(()));
    let broken = live_with(BrokenSnapshots::Low);
    let open = snapshot(&broken);
    commit(&broken, &[orders()], 200);
    let newer = proven_snapshot(&broken);
    assert_eq!(check(&broken, newer.low, open), Ok(()));
}

/// The tags of a result don't tell of commits that were touched before its shape was known, so the
/// touches since *low* don't tell whether a newer result is right in an older snapshot.
#[test]
fn a_commit_that_was_touched_before_a_results_shape_was_known_is_not_shown_to_older_snapshots() {
    let timeline = live();
    let limits = ShapesLimits {
        table_shapes_max: 2,
        tables_max: 1,
    };
    let shapes = Shapes::new(Arc::clone(&timeline), limits);
    let table = TableTags::new("shop", "orders");
    let id = ShapeColumn {
        ordinal: 0,
        codec: 0_u8,
    };
    let by_id = Shape::equal(table, &[id], ColumnSet::EMPTY);
    let open = snapshot(&timeline);
    // The row changes. Nobody has read by the key yet, so the commit touches no more than this.
    assert!(shapes.snapshot(table).shapes().is_empty());
    commit(&timeline, &[table.any()], 200);
    let newer = proven_snapshot(&timeline);
    let shape = shapes.find(table, &by_id, newer.low).unwrap();
    let five = Value::Integer(5).hash();
    let tags = [table.whole(), table.column(0), shape.tag(table, &[five])];
    assert!(!timeline.has_changed_since(open.low, tags.into_iter()));
    let check = |snapshot| timeline.check_in_snapshot(newer.low, tags.into_iter(), 1000, snapshot);
    assert_eq!(check(newer), Ok(()));
    assert_eq!(check(open), Err(Unservable::NewerThanSnapshot));
    // What the older one reads itself takes the coarse tag, which was touched.
    let own = shapes.find(table, &by_id, open.low);
    assert_eq!(own.err(), Some(TooCoarse::TooYoung));
}

#[test]
fn a_change_since_the_snapshot_outdates_what_was_read_in_it() {
    let timeline = live();
    let open = proven_snapshot(&timeline);
    assert_eq!(check(&timeline, open.low, open), Ok(()));
    assert!(!timeline.has_changed_since(open.low, [orders()].into_iter()));
    commit(&timeline, &[orders()], 200);
    let refused = check(&timeline, open.low, open);
    assert_eq!(refused, Err(Unservable::Changed(0)));
    assert!(timeline.has_changed_since(open.low, [orders()].into_iter()));
}

#[test]
fn a_change_of_everything_since_the_snapshot_outdates_what_was_read_in_it() {
    let timeline = live();
    let open = proven_snapshot(&timeline);
    timeline.touch_everything(at(200));
    let refused = check(&timeline, open.low, open);
    assert_eq!(refused, Err(Unservable::Everything));
    assert!(timeline.has_changed_since(open.low, [].into_iter()));
}

// ---- What the snapshot shows at most -----------------------------------------------------------

#[test]
fn nothing_is_served_before_the_follower_has_all_that_the_snapshot_may_show() {
    let timeline = live();
    let open = snapshot(&timeline);
    assert!(!timeline.covers(open));
    let refused = check(&timeline, open.low, open);
    assert_eq!(refused, Err(Unservable::SnapshotUnproven));
    let epoch = timeline.epoch();
    let question = timeline.begin_end_question();
    let refused = check(&timeline, open.low, open);
    assert_eq!(refused, Err(Unservable::SnapshotUnproven), "asked only");
    timeline.prove_end(epoch, question);
    assert!(timeline.covers(open));
    assert_eq!(check(&timeline, open.low, open), Ok(()));
    let broken = live_with(BrokenSnapshots::High);
    let open = snapshot(&broken);
    assert_eq!(check(&broken, open.low, open), Ok(()));
}

#[test]
fn the_proof_for_the_lag_says_nothing_of_a_snapshot() {
    let timeline = live();
    let open = snapshot(&timeline);
    assert!(timeline.prove(timeline.epoch(), 1001));
    assert!(!timeline.covers(open));
}

#[test]
fn a_question_that_was_asked_before_the_snapshot_was_known_proves_nothing_of_it() {
    let timeline = live();
    let epoch = timeline.epoch();
    let earlier = timeline.begin_end_question();
    let open = snapshot(&timeline);
    timeline.prove_end(epoch, earlier);
    assert!(!timeline.covers(open));
    prove_end(&timeline);
    assert!(timeline.covers(open));
}

#[test]
fn one_question_serves_all_snapshots_that_were_known_before_it() {
    let timeline = live();
    let first = snapshot(&timeline);
    let second = snapshot(&timeline);
    let epoch = timeline.epoch();
    let question = timeline.begin_end_question();
    let third = snapshot(&timeline);
    timeline.prove_end(epoch, question);
    assert!(timeline.covers(first));
    assert!(timeline.covers(second));
    assert!(!timeline.covers(third));
}

#[test]
fn the_proof_of_a_later_question_counts_for_earlier_ones_and_an_earlier_takes_nothing_back() {
    let timeline = live();
    let epoch = timeline.epoch();
    let first = timeline.begin_end_question();
    let open = snapshot(&timeline);
    let second = timeline.begin_end_question();
    assert!(second > first);
    assert_eq!(timeline.end_questions(), second);
    timeline.prove_end(epoch, second);
    assert!(timeline.covers(open));
    timeline.prove_end(epoch, first);
    assert!(timeline.covers(open));
}

// ---- What holds outside ------------------------------------------------------------------------

#[test]
fn what_may_not_be_served_outside_is_not_served_inside() {
    let timeline = live();
    let open = proven_snapshot(&timeline);
    assert_eq!(check(&timeline, open.low, open), Ok(()));
    let fence = timeline.raise(FenceScope::Tables(vec![orders()]));
    assert_eq!(check(&timeline, open.low, open), Err(Unservable::Fenced));
    fence.answered();
    timeline.take_answered().lower();
    timeline.suspend();
    let refused = check(&timeline, open.low, open);
    assert_eq!(refused, Err(Unservable::NotLive));
    timeline.resume();
    assert_eq!(check(&timeline, open.low, open), Ok(()));
    let late = timeline.check_in_snapshot(open.low, [orders()].into_iter(), 1011, open);
    assert_eq!(late, Err(Unservable::Behind));
}

// ---- Where the log begins anew, and what is forgotten ------------------------------------------

#[test]
fn a_transaction_that_was_open_when_the_log_began_anew_is_served_nothing() {
    let timeline = live();
    let open = proven_snapshot(&timeline);
    timeline.restart(at(50));
    timeline.prove(timeline.epoch(), 1000);
    let newer = proven_snapshot(&timeline);
    let refused = check(&timeline, open.low, open);
    assert_eq!(refused, Err(Unservable::Forgotten));
    // Its position is smaller than the open transaction's, but of another log.
    assert!(newer.low.position() < open.low.position());
    let refused = check(&timeline, newer.low, open);
    assert_eq!(refused, Err(Unservable::NewerThanSnapshot));
    assert_eq!(check(&timeline, newer.low, newer), Ok(()));
    let refused = check(&timeline, open.low, newer);
    assert_eq!(refused, Err(Unservable::Forgotten));
}

#[test]
fn an_end_of_the_log_before_a_restart_proves_nothing_after_it() {
    let timeline = live();
    let before = timeline.epoch();
    timeline.restart(at(50));
    timeline.prove(timeline.epoch(), 1000);
    let open = snapshot(&timeline);
    // Sent later than the snapshot was known, by somebody who had looked at the epoch before.
    let question = timeline.begin_end_question();
    timeline.prove_end(before, question);
    assert!(!timeline.covers(open));
    timeline.prove_end(timeline.epoch(), question);
    assert!(timeline.covers(open));
}

#[test]
fn questions_are_counted_on_over_a_restart() {
    let timeline = live();
    let before = timeline.begin_end_question();
    timeline.restart(at(50));
    timeline.prove(timeline.epoch(), 1000);
    let open = snapshot(&timeline);
    assert_eq!(open.made_after, before);
    assert!(timeline.begin_end_question() > before);
}

#[test]
fn a_transaction_that_was_open_when_something_was_forgotten_is_served_nothing_later() {
    let timeline = live();
    let open = proven_snapshot(&timeline);
    timeline.forget();
    let refused = check(&timeline, open.low, open);
    assert_eq!(refused, Err(Unservable::Forgotten));
    let newer = proven_snapshot(&timeline);
    assert_eq!(newer.low.position(), open.low.position());
    let refused = check(&timeline, newer.low, open);
    assert_eq!(refused, Err(Unservable::NewerThanSnapshot));
    assert_eq!(check(&timeline, newer.low, newer), Ok(()));
}

#[test]
fn a_proof_stays_when_something_is_forgotten() {
    let timeline = live();
    let epoch = timeline.epoch();
    let question = timeline.begin_end_question();
    timeline.forget();
    timeline.prove_end(epoch, question);
    let open = snapshot(&timeline);
    prove_end(&timeline);
    assert!(timeline.covers(open));
    timeline.forget();
    assert!(
        timeline.covers(open),
        "what it shows has still been applied"
    );
}

// ---- Before the server knows of the transaction -------------------------------------------------

fn early(timeline: &Timeline, tag: Tag) -> EarlyRead {
    EarlyRead {
        as_of: timeline.as_of().unwrap(),
        tags: [tag].into(),
    }
}

#[test]
fn a_further_result_is_served_while_nothing_read_before_has_changed() {
    let timeline = live();
    let reads = [early(&timeline, orders())];
    assert_eq!(timeline.check_early(reads.iter()), Ok(()));
    commit(&timeline, &[lines()], 200);
    assert_eq!(timeline.check_early(reads.iter()), Ok(()));
    commit(&timeline, &[orders()], 300);
    let refused = Err(Unservable::EarlierRead);
    assert_eq!(timeline.check_early(reads.iter()), refused);
}

#[test]
fn nothing_read_before_everything_was_forgotten_fits() {
    let timeline = live();
    let reads = [early(&timeline, orders())];
    timeline.forget();
    let refused = Err(Unservable::EarlierRead);
    assert_eq!(timeline.check_early(reads.iter()), refused);
    let snapshot = proven_snapshot(&timeline);
    assert!(!timeline.holds_in(&reads[0], snapshot));
}

#[test]
fn the_snapshot_shows_what_memory_has_answered_when_that_is_proven_not_to_have_changed() {
    let timeline = live();
    let read = early(&timeline, orders());
    let snapshot = snapshot(&timeline);
    assert!(!timeline.holds_in(&read, snapshot), "unproven");
    prove_end(&timeline);
    assert!(timeline.holds_in(&read, snapshot));
    commit(&timeline, &[lines()], 200);
    assert!(timeline.holds_in(&read, snapshot));
    commit(&timeline, &[orders()], 300);
    assert!(!timeline.holds_in(&read, snapshot));
}

/// What a write does that is in no log may be in the snapshot.
#[test]
fn what_is_fenced_when_the_server_opens_the_transaction_must_be_asked_for_again() {
    let timeline = live();
    let read = early(&timeline, orders());
    let fence = timeline.raise(FenceScope::Tables(vec![orders()]));
    let snapshot = proven_snapshot(&timeline);
    assert!(!timeline.holds_in(&read, snapshot));
    timeline.forget();
    fence.answered();
    timeline.take_answered().lower();
    assert!(!timeline.holds_in(&read, snapshot));
}
