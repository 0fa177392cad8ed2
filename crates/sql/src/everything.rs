//! Why a statement counts as one that may write anything.

use remora_reason::reasons;

reasons! {
    /// Why a statement counts as a write to everything.
    EverythingReason {
        UnknownFunction: "unknown_function",
            "It calls a function that is not a known built-in of every supported server: a stored or loadable function can write.";
        Sequence: "sequence", "It takes a value from a sequence, or sets it.";
        Procedure: "procedure", "It calls a stored procedure.";
        DynamicSql: "dynamic_sql", "It executes a prepared text that is not seen here.";
        MultipleStatements: "multiple_statements",
            "The text holds more than one statement, or a compound statement.";
        Definitions: "definitions",
            "It creates, changes or drops something other than tables that it names.";
        AccountManagement: "account_management", "It changes accounts, roles or privileges.";
        Replication: "replication", "It applies, redirects or resets the log of changes.";
        Setting: "setting", "It changes a global setting that decides what is logged or found.";
        UnloggedSetting: "unlogged_setting",
            "It runs a statement under settings that keep its changes out of the log.";
        Flush: "flush", "It closes tables or reloads what the server holds in memory.";
        Delayed: "delayed", "It inserts rows at some later time.";
        TableName: "table_name", "It writes a table whose name can't be read with certainty.";
        TooManyTables: "too_many_tables", "It writes more than 1,024 tables.";
        Unreadable: "unreadable", "The text can't be read with certainty.";
        UnknownStatement: "unknown_statement", "It is not a known statement.";
        Ambiguous: "ambiguous", "It would do something else under another sql_mode or character set, and the session's isn't known or hides quotes.";
        Truncated: "truncated", "The statement is too long to be read to its end.";
    }
}
