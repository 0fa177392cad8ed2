//! Commits whose rows become visible long after their event was sent.
//!
//! Between the two lies what a cache must survive. It takes some tens of microseconds in life; here
//! it takes as long as a test wants it to.
//!
//! MariaDB waits for a semi-synchronous replica ([`SemiSyncReplica`]). The fetched ones of MySQL
//! come without that plugin; since 5.7 they wait by themselves for
//! `binlog_group_commit_sync_delay`, which lies between the sending of the events and the commit in
//! the engine unless `sync_binlog` is 1. A second at most.
//!
//! Source: MySQL, `sql/binlog.cc`, `MYSQL_BIN_LOG::ordered_commit`.

use std::time::Duration;

use crate::client::Client;
use crate::semisync::{Acknowledge, SemiSyncReplica};
use crate::servers::{Kind, Server};

/// The longest delay that MySQL takes.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// The replica's number.
const REPLICA_ID: u32 = 77;

/// Has a server's commits wait. Dropped, it lets them go.
#[derive(Debug)]
pub enum LateRows {
    /// For a replica.
    Replica(SemiSyncReplica),
    /// For a time.
    Delay(Client),
}

impl LateRows {
    /// Whether there is a way to do this to such a server.
    pub fn are_possible(kind: Kind) -> bool {
        kind != Kind::MySql56
    }

    /// Has the commits of `server` wait from now on.
    pub fn begin(server: &Server, how: Acknowledge) -> anyhow::Result<LateRows> {
        if !server.kind().is_mysql() {
            let replica = SemiSyncReplica::join(server, REPLICA_ID, how)?;
            return Ok(LateRows::Replica(replica));
        }
        let mut late = LateRows::Delay(server.root()?);
        late.wait_for(how)?;
        Ok(late)
    }

    /// Has them wait in another manner. [`Acknowledge::WhenTold`] is a second where it can't be
    /// told.
    pub fn wait_for(&mut self, how: Acknowledge) -> anyhow::Result<()> {
        match self {
            LateRows::Replica(replica) => replica.acknowledge(how),
            LateRows::Delay(control) => {
                let delay = match how {
                    Acknowledge::After(delay) => delay.min(DELAY_MAX),
                    Acknowledge::WhenTold => DELAY_MAX,
                };
                let text = format!(
                    "SET GLOBAL binlog_group_commit_sync_delay = {}",
                    delay.as_micros()
                );
                control.query(&text)?;
            }
        }
        Ok(())
    }

    /// For how long at most a commit that nobody lets go waits, if there is an end to it.
    pub fn limit(&self) -> Option<Duration> {
        match self {
            LateRows::Replica(_) => None,
            LateRows::Delay(_) => Some(DELAY_MAX),
        }
    }

    /// Waits until a commit waits, where that can be seen.
    pub fn wait_until_held(&self) -> anyhow::Result<()> {
        match self {
            LateRows::Replica(replica) => replica.wait_until_held(),
            LateRows::Delay(_) => Ok(()),
        }
    }

    /// Lets go what waits. Those that wait for a time wait on.
    pub fn let_go(&self) -> anyhow::Result<()> {
        match self {
            LateRows::Replica(replica) => replica.let_go(),
            LateRows::Delay(_) => Ok(()),
        }
    }
}

impl Drop for LateRows {
    fn drop(&mut self) {
        if let LateRows::Delay(control) = self {
            // The server may also be gone.
            let _ = control.query("SET GLOBAL binlog_group_commit_sync_delay = 0");
        }
    }
}
