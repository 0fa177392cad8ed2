//! What the timeline promises, one rule at a time. `model.rs` has them all at once.
//!
//! Servers: none
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use remora_cache::{
    AsOf, BrokenRules, Definitions, FenceScope, InvalidationReason, Position, Tag, Timeline,
    TimelineLimits, Unservable,
};

const LIMITS: TimelineLimits = TimelineLimits {
    tag_slots: 1024,
    fence_slots: 64,
    lag_ms_max: 10,
};

fn at(offset: u64) -> Position {
    Position::new(1, offset).unwrap()
}

fn live() -> Arc<Timeline> {
    let timeline = Arc::new(Timeline::new(LIMITS, BrokenRules::default()));
    timeline.restart(at(100));
    assert!(timeline.prove(timeline.epoch(), 1000));
    timeline
}

fn orders() -> [Tag; 1] {
    [Tag::table("shop", "orders")]
}

fn check(timeline: &Timeline, as_of: AsOf) -> Result<(), Unservable> {
    timeline.check(as_of, &orders(), 1000)
}

#[test]
fn nothing_is_served_or_filled_before_the_first_proof() {
    let timeline = Arc::new(Timeline::new(LIMITS, BrokenRules::default()));
    assert_eq!(timeline.as_of(), None);
    let early = timeline.epoch();
    timeline.restart(at(100));
    assert_eq!(timeline.as_of(), None);
    assert!(
        !timeline.prove(early, 1),
        "a question from before the restart proves nothing"
    );
    assert_eq!(timeline.as_of(), None);
    assert!(timeline.prove(timeline.epoch(), 2));
    assert_eq!(timeline.as_of().map(AsOf::position), Some(at(100)));
}

#[test]
fn a_change_above_the_watermark_of_a_fill_outdates_it_whenever_its_event_arrives() {
    let timeline = live();
    timeline.touch(orders()[0], at(200));
    timeline.set_applied(at(200));
    // The event is here, the row may not be visible yet.
    let as_of = timeline.as_of().unwrap();
    assert!(timeline.needs_fresher_watermark(&orders()));
    assert_eq!(check(&timeline, as_of), Err(Unservable::Changed(0)));
    assert_eq!(
        timeline.outdated(as_of, orders().into_iter()),
        Some(InvalidationReason::Changed)
    );
    timeline.advance_visible(timeline.epoch(), at(200));
    assert!(!timeline.needs_fresher_watermark(&orders()));
    assert_eq!(check(&timeline, timeline.as_of().unwrap()), Ok(()));
}

#[test]
fn a_change_of_everything_outdates_every_result() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    timeline.touch_everything(at(200));
    assert_eq!(check(&timeline, as_of), Err(Unservable::Everything));
    assert!(timeline.needs_fresher_watermark(&[]));
    assert_eq!(
        timeline.outdated(as_of, [].into_iter()),
        Some(InvalidationReason::Everything)
    );
}

#[test]
fn a_result_is_served_no_longer_than_the_lag_after_the_last_proof() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    assert_eq!(timeline.check(as_of, &orders(), 1010), Ok(()));
    assert_eq!(
        timeline.check(as_of, &orders(), 1011),
        Err(Unservable::Behind)
    );
    timeline.prove(timeline.epoch(), 1005);
    assert_eq!(timeline.check(as_of, &orders(), 1015), Ok(()));
    timeline.prove(timeline.epoch(), 1003);
    assert_eq!(
        timeline.check(as_of, &orders(), 1015),
        Ok(()),
        "an older proof takes nothing back"
    );
}

#[test]
fn a_suspended_follower_serves_nothing_and_forgets_nothing() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    timeline.suspend();
    assert_eq!(check(&timeline, as_of), Err(Unservable::NotLive));
    assert_eq!(timeline.as_of(), None);
    assert_eq!(timeline.outdated(as_of, orders().into_iter()), None);
    timeline.prove(timeline.epoch(), 1001);
    assert_eq!(
        check(&timeline, as_of),
        Err(Unservable::NotLive),
        "a proof doesn't resume"
    );
    timeline.resume();
    assert_eq!(check(&timeline, as_of), Ok(()));
}

