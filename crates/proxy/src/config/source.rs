//! Where a configuration came from, to be read again.

use std::path::{Path, PathBuf};

use remora_engine::rules::Rule;

use super::error::ConfigError;
use super::merge::{Override, merge};
use super::options::Options;
use super::settings::check_together;

/// Options that have their effect only where rules are read.
const OF_RULES: [&str; 1] = ["cache.rules_max"];

/// The file and the command line that a Remora was started with, and what they said then.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    file: Option<PathBuf>,
    overrides: Vec<Override>,
    options: toml::Table,
}

/// What of a configuration counts while Remora runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reread {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The names of other options whose values are no longer those that Remora was started with.
    pub needs_restart: Vec<String>,
}

impl Source {
    pub(super) fn new(file: Option<&Path>, overrides: &[Override], options: &Options) -> Source {
        Source {
            file: file.map(Path::to_owned),
            overrides: overrides.to_vec(),
            options: as_table(options),
        }
    }

    /// The configuration file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads the file again and checks all of it; `None` if there is none.
    pub fn reread(&self) -> Result<Option<Reread>, ConfigError> {
        let Some(file) = self.file() else {
            return Ok(None);
        };
        let merged = merge(Some(file), &self.overrides)?;
        check_together(&merged)?;
        let now = as_table(&merged.options);
        Ok(Some(Reread {
            rules: merged.rules,
            needs_restart: differing(&self.options, &now),
        }))
    }
}

/// Every option that has a value, defaults included.
fn as_table(options: &Options) -> toml::Table {
    toml::Table::try_from(options).unwrap_or_default()
}

/// The full names of the options that differ, in the order of the alphabet.
fn differing(before: &toml::Table, now: &toml::Table) -> Vec<String> {
    let value = |table: &toml::Table, section: &str, name: &str| {
        let section = table.get(section).and_then(toml::Value::as_table);
        section.and_then(|section| section.get(name)).cloned()
    };
    let mut names: Vec<(String, String)> = Vec::new();
    for (section, options) in before.iter().chain(now) {
        let options = options.as_table().into_iter().flat_map(toml::Table::keys);
        names.extend(options.map(|name| (section.clone(), name.clone())));
    }
    names.sort();
    names.dedup();
    names
        .iter()
        .filter(|(section, name)| value(before, section, name) != value(now, section, name))
        .map(|(section, name)| format!("{section}.{name}"))
        .filter(|path| !OF_RULES.contains(&path.as_str()))
        .collect()
}
