//! Reasons that stand alone.

use remora_cache::TooCoarse;
use remora_reason::reasons;

reasons! {
    /// Why nothing at all can be cached at the moment. Shown by `/readyz` and `remora_caching`.
    CachingOff {
        Disabled: "disabled", "Caching is turned off in the configuration (`cache.enabled`).";
        NoAccount: "no_follower_account", "No account to follow the binary log with is configured (`follow.user`).";
        QueryCacheOff: "query_cache_off", "`query_cache_type` is `OFF`, or `query_cache_size` was set to 0; reads are counted as bypasses with the same reason.";
        Starting: "starting", "The follower has not caught up with the server's log for the first time yet.";
        ServerUnsuitable: "server_unsuitable", "The server's log can't be followed as it is set up; `/readyz` says what was found, `remora check` how to fix it.";
        FollowerRefused: "follower_refused", "The server refused the follower's account or its request; `remora check` says how to fix it.";
        FollowerLost: "follower_lost", "The follower has lost its connection to the server and is trying again.";
        Unchecked: "unchecked", "The server could not be checked again within `follow.check_age_ms_max`, so that it isn't known whether it is still set up as it was.";
        Lagging: "lagging", "The follower may be further behind the server than `follow.lag_ms_max`.";
        Stopping: "stopping", "Remora is shutting down.";
    }
}

reasons! {
    /// What a rule said of a read. Counted in `remora_rule_decisions_total`.
    RuleOutcome {
        Refused: "refused", "Its result is never kept (`cache = false`).";
        Kept: "kept", "Its result may be kept: an exception before a later rule (`cache = true`).";
        Bounded: "bounded", "Its result may be kept for a time, or up to a size.";
    }
}

reasons! {
    /// What came of reading the rules again. Counted in `remora_rules_reloads_total`.
    RulesReload {
        Changed: "changed", "Other rules are in force, and all results were dropped.";
        Unchanged: "unchanged", "They are the same.";
        Refused: "refused", "Something in the file is wrong, or there is none: the old rules stay in force.";
    }
}

reasons! {
    /// Why a result depends on a table as a whole. Shown by `remora explain`.
    Coarse {
        NothingNarrows: "nothing_narrows", "All of its columns are read, and no condition narrows it with certainty.";
        View: "view", "It is a view, whose results depend on the tables that it reads, as wholes.";
        ColumnsUnknown: "columns_unknown", "Its columns can't be told from each other in the log with certainty, since it has hidden ones or their definition isn't known.";
        PlaceUncertain: "place_uncertain", "It can't be told with certainty where the statement reads it.";
        ReadAsWhole: "read_as_whole", "Another part of the statement depends on it as a whole.";
        TooManyShapes: "too_many_shapes", "As many kinds of reads are told apart in it as `cache.table_shapes_max` allows, and this is another.";
        TooManyTables: "too_many_tables", "As many tables have kinds of reads that are told apart as `cache.shape_tables_max` allows, and this is another.";
        TooYoung: "too_young", "This kind of read is new, and commits from before it was known are still being applied; that passes.";
        TooManyTags: "too_many_tags", "The statement depends on too many values.";
    }
}

impl From<TooCoarse> for Coarse {
    fn from(why: TooCoarse) -> Coarse {
        match why {
            TooCoarse::TooManyShapes => Coarse::TooManyShapes,
            TooCoarse::TooManyTables => Coarse::TooManyTables,
            TooCoarse::TooYoung => Coarse::TooYoung,
        }
    }
}

reasons! {
    /// What the verification of a hit found. Counted in `remora_verifications_total`.
    Verdict {
        Equal: "equal", "The server answered as memory had.";
        Reordered: "reordered", "The server answered with the same rows in another order, which the statement leaves open.";
        Race: "race", "The server answered otherwise, and the result was outdated by then: a change was on its way.";
        Fault: "fault", "The server answered otherwise, twice, and nothing in the log had outdated the result.";
        GivenUp: "given_up", "The hit was not verified; the reason says why.";
    }
}

