//! TLS and compression on both sides.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use remora_lab::certificates::{Authority, CertificateFiles};
use remora_lab::client::{Algorithm, Client, ConnectOptions};
use remora_lab::process::{Program, wait_for};
use remora_lab::programs;
use remora_lab::proxies::{InProcessRemora, Remora, RemoraOptions};
use remora_lab::scratch::Scratch;
use remora_lab::servers::{APP_PASSWORD, APP_USER, Kind, Server};
use remora_wire::auth::NATIVE_PASSWORD;
use rustix::process::{Pid, Signal, kill_process};

use super::guest::{Guest, Refused, Trust, Who};
use super::{server_of, server_tls, with_certificate};

const PATIENCE: Duration = Duration::from_secs(20);

fn app(tls: Option<Trust<'_>>) -> Who<'_> {
    Who::new(APP_USER, APP_PASSWORD, NATIVE_PASSWORD).over(tls)
}

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
            follow: answers_from_memory(kind),
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
        if answers_from_memory(kind) {
            let hits = metrics.sum("remora_hits_total");
            assert!(hits > 0.0, "{to_server}: {outcomes:?}");
        }
    }
}

/// Whether answers come from memory, too.
fn answers_from_memory(kind: Kind) -> bool {
    kind == Kind::MariaDb1011
}

#[test]
fn tls_and_compression_of_either_side_change_no_byte_on_mariadb() {
    every_combination(Kind::MariaDb1011);
}

#[test]
fn tls_and_compression_of_either_side_change_no_byte_on_mysql() {
    every_combination(Kind::MySql80);
}

/// What a client is told when it logs in, if it isn't let in.
fn refusal(remora: &InProcessRemora, tls: Option<Trust<'_>>) -> Option<Refused> {
    Guest::log_in(remora.address(), &app(tls)).err()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A server with this certificate.
fn mariadb_with(files: &CertificateFiles) -> Server {
    server_of(Kind::MariaDb1011, &server_tls(files))
}

fn in_mode(
    server: &Server,
    authority: &Authority,
    mode: &str,
    ca: Option<&Path>,
) -> InProcessRemora {
    let mut options = with_certificate(authority).with("upstream.tls_mode", mode);
    if let Some(ca) = ca {
        options = options.with("upstream.tls_ca_file", &text(ca));
    }
    InProcessRemora::start(server, &options).unwrap()
}

#[test]
fn the_servers_certificate_is_verified_as_the_mode_says() {
    let (right, wrong) = (Authority::new().unwrap(), Authority::new().unwrap());
    let named = right.issue("named", &["IP:127.0.0.1"]).unwrap();
    let other = right.issue("other", &["DNS:elsewhere.example"]).unwrap();
    let (named, other) = (mariadb_with(&named), mariadb_with(&other));
    let (right_ca, wrong_ca) = (right.certificate(), wrong.certificate());
    for (server, mode, ca, problem) in [
        (&named, "verify_identity", Some(right_ca), None),
        (&named, "verify_ca", Some(right_ca), None),
        (
            &named,
            "verify_identity",
            Some(wrong_ca),
            Some("invalid peer certificate"),
        ),
        (
            &named,
            "verify_ca",
            Some(wrong_ca),
            Some("invalid peer certificate"),
        ),
        (
            &named,
            "required",
            Some(wrong_ca),
            Some("invalid peer certificate"),
        ),
        (
            &other,
            "verify_identity",
            Some(right_ca),
            Some("not valid for name"),
        ),
        (&other, "verify_ca", Some(right_ca), None),
        (&other, "required", Some(right_ca), None),
        (&other, "required", None, None),
        (&other, "preferred", None, None),
    ] {
        let remora = in_mode(server, &right, mode, ca);
        let refused = refusal(&remora, None);
        let what = format!("{mode}, {ca:?}: {refused:?}");
        match (problem, refused) {
            (None, None) => {}
            (Some(problem), Some(error)) => {
                assert_eq!(error.code, 2026, "{what}");
                assert!(error.message.contains(problem), "{what}");
            }
            _ => panic!("{what}"),
        }
    }
}

#[test]
fn a_server_without_tls_is_refused_or_not_as_the_mode_says() {
    let server = server_of(Kind::MariaDb1011, &["--skip-ssl".to_owned()]);
    let authority = Authority::new().unwrap();
    let tls = Some(Trust::of(authority.certificate()));
    for mode in ["as_client", "preferred", "disabled"] {
        let remora = in_mode(&server, &authority, mode, None);
        // It is on this host.
        assert_eq!(refusal(&remora, None), None, "{mode}");
        assert_eq!(refusal(&remora, tls), None, "{mode}");
    }
    let remora = in_mode(&server, &authority, "required", None);
    for tls in [None, tls] {
        let error = refusal(&remora, tls).unwrap();
        assert_eq!(error.code, 2026, "{error}");
        assert!(error.message.contains("upstream.tls_mode"), "{error}");
    }
}

/// This machine's address that isn't 127.0.0.1. Nothing is sent to find it.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn what_a_client_encrypts_is_not_relayed_in_the_clear_to_another_host() {
    let Some(address) = own_address() else {
        println!("this machine has no address but 127.0.0.1: link.rs tests the rule alone");
        return;
    };
    let further = ["--skip-ssl".to_owned(), "--bind-address=0.0.0.0".to_owned()];
    let server = server_of(Kind::MariaDb1011, &further);
    let authority = Authority::new().unwrap();
    let tls = Some(Trust::of(authority.certificate()));
    let elsewhere = SocketAddr::new(address, server.address().port());
    let options = with_certificate(&authority).with("upstream.address", &elsewhere.to_string());
    let strict = InProcessRemora::start(&server, &options).unwrap();
    assert_eq!(refusal(&strict, None), None, "in the clear on both sides");
    let error = refusal(&strict, tls).unwrap();
    assert_eq!(error.code, 2026, "{error}");
    assert!(
        error.message.contains("upstream.allow_cleartext"),
        "{error}"
    );
    for (option, value) in [
        ("upstream.allow_cleartext", "true"),
        ("upstream.tls_mode", "disabled"),
    ] {
        let lenient = options.clone().with(option, value);
        let lenient = InProcessRemora::start(&server, &lenient).unwrap();
        assert_eq!(refusal(&lenient, tls), None, "{option} = {value}");
    }
}

