//! From statement text to what it reads, writes and changes, or why it can't be cached. No I/O.
//!
//! [`analyse`] is the entrance. It never fails: what it can't read with certainty isn't cacheable
//! and counts as a write to everything. Errors in that direction cost performance only; the other
//! direction would serve old rows, so every list here is a list of what is allowed.
//!
//! What the text alone can't tell is the caller's: what a view reads, what a trigger or a foreign
//! key writes, whether a name means a temporary table, and whether a column's type is `TIME` (its
//! values may be completed with today's date when they are compared with dates). The text must be
//! in a character set in which bytes below 0x80 are ASCII.

mod ambiguity;
mod classify;
mod cursor;
mod dialect;
mod digest;
mod emulation;
mod everything;
mod fold;
mod functions;
mod hint;
mod key_text;
mod keyword;
mod lexer;
mod literal_settings;
mod logged;
mod mentions;
mod name;
mod reads;
mod refusal;
mod scan;
mod select;
mod settings;
mod skeleton;
mod statement;
mod template;
mod token;

pub use ambiguity::Ambiguity;
pub use classify::{analyse, analyse_prefix, analyse_prepared, has_word, may_move_rows_unlogged};
pub use dialect::{Dialect, Natives};
pub use digest::{DIGEST_TEXT_BYTES_MAX, Digest, normalise};
pub use emulation::{
    Assignment, EmulatedExpression, EmulatedSelect, EmulatedSet, EmulatedStatement, EmulatedValue,
    EmulatedVariable, NameFilter, NameListing, NameTest, Pattern, ShowNames, ShowRemora,
    VariableScope, VariableUse, recognise,
};
pub use everything::EverythingReason;
pub use functions::further::{FURTHER_FUNCTIONS, FurtherFunction};
pub use functions::{Class, FUNCTIONS, Function, find_function};
pub use hint::unread_cache_hint;
pub use key_text::{key_text, may_differ_from_key_text};
pub use keyword::Keyword;
pub use lexer::Lexer;
pub use literal_settings::sets_to_literals;
pub use logged::{LoggedStatement, analyse_logged};
pub use mentions::{Mentions, NameHash};
pub use name::TableName;
pub use reads::{
    Block, Bound, CONDITIONS_MAX, CONSTANT_BYTES_MAX, CONSTANTS_MAX, ColumnName, ColumnNames,
    Condition, Constant, EQUALITIES_MAX, NameUse, NarrowedWrite, Reads, Source, SourceSet, Test,
    WRITTEN_ROWS_MAX, WrittenRows,
};
pub use refusal::Refusal;
pub use select::{NESTING_DEPTH_MAX, Select, TABLES_MAX, is_system_schema};
pub use settings::{CONTACT_SETTINGS, RESULT_SETTINGS, ResultSetting};
pub use skeleton::{ValuePlace, skeleton};
pub use statement::{
    IsolationLevel, SessionEffect, Statement, StatementKind, Transaction, TransactionControl,
    TransactionDefaults, UnknownEffect, Writes,
};
pub use template::{ReadTemplate, WriteTemplate};
pub use token::{Token, TokenKind};