#[test]
fn a_restart_forgets_everything_and_asks_for_a_new_proof() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    timeline.touch(orders()[0], at(200));
    let before = timeline.epoch();
    timeline.restart(at(50));
    assert_eq!(check(&timeline, as_of), Err(Unservable::NotLive));
    timeline.resume();
    assert_eq!(check(&timeline, as_of), Err(Unservable::NotLive));
    timeline.advance_visible(before, at(900));
    assert_eq!(
        timeline.visible(),
        at(50),
        "an answer of before the restart is not believed"
    );
    timeline.prove(timeline.epoch(), 1000);
    assert_eq!(check(&timeline, as_of), Err(Unservable::Forgotten));
    let as_of = timeline.as_of().unwrap();
    assert_eq!(
        check(&timeline, as_of),
        Ok(()),
        "changes of before the restart are forgotten too"
    );
}

#[test]
fn a_change_that_the_log_does_not_show_forgets_results_stored_and_in_flight() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    let epoch = timeline.epoch();
    timeline.forget();
    assert_eq!(check(&timeline, as_of), Err(Unservable::Forgotten));
    assert_eq!(
        timeline.outdated(as_of, orders().into_iter()),
        Some(InvalidationReason::Forgotten)
    );
    assert_eq!(check(&timeline, timeline.as_of().unwrap()), Ok(()));
    assert!(
        timeline.prove(epoch, 1001),
        "a question asked before is still answered"
    );
    timeline.suspend();
    timeline.forget();
    assert_eq!(timeline.as_of(), None, "forgetting doesn't resume");
}

#[test]
fn a_fence_stands_until_a_batch_taken_after_its_answer_is_lowered() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    let fence = timeline.raise(FenceScope::Tables(orders().to_vec()));
    assert_eq!(check(&timeline, as_of), Err(Unservable::Fenced));
    assert!(!timeline.has_answered());
    let too_early = timeline.take_answered();
    assert!(too_early.is_empty());
    fence.answered();
    assert!(timeline.has_answered());
    too_early.lower();
    assert_eq!(check(&timeline, as_of), Err(Unservable::Fenced));
    drop(timeline.take_answered());
    assert!(timeline.has_answered(), "a dropped batch is queued again");
    assert_eq!(check(&timeline, as_of), Err(Unservable::Fenced));
    timeline.take_answered().lower();
    assert_eq!(check(&timeline, as_of), Ok(()));
    assert!(!timeline.has_answered());
}

#[test]
fn a_dropped_fence_is_queued_and_not_lowered() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    drop(timeline.raise(FenceScope::Everything));
    drop(timeline.raise(FenceScope::Everything));
    assert_eq!(check(&timeline, as_of), Err(Unservable::Fenced));
    timeline.take_answered().lower();
    assert_eq!(check(&timeline, as_of), Ok(()));
}

#[test]
fn definitions_are_in_doubt_as_long_as_the_fence_of_their_change_stands() {
    let timeline = live();
    let table = || FenceScope::Tables(orders().to_vec());
    assert_eq!(timeline.definitions(), Definitions::Kept);
    timeline.raise(FenceScope::Everything).answered();
    assert_eq!(timeline.definitions(), Definitions::Kept);
    let perhaps = timeline.raise_with(table(), Definitions::Perhaps);
    assert_eq!(timeline.definitions(), Definitions::Perhaps);
    let first = timeline.raise_with(table(), Definitions::Changed);
    let second = timeline.raise_with(table(), Definitions::Changed);
    assert_eq!(timeline.definitions(), Definitions::Changed);
    first.answered();
    drop(timeline.take_answered());
    assert!(timeline.has_answered(), "a dropped batch is queued again");
    let batch = timeline.take_answered();
    assert!(!batch.is_empty());
    batch.lower();
    assert_eq!(timeline.definitions(), Definitions::Changed, "the second");
    second.answered();
    perhaps.answered();
    assert_eq!(timeline.definitions(), Definitions::Changed, "not lowered");
    timeline.take_answered().lower();
    assert_eq!(timeline.definitions(), Definitions::Kept);
    for _ in 0..3 {
        drop(timeline.raise_with(table(), Definitions::Changed));
    }
    timeline.take_answered().lower();
    assert_eq!(timeline.definitions(), Definitions::Kept);
}

