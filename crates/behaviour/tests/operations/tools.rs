//! Tools that operators have for the query cache find Remora's in the place of the server's.

use std::process::Command;

use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;

use remora_behaviour::front::Front;

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20)",
];

/// What a tool of Percona's toolkit prints when it is pointed at Remora; `None` if the tool isn't
/// installed.
fn run(front: &Front, tool: &str, arguments: &[&str]) -> Option<String> {
    let kind = Kind::from_environment().unwrap();
    let found = Command::new(tool).arg("--version").output();
    if kind.skips(
        found.is_err(),
        "Debian's package percona-toolkit is not installed",
    ) {
        return None;
    }
    let options = front.options();
    let output = Command::new(tool)
        .args(arguments)
        .args([
            "--host=127.0.0.1",
            "--user",
            &options.user,
            "--password",
            &options.password,
        ])
        .arg(format!("--port={}", front.remora().address().port()))
        // No file of whoever runs the test decides.
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(text)
}

/// A Remora with a size of its own, in which something was found.
fn front(schema: &str) -> Front {
    let options = RemoraOptions {
        memory_mib: Some(256),
        ..RemoraOptions::following()
    };
    let front = Front::with(schema, options, &TABLE);
    let expected = front
        .direct()
        .query_bytes("SELECT b FROM t")
        .unwrap()
        .to_vec();
    front.guest().becomes_hit("SELECT b FROM t", &expected);
    front
}

#[test]
fn pt_mysql_summary_shows_remoras_cache() {
    let front = front("summary");
    let Some(text) = run(&front, "pt-mysql-summary", &["--sleep=1"]) else {
        return;
    };
    let section = text.split_once("# Query cache #").unwrap().1;
    let section = section.split_once("\n# ").unwrap().0;
    let value = |name: &str| {
        let line = section
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {section}"))
            .rsplit('|')
            .next()
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(value("query_cache_type"), "ON");
    assert_eq!(value("Size"), "256.0M");
    assert_ne!(value("HitToInsertRatio"), "0%");
}

#[test]
fn pt_variable_advisor_knows_the_size_of_remoras_cache() {
    let front = front("advisor");
    if let Some(text) = run(&front, "pt-variable-advisor", &["127.0.0.1"]) {
        assert!(text.contains("query_cache_size-1"), "{text}");
    }
}
