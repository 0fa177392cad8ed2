//! Every reason why a statement can't be cached.

use remora_reason::reasons;

reasons! {
    /// Why a statement can't be answered from memory, nor its result be kept.
    Refusal {
        NotSelect: "not_select", "It is not a SELECT.";
        Syntax: "syntax", "Its text is outside the grammar that is known to be safe, or servers read it differently, such as a comment `/*!50700 … */`.";
        NestingTooDeep: "nesting_too_deep", "It is nested too deeply.";
        TooManyTables: "too_many_tables", "It names too many tables.";
        Ambiguous: "ambiguous", "It would do something else under another sql_mode or character set, and the session's isn't known or hides quotes.";
        Truncated: "truncated", "It is too long to be read to its end.";
        MultipleStatements: "multiple_statements", "The text holds more than one statement.";
        OptimizerHint: "optimizer_hint", "It sets variables in an optimizer hint.";
        SystemSchema: "system_schema",
            "It reads a system schema, whose changes the log does not show.";
        TableName: "table_name", "It names a table in a way that can't be matched with the log with certainty. Or a name in it may mean a common table expression on one server and a table on another.";
        NonAsciiWord: "non_ascii_word",
            "It has a name outside ASCII without quotes: where such a name ends depends on the client's character set.";
        LockingRead: "locking_read", "It locks the rows that it reads.";
        Into: "into", "It stores its result in a file or in variables.";
        Procedure: "procedure", "It passes its result through a procedure.";
        UserVariable: "user_variable", "It uses a user variable.";
        SystemVariable: "system_variable", "It reads a system variable that isn't one of the session settings by which results are told apart.";
        Placeholder: "placeholder", "It has placeholders whose values are not in the text.";
        CalcFoundRows: "calc_found_rows", "It counts rows for a later FOUND_ROWS(). That is cached only as text, for a single SELECT of tables outside transactions without a bare aggregate, and not on MySQL 8.0, which warns of it.";
        NoCache: "no_cache", "It says SQL_NO_CACHE.";
        SystemTime: "system_time", "It reads past versions of rows.";
        Sequence: "sequence", "It takes a value from a sequence.";
        UnknownFunction: "unknown_function",
            "It calls a function that is not a known built-in of every supported server.";
        ClockFunction: "clock_function", "It calls a function that depends on the time of the call.";
        TimeOfDay: "time_of_day",
            "It makes a TIME value, which the server may complete with today's date.";
        FullTextScore: "full_text_score",
            "It uses how well rows fit a full-text search. That depends on the server's count of rows, to which uncommitted ones belong.";
        RandomFunction: "random_function", "It calls a function whose value is random or unique.";
        SessionFunction: "session_function",
            "It calls a function that depends on the account, the connection or the server.";
        PreviousStatementFunction: "previous_statement_function",
            "It calls a function that depends on the statement before.";
        LockFunction: "lock_function", "It calls a function that takes, tests or releases a lock.";
        DelayFunction: "delay_function", "It calls a function that is called for its duration.";
        FileFunction: "file_function", "It calls a function that reads a file.";
        ServerStateFunction: "server_state_function",
            "It calls a function that depends on server state whose changes can't be followed.";
        ColumnValueFunction: "column_value_function",
            "It calls DEFAULT() or VALUES(), whose value may be an expression of the table's definition.";
        PreparedColumns: "prepared_columns",
            "It is prepared, and calls a function whose column MariaDB describes otherwise from the second execution on.";
        SetStatement: "set_statement", "It runs under variables that are set for it alone.";
    }
}
