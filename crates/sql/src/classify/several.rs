//! Several statements in one text.
//!
//! The server reads each of them when those before it have run. So one that changes how text is
//! read would leave the rest unknown. Two kinds of texts are understood:
//!
//! - each statement reads, or changes rows, and leaves the session and the transaction as they are;
//! - each is a `SET` to literals, as clients send them when they connect.

use super::analyse_one;
use crate::cursor::Cursor;
use crate::dialect::Dialect;
use crate::everything::EverythingReason;
use crate::literal_settings::sets_to_literals;
use crate::refusal::Refusal;
use crate::select::Placeholders;
use crate::statement::{SessionEffect, Statement, StatementKind as Kind, Transaction, Writes};
use crate::token::TokenKind as T;

/// How many statements of a text are looked at. With more it may do anything.
const STATEMENTS_MAX: usize = 64;

/// What the statements of a text do together. `None`: it isn't known.
pub(super) fn several(text: &[u8], dialect: Dialect) -> Option<Statement> {
    let texts = split(text, dialect)?;
    let mut statements = Vec::with_capacity(texts.len());
    for text in &texts {
        let statement = analyse_one(text, dialect, Placeholders::AreUnknown);
        if statement.kind != Kind::Empty {
            statements.push((*text, statement));
        }
    }
    let mut whole = Statement::harmless(Kind::Multi, Refusal::MultipleStatements);
    if statements.iter().all(leaves_all_as_it_is) {
        let mut sessions = statements.iter().map(|(_, one)| one.session);
        if let Some(lock) = sessions.find(|effect| *effect == SessionEffect::UserLock) {
            whole.session = lock;
        }
    } else if statements
        .iter()
        .all(|(text, one)| sets_literals(text, one, dialect))
    {
        whole.session = SessionEffect::SettingsChanged;
    } else {
        return None;
    }
    if statements
        .iter()
        .any(|(_, one)| one.writes != Writes::Nothing)
    {
        whole.writes = Writes::Everything(EverythingReason::MultipleStatements);
    }
    whole.diagnostics = statements.iter().any(|(_, one)| one.diagnostics);
    Some(whole)
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

fn leaves_all_as_it_is((_, statement): &(&[u8], Statement)) -> bool {
    let is_understood = match statement.kind {
        Kind::Insert | Kind::Replace | Kind::Update | Kind::Delete => true,
        Kind::Select | Kind::Do | Kind::Set | Kind::Show => statement.writes == Writes::Nothing,
        _ => false,
    };
    is_understood
        && matches!(
            statement.session,
            SessionEffect::None | SessionEffect::UserLock
        )
        && statement.transaction == Transaction::None
}

/// Whether a statement sets to literals what it sets. In a text of them no character means
/// something else in another character set.
fn sets_literals(text: &[u8], statement: &Statement, dialect: Dialect) -> bool {
    text.is_ascii()
        && statement.session == SessionEffect::SettingsChanged
        && statement.transaction == Transaction::None
        && sets_to_literals(text, dialect)
}
