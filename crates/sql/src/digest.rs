//! Statements without their values: what those that differ only in constants, white space and
//! comments share.
//!
//! `SELECT * FROM t WHERE id IN (1, 2)  -- x` and `select * from t where id in (3)` are both
//! `SELECT * FROM t WHERE id IN (...)`. The servers' own digests
//! (`performance_schema.events_statements_summary_by_digest`) are the model; the text is written in
//! another way, and the number is Remora's own.
//!
//! | in the statement | in the digest |
//! |---|---|
//! | a number, a string, `0x…`, `_utf8mb4'…'`, `NULL` as a value | `?` |
//! | its sign, where it can't be an operator | left out |
//! | a list of values after `IN`, `VALUES` or `VALUE`, however long | `(...)` |
//! | further lists after `VALUES` | left out |
//! | a word of the grammar | in capitals, also where it is a name |
//! | a name | as it is written, with its quotes |
//! | white space, comments, hints | one space, or none |
//! | a string without an end, and all from the first quotes or value on | `<unreadable>` |
//!
//! Nothing of a value is ever in the text: it can be shown to somebody who may not see the data.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::dialect::Dialect;
use crate::functions::find_function;
use crate::keyword::Keyword;
use crate::lexer::{Lexer, is_word_byte};
use crate::token::{Token, TokenKind};

/// The longest normalised text, bytes. Statements that differ behind it have the same digest. It is
/// the servers' own default (`max_digest_length`).
pub const DIGEST_TEXT_BYTES_MAX: usize = 1_024;

/// Ends a text that was cut off.
const CUT_OFF: &str = "…";

/// Identifies all statements with the same normalised text. The same in every process of this
/// version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(u64);

impl Digest {
    /// The digest with this number.
    pub const fn from_number(number: u64) -> Digest {
        Digest(number)
    }

    /// The number: xxh3-64 of the normalised text.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Digest {
    /// 16 hexadecimal digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How deep rows may lie within a list of values.
const LIST_DEPTH_MAX: u32 = 3;

/// Puts the statement's normalised text into `normal`, in place of what it held, and gives the
/// statement's digest. Names keep their bytes, in whatever character set they are.
pub fn normalise(text: &[u8], dialect: Dialect, normal: &mut Vec<u8>) -> Digest {
    normal.clear();
    let mut writer = Writer { normal, last: None };
    writer.statement(Lexer::new(text, dialect));
    let cut = writer.normal.len().min(DIGEST_TEXT_BYTES_MAX);
    if cut < normal.len() {
        normal.truncate(cut);
        normal.extend_from_slice(CUT_OFF.as_bytes());
    }
    Digest(xxh3_64(normal))
}

/// A hash that two statements share only if they have the same digest (but for the chance of a
/// hash): that of the text without its numbers and strings, which is put into `skeleton`. It reads
/// bytes, not tokens, and takes a tenth of the time of [`normalise`]; `None` where that wouldn't be
/// safe. Most statements that differ only in values share it, so that what was found for one can be
/// used for the next.
pub fn shape(text: &[u8], dialect: Dialect, skeleton: &mut Vec<u8>) -> Option<u64> {
    skeleton.clear();
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
                left_out.end + usize::from(!byte.is_ascii_digit())
            }
            Err(end) => end,
        };
    }
    skeleton.extend_from_slice(&text[kept..]);
    let seed = u64::from(dialect.ansi_quotes) << 1 | u64::from(dialect.no_backslash_escapes);
    Some(xxh3_64_with_seed(skeleton, seed))
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

/// Bytes at which [`shape`] has to look more closely.
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

/// What came before, as far as it decides how a parenthesis is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// `IN`
    In,
    /// `VALUES` or `VALUE`
    Values,
    Other,
}

/// What was written last: decides about spaces and signs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Keyword,
    Name,
    Value,
    LeftParen,
    RightParen,
    Comma,
    Dot,
    Operator,
    Semicolon,
}

struct Writer<'n> {
    normal: &'n mut Vec<u8>,
    last: Option<Piece>,
}

