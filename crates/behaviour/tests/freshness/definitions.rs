//! Definitions that change while results are in memory: online schema changes, views, and what the
//! catalogue keeps.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;
use remora_upstream::catalogue::Lookup;

use remora_behaviour::front::{Front, Guest, PATIENCE, lease};

const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
];

/// What the server says itself.
fn direct(front: &Front, sql: &str) -> Vec<u8> {
    front.direct().query_bytes(sql).unwrap().to_vec()
}

fn is_error(answer: &[u8]) -> bool {
    answer.get(4) == Some(&0xff)
}

/// Runs statements through Remora. Before each, the reads are in memory as far as they can be;
/// after each, every read gives what the server gives.
fn never_old(front: &Front, steps: &[&str], reads: &[&str]) {
    let (mut writer, mut reader) = (front.guest(), front.guest());
    for step in steps {
        for sql in reads {
            let before = direct(front, sql);
            if !is_error(&before) {
                reader.becomes_hit(sql, &before);
            }
        }
        let (_, answer) = writer.observe(|client| client.query(step).map(drop));
        answer.unwrap_or_else(|error| panic!("{step}: {error}"));
        for sql in reads {
            assert_eq!(
                reader.run(sql).bytes,
                direct(front, sql),
                "{sql} after {step}"
            );
        }
    }
}

#[test]
fn tables_that_change_places_are_never_taken_for_each_other() {
    let mut setup = T.to_vec();
    setup.extend([
        "CREATE TABLE u (a INT PRIMARY KEY, s DATE, more INT)",
        "INSERT INTO u VALUES (7, '2024-02-29', 1)",
    ]);
    let front = Front::new("places", &setup);
    let steps = [
        "RENAME TABLE t TO swap, u TO t, swap TO u",
        "UPDATE t SET more = 2",
        "UPDATE u SET s = 'changed' WHERE a = 1",
        "RENAME TABLE t TO swap, u TO t, swap TO u",
        "ALTER TABLE t RENAME TO v",
        "ALTER TABLE u RENAME TO t",
        "INSERT INTO t VALUES (8, NULL, 3)",
        "DROP TABLE v",
        "RENAME TABLE t TO u",
        "CREATE TABLE t LIKE u",
        "INSERT INTO t SELECT * FROM u",
        "TRUNCATE t",
    ];
    let reads = [
        "SELECT * FROM t",
        "SELECT * FROM u",
        "SELECT a FROM t WHERE a = 1",
    ];
    never_old(&front, &steps, &reads);
}

/// `LOCAL` and `NO_WRITE_TO_BINLOG` keep a change of partitions out of the log.
#[test]
fn rows_that_change_partitions_without_a_word_in_the_log_leave_no_old_row() {
    let front = Front::new(
        "unlogged",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
            "INSERT INTO t VALUES (1), (2), (3), (4)",
            "CREATE TABLE r (id INT PRIMARY KEY) PARTITION BY RANGE (id) \
             (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
            "INSERT INTO r VALUES (1), (11)",
        ],
    );
    let steps = [
        "ALTER TABLE t ADD PARTITION LOCAL PARTITIONS 2",
        "ALTER TABLE t COALESCE PARTITION NO_WRITE_TO_BINLOG 1",
        "ALTER TABLE r REORGANIZE PARTITION LOCAL p0, p1 INTO \
         (PARTITION p0 VALUES LESS THAN (15), PARTITION p1 VALUES LESS THAN (20))",
    ];
    let reads = [
        "SELECT id FROM t PARTITION (p0) ORDER BY id",
        "SELECT id FROM t PARTITION (p1) ORDER BY id",
        "SELECT id FROM r PARTITION (p0) ORDER BY id",
    ];
    never_old(&front, &steps, &reads);
    let prepared = "ALTER TABLE t ADD PARTITION LOCAL PARTITIONS 1";
    let mut reader = front.guest();
    let mut writer = front.guest();
    for is_last in [false, true] {
        for sql in reads {
            reader.becomes_hit(sql, &direct(&front, sql));
        }
        if is_last {
            let both = "DO 1; ALTER TABLE t COALESCE PARTITION LOCAL 2";
            writer.client().query(both).unwrap();
        } else {
            let id = writer.client().prepare(prepared.as_bytes()).unwrap();
            writer.client().execute(id, &[]).unwrap();
        }
        for sql in reads {
            assert_eq!(reader.run(sql).bytes, direct(&front, sql), "{sql}");
        }
    }
}