#[test]
fn a_certificate_of_version_1_will_do_where_none_is_verified() {
    let authority = Authority::new().unwrap();
    let old = authority.issue_version_1("old").unwrap();
    let server = mariadb_with(&old);
    let remora = in_mode(&server, &authority, "required", None);
    assert_eq!(refusal(&remora, None), None);
}

#[test]
fn remora_shows_a_server_that_asks_for_one_its_own_certificate() {
    let authority = Authority::new().unwrap();
    let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
    let further = [
        server_tls(&files).to_vec(),
        vec![format!("--ssl-ca={}", text(authority.certificate()))],
    ]
    .concat();
    let server = server_of(Kind::MariaDb1011, &further);
    server
        .execute(["CREATE USER strict@'%' IDENTIFIED BY 'strict' REQUIRE X509"])
        .unwrap();
    let own = authority.issue("own", &["DNS:remora"]).unwrap();
    let who = Who::new("strict", "strict", NATIVE_PASSWORD);
    let options = with_certificate(&authority).with("upstream.tls_mode", "required");
    let without = InProcessRemora::start(&server, &options).unwrap();
    assert_eq!(
        Guest::log_in(without.address(), &who).err().unwrap().code,
        1045
    );
    let options = options
        .with("upstream.tls_certificate_file", &text(&own.certificate))
        .with("upstream.tls_key_file", &text(&own.key));
    let with = InProcessRemora::start(&server, &options).unwrap();
    Guest::log_in(with.address(), &who).unwrap();
}

