//! The rules in force: asking them, reading them again, and what they have decided.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use remora_cache::Store;
use remora_engine::reason::{Bypass, Reason, RuleOutcome, RulesReload};
use remora_engine::rules::{Action, Bounds, Facts, Rule, RuleSet, TransactionReads};
use serde::Serialize;

use crate::config::{ConfigError, Reread, Source};

/// The most changed rules that a reload tells one by one.
const CHANGES_TOLD_MAX: usize = 16;

/// The rules in force, of one Remora. Asking them takes no lock.
pub struct RulesInForce {
    current: ArcSwap<RuleSet>,
    /// Where they come from.
    source: Source,
    /// One reload at a time.
    reloading: Mutex<()>,
    decisions: [AtomicU64; RuleOutcome::ALL.len()],
    reloads: [AtomicU64; RulesReload::ALL.len()],
}

/// What a reload came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reloaded {
    /// Rules in force now.
    pub rules: usize,
    /// Whether they are others than before. Then everything that was held has been dropped.
    pub has_changed: bool,
    /// What is new and what is gone, in words: at most some of each.
    pub changes: Vec<String>,
    /// Further options of the file that differ from those that Remora runs with, and need a
    /// restart.
    pub needs_restart: Vec<String>,
}

/// Why rules were not read again.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// There is no file.
    #[error(
        "rules are read from the configuration file, and Remora runs without one; start it with --config"
    )]
    NoFile,
    /// What is wrong with it.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ReloadError {
    /// Whether there are more than `cache.rules_max`.
    pub(crate) fn is_about_their_number(&self) -> bool {
        matches!(self, ReloadError::Config(ConfigError::TooManyRules { .. }))
    }
}

/// What is told to whoever asked, a line for each thing.
impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = match self.rules {
            1 => "1 rule is in force".to_owned(),
            rules => format!("{rules} rules are in force"),
        };
        if self.has_changed {
            writeln!(f, "{rules}, and all results were dropped")?;
        } else {
            writeln!(f, "{rules}, the same as before")?;
        }
        for change in &self.changes {
            writeln!(f, "{change}")?;
        }
        if !self.needs_restart.is_empty() {
            let options = self.needs_restart.join(", ");
            writeln!(f, "not taken, they need a restart: {options}")?;
        }
        Ok(())
    }
}

impl Reloaded {
    /// Says it in the log.
    pub(crate) fn log(&self) {
        let needs_restart = !self.needs_restart.is_empty();
        for line in self.to_string().lines() {
            if needs_restart && line.starts_with("not taken") {
                tracing::warn!("the configuration file was read again: {line}");
            } else {
                tracing::info!("the rules were read again: {line}");
            }
        }
    }
}

/// `GET /rules`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulesReport {
    /// The file.
    pub file: Option<PathBuf>,
    /// The rules in their order.
    pub rules: Vec<RuleReport>,
}

/// A rule and what it has decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// Its place, from 1.
    pub rule: usize,
    /// Where it begins in the file.
    pub line: usize,
    /// The digest that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The default schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Whether results may be kept, in a rule about reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
    /// For how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live_ms: Option<u64>,
    /// The largest that are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes_max: Option<usize>,
    /// Which reads inside transactions memory may answer, in a rule about sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_reads: Option<TransactionReads>,
    /// All of that in words.
    pub words: String,
    /// Statements about which it decided, since it came into force.
    pub decided: u64,
}

impl RulesInForce {
    /// Rules from the configuration that Remora starts with.
    pub(crate) fn new(rules: Vec<Rule>, source: Source) -> RulesInForce {
        RulesInForce {
            current: ArcSwap::from_pointee(RuleSet::new(rules)),
            source,
            reloading: Mutex::default(),
            decisions: [const { AtomicU64::new(0) }; RuleOutcome::ALL.len()],
            reloads: [const { AtomicU64::new(0) }; RulesReload::ALL.len()],
        }
    }

    /// Whether they come from a file.
    pub fn has_file(&self) -> bool {
        self.source.file().is_some()
    }

    /// The rules. A fill has taken [`Store::epoch`] before.
    pub fn get(&self) -> Guard<Arc<RuleSet>> {
        self.current.load()
    }

    /// The rules as text: equal if they say the same, wherever they stand in their file.
    pub(crate) fn text(&self) -> String {
        let without_line = |rule: &Rule| Rule {
            line: 0,
            ..rule.clone()
        };
        let rules: Vec<Rule> = self.get().all().iter().map(without_line).collect();
        format!("{rules:?}")
    }

    /// What the rules say of a read, counting it.
    pub(crate) fn decide(&self, rules: &RuleSet, facts: &Facts<'_>) -> Result<Bounds, Bypass> {
        let Some(decision) = rules.find(facts) else {
            return Ok(Bounds::default());
        };
        rules.count(decision);
        let (outcome, said) = match decision.rule.action {
            Action::Refuse => (RuleOutcome::Refused, Err(Bypass::RuleRefuses)),
            // Never found for a read.
            Action::ReadInTransactions(_) => return Ok(Bounds::default()),
            Action::Keep(bounds) if bounds == Bounds::default() => (RuleOutcome::Kept, Ok(bounds)),
            Action::Keep(bounds) => (RuleOutcome::Bounded, Ok(bounds)),
        };
        self.decisions[outcome.ordinal()].fetch_add(1, Ordering::Relaxed);
        said
    }

