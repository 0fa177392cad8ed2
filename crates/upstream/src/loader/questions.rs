//! What `information_schema` is asked about a batch of tables, and what its answers say.

use std::collections::HashMap;
use std::fmt::Write as _;

use remora_sql::Natives;
use remora_wire::rows::Row;

use super::columns::{COLUMN_FIELDS, Interner, LoadedColumn, column};
use super::virtual_columns::EXPRESSION_CHARS_MAX;
use crate::catalogue::TableKey;
use crate::client::{Client, ClientError, literal, text};

/// Columns of a table, as many as servers allow.
const COLUMNS_MAX: usize = 4_096;
/// Rows of a table's unique indexes: 64 keys of 16 columns, as many as servers allow.
const INDEX_ROWS_MAX: usize = 64 * 16;
/// Rows with a table's name: where the comparison ignores letter case and the server doesn't,
/// several tables may answer.
const NAMESAKES_MAX: usize = 1_000;
/// Triggers of a table that are looked at: whether there is one is all that counts.
const TRIGGERS_MAX: usize = 10_000;

/// One question about each of some tables, by constants: MariaDB, and MySQL before 8.0, answer them
/// from the one table; a list of names makes them open every table of the schema. The first field
/// is the table's place in the batch.
pub(super) fn of_each(
    batch: &[TableKey],
    fields: &str,
    from: &str,
    [schema_field, table_field]: [&str; 2],
    further: &str,
) -> String {
    let mut sql = String::with_capacity(batch.len() * 256);
    for (place, key) in batch.iter().enumerate() {
        let union = if place == 0 { "" } else { " UNION ALL " };
        let (schema, table) = (literal(&key.schema), literal(&key.table));
        let _ = write!(
            sql,
            "{union}SELECT {place}, {fields} FROM {from} \
             WHERE {schema_field} = {schema} AND {table_field} = {table} {further}"
        );
    }
    sql
}

/// The table of the batch that a row is about. The comparison ignores letter case; so the names in
/// its second and third field must be the ones that were asked for.
fn place(batch: &[TableKey], row: &Row) -> Option<usize> {
    let place: usize = text(row, 0)?.parse().ok()?;
    let key = batch.get(place)?;
    let is_it = text(row, 1) == Some(&key.schema) && text(row, 2) == Some(&key.table);
    is_it.then_some(place)
}

/// The longest text of a view that is read, characters.
pub(super) const VIEW_TEXT_CHARS_MAX: usize = 65_536;

/// The texts of views, in the order of the batch: empty or `None` where the account may not see it.
pub(super) async fn view_texts(
    client: &mut Client,
    batch: &[TableKey],
) -> Result<Vec<Option<String>>, ClientError> {
    let sql = of_each(
        batch,
        &format!("TABLE_SCHEMA, TABLE_NAME, LEFT(VIEW_DEFINITION, {VIEW_TEXT_CHARS_MAX})"),
        "information_schema.VIEWS",
        ["TABLE_SCHEMA", "TABLE_NAME"],
        "",
    );
    let mut texts = vec![None; batch.len()];
    for row in client.query(&sql, batch.len() * NAMESAKES_MAX).await? {
        if let Some(place) = place(batch, &row) {
            texts[place] = text(&row, 3).map(str::to_owned);
        }
    }
    Ok(texts)
}

/// What `information_schema.TABLES` says of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Kind {
    pub(super) table_type: Option<String>,
    pub(super) engine: Option<String>,
    /// It consists of partitions.
    pub(super) is_partitioned: bool,
}

impl Kind {
    pub(super) fn is_view(&self) -> bool {
        self.table_type.as_deref() == Some("VIEW")
    }
}

/// The kinds of tables, in the order of the batch; `None` for those that there aren't.
pub(super) async fn kinds(
    client: &mut Client,
    batch: &[TableKey],
) -> Result<Vec<Option<Kind>>, ClientError> {
    let sql = of_each(
        batch,
        "TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, CREATE_OPTIONS",
        "information_schema.TABLES",
        ["TABLE_SCHEMA", "TABLE_NAME"],
        "",
    );
    let mut kinds = vec![None; batch.len()];
    for row in client.query(&sql, batch.len() * NAMESAKES_MAX).await? {
        if let Some(place) = place(batch, &row) {
            kinds[place] = Some(Kind {
                table_type: text(&row, 3).map(str::to_owned),
                engine: text(&row, 4).map(str::to_owned),
                is_partitioned: text(&row, 5)
                    .is_some_and(|options| options.contains("partitioned")),
            });
        }
    }
    Ok(kinds)
}

/// The columns of tables, in the order of the batch. A table of which a column can't be read has
/// none.
pub(super) async fn columns(
    client: &mut Client,
    batch: &[TableKey],
    natives: Natives,
    interner: &mut Interner,
) -> Result<Vec<Vec<LoadedColumn>>, ClientError> {
    let sql = of_each(
        batch,
        &format!("TABLE_SCHEMA, TABLE_NAME, {COLUMN_FIELDS}"),
        "information_schema.COLUMNS",
        ["TABLE_SCHEMA", "TABLE_NAME"],
        "",
    );
    let mut columns: Vec<Option<Vec<LoadedColumn>>> = Vec::new();
    columns.resize_with(batch.len(), || Some(Vec::new()));
    for row in client.query(&sql, batch.len() * COLUMNS_MAX).await? {
        let Some(place) = place(batch, &row) else {
            continue;
        };
        match (column(&row, 3, natives, interner), &mut columns[place]) {
            (Some(column), Some(list)) => list.push(column),
            (_, list) => *list = None,
        }
    }
    Ok(columns.into_iter().map(Option::unwrap_or_default).collect())
}