#[test]
fn a_client_with_older_tls_than_allowed_is_refused() {
    static OLD: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
    let server = server_of(Kind::MariaDb1011, &[]);
    let authority = Authority::new().unwrap();
    let old = Trust {
        authority: authority.certificate(),
        versions: &OLD,
    };
    let new = Trust::of(authority.certificate());
    for (minimum, is_refused) in [("1.2", false), ("1.3", true)] {
        let options = with_certificate(&authority).with("listen.tls_version_min", minimum);
        let remora = InProcessRemora::start(&server, &options).unwrap();
        assert_eq!(refusal(&remora, Some(new)), None);
        assert_eq!(
            refusal(&remora, Some(old)).is_some(),
            is_refused,
            "{minimum}"
        );
    }
}

#[test]
fn a_hang_up_signal_brings_the_new_certificate_and_a_bad_file_changes_nothing() {
    let server = server_of(Kind::MariaDb1011, &[]);
    let (first, second) = (Authority::new().unwrap(), Authority::new().unwrap());
    let files = first.issue("first", &["IP:127.0.0.1"]).unwrap();
    let later = second.issue("second", &["IP:127.0.0.1"]).unwrap();
    let options = RemoraOptions::default()
        .with("listen.tls_certificate_file", &text(&files.certificate))
        .with("listen.tls_key_file", &text(&files.key));
    let remora = Remora::start(&server, &options).unwrap();
    let shows = |authority: &Authority| {
        let tls = Some(Trust::of(authority.certificate()));
        Guest::log_in(remora.address(), &app(tls)).is_ok()
    };
    let hang_up = || {
        let id = Pid::from_raw(i32::try_from(remora.id()).unwrap()).unwrap();
        kill_process(id, Signal::HUP).unwrap();
    };
    assert!(shows(&first) && !shows(&second));
    let tls = Some(Trust::of(first.certificate()));
    let mut old_guest = Guest::log_in(remora.address(), &app(tls)).unwrap();
    // The certificate without its key.
    std::fs::copy(&later.certificate, &files.certificate).unwrap();
    hang_up();
    let log = wait_for("the complaint", PATIENCE, || {
        let log = remora.log_tail();
        Ok(log.contains("listen.tls_key_file").then_some(log))
    });
    assert!(log.unwrap().contains(&text(&files.key)));
    assert!(shows(&first) && !shows(&second));
    std::fs::copy(&later.key, &files.key).unwrap();
    hang_up();
    wait_for("the new certificate", PATIENCE, || {
        Ok(shows(&second).then_some(()))
    })
    .unwrap();
    assert!(!shows(&first));
    assert_eq!(old_guest.query("SELECT 5").unwrap().as_deref(), Some("5"));
    // No file at all.
    std::fs::remove_file(&files.certificate).unwrap();
    hang_up();
    wait_for("the complaint", PATIENCE, || {
        let complains = remora.log_tail().contains("listen.tls_certificate_file");
        Ok(complains.then_some(()))
    })
    .unwrap();
    assert!(shows(&second));
}

#[test]
fn a_file_that_cannot_be_used_stops_remora_with_the_files_name() {
    let server = server_of(Kind::MariaDb1011, &[]);
    let authority = Authority::new().unwrap();
    let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
    let good = with_certificate(&authority);
    for (option, path) in [
        (
            "listen.tls_certificate_file",
            Path::new("/nowhere/certificate.pem"),
        ),
        ("listen.tls_certificate_file", &files.key),
        ("listen.tls_key_file", &files.certificate),
        // Of another certificate.
        ("listen.tls_key_file", &files.key),
        ("listen.rsa_key_file", &files.key),
        ("upstream.tls_ca_file", &files.key),
    ] {
        let options = good.clone().with(option, &text(path));
        let error = InProcessRemora::start(&server, &options).err().unwrap();
        let error = format!("{error:#}");
        assert!(error.contains(option), "{option}: {error}");
        assert!(error.contains(&text(path)), "{option}: {error}");
        assert!(error.contains("accepts a PEM file"), "{option}: {error}");
    }
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
