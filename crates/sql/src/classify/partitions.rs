//! Which statements may move rows from one partition to another without a trace in the log.
//!
//! `ALTER TABLE … ADD | COALESCE | REORGANIZE PARTITION LOCAL` rebuilds partitions. `REPAIR LOCAL
//! TABLE` and `ALTER TABLE … REPAIR PARTITION LOCAL` put rows where they belong that an `EXCHANGE
//! PARTITION … WITHOUT VALIDATION` has misplaced, and `OPTIMIZE` may copy them there.
//! `NO_WRITE_TO_BINLOG` is another word for `LOCAL`. No row changes; but a read of `t PARTITION
//! (p0)` gives others, and so does one that the server prunes to some partitions.
//!
//! MySQL 8.0 logs the first kind all the same.

use crate::cursor::Cursor;
use crate::keyword::Keyword as K;

/// Whether the cursor stands at one of these words.
pub(super) fn is_at_local(cursor: &Cursor<'_>) -> bool {
    matches!(cursor.word(), K::Local | K::NoWriteToBinlog)
}

/// Whether a text that isn't understood has such words: it may run such a statement among others.
pub fn may_move_rows_unlogged(text: &[u8]) -> bool {
    let names = |word: &[u8]| has_word(text, word);
    let is_local = || names(b"local") || names(b"no_write_to_binlog");
    let moves_rows = [&b"partition"[..], b"repair", b"optimize"];
    moves_rows.iter().any(|word| names(word)) && is_local()
}

/// Whether a text has this word, in any case, and not as a part of a longer one. A number may stand
/// right before it: `/*!50100LOCAL */`.
pub fn has_word(text: &[u8], word: &[u8]) -> bool {
    let is_letter = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || !byte.is_ascii())
    };
    let is_at = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let after = text.get(at + word.len());
        let goes_on = is_letter(after) || after.is_some_and(u8::is_ascii_digit);
        !is_letter(before) && !goes_on
    };
    let mut windows = text.windows(word.len()).enumerate();
    windows.any(|(at, window)| window.eq_ignore_ascii_case(word) && is_at(at))
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, analyse, analyse_prepared};

    #[test]
    fn what_moves_rows_between_partitions_past_the_log_is_found() {
        for (text, unlogged) in [
            ("ALTER TABLE t ADD PARTITION LOCAL PARTITIONS 2", true),
            (
                "alter table t coalesce partition no_write_to_binlog 1",
                true,
            ),
            (
                "ALTER ONLINE TABLE t REORGANIZE PARTITION /* */ LOCAL p INTO (PARTITION q)",
                true,
            ),
            ("ALTER TABLE t REPAIR PARTITION LOCAL ALL", true),
            (
                "ALTER TABLE t ADD PARTITION IF NOT EXISTS LOCAL PARTITIONS 2",
                true,
            ),
            ("OPTIMIZE LOCAL TABLE t", true),
            ("ALTER TABLE t /*!50100 REBUILD PARTITION LOCAL p */", true),
            ("REPAIR LOCAL TABLE t", true),
            ("REPAIR NO_WRITE_TO_BINLOG TABLE t, u", true),
            ("DO 1; ALTER TABLE t ADD PARTITION LOCAL PARTITIONS 2", true),
            ("EXECUTE IMMEDIATE 'REPAIR LOCAL TABLE t'", true),
            ("ALTER TABLE t ADD PARTITION PARTITIONS 2", false),
            ("ALTER TABLE t ADD local INT", false),
            ("REPAIR TABLE t", false),
            ("ANALYZE LOCAL TABLE t", false),
            ("SELECT local FROM t PARTITION (p)", false),
            (
                "SELECT f(a), ROW_NUMBER() OVER (PARTITION BY local) FROM t",
                false,
            ),
            (
                "DO 1; SELECT SUM(a) OVER (PARTITION BY locale) FROM t",
                false,
            ),
            ("BEGIN; /*!50100REPAIR LOCAL TABLE t */", true),
            ("CALL p()", false),
        ] {
            let statement = analyse(text.as_bytes(), Dialect::default());
            assert_eq!(statement.unlogged, unlogged, "{text}");
            let prepared = analyse_prepared(text.as_bytes(), Dialect::default());
            assert_eq!(prepared.unlogged, unlogged, "{text}, prepared");
        }
    }

    #[test]
    fn of_a_long_text_the_beginning_tells() {
        for (prefix, unlogged) in [
            ("INSERT INTO t VALUES ('local'), ('partition; '), ('", false),
            (
                "INSERT INTO t VALUES (1); REPAIR LOCAL TABLE t; INSERT",
                true,
            ),
            ("ALTER TABLE t ADD PARTITION LOCAL (PARTITION p", true),
            ("CALL p('local partition', '", true),
        ] {
            let statement = crate::analyse_prefix(prefix.as_bytes(), Dialect::default());
            assert_eq!(statement.unlogged, unlogged, "{prefix}");
        }
    }
}
