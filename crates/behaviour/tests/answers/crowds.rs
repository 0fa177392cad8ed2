//! Many clients that ask for the same thing at once: one statement reaches the server, and the
//! others wait for its answer.
//!
//! The server is held up by a locked table. What waits for the lock has reached it.

use std::io::Write as _;
use std::net::Shutdown;
use std::thread::JoinHandle;

use remora_testkit::client::Client;
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::RemoraOptions;

use remora_behaviour::front::Front;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;

use super::prepared::{EXECUTE, PREPARE, Types, Value, execution, number_in};

const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
];
const READ: &str = "SELECT COUNT(*) FROM t";
const PREPARED: &str = "SELECT COUNT(*) FROM t WHERE a > ?";

fn options() -> RemoraOptions {
    RemoraOptions::unhurried().with("cache.fill_wait_ms_max", "3600000")
}

/// A server whose table can be locked, with a Remora in front that knows the table.
struct Bed {
    front: Front,
    root: Client,
}

impl Bed {
    fn new(schema: &str, options: RemoraOptions) -> Bed {
        let front = Front::with(schema, options, &T);
        let known = front
            .direct()
            .query_bytes("SELECT a FROM t")
            .unwrap()
            .to_vec();
        front.guest().becomes_hit("SELECT a FROM t", &known);
        let root = front.server().root().unwrap();
        Bed { front, root }
    }

    /// A client that has said something, and so is known.
    fn client(&self) -> Client {
        let mut guest = self.front.guest();
        guest.run("SELECT a FROM t");
        guest.into_client()
    }

    fn lock(&mut self) {
        let lock = format!("LOCK TABLES {}.t WRITE", self.front.schema());
        self.root.query(&lock).unwrap();
    }

    fn unlock(&mut self) {
        self.root.query("UNLOCK TABLES").unwrap();
    }

    /// Waits until so many statements have reached the server, and so many wait for one of them.
    fn wait_until(&mut self, at_server: usize, waiting: usize) {
        let count = format!(
            "SELECT COUNT(*) FROM information_schema.processlist \
             WHERE db = '{}' AND info LIKE 'SELECT % FROM t%'",
            self.front.schema()
        );
        let mut seen = (0, 0);
        let arrived = wait_for("the statements", PATIENCE, || {
            let count = self.root.query_value(&count)?.unwrap_or_default();
            seen = (count.parse()?, self.waiting());
            Ok((seen == (at_server, waiting)).then_some(()))
        });
        arrived.unwrap_or_else(|error| panic!("{seen:?}: {error}"));
    }

    fn waiting(&self) -> usize {
        self.front.remora().app().unwrap().shared().fills.waiters()
    }

    fn limit(&self, name: &str) -> f64 {
        let metrics = self.front.remora().metrics().unwrap();
        metrics.sum_where("remora_limit_reached_total", "limit", name)
    }
}

/// Asks, and gives the number in the answer.
fn ask(client: Client) -> JoinHandle<String> {
    ask_for(client, READ)
}

/// Asks, and gives the first value of the answer.
fn ask_for(mut client: Client, text: &'static str) -> JoinHandle<String> {
    std::thread::spawn(move || client.query_value(text).unwrap().unwrap())
}

fn answers(asked: Vec<JoinHandle<String>>) -> Vec<String> {
    let all = asked.into_iter().map(|one| one.join().unwrap());
    all.collect()
}

#[test]
fn a_crowd_sends_the_server_one_statement() {
    const CROWD: usize = 40;
    const OTHERS: u64 = 39;
    let mut bed = Bed::new("crowd", options());
    let clients: Vec<_> = (0..CROWD).map(|_| bed.client()).collect();
    let hits = bed.front.hits();
    bed.lock();
    let asked: Vec<_> = clients.into_iter().map(ask).collect();
    bed.wait_until(1, CROWD - 1);
    bed.unlock();
    assert_eq!(answers(asked), vec!["3"; CROWD]);
    let hits = || Ok((bed.front.hits() == hits + OTHERS).then_some(()));
    wait_for("the hits to be counted", PATIENCE, hits).unwrap();
    let metrics = bed.front.remora().metrics().unwrap();
    let waits = metrics.sum("remora_fill_waits_total");
    assert_eq!(format!("{waits}"), OTHERS.to_string());
    assert_eq!(bed.waiting(), 0);
}

