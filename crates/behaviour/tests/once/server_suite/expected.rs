//! What differs between the server's own cache and Remora in the server's own tests, and why.

use super::output::Differences;

/// A test file.
pub struct File {
    /// Its path in the package's folder.
    pub name: &'static str,
    /// How many statements are compared, and how many counters are read: fewer, if a script ends
    /// early on both sides.
    pub compared: (usize, usize),
    /// Whether the first session begins anew when tables are dropped.
    pub begins_anew: bool,
    /// Lines that aren't run, first and last, and why.
    pub skipped: &'static [(usize, usize, &'static str)],
    /// Lines whose statements print something else, and why.
    pub outputs: &'static [(usize, &'static str)],
    /// Lines at which a counter grows otherwise: the line, the counter without `Qcache_`, its
    /// growth since it was last shown on the server and through Remora, and why: a reason of
    /// docs/reasons.md that was counted meanwhile, or words.
    pub growths: &'static [(usize, &'static str, i64, i64, &'static str)],
}

/// What is not as expected.
pub fn unexpected(file: &File, differences: &Differences) -> Vec<String> {
    let mut failures: Vec<String> = Vec::new();
    let compared = (differences.statements, differences.counters);
    if compared != file.compared {
        failures.push(format!(
            "{}: compared {compared:?} statements and counters",
            file.name
        ));
    }
    for (line, ..) in &differences.outputs {
        let is_expected = |(known, _): &(usize, &str)| known.to_string() == *line;
        if !file.outputs.iter().any(is_expected) {
            failures.push(format!("{}:{line}: other output", file.name));
        }
    }
    let mut missing: Vec<_> = file.growths.iter().collect();
    for growth in &differences.growths {
        let at = missing
            .iter()
            .position(|(line, counter, server, remora, _)| {
                (*line, *counter, *server, *remora)
                    == (
                        growth.line,
                        growth.counter.as_str(),
                        growth.server,
                        growth.remora,
                    )
            });
        match at {
            Some(at) => drop(missing.remove(at)),
            None => failures.push(format!("{}: {growth:?}", file.name)),
        }
    }
    for (line, counter, ..) in missing {
        failures.push(format!(
            "{}:{line}: {counter} is as on the server",
            file.name
        ));
    }
    failures
}

const NAME: &str =
    "statement_table_name: a name beyond ASCII may not be told apart as the server does";
const EXECUTE: &str = "write: what EXECUTE runs isn't kept, nor is the first read after it served";
const PROCEDURE: &str =
    "write: what a procedure reads isn't kept, nor is the first read after CALL served";
const ENGINE: &str = "table_engine, table_visible_late: MERGE and MyISAM tables";
const DROPS_ALL: &str = "DROP DATABASE drops everything, on the server what was of its tables";
const COUNTED_ROWS: &str =
    "a result of SQL_CALC_FOUND_ROWS with LIMIT is served only with its count";
const TEMPORARY: &str = "temporary_tables: a session that has one passes through";

