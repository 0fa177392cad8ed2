//! Commits that the engine makes long after they are in the log: what is read in between is not
//! kept.
//!
//! InnoDB tokenizes what goes into a full-text index before the commit's rows can be seen. So a
//! long text makes a commit take as long as a test needs.

use std::time::Duration;

use remora_behaviour::front::{Front, PATIENCE, lease};
use remora_behaviour::world::cut_follower;
use remora_cache::Position;
use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::{FOLLOW_USER, Kind};

use crate::relay::Relay;

const READ: &str = "SELECT value FROM counters WHERE id = 1";
const COUNT: &str = "SELECT COUNT(*) FROM documents";
const XID: &str = "'slow'";
/// Words of the first text. Each further one has twice as many.
const WORDS_MIN: u32 = 50_000;
/// A text of so many words takes seconds.
const WORDS_MAX: u32 = 2_000_000;
/// InnoDB renews what it tells of its transactions only when nobody has asked for 0.1 s.
const TRANSACTIONS_RENEWED: Duration = Duration::from_millis(150);

const TABLES: [&str; 3] = [
    "CREATE TABLE counters (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO counters VALUES (1, 0)",
    "CREATE TABLE documents (id INT AUTO_INCREMENT PRIMARY KEY, body LONGTEXT, \
     FULLTEXT KEY (body)) ENGINE=InnoDB",
];

fn insert(words: u32) -> String {
    let words: Vec<String> = (0..words).map(|word| format!("w{word}x")).collect();
    let body = words.join(" ");
    format!("INSERT INTO documents (body) VALUES ('{body}')")
}

fn applied(front: &Front) -> Position {
    front.remora().app().unwrap().shared().timeline.applied()
}

/// Reads through Remora while `commit` runs; says how many of these reads saw the row of before
/// when the follower had the event. Afterwards nobody may be given that row.
fn read_meanwhile(
    front: &Front,
    read: &str,
    [old, new]: [&str; 2],
    commit: impl FnOnce() + Send,
) -> usize {
    let (mut reader, mut direct) = (front.guest(), front.direct());
    let before = applied(front);
    let between = std::thread::scope(|scope| {
        let committing = scope.spawn(commit);
        let mut between = 0;
        while !committing.is_finished() {
            if applied(front) == before {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let (through, _) = reader.value(read);
            if direct.query_value(read).unwrap().as_deref() == Some(old) {
                assert_eq!(through.as_deref(), Some(old));
                between += 1;
            }
        }
        committing.join().unwrap();
        between
    });
    front.catch_up();
    for _ in 0..3 {
        assert_eq!(reader.value(read).0.as_deref(), Some(new));
    }
    between
}

/// With longer and longer texts, until reads came between a commit's event and its rows. `round` is
/// given the number of the round, from 1, and of words.
fn until_slow(mut round: impl FnMut(u32, u32) -> usize) {
    let mut words = WORDS_MIN;
    for number in 1.. {
        if round(number, words) > 0 {
            return;
        }
        words *= 2;
        assert!(words <= WORDS_MAX, "no commit was slow");
    }
}

/// Who ends an XA transaction, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
enum XaEnd {
    /// The connection that prepared.
    Own,
    /// Another one.
    Detached,
    /// Without a prepare.
    OnePhase,
}

fn change(client: &mut Client, words: u32) {
    for sql in [
        &format!("XA START {XID}"),
        "UPDATE counters SET value = value + 1 WHERE id = 1",
        &insert(words),
        &format!("XA END {XID}"),
    ] {
        client.query(sql).unwrap();
    }
}

/// Waits until the prepared transaction belongs to nobody. A MariaDB that is told to commit it a
/// moment earlier writes that to its log and leaves the rows prepared.
fn wait_until_detached(front: &Front) {
    let question =
        "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0";
    let mut root = front.server().root().unwrap();
    wait_for("the prepared transaction to be let go", PATIENCE, || {
        std::thread::sleep(TRANSACTIONS_RENEWED);
        let found = root.query_value(question)?;
        Ok((found.as_deref() == Some("1")).then_some(()))
    })
    .unwrap();
}

fn a_read_in_a_slow_xa_commit_is_not_kept(how: XaEnd) {
    let front = Front::new("slow_xa", &TABLES);
    until_slow(|round, words| {
        let [old, new] = [round - 1, round].map(|value| value.to_string());
        let mut guest = front.guest();
        let answer = front.direct().query_bytes(READ).unwrap().to_vec();
        guest.becomes_hit(READ, &answer);
        let mut writer = front.direct();
        change(&mut writer, words);
        if how != XaEnd::OnePhase {
            writer.query(&format!("XA PREPARE {XID}")).unwrap();
        }
        front.catch_up();
        if how == XaEnd::Detached {
            writer = front.direct();
            wait_until_detached(&front);
        }
        let phase = if how == XaEnd::OnePhase {
            "ONE PHASE"
        } else {
            ""
        };
        let between = read_meanwhile(&front, READ, [&old, &new], || {
            writer.query(&format!("XA COMMIT {XID} {phase}")).unwrap();
        });
        let answer = front.direct().query_bytes(READ).unwrap().to_vec();
        guest.becomes_hit(READ, &answer);
        between
    });
}

#[test]
fn a_read_between_the_event_and_the_rows_of_an_xa_commit_is_not_kept() {
    a_read_in_a_slow_xa_commit_is_not_kept(XaEnd::Own);
}

#[test]
fn a_read_between_the_event_and_the_rows_of_an_xa_commit_in_one_phase_is_not_kept() {
    a_read_in_a_slow_xa_commit_is_not_kept(XaEnd::OnePhase);
}

#[test]
fn a_read_between_the_event_and_the_rows_of_an_xa_commit_by_another_is_not_kept() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(
        kind == Kind::MySql56,
        "it rolls back what a connection that ends has prepared",
    ) || kind.skips(
        kind == Kind::MySql57,
        "it leaves the full-text index out of such a commit, so none is slow",
    ) {
        return;
    }
    a_read_in_a_slow_xa_commit_is_not_kept(XaEnd::Detached);
}

