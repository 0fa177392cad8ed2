//! The lexer: MySQL's and MariaDB's tokens, read strictly.
//!
//! Where the supported servers read the same bytes differently, or where this lexer isn't sure, it
//! gives [`TokenKind::Invalid`] for the rest of the text; nothing is ever guessed. The text must be
//! in a character set in which every byte below 0x80 is that ASCII character (so not `sjis`, `gbk`,
//! `big5`…).

use crate::dialect::Dialect;
use crate::keyword::Keyword;
use crate::token::{Token, TokenKind};

/// The newest version number in a `/*!NNNNN … */` comment that every supported server executes.
/// Above it some servers execute the content and others skip it.
const EXECUTED_EVERYWHERE_VERSION_MAX: u32 = 50_600;

/// Reads tokens from a statement's text, one at a time, without allocating.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one thing that was seen"
)]
pub struct Lexer<'a> {
    text: &'a [u8],
    dialect: Dialect,
    position: usize,
    previous: Token,
    inside_executable: bool,
    saw_executable: bool,
    saw_variable_hint: bool,
    saw_non_ascii_word: bool,
}

/// What stands between two tokens, or that it can't be read.
enum Trivia {
    Skipped,
    Unreadable,
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of `text`.
    pub fn new(text: &'a [u8], dialect: Dialect) -> Lexer<'a> {
        Lexer {
            text,
            dialect,
            position: 0,
            previous: Token {
                kind: TokenKind::Semicolon,
                start: 0,
                end: 0,
            },
            inside_executable: false,
            saw_executable: false,
            saw_variable_hint: false,
            saw_non_ascii_word: false,
        }
    }

    /// The bytes that `token` covers.
    pub fn bytes(&self, token: Token) -> &'a [u8] {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The dialect in which it reads.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether an executable comment `/*! … */` has been passed.
    pub fn saw_executable_comment(&self) -> bool {
        self.saw_executable
    }

    /// Whether an optimizer hint that sets variables has been passed.
    pub(crate) fn saw_variable_hint(&self) -> bool {
        self.saw_variable_hint
    }

    /// Whether a word with bytes outside ASCII has been passed. In some character sets such a byte
    /// is white space.
    pub(crate) fn saw_non_ascii_word(&self) -> bool {
        self.saw_non_ascii_word
    }

    /// The next token; [`TokenKind::End`] or [`TokenKind::Invalid`] again and again at the end.
    pub fn next_token(&mut self) -> Token {
        let token = match self.skip_trivia() {
            Trivia::Skipped => self.token(),
            Trivia::Unreadable => self.invalid(self.position),
        };
        if token.kind == TokenKind::Word(Keyword::Other) && !self.bytes(token).is_ascii() {
            self.saw_non_ascii_word = true;
        }
        self.position = token.end;
        self.previous = token;
        token
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.text.get(self.position + offset).copied()
    }

    fn invalid(&self, start: usize) -> Token {
        Token {
            kind: TokenKind::Invalid,
            start,
            end: self.text.len(),
        }
    }

    /// Skips white space and comments. Inside an executable comment it also takes the closing `*/`.
    fn skip_trivia(&mut self) -> Trivia {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => self.position += 1,
                Some(b'#') => {
                    if !self.skip_line() {
                        return Trivia::Unreadable;
                    }
                }
                Some(b'-') if self.begins_dash_comment() => {
                    if !self.skip_line() {
                        return Trivia::Unreadable;
                    }
                }
                Some(b'/') if self.byte(1) == Some(b'*') => {
                    if !self.comment() {
                        return Trivia::Unreadable;
                    }
                }
                Some(b'*') if self.inside_executable && self.byte(1) == Some(b'/') => {
                    self.inside_executable = false;
                    self.position += 2;
                }
                // The end of the text inside an executable comment: it was never closed.
                None if self.inside_executable => return Trivia::Unreadable,
                _ => return Trivia::Skipped,
            }
        }
    }

    /// `--` is a comment only before white space, a control character or the end.
    fn begins_dash_comment(&self) -> bool {
        self.byte(1) == Some(b'-')
            && self
                .byte(2)
                .is_none_or(|byte| byte == b' ' || byte.is_ascii_control())
    }

    /// Skips to after the next line feed. False if a NUL byte, at which a server's lexer may end
    /// such a comment, is in it, or if it could also end an executable comment.
    fn skip_line(&mut self) -> bool {
        let rest = self.text.get(self.position..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        let line = &rest[..length];
        self.position += length;
        !line.contains(&0) && !self.inside_executable
    }

    /// A comment that begins with `/*`. False if it can't be read with certainty.
    fn comment(&mut self) -> bool {
        if self.inside_executable {
            // Servers differ in how they nest comments.
            return false;
        }
        match self.byte(2) {
            Some(b'!') => return self.executable_comment(),
            // Executed by MariaDB, a comment for MySQL.
            Some(b'M') if self.byte(3) == Some(b'!') => return false,
            _ => {}
        }
        let is_hint = self.byte(2) == Some(b'+');
        let body_start = self.position + 2;
        let body = self.text.get(body_start..).unwrap_or_default();
        let Some(length) = body.windows(2).position(|pair| pair == b"*/") else {
            return false;
        };
        let body = &body[..length];
        self.position = body_start + length + 2;
        if is_hint {
            // A quote in a hint may hide a `*/` from a server that reads hints.
            if body.iter().any(|byte| matches!(byte, b'\'' | b'"' | b'`')) {
                return false;
            }
            self.saw_variable_hint |= contains_word(body, b"SET_VAR");
        }
        !body.contains(&0)
    }

    /// Enters `/*! … */`, if every supported server executes its content.
    fn executable_comment(&mut self) -> bool {
        self.saw_executable = true;
        let digits = self.text[self.position + 3..]
            .iter()
            .take_while(|b| b.is_ascii_digit());
        let (mut count, mut version) = (0, 0_u32);
        for digit in digits.take(7) {
            version = version * 10 + u32::from(digit - b'0');
            count += 1;
        }
        let executed = match count {
            0 => true,
            5 => version <= EXECUTED_EVERYWHERE_VERSION_MAX,
            _ => false,
        };
        self.inside_executable = executed;
        self.position += 3 + count;
        executed
    }

    fn token(&mut self) -> Token {
        let start = self.position;
        let Some(first) = self.byte(0) else {
            return Token {
                kind: TokenKind::End,
                start,
                end: start,
            };
        };
        let found = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word_or_literal(first),
            b'0'..=b'9' => self.number_or_word(),
            b'\'' => self.string(0).map(|length| (TokenKind::String, length)),
            b'"' if !self.dialect.ansi_quotes => {
                self.string(0).map(|length| (TokenKind::String, length))
            }
            b'"' | b'`' => self
                .quoted_name(0)
                .map(|length| (TokenKind::QuotedName, length)),
            b'.' => self.dot(),
            b'@' => self.variable(),
            _ => self.operator(first),
        };
        match found {
            Some((kind, length)) => Token {
                kind,
                start,
                end: start + length,
            },
            None => self.invalid(start),
        }
    }

    /// The length of the run of bytes that can be in a word, from `offset`.
    fn word_length(&self, offset: usize) -> usize {
        let rest = self.text.get(self.position + offset..).unwrap_or_default();
        rest.iter().take_while(|byte| is_word_byte(**byte)).count()
    }

    fn word_or_literal(&self, first: u8) -> Option<(TokenKind, usize)> {
        let quote_follows = self.byte(1) == Some(b'\'');
        match first {
            b'n' | b'N' if quote_follows => {
                return self.string(1).map(|length| (TokenKind::String, length));
            }
            b'x' | b'X' if quote_follows => return self.quoted_digits(u8::is_ascii_hexdigit, 2),
            b'b' | b'B' if quote_follows => {
                return self.quoted_digits(|digit| matches!(digit, b'0' | b'1'), 1);
            }
            _ => {}
        }
        self.word(self.word_length(0))
    }

    /// The word of `length` bytes at the position.
    fn word(&self, length: usize) -> Option<(TokenKind, usize)> {
        let word = self.text.get(self.position..self.position + length)?;
        if !word.is_ascii() {
            return std::str::from_utf8(word)
                .ok()
                .map(|_| (TokenKind::Word(Keyword::Other), length));
        }
        if word[0] == b'_' && is_character_set(&word[1..]) {
            return Some((TokenKind::Introducer, length));
        }
        Some((TokenKind::Word(Keyword::of(word)), length))
    }

    /// `x'…'` and `b'…'`; the server refuses other digits and, in hexadecimal, an odd count.
    fn quoted_digits(
        &self,
        is_digit: impl Fn(&u8) -> bool,
        multiple: usize,
    ) -> Option<(TokenKind, usize)> {
        let rest = self.text.get(self.position + 2..)?;
        let count = rest.iter().take_while(|byte| is_digit(byte)).count();
        (rest.get(count) == Some(&b'\'') && count % multiple == 0)
            .then_some((TokenKind::HexOrBit, count + 3))
    }

    fn digits(&self, offset: usize) -> usize {
        let rest = self.text.get(self.position + offset..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// A token that begins with a digit: a number, or a name such as `2fa`.
    fn number_or_word(&self) -> Option<(TokenKind, usize)> {
        if self.previous.kind == TokenKind::Dot && self.previous.end == self.position {
            // Directly after a dot the server always reads a name.
            return self.word(self.word_length(0));
        }
        let digits = self.digits(0);
        let length = self.word_length(0);
        match self.byte(digits) {
            Some(b'.') => self.fraction(digits),
            Some(b'e' | b'E') => match self.exponent(digits) {
                Some(exponent) => self.number(digits + exponent),
                None => self.word(length),
            },
            Some(b'x') if digits == 1 && self.byte(0) == Some(b'0') => {
                let hex = self.text[self.position + 2..self.position + length].iter();
                if length > 2 && hex.clone().all(u8::is_ascii_hexdigit) {
                    return Some((TokenKind::HexOrBit, length));
                }
                self.word(length)
            }
            Some(b'b') if digits == 1 && self.byte(0) == Some(b'0') => {
                let mut bits = self.text[self.position + 2..self.position + length].iter();
                if length > 2 && bits.all(|bit| matches!(bit, b'0' | b'1')) {
                    return Some((TokenKind::HexOrBit, length));
                }
                self.word(length)
            }
            Some(byte) if is_word_byte(byte) => self.word(length),
            _ => Some((TokenKind::Number, digits)),
        }
    }

    /// A number whose `.` stands at `offset`.
    fn fraction(&self, offset: usize) -> Option<(TokenKind, usize)> {
        let mut length = offset + 1;
        length += self.digits(length);
        if matches!(self.byte(length), Some(b'e' | b'E')) {
            length += self.exponent(length)?;
        }
        self.number(length)
    }

    /// The length of an exponent at `offset` (where the `e` stands), if it is one.
    fn exponent(&self, offset: usize) -> Option<usize> {
        let sign = usize::from(matches!(self.byte(offset + 1), Some(b'+' | b'-')));
        let digits = self.digits(offset + 1 + sign);
        (digits > 0).then_some(1 + sign + digits)
    }

    /// A fractional number must not run into a word: servers split `1e5x` and `1.5x` differently.
    fn number(&self, length: usize) -> Option<(TokenKind, usize)> {
        match self.byte(length) {
            Some(byte) if is_word_byte(byte) || byte == b'.' => None,
            _ => Some((TokenKind::Number, length)),
        }
    }

    /// A dot between names, or the beginning of a number such as `.5`.
    fn dot(&self) -> Option<(TokenKind, usize)> {
        if !self.byte(1).is_some_and(|byte| byte.is_ascii_digit()) {
            return Some((TokenKind::Dot, 1));
        }
        let adjacent = self.previous.end == self.position;
        match self.previous.kind {
            TokenKind::Word(_) if adjacent => Some((TokenKind::Dot, 1)),
            TokenKind::Word(Keyword::Other) | TokenKind::QuotedName => None,
            _ => self.fraction(0),
        }
    }

    /// The length of the string whose opening quote stands at `offset`, from the position.
    fn string(&self, offset: usize) -> Option<usize> {
        let rest = self.text.get(self.position + offset..)?;
        let quote = *rest.first()?;
        let mut index = 1;
        loop {
            let byte = *rest.get(index)?;
            if byte == b'\\' && !self.dialect.no_backslash_escapes {
                index += 2;
            } else if byte != quote {
                index += 1;
            } else if rest.get(index + 1) == Some(&quote) {
                index += 2;
            } else {
                return Some(offset + index + 1);
            }
        }
    }

    /// The length of the quoted name whose opening quote stands at `offset`, from the position.
    fn quoted_name(&self, offset: usize) -> Option<usize> {
        let rest = self.text.get(self.position + offset..)?;
        let quote = *rest.first()?;
        let mut index = 1;
        loop {
            let byte = *rest.get(index)?;
            if byte != quote {
                index += 1;
            } else if rest.get(index + 1) == Some(&quote) {
                index += 2;
            } else {
                break;
            }
        }
        let name = &rest[1..index];
        // A NUL can't be in a name; bytes outside UTF-8 can't be compared with the log's names.
        let readable = !name.is_empty() && !name.contains(&0) && std::str::from_utf8(name).is_ok();
        readable.then_some(offset + index + 1)
    }

    /// `@name`, `@'name'`, or the `@@` before a system variable.
    fn variable(&self) -> Option<(TokenKind, usize)> {
        match self.byte(1)? {
            b'@' => Some((TokenKind::DoubleAt, 2)),
            b'"' if self.dialect.ansi_quotes => self
                .quoted_name(1)
                .map(|length| (TokenKind::UserVariable, length)),
            b'\'' | b'"' => self
                .string(1)
                .map(|length| (TokenKind::UserVariable, length)),
            b'`' => self
                .quoted_name(1)
                .map(|length| (TokenKind::UserVariable, length)),
            _ => {
                let rest = self.text.get(self.position + 1..)?;
                let length = rest
                    .iter()
                    .take_while(|byte| {
                        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
                    })
                    .count();
                let runs_on = rest.get(length).is_some_and(|byte| *byte >= 0x80);
                (length > 0 && !runs_on).then_some((TokenKind::UserVariable, length + 1))
            }
        }
    }

    fn operator(&self, first: u8) -> Option<(TokenKind, usize)> {
        use TokenKind as T;
        let second = self.byte(1);
        let third = self.byte(2);
        Some(match (first, second, third) {
            (b'<', Some(b'='), Some(b'>')) => (T::NullSafeEqual, 3),
            (b'-', Some(b'>'), Some(b'>')) => (T::DoubleArrow, 3),
            (b'<', Some(b'='), _) => (T::LessEqual, 2),
            (b'<', Some(b'>'), _) | (b'!', Some(b'='), _) => (T::NotEqual, 2),
            (b'<', Some(b'<'), _) => (T::ShiftLeft, 2),
            (b'>', Some(b'='), _) => (T::GreaterEqual, 2),
            (b'>', Some(b'>'), _) => (T::ShiftRight, 2),
            (b'-', Some(b'>'), _) => (T::Arrow, 2),
            (b'&', Some(b'&'), _) => (T::DoubleAmpersand, 2),
            (b'|', Some(b'|'), _) => (T::DoublePipe, 2),
            (b':', Some(b'='), _) => (T::Assign, 2),
            (b'(', ..) => (T::LeftParen, 1),
            (b')', ..) => (T::RightParen, 1),
            (b'{', ..) => (T::LeftBrace, 1),
            (b'}', ..) => (T::RightBrace, 1),
            (b',', ..) => (T::Comma, 1),
            (b';', ..) => (T::Semicolon, 1),
            (b'?', ..) => (T::Placeholder, 1),
            (b'*', ..) => (T::Star, 1),
            (b'+', ..) => (T::Plus, 1),
            (b'-', ..) => (T::Minus, 1),
            (b'/', ..) => (T::Slash, 1),
            (b'%', ..) => (T::Percent, 1),
            (b'~', ..) => (T::Tilde, 1),
            (b'!', ..) => (T::Bang, 1),
            (b'&', ..) => (T::Ampersand, 1),
            (b'|', ..) => (T::Pipe, 1),
            (b'^', ..) => (T::Caret, 1),
            (b'=', ..) => (T::Equal, 1),
            (b'<', ..) => (T::Less, 1),
            (b'>', ..) => (T::Greater, 1),
            _ => return None,
        })
    }
}

/// Bytes of a name without quotes. A `$` may be inside one; at the beginning it may also begin a
/// quoted body in newer servers, and there no token begins with it.
static WORD_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "it stays below 256")]
        let character = byte as u8;
        table[byte] =
            character.is_ascii_alphanumeric() || matches!(character, b'_' | b'$' | 0x80..);
        byte += 1;
    }
    table
};

#[inline]
pub(crate) fn is_word_byte(byte: u8) -> bool {
    WORD_BYTES[usize::from(byte)]
}

fn contains_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

/// The character sets that can stand in an introducer.
const CHARACTER_SETS: &[&str] = &[
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
    "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
    "utf8", "utf8mb3", "utf8mb4",
];

fn is_character_set(name: &[u8]) -> bool {
    CHARACTER_SETS
        .iter()
        .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}
