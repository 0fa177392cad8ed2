//! Names that may mean a common table expression or a table, depending on the server.

use remora_behaviour::front::{Front, assert_same};

const TABLES: [&str; 7] = [
    "CREATE TABLE a (x INT PRIMARY KEY)",
    "INSERT INTO a VALUES (1)",
    "CREATE TABLE t (x VARCHAR(10), v INT)",
    "INSERT INTO t VALUES ('05', 1)",
    "CREATE TABLE C (y VARCHAR(10))",
    "CREATE TABLE orders (id INT PRIMARY KEY, status VARCHAR(10))",
    "INSERT INTO orders VALUES (1, 'open'), (2, 'sent')",
];

#[test]
fn what_a_name_within_an_expression_means_is_what_the_server_says() {
    let front = Front::new("table_expressions", &TABLES);
    let kind = front.server().kind();
    let lacks = !kind.has_common_table_expressions();
    if kind.skips(lacks, "it has no common table expressions") {
        return;
    }
    let (mut guest, mut direct) = (front.guest(), front.direct());
    for (text, change) in [
        (
            "WITH a AS (SELECT 10 AS x) \
             SELECT d.x FROM t, (WITH b AS (SELECT x FROM a) SELECT x FROM b) AS d ORDER BY x",
            "INSERT INTO a VALUES (2)",
        ),
        (
            "WITH a AS (SELECT 10 AS x) \
             SELECT v FROM t WHERE 3 IN (WITH b AS (SELECT x FROM a) SELECT x FROM b)",
            "INSERT INTO a VALUES (3)",
        ),
        (
            "WITH orders AS (SELECT * FROM orders WHERE status = 'open') \
             SELECT * FROM (WITH q AS (SELECT * FROM orders) SELECT COUNT(*) FROM q) d",
            "INSERT INTO orders VALUES (3, 'sent')",
        ),
        (
            "WITH c AS (SELECT 5 AS y) SELECT t.v FROM C JOIN t ON t.x = C.y WHERE C.y = '5'",
            "UPDATE t SET v = 2 WHERE x = '05'",
        ),
        (
            "WITH RECURSIVE b AS (SELECT t.v FROM C JOIN t ON t.x = C.y WHERE C.y = '5'), \
             C AS (SELECT 5 AS y) SELECT v FROM b",
            "UPDATE t SET v = 3 WHERE x = '05'",
        ),
        (
            "WITH b AS (SELECT t.v FROM C JOIN t ON t.x = C.y WHERE C.y = '5'), \
             C AS (SELECT 5 AS y), d AS (SELECT v FROM b UNION ALL SELECT v FROM b) \
             SELECT v FROM d",
            "UPDATE t SET v = 4 WHERE x = '05'",
        ),
    ] {
        // Often enough for memory to answer it, if it ever does.
        for _ in 0..3 {
            let before = direct.query_bytes(text).unwrap().to_vec();
            front.catch_up();
            assert_same(text, &guest.run(text).bytes, &before);
        }
        direct.query(change).unwrap();
        front.catch_up();
        let after = direct.query_bytes(text).unwrap().to_vec();
        assert_same(text, &guest.run(text).bytes, &after);
    }
}
