//! Which commits are over because the connections that made them have been idle since.
//!
//! MySQL 5.6 adds a transaction to `@@gtid_executed` when it writes it to the log, before its rows
//! can be seen; so does 5.7 with an `XA COMMIT` of a transaction that another connection prepared.
//! There the set tells nothing of when reads can see them, nor does MariaDB's position of a commit
//! without two phases. This does:
//!
//! A commit is logged by a connection in the middle of a statement, and its rows can be seen when
//! that statement is over. Note how far the log has been applied, then ask which connections are in
//! the middle of something. Whoever is idle in that answer has finished every statement that had
//! been logged before it. Once each of the others has been idle, or gone, in some later answer,
//! everything up to the noted position can be seen.
//!
//! A connection that was killed may stay in the list for long after it stopped doing anything. It
//! counts as idle if it has no statement; the statement is there until its commit is over.
//!
//! The server looks at one connection after the other while it answers. That doesn't matter: each
//! connection is looked at after the position was noted. The number of a connection that is gone
//! may be given to another; then this waits for that one too, which is longer than needed and never
//! shorter. What commits without being in the list of processes would go unseen: the appliers of a
//! replica are in it and never idle, events of the scheduler are in it while they run, and servers
//! with the memcached plugin are refused by [`check`](crate::check).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use remora_cache::Position;
use tokio::time::Instant;

use crate::client::{Client, ClientError, text};

/// Connections in the middle of something. Those that only send a log commit nothing, and neither
/// does the scheduler's own thread.
const QUESTION: &str = "SELECT ID FROM information_schema.PROCESSLIST \
     WHERE COMMAND NOT IN ('Sleep', 'Binlog Dump', 'Binlog Dump GTID', 'Daemon') \
     AND NOT (COMMAND = 'Killed' AND INFO IS NULL AND USER <> 'system user') \
     AND ID <> CONNECTION_ID()";
/// The question is not asked more often: it costs the server more than others, by the number of its
/// connections.
const QUESTIONS_APART: Duration = Duration::from_millis(2);
/// More connections than any server has.
const CONNECTIONS_MAX: usize = 200_000;

/// Waits for connections to become idle.
#[derive(Debug, Default)]
pub(super) struct IdleWatch {
    waiting: RefCell<Option<(Position, BTreeSet<u64>)>>,
    asked: Cell<Option<Instant>>,
}

impl IdleWatch {
    /// Asks, unless it has just done so. `applied` is how far the follower had come before. Gives
    /// up to where everything can be seen.
    pub(super) async fn ask(
        &self,
        client: &mut Client,
        applied: Position,
    ) -> Result<Option<Position>, ClientError> {
        let now = Instant::now();
        let is_soon = |asked: Instant| now.duration_since(asked) < QUESTIONS_APART;
        if self.asked.get().is_some_and(is_soon) {
            return Ok(None);
        }
        self.asked.set(Some(now));
        let rows = client.query(QUESTION, CONNECTIONS_MAX).await?;
        let id = |row| text(row, 0)?.parse().ok();
        let busy: Option<BTreeSet<u64>> = rows.iter().map(id).collect();
        let busy = busy.ok_or(ClientError::Answer("a connection without a number"))?;
        Ok(self.take(applied, busy))
    }

    fn take(&self, applied: Position, busy: BTreeSet<u64>) -> Option<Position> {
        let mut waiting = self.waiting.borrow_mut();
        let mut settled = None;
        if let Some((until, still_busy)) = &mut *waiting {
            still_busy.retain(|id| busy.contains(id));
            if !still_busy.is_empty() {
                return None;
            }
            settled = Some(*until);
        }
        if busy.is_empty() {
            *waiting = None;
            return Some(applied);
        }
        *waiting = Some((applied, busy));
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Position {
        Position::new(1, offset).unwrap()
    }

    #[test]
    fn an_idle_server_shows_everything() {
        let watch = IdleWatch::default();
        assert_eq!(watch.take(at(100), BTreeSet::new()), Some(at(100)));
    }

    #[test]
    fn each_busy_connection_has_to_be_idle_once() {
        let watch = IdleWatch::default();
        assert_eq!(watch.take(at(100), BTreeSet::from([1, 2])), None);
        assert_eq!(watch.take(at(200), BTreeSet::from([2, 3])), None);
        // 2 is idle; 1 was before, and is busy with something later.
        assert_eq!(watch.take(at(300), BTreeSet::from([1, 3])), Some(at(100)));
        assert_eq!(watch.take(at(400), BTreeSet::from([1, 2])), None);
        assert_eq!(watch.take(at(500), BTreeSet::from([2])), Some(at(300)));
        assert_eq!(watch.take(at(600), BTreeSet::new()), Some(at(600)));
    }
}
