//! The foreign keys that change their children, on the whole server.
//!
//! `information_schema.REFERENTIAL_CONSTRAINTS` has them on every server. But MariaDB, and MySQL
//! before 8.0, open every table to answer: on MariaDB 10.11 with 10,000 tables it took 3 to 6 s,
//! and far longer beside other load. Those servers have InnoDB's own list too, which costs as much
//! as there are keys; and only InnoDB has such keys there, as far as tables are cached. Servers
//! show it to accounts with `PROCESS`. So it is asked first, and `information_schema` where that
//! isn't allowed.
//!
//! InnoDB's list is as new as the other: a statement that changes definitions changes it before it
//! is in the log, and the server reads it under the lock that such a statement holds until its
//! change is committed.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use remora_wire::rows::Row;

use super::questions::of_each;
use crate::catalogue::TableKey;
use crate::client::{Client, ClientError, text};
use crate::server_facts::ServerFacts;

/// Foreign keys that change their children, on the whole server. More: nothing is cached, as every
/// table stays unknown.
const FOREIGN_KEYS_MAX: usize = 1_000_000;
/// Columns of one foreign key, as many as servers allow, and all keys of one table.
const KEY_COLUMNS_MAX: usize = 16 * 64;

/// A foreign key that changes its child.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ForeignKey {
    pub(super) parent: TableKey,
    pub(super) child: TableKey,
    /// The referenced columns, in the parent. Empty if they aren't known.
    pub(super) columns: Vec<String>,
}

