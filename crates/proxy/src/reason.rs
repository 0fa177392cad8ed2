//! What became of a statement, and why. One set of enums for metrics, logs and documents.
//!
//! A statement has exactly one [`Outcome`]. Each outcome but the plain ones carries a reason, each reason
//! is a variant with a stable `snake_case` label and a sentence, and no two reasons share a label. The label is
//! what `remora_statements_total{reason="…"}` shows and what `docs/reasons.md` explains.

use std::fmt::Write as _;
use std::sync::LazyLock;

/// A set of reasons: an enum whose every variant has a label and a sentence.
pub trait Reason: Copy + Eq + std::fmt::Debug + Send + Sync + 'static {
    /// Every variant, in the order of declaration.
    const ALL: &'static [Self];
    /// The stable `snake_case` label.
    fn as_str(self) -> &'static str;
    /// What it means, in a sentence for operators.
    fn describe(self) -> &'static str;
    /// Its place in [`Reason::ALL`].
    fn ordinal(self) -> usize;
}

/// Declares an enum of reasons: its sentences are also its documentation.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $label:literal, $sentence:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $(#[doc = $sentence] $variant,)+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable `snake_case` label.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// What it means, in a sentence for operators.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }
        }

        impl Reason for $name {
            const ALL: &'static [Self] = Self::ALL;
            fn as_str(self) -> &'static str { self.as_str() }
            fn describe(self) -> &'static str { self.describe() }
            fn ordinal(self) -> usize { self as usize }
        }
    };
}

reasons! {
    /// Why the state of a session keeps its statements from being served from memory.
    SessionReason {
        SnapshotTransaction: "snapshot_transaction", "In a transaction at REPEATABLE READ or SERIALIZABLE, where all reads must fit one snapshot.";
        TransactionWrote: "transaction_wrote", "In a transaction that has written, which sees its own changes before anyone else does.";
        AutocommitOff: "autocommit_off", "`autocommit` is off, so the statement begins or continues a transaction.";
        ReadUncommitted: "read_uncommitted", "The isolation level is READ UNCOMMITTED, whose reads see changes that the log doesn't show yet.";
        NextTransaction: "next_transaction", "`SET TRANSACTION` has set an isolation level for the next transaction only.";
        UnknownStatement: "session_unknown", "The session ran a statement whose effect on the session is not known; it passes through until it ends or is reset.";
        UnknownSetting: "setting_unknown", "The session set a variable whose effect on results is not known; it passes through until it ends or is reset.";
        UnknownSchema: "schema_unknown", "The session's default schema is not known for certain.";
        TemporaryTables: "temporary_tables", "The session has created temporary tables, which may hide tables of the same name.";
        LockedTables: "locked_tables", "The session holds `LOCK TABLES`.";
        BinlogOff: "binlog_off", "The session has touched `sql_log_bin` or `binlog_format`, so its changes may be missing from the log.";
        CharacterSet: "client_charset", "The session's character set may hide quotes inside other characters (such as sjis, gbk or ucs2), so its text can't be read safely.";
        ProtocolFlavour: "protocol_flavour", "The client negotiated a form of the protocol that stored results can't be given in.";
        Fingerprints: "fingerprints_max", "The limit `cache.fingerprints_max` on different combinations of account, schema and settings is reached.";
        MultipleResults: "session_in_results", "The server has not finished answering an earlier statement of this session.";
    }
}

reasons! {
    /// Why a command is not looked up before its text is even read.
    CommandReason {
        PreparedStatement: "prepared_statement", "A prepared statement of the binary protocol.";
        NotAQuery: "not_a_query", "A command that is not a query, such as a ping or a change of user.";
        TooLong: "statement_too_long", "The text is longer than `cache.statement_bytes_max`.";
        QueryAttributes: "query_attributes", "The query carries attributes.";
        Pipelined: "pipelined", "It was sent before the answer to the statement before it had arrived.";
    }
}

