//! The product's modules stand in layers, as ARCHITECTURE.md lists them: a module needs only those
//! of its own row or of earlier ones, and helpers. Helpers need only each other. The list has every
//! module, and nothing else.
//!
//! `cycles` says what a module is and what it needs. The crates' roots have no layer, and code for
//! tests or fuzzing isn't looked at.

use super::Violation;
use super::cycles;
use super::repository::Repository;

const LIST: &str = "ARCHITECTURE.md";

/// The heading above the list.
const HEADING: &str = "## The product's modules";

/// How the sentence begins that names the helpers.
const HELPERS: &str = "Small helpers aren't listed:";

/// The crates whose modules are listed, by their directories. A row that starts with `*engine:*`
/// begins that crate's modules.
const CRATES: [&str; 3] = ["engine", "upstream", "proxy"];

/// A name in the list.
#[derive(Debug, PartialEq, Eq)]
struct Listed<'a> {
    /// `None` for helpers, which belong to no crate in particular.
    of_crate: Option<&'static str>,
    name: &'a str,
    /// Counted from 1; also the module's layer, as earlier rows are lower.
    line: usize,
}

impl Listed<'_> {
    fn is(&self, of_crate: &str, module: &str) -> bool {
        self.name == module && self.of_crate.is_none_or(|its| its == of_crate)
    }

    /// Helpers are below all rows, wherever their sentence stands.
    fn layer(&self) -> usize {
        self.of_crate.map_or(0, |_| self.line)
    }
}

/// Finds uses of higher layers, and differences between the list and the modules.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let listed = listed(repository.text(LIST));
    let mut found = Vec::new();
    for of_crate in CRATES {
        found.extend(unlisted(repository, of_crate, &listed));
        found.extend(upward(repository, of_crate, &listed));
    }
    found.extend(gone(repository, &listed));
    found.extend(twice(&listed));
    found
}

