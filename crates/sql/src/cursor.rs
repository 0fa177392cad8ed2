//! A window of two tokens over the lexer, and the names that parsers read from it.

use crate::dialect::Dialect;
use crate::keyword::Keyword;
use crate::lexer::Lexer;
use crate::name::TableName;
use crate::token::{Token, TokenKind};

/// How a table's name was read.
pub(crate) enum NameRead {
    /// A name that can be matched with the names in the log.
    Plain(TableName),
    /// A name, but one that can't be matched with certainty.
    Uncertain,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    lexer: Lexer<'a>,
    current: Token,
    next: Token,
    /// Where the token before the current one started.
    last_start: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a [u8], dialect: Dialect) -> Cursor<'a> {
        let mut lexer = Lexer::new(text, dialect);
        let current = lexer.next_token();
        let next = lexer.next_token();
        Cursor {
            lexer,
            current,
            next,
            last_start: 0,
        }
    }

    pub(crate) fn current(&self) -> Token {
        self.current
    }

    pub(crate) fn kind(&self) -> TokenKind {
        self.current.kind
    }

    pub(crate) fn next(&self) -> Token {
        self.next
    }

    pub(crate) fn next_kind(&self) -> TokenKind {
        self.next.kind
    }

    pub(crate) fn bytes(&self, token: Token) -> &'a [u8] {
        self.lexer.bytes(token)
    }

    pub(crate) fn lexer(&self) -> &Lexer<'a> {
        &self.lexer
    }

    /// Where the token before the current one started.
    pub(crate) fn last_start(&self) -> usize {
        self.last_start
    }

    /// Moves on by one token.
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.current;
        self.last_start = token.start;
        self.current = self.next;
        self.next = self.lexer.next_token();
        token
    }

    pub(crate) fn at(&self, kind: TokenKind) -> bool {
        self.current.kind == kind
    }

    pub(crate) fn at_word(&self, word: Keyword) -> bool {
        self.current.kind == TokenKind::Word(word)
    }

    pub(crate) fn next_is_word(&self, word: Keyword) -> bool {
        self.next.kind == TokenKind::Word(word)
    }

    /// The keyword at the cursor; [`Keyword::Other`] also for what is no word.
    pub(crate) fn word(&self) -> Keyword {
        match self.current.kind {
            TokenKind::Word(word) => word,
            _ => Keyword::Other,
        }
    }

    pub(crate) fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn take_word(&mut self, word: Keyword) -> bool {
        self.take(TokenKind::Word(word))
    }

    /// Takes any of the words, as often as they come.
    pub(crate) fn skip_words(&mut self, words: &[Keyword]) {
        while let TokenKind::Word(word) = self.kind() {
            if !words.contains(&word) {
                return;
            }
            self.advance();
        }
    }

    /// Whether the text ends here: nothing but semicolons follow.
    pub(crate) fn at_end(&self) -> bool {
        let mut probe = *self;
        while probe.take(TokenKind::Semicolon) {}
        probe.at(TokenKind::End)
    }

    /// Whether nothing but white space follows the semicolons at the end. A server that accepts
    /// several statements takes a comment there for another, empty one, and answers twice.
    pub(crate) fn ends_plainly(&self) -> bool {
        let rest = self
            .lexer
            .text()
            .get(self.current.start..)
            .unwrap_or_default();
        !self.at(TokenKind::Semicolon)
            || rest
                .iter()
                .all(|byte| *byte == b';' || byte.is_ascii_whitespace())
    }

    /// Whether a name can stand at the cursor. Words that some server reserves are names only
    /// directly after a dot.
    pub(crate) fn at_name(&self) -> bool {
        is_name(self.current)
    }

    /// The bytes of the name that `token` is: without quotes, doubled quotes undone.
    pub(crate) fn name_bytes(&self, token: Token) -> std::borrow::Cow<'a, [u8]> {
        let bytes = self.bytes(token);
        if token.kind != TokenKind::QuotedName {
            return bytes.into();
        }
        let quote = bytes.first().copied().unwrap_or(b'`');
        let inner = bytes
            .get(1..bytes.len().saturating_sub(1))
            .unwrap_or_default();
        if !inner.contains(&quote) {
            return inner.into();
        }
        let mut name = Vec::with_capacity(inner.len());
        let mut index = 0;
        while let Some(byte) = inner.get(index) {
            name.push(*byte);
            index += if *byte == quote { 2 } else { 1 };
        }
        name.into()
    }

    /// Reads `table` or `schema.table`; `None` if no name stands here.
    pub(crate) fn table_name(&mut self) -> Option<NameRead> {
        if !self.at_name() {
            return None;
        }
        let first = self.advance();
        if !self.at(TokenKind::Dot) {
            return Some(self.read_name(None, first));
        }
        self.advance();
        if !is_name_after_dot(self.current) {
            return None;
        }
        let second = self.advance();
        if self.at(TokenKind::Dot) && self.next_kind() != TokenKind::Star {
            // Three parts: no server's usual form of a table's name.
            return None;
        }
        Some(self.read_name(Some(first), second))
    }

    fn read_name(&self, schema: Option<Token>, table: Token) -> NameRead {
        let table = self.plain_name(table);
        let schema = match schema.map(|token| self.plain_name(token)) {
            None => Some(None),
            Some(Some(schema)) => Some(Some(schema)),
            Some(None) => None,
        };
        match (schema, table) {
            (Some(schema), Some(table)) => NameRead::Plain(TableName { schema, table }),
            _ => NameRead::Uncertain,
        }
    }

    /// The name as text if it is certain which table is meant. Bytes outside ASCII depend on the
    /// client's character set; a `#` may begin `#mysql50#`, another spelling of a plain name.
    fn plain_name(&self, token: Token) -> Option<String> {
        let name = self.name_bytes(token);
        if !name.is_ascii() || name.contains(&b'#') {
            return None;
        }
        String::from_utf8(name.into_owned()).ok()
    }
}

/// Whether `token` can be a name where a keyword could also stand.
pub(crate) fn is_name(token: Token) -> bool {
    match token.kind {
        TokenKind::QuotedName => true,
        TokenKind::Word(word) => !word.is_reserved() && !word.begins_a_clause_somewhere(),
        _ => false,
    }
}

/// After a dot every word is a name. An introducer's text is a name there too, but a rare one.
pub(crate) fn is_name_after_dot(token: Token) -> bool {
    matches!(token.kind, TokenKind::QuotedName | TokenKind::Word(_))
}
