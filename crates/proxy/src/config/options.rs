//! Every option of Remora: its name, meaning, default and range.
//!
//! These structs are the only place where an option is described. The doc comments, defaults and
//! ranges become the commented example file (`remora config`), `docs/configuration.md` and the
//! checks that a value passes before it is used. The first sentence of a doc comment should stand
//! alone.

use std::path::PathBuf;

use remora_engine::emulation::CacheType;
use remora_engine::rules::TransactionReads;
use remora_net::tls::TlsVersion;
use remora_net::{Endpoint, ProxyProtocol};
use remora_upstream::link::{UpstreamCompression, UpstreamTlsMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host_name::HostName;
use super::opentelemetry::OpenTelemetryOptions;
use super::transport::Network;
use super::value::{AdminListen, ByteSize, LogLevel, Storing};

/// A whole configuration file. Sections and options that are left out have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Where clients connect to.
    pub listen: ListenOptions,
    /// The server that Remora stands in front of.
    pub upstream: UpstreamOptions,
    /// How Remora learns what has changed: it reads the server's binary log as a replica does.
    pub follow: FollowOptions,
    /// What is kept in memory.
    pub cache: CacheOptions,
    /// The threads that serve clients, and the clients' limits.
    pub workers: WorkerOptions,
    /// What is counted of each query that applications have.
    pub digests: DigestOptions,
    /// A share of what happens that is looked at more closely.
    pub observe: ObserveOptions,
    /// Where traced statements are sent to.
    pub opentelemetry: OpenTelemetryOptions,
    /// The statements by which operators know the query cache.
    pub query_cache: QueryCacheOptions,
    /// The HTTP listener for metrics and health. It has a thread of its own.
    pub admin: AdminOptions,
    /// What happens when Remora is asked to stop (SIGTERM or SIGINT).
    pub shutdown: ShutdownOptions,
    /// What is written to standard error.
    pub log: LogOptions,
}

/// Where clients connect to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListenOptions {
    /// Addresses that clients connect to: `host:port` or `unix:/path`, one or more.
    pub addresses: Vec<Endpoint>,
    /// Connections that the system may hold before Remora accepts them.
    #[schemars(range(min = 1, max = 65_535))]
    pub backlog: u32,
    /// File with the certificate that clients are shown, and those that lead to its authority
    /// (PEM). With it clients may use TLS; without it none is offered. Read again on SIGHUP.
    #[schemars(example = &"/etc/remora/certificate.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate_file: Option<PathBuf>,
    /// File with that certificate's private key (PEM). Only its owner should be able to read it.
    /// Read again on SIGHUP.
    #[schemars(example = &"/etc/remora/key.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key_file: Option<PathBuf>,
    /// The oldest version of TLS that is spoken with clients.
    pub tls_version_min: TlsVersion,
    /// File with an RSA private key (PEM) for clients without TLS that encrypt their password.
    /// Without it a key is made when the first one is needed. Needed only where clients know the
    /// server's public key beforehand: then it is the server's own.
    #[schemars(example = &"/etc/remora/rsa-key.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsa_key_file: Option<PathBuf>,
    /// Networks of load balancers that send the PROXY protocol (version 1 or 2). From there each
    /// connection must begin with it.
    pub proxy_protocol_from: Vec<Network>,
    /// After how long without a byte from a client the system asks whether it is still there (TCP
    /// keepalive), in whole seconds. One that doesn't answer for as long again is gone.
    #[schemars(range(min = 1_000, max = 7_200_000))]
    pub keepalive_ms: u64,
    /// Time for the PROXY protocol's header to come. After it, the connection is closed.
    #[schemars(range(min = 10, max = 60_000))]
    pub proxy_protocol_timeout_ms: u64,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            addresses: vec![Endpoint::Tcp {
                host: "127.0.0.1".to_owned(),
                port: 3307,
            }],
            backlog: 1024,
            keepalive_ms: 60_000,
            tls_certificate_file: None,
            tls_key_file: None,
            tls_version_min: TlsVersion::V1_2,
            rsa_key_file: None,
            proxy_protocol_from: Vec::new(),
            proxy_protocol_timeout_ms: 3_000,
        }
    }
}

