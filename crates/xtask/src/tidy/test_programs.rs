//! Every test program states the servers on which it runs, so that the runner takes it along. The
//! runner says the same, but only after everything was built.

use super::Violation;
use super::repository::{File, Repository};
use crate::suite::statement::Statement;

/// Finds the programs that state nothing, or what can't be.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let programs = repository.rust().filter(|file| is_program(file));
    programs
        .filter_map(|file| {
            let error = Statement::read(&file.text).err()?;
            Some(Violation::new(
                &file.path,
                1,
                format!("the test program's first lines are no statement: {error}"),
                "see crates/xtask/src/suite/statement.rs",
            ))
        })
        .collect()
}

/// Whether cargo makes a test program of it: `tests/NAME.rs` or `tests/NAME/main.rs` of a crate.
fn is_program(file: &File) -> bool {
    let parts: Vec<&str> = file.path.split('/').collect();
    matches!(
        parts[..],
        ["crates", _, "tests", _] | ["crates", _, "tests", _, "main.rs"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_statement_is_found_and_its_modules_are_not() {
        let stated = "//! It does.\n//!\n//! Servers: none\n";
        let repository = Repository::of(&[
            ("crates/a/tests/b.rs", stated),
            ("crates/a/tests/c.rs", "//! It does.\n"),
            ("crates/a/tests/d/main.rs", "//! Servers: oracle\n"),
            ("crates/a/tests/d/e.rs", ""),
            ("crates/a/src/tests.rs", ""),
        ]);
        let found = violations(&repository);
        let paths: Vec<&str> = found.iter().map(|one| &*one.path).collect();
        assert_eq!(paths, ["crates/a/tests/c.rs", "crates/a/tests/d/main.rs"]);
        assert!(found[1].what.contains("'oracle' is no server"), "{found:?}");
    }
}