/// Such a repair moves rows that stand in the wrong partition.
#[test]
fn rows_that_a_repair_moves_without_a_word_in_the_log_leave_no_old_row() {
    let front = Front::new(
        "misplaced",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
            "CREATE TABLE x (id INT PRIMARY KEY)",
        ],
    );
    let kind = front.server().kind();
    let without = "ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x WITHOUT VALIDATION";
    let can = !matches!(kind, Kind::MySql56 | Kind::MariaDb1011);
    if kind.skips(!can, "it always validates") {
        return;
    }
    let steps = [
        "INSERT INTO x VALUES (2), (4)",
        without,
        "ALTER TABLE t REPAIR PARTITION LOCAL p1",
        "TRUNCATE t",
        "INSERT INTO x VALUES (6)",
        without,
        "REPAIR LOCAL TABLE t",
    ];
    let reads = [
        "SELECT id FROM t PARTITION (p0) ORDER BY id",
        "SELECT id FROM t PARTITION (p1) ORDER BY id",
    ];
    never_old(&front, &steps, &reads);
}

/// The foreign key is there before its parent: the parent's definition says nothing of it.
#[test]
fn a_parent_that_comes_after_its_child_cascades_as_any_other() {
    let front = Front::new("late_parent", &[]);
    let steps = [
        "SET foreign_key_checks = 0",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, \
         FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)",
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "INSERT INTO p VALUES (1), (2), (3)",
        "SET foreign_key_checks = 1",
        "DELETE FROM p WHERE id = 1",
        "UPDATE p SET id = 9 WHERE id = 2",
        "SET foreign_key_checks = 0",
        "RENAME TABLE p TO q",
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "SET foreign_key_checks = 1",
        "DELETE FROM q WHERE id = 3",
    ];
    never_old(&front, &steps, &["SELECT id, p FROM c ORDER BY id"]);
}

#[test]
fn a_column_whose_type_changes_is_read_anew() {
    let front = Front::new("retyped", &T);
    let steps = [
        "ALTER TABLE t MODIFY a BIGINT UNSIGNED",
        "ALTER TABLE t MODIFY s VARCHAR(20) CHARACTER SET latin1",
        "ALTER TABLE t CHANGE s name TEXT",
        "UPDATE t SET name = 'One' WHERE a = 1",
        "ALTER TABLE t CHANGE name s ENUM('One', 'two') CHARACTER SET utf8mb4",
        "ALTER TABLE t ADD b INT DEFAULT 4 FIRST",
        "ALTER TABLE t DROP PRIMARY KEY",
        "INSERT INTO t (a, s) VALUES (1, 'two')",
        "ALTER TABLE t ADD id INT AUTO_INCREMENT PRIMARY KEY",
        "ALTER TABLE t DROP b",
        "DELETE FROM t WHERE a = 1",
    ];
    let reads = [
        "SELECT * FROM t",
        "SELECT a FROM t WHERE a = 1",
        "SELECT COUNT(*) FROM t",
    ];
    never_old(&front, &steps, &reads);
}

