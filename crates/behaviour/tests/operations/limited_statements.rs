//! `upstream.statements_max`: so many statements run at the server, and the others wait their turn.
//!
//! The server is held up by a locked table. What waits for the lock has reached it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use remora_testkit::client::{Client, ClientError, Value};
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::RemoraOptions;
use remora_wire::packet::put_message;

use remora_behaviour::front::Front;

const TABLES: [&str; 4] = [
    "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO t VALUES (1), (2), (3)",
    "CREATE TABLE free (a INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO free VALUES (1)",
];
const KEPT: &str = "SELECT a FROM free";
/// Never kept, so that nobody waits for another's answer instead.
const BLOCKED: &str = "SELECT COUNT(*) FROM t WHERE RAND() >= 0";
const FREE: &str = "SELECT COUNT(*) FROM free WHERE RAND() >= 0";
const TOO_MANY: u16 = 1637;
/// `ER_QUERY_INTERRUPTED`.
const INTERRUPTED: u16 = 1317;

fn options(statements_max: &str) -> RemoraOptions {
    RemoraOptions::unhurried()
        .with("upstream.statements_max", statements_max)
        .with("upstream.statement_wait_ms_max", "3600000")
}

/// A server whose table can be locked, with a Remora in front.
struct Bed {
    front: Front,
    root: Client,
}

impl Bed {
    fn new(schema: &str, options: RemoraOptions) -> Bed {
        let front = Front::with(schema, options, &TABLES);
        let known = front.direct().query_bytes(KEPT).unwrap().to_vec();
        front.guest().becomes_hit(KEPT, &known);
        let root = front.server().root().unwrap();
        Bed { front, root }
    }

    /// A client that has said something, and so is known.
    fn client(&self) -> Client {
        let mut client = self.front.guest().into_client();
        client.query_value(FREE).unwrap();
        client
    }

    /// Locks the table, once nothing runs any more: a client has its answer a moment before Remora
    /// gives the turn back.
    fn lock(&mut self) {
        self.wait_until(0, 0);
        let lock = format!("LOCK TABLES {}.t WRITE", self.front.schema());
        self.root.query(&lock).unwrap();
    }

    fn unlock(&mut self) {
        self.root.query("UNLOCK TABLES").unwrap();
    }

    /// Waits until so many statements run at the server, and so many wait for their turn.
    fn wait_until(&self, running: usize, waiting: usize) {
        let mut seen = (0, 0);
        let arrived = wait_for("the statements", PATIENCE, || {
            let turns = self.front.remora().app().unwrap().shared().turns.clone();
            let turns = turns.unwrap();
            seen = (turns.running(), turns.waiting());
            Ok((seen == (running, waiting)).then_some(()))
        });
        arrived.unwrap_or_else(|error| panic!("{seen:?}: {error}"));
    }

    fn metric(&self, name: &str) -> u64 {
        let metrics = self.front.remora().metrics().unwrap();
        whole(metrics.sum(name))
    }

