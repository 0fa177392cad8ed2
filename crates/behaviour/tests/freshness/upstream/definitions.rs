//! What the catalogue learns of columns and keys, and what drops it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use remora_engine::facts::{ColumnKind, TableFacts, ValueOrigin};
use remora_engine::reason::TableRefusal;
use remora_upstream::catalogue::Lookup;

use super::app_server;
use super::follower::{Follower, config};
use super::server::{Kind, Server, wait_until};

fn kinds(facts: &TableFacts) -> Vec<(&str, &ColumnKind)> {
    let columns = facts.columns.iter();
    columns
        .map(|column| (&*column.name, &column.kind))
        .collect()
}

const EVERY_TYPE: &str = "CREATE TABLE app.types (\
     b BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, `Case` TINYINT, z MEDIUMINT ZEROFILL, d DECIMAL(12,3), \
     c CHAR(10) CHARACTER SET latin1 COLLATE latin1_german2_ci, v VARCHAR(10) CHARACTER SET utf8mb4, \
     l LONGTEXT CHARACTER SET ascii, bin VARBINARY(4), `blob` BLOB, dt DATE, at DATETIME(3), whole DATETIME, ts TIMESTAMP NULL, \
     y YEAR, e ENUM('a','it''s','c,d') CHARACTER SET latin1, bits BIT(9), s SET('x'), f FLOAT, \
     PRIMARY KEY (d, b), UNIQUE (`Case`), KEY (b))";

#[test]
fn columns_have_their_types_and_places() {
    use ColumnKind::{Binary, Bit, Date, Datetime, Decimal, Enum, Integer, Other, Text, Year};
    let server = app_server(&[]);
    server.sql(EVERY_TYPE);
    let follower = Follower::start_live(&server);
    let facts = follower.facts("types");
    let text = |collation: &str, character_set: &str| Text {
        collation: collation.into(),
        character_set: character_set.into(),
    };
    let collation_of = |name: &str| match kinds(&facts).iter().find(|(column, _)| *column == name) {
        Some((_, Text { collation, .. })) => collation.to_string(),
        other => panic!("{other:?}"),
    };
    let labels: Arc<[Box<str>]> = ["a", "it's", "c,d"].map(Box::from).into();
    let integer = |bytes, unsigned| Integer { bytes, unsigned };
    let expected = [
        ("b", integer(8, true)),
        ("Case", integer(1, false)),
        ("z", integer(3, true)),
        (
            "d",
            Decimal {
                precision: 12,
                scale: 3,
            },
        ),
        ("c", text("latin1_german2_ci", "latin1")),
        // Servers have different defaults.
        ("v", text(&collation_of("v"), "utf8mb4")),
        ("l", text("ascii_general_ci", "ascii")),
        ("bin", Binary),
        ("blob", Binary),
        ("dt", Date),
        ("at", Datetime { fraction: 3 }),
        ("whole", Datetime { fraction: 0 }),
        ("ts", Other),
        ("y", Year),
        (
            "e",
            Enum {
                labels,
                collation: "latin1_swedish_ci".into(),
            },
        ),
        ("bits", Bit { bits: 9 }),
        ("s", Other),
        ("f", Other),
    ];
    let found: Vec<_> = kinds(&facts)
        .into_iter()
        .map(|(name, kind)| (name, kind.clone()))
        .collect();
    assert_eq!(found, expected);
    assert!(collation_of("v").starts_with("utf8mb4_"));
    assert_eq!(*facts.key_columns, [3, 0]);
    assert!(facts.has_other_unique_keys && facts.columns_match_log);
    let (b, case) = (&facts.columns[0], &facts.columns[1]);
    assert!(b.is_auto_increment && !b.is_nullable);
    assert!(!case.is_auto_increment && case.is_nullable);
    let keyless = follower.facts("a");
    assert_eq!(*keyless.key_columns, [0]);
    assert!(!keyless.has_other_unique_keys);
    let refused = follower.facts("m");
    assert!(refused.columns.is_empty());
}

