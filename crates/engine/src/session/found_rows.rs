//! What statements do with the count that `FOUND_ROWS()` gives.

/// What a statement does with the count of found rows, if it has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundRows {
    /// It leaves it alone, on every server.
    Kept,
    /// An `UPDATE`.
    KeptByUpdate,
    /// A `DO`.
    KeptByDo,
    /// It sets it, or that isn't known.
    Set,
}

impl FoundRows {
    /// What this statement does. In doubt it is said to set the count.
    pub fn after(text: &[u8]) -> FoundRows {
        let word = |word: &&[u8]| !word.is_empty();
        let mut words = text
            .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .filter(word);
        let first = words.next().unwrap_or_default();
        // A comment or anything else before it leaves the rest unknown; so may another statement
        // behind it.
        let text = text.trim_ascii();
        let before_end = text.strip_suffix(b";").unwrap_or(text);
        if !text.starts_with(first) || before_end.contains(&b';') {
            return FoundRows::Set;
        }
        let first = first.to_ascii_uppercase();
        // Each of these may begin what reads; a definition says once what it defines.
        let mut tables = 0;
        let reads = |word: &[u8]| {
            let is_table = word.eq_ignore_ascii_case(b"table");
            tables += usize::from(is_table);
            [&b"select"[..], b"with", b"returning"]
                .iter()
                .any(|one| word.eq_ignore_ascii_case(one))
        };
        let kept = match &first[..] {
            b"TRUNCATE" | b"LOCK" | b"UNLOCK" | b"FLUSH" => return FoundRows::Kept,
            b"SET" | b"BEGIN" | b"START" | b"COMMIT" | b"ROLLBACK" | b"SAVEPOINT" | b"RELEASE"
            | b"USE" | b"INSERT" | b"REPLACE" | b"DELETE" | b"CREATE" | b"ALTER" | b"DROP" => {
                FoundRows::Kept
            }
            b"UPDATE" => FoundRows::KeptByUpdate,
            b"DO" => FoundRows::KeptByDo,
            _ => return FoundRows::Set,
        };
        let tables_max = usize::from(matches!(&first[..], b"CREATE" | b"ALTER" | b"DROP"));
        if words.any(reads) || tables > tables_max {
            FoundRows::Set
        } else {
            kept
        }
    }

    /// Whether a statement asks for the count, and for nothing else about the statement before it.
    pub fn is_asked_for_alone(text: &[u8]) -> bool {
        let text = text.trim_ascii().to_ascii_lowercase();
        let has = |what: &str| text.windows(what.len()).any(|part| part == what.as_bytes());
        let is_of_other_kind = text.starts_with(b"show") || text.starts_with(b"get");
        has("found_rows(")
            && !is_of_other_kind
            && !["row_count", "warning_count", "error_count"]
                .into_iter()
                .any(has)
    }
}

/// Whether a result can have another number of rows than is found: then nothing is said of it.
pub fn may_find_more_than_it_gives(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "limit",
        "union",
        "intersect",
        "except",
        "rollup",
        "fetch",
        "rownum",
    ]
    .iter()
    .any(|word| text.windows(word.len()).any(|part| part == word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_without_result_keep_the_count() {
        for text in [
            "SET @a = 1",
            " set names utf8",
            "INSERT INTO t VALUES (1)",
            "BEGIN",
            "lock tables t read",
            "TRUNCATE TABLE t",
            "DELETE FROM selects",
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD b INT",
        ] {
            assert_eq!(FoundRows::after(text.as_bytes()), FoundRows::Kept, "{text}");
        }
        for text in [
            "",
            "SELECT 1",
            "/* a */ SET @a = 1",
            "SET @a = (SELECT 1)",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t TABLE u",
            "CREATE TABLE t TABLE u",
            "CREATE TABLE t AS SELECT 1",
            "INSERT INTO t VALUES (1) RETURNING a",
            "DELETE FROM t WHERE a IN (select b FROM u)",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "CALL p()",
            "SET @a = 1; CALL p()",
            "SHOW TABLES",
            "\"SET\" x",
        ] {
            assert_eq!(FoundRows::after(text.as_bytes()), FoundRows::Set, "{text}");
        }
        assert_eq!(
            FoundRows::after(b"UPDATE t SET a = 1"),
            FoundRows::KeptByUpdate
        );
        assert_eq!(FoundRows::after(b"do 1"), FoundRows::KeptByDo);
    }

    #[test]
    fn a_question_for_more_than_the_count_is_told_apart() {
        for text in ["SELECT FOUND_ROWS()", " set @a = found_rows()"] {
            assert!(FoundRows::is_asked_for_alone(text.as_bytes()), "{text}");
        }
        for text in [
            "SELECT FOUND_ROWS(), ROW_COUNT()",
            "SELECT FOUND_ROWS(), @@warning_count",
            "SHOW WARNINGS -- found_rows()",
            "SELECT @found_rows",
        ] {
            assert!(!FoundRows::is_asked_for_alone(text.as_bytes()), "{text}");
        }
    }
}
