//! The RSA of `caching_sha2_password` and `sha256_password` without TLS: the password and a NUL,
//! mixed with the salt so that it can't be sent twice, encrypted with the server's public key (OAEP
//! with SHA-1). Source: MySQL internals, "`caching_sha2_password` information".

use std::path::Path;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use remora_wire::auth::xor_with_salt;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use tokio::sync::OnceCell;

use super::TlsError;
use super::files::NamedFile;

/// Why a password could not be encrypted or decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RsaError {
    /// What the server sent is no RSA public key.
    #[error("the server's public key can't be read")]
    PublicKey,
    /// It is too long for the key, or was encrypted with another one.
    #[error("the password does not fit the RSA key")]
    Password,
    /// The system has no randomness, say.
    #[error("no RSA key can be made")]
    NoKey,
}

/// Encrypts a password, which ends with its NUL, for the server whose public key this is.
pub fn encrypt_password(
    public_key_pem: &[u8],
    password: &[u8],
    salt: &[u8],
) -> Result<Vec<u8>, RsaError> {
    let der =
        SubjectPublicKeyInfoDer::from_pem_slice(public_key_pem).map_err(|_| RsaError::PublicKey)?;
    let key = PublicEncryptingKey::from_der(&der).map_err(|_| RsaError::PublicKey)?;
    let key = OaepPublicEncryptingKey::new(key).map_err(|_| RsaError::PublicKey)?;
    let mut sealed = vec![0; key.ciphertext_size()];
    let length = key
        .encrypt(
            &OAEP_SHA1_MGF1SHA1,
            &xor_with_salt(password, salt),
            &mut sealed,
            None,
        )
        .map_err(|_| RsaError::Password)?
        .len();
    sealed.truncate(length);
    Ok(sealed)
}

/// Remora's own key, from a file or made when it is first needed.
#[derive(Debug)]
pub struct PasswordKey(OnceCell<Key>);

#[derive(Debug)]
struct Key {
    private: OaepPrivateDecryptingKey,
    public_pem: Vec<u8>,
}

impl PasswordKey {
    pub(super) fn load(path: Option<&Path>) -> Result<PasswordKey, TlsError> {
        let Some(path) = path else {
            return Ok(PasswordKey(OnceCell::new()));
        };
        let file = NamedFile {
            option: "listen.rsa_key_file",
            path,
            accepts: "a PEM file with an RSA private key of 2048 to 8192 bits",
        };
        let not_rsa = || file.refuse("it holds no RSA private key that can be used");
        let key = match file.private_key()? {
            PrivateKeyDer::Pkcs8(der) => PrivateDecryptingKey::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => {
                PrivateDecryptingKey::from_pkcs8(&pkcs8_of(der.secret_pkcs1_der()))
            }
            _ => return Err(not_rsa()),
        };
        let key = key.map_err(|_| not_rsa())?;
        let key = Key::new(key).map_err(|_| not_rsa())?;
        Ok(PasswordKey(OnceCell::new_with(Some(key))))
    }

    /// The key. The first caller waits about half a second while one is made, on a thread of its
    /// own.
    async fn get(&self) -> Result<&Key, RsaError> {
        self.0
            .get_or_try_init(|| async {
                let made = tokio::task::spawn_blocking(|| {
                    let key = PrivateDecryptingKey::generate(KeySize::Rsa2048);
                    Key::new(key.map_err(|_| RsaError::NoKey)?)
                });
                made.await.map_err(|_| RsaError::NoKey)?
            })
            .await
    }

    /// The public key, as a server sends it.
    pub async fn public_pem(&self) -> Result<&[u8], RsaError> {
        Ok(&self.get().await?.public_pem)
    }

    /// The password, with its NUL, that a client encrypted with this key.
    pub async fn decrypt_password(&self, sealed: &[u8], salt: &[u8]) -> Result<Vec<u8>, RsaError> {
        let key = &self.get().await?.private;
        let mut plain = vec![0; key.min_output_size()];
        let plain = key
            .decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut plain, None)
            .map_err(|_| RsaError::Password)?;
        let password = xor_with_salt(plain, salt);
        match password.last() {
            Some(0) => Ok(password),
            _ => Err(RsaError::Password),
        }
    }
}