#[test]
fn columns_that_the_server_hides_are_noticed() {
    let server = app_server(&[]);
    let hidden = match server.kind {
        Kind::MariaDb1011 | Kind::MariaDb114 => {
            "CREATE TABLE app.hides (i INT, t TEXT, UNIQUE (t))"
        }
        Kind::MySql80 => "CREATE TABLE app.hides (i INT, t INT, KEY ((i + t)))",
        Kind::MySql57 | Kind::MySql56 => return,
    };
    server.sql(hidden);
    let follower = Follower::start_live(&server);
    let facts = follower.facts("hides");
    assert!(!facts.columns_match_log);
    assert_eq!(facts.columns.len(), 2);
    assert_eq!(facts.cacheable, Ok(()));
}

/// It is the first column in the log, and `information_schema` need not show it.
#[test]
fn a_primary_key_that_the_server_has_made_up_is_noticed() {
    let server = app_server(&[]);
    if server.kind.skips(
        server.kind != Kind::MySql80,
        "it makes up no primary keys that are columns",
    ) {
        return;
    }
    server.sql(
        "SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF;; \
         SET sql_generate_invisible_primary_key = ON;; CREATE TABLE app.made_up (i INT, t INT)",
    );
    let follower = Follower::start_live(&server);
    let facts = follower.facts("made_up");
    assert_eq!(facts.columns.len(), 2);
    assert!(!facts.columns_match_log);
    assert_eq!(facts.cacheable, Ok(()));
}

#[test]
fn parents_by_foreign_keys_are_known_with_their_columns() {
    let server = app_server(&[]);
    finds_parents(&server);
}

/// Without `PROCESS`, some servers can only be asked in a way for which they open every table.
#[test]
fn parents_are_known_by_innodbs_own_list_too() {
    let server = app_server(&[]);
    server.sql("GRANT PROCESS ON *.* TO remora@'127.0.0.1'");
    finds_parents(&server);
    let (follower, parents) = finds_parent_of_strange_names(&server, "odd child-1");
    assert_eq!(parents, [("a$ b".to_owned(), "odd column".to_owned())]);
    drop(follower);
    // A name that isn't read makes it ask the other way.
    let (_follower, parents) = finds_parent_of_strange_names(&server, "chäld");
    assert_eq!(parents, [("a$ b".to_owned(), "odd column".to_owned())]);
}

fn parents_of(follower: &Follower, table: &str) -> Vec<(String, String)> {
    let facts = follower.facts(table);
    let parents = facts.cascade_parents.iter();
    parents
        .map(|parent| (parent.table.clone(), parent.columns.join(" ")))
        .collect()
}

fn finds_parent_of_strange_names(
    server: &Server,
    child: &str,
) -> (Follower, Vec<(String, String)>) {
    server.sql(&format!(
        "CREATE TABLE IF NOT EXISTS app.`a$ b` (`odd column` INT PRIMARY KEY);; \
         CREATE TABLE app.`{child}` (i INT, FOREIGN KEY (i) REFERENCES app.`a$ b` (`odd column`) ON DELETE CASCADE)"
    ));
    let follower = Follower::start_live(server);
    let parents = parents_of(&follower, child);
    (follower, parents)
}

fn finds_parents(server: &Server) {
    server.sql(
        "CREATE TABLE app.b2 (i INT PRIMARY KEY, p INT, q INT, UNIQUE (p, q), \
           FOREIGN KEY (i) REFERENCES app.a (i) ON DELETE CASCADE);; \
         CREATE TABLE app.c (i INT, p INT, q INT, \
           FOREIGN KEY (p, q) REFERENCES app.b2 (p, q) ON UPDATE CASCADE);; \
         CREATE TABLE app.tree (i INT PRIMARY KEY, parent INT, \
           FOREIGN KEY (parent) REFERENCES app.tree (i) ON DELETE SET NULL)",
    );
    let follower = Follower::start_live(server);
    let parents = |table: &str| parents_of(&follower, table);
    let pair = |table: &str, columns: &str| (table.to_owned(), columns.to_owned());
    assert_eq!(parents("c"), [pair("a", "i"), pair("b2", "p q")]);
    assert_eq!(parents("tree"), [pair("tree", "i")]);
    assert_eq!(parents("a"), []);
    server.sql("RENAME TABLE app.a TO app.a2");
    wait_until("the parent has another name", || {
        parents("c") == [pair("a2", "i"), pair("b2", "p q")]
    });
}

