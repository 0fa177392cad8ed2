//! The skeleton of a statement: its text without its values. Finding it reads bytes, not tokens: a
//! tenth of the work of [`crate::normalise`], and less of that of [`crate::analyse`]. Most
//! statements that differ only in values have the same, so that what was found for one can be used
//! for the next.
//!
//! **Why one skeleton means one sequence of tokens.** Left out are the digits of a number, and what
//! is between the quotes of a string; `0` and one quote stay. A number or a string that may be a
//! part of something longer (`t1`, `0x1f`, `1e5`, `x'41'`, `@'a'`) stays whole. Whether it may be
//! is told by the byte before it, and for a number by the byte after it. The skeleton has both. So
//! each step through a skeleton can come from only one kind of token. Comments could hide quotes,
//! so text with comments has no skeleton.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::dialect::Dialect;
use crate::lexer::is_word_byte;

/// Values of a text whose places are of use.
pub(crate) const VALUES_MAX: usize = 64;

/// A number or a string in a text, with its quotes: bytes from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePlace {
    /// Where it begins.
    pub start: u32,
    /// Where the text goes on.
    pub end: u32,
}

impl ValuePlace {
    /// Its bytes. `None` if the text is too short for it.
    pub(crate) fn of(self, text: &[u8]) -> Option<&[u8]> {
        text.get(self.start as usize..self.end as usize)
    }
}

/// Puts the text without its numbers and strings into `skeleton`, and where those are into
/// `values`, as far as they are of use; gives a hash of the skeleton. `None` if the text
/// can't be read that way: it has comments, or a string without an end.
///
/// Texts with one skeleton under one [`Dialect`] have one [`crate::normalise`]d text, and a
/// [`crate::ReadTemplate`] or [`crate::WriteTemplate`] of one does for all. The hash alone proves
/// neither.
pub fn skeleton(
    text: &[u8],
    dialect: Dialect,
    skeleton: &mut Vec<u8>,
    values: &mut Vec<ValuePlace>,
) -> Option<u64> {
    skeleton.clear();
    values.clear();
    u32::try_from(text.len()).ok()?;
    // What lies before `kept` is in the skeleton or left out; what lies between it and `at` is
    // kept.
    let (mut kept, mut at) = (0, 0);
    while let Some(&byte) = text.get(at) {
        // Whether what stands here may be a part of a name.
        let joins = |at: usize| at > 0 && JOINING[usize::from(text[at - 1])];
        let left_out = match byte {
            _ if !MARKS[usize::from(byte)] => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => {
                let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit());
                let end = at + digits.count();
                // A name such as `t1` or `2fa`, or a number of another form.
                let is_kept = joins(at) || text.get(end).is_some_and(|byte| is_word_byte(*byte));
                (!is_kept).then_some(at + 1..end).ok_or(end)
            }
            b'\'' => literal(text, at, dialect, joins(at))?,
            b'"' if !dialect.ansi_quotes => literal(text, at, dialect, joins(at))?,
            b'"' | b'`' => Err(end_of_quoted(text, at, false)?),
            b'#' => return None,
            b'-' if text.get(at + 1) == Some(&b'-') => return None,
            b'/' if text.get(at + 1) == Some(&b'*') => return None,
            _ => Err(at + 1),
        };
        at = match left_out {
            Ok(left_out) => {
                // A number leaves its first place, as a mark.
                let mark = if byte.is_ascii_digit() { b'0' } else { byte };
                skeleton.extend_from_slice(&text[kept..at]);
                skeleton.push(mark);
                kept = left_out.end;
                // Behind what closes it.
                let end = left_out.end + usize::from(!byte.is_ascii_digit());
                if values.len() <= VALUES_MAX {
                    values.push(place(at, end));
                }
                end
            }
            Err(end) => end,
        };
    }
    skeleton.extend_from_slice(&text[kept..]);
    let seed = u64::from(dialect.ansi_quotes) << 1 | u64::from(dialect.no_backslash_escapes);
    Some(xxh3_64_with_seed(skeleton, seed))
}

fn place(start: usize, end: usize) -> ValuePlace {
    // The whole text is no longer than that.
    let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    ValuePlace {
        start: short(start),
        end: short(end),
    }
}

/// Of a string whose quote stands at a place, what is left out: all but its closing quote; or, as
/// an error, its end, if it is part of something longer.
fn literal(
    text: &[u8],
    at: usize,
    dialect: Dialect,
    joins: bool,
) -> Option<Result<std::ops::Range<usize>, usize>> {
    let end = end_of_quoted(text, at, !dialect.no_backslash_escapes)?;
    Some(if joins { Err(end) } else { Ok(at + 1..end - 1) })
}