/// The server that Remora stands in front of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamOptions {
    /// The server's address: `host:port` or `unix:/path`.
    pub address: Endpoint,
    /// Time to establish a connection to the server. After it, the client gets error 2003.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub connect_timeout_ms: u64,
    /// After how long without a byte from the server the system asks whether it is still there (TCP
    /// keepalive), in whole seconds. If it doesn't answer for as long again, the connection is
    /// lost, and so is that of its client.
    #[schemars(range(min = 1_000, max = 7_200_000))]
    pub keepalive_ms: u64,
    /// Statements that may run at the server at the same time; 0: any number. Further ones wait for
    /// their turn. Sessions that may hold locks (in a transaction, after `LOCK TABLES` or
    /// `GET_LOCK()`) never wait; docs/overload.md names the rest.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub statements_max: usize,
    /// Statements that may wait for their turn. Further ones get error 1637.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub statements_waiting_max: usize,
    /// Longest wait of a statement for its turn. After it, the client gets error 1637.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub statement_wait_ms_max: u64,
    /// Time for the server to answer a query of Remora's own (the watermark, the catalogue,
    /// `check`).
    #[schemars(range(min = 10, max = 3_600_000))]
    pub query_timeout_ms: u64,
    /// When connections to the server use TLS: `as_client` when the client's does, `disabled`
    /// never, `preferred` if the server offers it, `required` always, `verify_ca` always and with a
    /// certificate from `tls_ca_file`, `verify_identity` with one that is also for the host in
    /// `address`.
    pub tls_mode: UpstreamTlsMode,
    /// File with the certificates of the authorities that the server's certificate may come from
    /// (PEM). With it the certificate is verified in every mode. Read again on SIGHUP.
    #[schemars(example = &"/etc/remora/server-ca.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ca_file: Option<PathBuf>,
    /// File with a certificate of Remora's own (PEM), for a server that asks for one. Read again on
    /// SIGHUP.
    #[schemars(example = &"/etc/remora/client-certificate.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate_file: Option<PathBuf>,
    /// File with that certificate's private key (PEM). Only its owner should be able to read it.
    /// Read again on SIGHUP.
    #[schemars(example = &"/etc/remora/client-key.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key_file: Option<PathBuf>,
    /// Whether what a client sends over TLS may go on to another host without TLS, where the server
    /// offers none. Otherwise such a client is refused. `tls_mode = "disabled"` allows it too.
    pub allow_cleartext: bool,
    /// Compression of the connections to the server, whatever clients use. `zstd` needs MySQL
    /// 8.0.18 or later. Where the server doesn't offer it, there is none.
    pub compression: UpstreamCompression,
    /// Whether the server is told the client's address by the PROXY protocol. It must be set up to
    /// take it from Remora's host (`proxy_protocol_networks` of MariaDB and Percona Server).
    pub proxy_protocol: ProxyProtocol,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            address: Endpoint::Tcp {
                host: "127.0.0.1".to_owned(),
                port: 3306,
            },
            connect_timeout_ms: 10_000,
            keepalive_ms: 60_000,
            statements_max: 0,
            statements_waiting_max: 4_096,
            statement_wait_ms_max: 10_000,
            query_timeout_ms: 5_000,
            tls_mode: UpstreamTlsMode::AsClient,
            tls_ca_file: None,
            tls_certificate_file: None,
            tls_key_file: None,
            allow_cleartext: false,
            compression: UpstreamCompression::Off,
            proxy_protocol: ProxyProtocol::Off,
        }
    }
}

