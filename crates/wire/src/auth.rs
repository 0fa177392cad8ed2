//! Authentication: what passwords become under each plugin, and the packets of an exchange.
//!
//! Remora relays exchanges packet by packet, and understands them where the two sides differ in
//! security: a password that a client sends in the clear inside TLS must not leave in the clear,
//! and one that it encrypted for the server has to be readable for it. The plugins whose passwords
//! travel at all are the two with SHA-256 and [`CLEAR_PASSWORD`]; `client_ed25519` and
//! [`NATIVE_PASSWORD`] only ever answer the salt, and need no translation.
//!
//! | plugin | the client's first answer | then |
//! |---|---|---|
//! | [`NATIVE_PASSWORD`] | [`native_password`] | |
//! | [`CACHING_SHA2_PASSWORD`] | [`caching_sha2_password`] | [`CachingSha2`] |
//! | [`SHA256_PASSWORD`], secure | [`clear_password`] | |
//! | [`SHA256_PASSWORD`], else | [`SHA256_REQUEST_PUBLIC_KEY`] or the encrypted password | the key, the encrypted password |
//! | [`CLEAR_PASSWORD`] | [`clear_password`] | |
//!
//! Source: MySQL internals, "Authentication Methods"; "Caching SHA-2 Pluggable Authentication".

use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::WireError;
use crate::reader::Reader;
use crate::response::{EOF_MARK, ERR_MARK, OK_MARK};

/// The name of the plugin that [`native_password`] answers.
pub const NATIVE_PASSWORD: &str = "mysql_native_password";
/// The name of the plugin that [`caching_sha2_password`] answers.
pub const CACHING_SHA2_PASSWORD: &str = "caching_sha2_password";
/// The name of the plugin to which a password is sent encrypted, or in the clear where that is
/// secure.
pub const SHA256_PASSWORD: &str = "sha256_password";
/// The name of the plugin to which a password is sent in the clear.
pub const CLEAR_PASSWORD: &str = "mysql_clear_password";
/// The name of the plugin of before MySQL 4.1. Nothing of it is known here but its name.
pub const OLD_PASSWORD: &str = "mysql_old_password";

/// What a client of [`CACHING_SHA2_PASSWORD`] sends to be sent the server's public key.
pub const CACHING_SHA2_REQUEST_PUBLIC_KEY: u8 = 0x02;
/// The same for [`SHA256_PASSWORD`].
pub const SHA256_REQUEST_PUBLIC_KEY: u8 = 0x01;

/// The first byte of [`AuthPacket::More`].
const MORE_MARK: u8 = 0x01;

/// The answer of `mysql_native_password`: `SHA1(password) XOR SHA1(salt + SHA1(SHA1(password)))`,
/// empty for an empty password. The salt is the server's 20 bytes.
pub fn native_password(password: &[u8], salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mask = Sha1::new()
        .chain_update(salt)
        .chain_update(twice)
        .finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// The first answer of `caching_sha2_password`:
/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + salt)`, empty for an empty password. The
/// salt is the server's 20 bytes. It is enough if the server has the account in its cache
/// ([`CachingSha2::FastOk`]).
pub fn caching_sha2_password(password: &[u8], salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mask = Sha256::new()
        .chain_update(twice)
        .chain_update(salt)
        .finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// A password as it is sent where nobody listens: with a NUL at its end.
pub fn clear_password(password: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(password.len() + 1);
    out.extend_from_slice(password);
    out.push(0);
    out
}

/// What RSA (OAEP with SHA-1) encrypts, for both plugins with SHA-256: [`clear_password`] XOR the
/// salt's 20 bytes over and over. The same again gives back the password, with its NUL.
pub fn xor_with_salt(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let mask = salt.iter().cycle();
    // Without a salt there is nothing to mask with.
    if salt.is_empty() {
        return password.to_vec();
    }
    password.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// The salt in the data of a switch or in a greeting, which servers end with a NUL.
pub fn salt_of(data: &[u8]) -> &[u8] {
    data.strip_suffix(&[0]).unwrap_or(data)
}

/// What a server of [`CACHING_SHA2_PASSWORD`] says to the client's first answer, or to a request:
/// the data of [`AuthPacket::More`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachingSha2<'a> {
    /// The answer was right. OK follows, and nothing is asked of the client.
    FastOk,
    /// The server needs the password itself: in the clear if it holds the connection for secure
    /// (TLS, a Unix socket), else encrypted with its public key.
    FullAuthentication,
    /// The public key that was requested, in PEM form.
    PublicKey(&'a [u8]),
}

impl<'a> CachingSha2<'a> {
    /// Reads the data.
    pub fn parse(data: &'a [u8]) -> CachingSha2<'a> {
        match data {
            [0x03] => CachingSha2::FastOk,
            [0x04] => CachingSha2::FullAuthentication,
            key => CachingSha2::PublicKey(key),
        }
    }

    /// The payload that says so.
    pub fn payload(self) -> Vec<u8> {
        more_payload(match self {
            CachingSha2::FastOk => &[0x03],
            CachingSha2::FullAuthentication => &[0x04],
            CachingSha2::PublicKey(key) => key,
        })
    }
}

/// The payload of [`AuthPacket::More`].
pub fn more_payload(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 1);
    out.push(MORE_MARK);
    out.extend_from_slice(data);
    out
}

/// The payload of [`AuthPacket::Switch`] to a plugin with this salt.
pub fn switch_payload(plugin: &str, salt: &[u8]) -> Vec<u8> {
    let mut out = vec![EOF_MARK];
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out.extend_from_slice(salt);
    out.push(0);
    out
}

/// A server's packet during authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPacket<'a> {
    /// The client is in.
    Ok,
    /// The client is refused.
    Err,
    /// The client shall use another plugin. A lone first byte means [`OLD_PASSWORD`] with the
    /// greeting's salt.
    Switch {
        /// The plugin's name.
        plugin: &'a [u8],
        /// Its data, such as a salt, as sent: often with a NUL at the end.
        data: &'a [u8],
    },
    /// Data for the plugin in use; whether the client answers is between the two of them. Also
    /// anything that isn't known, whole, such as MySQL's request for a second factor.
    More(&'a [u8]),
}

impl<'a> AuthPacket<'a> {
    /// Reads a payload.
    pub fn parse(payload: &'a [u8]) -> Result<AuthPacket<'a>, WireError> {
        let mut reader = Reader::new(payload);
        match reader.u8("authentication packet")? {
            OK_MARK => Ok(AuthPacket::Ok),
            ERR_MARK => Ok(AuthPacket::Err),
            EOF_MARK if reader.is_empty() => Ok(AuthPacket::Switch {
                plugin: OLD_PASSWORD.as_bytes(),
                data: &[],
            }),
            EOF_MARK => {
                let plugin = reader.until_nul_or_end();
                Ok(AuthPacket::Switch {
                    plugin,
                    data: reader.rest(),
                })
            }
            MORE_MARK => Ok(AuthPacket::More(reader.rest())),
            _ => Ok(AuthPacket::More(payload)),
        }
    }
}