/// Asks the server. The list may take `limit`; at most `batch_max` tables are named in one
/// question.
pub(super) async fn list(
    client: &mut Client,
    facts: &ServerFacts,
    batch_max: usize,
    limit: Duration,
) -> Result<Vec<ForeignKey>, ClientError> {
    if facts.lists_foreign_keys_slowly() {
        match of_innodb(client, limit).await {
            Ok(Some(keys)) => return Ok(keys),
            // Not allowed, or names that can't be read.
            Ok(None) | Err(ClientError::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    of_information_schema(client, batch_max, limit).await
}

/// By InnoDB's own list; `None` if a name in it can't be read, or is too long for it.
async fn of_innodb(
    client: &mut Client,
    limit: Duration,
) -> Result<Option<Vec<ForeignKey>>, ClientError> {
    // On delete: cascade 1, set null 2; on update: cascade 4, set null 8.
    const KEYS: &str = "SELECT ID, REF_NAME, FOR_NAME FROM information_schema.INNODB_SYS_FOREIGN \
         WHERE TYPE & 15 <> 0";
    const COLUMNS: &str = "SELECT ID, REF_COL_NAME FROM information_schema.INNODB_SYS_FOREIGN_COLS";
    // The list has 193 characters for `schema/table` and `schema/constraint`, each as in file names
    // but the constraint's, which has up to 64. MariaDB cuts longer ones off, so that another table
    // may be named. MySQL 5.7 leaves the key out. Partitions (`#P#`) are none: their tables have no
    // keys.
    const LONG_NAME: &str = "SELECT 1 FROM information_schema.INNODB_SYS_TABLES \
         WHERE CHAR_LENGTH(NAME) > 192 AND LOCATE('#P#', NAME) = 0 OR LOCATE('/', NAME) > 128 \
         LIMIT 1";
    let rows = client.query_within(KEYS, FOREIGN_KEYS_MAX, limit).await?;
    let mut columns: HashMap<String, Vec<String>> = HashMap::new();
    if !rows.is_empty() {
        let columns_max = FOREIGN_KEYS_MAX * KEY_COLUMNS_MAX;
        for row in client.query_within(COLUMNS, columns_max, limit).await? {
            if let (Some(id), Some(column)) = (text(&row, 0), text(&row, 1)) {
                columns
                    .entry(id.to_owned())
                    .or_default()
                    .push(column.to_owned());
            }
        }
    }
    // Such names are looked for last: then no key can have got one unnoticed.
    if !client.query_within(LONG_NAME, 1, limit).await?.is_empty() {
        return Ok(None);
    }
    Ok(rows
        .iter()
        .map(|row| innodb_key(row, &mut columns))
        .collect())
}

fn innodb_key(row: &Row, columns: &mut HashMap<String, Vec<String>>) -> Option<ForeignKey> {
    Some(ForeignKey {
        parent: of_file_name(text(row, 1)?)?,
        child: of_file_name(text(row, 2)?)?,
        columns: columns.remove(text(row, 0)?).unwrap_or_default(),
    })
}

/// A table by InnoDB's name of it: `schema/table`, both as in file names.
fn of_file_name(name: &str) -> Option<TableKey> {
    let (schema, table) = name.split_once('/')?;
    Some(TableKey {
        schema: decode(schema)?,
        table: decode(table)?,
    })
}

/// A name as it is in file names: what isn't a letter, a digit or `_` is `@` and four hexadecimal
/// digits. Letters beyond ASCII have shorter codes of their own: `None` for those.
fn decode(encoded: &str) -> Option<String> {
    let mut decoded = String::with_capacity(encoded.len());
    let mut parts = encoded.split('@');
    decoded.push_str(parts.next()?);
    for part in parts {
        let (code, rest) = part.split_at_checked(4)?;
        let code = code
            .starts_with("00")
            .then(|| u8::from_str_radix(&code[2..], 16).ok())?;
        decoded.push(code.filter(u8::is_ascii)?.into());
        decoded.push_str(rest);
    }
    Some(decoded)
}

/// By the list that every server has.
async fn of_information_schema(
    client: &mut Client,
    batch_max: usize,
    limit: Duration,
) -> Result<Vec<ForeignKey>, ClientError> {
    const SQL: &str = "SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_SCHEMA, \
         TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS \
         WHERE DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') \
         OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')";
    let mut keys = Vec::new();
    for row in client.query_within(SQL, FOREIGN_KEYS_MAX, limit).await? {
        let name = |at| text(&row, at).map(str::to_owned);
        let key = |at| {
            Some(TableKey {
                schema: name(at)?,
                table: name(at + 1)?,
            })
        };
        // `Missing` parents can't be told from NULL names here; such a key changes nobody.
        if let (Some(parent), Some(child), Some(constraint)) = (key(0), key(2), name(4)) {
            keys.push((parent, child, constraint));
        }
    }
    let children: BTreeSet<_> = keys.iter().map(|(_, child, _)| child).collect();
    let children: Vec<_> = children.into_iter().cloned().collect();
    let mut columns = HashMap::new();
    for batch in children.chunks(batch_max.max(1)) {
        load_columns(client, batch, &mut columns).await?;
    }
    let keys = keys
        .into_iter()
        .map(|(parent, child, constraint)| ForeignKey {
            columns: columns
                .remove(&(child.clone(), constraint))
                .unwrap_or_default(),
            parent,
            child,
        });
    Ok(keys.collect())
}

/// The referenced columns of the foreign keys of some tables, by table and constraint.
async fn load_columns(
    client: &mut Client,
    batch: &[TableKey],
    columns: &mut HashMap<(TableKey, String), Vec<String>>,
) -> Result<(), ClientError> {
    let sql = of_each(
        batch,
        "TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, REFERENCED_COLUMN_NAME",
        "information_schema.KEY_COLUMN_USAGE",
        ["TABLE_SCHEMA", "TABLE_NAME"],
        "AND REFERENCED_COLUMN_NAME IS NOT NULL",
    );
    for row in client.query(&sql, batch.len() * KEY_COLUMNS_MAX).await? {
        let name = |at| text(&row, at).map(str::to_owned);
        if let (Some(schema), Some(table), Some(constraint), Some(column)) =
            (name(1), name(2), name(3), name(4))
        {
            let child = TableKey { schema, table };
            columns.entry((child, constraint)).or_default().push(column);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_innodb_writes_them() {
        for (written, name) in [
            ("app/orders", Some(("app", "orders"))),
            ("fk@002da@0020b/Pa@0024r@002d1", Some(("fk-a b", "Pa$r-1"))),
            // chäld
            ("app/ch@0kld", None),
            ("app/@4e2d", None),
            ("app/short@002", None),
            ("app/@00é1", None),
            ("no slash", None),
        ] {
            let key = name.map(|(schema, table)| TableKey {
                schema: schema.into(),
                table: table.into(),
            });
            assert_eq!(of_file_name(written), key, "{written}");
        }
    }
}
