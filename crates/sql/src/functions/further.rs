//! Built-in functions that only some servers have.
//!
//! Each was called on MariaDB 10.11 and 11.4 and on MySQL 5.7.22 and 8.0.31 with up to three
//! arguments: a server stands here if none of these calls looked for a stored function. Where a
//! name isn't native it may be somebody's stored function, which can write.

use super::{Class, Function, Shape, Spacing};
use crate::dialect::Natives;

/// A function, and the servers of which it is known to be native.
#[derive(Clone, Copy, Debug)]
pub struct FurtherFunction {
    /// The function.
    pub function: Function,
    /// Where it is native.
    pub natives: &'static [Natives],
}

const MARIADB: &[Natives] = &[Natives::MariaDb1011];
const MYSQL: &[Natives] = &[Natives::MySql57, Natives::MySql80];
const MYSQL_80: &[Natives] = &[Natives::MySql80];
const NEWEST: &[Natives] = &[Natives::MariaDb1011, Natives::MySql80];
const ALL: &[Natives] = &[Natives::MariaDb1011, Natives::MySql57, Natives::MySql80];

const fn on(natives: &'static [Natives], class: Class, name: &'static str) -> FurtherFunction {
    FurtherFunction {
        function: Function {
            name,
            class,
            shape: Shape::List,
            spacing: Spacing::Free,
        },
        natives,
    }
}

/// Every function that only some servers have.
pub const FURTHER_FUNCTIONS: &[FurtherFunction] = &[
    on(MARIADB, Class::Pure, "ADD_MONTHS"),
    on(MYSQL, Class::Pure, "ANY_VALUE"),
    on(MARIADB, Class::ServerState, "BINLOG_GTID_POS"),
    on(MYSQL_80, Class::Pure, "BIN_TO_UUID"),
    on(MARIADB, Class::Pure, "CHR"),
    on(MARIADB, Class::Pure, "COLUMN_CHECK"),
    on(MARIADB, Class::Pure, "COLUMN_EXISTS"),
    on(MARIADB, Class::Pure, "COLUMN_JSON"),
    on(MARIADB, Class::Pure, "COLUMN_LIST"),
    on(MARIADB, Class::Pure, "CRC32C"),
    on(NEWEST, Class::Session, "CURRENT_ROLE"),
    on(MYSQL_80, Class::Pure, "FORMAT_BYTES"),
    on(MYSQL_80, Class::Pure, "GROUPING"),
    on(MYSQL, Class::Pure, "GTID_SUBSET"),
    on(MYSQL, Class::Pure, "GTID_SUBTRACT"),
    on(MYSQL_80, Class::ServerState, "ICU_VERSION"),
    on(MYSQL_80, Class::Pure, "IS_UUID"),
    on(MARIADB, Class::Pure, "JSON_COMPACT"),
    on(MARIADB, Class::Pure, "JSON_DETAILED"),
    on(MARIADB, Class::Pure, "JSON_EQUALS"),
    on(MARIADB, Class::Pure, "JSON_EXISTS"),
    on(MARIADB, Class::Pure, "JSON_LOOSE"),
    on(MARIADB, Class::Pure, "JSON_NORMALIZE"),
    on(NEWEST, Class::Pure, "JSON_OVERLAPS"),
    on(ALL, Class::Pure, "JSON_PRETTY"),
    on(MARIADB, Class::Pure, "JSON_QUERY"),
    on(MYSQL_80, Class::Pure, "JSON_SCHEMA_VALID"),
    on(MYSQL_80, Class::Pure, "JSON_SCHEMA_VALIDATION_REPORT"),
    on(MYSQL, Class::ServerState, "JSON_STORAGE_SIZE"),
    on(NEWEST, Class::Pure, "JSON_VALUE"),
    on(MARIADB, Class::Pure, "LENGTHB"),
    on(MYSQL, Class::Pure, "LINESTRING"),
    on(MARIADB, Class::ServerState, "MASTER_GTID_WAIT"),
    on(ALL, Class::Pure, "MBRCONTAINS"),
    on(MYSQL, Class::Pure, "MBRCOVEREDBY"),
    on(MYSQL, Class::Pure, "MBRCOVERS"),
    on(ALL, Class::Pure, "MBRDISJOINT"),
    on(ALL, Class::Pure, "MBREQUALS"),
    on(ALL, Class::Pure, "MBRINTERSECTS"),
    on(ALL, Class::Pure, "MBROVERLAPS"),
    on(ALL, Class::Pure, "MBRTOUCHES"),
    on(ALL, Class::Pure, "MBRWITHIN"),
    on(MARIADB, Class::Pure, "NATURAL_SORT_KEY"),
    on(MARIADB, Class::Pure, "NVL"),
    on(MARIADB, Class::Pure, "NVL2"),
    on(MYSQL, Class::Pure, "POINT"),
    on(MYSQL, Class::Pure, "POLYGON"),
    on(ALL, Class::Random, "RANDOM_BYTES"),
    on(NEWEST, Class::Pure, "REGEXP_INSTR"),
    on(MYSQL_80, Class::Pure, "REGEXP_LIKE"),
    on(NEWEST, Class::Pure, "REGEXP_REPLACE"),
    on(NEWEST, Class::Pure, "REGEXP_SUBSTR"),
    on(MYSQL_80, Class::Session, "ROLES_GRAPHML"),
    on(MARIADB, Class::Session, "ROWNUM"),
    on(MARIADB, Class::Pure, "SFORMAT"),
    on(MYSQL_80, Class::ServerState, "SOURCE_POS_WAIT"),
    on(MYSQL_80, Class::ServerState, "STATEMENT_DIGEST"),
    on(MYSQL_80, Class::ServerState, "STATEMENT_DIGEST_TEXT"),
    on(ALL, Class::Pure, "ST_ASGEOJSON"),
    on(ALL, Class::Pure, "ST_BUFFER"),
    on(ALL, Class::Pure, "ST_CONVEXHULL"),
    on(ALL, Class::Pure, "ST_DISTANCE_SPHERE"),
    on(MYSQL, Class::Pure, "ST_GEOHASH"),
    on(ALL, Class::Pure, "ST_GEOMCOLLFROMTEXT"),
    on(ALL, Class::Pure, "ST_GEOMFROMGEOJSON"),
    on(MYSQL, Class::Pure, "ST_ISVALID"),
    on(MYSQL_80, Class::Pure, "ST_LATITUDE"),
    on(ALL, Class::Pure, "ST_LINEFROMTEXT"),
    on(MYSQL_80, Class::Pure, "ST_LONGITUDE"),
    on(ALL, Class::Pure, "ST_POLYFROMTEXT"),
    on(MYSQL, Class::Pure, "ST_SIMPLIFY"),
    on(MYSQL_80, Class::Pure, "ST_SWAPXY"),
    on(MYSQL_80, Class::Pure, "ST_TRANSFORM"),
    on(MYSQL, Class::Pure, "ST_VALIDATE"),
    on(MARIADB, Class::Random, "SYS_GUID"),
    on(MARIADB, Class::Session, "TO_CHAR"),
    on(MYSQL_80, Class::Pure, "UUID_TO_BIN"),
    on(MYSQL, Class::ServerState, "VALIDATE_PASSWORD_STRENGTH"),
    on(MYSQL, Class::ServerState, "WAIT_FOR_EXECUTED_GTID_SET"),
];