reasons! {
    /// Why a hit that was chosen was not verified. Counted in `remora_verifications_total`.
    NotVerified {
        InTransaction: "in_transaction", "In a transaction the server's answer would take a snapshot or locks that the client has not asked for.";
        TooSlow: "too_slow", "Misses of its digest take longer on average than `observe.verify_timeout_ms`.";
        LogBehind: "log_behind", "The server answered otherwise, and within `observe.verify_timeout_ms` the log did not tell whether a change is the cause.";
        AnswerIsError: "answer_is_error", "The server answered with an error that says nothing of the result, such as that the statement was killed.";
    }
}

reasons! {
    /// A part of the time that a traced statement takes. In the order in which they come; each
    /// moment belongs to one of them.
    Stage {
        Read: "read", "From the first bytes of the message to the last, if it came in pieces.";
        Key: "key", "What the statement is looked up by was made: its text without comments, or its bound values, and the hash.";
        LookUp: "look_up", "It was looked for in memory.";
        Check: "check", "It was found, and whether it may be served was checked: fences, changes, the follower's proof.";
        Analysis: "analysis", "The statement was read: what it does, and what it is counted under.";
        Plan: "plan", "What its result would depend on was found out: tables, rules, tags. Of a write: what it writes, and the fence went up.";
        Fill: "fill", "Another client's answer to it came into memory, or the wait for that ended.";
        Turn: "turn", "It waited until fewer statements ran at the server (`upstream.statements_max`).";
        Questions: "questions", "The server answered questions of Remora's own first: the session's settings, or a statement that Remora had answered itself.";
        Server: "server", "From sending the statement to the first bytes of the server's answer.";
        Answer: "answer", "From then on, until the server had sent the rest.";
        Store: "store", "The result was put into memory.";
        Write: "write", "The answer was handed to the client's socket.";
        Settle: "settle", "What the answer means for the session was noted, and it was counted.";
    }
}

reasons! {
    /// Why a trace was not sent to the OpenTelemetry collector. Counted in
    /// `remora_traces_dropped_total`.
    TraceDropped {
        QueueFull: "queue_full", "As many were waiting as `opentelemetry.queue_max` allows.";
        Unreachable: "unreachable", "The collector could not be reached, or did not answer in time, now or within the last second.";
        Refused: "refused", "The collector answered that it did not take them.";
    }
}

