//! The capability flags that server and client exchange in the handshake.
//!
//! The low 32 bits are MySQL's; MariaDB keeps its own in the high 32. Source: MySQL internals,
//! "Capabilities Flags"; MariaDB knowledge base, "Connection: Initial Handshake Packet".

/// A set of capability flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Set by every MySQL peer (as `CLIENT_LONG_PASSWORD`). Unset, the peer is MariaDB and the high
    /// 32 bits count.
    pub const MYSQL: Self = Self(1);
    /// `UPDATE` reports rows found, not rows changed.
    pub const FOUND_ROWS: Self = Self(1 << 1);
    /// The login names a default schema.
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    /// `db.table.column` is not allowed.
    pub const NO_SCHEMA: Self = Self(1 << 4);
    /// The compressed protocol with zlib.
    pub const COMPRESS: Self = Self(1 << 5);
    /// ODBC behaviour: empty dates as NULL and the like.
    pub const ODBC: Self = Self(1 << 6);
    /// `LOAD DATA LOCAL`.
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// Spaces are allowed before the parenthesis of a function call.
    pub const IGNORE_SPACE: Self = Self(1 << 8);
    /// The protocol of MySQL 4.1 and later.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// TLS after the handshake.
    pub const SSL: Self = Self(1 << 11);
    /// Status flags tell of transactions.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// Authentication of MySQL 4.1 and later.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// Several statements in one command.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// Several result sets in one answer.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// The same for prepared statements.
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    /// Authentication plugins are named.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// The login carries connection attributes.
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// The login's authentication data has a length-encoded length.
    pub const PLUGIN_AUTH_LENENC_DATA: Self = Self(1 << 21);
    /// The client can handle expired passwords.
    pub const EXPIRED_PASSWORDS: Self = Self(1 << 22);
    /// OK packets tell of changes of session state.
    pub const SESSION_TRACK: Self = Self(1 << 23);
    /// Result sets end with an OK packet in place of EOF, and columns end without a mark.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// MySQL: result sets may come without column definitions.
    pub const OPTIONAL_RESULTSET_METADATA: Self = Self(1 << 25);
    /// The compressed protocol with zstd.
    pub const ZSTD_COMPRESSION: Self = Self(1 << 26);
    /// MySQL: commands carry query attributes.
    pub const QUERY_ATTRIBUTES: Self = Self(1 << 27);
    /// MariaDB before 10.2: progress reports.
    pub const PROGRESS_OBSOLETE: Self = Self(1 << 29);
    /// MariaDB: progress reports, sent as ERR packets with the code 0xffff.
    pub const MARIADB_PROGRESS: Self = Self(1 << 32);
    /// MariaDB: `COM_MULTI`.
    pub const MARIADB_COM_MULTI: Self = Self(1 << 33);
    /// MariaDB: bulk operations of prepared statements.
    pub const MARIADB_STMT_BULK_OPERATIONS: Self = Self(1 << 34);
    /// MariaDB: column definitions carry extended type information.
    pub const MARIADB_EXTENDED_METADATA: Self = Self(1 << 35);
    /// MariaDB: prepared statements may leave out column definitions that did not change.
    pub const MARIADB_CACHE_METADATA: Self = Self(1 << 36);

    /// Whether all flags of `other` are in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without the flags of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The flags that both sets have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
