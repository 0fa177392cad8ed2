//! What became of a statement, and why. One set of enums for metrics, logs and documents.
//!
//! A statement has exactly one [`Outcome`]. One that went to the server without need of a fence carries the
//! reason, [`Bypass`]: a variant with a stable `snake_case` label and a sentence. No two share a label. The label is
//! what `remora_statements_total{reason="…"}` shows and what `docs/reasons.md` explains.

use std::fmt;
use std::fmt::Write as _;
use std::mem::discriminant;
use std::sync::LazyLock;

use remora_cache::{FillRefused, NotStored, Unservable};

/// A set of reasons: an enum whose every variant has a label and a sentence.
pub trait Reason: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// Every variant, in the order of declaration.
    const ALL: &'static [Self];
    /// The stable `snake_case` label.
    fn as_str(self) -> &'static str;
    /// What it means, in a sentence for operators.
    fn describe(self) -> &'static str;
    /// Its place in [`Reason::ALL`].
    fn ordinal(self) -> usize;
}

/// Makes the reasons of another crate a [`Reason`].
macro_rules! adopt {
    ($name:ty, |$reason:ident| $ordinal:expr) => {
        impl Reason for $name {
            const ALL: &'static [Self] = &<$name>::ALL;

            fn as_str(self) -> &'static str {
                <$name>::as_str(self)
            }

            fn describe(self) -> &'static str {
                <$name>::describe(self)
            }

            fn ordinal(self) -> usize {
                let $reason = self;
                $ordinal
            }
        }
    };
}

/// Declares an enum of reasons: its sentences are also its documentation.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $label:literal, $sentence:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $(#[doc = $sentence] $variant,)+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// The stable label.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// What it means, in a sentence for operators.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }
        }

        adopt!($name, |reason| reason as usize);
    };
}

adopt!(FillRefused, |reason| reason as usize);
adopt!(NotStored, |reason| reason as usize);
// `Changed` says which tag: all of them count as one.
adopt!(Unservable, |reason| {
    let is_same = |other: &Unservable| discriminant(other) == discriminant(&reason);
    Unservable::ALL.iter().position(is_same).unwrap_or_default()
});

reasons! {
    /// Why nothing at all can be cached at the moment. Shown by `/readyz` and `remora_caching`.
    CachingOff {
        Disabled: "disabled", "Caching is turned off in the configuration (`cache.enabled`).";
        NoAccount: "no_follower_account", "No account to follow the binary log with is configured (`follow.user`).";
        Starting: "starting", "The follower has not caught up with the server's log for the first time yet.";
        ServerUnsuitable: "server_unsuitable", "The server's log can't be followed as it is set up; `remora check` says what mends it.";
        FollowerRefused: "follower_refused", "The server refused the follower's account or its request; `remora check` says what mends it.";
        FollowerLost: "follower_lost", "The follower has lost its connection to the server and is trying again.";
        Lagging: "lagging", "The follower may be further behind the server than `follow.lag_ms_max`.";
        Stopping: "stopping", "Remora is shutting down.";
    }
}

reasons! {
    /// A limit of the configuration, labelled with the option that sets it.
    Limit {
        Connections: "workers.connections_max", "A client was refused with error 1040.";
        PreparedStatements: "workers.prepared_statements_max", "A prepared statement was not remembered and counts as one that may change anything.";
        ConnectTime: "upstream.connect_timeout_ms", "A connection to the server was not established in time.";
        QueryTime: "upstream.query_timeout_ms", "The server did not answer a query of Remora's own in time.";
        EventBytes: "follow.event_bytes_max", "An event of the log was too large to read, and everything was forgotten.";
        TransactionTables: "follow.transaction_tables_max", "A transaction changed too many tables and counted as a change of all.";
        CatalogueTables: "follow.catalogue_tables_max", "A table's definition made room for another.";
        CatalogueQueue: "follow.catalogue_queue_max", "A definition was not asked for because too many others were.";
        ResultBytes: "cache.result_bytes_max", "A result was not kept because of its size.";
        StatementBytes: "cache.statement_bytes_max", "A statement was not looked up because of its length.";
        Fingerprints: "cache.fingerprints_max", "A session passes through because too many combinations of settings are in use.";
        FillsInFlight: "cache.fills_in_flight_max", "A result was not kept because too many others were on their way into memory.";
        GracePeriod: "shutdown.grace_ms", "A connection was closed while its statement was still running.";
    }
}

