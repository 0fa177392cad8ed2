//! The top modules of a crate don't need each other in a circle: one can be read, tested and
//! changed without those that need it.
//!
//! A top module is `src/NAME.rs` or `src/NAME/`. It needs another if its code, tests left out,
//! names it (`crate::NAME`, or `super::` up to the root), or names what the root takes from it by
//! `pub use`. What macros write isn't seen.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::repository::{File, Repository};
use super::rust::{self, Token};

/// One module needs another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Need {
    of_crate: String,
    pub(super) from: String,
    pub(super) to: String,
}

impl Need {
    /// In a line.
    pub(super) fn line(&self) -> String {
        format!("{}: {} -> {}", self.of_crate, self.from, self.to)
    }
}

/// Needs, and the first place of each: a path and a line.
pub(super) type Needs = BTreeMap<Need, (String, usize)>;

/// Finds needs in circles.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let crates = crates(repository);
    let circular = crates
        .iter()
        .flat_map(|name| in_circles(needs(repository, name)));
    circular
        .map(|(need, (path, line))| {
            Violation::new(
                &path,
                line,
                format!("'{}' closes a circle of modules", need.line()),
                "move what both need into a module that needs neither, or hand it over as a value",
            )
        })
        .collect()
}

fn crates(repository: &Repository) -> BTreeSet<String> {
    let name = |file: &File| {
        let (name, _) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
        (!name.contains('/')).then(|| name.to_owned())
    };
    repository.rust().filter_map(name).collect()
}

/// Those needs between modules that also need each other the other way round.
fn in_circles(needs: Needs) -> Needs {
    let mut next: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for need in needs.keys() {
        next.entry(need.from.clone())
            .or_default()
            .insert(need.to.clone());
    }
    needs
        .into_iter()
        .filter(|(need, _)| leads_to(&next, &need.to, &need.from))
        .collect()
}

/// Whether one gets from one module to another by needs.
fn leads_to(next: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(module) = left.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            left.extend(next.get(module).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// A file of a crate: where it stands among the modules, and its code.
pub(super) struct Source<'a> {
    pub(super) file: &'a File,
    /// The modules that lead to it; none for the root.
    modules: Vec<&'a str>,
    pub(super) tokens: Vec<Token<'a>>,
}

/// The crate's top modules, and a file of each: that of the module itself, if there is one.
pub(super) fn tops<'a>(repository: &'a Repository, of_crate: &str) -> BTreeMap<&'a str, &'a str> {
    let mut sources = sources(repository, of_crate);
    sources.sort_by_key(|source| source.modules.len());
    let mut tops = BTreeMap::new();
    for source in &sources {
        if let Some(top) = source.modules.first() {
            tops.entry(*top).or_insert(&*source.file.path);
        }
    }
    tops
}

/// What the crate's modules need of each other.
pub(super) fn needs(repository: &Repository, of_crate: &str) -> Needs {
    let sources = sources(repository, of_crate);
    let tops: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| source.modules.first().copied())
        .collect();
    let roots = sources.iter().filter(|source| source.modules.is_empty());
    let exported: BTreeMap<&str, &str> = roots.flat_map(|root| exports(&root.tokens)).collect();
    let mut needs = Needs::new();
    for source in &sources {
        let Some(from) = source.modules.first() else {
            continue;
        };
        for token in named(&source.tokens, source.modules.len()) {
            let to = tops.get(token.text).or_else(|| exported.get(token.text));
            let Some(to) = to.filter(|to| *to != from && tops.contains(*to)) else {
                continue;
            };
            let need = Need {
                of_crate: of_crate.to_owned(),
                from: (*from).to_owned(),
                to: (*to).to_owned(),
            };
            let place = || (source.file.path.clone(), token.line);
            needs.entry(need).or_insert_with(place);
        }
    }
    needs
}

/// The crate's files, without those that are for tests only.
pub(super) fn sources<'a>(repository: &'a Repository, of_crate: &str) -> Vec<Source<'a>> {
    let root = format!("crates/{of_crate}/src/");
    let mut sources = Vec::new();
    let mut for_tests: Vec<Vec<&str>> = Vec::new();
    for file in repository.rust() {
        let Some(path) = file.path.strip_prefix(&root) else {
            continue;
        };
        let modules = modules(path);
        let lexed = rust::lex(&file.text);
        let (tokens, tests) = rust::without_tests(&lexed.tokens);
        for name in tests {
            for_tests.push(modules.iter().copied().chain([name]).collect());
        }
        sources.push(Source {
            file,
            modules,
            tokens,
        });
    }
    sources.retain(|source| {
        let is_test = |module: &Vec<&str>| source.modules.starts_with(module);
        !for_tests.iter().any(is_test)
    });
    sources
}