/// Behind the quote that closes the one at a place.
pub(crate) fn end_of_quoted(text: &[u8], at: usize, has_escapes: bool) -> Option<usize> {
    let quote = text[at];
    let mut index = at + 1;
    loop {
        let byte = *text.get(index)?;
        index += match byte {
            b'\\' if has_escapes => 2,
            _ if byte != quote => 1,
            _ if text.get(index + 1) == Some(&quote) => 2,
            _ => return Some(index + 1),
        };
    }
}

/// Bytes at which [`skeleton`] has to look more closely.
const MARKS: [bool; 256] = bytes_in(b"0123456789'\"`#-/");
/// Bytes after which a digit or a quote may belong to a name or to a literal with a prefix.
const JOINING: [bool; 256] = {
    let mut table = bytes_in(b"._$@abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    let mut byte = 0x80;
    while byte < 256 {
        table[byte] = true;
        byte += 1;
    }
    table
};

const fn bytes_in(list: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut index = 0;
    while index < list.len() {
        table[list[index] as usize] = true;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::normalise;

    #[test]
    fn most_statements_that_differ_in_values_have_one_skeleton() {
        let of = |text: &str| {
            let (mut bytes, mut values) = (Vec::new(), Vec::new());
            skeleton(text.as_bytes(), Dialect::default(), &mut bytes, &mut values)
        };
        let one = of("SELECT a2 FROM t WHERE a=1 AND s = 'x' AND b > -5");
        assert!(one.is_some());
        assert_eq!(
            one,
            of("SELECT a2 FROM t WHERE a=99 AND s = 'it''s \\' -- ' AND b > -7")
        );
        assert_ne!(one, of("SELECT a3 FROM t WHERE a=1 AND s = 'x' AND b > -5"));
        assert_ne!(of("SELECT 2fa FROM t"), of("SELECT 3fa FROM t"));
        assert_ne!(of("SELECT `1` FROM t"), of("SELECT `2` FROM t"));
        assert_ne!(of("SELECT t.1 FROM t"), of("SELECT t.2 FROM t"));
        for text in [
            "SELECT a # 'b",
            "SELECT a -- 'b",
            "SELECT /* ' */ a",
            "SELECT 'a",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn it_is_told_where_values_stand() {
        let text = "SELECT a2, 'it''s', 10.5 FROM t WHERE b = -42 AND s IN ('', _utf8'x')";
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        skeleton(text.as_bytes(), Dialect::default(), &mut bytes, &mut values).unwrap();
        let found = values
            .iter()
            .map(|value| value.of(text.as_bytes()).unwrap());
        let expected = [&b"'it''s'"[..], b"10", b"42", b"''"];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    proptest::proptest! {
        #[test]
        fn statements_of_one_skeleton_have_one_digest(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "SELECT", " ", "a", "1", "23", ".", "e5", "'", "\\", "x", "''", "\"", "`", "(", ",", "-", "--", "#", "/*", "*/",
                    "IN", "NULL", "_utf8", "@", "0x1", "\n", "\u{e9}", "'b'", "'it''s'", "2fa",
                ]),
                0..12,
            ),
            other in proptest::collection::vec(0_usize..4, 12),
            ansi_quotes: bool,
            no_backslash_escapes: bool,
        ) {
            let dialect = Dialect { ansi_quotes, no_backslash_escapes, ..Dialect::default() };
            let first = pieces.concat();
            // The same with other values here and there.
            let changed = |(piece, how): (&&str, &usize)| match (*piece, how) {
                ("1" | "23", 1) => "7".to_owned(),
                ("'b'" | "'it''s'", 1) => "'other'".to_owned(),
                ("'b'", 2) => "'-- \"x'".to_owned(),
                (piece, _) => piece.to_owned(),
            };
            let second: String = pieces.iter().zip(&other).map(changed).collect();
            let (mut bytes, mut values) = (Vec::new(), Vec::new());
            let hashes = [&first, &second]
                .map(|text| skeleton(text.as_bytes(), dialect, &mut bytes, &mut values));
            if hashes[0].is_some() && hashes[0] == hashes[1] {
                let mut normal = Vec::new();
                let digests = [&first, &second].map(|text| normalise(text.as_bytes(), dialect, &mut normal));
                proptest::prop_assert_eq!(digests[0], digests[1], "{} and {}", first, second);
            }
        }
    }
}
