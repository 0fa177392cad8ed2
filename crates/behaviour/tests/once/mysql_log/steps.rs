//! What is run on the servers, and what each step must leave in their logs.

/// Statements of one connection, and what they must leave in the log.
pub(crate) struct Step {
    pub(crate) statements: &'static [&'static str],
    pub(crate) commits: &'static [&'static str],
}

pub(crate) const fn step(
    statements: &'static [&'static str],
    commits: &'static [&'static str],
) -> Step {
    Step {
        statements,
        commits,
    }
}

/// What all of them write alike.
pub(crate) const COMMON: &[Step] = &[
    step(
        &["CREATE TABLE parent (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB"],
        &["Standalone: parent definitions"],
    ),
    step(
        &[
            "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) \
           ON DELETE CASCADE) ENGINE=InnoDB",
        ],
        &["Standalone: child definitions"],
    ),
    step(
        &["CREATE TABLE m (id INT PRIMARY KEY, v TEXT) ENGINE=MyISAM"],
        &["Standalone: m definitions"],
    ),
    step(
        &[
            "INSERT INTO parent VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO child VALUES (1, 1)",
        ],
        &["Transaction: parent", "Transaction: child"],
    ),
    step(
        &["UPDATE parent SET v = 'x' WHERE id = 2"],
        &["Transaction: parent"],
    ),
    // The child rows that the foreign key deletes aren't in the log.
    step(
        &["DELETE FROM parent WHERE id = 1"],
        &["Transaction: parent"],
    ),
    step(
        &[
            "BEGIN",
            "INSERT INTO parent VALUES (3, 'c')",
            "SAVEPOINT s1",
            "INSERT INTO child VALUES (4, 3)",
            "ROLLBACK TO s1",
            "UPDATE parent SET v = 'y' WHERE id = 3",
            "COMMIT",
        ],
        &["Transaction: parent"],
    ),
    step(&["INSERT INTO m VALUES (1, 'w')"], &["EndedByStatement: m"]),
    step(
        &["BEGIN", "INSERT INTO m VALUES (2, 'q')", "ROLLBACK"],
        &["EndedByStatement: m"],
    ),
    step(
        &["BEGIN", "INSERT INTO parent VALUES (8, 'z')", "ROLLBACK"],
        &[],
    ),
    step(&["UPDATE parent SET v = v WHERE id = 3"], &[]),
    step(
        &[
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO parent VALUES (10, 'statement')",
            "BEGIN",
            "SET @a = 11",
            "INSERT INTO child VALUES (@a, 10)",
            "COMMIT",
            "SET SESSION binlog_format = ROW",
        ],
        &[
            "Transaction: * definitions accounts",
            "Transaction: * definitions accounts",
        ],
    ),
    step(
        &[
            "SET SESSION binlog_row_image = MINIMAL",
            "UPDATE parent SET v = 'minimal' WHERE id = 3",
            "DELETE FROM child WHERE id = 11",
            "SET SESSION binlog_row_image = FULL",
        ],
        &["Transaction: parent", "Transaction: child"],
    ),
    step(
        &[
            "SET SESSION binlog_rows_query_log_events = 1",
            "INSERT INTO parent VALUES (20, 'with its text')",
            "SET SESSION binlog_rows_query_log_events = 0",
        ],
        &["Transaction: parent"],
    ),
    step(
        &["CREATE TABLE audit (id INT AUTO_INCREMENT PRIMARY KEY, what TEXT) ENGINE=InnoDB"],
        &["Standalone: audit definitions"],
    ),
    step(
        &["CREATE TRIGGER noted AFTER INSERT ON parent FOR EACH ROW \
           INSERT INTO audit (what) VALUES (NEW.v)"],
        &["Standalone: * definitions"],
    ),
    step(
        &["INSERT INTO parent VALUES (21, 'triggers')"],
        &["Transaction: audit parent"],
    ),
    step(&["DROP TRIGGER noted"], &["Standalone: * definitions"]),
    step(
        &["ALTER TABLE audit ADD COLUMN at_ INT"],
        &["Standalone: audit definitions"],
    ),
    step(
        &["TRUNCATE TABLE audit"],
        &["Standalone: audit definitions"],
    ),
    step(
        &["RENAME TABLE audit TO noted"],
        &["Standalone: audit noted definitions"],
    ),
    step(
        &["CREATE VIEW seen AS SELECT id FROM parent"],
        &["Standalone: * definitions"],
    ),
    step(&["DROP VIEW seen"], &["Standalone: * definitions"]),
    step(
        &["CREATE USER someone@localhost"],
        &["Standalone: * accounts"],
    ),
    step(
        &["GRANT SELECT ON lab.* TO someone@localhost"],
        &["Standalone: * accounts"],
    ),
];

