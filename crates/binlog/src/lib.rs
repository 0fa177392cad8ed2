//! Binary log event bytes to changes. No I/O.
//!
//! [`StreamDecoder`] turns the events of one connection into [`Event`]s at the level of tables;
//! [`Transactions`] turns those into [`Commit`]s: the tables that changed together and the offset
//! at which their change ends. MariaDB's and MySQL's events are both read; what can't be named
//! (an unknown event, a text or a compressed transaction beyond a bound) touches everything.
//!
//! Sources: MySQL's and MariaDB's `log_event.h`, MariaDB's knowledge base on the replication
//! protocol, and the bytes that real servers write (the fixtures in `tests/`).

mod body;
mod cursor;
mod decoder;
mod error;
mod event;
pub mod gtid;
mod header;
mod mysql_gtid;
mod payload;
mod transactions;
mod xa;

pub use decoder::{Decoded, DecoderLimits, StreamDecoder};
pub use error::DecodeError;
pub use event::{
    ChecksumAlgorithm, Event, FormatDescription, GroupBegin, GroupShape, LoggedTable, Query,
    RowsKind, XaSide,
};
pub use gtid::{Gtid, GtidError, GtidSet};
pub use header::{EventHeader, HEADER_BYTES, event_type};
pub use transactions::{Commit, CommitKind, QueryMeaning, Touched, Transactions};
pub use xa::Xid;
