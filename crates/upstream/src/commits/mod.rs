//! What is known of commits that the follower has read and that reads may not see yet.
//!
//! | file | whose commits |
//! |---|---|
//! | `ledger` | MySQL's: transactions and their GTIDs |
//! | `untold` | MariaDB's that its position doesn't tell |
//! | `unordered` | MariaDB's that nothing tells |

mod ledger;
mod unordered;
mod untold;

pub(crate) use self::ledger::Ledger;
pub(crate) use self::unordered::{UnorderedTables, is_of_cached_tables, waits_for_transactions};
pub(crate) use self::untold::UntoldCommits;
