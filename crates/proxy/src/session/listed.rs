//! The sessions that there are, for those who ask: written at login and logout, and when the server
//! has answered; never on a hit.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::settings::Fingerprint;
use super::state::SessionState;
use crate::reason::{Bypass, Outcome};
use crate::shared::Shared;

/// All sessions that are logged in. There are no more than connections may be open.
#[derive(Debug, Default)]
pub struct Sessions {
    known: Mutex<BTreeMap<u64, Arc<ListedSession>>>,
    next: AtomicU64,
}

impl Sessions {
    /// Every one, with a number in the order of the logins.
    pub(crate) fn all(&self) -> Vec<(u64, Arc<ListedSession>)> {
        let known = self.known();
        known
            .iter()
            .map(|(number, one)| (*number, Arc::clone(one)))
            .collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ListedSession>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What others can see of a session.
#[derive(Debug)]
pub(crate) struct ListedSession {
    /// The connection's number on the server.
    pub(crate) connection_id: u32,
    /// Where the client is; none on a Unix socket.
    pub(crate) client: Option<SocketAddr>,
    /// When it logged in, milliseconds of Remora's clock.
    pub(crate) since_ms: u64,
    /// The outcome that a `SELECT` has for the session's sake: its index, or that of a hit if it
    /// can be one.
    outcome: AtomicUsize,
    /// Statements and other messages that the server answered.
    server_statements: AtomicU64,
    names: Mutex<Names>,
}

/// Of the settings, what is shown.
#[derive(Debug, Default)]
struct Names {
    account: Option<String>,
    schema: Option<String>,
}

/// What a session is and has now.
#[derive(Debug)]
pub(crate) struct AboutSession {
    pub(crate) account: Option<String>,
    pub(crate) schema: Option<String>,
    /// Why nothing is cached for it; `None`: it is.
    pub(crate) bypass: Option<Bypass>,
}

impl ListedSession {
    /// What it is and has.
    pub(crate) fn about(&self) -> AboutSession {
        let outcome = Outcome::all().get(self.outcome.load(Ordering::Relaxed));
        let names = self.names();
        AboutSession {
            account: names.account.clone(),
            schema: names.schema.clone(),
            bypass: match outcome {
                Some(Outcome::Bypass(why)) => Some(*why),
                _ => None,
            },
        }
    }

    /// Statements and other messages that the server answered.
    pub(crate) fn server_statements(&self) -> u64 {
        self.server_statements.load(Ordering::Relaxed)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's own place among them, for as long as it lives.
pub(super) struct Registration {
    shared: Arc<Shared>,
    number: u64,
    listed: Arc<ListedSession>,
    /// The fingerprint whose names are listed.
    fingerprint: Option<u64>,
}

impl Registration {
    /// A session has logged in.
    pub(super) fn log_in(
        shared: &Arc<Shared>,
        connection_id: u32,
        client: Option<SocketAddr>,
    ) -> Registration {
        let listed = Arc::new(ListedSession {
            connection_id,
            client,
            since_ms: shared.clock.now_ms(),
            outcome: AtomicUsize::new(Outcome::Bypass(Bypass::SettingsUnknown).index()),
            server_statements: AtomicU64::new(0),
            names: Mutex::default(),
        });
        let number = shared.sessions.next.fetch_add(1, Ordering::Relaxed);
        shared.sessions.known().insert(number, Arc::clone(&listed));
        Registration {
            shared: Arc::clone(shared),
            number,
            listed,
            fingerprint: None,
        }
    }

    /// The connection's number on the server.
    pub(super) fn connection_id(&self) -> u32 {
        self.listed.connection_id
    }

    /// The server has answered a message of the client's.
    pub(super) fn answered(&self) {
        self.listed
            .server_statements
            .fetch_add(1, Ordering::Relaxed);
    }

    /// The session may be another than before.
    pub(super) fn update(&mut self, state: &SessionState) {
        let outcome = match state.scope() {
            Ok(_) => Outcome::Hit,
            Err(why) => Outcome::Bypass(why),
        };
        self.listed
            .outcome
            .store(outcome.index(), Ordering::Relaxed);
        let known = state.fingerprint();
        let id = known.map(|known| known.id);
        if id != self.fingerprint {
            self.fingerprint = id;
            self.rename(known.map(|known| &**known));
        }
    }

    fn rename(&self, known: Option<&Fingerprint>) {
        let mut names = self.listed.names();
        *names = Names {
            account: known.and_then(|known| known.account.clone()),
            schema: known.and_then(|known| known.schema.clone()),
        };
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.sessions.known().remove(&self.number);
    }
}
