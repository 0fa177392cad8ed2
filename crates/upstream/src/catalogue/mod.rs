//! What tables are: whether results from them can be cached, and what else changes with them.
//!
//! | file | what it does |
//! |---|---|
//! | `store` | where facts ([`remora_engine::facts::TableFacts`]) are kept, and what makes room |
//! | `hidden_code` | which views may run code |
//! | `yielding` | keeping out of the way of statements that change definitions |
//!
//! Sessions ask without waiting. What isn't known is asked of the server by the
//! `loader` on a connection of its own; until then the statement passes through.
//! While definitions leave before anybody asks for them again, because more tables are read in turn
//! than there is room for, the loader rests most of the time.
//!
//! # The rule
//!
//! Facts carry the watermark `as_of` taken before their questions were sent. They are used only
//! while neither the table's own definition, nor definitions as a whole, nor the foreign keys have
//! changed since (by [`Tag::definition`], [`Tag::definitions`], [`Tag::relations`]), as the
//! follower has applied the log so far.
//!
//! > A result filled with an `as_of` of `A` and planned with facts `F` is right if `F` describes
//! > the tables at `A` and at every later position up to the next change of definitions, which
//! > touches the table's own tag too and so outdates the result.
//!
//! Let `F` be asked for after `B` was visible. It describes each table at some moment at or after
//! `B`. When it is used, the follower has applied at least `A` (the fill took the lesser of what is
//! visible and what is applied, and took it before it looked here), and has seen no change of the
//! definition between `B` and there. So either `F` describes the table at `A`; or it already shows
//! a change beyond `A`, and that change will outdate the result, whichever the statement then read.
//! Either way no result is served that was planned with another definition than it was read with.

pub(crate) mod hidden_code;
mod store;
mod yielding;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use remora_cache::{AsOf, Tag, Timeline};
use remora_engine::facts::TableFacts;
use remora_engine::reason::TableRefusal;
use tokio::sync::Notify;

pub use self::hidden_code::{CodeBasis, HiddenCode};
use self::store::{Store, StoredFacts};

/// `lower_case_table_names` isn't known yet.
const UNKNOWN: u8 = u8::MAX;
/// The longest name that a server allows, in bytes (64 characters of up to 4 bytes).
const NAME_BYTES_MAX: usize = 256;

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

/// A table to load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableKey {
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl TableKey {
    fn to_bytes(&self) -> Vec<u8> {
        [self.schema.as_bytes(), &[0], self.table.as_bytes()].concat()
    }
}

/// A table's facts, as they were loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) key: TableKey,
    pub(crate) facts: TableFacts,
}

/// A table that is known.
#[derive(Debug)]
pub struct KnownTable {
    /// Its schema, as it is kept.
    pub schema: String,
    /// Its name, as it is kept.
    pub table: String,
    /// What is known of it.
    pub facts: Arc<TableFacts>,
    /// Whether that holds still.
    pub is_current: bool,
}

#[derive(Debug, Default)]
struct Requests {
    queue: VecDeque<TableKey>,
    /// Those that are being asked for.
    loading: Vec<TableKey>,
    /// Both.
    wanted: HashSet<TableKey>,
    /// Those that a statement on its way changes, and how many such statements there are.
    held: HashMap<TableKey, usize>,
    /// Whether questions are on their way.
    is_asking: bool,
    /// After a failure: so many are asked for one by one, so that one that can't be loaded doesn't
    /// keep others from it.
    singly: usize,
}

/// The catalogue. See the module's documentation.
pub struct Catalogue {
    /// Which views may run code.
    pub hidden_code: HiddenCode,
    timeline: Arc<Timeline>,
    store: Store,
    requests: Mutex<Requests>,
    queue_max: usize,
    batch_max: usize,
    lower_case_table_names: AtomicU8,
    /// Rung when a table is to be loaded.
    pub(crate) bell: Notify,
    /// Rung when no questions are on their way any more.
    quiet_bell: Notify,
    dropped: AtomicU64,
}

