//! MySQL's answers: the set of transactions that can be seen, `gtid_executed`. Where it is to lower
//! fences, it comes with the state of the log: the server looks at the set first, and then at where
//! the log ends.
//!
//! The follower keeps each commit's GTID and the position at which it ends, in the order of the
//! log, until it is known that reads see it ([`Ledger`](crate::commits::Ledger)). Asked for its set
//! `S`, the server moves the watermark to the end of the longest prefix of these whose GTIDs are
//! all in `S`. The proof holds when all of `S` has been applied.
//!
//! # Why it is right
//!
//! **A commit in `S` can be seen.** MySQL commits in three stages: transactions get their GTIDs and
//! are written to the log together, the log is synced, and then each is committed in its engines.
//! Since 5.7 a GTID enters `gtid_executed` after its transaction's commit in the engines
//! (`Gtid_state::update_commit_group` after `ha_commit_low` of the whole group; with
//! `binlog_order_commits = OFF`, where each session commits by itself, `update_on_commit` after its
//! own). So a read that is sent after the answer arrived sees every commit in `S`, in whatever
//! order they became visible. For DDL and account statements what readers wait for are locks that
//! are held until the statement is over.
//!
//! **What the watermark passes can be seen.** It passes a position only when every commit that the
//! follower has read up to it is in `S`, one by one. So `binlog_order_commits = OFF` takes nothing
//! away: a commit that is late holds the watermark back, those behind it wait. What lies before the
//! follower's first file is a set too, which that file lists at its beginning, and it has to be in
//! `S` before anything else counts. Here the watermark can't be ahead of what the follower has
//! applied, so a definition that changed at or before it has been touched already.
//!
//! **A proof is right.** What the server had counted when the question was asked is in `S`. If the
//! follower has applied all of `S`, it has applied that. Reads can see a commit a moment before it
//! is counted, while its writer has no answer yet; the bound on the age of rows is from when it is
//! counted. A transaction's snapshot needs more, and asks for the end of the log
//! ([`remora_cache::Snapshot`]). `S` may hold more than the follower ever reads: transactions that
//! were purged, or that somebody declared executed (`SET GLOBAL gtid_purged`). When it doesn't
//! catch up the server is also asked where its log ends. Every transaction of `S` that is in this
//! log lies before that end. When following begins, the rest counts as applied once the follower
//! has come there: nothing is kept yet. Later it means that something was executed past the log,
//! and everything is forgotten (`Ledger::confirm`).
//!
//! **What `S` doesn't tell.** In 5.6 a GTID enters the set with the write to the log, before the
//! commit in the engines. In versions before 8.0.30 so does that of an `XA COMMIT` by another
//! connection than the one that prepared, and that of an `XA COMMIT … ONE PHASE`. Measured with
//! four writers: 51,300 of 66,960 reads missed a row of the set on 5.6.24 (`sync_binlog = 1`), and
//! 142 of 17,583 after commits in one phase on 5.7.22. After the `XA COMMIT` of another connection
//! 842 of 20,668 did; how many of them because 5.7 loses such commits isn't known. For these
//! commits the set counts for the proof only, and what can be seen is found in another way
//! ([`idle`](super::idle)).
//!
//! **`RESET MASTER`** empties the set; an answer that lacks a transaction of the one before begins
//! anew. If by the next question there are as many transactions again as before, the set alone
//! looks the same: then the stream of the log, which the server has ended, is what ends the
//! session. 5.6 doesn't end it and says nothing of the new log's events, so there a proof also
//! takes that the follower comes to where the log ended. In another log it never does, or has been
//! beyond.

use std::cell::Cell;

use remora_binlog::GtidSet;
use remora_cache::Position;
use remora_engine::reason::RestartReason;

use super::idle::IdleWatch;
use super::{Complete, Worth, status_of_followed_log};
use crate::client::{Client, ClientError, text};
use crate::lost::Lost;
use crate::progress::Progress;
use crate::server_facts::Visibility;
use crate::state::UpstreamShared;

const QUESTION: &str = "SELECT @@global.gtid_executed";
/// The column of the log's state that holds the set.
const EXECUTED: usize = 4;

