//! The words of the grammar, and which of them are reserved everywhere.

use crate::fold::hash_folded;

macro_rules! keywords {
    (reserved { $($reserved:ident = $reserved_text:literal,)* }
     plain { $($plain:ident = $plain_text:literal,)* }) => {
        /// A word that the grammar knows. [`Keyword::Other`] is every other word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is the word that it names")]
        #[repr(u16)]
        pub enum Keyword {
            $($reserved,)*
            $($plain,)*
            /// Not a word of the grammar: an ordinary name.
            Other,
        }

        const ALL: &[(Keyword, &str)] = &[
            $((Keyword::$reserved, $reserved_text),)*
            $((Keyword::$plain, $plain_text),)*
        ];

        /// The first `RESERVED_COUNT` variants are the reserved ones.
        const RESERVED_COUNT: usize = [$($reserved_text,)*].len();
    };
}

// "Reserved" means reserved in MySQL 5.7, 8.0 and MariaDB 10.11 alike: such a word without quotes
// is never a name of a table, of a column or of a stored function. A word that only some of them
// reserve must stand in the second list: taking a possible function name for a keyword would hide a
// call that can write.
keywords! {
reserved {
    Accessible = "ACCESSIBLE",
    Add = "ADD",
    All = "ALL",
    Alter = "ALTER",
    Analyze = "ANALYZE",
    And = "AND",
    As = "AS",
    Asc = "ASC",
    Asensitive = "ASENSITIVE",
    Before = "BEFORE",
    Between = "BETWEEN",
    Bigint = "BIGINT",
    Binary = "BINARY",
    Blob = "BLOB",
    Both = "BOTH",
    By = "BY",
    Call = "CALL",
    Cascade = "CASCADE",
    Case = "CASE",
    Change = "CHANGE",
    Char = "CHAR",
    Character = "CHARACTER",
    Check = "CHECK",
    Collate = "COLLATE",
    Column = "COLUMN",
    Condition = "CONDITION",
    Constraint = "CONSTRAINT",
    Continue = "CONTINUE",
    Convert = "CONVERT",
    Create = "CREATE",
    Cross = "CROSS",
    CurrentDate = "CURRENT_DATE",
    CurrentTime = "CURRENT_TIME",
    CurrentTimestamp = "CURRENT_TIMESTAMP",
    CurrentUser = "CURRENT_USER",
    Cursor = "CURSOR",
    Database = "DATABASE",
    Databases = "DATABASES",
    DayHour = "DAY_HOUR",
    DayMicrosecond = "DAY_MICROSECOND",
    DayMinute = "DAY_MINUTE",
    DaySecond = "DAY_SECOND",
    Dec = "DEC",
    Decimal = "DECIMAL",
    Declare = "DECLARE",
    Default = "DEFAULT",
    Delayed = "DELAYED",
    Delete = "DELETE",
    Desc = "DESC",
    Describe = "DESCRIBE",
    Deterministic = "DETERMINISTIC",
    Distinct = "DISTINCT",
    Distinctrow = "DISTINCTROW",
    Div = "DIV",
    Double = "DOUBLE",
    Drop = "DROP",
    Dual = "DUAL",
    Each = "EACH",
    Else = "ELSE",
    Elseif = "ELSEIF",
    Enclosed = "ENCLOSED",
    Escaped = "ESCAPED",
    Exists = "EXISTS",
    Exit = "EXIT",
    Explain = "EXPLAIN",
    False = "FALSE",
    Fetch = "FETCH",
    Float = "FLOAT",
    Float4 = "FLOAT4",
    Float8 = "FLOAT8",
    For = "FOR",
    Force = "FORCE",
    Foreign = "FOREIGN",
    From = "FROM",
    Fulltext = "FULLTEXT",
    Grant = "GRANT",
    Group = "GROUP",
    Having = "HAVING",
    HighPriority = "HIGH_PRIORITY",
    HourMicrosecond = "HOUR_MICROSECOND",
    HourMinute = "HOUR_MINUTE",
    HourSecond = "HOUR_SECOND",
    If = "IF",
    Ignore = "IGNORE",
    In = "IN",
    Index = "INDEX",
    Infile = "INFILE",
    Inner = "INNER",
    Inout = "INOUT",
    Insensitive = "INSENSITIVE",
    Insert = "INSERT",
    Int = "INT",
    Integer = "INTEGER",
    Interval = "INTERVAL",
    Into = "INTO",
    Is = "IS",
    Iterate = "ITERATE",
    Join = "JOIN",
    Key = "KEY",
    Keys = "KEYS",
    Kill = "KILL",
    Leading = "LEADING",
    Leave = "LEAVE",
    Left = "LEFT",
    Like = "LIKE",
    Limit = "LIMIT",
    Linear = "LINEAR",
    Lines = "LINES",
    Load = "LOAD",
    Localtime = "LOCALTIME",
    Localtimestamp = "LOCALTIMESTAMP",
    Lock = "LOCK",
    Long = "LONG",
    Longblob = "LONGBLOB",
    Longtext = "LONGTEXT",
    Loop = "LOOP",
    LowPriority = "LOW_PRIORITY",
    Match = "MATCH",
    Maxvalue = "MAXVALUE",
    Mediumblob = "MEDIUMBLOB",
    Mediumint = "MEDIUMINT",
    Mediumtext = "MEDIUMTEXT",
    Middleint = "MIDDLEINT",
    MinuteMicrosecond = "MINUTE_MICROSECOND",
    MinuteSecond = "MINUTE_SECOND",
    Mod = "MOD",
    Modifies = "MODIFIES",
    Natural = "NATURAL",
    Not = "NOT",
    NoWriteToBinlog = "NO_WRITE_TO_BINLOG",
    Null = "NULL",
    Numeric = "NUMERIC",
    On = "ON",
    Optimize = "OPTIMIZE",
    Optionally = "OPTIONALLY",
    Or = "OR",
    Order = "ORDER",
    Out = "OUT",
    Outer = "OUTER",
    Outfile = "OUTFILE",
    Partition = "PARTITION",
    Precision = "PRECISION",
    Primary = "PRIMARY",
    Procedure = "PROCEDURE",
    Purge = "PURGE",
    Range = "RANGE",
    Read = "READ",
    Reads = "READS",
    ReadWrite = "READ_WRITE",
    Real = "REAL",
    References = "REFERENCES",
    Regexp = "REGEXP",
    Release = "RELEASE",
    Rename = "RENAME",
    Repeat = "REPEAT",
    Replace = "REPLACE",
    Require = "REQUIRE",
    Resignal = "RESIGNAL",
    Restrict = "RESTRICT",
    Return = "RETURN",
    Revoke = "REVOKE",
    Right = "RIGHT",
    Rlike = "RLIKE",
    Schema = "SCHEMA",
    Schemas = "SCHEMAS",
    SecondMicrosecond = "SECOND_MICROSECOND",
    Select = "SELECT",
    Sensitive = "SENSITIVE",
    Separator = "SEPARATOR",
    Set = "SET",
    Show = "SHOW",
    Signal = "SIGNAL",
    Smallint = "SMALLINT",
    Spatial = "SPATIAL",
    Specific = "SPECIFIC",
    Sql = "SQL",
    Sqlexception = "SQLEXCEPTION",
    Sqlstate = "SQLSTATE",
    Sqlwarning = "SQLWARNING",
    SqlBigResult = "SQL_BIG_RESULT",
    SqlCalcFoundRows = "SQL_CALC_FOUND_ROWS",
    SqlSmallResult = "SQL_SMALL_RESULT",
    Ssl = "SSL",
    Starting = "STARTING",
    StraightJoin = "STRAIGHT_JOIN",
    Table = "TABLE",
    Terminated = "TERMINATED",
    Then = "THEN",
    Tinyblob = "TINYBLOB",
    Tinyint = "TINYINT",
    Tinytext = "TINYTEXT",
    To = "TO",
    Trailing = "TRAILING",
    Trigger = "TRIGGER",
    True = "TRUE",
    Undo = "UNDO",
    Union = "UNION",
    Unique = "UNIQUE",
    Unlock = "UNLOCK",
    Unsigned = "UNSIGNED",
    Update = "UPDATE",
    Usage = "USAGE",
    Use = "USE",
    Using = "USING",
    UtcDate = "UTC_DATE",
    UtcTime = "UTC_TIME",
    UtcTimestamp = "UTC_TIMESTAMP",
    Values = "VALUES",
    Varbinary = "VARBINARY",
    Varchar = "VARCHAR",
    Varcharacter = "VARCHARACTER",
    Varying = "VARYING",
    When = "WHEN",
    Where = "WHERE",
    While = "WHILE",
    With = "WITH",
    Write = "WRITE",
    Xor = "XOR",
    YearMonth = "YEAR_MONTH",
    Zerofill = "ZEROFILL",
}
plain {
    Account = "ACCOUNT",
    Against = "AGAINST",
    Aggregate = "AGGREGATE",
    Algorithm = "ALGORITHM",
    Any = "ANY",
    Ascii = "ASCII",
    Atomic = "ATOMIC",
    Backup = "BACKUP",
    Begin = "BEGIN",
    Binlog = "BINLOG",
    Boolean = "BOOLEAN",
    Cache = "CACHE",
    Chain = "CHAIN",
    Charset = "CHARSET",
    Checksum = "CHECKSUM",
    Close = "CLOSE",
    Columns = "COLUMNS",
    Commit = "COMMIT",
    Committed = "COMMITTED",
    Concurrent = "CONCURRENT",
    Connection = "CONNECTION",
    Count = "COUNT",
    Current = "CURRENT",
    Data = "DATA",
    Date = "DATE",
    Datetime = "DATETIME",
    Day = "DAY",
    Deallocate = "DEALLOCATE",
    Definer = "DEFINER",
    Diagnostics = "DIAGNOSTICS",
    Do = "DO",
    Dumpfile = "DUMPFILE",
    End = "END",
    Errors = "ERRORS",
    Escape = "ESCAPE",
    Event = "EVENT",
    Except = "EXCEPT",
    Exchange = "EXCHANGE",
    Execute = "EXECUTE",
    Expansion = "EXPANSION",
    Export = "EXPORT",
    Extended = "EXTENDED",
    Fields = "FIELDS",
    First = "FIRST",
    Fixed = "FIXED",
    Flush = "FLUSH",
    Following = "FOLLOWING",
    Format = "FORMAT",
    Function = "FUNCTION",
    Get = "GET",
    Global = "GLOBAL",
    Groups = "GROUPS",
    Handler = "HANDLER",
    Help = "HELP",
    History = "HISTORY",
    Hosts = "HOSTS",
    Hour = "HOUR",
    Immediate = "IMMEDIATE",
    Indexes = "INDEXES",
    Install = "INSTALL",
    Intersect = "INTERSECT",
    Isolation = "ISOLATION",
    Json = "JSON",
    JsonTable = "JSON_TABLE",
    Language = "LANGUAGE",
    Last = "LAST",
    Lateral = "LATERAL",
    Level = "LEVEL",
    Local = "LOCAL",
    Locked = "LOCKED",
    Logs = "LOGS",
    Member = "MEMBER",
    Microsecond = "MICROSECOND",
    Minute = "MINUTE",
    Mode = "MODE",
    Month = "MONTH",
    Names = "NAMES",
    Nchar = "NCHAR",
    Next = "NEXT",
    Nowait = "NOWAIT",
    Nulls = "NULLS",
    Of = "OF",
    Offset = "OFFSET",
    Only = "ONLY",
    Open = "OPEN",
    Over = "OVER",
    Partitions = "PARTITIONS",
    Password = "PASSWORD",
    Persist = "PERSIST",
    PersistOnly = "PERSIST_ONLY",
    Portion = "PORTION",
    Preceding = "PRECEDING",
    Prepare = "PREPARE",
    Previous = "PREVIOUS",
    Privileges = "PRIVILEGES",
    Quarter = "QUARTER",
    Query = "QUERY",
    Quick = "QUICK",
    Recursive = "RECURSIVE",
    Repair = "REPAIR",
    Reset = "RESET",
    Resource = "RESOURCE",
    Respect = "RESPECT",
    Returning = "RETURNING",
    Role = "ROLE",
    Rollback = "ROLLBACK",
    Rollup = "ROLLUP",
    Routine = "ROUTINE",
    Row = "ROW",
    Rows = "ROWS",
    Savepoint = "SAVEPOINT",
    Second = "SECOND",
    Sequence = "SEQUENCE",
    Server = "SERVER",
    Session = "SESSION",
    Share = "SHARE",
    Shutdown = "SHUTDOWN",
    Signed = "SIGNED",
    Skip = "SKIP",
    Some = "SOME",
    Sounds = "SOUNDS",
    SqlBufferResult = "SQL_BUFFER_RESULT",
    SqlCache = "SQL_CACHE",
    SqlNoCache = "SQL_NO_CACHE",
    SqlTsiDay = "SQL_TSI_DAY",
    SqlTsiHour = "SQL_TSI_HOUR",
    SqlTsiMinute = "SQL_TSI_MINUTE",
    SqlTsiMonth = "SQL_TSI_MONTH",
    SqlTsiQuarter = "SQL_TSI_QUARTER",
    SqlTsiSecond = "SQL_TSI_SECOND",
    SqlTsiWeek = "SQL_TSI_WEEK",
    SqlTsiYear = "SQL_TSI_YEAR",
    Start = "START",
    Statement = "STATEMENT",
    Status = "STATUS",
    Stop = "STOP",
    SystemTime = "SYSTEM_TIME",
    Tables = "TABLES",
    Tablesample = "TABLESAMPLE",
    Temporary = "TEMPORARY",
    Time = "TIME",
    Timestamp = "TIMESTAMP",
    Transaction = "TRANSACTION",
    Truncate = "TRUNCATE",
    Unbounded = "UNBOUNDED",
    Unicode = "UNICODE",
    Uninstall = "UNINSTALL",
    Unknown = "UNKNOWN",
    User = "USER",
    UserResources = "USER_RESOURCES",
    Value = "VALUE",
    View = "VIEW",
    Wait = "WAIT",
    Warnings = "WARNINGS",
    Week = "WEEK",
    Window = "WINDOW",
    Work = "WORK",
    Xa = "XA",
    Xml = "XML",
    Year = "YEAR",
}
}