reasons! {
    /// Why nothing at all can be cached at the moment.
    CachingOff {
        Disabled: "caching_disabled", "Caching is turned off in the configuration (`cache.enabled`).";
        NoAccount: "no_follower_account", "No account to follow the binary log with is configured (`follow.user`).";
        Starting: "follower_starting", "The follower has not caught up with the server's log for the first time yet.";
        ServerUnsuitable: "server_unsuitable", "The server's log can't be followed as it is set up; `remora check` says what mends it.";
        FollowerRefused: "follower_refused", "The server refused the follower's account or request; `remora check` says what mends it.";
        FollowerLost: "follower_lost", "The follower has lost its connection to the server and is trying again.";
        Lagging: "follower_lagging", "The follower may be further behind the server than `follow.lag_ms_max`.";
        Stopping: "stopping", "Remora is shutting down.";
    }
}

reasons! {
    /// Why what is known of the log doesn't allow this statement to be served or stored now.
    FreshnessReason {
        Fenced: "fenced", "A write to one of its tables is on its way through Remora and the log has not shown it yet.";
        WatermarkBehind: "watermark_behind", "One of its tables has changed after the last position that is known to be visible.";
        Unproven: "unproven", "The follower has not proved recently enough that it is up to date.";
    }
}

reasons! {
    /// Why one of a statement's tables can't be cached.
    TableReason {
        Unknown: "table_unknown", "One of its tables does not exist or the follower's account can't see it.";
        Loading: "table_loading", "The definition of one of its tables is being asked for.";
        View: "table_view", "It reads a view.";
        Engine: "table_engine", "One of its tables has an engine whose changes may not all reach the log.";
        SystemSchema: "table_system_schema", "It reads a schema of the server's own, such as `information_schema`.";
        NotLogged: "table_not_logged", "One of its schemas is left out of the log by the server's filters.";
        CatalogueFull: "catalogue_full", "Too many definitions of tables are being asked for (`follow.catalogue_queue_max`).";
        NoSchema: "table_without_schema", "A table is named without a schema and the session has no default schema.";
    }
}

reasons! {
    /// Why the answer to a statement that was looked up and not found can't be kept.
    AnswerReason {
        Error: "answer_error", "The server answered with an error.";
        NoRows: "answer_not_rows", "The server answered with something other than a result set.";
        Warnings: "answer_warnings", "The answer has warnings, which `SHOW WARNINGS` must be able to show.";
        MultipleResults: "answer_multiple_results", "The answer has more than one result.";
        StatusFlags: "answer_status_flags", "The answer's status flags say that it depends on more than the tables.";
        TooLarge: "answer_too_large", "The answer is larger than `cache.result_bytes_max`.";
        Broken: "answer_broken", "The answer ended early because the client or the server went away.";
        NoPosition: "answer_no_position", "The position that the result would be as of is not known.";
        Outdated: "answer_outdated", "One of its tables changed while the answer was on its way.";
    }
}

/// Why the answer to a statement that was looked up and not found isn't kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstored {
    /// The answer can't be kept.
    Answer(AnswerReason),
}

impl Unstored {
    /// Every reason, in the order of [`Outcome::index`].
    pub fn all() -> impl Iterator<Item = Self> {
        AnswerReason::ALL.iter().copied().map(Self::Answer)
    }

    /// The stable `snake_case` label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answer(reason) => reason.as_str(),
        }
    }

    /// What it means, in a sentence for operators.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Answer(reason) => reason.describe(),
        }
    }
}

