//! `SET`s of what transactions are like, answered in the server's place.
//!
//! Connection pools and frameworks send two or four of them around each transaction. The answer is
//! known, and so are the settings behind it; see [`remora_engine::session::owed_settings`] for why
//! the server may hear of it later. It does before anything else that it answers: the client's next
//! message that memory can't answer, or a question of Remora's own.
//!
//! A `SET` that was answered can't fail. Should the server refuse it all the same, because it is
//! being shut down say, the connection is closed: what the client believes of it would be wrong.

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

/// What a statement says of the session's transactions, if it does nothing else.
pub(super) fn sets_transactions(statement: &Statement) -> Option<TransactionDefaults> {
    match statement.session {
        SessionEffect::TransactionDefaults(sets) if statement.kind == StatementKind::Set => {
            Some(sets)
        }
        _ => None,
    }
}

impl Session {
    /// Whether the server may hear later, or never, of a statement that it has nothing to do for.
    pub(super) fn may_answer_in_its_place(&self) -> bool {
        !self.may_be_elsewhere() && self.shared.is_caching()
    }

    /// Whether the server would end the session for its silence if it heard nothing now.
    pub(super) fn must_be_heard_of(&self) -> bool {
        let now_ms = self.shared.clock.now_ms();
        now_ms.saturating_sub(self.server_contact_ms) > self.server_contact_ms_max
    }

    /// Answers a `SET` in the server's place, if the server may hear of it later.
    pub(super) fn set_later(
        &mut self,
        statement: &Statement,
        message: &[u8],
        text: &[u8],
    ) -> Result<Option<Step>, Ended> {
        let Some(sets) = sets_transactions(statement) else {
            return Ok(None);
        };
        if !self.may_answer_in_its_place() || self.must_be_heard_of() {
            return Ok(None);
        }
        let fingerprints = |state: &SessionState| {
            let (before, after) = state.settings_if_set(sets)?;
            Some([before.id, after.id])
        };
        let (Some(fingerprints), Some(answer)) =
            (fingerprints(&self.state), self.state.set_answer(text))
        else {
            return Ok(None);
        };
        let payload = &message[HEADER_BYTES..];
        self.owed_settings.owe(sets, payload, fingerprints);
        self.note_found_rows(message);
        self.counted_rows = None;
        if let Some(closed) = self.unreplayed_hit.clear() {
            self.close_late(closed)?;
        }
        // What the client asks about the statement before is about this one. At the server it does
        // the same again.
        self.unreplayed_hit.set_control(payload);
        let effects = self.consequences(statement, text).effects;
        let summary = Summary {
            ending: Ending::Ok,
            mark: Some(answer.mark),
            results: 1,
            numbered_from_one: true,
        };
        self.state.after(&effects, None, &summary);
        // Without a digest: neither the server nor memory has done anything for it.
        self.count(None, Outcome::Transaction);
        self.registration.update(&self.state);
        let mut packets = Vec::with_capacity(HEADER_BYTES + answer.payload.len());
        put_message(&mut packets, 1, &answer.payload);
        self.worker.metrics.count_client_bytes_out(packets.len());
        let written = self.client.write_now(&packets)?;
        Ok(Some(Step::Send { packets, written }))
    }

    /// What becomes of the server's answer to a statement: that to a `SET` which it might have
    /// heard of later is remembered.
    pub(super) fn relay_of_set(&self, statement: &Statement, text: &[u8]) -> Option<Relay> {
        let may_be_learnt = sets_transactions(statement).is_some() && self.state.may_set_later();
        may_be_learnt.then(|| Relay::Learn(text.into()))
    }

    /// The server has answered a `SET`, with this and nothing else.
    pub(super) fn learn_set_answer(&self, text: &[u8], answer: &[u8]) {
        let is_one_packet = matches!(extent(answer, 1), Ok(Extent::Complete { bytes, .. }) if bytes == answer.len());
        if is_one_packet && self.may_answer_in_its_place() {
            self.state.learn_set_answer(text, &answer[HEADER_BYTES..]);
        }
    }

    /// Tells the server what it hasn't heard of.
    pub(super) async fn tell_settings(&mut self) -> Result<(), Ended> {
        let is_untold = self.shared.timeline.broken().snapshots == BrokenSnapshots::SettingsUntold;
        for payload in self.owed_settings.take().filter(|_| !is_untold) {
            let told = self
                .ask_now(&payload, ResponseKind::Results, |_| {})
                .await?;
            if !told.succeeded() {
                return Err(Ended::closed());
            }
        }
        Ok(())
    }
}
