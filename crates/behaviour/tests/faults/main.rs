//! Whatever happens to the server, its log or the connections: no stale read, and caching goes on
//! by itself.
//!
//! Servers: every
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_testkit::servers::Kind;
use remora_wire::packet::put_message;

use remora_behaviour::world::{LAG, LAG_MS_MAX, PATIENCE, World};

#[test]
fn a_killed_server_is_followed_again() {
    let mut world = World::new();
    let report = world.under_load(|world| {
        for round in 1..=3 {
            world.server.crash().unwrap();
            world.server.start_again().unwrap();
            world.wait_for_hits();
            let restarts = world.forgotten("server_restarted") + world.forgotten("log_changed");
            assert!(restarts >= f64::from(round), "a crash may lose commits");
        }
    });
    assert!(report.errors > 0);
}

#[test]
fn a_server_that_is_shut_down_and_started_is_followed_again() {
    let mut world = World::new();
    world.under_load(|world| {
        world.server.restart().unwrap();
        world.wait_for_hits();
    });
}

#[test]
fn a_killed_follower_goes_on_where_it_stopped() {
    let mut world = World::new();
    let mut forgotten = 0.0;
    world.under_load(|world| {
        forgotten = world.forgotten_at_all();
        for _ in 0..8 {
            world.cut_follower();
            world.wait_for_hits();
        }
        forgotten = world.forgotten_at_all() - forgotten;
    });
    assert!(
        forgotten < 0.5,
        "nothing had to be forgotten, but {forgotten} times it was"
    );
}

#[test]
fn a_log_that_goes_on_in_the_next_file_is_followed() {
    let mut world = World::new();
    let mut forgotten = 0.0;
    world.under_load(|world| {
        forgotten = world.forgotten_at_all();
        for _ in 0..4 {
            world.server.execute(["FLUSH BINARY LOGS"]).unwrap();
            world.wait_for_hits();
        }
        forgotten = world.forgotten_at_all() - forgotten;
    });
    assert!(
        forgotten < 0.5,
        "nothing had to be forgotten, but {forgotten} times it was"
    );
}

/// The server notes in the new file, some time after the first commits, that all is well with the
/// old one. That note moves its position, too, so that only a later commit shows what can be seen.
#[test]
fn caching_goes_on_with_the_next_commit_after_a_rotation() {
    let world = World::new();
    world
        .server
        .execute([
            "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)",
            "CREATE TABLE other (id INT AUTO_INCREMENT PRIMARY KEY)",
            "INSERT INTO t VALUES (1, 0)",
        ])
        .unwrap();
    let text = "SELECT value FROM t WHERE id = 1";
    let warm_while_committing = |world: &World| {
        let (mut client, truth) = (world.client(), world.truth(text));
        wait_for("a hit", PATIENCE, || {
            let before = world.hits();
            assert_eq!(client.query_bytes(text)?, truth);
            world.server.execute(["INSERT INTO other VALUES ()"])?;
            Ok((world.hits() > before).then_some(()))
        })
        .unwrap();
    };
    let (mut root, mut clients) = (world.server.root().unwrap(), [world.client()]);
    root.query("USE lab").unwrap();
    for _ in 0..5 {
        root.query("UPDATE t SET value = value + 1").unwrap();
        root.query("FLUSH BINARY LOGS").unwrap();
        root.query("UPDATE t SET value = value + 1").unwrap();
        world.expect_truth_soon(&mut clients, text, Instant::now());
        warm_while_committing(&world);
    }
    // One that begins to follow in the middle of such a file.
    let world = World::with_server(world.server);
    warm_while_committing(&world);
}

#[test]
fn a_log_purged_under_a_cut_follower_makes_it_forget() {
    let mut world = World::new();
    world.under_load(|world| {
        world.while_cut(|| {
            world.server.execute(["FLUSH BINARY LOGS"]).unwrap();
            let position = world.server.position().unwrap();
            let file = position.split(':').next().unwrap().to_owned();
            // A connection that is just ending may still hold the old file.
            wait_for("the purge", PATIENCE, || {
                world
                    .server
                    .execute([format!("PURGE BINARY LOGS TO '{file}'")])?;
                let mut root = world.server.root()?;
                let files = root.query("SHOW BINARY LOGS")?.rows()?.len();
                Ok((files == 1).then_some(()))
            })
            .unwrap();
        });
        assert!(world.forgotten("log_purged") > 0.5);
    });
}

