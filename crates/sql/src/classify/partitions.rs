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
    let names = |word: &[u8]| {
        let mut parts = text.windows(word.len());
        parts.any(|part| part.eq_ignore_ascii_case(word))
    };
    let is_local = || names(b"local") || names(b"no_write_to_binlog");
    let moves_rows = [&b"partition"[..], b"repair", b"optimize"];
    moves_rows.iter().any(|word| names(word)) && is_local()
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
            ("CALL p()", false),
        ] {
            let statement = analyse(text.as_bytes(), Dialect::default());
            assert_eq!(statement.unlogged, unlogged, "{text}");
            let prepared = analyse_prepared(text.as_bytes(), Dialect::default());
            assert_eq!(prepared.unlogged, unlogged, "{text}, prepared");
        }
    }
}
