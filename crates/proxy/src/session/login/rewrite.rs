//! Greetings and logins with other capability flags, and every other byte as it was.
//! Source: MySQL internals, `Protocol::HandshakeV10` and `Protocol::HandshakeResponse41`.

use remora_wire::compress::{Algorithm, ZSTD_LEVEL_DEFAULT};
use remora_wire::handshake::{Greeting, LoginChange};
use remora_wire::{Capabilities, WireError};

use remora_upstream::link::UpstreamCompression;

/// What is decided for each side on its own, and says nothing about what results look like.
pub(super) const OF_TRANSPORT: Capabilities = Capabilities::SSL
    .with(Capabilities::COMPRESS)
    .with(Capabilities::ZSTD_COMPRESSION);

/// What the server may offer and Remora doesn't let through: each would make the bytes that follow
/// unreadable or differently framed.
///
/// With cached metadata a result may come without the column definitions that this very client has
/// seen before; from memory it would reach one that hasn't.
pub(super) const WITHDRAWN: Capabilities =
    Capabilities::MARIADB_COM_MULTI.with(Capabilities::MARIADB_CACHE_METADATA);

/// Length of a login's part before the user's name, which is also a whole request for TLS, bytes.
const FIXED_BYTES: usize = 32;

/// The greeting for the client, and what it offers. Compression is Remora's own; zstd needs a
/// server from whose clients it can be expected.
pub(super) fn greeting(
    payload: &mut [u8],
    offers_tls: bool,
) -> Result<(Greeting, Capabilities), WireError> {
    let from_server = Greeting::parse(payload)?;
    let mut offered = from_server
        .capabilities
        .without(WITHDRAWN)
        .without(Capabilities::SSL)
        .with(Capabilities::COMPRESS);
    if offers_tls {
        offered = offered.with(Capabilities::SSL);
    }
    Greeting::withdraw(payload, WITHDRAWN.with(Capabilities::SSL))?;
    // The low two bytes, behind version, connection id, the salt's head and a filler.
    let version_end = payload
        .iter()
        .position(|byte| *byte == 0)
        .ok_or(WireError::Truncated("server version"))?;
    let low = payload
        .get_mut(version_end + 14..version_end + 16)
        .ok_or(WireError::Truncated("capabilities"))?;
    low.copy_from_slice(&offered.0.to_le_bytes()[..2]);
    Ok((from_server, offered))
}

/// How the connection to the server is to be compressed, if the server offers that.
pub(super) fn server_compression(
    wanted: UpstreamCompression,
    offered: Capabilities,
) -> Option<Algorithm> {
    match wanted {
        UpstreamCompression::Zlib if offered.has(Capabilities::COMPRESS) => Some(Algorithm::Zlib),
        UpstreamCompression::Zstd if offered.has(Capabilities::ZSTD_COMPRESSION) => {
            let level = ZSTD_LEVEL_DEFAULT;
            Some(Algorithm::Zstd { level })
        }
        _ => None,
    }
}

/// The login for the server: the client's, with the flags of the connection to the server.
pub(super) fn login(
    payload: &[u8],
    over_tls: bool,
    compression: Option<Algorithm>,
) -> Result<Vec<u8>, WireError> {
    let mut change = LoginChange {
        remove: WITHDRAWN.with(OF_TRANSPORT),
        ..LoginChange::default()
    };
    if over_tls {
        change.add = change.add.with(Capabilities::SSL);
    }
    match compression {
        None => {}
        Some(Algorithm::Zlib) => change.add = change.add.with(Capabilities::COMPRESS),
        Some(Algorithm::Zstd { level }) => {
            change.add = change.add.with(Capabilities::ZSTD_COMPRESSION);
            change.zstd_level = u8::try_from(level).ok();
        }
    }
    change.apply(payload)
}

/// The request for TLS that comes before a login.
pub(super) fn tls_request(login: &[u8]) -> &[u8] {
    &login[..login.len().min(FIXED_BYTES)]
}

/// The name of a plugin that no account has: a server answers it with a request for the right one.
const NO_PLUGIN: &[u8] = b"remora_asks_which";

/// A login (or a `COM_CHANGE_USER`, with `is_change`) without its authentication data, which are of
/// no use to the server: it will ask for them by a plugin of the account's. `None` if the client
/// can't be asked.
pub(super) fn without_authentication(
    payload: &[u8],
    capabilities: Capabilities,
    is_change: bool,
) -> Option<Vec<u8>> {
    if !capabilities.has(Capabilities::PLUGIN_AUTH) {
        return None;
    }
    let user_at = if is_change { 1 } else { FIXED_BYTES };
    let user_end = user_at + until_nul(payload.get(user_at..)?)?;
    let rest = &payload[user_end..];
    let after_data = if !is_change && capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_DATA) {
        let (length, head) = length_encoded(rest)?;
        rest.get(head.checked_add(length)?..)?
    } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
        rest.get(1 + usize::from(*rest.first()?)..)?
    } else {
        return None;
    };
    let mut before_plugin = 0;
    if is_change || capabilities.has(Capabilities::CONNECT_WITH_DB) {
        before_plugin = until_nul(after_data)?;
    }
    if is_change {
        // The character set.
        before_plugin += 2;
    }
    let (middle, plugin) = after_data.split_at_checked(before_plugin)?;
    let after_plugin = &plugin[until_nul(plugin).unwrap_or(plugin.len())..];
    let mut out = payload[..user_end].to_vec();
    out.push(0);
    out.extend_from_slice(middle);
    out.extend_from_slice(NO_PLUGIN);
    out.push(0);
    out.extend_from_slice(after_plugin);
    Some(out)
}

/// The name of the plugin in a `COM_CHANGE_USER`; empty if it has none.
pub(super) fn plugin_of_change(payload: &[u8]) -> Vec<u8> {
    let find = || {
        let rest = payload.get(1..)?;
        let rest = rest.get(until_nul(rest)?..)?;
        let rest = rest.get(1 + usize::from(*rest.first()?)..)?;
        let rest = rest.get(until_nul(rest)? + 2..)?;
        let end = rest.iter().position(|byte| *byte == 0);
        Some(rest[..end.unwrap_or(rest.len())].to_vec())
    };
    find().unwrap_or_default()
}

/// The length of a text with its NUL.
fn until_nul(bytes: &[u8]) -> Option<usize> {
    Some(bytes.iter().position(|byte| *byte == 0)? + 1)
}

/// A length-encoded number that is a length here, and how many bytes it takes itself.
fn length_encoded(bytes: &[u8]) -> Option<(usize, usize)> {
    let wide = |count: usize| {
        let bytes = bytes.get(1..=count)?;
        let fold = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
        Some((bytes.iter().rev().fold(0, fold), count + 1))
    };
    match bytes.first()? {
        0xfc => wide(2),
        0xfd => wide(3),
        0xfb | 0xfe | 0xff => None,
        length => Some((usize::from(*length), 1)),
    }
}
