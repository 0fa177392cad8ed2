//! Tables that MariaDB changed in a commit of which nobody tells when it is visible.
//!
//! A transaction that has used an engine without two-phase commit, be it by a read of an Aria
//! table, isn't committed as others are: MariaDB writes it to the log, moves
//! `binlog_snapshot_position`, and then has each engine commit by itself. Its group ends with the
//! statement `COMMIT` instead of a commit event (`CommitKind::EndedByStatement`). Measured: the
//! position had passed an `INSERT … SELECT` from an Aria table into an InnoDB table with a
//! full-text index for half a second before the rows could be read.
//!
//! Only what each connection is doing tells when such a commit is over
//! ([`untold`](super::untold)). To see that takes a privilege that the account needs for nothing
//! else. Without it, what such a commit changed is fenced from its event on. The fence ends when
//! the log has a `RENAME TABLE`, a `DROP TABLE` or an `ALTER TABLE name ENGINE = engine` of it, or
//! following restarts. It also ends once the account has been granted the privilege and each
//! connection has been idle since. Changes of tables that are never cached end in the same way and
//! need no fence, if the catalogue knows them by then.
//!
//! **An incident** is an event by which a server says that it has lost changes. MariaDB moves its
//! position to the event's end, past commits that are on their way, and may begin the next file
//! without waiting for them. So from the event on everything is fenced, until each connection has
//! been idle, or following restarts in a later file: in this one it comes to the event again.
//!
//! **Why these end it.** A transaction keeps its metadata locks until its commit is over in all
//! engines (`trans_commit`: first `ha_commit_trans`, then `release_transactional_locks`). `RENAME
//! TABLE`, `DROP TABLE` and an `ALTER` to an engine, which always makes the table anew, are logged
//! while they have the table's exclusive lock. A temporary table of the same name is another one; a
//! statement that used one says so in its event. Others are not taken for that: an `ALTER` that
//! finds nothing to do is logged without that lock, whatever stands in its comments and names, and
//! so is one that begins or is given up (`binlog_alter_two_phase`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use remora_binlog::{Commit, LoggedTable, Touched};
use remora_cache::{Fence, FenceScope, Position, TableTags, Timeline};
use remora_engine::reason::TableRefusal;

use crate::catalogue::Lookup;
use crate::state::UpstreamShared;

/// Tables that are fenced one by one, until the catalogue knows that they aren't cached anyway. If
/// there are more, everything is.
const TABLES_MAX: usize = 1_024;
const WHY_INCIDENT: &str = "the log has an incident, by which the server says that it has lost changes, \
     and nothing tells when earlier ones can be seen";
const WHY: &str = "a transaction that used an engine without two-phase commit changed it, and nothing \
     tells when that can be seen";
const REMEDY: &str = "give the follower's account PROCESS";

const PROVEN: &str = "all connections have been idle since transactions changed tables of which \
     nothing else told when that could be seen";

/// The fences. They live as long as the log goes on, through any number of connections.
#[derive(Default)]
pub(crate) struct UnorderedTables {
    tables: HashMap<LoggedTable, Fence>,
    everything: Option<Fence>,
    /// Where the last incident ended.
    incident: Option<Position>,
}

impl fmt::Debug for UnorderedTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.tables.keys().map(ToString::to_string);
        f.debug_set().entries(tables).finish_non_exhaustive()
    }
}

impl UnorderedTables {
    /// Fences what a commit touched. Before the commit counts as applied.
    pub(crate) fn fence(&mut self, shared: &UpstreamShared, touched: &Touched) {
        let is_never_cached = |table: &LoggedTable| is_never_cached(shared, table);
        self.fence_in(&shared.timeline, touched, is_never_cached);
    }

    /// Fences everything, for the log has an incident that ends at `at`. Before that counts as
    /// applied.
    pub(crate) fn fence_for_incident(&mut self, timeline: &Arc<Timeline>, at: Position) {
        self.incident = Some(at);
        if self.everything.is_none() {
            self.raise_over_everything(timeline);
            tracing::warn!(
                remedy = REMEDY,
                "nothing is answered from memory: {WHY_INCIDENT}"
            );
        }
    }

    /// What was changed in these tables before can be seen, as a statement for which
    /// [`waits_for_transactions`] is true has touched them.
    pub(crate) fn settle(&mut self, touched: &Touched) {
        if let Touched::Tables(tables) = touched {
            for table in tables {
                if let Some(fence) = self.tables.remove(table) {
                    fence.answered();
                }
            }
        }
    }

    /// Whether anything is fenced.
    pub(crate) fn has_fences(&self) -> bool {
        self.everything.is_some() || !self.tables.is_empty()
    }

