//! The sessions that there are, for those who ask: written at login and logout, and when the server
//! has answered; never on a hit.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use remora_engine::reason::{Bypass, Outcome};

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

    /// One more; gives its number.
    pub(crate) fn add(&self, session: Arc<ListedSession>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.known().insert(number, session);
        number
    }

    /// It has ended.
    pub(crate) fn remove(&self, number: u64) {
        self.known().remove(&number);
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
    /// One that has just logged in, whose settings aren't known.
    pub(crate) fn new(
        connection_id: u32,
        client: Option<SocketAddr>,
        since_ms: u64,
    ) -> ListedSession {
        ListedSession {
            connection_id,
            client,
            since_ms,
            outcome: AtomicUsize::new(Outcome::Bypass(Bypass::SettingsUnknown).index()),
            server_statements: AtomicU64::new(0),
            names: Mutex::default(),
        }
    }

    /// The server has answered one more message.
    pub(crate) fn count_server_statement(&self) {
        self.server_statements.fetch_add(1, Ordering::Relaxed);
    }

    /// What a `SELECT` comes to for the session's sake.
    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        self.outcome.store(outcome.index(), Ordering::Relaxed);
    }

    /// Its account and default schema are these now.
    pub(crate) fn set_names(&self, account: Option<String>, schema: Option<String>) {
        *self.names() = Names { account, schema };
    }

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
