//! Registered shapes: from which commit on they are used, and until when.
//!
//! Servers: none
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use remora_cache::{
    BrokenRules, ColumnSet, Position, Shape, ShapeColumn, Shapes, ShapesLimits, TableTags,
    Timeline, TimelineLimits, TooCoarse,
};

const LIMITS: ShapesLimits = ShapesLimits {
    table_shapes_max: 4,
    tables_max: 2,
};

fn at(offset: u64) -> Position {
    Position::new(1, offset).unwrap()
}

fn table() -> TableTags {
    TableTags::new("shop", "orders")
}

fn by(ordinal: u16) -> Shape<u8> {
    let column = ShapeColumn { ordinal, codec: 0 };
    Shape::equal(table(), &[column], ColumnSet::EMPTY)
}

fn shapes(broken: BrokenRules) -> (Arc<Timeline>, Shapes<u8>) {
    let limits = TimelineLimits {
        tag_slots: 64,
        fence_slots: 64,
        lag_ms_max: 1_000,
    };
    let timeline = Arc::new(Timeline::new(limits, broken));
    timeline.restart(at(100));
    timeline.prove(timeline.epoch(), 0);
    (Arc::clone(&timeline), Shapes::new(timeline, LIMITS))
}

#[test]
fn a_shape_is_used_from_the_commit_on_that_began_before_it_was_registered() {
    let (timeline, shapes) = shapes(BrokenRules::default());
    let as_of = timeline.as_of().unwrap();
    assert!(shapes.find(table(), &by(0), as_of).is_ok());
    timeline.begin_commit(at(200));
    assert_eq!(
        shapes.find(table(), &by(1), as_of),
        Err(TooCoarse::TooYoung)
    );
    assert!(shapes.find(table(), &by(0), as_of).is_ok());
    timeline.set_applied(at(200));
    timeline.advance_visible(timeline.epoch(), at(200));
    let as_of = timeline.as_of().unwrap();
    assert!(shapes.find(table(), &by(1), as_of).is_ok());
}

#[test]
fn positions_of_an_earlier_log_say_nothing() {
    let (timeline, shapes) = shapes(BrokenRules::default());
    let old = timeline.as_of().unwrap();
    assert!(shapes.find(table(), &by(0), old).is_ok());
    timeline.restart(at(50));
    timeline.prove(timeline.epoch(), 0);
    let new = timeline.as_of().unwrap();
    assert!(shapes.find(table(), &by(0), new).is_ok());
    assert_eq!(shapes.find(table(), &by(0), old), Err(TooCoarse::TooYoung));
}

#[test]
fn the_follower_sees_each_change_of_the_list() {
    let (timeline, shapes) = shapes(BrokenRules::default());
    let as_of = timeline.as_of().unwrap();
    let none = shapes.snapshot(table());
    let _ = shapes.find(table(), &by(0), as_of);
    let one = shapes.snapshot(table());
    assert_ne!(one.version(), none.version());
    assert_eq!(one.shapes().len(), 1);
    let _ = shapes.find(table(), &by(0), as_of);
    assert_eq!(shapes.snapshot(table()).version(), one.version());
    shapes.retire(table(), at(200));
    assert_ne!(shapes.snapshot(table()).version(), one.version());
    assert!(shapes.snapshot(table()).shapes().is_empty());
}

#[test]
fn beyond_half_of_the_limit_shapes_read_everything_and_beyond_it_there_are_none() {
    let (timeline, shapes) = shapes(BrokenRules::default());
    let as_of = timeline.as_of().unwrap();
    let find = |ordinal| shapes.find(table(), &by(ordinal), as_of);
    for ordinal in 0..2 {
        assert_eq!(*find(ordinal).unwrap(), by(ordinal));
    }
    for ordinal in 2..4 {
        assert_eq!(*find(ordinal).unwrap(), by(ordinal).reading_all(table()));
    }
    assert_eq!(find(4), Err(TooCoarse::TooManyShapes));
    // One of existing rows becomes one to which insertions matter, too.
    let existing = Shape::<u8>::of_existing(table(), ColumnSet::EMPTY);
    assert!(existing.is_of_existing() && !existing.reading_all(table()).is_of_existing());
    assert_eq!(shapes.refused(), 1);
    let of = |name| shapes.find(TableTags::new("shop", name), &by(0), as_of);
    assert!(of("lines").is_ok());
    assert_eq!(of("users"), Err(TooCoarse::TooManyTables));
    assert_eq!(shapes.len(), (2, 5));
}

#[test]
fn with_that_rule_broken_a_shape_is_used_at_once() {
    let (timeline, shapes) = shapes(BrokenRules {
        shapes: true,
        ..BrokenRules::default()
    });
    let as_of = timeline.as_of().unwrap();
    timeline.begin_commit(at(200));
    assert!(shapes.find(table(), &by(1), as_of).is_ok());
}

#[test]
fn a_definition_that_is_logged_again_drops_no_shape() {
    let (timeline, shapes) = shapes(BrokenRules::default());
    timeline.begin_commit(at(200));
    shapes.retire(table(), at(200));
    timeline.set_applied(at(200));
    timeline.advance_visible(timeline.epoch(), at(200));
    let as_of = timeline.as_of().unwrap();
    assert!(shapes.find(table(), &by(0), as_of).is_ok());
    // Its touch at 200 doesn't outdate a result of 200, which the next commit's rows must still
    // find.
    shapes.retire(table(), at(200));
    shapes.retire_all(at(150));
    assert_eq!(shapes.snapshot(table()).shapes().len(), 1);
    shapes.retire_all(at(201));
    assert!(shapes.snapshot(table()).shapes().is_empty());
}

#[test]
fn foreseeing_says_what_finding_would_and_registers_nothing() {
    let (timeline, shapes) = shapes(BrokenRules::default());
    let as_of = timeline.as_of().unwrap();
    for ordinal in [0, 1, 2, 0, 3, 2, 4, 4] {
        let before = shapes.len();
        let foreseen = shapes.foresee(table(), &by(ordinal), as_of);
        assert_eq!(shapes.len(), before);
        assert_eq!(foreseen, shapes.find(table(), &by(ordinal), as_of));
    }
    let of = |name| TableTags::new("shop", name);
    assert!(shapes.find(of("lines"), &by(0), as_of).is_ok());
    assert_eq!(
        shapes.foresee(of("users"), &by(0), as_of),
        Err(TooCoarse::TooManyTables)
    );
    timeline.begin_commit(at(200));
    shapes.retire(table(), at(200));
    let _ = shapes.find(table(), &by(7), as_of);
    assert_eq!(
        shapes.foresee(table(), &by(7), as_of),
        Err(TooCoarse::TooYoung)
    );
}
