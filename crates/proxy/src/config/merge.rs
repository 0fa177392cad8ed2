//! From a file and the command line to [`Options`] whose every value has been checked.

use std::path::{Path, PathBuf};

use remora_engine::rules::Rule;

use super::error::{ConfigError, Origin};
use super::options::Options;
use super::rules::WrittenRules;
use super::spec::{self, OptionSpec};

/// An option given on the command line, which takes the place of the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// What was written, such as `--memory`.
    pub flag: String,
    /// The full name of the option, such as `cache.memory_bytes_max`.
    pub option: String,
    /// Its value as written. A list is written with commas.
    pub value: String,
}

/// Options with the place where each was given.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) options: Options,
    /// The rules of the file.
    pub(super) rules: Vec<Rule>,
    file: Option<PathBuf>,
    overrides: Vec<Override>,
    in_file: toml::Table,
}

impl Merged {
    /// Where the option's value was given.
    pub(super) fn origin(&self, option: &str) -> Origin {
        if let Some(given) = self.overrides.iter().rfind(|given| given.option == option) {
            return Origin::Flag(given.flag.clone());
        }
        let (section, name) = option.split_once('.').unwrap_or((option, ""));
        let in_file = self
            .in_file
            .get(section)
            .and_then(|section| section.get(name));
        match (&self.file, in_file) {
            (Some(file), Some(_)) => Origin::File(file.clone()),
            _ => Origin::Default,
        }
    }
}

/// Reads the file, if there is one, puts the overrides in, and checks each value by itself.
pub(super) fn merge(file: Option<&Path>, overrides: &[Override]) -> Result<Merged, ConfigError> {
    let (in_file, rules) = file.map(read_file).transpose()?.unwrap_or_default();
    if let Some(file) = file {
        check_table(&in_file, &Origin::File(file.to_owned()))?;
    }
    let mut table = in_file.clone();
    for given in overrides {
        put(&mut table, given)?;
    }
    let options: Options =
        toml::Value::Table(table)
            .try_into()
            .map_err(|error: toml::de::Error| {
                // Not reached while the checks above know every option; said plainly if they ever
                // don't.
                ConfigError::Value {
                    origin: file.map_or(Origin::Default, |file| Origin::File(file.to_owned())),
                    option: "configuration".to_owned(),
                    got: error.message().to_owned(),
                    accepts: "what `remora config` prints".to_owned(),
                }
            })?;
    Ok(Merged {
        rules: rules.checked(&options.cache)?,
        options,
        file: file.map(Path::to_owned),
        overrides: overrides.to_vec(),
        in_file,
    })
}

/// The options of a file, and its rules.
fn read_file(path: &Path) -> Result<(toml::Table, WrittenRules), ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        option: "--config".to_owned(),
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    let mut options = text
        .parse::<toml::Table>()
        .map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            line: error.span().map(|span| line_of(&text, span.start)),
            message: error.message().to_owned(),
        })?;
    options.remove("rules");
    Ok((options, WrittenRules::read(path, &text)?))
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

fn check_table(table: &toml::Table, origin: &Origin) -> Result<(), ConfigError> {
    for (section_name, section) in table {
        let known = spec::sections()
            .iter()
            .find(|known| known.name == *section_name);
        let Some(known) = known else {
            return Err(unknown(origin, section_name, section_names(section_name)));
        };
        let Some(section) = section.as_table() else {
            return Err(ConfigError::Value {
                origin: origin.clone(),
                option: section_name.clone(),
                got: section.to_string(),
                accepts: format!("a section, [{section_name}]"),
            });
        };
        for (name, value) in section {
            let Some(option) = known.options.iter().find(|option| option.name == *name) else {
                let written = format!("{section_name}.{name}");
                return Err(unknown(origin, &written, option_paths()));
            };
            check_value(option, value, origin)?;
        }
    }
    Ok(())
}

fn put(table: &mut toml::Table, given: &Override) -> Result<(), ConfigError> {
    let origin = Origin::Flag(given.flag.clone());
    let option =
        spec::find(&given.option).ok_or_else(|| unknown(&origin, &given.option, option_paths()))?;
    let value = option.accepts.parse_text(&given.value);
    check_value(option, &value, &origin)?;
    let (section, name) = option.path.split_once('.').unwrap_or((&option.path, ""));
    let section = table
        .entry(section)
        .or_insert_with(|| toml::Value::Table(toml::Table::new()));
    if let Some(section) = section.as_table_mut() {
        section.insert(name.to_owned(), value);
    }
    Ok(())
}

fn check_value(
    option: &OptionSpec,
    value: &toml::Value,
    origin: &Origin,
) -> Result<(), ConfigError> {
    if option.accepts.admits(value) {
        return Ok(());
    }
    Err(ConfigError::Value {
        origin: origin.clone(),
        option: option.path.clone(),
        got: value.to_string(),
        accepts: option.accepts.to_string(),
    })
}

fn unknown(
    origin: &Origin,
    name: &str,
    candidates: impl Iterator<Item = &'static str>,
) -> ConfigError {
    ConfigError::Unknown {
        origin: origin.clone(),
        name: name.to_owned(),
        nearest: nearest(name, candidates).map(str::to_owned),
    }
}

fn option_paths() -> impl Iterator<Item = &'static str> {
    spec::sections()
        .iter()
        .flat_map(|section| &section.options)
        .map(|option| option.path.as_str())
}

/// Sections, and options too, for one that was written outside its section.
fn section_names(written: &str) -> impl Iterator<Item = &'static str> {
    let misplaced = option_paths().filter(move |path| path.ends_with(&format!(".{written}")));
    misplaced.chain(spec::sections().iter().map(|section| section.name.as_str()))
}

/// The candidate that is most like the name, if one is alike enough to be meant.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .map(|candidate| (likeness(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness <= 2 + name.len() / 3)
        .min_by_key(|(likeness, _)| *likeness)
        .map(|(_, candidate)| candidate)
}

/// 0 for the option of this name elsewhere, 1 for one whose name was only begun, else the edit
/// distance.
fn likeness(name: &str, candidate: &str) -> usize {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    if last(name) == last(candidate) {
        return 0;
    }
    if candidate.starts_with(name) {
        return 1;
    }
    edit_distance(name.as_bytes(), candidate.as_bytes())
}

/// How many bytes must be inserted, deleted or replaced (Levenshtein).
fn edit_distance(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
