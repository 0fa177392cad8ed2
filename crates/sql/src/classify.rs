//! From a statement's first words to what it does.

mod administration;
mod definition;
mod manipulation;
mod narrowed;
mod partitions;
mod set;
mod several;

pub use partitions::{has_word, may_move_rows_unlogged};

use crate::cursor::{Cursor, NameRead};
use crate::dialect::Dialect;
use crate::everything::EverythingReason;
use crate::keyword::Keyword as K;
use crate::name::TableName;
use crate::refusal::Refusal;
use crate::scan::{Findings, Scanned, scan};
use crate::select::{Placeholders, SelectParser};
use crate::statement::{
    SessionEffect, Statement, StatementKind as Kind, Transaction, TransactionControl,
    UnknownEffect, Writes,
};
use crate::token::TokenKind as T;

/// Analyses one statement's text. It never fails: what it can't read counts as a write to
/// everything and as an unknown change of the session.
pub fn analyse(text: &[u8], dialect: Dialect) -> Statement {
    analyse_with(text, dialect, Placeholders::AreUnknown)
}

/// Analyses the text of a statement that is being prepared, in which `?` stands for values that are
/// bound when it is executed.
///
/// If it can be cached, its result depends on those values too. A bound value of type `TIME` is
/// none of a column's business here: compared with a date it is completed with today's.
pub fn analyse_prepared(text: &[u8], dialect: Dialect) -> Statement {
    analyse_with(text, dialect, Placeholders::AreBound)
}

/// The same as [`analyse`], but `None` for a `SELECT` that can't be parsed. `None`, too, if values
/// of a read or of a narrowed write are calculated with one another or joined, or if one is a
/// decimal number. So each constant that is kept is one number or one string of the text, as it
/// stands or negated.
pub(crate) fn analyse_single_values(text: &[u8], dialect: Dialect) -> Option<Statement> {
    let cursor = Cursor::new(text, dialect);
    if begins_select(cursor) {
        let mut parser = SelectParser::at(cursor);
        parser.statement().ok()?;
        return (!parser.combines_values).then(|| of_select(parser));
    }
    let statement = analyse(text, dialect);
    (statement.narrowed.is_none() || narrowed::has_single_values(cursor)).then_some(statement)
}

fn begins_select(cursor: Cursor<'_>) -> bool {
    matches!(cursor.kind(), T::Word(K::Select | K::With) | T::LeftParen)
}

fn analyse_with(text: &[u8], dialect: Dialect, placeholders: Placeholders) -> Statement {
    let mut statement = analyse_one(text, dialect, placeholders);
    if statement.kind == Kind::Multi
        && let Some(several) = several::several(text, dialect)
    {
        return several;
    }
    statement.unlogged |= statement.session.may_run_more() && may_move_rows_unlogged(text);
    statement
}

fn analyse_one(text: &[u8], dialect: Dialect, placeholders: Placeholders) -> Statement {
    let cursor = Cursor::new(text, dialect);
    match cursor.kind() {
        _ if begins_select(cursor) => select(cursor, placeholders),
        T::End | T::Semicolon if cursor.at_end() => {
            Statement::harmless(Kind::Empty, Refusal::NotSelect)
        }
        _ => other(cursor, placeholders),
    }
}

/// Analyses text that is only the beginning of a statement, which is too long to be held.
///
/// Since anything may follow (a call of a stored function, another statement), only the kind can be
/// told.
pub fn analyse_prefix(prefix: &[u8], dialect: Dialect) -> Statement {
    let cursor = Cursor::new(prefix, dialect);
    let anything = Statement::anything(
        kind_of(&cursor),
        Refusal::Truncated,
        EverythingReason::Truncated,
        UnknownEffect::Truncated,
    );
    // A long text is most often an `INSERT`, and its values may be words of any kind.
    let is_of_rows = matches!(
        anything.kind,
        Kind::Insert | Kind::Replace | Kind::Update | Kind::Delete | Kind::Select
    );
    // What is quickly found out first: few long texts have a semicolon.
    let unlogged = (!is_of_rows || prefix.contains(&b';'))
        && may_move_rows_unlogged(prefix)
        && (!is_of_rows || has_semicolon(cursor));
    Statement {
        unlogged,
        ..anything
    }
}

