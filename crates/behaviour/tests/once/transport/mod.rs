//! The layers under a session, with real servers: TLS, compression, authentication, the PROXY
//! protocol.

mod authentication;
mod guest;
mod layers;
mod proxied;
mod rounds;
mod tls;

use std::path::Path;

use remora_testkit::certificates::{Authority, CertificateFiles};
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::{Kind, Server, ServerOptions};

fn server_of(kind: Kind, further: &[String]) -> Server {
    let options = ServerOptions {
        kind: Some(kind),
        further: further.to_vec(),
        ..ServerOptions::default()
    };
    Server::start(options).unwrap()
}

/// A MySQL 8.0, which makes certificates and RSA keys for itself. It has the performance schema,
/// which tells how a session is encrypted.
fn mysql_80(further: &[String]) -> Server {
    let schema = ["--performance-schema=ON".to_owned()];
    server_of(Kind::MySql80, &[&schema, further].concat())
}

/// Options of a server that has this certificate.
fn server_tls(files: &CertificateFiles) -> [String; 2] {
    [
        format!("--ssl-cert={}", files.certificate.display()),
        format!("--ssl-key={}", files.key.display()),
    ]
}

/// A Remora that has a certificate for 127.0.0.1 and doesn't follow the log.
fn with_certificate(authority: &Authority) -> RemoraOptions {
    let files = authority.issue("remora", &["IP:127.0.0.1"]).unwrap();
    let options = RemoraOptions {
        threads: Some(1),
        ..RemoraOptions::default()
    };
    options
        .with("listen.tls_certificate_file", &text(&files.certificate))
        .with("listen.tls_key_file", &text(&files.key))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A server with this certificate.
fn mariadb_with(files: &CertificateFiles) -> Server {
    server_of(Kind::MariaDb1011, &server_tls(files))
}
