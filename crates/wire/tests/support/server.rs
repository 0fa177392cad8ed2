//! A private MariaDB for one test, and a connection to it made of the crate's own parts.
