//! One client's session: a socket to the client, a socket to the server, and what lies between.
//!
//! A session lives on one worker's thread. It handles one message at a time: what the client sends
//! ahead stays in the socket, so order and back-pressure are the protocol's own.
//!
//! | file | part of a session's life |
//! |---|---|
//! | `login/` | TLS, greeting, login and authentication: relayed, or agreed with each side |
//! | `dispatch.rs` | from a message to what is done with it: hit, fill, write, bypass |
//! | `query.rs`, `execute.rs` | the same for statements as text, and for prepared ones |
//! | `look_up.rs` | looking a statement up, and answering it from memory |
//! | `outdated.rs` | what outdated a result that was looked up |
//! | `exchange.rs` | sending a message to the server and relaying its answer |
//! | `backlog.rs` | reading an answer ahead of a client that doesn't take it |
//! | `client_connection.rs` | the client's connection, and when a shutdown may end it |
//! | `inbox.rs` | what the client has sent and hasn't been handled yet |
//! | `listening.rs` | listening to the client while the server works |
//! | `tunnel.rs` | relaying what the client sends while the server answers |
//! | `fill.rs` | deciding whether an answer may be kept, and keeping it |
//! | `emulation/` | the statements of the query cache's SQL interface |
//! | `fence.rs` | resolving what a statement writes, and raising its fence before it is sent |
//! | `hidden.rs` | what a statement may do that its text doesn't show |
//! | `counts.rs` | what the server has counted in the session: what such code may have left behind |
//! | `snapshot_reads.rs` | reads inside transactions at `REPEATABLE READ` |
//! | `first_read.rs` | the first read of a transaction, answered when the server has made the snapshot |
//! | `early.rs` | transactions that memory answers before the server knows of them |
//! | `deferred_set.rs` | `SET`s of transaction defaults, answered in the server's place |
//! | `verify.rs` | having the server answer a share of the hits, too, and comparing |
//! | `trace.rs` | noting where the time of a share of the statements goes |
//! | `questions.rs` | Remora's own questions on the session's connection |
//! | `registration.rs` | what others can see of the session |
//! | `worker_context.rs` | what the sessions of one worker share |
//! | `awaited_fill.rs` | waiting for another client's answer to the same statement |
//! | `turn.rs` | waiting for a turn at the server, where statements there are limited |
//! | `refusal.rs` | answering a message with an error instead of having it run |
//! | `types.rs` | the types of parameters, which the server may not have been told |
//! | `counted_rows.rs` | `SQL_CALC_FOUND_ROWS` and its `FOUND_ROWS()`, as a pair |
//! | `found_rows.rs` | what `FOUND_ROWS()` must give where the server has another count |
//!
//! What is known of the session stands in [`remora_engine::session`], as plain values.

mod awaited_fill;
mod backlog;
mod client_connection;
mod counted_rows;
mod counts;
mod deferred_set;
mod dispatch;
mod early;
mod emulation;
mod exchange;
mod execute;
mod fence;
mod fill;
mod first_read;
mod found_rows;
mod hidden;
mod inbox;
mod listening;
mod login;
mod look_up;
mod outdated;
mod query;
mod questions;
mod refusal;
mod registration;
mod snapshot_reads;
mod trace;
mod tunnel;
mod turn;
mod types;
mod verify;
mod worker_context;

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use remora_cache::{Entry, Snapshot};
use remora_engine::reason::{Limit, Stage};
use remora_engine::session::BUFFER_BYTES_KEPT;
use remora_engine::session::pending_sets::PendingSets;
use remora_engine::session::prepared::PreparedStatements;
use remora_engine::session::replay::UnreplayedHit;
use remora_engine::session::state::SessionState;
use remora_engine::settings::Flavour;
use remora_wire::WireError;
use remora_wire::packet::{Extent, extent};
use remora_wire::response::ServerError;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::client_connection::ClientConnection;
use self::counted_rows::CountedRows;
use self::dispatch::{Prerequisite, Step};
use self::early::EarlyTransaction;
use self::first_read::FirstRead;
#[cfg(any(test, fuzzing))]
pub(crate) use self::first_read::FirstReads;
use self::found_rows::OwedCount;
use self::hidden::UnseenText;
use self::inbox::Inbox;
use self::refusal::Refusal;
use self::registration::Registration;
pub(crate) use self::worker_context::WorkerContext;
use remora_net::{Addresses, Endpoint, Stream};
use remora_upstream::definition_change::DefinitionChange;

