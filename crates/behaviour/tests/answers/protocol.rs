//! Bad input and refused logins: the client gets the server's kind of error, its connection closes,
//! nobody else notices.

use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use mysql_async::prelude::Queryable;
use remora_testkit::ports;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Kind, Server};
use remora_wire::Capabilities;
use remora_wire::response::ServerError;

use remora_behaviour::front::raw::{Packet, Raw, packet};
use remora_behaviour::front::{Front, PATIENCE, lease};

const T: [&str; 2] = ["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"];

/// A connection that must not notice what another does: it has a transaction open and a cached
/// result.
struct Bystander {
    raw: Raw,
    expected: Vec<Packet>,
}

impl Bystander {
    fn new(front: &Front) -> Bystander {
        let mut raw = Raw::log_in(front.remora().address(), front.schema());
        raw.query("SET @mark = 17");
        raw.receive_answer();
        raw.query("SELECT @mark, a FROM t");
        let expected = raw.receive_answer();
        Bystander { raw, expected }
    }

    fn check(&mut self) {
        self.raw.query("SELECT @mark, a FROM t");
        assert_eq!(self.raw.receive_answer(), self.expected);
    }
}

fn protocol_errors(front: &Front) -> u64 {
    let metrics = &front.remora().app().unwrap().shared().metrics;
    metrics
        .rare
        .protocol_errors
        .load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn packets_that_are_numbered_wrongly_end_their_connection_with_an_error() {
    let front = Front::new("sequences", &T);
    let mut bystander = Bystander::new(&front);
    for sequence in [1, 2, 200, 255] {
        let errors = protocol_errors(&front);
        let mut raw = Raw::log_in(front.remora().address(), front.schema());
        raw.send(sequence, b"\x03SELECT 1");
        let (_, error) = raw.receive_error_and_end();
        assert_eq!((error.code, error.sql_state.as_str()), (1156, "08S01"));
        wait_for("a protocol error to be counted", PATIENCE, || {
            Ok((protocol_errors(&front) == errors + 1).then_some(()))
        })
        .unwrap();
        bystander.check();
    }
    // In the continuation of a long message, too.
    let mut raw = Raw::log_in(front.remora().address(), front.schema());
    raw.send(
        0,
        &[&b"\x03SELECT '"[..], &vec![b'x'; (1 << 24) - 1 - 9]].concat(),
    );
    raw.send(7, b"'");
    let rest = raw.receive_all();
    assert!(
        rest.len() <= 1,
        "an error at most, then the end: {} packets",
        rest.len()
    );
    bystander.check();
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_packet_disturbs_nobody() {
    let front = Front::new("truncated", &T);
    let mut bystander = Bystander::new(&front);
    let whole = packet(0, b"\x03SELECT a FROM t");
    for length in 1..whole.len() {
        let mut raw = Raw::log_in(front.remora().address(), front.schema());
        raw.send_bytes(&whole[..length]);
        raw.finish_sending();
        assert_eq!(raw.receive_all(), [], "{length} bytes are no statement");
    }
    // In the middle of a login.
    let mut raw = Raw::connect(front.remora().address());
    let login = raw.login(APP_PASSWORD, "truncated").packet(1);
    raw.send_bytes(&login[..login.len() / 2]);
    raw.finish_sending();
    assert_eq!(raw.receive_all(), []);
    // Before it.
    drop(Raw::connect(front.remora().address()));
    bystander.check();
    wait_for("the server's connections to end", PATIENCE, || {
        let mut root = front.server().root()?;
        let count = root.query_value("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app' AND db = 'truncated'")?;
        Ok((count.as_deref() == Some("1")).then_some(()))
    })
    .unwrap();
}

#[test]
fn garbage_in_place_of_a_login_gets_an_error() {
    let front = Front::new("garbage", &T);
    let mut bystander = Bystander::new(&front);
    let mut numbered = vec![
        packet(1, b""),
        packet(1, &[0; 3]),
        packet(1, &[0xff; 40]),
        packet(1, b"\x03SELECT 1"),
    ];
    // A login that ends too early, anywhere.
    let mut raw = Raw::connect(front.remora().address());
    let login = raw.login(APP_PASSWORD, "garbage").packet(1);
    numbered.extend([5, 31, 32].map(|length| packet(1, &login[4..4 + length])));
    for bytes in numbered {
        let mut raw = Raw::connect(front.remora().address());
        raw.receive().expect("a greeting");
        raw.send_bytes(&bytes);
        let (sequence, error) = raw.receive_error_and_end();
        assert_eq!(
            (sequence, error.code, error.sql_state.as_str()),
            (2, 1043, "08S01"),
            "{bytes:?}"
        );
        bystander.check();
    }
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        packet(0, &login[4..]),
        vec![0xff; 100],
    ] {
        let mut raw = Raw::connect(front.remora().address());
        raw.receive().expect("a greeting");
        raw.send_bytes(&bytes);
        let (_, error) = raw.receive_error_and_end();
        assert_eq!(error.code, 1156, "{bytes:?}");
        bystander.check();
    }
}

#[test]
fn a_client_that_asks_for_tls_is_told_that_there_is_none() {
    let front = Front::new("tls", &T);
    let mut bystander = Bystander::new(&front);
    let mut raw = Raw::connect(front.remora().address());
    let greeting = raw.receive().unwrap();
    let greeting = remora_wire::handshake::Greeting::parse(&greeting.payload).unwrap();
    assert!(
        !greeting.capabilities.has(Capabilities::SSL),
        "TLS is not offered"
    );
    let flags = Capabilities::PROTOCOL_41
        .with(Capabilities::SSL)
        .with(Capabilities::SECURE_CONNECTION);
    let mut request = u32::try_from(flags.0 & 0xffff_ffff)
        .unwrap()
        .to_le_bytes()
        .to_vec();
    request.extend([0, 0, 0, 1, 45]);
    request.extend([0; 23]);
    raw.send(1, &request);
    let (_, error) = raw.receive_error_and_end();
    assert_eq!(error.code, 1043);
    assert!(error.message.contains("TLS"), "{error}");
    bystander.check();
}

#[test]
fn a_packet_in_the_wrong_state_gets_what_a_direct_client_gets() {
    let front = Front::new("states", &T);
    let mut bystander = Bystander::new(&front);
    let unknown_statement = [&[0x17][..], &99u32.to_le_bytes(), &[0], &1u32.to_le_bytes()].concat();
    let fetch = [&[0x1c][..], &99u32.to_le_bytes(), &1u32.to_le_bytes()].concat();
    for payload in [
        unknown_statement.as_slice(),
        &fetch,
        b"\x17",
        b"\x1a\x63\0\0\0",
        b"\xee what is this",
        b"\x0f",
        b"\x03",
        b"\x02",
        b"\x04absent\0",
    ] {
        let mut direct = Raw::log_in(front.server().address(), front.schema());
        let mut through = Raw::log_in(front.remora().address(), front.schema());
        direct.send(0, payload);
        through.send(0, payload);
        assert_eq!(through.receive(), direct.receive(), "{payload:?}");
        // And is as usable after it.
        direct.send(0, b"\x03SELECT 1");
        through.send(0, b"\x03SELECT 1");
        assert_eq!(
            through.receive_answer(),
            direct.receive_answer(),
            "after {payload:?}"
        );
        bystander.check();
    }
    // An empty message.
    let mut through = Raw::log_in(front.remora().address(), front.schema());
    let mut direct = Raw::log_in(front.server().address(), front.schema());
    direct.send(0, b"");
    through.send(0, b"");
    assert_eq!(through.receive(), direct.receive());
    bystander.check();
}

/// The packets that answer a login, up to the end of the connection.
fn login_answer(address: SocketAddr, user: &str, password: &str, schema: &str) -> Vec<Packet> {
    let mut raw = Raw::connect(address);
    let mut login = raw.login(password, schema);
    user.as_bytes().clone_into(&mut login.user);
    raw.send_bytes(&login.packet(1));
    let mut packets: Vec<Packet> = raw.login_answer(password).into_iter().collect();
    packets.extend(raw.receive_all());
    packets
}

#[test]
fn a_refused_login_gets_the_servers_own_words() {
    let front = Front::new("refusals", &T);
    let mut bystander = Bystander::new(&front);
    for (user, password, schema, code) in [
        (APP_USER, "wrong", "refusals", 1045),
        (APP_USER, "", "refusals", 1045),
        ("nobody", "x", "", 1045),
        (APP_USER, APP_PASSWORD, "no_such_schema", 1049),
    ] {
        let direct = login_answer(front.server().address(), user, password, schema);
        let through = login_answer(front.remora().address(), user, password, schema);
        assert_eq!(through, direct);
        let error = ServerError::parse(&direct.last().unwrap().payload).unwrap();
        assert_eq!(error.code, code, "{error}");
        bystander.check();
    }
}

fn first_error(address: SocketAddr) -> (u8, ServerError) {
    Raw::connect(address).receive_error_and_end()
}

#[test]
fn a_server_that_is_down_is_error_2003_or_2002() {
    let server = lease();
    let nowhere = ports::free().unwrap().to_string();
    let options = RemoraOptions::default().with("upstream.address", &nowhere);
    let remora = InProcessRemora::start(&server, &options).unwrap();
    let (sequence, error) = first_error(remora.address());
    assert_eq!(
        (sequence, error.code, error.sql_state.as_str()),
        (0, 2003, "HY000")
    );
    assert!(
        error
            .message
            .starts_with(&format!("Can't connect to MySQL server on '{nowhere}' (")),
        "{error}"
    );

    let scratch = Scratch::new().unwrap();
    let path = scratch.join("absent").display().to_string();
    let options = RemoraOptions::default().with("upstream.address", &format!("unix:{path}"));
    let remora = InProcessRemora::start(&server, &options).unwrap();
    let (_, error) = first_error(remora.address());
    assert_eq!(error.code, 2002);
    assert!(error.message.contains(&path), "{error}");
    // An independent client takes it for what it is.
    let refused =
        remora_testkit::client::ConnectOptions::new(remora.address(), "app", "x").connect();
    assert_eq!(refused.err().and_then(|error| error.code()), Some(2002));
}

#[test]
fn one_connection_too_many_is_error_1040() {
    let options = RemoraOptions::following().with("workers.connections_max", "2");
    let front = Front::with("too_many", options, &T);
    let mut bystander = Bystander::new(&front);
    let second = Raw::log_in(front.remora().address(), front.schema());
    let (sequence, error) = first_error(front.remora().address());
    assert_eq!(
        (sequence, error.code, error.sql_state.as_str()),
        (0, 1040, "08004")
    );
    bystander.check();
    drop(second);
    wait_for("room for another", PATIENCE, || {
        let mut raw = Raw::connect(front.remora().address());
        Ok((raw.receive().unwrap().payload[0] == 10).then_some(()))
    })
    .unwrap();
    bystander.check();
}

#[test]
fn the_servers_own_limit_on_connections_is_relayed() {
    let front = Front::new("server_full", &T);
    let mut bystander = Bystander::new(&front);
    let mut user = front.server().root().unwrap();
    user.query("SET sql_log_bin=0").unwrap();
    let kind = front.server().kind();
    let identified = kind.identified_by("few");
    user.query(&format!("CREATE USER few@'%' {identified}"))
        .unwrap();
    user.query("GRANT ALL ON *.* TO few@'%'").unwrap();
    let limit = if kind == Kind::MySql56 {
        "GRANT USAGE ON *.* TO few@'%' WITH MAX_USER_CONNECTIONS 1"
    } else {
        "ALTER USER few@'%' WITH MAX_USER_CONNECTIONS 1"
    };
    user.query(limit).unwrap();
    let mut options = front.options();
    options.user = "few".to_owned();
    options.password = "few".to_owned();
    let through = options.clone().at(front.remora().address());
    let first = through.connect().unwrap();
    let direct = login_answer(front.server().address(), "few", "few", "");
    assert_eq!(
        login_answer(front.remora().address(), "few", "few", ""),
        direct
    );
    assert_eq!(
        ServerError::parse(&direct.last().unwrap().payload)
            .unwrap()
            .code,
        1226
    );
    drop(first);
    bystander.check();
}

#[test]
fn unix_sockets_work_on_both_sides() {
    let server = lease();
    server
        .execute([
            "CREATE DATABASE sockets",
            "CREATE TABLE sockets.t (a INT)",
            "INSERT INTO sockets.t VALUES (8)",
        ])
        .unwrap();
    let scratch = Scratch::new().unwrap();
    let path = scratch.join("remora.sock");
    let options = RemoraOptions::following()
        .with(
            "upstream.address",
            &format!("unix:{}", server.socket().display()),
        )
        .with(
            "listen.addresses",
            &format!("127.0.0.1:0,unix:{}", path.display()),
        );
    let remora = InProcessRemora::start(&server, &options).unwrap();
    let options = mysql_async::OptsBuilder::default()
        .socket(Some(path.display().to_string()))
        .user(Some(APP_USER))
        .pass(Some(APP_PASSWORD))
        .db_name(Some("sockets"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut client = mysql_async::Conn::new(options).await.unwrap();
        let hits = || remora.metrics().unwrap().sum("remora_hits_total");
        while hits() < 3.0 {
            let rows: Vec<i32> = client.query("SELECT a FROM t").await.unwrap();
            assert_eq!(rows, [8]);
        }
        let host: Option<String> = client.query_first("SELECT USER()").await.unwrap();
        assert_eq!(
            host.as_deref(),
            Some("app@localhost"),
            "the server sees a local client"
        );
        client.disconnect().await.unwrap();
    });
    // TCP in front and the socket behind, at the same time; and garbage there gets its error, too.
    let mut through = server.app().at(remora.address()).connect().unwrap();
    assert_eq!(
        through
            .query_value("SELECT a FROM sockets.t")
            .unwrap()
            .as_deref(),
        Some("8")
    );
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    std::io::Write::write_all(&mut stream, b"not a login at all, is it?").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("Got packets out of order"));
    drop(remora);
    assert!(
        UnixStream::connect(&path).is_err(),
        "nobody listens after the end"
    );
}