#[test]
fn a_reset_log_makes_it_forget() {
    let mut world = World::new();
    world.under_load(|world| {
        for _ in 0..5 {
            world.server.execute(["RESET MASTER"]).unwrap();
            world.wait_for_hits();
        }
    });
}

#[test]
fn a_log_reset_and_grown_again_under_a_cut_follower_makes_it_forget() {
    let mut world = World::new();
    world.under_load(|world| {
        let before = world.forgotten_at_all();
        let length = |world: &World| -> u64 {
            let position = world.server.position().unwrap();
            position.rsplit(':').next().unwrap().parse().unwrap()
        };
        world.while_cut(|| {
            let old = length(world);
            world.server.execute(["RESET MASTER"]).unwrap();
            world
                .server
                .execute(["CREATE TABLE IF NOT EXISTS filler (a TEXT)"])
                .unwrap();
            while length(world) <= old {
                world
                    .server
                    .execute(["INSERT INTO filler VALUES (REPEAT('x', 20000))"])
                    .unwrap();
            }
        });
        assert!(world.forgotten_at_all() > before);
    });
}

/// The position never seems to go back, as nobody asks while the log is short.
#[test]
fn a_log_reset_and_grown_again_at_once_is_noticed() {
    let world = World::new();
    world
        .server
        .execute([
            "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)",
            "INSERT INTO t VALUES (1, 0)",
            "CREATE TABLE filler (a LONGTEXT)",
        ])
        .unwrap();
    let text = "SELECT value FROM t WHERE id = 1";
    let mut clients = [world.client(), world.client()];
    let mut root = world.server.root().unwrap();
    root.query("USE lab").unwrap();
    for round in 1..=5 {
        world.warm(&[text]);
        root.query("RESET MASTER").unwrap();
        root.query(&format!(
            "INSERT INTO filler VALUES (REPEAT('x', {}))",
            round * 100_000
        ))
        .unwrap();
        root.query(&format!("UPDATE t SET value = {round} WHERE id = 1"))
            .unwrap();
        world.expect_truth_soon(&mut clients, text, Instant::now());
    }
    world.warm(&[text]);
}

#[test]
fn a_server_with_other_contents_is_not_taken_for_the_old_one() {
    let mut world = World::new();
    let text = "SELECT value FROM t WHERE id = 1";
    for round in 0..3 {
        let rows = format!("INSERT INTO t VALUES (1, {round})");
        let mut setup = world.direct();
        setup
            .query("CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)")
            .unwrap();
        setup.query(&rows).unwrap();
        drop(setup);
        // As soon as there is a table, whatever state Remora is in.
        world.expect_truth_now(&mut [world.client()], text);
        world.warm(&[text]);
        // A log file is told from another of its name by the second in which it was begun, besides
        // by its events, which are alike here.
        wait_for("another second", PATIENCE, || {
            let rows = world
                .direct()
                .query("SHOW GLOBAL STATUS LIKE 'Uptime'")?
                .rows()?;
            let seconds = String::from_utf8(rows[0][1].clone().unwrap_or_default())?;
            Ok((seconds.parse::<u64>()? >= 2).then_some(()))
        })
        .unwrap();
        world.server.restart_with_other_contents().unwrap();
        let mut client = wait_for("the new server", PATIENCE, || {
            Ok(world.through().connect().ok())
        })
        .unwrap();
        let missing = client.query(text).map(drop).unwrap_err();
        assert_eq!(missing.code(), Some(1146), "{missing}");
    }
    world.remora.wait_until_caching().unwrap();
}

/// A reader that notes when it sent each question, and when it had the answer.
fn read_until_told(client: &mut Client, text: &str, over: &AtomicBool) -> Vec<[Instant; 2]> {
    let mut reads = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let sent_at = Instant::now();
        client.query(text).unwrap();
        reads.push([sent_at, Instant::now()]);
    }
    reads
}

