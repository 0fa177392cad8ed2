//! A `TIME` within JSON, which MySQL before 8.0.31 completes with today's date where it converts it
//! to a date.

use remora_sql::{Dialect, FUNCTIONS, Natives, analyse};
use remora_testkit::client::Client;
use remora_testkit::servers::Kind;

use remora_behaviour::front::Front;

use crate::session::direct_bytes;

const DOCS: [&str; 3] = [
    "CREATE TABLE docs (id INT PRIMARY KEY, day DATE, doc JSON)",
    "INSERT INTO docs VALUES (1, '2020-02-02', JSON_OBJECT('t', CAST('10:00:00' AS TIME)))",
    "CREATE VIEW extracts AS SELECT id, IF(id = 1, JSON_EXTRACT(doc, '$.t'), 'x') AS t FROM docs",
];

/// What to do with a value, written as `?`, besides functions with a list of arguments.
const FURTHER_USES: [&str; 16] = [
    "CAST(? AS DATE)",
    "CAST(? AS DATETIME)",
    "CAST(? AS CHAR)",
    "CONVERT(?, DATE)",
    "EXTRACT(YEAR FROM ?)",
    "EXTRACT(HOUR FROM ?)",
    "? + INTERVAL 1 DAY",
    "INTERVAL 1 DAY + ?",
    "DATE_ADD(?, INTERVAL 1 DAY)",
    "ADDDATE(day, INTERVAL ? HOUR)",
    "TIMESTAMPDIFF(DAY, ?, day)",
    "TIMESTAMPADD(DAY, 1, ?)",
    "? BETWEEN day AND day",
    "day IN (day, ?)",
    "CASE ? WHEN day THEN 1 END",
    "(SELECT MAX(day) FROM docs WHERE day > ?)",
];

fn leaves_times_alone() -> bool {
    let kind = Kind::from_environment().unwrap();
    kind.skips(
        kind != Kind::MySql57,
        "only MySQL 5.7 completes a TIME within JSON",
    )
}

#[test]
fn a_time_within_json_is_shown_from_memory_but_never_made_a_date() {
    if leaves_times_alone() {
        return;
    }
    let front = Front::new("json_times", &DOCS[..2]);
    front.direct().query(DOCS[2]).unwrap();
    let mut guest = front.guest();
    for sql in [
        "SELECT doc FROM docs",
        "SELECT JSON_EXTRACT(doc, '$.t') FROM docs WHERE doc->'$.t' > 5",
        "SELECT CAST(doc->'$.t' AS CHAR) FROM docs",
        "SELECT YEAR(day) FROM docs",
        "SELECT doc, YEAR(day) FROM docs",
    ] {
        guest.becomes_hit(sql, &direct_bytes(&front, sql));
    }
    for sql in [
        "SELECT DATE(JSON_EXTRACT(doc, '$.t')) FROM docs",
        "SELECT DATE(COALESCE(doc->'$.t', 'x')) FROM docs",
        "SELECT id FROM docs WHERE CAST(doc->'$.t' AS DATETIME) > day",
        "SELECT id FROM docs WHERE day < doc->'$.t' + INTERVAL 1 DAY",
        "SELECT DATE(t) FROM (SELECT doc->'$.t' AS t FROM docs) AS x",
        "SELECT DATE(t) FROM extracts",
        "SELECT id FROM extracts",
    ] {
        guest.always_passes(sql, "table_json_with_times");
    }
}

/// Each known function is called under two clocks.
#[test]
fn what_the_clock_changes_in_a_time_within_json_counts_as_making_dates() {
    if leaves_times_alone() {
        return;
    }
    let front = Front::new("json_clocks", &DOCS[..2]);
    let dialect = Dialect {
        natives: Natives::MySql57,
        ..Dialect::default()
    };
    let lists = ["(?)", "(?, 1)", "(1, ?)", "(?, day)", "(day, ?)"];
    let calls = FUNCTIONS.iter().flat_map(|function| {
        let calls = lists.iter();
        calls.map(|list| format!("{}{list}", function.name))
    });
    let uses = calls.chain(FURTHER_USES.map(str::to_owned));
    let mut direct = front.direct();
    let mut changed = 0;
    for text in uses {
        let sql = format!("SELECT {} FROM docs", text.replace('?', "doc->'$.t'"));
        let Ok(select) = analyse(sql.as_bytes(), dialect).cacheable else {
            continue;
        };
        if answer_at(&mut direct, &sql, 1_700_000_000)
            != answer_at(&mut direct, &sql, 1_800_000_000)
        {
            assert!(select.reads.makes_dates, "{sql}");
            changed += 1;
        }
    }
    assert!(changed > 30, "{changed}");
}

/// The answer's bytes; `None` if the server refuses the call.
fn answer_at(client: &mut Client, sql: &str, clock: u64) -> Option<Vec<u8>> {
    client.query(&format!("SET timestamp = {clock}")).unwrap();
    client.query_bytes(sql).ok().map(<[u8]>::to_vec)
}
