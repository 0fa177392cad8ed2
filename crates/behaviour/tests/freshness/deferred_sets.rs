//! `SET`s of transaction defaults, which are answered in the server's place.

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::{Front, Guest, PATIENCE, PING, assert_same, lease};
use remora_cache::{BrokenRules, BrokenSnapshots};

use super::autocommit_transactions::{Log, run};

const READ: &str = "SELECT v FROM t WHERE id = 1";
const WRITE: &str = "UPDATE t SET v = v + 1 WHERE id = 1";
const OFF: &str = "SET autocommit = 0";
const ON: &str = "SET autocommit = 1";
const READ_ONLY: &str = "SET SESSION TRANSACTION READ ONLY";
const READ_WRITE: &str = "SET SESSION TRANSACTION READ WRITE";
const COMMITTED: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
const REPEATABLE: &str = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";

const RESET_CONNECTION: u8 = 0x1f;

/// Each with what takes it back.
const PAIRS: [[&str; 2]; 3] = [[OFF, ON], [READ_ONLY, READ_WRITE], [COMMITTED, REPEATABLE]];

const TABLE: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO t VALUES (1, 10), (2, 20)",
];

/// A guest in whose place all of [`PAIRS`] are answered, and a direct client in the same state.
fn pair<'f>(front: &'f Front, options: &ConnectOptions) -> (Guest<'f>, Client) {
    let (mut guest, mut direct) = (front.guest_as(options), options.connect().unwrap());
    wait_for("SETs that are answered at once", PATIENCE, || {
        let all_at_once = PAIRS.iter().all(|sets| {
            let outcomes = run(&mut guest, &mut direct, sets);
            outcomes == ["transaction"; 2]
        });
        Ok(all_at_once.then_some(()))
    })
    .unwrap();
    (guest, direct)
}

/// The answer to a ping, which has the session's flags.
fn ping(client: &mut Client) -> Vec<u8> {
    client.command(PING, b"", ResponseKind::Single).unwrap();
    client.answer_bytes().to_vec()
}

/// Runs a `SET` in both, in the server's place for the guest. While nothing is followed for a
/// moment, the server gets it.
fn defer(guest: &mut Guest<'_>, direct: &mut Client, set: &str) {
    let expected = direct.query_bytes(set).unwrap().to_vec();
    guest.becomes("transaction", set, Some(&expected));
}

#[test]
fn whatever_reaches_the_server_finds_the_settings_that_the_client_has_chosen() {
    let front = Front::new("deferred_sets_finds", &TABLE);
    let (mut guest, mut direct) = pair(&front, &front.options());
    let new_names = direct.query("SELECT @@transaction_isolation").is_ok();
    let prefix = if new_names { "transaction" } else { "tx" };
    let settings = format!("SELECT @@autocommit, @@{prefix}_isolation, @@{prefix}_read_only");
    let asks = [
        &settings,
        "SELECT v, @@autocommit FROM t WHERE id = 2",
        "SHOW WARNINGS",
        "SELECT ROW_COUNT()",
        "SHOW SESSION VARIABLES LIKE 'autocommit'",
    ];
    for [set, back] in PAIRS {
        for ask in asks {
            defer(&mut guest, &mut direct, set);
            run(&mut guest, &mut direct, &[ask, "COMMIT"]);
            defer(&mut guest, &mut direct, back);
            run(&mut guest, &mut direct, &[ask]);
        }
    }
    // All at once, and only some of it taken back.
    wait_for("SETs that are answered at once", PATIENCE, || {
        let sets = [OFF, READ_ONLY, COMMITTED, ON];
        let outcomes = run(&mut guest, &mut direct, &sets);
        run(&mut guest, &mut direct, &[&settings]);
        let back = [READ_WRITE, REPEATABLE];
        let outcomes_back = run(&mut guest, &mut direct, &back);
        run(&mut guest, &mut direct, &[&settings]);
        let at_once = |outcome: &&str| *outcome == "transaction";
        let are_all = outcomes.iter().chain(&outcomes_back).all(at_once);
        Ok(are_all.then_some(()))
    })
    .unwrap();
    defer(&mut guest, &mut direct, READ_ONLY);
    let answer = guest.observe(|client| client.query(WRITE).map(drop));
    assert!(answer.1.is_err(), "it only reads");
}

