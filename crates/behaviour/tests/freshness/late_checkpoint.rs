//! A log file whose checkpoint comes after its last commit: the position that MariaDB reports moves
//! with it, and says nothing of that commit any more.

use remora_behaviour::front::lease;
use remora_testkit::client::Client;
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{FOLLOW_USER, Kind, SCHEMA};

const READ: &str = "SELECT COUNT(*) FROM t";
const INSERT: &str = "INSERT INTO t VALUES (NULL)";
const CHECKPOINT: &str = "Binlog_checkpoint";
/// The server writes the checkpoint when InnoDB has synced what it logged: at once, or within a
/// second.
const ROUNDS_MAX: u32 = 50;

fn text(field: Option<&Option<Vec<u8>>>) -> String {
    let bytes = field.cloned().flatten().unwrap_or_default();
    String::from_utf8(bytes).unwrap()
}

/// Begins a log file, commits something in it, and waits for the checkpoint that says that all of
/// older files can be seen. Gives whether it came after the commit.
fn begin_file(root: &mut Client) -> bool {
    for statement in [INSERT, "FLUSH BINARY LOGS", INSERT] {
        root.query(statement).unwrap();
    }
    let rows = root.query("SHOW MASTER STATUS").unwrap().rows().unwrap();
    let file = text(rows[0].first());
    wait_for("the checkpoint", PATIENCE, || {
        let events = format!("SHOW BINLOG EVENTS IN '{file}'");
        let events = root.query(&events)?.rows()?;
        let is_it = |row: &Vec<_>| text(row.get(2)) == CHECKPOINT && text(row.get(5)) == file;
        let is_there = events.iter().any(is_it);
        Ok(is_there.then(|| events.last().is_some_and(is_it)))
    })
    .unwrap()
}

#[test]
fn what_changed_before_a_late_checkpoint_is_cached_though_nothing_commits_any_more() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(kind.is_mysql(), "it reports transactions, not positions") {
        return;
    }
    let server = lease();
    let grant = format!("GRANT PROCESS ON *.* TO {FOLLOW_USER}@'%'");
    let create = "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)";
    server.execute([&grant, create]).unwrap();
    let mut root = server.root().unwrap();
    root.query(&format!("USE {SCHEMA}")).unwrap();
    let mut round = 0;
    while !begin_file(&mut root) {
        round += 1;
        assert!(round < ROUNDS_MAX, "each checkpoint came before the commit");
    }
    let remora = InProcessRemora::start(&server, &RemoraOptions::following()).unwrap();
    let mut client = server.app().at(remora.address()).connect().unwrap();
    let expected = root.query_value(READ).unwrap();
    wait_for("a hit", PATIENCE, || {
        let hits = || anyhow::Ok(remora.metrics()?.sum("remora_hits_total"));
        let before = hits()?;
        assert_eq!(client.query_value(READ)?, expected);
        Ok((hits()? > before).then_some(()))
    })
    .unwrap();
}