#[test]
fn hits_stop_when_the_server_does_not_answer() {
    let world = World::new();
    world
        .server
        .execute([
            "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)",
            "INSERT INTO t VALUES (1, 0)",
        ])
        .unwrap();
    let text = "SELECT value FROM t WHERE id = 1";
    let (mut direct, mut clients) = (world.direct(), [world.client(), world.client()]);
    // Shorter and longer than the follower waits for a sign of life.
    for (round, frozen) in [600, 1_500, 2_500].into_iter().enumerate() {
        world.warm(&[text]);
        let over = AtomicBool::new(false);
        let mut reader = world.client();
        reader.query(text).unwrap();
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| read_until_told(&mut reader, text, &over));
            world.wait_for_hits();
            world.server.freeze().unwrap();
            let frozen_at = Instant::now();
            // The time that the server stands still is the condition here.
            std::thread::sleep(Duration::from_millis(frozen));
            let thawed_at = Instant::now();
            world.server.thaw().unwrap();
            over.store(true, Ordering::SeqCst);
            let reads = reading.join().unwrap();
            // Memory has answered these. One that is sent in time may be answered late.
            let hits = reads.iter().filter(|[_, answered]| *answered < thawed_at);
            let last = hits.map(|[sent, _]| sent).max().unwrap();
            let last = last.saturating_duration_since(frozen_at);
            println!("frozen for {frozen} ms: hits for {} ms", last.as_millis());
            assert!(last <= LAG, "{last:?}");
        });
        direct
            .query(&format!("UPDATE t SET value = {round} + 1 WHERE id = 1"))
            .unwrap();
        world.expect_truth_soon(&mut clients, text, Instant::now());
    }
    world.warm(&[text]);
    assert!(world.hits() > 0.0 && LAG_MS_MAX > 0);
}

/// What is done to a table, and what is asked before and after.
const DEFINITIONS: [(&str, &str); 10] = [
    (
        "ALTER TABLE a ADD COLUMN more INT DEFAULT 7",
        "SELECT * FROM a",
    ),
    ("ALTER TABLE a DROP COLUMN more", "SELECT * FROM a"),
    (
        "ALTER TABLE a MODIFY value VARCHAR(20)",
        "SELECT value FROM a WHERE id = 1",
    ),
    (
        "ALTER TABLE a RENAME COLUMN value TO old_value, ADD COLUMN value INT DEFAULT 5",
        "SELECT value FROM a WHERE id = 1",
    ),
    ("RENAME TABLE a TO c, b TO a, c TO b", "SELECT * FROM a"),
    ("ALTER TABLE b RENAME TO c", "SELECT COUNT(*) FROM b"),
    ("ALTER TABLE c RENAME TO b", "SELECT COUNT(*) FROM b"),
    ("TRUNCATE TABLE a", "SELECT COUNT(*) FROM a"),
    ("DROP TABLE a", "SELECT COUNT(*) FROM a"),
    (
        "CREATE TABLE a (id INT PRIMARY KEY, value TEXT, third INT)",
        "SELECT * FROM a",
    ),
];

/// What goes on with it where tables can be replaced.
const ONLY_MARIADB: [(&str, &str); 4] = [
    (
        "CREATE OR REPLACE TABLE a (id BIGINT, value INT)",
        "SELECT * FROM a",
    ),
    (
        "CREATE OR REPLACE TABLE a AS SELECT id, id * 2 AS value FROM b",
        "SELECT SUM(value) FROM a",
    ),
    (
        "CREATE OR REPLACE TABLE a AS SELECT id, 'x' AS value FROM b",
        "SELECT * FROM a",
    ),
    ("DROP TABLE a, b", "SELECT COUNT(*) FROM a"),
];

/// And where they can't.
const ONLY_MYSQL: [(&str, &str); 6] = [
    ("DROP TABLE a", "SELECT COUNT(*) FROM a"),
    ("CREATE TABLE a LIKE b", "SELECT COUNT(*) FROM a"),
    ("INSERT INTO a SELECT * FROM b", "SELECT * FROM a"),
    ("ALTER TABLE a ENGINE=MEMORY", "SELECT * FROM a"),
    ("ALTER TABLE b ADD INDEX (id)", "SELECT * FROM b"),
    ("DROP TABLE a, b", "SELECT COUNT(*) FROM a"),
];