use crate::shared::outdated::OutdatedResult;
use crate::shared::{Shared, Turn};
use crate::traces::Recorder;

/// How much is read at a time of an answer that isn't simply passed on, bytes. Such a buffer is
/// allocated for the time it takes: as an array it would be a part of each idle session.
const CHUNK_BYTES: usize = 4 * 1024;

/// How much is read at a time of what the server says unasked, bytes.
const LAST_WORDS_BYTES: usize = 1024;

/// How often bytes are taken from a client that broke the protocol, before its connection is
/// closed.
const READ_AWAY_MAX: usize = 64;

/// Why a session ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The client left, properly or not, or the server closed the connection.
    Closed(io::Error),
    /// The server refused the login, and told the client.
    Refused,
    /// The client broke the protocol, or the server can't be reached; it gets this error.
    Misbehaved {
        /// What the client is told.
        error: ServerError,
        /// The number of the packet that tells it.
        sequence: u8,
    },
    /// The server broke the protocol.
    ServerMisbehaved(WireError),
}

impl Ended {
    fn closed() -> Ended {
        Ended::Closed(io::Error::from(io::ErrorKind::UnexpectedEof))
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Closed(error)
    }
}

impl From<WireError> for Ended {
    fn from(error: WireError) -> Ended {
        Ended::ServerMisbehaved(error)
    }
}

/// The side of a session that something came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Waits until one of the two has something to read, the client first.
async fn either_readable(client: &Stream, server: &Stream) -> io::Result<Side> {
    poll_fn(|cx| {
        if let Poll::Ready(result) = client.poll_read_ready(cx) {
            return Poll::Ready(result.map(|()| Side::Client));
        }
        server
            .poll_read_ready(cx)
            .map(|result| result.map(|()| Side::Server))
    })
    .await
}

/// A session that is logged in.
pub(crate) struct Session {
    shared: Arc<Shared>,
    worker: Rc<WorkerContext>,
    client: Rc<ClientConnection>,
    server: Stream,
    state: SessionState,
    prepared: PreparedStatements,
    /// How the client was authenticated: what a change of user begins with.
    method: login::Method,
    /// What the client sent and has not been handled.
    inbox: Inbox,
    /// What is to go to the server and its socket did not take at once.
    outbox: Vec<u8>,
    /// The client will send nothing more.
    client_has_finished: bool,
    /// The text of the statement in flight, if its answer may be kept.
    fill_text: Vec<u8>,
    /// What an execution is looked up by, while it is.
    key: Vec<u8>,
    /// What was last answered from memory, if the server has seen no statement since: what its
    /// diagnostics area should tell of.
    unreplayed_hit: UnreplayedHit,
    /// What `FOUND_ROWS()` must give where the server's own count is another one: that of a hit
    /// before it, or of Remora's own question. Of no meaning while there is an unreplayed hit.
    found_rows: Option<OwedCount>,
    /// The snapshot for which a proof was last awaited: it is, once only.
    awaited_proof_of: Option<Snapshot>,
    /// The result just kept whose rows the server has counted.
    counted_rows: Option<CountedRows>,
    /// The count of the result that is being served.
    count_of_hit: Cell<Option<Arc<Entry>>>,
    /// The open transaction's first read, while none has followed it.
    first_read: Option<FirstRead>,
    /// The server has never refused to open a transaction with its snapshot.
    server_makes_snapshots: bool,
    /// The key for which the message at hand was looked at again: that happens once only.
    looked_again_for: Option<u128>,
    /// How many fills had ended in the key's shard when it was looked up.
    fills_ended: Option<usize>,
    /// What must come before that message is looked at again, see `awaited_fill.rs`.
    look_again: Option<Prerequisite>,
    /// The open transaction, if the server doesn't know of it; else what is left of the last one.
    early: Option<Box<EarlyTransaction>>,
    /// `SET`s that were answered in the server's place. It must get them before anything else.
    pending_sets: PendingSets,
    /// What the client gets in place of an answer to its next message, which isn't run.
    refusal: Option<Box<Refusal>>,
    /// The statement is one of those at the server, where their number is limited.
    turn: Option<Turn>,
    /// What the message under way is traced with, if it is.
    trace: Option<Box<Recorder>>,
    /// Whether the inbox begins with a message of which nobody has drawn yet whether it is traced.
    needs_sampling: bool,
    /// The result that the statement at hand would have had from memory, had no change outdated it.
    outdated: Option<OutdatedResult>,
    /// When text that isn't seen has ended, if one has since the server was last asked about it.
    unseen_text: Option<UnseenText>,
    /// From which byte sent on the server's count of bytes received is compared: where a reset of
    /// its counts was last harmless, or one byte before the end of the last question for them.
    counts_from: u64,
    /// When the server was last sent something, milliseconds of Remora's clock.
    server_contact_ms: u64,
    /// Keeps Remora's own questions away from the tables of a statement that is about to be sent.
    definition_change: Option<DefinitionChange>,
    /// For how long it may be served from memory alone before the server must hear of it,
    /// milliseconds: as configured, or less if the server waits less long.
    server_contact_ms_max: u64,
    /// Its place in the list of all sessions.
    registration: Registration,
}

