//! Loads what the catalogue is asked for from `information_schema`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use remora_cache::{AsOf, Tag};
use tokio::time::timeout;

use super::catalogue::{TableFacts, TableKey, TableRefusal};
use super::client::{Client, ClientError, literal, text};
use super::server_facts::{Family, Instance, ServerFacts};
use super::state::{UpstreamShared, count};

/// Foreign keys that change their children, on the whole server. More: nothing is cached, as every
/// table stays unknown.
const FOREIGN_KEYS_MAX: usize = 1_000_000;
/// Tables that may change with one through foreign keys. More: its facts stay unknown.
const CASCADES_MAX: usize = 1_000;
/// How long to wait for a newer watermark before looking again.
const WATERMARK_PATIENCE: Duration = Duration::from_millis(200);

/// From table to tables.
type Edges = HashMap<TableKey, Vec<TableKey>>;

/// The foreign keys that change children with their parent.
struct Cascades {
    as_of: AsOf,
    children: Edges,
    /// The same the other way round; empty where the log names the children.
    parents: Edges,
}

/// Loads tables until the connection fails. `facts` are of the server that the follower follows.
pub(super) async fn run(
    shared: &UpstreamShared,
    client: &mut Client,
    facts: &ServerFacts,
) -> ClientError {
    match load_for_ever(shared, client, facts).await {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

async fn load_for_ever(
    shared: &UpstreamShared,
    client: &mut Client,
    facts: &ServerFacts,
) -> Result<std::convert::Infallible, ClientError> {
    if Instance::ask(client).await? != facts.instance {
        return Err(ClientError::Answer(
            "another server answers than the follower's",
        ));
    }
    let mut cascades = None;
    loop {
        let Some(key) = shared.catalogue.next_request() else {
            shared.catalogue.bell.notified().await;
            continue;
        };
        // Not live: the request is dropped, and made again by whoever needs it then.
        let Some(as_of) = fresh_as_of(shared).await else {
            continue;
        };
        let cascades = fresh_cascades(shared, client, facts.family, &mut cascades, as_of).await?;
        if let Some(facts) = load(client, &key, cascades).await? {
            count(&shared.counters.catalogue_loads, 1);
            shared
                .catalogue
                .insert(key, cascades.as_of.min(as_of), facts);
        }
    }
}

/// A watermark at or above the last change of any definition, taken before the questions are sent.
async fn fresh_as_of(shared: &UpstreamShared) -> Option<AsOf> {
    loop {
        let moved = shared.visible_bell.notified();
        let as_of = shared.timeline.as_of()?;
        if !shared
            .timeline
            .needs_fresher_watermark(&[Tag::definitions()])
        {
            return Some(as_of);
        }
        shared.wake();
        // Made before the look, it hears every ring since.
        let _ = timeout(WATERMARK_PATIENCE, moved).await;
    }
}

async fn fresh_cascades<'a>(
    shared: &UpstreamShared,
    client: &mut Client,
    family: Family,
    slot: &'a mut Option<Cascades>,
    as_of: AsOf,
) -> Result<&'a Cascades, ClientError> {
    let definitions = || std::iter::once(Tag::definitions());
    let is_fresh = |cascades: &Cascades| {
        shared
            .timeline
            .outdated(cascades.as_of, definitions())
            .is_none()
    };
    if !slot.as_ref().is_some_and(is_fresh) {
        let children = load_cascades(client).await?;
        let parents = match family {
            // Its log names the tables that a cascade may reach.
            Family::MariaDb => Edges::new(),
            Family::MySql => reversed(&children),
        };
        *slot = Some(Cascades {
            as_of,
            children,
            parents,
        });
    }
    slot.as_ref().ok_or(ClientError::Answer("no foreign keys"))
}

fn reversed(edges: &Edges) -> Edges {
    let mut reversed = Edges::new();
    for (from, all) in edges {
        for to in all {
            reversed.entry(to.clone()).or_default().push(from.clone());
        }
    }
    reversed
}

async fn load_cascades(client: &mut Client) -> Result<Edges, ClientError> {
    const SQL: &str = "SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_SCHEMA, \
         TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS \
         WHERE DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') \
         OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')";
    let mut children = Edges::new();
    for row in client.query(SQL, FOREIGN_KEYS_MAX).await? {
        let key = |at| -> Result<TableKey, ClientError> {
            let name = |at| text(&row, at).ok_or(ClientError::Answer("a name that isn't UTF-8"));
            Ok(TableKey {
                schema: name(at)?.to_owned(),
                table: name(at + 1)?.to_owned(),
            })
        };
        // `Missing` parents can't be told from NULL names here; such a key changes nobody.
        let (Ok(parent), Ok(child)) = (key(0), key(2)) else {
            continue;
        };
        children.entry(parent).or_default().push(child);
    }
    Ok(children)
}

