//! Rules about the repository that a program can check. `cargo run -p xtask -- tidy` tells what
//! breaks them, and so does `cargo test -p xtask`.
//!
//! | file | the rule |
//! |---|---|
//! | `cycles` | the modules of a crate don't need each other in a circle |
//! | `layers` | the product's modules need only what ARCHITECTURE.md lists before them |
//! | `cores_without_io` | the cores and the engine do no I/O and read no clock |
//! | `comment_width` | comments are as wide as code |
//! | `file_length` | a file can be read at a sitting |
//! | `test_programs` | a test program states its servers |
//! | `machines` | nothing is about somebody's machine |
//! | `links` | links in Markdown lead somewhere |
//! | `paths` | and so do paths in backticks |
//! | `dependencies` | what the product depends on has a reason |
//! | `compatibility` | the page of what was tested names the versions that are |
//!
//! `repository` reads the files, `rust` tells code from comments.
//!
//! What is checked elsewhere: `crates/proxy/tests/config.rs` compares `docs/configuration.md`,
//! `docs/metrics.md` and `docs/reasons.md` with what the code prints, so every option, metric and
//! reason is on its page. Links in the documentation of the code are rustdoc's business (`make
//! doc`), the length of functions is clippy's.

mod comment_width;
mod compatibility;
mod cores_without_io;
mod cycles;
mod dependencies;
mod file_length;
mod layers;
mod links;
mod machines;
mod paths;
mod repository;
mod rust;
mod test_programs;

use std::fmt;
use std::path::Path;

use repository::Repository;

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Violation {
    path: String,
    /// Counted from 1.
    line: usize,
    what: String,
    /// How to fix it.
    remedy: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Violation {
            path: path.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            path,
            line,
            what,
            remedy,
        } = self;
        write!(f, "{path}:{line}: {what}; {remedy}")
    }
}

/// A rule: its name, and what finds the violations.
struct Rule {
    name: &'static str,
    violations: fn(&Repository) -> Vec<Violation>,
}

const RULES: [Rule; 11] = [
    Rule {
        name: "cycles",
        violations: cycles::violations,
    },
    Rule {
        name: "layers",
        violations: layers::violations,
    },
    Rule {
        name: "cores_without_io",
        violations: cores_without_io::violations,
    },
    Rule {
        name: "comment_width",
        violations: comment_width::violations,
    },
    Rule {
        name: "file_length",
        violations: file_length::violations,
    },
    Rule {
        name: "test_programs",
        violations: test_programs::violations,
    },
    Rule {
        name: "machines",
        violations: machines::violations,
    },
    Rule {
        name: "links",
        violations: links::violations,
    },
    Rule {
        name: "paths",
        violations: paths::violations,
    },
    Rule {
        name: "dependencies",
        violations: dependencies::violations,
    },
    Rule {
        name: "compatibility",
        violations: compatibility::violations,
    },
];

/// Prints what breaks a rule; whether nothing does.
///
/// # Errors
/// The repository can't be read.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let told = check(&Repository::read(root)?);
    for line in &told {
        println!("{line}");
    }
    if told.is_empty() {
        println!("tidy: {} rules hold", RULES.len());
    } else {
        println!("tidy: {} violations", told.len());
    }
    Ok(told.is_empty())
}

/// All violations, each as a line that names its rule.
fn check(repository: &Repository) -> Vec<String> {
    let of = |rule: &Rule| {
        let name = rule.name;
        let violations = (rule.violations)(repository);
        violations
            .into_iter()
            .map(move |violation| format!("{violation} (rule {name})"))
    };
    RULES.iter().flat_map(of).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let told = check(&Repository::read(&crate::root()).unwrap());
        assert!(told.is_empty(), "\n{}", told.join("\n"));
    }

    #[test]
    fn a_violation_names_the_place_the_fault_the_remedy_and_the_rule() {
        let long = "//\n".repeat(file_length::LINES_MAX + 1);
        let told = check(&Repository::of(&[("crates/a/src/lib.rs", &long)]));
        assert!(
            told[0].starts_with("crates/a/src/lib.rs:1101: it has 1101 lines"),
            "{told:?}"
        );
        assert!(told[0].ends_with(" (rule file_length)"), "{told:?}");
    }
}