#[test]
fn executions_of_prepared_statements_wait_for_one_another() {
    const CROWD: usize = 5;
    let mut bed = Bed::new("prepared_crowd", options());
    let mut prepared: Vec<_> = (0..CROWD).map(|_| Prepared::new(bed.client())).collect();
    bed.lock();
    let execute = |mut one: Prepared, types| {
        std::thread::spawn(move || {
            let answer = one.execute(types);
            (one, answer)
        })
    };
    let all: Vec<_> = prepared
        .drain(..)
        .map(|one| execute(one, Types::Named))
        .collect();
    bed.wait_until(1, CROWD - 1);
    bed.unlock();
    let expected = Prepared::new(bed.front.direct()).execute(Types::Named);
    for one in all {
        let (one, answer) = one.join().unwrap();
        assert_eq!(answer, expected);
        prepared.push(one);
    }
    // Whoever was answered by memory has named the parameter's type to nobody but Remora.
    bed.front.remora().app().unwrap().shared().flush();
    for mut one in prepared {
        assert_eq!(one.execute(Types::Remembered), expected);
        bed.front.remora().app().unwrap().shared().flush();
    }
}

/// A client with a prepared statement.
struct Prepared {
    client: Client,
    id: u32,
}

impl Prepared {
    fn new(mut client: Client) -> Prepared {
        let body = PREPARED.as_bytes();
        client
            .command(PREPARE, body, ResponseKind::Prepared)
            .map(drop)
            .unwrap();
        let id = number_in(client.answer_bytes());
        Prepared { client, id }
    }

    /// The bytes that answer an execution.
    fn execute(&mut self, types: Types) -> String {
        let body = execution(self.id, &[Value::Int(1)], types, 0);
        let answer = self.client.command(EXECUTE, &body, ResponseKind::Results);
        answer.map(drop).unwrap();
        self.client.answer_bytes().escape_ascii().to_string()
    }
}

#[test]
fn a_crowd_waits_each_time_that_a_result_is_dropped() {
    const CROWD: usize = 4;
    let mut bed = Bed::new("again", options());
    let mut clients: Vec<_> = (0..CROWD).map(|_| bed.client()).collect();
    let value = |client: &mut Client| client.query_value(READ).unwrap().unwrap();
    for round in 1..=4 {
        let insert = format!("INSERT INTO t (a) VALUES ({})", 10 + round);
        bed.front.direct().query(&insert).unwrap();
        bed.front.settle();
        bed.lock();
        let asked = clients.drain(..).map(|mut client| {
            std::thread::spawn(move || {
                let answer = value(&mut client);
                (client, answer)
            })
        });
        let asked: Vec<_> = asked.collect();
        bed.wait_until(1, CROWD - 1);
        bed.unlock();
        for one in asked {
            let (mut client, answer) = one.join().unwrap();
            assert_eq!(answer, (3 + round).to_string());
            // From memory, before the next change.
            assert_eq!(value(&mut client), answer);
            clients.push(client);
        }
    }
}

#[test]
fn who_has_waited_long_enough_asks_and_the_next_do_so_at_once() {
    let wait = options().with("cache.fill_wait_ms_max", "50");
    let mut bed = Bed::new("hurried", wait);
    let clients: Vec<_> = (0..3).map(|_| bed.client()).collect();
    bed.lock();
    let mut asked = Vec::new();
    for (at, client) in clients.into_iter().enumerate() {
        asked.push(ask(client));
        bed.wait_until(at + 1, 0);
    }
    let waits = bed.limit("cache.fill_wait_ms_max");
    assert!((waits - 1.0).abs() < 0.5, "{waits}");
    bed.unlock();
    assert_eq!(answers(asked), ["3"; 3]);
}

#[test]
fn who_finds_too_many_waiting_asks() {
    let mut bed = Bed::new("full", options().with("cache.fill_waiters_max", "2"));
    let clients: Vec<_> = (0..4).map(|_| bed.client()).collect();
    bed.lock();
    let asked: Vec<_> = clients.into_iter().map(ask).collect();
    bed.wait_until(2, 2);
    let refused = bed.limit("cache.fill_waiters_max");
    assert!((refused - 1.0).abs() < 0.5, "{refused}");
    bed.unlock();
    assert_eq!(answers(asked), ["3"; 4]);
}

