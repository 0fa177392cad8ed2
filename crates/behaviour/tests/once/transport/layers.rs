//! TLS and compression on both sides at once.

use std::time::Duration;

use remora_testkit::certificates::Authority;
use remora_testkit::client::{Algorithm, Client, ConnectOptions};
use remora_testkit::process::Program;
use remora_testkit::programs;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Kind, Server};

use super::{mariadb_with, server_of, server_tls, text, with_certificate};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;

/// A status variable of the session, past any cache.
fn status(client: &mut Client, name: &str) -> String {
    let rows = client
        .query(&format!("SHOW SESSION STATUS LIKE '{name}'"))
        .unwrap()
        .rows()
        .unwrap();
    let value = rows[0][1].clone().unwrap_or_default();
    String::from_utf8(value).unwrap()
}

fn connect(options: &ConnectOptions, what: &str) -> Client {
    options
        .connect()
        .unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Reads and writes of many sizes, whose answers must be those of a direct connection.
fn converse(through: &mut Client, direct: &mut Client, what: &str) {
    let rows = "SELECT seq, REPEAT(MD5(seq), 5) FROM lab.numbers";
    let expected = direct.query_bytes(rows).unwrap();
    for _ in 0..3 {
        assert!(
            through.query_bytes(rows).unwrap() == expected,
            "{what}, rows"
        );
    }
    // The longest last: after it Remora no longer knows the session.
    for length in [1, 40, 60, 1_000, 70_000, 3_000_000] {
        let sql = format!(
            "SELECT REPEAT('abcdefghij', {length} / 10 + 1), '{}'",
            "x".repeat(length / 3)
        );
        let expected = direct.query_bytes(&sql).unwrap();
        assert!(
            through.query_bytes(&sql).unwrap() == expected,
            "{what}, {length} bytes"
        );
    }
    let error = direct.query_bytes("SELECT nothing").unwrap();
    assert!(
        through.query_bytes("SELECT nothing").unwrap() == error,
        "{what}, an error"
    );
}

fn fill(server: &Server) {
    server
        .execute([
            "CREATE TABLE lab.numbers (seq INT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
            format!(
                "INSERT INTO lab.numbers VALUES {}",
                (0..2_000)
                    .map(|n| format!("({n})"))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
        ])
        .unwrap();
}

const COMPRESSIONS: [Option<Algorithm>; 3] = [
    None,
    Some(Algorithm::Zlib),
    Some(Algorithm::Zstd { level: 5 }),
];

/// Each client's TLS and compression with each compression to the server.
fn every_combination(kind: Kind) {
    let authority = Authority::new().unwrap();
    let further = match kind {
        Kind::MariaDb1011 => {
            let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
            server_tls(&files).to_vec()
        }
        _ => Vec::new(),
    };
    let server = server_of(
        kind,
        &[further, vec!["--max-allowed-packet=64M".to_owned()]].concat(),
    );
    fill(&server);
    let mut direct = server.app().connect().unwrap();
    for to_server in ["off", "zlib", "zstd"] {
        let options = RemoraOptions {
            follow: true,
            ..with_certificate(&authority)
        };
        let options = options.with("upstream.compression", to_server);
        let remora = InProcessRemora::start(&server, &options).unwrap();
        for (tls, compression) in [false, true]
            .into_iter()
            .flat_map(|tls| COMPRESSIONS.map(|one| (tls, one)))
        {
            let what = format!(
                "{}, to the server {to_server}, over TLS: {tls}, {compression:?}",
                kind.as_str()
            );
            let options = ConnectOptions {
                tls,
                compression,
                ..server.app().at(remora.address())
            };
            let mut through = connect(&options, &what);
            converse(&mut through, &mut direct, &what);
            let is_mysql = kind == Kind::MySql80;
            let compressed = match to_server {
                "off" => "OFF",
                "zstd" if !is_mysql => "OFF",
                _ => "ON",
            };
            assert_eq!(status(&mut through, "Compression"), compressed, "{what}");
            assert_eq!(
                !status(&mut through, "Ssl_cipher").is_empty(),
                tls,
                "{what}"
            );
        }
        let metrics = remora.metrics().unwrap();
        let outcomes = metrics.labelled("remora_statements_total");
        let hits = metrics.sum("remora_hits_total");
        assert!(hits > 0.0, "{to_server}: {outcomes:?}");
    }
}

#[test]
fn tls_and_compression_of_either_side_change_no_byte_on_mariadb() {
    every_combination(Kind::MariaDb1011);
}

#[test]
fn tls_and_compression_of_either_side_change_no_byte_on_mysql() {
    every_combination(Kind::MySql80);
}

#[test]
fn a_local_file_is_loaded_through_every_layer() {
    let authority = Authority::new().unwrap();
    let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
    let server = mariadb_with(&files);
    server
        .execute(["CREATE TABLE lab.loaded (a INT, b TEXT) ENGINE=InnoDB"])
        .unwrap();
    let scratch = Scratch::new().unwrap();
    let file = scratch.join("rows");
    let rows = 40_000;
    let lines = (0..rows).map(|n| format!("{n}\t{}\n", "row ".repeat(n % 40)));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    for to_server in ["off", "zlib"] {
        let options = with_certificate(&authority).with("upstream.compression", to_server);
        let remora = InProcessRemora::start(&server, &options).unwrap();
        for layers in [
            &["--skip-ssl"][..],
            &["--skip-ssl", "--compress"],
            &["--ssl"],
            &["--ssl", "--compress"],
        ] {
            let what = format!("{layers:?}, {to_server}");
            let sql = format!(
                "TRUNCATE lab.loaded; LOAD DATA LOCAL INFILE '{}' INTO TABLE lab.loaded; \
                 SELECT COUNT(*), SUM(a), SUM(LENGTH(b)) FROM lab.loaded",
                text(&file)
            );
            let address = remora.address();
            let said = Program::new(
                "mariadb",
                programs::find("mariadb").unwrap(),
                scratch.join("log"),
            )
            .args([
                "--no-defaults",
                "--local-infile",
                "--batch",
                "--skip-column-names",
            ])
            .args(layers.iter().copied())
            .arg(format!("--host={}", address.ip()))
            .arg(format!("--port={}", address.port()))
            .arg(format!("--user={APP_USER}"))
            .arg(format!("--password={APP_PASSWORD}"))
            .arg(format!("--execute={sql}"))
            .run(PATIENCE)
            .unwrap_or_else(|error| panic!("{what}: {error:#}"));
            let lengths: usize = (0..rows).map(|n| n % 40 * 4).sum();
            let expected = format!("{rows}\t{}\t{lengths}", rows * (rows - 1) / 2);
            assert_eq!(said.lines().last(), Some(&*expected), "{what}");
        }
    }
}