fn loads(follower: &Follower) -> u64 {
    follower
        .shared
        .counters
        .catalogue_loads
        .load(Ordering::Relaxed)
}

fn is_known(follower: &Follower, table: &str) -> bool {
    matches!(
        follower.shared.catalogue.lookup("app", table),
        Lookup::Known(_)
    )
}

#[test]
fn ddl_drops_the_tables_that_it_names_and_no_others() {
    let server = app_server(&[]);
    let follower = Follower::start_live(&server);
    follower.facts("a");
    follower.facts("b");
    // With GTIDs, older MySQL allows no table to be made from a query.
    let create_b = match server.kind {
        Kind::MySql57 | Kind::MySql56 => "CREATE TABLE app.b (i INT)",
        _ => "CREATE TABLE app.b AS SELECT 1 AS i",
    };
    for (sql, named) in [
        ("ALTER TABLE app.a ADD x INT", "a"),
        ("CREATE INDEX k ON app.a (v)", "a"),
        ("TRUNCATE app.b", "b"),
        ("CREATE TABLE app.c (i INT)", "c"),
        ("DROP TABLE app.b", "b"),
        (create_b, "b"),
    ] {
        follower.facts(named);
        let before = loads(&follower);
        let facts = follower.facts(named);
        server.sql(sql);
        follower.catch_up();
        for other in ["a", "b"].iter().filter(|other| **other != named) {
            assert!(is_known(&follower, other), "{sql} dropped {other}");
        }
        assert_eq!(loads(&follower), before);
        wait_until(sql, || !Arc::ptr_eq(&follower.facts(named), &facts));
        assert_eq!(loads(&follower), before + 1, "{sql}");
    }
    let columns = |table: &str| follower.facts(table).columns.len();
    assert_eq!([columns("a"), columns("b"), columns("c")], [3, 1, 1]);
    // Two tables change places.
    server.sql("RENAME TABLE app.a TO app.t, app.b TO app.a, app.t TO app.b");
    wait_until("both are asked for again", || {
        [columns("a"), columns("b")] == [1, 3]
    });
    for sql in ["DROP DATABASE app", "CREATE DATABASE another"] {
        let facts = follower.facts("a");
        server.sql(sql);
        wait_until(sql, || !Arc::ptr_eq(&follower.facts("a"), &facts));
    }
    assert!(follower.facts("a").cacheable.is_err());
}

fn many_tables(server: &Server, count: usize) {
    let names =
        (0..count).map(|number| format!("CREATE TABLE app.t{number} (i INT, v VARCHAR(9))"));
    server.sql(&names.collect::<Vec<_>>().join(";; "));
}

#[test]
fn tables_that_wait_together_are_asked_for_together_and_once() {
    let server = app_server(&[]);
    many_tables(&server, 90);
    let follower = Follower::start_live(&server);
    let names: Vec<_> = (0..90).map(|number| format!("t{number}")).collect();
    wait_until("all tables are known", || {
        names
            .iter()
            .filter(|name| !is_known(&follower, name))
            .count()
            == 0
    });
    let batches = &follower.shared.counters.catalogue_batches;
    assert_eq!(loads(&follower), 90);
    // 16 at a time; the first may have gone alone, and a few more whenever the asking thread was
    // held up.
    assert!(batches.load(Ordering::Relaxed) <= 15, "{batches:?}");
    // What is equal is held once.
    let (one, other) = (follower.facts("t1"), follower.facts("t2"));
    assert!(Arc::ptr_eq(&one.columns, &other.columns));
}