#[test]
fn a_session_that_may_hold_locks_asks_the_server() {
    let mut bed = Bed::new("holders", options());
    let other = bed.client();
    let mut holders: Vec<_> = (0..3).map(|_| bed.client()).collect();
    holders[0].query("BEGIN").unwrap();
    holders[1].query("SET autocommit = 0").unwrap();
    holders[2].query("LOCK TABLES t READ").unwrap();
    let holder = holders.pop().unwrap();
    let mut asked = vec![ask(other)];
    // The table is locked for reading only: whoever reads it is answered.
    assert_eq!(answers(vec![ask(holder)]), ["3"]);
    assert_eq!(answers(asked), ["3"]);
    bed.front.remora().app().unwrap().shared().flush();
    bed.lock();
    asked = vec![ask(bed.front.guest().into_client())];
    bed.wait_until(1, 0);
    asked.extend(holders.into_iter().map(ask));
    bed.wait_until(3, 0);
    bed.unlock();
    assert_eq!(answers(asked), ["3"; 3]);
}

#[test]
fn nobody_waits_twice_for_what_is_not_kept() {
    const CROWD: usize = 4;
    let small = options().with("cache.result_bytes_max", "1KiB");
    let mut bed = Bed::new("not_kept", small);
    let clients: Vec<_> = (0..CROWD).map(|_| bed.client()).collect();
    bed.lock();
    let long = "SELECT a, REPEAT('x', 2000) FROM t ORDER BY a";
    let asked = clients
        .into_iter()
        .map(|mut client| std::thread::spawn(move || client.query_bytes(long).unwrap().to_vec()));
    let asked: Vec<_> = asked.collect();
    let waiting = || Ok((bed.waiting() == CROWD - 1).then_some(()));
    wait_for("the others to wait", PATIENCE, waiting).unwrap();
    bed.unlock();
    let expected = bed.front.direct().query_bytes(long).unwrap().to_vec();
    for one in asked {
        assert_eq!(one.join().unwrap(), expected);
    }
    assert_eq!(bed.waiting(), 0);
}

#[test]
fn nobody_waits_for_a_client_that_does_not_take_its_answer() {
    // More than all sockets on the way hold.
    const LONG: &str = "SELECT REPEAT('x', 16000000), a FROM t";
    let large = options()
        .with("cache.memory_bytes_max", "1GiB")
        .with("cache.result_bytes_max", "64MiB");
    let mut bed = Bed::new("slow", large);
    let [silent, other] = [bed.client(), bed.client()];
    bed.lock();
    let silent = Leaver::asks(silent, LONG);
    bed.wait_until(1, 0);
    let asked = ask_for(other, LONG);
    bed.wait_until(1, 1);
    bed.unlock();
    // Else it would wait for an hour.
    assert_eq!(asked.join().unwrap().len(), 16_000_000);
    silent.leaves();
}

#[test]
fn who_waits_and_leaves_is_forgotten_and_so_is_the_one_who_is_waited_for() {
    let mut bed = Bed::new("leaving", options());
    let [first, leaver, stayer] = [bed.client(), bed.client(), bed.client()];
    bed.lock();
    let first = Leaver::asks(first, READ);
    bed.wait_until(1, 0);
    let leaver = Leaver::asks(leaver, READ);
    bed.wait_until(1, 1);
    let stays = ask(stayer);
    bed.wait_until(1, 2);
    leaver.leaves();
    first.leaves();
    bed.unlock();
    assert_eq!(answers(vec![stays]), ["3"]);
    let gone = || Ok((bed.waiting() == 0).then_some(()));
    wait_for("nobody to wait", PATIENCE, gone).unwrap();
}

/// A client that doesn't wait for its answer.
struct Leaver(Client);

impl Leaver {
    fn asks(client: Client, text: &str) -> Leaver {
        let mut message = Vec::new();
        let body = [b"\x03", text.as_bytes()].concat();
        put_message(&mut message, 0, &body);
        client.stream().write_all(&message).unwrap();
        Leaver(client)
    }

    fn leaves(self) {
        self.0.stream().shutdown(Shutdown::Both).unwrap();
    }
}
