//! Why results from a table can't be cached.

use remora_reason::reasons;

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
        VirtualColumns: "virtual_columns", "It has virtual generated columns, whose values may depend on more than the table.";
        TimeColumns: "time_columns", "It has columns of type TIME, which the server completes with today's date when it compares them with dates.";
        Name: "name", "Its name goes beyond ASCII on a server that folds letter case (lower_case_table_names).";
    }
}
