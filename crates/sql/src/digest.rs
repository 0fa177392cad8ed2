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

use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::Dialect;
use crate::functions::find_function;
use crate::keyword::Keyword;
use crate::lexer::{Lexer, is_word_byte};
use crate::token::{Token, TokenKind};

/// The longest normalised text, bytes. Statements that differ behind it have the same digest. It is
/// the servers' own default (`max_digest_length`).
pub const DIGEST_TEXT_BYTES_MAX: usize = 1_024;
/// More signs before a number aren't taken for its own.
const SIGNS_MAX: usize = 16;

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
    Variable,
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
        if self.wants_space(piece) || self.would_join(piece, bytes) {
            self.normal.push(b' ');
        }
        self.normal.extend_from_slice(bytes);
        self.last = Some(piece);
    }

    /// Whether this would be a part of something else without a space: a point behind a variable of
    /// its name, digits behind a point that follows no word of a number.
    fn would_join(&self, piece: Piece, bytes: &[u8]) -> bool {
        if self.last == Some(Piece::Variable) {
            return piece == Piece::Dot;
        }
        let is_number = bytes.first().is_some_and(u8::is_ascii_digit);
        let before = match &self.normal[..] {
            [before @ .., b'.'] => before.last(),
            _ => return false,
        };
        is_number && !before.is_some_and(|byte| is_word_byte(*byte))
    }

    fn wants_space(&self, piece: Piece) -> bool {
        let Some(last) = self.last else {
            return false;
        };
        let is_closed = matches!(
            piece,
            Piece::Comma | Piece::Dot | Piece::RightParen | Piece::Semicolon
        );
        let is_call = piece == Piece::LeftParen && matches!(last, Piece::Name | Piece::Variable);
        !is_closed && !is_call && !matches!(last, Piece::LeftParen | Piece::Dot)
    }

    fn token(&mut self, lexer: &Lexer<'_>, token: Token) -> Before {
        let bytes = lexer.bytes(token);
        match token.kind {
            TokenKind::Word(Keyword::Null) if self.last != Some(Piece::Keyword) => {
                self.write(Piece::Value, b"?");
            }
            TokenKind::Word(Keyword::Other) | TokenKind::QuotedName => {
                self.write(Piece::Name, bytes);
            }
            TokenKind::UserVariable => self.write(Piece::Variable, bytes),
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
        None | Some(Piece::Name | Piece::Variable | Piece::Value | Piece::RightParen)
    );
    if is_operand {
        return None;
    }
    for _ in 0..SIGNS_MAX {
        let kind = lexer.next_token().kind;
        if kind == TokenKind::Number {
            return Some(lexer);
        }
        if !is_sign(kind) {
            return None;
        }
    }
    None
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
    fn what_was_apart_stays_apart() {
        assert_eq!(normal("SELECT @a .b"), "SELECT @a .b");
        assert_eq!(normal("SELECT `a` . 0b"), "SELECT `a`. 0b");
        assert_eq!(normal("SELECT t . 2fa"), "SELECT t.2fa");
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
