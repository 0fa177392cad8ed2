//! Loads what the catalogue is asked for from `information_schema`, several tables at a time.
//!
//! | file | what it does |
//! |---|---|
//! | `questions`, `columns` | asking the server, and what its answers mean |
//! | `virtual_columns` | from which columns virtual ones are calculated |
//! | `foreign_keys`, `relations` | listing foreign keys; what they connect |
//! | `views` | what views read |

mod columns;
mod foreign_keys;
mod questions;
mod relations;
mod views;
mod virtual_columns;

use std::time::{Duration, Instant};

use remora_cache::{AsOf, Tag};
use remora_engine::facts::TableFacts;
use remora_engine::reason::TableRefusal;
use remora_sql::{Dialect, NameUse};
use tokio::time::{sleep, timeout};

use self::columns::{Interner, LoadedColumn, in_order};
use self::questions::{Keys, Kind};
use self::relations::Relations;
use crate::catalogue::{Loaded, TableKey, hidden_code};
use crate::client::{Client, ClientError};
use crate::server_facts::{Family, ServerFacts};
use crate::state::{UpstreamShared, count};

/// How long to wait for a newer watermark before looking again.
const WATERMARK_PATIENCE: Duration = Duration::from_millis(200);
/// While loading is for nothing, it rests so many times as long as it takes: it has a tenth of the
/// time.
const REST: u32 = 9;
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(1);
/// How long to wait with the list of views while the log isn't followed up to now.
const NOT_LIVE_REST: Duration = Duration::from_millis(20);
/// How long to wait with the list of views while a definition is being changed.
const HELD_REST: Duration = Duration::from_millis(5);
/// How long to wait with the list of views after there were too many.
const TOO_MANY_VIEWS_REST: Duration = Duration::from_mins(1);

/// Bounds of the questions on the whole server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanLimits {
    /// How long one may take.
    pub(crate) time: Duration,
    /// How many views are looked at.
    pub(crate) views_max: usize,
}

/// Loads tables until the connection fails, or until accounts have changed since `privileges` (the
/// epoch before it was made): what an account may do everywhere is settled when it connects.
/// `facts` are of the server that the follower follows, and `client` is connected to.
pub(crate) async fn run(
    shared: &UpstreamShared,
    client: &mut Client,
    facts: &ServerFacts,
    privileges: u64,
    limits: ScanLimits,
) -> Result<(), ClientError> {
    let catalogue = &shared.catalogue;
    catalogue.abandon_loading();
    let mut loader = Loader {
        client,
        family: facts.family,
        mode: facts.lower_case_table_names().unwrap_or(0),
        dialect: shared.aged(Dialect::default()),
        has_expressions: facts.tells_generation_expressions(),
        interner: Interner::default(),
    };
    let mut relations = None;
    let mut views_rest_until = Instant::now();
    loop {
        if !catalogue.has_requests() && !catalogue.hidden_code.wants_list() {
            tokio::select! {
                () = catalogue.bell.notified() => {}
                () = catalogue.hidden_code.is_wanted() => {}
            }
            continue;
        }
        if shared.privilege_epoch() != privileges {
            return Ok(());
        }
        if catalogue.hidden_code.wants_list() && Instant::now() >= views_rest_until {
            let rest = loader.list_views(shared, limits).await?;
            views_rest_until = Instant::now() + rest;
            continue;
        }
        if !catalogue.has_requests() {
            let rest = views_rest_until.saturating_duration_since(Instant::now());
            // Meanwhile a table may be asked for.
            let _ = timeout(rest, catalogue.bell.notified()).await;
            continue;
        }
        let mut batch = catalogue.next_batch();
        // Not live: the requests are dropped, and made again by whoever needs it then.
        let Some(as_of) = fresh_as_of(shared, &batch).await else {
            catalogue.abandon_loading();
            continue;
        };
        let asking = catalogue.begin_asking(&mut batch);
        if batch.is_empty() {
            // Whoever needs them when they have been changed asks again.
            catalogue.insert(as_of, as_of, Vec::new());
            continue;
        }
        if !relations
            .as_ref()
            .is_some_and(|known| is_fresh(shared, known))
        {
            let batch_max = catalogue.batch_max();
            let keys = foreign_keys::list(loader.client, facts, batch_max, limits.time).await;
            count_scan_timeout(shared, &keys, limits.time);
            relations = Some(Relations::of(as_of, keys?));
        }
        let Some(relations) = &relations else {
            continue;
        };
        let began = Instant::now();
        let loaded = loader.load(&batch, relations).await?;
        drop(asking);
        count(&shared.counters.catalogue_batches, 1);
        count(&shared.counters.catalogue_loads, batch.len() as u64);
        let wasted = catalogue.insert(as_of, relations.as_of, loaded);
        if let Some(rest) = rest_after(began.elapsed(), batch.len(), wasted) {
            // Those that were asked for long ago would be as useless. What is asked for from here
            // on comes first.
            catalogue.drop_requests();
            sleep(rest).await;
        }
    }
}

