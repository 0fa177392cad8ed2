//! Judging a text by its tokens alone: which calls are in it, and what else can write.
//!
//! It serves statements whose grammar isn't followed to the end: everything except the `SELECT`s
//! that [`crate::select`] understands. A call is a name before a `(`; whatever could be one and
//! isn't known counts as a write to everything.

use crate::cursor::Cursor;
use crate::everything::EverythingReason;
use crate::functions::{Class, Function, Spacing, native_function};
use crate::keyword::Keyword as K;
use crate::lexer::Lexer;
use crate::refusal::Refusal;
use crate::token::{Token, TokenKind as T};

/// What a text was found to do apart from its statement's own purpose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Findings {
    /// It may write anything.
    pub(crate) everything: Option<EverythingReason>,
    /// It depends on the statement before.
    pub(crate) diagnostics: bool,
    /// It takes, tests or releases user locks.
    pub(crate) user_lock: bool,
    /// It names a table that can't be matched with the log.
    pub(crate) uncertain_table: bool,
}

impl Findings {
    pub(crate) fn note_known(&mut self, class: Class) {
        self.diagnostics |= class == Class::PreviousStatement;
        self.user_lock |= class == Class::Lock;
    }

    pub(crate) fn note_system_variable(&mut self, name: &[u8]) {
        self.diagnostics |= [&b"warning_count"[..], b"error_count"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name));
    }
}

/// The refusal that a call of a function of this class means, if any.
pub(crate) fn refusal_of(class: Class, without_arguments: bool) -> Option<Refusal> {
    Some(match class {
        Class::Pure | Class::Aggregate | Class::Window => return None,
        Class::ClockWithoutArguments if !without_arguments => return None,
        Class::ClockWithoutArguments | Class::Clock => Refusal::ClockFunction,
        Class::TimeOfDay => Refusal::TimeOfDay,
        Class::Random => Refusal::RandomFunction,
        Class::Session => Refusal::SessionFunction,
        Class::PreviousStatement | Class::LastInsertId => Refusal::PreviousStatementFunction,
        Class::Lock => Refusal::LockFunction,
        Class::Delay => Refusal::DelayFunction,
        Class::File => Refusal::FileFunction,
        Class::ServerState => Refusal::ServerStateFunction,
    })
}

/// Whether `name` before `paren` surely means the built-in function, as far as the space between
/// them goes. A comment is no white space here.
pub(crate) fn call_is_adjacent(
    function: &Function,
    name: Token,
    paren: Token,
    lexer: &Lexer<'_>,
) -> bool {
    if function.spacing == Spacing::Free || name.end == paren.start {
        return true;
    }
    let between = lexer.text().get(name.end..paren.start).unwrap_or_default();
    lexer.dialect().ignore_space && between.iter().all(u8::is_ascii_whitespace)
}

/// The result of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scanned {
    /// One statement, with these findings.
    One(Findings),
    /// More than one statement.
    Several,
    /// The text can't be read with certainty.
    Unreadable,
}

/// How many calls of window functions may be open at once in a scan before it gives up.
const OPEN_WINDOW_CALLS_MAX: usize = 16;
/// How many tables of JSON are looked for in a scan: to find the columns of each, it reads on.
const JSON_TABLES_MAX: usize = 16;

struct Scan<'a> {
    cursor: Cursor<'a>,
    findings: Findings,
    /// The name directly before a `(` that opens its list of columns.
    target: Option<usize>,
    depth: usize,
    /// Depths of the parentheses that must be followed by `OVER`.
    open_window_calls: [usize; OPEN_WINDOW_CALLS_MAX],
    open_window_call_count: usize,
    json_tables: usize,
}

/// Scans from the cursor to the end of the text. `target` is the offset of a table's name after
/// which a `(` opens a list of columns, not of arguments.
pub(crate) fn scan(cursor: Cursor<'_>, target: Option<usize>) -> Scanned {
    let mut scan = Scan {
        cursor,
        findings: Findings::default(),
        target,
        depth: 0,
        open_window_calls: [0; OPEN_WINDOW_CALLS_MAX],
        open_window_call_count: 0,
        json_tables: 0,
    };
    let mut previous = Token {
        kind: T::Semicolon,
        start: 0,
        end: 0,
    };
    loop {
        let token = scan.cursor.current();
        match token.kind {
            T::End => return Scanned::One(scan.findings),
            T::Invalid => return Scanned::Unreadable,
            T::Semicolon if scan.cursor.at_end() => return Scanned::One(scan.findings),
            T::Semicolon => return Scanned::Several,
            _ => scan.token(previous, token),
        }
        previous = scan.cursor.advance();
    }
}

