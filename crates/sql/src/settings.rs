//! Session variables: which change results, which change what is logged, which do neither.

/// A session variable that can change the bytes of a result.
#[derive(Clone, Copy, Debug)]
pub struct ResultSetting {
    /// Its name, in lower case. Not every server has every one.
    pub name: &'static str,
    /// What it changes.
    pub why: &'static str,
    /// If given: results may only be cached or served while the variable has one of these values
    /// (compared without regard to case).
    pub only_when: Option<&'static [&'static str]>,
}

const fn setting(name: &'static str, why: &'static str) -> ResultSetting {
    ResultSetting {
        name,
        why,
        only_when: None,
    }
}

/// Every session variable that can change a result. The values of all of them belong into a key
/// under which a result is stored; setting one is [`crate::SessionEffect::SettingsChanged`], but
/// for `SET autocommit` to a literal: that is [`crate::SessionEffect::TransactionDefaults`].
pub const RESULT_SETTINGS: &[ResultSetting] = &[
    setting(
        "autocommit",
        "whether a read begins a transaction, and a status flag of each answer",
    ),
    setting(
        "block_encryption_mode",
        "the cipher of AES_ENCRYPT() and AES_DECRYPT()",
    ),
    setting(
        "character_set_client",
        "how the server reads the statement's text",
    ),
    setting(
        "character_set_collations",
        "the default collations of character sets",
    ),
    setting(
        "character_set_connection",
        "the character set of literals and of numbers made text",
    ),
    setting(
        "character_set_database",
        "the character set of the default schema",
    ),
    setting(
        "character_set_results",
        "the character set of the result and its metadata",
    ),
    setting("character_set_server", "the character set of new schemas"),
    setting(
        "collation_connection",
        "how literals are compared and sorted",
    ),
    setting("collation_database", "the collation of the default schema"),
    setting("collation_server", "the collation of new schemas"),
    setting(
        "completion_type",
        "whether COMMIT begins another transaction or ends the session",
    ),
    setting("cte_max_recursion_depth", "where a recursive query fails"),
    setting(
        "default_collation_for_utf8mb4",
        "the collation of utf8mb4 where none is named",
    ),
    setting("default_regex_flags", "how regular expressions match"),
    setting("default_week_format", "WEEK() with one argument"),
    setting(
        "div_precision_increment",
        "the scale of quotients and averages",
    ),
    setting("group_concat_max_len", "where GROUP_CONCAT() cuts off"),
    setting(
        "innodb_ft_enable_stopword",
        "the words that a full-text search leaves out",
    ),
    setting(
        "innodb_ft_user_stopword_table",
        "the words that a full-text search leaves out",
    ),
    setting(
        "join_buffer_size",
        "the order of rows where none is asked for",
    ),
    setting(
        "join_cache_level",
        "the order of rows where none is asked for",
    ),
    setting("lc_time_names", "the names of days and months"),
    setting(
        "max_allowed_packet",
        "the length above which string functions give NULL",
    ),
    setting("log_slow_query_time", "another name of `long_query_time`"),
    setting(
        "long_query_time",
        "a status flag of each answer that took longer",
    ),
    setting("max_error_count", "the count of warnings in an answer"),
    setting("max_join_size", "which queries are refused as too large"),
    setting(
        "max_recursive_iterations",
        "where a recursive query ends early",
    ),
    setting(
        "max_sort_length",
        "how many bytes of a value are sorted and grouped by",
    ),
    setting("new_mode", "opt-in behaviours of newer versions"),
    setting(
        "note_verbosity",
        "which notes are counted among an answer's warnings",
    ),
    setting("old", "behaviours of older versions"),
    setting("old_mode", "behaviours of older versions"),
    setting(
        "optimizer_switch",
        "the order of rows where none is asked for",
    ),
    ResultSetting {
        name: "query_cache_type",
        why: "the server's own query cache may answer, from before a change",
        only_when: Some(&["0", "OFF"]),
    },
    setting("resultset_metadata", "whether an answer holds metadata"),
    setting(
        "session_track_gtids",
        "what an OK packet tells about the session",
    ),
    setting(
        "session_track_schema",
        "what an OK packet tells about the session",
    ),
    setting(
        "session_track_state_change",
        "what an OK packet tells about the session",
    ),
    setting(
        "session_track_system_variables",
        "what an OK packet tells about the session",
    ),
    ResultSetting {
        name: "session_track_transaction_info",
        why: "each answer tells what the statements since the one before did to the transaction",
        only_when: Some(&["0", "OFF"]),
    },
    ResultSetting {
        name: "sql_auto_is_null",
        why: "`id IS NULL` finds the row inserted last by this session",
        only_when: Some(&["0", "OFF"]),
    },
    setting("sql_big_selects", "which queries are refused as too large"),
    setting("sql_buffer_result", "how a result is put together"),
    setting(
        "sql_mode",
        "the grammar, and the handling of division by zero, padding, dates…",
    ),
    setting(
        "sql_notes",
        "whether notes are counted among an answer's warnings",
    ),
    setting("sql_quote_show_create", "the quoting in SHOW CREATE"),
    setting("sql_safe_updates", "which statements are refused"),
    setting("sql_select_limit", "how many rows a result has at most"),
    setting(
        "standard_compliant_cte",
        "which recursive queries are allowed",
    ),
    ResultSetting {
        name: "system_versioning_asof",
        why: "tables with system versioning are read as of another time",
        only_when: Some(&["DEFAULT"]),
    },
    setting(
        "time_zone",
        "the values of TIMESTAMP columns and of FROM_UNIXTIME()",
    ),
    setting(
        "transaction_isolation",
        "which versions of rows are read, and whether they are locked",
    ),
    setting("transaction_read_only", "which statements are refused"),
    setting(
        "tx_isolation",
        "which versions of rows are read, and whether they are locked",
    ),
    setting("tx_read_only", "which statements are refused"),
    setting(
        "windowing_use_high_precision",
        "how sums over windows are computed",
    ),
];

