//! `SET`s of transaction defaults, answered in the server's place.
//!
//! Connection pools and frameworks send two or four of them around each transaction. The answer is
//! known, and so are the settings after it; [`remora_engine::session::pending_sets`] says why the
//! server may be told later. It is told before it gets anything else that it answers: the client's
//! next message that memory can't answer, or a question of Remora's own.
//!
//! If the server refuses one, for instance while it shuts down, the client gets its error and the
//! connection is closed: what the client believes of its session would be wrong.

use remora_cache::BrokenSnapshots;
use remora_engine::reason::Outcome;
use remora_engine::session::state::SessionState;
use remora_sql::{SessionEffect, Statement, StatementKind, TransactionDefaults};
use remora_wire::command::ResponseKind;
use remora_wire::packet::{Extent, HEADER_BYTES, extent, put_message};
use remora_wire::walker::{Ending, Summary};

use super::dispatch::Step;
use super::exchange::Relay;
use super::{Ended, Session};

/// The transaction defaults that a statement sets, if it does nothing else.
///
/// `SET autocommit = 0, @a = 1` sets what no fingerprint shows, so it could be lost: with several
/// assignments the text has a comma.
pub(super) fn transaction_defaults_of(
    statement: &Statement,
    text: &[u8],
) -> Option<TransactionDefaults> {
    let SessionEffect::TransactionDefaults(sets) = statement.session else {
        return None;
    };
    let is_alone = sets.autocommit.is_none() || !text.contains(&b',');
    (statement.kind == StatementKind::Set && is_alone).then_some(sets)
}

impl Session {
    /// Whether Remora may answer a statement that has no effect at the server yet.
    pub(super) fn may_answer_for_server(&self) -> bool {
        !self.may_be_elsewhere() && self.shared.is_caching()
    }

    /// Whether the server must hear from the session now, or it would end it for its silence.
    pub(super) fn server_contact_is_due(&self) -> bool {
        let now_ms = self.shared.clock.now_ms();
        now_ms.saturating_sub(self.server_contact_ms) > self.server_contact_ms_max
    }

    /// Whether to ask for the settings before a `SET` that could then be answered at once.
    pub(super) fn should_learn_settings_for_set(&self, statement: &Statement, text: &[u8]) -> bool {
        transaction_defaults_of(statement, text).is_some()
            && self.state.may_defer_set()
            && self.wants_settings()
            && self.shared.is_caching()
    }

    /// Answers a `SET` in the server's place, if the server may be told later.
    pub(super) fn defer_set(
        &mut self,
        statement: &Statement,
        message: &[u8],
        text: &[u8],
    ) -> Result<Option<Step>, Ended> {
        let Some(sets) = transaction_defaults_of(statement, text) else {
            return Ok(None);
        };
        if !self.may_answer_for_server() || self.server_contact_is_due() {
            return Ok(None);
        }
        let fingerprints = |state: &SessionState| {
            let (before, after) = state.settings_around_deferred_set(sets)?;
            Some([before.id, after.id])
        };
        let (Some(fingerprints), Some(answer)) =
            (fingerprints(&self.state), self.state.set_answer(text))
        else {
            return Ok(None);
        };
        let payload = &message[HEADER_BYTES..];
        self.pending_sets.push(sets, payload, fingerprints);
        self.note_found_rows(message);
        self.counted_rows = None;
        if let Some(closed) = self.unreplayed_hit.clear() {
            self.close_late(closed)?;
        }
        // What the client asks about the statement before is about this one. The server may run it
        // again, or although it was taken back: it then has these settings anyway.
        self.unreplayed_hit.set_control(payload);
        let effects = self.consequences(statement, text).effects;
        let summary = Summary {
            ending: Ending::Ok,
            mark: Some(answer.mark),
            results: 1,
            numbered_from_one: true,
        };
        self.state.after(&effects, None, &summary);
        self.answer_for_server(&answer.payload).map(Some)
    }

    /// Sends the client an answer's only packet, when what it means for the session is noted.
    pub(super) fn answer_for_server(&mut self, payload: &[u8]) -> Result<Step, Ended> {
        // Without a digest: neither the server nor memory has done anything for it.
        self.count(None, Outcome::Transaction);
        self.registration.update(&self.state);
        let mut packets = Vec::with_capacity(HEADER_BYTES + payload.len());
        put_message(&mut packets, 1, payload);
        self.worker.metrics.count_client_bytes_out(packets.len());
        let written = self.client.write_now(&packets)?;
        Ok(Step::Send { packets, written })
    }

    /// What becomes of the server's answer to a `SET` that could have been answered in its place:
    /// it is remembered.
    pub(super) fn relay_of_set(&self, statement: &Statement, text: &[u8]) -> Option<Relay> {
        let may_be_learnt =
            transaction_defaults_of(statement, text).is_some() && self.state.may_defer_set();
        may_be_learnt.then(|| Relay::LearnSetAnswer(text.into()))
    }

    /// The server has answered a `SET`, with this and nothing else.
    pub(super) fn learn_set_answer(&self, text: &[u8], answer: &[u8]) {
        let is_one_packet = matches!(extent(answer, 1), Ok(Extent::Complete { bytes, .. }) if bytes == answer.len());
        if is_one_packet && self.may_answer_for_server() {
            self.state.learn_set_answer(text, &answer[HEADER_BYTES..]);
        }
    }

    /// Tells the server what is pending.
    pub(super) async fn send_pending_sets(&mut self) -> Result<(), Ended> {
        let is_untold =
            self.shared.timeline.broken().snapshots == BrokenSnapshots::PendingSetsDropped;
        for payload in self.pending_sets.take().filter(|_| !is_untold) {
            let mut answer = Vec::new();
            let take = |piece: &[u8]| answer.extend_from_slice(piece);
            let told = self.ask_now(&payload, ResponseKind::Results, take).await?;
            if !told.succeeded() {
                // It says why: the server is being shut down, or the session was killed.
                self.client.write_all(&answer).await?;
                return Err(Ended::closed());
            }
        }
        Ok(())
    }
}