/// The files that are run.
pub const FILES: &[File] = &[
    File {
        name: "main/query_cache_innodb.test",
        compared: (31, 4),
        begins_anew: false,
        skipped: &[],
        outputs: &[],
        growths: &[
            (49, "queries_in_cache", 1, 0, NAME),
            (52, "queries_in_cache", -1, 0, NAME),
        ],
    },
    File {
        name: "main/query_cache_with_views.test",
        compared: (102, 39),
        begins_anew: false,
        skipped: &[],
        outputs: &[],
        growths: &[],
    },
    File {
        name: "main/query_cache_28249.test",
        compared: (37, 0),
        begins_anew: false,
        skipped: &[],
        outputs: &[],
        growths: &[],
    },
    File {
        name: "main/query_cache_partition.test",
        compared: (5, 0),
        begins_anew: false,
        skipped: &[],
        outputs: &[],
        growths: &[],
    },
    File {
        name: "include/query_cache_sql_prepare.inc",
        compared: (227, 59),
        begins_anew: false,
        skipped: &[],
        outputs: &[],
        growths: &[
            (46, "hits", 1, 0, EXECUTE),
            (48, "hits", 1, 0, EXECUTE),
            (52, "hits", 1, 0, EXECUTE),
            (54, "hits", 1, 0, EXECUTE),
            (56, "hits", 1, 0, EXECUTE),
            (61, "hits", 1, 0, EXECUTE),
            (63, "hits", 1, 0, EXECUTE),
            (65, "hits", 1, 0, EXECUTE),
            (87, "hits", 1, 0, EXECUTE),
            (89, "hits", 1, 0, EXECUTE),
            (92, "hits", 1, 0, EXECUTE),
            (106, "hits", 1, 0, EXECUTE),
            (109, "hits", 1, 0, EXECUTE),
            (121, "hits", 1, 0, EXECUTE),
            (126, "hits", 1, 0, EXECUTE),
            (154, "hits", 1, 0, EXECUTE),
            (156, "hits", 1, 0, EXECUTE),
            (158, "hits", 1, 0, EXECUTE),
            (163, "hits", 1, 0, EXECUTE),
            (165, "hits", 1, 0, EXECUTE),
            (167, "hits", 1, 0, EXECUTE),
            (178, "hits", 1, 0, EXECUTE),
            (180, "hits", 1, 0, EXECUTE),
            (182, "hits", 1, 0, EXECUTE),
            (186, "hits", 1, 0, EXECUTE),
            (188, "hits", 1, 0, EXECUTE),
            (190, "hits", 1, 0, EXECUTE),
            (199, "hits", 1, 0, EXECUTE),
            (201, "hits", 1, 0, EXECUTE),
            (203, "hits", 1, 0, EXECUTE),
            (207, "hits", 1, 0, EXECUTE),
            (209, "hits", 1, 0, EXECUTE),
            (211, "hits", 1, 0, EXECUTE),
            (225, "hits", 1, 0, EXECUTE),
            (227, "hits", 1, 0, EXECUTE),
            (229, "hits", 1, 0, EXECUTE),
            (234, "hits", 1, 0, EXECUTE),
            (236, "hits", 1, 0, EXECUTE),
            (238, "hits", 1, 0, EXECUTE),
            (249, "hits", 1, 0, EXECUTE),
            (255, "hits", 1, 0, EXECUTE),
            (503, "hits", 2, 0, EXECUTE),
            (504, "queries_in_cache", 1, 0, EXECUTE),
        ],
    },
    File {
        name: "main/query_cache_notembedded.test",
        compared: (142, 15),
        begins_anew: true,
        skipped: &[
            (201, 248, "SLEEP() in a trigger"),
            (252, 367, "accounts of localhost, and counting of sessions"),
        ],
        outputs: &[],
        growths: &[
            (148, "queries_in_cache", 3, 0, PROCEDURE),
            (149, "inserts", 3, 0, PROCEDURE),
            (154, "hits", 3, 0, PROCEDURE),
            (157, "queries_in_cache", 1, 0, PROCEDURE),
            (158, "inserts", 1, 0, PROCEDURE),
            (159, "hits", 3, 0, PROCEDURE),
            (162, "queries_in_cache", -3, 0, PROCEDURE),
            (163, "inserts", 1, 0, PROCEDURE),
            (168, "queries_in_cache", 3, 0, PROCEDURE),
            (169, "inserts", 3, 0, PROCEDURE),
            (170, "hits", 4, 0, PROCEDURE),
        ],
    },
    File {
        name: "main/query_cache.test",
        compared: (384, 70),
        begins_anew: true,
        skipped: &[
            (283, 303, "INSERT DELAYED"),
            (441, 450, "files on the server"),
            (
                629,
                1957,
                "sections of which most set the size of the cache or sleep",
            ),
        ],
        outputs: &[],
        growths: &[
            (65, "hits", 1, 0, ENGINE),
            (66, "queries_in_cache", 1, 0, ENGINE),
            (68, "queries_in_cache", -1, 0, ENGINE),
            (71, "hits", 1, 0, ENGINE),
            (72, "queries_in_cache", 1, 0, ENGINE),
            (74, "queries_in_cache", -1, 0, ENGINE),
            (77, "queries_in_cache", 1, 0, ENGINE),
            (79, "queries_in_cache", -1, 0, ENGINE),
            (81, "queries_in_cache", 1, 0, ENGINE),
            (83, "queries_in_cache", -1, 0, ENGINE),
            (86, "queries_in_cache", 1, 0, ENGINE),
            (88, "queries_in_cache", -1, 0, ENGINE),
            (90, "queries_in_cache", 1, 0, ENGINE),
            (92, "queries_in_cache", -1, 0, ENGINE),
            (215, "queries_in_cache", -2, -3, DROPS_ALL),
            (228, "queries_in_cache", 1, 2, DROPS_ALL),
            (277, "hits", 1, 0, COUNTED_ROWS),
            (382, "queries_in_cache", 1, 0, TEMPORARY),
            (395, "queries_in_cache", -2, -1, TEMPORARY),
        ],
    },
];