/// Session variables that say, in seconds, how long the server waits for a session to say something
/// before it ends it; 0: for ever. No result depends on them. Setting one is
/// [`crate::SessionEffect::SettingsChanged`], so that whoever answers in the server's place can
/// learn how often the session must be heard of there.
pub const CONTACT_SETTINGS: &[&str] = &[
    "idle_readonly_transaction_timeout",
    "idle_transaction_timeout",
    "idle_write_transaction_timeout",
    "wait_timeout",
];

/// Variables that decide whether and how this session's changes reach the log.
const LOG_SETTINGS: &[&str] = &[
    "binlog_direct_non_transactional_updates",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_value_options",
    "binlog_rows_query_log_events",
    "gtid_domain_id",
    "gtid_next",
    "gtid_seq_no",
    "pseudo_slave_mode",
    "server_id",
    "skip_replication",
    "sql_log_bin",
    "sql_log_update",
    "wsrep_on",
];

/// Variables that change neither results nor what is logged.
const HARMLESS_SETTINGS: &[&str] = &[
    "analyze_sample_percentage",
    "auto_increment_increment",
    "auto_increment_offset",
    "bulk_insert_buffer_size",
    "check_constraint_checks",
    "connect_timeout",
    "default_storage_engine",
    "default_tmp_storage_engine",
    "deadlock_search_depth_long",
    "deadlock_search_depth_short",
    "deadlock_timeout_long",
    "deadlock_timeout_short",
    "eq_range_index_dive_limit",
    "expensive_subquery_limit",
    "foreign_key_checks",
    "histogram_generation_max_mem_size",
    "histogram_size",
    "histogram_type",
    "identity",
    "information_schema_stats_expiry",
    "innodb_lock_wait_timeout",
    "innodb_parallel_read_threads",
    "innodb_strict_mode",
    "innodb_table_locks",
    "insert_id",
    "interactive_timeout",
    "internal_tmp_mem_storage_engine",
    "join_buffer_space_limit",
    "last_insert_id",
    "lc_messages",
    "lock_wait_timeout",
    "log_queries_not_using_indexes",
    "log_slow_disabled_statements",
    "log_slow_filter",
    "log_slow_min_examined_row_limit",
    "log_slow_query",
    "log_slow_rate_limit",
    "log_slow_verbosity",
    "low_priority_updates",
    "max_delayed_threads",
    "max_execution_time",
    "max_heap_table_size",
    "max_insert_delayed_threads",
    "max_length_for_sort_data",
    "max_points_in_geometry",
    "max_seeks_for_key",
    "max_statement_time",
    "min_examined_row_limit",
    "myisam_repair_threads",
    "myisam_sort_buffer_size",
    "myisam_stats_method",
    "net_buffer_length",
    "net_read_timeout",
    "net_retry_count",
    "net_write_timeout",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_selectivity_sampling_limit",
    "optimizer_trace",
    "optimizer_trace_features",
    "optimizer_trace_limit",
    "optimizer_trace_max_mem_size",
    "optimizer_trace_offset",
    "optimizer_use_condition_selectivity",
    "parser_max_mem_size",
    "preload_buffer_size",
    "print_identified_with_as_hex",
    "profiling",
    "profiling_history_size",
    "progress_report_time",
    "query_alloc_block_size",
    "query_cache_strip_comments",
    "query_cache_wlock_invalidate",
    "query_prealloc_size",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "rowid_merge_buff_size",
    "set_operations_buffer_size",
    "slow_query_log",
    "sort_buffer_size",
    "sql_log_off",
    "sql_low_priority_updates",
    "sql_require_primary_key",
    "sql_warnings",
    "storage_engine",
    "thread_pool_priority",
    // The clock functions that it sets are refused; unset, its value is the time itself.
    "timestamp",
    "tmp_disk_table_size",
    "tmp_memory_table_size",
    "tmp_table_size",
    "transaction_alloc_block_size",
    "transaction_prealloc_size",
    "unique_checks",
    "updatable_views_with_limit",
    "use_stat_tables",
];

