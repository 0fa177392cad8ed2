//! What is known of the server and its tables: plain values.
//!
//! The product asks the server for them. Whoever decides by them needs only this.

mod instance;
mod table;

pub use self::instance::{INSTANCE_FIELDS, Instance, UUID_FIELD};
pub use self::table::{CascadeParent, ColumnFacts, ColumnKind, TableFacts};
