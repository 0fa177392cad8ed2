//! The types of prepared statements' parameters, on their way to the server.
//!
//! Drivers built on libmysqlclient name them with the first execution only. If memory answered that
//! one, the server must be told them by the next that goes there: they are put into it. Running the
//! first one before it instead would make a transaction's snapshot, and perhaps too early: the
//! client's own execution may need none.
//!
//! MySQL 8.0 also settles a parameter's type by the first value that it gets. If memory answered
//! the execution that had it, the server gets such a value before an execution with other types.

use std::borrow::Cow;

use remora_wire::Command;
use remora_wire::execute::{Filler, execution_of_types};
use remora_wire::packet::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX};
use remora_wire::walker::{Ending, Summary};

use super::dispatch::Prerequisite;
use super::prepared::StatementId;
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

/// What an execution needs so that the server takes its types as if it had seen those before.
enum Lack {
    /// Nothing.
    Nothing,
    /// To be sent as this payload, which names them.
    Completion(Vec<u8>),
    /// Another message before it.
    Delivery(Delivery),
}

/// A message that tells the server types, before the client's own.
pub(super) struct Delivery {
    statement: StatementId,
    payload: Vec<u8>,
    settles: bool,
}

impl Delivery {
    fn first(self) -> Prerequisite {
        Prerequisite::DeliverTypes(Box::new(self))
    }
}

impl Session {
    /// A message as the server can understand it, of which there is all or the start; or what the
    /// server must get first.
    pub(super) fn with_types<'m>(
        &self,
        message: &'m [u8],
        id: StatementId,
        command: Command,
    ) -> Result<Typed<'m>, Prerequisite> {
        let as_sent = Typed {
            message: Cow::Borrowed(message),
        };
        let payload = message.get(HEADER_BYTES..).unwrap_or_default();
        let completed = match self.lack_of_types(payload, id) {
            Lack::Nothing => return Ok(as_sent),
            Lack::Completion(completed) => completed,
            Lack::Delivery(delivery) => return Err(delivery.first()),
        };
        let header = Header::peek(message).unwrap_or(Header {
            length: 0,
            sequence: 0,
        });
        let length = header.length + completed.len() - payload.len();
        // What fills its packet goes on in another. An execution of many has another form.
        if length >= PAYLOAD_BYTES_MAX || command != Command::StmtExecute {
            let delivery = self.delivery_of_types(id);
            return delivery.map_or(Ok(as_sent), |delivery| Err(delivery.first()));
        }
        let head = Header { length, ..header }.encode();
        Ok(Typed {
            message: Cow::Owned([&head, &completed[..]].concat()),
        })
    }

    /// What the start of an execution's payload lacks.
    fn lack_of_types(&self, payload: &[u8], id: StatementId) -> Lack {
        let Some(read) = self.prepared.read(id) else {
            return Lack::Nothing;
        };
        let capabilities = self.capabilities();
        let (head, body) = payload.split_at(payload.len().min(HEAD_BYTES));
        let execution = read.execution(body, capabilities);
        let named = execution.and_then(|execution| execution.types());
        if let Some(types) = read.unsettled_types(named) {
            return Lack::Delivery(Delivery {
                statement: id,
                payload: execution_of_types(id.0, types, Filler::Zero, capabilities),
                settles: true,
            });
        }
        let Some(types) = read.unseen_types().filter(|_| named.is_none()) else {
            return Lack::Nothing;
        };
        match execution {
            Some(execution) => {
                let body = execution.body_with(body, types, capabilities);
                Lack::Completion([head, &body].concat())
            }
            None => self
                .delivery_of_types(id)
                .map_or(Lack::Nothing, Lack::Delivery),
        }
    }

    /// The message by which the server learns types that can't be put into an execution: it is of
    /// 16 MiB, or unreadable. Each parameter is NULL, so that mostly no table is looked at.
    fn delivery_of_types(&self, id: StatementId) -> Option<Delivery> {
        let types = self.prepared.read(id)?.unseen_types()?;
        Some(Delivery {
            statement: id,
            payload: execution_of_types(id.0, types, Filler::Null, self.capabilities()),
            settles: false,
        })
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
            Some((_, Lack::Delivery(delivery))) => self.deliver_types(delivery).await?,
            Some((_, Lack::Nothing)) | None => {}
        }
        self.run_what_was_answered(payload, take).await
    }

    /// Tells the server types that only memory has been told.
    pub(super) async fn deliver_types(&mut self, delivery: Delivery) -> Result<(), Ended> {
        self.run_what_was_answered(&delivery.payload, |_| {})
            .await?;
        if !delivery.settles {
            self.server_got_types(delivery.statement);
        } else if let Some(read) = self.prepared.read_mut(delivery.statement) {
            read.server_settled_types();
        }
        Ok(())
    }

    fn server_got_types(&mut self, id: StatementId) {
        let now = self.state.fingerprint();
        if let Some(read) = self.prepared.read_mut(id) {
            read.server_got_types(now);
        }
    }

    /// The client closes a statement. If memory answered its last execution, and the server may
    /// have to run that after all, it is kept with the types, which go with the statement.
    pub(super) fn complete_unreplayed_hit(&mut self, id: StatementId) {
        if !self.unreplayed_hit.executes(id) {
            return;
        }
        let payload = self.unreplayed_hit.payload();
        if let Lack::Completion(completed) = self.lack_of_types(payload, id) {
            self.unreplayed_hit.replace_payload(completed);
        }
    }
}
