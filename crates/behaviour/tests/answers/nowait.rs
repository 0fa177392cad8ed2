//! Statements that change a definition and don't wait for its lock.

use remora_testkit::client::{Client, ClientError};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_wire::response::ServerError;

use remora_behaviour::front::{Front, PATIENCE};

const ROUNDS: usize = 50;

/// In MEMORY, since InnoDB locks tables for its own purposes at times.
const STATEMENTS: [&str; 13] = [
    "CREATE TABLE t (a INT PRIMARY KEY) ENGINE = MEMORY",
    "INSERT INTO t VALUES (1)",
    "ALTER TABLE t ADD b INT",
    "SELECT * FROM t",
    "ALTER TABLE t NOWAIT ADD c INT",
    "SELECT * FROM t",
    "SELECT a FROM t",
    "TRUNCATE TABLE t NOWAIT",
    "INSERT INTO t (a) VALUES (2)",
    "RENAME TABLE t NOWAIT TO u",
    "SELECT * FROM u",
    "CREATE INDEX i ON u (b) NOWAIT",
    "DROP TABLE u NOWAIT",
];

/// Runs a statement until nothing that it needs is locked.
fn until_not_locked(client: &mut Client, sql: &str) {
    wait_for(sql, PATIENCE, || match client.query(sql).map(drop) {
        Ok(()) => Ok(Some(())),
        Err(ClientError::Server(ServerError { code: 1205, .. })) => Ok(None),
        Err(error) => panic!("{sql}: {error}"),
    })
    .unwrap();
}

/// Remora asks about a table when a statement reads or writes it, and the server locks it then.
///
/// How often a statement is refused isn't compared: a server locks tables for its own purposes,
/// too, and refuses some that come directly. That nothing is asked about a table while its
/// definition changes is the catalogue's own test.
#[test]
fn definitions_change_without_waiting_as_they_do_directly() {
    let options = RemoraOptions::following().with("follow.definition_wait_ms", "60000");
    let front = Front::with("nowait", options, &[]);
    let kind = front.server().kind();
    if kind.skips(kind.is_mysql(), "it has no NOWAIT for definitions") {
        return;
    }
    let through = front.options().at(front.remora().address());
    for mut client in [front.direct(), through.connect().unwrap()] {
        client.query("SET lock_wait_timeout = 0").unwrap();
        for _ in 0..ROUNDS {
            for sql in STATEMENTS {
                match client.query(sql).map(drop) {
                    Ok(()) => {}
                    Err(ClientError::Server(ServerError { code: 1205, .. })) => {
                        // The next ones need what it was to make.
                        until_not_locked(&mut client, sql);
                    }
                    Err(error) => panic!("{sql}: {error}"),
                }
            }
        }
        let tables = client.query_value("SHOW TABLES").unwrap();
        assert_eq!(tables, None, "the last statement dropped it");
    }
}