/// The modules that lead to a file, from its path below `src/`.
fn modules(path: &str) -> Vec<&str> {
    let mut modules: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    let is_root = matches!(modules[..], ["lib" | "main"]);
    if is_root || modules.last() == Some(&"mod") {
        modules.pop();
    }
    modules
}

/// The names that stand behind a way to the crate's root: after `crate::`, or after as many
/// `super::` as the file is deep. `use` trees in braces have several.
fn named<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<Token<'a>> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = at;
        let mut supers = 0;
        while word(at) == "super" && word(at + 1) == "::" {
            supers += 1;
            at += 2;
        }
        if word(at) == "crate" && word(at + 1) == "::" {
            supers = depth;
            at += 2;
        }
        if at == before {
            at += 1;
        } else if supers == depth {
            names.extend(heads(&tokens[at..]));
        }
    }
    names
}

/// The first names of a path, or of each path of a `use` tree.
fn heads<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    match tokens {
        [brace, rest @ ..] if brace.text == "{" => {
            let mut heads = Vec::new();
            let mut depth = 1;
            let mut is_first = true;
            for token in rest {
                match token.text {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    "," => is_first = depth == 1,
                    _ if is_first => {
                        heads.push(*token);
                        is_first = false;
                    }
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            heads
        }
        [name, ..] => vec![*name],
        [] => Vec::new(),
    }
}

/// What the root takes from its modules: each name, and the module.
fn exports<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, &'a str)> {
    let statements = tokens.split(|token| token.text == ";");
    let mut exports = Vec::new();
    for statement in statements {
        let words: Vec<&str> = statement.iter().map(|token| token.text).collect();
        let Some(at) = words.iter().position(|word| *word == "use") else {
            continue;
        };
        let mut path = &words[at + 1..];
        if let ["self" | "crate", "::", rest @ ..] = path {
            path = rest;
        }
        if let [module, "::", rest @ ..] = path {
            let leaves =
                (0..rest.len()).filter(|at| !matches!(rest.get(at + 1), Some(&"::" | &"as")));
            exports.extend(leaves.map(|at| (rest[at], *module)));
        }
    }
    exports
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "crates/x/src/a.rs";
    const B: &str = "crates/x/src/b/mod.rs";
    const DEEP: &str = "crates/x/src/b/c.rs";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let found = violations(&Repository::of(files));
        let told = |one: Violation| format!("{}:{} {}", one.path, one.line, one.what);
        found.into_iter().map(told).collect()
    }

    #[test]
    fn two_modules_that_need_each_other_are_found() {
        let told = found(&[(A, "\nuse crate::b::C;"), (B, "fn f() { crate::a::g(); }")]);
        assert_eq!(
            told,
            [
                "crates/x/src/a.rs:2 'x: a -> b' closes a circle of modules",
                "crates/x/src/b/mod.rs:1 'x: b -> a' closes a circle of modules",
            ]
        );
    }

    #[test]
    fn a_circle_shows_however_the_modules_are_named() {
        let root = (
            "crates/x/src/lib.rs",
            "mod a; mod b;\npub use a::{T, u::V as W};",
        );
        for (path, text) in [
            (B, "use crate::{d::{a, e}, a::T};"),
            (B, "use super::a;"),
            (DEEP, "use super::super::{a::T};"),
            (DEEP, "use crate::T;"),
            (DEEP, "fn f() -> Option<crate::W> { None }"),
        ] {
            let told = found(&[root, (A, "use crate::b;"), (path, text)]);
            assert_eq!(told.len(), 2, "{text}: {told:?}");
        }
    }

    #[test]
    fn one_way_is_no_circle_and_tests_and_comments_need_nothing() {
        for (path, text) in [
            (
                B,
                "// crate::a\n/// [`crate::a`]\nconst C: &str = \"crate::a\";",
            ),
            (B, "#[cfg(test)] mod tests { use crate::a; }"),
            (B, "use crate::{d::{a, e}};"),
            (DEEP, "use super::a;"),
            (DEEP, "use crate::b::a;"),
        ] {
            let told = found(&[(A, "use crate::b;"), (path, text)]);
            assert!(told.is_empty(), "{text}: {told:?}");
        }
        let tests = [(B, "#[cfg(test)]\nmod c;"), (DEEP, "use crate::a;")];
        assert!(found(&[(A, "use crate::b;"), tests[0], tests[1]]).is_empty());
    }
}
