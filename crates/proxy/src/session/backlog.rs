//! Answers that are ahead of their clients.
//!
//! A client that doesn't take its answer makes the server wait, as it would directly. That is its
//! own affair, unless its statement holds a fence: whatever the statement may write is not served
//! from memory until the server has answered. So such an answer is read on and held here until the
//! client takes it; the server comes to its end, and the fence is handed on. All such answers
//! together have one limit. Beyond it the server has to wait, and the fence with it, but for a
//! limited time: then the client's connection is closed, and the rest of its answer read away.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use remora_cache::BrokenSurroundings;
use remora_engine::reason::Limit;
use remora_net::Stream;
use remora_wire::walker::{Progress, ResponseWalker};
use tokio::time::{Instant, sleep_until};

use super::exchange::{Piece, Plan, Receiver, Writing};
use super::{Ended, Session};
use crate::shared::BacklogRoom;

/// What of one answer the client has not taken.
struct Backlog {
    room: Arc<BacklogRoom>,
    pieces: VecDeque<Vec<u8>>,
    /// How much of the first piece is gone.
    sent: usize,
}

impl Backlog {
    fn new(room: Arc<BacklogRoom>) -> Backlog {
        Backlog {
            room,
            pieces: VecDeque::new(),
            sent: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether so much more may be read. Others may ask at the same moment: each may be over the
    /// limit by one such piece.
    fn has_room_for(&self, bytes: usize) -> bool {
        self.room.has_room_for(bytes)
    }

    fn push(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() {
            self.room.take(held_bytes(&piece));
            self.pieces.push_back(piece);
        }
    }

    /// Sends what the client takes at once.
    fn send(&mut self, client: &Stream) -> io::Result<()> {
        while let Some(first) = self.pieces.front() {
            self.sent += client.write_now(&first[self.sent..])?;
            if self.sent < first.len() {
                break;
            }
            self.room.give_back(held_bytes(first));
            self.pieces.pop_front();
            self.sent = 0;
        }
        Ok(())
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        let bytes: usize = self.pieces.iter().map(held_bytes).sum();
        self.room.give_back(bytes);
    }
}

fn held_bytes(piece: &Vec<u8>) -> usize {
    piece.capacity() + size_of::<Vec<u8>>()
}

/// What can be gone on with.
enum Ready {
    /// The server has sent something.
    Server,
    /// The client takes something.
    Client,
    /// What unseen text wrote has stayed without a question for long enough.
    Unseen,
    /// The time is over.
    Nothing,
}

impl Session {
    /// The client has not taken a piece, and a fence is up: reads on, ahead of the client. Returns
    /// when the client has all that has come, or has left; with what came last.
    pub(super) async fn relay_ahead(
        &mut self,
        walker: &mut ResponseWalker,
        plan: &mut Plan,
        writing: &mut Writing,
        Piece {
            mut progress,
            unsent,
        }: Piece,
        receiver: &mut Receiver,
    ) -> Result<Progress, Ended> {
        *receiver = Receiver::Behind;
        let mut backlog = Backlog::new(Arc::clone(&self.shared.backlogs));
        backlog.push(unsent);
        let mut patience = Patience::new(self.shared.limits.fenced_answer_wait);
        let broken = self.shared.timeline.broken().surroundings;
        let mut unseen = None;
        while !backlog.is_empty() {
            let is_over = matches!(progress, Progress::Done(_));
            if is_over || broken == BrokenSurroundings::SlowReaders {
                // What remains may take its time.
                self.hand_on_fence(writing);
            }
            if is_over && plan.effects.may_turn_log_off {
                let forgets_at = Instant::now() + self.shared.limits.unseen_text_wait;
                unseen.get_or_insert(Some(forgets_at));
            }
            let reads = progress == Progress::More
                && backlog.has_room_for(self.shared.limits.read_bytes_max);
            let is_waited_for = !reads && writing.must_finish();
            if is_waited_for && patience.begins() {
                self.shared
                    .metrics
                    .rare
                    .count_limit(Limit::FencedAnswerBytes);
            }
            let limit = is_waited_for.then_some(&mut patience);
            match self
                .server_or_client(reads, limit, unseen.flatten())
                .await?
            {
                Ready::Server => {
                    if let Some(piece) = self.read_piece(walker, plan, writing, receiver)? {
                        backlog.push(piece.unsent);
                        progress = piece.progress;
                    }
                }
                Ready::Client => {
                    if let Err(error) = backlog.send(&self.client) {
                        *receiver = Receiver::Left(error);
                        return Ok(progress);
                    }
                }
                Ready::Unseen => {
                    // The session can't ask before its client has the answer, and nobody knows
                    // whether the log tells of what was written.
                    self.shared.timeline.forget();
                    unseen = Some(None);
                }
                Ready::Nothing => {
                    *receiver = Receiver::Left(self.let_go_of_client());
                    return Ok(progress);
                }
            }
        }
        *receiver = Receiver::Client;
        Ok(progress)
    }

    async fn server_or_client(
        &self,
        reads: bool,
        patience: Option<&mut Patience>,
        unseen: Option<Instant>,
    ) -> io::Result<Ready> {
        let ready = async {
            let forgets_at = unseen.unwrap_or_else(Instant::now);
            tokio::select! {
                // In a fixed order, so that a seed of the simulation always does the same. First
                // what is due once; then the client, so that no more is held than must be.
                biased;
                () = sleep_until(forgets_at), if unseen.is_some() => Ok(Ready::Unseen),
                ready = self.client.writable() => ready.map(|()| Ready::Client),
                ready = self.server.readable(), if reads => ready.map(|()| Ready::Server),
            }
        };
        match patience {
            Some(patience) => patience.wait(ready).await.unwrap_or(Ok(Ready::Nothing)),
            None => ready.await,
        }
    }

    /// Closes the connection of a client that others can't wait for any longer.
    fn let_go_of_client(&self) -> io::Error {
        self.shared
            .metrics
            .rare
            .count_limit(Limit::FencedAnswerWait);
        tracing::warn!(
            connection_id = self.registration.connection_id(),
            waited_ms = self.shared.limits.fenced_answer_wait.as_millis(),
            "closing the connection of a client that does not take the answer of a statement that may write: until its end, hits are held back"
        );
        // It may be gone already.
        let _ = self.client.shutdown(std::net::Shutdown::Both);
        io::Error::from(io::ErrorKind::TimedOut)
    }
}

/// How long one client may be waited for, in all.
struct Patience {
    left: Duration,
    has_begun: bool,
}

impl Patience {
    fn new(left: Duration) -> Patience {
        Patience {
            left,
            has_begun: false,
        }
    }

    /// Whether it is drawn on for the first time.
    fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// Waits for something, but no longer than is left.
    async fn wait<T>(&mut self, something: impl Future<Output = T>) -> Option<T> {
        let began = Instant::now();
        let waited = tokio::time::timeout(self.left, something).await;
        self.left = self.left.saturating_sub(began.elapsed());
        waited.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_takes_room_until_it_is_sent_or_dropped() {
        let room = Arc::new(BacklogRoom::new(1_000));
        let mut backlog = Backlog::new(Arc::clone(&room));
        let other = Backlog::new(Arc::clone(&room));
        backlog.push(vec![0; 600]);
        backlog.push(Vec::new());
        assert!(room.bytes() >= 600);
        assert!(other.has_room_for(300) && !other.has_room_for(400));
        drop(backlog);
        assert_eq!(room.bytes(), 0);
        assert!(other.has_room_for(1_000) && other.is_empty());
    }
}