reasons! {
    /// Why a table can't be cached.
    TableReason {
        Missing: "missing", "One of its tables does not exist, or the follower's account can't see it.";
        View: "view", "It reads a view.";
        Engine: "engine", "One of its tables has an engine whose changes may not all reach the log.";
        SystemSchema: "system_schema", "It reads a schema of the server's own, such as `information_schema`.";
        NotLogged: "not_logged", "One of its schemas is left out of the log by the server's filters.";
    }
}

/// What a reason for passing through is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum About {
    /// What kind of command it is.
    Command,
    /// What it says.
    Statement,
    /// The session's state.
    Session,
    /// The tables that it reads.
    Tables,
    /// What is known of the server's log.
    Log,
    /// The server's answer.
    Answer,
}

impl About {
    const ALL: [Self; 6] = [
        Self::Command,
        Self::Statement,
        Self::Session,
        Self::Tables,
        Self::Log,
        Self::Answer,
    ];

    /// The heading of its reasons in the documentation.
    const fn title(self) -> &'static str {
        match self {
            Self::Command => "About the command",
            Self::Statement => "About what the statement says",
            Self::Session => "About the session",
            Self::Tables => "About the tables",
            Self::Log => "About the state of the log",
            Self::Answer => "About the server's answer",
        }
    }
}

/// Declares [`Bypass`]: reasons of its own, and the reasons of others behind a prefix for their labels.
macro_rules! bypasses {
    (
        plain { $($plain:ident($about:ident): $label:literal, $sentence:literal;)+ }
        nested { $($nested:ident($reason:ty)($nested_about:ident): $prefix:literal, $meaning:literal;)+ }
    ) => {
        /// Why a statement was answered by the server and its answer not kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bypass {
            $(#[doc = $sentence] $plain,)+
            $(#[doc = $meaning] $nested($reason),)+
        }

        /// The variants without a payload, for their numbers.
        #[derive(Clone, Copy)]
        enum Plain { $($plain,)+ }

        const PLAIN_COUNT: usize = [$(Plain::$plain as usize),+].len();

        impl Bypass {
            /// How many different reasons there are.
            pub const COUNT: usize = PLAIN_COUNT $(+ <$reason as Reason>::ALL.len())+;

            /// Its place among all reasons. Not stable between versions.
            fn index(self) -> usize {
                let mut start = PLAIN_COUNT;
                match self {
                    $(Self::$plain => return Plain::$plain as usize,)+
                    _ => {}
                }
                $(
                    if let Self::$nested(reason) = self {
                        return start + reason.ordinal();
                    }
                    start += <$reason as Reason>::ALL.len();
                )+
                // Every variant has returned: the lists above are the enum's own.
                start - 1
            }

            /// Every reason, in the order of its index.
            pub fn all() -> impl Iterator<Item = Self> {
                let plain = [$(Self::$plain),+].into_iter();
                plain $(.chain(<$reason as Reason>::ALL.iter().copied().map(Self::$nested)))+
            }

            /// What it is about.
            pub const fn about(self) -> About {
                match self {
                    $(Self::$plain => About::$about,)+
                    $(Self::$nested(_) => About::$nested_about,)+
                }
            }

            /// What it means, in a sentence for operators.
            pub fn describe(self) -> &'static str {
                match self {
                    $(Self::$plain => $sentence,)+
                    $(Self::$nested(reason) => Reason::describe(reason),)+
                }
            }

            fn compose_label(self) -> String {
                match self {
                    $(Self::$plain => $label.to_owned(),)+
                    $(Self::$nested(reason) => format!("{}_{}", $prefix, Reason::as_str(reason)),)+
                }
            }
        }
    };
}

