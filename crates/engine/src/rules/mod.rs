//! What an operator decides about caching: the `[[rules]]` of the configuration file.
//!
//! Rules with `transaction_reads` are about a session's transactions. All that follows is about the
//! other rules.
//!
//! The first rule that matches a read decides. Rules only ever keep back: what the analysis refuses
//! stays refused, and whatever outdates a result does so under every rule.
//!
//! They are asked where a result is about to be kept, once the statement's tables are known, and
//! never on a hit. So what they forbid must not be in memory: when the rules change, everything
//! that was kept under the old ones is dropped, and what is on its way isn't stored
//! ([`remora_cache::Store::clear`]). A fill takes the store's epoch *before* it looks at the rules,
//! and a reload puts the new rules in force *before* it moves the epoch on: a fill that has seen
//! the old rules has the old epoch.
//!
//! | file | what it does |
//! |---|---|
//! | `pattern` | names with `*`, accounts |
//! | `transaction_reads` | which reads of transactions memory answers |
//!
//! The proxy's `config/rules.rs` reads them. Its `shared/rules_in_force.rs` has those in force,
//! their reload, and what they decided.

mod pattern;
#[cfg(test)]
mod tests;
mod transaction_reads;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use remora_sql::Digest;

pub use self::pattern::{AccountPattern, NamePattern, NotAPattern, TablePattern, is_unlike_a_name};
pub use self::transaction_reads::TransactionReads;
use crate::facts::TableFacts;

/// A rule: the conditions, all of which must hold, and what then happens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// Where it begins in the file, from 1.
    pub line: usize,
    /// The statement's digest.
    pub digest: Option<Digest>,
    /// One of the tables that it reads, views and the tables behind them included.
    pub table: Option<TablePattern>,
    /// The account, as `CURRENT_USER()` gives it.
    pub account: Option<AccountPattern>,
    /// The session's default schema.
    pub schema: Option<Box<str>>,
    /// What happens.
    pub action: Action,
}

/// What happens with the results of reads that a rule decides about, or with a session's
/// transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// They are never kept.
    Refuse,
    /// They may be kept, within bounds.
    Keep(Bounds),
    /// These of the reads in a session's transactions are answered from memory. About single reads
    /// such a rule decides nothing.
    ReadInTransactions(TransactionReads),
}

impl Default for Action {
    fn default() -> Action {
        Action::Keep(Bounds::default())
    }
}

/// Bounds that a rule sets beside all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// For how long a result may be served after its question was sent.
    pub time_to_live_ms: Option<u64>,
    /// The largest result that is kept.
    pub result_bytes_max: Option<usize>,
}

/// What rules look at of a read.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its digest; none where [`RuleSet::asks_for_digests`] says that it isn't needed.
    pub digest: Option<Digest>,
    /// Schema and name of each table that it reads, through views too.
    pub tables: &'a [(&'a str, &'a str)],
    /// Letter case counts in names of schemas and tables.
    pub names_have_case: bool,
    /// The account. None: any, as far as can be told.
    pub account: Option<&'a str>,
    /// The default schema, if there is one.
    pub schema: Option<&'a str>,
}

impl Rule {
    /// Whether it matches a read, if the account is left out of account.
    fn matches_but_for_account(&self, facts: &Facts<'_>) -> bool {
        let has_case = facts.names_have_case;
        self.digest
            .is_none_or(|digest| facts.digest == Some(digest))
            && self.schema.as_deref().is_none_or(|wanted| {
                facts
                    .schema
                    .is_some_and(|schema| pattern::is_same(wanted, schema, has_case))
            })
            && self.table.as_ref().is_none_or(|wanted| {
                let mut tables = facts.tables.iter();
                tables.any(|(schema, table)| wanted.matches(schema, table, has_case))
            })
    }

    /// Whether it decides about single reads.
    fn is_about_reads(&self) -> bool {
        !matches!(self.action, Action::ReadInTransactions(_))
    }

    fn matches(&self, facts: &Facts<'_>) -> bool {
        self.account
            .as_ref()
            .is_none_or(|wanted| facts.account.is_some_and(|account| wanted.matches(account)))
            && self.matches_but_for_account(facts)
    }

    /// Whether the two say the same, wherever they stand.
    fn says_the_same(&self, other: &Rule) -> bool {
        let at_same_line = Rule {
            line: other.line,
            ..self.clone()
        };
        at_same_line == *other
    }
}

/// In words: `never cached, where table = "shop.sessions"`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Refuse => f.write_str("never cached")?,
            Action::ReadInTransactions(reads) => {
                write!(f, "transaction_reads = \"{}\"", reads.as_str())?;
            }
            Action::Keep(bounds) => {
                f.write_str("cached")?;
                if let Some(time) = bounds.time_to_live_ms {
                    write!(f, " for at most {time} ms")?;
                }
                if let Some(bytes) = bounds.result_bytes_max {
                    write!(f, " up to {bytes} bytes")?;
                }
            }
        }
        let mut conditions = Vec::new();
        if let Some(digest) = self.digest {
            conditions.push(format!("digest = \"{digest}\""));
        }
        if let Some(table) = &self.table {
            conditions.push(format!("table = \"{table}\""));
        }
        if let Some(account) = &self.account {
            conditions.push(format!("account = \"{account}\""));
        }
        if let Some(schema) = &self.schema {
            conditions.push(format!("schema = \"{schema}\""));
        }
        if conditions.is_empty() {
            return f.write_str(match self.action {
                Action::ReadInTransactions(_) => ", in all sessions",
                Action::Refuse | Action::Keep(_) => ", all of them",
            });
        }
        write!(f, ", where {}", conditions.join(" and "))
    }
}