#[test]
fn commands_run_under_the_clients_settings_too() {
    let front = Front::new("deferred_sets_commands", &TABLE);
    let (mut guest, mut direct) = pair(&front, &front.options());
    for set in [OFF, ON] {
        defer(&mut guest, &mut direct, set);
        let expected = ping(&mut direct);
        assert_same(set, &guest.observe(ping).1, &expected);
    }
    defer(&mut guest, &mut direct, OFF);
    let prepare = |client: &mut Client| client.prepare(WRITE.as_bytes()).unwrap();
    let (id, id_direct) = (guest.observe(prepare).1, prepare(&mut direct));
    defer(&mut guest, &mut direct, ON);
    defer(&mut guest, &mut direct, OFF);
    // Whatever isn't rolled back stays.
    guest.observe(|client| client.execute(id, &[]).map(drop).unwrap());
    guest.setup(&["ROLLBACK"]);
    direct.execute(id_direct, &[]).map(drop).unwrap();
    direct.query("ROLLBACK").unwrap();
    run(&mut guest, &mut direct, &[READ, "COMMIT"]);
    assert_eq!(front.direct().query_value(READ).unwrap().unwrap(), "10");
    // As after the login.
    let reset = |client: &mut Client| {
        client
            .command(RESET_CONNECTION, b"", ResponseKind::Single)
            .map(drop)
    };
    if reset(&mut direct).is_ok() {
        guest.observe(|client| reset(client).unwrap());
        run(&mut guest, &mut direct, &["SELECT @@autocommit", READ]);
    }
}

#[test]
fn sets_that_cancel_out_never_reach_the_server() {
    let front = Front::new("deferred_sets_back", &TABLE);
    let (mut guest, mut direct) = pair(&front, &front.options());
    let mut log = Log::of(&front, &mut guest);
    // As Hibernate does for each of its read-only transactions.
    let script = [
        READ_ONLY,
        OFF,
        "SELECT v, 1 FROM t WHERE id = 2",
        "COMMIT",
        ON,
        READ_WRITE,
    ];
    let sent = wait_for("a transaction without SETs", PATIENCE, || {
        let before = log.statements().len();
        run(&mut guest, &mut direct, &script);
        let sent = log.statements().split_off(before);
        Ok(sent.iter().all(|sql| !sql.starts_with("SET")).then_some(()))
    });
    sent.unwrap();
}

/// Of what else such a statement sets, the fingerprint knows nothing.
#[test]
fn a_set_of_something_else_as_well_is_never_lost() {
    let front = Front::new("deferred_sets_lists", &TABLE);
    let (mut guest, mut direct) = pair(&front, &front.options());
    for number in 0..10 {
        let off = format!("SET @a = {number}, autocommit = 0");
        let sets = [
            &off,
            ON,
            "SELECT @a",
            "SET autocommit = 0, unique_checks = 0",
        ];
        run(&mut guest, &mut direct, &sets);
        run(
            &mut guest,
            &mut direct,
            &[ON, "SELECT @@unique_checks", "SET unique_checks = 1"],
        );
        // The same texts again and again, too.
        let sets = [
            "SET @b = 1, autocommit = 0",
            ON,
            "SELECT @b",
            "SET @b = NULL",
        ];
        run(&mut guest, &mut direct, &sets);
        // What changes nothing of the transactions.
        let sets = ["SET autocommit = 1, @c = 2", "SELECT @c", "SET @c = NULL"];
        run(&mut guest, &mut direct, &sets);
        let sets = [
            "SET autocommit = 0, @d = 3",
            OFF,
            "SELECT @d",
            "SET @d = NULL",
            ON,
        ];
        run(&mut guest, &mut direct, &sets);
    }
}

/// MySQL's flag says at login that it is on, whatever the setting says.
#[test]
fn a_flag_that_does_not_follow_the_setting_is_the_servers() {
    let front = Front::new("deferred_sets_flags", &TABLE);
    let mut root = front.server().root().unwrap();
    root.query("SET GLOBAL autocommit = 0").unwrap();
    for _ in 0..5 {
        let (mut guest, mut direct) = (front.guest(), front.direct());
        for sets in [&[OFF][..], &[ON, OFF], &[READ_ONLY, ON, OFF], &[ON]] {
            run(&mut guest, &mut direct, sets);
            let expected = ping(&mut direct);
            assert_same("the flags", &guest.observe(ping).1, &expected);
            run(&mut guest, &mut direct, &[READ, "COMMIT"]);
        }
    }
    root.query("SET GLOBAL autocommit = DEFAULT").unwrap();
}

