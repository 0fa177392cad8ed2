//! Why a session with the server ends.

use std::sync::Arc;

use remora_engine::reason::RestartReason;

use crate::check::Finding;
use crate::client::ClientError;

/// Why a session ended.
#[derive(Debug)]
pub(crate) enum Lost {
    /// A connection failed. Whether the log goes on is for the next session to prove.
    Connection(ClientError),
    /// The follower doesn't arrive where the server says that it is.
    Stuck,
    /// The server isn't set up to be followed.
    Unsuitable(Arc<[Finding]>),
    /// The log doesn't go on: everything is forgotten, and the next session starts over.
    Restart(RestartReason, String),
    /// The account has been given a privilege that only new connections have.
    PrivilegeGiven,
    /// Remora stops, and nothing is on its way any more.
    Stopped,
}

impl Lost {
    pub(crate) fn restart(reason: RestartReason, what: impl Into<String>) -> Lost {
        Lost::Restart(reason, what.into())
    }

    /// What happened, in a line.
    pub(crate) fn describe(&self) -> String {
        match self {
            Lost::Connection(error) => error.to_string(),
            Lost::Stuck => "no event came although the server's log went on".to_owned(),
            Lost::Unsuitable(_) => "the server isn't set up to be followed".to_owned(),
            Lost::Restart(reason, what) => format!("{} ({what})", reason.describe()),
            Lost::PrivilegeGiven => {
                "the account has been given PROCESS, which new connections have".to_owned()
            }
            Lost::Stopped => "Remora stops".to_owned(),
        }
    }
}

impl From<ClientError> for Lost {
    fn from(error: ClientError) -> Lost {
        Lost::Connection(error)
    }
}
