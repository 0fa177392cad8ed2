//! Commands other than statements: each is answered as the server itself answers it, and none is
//! followed by an old row.

use std::io::{Read as _, Write as _};

use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::process::wait_for;
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;
use remora_wire::packet::{HEADER_BYTES, put_message};

use remora_behaviour::front::{Front, Guest, PATIENCE, PING, assert_same};

const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, NULL)",
];
const READ: &str = "SELECT * FROM t";

const INIT_DB: u8 = 0x02;
const FIELD_LIST: u8 = 0x04;
const CREATE_DB: u8 = 0x05;
const DROP_DB: u8 = 0x06;
const REFRESH: u8 = 0x07;
const STATISTICS: u8 = 0x09;
const PROCESS_INFO: u8 = 0x0a;
const PROCESS_KILL: u8 = 0x0c;
const DEBUG: u8 = 0x0d;
const BINLOG_DUMP: u8 = 0x12;
const REGISTER_REPLICA: u8 = 0x15;
const SET_OPTION: u8 = 0x1b;
const RESET_CONNECTION: u8 = 0x1f;

fn answer(client: &mut Client, byte: u8, body: &[u8], expect: ResponseKind) -> Vec<u8> {
    match client.command(byte, body, expect) {
        Ok(_) | Err(ClientError::Server(_)) => client.answer_bytes().to_vec(),
        Err(error) => panic!("command {byte}: {error}"),
    }
}

fn warm(front: &Front, guest: &mut Guest<'_>) {
    let expected = front.direct().query_bytes(READ).unwrap().to_vec();
    guest.becomes_hit(READ, &expected);
}

#[test]
fn each_command_is_answered_as_the_server_answers_it() {
    let front = Front::new("commands", &T);
    let (mut direct, mut guest) = (front.direct(), front.guest());
    let commands: [(u8, &[u8], ResponseKind); 13] = [
        (FIELD_LIST, b"t\0", ResponseKind::Columns),
        (FIELD_LIST, b"t\0a%", ResponseKind::Columns),
        (FIELD_LIST, b"no_such_table\0", ResponseKind::Columns),
        (INIT_DB, b"mysql", ResponseKind::Single),
        (INIT_DB, b"no_such_schema", ResponseKind::Single),
        (INIT_DB, b"commands", ResponseKind::Single),
        (PING, b"", ResponseKind::Single),
        (REFRESH, &[0x40], ResponseKind::Single),
        (DEBUG, b"", ResponseKind::Single),
        (SET_OPTION, &[1, 0], ResponseKind::Single),
        (SET_OPTION, &[0, 0], ResponseKind::Single),
        (RESET_CONNECTION, b"", ResponseKind::Single),
        // No command has this number.
        (0x7e, b"", ResponseKind::Single),
    ];
    for (byte, body, expect) in commands {
        // Not with the bytes of the hit before it.
        warm(&front, &mut front.guest());
        let expected = answer(&mut direct, byte, body, expect);
        let seen = answer(guest.client(), byte, body, expect);
        assert_same(&format!("command {byte} {body:?}"), &seen, &expected);
    }
}

#[test]
fn statistics_and_processes_are_the_servers() {
    let front = Front::new("commands_live", &T);
    let mut guest = front.guest();
    let line = answer(guest.client(), STATISTICS, b"", ResponseKind::Single);
    let line = String::from_utf8_lossy(&line[HEADER_BYTES..]).into_owned();
    assert!(line.starts_with("Uptime: "), "{line}");
    // How long each has run differs; that this connection is among them doesn't.
    let processes = answer(guest.client(), PROCESS_INFO, b"", ResponseKind::Results);
    let own = guest.client().connection_id().to_string();
    let is_there = processes
        .windows(own.len())
        .any(|window| window == own.as_bytes());
    assert!(is_there || processes[HEADER_BYTES] == 0xff, "{processes:?}");
}

#[test]
fn schemas_made_and_dropped_by_command_drop_results() {
    let front = Front::new("commands_schemas", &T);
    let mut direct = front.direct();
    let mut guest = front.guest();
    let create = answer(
        &mut direct,
        CREATE_DB,
        b"commands_made",
        ResponseKind::Single,
    );
    if create[HEADER_BYTES] == 0xff {
        println!("left out: this server no longer knows the command");
        let seen = answer(
            guest.client(),
            CREATE_DB,
            b"commands_made",
            ResponseKind::Single,
        );
        return assert_same("refused", &seen, &create);
    }
    direct
        .query("CREATE TABLE commands_made.t AS SELECT 1 AS a")
        .unwrap();
    let text = "SELECT * FROM commands_made.t";
    let before = direct.query_bytes(text).unwrap().to_vec();
    guest.becomes_hit(text, &before);
    let mut other = front.guest();
    let dropped = answer(
        other.client(),
        DROP_DB,
        b"commands_made",
        ResponseKind::Single,
    );
    assert_eq!(dropped[HEADER_BYTES], 0, "{dropped:?}");
    let expected = direct.query_bytes(text).unwrap().to_vec();
    assert_same("dropped", &guest.run(text).bytes, &expected);
}

#[test]
fn a_connection_killed_by_command_ends() {
    let front = Front::new("commands_kill", &T);
    let mut victim = front.guest();
    let id = victim.client().connection_id();
    let mut killer = front.guest();
    let done = answer(
        killer.client(),
        PROCESS_KILL,
        &id.to_le_bytes(),
        ResponseKind::Single,
    );
    if done[HEADER_BYTES] == 0xff {
        // MySQL 8.4 has it no more.
        let mut direct = front.direct();
        let expected = answer(
            &mut direct,
            PROCESS_KILL,
            &id.to_le_bytes(),
            ResponseKind::Single,
        );
        return assert_same("refused", &done, &expected);
    }
    wait_for("the end of the connection", PATIENCE, || {
        Ok(victim.client().query("DO 1").is_err().then_some(()))
    })
    .unwrap();
}