#[test]
fn a_client_that_tracks_its_session_is_told_the_same() {
    let front = Front::new("deferred_sets_tracks", &TABLE);
    let tracking = ConnectOptions {
        further: Capabilities::SESSION_TRACK.with(Capabilities::DEPRECATE_EOF),
        ..front.options()
    };
    let (mut guest, mut direct) = pair(&front, &tracking);
    for _ in 0..3 {
        for [set, back] in PAIRS {
            run(
                &mut guest,
                &mut direct,
                &[set, back, set, READ, "COMMIT", back],
            );
        }
    }
    // With `*` the server reports every variable that was set.
    let tracks_more = "SET SESSION session_track_system_variables = '*'";
    if direct.query(tracks_more).is_ok() {
        guest.run(tracks_more);
        for [set, back] in PAIRS {
            run(&mut guest, &mut direct, &[READ, set, back, READ, set, back]);
            run(&mut guest, &mut direct, &[set, READ, "COMMIT", back, READ]);
        }
    }
}

#[test]
fn what_is_rolled_back_was_never_committed() {
    let front = Front::new("deferred_sets_rolled_back", &TABLE);
    let (mut guest, mut direct) = pair(&front, &front.options());
    let mut other = front.direct();
    for _ in 0..5 {
        defer(&mut guest, &mut direct, OFF);
        guest.setup(&[WRITE]);
        assert_eq!(other.query_value(READ).unwrap().unwrap(), "10");
        guest.setup(&["ROLLBACK"]);
        direct.query("ROLLBACK").unwrap();
        guest.run(ON);
        direct.query(ON).unwrap();
        assert_eq!(guest.value(READ).0.unwrap(), "10");
    }
    // And what autocommit commits is there at once.
    guest.setup(&[WRITE]);
    assert_eq!(other.query_value(READ).unwrap().unwrap(), "11");
}

/// The server's session is still without autocommit when the client has turned it on again. A read
/// there would begin a transaction, and all others would show what it showed.
fn reads_after_turning_autocommit_on(front: &Front) -> Vec<String> {
    let (mut guest, mut direct) = pair(front, &front.options());
    let mut seen = Vec::new();
    for number in 0..3 {
        defer(&mut guest, &mut direct, OFF);
        // The server hears of it.
        guest.setup(&["SELECT v, 2 FROM t WHERE id = 2", "COMMIT"]);
        direct.query("COMMIT").unwrap();
        defer(&mut guest, &mut direct, ON);
        for text in 0..2 {
            direct
                .query(&format!("UPDATE t SET v = 1{number}{text} WHERE id = 1"))
                .unwrap();
            // Memory has no answer to this.
            let read = format!("SELECT v, RAND() * 0 FROM t WHERE id = 1 + 0 * {text}");
            seen.push(guest.value(&read).0.unwrap());
        }
    }
    seen
}

#[test]
fn a_read_outside_transactions_shows_what_is_committed() {
    let front = Front::new("deferred_sets_fresh", &TABLE);
    let seen = reads_after_turning_autocommit_on(&front);
    assert_eq!(seen, ["100", "101", "110", "111", "120", "121"]);
}

#[test]
fn a_server_that_is_not_told_shows_old_rows() {
    let broken = BrokenRules {
        snapshots: BrokenSnapshots::PendingSetsDropped,
        ..BrokenRules::default()
    };
    let options = RemoraOptions::following();
    let front = Front::breaking(broken, lease(), "deferred_sets_untold", options, &TABLE);
    let (guest, mut direct) = pair(&front, &front.options());
    drop(guest);
    let mut number = 0;
    let is_old = wait_for("an old row", PATIENCE, || {
        let mut guest = front.guest();
        // The server hears of this one: another text may have another answer.
        number += 1;
        guest.run(&format!("SET autocommit = 0 /* {number} */"));
        if guest.run(ON).outcome != "transaction" {
            return Ok(None);
        }
        let read = "SELECT v, RAND() * 0 FROM t WHERE id = 1";
        direct.query("UPDATE t SET v = 1 WHERE id = 1")?;
        guest.value(read);
        direct.query("UPDATE t SET v = 2 WHERE id = 1")?;
        Ok((guest.value(read).0.as_deref() == Some("1")).then_some(()))
    });
    is_old.unwrap();
}