/// How Remora learns what has changed: it reads the server's binary log as a replica does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FollowOptions {
    /// Remora's own account on the server. Without it Remora passes everything through and caches
    /// nothing. `remora check` prints the `GRANT` it needs.
    #[schemars(example = &"remora")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// File that holds the account's password on one line. Only its owner should be able to read
    /// it.
    #[schemars(example = &"/etc/remora/password")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// Remora's number among the server's replicas, which must be its own. 0 derives one above
    /// 2147483648 from the host's name and the listening addresses.
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub server_id: u32,
    /// Nothing is served from memory while the follower may be further behind the server than this.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub lag_ms_max: u64,
    /// Nothing is served from memory while the last check that found the server set up for caching
    /// (what `remora check` looks at) is older than this. The server is checked four times as
    /// often.
    #[schemars(range(min = 100, max = 3_600_000))]
    pub check_age_ms_max: u64,
    /// How often the server is to say that its log is quiet, so that a quiet log can be told from a
    /// dead one.
    #[schemars(range(min = 5, max = 60_000))]
    pub heartbeat_ms: u64,
    /// Wait before the first attempt to connect again after the connection is lost. It doubles with
    /// each failure.
    #[schemars(range(min = 1, max = 60_000))]
    pub reconnect_ms_min: u64,
    /// The longest wait between two attempts to connect again.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub reconnect_ms_max: u64,
    /// Shortest time between two questions to the server about its position, rounded up to whole
    /// milliseconds. Less means fewer misses after a write and more questions, each of which costs
    /// the server about a tenth of a millisecond. What a transaction waits for is asked at once.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub watermark_interval_us_min: u64,
    /// Longest time between two questions to the server about its position after writes through
    /// Remora, while no read needs the answer. Each such question doubles the time, from the
    /// shortest to this. A read that misses for want of the answer brings the shortest back; so
    /// does a write that stops all hits. If this is below `watermark_interval_us_min`, that one
    /// counts. Four questions per `lag_ms_max` are asked anyway.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub watermark_interval_us_max: u64,
    /// The largest event of the log that is read whole. Of a larger one only the tables count; a
    /// larger statement text drops everything cached.
    #[schemars(range(min = 65_536_u64, max = 1_073_741_824_u64))]
    pub event_bytes_max: ByteSize,
    /// Tables that one transaction may change before it counts as a change of all of them.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub transaction_tables_max: usize,
    /// Tags (values of columns, intervals) that one transaction may touch before its tables count
    /// as changed as a whole.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub transaction_tags_max: usize,
    /// Tables whose definitions are remembered. Beyond it, those that were asked for once go before
    /// those that are asked for again and again.
    #[schemars(range(min = 16, max = 10_000_000))]
    pub catalogue_tables_max: usize,
    /// Statements that may wait for a table's definition to be loaded; the others pass through.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub catalogue_queue_max: usize,
    /// Tables whose definitions are asked for in one round of questions, if so many wait.
    #[schemars(range(min = 1, max = 1_024))]
    pub catalogue_batch_max: usize,
    /// Time for the server to list its foreign keys. To an account without `PROCESS`, MariaDB, and
    /// MySQL before 8.0, open every table for it, at up to a millisecond each. Until then, tables
    /// that Remora doesn't know yet aren't cached.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub catalogue_scan_timeout_ms: u64,
    /// Views that are looked at for functions that they call. With more than these, each statement
    /// that reads a table counts as one that may change anything, and hardly anything is served.
    #[schemars(range(min = 0, max = 10_000_000))]
    pub catalogue_views_max: usize,
    /// How long a statement that changes a table's definition is held back while Remora's own
    /// questions about definitions are on their way. Servers lock a table while they answer, and
    /// refuse a statement with `NOWAIT` then.
    #[schemars(range(min = 0, max = 60_000))]
    pub definition_wait_ms: u64,
    /// Tables whose changes are counted one by one, for the dashboard and the metrics; those of
    /// further ones are counted together. Each takes some 200 bytes and is a time series in
    /// Prometheus.
    #[schemars(range(min = 0, max = 100_000))]
    pub table_counts_max: usize,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            user: None,
            password_file: None,
            server_id: 0,
            lag_ms_max: 1_000,
            check_age_ms_max: 2_000,
            heartbeat_ms: 200,
            reconnect_ms_min: 100,
            reconnect_ms_max: 5_000,
            watermark_interval_us_min: 1_000,
            watermark_interval_us_max: 10_000,
            event_bytes_max: ByteSize::new(64 << 20),
            transaction_tables_max: 4_096,
            transaction_tags_max: 65_536,
            catalogue_tables_max: 65_536,
            catalogue_queue_max: 1_024,
            catalogue_batch_max: 16,
            catalogue_scan_timeout_ms: 300_000,
            catalogue_views_max: 65_536,
            definition_wait_ms: 100,
            table_counts_max: 200,
        }
    }
}

