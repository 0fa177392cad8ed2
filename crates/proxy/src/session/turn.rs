//! Waiting for a turn at the server, where the number of statements there is limited.
//!
//! A message waits before anything is noted of it, and is looked at again when its turn has come:
//! what memory has got meanwhile is answered from there. Nothing that memory answers ever waits,
//! nor do Remora's own questions.

use std::sync::atomic::Ordering::Relaxed;

use remora_engine::reason::Limit;
use remora_wire::Command;
use remora_wire::packet::HEADER_BYTES;
use tokio::time::{Instant, timeout_at};

use super::dispatch::Prerequisite;
use super::refusal::Refusal;
use super::{Ended, Session, Side, either_readable};
use crate::shared::{NotYet, Waiting};

/// While a statement waits, its client is read up to this much, bytes, so that its departure is
/// noticed.
const WATCHED_BYTES_MAX: usize = 64 * 1024;

impl Session {
    /// What must come before a message goes to the server, if it has to wait for its turn.
    pub(super) fn take_turn(&mut self, message: &[u8]) -> Option<Prerequisite> {
        let turns = self.shared.turns.as_ref()?;
        if self.turn.is_some() || !self.is_limited(message) {
            return None;
        }
        match turns.enter(self.state.may_hold_locks()) {
            Ok(turn) => {
                self.turn = Some(turn);
                None
            }
            Err(NotYet::Waits(waiting)) => {
                self.shared.metrics.rare.count_limit(Limit::Statements);
                Some(Prerequisite::AwaitTurn(waiting))
            }
            Err(NotYet::Full) => {
                self.refuse_next(Limit::StatementsWaiting);
                Some(Prerequisite::LookAgain)
            }
        }
    }

    /// Whether a message is one of those whose number is limited.
    fn is_limited(&self, message: &[u8]) -> bool {
        let (Some(command), Some(body)) =
            (message.get(HEADER_BYTES), message.get(HEADER_BYTES + 1..))
        else {
            return false;
        };
        match Command::from_byte(*command) {
            Command::Query => !self.statement_text(body).is_some_and(ends_waits),
            Command::StmtExecute | Command::StmtBulkExecute => true,
            _ => false,
        }
    }

    /// Waits for the turn, or as long as one may; then the message is refused.
    pub(super) async fn await_turn(&mut self, mut waiting: Waiting) -> Result<(), Ended> {
        let began = Instant::now();
        let until = began + self.shared.limits.statement_wait;
        let turn = loop {
            let watches_client = self.inbox.len() <= WATCHED_BYTES_MAX;
            let side = tokio::select! {
                // So that a seed of the simulation always does the same.
                biased;
                turn = timeout_at(until, waiting.turn()) => break turn.ok().flatten(),
                side = either_readable(&self.client, &self.server), if watches_client => side?,
                readable = self.server.readable(), if !watches_client => {
                    readable?;
                    Side::Server
                }
            };
            match side {
                // It has left, or sends the next statement already.
                Side::Client => self.read_into_inbox().await?,
                // It ends the session: a KILL, a shutdown of the server.
                Side::Server => self.relay_unasked().await?,
            }
        };
        let waited_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let rare = &self.shared.metrics.rare;
        rare.statement_waits.fetch_add(1, Relaxed);
        rare.statement_wait_us.fetch_add(waited_us, Relaxed);
        match turn {
            Some(turn) => self.turn = Some(turn),
            None => self.refuse_next(Limit::StatementWait),
        }
        Ok(())
    }

    /// The message at hand gets an error: too many are at the server.
    pub(super) fn refuse_next(&mut self, limit: Limit) {
        self.shared.metrics.rare.count_limit(limit);
        self.refusal = Some(Box::new(Refusal::too_many_statements(limit)));
    }
}

/// The first words of statements that can end another's wait, or show it. They never wait
/// themselves.
const ENDING_WAITS: [&[u8]; 7] = [
    b"KILL",
    b"UNLOCK",
    b"COMMIT",
    b"ROLLBACK",
    b"XA",
    b"HANDLER",
    b"SHOW",
];

/// Whether a statement's first word is one of those.
fn ends_waits(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| !byte.is_ascii_alphabetic());
    let word = &text[..end.unwrap_or(text.len())];
    ENDING_WAITS
        .iter()
        .any(|other| word.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_end_a_wait_is_told_by_its_first_word() {
        for text in [
            "KILL QUERY 7",
            " \n kill 7",
            "commit",
            "Unlock instance;",
            "XA COMMIT 'a'",
        ] {
            assert!(ends_waits(text.as_bytes()), "{text}");
        }
        for text in ["", "SELECT 1", "KILLER", "DO RELEASE_LOCK('a')", "x"] {
            assert!(!ends_waits(text.as_bytes()), "{text}");
        }
    }
}
