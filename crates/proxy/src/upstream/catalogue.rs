//! What tables are: whether results from them can be cached, and what else changes with them.
//!
//! Sessions ask without waiting. What isn't known is asked of the server by the loader
//! (`loader.rs`) on a connection of its own; until then the statement passes through.
//!
//! Facts are valid by the same rule as results: they carry the watermark taken before their
//! questions were sent, and are used only while no definition has changed since.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use remora_cache::{AsOf, Tag, Timeline};
use tokio::sync::Notify;

/// Shards of the map: more than threads that miss at the same time.
const SHARDS: usize = 16;
/// `lower_case_table_names` isn't known yet.
const UNKNOWN: u8 = u8::MAX;
/// The longest name that a server allows, in bytes (64 characters of up to 4 bytes).
const NAME_BYTES_MAX: usize = 256;

/// Why results from a table can't be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableRefusal {
    /// It doesn't exist.
    Missing,
    /// It is a view.
    View,
    /// It is a sequence.
    Sequence,
    /// It has system versioning.
    SystemVersioned,
    /// Its engine isn't on the list of those whose every change is logged.
    Engine,
    /// It belongs to the server itself.
    SystemSchema,
    /// Its engine shows changes later than the log says.
    VisibleLate,
    /// It has virtual generated columns.
    VirtualColumns,
    /// It has columns of type TIME.
    TimeColumns,
    /// Its name goes beyond ASCII on a server that folds letter case.
    Name,
}

impl TableRefusal {
    /// Every reason.
    pub const ALL: [TableRefusal; 10] = [
        TableRefusal::Missing,
        TableRefusal::View,
        TableRefusal::Sequence,
        TableRefusal::SystemVersioned,
        TableRefusal::Engine,
        TableRefusal::SystemSchema,
        TableRefusal::VisibleLate,
        TableRefusal::VirtualColumns,
        TableRefusal::TimeColumns,
        TableRefusal::Name,
    ];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            TableRefusal::Missing => "missing",
            TableRefusal::View => "view",
            TableRefusal::Sequence => "sequence",
            TableRefusal::SystemVersioned => "system_versioned",
            TableRefusal::Engine => "engine",
            TableRefusal::SystemSchema => "system_schema",
            TableRefusal::VisibleLate => "visible_late",
            TableRefusal::VirtualColumns => "virtual_columns",
            TableRefusal::TimeColumns => "time_columns",
            TableRefusal::Name => "name",
        }
    }

    /// What it means, in a sentence.
    pub const fn describe(self) -> &'static str {
        match self {
            TableRefusal::Missing => {
                "The table doesn't exist, or the follower's account can't see it."
            }
            TableRefusal::View => "It is a view; what it reads isn't known.",
            TableRefusal::Sequence => "It is a sequence: reading it changes it.",
            TableRefusal::SystemVersioned => {
                "It has system versioning: results depend on the time."
            }
            TableRefusal::Engine => {
                "Its engine isn't one of those whose every change is known to reach the log."
            }
            TableRefusal::VisibleLate => {
                "Its engine (MyISAM, Aria, ARCHIVE, ROCKSDB) may show a change to readers only after the server has reported it as visible; InnoDB and MEMORY don't."
            }
            TableRefusal::TimeColumns => {
                "It has columns of type TIME, which the server completes with today's date when it compares them with dates."
            }
            TableRefusal::SystemSchema => "It belongs to the server itself.",
            TableRefusal::VirtualColumns => {
                "It has virtual generated columns, whose values may depend on more than the table."
            }
            TableRefusal::Name => {
                "Its name goes beyond ASCII on a server that folds letter case (lower_case_table_names)."
            }
        }
    }
}

/// What is known of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFacts {
    /// Whether results from it can be cached.
    pub cacheable: Result<(), TableRefusal>,
    /// The tag of the whole table.
    pub tag: Tag,
    /// A write to it changes it and `cascades_to`, and nothing else: it is a table of its own (no
    /// view, no stand-in for others), and no trigger runs.
    pub writes_are_foreseeable: bool,
    /// Changes stay invisible to others until the commit (InnoDB).
    pub is_transactional: bool,
    /// Tables that may change with it through foreign keys, directly or through others.
    pub cascades_to: Vec<(String, String)>,
    /// Tables whose changes may change it through foreign keys, directly or through others, without the log
    /// naming it: MySQL's log says nothing of cascades. What is read from it is outdated with them too.
    pub cascaded_from: Vec<Tag>,
}

impl TableFacts {
    pub(super) fn refused(schema: &str, table: &str, why: TableRefusal) -> TableFacts {
        TableFacts {
            cacheable: Err(why),
            tag: Tag::table(schema, table),
            writes_are_foreseeable: false,
            is_transactional: false,
            cascades_to: Vec::new(),
            cascaded_from: Vec::new(),
        }
    }
}