/// What is kept in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheOptions {
    /// Whether results are cached at all. When false, Remora is a plain proxy.
    pub enabled: bool,
    /// Memory for cached results, with their keys, tags and overhead. The least valuable leave when
    /// it is full.
    #[schemars(range(min = 1_048_576_u64, max = 17_592_186_044_416_u64))]
    pub memory_bytes_max: ByteSize,
    /// The largest result that is kept. At most an eighth of `memory_bytes_max`.
    #[schemars(range(min = 1_024_u64, max = 1_073_741_824_u64))]
    pub result_bytes_max: ByteSize,
    /// The longest statement that is looked up. Longer ones pass through without being held. At
    /// most an eighth of `memory_bytes_max`.
    #[schemars(range(min = 64_u64, max = 67_108_864_u64))]
    pub statement_bytes_max: ByteSize,
    /// Whether statements that differ only in comments and white space share results, as with
    /// MariaDB's `query_cache_strip_comments`: trace ids in comments then do no harm. Hints and
    /// executable comments count, and so does what stands between `SELECT` and `FROM`, because
    /// servers name columns by it.
    pub strip_comments: bool,
    /// Which results are stored. `adaptive`: all, except for digests whose results are rarely asked
    /// for again; of those only a sample, until storing pays. `always`: all. `sample`: only what is
    /// missed in a quarter of a second of every four seconds. docs/digests.md says how it decides.
    pub storing: Storing,
    /// Which reads inside transactions at `REPEATABLE READ` are answered from memory:
    /// `after_snapshot` (when the server has made the transaction's snapshot), `early` (before
    /// that, too) or `off`. What a transaction reads always fits one moment. With `early` a
    /// transaction that memory answers wholly doesn't reach the server. One that needs the server
    /// later may be refused with error 1213 (try restarting transaction), if what memory has
    /// answered has changed since. docs/consistency.md says when to choose it. At `READ COMMITTED`
    /// memory answers such reads in each mode.
    pub transaction_reads: TransactionReads,
    /// How long such a transaction waits, once, for proof that the follower has applied all that
    /// its snapshot may show. Then the server answers. 0: it doesn't wait.
    #[schemars(range(min = 0, max = 10_000))]
    pub snapshot_wait_ms_max: u64,
    /// How many answers Remora remembers of a transaction that the server doesn't know of. The next
    /// read makes the server open the transaction.
    #[schemars(range(min = 1, max = 65_536))]
    pub early_reads_max: usize,
    /// How many results of transactions (with `after_snapshot` those of first reads) a worker keeps
    /// aside until the follower has applied all that they may show. A further one takes the place
    /// of the oldest. 0: such results aren't kept.
    #[schemars(range(min = 0, max = 65_536))]
    pub waiting_fills_max: usize,
    /// Parts of the store that take new results independently of one another. A power of two.
    #[schemars(range(min = 1, max = 4_096))]
    pub shards: usize,
    /// Places for the positions of the last change of each tag: a table, a value of a column, an
    /// interval (8 bytes each). Tags that share one drop each other's results.
    #[schemars(range(min = 64, max = 268_435_456))]
    pub tag_slots: usize,
    /// Places for the fences that stand while a write is on its way (about 5 bytes each). What
    /// shares one is fenced together.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub fence_slots: usize,
    /// Kinds of reads of one table (which columns narrow them, which they read) whose results are
    /// dropped by key. A change of a row costs a little for each. From half of them on, further
    /// ones count as reading all columns; beyond, as reading the whole table.
    #[schemars(range(min = 0, max = 4_096))]
    pub table_shapes_max: usize,
    /// Tables that can have such kinds. Results of further tables are dropped by each change of
    /// their table.
    #[schemars(range(min = 0, max = 16_777_216))]
    pub shape_tables_max: usize,
    /// Different combinations of account, schema and settings that are told apart. Sessions beyond
    /// it pass through.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub fingerprints_max: usize,
    /// Bytes of settings that all these combinations may hold. The memory that they take is up to
    /// twice as much. One of them may hold a 1,024th. Sessions beyond either limit pass through.
    #[schemars(range(min = 16_777_216_u64, max = 1_099_511_627_776_u64))]
    pub fingerprints_bytes_max: ByteSize,
    /// Results that may be on their way into memory at the same time. Further misses aren't stored.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub fills_in_flight_max: usize,
    /// Longest wait for another client's answer to the same statement, while that is on its way
    /// into memory. After it all who wait for that answer ask the server, and so do new ones until
    /// it has come. A session asks sooner if the server must hear from it
    /// (`workers.server_contact_ms`). 0: statements don't wait.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub fill_wait_ms_max: u64,
    /// Statements that may wait for such answers at the same time. Further ones ask the server.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub fill_waiters_max: usize,
    /// Rules (`[[rules]]`) that a file may have. Each is looked at where a result is about to be
    /// kept, until one matches.
    #[schemars(range(min = 0, max = 1_024))]
    pub rules_max: usize,
    /// Time between two steps of the sweep that frees results which a change has outdated.
    #[schemars(range(min = 1, max = 60_000))]
    pub sweep_interval_ms: u64,
    /// Results that one step of the sweep looks at.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sweep_entries_max: usize,
    /// File for results across a restart: Remora writes it when it stops and reads it at the next
    /// start. Remora needs write permission on its directory. It holds rows of the database, with
    /// mode 0600. Without it memory starts empty. See docs/restarting.md.
    #[schemars(example = &"/var/lib/remora/results")]
    pub state_file: Option<PathBuf>,
    /// How old that file may be when Remora has reached the server again. While no Remora runs
    /// nobody checks the server, so keep it short.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub state_age_ms_max: u64,
    /// Longest time for writing results. Those that remain are left out.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub state_write_ms_max: u64,
    /// Longest time for reading results. Those that remain are left out. Clients wait at the start
    /// until Remora has caught up with the log, for at most this long, too.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub state_read_ms_max: u64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            memory_bytes_max: ByteSize::new(256 << 20),
            result_bytes_max: ByteSize::new(1 << 20),
            statement_bytes_max: ByteSize::new(256 << 10),
            strip_comments: true,
            storing: Storing::Adaptive,
            transaction_reads: TransactionReads::AfterSnapshot,
            snapshot_wait_ms_max: 5,
            early_reads_max: 64,
            waiting_fills_max: 64,
            shards: 64,
            tag_slots: 2_097_152,
            fence_slots: 65_536,
            table_shapes_max: 64,
            shape_tables_max: 131_072,
            fingerprints_max: 65_536,
            fingerprints_bytes_max: ByteSize::new(256 << 20),
            fills_in_flight_max: 4_096,
            fill_wait_ms_max: 10_000,
            fill_waiters_max: 4_096,
            rules_max: 128,
            sweep_interval_ms: 100,
            sweep_entries_max: 1_024,
            state_file: None,
            state_age_ms_max: 60_000,
            state_write_ms_max: 5_000,
            state_read_ms_max: 5_000,
        }
    }
}