/// How long to leave the server alone after loading so many tables, for which others left that had
/// been loaded for nothing. Statements read more tables in turn than there is room for then: each
/// definition leaves before its table is read again, and loading them without a pause would take
/// the server's time from those very statements.
fn rest_after(took: Duration, loaded: usize, wasted: usize) -> Option<Duration> {
    let is_mostly_wasted = wasted * 2 > loaded;
    is_mostly_wasted.then(|| (took * REST).min(REST_MAX))
}

fn count_scan_timeout<T>(
    shared: &UpstreamShared,
    answer: &Result<T, ClientError>,
    allowed: Duration,
) {
    if matches!(answer, Err(ClientError::Timeout(limit)) if *limit == allowed) {
        count(&shared.counters.catalogue_scan_timeouts, 1);
    }
}

/// A watermark at or above the last change of any definition that the facts will depend on, taken
/// before the questions are sent.
async fn fresh_as_of(shared: &UpstreamShared, batch: &[TableKey]) -> Option<AsOf> {
    let of_tables = batch
        .iter()
        .map(|key| Tag::definition(&key.schema, &key.table));
    let tags: Vec<_> = [Tag::definitions(), Tag::relations()]
        .into_iter()
        .chain(of_tables)
        .collect();
    loop {
        let moved = shared.visible_bell.notified();
        let as_of = shared.timeline.as_of()?;
        if !shared.timeline.needs_fresher_watermark(&tags) {
            return Some(as_of);
        }
        shared.wake();
        // Made before the look, it hears every ring since.
        let _ = timeout(WATERMARK_PATIENCE, moved).await;
    }
}

fn is_fresh(shared: &UpstreamShared, relations: &Relations) -> bool {
    let tags = [Tag::definitions(), Tag::relations()];
    let outdated = shared.timeline.outdated(relations.as_of, tags.into_iter());
    outdated.is_none()
}

/// How an engine shows a commit to other connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// In the order of the log, and before the server reports the position.
    Transactional,
    /// With each statement, whose lock keeps readers out until the change is visible. MySQL's log
    /// has it by then: with GTIDs it refuses such a change in a transaction that has changed
    /// others, whose statements would be logged later.
    Locked,
    /// At another moment than the log says: readers are let in before the change is visible, and
    /// the server reports the position of a concurrent insert while reads still miss its rows.
    /// Measured on MariaDB 10.11: MyISAM up to 1 read in 300 (4.5 ms late), Aria 4 of 5 (1 s late).
    /// Or it is visible before it is logged: MariaDB logs what a transaction changes in a MEMORY
    /// table at `COMMIT`, if the session's log format is STATEMENT or MIXED. What wasn't measured
    /// enough or works alike stands here too.
    VisibleLate,
}

/// How a table of this type and engine behaves, or why it can't be cached whatever it holds.
fn storage(
    family: Family,
    table_type: Option<&str>,
    engine: Option<&str>,
) -> Result<Storage, TableRefusal> {
    match table_type {
        Some("BASE TABLE") => {}
        Some("SEQUENCE") => return Err(TableRefusal::Sequence),
        Some("SYSTEM VERSIONED") => return Err(TableRefusal::SystemVersioned),
        _ => return Err(TableRefusal::View),
    }
    match engine.unwrap_or_default().to_ascii_lowercase().as_str() {
        "innodb" => Ok(Storage::Transactional),
        "memory" if family == Family::MySql => Ok(Storage::Locked),
        "memory" | "myisam" | "aria" | "archive" | "rocksdb" => Ok(Storage::VisibleLate),
        _ => Err(TableRefusal::Engine),
    }
}

fn storage_of(family: Family, kind: Option<&Kind>) -> Result<Storage, TableRefusal> {
    let kind = kind.ok_or(TableRefusal::Missing)?;
    storage(family, kind.table_type.as_deref(), kind.engine.as_deref())
}

/// What the server says of a table that isn't refused by its kind.
struct Described {
    storage: Storage,
    columns: Vec<LoadedColumn>,
    keys: Keys,
    has_triggers: bool,
}

struct Loader<'a> {
    client: &'a mut Client,
    family: Family,
    /// `lower_case_table_names`.
    mode: u8,
    dialect: Dialect,
    /// The server tells the expressions of generated columns.
    has_expressions: bool,
    interner: Interner,
}

