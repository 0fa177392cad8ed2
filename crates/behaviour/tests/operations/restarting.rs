//! What a restarted Remora still has in memory (`cache.state_file`), and what it hasn't.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use remora_cache::Position;
use remora_engine::reason::{RestartReason, StateOutcome};
use remora_testkit::client::{Client, Value};
use remora_testkit::late_rows::LateRows;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::scratch::Scratch;
use remora_testkit::semisync::Acknowledge;
use remora_testkit::servers::{Kind, Server};

use crate::lifecycle::start_long_statement;

use remora_behaviour::front::{Front, Guest, PATIENCE, lease};

const TABLES: [&str; 4] = [
    "CREATE TABLE item (id INT PRIMARY KEY, price INT, stock INT)",
    "INSERT INTO item VALUES (1, 10, 5), (2, 20, 5), (1000, 30, 5)",
    "CREATE TABLE shelf (id INT PRIMARY KEY, item_id INT)",
    "INSERT INTO shelf VALUES (1, 1), (2, 2)",
];
/// Reads that are narrowed by key, by range, by a join, and not at all.
const READS: [&str; 5] = [
    "SELECT price FROM item WHERE id = 1",
    "SELECT price FROM item WHERE id = 2",
    "SELECT SUM(price) FROM item WHERE id BETWEEN 1000 AND 1003",
    "SELECT shelf.id, item.price FROM shelf JOIN item ON item.id = item_id WHERE item_id = 2",
    "SELECT COUNT(*) FROM shelf",
];
const FIRST: &str = READS[0];
/// Limits that no pause of the machine shall reach, where a test sets none.
const UNHURRIED: [(&str, &str); 4] = [
    ("cache.state_age_ms_max", "3600000"),
    ("cache.state_read_ms_max", "3600000"),
    ("cache.state_write_ms_max", "3600000"),
    // For so long Remora waits at the stop until it is settled.
    ("follow.lag_ms_max", "60000"),
];

/// A state file, and a Remora that has it.
struct Restarting {
    front: Front,
    options: RemoraOptions,
    file: PathBuf,
    _scratch: Scratch,
}

impl Restarting {
    fn new(schema: &str) -> Restarting {
        Restarting::with(schema, RemoraOptions::storing_all())
    }

    fn with(schema: &str, options: RemoraOptions) -> Restarting {
        let scratch = Scratch::new().unwrap();
        let file = scratch.join("results");
        let mut options = options.with("cache.state_file", &file.display().to_string());
        for (limit, value) in UNHURRIED {
            if !options.set.iter().any(|(set, _)| set == limit) {
                options = options.with(limit, value);
            }
        }
        Restarting {
            front: Front::on(lease(), schema, options.clone(), &TABLES),
            options,
            file,
            _scratch: scratch,
        }
    }

    /// With these reads in memory.
    fn knowing(self, reads: &[&str]) -> Restarting {
        // Else what is read first may depend on whole tables: see `remora_cache::Shapes`.
        self.front.settle();
        let mut direct = self.front.direct();
        let mut guest = self.front.guest();
        for sql in reads {
            let expected = direct.query_bytes(sql).unwrap().to_vec();
            guest.becomes_hit(sql, &expected);
        }
        drop(guest);
        self
    }

    fn restarted(self, meanwhile: impl FnOnce(&Server, &Path)) -> Restarting {
        let options = self.options.clone();
        self.restarted_with(options, meanwhile)
    }

    fn restarted_with(
        self,
        options: RemoraOptions,
        meanwhile: impl FnOnce(&Server, &Path),
    ) -> Restarting {
        let file = &self.file;
        let front = self
            .front
            .restarted(options.clone(), |server| meanwhile(server, file));
        assert!(!file.exists(), "it is taken once");
        Restarting {
            front,
            options,
            ..self
        }
    }

    fn outcome(&self) -> Option<StateOutcome> {
        self.front
            .remora()
            .app()
            .unwrap()
            .shared()
            .restored
            .outcome()
    }

    /// How far Remora has followed the log.
    fn applied(&self) -> Position {
        let shared = self.front.remora().app().unwrap().shared();
        shared.timeline.applied()
    }

