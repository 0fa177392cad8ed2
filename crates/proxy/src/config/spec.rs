//! What the option structs say about themselves, as a list: for the checks and the documents.

use std::fmt;
use std::sync::LazyLock;

use remora_net::Endpoint;
use schemars::schema_for;
use serde_json::Value as Json;

use super::host_name::HostName;
use super::options::Options;
use super::transport::Network;
use super::value::{AdminListen, ByteSize};

/// One section of the configuration.
#[derive(Debug)]
pub(super) struct Section {
    /// Its name, as in `[cache]`.
    pub(super) name: String,
    /// What it is about.
    pub(super) description: String,
    /// Its options, in the order in which the structs declare them.
    pub(super) options: Vec<OptionSpec>,
}

/// One option.
#[derive(Debug)]
pub(super) struct OptionSpec {
    /// `section.name`.
    pub(super) path: String,
    /// Its name within the section.
    pub(super) name: String,
    /// What it means.
    pub(super) description: String,
    /// What it accepts.
    pub(super) accepts: Accepts,
    /// Its value when it is left out; none if it then has none.
    pub(super) default: Option<toml::Value>,
    /// A value to show where there is no default.
    pub(super) example: Option<String>,
}

/// What an option accepts.
#[derive(Debug)]
pub(super) enum Accepts {
    Integer { min: u64, max: u64 },
    Size { min: u64, max: u64 },
    Share,
    Boolean,
    Text,
    Endpoint,
    Endpoints,
    Networks,
    HostNames,
    AdminListen,
    Choice(Vec<String>),
}

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Size { min, max } => {
                let (min, max) = (display_size(*min), display_size(*max));
                write!(f, "a size from {min} to {max}, such as \"8MiB\"")
            }
            Self::Share => f.write_str("a number from 0 to 1"),
            Self::Boolean => f.write_str("true or false"),
            Self::Text => f.write_str("text that is not empty"),
            Self::Endpoint => f.write_str("host:port or unix:/path"),
            Self::Endpoints => f.write_str("a list of one or more of host:port or unix:/path"),
            Self::Networks => f.write_str("a list of networks such as 10.0.0.0/8, or of addresses"),
            Self::HostNames => f.write_str("a list of names of hosts, without port and scheme"),
            Self::AdminListen => f.write_str("an IP address and port, or off"),
            Self::Choice(names) => write!(f, "one of {}", names.join(", ")),
        }
    }
}

/// A size as the configuration writes it.
fn display_size(bytes: u64) -> ByteSize {
    ByteSize::new(usize::try_from(bytes).unwrap_or(usize::MAX))
}

impl Accepts {
    /// Whether the option takes this value.
    pub(super) fn admits(&self, value: &toml::Value) -> bool {
        match (self, value) {
            (Self::Integer { min, max }, toml::Value::Integer(number)) => {
                u64::try_from(*number).is_ok_and(|number| (*min..=*max).contains(&number))
            }
            (Self::Size { min, max }, toml::Value::Integer(_) | toml::Value::String(_)) => {
                let size = match value {
                    toml::Value::String(text) => text.parse::<ByteSize>().ok(),
                    other => other.clone().try_into::<ByteSize>().ok(),
                };
                size.is_some_and(|size| (*min..=*max).contains(&(size.bytes() as u64)))
            }
            (Self::Share, toml::Value::Float(share)) => (0.0..=1.0).contains(share),
            (Self::Share, toml::Value::Integer(share)) => (0..=1).contains(share),
            (Self::Boolean, toml::Value::Boolean(_)) => true,
            (Self::Text, toml::Value::String(text)) => !text.is_empty(),
            (Self::Endpoint, toml::Value::String(text)) => text.parse::<Endpoint>().is_ok(),
            (Self::Endpoints, toml::Value::Array(items)) => {
                !items.is_empty() && items.iter().all(|item| Self::Endpoint.admits(item))
            }
            (Self::Networks, toml::Value::Array(items)) => items.iter().all(|item| {
                item.as_str()
                    .is_some_and(|text| text.parse::<Network>().is_ok())
            }),
            (Self::HostNames, toml::Value::Array(items)) => items.iter().all(|item| {
                item.as_str()
                    .is_some_and(|text| text.parse::<HostName>().is_ok())
            }),
            (Self::AdminListen, toml::Value::String(text)) => text.parse::<AdminListen>().is_ok(),
            (Self::Choice(names), toml::Value::String(text)) => names.contains(text),
            _ => false,
        }
    }