reasons! {
    /// A limit of the configuration, labelled with the option that sets it.
    Limit {
        Connections: "workers.connections_max", "A client was refused with error 1040.";
        AcceptedQueue: "workers.accepted_queue_max", "Accepting paused because no worker was free to take a connection.";
        HandshakeTime: "listen.handshake_timeout_ms", "A client did not log in in time.";
        ConnectTime: "upstream.connect_timeout_ms", "A connection to the server was not established in time.";
        QueryTime: "upstream.query_timeout_ms", "The server did not answer a query of Remora's own in time.";
        EventBytes: "follow.event_bytes_max", "An event of the log was too large to read, and everything was forgotten.";
        TransactionTables: "follow.transaction_tables_max", "A transaction changed too many tables and counted as a change of all.";
        CatalogueTables: "follow.catalogue_tables_max", "A table's definition made room for another.";
        CatalogueQueue: "follow.catalogue_queue_max", "A statement passed through because too many definitions were being asked for.";
        ResultBytes: "cache.result_bytes_max", "A result was not kept because of its size.";
        StatementBytes: "cache.statement_bytes_max", "A statement was not looked up because of its length.";
        Fingerprints: "cache.fingerprints_max", "A session passes through because too many combinations of settings are in use.";
        Analyses: "cache.analyses_max", "A remembered analysis made room for another.";
        FillsInFlight: "cache.fills_in_flight_max", "A result was not kept because too many others were on their way into memory.";
        AdminRequests: "admin.requests_max", "An HTTP request was refused with status 503.";
        GracePeriod: "shutdown.grace_ms", "A connection was closed while its statement was still running.";
    }
}

/// Why a statement went to the server without a look into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// Nothing can be cached at the moment.
    Caching(CachingOff),
    /// The command is not one that can be looked up.
    Command(CommandReason),
    /// The session's state.
    Session(SessionReason),
    /// One of its tables.
    Table(TableReason),
    /// The log's state.
    Freshness(FreshnessReason),
}

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from memory.
    Hit,
    /// Not in memory, or outdated there; answered by the server and kept.
    Fill,
    /// Not in memory, or outdated there; answered by the server and not kept.
    Unstored(Unstored),
    /// May change data; sent to the server behind a fence.
    Write,
    /// Sent to the server without a look into memory.
    Bypass(Bypass),
}

/// The outcomes without a reason: they take the first places.
const PLAIN: usize = 3;
const ANSWER_AT: usize = PLAIN;
const CACHING_AT: usize = ANSWER_AT + AnswerReason::ALL.len();
const COMMAND_AT: usize = CACHING_AT + CachingOff::ALL.len();
const SESSION_AT: usize = COMMAND_AT + CommandReason::ALL.len();
const TABLE_AT: usize = SESSION_AT + SessionReason::ALL.len();
const FRESHNESS_AT: usize = TABLE_AT + TableReason::ALL.len();

impl Outcome {
    /// How many different outcomes there are, reasons included.
    pub const COUNT: usize = FRESHNESS_AT + FreshnessReason::ALL.len();

    /// Its place among all outcomes, below [`Outcome::COUNT`]. Not stable between versions.
    pub const fn index(self) -> usize {
        match self {
            Self::Hit => 0,
            Self::Fill => 1,
            Self::Write => 2,
            Self::Unstored(Unstored::Answer(reason)) => ANSWER_AT + reason as usize,
            Self::Bypass(Bypass::Caching(reason)) => CACHING_AT + reason as usize,
            Self::Bypass(Bypass::Command(reason)) => COMMAND_AT + reason as usize,
            Self::Bypass(Bypass::Session(reason)) => SESSION_AT + reason as usize,
            Self::Bypass(Bypass::Table(reason)) => TABLE_AT + reason as usize,
            Self::Bypass(Bypass::Freshness(reason)) => FRESHNESS_AT + reason as usize,
        }
    }

    /// Every outcome, reasons included, in the order of [`Outcome::index`].
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Outcome>> = LazyLock::new(|| {
            let mut all = vec![Outcome::Hit, Outcome::Fill, Outcome::Write];
            all.extend(Unstored::all().map(Outcome::Unstored));
            all.extend(Bypass::all().map(Outcome::Bypass));
            all
        });
        &ALL
    }

    /// The label of the kind of outcome: `hit`, `fill`, `unstored`, `write` or `bypass`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Fill => "fill",
            Self::Unstored(_) => "unstored",
            Self::Write => "write",
            Self::Bypass(_) => "bypass",
        }
    }

    /// The label of the reason; empty for outcomes that need none.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Hit | Self::Fill | Self::Write => "",
            Self::Unstored(reason) => reason.as_str(),
            Self::Bypass(bypass) => bypass.as_str(),
        }
    }

    /// What it means, in a sentence for operators.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Hit => "Answered from memory.",
            Self::Fill => "Not in memory, or outdated there; answered by the server and kept.",
            Self::Write => "May change data; sent to the server behind a fence.",
            Self::Unstored(reason) => reason.describe(),
            Self::Bypass(bypass) => bypass.describe(),
        }
    }
}