/// What an idle client sees when the administrator ends its connection: first unasked, then when it
/// asks.
fn killed_while_idle(server: &Server, address: SocketAddr) -> Vec<Packet> {
    let mut raw = Raw::log_in(address, "");
    raw.query("SELECT CONNECTION_ID()");
    let answer = raw.receive_answer();
    let row = &answer[answer.len() - 2].payload;
    let id = String::from_utf8(row[1..].to_vec()).unwrap();
    server
        .root()
        .unwrap()
        .query(&format!("KILL CONNECTION {id}"))
        .unwrap();
    raw.receive_all()
}

#[test]
fn an_idle_client_whose_connection_is_killed_sees_what_a_direct_one_sees() {
    let front = Front::new("idle", &T);
    let mut bystander = Bystander::new(&front);
    let direct = killed_while_idle(front.server(), front.server().address());
    let through = killed_while_idle(front.server(), front.remora().address());
    assert_eq!(through, direct);
    bystander.check();
}

#[test]
fn a_client_that_never_logs_in_is_ended_when_the_server_ends_it() {
    let front = Front::new("silent", &T);
    let mut root = front.server().root().unwrap();
    root.query("SET GLOBAL connect_timeout = 4").unwrap();
    let mut silent = std::net::TcpStream::connect(front.remora().address()).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = Vec::new();
    // The greeting, what the server says of the time that is up, and the end.
    std::io::Read::read_to_end(&mut silent, &mut said).unwrap();
    assert!(!said.is_empty());
    root.query("SET GLOBAL connect_timeout = DEFAULT").unwrap();
}

