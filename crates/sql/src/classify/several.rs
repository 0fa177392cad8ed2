//! Several statements in one text.
//!
//! The server reads each of them when those before it have run. So one that changes how text is
//! read would leave the rest unknown. Two kinds of texts are understood:
//!
//! - each statement reads or changes rows, and leaves the session and the transaction as they are;
//! - each is a `SET` that is read alike whatever those before it have set. Clients send such texts
//!   when they connect.

use super::analyse_one;
use crate::cursor::Cursor;
use crate::dialect::Dialect;
use crate::everything::EverythingReason;
use crate::refusal::Refusal;
use crate::select::Placeholders;
use crate::statement::{SessionEffect, Statement, StatementKind as Kind, Transaction, Writes};
use crate::token::TokenKind as T;

/// The most statements in a text that is understood. The empty one behind a last semicolon counts.
const STATEMENTS_MAX: usize = 64;

/// A statement of a text.
struct Part<'t> {
    text: &'t [u8],
    statement: Statement,
}

/// What the statements of a text do together. `None`: it isn't known.
pub(super) fn several(text: &[u8], dialect: Dialect) -> Option<Statement> {
    let mut parts = Vec::new();
    for text in split(text, dialect)? {
        let statement = analyse_one(text, dialect, Placeholders::AreUnknown);
        if statement.kind != Kind::Empty {
            parts.push(Part { text, statement });
        }
    }
    let any = |is_it: fn(&Statement) -> bool| parts.iter().any(|part| is_it(&part.statement));
    let mut whole = Statement::harmless(Kind::Multi, Refusal::MultipleStatements);
    if parts.iter().all(Part::keeps_session) {
        if any(|one| one.session == SessionEffect::UserLock) {
            whole.session = SessionEffect::UserLock;
        }
    } else if parts.iter().all(Part::sets_plainly) {
        whole.session = SessionEffect::SettingsChanged;
    } else {
        return None;
    }
    if any(|one| one.writes != Writes::Nothing) {
        whole.writes = Writes::Everything(EverythingReason::MultipleStatements);
    }
    whole.diagnostics = asks_about_others(&parts);
    Some(whole)
}

/// Whether one of the statements asks about a statement before the text: the first, or one that
/// asks for what stays until another sets it. A `SELECT` sets the count of found rows; on some
/// servers warnings stay until a statement uses a table.
fn asks_about_others(parts: &[Part<'_>]) -> bool {
    let (mut count_stays, mut warnings_stay) = (true, true);
    for (number, part) in parts.iter().enumerate() {
        let asks_for_count = || part.names(b"found_rows");
        let asks_for_warnings = || part.names(b"warning") || part.names(b"error");
        let asks =
            number == 0 || count_stays && asks_for_count() || warnings_stay && asks_for_warnings();
        if part.statement.diagnostics && asks {
            return true;
        }
        count_stays &= part.statement.kind != Kind::Select;
        warnings_stay &= !part.uses_tables();
    }
    false
}

/// The texts of the statements. `None` if there are too many, or if it isn't certain where they
/// end: a comment that is executed may hold the semicolon.
fn split(text: &[u8], dialect: Dialect) -> Option<Vec<&[u8]>> {
    let mut texts = Vec::new();
    let mut cursor = Cursor::new(text, dialect);
    let mut start = 0;
    loop {
        let token = cursor.current();
        let end = match token.kind {
            T::End => text.len(),
            T::Semicolon => token.start,
            T::Invalid => return None,
            _ => {
                cursor.advance();
                continue;
            }
        };
        if texts.len() >= STATEMENTS_MAX {
            return None;
        }
        texts.push(text.get(start..end)?);
        if token.kind == T::End {
            return (!cursor.lexer().saw_executable_comment()).then_some(texts);
        }
        start = token.end;
        cursor.advance();
    }
}

impl Part<'_> {
    /// It reads, changes rows, or sets what has no effect on results.
    fn keeps_session(&self) -> bool {
        let statement = &self.statement;
        let is_understood = match statement.kind {
            Kind::Insert | Kind::Replace | Kind::Update | Kind::Delete => true,
            Kind::Select | Kind::Do | Kind::Set | Kind::Show => statement.writes == Writes::Nothing,
            _ => false,
        };
        is_understood
            && statement.transaction == Transaction::None
            && matches!(
                statement.session,
                SessionEffect::None | SessionEffect::UserLock
            )
    }

    /// Whether it certainly reads or changes rows of a table.
    fn uses_tables(&self) -> bool {
        match self.statement.kind {
            Kind::Insert | Kind::Replace | Kind::Update | Kind::Delete => true,
            _ => {
                let select = self.statement.cacheable.as_ref();
                select.is_ok_and(|select| !select.tables.is_empty())
            }
        }
    }

    /// Whether this stands in its text, in any case.
    fn names(&self, what: &[u8]) -> bool {
        let mut parts = self.text.windows(what.len());
        parts.any(|part| part.eq_ignore_ascii_case(what))
    }

    /// It is a `SET` without calls and queries, and means the same under every `sql_mode` and
    /// character set. Those of the query cache's variables are left out: sent alone, Remora answers
    /// them itself.
    fn sets_plainly(&self) -> bool {
        let is_plain = |byte: &u8| byte.is_ascii() && !matches!(byte, b'"' | b'\\' | b'(');
        let statement = &self.statement;
        statement.kind == Kind::Set
            && statement.writes == Writes::Nothing
            && statement.transaction == Transaction::None
            && self.text.iter().all(is_plain)
            && !self.names(b"query_cache")
            && matches!(
                statement.session,
                SessionEffect::None
                    | SessionEffect::SettingsChanged
                    | SessionEffect::TransactionDefaults(_)
            )
    }
}
