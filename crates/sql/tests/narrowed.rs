//! Which rows a write changes, as far as its text says it with certainty.
//!
//! Servers: none
//! Load: waits

mod common;

use common::describe::rows;
use common::{default, names};
use remora_sql::{Dialect, NarrowedWrite, analyse_prepared};

fn narrowed(text: &str) -> Option<NarrowedWrite> {
    analyse_prepared(text.as_bytes(), Dialect::default()).narrowed
}

#[track_caller]
fn changes(text: &str, table: &str, expected: &str, assigned: &[&str]) {
    let Some(write) = narrowed(text) else {
        panic!("{text}: not narrowed");
    };
    assert_eq!(names(std::slice::from_ref(&write.table)), [table], "{text}");
    assert_eq!(rows(&write), expected, "{text}");
    assert_eq!(write.assigned, assigned, "{text}");
}

#[test]
fn updates_and_deletes_change_the_rows_of_their_conditions() {
    changes("UPDATE t SET a=1 WHERE id=5", "t", "id in 5", &["a"]);
    changes(
        "UPDATE LOW_PRIORITY s.t AS x SET x.A = b + 1, `B`=DEFAULT, s.t.c = (SELECT 1 FROM u) \
         WHERE x.id IN (1, 2) AND d > 3 ORDER BY e LIMIT 7;",
        "s.t",
        "x.id in 1 2, d > 3",
        &["a", "b", "c"],
    );
    changes("UPDATE t x SET a = 1 WHERE id = 5", "t", "id in 5", &["a"]);
    changes("UPDATE t SET a = 1 WHERE b IS NULL", "t", "b null", &["a"]);
    changes("UPDATE t SET a = 1", "t", "", &["a"]);
    changes("UPDATE t SET a = b = 5 AND c = 6", "t", "", &["a"]);
    changes("UPDATE t SET a = 1 WHERE id = 5 OR b", "t", "", &["a"]);
    changes("DELETE FROM t WHERE id = -5", "t", "id in -5", &[]);
    changes(
        "DELETE LOW_PRIORITY QUICK IGNORE FROM t WHERE a BETWEEN 1 AND 2 LIMIT 3",
        "t",
        "a >= 1 <= 2",
        &[],
    );
    changes(
        "DELETE FROM t AS x WHERE x.a = 1 AND EXISTS (SELECT 1 FROM u WHERE b = 2)",
        "t",
        "x.a in 1",
        &[],
    );
    changes(
        "DELETE FROM t WHERE a = 1 RETURNING *, b c",
        "t",
        "a in 1",
        &[],
    );
    changes("DELETE FROM t", "t", "", &[]);
}

#[test]
fn parameters_are_numbered_over_the_whole_write() {
    changes(
        "UPDATE t SET a = ?, b = CONCAT(?, b) WHERE id = ? AND c <=> ? LIMIT ?",
        "t",
        "id in ?2",
        &["a", "b"],
    );
    changes("DELETE FROM t WHERE a IN (?, ?)", "t", "a in ?0 ?1", &[]);
    changes(
        "INSERT INTO t (a, b) VALUES (?, ABS(?)), (-?, ?)",
        "t",
        "(a b) (?0 -) (- ?3)",
        &[],
    );
}

#[test]
fn inserts_of_values_add_these_rows() {
    changes(
        "INSERT INTO t VALUES (1, 'x', NULL, NOW(), DEFAULT)",
        "t",
        "(1 'x' - - -)",
        &[],
    );
    changes(
        "INSERT LOW_PRIORITY IGNORE t (A, t.`B`) VALUE (-1, 2.50), (b + 1, (SELECT 1 FROM u))",
        "t",
        "(a b) (-1 decimal 2.50) (- -)",
        &[],
    );
    changes(
        "INSERT INTO s.t SET A = 5, b = DEFAULT",
        "s.t",
        "(a b) (5 -)",
        &[],
    );
    changes("INSERT INTO t () VALUES ()", "t", "() ()", &[]);
    changes(
        "INSERT INTO t (a) VALUES (1) RETURNING a",
        "t",
        "(a) (1)",
        &[],
    );
    let many = |count: usize| format!("INSERT INTO t VALUES {}", vec!["(1)"; count].join(","));
    assert!(narrowed(&many(64)).is_some());
    assert!(narrowed(&many(65)).is_none());
}

#[test]
fn other_writes_are_not_narrowed() {
    for text in [
        "UPDATE t, u SET a = 1 WHERE id = 5",
        "UPDATE t JOIN u ON 1 SET a = 1 WHERE id = 5",
        "UPDATE IGNORE t SET a = 1 WHERE id = 5",
        "UPDATE t PARTITION (p) SET a = 1 WHERE id = 5",
        "UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a = 1 WHERE id = 5",
        "UPDATE t USE INDEX (i) SET a = 1 WHERE id = 5",
        "UPDATE t SET a = f(1) WHERE id = 5",
        "UPDATE t SET a = 1 WHERE id = 5 AND s.f(b)",
        "UPDATE t SET a = NEXT VALUE FOR s WHERE id = 5",
        "UPDATE t SET a = 1 WHERE id = 5 garbage",
        "UPDATE t SET a = 1 WHERE id = 5 ) AND (1",
        "UPDATE t SET a = 1, WHERE id = 5",
        "UPDATE t SET `ö` = 1 WHERE id = 5",
        "UPDATE `ö` SET a = 1 WHERE id = 5",
        "UPDATE t SET a = 1 WHERE id = 5; DELETE FROM t",
        "UPDATE t SET a = 1 /*! + 1 */ WHERE id = 5",
        "UPDATE /*+ SET_VAR(sql_mode = '') */ t SET a = 1 WHERE id = 5",
        "UPDATE /*+ SET_VAR(a = b) */ t SET a = 1 WHERE id = 5",
        "WITH c AS (SELECT 1) UPDATE t SET a = 1 WHERE id = 5",
        "WITH c AS (SELECT 1) DELETE FROM t WHERE id = 5",
        "DELETE t FROM t WHERE id = 5",
        "DELETE FROM t USING t WHERE id = 5",
        "DELETE t FROM t JOIN u WHERE t.id = 5",
        "DELETE FROM t PARTITION (p) WHERE id = 5",
        "DELETE HISTORY FROM t",
        "REPLACE INTO t VALUES (1)",
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
        "INSERT INTO t (a) VALUES (1) AS n",
        "INSERT INTO t VALUES ROW(1)",
        "INSERT INTO t (a, b) VALUES (1)",
        "INSERT INTO t PARTITION (p) VALUES (1)",
        "INSERT DELAYED INTO t VALUES (1)",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t (SELECT 1)",
        "INSERT INTO t TABLE u",
        "INSERT INTO t VALUES (f(1))",
        "EXPLAIN UPDATE t SET a = 1 WHERE id = 5",
        "ANALYZE UPDATE t SET a = 1 WHERE id = 5",
        "SET STATEMENT sql_mode = '' FOR UPDATE t SET a = 1 WHERE id = 5",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "TRUNCATE TABLE t",
        "SELECT 1 FROM t WHERE id = 5",
    ] {
        assert_eq!(narrowed(text), None, "{text}");
        assert_eq!(default(text).narrowed, None, "{text}");
    }
}
