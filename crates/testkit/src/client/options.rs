//! How a client connects.

use std::net::SocketAddr;
use std::time::Duration;

use remora_wire::Capabilities;
use remora_wire::compress::Algorithm;

use super::{Client, ClientError};

/// What a client asks for at least.
const WANTED: u64 = Capabilities::MYSQL.0
    | Capabilities::PROTOCOL_41.0
    | Capabilities::SECURE_CONNECTION.0
    | Capabilities::PLUGIN_AUTH.0
    | Capabilities::TRANSACTIONS.0
    | Capabilities::MULTI_STATEMENTS.0
    | Capabilities::MULTI_RESULTS.0
    | Capabilities::PS_MULTI_RESULTS.0
    | Capabilities::CONNECT_WITH_DB.0;

/// `utf8mb4_general_ci`.
const COLLATION: u8 = 45;

/// Whom to connect as, where, and by which of the protocol's features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The server's or the proxy's address.
    pub address: SocketAddr,
    /// The account's name.
    pub user: String,
    /// The account's password, sent by `mysql_native_password`.
    pub password: String,
    /// The default schema; empty for none.
    pub schema: String,
    /// Whether result sets shall end with an OK packet in place of EOF.
    pub deprecate_eof: bool,
    /// Flags to ask for beside the usual ones. A server that doesn't offer one isn't asked. Any of
    /// MariaDB's own (the high 32 bits) makes this a MariaDB client, where the server is a MariaDB.
    pub further: Capabilities,
    /// Usual flags not to ask for.
    pub without: Capabilities,
    /// Whether to use TLS if the server offers it. Whose certificate it is isn't checked.
    pub tls: bool,
    /// Whether to use TLS from the first byte on, as towards a proxy that knows nothing of the
    /// protocol within.
    pub tls_first: bool,
    /// Whether to compress, if the server offers it.
    pub compression: Option<Algorithm>,
    /// Names and values sent with each statement if [`Capabilities::QUERY_ATTRIBUTES`] is in use.
    pub query_attributes: Vec<(String, String)>,
    /// Longest wait for the connection and for each piece of an answer.
    pub timeout: Duration,
}

impl ConnectOptions {
    /// An account at an address, without a default schema.
    pub fn new(address: SocketAddr, user: &str, password: &str) -> ConnectOptions {
        ConnectOptions {
            address,
            user: user.to_owned(),
            password: password.to_owned(),
            schema: String::new(),
            deprecate_eof: true,
            further: Capabilities(0),
            without: Capabilities(0),
            tls: false,
            tls_first: false,
            compression: None,
            query_attributes: Vec::new(),
            timeout: crate::process::PATIENCE,
        }
    }

    /// The same with a default schema.
    #[must_use]
    pub fn schema(mut self, schema: &str) -> ConnectOptions {
        schema.clone_into(&mut self.schema);
        self
    }

    /// The same account elsewhere.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> ConnectOptions {
        self.address = address;
        self
    }

    /// Connects and logs in.
    pub fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(self)
    }

    /// The flags to log in with at a server that offers these.
    pub(super) fn capabilities(&self, offered: Capabilities) -> Capabilities {
        let mut wanted = Capabilities(WANTED).with(self.further);
        if self.deprecate_eof {
            wanted = wanted.with(Capabilities::DEPRECATE_EOF);
        }
        if self.tls {
            wanted = wanted.with(Capabilities::SSL);
        }
        wanted = match self.compression {
            None => wanted,
            Some(Algorithm::Zlib) => wanted.with(Capabilities::COMPRESS),
            Some(Algorithm::Zstd { .. }) => wanted.with(Capabilities::ZSTD_COMPRESSION),
        };
        let wanted = wanted.without(self.without).and(offered);
        if wanted.0 >> 32 == 0 {
            wanted.with(Capabilities::MYSQL)
        } else {
            wanted.without(Capabilities::MYSQL)
        }
    }

    pub(super) fn collation() -> u8 {
        COLLATION
    }
}
