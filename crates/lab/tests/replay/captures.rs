//! Captures of real sessions.

use remora_lab::replay::{Action, Captured, Format, Settings, read_bytes};
use remora_testkit::certificates::Authority;
use remora_testkit::client::{Algorithm, Client, ConnectOptions, Value};
use remora_testkit::load::random::Random;
use remora_testkit::servers::{Kind, Server, ServerOptions};
use remora_wire::Capabilities;
use remora_wire::command::ResponseKind;

use crate::wire::{PORT, Packet, Relay, disturb, packets, pcap, pcapng};
use crate::{said, settings};

const LONG: usize = 40_000;

fn session(client: &mut Client) {
    client.query("SELECT 'captured'").unwrap();
    client.query("USE `mysql`").unwrap();
    client
        .query(&format!("SELECT LENGTH('{}')", "x".repeat(LONG)))
        .unwrap();
    client.command(0x02, b"lab", ResponseKind::Single).unwrap();
    let two = client.prepare(b"SELECT ?, ?").unwrap();
    client.prepare(b"SELECT nothing FROM nowhere").unwrap_err();
    let none = client.prepare(b"SELECT 5").unwrap();
    client.execute(two, &[Value::Int(-7), Value::Null]).unwrap();
    client.execute(none, &[]).unwrap();
    client
        .execute(two, &[Value::Text(b"text".to_vec()), Value::Double(1.5)])
        .unwrap();
    client.close_statement(two).unwrap();
    client.query("SELECT 'the last'").unwrap();
    client.command(0x01, &[], ResponseKind::Nothing).unwrap();
}

fn expected() -> Vec<(Option<String>, Vec<u8>)> {
    let long = format!("SELECT LENGTH('{}')", "x".repeat(LONG));
    [
        ("lab", "SELECT 'captured'"),
        ("lab", "USE `mysql`"),
        ("mysql", &long),
        ("lab", "SELECT ?, ?"),
        ("lab", "SELECT 5"),
        ("lab", "SELECT ?, ?"),
        ("lab", "SELECT 'the last'"),
        ("lab", "(quit)"),
    ]
    .into_iter()
    .map(|(schema, text)| (Some(schema.to_owned()), text.as_bytes().to_vec()))
    .collect()
}

/// What passed when a client with these options had its session.
fn captured(server: &Server, options: &ConnectOptions) -> Vec<(bool, Vec<u8>)> {
    let relay = Relay::to(server.address());
    let mut client = options.clone().at(relay.address).connect().unwrap();
    session(&mut client);
    // The relay has seen the last command when the server has ended the connection.
    while client.query("SELECT 1").is_ok() {}
    let mut passed = relay.passed();
    assert_eq!(passed.len(), 1);
    passed.remove(0)
}

fn read(packets: &[Packet], format: &str) -> Captured {
    let bytes = if format == "pcap" {
        pcap(packets)
    } else {
        pcapng(packets)
    };
    assert_eq!(remora_lab::replay::detect(&bytes), Some(Format::Pcap));
    read_bytes(&bytes, Format::Pcap, &settings(PORT)).unwrap()
}

