//! The ways in which each case is run.

use remora_wire::Capabilities;

use remora_testkit::client::{Algorithm, ConnectOptions};
use remora_testkit::servers::Kind;

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As text.
    Text,
    /// Prepared and executed, where they can be prepared.
    Prepared,
}

/// One way to run a case.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    /// Its name.
    pub name: &'static str,
    /// How statements are sent.
    pub form: Form,
    /// Whether reads are sent again and again, until they are answered from memory where they
    /// should be.
    pub warm: bool,
    /// Whether answers from memory are there in this mode.
    pub has_hits: bool,
    /// Whether it is one of the few in which answers of many megabytes are read.
    pub reads_long: bool,
    /// What the client does differently.
    pub shape: fn(&mut ConnectOptions),
    /// The servers that have what the mode needs.
    pub takes: fn(Kind) -> bool,
}

/// What a server's answers depend on: how statements are sent, and the protocol's features.
/// Encryption and compression change none of them, so modes that differ in these only have one
/// dialogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialogue {
    /// How statements are sent.
    pub form: Form,
    /// Whether reads are sent again and again.
    pub warm: bool,
    /// Whether answers of many megabytes are read.
    pub reads_long: bool,
    /// How to connect to the server, neither encrypted nor compressed.
    pub options: ConnectOptions,
}

impl Dialogue {
    /// That of a mode, for clients that otherwise connect like this.
    pub fn of(mode: &Mode, options: &ConnectOptions) -> Dialogue {
        let mut options = options.clone();
        (mode.shape)(&mut options);
        options.tls = false;
        options.compression = None;
        Dialogue {
            form: mode.form,
            warm: mode.warm,
            reads_long: mode.reads_long,
            options,
        }
    }
}

const ZSTD_LEVEL: i32 = 3;

const fn text(name: &'static str, shape: fn(&mut ConnectOptions), takes: fn(Kind) -> bool) -> Mode {
    Mode {
        name,
        form: Form::Text,
        warm: true,
        has_hits: true,
        reads_long: false,
        shape,
        takes,
    }
}

/// How an answer is cut into packets depends on how statements are sent, on how a result ends, on
/// compression and encryption, and on nothing else that modes differ in.
const fn reading_long(mode: Mode) -> Mode {
    Mode {
        reads_long: true,
        ..mode
    }
}

const fn prepared(
    name: &'static str,
    shape: fn(&mut ConnectOptions),
    takes: fn(Kind) -> bool,
) -> Mode {
    Mode {
        form: Form::Prepared,
        has_hits: PREPARED_HITS,
        ..text(name, shape, takes)
    }
}

/// Whether executions of prepared statements are answered from memory.
const PREPARED_HITS: bool = true;

fn everyone(_: Kind) -> bool {
    true
}

fn as_it_is(_: &mut ConnectOptions) {}

fn with_eof(options: &mut ConnectOptions) {
    options.deprecate_eof = false;
}

fn tracked(options: &mut ConnectOptions) {
    options.further = options.further.with(Capabilities::SESSION_TRACK);
}

fn tracked_with_eof(options: &mut ConnectOptions) {
    tracked(options);
    with_eof(options);
}

fn with_attributes(options: &mut ConnectOptions) {
    options.further = options.further.with(Capabilities::QUERY_ATTRIBUTES);
    options.query_attributes = vec![("trace".to_owned(), "4bf92f3577b34da6".to_owned())];
}

fn with_metadata_mark(options: &mut ConnectOptions) {
    options.further = options
        .further
        .with(Capabilities::OPTIONAL_RESULTSET_METADATA);
}

fn as_mariadb_client(options: &mut ConnectOptions) {
    options.further = options
        .further
        .with(Capabilities::MARIADB_EXTENDED_METADATA)
        .with(Capabilities::MARIADB_STMT_BULK_OPERATIONS);
}

fn as_odbc(options: &mut ConnectOptions) {
    options.further = options
        .further
        .with(Capabilities::FOUND_ROWS)
        .with(Capabilities::ODBC)
        .with(Capabilities::IGNORE_SPACE);
}

fn is_mysql_80(kind: Kind) -> bool {
    kind == Kind::MySql80
}

fn is_mariadb(kind: Kind) -> bool {
    !kind.is_mysql()
}

/// Every mode. Encrypted and compressed ones stand apart, in [`Mode::SEALED`].
const PLAIN: &[Mode] = &[
    Mode {
        warm: false,
        has_hits: false,
        ..text("text, cold", as_it_is, everyone)
    },
    reading_long(text("text, warm", as_it_is, everyone)),
    reading_long(text("text, warm, EOF", with_eof, Kind::tracks_sessions)),
    text(
        "text, warm, session tracking",
        tracked,
        Kind::tracks_sessions,
    ),
    text(
        "text, warm, session tracking, EOF",
        tracked_with_eof,
        Kind::tracks_sessions,
    ),
    text("text, warm, query attributes", with_attributes, is_mysql_80),
    text(
        "text, warm, optional metadata",
        with_metadata_mark,
        is_mysql_80,
    ),
    text("text, warm, MariaDB's flags", as_mariadb_client, is_mariadb),
    text("text, warm, ODBC's flags", as_odbc, everyone),
    Mode {
        warm: false,
        has_hits: false,
        ..prepared("prepared, cold", as_it_is, everyone)
    },
    reading_long(prepared("prepared, warm", as_it_is, everyone)),
    prepared("prepared, warm, EOF", with_eof, Kind::tracks_sessions),
    prepared(
        "prepared, warm, query attributes",
        with_attributes,
        is_mysql_80,
    ),
    prepared(
        "prepared, warm, MariaDB's flags",
        as_mariadb_client,
        is_mariadb,
    ),
];

impl Mode {
    /// Modes on a connection that is neither encrypted nor compressed.
    pub const PLAIN: &'static [Mode] = PLAIN;

    /// Modes on connections that are.
    pub const SEALED: &'static [Mode] = &[
        reading_long(text(
            "text, warm, zlib",
            |o| o.compression = Some(Algorithm::Zlib),
            everyone,
        )),
        reading_long(text("text, warm, zstd", zstd, is_mysql_80)),
        reading_long(text("text, warm, TLS", |o| o.tls = true, everyone)),
        reading_long(text("text, warm, TLS, zlib", tls_and_zlib, everyone)),
        reading_long(prepared(
            "prepared, warm, TLS, zlib",
            tls_and_zlib,
            everyone,
        )),
        reading_long(prepared("prepared, warm, zstd", zstd, is_mysql_80)),
    ];

    /// Whether the server's packets are in compressed ones. Their numbers then depend on how those
    /// are cut.
    pub fn is_compressed(&self, options: &ConnectOptions) -> bool {
        let mut shaped = options.clone();
        (self.shape)(&mut shaped);
        shaped.compression.is_some()
    }
}

fn zstd(options: &mut ConnectOptions) {
    options.compression = Some(Algorithm::Zstd { level: ZSTD_LEVEL });
}

fn tls_and_zlib(options: &mut ConnectOptions) {
    options.tls = true;
    options.compression = Some(Algorithm::Zlib);
}