/// What `pt-online-schema-change` does, by hand, with writes while it runs.
const ONLINE_SCHEMA_CHANGE: [&str; 17] = [
    "CREATE TABLE _t_new LIKE t",
    "ALTER TABLE _t_new ADD extra INT DEFAULT 5",
    "CREATE TRIGGER t_del AFTER DELETE ON t FOR EACH ROW DELETE IGNORE FROM _t_new WHERE _t_new.a <=> OLD.a",
    "CREATE TRIGGER t_upd AFTER UPDATE ON t FOR EACH ROW REPLACE INTO _t_new (a, s) VALUES (NEW.a, NEW.s)",
    "CREATE TRIGGER t_ins AFTER INSERT ON t FOR EACH ROW REPLACE INTO _t_new (a, s) VALUES (NEW.a, NEW.s)",
    "UPDATE t SET s = 'zwei' WHERE a = 2",
    "INSERT LOW_PRIORITY IGNORE INTO _t_new (a, s) SELECT a, s FROM t LOCK IN SHARE MODE",
    "INSERT INTO t VALUES (4, 'four')",
    "DELETE FROM t WHERE a = 1",
    "ANALYZE TABLE _t_new",
    "RENAME TABLE t TO _t_old, _t_new TO t",
    "UPDATE t SET extra = 6 WHERE a = 4",
    "DROP TABLE IF EXISTS _t_old",
    "DROP TRIGGER IF EXISTS t_del",
    "DROP TRIGGER IF EXISTS t_upd",
    "DROP TRIGGER IF EXISTS t_ins",
    "INSERT INTO t VALUES (5, 'five', 7)",
];

#[test]
fn an_online_schema_change_leaves_no_old_row() {
    let front = Front::new("online", &T);
    let reads = [
        "SELECT * FROM t",
        "SELECT * FROM _t_new",
        "SELECT * FROM t WHERE a = 2",
    ];
    never_old(&front, &ONLINE_SCHEMA_CHANGE, &reads);
}

/// What changes `b` changes `c`, and MariaDB's log names `c` only if the rule of the first key asks
/// for it.
const CHAIN: [&str; 7] = [
    "CREATE TABLE a (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE b (id INT PRIMARY KEY, a_id INT, KEY (a_id), FOREIGN KEY (a_id) \
     REFERENCES a (id) ON DELETE SET NULL ON UPDATE CASCADE) ENGINE=InnoDB",
    "CREATE TABLE c (id INT PRIMARY KEY, x INT, KEY (x), FOREIGN KEY (x) REFERENCES b (a_id) \
     ON UPDATE SET NULL) ENGINE=InnoDB",
    "CREATE VIEW of_c AS SELECT id, x FROM c",
    "INSERT INTO a VALUES (1), (2), (3)",
    "INSERT INTO b VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)",
];

#[test]
fn results_from_views_change_with_what_keys_reach_through_other_tables() {
    let front = Front::new("chain", &CHAIN);
    let steps = [
        "DELETE FROM a WHERE id = 1",
        "UPDATE a SET id = 7 WHERE id = 2",
        "DELETE FROM a",
    ];
    let reads = [
        "SELECT * FROM of_c ORDER BY id",
        "SELECT COUNT(x) FROM of_c",
        "SELECT x FROM c WHERE id = 3",
    ];
    never_old(&front, &steps, &reads);
}

const VIEWS: [&str; 5] = [
    "CREATE TABLE d (a INT PRIMARY KEY, n INT)",
    "INSERT INTO d VALUES (1, 10), (2, 20)",
    "CREATE VIEW inside AS SELECT a, UPPER(s) AS s FROM t WHERE a < 3",
    "CREATE VIEW joined AS SELECT inside.a, s, n FROM inside LEFT JOIN d ON d.a = inside.a",
    "CREATE VIEW clock AS SELECT a, NOW() AS n FROM t",
];

#[test]
fn results_from_views_change_with_what_the_views_read() {
    let front = Front::new("views", &[&T[..], &VIEWS].concat());
    let steps = [
        "UPDATE t SET s = 'eins' WHERE a = 1",
        "INSERT INTO d VALUES (3, 30)",
        "DELETE FROM d WHERE a = 2",
        "UPDATE inside SET a = 2 WHERE a = 5",
        "ALTER VIEW inside AS SELECT a, LOWER(s) AS s FROM t",
        "CREATE OR REPLACE VIEW inside AS SELECT a, n AS s FROM d",
        "UPDATE d SET n = 11",
        "ALTER TABLE d MODIFY n VARCHAR(9)",
        "DROP VIEW inside",
        "CREATE TABLE inside (a INT, s INT)",
        "INSERT INTO inside VALUES (1, 2)",
    ];
    // None whose columns or order depend on the plan: MySQL 5.6 names the view as the columns'
    // table if it sorts in a temporary one, and its plans change with its statistics.
    let reads = [
        "SELECT * FROM joined WHERE a = 1",
        "SELECT COUNT(*), SUM(n), MAX(s) FROM joined",
        "SELECT COUNT(*) FROM joined j1 JOIN t ON t.a = j1.a",
    ];
    never_old(&front, &steps, &reads);
    front
        .guest()
        .always_passes("SELECT a FROM clock", "table_view");
    // A change elsewhere.
    let mut guest = front.guest();
    let before = direct(&front, reads[0]);
    guest.becomes_hit(reads[0], &before);
    front.direct().query("UPDATE inside SET s = 99").unwrap();
    let after = direct(&front, reads[0]);
    assert_ne!(before, after);
    guest.comes_to_hit(reads[0], &before, &after);
}

