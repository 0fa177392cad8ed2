//! MariaDB's answers: the position of the last commit that can be seen.
//!
//! **When the log goes on in the next file**, MariaDB's answer isn't to be trusted for a while. It
//! names the new file at once, although the last commits of the old one may still be invisible; and
//! one of those then sets the answer's offset to its own, which is one of the old file. So in a new
//! file:
//!
//! - The watermark stays where it is until the follower has read a checkpoint event that names the
//!   new file: the server writes it when all commits of older files have been made visible. From
//!   then on it may be at the new file's beginning.
//! - An answer asked for after that is believed if the last commit that the follower has applied
//!   ends there, or if it differs from one before: then a commit of the new file has set it. From
//!   then on all answers in this file are, but for one.
//! - The end of the checkpoint event itself is never believed. The event sets the answer to its own
//!   end, past commits that are on their way. And it does so after it was sent, and after commits
//!   in progress: the follower may have read it, and asked, before. (MariaDB's
//!   `write_binlog_checkpoint_event_already_locked` signals first, then waits for
//!   `LOCK_commit_ordered`. It holds `LOCK_log` all the while, so what is logged behind the event
//!   can only set the answer later.)
//! - If nothing is committed behind the event, the answer stays as it is. Then only what each
//!   connection is doing tells ([`idle`](super::idle)), if the account may see that. If not, tables
//!   that have changed in this file can't be cached until something commits.
//! - Until then proofs and fences go by the end of the log (`SHOW MASTER STATUS`), which is never
//!   before a visible commit.
//!
//! What MariaDB logs directly, past its queue of commits (`MYSQL_BIN_LOG::write`), also sets the
//! answer. By the source it first waits for `LOCK_after_binlog_sync`, so it can't pass commits in
//! the queue. That wasn't measured.
//!
//! **The answer can be another session's.** A session that holds a consistent snapshot is told the
//! snapshot's position. MariaDB hands file and offset over in variables that all sessions share. So
//! if such a session asks in the same microseconds, Remora can be told an older position, or one of
//! the two:
//!
//! - A position before the last one is asked for again before the log is taken for another one.
//! - Fences are lowered by the end of the log, which is nobody's.
//! - One that the follower hasn't read must not lie behind the end of the log. An offset from an
//!   older file mostly does, as files are of one size. It can lie before the end by chance: that
//!   isn't noticed.
//!
//! **Two kinds of commits** aren't waited for by the position, the ends of prepared XA transactions
//! and what isn't committed in two phases: see [`UntoldCommits`](crate::commits::UntoldCommits).

use std::cell::Cell;

use remora_cache::Position;
use remora_engine::reason::RestartReason;

use super::idle::IdleWatch;
use super::{Answered, Complete, Worth, status_of_followed_log};
use crate::client::{Client, ClientError, text};
use crate::commits::UntoldCommits;
use crate::lost::Lost;
use crate::place::FILE_BEGINS_AT;
use crate::progress::Progress;
use crate::state::UpstreamShared;

/// Both the file and the offset.
const QUESTION: &str = "SHOW STATUS LIKE 'binlog_snapshot_%'";

/// Asks the server how far its commits are visible.
async fn ask(client: &mut Client) -> Result<Answered, Lost> {
    let rows = client.query(QUESTION, 10).await?;
    let value = |name: &str| {
        let is_it = |row: &&Vec<_>| text(row, 0).is_some_and(|key| key.eq_ignore_ascii_case(name));
        rows.iter().find(is_it).and_then(|row| text(row, 1))
    };
    let file = value("binlog_snapshot_file");
    let offset = value("binlog_snapshot_position");
    let (Some(file), Some(_)) = (file, offset) else {
        return Err(ClientError::Answer("no binlog_snapshot_file and _position").into());
    };
    Answered::read(file, offset)
}

/// What is known of the answers of one session.
pub(super) struct PositionSource<'a> {
    shared: &'a UpstreamShared,
    progress: &'a Progress,
    base: &'a str,
    log_status_question: &'static str,
    trust: Trust,
    idle: IdleWatch,
}

/// Where the last checkpoint event ended that the follower has read: before a question, and by now.
type Checkpoints = [Option<Position>; 2];

/// Which answers are believed.
#[derive(Debug, Default)]
struct Trust {
    /// The file in which they are.
    file: Cell<Option<u64>>,
    /// An answer that wasn't, since the file was known to be settled.
    doubted: Cell<Option<Position>>,
}

