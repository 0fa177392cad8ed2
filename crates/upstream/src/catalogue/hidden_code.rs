//! Which views may run code that a statement's text doesn't show.
//!
//! A view can call stored functions, and those can write tables, set variables and create temporary
//! tables. So a statement is only harmless if none of the views that it names does. All views of
//! the server are listed, and judged by their texts; what is kept are the names of those that may
//! run code, without their schemas: a table that happens to have such a name only costs a wider
//! fence.
//!
//! # The rule
//!
//! The list carries the watermark `as_of` taken before its question was sent. It is used only while
//! neither definitions as a whole nor the names of tables have changed since
//! ([`Tag::definitions`], which every statement on a view touches, and [`Tag::relations`], which a
//! `RENAME` touches). Until it has been asked for again, every statement that reads a table counts
//! as one that may run code.
//!
//! The log tells of a change after the server has made it. While a statement through Remora may
//! have made one that the log hasn't told of ([`Timeline::definitions`]), the list isn't used
//! either: it may lack a view, and a table that is written may have a trigger which nobody knows.
//! Each statement is judged when it is sent and again when it is answered.
//!
//! Views that the server's makers have defined (most are in `sys`) are left out: they call
//! functions of the makers, which write nothing. They are known by who has defined them, not by
//! their schema: anybody may have put others there.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use remora_cache::{AsOf, BrokenCode, Definitions, Tag, Timeline};
use remora_sql::{Ambiguity, Dialect, Mentions, NameHash, Writes};
use tokio::sync::Notify;

use crate::client::{Client, ClientError, text};

/// The longest text of a view that is read, characters.
const VIEW_TEXT_CHARS_MAX: usize = 65_536;

/// Who has defined the views that come with a server.
const MAKERS: &str = "'mysql.sys@localhost', 'mariadb.sys@localhost'";

/// What is known of code that views run.
pub struct HiddenCode {
    timeline: Arc<Timeline>,
    known: RwLock<Option<KnownViews>>,
    generation: AtomicU64,
    wanted: AtomicBool,
    was_asked: AtomicBool,
    /// Rung when the list is wanted.
    bell: Notify,
}

#[derive(Debug)]
struct KnownViews {
    as_of: AsOf,
    generation: u64,
    /// The views that may run code.
    names: HashSet<NameHash>,
}

/// On what it rests that a statement runs no code unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeBasis {
    /// It reads no table.
    ReadsNothing,
    /// No view that it names runs code, by the list of this generation.
    Listed(u64),
    /// It names no view, but tables that it reads, as the log had told by then.
    Tables(AsOf),
}

impl HiddenCode {
    pub(crate) fn new(timeline: Arc<Timeline>) -> HiddenCode {
        HiddenCode {
            timeline,
            known: RwLock::new(None),
            generation: AtomicU64::new(0),
            wanted: AtomicBool::new(true),
            was_asked: AtomicBool::new(false),
            bell: Notify::new(),
        }
    }

    /// Why a statement runs no code unseen; `None` if it may. `mentions` isn't called if nothing in
    /// the text could make a difference.
    pub fn basis(&self, mentions: impl FnOnce() -> Mentions) -> Option<CodeBasis> {
        if self.is_in_doubt() {
            return (!mentions().reads_tables()).then_some(CodeBasis::ReadsNothing);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.as_ref().filter(|known| self.is_current(known)) else {
            drop(known);
            if !mentions().reads_tables() {
                return Some(CodeBasis::ReadsNothing);
            }
            self.want();
            return None;
        };
        let listed = CodeBasis::Listed(known.generation);
        if known.names.is_empty() || self.timeline.broken().code == BrokenCode::Views {
            return Some(listed);
        }
        let runs_code = mentions().may_read(&known.names);
        (!runs_code).then_some(listed)
    }

    /// Whether a statement may read a view of which it is known that it runs code, however old the
    /// list is.
    pub fn is_named(&self, mentions: impl FnOnce() -> Mentions) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let names = known.as_ref().map(|known| &known.names);
        names.is_some_and(|names| !names.is_empty() && mentions().may_read(names))
    }

    /// On what it rests that a statement whose result was kept runs no code. It ran none when it
    /// was read, and what it reads has not changed as far as the list is current.
    pub fn basis_of_kept_result(&self) -> Option<CodeBasis> {
        if self.is_in_doubt() {
            return None;
        }
        self.current_generation().map(CodeBasis::Listed)
    }

    /// Whether that still holds.
    pub fn holds(&self, basis: CodeBasis) -> bool {
        // The doubt first: it ends when the change has been touched.
        match basis {
            CodeBasis::ReadsNothing => true,
            CodeBasis::Listed(generation) => {
                !self.is_in_doubt() && self.current_generation() == Some(generation)
            }
            CodeBasis::Tables(as_of) => {
                self.timeline.definitions() != Definitions::Changed && self.holds_since(as_of)
            }
        }
    }

    /// Whether a statement on its way may have changed definitions, or one that the log hasn't told
    /// of yet.
    fn is_in_doubt(&self) -> bool {
        self.timeline.definitions() != Definitions::Kept
    }