/// The modules that the list lacks.
fn unlisted(repository: &Repository, of_crate: &str, listed: &[Listed<'_>]) -> Vec<Violation> {
    let modules = cycles::tops(repository, of_crate);
    let missing = modules
        .into_iter()
        .filter(|(module, _)| !listed.iter().any(|one| one.is(of_crate, module)));
    missing
        .map(|(module, path)| {
            Violation::new(
                path,
                1,
                format!("{LIST} doesn't list the module '{module}' of {of_crate}"),
                "put it in the row of its layer, below '## The product's modules'",
            )
        })
        .collect()
}

/// The needs of modules in later rows.
fn upward(repository: &Repository, of_crate: &str, listed: &[Listed<'_>]) -> Vec<Violation> {
    let layer = |module: &str| {
        let one = listed.iter().find(|one| one.is(of_crate, module))?;
        Some(one.layer())
    };
    let needs = cycles::needs(repository, of_crate).into_iter();
    let upward = needs.filter(|(need, _)| match (layer(&need.from), layer(&need.to)) {
        (Some(from), Some(to)) => from < to,
        _ => false,
    });
    upward
        .map(|(need, (path, line))| {
            Violation::new(
                &path,
                line,
                format!("'{}' leads to a later row of {LIST}", need.line()),
                "move what is needed down, hand it over as a value, or give the list another order",
            )
        })
        .collect()
}

/// The names in the list that are no modules.
fn gone(repository: &Repository, listed: &[Listed<'_>]) -> Vec<Violation> {
    let modules = CRATES.map(|of_crate| (of_crate, cycles::tops(repository, of_crate)));
    let is_there = |one: &Listed<'_>| {
        modules.iter().any(|(of_crate, modules)| {
            let mut modules = modules.keys();
            modules.any(|module| one.is(of_crate, module))
        })
    };
    let gone = listed.iter().filter(|one| !is_there(one));
    gone.map(|one| {
        let of_crate = one.of_crate.unwrap_or("any crate in the list");
        Violation::new(
            LIST,
            one.line,
            format!("'{}' is no module of {of_crate}", one.name),
            "take it off the list",
        )
    })
    .collect()
}

/// The names that were in the list before.
fn twice(listed: &[Listed<'_>]) -> Vec<Violation> {
    let is_again = |(at, one): &(usize, &Listed<'_>)| {
        let is_same = |before: &Listed<'_>| match one.of_crate {
            Some(of_crate) => before.is(of_crate, one.name),
            None => before.name == one.name,
        };
        listed[..*at].iter().any(is_same)
    };
    let again = listed.iter().enumerate().filter(is_again);
    again
        .map(|(_, one)| {
            let what = format!("'{}' is listed twice", one.name);
            Violation::new(LIST, one.line, what, "leave it where it belongs")
        })
        .collect()
}

/// The names of the list: `| *engine:* `a`, `b` | what they are |`, and the helpers.
fn listed(text: &str) -> Vec<Listed<'_>> {
    let mut of_crate = None;
    let mut listed = Vec::new();
    let lines = (1..).zip(text.lines());
    let below = lines.skip_while(|(_, text)| *text != HEADING).skip(1);
    for (line, text) in below.take_while(|(_, text)| !text.starts_with("## ")) {
        if let Some(helpers) = text.strip_prefix(HELPERS) {
            listed.extend(quoted(helpers).map(|name| Listed {
                of_crate: None,
                name,
                line,
            }));
        }
        let Some(cells) = text.strip_prefix('|') else {
            continue;
        };
        let cell = cells.split('|').next().unwrap_or_default();
        let begun = CRATES.into_iter().find(|its| {
            let begin = format!("*{its}:*");
            cell.trim_start().starts_with(&begin)
        });
        of_crate = begun.or(of_crate);
        if of_crate.is_some() {
            listed.extend(quoted(cell).map(|name| Listed {
                of_crate,
                name,
                line,
            }));
        }
    }
    listed
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# A\n\n| `no` |\n\n## The product's modules\n\n\
                        Small helpers aren't listed: `clock`, `log`.\n\n| modules | what |\n|---|---|\n";
    const ROWS: &str = "| *engine:* `key` | `no` |\n| `rules`, `tags` | R. |\n\
                        | *proxy:* `net` | N. |\n| `app` | A. |\n\n## B\n\n| `no` |\n";

    /// All that the list has, each needing nothing.
    const FILES: [(&str, &str); 7] = [
        ("crates/engine/src/key.rs", ""),
        ("crates/engine/src/rules/mod.rs", ""),
        ("crates/engine/src/tags.rs", ""),
        ("crates/proxy/src/app.rs", ""),
        ("crates/proxy/src/clock.rs", ""),
        ("crates/proxy/src/log.rs", ""),
        ("crates/proxy/src/net/mod.rs", ""),
    ];

    /// What is found if some files have another text, or are there too.
    fn found(list: &str, others: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![(LIST, list)];
        let is_other = |path: &str| others.iter().any(|(other, _)| *other == path);
        files.extend(FILES.into_iter().filter(|(path, _)| !is_other(path)));
        files.extend(others);
        let found = violations(&Repository::of(&files));
        let told = |one: Violation| format!("{}:{} {}", one.path, one.line, one.what);
        found.into_iter().map(told).collect()
    }

    #[test]
    fn needs_of_the_same_row_of_earlier_ones_and_of_helpers_are_right() {
        let list = format!("{HEAD}{ROWS}");
        for other in [
            (
                "crates/engine/src/rules/mod.rs",
                "use crate::{tags, key, clock};",
            ),
            ("crates/engine/src/tags.rs", "use super::rules;"),
            ("crates/proxy/src/app.rs", "use crate::net; use crate::log;"),
            ("crates/proxy/src/clock.rs", "use crate::log;"),
            ("crates/proxy/src/lib.rs", "use app::A; mod app;"),
            ("crates/proxy/src/main.rs", "use remora::app;"),
        ] {
            let told = found(&list, &[other]);
            assert!(told.is_empty(), "{other:?}: {told:?}");
        }
    }

    #[test]
    fn needs_of_later_rows_are_found_and_helpers_need_no_row() {
        let list = format!("{HEAD}{ROWS}");
        let told = found(
            &list,
            &[
                ("crates/engine/src/key.rs", "\nuse crate::tags;"),
                ("crates/proxy/src/clock.rs", "use crate::net;"),
                ("crates/proxy/src/net/a.rs", "use super::super::app;"),
            ],
        );
        assert_eq!(
            told,
            [
                "crates/engine/src/key.rs:2 'engine: key -> tags' leads to a later row of \
                 ARCHITECTURE.md",
                "crates/proxy/src/clock.rs:1 'proxy: clock -> net' leads to a later row of \
                 ARCHITECTURE.md",
                "crates/proxy/src/net/a.rs:1 'proxy: net -> app' leads to a later row of \
                 ARCHITECTURE.md",
            ]
        );
    }

    #[test]
    fn what_is_for_tests_and_comments_need_nothing() {
        let list = format!("{HEAD}{ROWS}");
        for text in [
            "// crate::app\n/// [`crate::app`]\nconst C: &str = \"crate::app\";",
            "#[cfg(test)] mod tests { use crate::app; }",
            "#[cfg(any(test, fuzzing))] use crate::app;",
        ] {
            let told = found(&list, &[("crates/proxy/src/net/mod.rs", text)]);
            assert!(told.is_empty(), "{text}: {told:?}");
        }
        let root = (
            "crates/proxy/src/lib.rs",
            "#[cfg(any(test, fuzzing))]\npub mod simulation;",
        );
        let simulation = ("crates/proxy/src/simulation/mod.rs", "use crate::app;");
        assert!(found(&list, &[root, simulation]).is_empty());
    }

    #[test]
    fn a_module_that_is_not_listed_is_found() {
        let list = format!("{HEAD}{ROWS}");
        let told = found(
            &list,
            &[
                ("crates/engine/src/app.rs", ""),
                ("crates/proxy/src/no/mod.rs", ""),
                ("crates/proxy/src/no/a.rs", ""),
            ],
        );
        assert_eq!(
            told,
            [
                "crates/engine/src/app.rs:1 ARCHITECTURE.md doesn't list the module 'app' of engine",
                "crates/proxy/src/no/mod.rs:1 ARCHITECTURE.md doesn't list the module 'no' of proxy",
            ]
        );
        assert_eq!(found("# Another\n", &[]).len(), FILES.len());
    }

    #[test]
    fn a_name_that_is_no_module_or_is_there_twice_is_found() {
        let list = format!("{HEAD}| *engine:* `gone`, `key` | K. |\n{ROWS}")
            .replace("`clock`", "`lost`, `clock`");
        assert_eq!(
            found(&list, &[]),
            [
                "ARCHITECTURE.md:7 'lost' is no module of any crate in the list",
                "ARCHITECTURE.md:11 'gone' is no module of engine",
                "ARCHITECTURE.md:12 'key' is listed twice",
            ]
        );
    }
}
