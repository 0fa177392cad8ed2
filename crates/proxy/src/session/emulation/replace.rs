//! An answer of Remora's own in place of the server's.
//!
//! The server gets another statement than the client sent: one that needs the same privileges. What
//! it answers isn't passed on. If that is an error, the client gets it; otherwise it gets what
//! Remora makes of its own statement, ended as the server's answer ended: with the session's flags,
//! the warnings, and what the client is told of the session.
//!
//! Of the server's answer only the last packet is kept, however long the answer is.

use remora_engine::reason::{Bypass, Limit, Outcome, Stage};
use remora_sql::{Dialect, Refusal, ShowRemora};
use remora_upstream::clock::Instant;
use remora_wire::StatusFlags;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;
use remora_wire::response::{EOF_MARK, ERR_MARK, ServerError};
use remora_wire::result_set::ResultSet;
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};

use super::super::dispatch::Step;
use super::super::exchange::{Plan, Relay, Writing};
use super::super::fill::Fill;
use super::super::{CHUNK_BYTES, Ended, Session};
use super::explain::Explain;
use super::last_packet::LastPacket;
use super::listings::Table;

/// What the client gets in place of the server's answer, if that isn't an error.
pub(in super::super) enum Replacement {
    /// What `SHOW REMORA` shows.
    Shown(Box<ShowRemora>),
    /// What `EXPLAIN REMORA` explains.
    Explained(Explain),
    /// Where the time of the statement went, which the server has run. Its result may be kept.
    Analysed(Option<Box<Fill>>),
}

impl Replacement {
    /// Takes the fill out, if the server's answer may be kept.
    pub(in super::super) fn take_fill(&mut self) -> Option<Fill> {
        match self {
            Replacement::Analysed(fill) => fill.take().map(|fill| *fill),
            Replacement::Shown(_) | Replacement::Explained(_) => None,
        }
    }
}

/// What Remora answers a statement with.
pub(super) enum OwnAnswer {
    /// Rows.
    Rows(Table),
    /// An error.
    Error(ServerError),
}

/// The client's statement that is answered in the server's place.
#[derive(Clone, Copy)]
pub(in super::super) struct Asked<'t> {
    /// Its text.
    pub text: &'t [u8],
    /// How the server reads it.
    pub dialect: Dialect,
    /// When it came.
    pub began: Instant,
}

impl Session {
    /// Sends the server `text_sent` in place of what the client asked, and has its answer replaced.
    /// What `text_sent` writes and does to the session counts as if the client had sent it.
    pub(in super::super) fn replace_answer(
        &mut self,
        asked: Asked<'_>,
        text_sent: &[u8],
        replacement: Replacement,
    ) -> Result<Step, Ended> {
        let sent = self.analyse(text_sent, asked.dialect);
        let label = self.label_of(asked.text, asked.dialect);
        let mut plan = Plan {
            counted: Some((label, asked.began)),
            relay: Relay::Replace(replacement),
            ..Plan::with(self.consequences(&sent, text_sent), ResponseKind::Results)
        };
        plan.rest_on(self.code_basis(&sent, text_sent, asked.dialect));
        let mut message = Vec::new();
        put_message(&mut message, 0, &[self.query_head(), text_sent].concat());
        let outcome = Outcome::Bypass(Bypass::Statement(Refusal::NotSelect));
        self.forward(&message, plan, outcome)
    }

    /// Reads the whole answer, and sends the client what it gets in its place.
    pub(in super::super) async fn relay_replaced(
        &mut self,
        walker: &mut ResponseWalker,
        plan: &mut Plan,
        replacement: Replacement,
        writing: &mut Writing,
    ) -> Result<Summary, Ended> {
        let (summary, last) = self.skip_answer(walker, plan, writing).await?;
        // The whole answer is here; what the client gets may take its time.
        self.hand_on_fence(writing);
        let answer = match summary.ending {
            Ending::Err(_) => error_alone(&last)?,
            _ => match Box::pin(self.own_answer(replacement)).await {
                OwnAnswer::Rows(table) => self.rows_packets(&table, &summary, &last),
                OwnAnswer::Error(error) => error.packet(1),
            },
        };
        if last.is_cut() {
            self.shared.metrics.rare.count_limit(Limit::MergedBytes);
        }
        self.worker.metrics.count_client_bytes_out(answer.len());
        self.client.write_all(&answer).await?;
        Ok(summary)
    }

    /// Reads the whole answer and keeps its last packet; in memory all of it, if that is planned.
    async fn skip_answer(
        &mut self,
        walker: &mut ResponseWalker,
        plan: &mut Plan,
        writing: &mut Writing,
    ) -> Result<(Summary, LastPacket), Ended> {
        let mut last = LastPacket::new(self.shared.emulation.merged_bytes_max);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = self.read_server(&mut chunk).await?;
            if count == 0 {
                return Err(Ended::closed());
            }
            self.trace_answer(count);
            let (used, progress) = walker.feed(&chunk[..count])?;
            last.feed(&chunk[..used]);
            if let Progress::Done(_) = progress {
                writing.answered();
                // Before its result may be kept, as in `read_piece`.
                self.look_again_at(writing);
                self.note_evidence(&mut plan.effects, walker.has_rows());
            }
            if matches!(plan.relay, Relay::Keep(_)) {
                self.keep_piece(plan, &chunk[..used], progress);
                self.mark(Stage::Store);
            }
            match progress {
                Progress::Done(_) if used < count => return Err(Ended::closed()),
                Progress::Done(summary) => {
                    self.turn = None;
                    return Ok((summary, last));
                }
                Progress::LocalFile => return Err(Ended::closed()),
                Progress::More => {}
            }
        }
    }

    /// What a statement of Remora's own is answered with, now that the server has allowed it.
    async fn own_answer(&self, replacement: Replacement) -> OwnAnswer {
        match replacement {
            Replacement::Shown(show) => self.shown(&show).await,
            Replacement::Explained(explain) => self.explained(&explain).await,
            Replacement::Analysed(_) => OwnAnswer::Rows(self.analysed()),
        }
    }

    /// A table as a result set that ends as the server's answer ended.
    fn rows_packets(&self, table: &Table, summary: &Summary, last: &LastPacket) -> Vec<u8> {
        let status = summary.mark.unwrap_or_default().status;
        let status = status.within(StatusFlags::OF_SESSION);
        let mut set = ResultSet::begin(self.capabilities(), status, &table.columns);
        for row in &table.rows {
            let fields = row.iter().map(|field| field.as_deref());
            set.row(fields.map(|field| field.map(str::as_bytes)));
        }
        match last.payload() {
            Some(end) if end.first() == Some(&EOF_MARK) => set.finish_as(end),
            _ => set.finish(),
        }
    }
}

/// The server's error. It may stand behind rows that this client hasn't got.
fn error_alone(last: &LastPacket) -> Result<Vec<u8>, Ended> {
    let payload = last
        .payload()
        .filter(|payload| payload.first() == Some(&ERR_MARK));
    let payload = payload.ok_or_else(Ended::closed)?;
    let mut packet = Vec::new();
    put_message(&mut packet, 1, payload);
    Ok(packet)
}