#[test]
fn many_answered_fences_wait_in_a_bounded_queue_and_all_are_lowered() {
    let timeline = live();
    let as_of = timeline.as_of().unwrap();
    let tables: Vec<Tag> = (0..1000)
        .map(|number| Tag::table("shop", &format!("t{number}")))
        .collect();
    for tag in &tables {
        timeline
            .raise(FenceScope::Tables(vec![*tag, *tag, orders()[0]]))
            .answered();
    }
    let in_flight = timeline.raise(FenceScope::Tables(orders().to_vec()));
    let first = timeline.take_answered();
    timeline
        .raise(FenceScope::Tables(orders().to_vec()))
        .answered();
    first.lower();
    assert_eq!(check(&timeline, as_of), Err(Unservable::Fenced));
    timeline.take_answered().lower();
    assert_eq!(
        check(&timeline, as_of),
        Err(Unservable::Fenced),
        "one is still in flight"
    );
    in_flight.answered();
    timeline.take_answered().lower();
    for tag in tables {
        assert_eq!(timeline.check(as_of, &[tag], 1000), Ok(()));
    }
}

#[test]
fn every_reason_has_its_own_label_and_a_sentence() {
    let mut labels: Vec<&str> = Unservable::ALL
        .iter()
        .map(|reason| reason.as_str())
        .collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), Unservable::ALL.len());
    assert!(
        Unservable::ALL
            .iter()
            .all(|reason| reason.describe().ends_with('.'))
    );
}

#[test]
fn only_what_may_be_served_outlives_the_process() {
    let timeline = live();
    let (table, other) = (orders(), [Tag::table("shop", "lines")]);
    let outlives = |as_of, tags: &[Tag; 1]| timeline.outlives(as_of, tags.iter().copied());
    let early = timeline.as_of().unwrap();
    assert!(outlives(early, &table));
    let fence = timeline.raise(FenceScope::Tables(table.into()));
    assert!(timeline.has_fences());
    assert!(!outlives(early, &table) && outlives(early, &other));
    fence.answered();
    assert!(!outlives(early, &table), "nobody has lowered it");
    timeline.take_answered().lower();
    assert!(!timeline.has_fences());
    assert!(outlives(early, &table));
    timeline.touch(table[0], at(200));
    timeline.set_applied(at(200));
    assert!(!outlives(early, &table) && outlives(early, &other));
    timeline.advance_visible(timeline.epoch(), at(200));
    let late = timeline.as_of().unwrap();
    assert!(outlives(late, &table));
    timeline.forget();
    assert!(!outlives(late, &table) && !outlives(early, &other));
}

#[test]
fn results_are_taken_over_once_by_a_process_that_has_forgotten_nothing() {
    let new = || Arc::new(Timeline::new(LIMITS, BrokenRules::default()));
    let timeline = new();
    let results = timeline.resume_saved(at(300)).unwrap();
    let as_of = results.as_of(at(200)).unwrap();
    assert_eq!(results.as_of(at(301)), None, "behind the end");
    assert!(check(&timeline, as_of).is_err(), "not before a proof");
    assert!(timeline.prove(timeline.epoch(), 1000));
    assert_eq!(check(&timeline, as_of), Ok(()));
    timeline.touch(orders()[0], at(400));
    assert!(check(&timeline, as_of).is_err());
    assert!(timeline.resume_saved(at(300)).is_none(), "once");

    let forgetful = new();
    forgetful.forget();
    assert!(forgetful.resume_saved(at(300)).is_none());
    let begun = live();
    assert!(begun.resume_saved(at(300)).is_none());

    // What is forgotten afterwards, or with the log, is among them.
    for forget in [Timeline::forget, |timeline: &Timeline| {
        timeline.restart(at(500));
    }] {
        let timeline = new();
        let results = timeline.resume_saved(at(300)).unwrap();
        forget(&timeline);
        timeline.prove(timeline.epoch(), 1000);
        let as_of = results.as_of(at(200)).unwrap();
        assert_eq!(check(&timeline, as_of), Err(Unservable::Forgotten));
    }
}
