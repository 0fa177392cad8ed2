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
//!   then on all answers in this file are. The checkpoint event itself also sets the answer, past
//!   commits that are on their way. If nothing is committed behind it, the answer stays as it is.
//!   Then only what each connection is doing tells ([`idle`](super::idle)), if the account may see
//!   that. If not, tables that have changed in this file can't be cached until something commits.
//! - Until then proofs and fences go by the end of the log (`SHOW MASTER STATUS`), which is never
//!   before a visible commit.
//!
//! **Two kinds of commits** aren't waited for by the position, the ends of prepared XA transactions
//! and what isn't committed in two phases: see [`UntoldCommits`](crate::commits::UntoldCommits).

use std::cell::Cell;

use remora_cache::Position;
use remora_engine::reason::RestartReason;

use super::idle::IdleWatch;
use super::{Answered, Complete, Worth, end_of_log};
use crate::client::{Client, ClientError, text};
use crate::commits::UntoldCommits;
use crate::lost::Lost;
use crate::place::FILE_BEGINS_AT;
use crate::progress::Progress;
use crate::state::UpstreamShared;

/// Both the file and the offset; consistent with each other within one `SHOW STATUS`.
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
    /// The file in which answers are believed.
    trusted_file: Cell<Option<u64>>,
    /// An answer that wasn't, since the file was known to be settled.
    doubted: Cell<Option<Position>>,
    idle: IdleWatch,
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
            trusted_file: Cell::new(None),
            doubted: Cell::new(None),
            idle: IdleWatch::default(),
        }
    }

    /// Asks, and finds out what the answer is worth. `told` is what was told before.
    pub(super) async fn ask(&self, client: &mut Client, told: Position) -> Result<Worth, Lost> {
        self.ask_of_untold(client).await?;
        let settled_file = self.progress.settled_file();
        let position = ask(client).await?.place(self.base)?;
        if position < told {
            let what = format!("the server was at {told} and says {position}");
            return Err(Lost::restart(RestartReason::PositionWentBack, what));
        }
        self.weigh(client, position, settled_file).await
    }

    /// Asks what it takes to know that the commits can be seen that the position doesn't tell.
    async fn ask_of_untold(&self, client: &mut Client) -> Result<(), ClientError> {
        let untold = self.progress.untold();
        UntoldCommits::ask(untold, client).await?;
        let unordered = self.progress.unordered();
        let waits = untold.borrow().waits_for_idle() || unordered.borrow().has_fences();
        if self.progress.sees_idle() && waits {
            let applied = self.shared.timeline.applied();
            if let Some(settled) = self.idle.ask(client, applied).await? {
                untold.borrow_mut().settle(settled);
                unordered.borrow_mut().settle_all(&self.shared.timeline);
            }
        }
        Ok(())
    }

    /// Finds out how far an answer can be believed. `settled_file` is of before it was asked for.
    async fn weigh(
        &self,
        client: &mut Client,
        position: Position,
        settled_file: u64,
    ) -> Result<Worth, Lost> {
        let file = position.file_number();
        if self.trusted_file.get() == Some(file) {
            return Ok(Worth {
                visible: Some(position),
                complete: Complete::At(position),
            });
        }
        let end = end_of_log(client, self.log_status_question)
            .await?
            .place(self.base)?;
        if settled_file < file {
            return Ok(Worth {
                visible: None,
                complete: Complete::At(end),
            });
        }
        let before = self.doubted.replace(Some(position));
        let has_moved = before.is_some_and(|before| {
            before.file_number() == file && before.offset() != position.offset()
        });
        if has_moved || position == self.progress.last_commit() {
            self.trusted_file.set(Some(file));
            return Ok(Worth {
                visible: Some(position),
                complete: Complete::At(end),
            });
        }
        let visible = match self.ask_who_is_idle(client).await? {
            Some(settled) if settled.file_number() == file => Some(settled),
            _ => Position::new(file, FILE_BEGINS_AT),
        };
        Ok(Worth {
            visible,
            complete: Complete::At(end),
        })
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