    /// What the server gives for a read, and what came of it in Remora.
    fn asked(&self, guest: &mut Guest<'_>, sql: &str) -> &'static str {
        let expected = self.front.direct().query_bytes(sql).unwrap().to_vec();
        let seen = guest.run(sql);
        assert_eq!(seen.bytes, expected, "{sql}");
        seen.outcome
    }

    /// None of these reads is in memory.
    fn has_none(&self, reads: &[&str]) {
        let hits = self.front.hits();
        let mut guest = self.front.guest();
        for sql in reads {
            self.asked(&mut guest, sql);
        }
        assert_eq!(self.front.hits(), hits);
    }

    fn still_has(&self, guest: &mut Guest<'_>, reads: &[&str]) {
        for sql in reads {
            let expected = self.front.direct().query_bytes(sql).unwrap().to_vec();
            guest.still_hits(sql, &expected);
        }
    }
}

#[test]
fn what_was_in_memory_is_in_memory_again() {
    let restarting = Restarting::new("back")
        .knowing(&READS)
        .restarted(|_, file| {
            let mode = fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "as private as the data");
        });
    assert_eq!(restarting.outcome(), Some(StateOutcome::Restored));
    let metrics = restarting.front.remora().metrics().unwrap();
    assert!(metrics.sum("remora_state_results") > 4.5);
    assert!(metrics.sum_where("remora_state_file", "outcome", "restored") > 0.5);
    restarting.still_has(&mut restarting.front.guest(), &READS);
    let digests = restarting
        .front
        .remora()
        .app()
        .unwrap()
        .shared()
        .digests
        .report();
    let by_key = "SELECT price FROM item WHERE id = ?";
    let by_key = digests
        .iter()
        .find(|digest| digest.text.as_deref() == Some(by_key));
    assert_eq!(by_key.map(|digest| digest.hits), Some(2), "{digests:?}");
    // And again, of what was taken over.
    let restarting = restarting.restarted(|_, _| {});
    restarting.still_has(&mut restarting.front.guest(), &READS);
}