/// The threads that serve clients, and the clients' limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerOptions {
    /// Threads that serve clients. A connection stays on one. 0 takes as many as there are
    /// processor cores.
    #[schemars(range(min = 0, max = 1_024))]
    pub threads: usize,
    /// Client connections that may be open at once. Further ones get error 1040, "Too many
    /// connections". Each takes two file descriptors.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_max: usize,
    /// How much a worker reads from a socket at once. One such buffer serves all connections of a
    /// worker.
    #[schemars(range(min = 4_096_u64, max = 16_777_216_u64))]
    pub read_bytes_max: ByteSize,
    /// Prepared statements that are remembered for each connection. Executing one beyond it counts
    /// as a change of everything.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub prepared_statements_max: usize,
    /// Texts of prepared `SELECT`s that are kept for each connection, to look their executions up
    /// by, and the constants in prepared statements, which say what rows they read or write. The
    /// results of further ones aren't cached, and further writes count as changes of whole tables.
    #[schemars(range(min = 1_024_u64, max = 1_073_741_824_u64))]
    pub prepared_text_bytes_max: ByteSize,
    /// How long a connection may be answered from memory alone. Then a statement goes to the
    /// server, so that its `wait_timeout` doesn't end the connection. A tenth of `wait_timeout`,
    /// where that is less.
    #[schemars(range(min = 100, max = 3_600_000))]
    pub server_contact_ms: u64,
    /// Memory for all answers together that clients haven't taken, of statements that may write:
    /// until such an answer is at its end, hits are held back. When it is full, the server must
    /// wait for the client.
    #[schemars(range(min = 65_536_u64, max = 68_719_476_736_u64))]
    pub fenced_answer_bytes_max: ByteSize,
    /// How long the server may have to wait for a client so, in all of one answer. Then the
    /// client's connection is closed. Clients whose statements only read are never hurried.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub fenced_answer_wait_ms: u64,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            threads: 0,
            connections_max: 8_000,
            read_bytes_max: ByteSize::new(64 << 10),
            prepared_statements_max: 16_382,
            prepared_text_bytes_max: ByteSize::new(1 << 20),
            server_contact_ms: 10_000,
            fenced_answer_bytes_max: ByteSize::new(64 << 20),
            fenced_answer_wait_ms: 10_000,
        }
    }
}