    /// Every commit up to `settled` can be seen. All that anything was fenced for lie there, but
    /// perhaps for an incident. Results that were read before are forgotten: nothing told what they
    /// had seen.
    pub(crate) fn settle_all(&mut self, timeline: &Timeline, settled: Position) {
        if self.incident.is_some_and(|incident| settled < incident) {
            return;
        }
        self.incident = None;
        if self.has_fences() {
            timeline.forget();
            let fences = self.tables.drain().map(|(_, fence)| fence);
            fences
                .chain(self.everything.take())
                .for_each(Fence::answered);
            tracing::info!("answered from memory again: {PROVEN}");
        }
    }

    fn fence_in(
        &mut self,
        timeline: &Arc<Timeline>,
        touched: &Touched,
        is_never_cached: impl Fn(&LoggedTable) -> bool,
    ) {
        if self.everything.is_some() {
            return;
        }
        let Touched::Tables(tables) = touched else {
            self.fence_everything(timeline);
            return;
        };
        for table in tables {
            if self.tables.contains_key(table) || is_never_cached(table) {
                continue;
            }
            if self.tables.len() >= TABLES_MAX {
                // The catalogue may know them by now.
                self.tables.retain(|table, _| !is_never_cached(table));
            }
            if self.tables.len() >= TABLES_MAX {
                self.fence_everything(timeline);
                return;
            }
            let fences = TableTags::new(&table.schema, &table.table).fences();
            let fence = timeline.raise(FenceScope::Tables(fences.into()));
            self.tables.insert(table.clone(), fence);
            tracing::info!(%table, remedy = REMEDY, "not answered from memory: {WHY}");
        }
    }

    fn raise_over_everything(&mut self, timeline: &Arc<Timeline>) {
        self.everything = Some(timeline.raise(FenceScope::Everything));
        self.tables.clear();
    }

    fn fence_everything(&mut self, timeline: &Arc<Timeline>) {
        self.raise_over_everything(timeline);
        tracing::warn!(remedy = REMEDY, "nothing is answered from memory: {WHY}");
    }
}

/// Whether a statement can only have been logged when no transaction was open that had used the
/// tables that it touches, if it is no `ALTER` that has only begun or was given up.
pub(crate) fn waits_for_transactions(text: &[u8]) -> bool {
    let begins_with = |words: &[u8]| {
        let begin = text.get(..words.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(words))
    };
    begins_with(b"RENAME TABLE ")
        || begins_with(b"DROP TABLE ")
        || (begins_with(b"ALTER TABLE ") && only_sets_engine(text))
}

/// Whether `name ENGINE [=] engine` is all that follows the first two words. With anything else
/// there, the word may stand in a comment or a name.
fn only_sets_engine(text: &[u8]) -> bool {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let is_of_name = |byte: &u8| is_of_word(byte) || matches!(byte, b'.' | b'`');
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .skip(2);
    let is_name = words.next().is_some_and(|name| name.iter().all(is_of_name));
    let rest = words.collect::<Vec<_>>().concat().to_ascii_lowercase();
    let engine = rest.strip_prefix(b"engine");
    let engine = engine.map(|engine| engine.strip_prefix(b"=").unwrap_or(engine));
    is_name && engine.is_some_and(|engine| !engine.is_empty() && engine.iter().all(is_of_word))
}

/// Whether results from what a commit touched may be kept.
pub(crate) fn is_of_cached_tables(shared: &UpstreamShared, commit: &Commit) -> bool {
    match &commit.touched {
        Touched::Tables(tables) => tables.iter().any(|table| !is_never_cached(shared, table)),
        Touched::Everything => true,
    }
}

/// Whether results from the table are never kept because of its engine.
fn is_never_cached(shared: &UpstreamShared, table: &LoggedTable) -> bool {
    match shared.catalogue.lookup(&table.schema, &table.table) {
        Lookup::Known(facts) => matches!(
            facts.cacheable,
            Err(TableRefusal::VisibleLate
                | TableRefusal::Engine
                | TableRefusal::Sequence
                | TableRefusal::SystemSchema)
        ),
        Lookup::Loading | Lookup::Unavailable => false,
    }
}

#[cfg(test)]
mod tests {
    use remora_cache::{BrokenRules, Tag, TimelineLimits};

    use super::*;

    fn timeline() -> Arc<Timeline> {
        let limits = TimelineLimits {
            tag_slots: 64,
            fence_slots: 1 << 20,
            lag_ms_max: 1_000,
        };
        Arc::new(Timeline::new(limits, BrokenRules::default()))
    }

    fn table(number: usize) -> LoggedTable {
        LoggedTable::new("app", format!("t{number}"))
    }

    fn touched(numbers: impl IntoIterator<Item = usize>) -> Touched {
        Touched::Tables(numbers.into_iter().map(table).collect())
    }

    fn at(offset: u64) -> Position {
        Position::new(1, offset).unwrap()
    }

