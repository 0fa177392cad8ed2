//! Tokens: what the lexer makes of a statement's bytes.

use crate::keyword::Keyword;

/// One token: its kind and the bytes that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// The end of the text.
    End,
    /// Text that can't be read with certainty. It covers the rest of the text.
    Invalid,
    /// A word without quotes: a keyword, or a name as [`Keyword::Other`].
    Word(Keyword),
    /// A name in quotes.
    QuotedName,
    /// A string, also `N'…'`.
    String,
    /// A number.
    Number,
    /// `0x…`, `x'…'`, `0b…`, `b'…'`.
    HexOrBit,
    /// A character set's name before a string: `_utf8mb4`.
    Introducer,
    /// `@name`.
    UserVariable,
    /// `@@`, before the name of a system variable.
    DoubleAt,
    /// `?`
    Placeholder,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `:=`
    Assign,
    /// `*`
    Star,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `~`
    Tilde,
    /// `!`
    Bang,
    /// `&`
    Ampersand,
    /// `&&`
    DoubleAmpersand,
    /// `|`
    Pipe,
    /// `||`
    DoublePipe,
    /// `^`
    Caret,
    /// `=`
    Equal,
    /// `<=>`
    NullSafeEqual,
    /// `<>` or `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `->`
    Arrow,
    /// `->>`
    DoubleArrow,
}