impl Bypass {
    /// Every reason, in the order of [`Outcome::index`].
    pub fn all() -> impl Iterator<Item = Self> {
        fn each<R: Reason>(wrap: fn(R) -> Bypass) -> impl Iterator<Item = Bypass> {
            R::ALL.iter().copied().map(wrap)
        }
        each(Self::Caching)
            .chain(each(Self::Command))
            .chain(each(Self::Session))
            .chain(each(Self::Table))
            .chain(each(Self::Freshness))
    }

    /// The stable `snake_case` label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caching(reason) => reason.as_str(),
            Self::Command(reason) => reason.as_str(),
            Self::Session(reason) => reason.as_str(),
            Self::Table(reason) => reason.as_str(),
            Self::Freshness(reason) => reason.as_str(),
        }
    }

    /// What it means, in a sentence for operators.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Caching(reason) => reason.describe(),
            Self::Command(reason) => reason.describe(),
            Self::Session(reason) => reason.describe(),
            Self::Table(reason) => reason.describe(),
            Self::Freshness(reason) => reason.describe(),
        }
    }
}

/// `docs/reasons.md`.
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# Outcomes and reasons\n\n\
         <!-- Generated by `remora reasons --markdown > docs/reasons.md`; don't edit. -->\n\n\
         Every statement has one outcome, counted in `remora_statements_total{outcome, reason}`. The labels are stable.\n\n\
         | outcome | meaning |\n|---|---|\n",
    );
    for (outcome, meaning) in [
        ("hit", Outcome::Hit.describe()),
        ("fill", Outcome::Fill.describe()),
        (
            "unstored",
            "Looked up and not found; answered by the server and not kept. The reason says why.",
        ),
        ("write", Outcome::Write.describe()),
        (
            "bypass",
            "Sent to the server without a look into memory. The reason says why.",
        ),
    ] {
        let _ = writeln!(page, "| `{outcome}` | {meaning} |");
    }
    push_table::<AnswerReason>(&mut page, "`unstored`: the answer");
    push_table::<CachingOff>(&mut page, "`bypass`: nothing can be cached at the moment");
    push_table::<CommandReason>(&mut page, "`bypass`: the command");
    push_table::<SessionReason>(&mut page, "`bypass`: the session");
    push_table::<TableReason>(&mut page, "`bypass`: the tables");
    push_table::<FreshnessReason>(&mut page, "`bypass`: the log");
    page.push_str("\n## Limits\n\nCounted in `remora_limit_reached_total{limit}`. The label is the option of the configuration.\n\n");
    page.push_str("| limit | when it is reached |\n|---|---|\n");
    for limit in Limit::ALL {
        let _ = writeln!(page, "| `{}` | {} |", limit.as_str(), limit.describe());
    }
    page
}

fn push_table<R: Reason>(page: &mut String, title: &str) {
    let _ = write!(page, "\n## {title}\n\n| reason | meaning |\n|---|---|\n");
    for reason in R::ALL {
        let _ = writeln!(page, "| `{}` | {} |", reason.as_str(), reason.describe());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_outcomes_index_is_its_place_among_all() {
        assert_eq!(Outcome::all().len(), Outcome::COUNT);
        for (index, outcome) in Outcome::all().iter().enumerate() {
            assert_eq!(outcome.index(), index, "{outcome:?}");
        }
    }

    #[test]
    fn no_two_reasons_share_a_label_and_each_is_described() {
        let mut seen = HashSet::new();
        for outcome in Outcome::all()
            .iter()
            .filter(|outcome| !outcome.reason().is_empty())
        {
            let label = outcome.reason();
            assert!(seen.insert(label), "{label} twice");
            let is_snake_case = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(label.chars().all(is_snake_case), "{label}");
            assert!(
                outcome.describe().ends_with('.'),
                "{label} is not described by a sentence"
            );
        }
    }
}
