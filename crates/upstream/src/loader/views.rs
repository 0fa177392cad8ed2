//! What a view reads: its text is analysed like a client's, and those of the views that it names.

use std::collections::BTreeSet;

use remora_engine::facts::TableFacts;
use remora_engine::reason::TableRefusal;
use remora_engine::tags::check_table;
use remora_sql::{Dialect, Select, TableName, analyse};

use super::questions::{self, VIEW_TEXT_CHARS_MAX};
use crate::catalogue::{TableKey, refused_by_name};
use crate::client::{Client, ClientError};

/// Views within views.
const DEPTH_MAX: usize = 16;
/// Tables and views that one view reads, directly or through others.
const READS_MAX: usize = 64;

/// What was found out about a view.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Its views within views, itself first.
    pub(super) views: Vec<TableKey>,
    /// The tables.
    pub(super) tables: Vec<TableKey>,
    /// What each view's text says.
    selects: Vec<Select>,
}

impl Reads {
    /// What it reads, views before tables.
    pub(super) fn all_but_itself(&self) -> impl Iterator<Item = &TableKey> {
        self.views.iter().skip(1).chain(&self.tables)
    }

    /// Whether the views' texts do with a table's columns only what they may.
    pub(super) fn check_columns(
        &self,
        key: &TableKey,
        facts: &TableFacts,
    ) -> Result<(), TableRefusal> {
        for select in &self.selects {
            let is_it = |name: &TableName| {
                name.schema.as_ref() == Some(&key.schema) && name.table == key.table
            };
            if let Some(number) = select.tables.iter().position(is_it) {
                // Whoever reads the view may convert its columns to dates.
                check_table(select, number, facts, true)?;
            }
        }
        Ok(())
    }
}

/// What a view reads, or why that can't be known. `mode` is `lower_case_table_names`, `dialect` the
/// server's without modes.
pub(super) async fn resolve(
    client: &mut Client,
    view: &TableKey,
    mode: u8,
    dialect: Dialect,
) -> Result<Result<Reads, TableRefusal>, ClientError> {
    let mut reads = Reads::default();
    let mut seen = BTreeSet::from([view.clone()]);
    let mut views = vec![view.clone()];
    for _ in 0..DEPTH_MAX {
        let mut named = BTreeSet::new();
        for text in questions::view_texts(client, &views).await? {
            match read(text.as_deref(), mode, dialect) {
                Ok((select, names)) => {
                    named.extend(names);
                    reads.selects.push(select);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
        reads.views.append(&mut views);
        let named: Vec<_> = named.difference(&seen).cloned().collect();
        seen.extend(named.iter().cloned());
        if seen.len() > READS_MAX {
            return Ok(Err(TableRefusal::View));
        }
        if named.is_empty() {
            return Ok(Ok(reads));
        }
        let kinds = questions::kinds(client, &named).await?;
        for (key, kind) in named.into_iter().zip(kinds) {
            match kind {
                None => return Ok(Err(TableRefusal::Missing)),
                Some(kind) if kind.is_view() => views.push(key),
                Some(_) => reads.tables.push(key),
            }
        }
        if views.is_empty() {
            return Ok(Ok(reads));
        }
    }
    Ok(Err(TableRefusal::View))
}

/// What a view's text says, and the tables and views that it names. The server writes it with each
/// of them qualified and quoted.
fn read(
    text: Option<&str>,
    mode: u8,
    dialect: Dialect,
) -> Result<(Select, Vec<TableKey>), TableRefusal> {
    let text = text.filter(|text| !text.is_empty());
    let text = text.ok_or(TableRefusal::ViewHidden)?;
    // What a backslash means in it depends on how the view was made.
    if text.contains('\\') || text.chars().count() >= VIEW_TEXT_CHARS_MAX {
        return Err(TableRefusal::View);
    }
    let statement = analyse(text.as_bytes(), dialect);
    let select = statement.cacheable.map_err(|_| TableRefusal::View)?;
    // A statement on a cacheable view counts as one that used a table. With this view it wouldn't
    // have. Nor can the server be asked about no tables.
    if select.tables.is_empty() {
        return Err(TableRefusal::View);
    }
    let key = |name: &TableName| {
        let schema = name.schema.clone().ok_or(TableRefusal::View)?;
        match refused_by_name(&schema, &name.table, mode) {
            Some(why) => Err(why),
            None => Ok(TableKey {
                schema,
                table: name.table.clone(),
            }),
        }
    };
    let keys = select.tables.iter().map(key).collect::<Result<_, _>>()?;
    Ok((select, keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Vec<String>, TableRefusal> {
        let (_, keys) = read(Some(text), 0, Dialect::default())?;
        let names = keys.into_iter();
        Ok(names
            .map(|key| format!("{}.{}", key.schema, key.table))
            .collect())
    }

    #[test]
    fn the_texts_that_servers_write_are_read() {
        let mariadb = "select `v1`.`i` AS `i`,ucase(`v1`.`v`) AS `u`,`vv`.`b`.`d` + interval 1 day AS `x`,\
             cast(`v1`.`v` as char(3) charset utf8mb3) AS `c`,count(0) AS `n` from (`vv`.`v1` left join `vv`.`b` \
             on(`v1`.`i` = `vv`.`b`.`i`)) where `v1`.`v` like 'a%' and `vv`.`b`.`d` > '2020-01-01' \
             group by `v1`.`i` having `n` > 1 order by 1 limit 3";
        assert_eq!(found(mariadb).unwrap(), ["vv.v1", "vv.b"]);
        let mysql = "select `vv`.`v1`.`i` AS `i`,upper(`vv`.`v1`.`v`) AS `u`,(`vv`.`b`.`d` + interval 1 day) AS `x` \
             from (`vv`.`v1` left join `vv`.`b` on((`vv`.`v1`.`i` = `vv`.`b`.`i`))) where ((`vv`.`v1`.`v` like 'a%') \
             and (`vv`.`b`.`d` > '2020-01-01'))";
        assert_eq!(found(mysql).unwrap(), ["vv.v1", "vv.b"]);
    }

    #[test]
    fn what_cannot_be_cached_by_itself_cannot_be_cached_in_a_view() {
        for (text, why) in [
            ("", TableRefusal::ViewHidden),
            ("select now() AS `n` from `a`.`b`", TableRefusal::View),
            ("select `a`.`f`(1) AS `n` from `a`.`b`", TableRefusal::View),
            ("select 'x\\'' AS `n` from `a`.`b`", TableRefusal::View),
            ("select 1 AS `n` from `b`", TableRefusal::View),
            ("select 1 AS `n` from `mysql`.`user`", TableRefusal::View),
            ("select 1 AS `1`", TableRefusal::View),
        ] {
            assert_eq!(found(text), Err(why), "{text}");
        }
    }
}