bypasses! {
    plain {
        NotAQuery(Command): "not_a_query", "A command that is not a query, such as a ping or a change of user.";
        PreparedStatement(Command): "prepared_statement", "A prepared statement of the binary protocol.";
        StatementTooLong(Command): "text_too_long", "The text is longer than `cache.statement_bytes_max`.";

        InTransaction(Session): "in_transaction", "In a transaction whose reads must all fit one snapshot (REPEATABLE READ or SERIALIZABLE).";
        TransactionHasWritten(Session): "transaction_has_written", "In a transaction that has written: it must see its own changes.";
        AutocommitOff(Session): "autocommit_off", "`autocommit` is off, so the statement begins a transaction.";
        IsolationLevel(Session): "isolation_level", "The session's isolation level does not allow it.";
        NextTransactionDiffers(Session): "next_transaction_differs", "`SET TRANSACTION` has changed what the next transaction is like.";
        SettingsUnknown(Session): "settings_unknown", "The session's settings have to be asked for first.";
        StatusUncertain(Session): "status_uncertain", "After an error, whether a transaction is open is known only with the next answer.";
        DialectUnknown(Session): "dialect_unknown", "The session's `sql_mode` or character set makes the server read text in a way that is not known, so the text can't be read safely.";
        UnknownSetting(Session): "setting_unknown", "The session set a variable whose effect on results is not known; it passes through until it is reset or ends.";
        UnknownSessionState(Session): "session_unknown", "The session ran something whose effect on later results is not known; it passes through until it is reset or ends.";
        TemporaryTables(Session): "temporary_tables", "The session has created temporary tables, which may hide tables of the same name.";
        LockedTables(Session): "locked_tables", "The session holds `LOCK TABLES`.";
        WritesUnlogged(Session): "writes_unlogged", "The session has touched `sql_log_bin` or `binlog_format`, so its changes may not show in the log.";
        CharsetUnsafe(Session): "charset_unsafe", "The session's character set may hide quotes inside other characters (such as sjis, gbk or ucs2), so its text can't be read safely.";
        FingerprintsFull(Session): "fingerprints_full", "More combinations of account, schema and settings are in use than `cache.fingerprints_max`.";

        TableUnknown(Tables): "table_unknown", "What one of its tables is can't be told: its schema is not certain or the catalogue can't be asked.";
        TableLoading(Tables): "table_loading", "The definition of one of its tables is being asked for.";

        CachingDisabled(Log): "caching_disabled", "Caching is turned off in the configuration (`cache.enabled`).";
        FollowerNotLive(Log): "follower_not_live", "The follower is not following the server's log, or may be too far behind; `/readyz` says why.";
        WatermarkBehind(Log): "watermark_behind", "One of its tables has changed after the last position that is known to be visible to reads.";

        AnswerIsError(Answer): "answer_is_error", "The server answered with an error.";
        AnswerIsNotOneResultSet(Answer): "answer_is_not_one_result_set", "The server answered with something other than one result set.";
        AnswerHasWarnings(Answer): "answer_has_warnings", "The answer has warnings, which `SHOW WARNINGS` must be able to show.";
        AnswerHasStatus(Answer): "answer_has_status", "The answer's status flags say something that holds for this session or this moment only.";
        AnswerTooLarge(Answer): "answer_too_large", "The answer is larger than `cache.result_bytes_max`.";
        AnswerCutShort(Answer): "answer_cut_short", "The client or the server went away before the answer's end.";
    }
    nested {
        Table(TableReason)(Tables): "table", "One of its tables can't be cached.";
        Unservable(Unservable)(Log): "unservable", "A result is in memory and may not be served now.";
        Fill(FillRefused)(Answer): "fill", "The answer may not be kept because of others on their way into memory.";
        Outdated(Unservable)(Answer): "outdated", "The answer was outdated when it had arrived.";
        NotStored(NotStored)(Answer): "not_stored", "The store did not take the answer.";
    }
}

/// The labels, composed once.
static LABELS: LazyLock<Vec<String>> =
    LazyLock::new(|| Bypass::all().map(Bypass::compose_label).collect());

impl Bypass {
    /// The stable `snake_case` label.
    pub fn as_str(self) -> &'static str {
        LABELS.get(self.index()).map_or("", String::as_str)
    }

    /// Whether the statement was one that memory might have answered: it counts as a miss.
    pub const fn is_miss(self) -> bool {
        let was_looked_up = matches!(self.about(), About::Answer | About::Log);
        matches!(self, Self::TableLoading)
            || (was_looked_up && !matches!(self, Self::CachingDisabled | Self::FollowerNotLive))
    }
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from memory.
    Hit,
    /// Not in memory, or outdated there; answered by the server and kept.
    Fill,
    /// May change data; sent to the server behind a fence.
    Write,
    /// Answered by the server and not kept, for this reason.
    Bypass(Bypass),
}

impl Outcome {
    /// The outcomes without a reason: they take the first places.
    const PLAIN: [Self; 3] = [Self::Hit, Self::Fill, Self::Write];

    /// How many different outcomes there are, reasons included.
    pub const COUNT: usize = Self::PLAIN.len() + Bypass::COUNT;

    /// Its place among all outcomes, below [`Outcome::COUNT`]. Not stable between versions.
    pub fn index(self) -> usize {
        match self {
            Self::Hit => 0,
            Self::Fill => 1,
            Self::Write => 2,
            Self::Bypass(bypass) => Self::PLAIN.len() + bypass.index(),
        }
    }

