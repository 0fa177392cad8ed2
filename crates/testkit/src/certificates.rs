//! Certificates for tests, made with the program `openssl`: an authority, and what it has signed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::programs;
use crate::scratch::Scratch;

/// A certificate and its private key, as PEM files.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A certificate authority with a directory of its own, gone when it is dropped.
#[derive(Debug)]
pub struct Authority {
    files: CertificateFiles,
    scratch: Scratch,
}

/// Options of `openssl req` that make a fresh key quickly and leave it unencrypted.
const FRESH_KEY: [&str; 6] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-sha256",
];

impl Authority {
    /// A new authority, which no other has anything in common with.
    pub fn new() -> anyhow::Result<Authority> {
        let scratch = Scratch::new()?;
        let files = files_in(&scratch, "authority");
        openssl(
            Command::new(programs::find("openssl")?)
                .args(["req", "-x509", "-days", "30"])
                .args(FRESH_KEY)
                .args(["-subj", "/CN=Remora's test authority"])
                .args(["-addext", "keyUsage=critical,keyCertSign,cRLSign"])
                .arg("-keyout")
                .arg(&files.key)
                .arg("-out")
                .arg(&files.certificate),
        )?;
        Ok(Authority { files, scratch })
    }

    /// The authority's own certificate, which a client trusts.
    pub fn certificate(&self) -> &Path {
        &self.files.certificate
    }

    /// A certificate for these names, such as `DNS:localhost` or `IP:127.0.0.1`. `label` names the
    /// files.
    pub fn issue(&self, label: &str, names: &[&str]) -> anyhow::Result<CertificateFiles> {
        let extensions = self.scratch.join(&format!("{label}.extensions"));
        let text = format!("subjectAltName={}\n", names.join(","));
        std::fs::write(&extensions, text).context("can't write a certificate's extensions")?;
        let extensions = extensions.display().to_string();
        self.sign(label, &["-extfile", &extensions])
    }

    /// A certificate of version 1, without extensions, as many guides to MariaDB and MySQL tell to
    /// make.
    pub fn issue_version_1(&self, label: &str) -> anyhow::Result<CertificateFiles> {
        self.sign(label, &[])
    }

    fn sign(&self, label: &str, further: &[&str]) -> anyhow::Result<CertificateFiles> {
        let files = files_in(&self.scratch, label);
        let request = self.scratch.join(&format!("{label}.request"));
        openssl(
            Command::new(programs::find("openssl")?)
                .arg("req")
                .args(FRESH_KEY)
                .args(["-subj", &format!("/CN={label}")])
                .arg("-keyout")
                .arg(&files.key)
                .arg("-out")
                .arg(&request),
        )?;
        openssl(
            Command::new(programs::find("openssl")?)
                .args(["x509", "-req", "-days", "30", "-sha256", "-CAcreateserial"])
                .args(further)
                .arg("-in")
                .arg(&request)
                .arg("-CA")
                .arg(&self.files.certificate)
                .arg("-CAkey")
                .arg(&self.files.key)
                .arg("-out")
                .arg(&files.certificate),
        )?;
        Ok(files)
    }
}

fn files_in(scratch: &Scratch, label: &str) -> CertificateFiles {
    CertificateFiles {
        certificate: scratch.join(&format!("{label}-certificate.pem")),
        key: scratch.join(&format!("{label}-key.pem")),
    }
}

fn openssl(command: &mut Command) -> anyhow::Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("can't run openssl")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("openssl failed: {said}");
    }
    Ok(())
}
