//! GTIDs and sets of them: text, events, and the rules of sets.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use remora_binlog::gtid::{Gtid, GtidError, GtidSet};

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const B: &str = "4350f323-7565-4e59-8763-4b1b83a0ce0e";

fn set(text: &str) -> GtidSet {
    text.parse().unwrap()
}

fn gtid(text: &str) -> Gtid {
    text.parse().unwrap()
}

#[test]
fn the_text_of_gtid_executed_is_read_with_line_breaks_and_tags() {
    let text = format!("{A}:1-3:5:7-9,\n{B}:1-2:stamp:4:\u{20}Other:1-5");
    let read = set(&text);
    assert_eq!(
        read.to_string(),
        format!("{A}:1-3:5:7-9,{B}:1-2:other:1-5:stamp:4")
    );
    assert_eq!(read.interval_count(), 6);
    assert!(read.contains(&gtid(&format!("{B}:STAMP:4"))));
    assert!(!read.contains(&gtid(&format!("{B}:4"))));
    assert!(!read.contains(&gtid(&format!("{A}:stamp:4"))));
    assert!(!read.contains(&gtid(&format!("{A}:4"))));
    assert!(set("").is_empty() && set("\n").is_empty());
}

#[test]
fn intervals_that_touch_become_one_whatever_their_order() {
    let read = set(&format!("{A}:5-6:1-2,{A}:3,{A}:4:9"));
    assert_eq!(read.to_string(), format!("{A}:1-6:9"));
}

#[test]
fn what_is_no_set_is_refused() {
    let refused = [
        "x",
        A,
        &format!("{A}:"),
        &format!("{A}:0"),
        &format!("{A}:3-2"),
        &format!("{A}:1-"),
        &format!("{A}:+1"),
        &format!("{A}:-1"),
        &format!("{A}:9223372036854775807"),
        &format!("{A}:99999999999999999999"),
        &format!("{A}:tag"),
        &format!("{A}:1:tag:other:2"),
        &format!("{A}:1x"),
        &format!("{A}:{}:1", "t".repeat(33)),
        &format!("{A}1:1"),
        &format!("{}:1", A.replace('e', "g")),
        &format!("{}:1", A.replace('-', "e")),
        "3e11fa47-71ca-11e1-9e33-c80aa942956\u{e4}:1",
    ];
    for text in refused {
        assert!(text.parse::<GtidSet>().is_err(), "{text}");
    }
    let several = format!("{A}:1-2");
    assert_eq!(several.parse::<Gtid>(), Err(GtidError::NotOne(several)));
    assert!(format!("{A}:1,{B}:1").parse::<Gtid>().is_err());
    assert!("".parse::<Gtid>().is_err());
}

#[test]
fn a_gtid_is_written_as_it_is_read() {
    for text in [format!("{A}:7"), format!("{B}:tag_1:9223372036854775806")] {
        assert_eq!(gtid(&text).to_string(), text);
    }
}

/// A few sources, tags and numbers, close together so that they touch and overlap.
fn any_gtid() -> impl Strategy<Value = Gtid> {
    (0_u8..2, prop_oneof!["", "t", "u"], 1_u64..40)
        .prop_map(|(source, tag, number)| Gtid::new([source; 16], &tag, number).unwrap())
}

fn any_gtids() -> impl Strategy<Value = BTreeSet<Gtid>> {
    proptest::collection::btree_set(any_gtid(), 0..60)
}

fn set_of(gtids: &BTreeSet<Gtid>) -> GtidSet {
    let mut set = GtidSet::new();
    for gtid in gtids {
        set.insert(gtid.clone());
    }
    set
}

proptest! {
    #[test]
    fn a_set_holds_what_was_inserted_in_any_order_and_nothing_else(
        gtids in any_gtids(),
        order in any::<prop::sample::Index>(),
        probe in any_gtid(),
    ) {
        let set = set_of(&gtids);
        prop_assert_eq!(set.contains(&probe), gtids.contains(&probe));
        let mut turned: Vec<_> = gtids.iter().cloned().collect();
        if !turned.is_empty() {
            let by = order.index(turned.len());
            turned.rotate_left(by);
            turned[..].reverse();
        }
        let mut other = GtidSet::new();
        for gtid in turned {
            other.insert(gtid);
        }
        prop_assert_eq!(&other, &set);
    }

    #[test]
    fn a_set_is_kept_as_few_intervals_as_can_be(gtids in any_gtids()) {
        let begins = gtids.iter().filter(|gtid| {
            Gtid::new(gtid.source, &gtid.tag, gtid.number - 1)
                .is_none_or(|before| !gtids.contains(&before))
        });
        prop_assert_eq!(set_of(&gtids).interval_count(), begins.count());
    }

    #[test]
    fn a_subset_is_one_by_its_members(one in any_gtids(), more in any_gtids()) {
        let both = one.union(&more).cloned().collect();
        prop_assert!(set_of(&one).is_subset_of(&set_of(&both)));
        prop_assert_eq!(set_of(&one).is_subset_of(&set_of(&more)), one.is_subset(&more));
        let mut merged = set_of(&one);
        merged.merge(&set_of(&more));
        prop_assert_eq!(merged, set_of(&both));
    }

    #[test]
    fn a_set_is_written_as_it_is_read(gtids in any_gtids()) {
        let set = set_of(&gtids);
        prop_assert_eq!(set.to_string().parse::<GtidSet>().unwrap(), set);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-f:,\\- t\\PC]{0,120}") {
        let _ = text.parse::<GtidSet>();
        let _ = format!("{A}:{text}").parse::<GtidSet>();
    }
}