impl Loader<'_> {
    /// Lists the views that may run code. Gives for how long not to ask again.
    async fn list_views(
        &mut self,
        shared: &UpstreamShared,
        limits: ScanLimits,
    ) -> Result<Duration, ClientError> {
        // While it isn't live nothing is served, and whoever wants the list goes on wanting it.
        let Some(as_of) = fresh_as_of(shared, &[]).await else {
            return Ok(NOT_LIVE_REST);
        };
        let Some(asking) = shared.catalogue.begin_asking_about_all() else {
            return Ok(HELD_REST);
        };
        let began = Instant::now();
        let views = hidden_code::list(self.client, limits.views_max, limits.time, self.dialect);
        let views = views.await;
        count_scan_timeout(shared, &views, limits.time);
        drop(asking);
        let took = began.elapsed();
        let Some(names) = views? else {
            shared.catalogue.hidden_code.give_up();
            count(&shared.counters.catalogue_views_over_bound, 1);
            return Ok(TOO_MANY_VIEWS_REST);
        };
        shared.catalogue.hidden_code.insert(as_of, names);
        Ok(took * REST)
    }

    /// The facts of some tables and views; those that go beyond a bound are left out.
    async fn load(
        &mut self,
        batch: &[TableKey],
        relations: &Relations,
    ) -> Result<Vec<Loaded>, ClientError> {
        let kinds = questions::kinds(self.client, batch).await?;
        let all = batch.iter().cloned().zip(kinds);
        let (views, tables): (Vec<_>, Vec<_>) =
            all.partition(|(_, kind)| kind.as_ref().is_some_and(Kind::is_view));
        let mut loaded = self.load_tables(tables, relations).await?;
        for (key, _) in views {
            let facts = self.view_facts(&key, relations).await?;
            loaded.extend(facts.map(|facts| Loaded { key, facts }));
        }
        Ok(loaded)
    }

    async fn load_tables(
        &mut self,
        batch: Vec<(TableKey, Option<Kind>)>,
        relations: &Relations,
    ) -> Result<Vec<Loaded>, ClientError> {
        let mut loaded = Vec::with_capacity(batch.len());
        let (mut tables, mut storages, mut partitioned) = (Vec::new(), Vec::new(), Vec::new());
        for (key, kind) in batch {
            match storage_of(self.family, kind.as_ref()) {
                Ok(storage) => {
                    tables.push(key);
                    storages.push(storage);
                    partitioned.push(kind.is_some_and(|kind| kind.is_partitioned));
                }
                Err(why) => loaded.push(Loaded {
                    facts: TableFacts::refused(&key.schema, &key.table, why),
                    key,
                }),
            }
        }
        let described = self.describe(tables, &storages).await?;
        for ((key, described), is_partitioned) in described.into_iter().zip(partitioned) {
            let facts = self.table_facts(&key, described, relations);
            loaded.extend(facts.map(|facts| Loaded {
                key,
                facts: TableFacts {
                    is_partitioned,
                    ..facts
                },
            }));
        }
        Ok(loaded)
    }

    /// The facts of a view; `None` if those of a table that it reads go beyond a bound.
    async fn view_facts(
        &mut self,
        view: &TableKey,
        relations: &Relations,
    ) -> Result<Option<TableFacts>, ClientError> {
        let refused = |why| Ok(Some(TableFacts::refused(&view.schema, &view.table, why)));
        let reads = match views::resolve(self.client, view, self.mode, self.dialect).await? {
            Ok(reads) => reads,
            // That a table is missing isn't that the view is.
            Err(TableRefusal::Missing) => return refused(TableRefusal::View),
            Err(why) => return refused(why),
        };
        let columns = self.columns(&reads.views).await?;
        if columns.iter().any(Vec::is_empty) {
            return refused(TableRefusal::View);
        }
        // Whoever reads the view may do anything with its columns.
        let mut columns = columns.iter().flatten();
        let of_columns = columns.find_map(|column| column.facts.kind.refusal(NameUse::Any, true));
        let kinds = questions::kinds(self.client, &reads.tables).await?;
        let tables: Vec<_> = reads.tables.iter().cloned().zip(kinds).collect();
        let tables = self.load_tables(tables, relations).await?;
        if tables.len() < reads.tables.len() {
            return Ok(None);
        }
        let mut facts = facts_of_view(view, reads.all_but_itself());
        if let Some(why) = of_columns {
            facts.cacheable = Err(why);
        }
        for Loaded { key, facts: table } in tables {
            facts.cacheable = facts
                .cacheable
                .and(table.cacheable)
                .and_then(|()| reads.check_columns(&key, &table));
            // Whether or not the log names this table when they change it.
            let parents = table.cascade_parents.iter().map(|parent| parent.tag);
            facts.cascaded_from.extend(parents);
        }
        facts.cascaded_from.sort();
        facts.cascaded_from.dedup();
        Ok(Some(facts))
    }

    async fn columns(&mut self, batch: &[TableKey]) -> Result<Vec<Vec<LoadedColumn>>, ClientError> {
        questions::columns(self.client, batch, self.dialect.natives, &mut self.interner).await
    }

    async fn describe(
        &mut self,
        tables: Vec<TableKey>,
        storages: &[Storage],
    ) -> Result<Vec<(TableKey, Described)>, ClientError> {
        if tables.is_empty() {
            return Ok(Vec::new());
        }
        let has_hash_indexes: Vec<_> = storages.iter().map(|&it| it == Storage::Locked).collect();
        let mut columns = self.columns(&tables).await?;
        if self.has_expressions {
            questions::note_expressions(self.client, &tables, &mut columns).await?;
        }
        let keys = questions::keys(self.client, &tables, &has_hash_indexes).await?;
        let triggers = questions::have_triggers(self.client, &tables).await?;
        let described = storages.iter().zip(columns).zip(keys).zip(triggers).map(
            |(((&storage, columns), keys), has_triggers)| Described {
                storage,
                columns,
                keys,
                has_triggers,
            },
        );
        Ok(tables.into_iter().zip(described).collect())
    }

    fn table_facts(
        &mut self,
        key: &TableKey,
        described: Described,
        relations: &Relations,
    ) -> Option<TableFacts> {
        let cascading = relations.of_table(key)?;
        let cacheable = match described.storage {
            // Dropped since it was seen, or a column that can't be read.
            _ if described.columns.is_empty() => Err(TableRefusal::Missing),
            Storage::VisibleLate => Err(TableRefusal::VisibleLate),
            _ => Ok(()),
        };
        let (mut columns, is_dense) = in_order(described.columns);
        virtual_columns::settle(&mut columns, self.family, self.dialect);
        let columns: Vec<_> = columns.into_iter().map(|column| column.facts).collect();
        let key_columns = questions::key_columns(&described.keys, &columns);
        Some(TableFacts {
            tag: Tag::table(&key.schema, &key.table),
            writes_are_foreseeable: !described.has_triggers,
            is_transactional: described.storage == Storage::Transactional,
            is_partitioned: false,
            cascades_to: cascading.to,
            cascaded_from: Vec::new(),
            cascade_parents: cascading.parents,
            view_of: Vec::new(),
            // Virtual columns are in the log like others.
            columns_match_log: is_dense && !described.keys.has_hidden_columns,
            key_columns: self.interner.key(key_columns),
            has_other_unique_keys: described.keys.has_others,
            columns: if cacheable.is_ok() {
                self.interner.columns(columns)
            } else {
                self.interner.columns(Vec::new())
            },
            cacheable,
        })
    }
}

