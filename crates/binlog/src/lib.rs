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
mod cursor;
mod decoder;
mod error;
mod event;
mod group;
pub mod gtid;
mod header;
mod kept;
mod kinds;
mod mysql_gtid;
mod payload;
mod rows;
mod transactions;
mod value;
mod xa;

pub use column::{ColumnKind, LoggedColumn, TableMap};
pub use decoder::{Decoded, DecoderLimits, StreamDecoder};
pub use error::DecodeError;
pub use event::{
    ChecksumAlgorithm, Event, FormatDescription, GroupBegin, GroupShape, LoggedTable, Query,
    RowsKind, XaSide,
};
pub use gtid::{Gtid, GtidError, GtidSet};
pub use header::{EventHeader, HEADER_BYTES, event_type};
pub use rows::{Field, RowChange, RowImage, Rows};
pub use transactions::{Commit, CommitKind, QueryMeaning, Touched, Transactions};
pub use value::{LoggedDate, LoggedDateTime, LoggedDecimal};
pub use xa::Xid;