    fn is_fenced(timeline: &Timeline, number: usize) -> bool {
        timeline.has_fence(Tag::table("app", &format!("t{number}")))
    }

    #[test]
    fn what_is_never_cached_needs_no_fence() {
        let timeline = timeline();
        let mut unordered = UnorderedTables::default();
        let touched = touched([1, 2]);
        unordered.fence_in(&timeline, &touched, |one| *one == table(2));
        assert!(is_fenced(&timeline, 1) && !is_fenced(&timeline, 2));
    }

    #[test]
    fn a_statement_with_the_exclusive_lock_tells_that_what_was_changed_before_can_be_seen() {
        let timeline = timeline();
        let mut unordered = UnorderedTables::default();
        unordered.fence_in(&timeline, &touched([1, 2]), |_| false);
        unordered.settle(&touched([1, 3]));
        timeline.take_answered().lower();
        assert!(!is_fenced(&timeline, 1) && is_fenced(&timeline, 2));
        for (text, waits) in [
            ("drop table t", true),
            ("DROP TABLE IF EXISTS `t` /* generated by server */", true),
            ("RENAME TABLE t TO u", true),
            ("ALTER TABLE t ENGINE=InnoDB", true),
            ("alter table `app`.t\n  engine = innodb", true),
            ("ALTER TABLE t ENGINE Aria", true),
            ("ALTER TABLE t ENGINE=", false),
            ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", false),
            (
                "ALTER TABLE t ADD IF NOT EXISTS a INT COMMENT 'an engine'",
                false,
            ),
            ("ALTER TABLE t DROP COLUMN IF EXISTS engine", false),
            ("ALTER TABLE t/**/DROP/**/IF/**/EXISTS engine2", false),
            ("ALTER TABLE t ENGINE=InnoDB PARTITION BY HASH (a)", false),
            (
                "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (a), ENGINE=InnoDB",
                false,
            ),
            ("TRUNCATE TABLE t", false),
            ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", false),
            ("ANALYZE TABLE t", false),
            ("OPTIMIZE TABLE t", false),
            ("CREATE TABLE t (a INT)", false),
        ] {
            assert_eq!(waits_for_transactions(text.as_bytes()), waits, "{text}");
        }
    }

    #[test]
    fn once_all_connections_have_been_idle_nothing_is_fenced_and_nothing_of_before_is_served() {
        let timeline = timeline();
        timeline.restart(at(4));
        assert!(timeline.prove(timeline.epoch(), 1));
        let before = timeline.as_of().unwrap();
        let mut unordered = UnorderedTables::default();
        unordered.settle_all(&timeline, at(4));
        assert_eq!(timeline.as_of(), Some(before));
        unordered.fence_in(&timeline, &touched([1, 2]), |_| false);
        assert!(unordered.has_fences());
        unordered.settle_all(&timeline, at(4));
        timeline.take_answered().lower();
        assert!(!unordered.has_fences() && !is_fenced(&timeline, 1));
        assert_ne!(timeline.as_of(), Some(before));
    }

    #[test]
    fn after_an_incident_everything_is_fenced_until_all_connections_have_been_idle() {
        let timeline = timeline();
        let mut unordered = UnorderedTables::default();
        unordered.fence_in(&timeline, &touched([1]), |_| false);
        unordered.fence_for_incident(&timeline, at(900));
        unordered.settle(&touched([1, 2]));
        // It was asked before the incident came.
        unordered.settle_all(&timeline, at(700));
        timeline.take_answered().lower();
        assert!(is_fenced(&timeline, 1) && is_fenced(&timeline, 2));
        unordered.settle_all(&timeline, at(900));
        timeline.take_answered().lower();
        assert!(!is_fenced(&timeline, 1) && !is_fenced(&timeline, 2));
    }

    #[test]
    fn a_commit_of_everything_fences_everything() {
        let timeline = timeline();
        let mut unordered = UnorderedTables::default();
        unordered.fence_in(&timeline, &Touched::Everything, |_| false);
        assert!(is_fenced(&timeline, 1));
    }

    #[test]
    fn beyond_the_bound_everything_is_fenced_unless_some_need_none_any_more() {
        let timeline = timeline();
        let mut unordered = UnorderedTables::default();
        unordered.fence_in(&timeline, &touched(0..TABLES_MAX), |_| false);
        let beyond = TABLES_MAX + 10;
        assert!(is_fenced(&timeline, 0) && !is_fenced(&timeline, beyond));
        let next = touched([TABLES_MAX]);
        unordered.fence_in(&timeline, &next, |one| *one == table(0));
        assert!(!is_fenced(&timeline, beyond));
        let next = touched([TABLES_MAX + 1]);
        unordered.fence_in(&timeline, &next, |_| false);
        assert!(is_fenced(&timeline, beyond));
    }
}