/// Reads from a stream that never ends until `done` is content with what has come.
fn read_until(client: &Client, mut done: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut stream = client.stream();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
    while !done(&all) {
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "the stream ended: {all:?}");
        all.extend_from_slice(&chunk[..count]);
    }
    all
}

#[test]
fn a_replica_follows_the_log_through_remora() {
    let front = Front::new("commands_replica", &T);
    let mut direct = front.direct();
    let status = direct
        .query("SHOW MASTER STATUS")
        .or_else(|_| {
            front
                .direct()
                .query("SHOW BINARY LOG STATUS")
                .map(|_| unreachable!())
        })
        .unwrap()
        .rows()
        .unwrap();
    let file = status[0][0].clone().unwrap();
    let offset: u32 = String::from_utf8_lossy(status[0][1].as_ref().unwrap())
        .parse()
        .unwrap();
    let mut guest = front.guest();
    guest.setup(&[
        "SET @master_binlog_checksum = @@global.binlog_checksum",
        "SET @mariadb_slave_capability = 4",
    ]);
    let number = 777_777_u32.to_le_bytes();
    let register = [&number[..], &[0; 3 + 2 + 4 + 4]].concat();
    let registered = answer(
        guest.client(),
        REGISTER_REPLICA,
        &register,
        ResponseKind::Single,
    );
    assert_eq!(registered[HEADER_BYTES], 0, "{registered:?}");
    let mut dump = vec![BINLOG_DUMP];
    dump.extend(offset.to_le_bytes());
    dump.extend([0, 0]);
    dump.extend(number);
    dump.extend(file);
    let mut message = Vec::new();
    put_message(&mut message, 0, &dump);
    guest.client().stream().write_all(&message).unwrap();
    direct
        .query("INSERT INTO t VALUES (100, 'for the replica to see')")
        .unwrap();
    let wanted = b"for the replica to see";
    let seen = read_until(guest.client(), |all| {
        all.windows(wanted.len()).any(|window| window == wanted)
    });
    assert!(seen.len() > wanted.len());
    // And it goes on.
    direct
        .query("INSERT INTO t VALUES (101, 'and more of it')")
        .unwrap();
    let wanted = b"and more of it";
    read_until(guest.client(), |all| {
        all.windows(wanted.len()).any(|window| window == wanted)
    });
}

#[test]
fn rows_found_or_changed_are_counted_as_the_client_asked() {
    let front = Front::new("commands_found_rows", &T);
    let same = "UPDATE t SET s = 'one' WHERE a = 1";
    for further in [Capabilities(0), Capabilities::FOUND_ROWS] {
        let options = ConnectOptions {
            further,
            ..front.options()
        };
        let expected = options
            .connect()
            .unwrap()
            .query_bytes(same)
            .unwrap()
            .to_vec();
        let mut guest = front.guest_as(&options);
        assert_same(same, &guest.run(same).bytes, &expected);
        warm(&front, &mut guest);
        assert_same(same, &guest.run(same).bytes, &expected);
    }
}

#[test]
fn what_a_session_tracks_is_told_beside_hits() {
    let front = Front::new("commands_tracking", &T);
    if !front.server().kind().tracks_sessions() {
        println!("left out: this server tracks no sessions");
        return;
    }
    let options = ConnectOptions {
        further: Capabilities::SESSION_TRACK,
        ..front.options()
    };
    let mut direct = options.connect().unwrap();
    let mut guest = front.guest_as(&options);
    let statements = [
        "SET SESSION session_track_schema = ON",
        "SET SESSION session_track_state_change = ON",
        "SET SESSION session_track_system_variables = '*'",
        "SET SESSION session_track_transaction_info = 'CHARACTERISTICS'",
        READ,
        "USE mysql",
        "USE commands_tracking",
        "SET NAMES latin1",
        READ,
        "SET NAMES utf8mb4",
        "BEGIN",
        READ,
        "COMMIT",
        READ,
        "SET SESSION session_track_transaction_info = 'OFF'",
        READ,
    ];
    for sql in statements {
        for _ in 0..if sql == READ { 4 } else { 1 } {
            let expected = direct.query_bytes(sql).unwrap().to_vec();
            assert_same(sql, &guest.run(sql).bytes, &expected);
        }
    }
    let expected = direct.query_bytes(READ).unwrap().to_vec();
    guest.becomes_hit(READ, &expected);
}

#[test]
fn optional_column_definitions_are_kept_apart() {
    let front = Front::new("commands_metadata", &T);
    let options = ConnectOptions {
        further: Capabilities::OPTIONAL_RESULTSET_METADATA,
        ..front.options()
    };
    let mut direct = options.connect().unwrap();
    if !direct
        .capabilities()
        .has(Capabilities::OPTIONAL_RESULTSET_METADATA)
    {
        println!("left out: this server always sends definitions");
        return;
    }
    let mut guest = front.guest_as(&options);
    for mode in ["NONE", "FULL", "NONE"] {
        let set = format!("SET resultset_metadata = {mode}");
        direct.query(&set).unwrap();
        guest.setup(&[&set]);
        let expected = direct.query_bytes(READ).unwrap().to_vec();
        guest.becomes_hit(READ, &expected);
    }
    warm(&front, &mut front.guest());
}
