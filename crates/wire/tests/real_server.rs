//! The protocol as a real server speaks it. MariaDB always; with `REMORA_WIRE_PORT` set to the port
//! of any other server (a user `native` with the password in `support/server.rs`, all rights, and a
//! schema `shop`), the ignored test walks that one's answers.
//!
//! Servers: mariadb-10.11
//! Load: waits

mod support;

use remora_wire::attributes::statement_text;
use remora_wire::command::ResponseKind;
use remora_wire::handshake::Greeting;
use remora_wire::response::ServerError;
use remora_wire::walker::Ending;
use remora_wire::{Capabilities, StatusFlags};

use support::attributes;
use support::connection::Connection;
use support::server::{PASSWORD, Server};

const BASE: Capabilities = Capabilities::PROTOCOL_41
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .with(Capabilities::CONNECT_WITH_DB)
    .with(Capabilities::TRANSACTIONS)
    .with(Capabilities::MULTI_STATEMENTS)
    .with(Capabilities::MULTI_RESULTS)
    .with(Capabilities::PS_MULTI_RESULTS)
    .with(Capabilities::LOCAL_FILES);

/// What a server must be asked for to speak compressed, each by itself.
const COMPRESSED: [Capabilities; 2] = [Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION];

const MARIADB: [Capabilities; 4] = [
    Capabilities::DEPRECATE_EOF,
    Capabilities::SESSION_TRACK,
    Capabilities::MARIADB_CACHE_METADATA.with(Capabilities::MARIADB_EXTENDED_METADATA),
    Capabilities::MARIADB_PROGRESS,
];
const MYSQL: [Capabilities; 3] = [
    Capabilities::DEPRECATE_EOF,
    Capabilities::SESSION_TRACK,
    Capabilities::OPTIONAL_RESULTSET_METADATA,
];

/// All sets of the capabilities that change what an answer looks like.
fn flavours(of: &[Capabilities]) -> Vec<Capabilities> {
    let mut flavours = vec![BASE];
    for one in of {
        let with: Vec<_> = flavours.iter().map(|set| set.with(*one)).collect();
        flavours.extend(with);
    }
    flavours
}

#[test]
fn the_password_is_proved_and_a_wrong_one_refused() {
    let server = Server::shared();
    let mut connection = Connection::login(server.port, "native", PASSWORD, BASE).unwrap();
    connection.assert_in_step();
    let refused = Connection::login(server.port, "native", "wrong", BASE).unwrap_err();
    assert_eq!((refused.code, &refused.sql_state[..]), (1045, "28000"));
    let refused = Connection::login(server.port, "native", "", BASE).unwrap_err();
    assert!(refused.message.contains("native"), "{refused}");
}

#[test]
fn the_servers_greeting_is_understood_to_the_last_byte() {
    let server = Server::shared();
    let connection = Connection::login(server.port, "native", PASSWORD, BASE).unwrap();
    let greeting = &connection.greeting;
    assert_eq!(greeting.payload(), connection.greeting_payload);
    assert!(greeting.server_version.contains("MariaDB"));
    assert_eq!(greeting.salt.len(), 20);
    assert_eq!(greeting.plugin, "mysql_native_password");
    assert_eq!(StatusFlags(greeting.status), StatusFlags::AUTOCOMMIT);
    assert!(!greeting.capabilities.has(Capabilities::MYSQL));
    let wanted = BASE.with(Capabilities::MARIADB_CACHE_METADATA);
    assert!(greeting.capabilities.has(wanted));
    assert!(Greeting::parse(&connection.greeting_payload[..40]).is_err());
}

#[test]
fn every_kind_of_answer_is_walked_to_its_end() {
    let server = Server::shared();
    for wanted in flavours(&MARIADB) {
        walk_everything(server.port, wanted);
    }
}

#[test]
#[ignore = "needs REMORA_WIRE_PORT"]
fn every_kind_of_answer_of_another_server_is_walked_to_its_end() {
    let port = std::env::var("REMORA_WIRE_PORT").expect("REMORA_WIRE_PORT is set");
    for wanted in flavours(&MYSQL) {
        walk_everything(port.parse().unwrap(), wanted);
    }
}

#[test]
fn every_kind_of_answer_is_walked_to_its_end_through_compression() {
    let server = Server::shared();
    walk_everything(server.port, BASE.with(Capabilities::COMPRESS));
    long_commands_and_answers_pass_compressed(server.port);
}