/// What is counted of each query that applications have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DigestOptions {
    /// Digests (statements without their values) that are counted one by one; those that are asked
    /// for most get a place, the others are counted together. Each takes up to 2 KiB and 0.5 KiB
    /// for each worker and for the sweep. 0: all are counted together.
    #[schemars(range(min = 0, max = 100_000))]
    pub count_max: u32,
    /// Statements that each worker remembers by their text without values. A miss or a write of
    /// such a statement needn't be normalised again, and mostly needn't be analysed. Statements
    /// with comments aren't remembered. Each takes about 1.5 KiB and twice its text. 0: none.
    #[schemars(range(min = 0, max = 65_536))]
    pub known_max: usize,
}

impl Default for DigestOptions {
    fn default() -> Self {
        Self {
            count_max: 1_000,
            known_max: 1_024,
        }
    }
}

/// A share of what happens that is looked at more closely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObserveOptions {
    /// Of the hits outside transactions, the share that is sent to the server as well, after the
    /// client has its answer, and compared with the server's. The client's next statement waits for
    /// that.
    #[schemars(range(min = 0, max = 1))]
    pub verify_sample: f64,
    /// How long the verification of a hit waits for the log, if the server has answered otherwise.
    /// Hits of a digest whose misses take longer than this on average aren't verified. At least
    /// twice `follow.lag_ms_max`.
    #[schemars(range(min = 20, max = 3_600_000))]
    pub verify_timeout_ms: u64,
    /// Whether the results of a digest are no longer kept once a fault was found in one of them.
    /// Until a restart.
    pub verify_disables_digest: bool,
    /// Digests for which that may happen. With one more, nothing at all is kept any longer.
    #[schemars(range(min = 0, max = 100_000))]
    pub verify_digests_off_max: usize,
    /// Of all statements, the share that is traced: how long each stage of it took, shown by
    /// `GET /traces`.
    #[schemars(range(min = 0, max = 1))]
    pub trace_sample: f64,
    /// Traces that are kept for that, the newest. Each takes up to 2 KiB.
    #[schemars(range(min = 0, max = 65_536))]
    pub traces_max: usize,
}