impl Trust {
    /// Whether an answer is believed for what is known already. `checkpoints`: where checkpoint
    /// events end, by what the follower has read before the question and by now.
    fn believes(&self, answer: Position, checkpoints: Checkpoints) -> bool {
        self.file.get() == Some(answer.file_number()) && !checkpoints.contains(&Some(answer))
    }

    /// Takes an answer that isn't, in a settled file. Gives whether it is now.
    fn weigh(&self, answer: Position, checkpoints: Checkpoints, last_commit: Position) -> bool {
        let file = answer.file_number();
        let before = self.doubted.replace(Some(answer));
        let has_moved = before.is_some_and(|before| {
            before.file_number() == file && before.offset() != answer.offset()
        });
        let is_of_checkpoint = checkpoints.contains(&Some(answer));
        let is_believed = !is_of_checkpoint && (has_moved || answer == last_commit);
        if is_believed {
            self.file.set(Some(file));
        }
        is_believed
    }
}

impl<'a> PositionSource<'a> {
    pub(super) fn new(
        shared: &'a UpstreamShared,
        progress: &'a Progress,
        base: &'a str,
        log_status_question: &'static str,
    ) -> PositionSource<'a> {
        PositionSource {
            shared,
            progress,
            base,
            log_status_question,
            trust: Trust::default(),
            idle: IdleWatch::default(),
        }
    }

    /// Asks, and finds out what the answer is worth. `told` is what was told before; `lowers`:
    /// fences are to be lowered by it.
    pub(super) async fn ask(
        &self,
        client: &mut Client,
        told: Position,
        lowers: bool,
    ) -> Result<Worth, Lost> {
        self.ask_of_untold(client).await?;
        // Before the question: until its answer is weighed, the follower may read the next file's
        // first checkpoint event. What it has read by then counts, too.
        let settled_file = self.progress.settled_file();
        let checkpoint = self.progress.checkpoint();
        let mut position = ask(client).await?.place(self.base)?;
        if position < told {
            // It can be another session's, see above.
            position = ask(client).await?.place(self.base)?;
        }
        if position < told {
            let what = format!("the server was at {told} and says {position}");
            return Err(Lost::restart(RestartReason::PositionWentBack, what));
        }
        let is_read = position <= self.shared.timeline.applied();
        if is_read && !lowers && self.believes(position, checkpoint) {
            return Ok(Worth {
                visible: Some(position),
                complete: Complete::At(position),
            });
        }
        let end = self.end_of_log(client).await?;
        let visible = if position > end {
            None
        } else {
            self.weigh(client, position, (settled_file, checkpoint))
                .await?
        };
        Ok(Worth {
            visible,
            complete: Complete::At(end),
        })
    }

    /// Asks what it takes to know that the commits can be seen that the position doesn't tell.
    async fn ask_of_untold(&self, client: &mut Client) -> Result<(), ClientError> {
        let untold = self.progress.untold();
        UntoldCommits::ask(untold, client).await?;
        let unordered = self.progress.unordered();
        if self.waits_for_idle() {
            let applied = self.shared.timeline.applied();
            if let Some(settled) = self.idle.ask(client, applied).await? {
                untold.borrow_mut().settle(settled);
                unordered
                    .borrow_mut()
                    .settle_all(&self.shared.timeline, settled);
            }
        }
        Ok(())
    }

    /// Whether it is known of a commit that it can be seen once each connection has been idle.
    pub(super) fn waits_for_idle(&self) -> bool {
        let (untold, unordered) = (self.progress.untold(), self.progress.unordered());
        let waits = untold.borrow().waits_for_idle() || unordered.borrow().has_fences();
        self.progress.sees_idle() && waits
    }

    /// Whether an answer is believed for what is known already. `checkpoint`: where the last
    /// checkpoint event ended before the question.
    fn believes(&self, position: Position, checkpoint: Option<Position>) -> bool {
        let checkpoints = [checkpoint, self.progress.checkpoint()];
        self.trust.believes(position, checkpoints)
    }

    /// Finds out how far an answer says that commits can be seen. What the checkpoint events say is
    /// of before the question: `settled_file`, and where the last one ended.
    async fn weigh(
        &self,
        client: &mut Client,
        position: Position,
        (settled_file, checkpoint): (u64, Option<Position>),
    ) -> Result<Option<Position>, ClientError> {
        let file = position.file_number();
        if self.believes(position, checkpoint) {
            return Ok(Some(position));
        }
        if settled_file < file {
            return Ok(None);
        }
        let last_commit = self.progress.last_commit();
        let checkpoints = [checkpoint, self.progress.checkpoint()];
        if self.trust.weigh(position, checkpoints, last_commit) {
            return Ok(Some(position));
        }
        Ok(match self.ask_who_is_idle(client).await? {
            Some(settled) if settled.file_number() == file => Some(settled),
            _ => Position::new(file, FILE_BEGINS_AT),
        })
    }

    async fn end_of_log(&self, client: &mut Client) -> Result<Position, Lost> {
        let (question, timeline) = (self.log_status_question, &self.shared.timeline);
        let (end, _) = status_of_followed_log(client, question, self.base, timeline).await?;
        Ok(end)
    }

    /// Up to where everything can be seen because each connection has been idle since it was
    /// logged, if that is needed and can be known.
    async fn ask_who_is_idle(&self, client: &mut Client) -> Result<Option<Position>, ClientError> {
        let timeline = &self.shared.timeline;
        if !self.progress.sees_idle() || timeline.visible() >= self.progress.last_commit() {
            return Ok(None);
        }
        let applied = timeline.applied();
        self.idle.ask(client, applied).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: u64, offset: u64) -> Position {
        Position::new(file, offset).unwrap()
    }

    /// Where the second file's checkpoint event ends.
    const CHECKPOINT: Checkpoints = [Position::new(2, 900); 2];

    #[test]
    fn an_answer_that_has_moved_is_believed_and_those_behind_it() {
        let trust = Trust::default();
        let nothing_known = at(1, 4_000);
        assert!(!trust.weigh(at(2, 600), CHECKPOINT, nothing_known));
        assert!(!trust.weigh(at(2, 600), CHECKPOINT, nothing_known));
        assert!(trust.weigh(at(2, 1_200), CHECKPOINT, nothing_known));
        assert!(trust.believes(at(2, 1_500), CHECKPOINT));
        assert!(!trust.believes(at(3, 700), CHECKPOINT), "another file");
    }

    #[test]
    fn the_end_of_the_last_commit_is_believed() {
        let trust = Trust::default();
        assert!(trust.weigh(at(2, 1_200), CHECKPOINT, at(2, 1_200)));
    }

    /// The follower may read the event, and ask, before the event has set the answer. Behind the
    /// commit at 700, which can't be seen yet, it then moves to 900.
    #[test]
    fn an_answer_that_the_checkpoint_event_has_moved_is_not_believed() {
        let trust = Trust::default();
        let commit = at(2, 700);
        assert!(!trust.weigh(at(2, 500), CHECKPOINT, commit));
        assert!(!trust.weigh(at(2, 900), CHECKPOINT, commit));
        assert!(!trust.believes(at(2, 900), CHECKPOINT));
        // The commit can be seen, and goes back to its own end.
        assert!(trust.weigh(commit, CHECKPOINT, commit));
    }

    /// What the follower reads while a question is on its way counts, too.
    #[test]
    fn the_end_of_a_checkpoint_event_is_not_believed_whenever_it_was_read() {
        let (before, after) = (Position::new(2, 900), Position::new(3, 400));
        for checkpoints in [[before, after], [after, before], [None, before]] {
            let trust = Trust::default();
            let seen = at(2, 600);
            assert!(trust.weigh(seen, checkpoints, seen));
            assert!(!trust.believes(at(2, 900), checkpoints));
            assert!(!trust.weigh(at(2, 900), checkpoints, seen));
        }
    }

    /// One of two commits has been seen when the event sets the answer, past the other.
    #[test]
    fn the_end_of_the_checkpoint_event_is_not_believed_in_a_trusted_file() {
        let trust = Trust::default();
        let (seen, on_its_way) = (at(2, 600), at(2, 700));
        assert!(trust.weigh(seen, CHECKPOINT, seen));
        assert!(!trust.believes(at(2, 900), CHECKPOINT));
        assert!(!trust.weigh(at(2, 900), CHECKPOINT, on_its_way));
        assert!(trust.believes(on_its_way, CHECKPOINT));
    }
}
