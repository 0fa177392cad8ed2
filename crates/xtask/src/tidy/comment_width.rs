//! Comment lines are at most as wide as rustfmt makes the code; rustfmt itself leaves them alone.
//! Rows of tables and what has no blank can't be wrapped and may be wider.

use super::Violation;
use super::repository::Repository;
use super::rust;

/// `max_width` of rustfmt.toml.
const COLUMNS_MAX: usize = 100;

/// Finds the wider ones.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repository.rust() {
        for (line, comment) in rust::lex(&file.text).comments {
            let columns = comment.chars().count();
            if columns > COLUMNS_MAX && can_be_wrapped(comment) {
                found.push(Violation::new(
                    &file.path,
                    line,
                    format!("a comment of {columns} columns, and {COLUMNS_MAX} are the most"),
                    "wrap it",
                ));
            }
        }
    }
    found
}

fn can_be_wrapped(comment: &str) -> bool {
    let body = comment.trim_start().trim_start_matches(['/', '!']).trim();
    !body.starts_with('|') && body.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        violations(&Repository::of(&[("a.rs", text)])).len()
    }

    #[test]
    fn what_is_wider_is_found_in_each_kind_of_comment() {
        for mark in ["//", "///", "//!", "    //"] {
            let just = "a".repeat(COLUMNS_MAX - mark.len() - 3);
            assert_eq!(found(&format!("{mark} {just} b\n")), 0);
            assert_eq!(found(&format!("{mark} {just} bc\n")), 1);
        }
    }

    #[test]
    fn what_can_not_be_wrapped_and_what_is_no_comment_may_be_wider() {
        let wide = "a".repeat(COLUMNS_MAX);
        assert_eq!(found(&format!("/// https://{wide}\n")), 0);
        assert_eq!(found(&format!("/// | {wide} | b |\n")), 0);
        assert_eq!(found(&format!("let a = \"\n// {wide} b\";\n")), 0);
        assert_eq!(found(&format!("let a = \"{wide} b\";\n")), 0);
    }
}
