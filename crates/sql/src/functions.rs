//! The built-in functions that are known, and what each depends on.
//!
//! Only names stand here that are native in every supported server (MySQL 5.7.22 and later, MariaDB
//! 10.5 and later; those that MySQL 5.6 lacks are known only where [`Dialect::natives`] says so): a
//! name that only some of them know may be somebody's stored function in the others, and a stored
//! function can write. Such names stand in [`further`], each with its servers. `NEXTVAL` and the
//! like are unknown on purpose: they write. So are `POINT` and its kin on MariaDB, which looks for
//! a stored function when their arguments don't fit.

pub(crate) mod further;

use crate::dialect::{Dialect, Natives};
use crate::fold::hash_folded;

/// What the value of a function depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Its arguments, the tables, and settings listed in [`crate::RESULT_SETTINGS`].
    Pure,
    /// The same over a group of rows or a window.
    Aggregate,
    /// The same over a window; it must be followed by `OVER`.
    Window,
    /// Its arguments; but it makes a `TIME` value, and a server that converts `TIME` to `DATETIME`
    /// takes today's date.
    TimeOfDay,
    /// The time of the call.
    Clock,
    /// The time of the call if it has no arguments.
    ClockWithoutArguments,
    /// Chance, or a counter of the server.
    Random,
    /// The account, the connection, the default schema or the server; also user variables, which an
    /// `XPath` expression can name inside its text.
    Session,
    /// The statement before: the session's diagnostics area.
    PreviousStatement,
    /// The session's last insert id, which only writes change.
    LastInsertId,
    /// User locks.
    Lock,
    /// It is called for the time that it takes.
    Delay,
    /// A file of the server.
    File,
    /// State of the server that the log doesn't show.
    ServerState,
}

impl Class {
    /// Whether the value is the same for the same arguments, tables and settings.
    pub fn is_deterministic(self) -> bool {
        matches!(self, Class::Pure | Class::Aggregate | Class::Window)
    }
}

/// How the arguments are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Expressions separated by commas, or none.
    List,
    /// Expressions after an optional `DISTINCT` or `ALL`, or `*`.
    Aggregate,
    /// `GROUP_CONCAT([DISTINCT] … [ORDER BY …] [SEPARATOR '…'])`
    GroupConcat,
    /// `CAST(… AS type)`
    Cast,
    /// `CONVERT(…, type)`, `CONVERT(… USING charset)`
    Convert,
    /// `EXTRACT(unit FROM …)`
    Extract,
    /// `TRIM([BOTH | LEADING | TRAILING] [… FROM] …)`
    Trim,
    /// `SUBSTRING(…, …)`, `SUBSTRING(… FROM … FOR …)`
    Substring,
    /// `POSITION(… IN …)`
    Position,
    /// `CHAR(… [USING charset])`
    Char,
    /// `DATE_ADD(…, INTERVAL … unit)`
    DateArithmetic,
    /// `TIMESTAMPDIFF(unit, …, …)`
    IntervalUnit,
}

/// Whether white space may stand between the name and the `(`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// The name is a function's with or without a space.
    Free,
    /// With a space, and without `IGNORE_SPACE`, some servers look for a stored function.
    Adjacent,
}

/// A built-in function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name, in upper case.
    pub name: &'static str,
    /// What its value depends on.
    pub class: Class,
    pub(crate) shape: Shape,
    pub(crate) spacing: Spacing,
}

/// Functions that convert what they are given to a date or to a date with a time, sorted. On MySQL
/// 5.7.22 each function of [`FUNCTIONS`] was called with a `TIME` within JSON, under two clocks:
/// besides those known by their [`Shape`], the values of these differed.
const OF_DATES: &[&str] = &[
    "DATE",
    "DATEDIFF",
    "DATE_FORMAT",
    "DAY",
    "DAYNAME",
    "DAYOFMONTH",
    "DAYOFWEEK",
    "DAYOFYEAR",
    "LAST_DAY",
    "MONTH",
    "MONTHNAME",
    "QUARTER",
    "TIMEDIFF",
    "TIMESTAMP",
    "TO_DAYS",
    "TO_SECONDS",
    "UNIX_TIMESTAMP",
    "WEEK",
    "WEEKDAY",
    "WEEKOFYEAR",
    "YEAR",
    "YEARWEEK",
];

