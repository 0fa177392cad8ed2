//! What is known of the server and its tables: plain values.
//!
//! The proxy asks the server for them. Code that decides by them needs nothing else.

mod instance;
mod table;

pub use self::instance::{INSTANCE_FIELDS, Instance, UUID_FIELD};
pub use self::table::{CascadeParent, ColumnFacts, ColumnKind, TableFacts, ValueOrigin};