/// A table of an engine without two-phase commit, whose rows a transaction can use.
const ARIA: &str = "CREATE TABLE aria (body LONGTEXT) ENGINE=Aria TRANSACTIONAL=1";

/// A statement that changes an InnoDB table in a commit without two phases, slow by this many
/// words.
fn commit_without_two_phases(front: &Front, words: u32) -> impl FnOnce() + Send + use<> {
    let mut writer = front.direct();
    writer.query("DELETE FROM aria").unwrap();
    let fill = insert(words).replace("documents", "aria");
    writer.query(&fill).unwrap();
    move || {
        writer
            .query("INSERT INTO documents (body) SELECT body FROM aria")
            .unwrap();
    }
}

fn process(front: &Front, verb: &str, preposition: &str) {
    let statement = format!("{verb} PROCESS ON *.* {preposition} {FOLLOW_USER}@'%'");
    front.server().execute([statement]).unwrap();
}

/// The server looks at what an account may do everywhere when it connects. `SHOW GRANTS` says what
/// it may do now, on a connection that still sees no connection but the account's own.
#[test]
fn connections_that_a_connection_does_not_see_are_not_taken_for_idle() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(kind == Kind::MySql80, "its set tells of every commit") {
        return;
    }
    let server = lease();
    let relay = Relay::start(server.address());
    let options = RemoraOptions::following()
        .with("upstream.address", &relay.address().to_string())
        .with("follow.reconnect_ms_min", "5")
        .with("follow.reconnect_ms_max", "100");
    let front = Front::on(server, "late_process", options, &TABLES);
    if !kind.is_mysql() {
        front.direct().query(ARIA).unwrap();
    }
    process(&front, "GRANT", "TO");
    process(&front, "REVOKE", "FROM");
    relay.hold_grants(true);
    cut_follower(front.server());
    relay.wait_until_grants_are_asked_for();
    process(&front, "GRANT", "TO");
    relay.hold_grants(false);
    front.remora().wait_until_caching().unwrap();
    until_slow(|round, words| {
        let [old, new] = [round - 1, round].map(|count| count.to_string());
        if kind.is_mysql() {
            let mut writer = front.direct();
            change(&mut writer, words);
            front.catch_up();
            let commit = format!("XA COMMIT {XID} ONE PHASE");
            read_meanwhile(&front, COUNT, [&old, &new], move || {
                writer.query(&commit).unwrap();
            })
        } else {
            let commit = commit_without_two_phases(&front, words);
            front.catch_up();
            read_meanwhile(&front, COUNT, [&old, &new], commit)
        }
    });
    let truth = front.direct().query_bytes(COUNT).unwrap().to_vec();
    front.guest().becomes_hit(COUNT, &truth);
}