/// Rules in their order, ready to be asked. It never changes, but for what is counted.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Box<[Rule]>,
    /// Of each, how often it has decided.
    decided: Box<[AtomicU64]>,
    asks_for_digests: bool,
    asks_for_sessions: bool,
    asks_for_tables: bool,
}

/// The rule that decided, with its number from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'r> {
    /// Its place among the rules, from 1.
    pub number: usize,
    /// The rule.
    pub rule: &'r Rule,
}

impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rule {} (line {}): {}",
            self.number, self.rule.line, self.rule
        )
    }
}

impl RuleSet {
    /// Rules that have decided nothing yet.
    pub fn new(rules: Vec<Rule>) -> RuleSet {
        RuleSet {
            decided: rules.iter().map(|_| AtomicU64::new(0)).collect(),
            asks_for_digests: rules.iter().any(|rule| rule.digest.is_some()),
            asks_for_sessions: rules
                .iter()
                .filter(|rule| rule.is_about_reads())
                .any(|rule| rule.account.is_some() || rule.schema.is_some()),
            asks_for_tables: rules.iter().any(|rule| rule.table.is_some()),
            rules: rules.into(),
        }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a rule names a digest.
    #[inline]
    pub fn asks_for_digests(&self) -> bool {
        self.asks_for_digests
    }

    /// Whether a rule names an account or a default schema.
    #[inline]
    pub fn asks_for_sessions(&self) -> bool {
        self.asks_for_sessions
    }

    /// Whether a rule names tables.
    #[inline]
    pub fn asks_for_tables(&self) -> bool {
        self.asks_for_tables
    }

    /// The first rule that matches, counting nothing.
    pub fn find(&self, facts: &Facts<'_>) -> Option<Decision<'_>> {
        let mut rules = self.rules.iter().enumerate();
        let (at, rule) = rules.find(|(_, rule)| rule.is_about_reads() && rule.matches(facts))?;
        Some(Decision {
            number: at + 1,
            rule,
        })
    }

    /// Which reads of a session's transactions memory may answer, if a rule says so. `Off`, if
    /// the rule asks for an account and the session's isn't known.
    pub fn transaction_reads(&self, session: &Facts<'_>) -> Option<TransactionReads> {
        let is_unknown = session.account.is_none();
        let mut rules = self.rules.iter().filter(|rule| !rule.is_about_reads());
        let first = rules.find(|rule| {
            rule.matches(session)
                || is_unknown && rule.account.is_some() && rule.matches_but_for_account(session)
        })?;
        match first.action {
            _ if is_unknown && first.account.is_some() => Some(TransactionReads::Off),
            Action::ReadInTransactions(reads) => Some(reads),
            Action::Refuse | Action::Keep(_) => None,
        }
    }

    /// The rules for single accounts that decide before `before` does, or before the last rule has
    /// been passed.
    pub fn of_accounts<'r>(
        &'r self,
        facts: &Facts<'_>,
        before: Option<Decision<'_>>,
    ) -> Vec<Decision<'r>> {
        let end = before.map_or(self.rules.len(), |decision| decision.number - 1);
        let rules = self.rules[..end].iter().enumerate();
        let of_accounts = rules.filter(|(_, rule)| {
            rule.is_about_reads() && rule.account.is_some() && rule.matches_but_for_account(facts)
        });
        let decision = |(at, rule)| Decision {
            number: at + 1,
            rule,
        };
        of_accounts.map(decision).collect()
    }

    /// Counts that it has decided.
    pub fn count(&self, decision: Decision<'_>) {
        self.decided[decision.number - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// How often the rule with this place, from 0, has decided.
    pub fn decided(&self, at: usize) -> u64 {
        let decided = self.decided.get(at);
        decided.map_or(0, |decided| decided.load(Ordering::Relaxed))
    }

    /// In their order.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Goes on counting from where another one is, which says the same.
    pub fn count_on_from(&self, other: &RuleSet) {
        for (old, new) in other.decided.iter().zip(&self.decided) {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Whether both have the same rules in the same order.
    pub fn says_the_same(&self, other: &RuleSet) -> bool {
        self.len() == other.len()
            && self
                .rules
                .iter()
                .zip(&other.rules)
                .all(|(one, other)| one.says_the_same(other))
    }

    /// The rules of these that the other ones don't have, in words and with their lines.
    pub fn without_those_of(&self, other: &RuleSet) -> Vec<String> {
        let is_new = |rule: &&Rule| !other.rules.iter().any(|known| known.says_the_same(rule));
        let words = |rule: &Rule| format!("{rule} (line {})", rule.line);
        self.rules.iter().filter(is_new).map(words).collect()
    }
}

/// Schema and name of what a view reads; nothing for a table.
pub fn behind_view(facts: &TableFacts) -> impl Iterator<Item = (&str, &str)> {
    let names = facts.view_of.iter();
    names.map(|(schema, table)| (schema.as_str(), table.as_str()))
}
