//! The query cache's SQL interface: its counters, variables and commands through Remora, compared
//! with the server's own.

use remora_cache::InvalidationReason;
use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::{Front, PATIENCE};
use remora_testkit::process::wait_for;

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
];

const COUNTERS: [&str; 8] = [
    "Qcache_free_blocks",
    "Qcache_free_memory",
    "Qcache_hits",
    "Qcache_inserts",
    "Qcache_lowmem_prunes",
    "Qcache_not_cached",
    "Qcache_queries_in_cache",
    "Qcache_total_blocks",
];

const VARIABLES: [&str; 7] = [
    "have_query_cache",
    "query_cache_limit",
    "query_cache_min_res_unit",
    "query_cache_size",
    "query_cache_strip_comments",
    "query_cache_type",
    "query_cache_wlock_invalidate",
];

/// The rows of a listing: names and values.
fn listing(client: &mut Client, sql: &str) -> Vec<(String, String)> {
    let answer = client
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(
        answer.column_names().unwrap(),
        ["Variable_name", "Value"],
        "{sql}"
    );
    let rows = answer.rows().unwrap().into_iter().map(|row| {
        let text = |field: &Option<Vec<u8>>| String::from_utf8(field.clone().unwrap()).unwrap();
        (text(&row[0]), text(&row[1]))
    });
    rows.collect()
}

fn names(rows: &[(String, String)]) -> Vec<&str> {
    rows.iter().map(|(name, _)| name.as_str()).collect()
}

fn counter(client: &mut Client, name: &str) -> u64 {
    let rows = listing(client, &format!("SHOW GLOBAL STATUS LIKE '{name}'"));
    assert_eq!(names(&rows), [name]);
    rows[0].1.parse().unwrap()
}

#[test]
fn the_counters_stand_where_the_server_has_them() {
    let front = Front::new("face_counters", &TABLE);
    for options in front.flavours() {
        let mut guest = front.guest_as(&options);
        for sql in [
            "SHOW STATUS LIKE 'Qcache%'",
            "SHOW GLOBAL STATUS LIKE 'qcache\\_%'",
            "show /*!40101 session */ status where variable_name like 'Qcache%';",
        ] {
            let rows = listing(guest.client(), sql);
            assert_eq!(names(&rows), COUNTERS, "{sql}");
            assert!(
                rows.iter().all(|(_, value)| value.parse::<u64>().is_ok()),
                "{rows:?}"
            );
        }
        let one = "SHOW STATUS WHERE Variable_name IN ('Qcache_hits', 'Uptime')";
        assert_eq!(
            names(&listing(guest.client(), one)),
            ["Qcache_hits", "Uptime"]
        );
        assert_eq!(listing(guest.client(), "SHOW STATUS LIKE 'no such'"), []);
    }
}

#[test]
fn whole_listings_are_the_servers_but_for_these_rows() {
    let front = Front::new("face_listings", &TABLE);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    for (sql, own) in [
        ("SHOW GLOBAL STATUS", &COUNTERS[..]),
        ("SHOW STATUS", &COUNTERS),
        ("SHOW GLOBAL VARIABLES", &VARIABLES),
        ("SHOW VARIABLES", &VARIABLES),
    ] {
        let through = listing(guest.client(), sql);
        let server = listing(&mut direct, sql);
        let through_names = names(&through);
        for name in own {
            assert_eq!(
                through_names.iter().filter(|one| *one == name).count(),
                1,
                "{sql} {name}"
            );
        }
        let others = |rows: &[(String, String)]| -> Vec<String> {
            let rows = rows.iter().map(|(name, _)| name.clone());
            rows.filter(|name| !own.contains(&name.as_str())).collect()
        };
        assert_eq!(others(&through), others(&server), "{sql}");
        if front.server().kind().has_query_cache() {
            // MySQL has no variable for comments.
            let server_names = names(&server);
            let known = through_names.iter().filter(|name| {
                **name != "query_cache_strip_comments" || server_names.contains(name)
            });
            assert_eq!(known.copied().collect::<Vec<_>>(), server_names, "{sql}");
        } else {
            let lower: Vec<String> = through_names
                .iter()
                .map(|name| name.to_lowercase())
                .collect();
            let first = lower
                .iter()
                .position(|name| *name == own[1].to_lowercase())
                .unwrap();
            assert!(lower[first - 1] < lower[first] && lower[first] < lower[first + own.len() - 1]);
        }
    }
}

