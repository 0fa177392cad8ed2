//! The options as they are in force, for people.

use serde::Serialize;

use super::options::{LogOptions, Options};
use super::settings::Settings;
use super::spec;

/// An option with the value that it has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptionInForce {
    /// `section.name`.
    pub option: String,
    /// Its value, as a configuration file would write it; none if it has none. What could be a
    /// secret is not shown.
    pub value: Option<String>,
    /// Its value when it is left out.
    pub default: Option<String>,
    /// What it means.
    pub meaning: String,
}

/// Names of options that would hold a secret. None does today: passwords and tokens are in files.
const SECRETS: [&str; 3] = ["password", "token", "secret"];

impl Settings {
    /// Every option, in the order of the reference.
    pub fn in_force(&self) -> Vec<OptionInForce> {
        let options = Options {
            listen: self.listen.clone(),
            upstream: self.upstream.clone(),
            follow: self.follow.clone(),
            cache: self.cache.clone(),
            workers: self.workers.clone(),
            digests: self.digests.clone(),
            observe: self.observe.clone(),
            opentelemetry: self.opentelemetry.clone(),
            query_cache: self.query_cache.clone(),
            admin: self.admin.clone(),
            shutdown: self.shutdown.clone(),
            log: LogOptions {
                level: self.log_level,
            },
        };
        // Everything in them was read from TOML or fits it.
        let values = toml::Value::try_from(&options)
            .unwrap_or_else(|_| toml::Value::Table(toml::Table::new()));
        let value = |section: &str, name: &str| values.get(section)?.get(name).map(shown);
        let mut all = Vec::new();
        for section in spec::sections() {
            for option in &section.options {
                let value = value(&section.name, &option.name);
                let is_secret = SECRETS.iter().any(|secret| option.name.ends_with(secret));
                all.push(OptionInForce {
                    option: option.path.clone(),
                    value: value.map(|value| if is_secret { "given".to_owned() } else { value }),
                    default: option.default.as_ref().map(shown),
                    meaning: option.description.clone(),
                });
            }
        }
        all
    }
}

/// A value without the quotes of TOML.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
