//! A path in backticks leads to a file or a directory that the repository has, if it begins with
//! one of the repository's directories. That is so in Markdown, in comments of code and in scripts.
//! Links are another rule's.
//!
//! What has a placeholder isn't looked at: a star, an ellipsis, a word in capitals. Nor is what is
//! built or installed, which no repository has.

use super::Violation;
use super::repository::{File, Repository};

/// With what a path begins that is looked at.
const ROOTS: [&str; 7] = [
    "crates/",
    "docs/",
    "fuzz/",
    "packaging/",
    "scripts/",
    "drivers/",
    "applications/",
];

/// Finds the paths that lead nowhere.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let looked_at = |file: &&File| {
        // Its tests are about trees of their own.
        !file.path.starts_with("crates/xtask/")
            && ["md", "rs", "toml"].iter().any(|it| file.has_extension(it))
    };
    let mut found = Vec::new();
    for file in repository.files.iter().filter(looked_at) {
        let is_prose = file.has_extension("md");
        for (number, line) in file.lines() {
            let line = line.trim_start();
            if !is_prose && !line.starts_with("//") && !line.starts_with('#') {
                continue;
            }
            for path in in_backticks(line) {
                if is_meant(path) && !repository.has(path.trim_end_matches('/')) {
                    found.push(Violation::new(
                        &file.path,
                        number,
                        format!("there is no '{path}'"),
                        "say where it is now, or take it away",
                    ));
                }
            }
        }
    }
    found
}

/// What stands between backticks.
fn in_backticks(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_meant(path: &str) -> bool {
    let is_of_path = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c);
    let is_made = ["fuzz/target", "fuzz/corpus", "fuzz/artifacts"]
        .iter()
        .any(|made| path.starts_with(made));
    ROOTS.iter().any(|root| path.starts_with(root)) && path.chars().all(is_of_path) && !is_made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let files = [(path, text), ("crates/a/src/b.rs", ""), ("docs/c.md", "")];
        let found = violations(&Repository::of(&files));
        found.into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn paths_that_lead_nowhere_are_found() {
        let text = "`crates/a/src/c.rs` and `docs/d.md`\n";
        let expected = ["there is no 'crates/a/src/c.rs'", "there is no 'docs/d.md'"];
        assert_eq!(found("README.md", text), expected);
        assert_eq!(found("crates/a/src/d.rs", &format!("//! {text}")), expected);
        assert_eq!(found("Cargo.toml", &format!("# {text}")), expected);
    }

    #[test]
    fn paths_to_what_is_there_are_right_and_others_are_not_looked_at() {
        for text in [
            "`crates/a/src/b.rs`, `crates/a/`, `docs`, `docs/c.md`",
            "`crates/*/src`, `docs/NAME.md`, `crates/…`, `src/e.rs`, `docs/x y`, crates/e",
            "`fuzz/corpus/e`",
        ] {
            assert!(found("README.md", text).is_empty(), "{text}");
        }
        let code = "let path = `docs/d.md`;";
        assert!(found("crates/a/src/d.rs", code).is_empty());
    }
}