/// What comes of something until memory answers it.
fn until_hit(mut act: impl FnMut() -> &'static str) -> Vec<&'static str> {
    let mut outcomes = Vec::new();
    wait_for("a hit", PATIENCE, || {
        outcomes.push(act());
        Ok((outcomes.last() == Some(&"hit")).then_some(()))
    })
    .unwrap_or_else(|error| panic!("{error}: {outcomes:?}"));
    outcomes
}

#[test]
fn executions_and_reads_of_transactions_are_in_memory_again() {
    let execute_until_hit = |restarting: &Restarting| {
        let mut guest = restarting.front.guest();
        let sql = b"SELECT stock FROM item WHERE id = ?";
        let statement = guest.client().prepare(sql).unwrap();
        until_hit(|| {
            let run = |client: &mut Client| {
                client
                    .execute(statement, &[Value::Int(2)])
                    .map(drop)
                    .unwrap();
            };
            guest.observe(run).0
        })
    };
    let read_until_hit = |restarting: &Restarting| {
        let mut guest = restarting.front.guest();
        until_hit(|| {
            guest.setup(&["BEGIN"]);
            guest.run(FIRST);
            let second = guest.run("SELECT stock FROM item WHERE id = 2").outcome;
            guest.setup(&["COMMIT"]);
            second
        })
    };
    let restarting = Restarting::new("executed");
    execute_until_hit(&restarting);
    read_until_hit(&restarting);
    let restarting = restarting.restarted(|_, _| {});
    for outcomes in [execute_until_hit(&restarting), read_until_hit(&restarting)] {
        assert!(!outcomes.contains(&"fill"), "{outcomes:?}");
    }
}

#[test]
fn what_changed_meanwhile_is_asked_of_the_server() {
    let restarting = Restarting::new("meanwhile")
        .knowing(&READS)
        .restarted(|server, _| {
            server
                .execute([
                    "UPDATE meanwhile.item SET price = 11 WHERE id = 1",
                    "FLUSH BINARY LOGS",
                    "INSERT INTO meanwhile.shelf VALUES (3, 3)",
                    "FLUSH BINARY LOGS",
                ])
                .unwrap();
        });
    assert_eq!(restarting.outcome(), Some(StateOutcome::Restored));
    let mut guest = restarting.front.guest();
    // The row, the count, and the join, which reads rows of the shelf by item.
    assert_ne!(restarting.asked(&mut guest, READS[0]), "hit");
    assert_ne!(restarting.asked(&mut guest, READS[4]), "hit");
    restarting.still_has(&mut guest, &READS[1..4]);
}

#[test]
fn what_is_changed_afterwards_is_dropped_by_key_as_before() {
    let restarting = Restarting::new("afterwards")
        .knowing(&READS)
        .restarted(|_, _| {});
    let mut guest = restarting.front.guest();
    restarting.still_has(&mut guest, &READS);
    guest.setup(&["UPDATE item SET price = 12 WHERE id = 1"]);
    restarting.front.catch_up();
    assert_ne!(restarting.asked(&mut guest, READS[0]), "hit");
    restarting.still_has(&mut guest, &READS[1..]);
}

/// The server has nothing more to tell then, and the last event is no commit.
#[test]
fn a_log_that_is_quiet_since_it_was_rotated_goes_on() {
    let restarting = Restarting::new("quiet").knowing(&READS);
    let before = restarting.applied();
    let server = restarting.front.server();
    server.execute(["FLUSH BINARY LOGS"]).unwrap();
    wait_for("Remora to read the next file", PATIENCE, || {
        let is_there = restarting.applied().file_number() > before.file_number();
        Ok(is_there.then_some(()))
    })
    .unwrap();
    let restarting = restarting.restarted(|_, _| {});
    assert_eq!(restarting.outcome(), Some(StateOutcome::Restored));
    restarting.still_has(&mut restarting.front.guest(), &READS);
}

#[test]
fn a_change_of_a_definition_meanwhile_drops_what_was_read_of_the_table() {
    let restarting = Restarting::new("defined")
        .knowing(&READS)
        .restarted(|server, _| {
            let change = "ALTER TABLE defined.item MODIFY price BIGINT, ADD UNIQUE (price)";
            server.execute([change]).unwrap();
        });
    let mut guest = restarting.front.guest();
    for sql in &READS[..4] {
        assert_ne!(restarting.asked(&mut guest, sql), "hit", "{sql}");
    }
    restarting.still_has(&mut guest, &READS[4..]);
}

#[test]
fn what_a_change_of_privileges_may_forbid_is_not_in_memory_any_more() {
    let restarting = Restarting::new("privileged")
        .knowing(&READS)
        .restarted(|server, _| {
            let identified = server.kind().identified_by("anything");
            server
                .execute([format!("CREATE USER newcomer@localhost {identified}")])
                .unwrap();
            server.execute(["DROP USER newcomer@localhost"]).unwrap();
        });
    restarting.has_none(&READS);
}

/// What is done between the end and the start, and what the start says of the file.
fn not_taken_over(
    schema: &str,
    expected: StateOutcome,
    meanwhile: impl FnOnce(&Server, &Path),
) -> Restarting {
    let restarting = Restarting::new(schema).knowing(&READS).restarted(meanwhile);
    assert_eq!(restarting.outcome(), Some(expected));
    restarting.has_none(&READS);
    restarting
}

#[test]
fn a_file_that_is_gone_damaged_or_open_to_others_is_not_used() {
    let restarting = not_taken_over("gone", StateOutcome::NoFile, |_, file| {
        fs::remove_file(file).unwrap();
        // Killed while it wrote.
        fs::write(file.with_file_name("results.new"), "remora res").unwrap();
    });
    assert!(!restarting.file.with_file_name("results.new").exists());
    let restarting = restarting.knowing(&READS).restarted(|_, file| {
        let whole = fs::read(file).unwrap();
        fs::write(file, &whole[..whole.len() - 1]).unwrap();
    });
    assert_eq!(restarting.outcome(), Some(StateOutcome::Damaged));
    restarting.has_none(&READS);
    let restarting = restarting.knowing(&READS).restarted(|_, file| {
        let mut bytes = fs::read(file).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        fs::write(file, bytes).unwrap();
    });
    assert_eq!(restarting.outcome(), Some(StateOutcome::Damaged));
    restarting.has_none(&READS);
    let restarting = restarting.knowing(&READS).restarted(|_, file| {
        fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();
    });
    assert_eq!(restarting.outcome(), Some(StateOutcome::OpenToOthers));
    restarting.has_none(&READS);
}

#[test]
fn a_file_that_is_too_old_is_not_used() {
    let options = RemoraOptions::storing_all().with("cache.state_age_ms_max", "0");
    let restarting = Restarting::with("old", options)
        .knowing(&READS)
        .restarted(|_, _| {});
    assert_eq!(restarting.outcome(), Some(StateOutcome::TooOld));
    restarting.has_none(&READS);
}

#[test]
fn what_was_read_under_other_rules_is_not_used() {
    let restarting = Restarting::new("ruled").knowing(&READS);
    let rules = restarting.file.with_file_name("remora.toml");
    fs::write(&rules, "[[rules]]\ntable = \"ruled.item\"\ncache = false\n").unwrap();
    let options = restarting.options.clone().with_config(&rules);
    let restarting = restarting.restarted_with(options, |_, _| {});
    assert_eq!(restarting.outcome(), Some(StateOutcome::OtherRules));
    restarting.has_none(&READS);
}

#[test]
fn results_for_which_there_is_no_time_are_left_out() {
    for limit in ["cache.state_write_ms_max", "cache.state_read_ms_max"] {
        let options = RemoraOptions::storing_all().with(limit, "0");
        let restarting = Restarting::with("late", options)
            .knowing(&READS)
            .restarted(|_, _| {});
        assert_eq!(
            restarting.outcome(),
            Some(StateOutcome::Restored),
            "{limit}"
        );
        restarting.has_none(&READS);
        restarting
            .front
            .server()
            .execute(["DROP DATABASE late"])
            .unwrap();
    }
}

#[test]
fn a_log_that_does_not_go_on_takes_everything_with_it() {
    let reset = |server: &Server, _: &Path| {
        // 8.4 has another word for it.
        let statements = ["RESET MASTER", "RESET BINARY LOGS AND GTIDS"];
        let done = statements.iter().any(|sql| server.execute([sql]).is_ok());
        assert!(done);
        // As many events as before, so that the log has something where it had ended.
        let more = (0..50).map(|n| format!("INSERT INTO reset.shelf VALUES ({n} + 100, 1)"));
        server.execute(more).unwrap();
    };
    let restarting = Restarting::new("reset").knowing(&READS).restarted(reset);
    restarting.has_none(&READS);
    let forgotten = restarting
        .front
        .remora()
        .app()
        .unwrap()
        .shared()
        .upstream
        .restarts();
    assert!(
        forgotten.iter().any(|(_, times)| *times > 0),
        "{forgotten:?}"
    );
}

#[test]
fn a_purged_log_takes_everything_with_it() {
    let restarting = Restarting::new("purged")
        .knowing(&READS)
        .restarted(|server, _| {
            let mut root = server.root().unwrap();
            root.query("FLUSH BINARY LOGS").unwrap();
            let files = |root: &mut Client| {
                let files = root.query("SHOW BINARY LOGS").unwrap().rows().unwrap();
                let names = files.into_iter().filter_map(|row| row[0].clone());
                names
                    .filter_map(|name| String::from_utf8(name).ok())
                    .collect::<Vec<_>>()
            };
            let newest = files(&mut root).pop().unwrap();
            // A server may still be at a file for the Remora that has ended.
            wait_for("the log to be purged", PATIENCE, || {
                root.query(&format!("PURGE BINARY LOGS TO '{newest}'"))?;
                Ok((files(&mut root).len() == 1).then_some(()))
            })
            .unwrap();
        });
    restarting.has_none(&[FIRST]);
}

/// What such a statement still does at the server need not be in the log.
#[test]
fn nothing_is_left_if_a_write_was_cut_off() {
    let options = RemoraOptions::storing_all().with("shutdown.grace_ms", "0");
    let restarting = Restarting::with("cut", options).knowing(&READS);
    let mut holder = restarting.front.direct();
    holder.query_value("SELECT GET_LOCK('held', 0)").unwrap();
    let cut_off = |sql: &'static str, restarting: &Restarting| {
        let client = restarting.front.guest().into_client();
        start_long_statement(restarting.front.server(), client, sql)
    };
    let reading = cut_off("SELECT GET_LOCK('held', 3600)", &restarting);
    let restarting = restarting.restarted(|_, file| assert!(file.exists(), "it was a read"));
    assert_eq!(restarting.outcome(), Some(StateOutcome::Restored));
    let writing = cut_off(
        "UPDATE shelf SET item_id = 7 WHERE id = 1 AND GET_LOCK('held', 3600)",
        &restarting,
    );
    let restarting = restarting.restarted(|_, file| assert!(!file.exists()));
    assert_eq!(restarting.outcome(), Some(StateOutcome::NoFile));
    restarting.has_none(&READS);
    for cut in [reading, writing] {
        assert_eq!(cut.join().unwrap(), None);
    }
}

