//! What of a connection belongs to a fingerprint beside the settings.

use std::net::IpAddr;

use remora_wire::Capabilities;

/// What of a connection belongs to the fingerprint beside the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavour {
    /// The protocol features that both sides use.
    pub capabilities: Capabilities,
    /// The epoch of privileges at login. The server reads an account's global privileges only then:
    /// a session from before a `REVOKE` may still read what a later one may not.
    pub login_epoch: u64,
    /// The same when it chose its default schema, the moment at which the server looks at the
    /// account's privileges on that schema.
    pub schema_epoch: u64,
    /// The same when it took up its role.
    pub role_epoch: u64,
    /// The client's address, if the server is told it. Privileges on schemas, tables and columns
    /// belong to hosts, and the server looks them up by this address, not by the account's.
    pub client: Option<IpAddr>,
}

impl Flavour {
    /// The reverse of [`Flavour::put`], which leaves what stands behind it.
    pub(super) fn take(bytes: &mut &[u8]) -> Option<Flavour> {
        let mut number = || take(bytes, 8)?.try_into().ok().map(u64::from_le_bytes);
        let capabilities = Capabilities(number()?);
        let [login_epoch, schema_epoch, role_epoch] = [number()?, number()?, number()?];
        let client = match take(bytes, 1)? {
            [0] => None,
            [4] => Some(IpAddr::from(<[u8; 4]>::try_from(take(bytes, 4)?).ok()?)),
            [6] => Some(IpAddr::from(<[u8; 16]>::try_from(take(bytes, 16)?).ok()?)),
            _ => return None,
        };
        Some(Flavour {
            capabilities,
            login_epoch,
            schema_epoch,
            role_epoch,
            client,
        })
    }

    pub(super) fn put(self, bytes: &mut Vec<u8>) {
        let capabilities = self.capabilities.without(WITHOUT_EFFECT_ON_RESULTS);
        bytes.extend_from_slice(&capabilities.0.to_le_bytes());
        for epoch in [self.login_epoch, self.schema_epoch, self.role_epoch] {
            bytes.extend_from_slice(&epoch.to_le_bytes());
        }
        match self.client {
            None => bytes.push(0),
            Some(IpAddr::V4(address)) => {
                bytes.push(4);
                bytes.extend_from_slice(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                bytes.push(6);
                bytes.extend_from_slice(&address.octets());
            }
        }
    }
}

/// Flags that change how a connection begins or what it may send, but no byte of a result set.
const WITHOUT_EFFECT_ON_RESULTS: Capabilities = Capabilities::CONNECT_WITH_DB
    .with(Capabilities::LOCAL_FILES)
    .with(Capabilities::COMPRESS)
    .with(Capabilities::SSL)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::CONNECT_ATTRS)
    .with(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .with(Capabilities::EXPIRED_PASSWORDS)
    .with(Capabilities::PROGRESS_OBSOLETE)
    .with(Capabilities::MARIADB_PROGRESS)
    .with(Capabilities::MARIADB_STMT_BULK_OPERATIONS);

/// Takes the first bytes off, if there are so many.
pub(super) fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flavour_comes_back_from_its_bytes_and_from_no_shorter_ones() {
        for client in [None, Some("10.1.2.3"), Some("2001:db8::7")] {
            let flavour = Flavour {
                capabilities: Capabilities::MYSQL,
                login_epoch: 3,
                schema_epoch: 1 << 63,
                role_epoch: 7,
                client: client.map(|address| address.parse().unwrap()),
            };
            let mut bytes = Vec::new();
            flavour.put(&mut bytes);
            for length in 0..bytes.len() {
                assert_eq!(Flavour::take(&mut &bytes[..length]), None);
            }
            bytes.extend_from_slice(b"more");
            let mut rest = &bytes[..];
            assert_eq!(Flavour::take(&mut rest), Some(flavour));
            assert_eq!(rest, b"more");
        }
    }
}
