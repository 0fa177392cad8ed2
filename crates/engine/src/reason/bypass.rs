//! Why a statement was answered by the server and its answer not kept.

use std::fmt;
use std::sync::LazyLock;

use remora_cache::{FillRefused, NotStored, Unservable};
use remora_sql::Refusal;

use super::Reason;
use super::TableRefusal;

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
    /// The rules of the configuration.
    Rules,
    /// What is known of the server's log.
    Log,
    /// The server's answer.
    Answer,
}

impl About {
    pub(super) const ALL: [Self; 7] = [
        Self::Command,
        Self::Statement,
        Self::Session,
        Self::Tables,
        Self::Rules,
        Self::Log,
        Self::Answer,
    ];

    /// The heading of its reasons in the documentation.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Command => "About the command",
            Self::Statement => "About what the statement says",
            Self::Session => "About the session",
            Self::Tables => "About the tables",
            Self::Rules => "About the operator's rules",
            Self::Log => "About the state of the log",
            Self::Answer => "About the server's answer",
        }
    }
}

/// Declares [`Bypass`]: reasons of its own, and the reasons of others behind a prefix for their
/// labels.
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
            pub(super) fn index(self) -> usize {
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
        PreparedStatement(Command): "prepared_statement", "A prepared statement that is not known, or an execution for many rows at once.";
        PreparedElsewhere(Command): "prepared_elsewhere", "A prepared statement that was prepared under other settings than the session's present ones.";
        PreparedLongData(Command): "prepared_long_data", "A prepared statement, a parameter of which was sent in pieces.";
        PreparedCursor(Command): "prepared_cursor", "A prepared statement whose rows stay on the server behind a cursor.";
        PreparedParameters(Command): "prepared_parameters", "A prepared statement with parameters that can't be part of a key: of type TIME, of types not named yet, of other types than in an earlier execution, beside query attributes, or too long when they name types.";
        PreparedBeforeDefinition(Command): "prepared_before_definition", "A prepared statement that the server will prepare again, for a definition has changed since.";
        PreparedTextsFull(Command): "prepared_texts_full", "A prepared statement whose text was not kept, because the session's others fill `workers.prepared_text_bytes_max`.";
        StatementTooLong(Command): "text_too_long", "The text is longer than `cache.statement_bytes_max`.";

        DigestSwitchedOff(Statement): "digest_switched_off", "A verification has found a fault in a result of its digest, or in too many others.";

        InTransaction(Session): "in_transaction", "In a transaction in which a setting has changed, or in one at REPEATABLE READ with `cache.transaction_reads` off.";
        NoTablesInTransaction(Session): "no_tables_in_transaction", "It reads no table, in a transaction or with `autocommit` off. The server opens no transaction for that, and memory would.";
        SnapshotNotMade(Session): "snapshot_not_made", "In a transaction at REPEATABLE READ that has had no answer yet which proves that its snapshot exists. Or the first read of one that seldom reads more.";
        SnapshotUnknown(Session): "snapshot_unknown", "In a transaction at REPEATABLE READ that began while the follower was not live.";
        TransactionHasWritten(Session): "transaction_has_written", "The open transaction has written something that the statement depends on, or what it wrote isn't known.";
        AutocommitOff(Session): "autocommit_off", "`autocommit` is off, so the statement begins a transaction.";
        IsolationLevel(Session): "isolation_level", "The session's isolation level does not allow it.";
        NextTransactionDiffers(Session): "next_transaction_differs", "`SET TRANSACTION` has changed what the next transaction is like, or code that isn't seen may have. Or the last one had its own isolation level or access mode, and ended without `COMMIT` or `ROLLBACK`.";
        SettingsUnknown(Session): "settings_unknown", "The session's settings have to be asked for first.";
        StatusUncertain(Session): "status_uncertain", "After an error, whether a transaction is open is known only with the next answer. Or the server's flag for `autocommit` and the setting differ (MySQL, after `SET GLOBAL autocommit = 0`).";
        DialectUnknown(Session): "dialect_unknown", "The session's `sql_mode` or character set makes the server read text in a way that is not known, so the text can't be read safely.";
        UnknownSetting(Session): "setting_unknown", "The session set a variable whose effect on results is not known; it passes through until it is reset or ends.";
        UnknownSessionState(Session): "session_unknown", "The session ran something whose effect on later results is not known; it passes through until it is reset or ends.";
        TemporaryTables(Session): "temporary_tables", "The session has created temporary tables, or code that it ran may have; they may hide tables of the same name.";
        OtherInstance(Session): "other_instance", "The session speaks to another server than the one whose log is followed: the address leads to more than one.";
        LockedTables(Session): "locked_tables", "The session holds `LOCK TABLES`.";
        WritesUnlogged(Session): "writes_unlogged", "The session has touched `sql_log_bin` or `binlog_format`, so its changes may not show in the log.";
        SettingValue(Session): "setting_value", "A setting has a value under which results depend on more than the tables (`sql_auto_is_null`, `system_versioning_asof`, `query_cache_type`, `session_track_transaction_info`).";
        CharsetUnsafe(Session): "charset_unsafe", "The session's text can't be read safely. Its character set may hide quotes inside other characters (sjis, gbk, ucs2). Or the server compares other strings than the text shows: with `character_set_connection = swe7`, or utf16 while `character_set_client = binary`.";
        QueryCacheOff(Session): "query_cache_off", "`query_cache_type` is `OFF`, in the session or globally, or `query_cache_size` was set to 0.";
        QueryCacheOnDemand(Session): "query_cache_on_demand", "The session's `query_cache_type` is `DEMAND`, and the statement doesn't say `SQL_CACHE`.";
        FingerprintsFull(Session): "fingerprints_full", "Too many combinations of account, schema and settings are in use (`cache.fingerprints_max`), or they take too many bytes (`cache.fingerprints_bytes_max`). A single one may take a 1,024th of those.";

        TableUnknown(Tables): "table_unknown", "What one of its tables is can't be told: its schema is not certain or the catalogue can't be asked.";
        TableLoading(Tables): "table_loading", "The definition of one of its tables is being asked for.";

        RuleRefuses(Rules): "rule", "A rule of the configuration says that it is never cached; `GET /rules` and `remora explain` say which.";
        RuleUncertain(Rules): "rule_uncertain", "Rules name accounts or schemas, and those of the session are in a character set in which Remora can't read them.";

        FollowerNotLive(Log): "follower_not_live", "The follower is not following the server's log, or may be too far behind; `/readyz` says why.";
        WatermarkBehind(Log): "watermark_behind", "One of its tables has changed after the last position that is known to be visible to reads.";

        ChangedSinceSnapshot(Log): "changed_since_snapshot", "One of its tables has changed, perhaps after the transaction's snapshot was taken.";

        SnapshotUnproven(Answer): "snapshot_unproven", "When the answer arrived, the follower was not yet proven to have applied everything that the transaction's snapshot may show. With `cache.transaction_reads = \"early\"` such a result waits instead.";
        NotWorthStoring(Answer): "not_worth_storing", "Storing the results of its digest costs more than it saves, so only a sample is stored. Or `cache.storing` is `sample`.";
        AnswerIsError(Answer): "answer_is_error", "The server answered with an error.";
        AnswerIsNotOneResultSet(Answer): "answer_is_not_one_result_set", "The server answered with something other than one result set.";
        AnswerHasWarnings(Answer): "answer_has_warnings", "The answer has warnings, which `SHOW WARNINGS` must be able to show.";
        AnswerHasStatus(Answer): "answer_has_status", "The answer's status flags say something that holds for this session or this moment only.";
        AnswerTooLarge(Answer): "answer_too_large", "The answer is larger than `cache.result_bytes_max`, or than the `query_cache_limit` that was set.";
        AnswerTooLargeForRule(Answer): "answer_too_large_for_rule", "The answer is larger than the `result_bytes_max` of the rule that decides about it.";
        AnswerCutShort(Answer): "answer_cut_short", "The client or the server went away before the answer's end.";
    }
    nested {
        Statement(Refusal)(Statement): "statement", "What it says keeps it from being cached.";
        Table(TableRefusal)(Tables): "table", "One of its tables can't be cached.";
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
    #[inline]
    pub const fn is_miss(self) -> bool {
        let was_looked_up = matches!(self.about(), About::Answer | About::Log);
        matches!(self, Self::TableLoading)
            || (was_looked_up && !matches!(self, Self::FollowerNotLive))
    }
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}