impl Function {
    /// Whether it converts an argument to a date. `CAST` and `CONVERT` do so if their type says so.
    pub(crate) fn makes_dates(&self) -> bool {
        let by_shape = matches!(
            self.shape,
            Shape::DateArithmetic | Shape::IntervalUnit | Shape::Extract
        );
        by_shape || OF_DATES.binary_search(&self.name).is_ok()
    }
}

const fn function(name: &'static str, class: Class, shape: Shape, spacing: Spacing) -> Function {
    Function {
        name,
        class,
        shape,
        spacing,
    }
}

/// Every function that is known.
pub const FUNCTIONS: &[Function] = &[
    function("ABS", Class::Pure, Shape::List, Spacing::Free),
    function("ACOS", Class::Pure, Shape::List, Spacing::Free),
    function(
        "ADDDATE",
        Class::Pure,
        Shape::DateArithmetic,
        Spacing::Adjacent,
    ),
    function("ADDTIME", Class::TimeOfDay, Shape::List, Spacing::Free),
    function("AES_DECRYPT", Class::Pure, Shape::List, Spacing::Free),
    function("AES_ENCRYPT", Class::Pure, Shape::List, Spacing::Free),
    function("ASCII", Class::Pure, Shape::List, Spacing::Free),
    function("ASIN", Class::Pure, Shape::List, Spacing::Free),
    function("ATAN", Class::Pure, Shape::List, Spacing::Free),
    function("ATAN2", Class::Pure, Shape::List, Spacing::Free),
    function("AVG", Class::Aggregate, Shape::Aggregate, Spacing::Free),
    function("BENCHMARK", Class::Delay, Shape::List, Spacing::Free),
    function("BIN", Class::Pure, Shape::List, Spacing::Free),
    function(
        "BIT_AND",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function("BIT_COUNT", Class::Pure, Shape::List, Spacing::Free),
    function("BIT_LENGTH", Class::Pure, Shape::List, Spacing::Free),
    function(
        "BIT_OR",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function(
        "BIT_XOR",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function("CAST", Class::Pure, Shape::Cast, Spacing::Adjacent),
    function("CEIL", Class::Pure, Shape::List, Spacing::Free),
    function("CEILING", Class::Pure, Shape::List, Spacing::Free),
    function("CHAR", Class::Pure, Shape::Char, Spacing::Free),
    function("CHARACTER_LENGTH", Class::Pure, Shape::List, Spacing::Free),
    function("CHARSET", Class::Pure, Shape::List, Spacing::Free),
    function("CHAR_LENGTH", Class::Pure, Shape::List, Spacing::Free),
    function("COALESCE", Class::Pure, Shape::List, Spacing::Free),
    function("COERCIBILITY", Class::Pure, Shape::List, Spacing::Free),
    function("COLLATION", Class::Pure, Shape::List, Spacing::Free),
    function("COMPRESS", Class::Pure, Shape::List, Spacing::Free),
    function("CONCAT", Class::Pure, Shape::List, Spacing::Free),
    function("CONCAT_WS", Class::Pure, Shape::List, Spacing::Free),
    function("CONNECTION_ID", Class::Session, Shape::List, Spacing::Free),
    function("CONV", Class::Pure, Shape::List, Spacing::Free),
    function("CONVERT", Class::Pure, Shape::Convert, Spacing::Free),
    function("CONVERT_TZ", Class::ServerState, Shape::List, Spacing::Free),
    function("COS", Class::Pure, Shape::List, Spacing::Free),
    function("COT", Class::Pure, Shape::List, Spacing::Free),
    function(
        "COUNT",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function("CRC32", Class::Pure, Shape::List, Spacing::Free),
    function("CUME_DIST", Class::Window, Shape::List, Spacing::Adjacent),
    function("CURDATE", Class::Clock, Shape::List, Spacing::Adjacent),
    function("CURRENT_DATE", Class::Clock, Shape::List, Spacing::Free),
    function("CURRENT_TIME", Class::Clock, Shape::List, Spacing::Free),
    function(
        "CURRENT_TIMESTAMP",
        Class::Clock,
        Shape::List,
        Spacing::Free,
    ),
    function("CURRENT_USER", Class::Session, Shape::List, Spacing::Free),
    function("CURTIME", Class::Clock, Shape::List, Spacing::Adjacent),
    function("DATABASE", Class::Session, Shape::List, Spacing::Free),
    function("DATE", Class::Pure, Shape::List, Spacing::Free),
    function("DATEDIFF", Class::Pure, Shape::List, Spacing::Free),
    function(
        "DATE_ADD",
        Class::Pure,
        Shape::DateArithmetic,
        Spacing::Adjacent,
    ),
    function("DATE_FORMAT", Class::Pure, Shape::List, Spacing::Adjacent),
    function(
        "DATE_SUB",
        Class::Pure,
        Shape::DateArithmetic,
        Spacing::Adjacent,
    ),
    function("DAY", Class::Pure, Shape::List, Spacing::Free),
    function("DAYNAME", Class::Pure, Shape::List, Spacing::Free),
    function("DAYOFMONTH", Class::Pure, Shape::List, Spacing::Free),
    function("DAYOFWEEK", Class::Pure, Shape::List, Spacing::Free),
    function("DAYOFYEAR", Class::Pure, Shape::List, Spacing::Free),
    function("DEGREES", Class::Pure, Shape::List, Spacing::Free),
    function("DENSE_RANK", Class::Window, Shape::List, Spacing::Adjacent),
    function("ELT", Class::Pure, Shape::List, Spacing::Free),
    function("EXP", Class::Pure, Shape::List, Spacing::Free),
    function("EXPORT_SET", Class::Pure, Shape::List, Spacing::Free),
    function("EXTRACT", Class::Pure, Shape::Extract, Spacing::Adjacent),
    function("EXTRACTVALUE", Class::Session, Shape::List, Spacing::Free),
    function("FIELD", Class::Pure, Shape::List, Spacing::Free),
    function("FIND_IN_SET", Class::Pure, Shape::List, Spacing::Free),
    function("FIRST_VALUE", Class::Window, Shape::List, Spacing::Adjacent),
    function("FLOOR", Class::Pure, Shape::List, Spacing::Free),
    function("FORMAT", Class::Pure, Shape::List, Spacing::Free),
    function(
        "FOUND_ROWS",
        Class::PreviousStatement,
        Shape::List,
        Spacing::Free,
    ),
    function("FROM_BASE64", Class::Pure, Shape::List, Spacing::Free),
    function("FROM_DAYS", Class::Pure, Shape::List, Spacing::Free),
    function("FROM_UNIXTIME", Class::Pure, Shape::List, Spacing::Free),
    function("GET_FORMAT", Class::Pure, Shape::List, Spacing::Free),
    function("GET_LOCK", Class::Lock, Shape::List, Spacing::Free),
    function("GREATEST", Class::Pure, Shape::List, Spacing::Free),
    function(
        "GROUP_CONCAT",
        Class::Aggregate,
        Shape::GroupConcat,
        Spacing::Adjacent,
    ),
    function("HEX", Class::Pure, Shape::List, Spacing::Free),
    function("HOUR", Class::Pure, Shape::List, Spacing::Free),
    function("IF", Class::Pure, Shape::List, Spacing::Free),
    function("IFNULL", Class::Pure, Shape::List, Spacing::Free),
    function("INET6_ATON", Class::Pure, Shape::List, Spacing::Free),
    function("INET6_NTOA", Class::Pure, Shape::List, Spacing::Free),
    function("INET_ATON", Class::Pure, Shape::List, Spacing::Free),
    function("INET_NTOA", Class::Pure, Shape::List, Spacing::Free),
    function("INSERT", Class::Pure, Shape::List, Spacing::Free),
    function("INSTR", Class::Pure, Shape::List, Spacing::Free),
    function("ISNULL", Class::Pure, Shape::List, Spacing::Free),
    function("IS_FREE_LOCK", Class::Lock, Shape::List, Spacing::Free),
    function("IS_IPV4", Class::Pure, Shape::List, Spacing::Free),
    function("IS_IPV4_COMPAT", Class::Pure, Shape::List, Spacing::Free),
    function("IS_IPV4_MAPPED", Class::Pure, Shape::List, Spacing::Free),
    function("IS_IPV6", Class::Pure, Shape::List, Spacing::Free),
    function("IS_USED_LOCK", Class::Lock, Shape::List, Spacing::Free),
    function("JSON_ARRAY", Class::Pure, Shape::List, Spacing::Free),
    function(
        "JSON_ARRAYAGG",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function("JSON_ARRAY_APPEND", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_ARRAY_INSERT", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_CONTAINS", Class::Pure, Shape::List, Spacing::Free),
    function(
        "JSON_CONTAINS_PATH",
        Class::Pure,
        Shape::List,
        Spacing::Free,
    ),
    function("JSON_DEPTH", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_EXTRACT", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_INSERT", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_KEYS", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_LENGTH", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_MERGE_PATCH", Class::Pure, Shape::List, Spacing::Free),
    function(
        "JSON_MERGE_PRESERVE",
        Class::Pure,
        Shape::List,
        Spacing::Free,
    ),
    function("JSON_OBJECT", Class::Pure, Shape::List, Spacing::Free),
    function(
        "JSON_OBJECTAGG",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function("JSON_QUOTE", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_REMOVE", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_REPLACE", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_SEARCH", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_SET", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_TYPE", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_UNQUOTE", Class::Pure, Shape::List, Spacing::Free),
    function("JSON_VALID", Class::Pure, Shape::List, Spacing::Free),
    function("LAG", Class::Window, Shape::List, Spacing::Adjacent),
    function("LAST_DAY", Class::Pure, Shape::List, Spacing::Free),
    function(
        "LAST_INSERT_ID",
        Class::LastInsertId,
        Shape::List,
        Spacing::Free,
    ),
    function("LAST_VALUE", Class::Window, Shape::List, Spacing::Adjacent),
    function("LCASE", Class::Pure, Shape::List, Spacing::Free),
    function("LEAD", Class::Window, Shape::List, Spacing::Adjacent),
    function("LEAST", Class::Pure, Shape::List, Spacing::Free),
    function("LEFT", Class::Pure, Shape::List, Spacing::Free),
    function("LENGTH", Class::Pure, Shape::List, Spacing::Free),
    function("LN", Class::Pure, Shape::List, Spacing::Free),
    function("LOAD_FILE", Class::File, Shape::List, Spacing::Free),
    function("LOCALTIME", Class::Clock, Shape::List, Spacing::Free),
    function("LOCALTIMESTAMP", Class::Clock, Shape::List, Spacing::Free),
    function("LOCATE", Class::Pure, Shape::List, Spacing::Free),
    function("LOG", Class::Pure, Shape::List, Spacing::Free),
    function("LOG10", Class::Pure, Shape::List, Spacing::Free),
    function("LOG2", Class::Pure, Shape::List, Spacing::Free),
    function("LOWER", Class::Pure, Shape::List, Spacing::Free),
    function("LPAD", Class::Pure, Shape::List, Spacing::Free),
    function("LTRIM", Class::Pure, Shape::List, Spacing::Free),
    function("MAKEDATE", Class::Pure, Shape::List, Spacing::Free),
    function("MAKETIME", Class::TimeOfDay, Shape::List, Spacing::Free),
    function("MAKE_SET", Class::Pure, Shape::List, Spacing::Free),
    function(
        "MASTER_POS_WAIT",
        Class::ServerState,
        Shape::List,
        Spacing::Free,
    ),
    function("MAX", Class::Aggregate, Shape::Aggregate, Spacing::Adjacent),
    function("MD5", Class::Pure, Shape::List, Spacing::Free),
    function("MICROSECOND", Class::Pure, Shape::List, Spacing::Free),
    function("MID", Class::Pure, Shape::Substring, Spacing::Adjacent),
    function("MIN", Class::Aggregate, Shape::Aggregate, Spacing::Adjacent),
    function("MINUTE", Class::Pure, Shape::List, Spacing::Free),
    function("MOD", Class::Pure, Shape::List, Spacing::Free),
    function("MONTH", Class::Pure, Shape::List, Spacing::Free),
    function("MONTHNAME", Class::Pure, Shape::List, Spacing::Free),
    function("NAME_CONST", Class::ServerState, Shape::List, Spacing::Free),
    function("NOW", Class::Clock, Shape::List, Spacing::Adjacent),
    function("NTH_VALUE", Class::Window, Shape::List, Spacing::Adjacent),
    function("NTILE", Class::Window, Shape::List, Spacing::Adjacent),
    function("NULLIF", Class::Pure, Shape::List, Spacing::Free),
    function("OCT", Class::Pure, Shape::List, Spacing::Free),
    function("OCTET_LENGTH", Class::Pure, Shape::List, Spacing::Free),
    function("ORD", Class::Pure, Shape::List, Spacing::Free),
    function(
        "PERCENT_RANK",
        Class::Window,
        Shape::List,
        Spacing::Adjacent,
    ),
    function("PERIOD_ADD", Class::Pure, Shape::List, Spacing::Free),
    function("PERIOD_DIFF", Class::Pure, Shape::List, Spacing::Free),
    function("PI", Class::Pure, Shape::List, Spacing::Free),
    function("POSITION", Class::Pure, Shape::Position, Spacing::Adjacent),
    function("POW", Class::Pure, Shape::List, Spacing::Free),
    function("POWER", Class::Pure, Shape::List, Spacing::Free),
    function("QUARTER", Class::Pure, Shape::List, Spacing::Free),
    function("QUOTE", Class::Pure, Shape::List, Spacing::Free),
    function("RADIANS", Class::Pure, Shape::List, Spacing::Free),
    function("RAND", Class::Random, Shape::List, Spacing::Free),
    function("RANK", Class::Window, Shape::List, Spacing::Adjacent),
    function("RELEASE_ALL_LOCKS", Class::Lock, Shape::List, Spacing::Free),
    function("RELEASE_LOCK", Class::Lock, Shape::List, Spacing::Free),
    function("REPEAT", Class::Pure, Shape::List, Spacing::Free),
    function("REPLACE", Class::Pure, Shape::List, Spacing::Free),
    function("REVERSE", Class::Pure, Shape::List, Spacing::Free),
    function("RIGHT", Class::Pure, Shape::List, Spacing::Free),
    function("ROUND", Class::Pure, Shape::List, Spacing::Free),
    function(
        "ROW_COUNT",
        Class::PreviousStatement,
        Shape::List,
        Spacing::Free,
    ),
    function("ROW_NUMBER", Class::Window, Shape::List, Spacing::Adjacent),
    function("RPAD", Class::Pure, Shape::List, Spacing::Free),
    function("RTRIM", Class::Pure, Shape::List, Spacing::Free),
    function("SCHEMA", Class::Session, Shape::List, Spacing::Free),
    function("SECOND", Class::Pure, Shape::List, Spacing::Free),
    function("SEC_TO_TIME", Class::TimeOfDay, Shape::List, Spacing::Free),
    function(
        "SESSION_USER",
        Class::Session,
        Shape::List,
        Spacing::Adjacent,
    ),
    function("SHA", Class::Pure, Shape::List, Spacing::Free),
    function("SHA1", Class::Pure, Shape::List, Spacing::Free),
    function("SHA2", Class::Pure, Shape::List, Spacing::Free),
    function("SIGN", Class::Pure, Shape::List, Spacing::Free),
    function("SIN", Class::Pure, Shape::List, Spacing::Free),
    function("SLEEP", Class::Delay, Shape::List, Spacing::Free),
    function("SOUNDEX", Class::Pure, Shape::List, Spacing::Free),
    function("SPACE", Class::Pure, Shape::List, Spacing::Free),
    function("SQRT", Class::Pure, Shape::List, Spacing::Free),
    function("STD", Class::Aggregate, Shape::Aggregate, Spacing::Adjacent),
    function(
        "STDDEV",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function(
        "STDDEV_POP",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function(
        "STDDEV_SAMP",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function("STRCMP", Class::Pure, Shape::List, Spacing::Free),
    function("STR_TO_DATE", Class::TimeOfDay, Shape::List, Spacing::Free),
    function("ST_AREA", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ASBINARY", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ASTEXT", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ASWKB", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ASWKT", Class::Pure, Shape::List, Spacing::Free),
    function("ST_CENTROID", Class::Pure, Shape::List, Spacing::Free),
    function("ST_CONTAINS", Class::Pure, Shape::List, Spacing::Free),
    function("ST_CROSSES", Class::Pure, Shape::List, Spacing::Free),
    function("ST_DIFFERENCE", Class::Pure, Shape::List, Spacing::Free),
    function("ST_DIMENSION", Class::Pure, Shape::List, Spacing::Free),
    function("ST_DISJOINT", Class::Pure, Shape::List, Spacing::Free),
    function("ST_DISTANCE", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ENDPOINT", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ENVELOPE", Class::Pure, Shape::List, Spacing::Free),
    function("ST_EQUALS", Class::Pure, Shape::List, Spacing::Free),
    function("ST_EXTERIORRING", Class::Pure, Shape::List, Spacing::Free),
    function("ST_GEOMETRYN", Class::Pure, Shape::List, Spacing::Free),
    function("ST_GEOMETRYTYPE", Class::Pure, Shape::List, Spacing::Free),
    function("ST_GEOMFROMTEXT", Class::Pure, Shape::List, Spacing::Free),
    function("ST_GEOMFROMWKB", Class::Pure, Shape::List, Spacing::Free),
    function("ST_INTERIORRINGN", Class::Pure, Shape::List, Spacing::Free),
    function("ST_INTERSECTION", Class::Pure, Shape::List, Spacing::Free),
    function("ST_INTERSECTS", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ISCLOSED", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ISEMPTY", Class::Pure, Shape::List, Spacing::Free),
    function("ST_ISSIMPLE", Class::Pure, Shape::List, Spacing::Free),
    function("ST_LENGTH", Class::Pure, Shape::List, Spacing::Free),
    function("ST_NUMGEOMETRIES", Class::Pure, Shape::List, Spacing::Free),
    function(
        "ST_NUMINTERIORRINGS",
        Class::Pure,
        Shape::List,
        Spacing::Free,
    ),
    function("ST_NUMPOINTS", Class::Pure, Shape::List, Spacing::Free),
    function("ST_OVERLAPS", Class::Pure, Shape::List, Spacing::Free),
    function("ST_POINTFROMTEXT", Class::Pure, Shape::List, Spacing::Free),
    function("ST_POINTN", Class::Pure, Shape::List, Spacing::Free),
    function("ST_SRID", Class::Pure, Shape::List, Spacing::Free),
    function("ST_STARTPOINT", Class::Pure, Shape::List, Spacing::Free),
    function("ST_SYMDIFFERENCE", Class::Pure, Shape::List, Spacing::Free),
    function("ST_TOUCHES", Class::Pure, Shape::List, Spacing::Free),
    function("ST_UNION", Class::Pure, Shape::List, Spacing::Free),
    function("ST_WITHIN", Class::Pure, Shape::List, Spacing::Free),
    function("ST_X", Class::Pure, Shape::List, Spacing::Free),
    function("ST_Y", Class::Pure, Shape::List, Spacing::Free),
    function(
        "SUBDATE",
        Class::Pure,
        Shape::DateArithmetic,
        Spacing::Adjacent,
    ),
    function("SUBSTR", Class::Pure, Shape::Substring, Spacing::Adjacent),
    function(
        "SUBSTRING",
        Class::Pure,
        Shape::Substring,
        Spacing::Adjacent,
    ),
    function("SUBSTRING_INDEX", Class::Pure, Shape::List, Spacing::Free),
    function("SUBTIME", Class::TimeOfDay, Shape::List, Spacing::Free),
    function("SUM", Class::Aggregate, Shape::Aggregate, Spacing::Adjacent),
    function("SYSDATE", Class::Clock, Shape::List, Spacing::Adjacent),
    function(
        "SYSTEM_USER",
        Class::Session,
        Shape::List,
        Spacing::Adjacent,
    ),
    function("TAN", Class::Pure, Shape::List, Spacing::Free),
    function("TIME", Class::TimeOfDay, Shape::List, Spacing::Free),
    function("TIMEDIFF", Class::TimeOfDay, Shape::List, Spacing::Free),
    function("TIMESTAMP", Class::Pure, Shape::List, Spacing::Free),
    function(
        "TIMESTAMPADD",
        Class::Pure,
        Shape::IntervalUnit,
        Spacing::Free,
    ),
    function(
        "TIMESTAMPDIFF",
        Class::Pure,
        Shape::IntervalUnit,
        Spacing::Free,
    ),
    function("TIME_FORMAT", Class::Pure, Shape::List, Spacing::Free),
    function("TIME_TO_SEC", Class::Pure, Shape::List, Spacing::Free),
    function("TO_BASE64", Class::Pure, Shape::List, Spacing::Free),
    function("TO_DAYS", Class::Pure, Shape::List, Spacing::Free),
    function("TO_SECONDS", Class::Pure, Shape::List, Spacing::Free),
    function("TRIM", Class::Pure, Shape::Trim, Spacing::Adjacent),
    function("TRUNCATE", Class::Pure, Shape::List, Spacing::Free),
    function("UCASE", Class::Pure, Shape::List, Spacing::Free),
    function("UNCOMPRESS", Class::Pure, Shape::List, Spacing::Free),
    function(
        "UNCOMPRESSED_LENGTH",
        Class::Pure,
        Shape::List,
        Spacing::Free,
    ),
    function("UNHEX", Class::Pure, Shape::List, Spacing::Free),
    function(
        "UNIX_TIMESTAMP",
        Class::ClockWithoutArguments,
        Shape::List,
        Spacing::Free,
    ),
    function("UPDATEXML", Class::Session, Shape::List, Spacing::Free),
    function("UPPER", Class::Pure, Shape::List, Spacing::Free),
    function("USER", Class::Session, Shape::List, Spacing::Free),
    function("UTC_DATE", Class::Clock, Shape::List, Spacing::Free),
    function("UTC_TIME", Class::Clock, Shape::List, Spacing::Free),
    function("UTC_TIMESTAMP", Class::Clock, Shape::List, Spacing::Free),
    function("UUID", Class::Random, Shape::List, Spacing::Free),
    function("UUID_SHORT", Class::Random, Shape::List, Spacing::Free),
    function(
        "VARIANCE",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function(
        "VAR_POP",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function(
        "VAR_SAMP",
        Class::Aggregate,
        Shape::Aggregate,
        Spacing::Adjacent,
    ),
    function("VERSION", Class::Session, Shape::List, Spacing::Free),
    function("WEEK", Class::Pure, Shape::List, Spacing::Free),
    function("WEEKDAY", Class::Pure, Shape::List, Spacing::Free),
    function("WEEKOFYEAR", Class::Pure, Shape::List, Spacing::Free),
    function("YEAR", Class::Pure, Shape::List, Spacing::Free),
    function("YEARWEEK", Class::Pure, Shape::List, Spacing::Free),
];

const SLOTS: usize = 1024;
const EMPTY: u16 = u16::MAX;

static TABLE: [u16; SLOTS] = {
    let mut table = [EMPTY; SLOTS];
    let mut index = 0;
    while index < FUNCTIONS.len() {
        let mut slot = hash_folded(FUNCTIONS[index].name.as_bytes()) % SLOTS;
        while table[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "there are a few hundred functions"
        )]
        {
            table[slot] = index as u16;
        }
        index += 1;
    }
    table
};

/// Of those, what MySQL 5.6 doesn't know beside everything that begins with `JSON_`. Tried out on
/// MySQL 5.6.24, with a stored function of each name.
const SINCE_57: &str = "RELEASE_ALL_LOCKS";

/// The function that a server of this dialect has under that name, in any case, if it can't be a
/// stored one.
pub(crate) fn native_function(name: &[u8], dialect: Dialect) -> Option<&'static Function> {
    let Some(function) = find_function(name) else {
        return further::find(name, dialect.natives);
    };
    let is_new = function.name.starts_with("JSON_") || function.name == SINCE_57;
    (dialect.natives != Natives::Oldest || !is_new).then_some(function)
}

/// The known function of that name, in any case.
pub fn find_function(name: &[u8]) -> Option<&'static Function> {
    let mut slot = hash_folded(name) % SLOTS;
    while TABLE[slot] != EMPTY {
        let function = &FUNCTIONS[usize::from(TABLE[slot])];
        if function.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(function);
        }
        slot = (slot + 1) % SLOTS;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_and_listed_once() {
        for pair in FUNCTIONS.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} is out of order",
                pair[1].name
            );
        }
        for function in FUNCTIONS {
            let found = find_function(function.name.to_lowercase().as_bytes());
            assert_eq!(found.map(|found| found.name), Some(function.name));
        }
        assert!(find_function(b"my_function").is_none());
    }
}