reasons! {
    /// A limit of the configuration, labelled with the option that sets it.
    Limit {
        Connections: "workers.connections_max", "A client was refused with error 1040.";
        PreparedStatements: "workers.prepared_statements_max", "A prepared statement was not remembered and counts as one that may change anything.";
        PreparedTexts: "workers.prepared_text_bytes_max", "The text of a prepared statement was not kept, and its results can't be cached; or its constants were not, and it counts as a write of whole tables.";
        FencedAnswerBytes: "workers.fenced_answer_bytes_max", "An answer of a statement that may write waited for its client, and hits of what it may write with it.";
        FencedAnswerWait: "workers.fenced_answer_wait_ms", "A connection was closed because its client did not take the answer of a statement that may write.";
        ConnectTime: "upstream.connect_timeout_ms", "A connection to the server was not established in time.";
        Statements: "upstream.statements_max", "A statement waited, because as many others were at the server.";
        StatementsWaiting: "upstream.statements_waiting_max", "A statement was refused, because as many others were waiting for their turn at the server.";
        StatementWait: "upstream.statement_wait_ms_max", "A statement was refused, because its turn at the server did not come in time.";
        QueryTime: "upstream.query_timeout_ms", "The server did not answer a query of Remora's own in time.";
        EventBytes: "follow.event_bytes_max", "An event of the log was too large to read, and everything was forgotten.";
        CheckAge: "follow.check_age_ms_max", "The server could not be checked again in time, and nothing was served until it was.";
        TransactionTables: "follow.transaction_tables_max", "A transaction changed too many tables and counted as a change of all.";
        TransactionTags: "follow.transaction_tags_max", "A transaction touched too many values and counted as a change of its tables as wholes.";
        Shapes: "cache.table_shapes_max", "A read was of a kind beyond those that are told apart in its table, or its table beyond those that have any; each change of the table drops its result.";
        CatalogueTables: "follow.catalogue_tables_max", "A table's definition made room for another.";
        CatalogueScanTime: "follow.catalogue_scan_timeout_ms", "The server did not list its foreign keys or its views in time, and definitions stay unknown.";
        DefinitionWait: "follow.definition_wait_ms", "A statement that changes a definition was sent although Remora's own questions about definitions had not been answered.";
        SnapshotWait: "cache.snapshot_wait_ms_max", "The server answered reads of a transaction, because the follower was not proven in time to have applied everything that its snapshot may show.";
        EarlyReads: "cache.early_reads_max", "The server had to open a transaction, because memory had given as many answers in it as are remembered.";
        WaitingFills: "cache.waiting_fills_max", "A result of a transaction was not kept, because too many were waiting for the follower to apply all that they may show.";
        TableCounts: "follow.table_counts_max", "A commit changed a table that has no count of its own, and was counted with those of other such tables.";
        CatalogueViews: "follow.catalogue_views_max", "The server has more views than are looked at, so each statement that reads a table may run code.";
        CatalogueQueue: "follow.catalogue_queue_max", "A definition was not asked for because too many others were.";
        ResultBytes: "cache.result_bytes_max", "A result was not kept because of its size.";
        Rules: "cache.rules_max", "Rules were not taken, because the file has too many.";
        StatementBytes: "cache.statement_bytes_max", "A statement was not looked up because of its length.";
        Digests: "digests.count_max", "A statement was counted together with others whose digests have no place of their own.";
        KnownStatements: "digests.known_max", "A worker forgot a statement's text without values to make room for another. It is normalised and analysed again when it comes back.";
        DigestsOff: "observe.verify_digests_off_max", "Faults were found in the results of so many digests that nothing at all is kept any longer.";
        MergedBytes: "query_cache.merged_bytes_max", "An answer to SHOW STATUS or SHOW VARIABLES was too long to be held, and passed without the query cache's rows; or the last packet of an answer that Remora replaces was, or a value in a SET of the query cache's variables.";
        ShownRows: "query_cache.rows_max", "SHOW REMORA had more rows than are shown.";
        Traces: "observe.traces_max", "A trace left memory for a newer one.";
        TraceQueue: "opentelemetry.queue_max", "A trace was not sent because too many others were waiting.";
        TraceTime: "opentelemetry.timeout_ms", "The collector did not take traces in time.";
        Fingerprints: "cache.fingerprints_max", "A session passes through because too many combinations of settings are in use, or they take more than `cache.fingerprints_bytes_max`.";
        FillsInFlight: "cache.fills_in_flight_max", "A result was not kept because too many others were on their way into memory.";
        FillWait: "cache.fill_wait_ms_max", "A statement asked the server, because another client's answer to it did not come in time.";
        FillWaiters: "cache.fill_waiters_max", "A statement asked the server, because too many others were waiting for another client's answer.";
        ProxyProtocolTime: "listen.proxy_protocol_timeout_ms", "A connection was closed because the PROXY protocol's header did not come.";
        GracePeriod: "shutdown.grace_ms", "When the time was over, a worker closed connections whose statement was still running or whose transaction was still open. Counted once for each worker.";
    }
}

reasons! {
    /// Why results from a table can't be cached.
    TableRefusal {
        Missing: "missing", "The table doesn't exist, or the follower's account can't see it.";
        View: "view", "It is a view whose own text can't be cached (a function of the time, a stored function, a system table, a string with a backslash), or that reads too many tables.";
        ViewHidden: "view_hidden", "It is a view, and the follower's account can't see what it reads: that needs SHOW VIEW and SELECT on the view.";
        Sequence: "sequence", "It is a sequence: reading it changes it.";
        SystemVersioned: "system_versioned", "It has system versioning: results depend on the time.";
        Engine: "engine", "Its engine isn't one of those whose every change is known to reach the log.";
        SystemSchema: "system_schema", "It belongs to the server itself.";
        VisibleLate: "visible_late", "Its engine (MyISAM, Aria, ARCHIVE, ROCKSDB; on MariaDB also MEMORY) may show a change to readers at another moment than the server's log says; InnoDB doesn't.";
        VirtualColumns: "virtual_columns", "The statement names a virtual column that may depend on more than its row, reads all columns of a table with one, or reads a view that does so.";
        TimeColumns: "time_columns", "The statement does more with a TIME column than show it, or sort or group by it; or it reads a view that has one or does so. The server completes a TIME with today's date when it compares it with a date.";
        JsonWithTimes: "json_with_times", "On MySQL before 8.0.31, the statement converts something to a date and does more with a JSON column than show it; or it reads a view that has one or uses one so. The server completes a TIME within JSON with today's date when it converts it to a date.";
        Name: "name", "Its name goes beyond ASCII on a server that folds letter case (lower_case_table_names).";
    }
}

