//! What code that isn't seen may have said of a session's next transaction.

use remora_behaviour::front::Front;

const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
];

/// `SET TRANSACTION` in code that isn't seen.
#[test]
fn rows_that_were_never_committed_are_not_kept_after_a_function_either() {
    let trust = "SET GLOBAL log_bin_trust_function_creators = 1";
    let front = Front::new("never_committed_unseen", &[&T[..], &[trust]].concat());
    let (mut writer, mut other) = (front.direct(), front.guest());
    let code = "BEGIN SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; RETURN 1; END";
    let create = format!("CREATE FUNCTION f() RETURNS INT {code}");
    let is_allowed = writer.query(&create).is_ok() && writer.query("DO f()").is_ok();
    let why = "it lets no function set what the next transaction is like";
    if front.server().kind().skips(!is_allowed, why) {
        return;
    }
    writer.query("CREATE VIEW w AS SELECT f() AS x").unwrap();
    front.catch_up();
    let read = "SELECT COUNT(*) FROM t";
    let expected = front.direct().query_bytes(read).unwrap().to_vec();
    let truth = writer.query_value(read).unwrap();
    for run in ["DO f()", "SET @a = f()", "SELECT x FROM w"] {
        let mut guest = front.guest();
        guest.becomes_hit(read, &expected);
        writer.query("BEGIN").unwrap();
        writer.query("INSERT INTO t (a) VALUES (1000)").unwrap();
        guest.setup(&[run]);
        let (dirty, outcome) = guest.value(read);
        assert_ne!(dirty, truth, "{run}: {outcome}");
        writer.query("ROLLBACK").unwrap();
        for _ in 0..2 {
            assert_eq!(other.value(read).0, truth, "{run}");
        }
        // It was for one transaction.
        guest.becomes_hit(read, &expected);
    }
}

/// What ends what was set for the next transaction: a statement on its own that uses a table.
/// MySQL uses none where no partition can be concerned; MariaDB does, whatever it finds there.
#[test]
fn a_statement_that_uses_a_table_is_the_next_transaction() {
    let front = Front::new(
        "next_transaction",
        &[
            &T[..],
            &[
                "CREATE TABLE p (a INT PRIMARY KEY) PARTITION BY RANGE (a) \
                 (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
                "CREATE VIEW v AS SELECT a FROM p WHERE a > 1",
            ],
        ]
        .concat(),
    );
    let (mut writer, mut direct) = (front.direct(), front.direct());
    let read = "SELECT COUNT(*) FROM t";
    let truth = writer.query_value(read).unwrap();
    writer.query("BEGIN").unwrap();
    writer.query("INSERT INTO t (a) VALUES (1000)").unwrap();
    let set = "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
    let inserts = [
        "INSERT INTO p VALUES (5)",
        "INSERT INTO p SELECT 6 FROM p WHERE a = 99",
        "REPLACE INTO p VALUES (5)",
        "INSERT IGNORE INTO p SELECT 5 FROM t WHERE 1 = 0",
        "INSERT INTO p VALUES (5) ON DUPLICATE KEY UPDATE a = 5",
    ];
    let reads = [
        "SELECT * FROM t WHERE a = 1",
        "SELECT * FROM t WHERE 1 = 0",
        "SELECT * FROM t WHERE a = 1 AND a = 2",
        "SELECT * FROM t LIMIT 0",
        "SELECT COUNT(*) FROM t",
        "SELECT 1 FROM t t1, t t2 WHERE t1.a = 1 AND t2.a = 99",
    ];
    let others = [
        "SELECT 1 FROM p, t WHERE p.a = 99",
        "SELECT MAX(a) FROM p",
        "SELECT * FROM p WHERE a = 99",
        "SELECT COUNT(*) FROM p WHERE a = 99",
        "SELECT a FROM v WHERE a = 99",
        "UPDATE p SET a = 1 WHERE a = 99",
        "DELETE FROM p WHERE a = 99",
        "UPDATE p SET a = 1 WHERE 1 = 0",
        "DELETE FROM p WHERE a = 5",
    ];
    let is_mariadb = !front.server().kind().is_mysql();
    let others = others.iter().filter(|_| is_mariadb);
    let mut left = Vec::new();
    for statement in inserts.iter().chain(&reads).chain(others) {
        direct.query(set).unwrap();
        direct.query(statement).unwrap();
        if direct.query_value(read).unwrap() != truth {
            left.push(*statement);
        }
    }
    assert!(left.is_empty(), "they leave it as it is: {left:?}");
    writer.query("ROLLBACK").unwrap();
}
