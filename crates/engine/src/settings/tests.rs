//! What is asked, and which answers are the same settings.

use remora_wire::Capabilities;
use remora_wire::rows::Row;

use super::*;

fn query(number: u64, name: &str) -> SettingsQuery {
    let features = ServerFeatures {
        has_roles: false,
        has_uuid: false,
    };
    let variables = ["sql_mode".to_owned()];
    let query = SettingsQuery::new(features, variables, &["wait_timeout".to_owned()]);
    query.with_mark(FollowedMark {
        number,
        name: name.to_owned(),
        holder: "17".to_owned(),
    })
}

fn answer(query: &SettingsQuery, holder: Option<&str>) -> Row {
    let mut row = vec![Some(b"1".to_vec()); query.fields()];
    SettingsQuery::remove_collation_probe(&mut row);
    *row.last_mut().expect("it has fields") = holder.map(|holder| holder.as_bytes().to_vec());
    row
}

#[test]
fn the_mark_is_asked_for_by_a_name_that_no_character_set_converts() {
    let sql = query(1, "a 1").sql().to_owned();
    let end = ", CAST(IS_USED_LOCK(x'612031') AS BINARY), '' LIMIT 1";
    assert!(sql.ends_with(end), "{sql}");
}

#[test]
fn a_session_is_on_the_followed_server_only_if_it_sees_who_holds_the_mark() {
    let query = query(1, "a");
    for (holder, is_seen) in [
        (Some("17"), true),
        (Some("18"), false),
        (Some(""), false),
        (None, false),
    ] {
        let mut row = answer(&query, holder);
        assert_eq!(query.take_mark(&mut row), is_seen, "{holder:?}");
        assert_eq!(SettingsQuery::take_found_rows(&mut row), Some(1));
        assert_eq!(row.len(), query.fields() - 3);
    }
}

#[test]
fn neither_a_new_mark_nor_one_that_is_not_seen_makes_a_new_fingerprint() {
    let known = fingerprints(10);
    let flavour = flavour(0);
    let id = |number, name, holder| {
        let query = query(number, name);
        let mut row = answer(&query, holder);
        query.take_mark(&mut row);
        SettingsQuery::take_found_rows(&mut row);
        assert_eq!(query.take_patience_ms(&mut row), Some(1_000));
        let fingerprint = known.intern(&query, &row, flavour);
        fingerprint.expect("there is room").id
    };
    let first = id(1, "a", Some("17"));
    assert_eq!(id(2, "b", Some("17")), first);
    assert_eq!(
        id(2, "b", None),
        first,
        "it stays that of what was prepared"
    );
}

#[test]
fn questions_for_the_same_settings_are_alike_whatever_the_mark() {
    let (one, other) = (query(1, "a"), query(2, "b"));
    assert!(one.is_like(&other));
    assert_ne!(one.sql(), other.sql());
    assert_eq!((one.mark_number(), other.mark_number()), (1, 2));
}

fn flavour(login_epoch: u64) -> Flavour {
    Flavour {
        capabilities: Capabilities(0),
        login_epoch,
        schema_epoch: 0,
        role_epoch: 0,
        client: None,
    }
}

fn fingerprints(count_max: usize) -> Fingerprints {
    Fingerprints::new(FingerprintLimits {
        count_max,
        bytes_max: 1 << 20,
    })
}

/// A client chooses some of its settings, and so their length.
#[test]
fn settings_take_no_more_memory_than_they_may() {
    let known = fingerprints(1_000_000);
    let query = query(1, "a");
    let flavour = flavour(0);
    let intern = |number: usize, length: usize| {
        let mut row = answer(&query, None);
        row[1] = Some(format!("{number:0length$}").into_bytes());
        known.intern(&query, &row, flavour)
    };
    // A share of the limit is 1 KiB here.
    assert_eq!(intern(0, 1_024).err(), Some(TooManyFingerprints));
    let mut in_use = Vec::new();
    while let Ok(fingerprint) = intern(in_use.len(), 700) {
        in_use.push(fingerprint);
    }
    assert!((1_024..1_498).contains(&in_use.len()), "{}", in_use.len());
    in_use.truncate(10);
    let next = intern(1_000_000, 700).expect("the others aren't in use");
    assert_eq!(known.len(), 11);
    drop(next);
    // What isn't in use is forgotten before the limit is passed, not after.
    for number in 0..10_000 {
        assert!(intern(number, 700).is_ok(), "{number}");
        assert!(known.len() < 1_498, "{number}");
    }
}

#[test]
fn settings_are_found_by_their_number_until_they_are_forgotten() {
    let known = fingerprints(1);
    let query = query(1, "a");
    let intern = |login_epoch| {
        let flavour = flavour(login_epoch);
        known.intern(&query, &answer(&query, Some("17")), flavour)
    };
    let first = intern(0).expect("there is room");
    assert_eq!(known.get(first.id).map(|found| found.id), Some(first.id));
    assert_eq!(intern(1).err(), Some(TooManyFingerprints));
    let id = first.id;
    drop(first);
    // They are remembered until the room is needed.
    assert!(known.get(id).is_some());
    let second = intern(1).expect("the first isn't in use");
    assert!(known.get(id).is_none() && known.get(second.id).is_some());
}

/// What another process interns again is told apart in the same way.
#[test]
fn a_saved_fingerprint_is_the_same_again() {
    let query = query(1, "a");
    let mut row = answer(&query, None);
    row[0] = None;
    row[1] = Some(Vec::new());
    let flavour = Flavour {
        capabilities: Capabilities(5),
        login_epoch: 2,
        schema_epoch: 2,
        role_epoch: 2,
        client: Some([127, 0, 0, 1].into()),
    };
    let known = fingerprints(10);
    let fingerprint = known.intern(&query, &row, flavour).expect("there is room");
    let saved = known.saved();
    let expected = SavedFingerprint {
        id: fingerprint.id,
        flavour,
        answer: row,
    };
    assert_eq!(saved, std::slice::from_ref(&expected));
    let again = known.intern(&query, &saved[0].answer, saved[0].flavour);
    assert_eq!(again.expect("there is room").id, expected.id);
}
