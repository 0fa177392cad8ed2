//! Values that aren't plain, and sizes of all kinds.

use super::{
    TABLE, Told, direct_bytes, entries, error_of, told, variable, variables, warm,
    with_cache_of_its_own,
};
use remora_behaviour::front::Front;

#[test]
fn values_are_saved_in_user_variables_and_put_back() {
    let front = Front::new("face_saved", &TABLE);
    let mut guest = front.guest();
    let before = (variables(&mut guest, ""), variables(&mut guest, "GLOBAL"));
    guest.setup(&[
        "SET @type = @@global.query_cache_type, @size := @@query_cache_size",
        "SELECT @@global.query_cache_limit, @@query_cache_strip_comments INTO @`limit`, @strips",
        "SET GLOBAL query_cache_type = DEMAND, query_cache_size = 4 * 1048576",
        "SET GLOBAL query_cache_limit = @`limit` DIV 2, query_cache_strip_comments = OFF",
        "SET SESSION query_cache_strip_comments = @@global.query_cache_strip_comments",
        "SET SESSION query_cache_type = @@global.query_cache_type",
    ]);
    for (scope, name, value) in [
        ("GLOBAL", "query_cache_type", "DEMAND"),
        ("SESSION", "query_cache_type", "DEMAND"),
        ("GLOBAL", "query_cache_size", "4194304"),
        ("GLOBAL", "query_cache_strip_comments", "OFF"),
        ("SESSION", "query_cache_strip_comments", "OFF"),
    ] {
        assert_eq!(variable(&mut guest, scope, name), value, "{scope} {name}");
    }
    let saved = guest.value("SELECT CONCAT_WS(' ', @type, @strips)").0;
    assert_eq!(saved.as_deref(), Some("ON 1"));
    guest.setup(&[
        "SET GLOBAL query_cache_type = @type",
        "SET @@global.query_cache_size = @size, GLOBAL query_cache_limit = @`limit`",
        "SET GLOBAL query_cache_strip_comments = @strips, SESSION query_cache_type = @type",
        "SET SESSION query_cache_strip_comments = @strips",
    ]);
    let after = (variables(&mut guest, ""), variables(&mut guest, "GLOBAL"));
    assert_eq!(after, before);
    warm(&front, &mut guest, "SELECT b FROM t WHERE a = 1");
}

/// What a user variable is set to, a statement that uses it, and whether servers take that.
const TOLD: [(&str, &str, bool); 10] = [
    ("1048576", "SET GLOBAL query_cache_size = @v", true),
    ("'1048576'", "SET GLOBAL query_cache_size = @v", false),
    ("1048576.0", "SET GLOBAL query_cache_size = @v", false),
    ("1048576e0", "SET GLOBAL query_cache_size = @v", false),
    ("NULL", "SET GLOBAL query_cache_size = @v", false),
    ("'on'", "SET GLOBAL query_cache_type = @v", true),
    ("1", "SET GLOBAL query_cache_type = @v", true),
    ("3", "SET GLOBAL query_cache_type = @v", false),
    ("'maybe'", "SET GLOBAL query_cache_type = @v", false),
    ("NULL", "SET GLOBAL query_cache_type = @v", false),
];

#[test]
fn a_value_from_a_user_variable_is_judged_as_servers_judge_it() {
    let front = Front::new("face_told", &TABLE);
    let mut guest = front.guest();
    let kind = front.server().kind();
    let server = with_cache_of_its_own(kind);
    let mut root = server.as_ref().map(|server| server.root().unwrap());
    for (value, sql, is_good) in TOLD {
        let set = format!("SET @v = {value}");
        let expected: Option<Option<Told>> = root.as_mut().map(|root| {
            root.query(&set).unwrap();
            (!is_good).then(|| told(root, sql))
        });
        if is_good && let Some(root) = &mut root {
            root.query(sql).unwrap();
        }
        guest.setup(&[&set]);
        if is_good {
            guest.setup(&[sql]);
        } else {
            let seen = error_of(&mut guest, sql);
            assert!(matches!(seen.0, 1231 | 1232), "{value}: {seen:?}");
            if let Some(Some(expected)) = expected {
                assert_eq!(seen, expected, "{value} {sql}");
            }
        }
    }
    // What can't be told is the server's error, and changes nothing.
    let before = variables(&mut guest, "GLOBAL");
    let (code, ..) = error_of(&mut guest, "SET GLOBAL query_cache_size = @@no_such");
    assert_eq!(code, 1193);
    assert_eq!(variables(&mut guest, "GLOBAL"), before);
}

/// Whatever a client puts into its variables, Remora holds no more of it than it may.
#[test]
fn a_value_that_is_too_long_to_be_held_is_refused_and_the_session_goes_on() {
    let front = Front::new("face_long", &TABLE);
    let mut guest = front.guest();
    // The second one fills a packet of 16 MiB, so that the row goes on in another.
    for length in [2 << 20, (1 << 24) + 1] {
        guest.setup(&[&format!("SET @v = REPEAT('x', {length})")]);
        for count in [1, 8] {
            let sets = vec!["SESSION query_cache_type = @v"; count].join(", ");
            let (code, _, message) = error_of(&mut guest, &format!("SET {sets}"));
            assert_eq!(code, 1231, "{message}");
        }
        assert_eq!(guest.value("SELECT LENGTH(@v)").0, Some(length.to_string()));
    }
    let metrics = front.remora().metrics().unwrap();
    let limit = "query_cache.merged_bytes_max";
    assert!(metrics.sum_where("remora_limit_reached_total", "limit", limit) >= 4.0);
}

#[test]
fn a_smaller_memory_holds_less() {
    const SIZE: usize = 1 << 20;
    let front = Front::new("face_size", &TABLE);
    let (mut operator, mut guest) = (front.guest(), front.guest());
    let all = variable(&mut operator, "", "query_cache_size");
    warm(&front, &mut guest, "SELECT b FROM t WHERE a = 1");
    operator.setup(&[&format!("SET GLOBAL query_cache_size = {SIZE}")]);
    assert_eq!(entries(&front), 0, "as with servers");
    let shown = variable(&mut operator, "", "query_cache_size");
    assert_eq!(shown, SIZE.to_string());
    let shared = front.remora().app().unwrap().shared();
    for number in 0..400 {
        let sql = format!("SELECT {number}, REPEAT('x', 4000) FROM t WHERE a = 1");
        let expected = direct_bytes(&front, &sql);
        for _ in 0..2 {
            assert_eq!(guest.run(&sql).bytes, expected);
        }
        assert!(shared.store.stats().entry_bytes <= SIZE);
    }
    assert!(entries(&front) > 0);
    warm(&front, &mut guest, "SELECT b FROM t WHERE a = 2");
    for (size, shown) in [("1234567", "1233920"), ("2000", "0"), ("DEFAULT", &all)] {
        operator.setup(&[&format!("SET GLOBAL query_cache_size = {size}")]);
        assert_eq!(variable(&mut operator, "", "query_cache_size"), shown);
        assert_eq!(entries(&front), 0);
    }
    warm(&front, &mut guest, "SELECT b FROM t WHERE a = 1");
}
