//! What the text of a query event changed, with its names resolved.

use remora_binlog::{LoggedTable, Query, QueryMeaning};
use remora_sql::{LoggedStatement, TableName, analyse_logged};

/// `sql_mode` bits under which text isn't read as [`analyse_logged`] reads it: `ANSI_QUOTES`,
/// `NO_BACKSLASH_ESCAPES`, and MariaDB's `ORACLE`.
const MODES_OF_OTHER_TEXT: u64 = 0x4 | 0x10_0000 | 0x200;

/// Reads a query event's text. In doubt it changes everything.
pub fn meaning(query: &Query) -> QueryMeaning {
    if let Some(meaning) = common(&query.text) {
        return meaning;
    }
    if !is_readable(query) {
        return QueryMeaning::Everything;
    }
    match analyse_logged(&query.text) {
        LoggedStatement::Begin => QueryMeaning::Begin,
        LoggedStatement::Commit | LoggedStatement::Rollback => QueryMeaning::End,
        LoggedStatement::Savepoint | LoggedStatement::Nothing => QueryMeaning::Nothing,
        LoggedStatement::Definitions => QueryMeaning::Definitions,
        LoggedStatement::Accounts => QueryMeaning::Accounts,
        LoggedStatement::XaCommitOrRollback => QueryMeaning::XaEnd,
        // Rows changed by a statement that was logged as text: its triggers and functions ran on
        // the server and aren't in the log. TRUNCATE runs none.
        LoggedStatement::Tables {
            definitions: false, ..
        } if !is_truncate(&query.text) => QueryMeaning::Everything,
        LoggedStatement::Tables {
            data,
            definitions,
            relations,
        } => resolve(data, definitions, definitions && relations, &query.schema),
        LoggedStatement::Everything => QueryMeaning::Everything,
    }
}

/// The texts that servers write themselves, whatever the session's modes.
fn common(text: &[u8]) -> Option<QueryMeaning> {
    match text {
        b"BEGIN" => Some(QueryMeaning::Begin),
        b"COMMIT" | b"ROLLBACK" => Some(QueryMeaning::End),
        _ if text.starts_with(b"XA START ") => Some(QueryMeaning::Begin),
        _ if text.starts_with(b"XA END ") => Some(QueryMeaning::Nothing),
        _ => None,
    }
}

/// Whether the text's bytes mean what an ASCII-based reader with default modes takes them for.
fn is_readable(query: &Query) -> bool {
    let is_utf8 = query.client_collation.is_some_and(is_utf8_collation);
    if !is_utf8 && !query.text.is_ascii() {
        return false;
    }
    match query.sql_mode {
        Some(mode) if mode & MODES_OF_OTHER_TEXT == 0 => true,
        _ => !query.text.iter().any(|byte| matches!(byte, b'"' | b'\\')),
    }
}

fn is_truncate(text: &[u8]) -> bool {
    const WORD: &[u8] = b"TRUNCATE";
    text.get(..WORD.len())
        .is_some_and(|word| word.eq_ignore_ascii_case(WORD))
}

/// The ids of the collations of utf8mb3 and utf8mb4, MySQL's and MariaDB's.
fn is_utf8_collation(id: u16) -> bool {
    matches!(id, 33 | 45 | 46 | 76 | 83 | 192..=215 | 223..=247 | 255..=323 | 576..=610 | 1057 | 1069 | 1070 | 1107 | 1216..=1238 | 1248..=1270)
}

fn resolve(
    names: Vec<TableName>,
    definitions: bool,
    relations: bool,
    schema: &str,
) -> QueryMeaning {
    let tables = names
        .into_iter()
        .map(|name| {
            let schema = name.schema.unwrap_or_else(|| schema.to_owned());
            (!schema.is_empty()).then(|| LoggedTable::new(schema, name.table))
        })
        .collect::<Option<Vec<_>>>();
    match tables {
        Some(tables) => QueryMeaning::Tables {
            tables,
            definitions,
            relations,
        },
        None => QueryMeaning::Everything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query {
            schema: "app".into(),
            text: text.into(),
            sql_mode: Some(0),
            client_collation: Some(33),
            error_code: 0,
        }
    }

    #[test]
    fn unqualified_names_are_of_the_events_schema() {
        let tables = vec![LoggedTable::new("app", "a"), LoggedTable::new("other", "b")];
        let expected = QueryMeaning::Tables {
            tables,
            definitions: true,
            relations: false,
        };
        let mut found = meaning(&query("DROP TABLE a, other.b"));
        if let QueryMeaning::Tables { tables, .. } = &mut found {
            tables.sort();
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn what_may_change_foreign_keys_is_said() {
        let changes_relations = |text: &str| match meaning(&query(text)) {
            QueryMeaning::Tables { relations, .. } => relations,
            _ => true,
        };
        for text in [
            "CREATE TABLE a (i INT, FOREIGN KEY (i) REFERENCES b (i))",
            "create table a (i int references b (i))",
            "ALTER TABLE a RENAME TO b",
            "ALTER TABLE a CHANGE i j INT",
            "RENAME TABLE a TO b, c TO a",
            "DROP DATABASE app",
        ] {
            assert!(changes_relations(text), "{text}");
        }
        for text in [
            "CREATE TABLE a (i INT)",
            "ALTER TABLE a ADD j INT",
            "DROP TABLE a",
            "TRUNCATE a",
        ] {
            assert!(!changes_relations(text), "{text}");
        }
    }

    #[test]
    fn text_in_another_character_set_changes_everything_if_it_goes_beyond_ascii() {
        let mut latin1 = query("DROP TABLE a");
        latin1.client_collation = Some(8);
        assert_ne!(meaning(&latin1), QueryMeaning::Everything);
        latin1.text = b"DROP TABLE \xe4".to_vec();
        assert_eq!(meaning(&latin1), QueryMeaning::Everything);
    }

    #[test]
    fn quotes_under_ansi_quotes_change_everything() {
        let mut ansi = query("CREATE TABLE \"a\" (i INT)");
        ansi.sql_mode = Some(4);
        assert_eq!(meaning(&ansi), QueryMeaning::Everything);
        ansi.text = b"COMMIT".to_vec();
        assert_eq!(meaning(&ansi), QueryMeaning::End);
    }

    #[test]
    fn the_parts_of_a_transaction_are_told_apart() {
        assert_eq!(meaning(&query("BEGIN")), QueryMeaning::Begin);
        assert_eq!(meaning(&query("SAVEPOINT `s1`")), QueryMeaning::Nothing);
        assert_eq!(meaning(&query("ROLLBACK TO `s1`")), QueryMeaning::Nothing);
        assert_eq!(meaning(&query("ROLLBACK")), QueryMeaning::End);
        assert_eq!(meaning(&query("XA END X'78',X'',1")), QueryMeaning::Nothing);
        assert_eq!(
            meaning(&query("XA COMMIT X'78',X'',1")),
            QueryMeaning::XaEnd
        );
        assert_eq!(
            meaning(&query("GRANT SELECT ON app.* TO u@localhost")),
            QueryMeaning::Accounts
        );
        for text in [
            "CREATE VIEW v AS SELECT a FROM t",
            "DROP DATABASE app",
            "DROP VIEW v",
        ] {
            assert_eq!(meaning(&query(text)), QueryMeaning::Definitions, "{text}");
        }
        assert_eq!(
            meaning(&query("insert into a values (1)")),
            QueryMeaning::Everything
        );
    }
}