#[test]
#[ignore = "needs REMORA_WIRE_PORT"]
fn every_kind_of_answer_of_another_server_is_walked_to_its_end_through_compression() {
    let port = std::env::var("REMORA_WIRE_PORT").expect("REMORA_WIRE_PORT is set");
    for algorithm in COMPRESSED {
        walk_everything(port.parse().unwrap(), BASE.with(algorithm));
    }
    long_commands_and_answers_pass_compressed(port.parse().unwrap());
}

/// Inner numbers jump, outer ones come round to 0, and a command is longer than a packet.
fn long_commands_and_answers_pass_compressed(port: u16) {
    for algorithm in COMPRESSED {
        let mut connection =
            Connection::login(port, "native", PASSWORD, BASE.with(algorithm)).expect("a login");
        if !connection.capabilities.has(algorithm) {
            continue;
        }
        let schema = format!("compressed_{:x}", algorithm.0);
        connection.must(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
        connection.must(&format!("USE {schema}"));
        connection.must("DROP TABLE IF EXISTS loaded");
        connection.must("CREATE TABLE loaded (a TEXT)");
        let before = connection.received_bytes;
        let reply = connection.query("SELECT REPEAT('x', 1000000); DO 1; SELECT 2; DO 2; SELECT 3");
        assert_eq!(reply.summary.results, 5);
        assert!(reply.summary.numbered_from_one);
        assert!(
            connection.received_bytes - before < 100_000,
            "not compressed"
        );
        connection.assert_in_step();
        for filler in [0xff_ffff - 100, 0xff_ffff, 0x1ff_ffff] {
            let text = format!("SELECT 1 /* {} */", "x".repeat(filler));
            let reply = connection.query(&text);
            assert_eq!(reply.summary.ending, Ending::ResultSet);
            let first = reply.bytes[3];
            assert_eq!(
                usize::from(first),
                1 + (text.len() + 1) / 0xff_ffff,
                "{filler}"
            );
            connection.assert_in_step();
        }
        for packets in [1, 3, 255, 256, 300, 600] {
            connection.file_packets = packets;
            let loaded = connection.query(
                "SELECT 1 UNION SELECT 2 UNION SELECT 3; DO 1; \
                 LOAD DATA LOCAL INFILE 'rows' INTO TABLE loaded; SELECT 2",
            );
            assert_eq!(loaded.summary.ending, Ending::ResultSet);
            assert_eq!(loaded.summary.results, 4, "{packets}");
            connection.assert_in_step();
        }
        connection.must(&format!("DROP SCHEMA {schema}"));
    }
}

#[test]
#[ignore = "needs REMORA_WIRE_PORT"]
fn a_statement_is_found_behind_query_attributes_where_the_server_finds_it() {
    let port = std::env::var("REMORA_WIRE_PORT").expect("REMORA_WIRE_PORT is set");
    let wanted = BASE.with(Capabilities::QUERY_ATTRIBUTES);
    let login = || Connection::login(port.parse().unwrap(), "native", PASSWORD, wanted);
    let mut connection = login().expect("a login");
    assert!(connection.capabilities.has(Capabilities::QUERY_ATTRIBUTES));
    for (name, body) in attributes::bodies("DO 1") {
        let found = statement_text(&body);
        let reply = connection.command(&[b"\x03", &body[..]].concat());
        if name.starts_with("malformed") {
            assert!(found.is_err(), "{name}");
            assert_eq!(reply.summary.ending, Ending::Err(1835), "{name}");
        } else {
            assert_eq!(found.unwrap_or_default().1, b"DO 1", "{name}");
            assert_eq!(reply.summary.ending, Ending::Ok, "{name}");
        }
        connection.assert_in_step();
    }
}

fn walk_everything(port: u16, wanted: Capabilities) {
    let mut connection = Connection::login(port, "native", PASSWORD, wanted).expect("a login");
    // In any order and at once: every test and flavour has tables of its own.
    let schema = format!("flavour_{:x}", wanted.0);
    connection.must(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
    connection.must(&format!("USE {schema}"));
    for table in ["t", "loaded"] {
        connection.must(&format!("DROP TABLE IF EXISTS {table}"));
        connection.must(&format!("CREATE TABLE {table} (a INT PRIMARY KEY, b TEXT)"));
    }
    connection.must("INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, '')");
    walk_queries(&mut connection);
    walk_routines(&mut connection);
    walk_statements(&mut connection);
    walk_cursor(&mut connection);
    walk_small_commands(&mut connection);
    if [BASE, BASE.with(Capabilities::DEPRECATE_EOF)].contains(&wanted) {
        walk_large_rows(&mut connection);
    }
    if wanted.has(Capabilities::OPTIONAL_RESULTSET_METADATA)
        && connection.greeting.capabilities.has(Capabilities::MYSQL)
    {
        walk_without_definitions(&mut connection);
    }
    connection.must(&format!("DROP SCHEMA {schema}"));
}

fn walk_queries(connection: &mut Connection) {
    for (text, ending, results) in [
        ("SELECT * FROM t", Ending::ResultSet, 1),
        ("SELECT b FROM t WHERE a = 2", Ending::ResultSet, 1),
        ("SELECT * FROM t WHERE a > 9", Ending::ResultSet, 1),
        ("UPDATE t SET b = 'x' WHERE a = 3", Ending::Ok, 1),
        ("SELECT * FROM nowhere", Ending::Err(1146), 1),
        ("SHOW TABLES; DO 1; SELECT 2", Ending::ResultSet, 3),
        ("SELECT 1; DO 1", Ending::Ok, 2),
        ("SELECT 1; SELECT * FROM nowhere", Ending::Err(1146), 2),
        ("CHECK TABLE t", Ending::ResultSet, 1),
        ("SHOW VARIABLES", Ending::ResultSet, 1),
        ("SET NAMES latin1", Ending::Ok, 1),
    ] {
        let reply = connection.query(text);
        let summary = reply.summary;
        assert_eq!(
            (summary.ending, summary.results),
            (ending, results),
            "{text}"
        );
        assert!(summary.numbered_from_one, "{text}");
        connection.assert_in_step();
    }
    let load = "LOAD DATA LOCAL INFILE 'rows' INTO TABLE loaded (a)";
    let loaded = connection.query(load);
    assert_eq!(loaded.summary.ending, Ending::Ok);
    assert!(!loaded.summary.numbered_from_one);
    connection.assert_in_step();
}

fn walk_routines(connection: &mut Connection) {
    connection.must("DROP PROCEDURE IF EXISTS several");
    connection.must(
        "CREATE PROCEDURE several(OUT out1 INT) BEGIN \
         SELECT * FROM t; SELECT 1 FROM t WHERE a > 9; SET out1 = 7; END",
    );
    connection.must("DROP FUNCTION IF EXISTS fails_at");
    connection.must(
        "CREATE FUNCTION fails_at(n INT) RETURNS INT NO SQL BEGIN \
         IF n = 3 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 3000; END IF; RETURN n; END",
    );
    let called = connection.query("CALL several(@out1)");
    assert_eq!(
        (called.summary.ending, called.summary.results),
        (Ending::Ok, 3)
    );
    connection.assert_in_step();
    let failed = connection.query("SELECT fails_at(a) FROM t");
    assert_eq!(failed.summary.ending, Ending::Err(3000));
    // Not before: the column count and two rows have been sent.
    assert!(failed.payloads().len() >= 4);
    connection.assert_in_step();
    let (prepared, _) = prepare(connection, "CALL several(?)");
    let called = execute(connection, prepared, &[0x01, 0x01, 0x08, 0x00], 0);
    assert_eq!((called.ending, called.results), (Ending::Ok, 4));
    connection.assert_in_step();
}

/// Prepares; gives the statement's number and how many packets the answer had.
fn prepare(connection: &mut Connection, text: &str) -> (u32, usize) {
    let reply = connection.command(&[b"\x16", text.as_bytes()].concat());
    connection.assert_in_step();
    match reply.summary.ending {
        Ending::Prepared { statement_id, .. } => (statement_id, reply.payloads().len()),
        other => panic!("{text}: {other:?}"),
    }
}

/// Executes with `parameters` (NULL bitmap and what follows it).
fn execute(
    connection: &mut Connection,
    statement_id: u32,
    parameters: &[u8],
    cursor: u8,
) -> remora_wire::walker::Summary {
    let mut command = vec![0x17];
    command.extend(statement_id.to_le_bytes());
    command.extend([cursor, 1, 0, 0, 0]);
    command.extend_from_slice(parameters);
    let reply = connection.command(&command);
    assert!(reply.summary.numbered_from_one);
    reply.summary
}

fn walk_statements(connection: &mut Connection) {
    for (text, parameters) in [
        ("SELECT * FROM t", &[][..]),
        ("SELECT * FROM t WHERE a = ?", &[0, 1, 0x03, 0, 2, 0, 0, 0]),
        ("INSERT INTO t VALUES (100, ?)", &[1, 1, 0x06, 0]),
        ("DELETE FROM t WHERE a = 100", &[]),
        ("DO 1", &[]),
    ] {
        let (statement_id, _) = prepare(connection, text);
        // The second time MariaDB may leave out what has not changed.
        for _ in 0..2 {
            let summary = execute(connection, statement_id, parameters, 0);
            match summary.ending {
                Ending::ResultSet => assert!(text.starts_with("SELECT")),
                Ending::Err(code) => assert_eq!(code, 1062, "{text}"),
                _ => {}
            }
            connection.assert_in_step();
        }
    }
    let refused = connection.command(b"\x16SELECT FROM WHERE");
    assert_eq!(refused.summary.ending, Ending::Err(1064));
    connection.assert_in_step();
}

fn walk_cursor(connection: &mut Connection) {
    let (statement_id, _) = prepare(connection, "SELECT * FROM t ORDER BY a");
    let opened = execute(connection, statement_id, &[], 1);
    let status = opened.mark.expect("an end mark").status;
    assert!(status.has(StatusFlags::CURSOR_EXISTS), "{opened:?}");
    connection.assert_in_step();
    for (rows, last) in [(2u32, false), (2, true)] {
        let fetch = [
            &[0x1c],
            &statement_id.to_le_bytes()[..],
            &rows.to_le_bytes(),
        ]
        .concat();
        let fetched = connection.command(&fetch);
        assert_eq!(fetched.summary.ending, Ending::ResultSet);
        let status = fetched.summary.mark.expect("an end mark").status;
        assert_eq!(status.has(StatusFlags::LAST_ROW_SENT), last);
        connection.assert_in_step();
    }
    let fetch = [&[0x1c], &statement_id.to_le_bytes()[..], &[1, 0, 0, 0]].concat();
    let fetched = connection.command(&fetch);
    assert!(matches!(fetched.summary.ending, Ending::Err(_)));
    connection.assert_in_step();
}

fn walk_small_commands(connection: &mut Connection) {
    let listed = connection.command(b"\x04t\0");
    if let Ending::Err(code) = listed.summary.ending {
        // MySQL 8.4 knows the command no longer.
        assert_eq!(code, 1047);
    } else {
        assert_eq!(listed.summary.ending, Ending::ResultSet);
        assert_eq!(listed.payloads().len(), 3);
    }
    connection.assert_in_step();
    assert_eq!(
        connection.command(b"\x04nowhere\0").summary.ending,
        Ending::Err(1146)
    );
    connection.assert_in_step();
    let statistics = connection.command(b"\x09");
    assert!(statistics.payloads()[0].starts_with(b"Uptime"));
    connection.assert_in_step();
    for command in [&b"\x1b\0\0"[..], b"\x02shop", b"\x0a", b"\x1f"] {
        let answered = connection.command(command);
        assert!(answered.summary.mark.is_some(), "{command:?}");
        connection.assert_in_step();
    }
    let unknown = connection.command_expecting(&[0x63], ResponseKind::Single);
    let error = ServerError::parse(&unknown.payloads()[0]).expect("an error");
    assert_eq!((error.code, &error.sql_state[..]), (1047, "08S01"));
    connection.assert_in_step();
}

fn walk_large_rows(connection: &mut Connection) {
    const FULL: usize = 0xff_ffff;
    for bytes in [FULL - 5, FULL - 4, FULL - 3, FULL, FULL + 1] {
        let reply = connection.query(&format!("SELECT REPEAT('\u{7f}', {bytes}), 1"));
        assert_eq!(reply.summary.ending, Ending::ResultSet, "{bytes}");
        assert!(reply.summary.numbered_from_one);
        assert!(reply.bytes.len() > bytes);
        connection.assert_in_step();
    }
}

/// MySQL 8: the client asks for no column definitions.
fn walk_without_definitions(connection: &mut Connection) {
    connection.must("SET resultset_metadata = NONE");
    let reply = connection.query("SELECT 1, 2");
    assert_eq!(reply.summary.ending, Ending::ResultSet);
    assert!(reply.payloads().len() <= 4);
    connection.assert_in_step();
    for text in ["SELECT 1, 2", "SELECT 1, ?", "DO ?"] {
        let (_, packets) = prepare(connection, text);
        assert!(packets <= 3, "{text}");
    }
    connection.must("SET resultset_metadata = FULL");
}