/// Serves a client from its accepted socket to its end. It connects to the server, unless it is
/// given a connection: that is how tests put a server of theirs behind it.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    worker: Rc<WorkerContext>,
    client: Rc<ClientConnection>,
    server: Option<Box<Stream>>,
) {
    let metrics = Arc::clone(&shared.metrics);
    let protocol_errors = &metrics.rare.protocol_errors;
    // Apart, for the time it takes: what a login needs is more than what a session needs.
    let logging_in = Box::pin(Session::log_in(shared, worker, Rc::clone(&client), server));
    let ended = match logging_in.await {
        Ok(mut session) => {
            let ended = session.run().await;
            // Apart, like all that few sessions ever need.
            Box::pin(session.ask_at_the_end()).await;
            ended
        }
        Err(ended) => ended,
    };
    match ended {
        Ended::Misbehaved { error, sequence } => {
            if sequence > 0 {
                protocol_errors.fetch_add(1, Ordering::Relaxed);
            }
            tracing::debug!(%error, "closing a connection");
            // The client may be gone already; there is nobody else to tell.
            let _ = client.write_all(&error.packet(sequence)).await;
            read_away(&client);
        }
        Ended::ServerMisbehaved(error) => {
            protocol_errors.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, "the server sent what the protocol does not allow; closing");
        }
        Ended::Closed(error) => {
            tracing::trace!(%error, "connection closed");
            if client.has_stopped_reading() {
                // Its last answer may still be on its way to it.
                read_away(&client);
            }
        }
        Ended::Refused => {}
    }
}

/// Takes what a client has sent and nobody will look at. Closing a socket that holds unread bytes
/// would take back what was written to it.
fn read_away(client: &Stream) {
    let mut chunk = [0; 4096];
    for _ in 0..READ_AWAY_MAX {
        if !matches!(client.try_read(&mut chunk), Ok(1..)) {
            break;
        }
    }
}

impl Session {
    async fn log_in(
        shared: Arc<Shared>,
        worker: Rc<WorkerContext>,
        client: Rc<ClientConnection>,
        server: Option<Box<Stream>>,
    ) -> Result<Session, Ended> {
        // Before the server looks at privileges, so that a change of them can't be missed.
        let look = shared.privileges().begin_look();
        let addresses = login::addresses(&client, &shared).await?;
        let client_address = addresses.as_ref().map(|both| both.source);
        let server = match server {
            Some(server) => *server,
            None => connect_to_server(&shared, addresses).await?,
        };
        let logged_in = login::relay_login(&client, &server, &shared).await?;
        let privilege_epoch = shared.privileges().end_look(look);
        let flavour = Flavour {
            capabilities: logged_in.capabilities,
            login_epoch: privilege_epoch,
            schema_epoch: privilege_epoch,
            role_epoch: privilege_epoch,
            client: client_address
                .filter(|_| shared.link.tells_addresses())
                .map(|address| address.ip()),
        };
        let limits = &shared.limits;
        let prepared = PreparedStatements::new(
            limits.prepared_statements_max,
            limits.prepared_text_bytes_max,
        );
        let registration = Registration::log_in(&shared, logged_in.connection_id, client_address);
        let own = shared.query_cache.own_values();
        let mut state = SessionState::new(flavour, logged_in.mark, own)
            .with_transaction_reads(limits.transaction_reads);
        if shared.upstream.logins_run_code() {
            state.login_ran_code();
        }
        if shared.upstream.logins_set_next_transaction() {
            state.login_set_next_transaction();
        }
        let counts_from = counts::counted_from(&server);
        Ok(Session {
            server_contact_ms: shared.clock.now_ms(),
            server_contact_ms_max: limits.server_contact_ms_max,
            shared,
            worker,
            client,
            server,
            state,
            prepared,
            method: logged_in.method,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            client_has_finished: false,
            fill_text: Vec::new(),
            key: Vec::new(),
            unreplayed_hit: UnreplayedHit::default(),
            found_rows: None,
            awaited_proof_of: None,
            first_read: None,
            counted_rows: None,
            count_of_hit: Cell::default(),
            server_makes_snapshots: true,
            looked_again_for: None,
            fills_ended: None,
            look_again: None,
            early: None,
            pending_sets: PendingSets::default(),
            refusal: None,
            turn: None,
            registration,
            trace: None,
            needs_sampling: false,
            outdated: None,
            unseen_text: None,
            counts_from,
            definition_change: None,
        })
    }

