//! Reading emulated statements: words by their text, since most of them are keywords nowhere
//! else.

use crate::cursor::Cursor;
use crate::dialect::Dialect;
use crate::token::{Token, TokenKind as T};

/// A cursor that compares words without regard to case.
#[derive(Clone, Copy)]
pub(super) struct Parser<'t> {
    cursor: Cursor<'t>,
    dialect: Dialect,
    end_before: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t [u8], dialect: Dialect) -> Parser<'t> {
        Parser {
            cursor: Cursor::new(text, dialect),
            dialect,
            end_before: 0,
        }
    }

    pub(super) fn advance(&mut self) -> Token {
        self.end_before = self.cursor.current().end;
        self.cursor.advance()
    }

    /// Where the token before the cursor ends, if that was passed by [`Parser::advance`].
    pub(super) fn end_before(&self) -> usize {
        self.end_before
    }

    /// The word at the cursor, without quotes.
    pub(super) fn word(&self) -> Option<&'t [u8]> {
        let token = self.cursor.current();
        matches!(token.kind, T::Word(_)).then(|| self.cursor.bytes(token))
    }

    pub(super) fn bytes(&self, token: Token) -> &'t [u8] {
        self.cursor.bytes(token)
    }

    pub(super) fn current(&self) -> Token {
        self.cursor.current()
    }

    pub(super) fn next_token(&self) -> Token {
        self.cursor.next()
    }

    /// Where the token at the cursor begins.
    pub(super) fn start(&self) -> usize {
        self.cursor.current().start
    }

    pub(super) fn at(&self, word: &str) -> bool {
        self.word()
            .is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    }

    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.at(word);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Option<()> {
        self.take(word).then_some(())
    }

    pub(super) fn at_kind(&self, kind: T) -> bool {
        self.cursor.at(kind)
    }

    pub(super) fn take_kind(&mut self, kind: T) -> bool {
        self.cursor.take(kind)
    }

    /// Whether the text ends here, as one statement does for every server.
    pub(super) fn at_end(&self) -> bool {
        self.cursor.at_end() && self.cursor.ends_plainly()
    }

    /// Whether an executable comment has been passed. No statement to Remora is read with
    /// one, but for what `EXPLAIN REMORA` explains.
    pub(super) fn saw_executable_comment(&self) -> bool {
        self.cursor.lexer().saw_executable_comment()
    }

    /// Whether a `SELECT` begins here.
    pub(super) fn begins_select(&self) -> bool {
        self.at("select") || self.at("with") || self.at_kind(T::LeftParen)
    }

    /// Whether the rest can be read and has no semicolon but at its end.
    pub(super) fn is_one_statement(&self) -> bool {
        let mut probe = *self;
        loop {
            match probe.current().kind {
                T::End => return true,
                T::Invalid => return false,
                T::Semicolon => return probe.at_end(),
                _ => {
                    probe.advance();
                }
            }
        }
    }

    /// Takes a string of ASCII characters that means the same to every server: no escapes but `\_`
    /// and `\%`, no doubled quotes, no character set of its own, no second string behind it.
    pub(super) fn take_string(&mut self) -> Option<&'t str> {
        let token = self.current();
        if token.kind != T::String || matches!(self.next_token().kind, T::String | T::Introducer) {
            return None;
        }
        let bytes = self.bytes(token);
        let quote = *bytes.first()?;
        if !matches!(quote, b'\'' | b'"') {
            return None;
        }
        let inner = bytes.get(1..bytes.len().checked_sub(1)?)?;
        let is_plain = inner.is_ascii() && !inner.contains(&quote) && !inner.contains(&0);
        if !is_plain || !self.has_plain_escapes(inner) {
            return None;
        }
        self.advance();
        std::str::from_utf8(inner).ok()
    }

    fn has_plain_escapes(&self, inner: &[u8]) -> bool {
        if !inner.contains(&b'\\') {
            return true;
        }
        if self.dialect.no_backslash_escapes {
            return false;
        }
        let mut rest = inner.iter();
        while let Some(byte) = rest.next() {
            if *byte == b'\\' && !matches!(rest.next(), Some(b'_' | b'%')) {
                return false;
            }
        }
        true
    }

    /// Takes a whole number without sign.
    pub(super) fn take_number(&mut self) -> Option<u64> {
        let token = self.current();
        if token.kind != T::Number {
            return None;
        }
        let digits = std::str::from_utf8(self.bytes(token)).ok()?;
        let number = digits.parse().ok()?;
        self.advance();
        Some(number)
    }
}