/// Nobody waits for Remora before connecting: whoever was cut off comes back at once.
#[test]
fn clients_that_come_back_at_once_find_what_was_in_memory() {
    let address = remora_testkit::ports::free().unwrap();
    let options = RemoraOptions::storing_all().with("listen.addresses", &address.to_string());
    let restarting = Restarting::with("hurried", options).knowing(&READS);
    let connect = restarting.front.options().at(address);
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (connect, is_over) = (connect.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    if let Ok(mut client) = connect.connect() {
                        // Until Remora closes the connection.
                        while !is_over.load(Ordering::SeqCst) && client.query(FIRST).is_ok() {}
                    }
                    // Nobody listens for a moment.
                    std::thread::sleep(Duration::from_millis(1));
                }
            })
        })
        .collect();
    let mut restarting = restarting;
    for _ in 0..5 {
        restarting = restarting.restarted(|_, _| {});
        assert_eq!(restarting.outcome(), Some(StateOutcome::Restored));
    }
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.join().unwrap();
    }
    restarting.still_has(&mut restarting.front.guest(), &READS);
}

/// They are in no log, and the server judges by them what accounts may read.
#[test]
fn other_settings_of_privileges_take_everything_with_them() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(kind != Kind::MySql80, "it has no such settings") {
        return;
    }
    let set = |server: &Server, value: &str| {
        let sql = format!("SET GLOBAL mandatory_roles = '{value}'");
        server.execute([sql]).unwrap();
    };
    let restarting = Restarting::new("settings").knowing(&READS);
    set(restarting.front.server(), "`nobody`@`%`");
    let restarting = restarting.restarted(|server, _| set(server, ""));
    assert_eq!(restarting.outcome(), Some(StateOutcome::OtherSettings));
    restarting.has_none(&READS);
}