#[test]
fn the_counters_count_what_remora_did() {
    let front = Front::new("face_counted", &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 1";
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    guest.becomes_hit(sql, &expected);
    let mut other = front.guest();
    let count = |client: &mut Client| COUNTERS.map(|name| counter(client, name));
    let before = count(other.client());
    assert!(
        before[6] >= 1 && before[3] >= 1 && before[7] == before[6] + 1,
        "{before:?}"
    );
    for _ in 0..5 {
        assert_eq!(guest.run(sql).outcome, "hit");
    }
    guest.always_passes("SELECT NOW(), a FROM t", "statement_clock_function");
    let after = count(other.client());
    assert_eq!(
        (after[2] - before[2], after[5] - before[5]),
        (5, 3),
        "{before:?} {after:?}"
    );
    let second = "SELECT b FROM t WHERE a = 2";
    let expected = front.direct().query_bytes(second).unwrap().to_vec();
    guest.becomes_hit(second, &expected);
    let last = count(other.client());
    assert!(
        last[6] > after[6] && last[1] < after[1] && last[3] > after[3],
        "{after:?} {last:?}"
    );
}

#[test]
fn the_servers_own_answers_stay_with_the_statements_switched_off() {
    let options = RemoraOptions::following().with("query_cache.statements", "false");
    let front = Front::with("face_off", options, &TABLE);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    for sql in [
        "SHOW STATUS LIKE 'Qcache%'",
        "SHOW VARIABLES LIKE '%query_cache%'",
    ] {
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        assert_eq!(guest.client().query_bytes(sql).unwrap(), expected, "{sql}");
    }
}

#[test]
fn errors_and_other_conditions_are_the_servers() {
    let front = Front::new("face_errors", &TABLE);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    for sql in [
        "SHOW STATUS LIKE",
        "SHOW STATUS WHERE Variable_name = 'Qcache_hits' AND no_such = 1",
        "SHOW VARIABLES WHERE Value = 'no such value at all'",
        "SHOW VARIABLES LIKE 'port'",
    ] {
        let expected = direct.query_bytes(sql).unwrap().to_vec();
        assert_eq!(guest.client().query_bytes(sql).unwrap(), expected, "{sql}");
    }
}

#[test]
fn an_answer_that_is_too_long_to_be_held_passes_as_it_is() {
    let options = RemoraOptions::following().with("query_cache.merged_bytes_max", "1024");
    let front = Front::with("face_long", options, &TABLE);
    let (mut guest, mut direct) = (front.guest(), front.direct());
    let through = listing(guest.client(), "SHOW GLOBAL VARIABLES");
    let server = listing(&mut direct, "SHOW GLOBAL VARIABLES");
    assert_eq!(names(&through), names(&server));
    let app = front.remora().app().unwrap();
    let limited = || {
        app.shared()
            .metrics
            .rare
            .limit(remora_engine::reason::Limit::MergedBytes)
    };
    wait_for("the limit to be counted", PATIENCE, || {
        Ok((limited() == 1).then_some(()))
    })
    .unwrap();
    assert_eq!(
        names(&listing(guest.client(), "SHOW STATUS LIKE 'Qcache%'")),
        COUNTERS
    );
}

/// The column names and first row of an answer.
fn named_values(client: &mut Client, sql: &str) -> (Vec<String>, Vec<String>) {
    let answer = client
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let names = answer.column_names().unwrap();
    let row = answer.rows().unwrap().remove(0).into_iter();
    let values = row.map(|field| String::from_utf8(field.unwrap()).unwrap());
    (names, values.collect())
}

#[test]
fn variables_are_selected_with_remoras_values_and_the_servers_names() {
    let front = Front::new("face_select", &TABLE);
    for options in front.flavours() {
        let (mut guest, mut direct) = (front.guest_as(&options), options.connect().unwrap());
        let size = listing(guest.client(), "SHOW VARIABLES LIKE 'query_cache_size'")
            .remove(0)
            .1;
        let limit = listing(guest.client(), "SHOW VARIABLES LIKE 'query_cache_limit'")
            .remove(0)
            .1;
        let version = direct.query_value("SELECT @@version").unwrap().unwrap();
        for (sql, expected) in [
            ("SELECT @@query_cache_size", vec![&size[..]]),
            (
                "SELECT @@Global.Query_Cache_Size, @@query_cache_type",
                vec![&size, "ON"],
            ),
            (
                "select @@session.query_cache_wlock_invalidate as w, @@have_query_cache",
                vec!["0", "YES"],
            ),
            (
                "/* driver */SELECT @@version, @@query_cache_limit AS l, @@query_cache_min_res_unit LIMIT 1;",
                vec![&version, &limit, "4096"],
            ),
        ] {
            let (names, values) = named_values(guest.client(), sql);
            assert_eq!(values, expected, "{sql}");
            if front.server().kind().has_query_cache() {
                assert_eq!(names, named_values(&mut direct, sql).0, "{sql}");
            }
        }
        // What isn't such a list is the server's to answer.
        for sql in [
            "SELECT @@session.query_cache_size",
            "SELECT @@query_cache_size, no_such",
        ] {
            let expected = direct.query_bytes(sql).unwrap().to_vec();
            assert_eq!(guest.client().query_bytes(sql).unwrap(), expected, "{sql}");
        }
    }
}

#[test]
fn reset_empties_the_store_for_those_who_may_reload() {
    let front = Front::new("face_reset", &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 3";
    let expected = front.direct().query_bytes(sql).unwrap().to_vec();
    guest.becomes_hit(sql, &expected);
    let mut other = front.guest();
    let cleared = || {
        let stats = front.remora().app().unwrap().shared().store.stats();
        stats.invalidated.of(InvalidationReason::Cleared)
    };
    other.setup(&["FLUSH QUERY CACHE", "flush local query cache;"]);
    assert_eq!(cleared(), 0);

    let identified = front.server().kind().identified_by("plain");
    front
        .server()
        .execute([
            format!("CREATE USER plain@'%' {identified}"),
            "GRANT SELECT ON *.* TO plain@'%'".to_owned(),
        ])
        .unwrap();
    // When the log tells of it, everything is forgotten.
    front.catch_up();
    let plain = ConnectOptions {
        user: "plain".to_owned(),
        password: "plain".to_owned(),
        ..front.options()
    };
    guest.becomes_hit(sql, &expected);
    let mut plain = front.guest_as(&plain);
    for refused in ["RESET QUERY CACHE", "FLUSH QUERY CACHE"] {
        let error = plain
            .client()
            .query(refused)
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("RELOAD") && error.contains("1227"),
            "{refused}: {error}"
        );
    }
    assert_eq!(cleared(), 0);

    guest.becomes_hit(sql, &expected);
    assert!(counter(other.client(), "Qcache_queries_in_cache") > 0);
    other.setup(&["RESET QUERY CACHE"]);
    assert_eq!(counter(other.client(), "Qcache_queries_in_cache"), 0);
    assert!(cleared() > 0);
    let again = guest.run(sql);
    assert!(
        again.outcome != "hit" && again.bytes == expected,
        "{}",
        again.outcome
    );
    guest.becomes_hit(sql, &expected);
}