/// Whether a statement may end in the text before its end.
fn has_semicolon(mut cursor: Cursor<'_>) -> bool {
    loop {
        match cursor.kind() {
            T::Semicolon => return true,
            T::End | T::Invalid => return false,
            _ => cursor.advance(),
        };
    }
}

/// What a statement does beside what its scan has found.
struct Head {
    kind: Kind,
    writes: Writes,
    session: SessionEffect,
    transaction: Transaction,
    control: Option<TransactionControl>,
    /// The offset of a table's name after which `(` opens a list of columns.
    target: Option<usize>,
    diagnostics: bool,
    /// Whether it may move rows between partitions without a trace in the log.
    unlogged: bool,
    /// Whether a name before `(` in its text can be a call.
    can_call: bool,
}

impl Head {
    fn new(kind: Kind) -> Head {
        Head {
            kind,
            writes: Writes::Nothing,
            session: SessionEffect::None,
            transaction: Transaction::None,
            control: None,
            target: None,
            diagnostics: false,
            unlogged: false,
            can_call: true,
        }
    }

    /// In the rest of its text a name before `(` opens columns, lengths or keys, not arguments.
    fn without_calls(mut self) -> Head {
        self.can_call = false;
        self
    }

    /// A statement that may have done anything.
    fn anything(kind: Kind, reason: EverythingReason, effect: UnknownEffect) -> Head {
        Head {
            writes: Writes::Everything(reason),
            session: SessionEffect::Unknown(effect),
            transaction: Transaction::ImplicitCommit,
            ..Head::new(kind)
        }
    }

    fn unreadable(kind: Kind) -> Head {
        Head::anything(
            kind,
            EverythingReason::Unreadable,
            UnknownEffect::Unreadable,
        )
    }

    fn everything(mut self, reason: EverythingReason) -> Head {
        self.writes = Writes::Everything(reason);
        self
    }

    fn session(mut self, effect: SessionEffect) -> Head {
        self.session = effect;
        self
    }

    fn transaction(mut self, transaction: Transaction) -> Head {
        self.transaction = transaction;
        self
    }

    fn unlogged(mut self, unlogged: bool) -> Head {
        self.unlogged = unlogged;
        self
    }

    fn control(mut self, control: Option<TransactionControl>) -> Head {
        self.control = control;
        self
    }
}

/// A statement that begins like a `SELECT`.
fn select(cursor: Cursor<'_>, placeholders: Placeholders) -> Statement {
    let mut parser = SelectParser::at(cursor);
    parser.set_placeholders(placeholders);
    let refusal = match parser.statement() {
        Ok(()) => return of_select(parser),
        Err(refusal) => refusal,
    };
    if let Some(statement) = with_statement(cursor) {
        return statement;
    }
    finish(Head::new(Kind::Select), refusal, scan(cursor, None))
}

/// A `SELECT` that was parsed to its end.
fn of_select(parser: SelectParser<'_>) -> Statement {
    let mut statement = Statement::harmless(Kind::Select, Refusal::NotSelect);
    apply(&mut statement, parser.findings);
    statement.cacheable = parser.into_result();
    statement
}