/// The facts of a table; `None` if they go beyond a bound.
async fn load(
    client: &mut Client,
    key: &TableKey,
    cascades: &Cascades,
) -> Result<Option<TableFacts>, ClientError> {
    let refused = |why| Ok(Some(TableFacts::refused(&key.schema, &key.table, why)));
    let (schema, table) = (literal(&key.schema), literal(&key.table));
    let sql = format!(
        "SELECT TABLE_TYPE, ENGINE, TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}"
    );
    // The comparison ignores letter case; where the server doesn't, two tables may answer.
    let is_it = |name: Option<&str>, wanted: &str| name.is_some_and(|name| name == wanted);
    let rows = client.query(&sql, 1_000).await?;
    let mut rows = rows.iter();
    let row = rows.find(|row| is_it(text(row, 2), &key.schema) && is_it(text(row, 3), &key.table));
    let Some(row) = row else {
        return refused(TableRefusal::Missing);
    };
    let storage = match storage(text(row, 0), text(row, 1)) {
        Ok(storage) => storage,
        Err(why) => return refused(why),
    };
    let (Some(cascades_to), Some(cascaded_from)) = (
        closure(key, &cascades.children),
        closure(key, &cascades.parents),
    ) else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT COALESCE(SUM(EXTRA LIKE '%VIRTUAL%'), 0), COALESCE(SUM(DATA_TYPE = 'time'), 0) \
         FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}"
    );
    let [has_virtual_columns, has_time_columns] = counts_some(client, &sql).await?;
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {schema} \
         AND EVENT_OBJECT_TABLE = {table}"
    );
    let [has_triggers] = counts_some(client, &sql).await?;
    let cacheable = match storage {
        Storage::VisibleLate => Err(TableRefusal::VisibleLate),
        _ if has_virtual_columns => Err(TableRefusal::VirtualColumns),
        _ if has_time_columns => Err(TableRefusal::TimeColumns),
        _ => Ok(()),
    };
    Ok(Some(TableFacts {
        cacheable,
        tag: Tag::table(&key.schema, &key.table),
        writes_are_foreseeable: !has_triggers,
        is_transactional: storage == Storage::Transactional,
        cascades_to,
        cascaded_from: cascaded_from
            .iter()
            .map(|(schema, table)| Tag::table(schema, table))
            .collect(),
    }))
}

/// How an engine shows a commit to other connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// In the order of the log, and before the server reports the position.
    Transactional,
    /// With each statement, whose lock keeps readers out until the change is visible.
    Locked,
    /// With each statement, but readers are let in before the change is visible: the server reports
    /// the position of a concurrent insert while reads still miss its rows. Measured on MariaDB
    /// 10.11: MyISAM up to 1 read in 300 (4.5 ms late), Aria 4 of 5 (1 s late). What wasn't
    /// measured enough or works alike stands here too.
    VisibleLate,
}

/// How a table of this type and engine behaves, or why it can't be cached whatever it holds.
fn storage(table_type: Option<&str>, engine: Option<&str>) -> Result<Storage, TableRefusal> {
    match table_type {
        Some("BASE TABLE") => {}
        Some("SEQUENCE") => return Err(TableRefusal::Sequence),
        Some("SYSTEM VERSIONED") => return Err(TableRefusal::SystemVersioned),
        _ => return Err(TableRefusal::View),
    }
    match engine.unwrap_or_default().to_ascii_lowercase().as_str() {
        "innodb" => Ok(Storage::Transactional),
        "memory" => Ok(Storage::Locked),
        "myisam" | "aria" | "archive" | "rocksdb" => Ok(Storage::VisibleLate),
        _ => Err(TableRefusal::Engine),
    }
}

/// The tables that the edges reach from `key`, itself left out; `None` if they are too many.
fn closure(key: &TableKey, children: &Edges) -> Option<Vec<(String, String)>> {
    let mut seen = BTreeSet::new();
    let mut next = VecDeque::from([key]);
    while let Some(parent) = next.pop_front() {
        for child in children.get(parent).into_iter().flatten() {
            if child != key && seen.insert((child.schema.clone(), child.table.clone())) {
                next.push_back(child);
            }
        }
        if seen.len() > CASCADES_MAX {
            return None;
        }
    }
    Some(seen.into_iter().collect())
}

/// Which of the counts that a query gives in its one row are not zero.
async fn counts_some<const N: usize>(
    client: &mut Client,
    sql: &str,
) -> Result<[bool; N], ClientError> {
    let rows = client.query(sql, 1).await?;
    let row = rows.first().ok_or(ClientError::Answer("no counts"))?;
    let mut some = [false; N];
    for (at, some) in some.iter_mut().enumerate() {
        *some = text(row, at).ok_or(ClientError::Answer("no count"))? != "0";
    }
    Ok(some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> TableKey {
        TableKey {
            schema: "app".into(),
            table: name.into(),
        }
    }

    #[test]
    fn cascades_reach_children_of_children_and_circles_end() {
        let mut children = HashMap::new();
        children.insert(key("a"), vec![key("b"), key("c")]);
        children.insert(key("b"), vec![key("d"), key("a")]);
        children.insert(key("d"), vec![key("d")]);
        let reached: Vec<_> = closure(&key("a"), &children)
            .unwrap()
            .into_iter()
            .map(|(_, table)| table)
            .collect();
        assert_eq!(reached, ["b", "c", "d"]);
        assert_eq!(closure(&key("c"), &children), Some(vec![]));
        let ancestors: Vec<_> = closure(&key("d"), &reversed(&children))
            .unwrap()
            .into_iter()
            .map(|(_, table)| table)
            .collect();
        assert_eq!(ancestors, ["a", "b"]);
    }

    #[test]
    fn only_known_engines_are_cached() {
        assert_eq!(
            storage(Some("BASE TABLE"), Some("InnoDB")),
            Ok(Storage::Transactional)
        );
        assert_eq!(
            storage(Some("BASE TABLE"), Some("MyISAM")),
            Ok(Storage::VisibleLate)
        );
        assert_eq!(
            storage(Some("BASE TABLE"), Some("SPIDER")),
            Err(TableRefusal::Engine)
        );
        assert_eq!(storage(Some("VIEW"), None), Err(TableRefusal::View));
        assert_eq!(
            storage(Some("SYSTEM VIEW"), Some("MEMORY")),
            Err(TableRefusal::View)
        );
    }
}