impl Writer<'_> {
    /// The text can't be read: a string has no end, most likely because a quote in a value wasn't
    /// escaped. From the first quotes on it isn't certain what is inside of them, so nothing of
    /// that is told.
    fn give_up(&mut self) {
        let list = self.normal.windows(4).position(|bytes| bytes == b"(...");
        let is_quoted = |byte: &u8| matches!(byte, b'?' | b'`' | b'"');
        let quoted = self.normal.iter().position(is_quoted);
        if let Some(first) = list.into_iter().chain(quoted).min() {
            self.normal.truncate(first);
        }
        while self.normal.last() == Some(&b' ') {
            self.normal.pop();
        }
        self.write(Piece::Name, b"<unreadable>");
    }

    fn statement(&mut self, mut lexer: Lexer<'_>) {
        let mut before = Before::Other;
        while self.normal.len() <= DIGEST_TEXT_BYTES_MAX {
            let token = lexer.next_token();
            before = match token.kind {
                TokenKind::End => return,
                TokenKind::Invalid => return self.give_up(),
                TokenKind::LeftParen if before != Before::Other => {
                    lexer = self.list(lexer, before);
                    Before::Other
                }
                TokenKind::Minus | TokenKind::Plus => {
                    if let Some(end) = end_of_sign(lexer, self.last) {
                        lexer = end;
                        self.write(Piece::Value, b"?");
                    } else {
                        self.write(Piece::Operator, lexer.bytes(token));
                    }
                    Before::Other
                }
                _ => self.token(&lexer, token),
            };
        }
        // What is cut off may show that quotes weren't where they seemed to be.
        loop {
            match lexer.next_token().kind {
                TokenKind::End => return,
                TokenKind::Invalid => return self.give_up(),
                _ => {}
            }
        }
    }

    /// Behind the `(` of what may be a list of values. Gives where to go on.
    fn list<'t>(&mut self, lexer: Lexer<'t>, before: Before) -> Lexer<'t> {
        let Some(end) = end_of_values(lexer, LIST_DEPTH_MAX) else {
            self.write(Piece::LeftParen, b"(");
            return lexer;
        };
        self.write(Piece::Value, b"(...)");
        if before == Before::Values {
            end_of_rows(end)
        } else {
            end
        }
    }

    fn write(&mut self, piece: Piece, bytes: &[u8]) {
        if self.wants_space(piece) {
            self.normal.push(b' ');
        }
        self.normal.extend_from_slice(bytes);
        self.last = Some(piece);
    }

    fn wants_space(&self, piece: Piece) -> bool {
        let Some(last) = self.last else {
            return false;
        };
        let is_closed = matches!(
            piece,
            Piece::Comma | Piece::Dot | Piece::RightParen | Piece::Semicolon
        );
        let is_call = piece == Piece::LeftParen && last == Piece::Name;
        !is_closed && !is_call && !matches!(last, Piece::LeftParen | Piece::Dot)
    }

    fn token(&mut self, lexer: &Lexer<'_>, token: Token) -> Before {
        let bytes = lexer.bytes(token);
        match token.kind {
            TokenKind::Word(Keyword::Null) if self.last != Some(Piece::Keyword) => {
                self.write(Piece::Value, b"?");
            }
            TokenKind::Word(Keyword::Other) | TokenKind::QuotedName | TokenKind::UserVariable => {
                self.write(Piece::Name, bytes);
            }
            TokenKind::Word(keyword) => {
                // `LEFT(`, but `AND (`.
                let is_name = !keyword.is_reserved() || find_function(bytes).is_some();
                let piece = if is_name { Piece::Name } else { Piece::Keyword };
                self.write_capitals(piece, bytes);
                return match keyword {
                    Keyword::In => Before::In,
                    Keyword::Values | Keyword::Value => Before::Values,
                    _ => Before::Other,
                };
            }
            // It says how the string after it is read.
            TokenKind::Introducer => {}
            kind if is_value(kind) => self.write(Piece::Value, b"?"),
            TokenKind::LeftParen => self.write(Piece::LeftParen, bytes),
            TokenKind::RightParen => self.write(Piece::RightParen, bytes),
            TokenKind::Comma => self.write(Piece::Comma, bytes),
            TokenKind::Dot => self.write(Piece::Dot, bytes),
            TokenKind::Semicolon => self.write(Piece::Semicolon, bytes),
            TokenKind::DoubleAt => {
                self.write(Piece::Operator, bytes);
                self.last = Some(Piece::Dot);
            }
            _ => self.write(Piece::Operator, bytes),
        }
        Before::Other
    }

    fn write_capitals(&mut self, piece: Piece, word: &[u8]) {
        self.write(piece, word);
        let start = self.normal.len() - word.len();
        self.normal[start..].make_ascii_uppercase();
    }
}