/// `WITH … UPDATE` and `WITH … DELETE`.
fn with_statement(cursor: Cursor<'_>) -> Option<Statement> {
    if !cursor.at_word(K::With) {
        return None;
    }
    let mut parser = SelectParser::at(cursor);
    if parser.with_clause().is_err() {
        // What comes behind isn't found then: `VALUES ROW()`, `TABLE t` and more aren't parsed.
        let head = writing_word(cursor).map(Head::unreadable)?;
        return Some(finish(head, Refusal::NotSelect, scan(cursor, None)));
    }
    let head = match parser.cursor.kind() {
        T::Word(K::Update) => manipulation::update(&mut parser),
        T::Word(K::Delete) => manipulation::delete(&mut parser),
        T::Word(K::Select) | T::LeftParen => return None,
        // `CYCLE … RESTRICT` on MariaDB.
        _ => writing_word(parser.cursor).map(Head::unreadable)?,
    };
    Some(finish(head, Refusal::NotSelect, scan(cursor, None)))
}

/// The first word that says that rows are changed, wherever it stands; not that of `FOR UPDATE`. Of
/// a text that can't be read the scan says so.
fn writing_word(mut cursor: Cursor<'_>) -> Option<Kind> {
    let mut is_behind_for = false;
    loop {
        match cursor.kind() {
            T::Word(K::Update) if !is_behind_for => return Some(Kind::Update),
            T::Word(K::Delete) => return Some(Kind::Delete),
            T::End | T::Invalid => return None,
            kind => is_behind_for = kind == T::Word(K::For),
        }
        cursor.advance();
    }
}

/// A statement that is no `SELECT`.
fn other(cursor: Cursor<'_>, placeholders: Placeholders) -> Statement {
    let head = match cursor.word() {
        K::Explain | K::Describe | K::Desc | K::Analyze => {
            match administration::explain_or_analyse(cursor) {
                Ok(statement) => return *statement,
                Err(head) => head,
            }
        }
        K::Set => match set::set(cursor) {
            Ok(statement) => return *statement,
            Err(head) => head,
        },
        _ => head_of(cursor),
    };
    let target = head.target;
    let mut statement = finish(head, Refusal::NotSelect, scan(cursor, target));
    // Nothing is narrowed that a call may widen: then everything is written.
    if let Writes::Tables(tables) = &statement.writes {
        statement.narrowed = narrowed::write(cursor, placeholders)
            .filter(|write| std::slice::from_ref(&write.table) == tables.as_slice());
    }
    statement
}

fn head_of(cursor: Cursor<'_>) -> Head {
    match cursor.word() {
        K::Insert | K::Replace => manipulation::insert(cursor),
        K::Update => manipulation::update(&mut SelectParser::at(cursor)),
        K::Delete => manipulation::delete(&mut SelectParser::at(cursor)),
        K::Load => manipulation::load(cursor),
        K::Values | K::Table => Head::new(Kind::Other),
        K::Do => Head::new(Kind::Do),
        K::Call => Head::anything(
            Kind::Call,
            EverythingReason::Procedure,
            UnknownEffect::StoredProcedure,
        ),
        K::Create => definition::create(cursor),
        K::Alter => definition::alter(cursor),
        K::Drop => definition::drop_object(cursor),
        K::Rename => definition::rename(cursor),
        K::Truncate => definition::truncate(cursor),
        K::Grant | K::Revoke => definition::account(),
        _ => administration::head_of(cursor),
    }
}

/// The statement at the cursor, which other words stand before, if it is one that can be explained
/// or run under variables of its own.
fn inner(cursor: Cursor<'_>) -> Option<Statement> {
    match cursor.kind() {
        T::Word(K::Select | K::With) | T::LeftParen => {
            Some(select(cursor, Placeholders::AreUnknown))
        }
        T::Word(K::Insert | K::Replace | K::Update | K::Delete) => {
            let head = head_of(cursor);
            let target = head.target;
            Some(finish(head, Refusal::NotSelect, scan(cursor, target)))
        }
        _ => None,
    }
}

/// The kind that the first words tell.
fn kind_of(cursor: &Cursor<'_>) -> Kind {
    match cursor.word() {
        K::Select | K::With => Kind::Select,
        K::Set => Kind::Set,
        K::Explain | K::Describe | K::Desc => Kind::Explain,
        _ if cursor.at(T::LeftParen) => Kind::Select,
        _ => head_of(*cursor).kind,
    }
}

