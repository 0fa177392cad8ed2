//! Messages that Remora answers with an error instead of having the server run them.

use remora_engine::reason::{Limit, Outcome};
use remora_wire::Command;
use remora_wire::packet::{HEADER_BYTES, PAYLOAD_BYTES_MAX};
use remora_wire::response::ServerError;

use super::dispatch::Step;
use super::{Ended, Session};

/// `ER_TOO_MANY_CONCURRENT_TRXS`, with its SQLSTATE.
const TOO_MANY: (u16, &str) = (1637, "HY000");

/// Why the next message is refused.
pub(super) struct Refusal {
    error: ServerError,
    outcome: Outcome,
}

impl Refusal {
    /// Its transaction can't go on as memory has begun it, or can't be opened.
    pub(super) fn conflict(error: ServerError) -> Refusal {
        Refusal {
            error,
            outcome: Outcome::Conflict,
        }
    }

    /// As many statements run at the server as may. `limit`: the one for those that wait.
    pub(super) fn too_many_statements(limit: Limit) -> Refusal {
        let (code, sql_state) = TOO_MANY;
        let message = format!(
            "Too many statements are running at the server. This one was not run; try again (limit: {})",
            limit.as_str()
        );
        Refusal {
            error: ServerError::new(code, sql_state, message),
            outcome: Outcome::Refused,
        }
    }
}

impl Session {
    /// Whether the client believes that the server has something of an execution that is refused:
    /// the types of its parameters, which it won't name again, or a part of one that was sent
    /// ahead.
    fn loses_what_was_sent_with(&mut self, start: &[u8]) -> bool {
        let command = Command::from_byte(start.get(HEADER_BYTES).copied().unwrap_or_default());
        match command {
            Command::StmtExecute => {}
            // Its form is another, and it mostly names types.
            Command::StmtBulkExecute => return true,
            _ => return false,
        }
        let body = start.get(HEADER_BYTES + 1..).unwrap_or_default();
        let capabilities = self.capabilities();
        let Some(id) = self.statement_meant(body) else {
            return true;
        };
        self.complete_unreplayed_hit(id);
        let body = body.get(4..).unwrap_or_default();
        let Some(read) = self.prepared.read_mut(id) else {
            let known = self.prepared.get(id);
            return known.is_none_or(|known| known.may_be_new(body, capabilities));
        };
        let execution = read.execution(body, capabilities);
        let Some(execution) = execution.filter(|_| !read.has_long_data()) else {
            return true;
        };
        read.name_types(&execution);
        false
    }

    /// Answers a message that is refused, instead of having it run. It begins with `start`, and has
    /// so many bytes.
    pub(super) fn refuse(&mut self, start: &[u8], bytes: usize) -> Result<Step, Ended> {
        let Some(refusal) = self.refusal.take() else {
            return Ok(Step::Answered);
        };
        let Refusal { error, outcome } = *refusal;
        self.count(None, outcome);
        self.definition_change = None;
        // Behind the last packet of the message.
        let last = bytes / PAYLOAD_BYTES_MAX % 256;
        let packets = error.packet(u8::try_from(last).unwrap_or_default().wrapping_add(1));
        self.worker.metrics.count_client_bytes_out(packets.len());
        if self.loses_what_was_sent_with(start) {
            return Ok(Step::Refuse { packets });
        }
        let written = self.client.write_now(&packets)?;
        Ok(Step::Send { packets, written })
    }
}
