//! What the product takes from others is listed in `docs/dependencies.md`: each crate, why, and who
//! uses it. So a new one is a decision that somebody sees. And the code of the crate that takes it
//! names it.
//!
//! It is about `[dependencies]` of the product's crates; what only tests use isn't in it.

use super::Violation;
use super::repository::Repository;
use super::rust;

const LIST: &str = "docs/dependencies.md";

/// The crates that become the product, by their directories.
const PRODUCT: [&str; 8] = [
    "wire", "sql", "cache", "binlog", "engine", "net", "upstream", "proxy",
];

/// A crate takes another.
#[derive(Debug)]
struct Use {
    user: &'static str,
    dependency: String,
    path: String,
    line: usize,
}

/// A row of the list.
#[derive(Debug)]
struct Row<'a> {
    line: usize,
    dependency: &'a str,
    why: &'a str,
    users: Vec<&'a str>,
}

/// Finds what isn't listed, and what is and is gone.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let uses: Vec<Use> = PRODUCT
        .into_iter()
        .flat_map(|user| uses(repository, user))
        .collect();
    let rows = rows(repository.text(LIST));
    let is_listed = |one: &Use| {
        rows.iter()
            .any(|row| row.dependency == one.dependency && row.users.contains(&one.user))
    };
    let mut found: Vec<Violation> = uses
        .iter()
        .filter(|one| !is_listed(one))
        .map(|one| {
            Violation::new(
                &one.path,
                one.line,
                format!("'{}' isn't listed as used by {}", one.dependency, one.user),
                format!("say in {LIST} why it is needed, or do without it"),
            )
        })
        .collect();
    for row in &rows {
        found.extend(faults(row, &uses));
    }
    for one in uses.iter().filter(|one| !is_in_code(repository, one)) {
        let what = format!("the code of {} doesn't use '{}'", one.user, one.dependency);
        found.push(Violation::new(
            &one.path,
            one.line,
            what,
            "take it out of the manifest",
        ));
    }
    found
}

/// Whether the code of the crate names what it takes.
fn is_in_code(repository: &Repository, one: &Use) -> bool {
    let name = one.dependency.replace('-', "_");
    let source = format!("crates/{}/src/", one.user);
    let files = repository
        .rust()
        .filter(|file| file.path.starts_with(&source));
    let mut files = files.filter(|file| file.text.contains(&name));
    files.any(|file| {
        rust::lex(&file.text)
            .tokens
            .iter()
            .any(|token| token.text == name)
    })
}

/// What is wrong with a row.
fn faults(row: &Row<'_>, uses: &[Use]) -> Vec<Violation> {
    let dependency = row.dependency;
    let mut found = Vec::new();
    let mut tell = |what: String, remedy: &str| {
        found.push(Violation::new(LIST, row.line, what, remedy));
    };
    if row.why.is_empty() {
        tell(format!("'{dependency}' has no reason"), "give one");
    }
    if row.users.is_empty() {
        tell(
            format!("'{dependency}' has no user"),
            "name the crates that use it",
        );
    }
    for user in &row.users {
        let is_there = |one: &Use| one.dependency == dependency && one.user == *user;
        if !uses.iter().any(is_there) {
            tell(
                format!("'{dependency}' is listed as used by {user}, which doesn't take it"),
                "take it off the list",
            );
        }
    }
    found
}

/// What a crate takes from others, by its manifest.
fn uses(repository: &Repository, user: &'static str) -> Vec<Use> {
    let path = format!("crates/{user}/Cargo.toml");
    let mut uses = Vec::new();
    let mut is_dependencies = false;
    for (number, line) in (1..).zip(repository.text(&path).lines()) {
        let line = line.trim();
        let mut dependency = None;
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            is_dependencies = is_table(table);
            // `[dependencies.NAME]`
            dependency = table
                .rsplit_once('.')
                .filter(|(table, _)| is_table(table))
                .map(|(_, name)| name);
        } else if is_dependencies && !line.starts_with('#') {
            dependency = line.split(['.', '=', ' ']).next();
        }
        if let Some(name) = dependency.map(|name| name.trim_matches('"'))
            && !name.is_empty()
            && !name.starts_with("remora")
        {
            uses.push(Use {
                user,
                dependency: name.to_owned(),
                path: path.clone(),
                line: number,
            });
        }
    }
    uses
}

/// Whether a table of a manifest lists what the product is built with.
fn is_table(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    name == "dependencies" || name == "build-dependencies"
}

/// The rows of the list: `| crate | why | who |`.
fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = (1..).zip(text.lines());
    lines.filter_map(|(line, text)| row(line, text)).collect()
}

fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let cells = text.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = cells.split('|').map(str::trim);
    let (dependency, why, users) = (cells.next()?, cells.next()?, cells.next()?);
    // The head of the table, and the line below it, have no crate in quotes.
    let dependency = dependency.strip_prefix('`')?.strip_suffix('`')?;
    let users = users.split(", ").map(|user| user.trim_matches('`'));
    Some(Row {
        line,
        dependency,
        why,
        users: users.filter(|user| !user.is_empty()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: &str = "[package]\nname = \"remora-wire\"\n\n[dependencies]\nremora-sql.workspace = true\n\
                        a.workspace = true\n# c\nb = { version = \"1\" }\n\n[dev-dependencies]\nd = \"1\"\n";

    fn found(list: &str, manifest: &str) -> Vec<String> {
        let code = ("crates/wire/src/lib.rs", "use a::b; use c::d; // e");
        let files = [(LIST, list), ("crates/wire/Cargo.toml", manifest), code];
        let found = violations(&Repository::of(&files));
        let told = |one: Violation| format!("{}:{} {}", one.path, one.line, one.what);
        found.into_iter().map(told).collect()
    }

    #[test]
    fn what_is_listed_with_a_reason_and_its_user_is_right() {
        let list =
            "| crate | why | who |\n|---|---|---|\n| `a` | A. | `wire` |\n| `b` | B. | `wire` |\n";
        assert!(found(list, WIRE).is_empty());
    }

    #[test]
    fn what_is_missing_is_found() {
        let list = "| `a` | A. | `wire` |\n";
        assert_eq!(
            found(list, WIRE),
            ["crates/wire/Cargo.toml:8 'b' isn't listed as used by wire"]
        );
        let tables =
            "[target.'cfg(unix)'.dependencies]\nc = \"1\"\n[dependencies.d]\nversion = \"1\"\n";
        assert_eq!(found("", tables).len(), 2);
    }

    #[test]
    fn what_the_code_does_not_name_is_found() {
        let list = "| `e-f` | E. | `wire` |\n";
        let told = found(list, "[dependencies]\ne-f = \"1\"\n");
        assert_eq!(
            told,
            ["crates/wire/Cargo.toml:2 the code of wire doesn't use 'e-f'"]
        );
    }

    #[test]
    fn what_is_gone_and_what_has_no_reason_or_user_is_found() {
        let list = "| `a` | A. | `wire`, `sql` |\n| `b` | | `wire` |\n| `c` | C. | |\n";
        assert_eq!(
            found(list, WIRE),
            [
                "docs/dependencies.md:1 'a' is listed as used by sql, which doesn't take it",
                "docs/dependencies.md:2 'b' has no reason",
                "docs/dependencies.md:3 'c' has no user",
            ]
        );
    }
}
