//! The rules, one for each thing that limits servers.
//!
//! Each has a limit beyond which it speaks, as a constant with its reason. A rule that finds
//! something gives its numbers, so that a person can judge, too.

mod buffer_pool;
mod connections;
mod log_and_purge;
mod processors;
mod query_cache;
mod tables;
mod takeover;
mod temporary_tables;
#[cfg(test)]
mod tests;

use crate::reading::{Brand, Reading};
use crate::report::{Evidence, Finding, Judgement, Report, Setting, Unit, Verdict};
use crate::rule::{Rule, Unjudged};

/// Judges a reading by each rule.
pub fn advise(reading: &Reading) -> Report {
    Report {
        server: reading.server.version.clone(),
        seconds: reading.seconds(),
        samples: reading.samples().len(),
        judgements: Rule::ALL.iter().map(|rule| judge(*rule, reading)).collect(),
        takeover: takeover::takeover(reading),
    }
}

fn judge(rule: Rule, reading: &Reading) -> Judgement {
    let mut case = Case {
        reading,
        evidence: Vec::new(),
    };
    let found = match rule {
        Rule::RedoLogSmall => log_and_purge::redo_log_small(&mut case),
        Rule::PurgeBehind => log_and_purge::purge_behind(&mut case),
        Rule::BufferPoolSmall => buffer_pool::buffer_pool_small(&mut case),
        Rule::FreePagesShort => buffer_pool::free_pages_short(&mut case),
        Rule::IoCapacityLow => buffer_pool::io_capacity_low(&mut case),
        Rule::TableCacheSmall => tables::table_cache_small(&mut case),
        Rule::DefinitionCacheSmall => tables::definition_cache_small(&mut case),
        Rule::ThreadCacheSmall => connections::thread_cache_small(&mut case),
        Rule::ConnectionsExhausted => connections::connections_exhausted(&mut case),
        Rule::BackLogShort => connections::back_log_short(&mut case),
        Rule::TemporaryTablesOnDisk => temporary_tables::temporary_tables_on_disk(&mut case),
        Rule::ProcessorsShort => processors::processors_short(&mut case),
        Rule::QueryCacheCosts => query_cache::query_cache_costs(&mut case),
    };
    let verdict = match found {
        Ok(Some(mut finding)) => {
            finding.settings.retain(Setting::changes_something);
            Verdict::Found(finding)
        }
        Ok(None) => Verdict::Fine,
        Err(why) => Verdict::Unjudged(why),
    };
    Judgement {
        rule,
        verdict,
        evidence: case.evidence,
    }
}

/// What a rule says: a finding, nothing, or that it can't tell.
type Found = Result<Option<Finding>, Unjudged>;

/// A rule at work on a reading.
struct Case<'r> {
    reading: &'r Reading,
    evidence: Vec<Evidence>,
}

impl Case<'_> {
    /// Notes a number that the rule goes by, and gives it back.
    fn note(&mut self, what: &'static str, value: f64, unit: Unit) -> f64 {
        self.evidence.push(Evidence { what, value, unit });
        value
    }

    /// How much of a counter a second saw; noted under its name.
    fn rate(&mut self, counter: &'static str) -> Result<f64, Unjudged> {
        let grown = self.growth(counter)?;
        Ok(self.note(counter, grown / self.reading.seconds(), Unit::PerSecond))
    }

    /// By how much a counter grew.
    fn growth(&self, counter: &str) -> Result<f64, Unjudged> {
        self.reading.growth(counter).ok_or(Unjudged::NotReported)
    }

    /// What a status variable is now; noted under its name.
    fn status(&mut self, name: &'static str) -> Result<f64, Unjudged> {
        let value = self.reading.status(name).ok_or(Unjudged::NotReported)?;
        Ok(self.note(name, value, Unit::Number))
    }

    /// What a variable is.
    fn variable(&self, name: &str) -> Result<f64, Unjudged> {
        let value = self.reading.variables.number(name);
        value.ok_or(Unjudged::NotReported)
    }

    /// A variable that is to become this.
    fn set(&self, name: &'static str, suggested: f64, is_dynamic: bool) -> Setting {
        let now = self.reading.variables.text(name).unwrap_or("unset");
        Setting {
            name,
            now: now.to_owned(),
            suggested: format!("{suggested:.0}"),
            unit: Unit::Number,
            is_dynamic,
        }
    }

    /// The same for one that counts bytes.
    fn set_bytes(&self, name: &'static str, suggested: f64, is_dynamic: bool) -> Setting {
        Setting {
            unit: Unit::Bytes,
            ..self.set(name, suggested, is_dynamic)
        }
    }

    fn is_mariadb(&self) -> bool {
        self.reading.server.brand == Brand::MariaDb
    }
}

/// A share in percent; 0 of nothing.
fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}

/// The middle one of some numbers; `None` of none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