fn is_value(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::String | TokenKind::Number | TokenKind::HexOrBit | TokenKind::Placeholder
    )
}

fn is_sign(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Minus | TokenKind::Plus)
}

/// Behind a sign: where the number ends, if the sign stands where an operator between two operands
/// can't.
fn end_of_sign(mut lexer: Lexer<'_>, last: Option<Piece>) -> Option<Lexer<'_>> {
    let is_operand = matches!(
        last,
        None | Some(Piece::Name | Piece::Value | Piece::RightParen)
    );
    if is_operand {
        return None;
    }
    loop {
        let kind = lexer.next_token().kind;
        if kind == TokenKind::Number {
            return Some(lexer);
        }
        if !is_sign(kind) {
            return None;
        }
    }
}

/// Behind a `(`: where the list ends, if it holds nothing but values and lists of them.
fn end_of_values(mut lexer: Lexer<'_>, depth: u32) -> Option<Lexer<'_>> {
    loop {
        let mut token = lexer.next_token();
        while is_sign(token.kind) || token.kind == TokenKind::Introducer {
            token = lexer.next_token();
        }
        match token.kind {
            TokenKind::LeftParen if depth > 0 => lexer = end_of_values(lexer, depth - 1)?,
            TokenKind::Word(Keyword::Null | Keyword::Default | Keyword::True | Keyword::False) => {}
            kind if is_value(kind) => {}
            _ => return None,
        }
        match lexer.next_token().kind {
            TokenKind::Comma => {}
            TokenKind::RightParen => return Some(lexer),
            _ => return None,
        }
    }
}

/// Behind the first row of values: where the last one ends.
fn end_of_rows(mut lexer: Lexer<'_>) -> Lexer<'_> {
    loop {
        let mut further = lexer;
        if further.next_token().kind != TokenKind::Comma
            || further.next_token().kind != TokenKind::LeftParen
        {
            return lexer;
        }
        match end_of_values(further, LIST_DEPTH_MAX) {
            Some(end) => lexer = end,
            None => return lexer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &[u8]) -> (Digest, String) {
        let mut normal = Vec::new();
        let digest = normalise(text, Dialect::default(), &mut normal);
        (digest, String::from_utf8_lossy(&normal).into_owned())
    }

    fn normal(text: &str) -> String {
        normalised(text.as_bytes()).1
    }

    #[test]
    fn values_are_left_out() {
        for (text, expected) in [
            (
                "select * from t where id = 5 and s='it''s'",
                "SELECT * FROM t WHERE id = ? AND s = ?",
            ),
            ("SELECT a-1, -1, - +2 FROM t", "SELECT a - ?, ?, ? FROM t"),
            (
                "SELECT _utf8mb4'x' , 0xff, b'1', ? FROM t",
                "SELECT ?, ?, ?, ? FROM t",
            ),
            (
                "SELECT a FROM t WHERE a IS NULL OR a <=> NULL",
                "SELECT a FROM t WHERE a IS NULL OR a <=> ?",
            ),
            (
                "SELECT a FROM t WHERE a IS NOT NULL",
                "SELECT a FROM t WHERE a IS NOT NULL",
            ),
            (
                "SELECT COUNT(*) FROM `t`.`u`",
                "SELECT COUNT(*) FROM `t`.`u`",
            ),
            ("SELECT @@version, @a", "SELECT @@version, @a"),
        ] {
            assert_eq!(normal(text), expected, "{text}");
        }
    }

    #[test]
    fn lists_of_any_length_are_one() {
        let one = normal("SELECT a FROM t WHERE a IN (1)");
        assert_eq!(one, "SELECT a FROM t WHERE a IN (...)");
        for text in [
            "SELECT a FROM t WHERE a IN (1,2, -3)",
            "SELECT a FROM t WHERE a IN ('x', NULL)",
            "SELECT a FROM t WHERE a IN ((1,2),(3,4))",
            "SELECT a FROM t WHERE a IN (?, ?)",
        ] {
            assert_eq!(normal(text), one, "{text}");
        }
        assert_eq!(
            normal(
                "INSERT INTO t (a, b) VALUES (1, 'x'), (2, DEFAULT) ON DUPLICATE KEY UPDATE a = 7"
            ),
            "INSERT INTO t(a, b) VALUES (...) ON DUPLICATE KEY UPDATE a = ?"
        );
        assert_eq!(
            normal("INSERT INTO t VALUES (1, NOW()), (2, NOW())"),
            "INSERT INTO t VALUES (?, NOW()), (?, NOW())"
        );
        assert_eq!(
            normal("SELECT a FROM t WHERE a IN (SELECT 1)"),
            "SELECT a FROM t WHERE a IN (SELECT ?)"
        );
    }

    #[test]
    fn spelling_does_not_matter_and_names_do() {
        let of = |text: &str| normalised(text.as_bytes()).0;
        let first = of("SELECT a FROM t WHERE id = 1");
        assert_eq!(
            first,
            of("/* trace=7 */ select\n a\tfrom t -- x\n where id=99 # y")
        );
        assert_ne!(first, of("SELECT b FROM t WHERE id = 1"));
        assert_ne!(first, of("SELECT A FROM t WHERE id = 1"));
    }

    #[test]
    fn most_statements_that_differ_in_values_have_one_shape() {
        let of = |text: &str| shape(text.as_bytes(), Dialect::default(), &mut Vec::new());
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
    fn nothing_is_told_of_what_cannot_be_read() {
        let text = normal("SELECT a FROM t WHERE s = 'secret");
        assert_eq!(text, "SELECT a FROM t WHERE s = <unreadable>");
        let text = normal("SELECT a FROM t WHERE n = 'O'Brien' AND s = 'secret'");
        assert_eq!(text, "SELECT a FROM t WHERE n = <unreadable>");
        assert_eq!(normal("SELECT 'C:\\', 'secret'"), "SELECT <unreadable>");
        let text = normal("SELECT `a FROM t WHERE s = 'x`secret'");
        assert_eq!(text, "SELECT <unreadable>");
        let words = "secret ".repeat(1_000);
        let text = normal(&format!("INSERT INTO t VALUES ('O'Brien', '{words}')"));
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn a_long_text_is_cut_off() {
        let columns = "column_name, ".repeat(200);
        let text = format!("SELECT {columns} a FROM t");
        let (digest, cut) = normalised(text.as_bytes());
        assert!(cut.ends_with('…') && cut.len() <= DIGEST_TEXT_BYTES_MAX + CUT_OFF.len());
        let other = normalised(text.replace("FROM t", "FROM u").as_bytes());
        assert_eq!(other, (digest, cut));
    }

    proptest::proptest! {
        #[test]
        fn a_normalised_text_is_its_own(text in "[ -~]{0,60}") {
            let once = normal(&text);
            if !once.contains("...") && !once.contains("<unreadable>") {
                proptest::prop_assert_eq!(normal(&once), once);
            }
        }

        #[test]
        fn statements_of_one_shape_have_one_digest(
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
            let mut skeleton = Vec::new();
            let shapes = [&first, &second].map(|text| shape(text.as_bytes(), dialect, &mut skeleton));
            if shapes[0].is_some() && shapes[0] == shapes[1] {
                let mut normal = Vec::new();
                let digests = [&first, &second].map(|text| normalise(text.as_bytes(), dialect, &mut normal));
                proptest::prop_assert_eq!(digests[0], digests[1], "{} and {}", first, second);
            }
        }

        #[test]
        fn no_value_is_in_the_text(value in 1_000_000_u64..u64::MAX, string in "[a-z]{12}") {
            let text = format!("SELECT a FROM t WHERE a={value} AND b IN ('{string}', -{value}) AND c LIKE '%{string}'");
            let normal = normal(&text);
            proptest::prop_assert!(!normal.contains(&value.to_string()));
            proptest::prop_assert!(!normal.contains(&string));
        }

        #[test]
        fn bytes_of_any_kind_are_taken(text in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            proptest::prop_assert!(normalised(&text).1.len() < 1_000);
        }
    }
}