/// The answer to a look-up.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// Valid facts.
    Known(Arc<TableFacts>),
    /// They have been asked for (or too many others wait): not this time.
    Loading,
    /// Nothing can be known now: the log isn't followed.
    Unavailable,
}

#[derive(Debug)]
struct Known {
    as_of: AsOf,
    facts: Arc<TableFacts>,
    /// Asked for since the last time that room was needed.
    used: AtomicBool,
}

/// A table to load.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TableKey {
    pub(super) schema: String,
    pub(super) table: String,
}

#[derive(Debug, Default)]
struct Requests {
    queue: VecDeque<TableKey>,
    queued: HashSet<TableKey>,
}

type Shard = RwLock<HashMap<TableKey, Known>>;

/// The catalogue. See the module's documentation.
pub struct Catalogue {
    timeline: Arc<Timeline>,
    shards: Box<[Shard]>,
    hasher: RandomState,
    shard_tables_max: usize,
    requests: Mutex<Requests>,
    queue_max: usize,
    lower_case_table_names: AtomicU8,
    pub(super) bell: Notify,
    hits: AtomicU64,
    dropped: AtomicU64,
    evictions: AtomicU64,
}

impl Catalogue {
    /// Room for `tables_max` tables, and for `queue_max` that wait to be loaded.
    pub fn new(timeline: Arc<Timeline>, tables_max: usize, queue_max: usize) -> Catalogue {
        Catalogue {
            timeline,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            hasher: RandomState::new(),
            shard_tables_max: tables_max.div_ceil(SHARDS).max(1),
            requests: Mutex::new(Requests::default()),
            queue_max,
            lower_case_table_names: AtomicU8::new(UNKNOWN),
            bell: Notify::new(),
            hits: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// What is known of a table, by its names as a statement writes them. Never waits.
    pub fn lookup(&self, schema: &str, table: &str) -> Lookup {
        let mode = self.lower_case_table_names.load(Ordering::Relaxed);
        if mode == UNKNOWN || !self.timeline.is_live() {
            return Lookup::Unavailable;
        }
        if let Some(why) = refused_by_name(schema, table, mode) {
            return Lookup::Known(Arc::new(TableFacts::refused(schema, table, why)));
        }
        let fold = |name: &str| {
            if mode == 0 {
                name.into()
            } else {
                name.to_ascii_lowercase()
            }
        };
        let key = TableKey {
            schema: fold(schema),
            table: fold(table),
        };
        if let Some(facts) = self.find(&key) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Lookup::Known(facts);
        }
        self.request(key);
        Lookup::Loading
    }

    /// How many tables are known, outdated ones included.
    pub fn len(&self) -> usize {
        let len = |shard: &Shard| shard.read().unwrap_or_else(PoisonError::into_inner).len();
        self.shards.iter().map(len).sum()
    }

    /// Whether no table is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Look-ups that found valid facts, requests dropped, facts evicted; since the start.
    pub fn counts(&self) -> [u64; 3] {
        [&self.hits, &self.dropped, &self.evictions].map(|count| count.load(Ordering::Relaxed))
    }

    pub(super) fn set_lower_case_table_names(&self, mode: u8) {
        self.lower_case_table_names.store(mode, Ordering::Relaxed);
    }

    pub(super) fn next_request(&self) -> Option<TableKey> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let key = requests.queue.pop_front()?;
        requests.queued.remove(&key);
        Some(key)
    }

    pub(super) fn insert(&self, key: TableKey, as_of: AsOf, facts: TableFacts) {
        let mut shard = self
            .shard(&key)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= self.shard_tables_max && !shard.contains_key(&key) {
            self.make_room(&mut shard);
        }
        let known = Known {
            as_of,
            facts: Arc::new(facts),
            used: AtomicBool::new(true),
        };
        shard.insert(key, known);
    }

    fn find(&self, key: &TableKey) -> Option<Arc<TableFacts>> {
        let shard = self
            .shard(key)
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let known = shard.get(key)?;
        if self.is_outdated(known) {
            return None;
        }
        if !known.used.load(Ordering::Relaxed) {
            known.used.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(&known.facts))
    }

    fn is_outdated(&self, known: &Known) -> bool {
        let definitions = std::iter::once(Tag::definitions());
        self.timeline.outdated(known.as_of, definitions).is_some()
    }

