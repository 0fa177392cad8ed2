//! A session's place among those that others can see.

use std::net::SocketAddr;
use std::sync::Arc;

use remora_engine::reason::Outcome;
use remora_engine::session::state::SessionState;

use crate::shared::{ListedSession, Shared};

/// A session's entry in [`Shared::sessions`], for as long as it lives.
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
        let since_ms = shared.clock.now_ms();
        let listed = Arc::new(ListedSession::new(connection_id, client, since_ms));
        let number = shared.sessions.add(Arc::clone(&listed));
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
        self.listed.count_server_statement();
    }

    /// The session may be another than before.
    pub(super) fn update(&mut self, state: &SessionState) {
        let outcome = match state.scope() {
            Ok(_) => Outcome::Hit,
            Err(why) => Outcome::Bypass(why),
        };
        self.listed.set_outcome(outcome);
        let known = state.fingerprint();
        let id = known.map(|known| known.id);
        if id != self.fingerprint {
            self.fingerprint = id;
            self.listed.set_names(
                known.and_then(|known| known.account.clone()),
                known.and_then(|known| known.schema.clone()),
            );
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.sessions.remove(self.number);
    }
}
