//! The types of prepared statements' parameters, on their way to the server.
//!
//! Drivers built on libmysqlclient name them with the first execution only. If memory answered that
//! one, the server must be told them by the next that goes there: they are put into it. Running the
//! first one before it instead would make a transaction's snapshot, and perhaps too early: the
//! client's own execution may need none.

use std::borrow::Cow;

use remora_engine::session::prepared::{PreparedRead, StatementId};
use remora_engine::session::replay::put_statement;
use remora_wire::Command;
use remora_wire::execute::execution_of_nulls;
use remora_wire::packet::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX};
use remora_wire::walker::{Ending, Summary};

use super::{Ended, Session};

/// Bytes of a message's payload before what [`remora_wire::execute::Execution`] reads: the command
/// and the statement's number.
const HEAD_BYTES: usize = 5;
/// `COM_STMT_EXECUTE`.
const EXECUTE: u8 = 0x17;

/// Who named the types in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namer {
    Client,
    Remora,
}

/// An execution as the server can understand it: the message, or what there is of it.
pub(super) struct Typed<'m> {
    pub message: Cow<'m, [u8]>,
}

impl Typed<'_> {
    /// Who named the types, if the message does.
    pub(super) fn named(&self, names_types: bool) -> Option<Namer> {
        names_types.then_some(match self.message {
            Cow::Borrowed(_) => Namer::Client,
            Cow::Owned(_) => Namer::Remora,
        })
    }
}

/// What an execution needs so that the server knows its types.
enum Lack {
    /// Nothing.
    Nothing,
    /// To be sent as this payload, which names them.
    Completion(Vec<u8>),
    /// Another message before it: they can't be put into this one.
    Delivery,
}

impl Session {
    /// An execution with the types that the server lacks. `message` may be only its start. `None`:
    /// the server must be told the types first.
    pub(super) fn with_types<'m>(
        &self,
        message: &'m [u8],
        id: StatementId,
        command: Command,
    ) -> Option<Typed<'m>> {
        let as_sent = Typed {
            message: Cow::Borrowed(message),
        };
        let payload = message.get(HEADER_BYTES..).unwrap_or_default();
        let completed = match self.lack_of_types(payload, id) {
            Lack::Nothing => return Some(as_sent),
            Lack::Completion(payload) if command == Command::StmtExecute => payload,
            Lack::Completion(_) | Lack::Delivery => return None,
        };
        let header = Header::peek(message)?;
        let length = header.length + completed.len() - payload.len();
        // What fills its packet goes on in another.
        if length >= PAYLOAD_BYTES_MAX {
            return None;
        }
        let head = Header { length, ..header }.encode();
        Some(Typed {
            message: Cow::Owned([&head, &completed[..]].concat()),
        })
    }

    /// What the start of an execution's payload lacks.
    fn lack_of_types(&self, payload: &[u8], id: StatementId) -> Lack {
        let Some(read) = self.prepared.read(id) else {
            return Lack::Nothing;
        };
        match read.unseen_types() {
            Some(types) => self.lack_of_these(types, payload, read),
            None => Lack::Nothing,
        }
    }

    /// What the payload lacks, on the assumption that the server doesn't have these types.
    fn lack_of_these(&self, types: &[u8], payload: &[u8], read: &PreparedRead) -> Lack {
        let capabilities = self.capabilities();
        let (head, body) = payload.split_at(payload.len().min(HEAD_BYTES));
        match read.execution(body, capabilities) {
            None => Lack::Delivery,
            Some(execution) if execution.types().is_some() => Lack::Nothing,
            Some(execution) => {
                let body = execution.body_with(body, types, capabilities);
                Lack::Completion([head, &body].concat())
            }
        }
    }

    /// What the payload lacks if the server knows of no types, but the client has named some.
    fn lack_of_all_types(&self, payload: &[u8], id: StatementId) -> Option<Lack> {
        let read = self.prepared.read(id)?;
        let is_typed = !read.types().is_empty();
        is_typed.then(|| self.lack_of_these(read.types(), payload, read))
    }

    /// A message that memory has answered just now, as it can be run whatever comes before it: it
    /// names its types, and its statement.
    pub(super) fn with_all_types<'p>(
        &self,
        payload: &'p [u8],
        statement: Option<StatementId>,
    ) -> Cow<'p, [u8]> {
        let Some(id) = statement else {
            return Cow::Borrowed(payload);
        };
        let mut whole = match self.lack_of_all_types(payload, id) {
            Some(Lack::Completion(completed)) => completed,
            Some(Lack::Nothing | Lack::Delivery) | None => payload.to_vec(),
        };
        put_statement(&mut whole, id);
        Cow::Owned(whole)
    }

    /// The same of any message that memory has answered, with the statement that it executes.
    fn lack_of_answered(&self, payload: &[u8]) -> Option<(StatementId, Lack)> {
        let body = payload.strip_prefix(&[EXECUTE])?;
        let id = self.statement_meant(body)?;
        Some((id, self.lack_of_types(payload, id)))
    }

    /// Has the server run a statement that memory has answered, and hands on its answer in pieces.
    pub(super) async fn run_again(
        &mut self,
        payload: &[u8],
        take: impl FnMut(&[u8]),
    ) -> Result<Summary, Ended> {
        match self.lack_of_answered(payload) {
            Some((id, Lack::Completion(completed))) => {
                let summary = self.run_what_was_answered(&completed, take).await?;
                if !matches!(summary.ending, Ending::Err(_)) {
                    self.server_got_types(id);
                }
                return Ok(summary);
            }
            Some((id, Lack::Delivery)) => self.deliver_types(id).await?,
            Some((id, Lack::Nothing)) => {
                let summary = self.run_what_was_answered(payload, take).await?;
                if let Some(read) = self.prepared.read_mut(id) {
                    // It may name others than those named last.
                    read.server_may_lack_types();
                }
                return Ok(summary);
            }
            None => {}
        }
        self.run_what_was_answered(payload, take).await
    }

    /// Tells the server the types that only memory has been told, by an execution in which all
    /// parameters are NULL: used when they can't be put into the execution itself, which is too
    /// long or can't be read.
    pub(super) async fn deliver_types(&mut self, id: StatementId) -> Result<(), Ended> {
        let read = self.prepared.read(id);
        let Some(types) = read.and_then(PreparedRead::unseen_types) else {
            return Ok(());
        };
        let payload = execution_of_nulls(id.0, types, self.capabilities());
        self.run_what_was_answered(&payload, |_| {}).await?;
        self.server_got_types(id);
        Ok(())
    }

    fn server_got_types(&mut self, id: StatementId) {
        let now = self.state.fingerprint();
        if let Some(read) = self.prepared.read_mut(id) {
            read.server_got_types(now);
        }
    }

    /// The client closes a statement, or names other types for it. If memory answered its last
    /// execution, and the server may have to run that after all, it is kept with its types.
    pub(super) fn complete_unreplayed_hit(&mut self, id: StatementId) {
        if !self.unreplayed_hit.executes(id) {
            return;
        }
        let lack = self.lack_of_all_types(self.unreplayed_hit.payload(), id);
        if let Some(Lack::Completion(completed)) = lack {
            self.unreplayed_hit.replace_payload(completed);
        }
    }
}
