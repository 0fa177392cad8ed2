//! From statement text to what it reads, writes and changes, or why it can't be cached. No I/O.