reasons! {
    /// Why following was restarted, so that everything stored before was forgotten.
    RestartReason {
        FirstStart: "first_start", "Remora followed the log for the first time.";
        ServerRestarted: "server_restarted", "The server was started again, and may have lost its last commits.";
        LogChanged: "log_changed", "Another server or another log answered at the address.";
        LogPurged: "log_purged", "The server no longer had the log from where Remora had stopped.";
        PositionWentBack: "position_went_back", "The log's positions went back, as they do after RESET MASTER.";
        LogUnreadable: "log_unreadable", "An event of the log could not be read.";
        PositionUnplaceable: "position_unplaceable", "A log file's name or an offset could not be placed in the order of commits.";
        NothingToCompare: "nothing_to_compare", "The connection was lost before any event had been seen that could prove that the log goes on.";
        ServerUnsuitable: "server_unsuitable", "A check found the server set up in a way in which changes can be missed, and some may have been since the check before.";
        ChangesUnlogged: "changes_unlogged", "The server has executed transactions that none of its logs has (`SET GLOBAL gtid_purged`, replication past the log), or was told to replicate and doesn't log that.";
    }
}

reasons! {
    /// What became, at the start, of the results that the previous process had saved.
    StateOutcome {
        Restored: "restored", "They were taken over.";
        NoFile: "no_file", "There was no file. It is the first start, or the previous process was killed, or it did not save its results (its log says why).";
        Unreadable: "unreadable", "The file could not be read, or not be removed.";
        OpenToOthers: "open_to_others", "The file isn't Remora's own: another account owns it, or may read or change it, or it has another hard link.";
        Damaged: "damaged", "The file was cut off, has changed since it was written, or isn't Remora's.";
        OtherBuild: "other_build", "Another version or another build of Remora wrote the file.";
        OtherRules: "other_rules", "The rules, or whether comments are stripped, have changed.";
        TooOld: "too_old", "The file was older than `cache.state_age_ms_max` when the server was reached, or the clock was set back.";
        OtherServer: "other_server", "Another server answered, or `server_id`, `server_uuid`, host name, port or `pid_file` differ. Or, on MariaDB, it has meanwhile replicated, or was told to, and doesn't log that.";
        OtherSettings: "other_settings", "The server's privilege settings (`mandatory_roles` and such) have changed, it has other session variables than before, or it sees Remora connect from another host.";
        Unsuitable: "unsuitable", "Caching is off in the configuration, or the server is set up in a way in which changes can be missed (`remora check` says which).";
        Forgotten: "forgotten", "Something that no log shows forgot everything before the file could be taken over, for instance a session that may have used `sql_log_bin = 0`.";
        NoRoom: "no_room", "More kinds of reads or session settings than `cache.table_shapes_max`, `cache.shape_tables_max`, `cache.fingerprints_max` or `cache.fingerprints_bytes_max` allow.";
    }
}

reasons! {
    /// Why no results were saved for the next process.
    StateNotSaved {
        Unsettled: "unsettled", "Remora wasn't following the log. Or within `follow.lag_ms_max` not every change was visible, or the server could not be checked once more.";
        CutOff: "cut_off", "A statement that may write was still running when the grace period ended, or a thread had failed.";
        WriteFailed: "write_failed", "The file could not be written. Remora's account needs write permission on its directory.";
    }
}
