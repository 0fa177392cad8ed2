//! The PROXY protocol from a load balancer and to the server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use remora_net::ProxyProtocol;
use remora_net::{Addresses, proxy_header};
use remora_testkit::certificates::Authority;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Kind, Server};
use remora_wire::auth::NATIVE_PASSWORD;

use super::guest::{Guest, Trust, Who};
use super::{server_of, with_certificate};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;
const HEADER_LIMIT: &str = "listen.proxy_protocol_timeout_ms";
const VERSIONS: [(ProxyProtocol, &str); 2] = [(ProxyProtocol::V1, "v1"), (ProxyProtocol::V2, "v2")];

/// A server that takes the PROXY protocol from this machine.
fn server() -> Server {
    server_of(
        Kind::MariaDb1011,
        &["--proxy-protocol-networks=127.0.0.0/8".to_owned()],
    )
}

fn app() -> Who<'static> {
    Who::new(APP_USER, APP_PASSWORD, NATIVE_PASSWORD)
}

fn from(source: &str) -> Addresses {
    Addresses {
        source: source.parse().unwrap(),
        destination: "192.0.2.1:3306".parse().unwrap(),
    }
}

/// Connects as a load balancer would.
fn connect_with(address: SocketAddr, header: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(header).unwrap();
    stream
}

fn seen_as(guest: &mut Guest) -> String {
    guest.query("SELECT USER()").unwrap().unwrap()
}

#[test]
fn the_server_sees_the_clients_address_in_both_versions() {
    let server = server();
    let options =
        RemoraOptions::following().with("listen.proxy_protocol_from", "10.0.0.0/8, 127.0.0.0/8");
    for (_, to_server) in VERSIONS {
        let options = options.clone().with("upstream.proxy_protocol", to_server);
        // It follows the log, so its own connections get in as well.
        let remora = InProcessRemora::start(&server, &options).unwrap();
        for (version, from_balancer) in VERSIONS {
            for (source, host) in [
                ("203.0.113.9:4711", "203.0.113.9"),
                ("[2001:db8::9]:4711", "2001:db8::9"),
            ] {
                let header = proxy_header(version, Some(from(source)));
                let stream = connect_with(remora.address(), &header);
                let mut guest = Guest::log_in_on(stream, &app()).unwrap();
                let expected = format!("{APP_USER}@{host}");
                assert_eq!(
                    seen_as(&mut guest),
                    expected,
                    "{from_balancer} to {to_server}"
                );
            }
            // The balancer's own connection, to see whether Remora is well.
            let header = proxy_header(version, None);
            let stream = connect_with(remora.address(), &header);
            let mut guest = Guest::log_in_on(stream, &app()).unwrap();
            assert_eq!(seen_as(&mut guest), format!("{APP_USER}@127.0.0.1"));
        }
    }
}

#[test]
fn without_a_balancer_the_server_sees_the_clients_own_address() {
    let server = server();
    let options = RemoraOptions::default();
    let options = options.with("upstream.proxy_protocol", "v2");
    let remora = InProcessRemora::start(&server, &options).unwrap();
    // Another address of this machine.
    let socket = socket2_from("127.0.0.77:0", remora.address());
    let mut guest = Guest::log_in_on(socket, &app()).unwrap();
    assert_eq!(seen_as(&mut guest), format!("{APP_USER}@127.0.0.77"));
}

