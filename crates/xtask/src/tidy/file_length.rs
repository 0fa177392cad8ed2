//! A file in Rust is at most so long that one can read it at a sitting. How long a function may be,
//! clippy says.

use super::Violation;
use super::repository::Repository;

/// The most lines that a file may have.
pub(super) const LINES_MAX: usize = 1100;

/// Finds the longer ones.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let lengths = repository
        .rust()
        .map(|file| (file, file.text.lines().count()));
    lengths
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(file, lines)| {
            Violation::new(
                &file.path,
                lines,
                format!("it has {lines} lines, and {LINES_MAX} are the most"),
                "give what stands for itself a file of its own",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_file_is_found_and_one_that_just_fits_is_not() {
        let fits = "a\n".repeat(LINES_MAX);
        let longer = format!("{fits}a\n");
        let repository = Repository::of(&[("a.rs", &fits), ("b.rs", &longer), ("c.md", &longer)]);
        let found = violations(&repository);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&*found[0].path, found[0].line), ("b.rs", LINES_MAX + 1));
    }
}