/// Puts together what the first words and the scan of the whole text say.
fn finish(head: Head, refusal: Refusal, scanned: Scanned) -> Statement {
    let findings = match scanned {
        Scanned::One(findings) => findings,
        Scanned::Several => {
            return Statement::anything(
                Kind::Multi,
                Refusal::MultipleStatements,
                EverythingReason::MultipleStatements,
                UnknownEffect::MultipleStatements,
            );
        }
        Scanned::Unreadable => {
            return Statement::anything(
                head.kind,
                Refusal::Syntax,
                EverythingReason::Unreadable,
                UnknownEffect::Unreadable,
            );
        }
    };
    let findings = if head.can_call {
        findings
    } else {
        Findings::default()
    };
    let mut statement = Statement {
        kind: head.kind,
        cacheable: Err(refusal),
        writes: head.writes,
        narrowed: None,
        session: head.session,
        transaction: head.transaction,
        control: head.control,
        diagnostics: head.diagnostics,
        unlogged: head.unlogged,
    };
    apply(&mut statement, findings);
    statement
}

/// Adds findings to what is known of a statement; the worse always wins.
fn apply(statement: &mut Statement, findings: Findings) {
    statement.diagnostics |= findings.diagnostics;
    if findings.user_lock && statement.session == SessionEffect::None {
        statement.session = SessionEffect::UserLock;
    }
    let Some(reason) = findings.everything else {
        return;
    };
    if !matches!(statement.writes, Writes::Everything(_)) {
        statement.writes = Writes::Everything(reason);
    }
    match (reason, statement.session) {
        (
            EverythingReason::UnknownFunction,
            SessionEffect::NextTransaction | SessionEffect::TransactionDefaults(_),
        ) => statement.session = SessionEffect::Unknown(UnknownEffect::UnknownVariable),
        // These keep more from being answered than a function does.
        (_, SessionEffect::Unknown(_) | SessionEffect::BinlogOff) => {}
        (EverythingReason::UnknownFunction, _) => {
            statement.session = SessionEffect::Unknown(UnknownEffect::StoredFunction);
        }
        // It reads as a query does.
        (EverythingReason::Sequence, SessionEffect::SettingsChanged)
            if statement.kind == Kind::Set =>
        {
            statement.session = SessionEffect::Unknown(UnknownEffect::QueryBesideAutocommit);
        }
        _ => {}
    }
}

/// With more tables as its targets a statement counts as a write to everything: each is compared
/// with those before it.
const TARGETS_MAX: usize = 1_024;

/// Tables being collected as the targets of a statement.
#[derive(Default)]
struct Targets {
    tables: Vec<TableName>,
    /// Why they can't be told one by one.
    lack: Option<EverythingReason>,
}

impl Targets {
    /// Reads a name; false if none stands at the cursor.
    fn read(&mut self, cursor: &mut Cursor<'_>) -> bool {
        match cursor.table_name() {
            Some(NameRead::Plain(name)) => {
                if self.tables.len() == TARGETS_MAX {
                    self.lack.get_or_insert(EverythingReason::TooManyTables);
                } else if !self.tables.contains(&name) {
                    self.tables.push(name);
                }
                true
            }
            Some(NameRead::Uncertain) => {
                self.lack = Some(EverythingReason::TableName);
                true
            }
            None => false,
        }
    }

    /// Reads names separated by commas; false if one is missing.
    fn read_list(&mut self, cursor: &mut Cursor<'_>) -> bool {
        loop {
            if !self.read(cursor) {
                return false;
            }
            if !cursor.take(T::Comma) {
                return true;
            }
        }
    }

    fn into_writes(self) -> Writes {
        if let Some(why) = self.lack {
            return Writes::Everything(why);
        }
        if self.tables.is_empty() {
            return Writes::Everything(EverythingReason::Unreadable);
        }
        Writes::Tables(self.tables)
    }
}
