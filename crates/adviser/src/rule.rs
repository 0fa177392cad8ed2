//! What is looked for.

use remora_reason::reasons;

reasons! {
    /// What is looked for.
    Rule {
        RedoLogSmall: "redo_log_small", "The redo log is too small for the rate of writes.";
        PurgeBehind: "purge_behind", "Old row versions pile up.";
        BufferPoolSmall: "buffer_pool_small", "The buffer pool is too small for what is read.";
        FreePagesShort: "free_pages_short", "Statements wait for a free page in the buffer pool.";
        IoCapacityLow: "io_capacity_low", "Pages are changed faster than they are written.";
        TableCacheSmall: "table_cache_small", "The table cache is too small.";
        DefinitionCacheSmall: "definition_cache_small", "The cache of table definitions is too small.";
        ThreadCacheSmall: "thread_cache_small", "The server makes a new thread for most connections.";
        ConnectionsExhausted: "connections_exhausted", "The server has refused connections, or is about to.";
        BackLogShort: "back_log_short", "A short pause of the server would refuse connections.";
        TemporaryTablesOnDisk: "temporary_tables_on_disk", "Temporary tables are written to disk.";
        ProcessorsShort: "processors_short", "More statements run at once than there are processors for.";
        QueryCacheCosts: "query_cache_costs", "The server's own query cache costs more than it gives.";
    }
}