/// Beginnings of the names of global variables that decide what is logged, or that change results
/// of sessions which are already there.
const GLOBAL_LOG_PREFIXES: &[&str] = &[
    "binlog",
    "enforce_gtid",
    "ft_",
    "gtid",
    "innodb_ft_",
    "log_bin",
    "max_binlog",
    "read_binlog",
    "replicate_",
    "rpl_",
    "server_id",
    "slave_",
    "replica_",
    "sql_log_bin",
    "sync_binlog",
    "wsrep",
];

/// What setting a variable for the session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Result,
    Log,
    Harmless,
    Unknown,
}

/// What setting the session variable `name` (any case) does.
pub(crate) fn session_setting(name: &[u8]) -> SettingKind {
    let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
    let is_asked_for = RESULT_SETTINGS.iter().any(|setting| is(setting.name))
        || CONTACT_SETTINGS.iter().any(|known| is(known));
    if is_asked_for {
        SettingKind::Result
    } else if LOG_SETTINGS.iter().any(|known| is(known)) {
        SettingKind::Log
    } else if HARMLESS_SETTINGS.iter().any(|known| is(known)) {
        SettingKind::Harmless
    } else {
        SettingKind::Unknown
    }
}

/// Whether `@@name` has one value in all sessions that share results: it is in the result's key.
pub(crate) fn is_in_result_key(name: &[u8]) -> bool {
    // Autocommit can be other than the server's flags say, and those are in the key, too. The query
    // cache's variables are emulated.
    const EXCEPTIONS: &[&str] = &["autocommit", "query_cache_type"];
    let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
    RESULT_SETTINGS.iter().any(|setting| is(setting.name))
        && !EXCEPTIONS.iter().any(|name| is(name))
}

/// Whether setting the global variable `name` can change what is logged or found by others.
pub(crate) fn global_setting_matters(name: &[u8]) -> bool {
    GLOBAL_LOG_PREFIXES.iter().any(|prefix| {
        name.get(..prefix.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_stands_on_one_list_only() {
        for setting in RESULT_SETTINGS {
            assert!(!LOG_SETTINGS.contains(&setting.name), "{}", setting.name);
            assert!(
                !HARMLESS_SETTINGS.contains(&setting.name),
                "{}",
                setting.name
            );
            assert!(!setting.why.is_empty());
        }
        for name in LOG_SETTINGS {
            assert!(!HARMLESS_SETTINGS.contains(name), "{name}");
        }
        for name in CONTACT_SETTINGS {
            let is_elsewhere = RESULT_SETTINGS.iter().any(|setting| setting.name == *name)
                || LOG_SETTINGS.contains(name)
                || HARMLESS_SETTINGS.contains(name);
            assert!(!is_elsewhere, "{name}");
        }
    }
}