/// Notes the expressions of virtual columns, in the order of the batch. Tables without such columns
/// aren't asked about.
pub(super) async fn note_expressions(
    client: &mut Client,
    batch: &[TableKey],
    columns: &mut [Vec<LoadedColumn>],
) -> Result<(), ClientError> {
    let (keys, mut lists): (Vec<_>, Vec<_>) = batch
        .iter()
        .cloned()
        .zip(columns)
        .filter(|(_, columns)| columns.iter().any(LoadedColumn::is_virtual))
        .unzip();
    if keys.is_empty() {
        return Ok(());
    }
    let fields = format!(
        "TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LEFT(GENERATION_EXPRESSION, {EXPRESSION_CHARS_MAX})"
    );
    let sql = of_each(
        &keys,
        &fields,
        "information_schema.COLUMNS",
        ["TABLE_SCHEMA", "TABLE_NAME"],
        "AND EXTRA LIKE '%VIRTUAL%'",
    );
    for row in client.query(&sql, keys.len() * COLUMNS_MAX).await? {
        let (Some(place), Some(name)) = (place(&keys, &row), text(&row, 3)) else {
            continue;
        };
        let mut columns = lists[place].iter_mut();
        if let Some(column) = columns.find(|column| *column.facts.name == *name) {
            column.expression = text(&row, 4).map(Into::into);
        }
    }
    Ok(())
}

/// The unique keys of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    /// Sequence and name of the primary key's columns.
    pub(super) primary: Vec<(u32, String)>,
    pub(super) has_others: bool,
    /// An index is over an expression, or a unique one is kept by hashes: the server has hidden
    /// columns for it.
    pub(super) has_hidden_columns: bool,
}

/// The unique keys of tables, in the order of the batch. `engines` says of each whether hash
/// indexes are its own.
pub(super) async fn keys(
    client: &mut Client,
    batch: &[TableKey],
    has_hash_indexes: &[bool],
) -> Result<Vec<Keys>, ClientError> {
    let sql = of_each(
        batch,
        "TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX, COLUMN_NAME, INDEX_TYPE",
        "information_schema.STATISTICS",
        ["TABLE_SCHEMA", "TABLE_NAME"],
        "AND (NON_UNIQUE = 0 OR COLUMN_NAME IS NULL)",
    );
    let mut all = vec![Keys::default(); batch.len()];
    for row in client.query(&sql, batch.len() * INDEX_ROWS_MAX).await? {
        let Some(place) = place(batch, &row) else {
            continue;
        };
        let keys = &mut all[place];
        let sequence = text(&row, 5).and_then(|digits| digits.parse().ok());
        match (text(&row, 3), sequence, text(&row, 6)) {
            (Some("PRIMARY"), Some(sequence), Some(column)) => {
                keys.primary.push((sequence, column.to_owned()));
            }
            (_, _, Some(_)) => keys.has_others = true,
            _ => {
                keys.has_others = true;
                keys.has_hidden_columns = true;
            }
        }
        keys.has_hidden_columns |= text(&row, 7) == Some("HASH") && !has_hash_indexes[place];
    }
    Ok(all)
}

/// Which tables have triggers, in the order of the batch.
pub(super) async fn have_triggers(
    client: &mut Client,
    batch: &[TableKey],
) -> Result<Vec<bool>, ClientError> {
    let sql = of_each(
        batch,
        "EVENT_OBJECT_TABLE",
        "information_schema.TRIGGERS",
        ["EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE"],
        "",
    );
    let mut have = vec![false; batch.len()];
    for row in client.query(&sql, TRIGGERS_MAX.max(batch.len())).await? {
        // Those of namesakes count too: that is only coarser.
        let place = text(&row, 0).and_then(|digits| digits.parse::<usize>().ok());
        match place.and_then(|place| have.get_mut(place)) {
            Some(have) => *have = true,
            None => return Err(ClientError::Answer("a trigger of no table")),
        }
    }
    Ok(have)
}

/// The places of a primary key's columns; empty if there is none, or one of them isn't among the
/// columns.
pub(super) fn key_columns(keys: &Keys, columns: &[remora_engine::facts::ColumnFacts]) -> Vec<u16> {
    let places: HashMap<&str, u16> = columns
        .iter()
        .zip(0..)
        .map(|(column, place)| (&*column.name, place))
        .collect();
    let mut primary: Vec<_> = keys.primary.iter().collect();
    primary.sort();
    let found: Option<Vec<u16>> = primary
        .into_iter()
        .map(|(_, name)| places.get(name.as_str()).copied())
        .collect();
    found.unwrap_or_default()
}