fn read_set(set: Option<&str>) -> Result<GtidSet, ClientError> {
    set.ok_or(ClientError::Answer("no gtid_executed"))?
        .parse()
        .map_err(|_| ClientError::Answer("a gtid_executed that can't be read"))
}

/// What is known of the answers of one session.
pub(super) struct GtidSource<'a> {
    shared: &'a UpstreamShared,
    progress: &'a Progress,
    base: &'a str,
    log_status_question: &'static str,
    visibility: Visibility,
    idle: IdleWatch,
    is_first: Cell<bool>,
}

impl<'a> GtidSource<'a> {
    pub(super) fn new(
        shared: &'a UpstreamShared,
        progress: &'a Progress,
        base: &'a str,
        log_status_question: &'static str,
        visibility: Visibility,
    ) -> GtidSource<'a> {
        GtidSource {
            shared,
            progress,
            base,
            log_status_question,
            visibility,
            idle: IdleWatch::default(),
            is_first: Cell::new(true),
        }
    }

    /// Asks, and finds out what the answer is worth. `is_waiting_long`: the follower hasn't caught
    /// up with earlier answers when it should have; `lowers`: fences are to be lowered by it.
    pub(super) async fn ask(
        &self,
        client: &mut Client,
        is_waiting_long: bool,
        lowers: bool,
    ) -> Result<Worth, Lost> {
        let (executed, mut end) = if lowers || self.visibility == Visibility::NeverTold {
            let (end, executed) = self.ask_log(client).await?;
            (executed, Some(end))
        } else {
            let rows = client.query(QUESTION, 1).await?;
            let set = rows.first().and_then(|row| text(row, 0));
            (read_set(set)?, None)
        };
        let Some(ledger) = self.progress.ledger() else {
            return Err(ClientError::Answer("GTIDs of a log that isn't MySQL's").into());
        };
        if !ledger.borrow_mut().answer(&executed) {
            let what = "gtid_executed has lost transactions";
            return Err(Lost::restart(RestartReason::PositionWentBack, what));
        }
        if ledger.borrow().needs_other_evidence()
            && let Some(settled) = self.ask_who_is_idle(client).await?
        {
            ledger.borrow_mut().settle(settled);
        }
        let visible = ledger.borrow_mut().take_visible();
        // The first answer also tells whether everything was logged while nobody followed.
        let is_first = self.is_first.replace(false);
        if let Some(end) = end
            && self.visibility == Visibility::NeverTold
            && !is_first
        {
            return Ok(Worth {
                visible,
                complete: Complete::At(end),
            });
        }
        let is_known = ledger.borrow().knows(&executed);
        // A server that has crashed and started again may know no transaction that isn't known
        // here, and have lost rows: its next log file tells of that, before the log's end.
        if !(is_first || (!is_known && is_waiting_long)) {
            end = None;
        } else if end.is_none() {
            end = Some(self.ask_log(client).await?.0);
        }
        Ok(Worth {
            visible,
            complete: Complete::Transactions { executed, end },
        })
    }

    /// Asks for where the log ends and the set. The set isn't newer than the end.
    async fn ask_log(&self, client: &mut Client) -> Result<(Position, GtidSet), Lost> {
        let timeline = &self.shared.timeline;
        let question = self.log_status_question;
        let (end, status) = status_of_followed_log(client, question, self.base, timeline).await?;
        Ok((end, read_set(text(&status, EXECUTED))?))
    }

    /// Whether it is known of a commit that it can be seen once each connection has been idle.
    pub(super) fn waits_for_idle(&self) -> bool {
        let ledger = self.progress.ledger();
        self.visibility.needs_process_list()
            && ledger.is_some_and(|ledger| ledger.borrow().needs_other_evidence())
    }

    async fn ask_who_is_idle(&self, client: &mut Client) -> Result<Option<Position>, ClientError> {
        if !self.visibility.needs_process_list() {
            return Ok(None);
        }
        let applied = self.shared.timeline.applied();
        self.idle.ask(client, applied).await
    }
}