#[test]
fn a_client_that_leaves_while_its_write_runs_leaves_no_old_result() {
    let front = Front::new("leavers", &T);
    let mut reader = front.guest();
    let before = front
        .direct()
        .query_bytes("SELECT * FROM t")
        .unwrap()
        .to_vec();
    reader.becomes_hit("SELECT * FROM t", &before);
    let mut root = front.server().root().unwrap();
    root.query("LOCK TABLES leavers.t READ").unwrap();
    let mut raw = Raw::log_in(front.remora().address(), front.schema());
    raw.query("INSERT INTO t VALUES (2)");
    let waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO t VALUES (2)' AND db = 'leavers'";
    wait_for("the write to wait", PATIENCE, || {
        Ok((root.query_value(waiting)?.as_deref() == Some("1")).then_some(()))
    })
    .unwrap();
    drop(raw);
    root.query("UNLOCK TABLES").unwrap();
    wait_for("the write to be seen directly", PATIENCE, || {
        let rows = front.direct().query("SELECT * FROM t")?.rows()?;
        Ok((rows.len() == 2).then_some(()))
    })
    .unwrap();
    let after = front
        .direct()
        .query_bytes("SELECT * FROM t")
        .unwrap()
        .to_vec();
    assert_eq!(
        reader.run("SELECT * FROM t").bytes,
        after,
        "the fence stands until the follower has passed the write"
    );
    reader.becomes_hit("SELECT * FROM t", &after);
}