const VIEWS: &str = "CREATE TABLE app.days (d DATE, t DATETIME);; \
     CREATE VIEW app.inner_view AS SELECT i, v + 1 AS w FROM app.a WHERE v > 0;; \
     CREATE VIEW app.outer_view AS SELECT o.i, COUNT(*) AS n FROM app.inner_view o LEFT JOIN app.b ON b.i = o.i GROUP BY o.i;; \
     CREATE VIEW app.clock AS SELECT i, NOW() AS n FROM app.a;; \
     CREATE VIEW app.hours_view AS SELECT TIMEDIFF(t, t) AS h FROM app.days;; \
     CREATE VIEW app.timed AS SELECT MAX(opens) AS h FROM app.opening;; \
     CREATE VIEW app.compares AS SELECT COUNT(*) AS n FROM app.opening WHERE opens > '10:00';; \
     CREATE VIEW app.counts AS SELECT COUNT(*) AS n FROM app.opening;; \
     CREATE VIEW app.late AS SELECT i FROM app.m;; \
     CREATE FUNCTION app.one() RETURNS INT DETERMINISTIC RETURN 1;; \
     CREATE VIEW app.calls AS SELECT i, app.one() AS one FROM app.a";

fn view_of(facts: &TableFacts) -> String {
    let names: Vec<_> = facts
        .view_of
        .iter()
        .map(|(s, t)| format!("{s}.{t}"))
        .collect();
    names.join(" ")
}

#[test]
fn a_view_is_what_its_tables_are() {
    let server = app_server(&["--log-bin-trust-function-creators"]);
    server.sql("CREATE TABLE app.opening (opens TIME)");
    server.sql(VIEWS);
    let follower = Follower::start_live(&server);
    let hidden = follower.facts("outer_view");
    assert_eq!(hidden.cacheable, Err(TableRefusal::ViewHidden));
    server.sql("GRANT SHOW VIEW, SELECT ON *.* TO remora@'127.0.0.1'");
    wait_until("the view's text is seen", || {
        follower.facts("outer_view").cacheable.is_ok()
    });
    let facts = follower.facts("outer_view");
    assert_eq!(view_of(&facts), "app.a app.b app.inner_view");
    assert!(!facts.writes_are_foreseeable);
    for (view, why) in [
        ("clock", TableRefusal::View),
        ("calls", TableRefusal::View),
        ("hours_view", TableRefusal::View),
        ("timed", TableRefusal::TimeColumns),
        ("compares", TableRefusal::TimeColumns),
        ("late", TableRefusal::VisibleLate),
    ] {
        assert_eq!(follower.facts(view).cacheable, Err(why), "{view}");
    }
    let counts = follower.facts("counts").cacheable;
    assert_eq!(counts, Ok(()), "it doesn't name the column");
    // Results from it are outdated with its tables, and not with others.
    let tags = |name: &str| {
        let facts = follower.facts(name);
        let mut tags = facts.cascaded_from.clone();
        tags.push(facts.tag);
        tags
    };
    let before = follower.as_of(&tags("outer_view"));
    server.sql("INSERT INTO app.m VALUES (1)");
    follower.catch_up();
    follower.assert_servable(before, &tags("outer_view"));
    server.sql("INSERT INTO app.a VALUES (1, 1)");
    follower.wait_outdated("the row is seen", before, &tags("outer_view"));
}

#[test]
fn a_view_is_looked_at_again_when_a_definition_below_it_changes() {
    let server = app_server(&[]);
    server.sql(
        "CREATE VIEW app.inner_view AS SELECT i FROM app.a;; \
         CREATE VIEW app.v AS SELECT i FROM app.inner_view;; GRANT SHOW VIEW, SELECT ON *.* TO remora@'127.0.0.1'",
    );
    let follower = Follower::start_live(&server);
    let becomes = |what: &str, tables: &str, cacheable: Result<(), TableRefusal>| {
        wait_until(what, || {
            let facts = follower.facts("v");
            view_of(&facts) == tables && facts.cacheable == cacheable
        });
    };
    becomes("it is known", "app.a app.inner_view", Ok(()));
    server.sql("ALTER VIEW app.inner_view AS SELECT i FROM app.b");
    becomes("the view below has changed", "app.b app.inner_view", Ok(()));
    let facts = follower.facts("v");
    server.sql("ALTER TABLE app.a ADD x INT");
    follower.catch_up();
    assert!(Arc::ptr_eq(&facts, &follower.facts("v")), "not its table");
    server.sql("ALTER TABLE app.b MODIFY i TIME");
    becomes(
        "the table has changed",
        "app.b app.inner_view",
        Err(TableRefusal::TimeColumns),
    );
    server.sql("DROP TABLE app.b");
    wait_until("the table is gone", || {
        let facts = follower.facts("v");
        facts.cacheable.is_err() && facts.cacheable != Err(TableRefusal::TimeColumns)
    });
    server.sql("CREATE TABLE app.b (i INT)");
    becomes("the table is there again", "app.b app.inner_view", Ok(()));
}

