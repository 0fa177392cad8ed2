//! Whose certificate is shown to whom, and what happens if it isn't the right one.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use remora_testkit::certificates::Authority;
use remora_testkit::process::{Program, wait_for};
use remora_testkit::proxies::{InProcessRemora, Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{APP_PASSWORD, APP_USER, FOLLOW_PASSWORD, FOLLOW_USER, Kind, Server};
use remora_wire::auth::NATIVE_PASSWORD;
use rustix::process::{Pid, Signal, kill_process};

use super::guest::{Guest, Refused, Trust, Who};
use super::{mariadb_with, mysql_80, server_of, server_tls, text, with_certificate};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;

fn app(tls: Option<Trust<'_>>) -> Who<'_> {
    Who::new(APP_USER, APP_PASSWORD, NATIVE_PASSWORD).over(tls)
}

/// What a client is told when it logs in, if it isn't let in.
fn refusal(remora: &InProcessRemora, tls: Option<Trust<'_>>) -> Option<Refused> {
    Guest::log_in(remora.address(), &app(tls)).err()
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
        println!(
            "this machine has no address but 127.0.0.1: `upstream/src/link.rs` tests the rule alone"
        );
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
fn a_client_that_wants_mariadb_11_4_to_prove_its_certificate_gets_no_proof_of_remoras() {
    let server = server_of(Kind::MariaDb114, &[]);
    let authority = Authority::new().unwrap();
    let client = Kind::MariaDb114.base().unwrap().join("bin/mariadb");
    let scratch = Scratch::new().unwrap();
    // To "127.0.0.1" the client looks at no certificate unasked; this name for it is one like any
    // other.
    let (local, named) = ("127.0.0.1", "127.1");
    let ask = |host: &str, address: SocketAddr, further: &[String]| {
        Program::new("mariadb", client.clone(), scratch.join("log"))
            .args(["--no-defaults", "--batch", "--skip-column-names"])
            .args(further.iter().cloned())
            .arg(format!("--host={host}"))
            .arg(format!("--port={}", address.port()))
            .arg(format!("--user={APP_USER}"))
            .arg(format!("--password={APP_PASSWORD}"))
            .arg("--execute=SHOW STATUS LIKE 'Ssl_version'")
            .run(PATIENCE)
    };
    let is_encrypted = |said: anyhow::Result<String>| {
        let said = said.unwrap();
        assert!(said.lines().last().unwrap().contains("TLSv1"), "{said}");
    };
    is_encrypted(ask(named, server.address(), &[]));
    let remora = InProcessRemora::start(&server, &with_certificate(&authority)).unwrap();
    let refused = format!("{:#}", ask(named, remora.address(), &[]).unwrap_err());
    assert!(refused.contains("TLS/SSL error"), "{refused}");
    // By an authority that the client trusts, without verification, and with the server's own
    // certificate.
    let ca = format!("--ssl-ca={}", text(authority.certificate()));
    is_encrypted(ask(local, remora.address(), &[ca]));
    let careless = "--disable-ssl-verify-server-cert".to_owned();
    is_encrypted(ask(named, remora.address(), &[careless]));
    let data = server.socket().with_file_name("data");
    let options = RemoraOptions::default()
        .with(
            "listen.tls_certificate_file",
            &text(&data.join("server-cert.pem")),
        )
        .with("listen.tls_key_file", &text(&data.join("server-key.pem")));
    let remora = InProcessRemora::start(&server, &options).unwrap();
    is_encrypted(ask(named, remora.address(), &[]));
}

#[test]
fn remoras_own_connections_use_tls_where_the_mode_says_so() {
    let authority = Authority::new().unwrap();
    let files = authority.issue("server", &["IP:127.0.0.1"]).unwrap();
    let server = mariadb_with(&files);
    server
        .execute([format!("ALTER USER {FOLLOW_USER}@'%' REQUIRE SSL")])
        .unwrap();
    let wrong = Authority::new().unwrap();
    for (mode, ca, follows) in [
        ("preferred", None, true),
        ("required", None, true),
        ("verify_identity", Some(authority.certificate()), true),
        ("verify_identity", Some(wrong.certificate()), false),
        // The server is on this host, so that nothing asks for TLS.
        ("as_client", None, false),
        ("disabled", None, false),
    ] {
        let mut options = RemoraOptions::default()
            .with("upstream.tls_mode", mode)
            .with("follow.user", FOLLOW_USER)
            .with(
                "follow.password_file",
                &text(&server.follow_password_file()),
            );
        if let Some(ca) = ca {
            options = options.with("upstream.tls_ca_file", &text(ca));
        }
        let remora = InProcessRemora::start(&server, &options).unwrap();
        if follows {
            remora.wait_until_caching().unwrap();
            continue;
        }
        let expected = match ca {
            Some(_) => "follower_lost",
            None => "follower_refused",
        };
        wait_for("the follower to fail", PATIENCE, || {
            let metrics = remora.metrics()?;
            let reasons = metrics.labelled("remora_caching");
            Ok(reasons
                .iter()
                .any(|(label, _)| label.contains(expected))
                .then_some(()))
        })
        .unwrap_or_else(|error| panic!("{mode}: {error:#}"));
    }
}

#[test]
fn remoras_own_account_may_have_a_plugin_of_mysql_8_over_tls_and_in_the_clear() {
    let server = mysql_80(&[]);
    for plugin in ["caching_sha2_password", "sha256_password"] {
        for (mode, require) in [("required", "SSL"), ("disabled", "NONE")] {
            server
                .execute([
                    format!("ALTER USER {FOLLOW_USER}@'%' IDENTIFIED WITH {plugin} BY '{FOLLOW_PASSWORD}' REQUIRE {require}"),
                    "FLUSH PRIVILEGES".to_owned(),
                ])
                .unwrap();
            let options = RemoraOptions::following().with("upstream.tls_mode", mode);
            InProcessRemora::start(&server, &options)
                .unwrap_or_else(|error| panic!("{plugin}, {mode}: {error:#}"));
        }
    }
}
