//! What can go wrong between a client and its server.

use remora_wire::WireError;
use remora_wire::response::ServerError;

/// Why a statement or a connection failed.
#[derive(Debug)]
pub enum ClientError {
    /// The connection failed or ended.
    Io(std::io::Error),
    /// The peer broke the protocol.
    Wire(WireError),
    /// The server answered with an error. The connection can be used further.
    Server(ServerError),
}

impl ClientError {
    /// The server's error number, if it answered at all.
    pub fn code(&self) -> Option<u16> {
        match self {
            ClientError::Server(error) => Some(error.code),
            ClientError::Io(_) | ClientError::Wire(_) => None,
        }
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientError::Io(error) => write!(f, "connection: {error}"),
            ClientError::Wire(error) => write!(f, "protocol broken by the server: {error}"),
            ClientError::Server(error) => write!(f, "server: {error}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> ClientError {
        ClientError::Io(error)
    }
}

impl From<WireError> for ClientError {
    fn from(error: WireError) -> ClientError {
        ClientError::Wire(error)
    }
}
