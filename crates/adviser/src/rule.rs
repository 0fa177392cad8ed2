//! What is looked for, and why that can't always be told.

use remora_reason::reasons;

reasons! {
    /// What is looked for.
    Rule {
        RedoLogSmall: "redo_log_small", "The redo log is too small for the rate of writes.";
        PurgeBehind: "purge_behind", "Old row versions pile up.";
        BufferPoolSmall: "buffer_pool_small", "The buffer pool is too small for what is read.";
        FreePagesShort: "free_pages_short", "Statements wait for a free page in the buffer pool.";
        IoCapacityLow: "io_capacity_low", "Pages get dirty faster than InnoDB flushes them.";
        TableCacheSmall: "table_cache_small", "The table cache is too small.";
        DefinitionCacheSmall: "definition_cache_small", "The cache of table definitions is too small.";
        ThreadCacheSmall: "thread_cache_small", "The server keeps making new threads for connections.";
        ConnectionsExhausted: "connections_exhausted", "The server has refused connections, or is about to.";
        BackLogShort: "back_log_short", "If the server pauses for a second, it turns clients away.";
        TemporaryTablesOnDisk: "temporary_tables_on_disk", "Temporary tables are written to disk.";
        ProcessorsShort: "processors_short", "More statements run at once than there are processors for.";
        QueryCacheCosts: "query_cache_costs", "The server's own query cache costs more than it gives.";
    }
}

reasons! {
    /// Why a rule can't tell.
    Unjudged {
        NoPrivilege: "no_privilege", "The account lacks the privilege PROCESS. Grant it: GRANT PROCESS ON *.* TO …";
        NotReported: "not_reported", "The server doesn't report a number that the rule needs, or the number was reset meanwhile (FLUSH STATUS).";
        TooLittle: "too_little", "Too little happened while the server was read. Read it for longer, under its usual load.";
        ProcessorsUnknown: "processors_unknown", "It isn't known how many processors the server has. Say it with remora advise --processors.";
        NotUsed: "not_used", "The server lacks this feature, or has it off.";
    }
}