#[test]
fn what_nothing_told_is_cached_again_once_the_account_is_given_process() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(kind.is_mysql(), "it orders commits whatever took part") {
        return;
    }
    let server = lease();
    let revoke = format!("REVOKE PROCESS ON *.* FROM {FOLLOW_USER}@'%'");
    let grant = format!("GRANT PROCESS ON *.* TO {FOLLOW_USER}@'%'");
    server.execute([&grant, &revoke]).unwrap();
    let front = Front::on(server, "given_process", RemoraOptions::following(), &TABLES);
    front.direct().query(ARIA).unwrap();
    commit_without_two_phases(&front, 1)();
    front.catch_up();
    let truth = front.direct().query_bytes(COUNT).unwrap().to_vec();
    let mut guest = front.guest();
    let hits = front.hits();
    for _ in 0..5 {
        assert_eq!(guest.run(COUNT).bytes, truth);
    }
    assert_eq!(front.hits(), hits, "nothing tells when it can be seen");
    process(&front, "GRANT", "TO");
    guest.becomes_hit(COUNT, &truth);
    // And what is taken away again does no harm to connections that have it.
    process(&front, "REVOKE", "FROM");
    commit_without_two_phases(&front, 1)();
    front.catch_up();
    let truth = front.direct().query_bytes(COUNT).unwrap().to_vec();
    guest.becomes_hit(COUNT, &truth);
}

/// What a transaction changes that has also used an engine without two-phase commit.
#[test]
fn a_read_between_the_event_and_the_rows_of_a_commit_without_two_phases_is_not_kept() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(kind.is_mysql(), "it orders commits whatever took part") {
        return;
    }
    let front = Front::new("slow_mixed", &TABLES);
    front
        .server()
        .execute([
            "USE slow_mixed",
            ARIA,
            "CREATE TABLE slow_mixed.apart (id INT PRIMARY KEY) ENGINE=InnoDB",
            "INSERT INTO slow_mixed.apart VALUES (1)",
        ])
        .unwrap();
    until_slow(|round, words| {
        let [old, new] = [round - 1, round].map(|count| count.to_string());
        let commit = commit_without_two_phases(&front, words);
        front.catch_up();
        read_meanwhile(&front, COUNT, [&old, &new], commit)
    });
    let mut guest = front.guest();
    let apart = "SELECT COUNT(*) FROM apart";
    let answer = front.direct().query_bytes(apart).unwrap().to_vec();
    guest.becomes_hit(apart, &answer);
    let truth = front.direct().query_bytes(COUNT).unwrap().to_vec();
    // There Remora's account sees what other connections are doing.
    if kind == Kind::MariaDb1011 {
        guest.becomes_hit(COUNT, &truth);
        return;
    }
    let plain = "INSERT INTO documents (body) VALUES ('a b')";
    front.direct().query(plain).unwrap();
    front.catch_up();
    let truth = front.direct().query_value(COUNT).unwrap();
    let hits = front.hits();
    for _ in 0..5 {
        assert_eq!(guest.value(COUNT).0, truth);
    }
    assert_eq!(front.hits(), hits, "nothing tells when it can be seen");
    // But for a statement that waits for all transactions on the table.
    let mut direct = front.direct();
    direct
        .query("RENAME TABLE documents TO aside, aside TO documents")
        .unwrap();
    let truth = front.direct().query_bytes(COUNT).unwrap().to_vec();
    guest.becomes_hit(COUNT, &truth);
}
