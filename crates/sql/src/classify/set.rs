//! `SET`: every assignment in the list, the worst decides.

use super::{Head, definition, inner};
use crate::cursor::Cursor;
use crate::everything::EverythingReason;
use crate::keyword::Keyword as K;
use crate::refusal::Refusal;
use crate::settings::{SettingKind, global_setting_matters, session_setting};
use crate::statement::{
    IsolationLevel, SessionEffect, Statement, StatementKind as Kind, Transaction,
    TransactionDefaults, UnknownEffect, Writes,
};
use crate::token::TokenKind as T;

/// Where a variable is set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Session,
    Global,
    /// No scope is written behind `@@`.
    Bare,
    /// No scope is written, but `GLOBAL` was before in the list: servers differ.
    Both,
}

/// What the assignments do to autocommit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Autocommit {
    Kept,
    /// Turned on or off by one literal.
    Set(bool),
    /// Set to something.
    Computed,
}

/// What the assignments seen so far do together.
struct Effects {
    session: SessionEffect,
    everything: Option<EverythingReason>,
    transaction: Transaction,
    autocommit: Autocommit,
    /// Nothing is computed: all values are numbers and words.
    only_literals: bool,
    /// A value is a query, or may be.
    may_query: bool,
}

impl Effects {
    fn none() -> Effects {
        Effects {
            session: SessionEffect::None,
            everything: None,
            transaction: Transaction::None,
            autocommit: Autocommit::Kept,
            only_literals: true,
            may_query: false,
        }
    }

    /// The worse effect wins. What holds for the next transaction only goes with nothing else.
    fn raise(&mut self, effect: SessionEffect) {
        let next = SessionEffect::NextTransaction;
        let is_mixed = effect != self.session
            && ((self.session == next && effect != SessionEffect::None)
                || (effect == next && self.session != SessionEffect::None));
        if is_mixed {
            self.session = SessionEffect::Unknown(UnknownEffect::UnknownVariable);
        } else if severity(effect) > severity(self.session) {
            self.session = effect;
        }
    }

    /// A query beside a change of autocommit may have read in a transaction that the server has
    /// lost sight of: what it saw stays, even behind `COMMIT`, and no flag tells.
    fn into_head(mut self) -> Head {
        match self.autocommit {
            Autocommit::Kept => {}
            _ if self.may_query => {
                self.raise(SessionEffect::Unknown(UnknownEffect::QueryBesideAutocommit));
            }
            Autocommit::Set(autocommit)
                if self.session == SessionEffect::None && self.only_literals =>
            {
                self.session = SessionEffect::TransactionDefaults(TransactionDefaults {
                    autocommit: Some(autocommit),
                    ..TransactionDefaults::default()
                });
            }
            _ => self.raise(SessionEffect::SettingsChanged),
        }
        let writes = self.everything.map_or(Writes::Nothing, Writes::Everything);
        Head {
            writes,
            ..Head::new(Kind::Set)
        }
        .session(self.session)
        .transaction(self.transaction)
    }
}

fn severity(effect: SessionEffect) -> u8 {
    match effect {
        SessionEffect::None => 0,
        SessionEffect::SettingsChanged | SessionEffect::Role => 1,
        SessionEffect::BinlogOff => 2,
        _ => 3,
    }
}

fn unknown() -> Head {
    Head::anything(
        Kind::Set,
        EverythingReason::Unreadable,
        UnknownEffect::UnknownVariable,
    )
}

/// `SET …`; `Ok` for `SET STATEMENT … FOR …`, which is mostly its inner statement.
pub(super) fn set(mut cursor: Cursor<'_>) -> Result<Box<Statement>, Head> {
    cursor.advance();
    match cursor.word() {
        K::Password => return Err(definition::account()),
        K::Role => return Err(Head::new(Kind::Set).session(SessionEffect::Role)),
        K::Default if cursor.next_is_word(K::Role) => return Err(definition::account()),
        K::Statement => return set_statement(cursor),
        K::Transaction => {
            return Err(Head::new(Kind::Set).session(SessionEffect::NextTransaction));
        }
        K::Session | K::Local if cursor.next_is_word(K::Transaction) => {
            if let Some(defaults) = transaction_defaults(cursor) {
                let effect = SessionEffect::TransactionDefaults(defaults);
                return Err(Head::new(Kind::Set).session(effect));
            }
        }
        _ => {}
    }
    let mut effects = Effects::none();
    let mut global_before = false;
    loop {
        if !assignment(&mut cursor, &mut effects, &mut global_before) {
            return Err(unknown());
        }
        if !cursor.take(T::Comma) {
            break;
        }
    }
    Err(if cursor.at_end() {
        effects.into_head()
    } else {
        unknown()
    })
}