fn definitions(is_through: bool) {
    let world = World::new();
    world
        .server
        .execute([
            "CREATE TABLE a (id INT PRIMARY KEY, value INT) ENGINE=InnoDB",
            "CREATE TABLE b (id INT PRIMARY KEY, value TEXT, other TEXT) ENGINE=InnoDB",
            "INSERT INTO a VALUES (1, 10), (2, 20)",
            "INSERT INTO b VALUES (1, 'b', 'other')",
        ])
        .unwrap();
    let mut writer = if is_through {
        world.client()
    } else {
        world.direct()
    };
    let mut clients = [world.client(), world.client()];
    let kind = world.server.kind();
    let further = if kind.is_mysql() {
        &ONLY_MYSQL[..]
    } else {
        &ONLY_MARIADB[..]
    };
    for (definition, text) in DEFINITIONS.iter().chain(further) {
        // Without RENAME COLUMN.
        let definition = match kind {
            Kind::MySql57 | Kind::MySql56 => {
                definition.replace("RENAME COLUMN value TO old_value", "DROP COLUMN value")
            }
            _ => (*definition).to_owned(),
        };
        let truth = world.truth(text);
        if is_result(&truth) {
            world.warm(&[text]);
        }
        writer
            .query(&definition)
            .unwrap_or_else(|error| panic!("{definition}: {error}"));
        if is_through {
            world.expect_truth_now(&mut clients, text);
        } else {
            world.expect_truth_soon(&mut clients, text, Instant::now());
        }
        if is_result(&world.truth(text)) {
            world.warm(&[text]);
        }
    }
}

fn is_result(answer: &[u8]) -> bool {
    answer.get(4) != Some(&0xff)
}

#[test]
fn definitions_changed_through_remora_are_seen_at_once() {
    definitions(true);
}

#[test]
fn definitions_changed_elsewhere_are_seen() {
    definitions(false);
}

#[test]
fn statements_logged_as_text_are_seen() {
    let world = World::new();
    world
        .server
        .execute([
            "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)",
            "CREATE TABLE mirror (id INT PRIMARY KEY, value BIGINT)",
            "CREATE TRIGGER m AFTER UPDATE ON t FOR EACH ROW UPDATE mirror SET value = NEW.value WHERE id = NEW.id",
            "INSERT INTO t VALUES (1, 0)",
            "INSERT INTO mirror VALUES (1, 0)",
        ])
        .unwrap();
    let texts = [
        "SELECT value FROM t WHERE id = 1",
        "SELECT value FROM mirror WHERE id = 1",
    ];
    let mut clients = [world.client(), world.client()];
    for (is_through, format) in [
        (false, "STATEMENT"),
        (false, "MIXED"),
        (true, "STATEMENT"),
        (true, "MIXED"),
    ] {
        let mut writer = if is_through {
            world.client()
        } else {
            world.direct()
        };
        writer
            .query(&format!("SET binlog_format = {format}"))
            .unwrap();
        for _ in 0..4 {
            world.warm(&texts);
            writer.query("UPDATE t SET value = value + 1").unwrap();
            let answered_at = Instant::now();
            for text in texts {
                if is_through {
                    world.expect_truth_now(&mut clients, text);
                } else {
                    world.expect_truth_soon(&mut clients, text, answered_at);
                }
            }
        }
    }
}

#[test]
fn writes_through_remora_that_are_not_logged_are_seen_at_once() {
    let world = World::new();
    world
        .server
        .execute([
            "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)",
            "INSERT INTO t VALUES (1, 0)",
        ])
        .unwrap();
    let text = "SELECT * FROM t WHERE id = 1";
    let mut clients = [world.client(), world.client()];
    let update = "UPDATE t SET value = value + 1";
    for statements in [
        vec!["SET sql_log_bin = 0", update],
        vec!["SET SESSION sql_log_bin = OFF", "BEGIN", update, "COMMIT"],
        vec![
            "SET @@sql_log_bin = 0",
            "SET autocommit = 0",
            update,
            "SET autocommit = 1",
        ],
        vec!["SET sql_log_bin = 0; UPDATE t SET value = value + 1"],
        vec![
            "SET sql_log_bin = 0",
            "ALTER TABLE t ADD COLUMN unlogged INT DEFAULT 3",
        ],
        vec!["SET sql_log_bin = 0", "ALTER TABLE t DROP COLUMN unlogged"],
        vec![
            "SET sql_log_bin = 0",
            "PREPARE s FROM 'UPDATE t SET value = value + 1'",
            "EXECUTE s",
        ],
        vec!["SET STATEMENT sql_log_bin = 0 FOR UPDATE t SET value = value + 1"],
    ] {
        world.warm(&[text]);
        let mut writer = world.client();
        for statement in &statements {
            // Some servers refuse some forms; what counts is that nothing stale follows.
            if let Err(error) = writer.query(statement) {
                println!("{statement}: {error}");
            }
        }
        world.expect_truth_now(&mut clients, text);
        world.warm(&[text]);
    }
}

