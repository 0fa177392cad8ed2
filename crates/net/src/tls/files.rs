//! Reading PEM files.

use std::io::Read as _;
use std::path::Path;

use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// A file longer than this holds no certificates: the wrong one was named, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file that an option names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedFile<'a> {
    /// The option.
    pub option: &'static str,
    /// The file.
    pub path: &'a Path,
    /// What it should hold.
    pub accepts: &'static str,
}

impl NamedFile<'_> {
    /// Says that the file can't be used.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "an error that is turned into text is not used further"
    )]
    pub(super) fn refuse(&self, why: impl ToString) -> TlsError {
        TlsError {
            option: self.option,
            path: self.path.to_owned(),
            why: why.to_string(),
            accepts: self.accepts,
        }
    }

    /// Everything in it.
    pub(super) fn read(&self) -> Result<Vec<u8>, TlsError> {
        let file = std::fs::File::open(self.path).map_err(|error| self.refuse(error))?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.refuse(error))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(self.refuse("it is longer than 1 MiB"));
        }
        Ok(bytes)
    }

    /// Its certificates, one or more.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let bytes = self.read()?;
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
            .collect::<Result<_, _>>()
            .map_err(|error| self.refuse(error))?;
        if certificates.is_empty() {
            return Err(self.refuse("it holds no certificate"));
        }
        Ok(certificates)
    }

    /// Its private key.
    pub(super) fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let bytes = self.read()?;
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
            PemError::NoItemsFound => {
                self.refuse("it holds no unencrypted private key in PKCS#8, PKCS#1 or SEC1 form")
            }
            other => self.refuse(other),
        })
    }
}
