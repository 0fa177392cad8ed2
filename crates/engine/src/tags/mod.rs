//! Which tags a statement's results depend on, which a change touches, and which a write fences.
//!
//! **Never too fine.** Whatever isn't certain here becomes a coarser tag: the value of a column,
//! then all of the table's narrowed results, then the table.
//!
//! | module | says |
//! |---|---|
//! | `read` | the tags of a `SELECT`'s result, from its conditions and the catalogue |
//! | `plan` | how each of its reads of a table is narrowed |
//! | [`explain`] | the same in words |
//! | `origin` | which table a tag of a result is of |
//! | `columns` | which columns it reads, and whether it may do with them what it does |
//! | `conditions` | which columns are restricted, also by what they must be equal to |
//! | `change` | the tags that a commit touches, from its rows and the registered shapes |
//! | `write` | the fences of a statement that writes, from its conditions |
//! | `codec` | when a literal and a row's value are the same |
//! | [`collations`] | when two texts are |
//! | `look` | whether a server can answer a read without a look at its table |
//! | `resolve` | which column of which table a name means |
//!
//! [`remora_cache::Shapes`] has the argument for shapes that come late, [`remora_cache::Shape`]
//! that of the fences.

mod change;
mod codec;
pub mod collations;
mod columns;
mod conditions;
pub mod explain;
mod literal;
mod look;
mod origin;
mod plan;
mod read;
mod resolve;
mod write;

use remora_cache::Shapes;

pub use change::{ChangeTags, Telling};
pub use codec::{Codec, enumeration};
pub use columns::{check_columns, check_table};
pub use literal::StringConversion;
pub use look::certainly_looks;
pub use origin::Origin;
pub use read::{Purpose, ReadTables, ReadTags, tags_of_read};
pub use write::{bind, fences_of_write};

/// The registered shapes of all tables.
pub type TableShapes = Shapes<Codec>;

/// The most tags that a result has; one with more takes its tables as wholes.
pub const RESULT_TAGS_MAX: usize = 128;
/// The most values, or combinations of values, that narrow one read of a table.
const VALUES_MAX: usize = 32;
/// The most intervals that cover a range.
const INTERVALS_MAX: i128 = 16;