/// Sends a message in two parts, the second when the first has come: `received` counts what has.
fn send_in_two(raw: &mut Raw, payload: &[u8], first_bytes: u32, received: &dyn Fn() -> f64) {
    let message = packet(0, payload);
    let (first, rest) = message.split_at(first_bytes.try_into().unwrap());
    let before = received();
    raw.send_bytes(first);
    wait_for("the first part", PATIENCE, || {
        Ok((received() >= before + f64::from(first_bytes)).then_some(()))
    })
    .unwrap();
    raw.send_bytes(rest);
}

/// What long messages get whose first part comes alone.
fn long_answers(raw: &mut Raw, first_bytes: u32, received: &dyn Fn() -> f64) -> Vec<Packet> {
    let long = "x".repeat(300_000);
    let mut answers = Vec::new();
    let select = format!("\x03SELECT a, LENGTH('{long}') FROM t");
    send_in_two(raw, select.as_bytes(), first_bytes, received);
    answers.extend(raw.receive_answer());
    raw.send(0, b"\x16SELECT a, LENGTH(?) FROM t");
    // The statement, its parameter and its columns.
    let prepared: Vec<Packet> = (0..6).map(|_| raw.receive().unwrap()).collect();
    let id = &prepared[0].payload[1..5];
    let piece = [&[0x18], id, &[0, 0], long.as_bytes()].concat();
    for _ in 0..3 {
        send_in_two(raw, &piece, first_bytes, received);
    }
    raw.send(0, &[&[0x17], id, &[0, 1, 0, 0, 0, 0, 1, 0xfc, 0]].concat());
    answers.extend(raw.receive_answer());
    answers
}

#[test]
fn a_long_message_whose_header_comes_alone_is_understood() {
    let front = Front::new("long_header", &T);
    let mut direct = Raw::log_in(front.server().address(), front.schema());
    let expected = long_answers(&mut direct, 4, &|| f64::INFINITY);
    let received = || {
        let metrics = front.remora().metrics().unwrap();
        metrics.sum("remora_client_received_bytes_total")
    };
    for first_bytes in [4, 5, 7, 200] {
        let mut raw = Raw::log_in(front.remora().address(), front.schema());
        let before = received();
        let answers = long_answers(&mut raw, first_bytes, &received);
        assert_eq!(answers, expected, "after {first_bytes} bytes");
        // Also those of a message that is relayed piece by piece.
        assert!(received() - before > 1_200_000.0);
    }
}