    /// Handles messages until the session ends.
    async fn run(&mut self) -> Ended {
        loop {
            if let Err(ended) = self.handle_next().await {
                return ended;
            }
        }
    }

    async fn handle_next(&mut self) -> Result<(), Ended> {
        let step = self.next_step().await?;
        if self.turn.is_some() && !step.needs_server() {
            // Memory has the answer since.
            self.turn = None;
        }
        match step {
            Step::Requires(prerequisite)
                if self.state.is_early() && prerequisite.asks_the_server() =>
            {
                // It must be looked at again: what it rests on may be otherwise then.
                Box::pin(self.open_transaction(false)).await
            }
            Step::Requires(prerequisite) => self.fulfil(prerequisite).await,
            Step::Answered => Ok(()),
            Step::FinishHit { entry, written } => {
                self.client.write_all(&entry.response()[written..]).await?;
                self.end_trace(Stage::Write);
                Ok(())
            }
            Step::Send { packets, written } => {
                self.client.write_all(&packets[written..]).await?;
                self.trace = None;
                Ok(())
            }
            Step::Refuse { packets } => {
                self.client.write_all(&packets).await?;
                Err(Ended::closed())
            }
            Step::Verify { entry, written } => self.verify(&entry, written).await,
            Step::Discard(mut rest) => {
                let (walker, start) = &mut *rest;
                Box::pin(self.discard(walker, start)).await
            }
            Step::Assign(assigning) => {
                let assigned = self.assign(*assigning).await;
                self.turn = None;
                self.end_trace(Stage::Settle);
                assigned
            }
            Step::Exchange(exchange) => {
                let exchanged = self.exchange(exchange).await;
                self.turn = None;
                self.end_trace(Stage::Settle);
                exchanged
            }
            Step::Quit => {
                self.server
                    .write_all(&std::mem::take(&mut self.outbox))
                    .await?;
                Err(Ended::closed())
            }
        }
    }

    /// The step for the next message, as soon as there is one.
    async fn next_step(&mut self) -> Result<Step, Ended> {
        loop {
            let asks_at = self.asks_what_ran_at();
            if asks_at.is_some_and(|at| at <= Instant::now()) {
                return Ok(Step::Requires(Prerequisite::LearnSettings));
            }
            if !self.inbox.is_empty() {
                // A hit never yields. Without this, a client that sends many ahead would starve the
                // worker's other sessions.
                tokio::task::coop::consume_budget().await;
                if let Some(step) = self.step_from_inbox()? {
                    return Ok(step);
                }
            }
            // A statement that has come in part is under way as well.
            let is_busy = self.state.has_open_transaction() || !self.inbox.is_empty();
            if !self.client.awaits_next(is_busy, self.worker.is_stopping()) {
                return Err(Ended::closed());
            }
            let side = match asks_at {
                None => Some(either_readable(&self.client, &self.server).await?),
                Some(at) => self.readable_before(at).await?,
            };
            match side {
                None => {}
                // What came in the moment in which reading was stopped isn't run. It might begin
                // a transaction.
                Some(Side::Client) if !self.client.has_sent() => return Err(Ended::closed()),
                Some(Side::Client) => {
                    if let Some(step) = self.read_client()? {
                        return Ok(step);
                    }
                }
                Some(Side::Server) => self.relay_unasked().await?,
            }
        }
    }

    /// The side that has something to read, if one has before a moment.
    async fn readable_before(&self, at: Instant) -> io::Result<Option<Side>> {
        let either = either_readable(&self.client, &self.server);
        // Boxed: otherwise each idle session would carry the timer.
        Box::pin(timeout_at(at, either)).await.ok().transpose()
    }