#[test]
fn a_view_whose_definer_lost_a_right_is_the_servers_again() {
    let front = Front::new("lending", &T);
    let identified = front.server().kind().identified_by("secret");
    let mut writer = front.guest();
    writer.setup(&[
        &format!("CREATE USER definer@'%' {identified}"),
        "GRANT SELECT ON lending.* TO definer@'%'",
        "CREATE DEFINER = definer@'%' VIEW lent AS SELECT a FROM t",
    ]);
    let sql = "SELECT a FROM lent";
    let mut reader = front.guest();
    reader.becomes_hit(sql, &direct(&front, sql));
    writer.setup(&["REVOKE SELECT ON lending.* FROM definer@'%'"]);
    let refused = direct(&front, sql);
    assert!(is_error(&refused));
    assert_eq!(reader.run(sql).bytes, refused);
    writer.setup(&["GRANT SELECT ON lending.* TO definer@'%'"]);
    front.guest().becomes_hit(sql, &direct(&front, sql));
}

fn loads(front: &Front) -> u64 {
    let shared = front.remora().app().unwrap().shared();
    shared
        .upstream
        .counters
        .catalogue_loads
        .load(Ordering::Relaxed)
}

/// Runs a statement that is new, and gives whether it was planned at once.
fn is_planned(guest: &mut Guest<'_>, sql: &str) -> bool {
    !matches!(guest.run(sql).outcome, "table_loading" | "table_unknown")
}

#[test]
fn ddl_on_one_table_leaves_what_is_known_of_others() {
    let mut setup = T.to_vec();
    setup.push("CREATE TABLE u (a INT)");
    let front = Front::new("others", &setup);
    let (mut reader, mut writer) = (front.guest(), front.guest());
    let sql = "SELECT * FROM t";
    reader.becomes_hit(sql, &direct(&front, sql));
    let before = loads(&front);
    let all = [
        "ALTER TABLE u ADD b INT",
        "CREATE TABLE w (i INT)",
        "DROP TABLE u",
        "TRUNCATE w",
    ];
    for (number, ddl) in all.iter().enumerate() {
        // Past Remora, so that no fence asks for what is altered.
        front.direct().query(ddl).unwrap();
        let commit = format!("UPDATE t SET s = '{number}' WHERE a = 1");
        writer.becomes("write", &commit, None);
        let read = format!("SELECT a, {number} FROM t");
        assert!(is_planned(&mut reader, &read), "{ddl}");
        reader.becomes_hit(sql, &direct(&front, sql));
    }
    assert_eq!(loads(&front), before);
    let before_it = direct(&front, sql);
    front.direct().query("ALTER TABLE t ADD b INT").unwrap();
    let after = direct(&front, sql);
    reader.comes_to_hit(sql, &before_it, &after);
    assert_eq!(loads(&front), before + 1);
}

#[test]
fn more_tables_than_wait_at_a_time_are_asked_for_once_each() {
    const TABLES: usize = 600;
    let options = RemoraOptions::following().with("follow.catalogue_queue_max", "300");
    let front = Front::with("many", options, &[]);
    let names: Vec<_> = (0..TABLES)
        .map(|number| format!("many.t{number}"))
        .collect();
    let create = names
        .iter()
        .map(|name| format!("CREATE TABLE {name} (id INT PRIMARY KEY, v INT)"));
    front.server().execute(create).unwrap();
    // A table that is asked for before it is created is asked for again.
    front.catch_up();
    let options = front.options().at(front.remora().address());
    let mut client = options.connect().unwrap();
    let mut read_all = |what: &str| {
        for name in &names {
            client
                .query(&format!("SELECT v, '{what}' FROM {name}"))
                .unwrap();
        }
    };
    // What doesn't fit into the queue is asked for at the next pass.
    let mut round = 0;
    wait_for("all tables to be known", 3 * PATIENCE, || {
        round += 1;
        read_all(&format!("round {round}"));
        Ok((loads(&front) >= TABLES as u64).then_some(()))
    })
    .unwrap();
    read_all("the last");
    assert_eq!(loads(&front), TABLES as u64);
}