    /// Reads the rules again. If anything in the file is wrong, the old ones stay in force. When
    /// this returns, nothing is served that was kept under others than the rules in force.
    pub fn reload(&self, store: &Store) -> Result<Reloaded, ReloadError> {
        let _one_at_a_time = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let reread = self.source.reread().map_err(ReloadError::from);
        let reread = reread.and_then(|reread| reread.ok_or(ReloadError::NoFile));
        match reread {
            Ok(reread) => {
                let reloaded = self.put(reread, store);
                self.count_reload(if reloaded.has_changed {
                    RulesReload::Changed
                } else {
                    RulesReload::Unchanged
                });
                Ok(reloaded)
            }
            Err(error) => {
                self.count_reload(RulesReload::Refused);
                Err(error)
            }
        }
    }

    fn put(&self, reread: Reread, store: &Store) -> Reloaded {
        let old = self.current.load_full();
        let new = RuleSet::new(reread.rules);
        let has_changed = !old.says_the_same(&new);
        if !has_changed {
            // At other lines perhaps; what they decided goes on.
            new.count_on_from(&old);
        }
        let changes = changes(&old, &new);
        let rules = new.len();
        // In this order: see the documentation of `rules`.
        self.current.store(Arc::new(new));
        if has_changed {
            store.clear();
        }
        Reloaded {
            rules,
            has_changed,
            changes,
            needs_restart: reread.needs_restart,
        }
    }

    fn count_reload(&self, result: RulesReload) {
        self.reloads[result.ordinal()].fetch_add(1, Ordering::Relaxed);
    }

    /// How often rules decided, by what they said.
    pub fn decisions(&self) -> Vec<(&'static str, u64)> {
        counts::<RuleOutcome>(&self.decisions)
    }

    /// How often they were read again, by what came of it.
    pub fn reloads(&self) -> Vec<(&'static str, u64)> {
        counts::<RulesReload>(&self.reloads)
    }

    /// The rules in force, and how often each has decided.
    pub fn report(&self) -> RulesReport {
        let rules = self.get();
        let report = |(at, rule): (usize, &Rule)| {
            let (cache, bounds, transaction_reads) = match rule.action {
                Action::Refuse => (Some(false), None, None),
                Action::Keep(bounds) => (Some(true), Some(bounds), None),
                Action::ReadInTransactions(reads) => (None, None, Some(reads)),
            };
            RuleReport {
                rule: at + 1,
                line: rule.line,
                digest: rule.digest.map(|digest| digest.to_string()),
                table: rule.table.as_ref().map(ToString::to_string),
                account: rule.account.as_ref().map(ToString::to_string),
                schema: rule.schema.as_deref().map(str::to_owned),
                cache,
                time_to_live_ms: bounds.and_then(|bounds| bounds.time_to_live_ms),
                result_bytes_max: bounds.and_then(|bounds| bounds.result_bytes_max),
                transaction_reads,
                words: rule.to_string(),
                decided: rules.decided(at),
            }
        };
        RulesReport {
            file: self.source.file().map(ToOwned::to_owned),
            rules: rules.all().iter().enumerate().map(report).collect(),
        }
    }
}

/// What is gone and what is new, in words.
fn changes(old: &RuleSet, new: &RuleSet) -> Vec<String> {
    let told = |what: &'static str, rules: Vec<String>| {
        let rules = rules.into_iter().take(CHANGES_TOLD_MAX);
        rules.map(move |rule| format!("{what}: {rule}"))
    };
    let gone = told("gone", old.without_those_of(new));
    gone.chain(told("new", new.without_those_of(old))).collect()
}

/// Numbers with the labels of what they count.
fn counts<R: Reason>(numbers: &[AtomicU64]) -> Vec<(&'static str, u64)> {
    let numbers = numbers.iter().map(|number| number.load(Ordering::Relaxed));
    R::ALL
        .iter()
        .map(|reason| reason.as_str())
        .zip(numbers)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn rule(change: impl FnOnce(&mut Rule)) -> Rule {
        let mut rule = Rule {
            action: Action::Refuse,
            ..Rule::default()
        };
        change(&mut rule);
        rule
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_is_counted() {
        let bounds = Bounds {
            time_to_live_ms: Some(5),
            result_bytes_max: None,
        };
        let rules = RulesInForce::new(
            vec![
                rule(|rule| {
                    rule.table = Some("shop.price".parse().unwrap());
                    rule.action = Action::Keep(Bounds::default());
                }),
                rule(|rule| rule.table = Some("shop.*".parse().unwrap())),
                rule(|rule| {
                    rule.schema = Some("shop".into());
                    rule.action = Action::Keep(bounds);
                }),
            ],
            crate::config::Settings::load(None, &[]).unwrap().source,
        );
        let ask = |tables: &[(&str, &str)], schema| {
            let facts = Facts {
                digest: None,
                tables,
                names_have_case: true,
                account: Some("app@%"),
                schema,
            };
            rules.decide(&rules.get(), &facts)
        };
        assert_eq!(ask(&[("shop", "price")], None), Ok(Bounds::default()));
        assert_eq!(
            ask(&[("shop", "t")], Some("shop")),
            Err(Bypass::RuleRefuses)
        );
        assert_eq!(ask(&[("shop", "t")], None), Err(Bypass::RuleRefuses));
        // The first rule matches, whatever the second says of the other table.
        assert_eq!(
            ask(&[("shop", "t"), ("shop", "price")], None),
            Ok(Bounds::default())
        );
        assert_eq!(ask(&[("stock", "t")], Some("shop")), Ok(bounds));
        assert_eq!(ask(&[("stock", "t")], None), Ok(Bounds::default()));
        let decided: Vec<u64> = rules
            .report()
            .rules
            .iter()
            .map(|rule| rule.decided)
            .collect();
        assert_eq!(decided, [2, 2, 1]);
        assert_eq!(
            rules.decisions(),
            [("refused", 2), ("kept", 2), ("bounded", 1)]
        );
    }
}