impl Catalogue {
    /// Room for `tables_max` tables, and for `queue_max` that wait to be loaded, `batch_max` at a
    /// time.
    pub fn new(
        timeline: Arc<Timeline>,
        tables_max: usize,
        queue_max: usize,
        batch_max: usize,
    ) -> Catalogue {
        Catalogue {
            hidden_code: HiddenCode::new(Arc::clone(&timeline)),
            timeline,
            store: Store::new(tables_max),
            requests: Mutex::new(Requests::default()),
            queue_max,
            batch_max: batch_max.max(1),
            lower_case_table_names: AtomicU8::new(UNKNOWN),
            bell: Notify::new(),
            quiet_bell: Notify::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// What is known of a table, by its names as a statement writes them. Never waits. If nothing
    /// is, it is asked for.
    pub fn lookup(&self, schema: &str, table: &str) -> Lookup {
        let Some(mode) = self.mode_while_live() else {
            return Lookup::Unavailable;
        };
        let kept = |key: &[u8]| self.store.find(key, |known| self.is_outdated(known));
        if let Some(facts) = find(schema, table, mode, kept) {
            return Lookup::Known(facts);
        }
        let requested = self.request(self.key(schema, table));
        requested.map_or(Lookup::Loading, Lookup::Known)
    }

    /// The same if it is known, for whoever can do without. The table isn't kept for it either.
    pub fn known(&self, schema: &str, table: &str) -> Option<Arc<TableFacts>> {
        let kept = |key: &[u8]| self.store.peek(key, |known| self.is_outdated(known));
        find(schema, table, self.mode_while_live()?, kept)
    }

    /// How names are compared, while the log is followed.
    fn mode_while_live(&self) -> Option<u8> {
        let mode = self.mode();
        (mode != UNKNOWN && self.timeline.is_live()).then_some(mode)
    }

    /// The table that a statement names so.
    pub(crate) fn key(&self, schema: &str, table: &str) -> TableKey {
        let fold = |name: &str| {
            if self.mode() == 0 {
                name.to_owned()
            } else {
                name.to_ascii_lowercase()
            }
        };
        TableKey {
            schema: fold(schema),
            table: fold(table),
        }
    }

    /// In how many parts the tables are kept.
    pub fn parts(&self) -> usize {
        self.store.shards()
    }

    /// The tables in one of the parts.
    pub fn known_in(&self, part: usize) -> Vec<KnownTable> {
        let is_current = |known: &StoredFacts| self.timeline.is_live() && !self.is_outdated(known);
        self.store.of_shard(part, |key, known| {
            let mut names = key.splitn(2, |byte| *byte == 0);
            let mut name =
                || String::from_utf8_lossy(names.next().unwrap_or_default()).into_owned();
            KnownTable {
                schema: name(),
                table: name(),
                facts: Arc::clone(&known.facts),
                is_current: is_current(known),
            }
        })
    }

    /// How many tables are known, outdated ones included.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether no table is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Requests dropped because too many waited, tables that made room for others; since the start.
    pub fn counts(&self) -> [u64; 2] {
        [self.dropped.load(Ordering::Relaxed), self.store.evictions()]
    }

    pub(crate) fn set_lower_case_table_names(&self, mode: u8) {
        self.lower_case_table_names.store(mode, Ordering::Relaxed);
    }

    /// Whether letter case counts in names of schemas and tables, as far as is known.
    pub fn names_have_case(&self) -> bool {
        self.mode() == 0
    }

    /// `lower_case_table_names`.
    fn mode(&self) -> u8 {
        self.lower_case_table_names.load(Ordering::Relaxed)
    }

    pub(crate) fn batch_max(&self) -> usize {
        self.batch_max
    }

    /// Whether a table waits to be loaded.
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests().queue.is_empty()
    }

    /// The next tables to load; none if none wait.
    pub(crate) fn next_batch(&self) -> Vec<TableKey> {
        let mut requests = self.requests();
        let batch_max = if requests.singly > 0 {
            requests.singly -= 1;
            1
        } else {
            self.batch_max
        };
        let length = requests.queue.len().min(batch_max);
        let batch: Vec<_> = requests.queue.drain(..length).collect();
        requests.loading.clone_from(&batch);
        batch
    }

    /// What was being loaded won't be: whoever still needs it asks again.
    pub(crate) fn abandon_loading(&self) {
        let mut requests = self.requests();
        let abandoned = std::mem::take(&mut requests.loading);
        requests.singly = abandoned.len() * 2;
        for key in abandoned {
            requests.wanted.remove(&key);
        }
    }

    /// Forgets who waits: whoever still needs it asks again.
    pub(crate) fn drop_requests(&self) {
        let mut requests = self.requests();
        for key in std::mem::take(&mut requests.queue) {
            requests.wanted.remove(&key);
        }
    }

    /// Keeps what was loaded. Gives how many tables left for it that had been loaded for nothing.
    pub(crate) fn insert(&self, as_of: AsOf, relations_as_of: AsOf, loaded: Vec<Loaded>) -> usize {
        let mut wasted = 0;
        for Loaded { key, facts } in loaded {
            let known = StoredFacts {
                as_of,
                relations_as_of,
                definition: Tag::definition(&key.schema, &key.table),
                further: further(&facts),
                facts: Arc::new(facts),
            };
            let is_outdated = |known: &StoredFacts| self.is_outdated(known);
            wasted += usize::from(self.store.insert(&key.to_bytes(), known, is_outdated));
        }
        let mut requests = self.requests();
        for key in std::mem::take(&mut requests.loading) {
            requests.wanted.remove(&key);
        }
        wasted
    }

    fn is_outdated(&self, known: &StoredFacts) -> bool {
        let definitions = [known.definition, Tag::definitions()]
            .into_iter()
            .chain(known.further.iter().copied());
        let relations = std::iter::once(Tag::relations());
        let timeline = &self.timeline;
        timeline.outdated(known.as_of, definitions).is_some()
            || timeline
                .outdated(known.relations_as_of, relations)
                .is_some()
    }

    /// Asks for a table that wasn't known. Gives its facts if it was loaded since the look-up.
    fn request(&self, key: TableKey) -> Option<Arc<TableFacts>> {
        let mut requests = self.requests();
        if requests.wanted.contains(&key) || requests.held.contains_key(&key) {
            return None;
        }
        // What was loaded is kept before it stops being wanted.
        let is_outdated = |known: &StoredFacts| self.is_outdated(known);
        if let Some(facts) = self.store.find(&key.to_bytes(), is_outdated) {
            return Some(facts);
        }
        if requests.queue.len() >= self.queue_max {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        requests.wanted.insert(key.clone());
        requests.queue.push_back(key);
        drop(requests);
        self.bell.notify_one();
        None
    }

    /// Lists the views that run code, of which there are none, and loads all tables that are asked
    /// for, with facts of the caller's.
    #[cfg(any(test, fuzzing, feature = "simulation"))]
    pub(crate) fn load_made_up(&self, as_of: AsOf, facts: impl Fn(&str, &str) -> TableFacts) {
        if self.hidden_code.wants_list() {
            self.hidden_code.insert(as_of, HashSet::new());
        }
        while self.has_requests() {
            let loaded = self.next_batch().into_iter().map(|key| Loaded {
                facts: facts(&key.schema, &key.table),
                key,
            });
            self.insert(as_of, as_of, loaded.collect());
        }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is `kept` of a table by its names.
#[inline]
fn find(
    schema: &str,
    table: &str,
    mode: u8,
    kept: impl FnOnce(&[u8]) -> Option<Arc<TableFacts>>,
) -> Option<Arc<TableFacts>> {
    if let Some(why) = refused_by_name(schema, table, mode) {
        return Some(Arc::new(TableFacts::refused(schema, table, why)));
    }
    // The names with a zero byte between them, on the stack: what is known is found without an
    // allocation.
    let mut buffer = [0; 2 * NAME_BYTES_MAX + 1];
    let length = schema.len() + 1 + table.len();
    let key = &mut buffer[..length];
    key[..schema.len()].copy_from_slice(schema.as_bytes());
    key[schema.len() + 1..].copy_from_slice(table.as_bytes());
    if mode != 0 {
        key.make_ascii_lowercase();
    }
    kept(key)
}

/// The further definitions that facts hold for: of what a view reads. A view that is refused may be
/// so because of a table that isn't there, or can't be seen: whichever definition changes, it is
/// looked at again.
fn further(facts: &TableFacts) -> Box<[Tag]> {
    let is_refused_view = matches!(
        facts.cacheable,
        Err(TableRefusal::View | TableRefusal::ViewHidden)
    );
    if is_refused_view || (facts.cacheable.is_err() && !facts.view_of.is_empty()) {
        return Box::new([Tag::any_definition()]);
    }
    let definition = |(schema, table): &(String, String)| Tag::definition(schema, table);
    facts.view_of.iter().map(definition).collect()
}

pub(crate) fn refused_by_name(schema: &str, table: &str, mode: u8) -> Option<TableRefusal> {
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
    use std::time::Duration;

    use remora_cache::{BrokenRules, Position, TimelineLimits};
    use remora_engine::facts::{ColumnFacts, ColumnKind};

    use super::*;

    fn at(offset: u64) -> Position {
        Position::new(1, offset).unwrap()
    }

    fn catalogue(tables_max: usize, queue_max: usize, mode: u8) -> Catalogue {
        let limits = TimelineLimits {
            tag_slots: 1 << 16,
            fence_slots: 64,
            lag_ms_max: 1_000,
        };
        let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
        timeline.restart(at(100));
        timeline.prove(timeline.epoch(), 1);
        let catalogue = Catalogue::new(timeline, tables_max, queue_max, 1);
        catalogue.set_lower_case_table_names(mode);
        catalogue
    }

    fn load(catalogue: &Catalogue) -> Option<TableKey> {
        let key = catalogue.next_batch().pop()?;
        let as_of = catalogue.timeline.as_of()?;
        // Not a refused view: that is looked at again after any definition's change.
        let facts = TableFacts::refused(&key.schema, &key.table, TableRefusal::Engine);
        let loaded = Loaded {
            key: key.clone(),
            facts,
        };
        catalogue.insert(as_of, as_of, vec![loaded]);
        Some(key)
    }

    #[test]
    fn facts_are_used_until_their_own_definition_changes() {
        for (tag, is_dropped) in [
            (Tag::definition("app", "t"), true),
            (Tag::relations(), true),
            (Tag::definitions(), true),
            (Tag::definition("app", "u"), false),
            (Tag::table("app", "t"), false),
            (Tag::any_definition(), false),
        ] {
            let catalogue = catalogue(100, 10, 0);
            catalogue.lookup("app", "t");
            load(&catalogue);
            catalogue.timeline.touch(tag, at(200));
            let is_known = matches!(catalogue.lookup("app", "t"), Lookup::Known(_));
            assert_eq!(is_known, !is_dropped, "{tag:?}");
        }
    }

    #[test]
    fn questions_on_their_way_are_awaited_for_as_long_as_is_allowed() {
        const LONG: Duration = Duration::from_mins(1);
        let catalogue = catalogue(100, 10, 0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            assert!(catalogue.until_quiet(Duration::ZERO).await);
            let asking = catalogue.begin_asking(&mut Vec::new());
            assert!(!catalogue.until_quiet(Duration::from_millis(1)).await);
            let answered = async {
                tokio::task::yield_now().await;
                drop(asking);
            };
            let (is_quiet, ()) = tokio::join!(catalogue.until_quiet(LONG), answered);
            assert!(is_quiet);
        });
    }

    #[test]
    fn nothing_is_asked_about_a_table_that_is_held_back() {
        let catalogue = catalogue(100, 10, 0);
        catalogue.lookup("app", "t");
        let mut batch = catalogue.next_batch();
        let held = catalogue.hold([("app", "t")].into_iter());
        drop(catalogue.begin_asking(&mut batch));
        assert!(batch.is_empty(), "not one that was about to be asked for");
        catalogue.abandon_loading();
        catalogue.lookup("app", "t");
        assert!(!catalogue.has_requests(), "nor another");
        catalogue.release(&held);
        catalogue.lookup("app", "t");
        assert!(catalogue.has_requests());
    }

    #[test]
    fn foreign_keys_that_were_asked_for_earlier_have_a_date_of_their_own() {
        let catalogue = catalogue(100, 10, 0);
        let before = catalogue.timeline.as_of().unwrap();
        catalogue.lookup("app", "t");
        let key = catalogue.next_batch().pop().unwrap();
        let timeline = &catalogue.timeline;
        timeline.advance_visible(timeline.epoch(), at(300));
        let facts = TableFacts::refused(&key.schema, &key.table, TableRefusal::View);
        let loaded = vec![Loaded { key, facts }];
        catalogue.insert(timeline.as_of().unwrap(), before, loaded);
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Known(_)));
        // Visible before the table was asked for, and after the foreign keys were.
        catalogue.timeline.touch(Tag::relations(), at(200));
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Loading));
    }

    #[test]
    fn a_table_is_asked_for_once_and_again_if_that_fails() {
        let catalogue = Catalogue::new(Arc::clone(&catalogue(1, 1, 0).timeline), 100, 10, 4);
        catalogue.set_lower_case_table_names(0);
        let ask = || {
            for number in 0..6 {
                catalogue.lookup("app", &format!("t{number}"));
            }
        };
        ask();
        assert_eq!(catalogue.next_batch().len(), 4);
        ask();
        // The first four are on their way.
        assert_eq!(catalogue.requests().queue.len(), 2);
        catalogue.abandon_loading();
        ask();
        assert_eq!(catalogue.requests().queue.len(), 6);
        for _ in 0..6 {
            assert_eq!(catalogue.next_batch().len(), 1);
        }
        assert!(catalogue.next_batch().is_empty());
    }

    #[test]
    fn what_is_loaded_for_nothing_is_counted_and_who_waited_asks_again() {
        let catalogue = catalogue(16, 1_000, 0);
        let ask = |number: usize| catalogue.lookup("app", &format!("t{number}"));
        let load_one = || {
            let key = catalogue.next_batch().pop().unwrap();
            let as_of = catalogue.timeline.as_of().unwrap();
            let facts = TableFacts::refused(&key.schema, &key.table, TableRefusal::Engine);
            catalogue.insert(as_of, as_of, vec![Loaded { key, facts }])
        };
        for number in 0..100 {
            ask(number);
        }
        let wasted: usize = (0..50).map(|_| load_one()).sum();
        assert_eq!(wasted, 50 - 16);
        catalogue.drop_requests();
        assert!(!catalogue.has_requests());
        for number in 99..103 {
            assert!(matches!(ask(number), Lookup::Loading));
        }
        assert_eq!(catalogue.next_batch().pop().unwrap().table, "t99");
        // What is asked for between being loaded and leaving was loaded for something.
        for number in 200..300 {
            catalogue.drop_requests();
            ask(number);
            let is_left_from_before = number < 216;
            assert_eq!(load_one(), usize::from(is_left_from_before), "{number}");
            assert!(matches!(ask(number), Lookup::Known(_)));
        }
    }

    #[test]
    fn facts_are_used_until_a_definition_changes() {
        let catalogue = catalogue(100, 10, 0);
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Loading));
        assert!(load(&catalogue).is_some());
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Known(_)));
        catalogue.timeline.touch(Tag::definitions(), at(200));
        assert!(matches!(catalogue.lookup("app", "t"), Lookup::Loading));
        catalogue.timeline.set_applied(at(200));
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
        let waiting = std::iter::from_fn(|| catalogue.next_batch().pop()).count();
        assert_eq!(waiting, 10);
    }

    fn resident_bytes() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let resident = pages.split(' ').nth(1).unwrap();
        resident.parse::<usize>().unwrap() * 4_096
    }

    /// Prints what `docs/sizing.md` says:
    /// `cargo test --release -p remora-upstream --lib -- --ignored --nocapture hundred`.
    #[test]
    #[ignore = "a measurement"]
    fn a_hundred_thousand_tables_cost_the_same_whatever_the_capacity() {
        const TABLES: usize = 100_000;
        let column = |number: usize| {
            let name = format!("column_{number}");
            ColumnFacts::new(&name, ColumnKind::Date)
        };
        let names: Vec<_> = (0..TABLES)
            .map(|number| format!("sbtest{number}"))
            .collect();
        for (capacity, is_shared) in [
            (64, true),
            (1_024, true),
            (16_384, true),
            (131_072, true),
            (131_072, false),
        ] {
            let catalogue = catalogue(capacity, 10, 0);
            let shared: Arc<[ColumnFacts]> = (0..4).map(column).collect();
            let before = resident_bytes();
            let begun = std::time::Instant::now();
            for pass in 0..2 {
                for name in &names {
                    // Read once and again; what isn't known is loaded in between.
                    if matches!(catalogue.lookup("app", name), Lookup::Loading) {
                        let key = catalogue.next_batch().pop().unwrap();
                        let as_of = catalogue.timeline.as_of().unwrap();
                        let mut facts = TableFacts::refused("app", name, TableRefusal::View);
                        facts.cacheable = Ok(());
                        facts.columns = if is_shared {
                            Arc::clone(&shared)
                        } else {
                            (0..4).map(column).collect()
                        };
                        catalogue.insert(as_of, as_of, vec![Loaded { key, facts }]);
                    }
                    let is_known = matches!(catalogue.lookup("app", name), Lookup::Known(_));
                    assert!(is_known, "{name} in pass {pass}");
                }
            }
            let took = begun.elapsed();
            let bytes = resident_bytes().saturating_sub(before) / catalogue.len();
            println!(
                "capacity {capacity}, columns shared {is_shared}: {} ns a table, {bytes} bytes each",
                took.as_nanos() / (2 * TABLES as u128)
            );
        }
    }
}