    /// The value that an option on the command line gives, which is only text.
    /// Text that doesn't fit is kept as it is, for `admits` to refuse.
    pub(super) fn parse_text(&self, text: &str) -> toml::Value {
        let written = toml::Value::String(text.to_owned());
        match self {
            Self::Integer { .. } => text.parse().map_or(written, toml::Value::Integer),
            Self::Share => text.parse().map_or(written, toml::Value::Float),
            Self::Boolean => text.parse().map_or(written, toml::Value::Boolean),
            Self::Networks | Self::HostNames if text.trim().is_empty() => {
                toml::Value::Array(Vec::new())
            }
            Self::Endpoints | Self::Networks | Self::HostNames => {
                let items = text
                    .split(',')
                    .map(|item| toml::Value::String(item.trim().to_owned()));
                toml::Value::Array(items.collect())
            }
            _ => written,
        }
    }
}

/// Every section and option.
pub(super) fn sections() -> &'static [Section] {
    static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(read_sections);
    &SECTIONS
}

/// The option of this full name.
pub(super) fn find(path: &str) -> Option<&'static OptionSpec> {
    sections()
        .iter()
        .flat_map(|section| &section.options)
        .find(|option| option.path == path)
}

fn read_sections() -> Vec<Section> {
    let schema = schema_for!(Options);
    let schema = schema.as_value();
    let defaults = toml::Table::try_from(Options::default()).unwrap_or_default();
    members(schema)
        .map(|(name, property)| {
            let reference = property["$ref"].as_str().unwrap_or_default();
            let pointer = reference.trim_start_matches('#');
            let body = schema.pointer(pointer).unwrap_or(&Json::Null);
            let section_defaults = defaults.get(name).and_then(toml::Value::as_table);
            Section {
                name: name.clone(),
                description: description(property),
                options: members(body)
                    .map(|(option, property)| {
                        let default = section_defaults.and_then(|table| table.get(option));
                        read_option(name, option, property, default)
                    })
                    .collect(),
            }
        })
        .collect()
}

fn members(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn read_option(
    section: &str,
    name: &str,
    property: &Json,
    default: Option<&toml::Value>,
) -> OptionSpec {
    OptionSpec {
        path: format!("{section}.{name}"),
        name: name.to_owned(),
        description: description(property),
        accepts: accepts(property),
        default: default.cloned(),
        example: property["examples"][0].as_str().map(str::to_owned),
    }
}

/// The doc comment as one line.
fn description(property: &Json) -> String {
    let text = property["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn accepts(property: &Json) -> Accepts {
    let min = property["minimum"].as_u64().unwrap_or(0);
    let max = property["maximum"].as_u64().unwrap_or(i64::MAX as u64);
    match (property["type"].as_str(), property["format"].as_str()) {
        (_, Some("size")) => Accepts::Size { min, max },
        (_, Some("endpoint")) => Accepts::Endpoint,
        (_, Some("admin-listen")) => Accepts::AdminListen,
        (Some("array"), _) if property["items"]["format"] == "network" => Accepts::Networks,
        (Some("array"), _) if property["items"]["format"] == "host-name" => Accepts::HostNames,
        (Some("array"), _) => Accepts::Endpoints,
        (Some("number"), _) => Accepts::Share,
        (Some("boolean"), _) => Accepts::Boolean,
        (Some("integer"), _) => Accepts::Integer { min, max },
        _ => property["oneOf"]
            .as_array()
            .map_or(Accepts::Text, |choices| {
                let names = choices.iter().filter_map(|choice| choice["const"].as_str());
                Accepts::Choice(names.map(str::to_owned).collect())
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_described_and_admits_its_default() {
        for option in sections().iter().flat_map(|section| &section.options) {
            assert!(
                option.description.ends_with('.'),
                "{} is not described",
                option.path
            );
            if let Some(default) = &option.default {
                assert!(
                    option.accepts.admits(default),
                    "{} refuses its default",
                    option.path
                );
            } else {
                assert!(
                    option.example.is_some(),
                    "{} has neither default nor example",
                    option.path
                );
            }
        }
    }

    #[test]
    fn every_number_has_a_range() {
        for option in sections().iter().flat_map(|section| &section.options) {
            if let Accepts::Integer { max, .. } | Accepts::Size { max, .. } = option.accepts {
                assert!(max < i64::MAX as u64, "{} has no upper bound", option.path);
            }
        }
    }
}