    /// Drops what is outdated or hasn't been asked for since the last time; at least one.
    fn make_room(&self, shard: &mut HashMap<TableKey, Known>) {
        let before = shard.len();
        shard.retain(|_, known| {
            !self.is_outdated(known) && known.used.swap(false, Ordering::Relaxed)
        });
        if shard.len() == before
            && let Some(victim) = shard.keys().next().cloned()
        {
            shard.remove(&victim);
        }
        let gone = u64::try_from(before - shard.len()).unwrap_or(u64::MAX);
        self.evictions.fetch_add(gone, Ordering::Relaxed);
    }

    fn shard(&self, key: &TableKey) -> &Shard {
        let hash = self.hasher.hash_one(key);
        &self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or(0)]
    }

    fn request(&self, key: TableKey) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.queued.contains(&key) {
            return;
        }
        if requests.queue.len() >= self.queue_max {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        requests.queued.insert(key.clone());
        requests.queue.push_back(key);
        drop(requests);
        self.bell.notify_one();
    }
}

fn refused_by_name(schema: &str, table: &str, mode: u8) -> Option<TableRefusal> {
    const SYSTEM: [&str; 4] = ["mysql", "information_schema", "performance_schema", "sys"];
    if SYSTEM
        .iter()
        .any(|system| schema.eq_ignore_ascii_case(system))
    {
        return Some(TableRefusal::SystemSchema);
    }
    if schema.len().max(table.len()) > NAME_BYTES_MAX {
        return Some(TableRefusal::Missing);
    }
    // The server folds with its own Unicode tables; which ones depends on its version.
    let is_ascii = schema.is_ascii() && table.is_ascii();
    (mode != 0 && !is_ascii).then_some(TableRefusal::Name)
}

#[cfg(test)]
mod tests {
    use remora_cache::{BrokenRules, Position, TimelineLimits};

    use super::*;

    fn at(offset: u64) -> Position {
        Position::new(1, offset).unwrap()
    }

    fn catalogue(tables_max: usize, queue_max: usize, mode: u8) -> Catalogue {
        let limits = TimelineLimits {
            tag_slots: 64,
            fence_slots: 64,
            lag_ms_max: 1_000,
        };
        let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
        timeline.restart(at(100));
        timeline.prove(timeline.epoch(), 1);
        let catalogue = Catalogue::new(timeline, tables_max, queue_max);
        catalogue.set_lower_case_table_names(mode);
        catalogue
    }

    fn load(catalogue: &Catalogue) -> Option<TableKey> {
        let key = catalogue.next_request()?;
        let as_of = catalogue.timeline.as_of()?;
        let facts = TableFacts::refused(&key.schema, &key.table, TableRefusal::View);
        catalogue.insert(key.clone(), as_of, facts);
        Some(key)
    }

    #[test]
    fn facts_are_used_until_a_definition_changes() {
        let catalogue = catalogue(100, 10, 0);
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Loading));
        assert!(load(&catalogue).is_some());
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Known(_)));
        catalogue.timeline.touch(Tag::definitions(), at(200));
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Loading));
        // Loaded with a watermark below the change, they are outdated at once.
        assert!(load(&catalogue).is_some());
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Loading));
        catalogue
            .timeline
            .advance_visible(catalogue.timeline.epoch(), at(200));
        assert!(load(&catalogue).is_some());
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Known(_)));
    }

    #[test]
    fn nothing_is_known_while_the_log_is_not_followed() {
        let catalogue = catalogue(100, 10, 0);
        catalogue.lookup("app", "t");
        load(&catalogue);
        catalogue.timeline.suspend();
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Unavailable));
    }

    #[test]
    fn letter_case_is_folded_where_the_server_folds_it() {
        let folding = catalogue(100, 10, 1);
        folding.lookup("App", "T");
        assert_eq!(
            load(&folding).unwrap(),
            TableKey {
                schema: "app".into(),
                table: "t".into()
            }
        );
        assert!(matches!(folding.lookup("aPP", "t"), Lookup::Known(_)));
        let Lookup::Known(facts) = folding.lookup("app", "ü") else {
            panic!("not refused")
        };
        assert_eq!(facts.cacheable, Err(TableRefusal::Name));
        let exact = catalogue(100, 10, 0);
        exact.lookup("App", "T");
        load(&exact);
        assert!(matches!(exact.lookup("app", "t"), Lookup::Loading));
    }

    #[test]
    fn the_catalogue_and_its_queue_are_bounded() {
        let catalogue = catalogue(32, 10, 0);
        for number in 0..100 {
            catalogue.lookup("app", &format!("t{number}"));
            if number >= 10 {
                load(&catalogue);
            }
        }
        while load(&catalogue).is_some() {}
        assert!(catalogue.len() <= 32, "{}", catalogue.len());
        for number in 1_000..1_100 {
            catalogue.lookup("app", &format!("t{number}"));
        }
        let waiting = std::iter::from_fn(|| catalogue.next_request()).count();
        assert_eq!(waiting, 10);
    }
}
