//! Binary log event bytes to changes. No I/O.
//!
//! [`StreamDecoder`] turns the events of one connection into [`Event`]s, with the [`Rows`] that
//! changed; [`Transactions`] turns those into [`Commit`]s: the tables that changed together and the
//! offset at which their change ends. MariaDB's and MySQL's events are both read; what can't be
//! named (an unknown event, a text or a compressed transaction beyond a bound) touches everything.
//!
//! Sources: MySQL's and MariaDB's `log_event.h`, MariaDB's knowledge base on the replication
//! protocol, and the bytes that real servers write (the fixtures in `tests/`).

mod body;
mod column;
mod commit;
mod cursor;
mod decoder;
mod error;
mod event;
mod group;
pub mod gtid;
mod header;
mod inflate;
mod kept;
mod kinds;
mod limits;
mod mysql_gtid;
mod payload;
mod rows;
mod table;
mod touched;
mod transactions;
mod value;
mod xa;

pub use column::{ColumnKind, LoggedColumn, TableMap};
pub use commit::{Commit, CommitKind};
pub use decoder::{Decoded, StreamDecoder};
pub use error::DecodeError;
pub use event::{
    ChecksumAlgorithm, Event, FormatDescription, GroupBegin, GroupShape, Query, XaSide,
};
pub use gtid::{Gtid, GtidError, GtidSet};
pub use header::{EventHeader, HEADER_BYTES, event_type};
pub use kinds::RowsKind;
pub use limits::DecoderLimits;
pub use rows::{Field, RowChange, RowImage, Rows};
pub use table::LoggedTable;
pub use touched::Touched;
pub use transactions::{QueryMeaning, Transactions};
pub use value::{LoggedDate, LoggedDateTime, LoggedDecimal};
pub use xa::Xid;