const SLOTS: usize = 2048;
const EMPTY: u16 = u16::MAX;
const WORD_BYTES_MAX: usize = 32;

/// Open addressing, filled at compile time; a look-up hashes once and compares once or twice.
static TABLE: [u16; SLOTS] = {
    let mut table = [EMPTY; SLOTS];
    let mut index = 0;
    while index < ALL.len() {
        let mut slot = hash_folded(ALL[index].1.as_bytes()) % SLOTS;
        while table[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "there are a few hundred words"
        )]
        {
            table[slot] = index as u16;
        }
        index += 1;
    }
    table
};

impl Keyword {
    /// The keyword that `word` is in any case, or [`Keyword::Other`].
    pub fn of(word: &[u8]) -> Keyword {
        if word.len() > WORD_BYTES_MAX {
            return Keyword::Other;
        }
        let mut slot = hash_folded(word) % SLOTS;
        while TABLE[slot] != EMPTY {
            let (keyword, text) = ALL[usize::from(TABLE[slot])];
            if text.as_bytes().eq_ignore_ascii_case(word) {
                return keyword;
            }
            slot = (slot + 1) % SLOTS;
        }
        Keyword::Other
    }

    /// Whether every supported server reserves the word: without quotes it is never a name.
    pub fn is_reserved(self) -> bool {
        (self as usize) < RESERVED_COUNT
    }

    /// Words that begin a clause after a table or a select item in at least one server, so that
    /// they must not be taken for an alias or a name.
    pub(crate) fn begins_a_clause_somewhere(self) -> bool {
        use Keyword as K;
        matches!(
            self,
            K::Except
                | K::Intersect
                | K::Over
                | K::Window
                | K::Lateral
                | K::Recursive
                | K::Returning
                | K::JsonTable
                | K::Tablesample
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case() {
        for (keyword, text) in ALL {
            assert!(text.len() <= WORD_BYTES_MAX, "{text}");
            assert_eq!(Keyword::of(text.as_bytes()), *keyword);
            assert_eq!(Keyword::of(text.to_lowercase().as_bytes()), *keyword);
        }
        assert_eq!(Keyword::of(b"customers"), Keyword::Other);
    }

    #[test]
    fn reserved_words_are_the_first() {
        assert!(Keyword::Select.is_reserved());
        assert!(Keyword::Zerofill.is_reserved());
        assert!(!Keyword::Account.is_reserved());
        assert!(!Keyword::Other.is_reserved());
    }
}
