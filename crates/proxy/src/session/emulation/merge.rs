//! Rows of Remora's own in an answer of the server.

use remora_sql::NameFilter;
use remora_wire::Capabilities;
use remora_wire::result_set::{Parts, packets, put_text_row};
use remora_wire::rows::{column_name, parse_text_row};

/// The names of a listing's columns, as every server writes them.
const COLUMNS: [&str; 2] = ["Variable_name", "Value"];

/// The answer to a `SHOW STATUS` or `SHOW VARIABLES` with these names' rows: in place of the
/// server's own, or where they would stand. `None` if the answer isn't what such a statement is
/// answered by.
pub(super) fn merge(
    answer: &[u8],
    capabilities: Capabilities,
    filter: &NameFilter,
    listed: &[(&'static str, String)],
) -> Option<Vec<u8>> {
    let parts = Parts::of(answer, capabilities).ok()?;
    if parts.columns != COLUMNS.len() {
        return None;
    }
    // Where names were converted to a character set that isn't ASCII, these are unreadable too.
    let definitions = &parts.head[1..=parts.definitions];
    for (definition, expected) in definitions.iter().zip(COLUMNS) {
        if column_name(definition).ok()? != expected {
            return None;
        }
    }
    let mut rows = Vec::with_capacity(parts.rows.len() + listed.len());
    for payload in &parts.rows {
        let name = parse_text_row(payload, COLUMNS.len())
            .ok()?
            .swap_remove(0)?;
        if !name.is_ascii() || name.contains(&0) {
            return None;
        }
        rows.push((name.to_ascii_lowercase(), payload.to_vec()));
    }
    for (name, value) in listed.iter().filter(|(name, _)| filter.takes(name)) {
        put(&mut rows, name, value);
    }
    let rows = rows.iter().map(|(_, payload)| &payload[..]);
    let head = parts.head.iter().copied();
    Some(packets(head.chain(rows).chain([parts.end])))
}

fn put(rows: &mut Vec<(Vec<u8>, Vec<u8>)>, name: &str, value: &str) {
    let mut payload = Vec::new();
    put_text_row(
        &mut payload,
        [Some(name.as_bytes()), Some(value.as_bytes())],
    );
    let key = name.as_bytes().to_ascii_lowercase();
    if let Some(row) = rows.iter_mut().find(|(other, _)| *other == key) {
        row.1 = payload;
        return;
    }
    // Behind the last that comes before it: servers list their names in order, or nearly so.
    let at = rows.iter().rposition(|(other, _)| *other < key);
    rows.insert(at.map_or(0, |at| at + 1), (key, payload));
}

#[cfg(test)]
mod tests {
    use super::*;
    use remora_sql::{NameTest, Pattern};
    use remora_wire::StatusFlags;
    use remora_wire::result_set::{Column, ResultSet};

    const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41.with(Capabilities::DEPRECATE_EOF);

    fn answer(columns: [&str; 2], rows: &[(&str, &str)]) -> Vec<u8> {
        let columns = columns.map(|name| Column::text(name, 64));
        let mut set = ResultSet::begin(CAPABILITIES, StatusFlags::AUTOCOMMIT, &columns);
        for (name, value) in rows {
            set.text_row(&[name, value]);
        }
        set.finish()
    }

    fn listed() -> Vec<(&'static str, String)> {
        vec![
            ("Qcache_hits", "7".to_owned()),
            ("Qcache_inserts", "8".to_owned()),
        ]
    }

    #[test]
    fn rows_stand_in_place_of_the_servers_or_where_they_would() {
        let server = answer(
            COLUMNS,
            &[("Open_files", "1"), ("Qcache_hits", "0"), ("Queries", "3")],
        );
        let expected = answer(
            COLUMNS,
            &[
                ("Open_files", "1"),
                ("Qcache_hits", "7"),
                ("Qcache_inserts", "8"),
                ("Queries", "3"),
            ],
        );
        assert_eq!(
            merge(&server, CAPABILITIES, &NameFilter::All, &listed()),
            Some(expected)
        );
        let none = answer(COLUMNS, &[]);
        let only = NameFilter::Any(vec![NameTest::Like(Pattern::new("%hits"))]);
        let expected = answer(COLUMNS, &[("Qcache_hits", "7")]);
        assert_eq!(merge(&none, CAPABILITIES, &only, &listed()), Some(expected));
    }

    #[test]
    fn another_answer_is_left_alone() {
        let other = answer(["Name", "Value"], &[("a", "1")]);
        assert_eq!(
            merge(&other, CAPABILITIES, &NameFilter::All, &listed()),
            None
        );
        let wide = answer(COLUMNS, &[("\0a", "1")]);
        assert_eq!(
            merge(&wide, CAPABILITIES, &NameFilter::All, &listed()),
            None
        );
        let error = b"\x09\0\0\x01\xff\x48\x04#HY000".to_vec();
        assert_eq!(
            merge(&error, CAPABILITIES, &NameFilter::All, &listed()),
            None
        );
    }
}