    /// Reads from the client and handles the first message where it lies, in the worker's buffer.
    fn read_client(&mut self) -> Result<Option<Step>, Ended> {
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        let count = match self.client.try_read(&mut scratch) {
            Ok(0) => return Err(Ended::closed()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.worker.metrics.count_client_bytes_in(count);
        let chunk = &scratch[..count];
        if !self.inbox.is_empty() {
            self.inbox.extend(chunk);
            drop(scratch);
            self.mark(Stage::Read);
            return self.step_from_inbox();
        }
        self.draw_trace();
        let (used, step) = self.step_from(chunk)?;
        if used < count {
            self.inbox.extend(&chunk[used..]);
            self.needs_sampling = used > 0;
        }
        Ok(step)
    }

    fn step_from_inbox(&mut self) -> Result<Option<Step>, Ended> {
        if std::mem::take(&mut self.needs_sampling) {
            self.draw_trace();
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        let (used, step) = self.step_from(&inbox)?;
        self.needs_sampling = used > 0 && used < inbox.len();
        inbox.consume(used);
        self.inbox = inbox;
        Ok(step)
    }

    /// The step for the message at the start of `bytes`, and how many bytes it takes from them.
    /// Nothing is taken while the message is incomplete, or when something must be done first.
    fn step_from(&mut self, bytes: &[u8]) -> Result<(usize, Option<Step>), Ended> {
        let longest = self.shared.limits.statement_bytes_max + remora_wire::packet::HEADER_BYTES;
        match extent(bytes, 0) {
            Ok(Extent::Complete {
                bytes: end,
                single: true,
                ..
            }) if end <= longest => {
                let step = self.handle(&bytes[..end])?;
                let used = if step.leaves_the_message() { 0 } else { end };
                Ok((used, Some(step)))
            }
            Ok(Extent::Complete { bytes: end, .. }) => {
                let step = self.handle_long(&bytes[..end], true)?;
                let used = if step.leaves_the_message() { 0 } else { end };
                Ok((used, Some(step)))
            }
            // The start must tell what it is, and some clients send the header before all else. So
            // no message is looked at with less than what the longest has that is held.
            Ok(Extent::Partial { known_bytes })
                if known_bytes > longest && bytes.len() >= longest =>
            {
                let step = self.handle_long(bytes, false)?;
                let used = if step.leaves_the_message() {
                    0
                } else {
                    bytes.len()
                };
                Ok((used, Some(step)))
            }
            Ok(Extent::Partial { .. }) => Ok((0, None)),
            Err(error) => {
                tracing::debug!(%error, "a client's packet is out of order");
                Err(out_of_order())
            }
        }
    }

    /// Reads what comes next from the server, at least a byte; 0: it has closed.
    async fn read_server(&self, chunk: &mut [u8]) -> io::Result<usize> {
        loop {
            self.server.readable().await?;
            match self.server.try_read(chunk) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// The server speaks although nobody asked: it closes, or says why it will.
    async fn relay_unasked(&mut self) -> Result<(), Ended> {
        let mut chunk = vec![0; LAST_WORDS_BYTES];
        match self.server.try_read(&mut chunk) {
            Ok(0) => Err(Ended::closed()),
            Ok(count) => Ok(self.client.write_all(&chunk[..count]).await?),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What the server tells a client whose packets are numbered wrongly.
fn out_of_order() -> Ended {
    Ended::Misbehaved {
        error: ServerError::new(1156, "08S01", "Got packets out of order"),
        sequence: 1,
    }
}

async fn connect_to_server(shared: &Shared, addresses: Option<Addresses>) -> Result<Stream, Ended> {
    let endpoint = shared.link.endpoint();
    let reached = shared.upstream.reached();
    let error = match shared.link.connect(addresses).await {
        Ok(stream) => {
            shared.server_reached();
            return Ok(stream);
        }
        Err(error) => error,
    };
    if error.kind() == io::ErrorKind::TimedOut {
        shared.metrics.rare.count_limit(Limit::ConnectTime);
    }
    shared.server_unreachable(error.to_string(), reached);
    let number = error
        .raw_os_error()
        .map_or_else(|| error.to_string(), |n| n.to_string());
    let (code, what) = match endpoint {
        Endpoint::Tcp { .. } => (2003, "MySQL server on"),
        Endpoint::Unix(_) => (2002, "local MySQL server through socket"),
    };
    let message = format!("Can't connect to {what} '{endpoint}' ({number})");
    Err(Ended::Misbehaved {
        error: ServerError::new(code, "HY000", message),
        sequence: 0,
    })
}