/// A transaction that the server has executed and that is in no log may have changed anything.
#[test]
fn a_transaction_in_no_log_takes_everything_with_it() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(kind != Kind::MySql80, "it takes no set beside its own") {
        return;
    }
    let restarting = Restarting::new("unlogged")
        .knowing(&READS)
        .restarted(|server, _| {
            let add = "SET GLOBAL gtid_purged = '+3e11fa47-71ca-11e1-9e33-c80aa9429562:1'";
            server.execute([add]).unwrap();
        });
    restarting.has_none(&READS);
    let upstream = &restarting.front.remora().app().unwrap().shared().upstream;
    let unlogged = RestartReason::ChangesUnlogged.as_str();
    let times = upstream
        .restarts()
        .into_iter()
        .find(|(why, _)| *why == unlogged);
    assert!(times.is_some_and(|(_, times)| times > 0));
}

/// A wrong path in the configuration costs nobody a file.
#[test]
fn a_file_of_another_kind_stays_as_it_is() {
    let restarting = Restarting::new("wrong");
    let other = restarting.file.with_file_name("notes");
    fs::write(&other, "not to be lost").unwrap();
    let path = other.display().to_string();
    let options = RemoraOptions::storing_all().with("cache.state_file", &path);
    let Restarting { front, .. } = restarting;
    let front = front.restarted(options, |_| {});
    let outcome = front.remora().app().unwrap().shared().restored.outcome();
    assert_eq!(outcome, Some(StateOutcome::Damaged));
    drop(front);
    assert_eq!(fs::read_to_string(other).unwrap(), "not to be lost");
}

/// Nobody knows whether what was read from memory, or will be, has such a commit.
#[test]
fn nothing_is_left_while_a_commit_is_logged_and_cannot_be_seen() {
    let kind = Kind::from_environment().unwrap();
    // The fetched servers hold a commit back for a second at most.
    if kind.skips(kind.is_mysql(), "it holds no commit back for long") {
        return;
    }
    // It waits so long in vain.
    let options = RemoraOptions::storing_all().with("follow.lag_ms_max", "2000");
    let restarting = Restarting::with("unseen", options).knowing(&READS);
    let server = restarting.front.server();
    let late = LateRows::begin(server, Acknowledge::WhenTold).unwrap();
    let before = restarting.applied();
    let mut writer = restarting.front.direct();
    let change = "UPDATE shelf SET item_id = 2 WHERE id = 1";
    let writing = std::thread::spawn(move || writer.query(change).map(drop));
    late.wait_until_held().unwrap();
    wait_for("Remora to have read it", PATIENCE, || {
        Ok((restarting.applied() > before).then_some(()))
    })
    .unwrap();
    let restarting = restarting.restarted(|_, file| {
        assert!(!file.exists());
        drop(late);
        writing.join().unwrap().unwrap();
    });
    assert_eq!(restarting.outcome(), Some(StateOutcome::NoFile));
    restarting.has_none(&READS);
}

#[test]
fn without_the_option_nothing_is_left() {
    let front = Front::with("nothing_left", RemoraOptions::storing_all(), &TABLES);
    let expected = front.direct().query_bytes(FIRST).unwrap().to_vec();
    front.guest().becomes_hit(FIRST, &expected);
    let front = front.restarted(RemoraOptions::storing_all(), |_| {});
    assert_eq!(
        front.remora().app().unwrap().shared().restored.outcome(),
        None
    );
    let seen = front.guest().run(FIRST);
    assert_ne!(seen.outcome, "hit");
    assert_eq!(seen.bytes, expected);
}