    fn limit(&self, name: &str) -> u64 {
        let metrics = self.front.remora().metrics().unwrap();
        whole(metrics.sum_where("remora_limit_reached_total", "limit", name))
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

type Asked = JoinHandle<Result<String, ClientError>>;

fn ask(mut client: Client) -> Asked {
    std::thread::spawn(move || client.query_value(BLOCKED).map(Option::unwrap))
}

fn answered(asked: Asked) -> String {
    asked.join().unwrap().unwrap()
}

fn assert_refused(client: &mut Client) {
    match client.query_value(BLOCKED) {
        Err(ClientError::Server(error)) => assert_eq!(error.code, TOO_MANY, "{}", error.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn statements_beyond_the_limit_wait_and_hits_never_do() {
    let mut bed = Bed::new("limited", options("2"));
    let clients: Vec<_> = (0..5).map(|_| bed.client()).collect();
    let waits = bed.metric("remora_statement_waits_total");
    bed.lock();
    let asked: Vec<_> = clients.into_iter().map(ask).collect();
    bed.wait_until(2, 3);
    assert_eq!(bed.metric("remora_statements_running"), 2);
    assert_eq!(bed.metric("remora_statements_waiting"), 3);
    let known = bed.front.direct().query_bytes(KEPT).unwrap().to_vec();
    bed.front.guest().still_hits(KEPT, &known);
    bed.unlock();
    for one in asked {
        assert_eq!(answered(one), "3");
    }
    bed.wait_until(0, 0);
    assert_eq!(bed.metric("remora_statement_waits_total"), waits + 3);
}

#[test]
fn a_session_that_may_hold_locks_does_not_wait() {
    let mut bed = Bed::new("limited_holders", options("1"));
    let holders = [
        &["BEGIN", "SELECT * FROM free FOR UPDATE"][..],
        &["SET autocommit = 0", "SELECT * FROM free"],
        &["LOCK TABLES free READ"],
        &["SELECT GET_LOCK('limited', 0)"],
    ];
    for holds in holders {
        let mut holder = bed.client();
        for sql in holds {
            holder.query(sql).unwrap();
        }
        let [blocked, next] = [bed.client(), bed.client()];
        bed.lock();
        let mut asked = vec![ask(blocked)];
        bed.wait_until(1, 0);
        asked.push(ask(next));
        bed.wait_until(1, 1);
        assert_eq!(holder.query_value(FREE).unwrap().unwrap(), "1", "{holds:?}");
        bed.unlock();
        for one in asked {
            assert_eq!(answered(one), "3");
        }
        bed.wait_until(0, 0);
    }
}

/// Remora answers `BEGIN` itself, and the server hears of it with the next statement.
#[test]
fn a_transaction_of_which_the_server_has_not_heard_waits() {
    let mut bed = Bed::new("limited_begin", options("1"));
    let [blocked, mut beginner] = [bed.client(), bed.client()];
    // The settings are known, and the flags of a transaction.
    for sql in ["BEGIN", "COMMIT", "BEGIN", "COMMIT", "BEGIN"] {
        beginner.query(sql).unwrap();
    }
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    let begun = ask(beginner);
    bed.wait_until(1, 1);
    bed.unlock();
    for one in [blocked, begun] {
        assert_eq!(answered(one), "3");
    }
}

#[test]
fn what_can_end_a_wait_does_not_wait() {
    let mut bed = Bed::new("limited_kill", options("1"));
    let [mut blocked, mut killer] = [bed.client(), bed.client()];
    let id = blocked
        .query_value("SELECT CONNECTION_ID()")
        .unwrap()
        .unwrap();
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    // To kill it, the server must run it.
    let shown = format!(
        "SELECT 1 FROM information_schema.processlist WHERE id = {id} AND info LIKE 'SELECT COUNT%'"
    );
    let arrived = wait_for("the statement at the server", PATIENCE, || {
        Ok(bed.root.query_value(&shown)?)
    });
    arrived.unwrap();
    killer.query("SHOW PROCESSLIST").map(drop).unwrap();
    killer.query(&format!("KILL QUERY {id}")).map(drop).unwrap();
    match blocked.join().unwrap() {
        Err(ClientError::Server(error)) => assert_eq!(error.code, INTERRUPTED),
        other => panic!("{other:?}"),
    }
    bed.wait_until(0, 0);
    bed.unlock();
}

/// A session that memory has answered for long must let the server hear from it: it waits, too.
#[test]
fn a_session_that_the_server_must_hear_from_waits_for_its_turn() {
    let options = options("1").with("workers.server_contact_ms", "100");
    let mut bed = Bed::new("limited_idle", options);
    let [blocked, mut reader] = [bed.client(), bed.client()];
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let reads = std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            reader.query_value(KEPT)?;
        }
        Ok::<_, ClientError>(())
    });
    bed.wait_until(1, 1);
    is_over.store(true, Ordering::Relaxed);
    bed.unlock();
    assert_eq!(answered(blocked), "3");
    reads.join().unwrap().unwrap();
}

#[test]
fn a_statement_whose_turn_does_not_come_is_refused_and_was_not_run() {
    let options = options("1").with("upstream.statement_wait_ms_max", "50");
    let mut bed = Bed::new("limited_time", options);
    let [blocked, mut refused] = [bed.client(), bed.client()];
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    for sql in [BLOCKED, "INSERT INTO free VALUES (7)"] {
        let error = refused.query(sql).map(drop).unwrap_err();
        assert!(
            matches!(&error, ClientError::Server(error) if error.code == TOO_MANY
                && error.message.contains("upstream.statement_wait_ms_max")),
            "{error}"
        );
    }
    assert_eq!(bed.limit("upstream.statement_wait_ms_max"), 2);
    bed.unlock();
    assert_eq!(answered(blocked), "3");
    bed.wait_until(0, 0);
    // The session goes on.
    assert_eq!(refused.query_value(FREE).unwrap().unwrap(), "1");
}

/// A prepared write that was refused can be sent again as it was; one that names types can't, for
/// its client won't name them again.
#[test]
fn a_prepared_write_that_is_refused_keeps_its_connection_if_it_brought_only_values() {
    let options = options("1").with("upstream.statement_wait_ms_max", "50");
    let mut bed = Bed::new("limited_writes", options);
    let [blocked, mut writer, mut plain] = [bed.client(), bed.client(), bed.client()];
    let insert = writer.prepare(b"INSERT INTO free VALUES (?)").unwrap();
    let fixed = plain.prepare(b"INSERT INTO free VALUES (50)").unwrap();
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    let code = |error: ClientError| match error {
        ClientError::Server(error) => error.code,
        other => panic!("{other}"),
    };
    assert_eq!(
        code(plain.execute(fixed, &[]).map(drop).unwrap_err()),
        TOO_MANY
    );
    let named = writer.execute(insert, &[Value::Int(51)]).map(drop);
    assert_eq!(code(named.unwrap_err()), TOO_MANY);
    bed.unlock();
    assert_eq!(answered(blocked), "3");
    plain.execute(fixed, &[]).map(drop).unwrap();
    assert!(writer.execute(insert, &[Value::Int(52)]).is_err(), "closed");
    let written = bed
        .front
        .direct()
        .query_value("SELECT MAX(a) FROM free")
        .unwrap();
    assert_eq!(written.as_deref(), Some("50"));
}

/// What memory has answered is run again for `FOUND_ROWS()` under its own types, though others were
/// named since, in a message that was refused.
#[test]
fn a_refused_execution_leaves_the_hit_before_it_its_types() {
    let options = options("1").with("upstream.statement_wait_ms_max", "50");
    let mut bed = Bed::new("limited_types", options);
    let read = b"SELECT a FROM free WHERE a = ?";
    let number = [Value::Int(1)];
    let [blocked, mut client] = [bed.client(), bed.client()];
    let id = client.prepare(read).unwrap();
    let hit = wait_for("a hit", PATIENCE, || {
        let hits = bed.front.hits();
        client.execute(id, &number).map(drop)?;
        client.execute_again(id, &number).map(drop)?;
        // One is counted after its answer was sent.
        client.query("DO 1").map(drop)?;
        Ok((bed.front.hits() == hits + 2).then_some(()))
    });
    hit.unwrap();
    client.execute_again(id, &number).map(drop).unwrap();
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    let others = client
        .execute(id, &[Value::Text(b"none".to_vec())])
        .map(drop);
    assert!(matches!(others, Err(ClientError::Server(error)) if error.code == TOO_MANY));
    bed.unlock();
    assert_eq!(answered(blocked), "3");
    bed.wait_until(0, 0);
    let found = client.query_value("SELECT FOUND_ROWS()").unwrap();
    assert_eq!(found.as_deref(), Some("1"));
}

#[test]
fn a_statement_beyond_the_queue_is_refused_at_once() {
    let options = options("1").with("upstream.statements_waiting_max", "1");
    let mut bed = Bed::new("limited_queue", options);
    let [blocked, waiting, mut refused] = [bed.client(), bed.client(), bed.client()];
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    let waiting = ask(waiting);
    bed.wait_until(1, 1);
    assert_refused(&mut refused);
    assert_eq!(bed.limit("upstream.statements_waiting_max"), 1);
    bed.unlock();
    assert_eq!(
        (answered(blocked), answered(waiting)),
        ("3".into(), "3".into())
    );
}

#[test]
fn who_leaves_or_is_killed_while_waiting_leaves_the_queue() {
    let mut bed = Bed::new("limited_leavers", options("1"));
    let [blocked, leaver, mut killed] = [bed.client(), bed.client(), bed.client()];
    let id = killed
        .query_value("SELECT CONNECTION_ID()")
        .unwrap()
        .unwrap();
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    let mut message = Vec::new();
    put_message(&mut message, 0, &[b"\x03", BLOCKED.as_bytes()].concat());
    std::io::Write::write_all(&mut leaver.stream(), &message).unwrap();
    bed.wait_until(1, 1);
    let killed = std::thread::spawn(move || killed.query_value(BLOCKED));
    bed.wait_until(1, 2);
    drop(leaver);
    bed.wait_until(1, 1);
    bed.front
        .server()
        .root()
        .unwrap()
        .query(&format!("KILL {id}"))
        .unwrap();
    assert!(killed.join().unwrap().is_err());
    bed.wait_until(1, 0);
    bed.unlock();
    assert_eq!(answered(blocked), "3");
}

#[test]
fn what_has_come_into_memory_while_it_waited_is_answered_from_there() {
    let mut bed = Bed::new("limited_hits", options("1"));
    let [blocked, filler, asker] = [bed.client(), bed.client(), bed.client()];
    let hits = bed.front.hits();
    bed.lock();
    let blocked = ask(blocked);
    bed.wait_until(1, 0);
    let read = |mut client: Client| {
        std::thread::spawn(move || client.query_value("SELECT COUNT(*) FROM free").unwrap())
    };
    let both = [read(filler), read(asker)];
    bed.wait_until(1, 2);
    bed.unlock();
    assert_eq!(answered(blocked), "3");
    for one in both {
        assert_eq!(one.join().unwrap().unwrap(), "1");
    }
    bed.wait_until(0, 0);
    let hit = || Ok((bed.front.hits() == hits + 1).then_some(()));
    wait_for("the hit to be counted", PATIENCE, hit).unwrap();
}