#[test]
fn more_tables_than_the_catalogue_holds_are_cached_all_the_same() {
    const TABLES: usize = 100;
    let tables: Vec<_> = (0..TABLES)
        .map(|number| format!("CREATE TABLE t{number} (n INT DEFAULT {number})"))
        .collect();
    let tables: Vec<_> = tables.iter().map(String::as_str).collect();
    let options = RemoraOptions::following().with("follow.catalogue_tables_max", "16");
    let front = Front::with("crowded", options, &tables);
    let mut guest = front.guest();
    for number in 0..TABLES {
        let sql = format!("SELECT n FROM t{number}");
        guest.becomes_hit(&sql, &direct(&front, &sql));
    }
    let catalogue = &front.remora().app().unwrap().shared().upstream.catalogue;
    let [_, evictions] = catalogue.counts();
    assert!(catalogue.len() <= 16 && evictions >= 84, "{evictions}");
}

/// A write that waits on the server while a definition changes there is not what it was taken for
/// when it was sent: a result that was read meanwhile can have tags that its fence, of one value,
/// doesn't cover.
#[test]
fn a_write_that_waited_for_a_new_definition_fences_everything() {
    // Nobody else changes definitions there.
    let server = lease();
    let options = RemoraOptions::following();
    let setup = [
        T[0],
        T[1],
        "CREATE TABLE u (a INT PRIMARY KEY)",
        "INSERT INTO u VALUES (1)",
    ];
    let (front, gate) = Front::behind_gate(server, "late_definition", options, &setup);
    let mut guest = front.guest();
    for sql in ["SELECT s FROM t WHERE a = 1", "SELECT a FROM u"] {
        let expected = direct(&front, sql);
        guest.becomes_hit(sql, &expected);
    }
    let shared = Arc::clone(front.remora().app().unwrap().shared());
    let known = || match shared.upstream.catalogue.lookup("late_definition", "t") {
        Lookup::Known(facts) => Some(facts),
        Lookup::Loading | Lookup::Unavailable => None,
    };
    let before = known().unwrap();

    let mut locker = front.direct();
    locker.query("LOCK TABLES t WRITE").unwrap();
    let address = front.remora().address();
    let mut writer = front.server().app().at(address).connect().unwrap();
    let write = std::thread::spawn(move || {
        writer
            .query("UPDATE late_definition.t SET s = 'new' WHERE a = 1")
            .map(drop)
    });
    let mut watcher = front.direct();
    let waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE '%metadata lock%' AND INFO LIKE 'UPDATE late_definition%'";
    wait_for("the write to wait", PATIENCE, || {
        let waiting = watcher.query_value(waits)?;
        Ok((waiting.as_deref() == Some("1")).then_some(()))
    })
    .unwrap();
    locker.query("ALTER TABLE t MODIFY a BIGINT").unwrap();
    wait_for("Remora to hear of the definition", PATIENCE, || {
        let is_same = known().is_some_and(|facts| Arc::ptr_eq(&facts, &before));
        Ok((!is_same).then_some(()))
    })
    .unwrap();
    gate.hold(true);
    locker.query("UNLOCK TABLES").unwrap();
    write.join().unwrap().unwrap();
    // Its change is answered and not yet in the log that Remora reads.
    assert_eq!(guest.run("SELECT a FROM u").outcome, "unservable_fenced");
    gate.hold(false);
    let expected = direct(&front, "SELECT s FROM t WHERE a = 1");
    guest.becomes_hit("SELECT s FROM t WHERE a = 1", &expected);
}