#[test]
fn the_catalogue_knows_what_virtual_columns_are_calculated_from() {
    let server = app_server(&[]);
    if server.kind == Kind::MySql56 {
        return;
    }
    server.sql(
        "CREATE TABLE app.virt (i INT, name VARCHAR(20), doc TEXT, opens TIME, \
          more INT AS (i + 1) VIRTUAL, \
          most INT AS (more * i) VIRTUAL, \
          mixed VARCHAR(60) AS (CONCAT_WS(' ', name, more)) VIRTUAL, \
          kind VARCHAR(20) AS (JSON_UNQUOTE(JSON_EXTRACT(doc, '$.kind'))) VIRTUAL, \
          kept INT AS (i + 1) STORED, \
          third DECIMAL(20,10) AS (i / 3) VIRTUAL, \
          bytes VARBINARY(60) AS (COALESCE(name, i)) VIRTUAL, \
          day DATE AS (COALESCE(name, i)) VIRTUAL, \
          hour INT AS (HOUR(opens)) VIRTUAL, \
          quoted VARCHAR(60) AS (CONCAT(name, 'it''s')) VIRTUAL)",
    );
    if !server.kind.is_mysql() {
        server.sql("ALTER TABLE app.virt ADD now DATETIME AS (NOW()) VIRTUAL");
    }
    server.sql(
        "CREATE VIEW app.shows AS SELECT i, most FROM app.virt;; \
         CREATE VIEW app.hides AS SELECT i FROM app.virt WHERE hour > 5;; \
         GRANT SHOW VIEW, SELECT ON *.* TO remora@'127.0.0.1'",
    );
    let follower = Follower::start_live(&server);
    let facts = follower.facts("virt");
    assert_eq!(facts.cacheable, Ok(()));
    assert!(facts.columns_match_log);
    let name = |at: &u16| &*facts.columns[usize::from(*at)].name;
    let described = facts.columns.iter().map(|column| {
        let origin = match &column.values {
            ValueOrigin::Stored => "stored".to_owned(),
            ValueOrigin::Calculated(from) => from.iter().map(name).collect::<Vec<_>>().join("+"),
            ValueOrigin::Uncertain => "uncertain".to_owned(),
        };
        (&*column.name, origin)
    });
    let described: Vec<_> = described.skip(4).collect();
    let mut expected = vec![
        ("more", "i".to_owned()),
        ("most", "i".to_owned()),
        ("mixed", "i+name".to_owned()),
        ("kind", "doc".to_owned()),
        ("kept", "stored".to_owned()),
        ("third", "uncertain".to_owned()),
        ("bytes", "uncertain".to_owned()),
        ("day", "uncertain".to_owned()),
        ("hour", "uncertain".to_owned()),
        ("quoted", "uncertain".to_owned()),
    ];
    if !server.kind.is_mysql() {
        expected.push(("now", "uncertain".to_owned()));
    }
    assert_eq!(described, expected);
    wait_until("the views' texts are seen", || {
        follower.facts("shows").cacheable.is_ok()
    });
    let hides = follower.facts("hides").cacheable;
    assert_eq!(hides, Err(TableRefusal::VirtualColumns));
}

#[test]
fn foreign_keys_that_are_not_listed_in_time_are_counted_and_asked_for_again() {
    let server = app_server(&[]);
    let mut options = config(&server);
    options.catalogue_scan_timeout_ms = 0;
    let follower = Follower::start(options);
    let timeouts = &follower.shared.counters.catalogue_scan_timeouts;
    wait_until("two time-outs", || {
        assert!(!is_known(&follower, "a"));
        timeouts.load(Ordering::Relaxed) >= 2
    });
    assert_eq!(loads(&follower), 0);
}