/// `SESSION TRANSACTION` and its characteristics, each at most once, and nothing behind them.
fn transaction_defaults(mut cursor: Cursor<'_>) -> Option<TransactionDefaults> {
    use IsolationLevel as Level;
    cursor.advance();
    cursor.advance();
    let mut defaults = TransactionDefaults::default();
    loop {
        if defaults.read_only.is_none() && take_words(&mut cursor, &["READ", "ONLY"]) {
            defaults.read_only = Some(true);
        } else if defaults.read_only.is_none() && take_words(&mut cursor, &["READ", "WRITE"]) {
            defaults.read_only = Some(false);
        } else if defaults.isolation.is_none() && take_words(&mut cursor, &["ISOLATION", "LEVEL"]) {
            let levels = [
                (&["READ", "UNCOMMITTED"][..], Level::ReadUncommitted),
                (&["READ", "COMMITTED"], Level::ReadCommitted),
                (&["REPEATABLE", "READ"], Level::RepeatableRead),
                (&["SERIALIZABLE"], Level::Serializable),
            ];
            let named = levels
                .into_iter()
                .find(|(words, _)| take_words(&mut cursor, words));
            defaults.isolation = Some(named?.1);
        } else {
            return None;
        }
        if !cursor.take(T::Comma) {
            return cursor.at_end().then_some(defaults);
        }
    }
}

/// Takes these words if they are all there.
fn take_words(cursor: &mut Cursor<'_>, words: &[&str]) -> bool {
    let mut ahead = *cursor;
    let are_there = words.iter().all(|word| {
        let token = ahead.advance();
        let text = ahead.bytes(token);
        matches!(token.kind, T::Word(_)) && text.eq_ignore_ascii_case(word.as_bytes())
    });
    if are_there {
        *cursor = ahead;
    }
    are_there
}

/// One assignment of the list; false if it isn't understood.
fn assignment(cursor: &mut Cursor<'_>, effects: &mut Effects, global_before: &mut bool) -> bool {
    if cursor.take(T::UserVariable) {
        return take_assign(cursor) && take_value(cursor, effects);
    }
    let scope = if cursor.take(T::DoubleAt) {
        let bare = if *global_before {
            Scope::Both
        } else {
            Scope::Bare
        };
        Some(scope_after_at(cursor).unwrap_or(bare))
    } else {
        let scope = match cursor.word() {
            K::Global | K::Persist | K::PersistOnly => Some(Scope::Global),
            K::Session | K::Local => Some(Scope::Session),
            _ => None,
        };
        if scope.is_some() {
            cursor.advance();
        } else if let Some(done) = special(cursor, effects) {
            return done;
        }
        *global_before |= scope == Some(Scope::Global);
        scope.or((*global_before).then_some(Scope::Both))
    };
    if cursor.at_word(K::Transaction) {
        // `SET SESSION | GLOBAL TRANSACTION …` stands alone; its characteristics have commas.
        if scope != Some(Scope::Global) {
            effects.raise(SessionEffect::SettingsChanged);
        }
        while !matches!(cursor.kind(), T::End | T::Invalid | T::Semicolon) {
            cursor.advance();
        }
        return true;
    }
    variable(cursor, scope.unwrap_or(Scope::Session), effects)
}

/// `@@global.` and the like.
fn scope_after_at(cursor: &mut Cursor<'_>) -> Option<Scope> {
    let scope = match cursor.word() {
        K::Global | K::Persist | K::PersistOnly => Scope::Global,
        K::Session | K::Local => Scope::Session,
        _ => return None,
    };
    if cursor.next_kind() == T::Dot {
        cursor.advance();
        cursor.advance();
        return Some(scope);
    }
    None
}

/// `NAMES`, `CHARACTER SET`, `CHARSET`; `None` if it is none of them.
fn special(cursor: &mut Cursor<'_>, effects: &mut Effects) -> Option<bool> {
    let assigned = matches!(cursor.next_kind(), T::Equal | T::Assign | T::Dot);
    match cursor.word() {
        K::Names | K::Charset if !assigned => {}
        K::Character if cursor.next_is_word(K::Set) => {
            cursor.advance();
        }
        _ => return None,
    }
    cursor.advance();
    effects.raise(SessionEffect::SettingsChanged);
    Some(skip_value(cursor))
}

/// `name = value`
fn variable(cursor: &mut Cursor<'_>, scope: Scope, effects: &mut Effects) -> bool {
    if !matches!(cursor.kind(), T::Word(_) | T::QuotedName) {
        return false;
    }
    let token = cursor.advance();
    let name = cursor.name_bytes(token);
    if cursor.at(T::Dot) {
        // A structured variable, or one of a component.
        return false;
    }
    if !take_assign(cursor) {
        return false;
    }
    if matches!(scope, Scope::Global | Scope::Both) && global_setting_matters(&name) {
        effects.everything = Some(EverythingReason::Setting);
    }
    let switch = switch(cursor);
    if scope != Scope::Global {
        let may_be_bare = matches!(scope, Scope::Bare | Scope::Both);
        let is_autocommit = name.eq_ignore_ascii_case(b"autocommit");
        effects.raise(match session_setting(&name) {
            _ if is_autocommit => SessionEffect::None,
            _ if may_be_bare && is_of_transactions(&name) => SessionEffect::NextTransaction,
            SettingKind::Result => SessionEffect::SettingsChanged,
            SettingKind::Log => SessionEffect::BinlogOff,
            SettingKind::Harmless => SessionEffect::None,
            SettingKind::Unknown => SessionEffect::Unknown(UnknownEffect::UnknownVariable),
        });
        if is_autocommit {
            effects.autocommit = match switch {
                Some(on) if scope != Scope::Both && effects.autocommit == Autocommit::Kept => {
                    Autocommit::Set(on)
                }
                _ => Autocommit::Computed,
            };
            if switch != Some(false) {
                effects.transaction = Transaction::ImplicitCommit;
            }
        }
    }
    take_value(cursor, effects)
}

