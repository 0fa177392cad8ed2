//! Binary log event bytes to changes. No I/O.
