//! What is wrong with a configuration, in one line that names the option, what it got and what it
//! accepts.

use std::fmt;
use std::path::PathBuf;

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A configuration file.
    File(PathBuf),
    /// An option on the command line, such as `--memory`, for the option of the file that it
    /// overrides.
    Flag(String),
    /// The built-in default, which clashes with something that was given.
    Default,
}

/// Why a configuration can't be used. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A file could not be read.
    Unreadable {
        /// The option that named the file.
        option: String,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        why: String,
    },
    /// The file is not TOML.
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where it is known.
        line: Option<usize>,
        /// What is wrong there.
        message: String,
    },
    /// The file has a section or option that does not exist.
    Unknown {
        /// Where it was given.
        origin: Origin,
        /// Its name as written.
        name: String,
        /// The existing name that is most like it.
        nearest: Option<String>,
    },
    /// An option has a value that it does not accept.
    Value {
        /// Where it was given.
        origin: Origin,
        /// The option's full name.
        option: String,
        /// What it got.
        got: String,
        /// What it accepts.
        accepts: String,
    },
    /// A rule is written wrongly.
    Rule {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// `rules`, or the key with `rules.` before it.
        option: String,
        /// What it got.
        got: String,
        /// What it accepts.
        accepts: String,
    },
    /// There are too many rules.
    TooManyRules {
        /// The file.
        path: PathBuf,
        /// The line of the first beyond, from 1.
        line: usize,
        /// How many there are.
        got: usize,
        /// `cache.rules_max`.
        rules_max: usize,
    },
    /// A rule has a key that does not exist.
    UnknownInRule {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Its name as written.
        name: String,
        /// The existing name that is most like it.
        nearest: Option<String>,
        /// Those that exist.
        known: String,
    },
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { option, path, why } => {
                let path = path.display();
                write!(
                    f,
                    "{option}: got {path}, which can't be read ({why}); accepts a readable file"
                )
            }
            Self::Syntax {
                path,
                line,
                message,
            } => {
                write!(f, "{}", path.display())?;
                if let Some(line) = line {
                    write!(f, ", line {line}")?;
                }
                write!(f, ": {}; accepts TOML", one_line(message))
            }
            Self::Unknown {
                origin,
                name,
                nearest,
            } => {
                write_origin(f, origin, name)?;
                f.write_str(" does not exist")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean {nearest}?"),
                    None => f.write_str("; `remora config` prints what does"),
                }
            }
            Self::Value {
                origin,
                option,
                got,
                accepts,
            } => {
                write_origin(f, origin, option)?;
                write!(f, ": got {}, accepts {accepts}", one_line(got))
            }
            Self::Rule {
                path,
                line,
                option,
                got,
                accepts,
            } => {
                let (path, got) = (path.display(), one_line(got));
                write!(
                    f,
                    "{path}, line {line}: {option}: got {got}, accepts {accepts}"
                )
            }
            Self::TooManyRules {
                path,
                line,
                got,
                rules_max,
            } => {
                let path = path.display();
                write!(
                    f,
                    "{path}, line {line}: rules: got {got}, accepts at most cache.rules_max ({rules_max})"
                )
            }
            Self::UnknownInRule {
                path,
                line,
                name,
                nearest,
                known,
            } => {
                let (path, name) = (path.display(), one_line(name));
                write!(f, "{path}, line {line}: rules.{name} does not exist; ")?;
                if let Some(nearest) = nearest {
                    write!(f, "did you mean {nearest}? ")?;
                }
                write!(f, "A rule accepts {known}")
            }
        }
    }
}

fn write_origin(f: &mut fmt::Formatter<'_>, origin: &Origin, option: &str) -> fmt::Result {
    match origin {
        Origin::File(path) => write!(f, "{}: {option}", path.display()),
        Origin::Flag(flag) => write!(f, "{flag} ({option})"),
        Origin::Default => f.write_str(option),
    }
}

/// Text of others, with its line breaks and control characters made harmless.
pub(crate) fn one_line(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(printable).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