/// The server looks for privileges on schemas, tables and columns by the client's address, not by
/// the host of the account that it found for it.
#[test]
fn clients_at_different_addresses_share_no_results() {
    const READ: &str = "SELECT a FROM lab.guarded";
    let server = server();
    server
        .execute([
            "CREATE TABLE guarded (a INT PRIMARY KEY)",
            "INSERT INTO guarded VALUES (7)",
            "CREATE USER h@'127.0.0.%' IDENTIFIED BY 'h-password'",
            "INSERT INTO mysql.db (Host, Db, User, Select_priv) VALUES ('127.0.0.2', 'lab', 'h', 'Y')",
            "FLUSH PRIVILEGES",
        ])
        .unwrap();
    let options = RemoraOptions::following()
        .with("listen.proxy_protocol_from", "127.0.0.1")
        .with("upstream.proxy_protocol", "v2");
    let remora = InProcessRemora::start(&server, &options).unwrap();
    let hits = || remora.metrics().unwrap().sum("remora_hits_total");
    let who = Who::new("h", "h-password", NATIVE_PASSWORD);
    let guest = |source: &str| {
        let header = proxy_header(ProxyProtocol::V2, Some(from(source)));
        Guest::log_in_on(connect_with(remora.address(), &header), &who).unwrap()
    };
    let mut allowed = guest("127.0.0.2:1000");
    wait_for("a hit", PATIENCE, || {
        let before = hits();
        assert_eq!(allowed.query(READ).unwrap().as_deref(), Some("7"));
        Ok((hits() > before).then_some(()))
    })
    .unwrap();
    for _ in 0..3 {
        let refused = guest("127.0.0.3:1000").query(READ).unwrap_err();
        assert_eq!(refused.code, 1142);
    }
    // Another connection from an address has what the first one kept.
    let fills = || {
        let metrics = remora.metrics().unwrap();
        metrics.sum_where("remora_statements_total", "outcome", "fill")
    };
    let (hits_before, fills_before) = (hits(), fills());
    let mut again = guest("127.0.0.2:2000");
    wait_for("a hit", PATIENCE, || {
        assert_eq!(again.query(READ).unwrap().as_deref(), Some("7"));
        Ok((hits() > hits_before).then_some(()))
    })
    .unwrap();
    assert!(fills() < fills_before + 0.5, "it was kept before");
}

/// A connection from a certain address.
fn socket2_from(from: &str, to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(from.parse().unwrap()).unwrap();
        socket.connect(to).await.unwrap()
    });
    let stream = connected.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

#[test]
fn tls_begins_behind_the_header() {
    let server = server();
    let authority = Authority::new().unwrap();
    let options = with_certificate(&authority)
        .with("listen.proxy_protocol_from", "127.0.0.1")
        .with("upstream.proxy_protocol", "v1");
    let remora = InProcessRemora::start(&server, &options).unwrap();
    let header = proxy_header(ProxyProtocol::V2, Some(from("203.0.113.9:1")));
    let stream = connect_with(remora.address(), &header);
    let who = app().over(Some(Trust::of(authority.certificate())));
    let mut guest = Guest::log_in_on(stream, &who).unwrap();
    assert_eq!(seen_as(&mut guest), format!("{APP_USER}@203.0.113.9"));
}

#[test]
fn from_a_balancers_network_nothing_comes_without_the_header() {
    let server = server();
    let start = |limit_ms| {
        let options = RemoraOptions::default()
            .with("listen.proxy_protocol_from", "127.0.0.0/8")
            .with(HEADER_LIMIT, limit_ms);
        InProcessRemora::start(&server, &options).unwrap()
    };
    let hurried = start("200");
    assert_closed(&hurried, b"", 1.0);
    assert_closed(&hurried, b"PROXY TCP4 1.2.3.4", 2.0);
    // What is wrong is refused at once. Before the limit here, that is, and not by it.
    let patient = start("60000");
    for wrong in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x01\x00",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff",
    ] {
        assert_closed(&patient, wrong, 0.0);
    }
    let errors = patient.metrics().unwrap();
    assert!(errors.sum("remora_protocol_errors_total") >= 4.0);
}

/// A connection that begins like this is closed; so often has the limit been reached then.
fn assert_closed(remora: &InProcessRemora, bytes: &[u8], limit: f64) {
    let mut stream = connect_with(remora.address(), bytes);
    let mut answer = Vec::new();
    // A closed connection or one that was reset, for what it sent and nobody wanted.
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"", "{bytes:?}");
    let metrics = remora.metrics().unwrap();
    let reached = metrics.sum_where("remora_limit_reached_total", "limit", HEADER_LIMIT);
    assert!((reached - limit).abs() < 0.5, "{bytes:?}: {reached}");
}

#[test]
fn from_elsewhere_a_header_is_no_login() {
    let server = server();
    let options = RemoraOptions::default().with("listen.proxy_protocol_from", "10.0.0.0/8");
    let remora = InProcessRemora::start(&server, &options).unwrap();
    let header = proxy_header(ProxyProtocol::V1, Some(from("203.0.113.9:1")));
    let stream = connect_with(remora.address(), &header);
    assert!(Guest::log_in_on(stream, &app()).is_err());
    Guest::log_in(remora.address(), &app()).unwrap();
}
