//! The lab's own client against a server: the same statement gives the same rows in every way to
//! connect.

use remora_testkit::certificates::Authority;
use remora_testkit::client::{Algorithm, Client, ConnectOptions, Value};
use remora_testkit::servers::{Kind, Server, ServerOptions};
use remora_wire::Capabilities;
use remora_wire::rows::Row;

const ZSTD: Algorithm = Algorithm::Zstd { level: 3 };

/// A server that offers TLS, where it can, and the directory of its certificate.
fn server() -> (Server, Authority) {
    let authority = Authority::new().unwrap();
    let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
    let mut options = ServerOptions::default();
    options.further.push("--max-allowed-packet=64M".to_owned());
    if Kind::from_environment().unwrap() == Kind::MariaDb1011 {
        for (option, path) in [("cert", files.certificate), ("key", files.key)] {
            options
                .further
                .push(format!("--ssl-{option}={}", path.display()));
        }
    }
    (Server::start(options).unwrap(), authority)
}

fn ways(options: &ConnectOptions) -> Vec<ConnectOptions> {
    let mut ways = Vec::new();
    for tls in [false, true] {
        for compression in [None, Some(Algorithm::Zlib), Some(ZSTD)] {
            for deprecate_eof in [false, true] {
                ways.push(ConnectOptions {
                    tls,
                    compression,
                    deprecate_eof,
                    ..options.clone()
                });
            }
        }
    }
    ways
}

fn rows(client: &mut Client, text: &str) -> Vec<Row> {
    client.query(text).unwrap().rows().unwrap()
}

#[test]
fn each_way_to_connect_gives_the_same_rows() {
    let (server, _authority) = server();
    server
        .execute([
            "CREATE TABLE t (a INT PRIMARY KEY, s LONGTEXT)",
            "INSERT INTO t VALUES (1, 'short'), (2, NULL), (3, REPEAT('long ', 1000000))",
        ])
        .unwrap();
    let mut used = Capabilities(0);
    for options in ways(&server.app()) {
        let mut client = options.connect().unwrap();
        used = used.with(client.capabilities());
        for _ in 0..2 {
            let all = rows(&mut client, "SELECT * FROM t ORDER BY a");
            let lengths: Vec<_> = all
                .iter()
                .map(|row| row[1].as_ref().map(Vec::len))
                .collect();
            assert_eq!(lengths, [Some(5), None, Some(5_000_000)], "{options:?}");
            // A statement of several pieces.
            let text = format!("SELECT LENGTH('{}')", "x".repeat(300_000));
            assert_eq!(rows(&mut client, &text), [[Some(b"300000".to_vec())]]);
        }
        let cipher = rows(&mut client, "SHOW STATUS LIKE 'Ssl_cipher'");
        let is_sealed = cipher.first().is_some_and(|row| row[1] != Some(Vec::new()));
        assert_eq!(is_sealed, client.capabilities().has(Capabilities::SSL));
        let compressed = rows(&mut client, "SHOW STATUS LIKE 'Compression'");
        let is_compressed = compressed[0][1] == Some(b"ON".to_vec());
        assert_eq!(
            is_compressed,
            options.compression.is_some_and(|algorithm| {
                client.capabilities().has(match algorithm {
                    Algorithm::Zlib => Capabilities::COMPRESS,
                    Algorithm::Zstd { .. } => Capabilities::ZSTD_COMPRESSION,
                })
            })
        );
    }
    assert!(used.has(Capabilities::COMPRESS));
    let has_zstd = server.kind() == Kind::MySql80;
    assert_eq!(used.has(Capabilities::ZSTD_COMPRESSION), has_zstd);
    let has_tls = matches!(
        server.kind(),
        Kind::MariaDb1011 | Kind::MariaDb114 | Kind::MySql80
    );
    assert_eq!(used.has(Capabilities::SSL), has_tls);
}

#[test]
fn prepared_statements_take_values_and_attributes() {
    let (server, _authority) = server();
    let mut options = server.app();
    options.further = Capabilities::QUERY_ATTRIBUTES;
    options.query_attributes = vec![
        ("trace".to_owned(), "abc".to_owned()),
        ("empty".to_owned(), String::new()),
    ];
    let mut client = options.connect().unwrap();
    let has_attributes = server.kind() == Kind::MySql80;
    assert_eq!(
        client.capabilities().has(Capabilities::QUERY_ATTRIBUTES),
        has_attributes
    );
    let text = "SELECT CONCAT_WS(',', ?, ?, ?, ?, ?)";
    let statement = client.prepare(text.as_bytes()).unwrap();
    let values = [
        Value::Null,
        Value::Int(-7),
        Value::Unsigned(1 << 40),
        Value::Double(0.5),
        Value::Text(b"text".to_vec()),
    ];
    let answer = client.execute(statement, &values).unwrap();
    let seen = String::from_utf8_lossy(answer.bytes()).into_owned();
    assert!(seen.contains("-7,1099511627776,0.5,text"), "{seen}");
    client.close_statement(statement).unwrap();
    assert!(client.execute(statement, &values).is_err());
    assert_eq!(rows(&mut client, "SELECT 1"), [[Some(b"1".to_vec())]]);
}