fn account(world: &World, name: &str) -> (Client, Client) {
    let (mut direct, mut through) = (world.server.app(), world.through());
    for options in [&mut direct, &mut through] {
        name.clone_into(&mut options.user);
        "secret".clone_into(&mut options.password);
    }
    (direct.connect().unwrap(), through.connect().unwrap())
}

#[test]
fn rights_that_are_taken_away_are_gone() {
    let world = World::new();
    let identified = world.server.kind().identified_by("secret");
    world
        .server
        .execute([
            "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)",
            "INSERT INTO t VALUES (1, 0)",
            "CREATE TABLE elsewhere (a INT)",
            &format!("CREATE USER alice@'%' {identified}"),
            &format!("CREATE USER bob@'%' {identified}"),
            "GRANT SELECT ON lab.elsewhere TO alice@'%'",
            "GRANT SELECT ON lab.* TO bob@'%'",
        ])
        .unwrap();
    let text = "SELECT value FROM t WHERE id = 1";
    for is_through in [true, false, true] {
        let mut admin = if is_through {
            world.client()
        } else {
            world.direct()
        };
        admin.query("GRANT SELECT ON lab.t TO alice@'%'").unwrap();
        let granted_at = Instant::now();
        let (mut alice_direct, mut alice) = account(&world, "alice");
        let (_, mut bob) = account(&world, "bob");
        let truth = alice_direct.query_bytes(text).unwrap().to_vec();
        assert!(is_result(&truth), "{truth:?}");
        world.expect_truth_soon(std::slice::from_mut(&mut alice), text, granted_at);
        world.expect_hit(&mut alice, text, &truth);
        world.expect_hit(&mut bob, text, &truth);
        admin
            .query("REVOKE SELECT ON lab.t FROM alice@'%'")
            .unwrap();
        let revoked_at = Instant::now();
        let refused = alice_direct.query_bytes(text).unwrap().to_vec();
        assert!(!is_result(&refused));
        loop {
            let may_lag = !is_through && revoked_at.elapsed() <= LAG;
            if alice.query_bytes(text).unwrap() == refused {
                break;
            }
            assert!(may_lag, "alice still reads");
        }
        if !is_through {
            // The server may have refused her while her result was only not served.
            world.catch_up();
        }
        // What bob has in memory is his own.
        world.expect_hit(&mut bob, text, &truth);
        assert_eq!(alice.query_bytes(text).unwrap(), refused);
        let (_, mut alice_again) = account(&world, "alice");
        assert_eq!(alice_again.query_bytes(text).unwrap(), refused);
    }
}

/// The client is gone before it could hear of its commit.
#[test]
fn a_commit_of_a_client_that_has_left_is_seen() {
    let world = World::new();
    world
        .server
        .execute([
            "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT)",
            "INSERT INTO t VALUES (1, 0)",
        ])
        .unwrap();
    let text = "SELECT value FROM t WHERE id = 1";
    let mut clients = [world.client(), world.client()];
    let mut direct = world.direct();
    for round in 1..=30 {
        world.warm(&[text]);
        let update = format!("UPDATE t SET value = {round} WHERE id = 1");
        let mut writer = world.client();
        let last_words = if round % 2 == 0 {
            writer.query("BEGIN").unwrap();
            writer.query(&update).unwrap();
            "COMMIT"
        } else {
            update.as_str()
        };
        let mut message = Vec::new();
        put_message(&mut message, 0, &[&[3], last_words.as_bytes()].concat());
        writer.stream().write_all(&message).unwrap();
        drop(writer);
        wait_for("the commit", PATIENCE, || {
            let value = direct.query_value(text)?;
            Ok((value == Some(round.to_string())).then_some(()))
        })
        .unwrap();
        world.expect_truth_soon(&mut clients, text, Instant::now());
    }
}
