//! Plugins that Remora knows nothing of, with a server that plays them: any number of packets
//! either way, as MariaDB's `dialog` of PAM sends them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use remora_testkit::certificates::Authority;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Kind, Server};
use remora_wire::Capabilities;
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::put_message;

use super::{server_of, with_certificate};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;

/// One side of a login, packet by packet.
struct Player {
    stream: TcpStream,
    sequence: u8,
}

impl Player {
    fn new(stream: TcpStream) -> Player {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Player {
            stream,
            sequence: 0,
        }
    }

    fn send(&mut self, payload: &[u8]) {
        let mut packet = Vec::new();
        self.sequence = put_message(&mut packet, self.sequence, payload);
        self.stream.write_all(&packet).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).unwrap();
        assert_eq!(header[3], self.sequence, "the packet's number");
        self.sequence = header[3].wrapping_add(1);
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }
}

fn greeting() -> Vec<u8> {
    let greeting = Greeting {
        server_version: "10.11.0-MariaDB".to_owned(),
        connection_id: 7,
        salt: (1..=20).collect(),
        capabilities: Capabilities::PROTOCOL_41
            .with(Capabilities::SECURE_CONNECTION)
            .with(Capabilities::PLUGIN_AUTH),
        collation: 45,
        status: 2,
        plugin: "dialog".to_owned(),
    };
    greeting.payload()
}

fn login() -> Vec<u8> {
    let login = Login {
        capabilities: Capabilities::PROTOCOL_41
            .with(Capabilities::SECURE_CONNECTION)
            .with(Capabilities::PLUGIN_AUTH)
            .with(Capabilities::MYSQL),
        packet_bytes_max: 1 << 20,
        collation: 45,
        user: b"someone".to_vec(),
        authentication: Vec::new(),
        schema: Vec::new(),
        plugin: b"mysql_native_password".to_vec(),
    };
    login.packet(1).split_off(4)
}

/// What is said in a login after it has begun: by whom, and the payload.
enum Line {
    Server(Vec<u8>),
    Client(Vec<u8>),
}

/// Plays the lines on both sides of a Remora; each must arrive as it was sent.
fn play(server_of_options: &Server, lines: &[Line]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let options = RemoraOptions::default().with("upstream.address", &address);
    let remora = InProcessRemora::start(server_of_options, &options).unwrap();
    let mut client = Player::new(TcpStream::connect(remora.address()).unwrap());
    let mut server = Player::new(listener.accept().unwrap().0);
    server.send(&greeting());
    client.receive();
    client.send(&login());
    server.receive();
    for line in lines {
        let (from, to, payload) = match line {
            Line::Server(payload) => (&mut server, &mut client, payload),
            Line::Client(payload) => (&mut client, &mut server, payload),
        };
        from.send(payload);
        assert_eq!(&to.receive(), payload);
    }
    // The session goes on.
    let ok = [0, 0, 0, 2, 0, 0, 0];
    server.send(&ok);
    assert_eq!(client.receive(), ok);
    (client.sequence, server.sequence) = (0, 0);
    client.send(b"\x0e");
    assert_eq!(server.receive(), b"\x0e");
    server.send(&ok);
    assert_eq!(client.receive(), ok);
}

#[test]
fn a_plugin_may_say_and_ask_as_often_as_it_likes() {
    let any = server_of(Kind::MariaDb1011, &[]);
    let switch = b"\xfedialog\0\x02Password: ".to_vec();
    play(
        &any,
        &[
            Line::Server(switch),
            Line::Client(b"first secret\0".to_vec()),
            // A question of the plugin's own, which begins with no byte of the protocol's.
            Line::Server(b"\x04One-time code: ".to_vec()),
            Line::Client(b"123456\0".to_vec()),
            Line::Server(b"\x02And again: ".to_vec()),
            Line::Client(Vec::new()),
            // Two of the server's in a row, and two of the client's.
            Line::Server(b"\x01news".to_vec()),
            Line::Server(b"\x01more news".to_vec()),
            Line::Client(vec![0xff; 300]),
            Line::Client(vec![0; 5_000]),
        ],
    );
}

#[test]
fn a_plugin_that_remora_knows_passes_untouched_where_both_sides_are_alike() {
    let any = server_of(Kind::MariaDb1011, &[]);
    let switch = [&b"\xfecaching_sha2_password\0"[..], &[9; 20], &[0]].concat();
    play(
        &any,
        &[
            Line::Server(switch),
            Line::Client(vec![5; 32]),
            Line::Server(vec![1, 4]),
            Line::Client(vec![2]),
            Line::Server(b"\x01-----BEGIN PUBLIC KEY-----".to_vec()),
            Line::Client(vec![8; 256]),
            Line::Server(b"\xfeclient_ed25519\0salt".to_vec()),
            Line::Client(vec![2; 64]),
        ],
    );
}

#[test]
fn a_packet_too_long_for_a_login_ends_it() {
    let server = server_of(Kind::MariaDb1011, &[]);
    let authority = Authority::new().unwrap();
    let remora = InProcessRemora::start(&server, &with_certificate(&authority)).unwrap();
    let mut client = Player::new(TcpStream::connect(remora.address()).unwrap());
    client.receive();
    client.stream.write_all(b"\x00\x00\x02\x01").unwrap();
    let error = remora_wire::response::ServerError::parse(&client.receive()).unwrap();
    assert_eq!(error.code, 1153, "{error}");
}
