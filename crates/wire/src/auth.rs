//! Authentication: the one method that Remora itself uses, and the packets of an exchange that it
//! relays for its clients without understanding it.

use sha1::{Digest, Sha1};

use crate::WireError;
use crate::reader::Reader;
use crate::response::{EOF_MARK, ERR_MARK, OK_MARK};

/// The name of the plugin that [`native_password`] answers.
pub const NATIVE_PASSWORD: &str = "mysql_native_password";

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

/// A server's packet during authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPacket<'a> {
    /// The client is in.
    Ok,
    /// The client is refused.
    Err,
    /// The client shall use another plugin.
    Switch {
        /// The plugin's name.
        plugin: &'a [u8],
        /// Its data, such as a salt, as sent: often with a NUL at the end.
        data: &'a [u8],
    },
    /// Data for the plugin in use; whether the client answers is between the two of them.
    More(&'a [u8]),
}

impl<'a> AuthPacket<'a> {
    /// Reads a payload.
    pub fn parse(payload: &'a [u8]) -> Result<AuthPacket<'a>, WireError> {
        let mut reader = Reader::new(payload);
        match reader.u8("authentication packet")? {
            OK_MARK => Ok(AuthPacket::Ok),
            ERR_MARK => Ok(AuthPacket::Err),
            EOF_MARK => {
                let plugin = reader.until_nul_or_end();
                Ok(AuthPacket::Switch {
                    plugin,
                    data: reader.rest(),
                })
            }
            0x01 => Ok(AuthPacket::More(reader.rest())),
            _ => Ok(AuthPacket::More(payload)),
        }
    }
}
