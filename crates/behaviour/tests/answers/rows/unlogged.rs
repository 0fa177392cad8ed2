//! Which tables of a commit aren't given by rows alone, and so can't be told apart row by row.

use std::collections::BTreeSet;

use remora_binlog::{CommitKind, DecoderLimits, LoggedTable, StreamDecoder, Touched, Transactions};
use remora_testkit::servers::{Kind, Server, ServerOptions};
use remora_upstream::logged::meaning;

use super::{MAGIC_BYTES, events};

const CHILD: &str = "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) \
                 ON DELETE CASCADE) ENGINE=InnoDB";
const TREE: &str = "CREATE TABLE tree (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES tree (id) \
                ON DELETE CASCADE) ENGINE=InnoDB";
const FOLLOWING: &str = "CREATE TABLE following (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) \
                     ON UPDATE CASCADE ON DELETE SET NULL) ENGINE=InnoDB";

/// Statements of which the last commits, and its tables: all, and those that aren't given by rows;
/// on MariaDB, on MySQL.
type Step = (&'static [&'static str], [(&'static str, &'static str); 2]);

const STEPS: &[Step] = &[
    (
        &[
            "USE lab",
            "CREATE TABLE parent (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        ],
        [("parent", "parent"); 2],
    ),
    (&[CHILD], [("child", "child"); 2]),
    (&[TREE], [("tree", "tree"); 2]),
    (
        &["INSERT INTO parent VALUES (1, 1), (2, 2)"],
        [("parent", ""); 2],
    ),
    (
        &["INSERT INTO child VALUES (1, 1), (2, 2)"],
        [("child", ""); 2],
    ),
    (
        &["INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2)"],
        [("tree", ""); 2],
    ),
    (
        &["DELETE FROM parent WHERE id = 1"],
        [("child parent", "child"), ("parent", "")],
    ),
    (
        &[
            "BEGIN",
            "UPDATE child SET id = 7 WHERE id = 2",
            "DELETE FROM parent WHERE id = 2",
            "COMMIT",
        ],
        [("child parent", "child"), ("child parent", "")],
    ),
    // MariaDB names a table twice if a cascade may reach it besides; MySQL's log doesn't tell.
    (
        &["DELETE FROM tree WHERE id = 3"],
        [("tree", "tree"), ("tree", "")],
    ),
    (
        &["REPLACE INTO tree VALUES (1, NULL)"],
        [("tree", "tree"), ("tree", "")],
    ),
    (
        &["INSERT INTO tree VALUES (2, 1), (3, 2)"],
        [("tree", ""); 2],
    ),
    (
        &["INSERT INTO tree VALUES (1, 1) ON DUPLICATE KEY UPDATE p = 1"],
        [("tree", ""); 2],
    ),
    (
        &["DELETE FROM tree WHERE id = 1"],
        [("tree", "tree"), ("tree", "")],
    ),
    (
        &[
            "INSERT INTO parent VALUES (3, 3)",
            "INSERT INTO child VALUES (3, 3), (4, 3)",
            "DELETE parent, child FROM child JOIN parent ON child.p = parent.id WHERE child.id = 3",
        ],
        [("child parent", "child"), ("child parent", "")],
    ),
    (&["TRUNCATE tree"], [("tree", "tree"); 2]),
    (&[FOLLOWING], [("following", "following"); 2]),
    (
        &[
            "INSERT INTO parent VALUES (5, 5)",
            "INSERT INTO following VALUES (1, 5)",
        ],
        [("following", ""); 2],
    ),
    (
        &["INSERT INTO parent VALUES (5, 5) ON DUPLICATE KEY UPDATE id = 6"],
        [("following parent", "following"), ("parent", "")],
    ),
    (
        &["UPDATE parent SET id = 7 WHERE id = 6"],
        [("following parent", "following"), ("parent", "")],
    ),
    (
        &["REPLACE INTO parent VALUES (7, 8)"],
        [
            ("child following parent", "child following"),
            ("parent", ""),
        ],
    ),
];

/// The last commit of the server's log: the tables that it touched, and those that aren't given by
/// rows alone.
fn last_commit(server: &Server) -> (String, String) {
    let directory = server.log_path().parent().unwrap().join("data");
    let log = std::fs::read(directory.join("binlog.000001")).unwrap();
    let limits = DecoderLimits::default();
    let mut decoder = StreamDecoder::new("binlog".into(), MAGIC_BYTES as u64, limits);
    let mut transactions = Transactions::new(16);
    let mut last = None;
    for event in events(&log) {
        let before = decoder.offset();
        let decoded = decoder.decode(event).unwrap();
        let commits = transactions.apply(&decoded, before, meaning);
        let commits = commits.into_iter().flatten();
        let mut commits = commits.filter(|commit| commit.kind != CommitKind::Progress);
        last = commits.next_back().or(last);
    }
    let commit = last.unwrap();
    let names = |tables: &BTreeSet<LoggedTable>| {
        let names: Vec<_> = tables.iter().map(|table| table.table.as_str()).collect();
        names.join(" ")
    };
    let touched = match &commit.touched {
        Touched::Everything => "*".to_owned(),
        Touched::Tables(tables) => names(tables),
    };
    // Cascades and triggers are told by name only.
    let untold = commit.unlogged.union(&commit.only_named);
    (touched, names(&untold.cloned().collect()))
}

#[test]
fn a_commit_says_which_tables_are_not_given_by_rows_alone() {
    let server = Server::start(ServerOptions::default()).unwrap();
    let is_mysql = server.kind().is_mysql();
    let mut client = server.root().unwrap();
    for (statements, expected) in STEPS {
        for statement in *statements {
            let answer = client.query(statement);
            answer.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let (touched, unlogged) = last_commit(&server);
        let expected = expected[usize::from(is_mysql)];
        let seen = (touched.as_str(), unlogged.as_str());
        assert_eq!(seen, expected, "{statements:?}");
    }
}

/// MariaDB's older temporal types have a fraction of which the log says nothing: `DATETIME(3)` has
/// 7 bytes, `DATETIME` 8, and both have the same type and no metadata.
#[test]
fn rows_whose_length_the_log_does_not_tell_are_not_read() {
    if Kind::from_environment().unwrap().is_mysql() {
        return;
    }
    let server = Server::start(ServerOptions {
        further: vec!["--mysql56-temporal-format=OFF".to_owned()],
        ..ServerOptions::default()
    })
    .unwrap();
    for definition in ["DATETIME(3)", "DATETIME", "TIME(2)", "TIMESTAMP(6) NULL"] {
        server
            .execute([
                "CREATE OR REPLACE TABLE old (id INT, at ".to_owned() + definition + ")",
                "INSERT INTO old VALUES (1, '2001-02-03 04:05:06.789')".to_owned(),
            ])
            .unwrap();
        let (touched, unlogged) = last_commit(&server);
        assert_eq!(
            (touched.as_str(), unlogged.as_str()),
            ("old", "old"),
            "{definition}"
        );
    }
}