    /// The generation of the list, if it holds still.
    fn current_generation(&self) -> Option<u64> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|known| self.is_current(known));
        known.map(|known| known.generation)
    }

    fn is_current(&self, known: &KnownViews) -> bool {
        self.holds_since(known.as_of)
    }

    /// Whether no view has changed since, nor the name of a table, by the log.
    pub fn holds_since(&self, as_of: AsOf) -> bool {
        let tags = [Tag::definitions(), Tag::relations()];
        self.timeline.is_live() && self.timeline.outdated(as_of, tags.into_iter()).is_none()
    }

    /// Whether a list is known that holds still. If not, it is asked for.
    pub fn is_known(&self) -> bool {
        let is_known = self.current_generation().is_some();
        if !is_known {
            self.want();
        }
        is_known
    }

    fn want(&self) {
        if !self.wanted.swap(true, Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    /// Waits until somebody wants the list.
    pub(crate) async fn is_wanted(&self) {
        while !self.wanted.load(Ordering::SeqCst) {
            self.bell.notified().await;
        }
    }

    pub(crate) fn wants_list(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    /// Whether the server has been asked for its views since the start, whatever it answered.
    pub fn was_asked(&self) -> bool {
        self.was_asked.load(Ordering::SeqCst)
    }

    /// The server has answered that there are too many. Whoever finds the list missing from here on
    /// wants it again.
    pub(crate) fn give_up(&self) {
        self.wanted.store(false, Ordering::SeqCst);
        self.was_asked.store(true, Ordering::SeqCst);
    }

    /// Keeps what was asked for after `as_of`.
    pub(crate) fn insert(&self, as_of: AsOf, names: HashSet<NameHash>) {
        let generation = self.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let known = KnownViews {
            as_of,
            generation,
            names,
        };
        // Whoever finds it outdated from here on wants another.
        self.wanted.store(false, Ordering::SeqCst);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
        self.was_asked.store(true, Ordering::SeqCst);
    }
}

/// A view, as its text says.
struct View {
    name: NameHash,
    mentions: Mentions,
    runs_code: bool,
}

impl View {
    fn of(name: &str, text: Option<&str>, dialect: Dialect) -> View {
        let text =
            text.filter(|text| !text.is_empty() && text.chars().count() < VIEW_TEXT_CHARS_MAX);
        let Some(text) = text else {
            return View {
                name: NameHash::of(name.as_bytes()),
                mentions: Mentions::anything(),
                runs_code: true,
            };
        };
        // What a backslash means in it depends on how the view was made.
        let ambiguity = Ambiguity {
            modes: true,
            ..Ambiguity::default()
        };
        let statement = ambiguity.analyse(text.as_bytes(), dialect);
        View {
            name: NameHash::of(name.as_bytes()),
            mentions: Mentions::of(text.as_bytes(), dialect),
            runs_code: statement.writes != Writes::Nothing,
        }
    }
}

/// Those that run code, themselves or through another.
fn running_code(views: &[View]) -> HashSet<NameHash> {
    let own = views.iter().filter(|view| view.runs_code);
    let mut names: HashSet<NameHash> = own.map(|view| view.name).collect();
    loop {
        let through = views
            .iter()
            .filter(|view| !names.contains(&view.name) && view.mentions.may_name(&names));
        let through: Vec<_> = through.map(|view| view.name).collect();
        if through.is_empty() {
            return names;
        }
        names.extend(through);
    }
}

/// Asks for the views that run code: `None` if there are more than `views_max` views.
pub(crate) async fn list(
    client: &mut Client,
    views_max: usize,
    time_limit: Duration,
    dialect: Dialect,
) -> Result<Option<HashSet<NameHash>>, ClientError> {
    // Byte by byte: without, a schema that differs in letter case or accents would be left out.
    let sql = format!(
        "SELECT TABLE_NAME, LEFT(VIEW_DEFINITION, {VIEW_TEXT_CHARS_MAX}) \
         FROM information_schema.VIEWS \
         WHERE CAST(TABLE_SCHEMA AS BINARY) NOT IN ('information_schema', 'performance_schema') \
         AND CAST(COALESCE(DEFINER, '') AS BINARY) NOT IN ({MAKERS}) LIMIT {}",
        views_max.saturating_add(1)
    );
    let rows = client
        .query_within(&sql, views_max.saturating_add(1), time_limit)
        .await?;
    if rows.len() > views_max {
        return Ok(None);
    }
    let views: Vec<_> = rows
        .iter()
        .map(|row| View::of(text(row, 0).unwrap_or("#"), text(row, 1), dialect))
        .collect();
    Ok(Some(running_code(&views)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(views: &[(&str, &str)]) -> HashSet<NameHash> {
        let views: Vec<_> = views
            .iter()
            .map(|(name, text)| View::of(name, Some(*text), Dialect::default()))
            .collect();
        running_code(&views)
    }

    fn hashes(names: &[&str]) -> HashSet<NameHash> {
        names
            .iter()
            .map(|name| NameHash::of(name.as_bytes()))
            .collect()
    }

    #[test]
    fn a_view_runs_the_code_of_the_views_that_it_reads() {
        let views = [
            (
                "plain",
                "select `a`.`x` AS `x` from `s`.`a` where `a`.`y` like '\\%'",
            ),
            ("calls", "select `s`.`f`() AS `x`"),
            ("reads_calls", "select `calls`.`x` AS `x` from `s`.`calls`"),
            ("reads_that", "select `x` from `s`.`READS_CALLS`"),
            ("hidden", ""),
        ];
        let expected = hashes(&["calls", "reads_calls", "reads_that", "hidden"]);
        assert_eq!(names(&views), expected);
        assert_eq!(names(&views[..1]), hashes(&[]));
    }

    #[test]
    fn what_another_mode_lets_a_view_call_counts() {
        let text = r"select '\', `s`.`f`(), ' -- '";
        assert_eq!(names(&[("v", text)]), hashes(&["v"]));
    }
}