/// `SET @@name = …` sets these for the next transaction only, as `SET TRANSACTION` does. `SET name
/// = …` and `SET @@session.name = …` set them for the session.
fn is_of_transactions(name: &[u8]) -> bool {
    let names = [
        &b"transaction_isolation"[..],
        b"tx_isolation",
        b"transaction_read_only",
        b"tx_read_only",
    ];
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn take_assign(cursor: &mut Cursor<'_>) -> bool {
    cursor.take(T::Equal) || cursor.take(T::Assign)
}

/// Whether the value at the cursor turns something on or off, if it is nothing but that.
fn switch(cursor: &Cursor<'_>) -> Option<bool> {
    let text = cursor.bytes(cursor.current());
    let is = |known: &[&[u8]]| known.iter().any(|known| text.eq_ignore_ascii_case(known));
    if !is_literal(cursor) {
        None
    } else if is(&[b"0", b"OFF", b"FALSE"]) {
        Some(false)
    } else if is(&[b"1", b"ON", b"TRUE"]) {
        Some(true)
    } else {
        None
    }
}

/// Whether the value at the cursor is one number or one word: neither a query nor a call.
fn is_literal(cursor: &Cursor<'_>) -> bool {
    matches!(cursor.kind(), T::Number | T::Word(_))
        && matches!(cursor.next_kind(), T::Comma | T::End | T::Semicolon)
}

/// Skips the value of an assignment; false if there is none.
fn take_value(cursor: &mut Cursor<'_>, effects: &mut Effects) -> bool {
    effects.only_literals &= is_literal(cursor);
    let mut ahead = *cursor;
    let there_is_one = skip_value(cursor);
    while ahead.current() != cursor.current() {
        effects.may_query |= matches!(ahead.word(), K::Select | K::Table | K::Values | K::With);
        ahead.advance();
    }
    there_is_one
}

/// Skips an expression up to the next comma outside parentheses; false if there is none. What it
/// calls is judged by the scan of the whole text.
fn skip_value(cursor: &mut Cursor<'_>) -> bool {
    let mut depth = 0_usize;
    let mut some = false;
    loop {
        match cursor.kind() {
            T::End | T::Invalid | T::Semicolon => return some && depth == 0,
            T::Comma if depth == 0 => return some,
            T::LeftParen => depth += 1,
            T::RightParen => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return false,
            },
            _ => {}
        }
        some = true;
        cursor.advance();
    }
}

/// `SET STATEMENT name = value, … FOR statement` (MariaDB): the variables hold for the statement
/// alone.
fn set_statement(mut cursor: Cursor<'_>) -> Result<Box<Statement>, Head> {
    cursor.advance();
    let mut variables = Effects::none();
    loop {
        if !matches!(cursor.kind(), T::Word(_)) || cursor.next_kind() != T::Equal {
            return Err(unknown());
        }
        let name = cursor.advance();
        variables.raise(match session_setting(cursor.bytes(name)) {
            SettingKind::Result | SettingKind::Harmless => SessionEffect::None,
            SettingKind::Log => SessionEffect::BinlogOff,
            SettingKind::Unknown => SessionEffect::Unknown(UnknownEffect::UnknownVariable),
        });
        // `sql_mode` may change how the rest of the text is read. With autocommit off the statement
        // begins a transaction, which keeps the level that it began with.
        let bytes = cursor.bytes(name);
        let lasts = [&b"sql_mode"[..], b"autocommit", b"completion_type"]
            .iter()
            .any(|known| bytes.eq_ignore_ascii_case(known));
        if lasts || is_of_transactions(bytes) {
            return Err(unknown());
        }
        cursor.advance();
        while !matches!(cursor.kind(), T::Comma | T::Word(K::For)) {
            // Only plain values: no calls, no queries.
            if !matches!(cursor.kind(), T::Word(_) | T::String | T::Number | T::Minus) {
                return Err(unknown());
            }
            cursor.advance();
        }
        if cursor.advance().kind == T::Word(K::For) {
            break;
        }
    }
    if variables.session != SessionEffect::None {
        return Err(Head::anything(
            Kind::Set,
            EverythingReason::UnloggedSetting,
            UnknownEffect::UnknownVariable,
        ));
    }
    let Some(mut statement) = inner(cursor) else {
        return Err(unknown());
    };
    if statement.cacheable.is_ok() {
        statement.cacheable = Err(Refusal::SetStatement);
    }
    Ok(Box::new(statement))
}
