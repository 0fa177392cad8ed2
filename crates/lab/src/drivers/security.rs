//! Certificates for runs over TLS.

use remora_testkit::certificates::{Authority, CertificateFiles};
use remora_testkit::proxies::RemoraOptions;

/// The certificates of a run, gone when it is dropped.
#[derive(Debug)]
pub(super) struct Security {
    authority: Authority,
    /// One that has signed nothing.
    stranger: Authority,
    server: CertificateFiles,
    remora: CertificateFiles,
}

impl Security {
    /// Makes them.
    pub(super) fn new() -> anyhow::Result<Security> {
        let authority = Authority::new()?;
        let names = ["DNS:localhost", "IP:127.0.0.1"];
        Ok(Security {
            server: authority.issue("server", &names)?,
            remora: authority.issue("remora", &names)?,
            stranger: Authority::new()?,
            authority,
        })
    }

    /// What the server is started with.
    pub(super) fn server_arguments(&self) -> Vec<String> {
        vec![
            format!("--ssl-ca={}", self.authority.certificate().display()),
            format!("--ssl-cert={}", self.server.certificate.display()),
            format!("--ssl-key={}", self.server.key.display()),
        ]
    }

    /// A Remora that offers TLS, and uses it towards the server when its client does.
    pub(super) fn secure(&self, options: RemoraOptions) -> RemoraOptions {
        let path = |path: &std::path::Path| path.display().to_string();
        let certificate = path(&self.remora.certificate);
        options
            .with("listen.tls_certificate_file", &certificate)
            .with("listen.tls_key_file", &path(&self.remora.key))
            .with("upstream.tls_ca_file", &path(self.authority.certificate()))
    }

    /// What the programs are told.
    pub(super) fn environment(&self) -> Vec<String> {
        let path = |authority: &Authority| authority.certificate().display().to_string();
        vec![
            format!("DRIVER_TLS_CA={}", path(&self.authority)),
            format!("DRIVER_TLS_WRONG_CA={}", path(&self.stranger)),
        ]
    }
}