impl Default for ObserveOptions {
    fn default() -> Self {
        Self {
            verify_sample: 0.0,
            verify_timeout_ms: 5_000,
            verify_disables_digest: true,
            verify_digests_off_max: 100,
            trace_sample: 0.0,
            traces_max: 256,
        }
    }
}

/// The statements by which operators know the query cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueryCacheOptions {
    /// Whether Remora answers the query cache's own statements (`SHOW STATUS LIKE 'Qcache%'`,
    /// `SHOW VARIABLES LIKE 'query_cache%'`, `SET GLOBAL query_cache_type` and the like) from what
    /// it has itself. When false, they are the server's as any other statement.
    pub statements: bool,
    /// `query_cache_type` at the start: which statements' results are kept. With `demand` those
    /// that say `SQL_CACHE`. `SET GLOBAL query_cache_type` changes it until the next start.
    #[serde(rename = "type")]
    pub cache_type: CacheType,
    /// The longest answer to a `SHOW STATUS` or `SHOW VARIABLES` that is held to put Remora's rows
    /// into it. A longer one passes as it is. Of an answer that Remora replaces, the last packet
    /// may be as long; so may values in a `SET` of the query cache's variables.
    #[schemars(range(min = 1_024_u64, max = 67_108_864_u64))]
    pub merged_bytes_max: ByteSize,
    /// The most rows that a `SHOW REMORA` shows.
    #[schemars(range(min = 1, max = 100_000))]
    pub rows_max: usize,
    /// Whether `SHOW REMORA ENTRIES` shows statements as they were sent, with their values; else
    /// with `?` in their place. Who has the privilege `PROCESS` sees them then, of all accounts.
    pub show_literals: bool,
}

impl Default for QueryCacheOptions {
    fn default() -> Self {
        Self {
            statements: true,
            cache_type: CacheType::On,
            merged_bytes_max: ByteSize::new(1 << 20),
            rows_max: 1_000,
            show_literals: false,
        }
    }
}

/// The HTTP listener for metrics and health.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdminOptions {
    /// Address of the HTTP listener: an IP address and port, or `off`. Whoever reaches it can read
    /// the metrics.
    pub listen: AdminListen,
    /// Names that requests may call this host by, beside `localhost` and IP addresses. While there
    /// are none, a listener on a loopback address answers to no other name, so that no web page can
    /// read it through a name of its own (DNS rebinding); a listener on another address answers to
    /// any.
    pub hosts: Vec<HostName>,
    /// HTTP connections that may be open at once. Further ones wait.
    #[schemars(range(min = 1, max = 65_536))]
    pub connections_max: usize,
    /// Time for one HTTP connection, from its begin to the end of its answer.
    #[schemars(range(min = 10, max = 600_000))]
    pub request_timeout_ms: u64,
    /// File with a token on one line, for requests that change something: they come with
    /// `Authorization: Bearer` and the token. Without it the listener is read-only. Only its owner
    /// should be able to read it. Read again on SIGHUP.
    #[schemars(example = &"/etc/remora/admin-token")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
}

impl Default for AdminOptions {
    fn default() -> Self {
        Self {
            listen: AdminListen::At(std::net::SocketAddr::from(([127, 0, 0, 1], 9307))),
            hosts: Vec::new(),
            connections_max: 64,
            request_timeout_ms: 5_000,
            token_file: None,
        }
    }
}

/// What happens when Remora is asked to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShutdownOptions {
    /// Time for running statements and open transactions to finish before their connections are
    /// closed.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub grace_ms: u64,
}

impl Default for ShutdownOptions {
    fn default() -> Self {
        Self { grace_ms: 10_000 }
    }
}

/// What is written to standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogOptions {
    /// How much is logged.
    pub level: LogLevel,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: LogLevel::Info,
        }
    }
}