    /// Every outcome, reasons included, in the order of [`Outcome::index`].
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Outcome>> = LazyLock::new(|| {
            let bypasses = Bypass::all().map(Outcome::Bypass);
            Outcome::PLAIN.into_iter().chain(bypasses).collect()
        });
        &ALL
    }

    /// The label of the kind of outcome: `hit`, `fill`, `write` or `bypass`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Fill => "fill",
            Self::Write => "write",
            Self::Bypass(_) => "bypass",
        }
    }

    /// The label of the reason; empty for outcomes that need none.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Hit | Self::Fill | Self::Write => "",
            Self::Bypass(bypass) => bypass.as_str(),
        }
    }

    /// What it means, in a sentence for operators.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Hit => "Answered from memory.",
            Self::Fill => "Not in memory, or outdated there; answered by the server and kept.",
            Self::Write => "May change data; sent to the server behind a fence.",
            Self::Bypass(bypass) => bypass.describe(),
        }
    }

    /// Whether the statement was one that memory might have answered and the server did.
    pub const fn is_miss(self) -> bool {
        match self {
            Self::Hit | Self::Write => false,
            Self::Fill => true,
            Self::Bypass(bypass) => bypass.is_miss(),
        }
    }
}

/// `docs/reasons.md`.
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# Outcomes and reasons\n\n\
         <!-- Generated by `remora reasons --markdown > docs/reasons.md`; don't edit. -->\n\n\
         Every statement has one outcome, counted in `remora_statements_total{outcome, reason}`. Labels are stable.\n\n\
         | outcome | meaning |\n|---|---|\n",
    );
    for outcome in Outcome::PLAIN {
        let _ = writeln!(page, "| `{}` | {} |", outcome.as_str(), outcome.describe());
    }
    page.push_str("| `bypass` | Answered by the server and not kept; the reason says why. |\n");
    page.push_str("\n## Reasons of a bypass\n\nThose marked * count as misses in `remora_misses_total`, with fills.\n");
    for about in About::ALL {
        let reasons: Vec<_> = Bypass::all()
            .filter(|bypass| bypass.about() == about)
            .collect();
        if reasons.is_empty() {
            continue;
        }
        let _ = write!(
            page,
            "\n### {}\n\n| reason | meaning |\n|---|---|\n",
            about.title()
        );
        for bypass in reasons {
            let mark = if bypass.is_miss() { " *" } else { "" };
            let _ = writeln!(
                page,
                "| `{}`{mark} | {} |",
                bypass.as_str(),
                bypass.describe()
            );
        }
    }
    push_table::<CachingOff>(
        &mut page,
        "Why caching is off",
        "Shown by `/readyz` and by `remora_caching{reason}`.",
        "reason",
    );
    push_table::<remora_cache::EvictionReason>(
        &mut page,
        "Evictions",
        "Counted in `remora_evictions_total{reason}`.",
        "reason",
    );
    push_table::<remora_cache::InvalidationReason>(
        &mut page,
        "Invalidations",
        "Counted in `remora_invalidations_total{reason}`.",
        "reason",
    );
    push_table::<Limit>(
        &mut page,
        "Limits",
        "Counted in `remora_limit_reached_total{limit}`. The label is the option of the configuration.",
        "limit",
    );
    page
}

adopt!(remora_cache::EvictionReason, |reason| reason as usize);
adopt!(remora_cache::InvalidationReason, |reason| reason as usize);

fn push_table<R: Reason>(page: &mut String, title: &str, about: &str, column: &str) {
    let _ = write!(
        page,
        "\n## {title}\n\n{about}\n\n| {column} | meaning |\n|---|---|\n"
    );
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
        let changed = |tag| Outcome::Bypass(Bypass::Outdated(Unservable::Changed(tag))).index();
        assert_eq!(changed(0), changed(7));
    }

    #[test]
    fn no_two_reasons_share_a_label_and_each_is_described() {
        let mut seen = HashSet::new();
        for bypass in Bypass::all() {
            let label = bypass.as_str();
            assert!(seen.insert(label), "{label} twice");
            let is_snake_case = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(label.chars().all(is_snake_case), "{label}");
            assert!(
                bypass.describe().ends_with('.'),
                "{label} is not described by a sentence"
            );
        }
    }

    #[test]
    fn a_miss_is_a_read_that_memory_might_have_answered() {
        assert!(Outcome::Fill.is_miss());
        assert!(Bypass::WatermarkBehind.is_miss());
        assert!(Bypass::Fill(FillRefused::InFlight).is_miss());
        assert!(!Outcome::Hit.is_miss());
        assert!(!Outcome::Write.is_miss());
        assert!(!Bypass::AutocommitOff.is_miss());
        assert!(!Bypass::FollowerNotLive.is_miss());
    }
}