impl Key {
    fn new(private: PrivateDecryptingKey) -> Result<Key, RsaError> {
        let der: PublicKeyX509Der<'_> =
            private.public_key().as_der().map_err(|_| RsaError::NoKey)?;
        Ok(Key {
            public_pem: pem("PUBLIC KEY", der.as_ref()),
            private: OaepPrivateDecryptingKey::new(private).map_err(|_| RsaError::NoKey)?,
        })
    }
}

/// An RSA key in PKCS#1 form, as OpenSSL 1 and MySQL itself write it, wrapped into PKCS#8. Source:
/// RFC 5208.
fn pkcs8_of(pkcs1: &[u8]) -> Vec<u8> {
    /// Version 0, and the algorithm `rsaEncryption` without parameters.
    const HEAD: [u8; 18] = [
        0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01,
        0x01, 0x05, 0x00,
    ];
    let mut body = HEAD.to_vec();
    put_der(&mut body, 0x04, pkcs1);
    let mut whole = Vec::new();
    put_der(&mut whole, 0x30, &body);
    whole
}

/// Appends a value of DER with its tag and length.
fn put_der(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    let length = value.len().to_be_bytes();
    let used = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    if value.len() >= 0x80 {
        out.push(0x80 | u8::try_from(used.len()).unwrap_or_default());
    }
    out.extend_from_slice(if value.is_empty() { &[0] } else { used });
    out.extend_from_slice(value);
}

/// Text in PEM form, lines of 64 characters. Source: RFC 7468.
fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::new();
    for three in der.chunks(3) {
        let bits = three
            .iter()
            .chain([0; 2].iter())
            .take(3)
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for place in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * place) & 63];
            text.push(if place > three.len() { b'=' } else { letter });
        }
    }
    let mut page = format!("-----BEGIN {label}-----\n").into_bytes();
    for line in text.chunks(64) {
        page.extend_from_slice(line);
        page.push(b'\n');
    }
    page.extend_from_slice(format!("-----END {label}-----\n").as_bytes());
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_encrypted_with_the_public_key_is_decrypted_with_the_private_one() {
        let key = PasswordKey::load(None).unwrap();
        let salt: Vec<u8> = (1..=20).collect();
        let pem = key.public_pem().await.unwrap().to_vec();
        for password in ["", "x", "a password that is longer than its salt, by far"] {
            let plain = [password.as_bytes(), &[0]].concat();
            let sealed = encrypt_password(&pem, &plain, &salt).unwrap();
            assert_eq!(sealed.len(), 256);
            let opened = key.decrypt_password(&sealed, &salt).await;
            assert_eq!(opened, Ok(plain));
            let damaged: Vec<u8> = sealed.iter().map(|byte| byte ^ 1).collect();
            let refused = key.decrypt_password(&damaged, &salt).await;
            assert_eq!(refused, Err(RsaError::Password));
        }
        let refused = encrypt_password(b"no key", b"x\0", &salt);
        assert_eq!(refused, Err(RsaError::PublicKey));
        assert!(encrypt_password(&pem, &[1; 300], &salt).is_err());
    }

    #[test]
    fn pem_reads_back_whatever_the_length() {
        for length in 1..100_u8 {
            let der: Vec<u8> = (0..length).collect();
            let text = pem("PUBLIC KEY", &der);
            let back = SubjectPublicKeyInfoDer::from_pem_slice(&text).unwrap();
            assert_eq!(back.as_ref(), der);
        }
    }

    #[test]
    fn der_lengths_are_the_shortest_that_hold_them() {
        for (length, head) in [
            (0, vec![4, 0]),
            (127, vec![4, 127]),
            (128, vec![4, 0x81, 128]),
            (300, vec![4, 0x82, 1, 44]),
        ] {
            let mut out = Vec::new();
            put_der(&mut out, 4, &vec![0; length]);
            assert_eq!(out[..head.len()], head);
            assert_eq!(out.len(), head.len() + length);
        }
    }
}