/// The function of that name, in any case, if such a server has it.
pub(super) fn find(name: &[u8], natives: Natives) -> Option<&'static Function> {
    let is_it = |known: &&FurtherFunction| {
        known.function.name.as_bytes().eq_ignore_ascii_case(name)
            && known.natives.contains(&natives)
    };
    let known = FURTHER_FUNCTIONS.iter().find(is_it)?;
    Some(&known.function)
}

#[cfg(test)]
mod tests {
    use super::super::find_function;
    use super::*;

    #[test]
    fn each_stands_on_one_list_and_once() {
        for pair in FURTHER_FUNCTIONS.windows(2) {
            let [a, b] = [pair[0].function.name, pair[1].function.name];
            assert!(a < b, "{b} is out of order");
        }
        for further in FURTHER_FUNCTIONS {
            let name = further.function.name;
            assert!(find_function(name.as_bytes()).is_none(), "{name}");
            assert!(!further.natives.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_function_is_found_where_it_is_native() {
        let has = |name: &str, natives| find(name.as_bytes(), natives).is_some();
        assert!(has("nvl", Natives::MariaDb1011));
        assert!(!has("nvl", Natives::MySql80));
        assert!(has("Any_Value", Natives::MySql57));
        assert!(!has("any_value", Natives::MariaDb105));
        assert!(!has("any_value", Natives::Oldest));
    }
}