/// What 5.6 and 5.7 write of temporary tables (a `DROP` of nothing that others see) and of two
/// tables that are dropped at once.
pub(crate) const BEFORE_8_0: &[Step] = &[
    step(
        &[
            "CREATE TEMPORARY TABLE scratch (id INT)",
            "INSERT INTO scratch VALUES (1)",
            "DROP TEMPORARY TABLE scratch",
        ],
        &["Standalone: "],
    ),
    step(
        &["DROP TABLE noted, m"],
        &["Standalone: m noted definitions"],
    ),
];

/// XA transactions as 5.7 and later log them.
pub(crate) const XA: &[Step] = &[
    step(
        &[
            "XA START 'x', 'branch', 7",
            "INSERT INTO parent VALUES (40, 'x')",
            "XA END 'x', 'branch', 7",
        ],
        &[],
    ),
    step(&["XA PREPARE 'x', 'branch', 7"], &["XaPrepare: parent"]),
    step(&["XA COMMIT 'x', 'branch', 7"], &["XaEnd: parent"]),
    step(
        &[
            "XA START 'x', 'branch', 7",
            "INSERT INTO child VALUES (40, 40)",
            "XA END 'x', 'branch', 7",
            "XA PREPARE 'x', 'branch', 7",
            "XA ROLLBACK 'x', 'branch', 7",
        ],
        &["XaPrepare: child", "XaEnd: child"],
    ),
    step(
        &[
            "XA START 'y'",
            "INSERT INTO parent VALUES (42, 'y')",
            "XA END 'y'",
            "XA COMMIT 'y' ONE PHASE",
        ],
        &["XaOnePhase: parent"],
    ),
];

/// What 8.0 writes in its own ways.
pub(crate) const OF_8_0: &[Step] = &[
    step(
        &[
            "CREATE TEMPORARY TABLE scratch (id INT)",
            "INSERT INTO scratch VALUES (1)",
            "DROP TEMPORARY TABLE scratch",
        ],
        &[],
    ),
    step(
        &["DROP TABLE noted, m"],
        &["Standalone: m definitions", "Standalone: noted definitions"],
    ),
    step(
        &[
            "XA START 'w'",
            "INSERT INTO child VALUES (41, 40)",
            "XA END 'w'",
            "XA PREPARE 'w'",
            "INSERT INTO parent VALUES (41, 'between')",
            "XA COMMIT 'w'",
        ],
        &["XaPrepare: child", "Transaction: parent", "XaEnd: child"],
    ),
    step(
        &["CREATE TABLE copied AS SELECT * FROM parent"],
        &["Transaction: copied definitions"],
    ),
    step(
        &["CREATE TABLE doc (id INT PRIMARY KEY, j JSON)"],
        &["Standalone: doc definitions"],
    ),
    step(
        &["INSERT INTO doc VALUES (1, JSON_OBJECT('a', REPEAT('x', 200), 'b', 1))"],
        &["Transaction: doc"],
    ),
    step(
        &[
            "SET SESSION binlog_row_value_options = PARTIAL_JSON",
            "UPDATE doc SET j = JSON_SET(j, '$.b', 2)",
            "SET SESSION binlog_row_value_options = ''",
        ],
        &["Transaction: doc"],
    ),
    step(
        &[
            "SET SESSION binlog_transaction_compression = ON",
            "INSERT INTO parent VALUES (50, 'compressed')",
        ],
        &["Transaction: parent"],
    ),
    step(
        &[
            "BEGIN",
            "INSERT INTO parent VALUES (51, REPEAT('c', 200))",
            "SAVEPOINT s1",
            "UPDATE doc SET id = 2",
            "INSERT INTO child VALUES (51, 51)",
            "ROLLBACK TO s1",
            "DELETE FROM doc",
            "COMMIT",
        ],
        &["Transaction: doc parent"],
    ),
    step(
        &[
            "XA START 'z'",
            "INSERT INTO parent VALUES (52, 'z')",
            "XA END 'z'",
            "XA PREPARE 'z'",
            "XA COMMIT 'z'",
        ],
        &["XaPrepare: parent", "XaEnd: parent"],
    ),
    step(
        &[
            "XA START 'z'",
            "INSERT INTO child VALUES (53, 52)",
            "XA END 'z'",
            "XA COMMIT 'z' ONE PHASE",
        ],
        &["XaOnePhase: child"],
    ),
    step(
        &[
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO parent VALUES (60, 'statement')",
            "SET SESSION binlog_format = ROW",
        ],
        &["Transaction: * definitions accounts"],
    ),
    step(
        &["ALTER TABLE doc ADD COLUMN c INT"],
        &["Standalone: doc definitions"],
    ),
    step(&["SET SESSION binlog_transaction_compression = OFF"], &[]),
];
