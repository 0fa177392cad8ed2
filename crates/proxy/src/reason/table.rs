//! Why results from a table can't be cached.

/// Why results from a table can't be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableRefusal {
    /// It doesn't exist.
    Missing,
    /// It is a view that can't be cached.
    View,
    /// It is a view whose text the follower's account can't see.
    ViewHidden,
    /// It is a sequence.
    Sequence,
    /// It has system versioning.
    SystemVersioned,
    /// Its engine isn't on the list of those whose every change is logged.
    Engine,
    /// It belongs to the server itself.
    SystemSchema,
    /// Its engine shows changes at another moment than the log says.
    VisibleLate,
    /// It has virtual generated columns.
    VirtualColumns,
    /// It has columns of type TIME.
    TimeColumns,
    /// Its name goes beyond ASCII on a server that folds letter case.
    Name,
}

impl TableRefusal {
    /// Every reason.
    pub const ALL: [TableRefusal; 11] = [
        TableRefusal::Missing,
        TableRefusal::View,
        TableRefusal::ViewHidden,
        TableRefusal::Sequence,
        TableRefusal::SystemVersioned,
        TableRefusal::Engine,
        TableRefusal::SystemSchema,
        TableRefusal::VisibleLate,
        TableRefusal::VirtualColumns,
        TableRefusal::TimeColumns,
        TableRefusal::Name,
    ];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            TableRefusal::Missing => "missing",
            TableRefusal::View => "view",
            TableRefusal::ViewHidden => "view_hidden",
            TableRefusal::Sequence => "sequence",
            TableRefusal::SystemVersioned => "system_versioned",
            TableRefusal::Engine => "engine",
            TableRefusal::SystemSchema => "system_schema",
            TableRefusal::VisibleLate => "visible_late",
            TableRefusal::VirtualColumns => "virtual_columns",
            TableRefusal::TimeColumns => "time_columns",
            TableRefusal::Name => "name",
        }
    }

    /// What it means, in a sentence.
    pub const fn describe(self) -> &'static str {
        match self {
            TableRefusal::Missing => {
                "The table doesn't exist, or the follower's account can't see it."
            }
            TableRefusal::View => {
                "It is a view whose own text can't be cached (a function of the time, a stored function, a system table, a string with a backslash), or that reads too many tables."
            }
            TableRefusal::ViewHidden => {
                "It is a view, and the follower's account can't see what it reads: that needs SHOW VIEW and SELECT on the view."
            }
            TableRefusal::Sequence => "It is a sequence: reading it changes it.",
            TableRefusal::SystemVersioned => {
                "It has system versioning: results depend on the time."
            }
            TableRefusal::Engine => {
                "Its engine isn't one of those whose every change is known to reach the log."
            }
            TableRefusal::VisibleLate => {
                "Its engine (MyISAM, Aria, ARCHIVE, ROCKSDB; on MariaDB also MEMORY) may show a change to readers at another moment than the server's log says; InnoDB doesn't."
            }
            TableRefusal::TimeColumns => {
                "It has columns of type TIME, which the server completes with today's date when it compares them with dates."
            }
            TableRefusal::SystemSchema => "It belongs to the server itself.",
            TableRefusal::VirtualColumns => {
                "It has virtual generated columns, whose values may depend on more than the table."
            }
            TableRefusal::Name => {
                "Its name goes beyond ASCII on a server that folds letter case (lower_case_table_names)."
            }
        }
    }
}
