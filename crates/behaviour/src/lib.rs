//! What the tests of Remora's behaviour share.
//!
//! The tests themselves are in a few programs, each of which says in its first lines on which
//! servers it runs:
//!
//! | program | what it asks |
//! |---|---|
//! | `answers` | does a client get what the server would have said? |
//! | `freshness` | is no row older than it may be? |
//! | `faults` | the same while servers, logs and connections fail |
//! | `operations` | what operators see, set and survive |
//! | `differential` | is every packet of every answer the server's own? |
//! | `once` | what need not be asked of every server |
//! | `proof` | what asks so much that it keeps the processors busy |

pub mod differential;
pub mod front;
pub mod outcome;
pub mod world;