impl Scan<'_> {
    fn everything(&mut self, reason: EverythingReason) {
        self.findings.everything.get_or_insert(reason);
    }

    fn token(&mut self, previous: Token, token: Token) {
        match token.kind {
            T::LeftParen => self.depth += 1,
            T::RightParen => self.close(),
            T::Word(K::Next | K::Previous) if self.cursor.next_is_word(K::Value) => {
                self.everything(EverythingReason::Sequence);
            }
            T::Word(_) | T::QuotedName | T::Introducer => {
                if previous.kind == T::DoubleAt || previous.kind == T::Dot {
                    self.findings
                        .note_system_variable(&self.cursor.name_bytes(token));
                }
                if self.cursor.next_kind() == T::LeftParen && self.target != Some(token.start) {
                    self.name_before_parenthesis(previous, token);
                }
            }
            _ => {}
        }
    }

    fn name_before_parenthesis(&mut self, previous: Token, token: Token) {
        match previous.kind {
            // `schema.function(`
            T::Dot => return self.everything(EverythingReason::UnknownFunction),
            // `AS alias (columns)`, `CAST(… AS type(length))`, `WITH name (columns)`, and words
            // after a `)`, where no expression can begin.
            T::Word(K::As | K::With | K::Recursive) | T::RightParen => return,
            _ => {}
        }
        let T::Word(word) = token.kind else {
            return self.everything(EverythingReason::UnknownFunction);
        };
        let dialect = self.cursor.lexer().dialect();
        let Some(function) = native_function(self.cursor.bytes(token), dialect) else {
            let is_syntax = word.is_reserved()
                || matches!(word, K::Any | K::Some | K::Row)
                // `… RESPECT NULLS OVER (…)`; elsewhere it may be a function's name, on servers
                // without windows.
                || (word == K::Over && previous.kind == T::Word(K::Nulls))
                // `INSERT INTO t VALUE (…)`: the name before it is the target.
                || (word == K::Value && self.target == Some(previous.start))
                || (word == K::JsonTable && self.makes_table_of_json())
                // The columns of such a table. No call can stand right behind a string.
                || (word == K::Columns && previous.kind == T::String);
            if !is_syntax {
                self.everything(EverythingReason::UnknownFunction);
            }
            return;
        };
        if !call_is_adjacent(function, token, self.cursor.next(), self.cursor.lexer()) {
            return self.everything(EverythingReason::UnknownFunction);
        }
        if function.class == Class::Window {
            self.open_window_call();
        }
        self.findings.note_known(function.class);
    }

    /// Whether `JSON_TABLE (` at the cursor makes a table: it names columns, as no call of a stored
    /// function can. Where servers have no such tables, that is a syntax error.
    fn makes_table_of_json(&mut self) -> bool {
        if self.json_tables >= JSON_TABLES_MAX {
            return false;
        }
        self.json_tables += 1;
        let (mut cursor, mut depth) = (self.cursor, 0);
        loop {
            let previous = cursor.advance();
            match cursor.kind() {
                T::LeftParen => depth += 1,
                T::RightParen if depth == 1 => return false,
                T::RightParen => depth -= 1,
                T::Word(K::Columns) if depth == 1 => {
                    return previous.kind == T::String && cursor.next_kind() == T::LeftParen;
                }
                T::End | T::Invalid | T::Semicolon => return false,
                _ => {}
            }
        }
    }

    fn open_window_call(&mut self) {
        if let Some(slot) = self.open_window_calls.get_mut(self.open_window_call_count) {
            *slot = self.depth + 1;
            self.open_window_call_count += 1;
        } else {
            self.everything(EverythingReason::UnknownFunction);
        }
    }

    fn close(&mut self) {
        let open = self.open_window_call_count.checked_sub(1);
        if open.and_then(|index| self.open_window_calls.get(index)) == Some(&self.depth) {
            self.open_window_call_count -= 1;
            if !matches!(
                self.cursor.next_kind(),
                T::Word(K::Over | K::Respect | K::Ignore)
            ) {
                self.everything(EverythingReason::UnknownFunction);
            }
        }
        self.depth = self.depth.saturating_sub(1);
    }
}
