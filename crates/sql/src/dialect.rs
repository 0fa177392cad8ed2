//! What decides how a statement's text is read: settings of the session, and how old the server is.

/// How the server reads the session's text: the parts of `sql_mode` that matter here, and which
/// functions it knows. The default is the oldest server's with no mode set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one thing that a server reads in one way or the other"
)]
pub struct Dialect {
    /// `ANSI_QUOTES`: `"` quotes names, not strings.
    pub ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: `\` in a string is an ordinary character.
    pub no_backslash_escapes: bool,
    /// `PIPES_AS_CONCAT`: `||` concatenates.
    pub pipes_as_concat: bool,
    /// `IGNORE_SPACE`: white space is allowed between any built-in function's name and its `(`.
    pub ignore_space: bool,
    /// `HIGH_NOT_PRECEDENCE`: `NOT` binds as tightly as `!`.
    pub high_not_precedence: bool,
    /// Which functions are the server's own.
    pub natives: Natives,
}

/// Servers that have the same functions of their own, as far as those are known. On all others a
/// function's name may be that of a stored one, which can write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Natives {
    /// What every server has: MySQL 5.6, or one that isn't known.
    #[default]
    Oldest,
    /// MySQL 5.7.22 and later.
    MySql57,
    /// MySQL 8.0.31 and later.
    MySql80,
    /// MariaDB 10.5 and later.
    MariaDb105,
    /// MariaDB 10.11 and later.
    MariaDb1011,
}

impl Natives {
    /// Every value.
    pub const ALL: [Natives; 5] = [
        Natives::Oldest,
        Natives::MySql57,
        Natives::MySql80,
        Natives::MariaDb105,
        Natives::MariaDb1011,
    ];

    /// Whether a statement that names no table leaves the list of warnings as it is. MySQL has
    /// emptied it since 5.7. 5.7 before 5.7.22 counts as `Oldest`, which is safe.
    pub fn keep_warnings(self) -> bool {
        !matches!(self, Natives::MySql57 | Natives::MySql80)
    }

    /// Its place in [`Natives::ALL`].
    pub fn index(self) -> u8 {
        self as u8
    }

    /// That at a place in [`Natives::ALL`].
    pub fn from_index(index: u8) -> Natives {
        let known = Natives::ALL.get(usize::from(index));
        known.copied().unwrap_or_default()
    }
}

/// Modes under which the server reads another language, which this crate can't.
const FOREIGN_MODES: &[&str] = &["ORACLE", "MSSQL", "EMPTY_STRING_IS_NULL"];

impl Dialect {
    /// The dialect of a session whose `@@sql_mode` reads `sql_mode` (names separated by commas).
    ///
    /// `None` if a mode is set that this crate can't read (`ORACLE` has another grammar, in which
    /// even `s.nextval` writes; `MSSQL` quotes names by brackets; `EMPTY_STRING_IS_NULL` reads `''`
    /// as NULL, so that `a <=> ''` finds other rows): such a session must pass through.
    pub fn from_sql_mode(sql_mode: &str) -> Option<Dialect> {
        let mut dialect = Dialect::default();
        for mode in sql_mode.split(',') {
            let mode = mode.trim().to_ascii_uppercase();
            match mode.as_str() {
                "ANSI_QUOTES" => dialect.ansi_quotes = true,
                "NO_BACKSLASH_ESCAPES" => dialect.no_backslash_escapes = true,
                "PIPES_AS_CONCAT" => dialect.pipes_as_concat = true,
                "IGNORE_SPACE" => dialect.ignore_space = true,
                "HIGH_NOT_PRECEDENCE" => dialect.high_not_precedence = true,
                other if FOREIGN_MODES.contains(&other) => return None,
                _ => {}
            }
        }
        Some(dialect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modes_that_change_the_reading_are_taken_from_the_list() {
        let read = Dialect::from_sql_mode("STRICT_TRANS_TABLES,ansi_quotes, IGNORE_SPACE");
        assert_eq!(
            read,
            Some(Dialect {
                ansi_quotes: true,
                ignore_space: true,
                ..Dialect::default()
            })
        );
        assert_eq!(Dialect::from_sql_mode(""), Some(Dialect::default()));
    }

    #[test]
    fn another_servers_language_is_not_read() {
        assert_eq!(Dialect::from_sql_mode("PIPES_AS_CONCAT,ORACLE"), None);
        assert_eq!(Dialect::from_sql_mode("MSSQL"), None);
        assert_eq!(Dialect::from_sql_mode("EMPTY_STRING_IS_NULL"), None);
    }
}