fn reasons(captured: &Captured) -> String {
    captured
        .left_out
        .keys()
        .cloned()
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn a_capture_holds_what_clients_sent_however_it_is_disturbed() {
    let seed = Random::fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let server = Server::start(ServerOptions::default()).unwrap();
    let mut attributes = server.app();
    attributes.further = Capabilities::QUERY_ATTRIBUTES;
    attributes.query_attributes = vec![("trace".to_owned(), "a".to_owned())];
    for options in [server.app(), attributes] {
        let passed = captured(&server, &options);
        for round in 0..40 {
            let mut all = packets(1, &passed, &mut random);
            if round > 0 {
                disturb(&mut all, &mut random);
            }
            let format = if round % 2 == 0 { "pcap" } else { "pcapng" };
            let captured = read(&all, format);
            let all = said(&captured, b"captured");
            assert_eq!(
                brief(&all),
                brief(&expected()),
                "seed {seed}, round {round}: {}",
                reasons(&captured)
            );
            assert!(all == expected(), "seed {seed}, round {round}");
            assert!(
                captured.left_out.is_empty(),
                "seed {seed}: {}",
                reasons(&captured)
            );
            executions(&captured);
        }
    }
}

/// For messages.
fn brief(said: &[(Option<String>, Vec<u8>)]) -> Vec<(Option<String>, String, usize)> {
    let one = |(schema, text): &(Option<String>, Vec<u8>)| {
        let head = String::from_utf8_lossy(&text[..text.len().min(20)]).into_owned();
        (schema.clone(), head, text.len())
    };
    said.iter().map(one).collect()
}

/// The values come as the client has bound them.
fn executions(captured: &Captured) {
    let executions: Vec<_> = captured
        .events
        .iter()
        .filter_map(|event| match &event.action {
            Action::Execution(execution) => Some(execution),
            _ => None,
        })
        .collect();
    assert_eq!(executions.len(), 3);
    assert_eq!(executions[0].types, [0x08, 0, 0x06, 0]);
    assert_eq!(
        executions[0].values,
        [&[0b10][..], &(-7_i64).to_le_bytes()].concat()
    );
    assert!(executions[1].types.is_empty() && executions[1].values.is_empty());
    assert_eq!(executions[2].types, [0xfd, 0, 0x05, 0]);
    assert_eq!(
        executions[2].values,
        [&[0][..], b"\x04text", &1.5_f64.to_le_bytes()].concat()
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut random = Random::new(7);
    let authority = Authority::new().unwrap();
    let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
    let mut options = ServerOptions::default();
    if Kind::from_environment().unwrap() == Kind::MariaDb1011 {
        for (option, path) in [("cert", files.certificate), ("key", files.key)] {
            options
                .further
                .push(format!("--ssl-{option}={}", path.display()));
        }
    }
    let server = Server::start(options).unwrap();
    let plain = captured(&server, &server.app());
    let whole = packets(1, &plain, &mut random);

    // A segment of the long statement is missing.
    let from_client = |(_, bytes): &&Packet| bytes[34..36] != PORT.to_be_bytes();
    let longest = whole
        .iter()
        .filter(from_client)
        .max_by_key(|(_, bytes)| bytes.len())
        .unwrap()
        .clone();
    let gap: Vec<Packet> = whole
        .iter()
        .filter(|packet| **packet != longest)
        .cloned()
        .collect();
    let captured_gap = read(&gap, "pcap");
    assert_eq!(said(&captured_gap, b"captured"), expected()[..2]);
    assert!(
        reasons(&captured_gap).contains("bytes that are missing"),
        "{}",
        reasons(&captured_gap)
    );

    // The capture begins within the connection: at a whole command.
    let late = read(&whole[8..], "pcapng");
    assert!(said(&late, b"the last").len() >= 2);
    assert_eq!(late.events[0].schema, None);

    let compressed = ConnectOptions {
        compression: Some(Algorithm::Zlib),
        ..server.app()
    };
    let compressed = captured(&server, &compressed);
    let compressed = read(&packets(2, &compressed, &mut random), "pcap");
    assert_eq!(compressed.events, []);
    assert!(reasons(&compressed).contains("compression"));

    let sealed = ConnectOptions {
        tls: true,
        ..server.app()
    };
    let client = sealed.connect().unwrap();
    if !client.capabilities().has(Capabilities::SSL) {
        return;
    }
    let sealed = captured(&server, &sealed);
    let sealed = read(&packets(3, &sealed, &mut random), "pcap");
    assert_eq!(sealed.events, []);
    assert!(reasons(&sealed).contains("TLS"));
}

#[test]
fn no_capture_makes_the_reader_panic() {
    let seed = Random::fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let server = Server::start(ServerOptions::default()).unwrap();
    let passed = captured(&server, &server.app());
    let settings = Settings {
        skip_malformed: true,
        ..settings(PORT)
    };
    for round in 0..400 {
        let mut all = packets(1, &passed, &mut random);
        disturb(&mut all, &mut random);
        // Broken within packets, where the file as such is fine, and broken as a file.
        for _ in 0..random.below(8) {
            let packet = random.below(all.len());
            let bytes = &mut all[packet].1;
            let at = random.below(bytes.len());
            if random.below(3) == 0 {
                bytes.truncate(at);
                bytes.push(0);
            } else {
                bytes[at] = u8::try_from(random.below(256)).unwrap();
            }
        }
        let mut bytes = if round % 2 == 0 {
            pcap(&all)
        } else {
            pcapng(&all)
        };
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes.truncate(at.max(30)),
                1 => drop(bytes.splice(at..at, [0xff; 3])),
                _ => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            }
        }
        // An error is fine.
        let _ = read_bytes(&bytes, Format::Pcap, &settings);
    }
}
