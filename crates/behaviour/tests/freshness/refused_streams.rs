//! A command that would stream the log, refused: the session goes on as any other, and what it
//! writes is fenced.

use std::io::Read as _;

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::log_gate::LogGate;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;

use remora_behaviour::front::{Front, PATIENCE, assert_same, lease};

const READ: &str = "SELECT v FROM t WHERE id = 1";
const WRITE: &[u8] = b"\x03UPDATE t SET v = v + 1 WHERE id = 1";
/// Answered by as many bytes.
const NO_CHANGE: &str = "UPDATE t SET v = v WHERE id = 1";
const ACCESS_DENIED: u16 = 1227;

/// `COM_BINLOG_DUMP` from the first file's begin, and MySQL's newer form of it.
fn dumps() -> [(u8, Vec<u8>); 2] {
    let replica = 888_888_u32.to_le_bytes();
    let file = b"binlog.000001";
    let plain = [&4_u32.to_le_bytes()[..], &[0, 0], &replica, file].concat();
    let with_gtids = [
        &[0, 0][..],
        &replica,
        &13_u32.to_le_bytes(),
        file,
        &4_u64.to_le_bytes(),
        &8_u32.to_le_bytes(),
        &[0; 8],
    ]
    .concat();
    [(0x12, plain), (0x1e, with_gtids)]
}

fn world(schema: &'static str) -> (Front, LogGate, ConnectOptions) {
    let server = lease();
    let identified = server.kind().identified_by("plain-password");
    let plain = ConnectOptions::new(server.address(), "plain", "plain-password").schema(schema);
    let setup = [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)".to_owned(),
        "INSERT INTO t VALUES (1, 1)".to_owned(),
        format!("CREATE USER plain@'%' {identified}"),
        format!("GRANT ALL ON {schema}.* TO plain@'%'"),
    ];
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let (front, gate) = Front::behind_gate(server, schema, RemoraOptions::following(), &setup);
    (front, gate, plain)
}

#[test]
fn a_session_whose_dump_was_refused_writes_behind_fences() {
    let (front, gate, plain) = world("refused_dump");
    let mut reader = front.guest();
    let ok_bytes = front.direct().query_bytes(NO_CHANGE).unwrap().len();
    for (command, body) in dumps() {
        let refusal = plain
            .connect()
            .unwrap()
            .command(command, &body, ResponseKind::Single)
            .map(drop);
        let Err(refusal) = refusal else {
            panic!("command {command} isn't refused");
        };
        if refusal.code() != Some(ACCESS_DENIED) {
            println!("left out: this server doesn't know command {command}: {refusal}");
            continue;
        }
        let mut writer = front.guest_as(&plain);
        // Remora asks for the session's settings now, and not while the gate is closed.
        writer.run(READ);
        let seen = writer
            .client()
            .command(command, &body, ResponseKind::Single);
        assert_eq!(
            seen.err().and_then(|error| error.code()),
            Some(ACCESS_DENIED)
        );
        for _ in 0..2 {
            let before = front.direct().query_bytes(READ).unwrap().to_vec();
            reader.becomes_hit(READ, &before);
            gate.hold(true);
            // The gate takes this connection for one that has the log, and holds the answer, too.
            send(writer.client(), WRITE);
            let after = wait_for("the write", PATIENCE, || {
                let now = front.direct().query_bytes(READ)?.to_vec();
                Ok((now != before).then_some(now))
            });
            let seen = reader.run(READ);
            assert_same(seen.outcome, &seen.bytes, &after.unwrap());
            gate.hold(false);
            receive(writer.client(), ok_bytes);
        }
        // It has hits of its own, too.
        let now = front.direct().query_bytes(READ).unwrap().to_vec();
        writer.becomes_hit(READ, &now);
    }
}

fn send(client: &Client, payload: &[u8]) {
    let mut message = Vec::new();
    put_message(&mut message, 0, payload);
    std::io::Write::write_all(&mut client.stream(), &message).unwrap();
}

fn receive(client: &Client, bytes: usize) {
    let mut stream = client.stream();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut vec![0; bytes]).unwrap();
}

/// The write is on its way before the refusal comes.
#[test]
fn what_is_sent_behind_a_dump_is_fenced_if_that_is_refused() {
    let (front, _gate, plain) = world("sent_behind_dump");
    let mut direct = plain.connect().unwrap();
    let (command, body) = dumps()[0].clone();
    assert!(
        direct
            .command(command, &body, ResponseKind::Single)
            .is_err()
    );
    let refusal_bytes = direct.answer_bytes().len();
    let ok_bytes = direct.query_bytes(NO_CHANGE).unwrap().len();
    let mut messages = Vec::new();
    put_message(&mut messages, 0, &[&[command], &body[..]].concat());
    put_message(&mut messages, 0, WRITE);
    let writer = plain.at(front.remora().address()).connect().unwrap();
    let writes = || {
        let metrics = front.remora().metrics().unwrap();
        metrics.sum_where("remora_statements_total", "outcome", "write")
    };
    let before = writes();
    std::io::Write::write_all(&mut writer.stream(), &messages).unwrap();
    receive(&writer, refusal_bytes + ok_bytes);
    assert!(writes() > before + 0.5, "Remora knows of the write");
}

/// A dump that can't be begun ends the connection, as it does directly.
#[test]
fn a_dump_of_a_file_that_is_not_there_fails_as_directly() {
    let (front, _gate, _) = world("dump_of_nothing");
    let body = [
        &4_u32.to_le_bytes()[..],
        &[0, 0],
        &99_u32.to_le_bytes(),
        b"binlog.999999",
    ]
    .concat();
    let mut message = Vec::new();
    put_message(&mut message, 0, &[&[0x12], &body[..]].concat());
    let ask = |options: ConnectOptions| {
        let client = options.connect().unwrap();
        std::io::Write::write_all(&mut client.stream(), &message).unwrap();
        client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
        let mut all = Vec::new();
        client.stream().read_to_end(&mut all).unwrap();
        all
    };
    let directly = ask(front.options());
    let through = ask(front.options().at(front.remora().address()));
    assert_same("the error and the end", &through, &directly);
}