/// The facts of a view that can be cached as far as is known yet, with the tags of what it
/// reads.
fn facts_of_view<'a>(view: &TableKey, reads: impl Iterator<Item = &'a TableKey>) -> TableFacts {
    let refused = TableFacts::refused(&view.schema, &view.table, TableRefusal::View);
    let mut view_of: Vec<_> = reads
        .map(|key| (key.schema.clone(), key.table.clone()))
        .collect();
    view_of.sort();
    let tag = |(schema, table): &(String, String)| Tag::table(schema, table);
    TableFacts {
        cacheable: Ok(()),
        cascaded_from: view_of.iter().map(tag).collect(),
        view_of,
        ..refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_rests_only_while_it_is_for_nothing() {
        let took = Duration::from_millis(20);
        assert_eq!(rest_after(took, 16, 0), None);
        assert_eq!(rest_after(took, 16, 8), None);
        assert_eq!(rest_after(took, 16, 9), Some(took * 9));
        assert_eq!(rest_after(took, 1, 1), Some(took * 9));
        assert_eq!(rest_after(Duration::from_secs(5), 16, 16), Some(REST_MAX));
    }

    #[test]
    fn only_known_engines_are_cached() {
        use Family::{MariaDb, MySql};
        assert_eq!(
            storage(MariaDb, Some("BASE TABLE"), Some("InnoDB")),
            Ok(Storage::Transactional)
        );
        assert_eq!(
            storage(MariaDb, Some("BASE TABLE"), Some("MyISAM")),
            Ok(Storage::VisibleLate)
        );
        assert_eq!(
            storage(MySql, Some("BASE TABLE"), Some("MEMORY")),
            Ok(Storage::Locked)
        );
        assert_eq!(
            storage(MariaDb, Some("BASE TABLE"), Some("MEMORY")),
            Ok(Storage::VisibleLate)
        );
        assert_eq!(
            storage(MariaDb, Some("BASE TABLE"), Some("SPIDER")),
            Err(TableRefusal::Engine)
        );
        assert_eq!(
            storage(MariaDb, Some("VIEW"), None),
            Err(TableRefusal::View)
        );
        assert_eq!(
            storage(MariaDb, Some("SYSTEM VIEW"), Some("MEMORY")),
            Err(TableRefusal::View)
        );
    }
}
