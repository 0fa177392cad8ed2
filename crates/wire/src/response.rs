//! OK, ERR and EOF packets. Source: MySQL internals, "Generic Response Packets".

use crate::packet::put_message;
use crate::reader::Reader;
use crate::{StatusFlags, WireError};

/// First byte of an OK packet.
pub const OK_MARK: u8 = 0x00;
/// First byte of an EOF packet, and of the OK packet that ends a result set in its place.
pub const EOF_MARK: u8 = 0xfe;
/// First byte of an ERR packet.
pub const ERR_MARK: u8 = 0xff;
/// First byte of a request for a local file.
pub const LOCAL_FILE_MARK: u8 = 0xfb;
/// An EOF packet's payload is shorter than this, bytes; a longer one that begins alike is a row.
pub const EOF_BYTES_BELOW: usize = 9;
/// The error code of MariaDB's progress reports, which are no errors and end nothing.
pub const PROGRESS_CODE: u16 = 0xffff;

/// Length of an SQLSTATE, bytes.
const SQL_STATE_BYTES: usize = 5;

/// What an OK or EOF packet says of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndMark {
    /// The session's status flags.
    pub status: StatusFlags,
    /// Number of warnings that the statement left.
    pub warnings: u16,
}

impl EndMark {
    /// From the payload of an OK packet (either first byte); its start is enough.
    pub fn from_ok(payload: &[u8]) -> Result<EndMark, WireError> {
        let mut reader = Reader::new(payload);
        reader.u8("OK packet")?;
        reader.length("OK packet's affected rows")?;
        reader.length("OK packet's last insert id")?;
        let status = StatusFlags(reader.u16("OK packet's status")?);
        let warnings = reader.u16("OK packet's warnings")?;
        Ok(EndMark { status, warnings })
    }

    /// From the payload of an EOF packet.
    pub fn from_eof(payload: &[u8]) -> Result<EndMark, WireError> {
        let mut reader = Reader::new(payload);
        reader.u8("EOF packet")?;
        let warnings = reader.u16("EOF packet's warnings")?;
        let status = StatusFlags(reader.u16("EOF packet's status")?);
        Ok(EndMark { status, warnings })
    }
}

/// An error as the protocol carries it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (error {code}, SQLSTATE {sql_state})")]
pub struct ServerError {
    /// MySQL's error number.
    pub code: u16,
    /// Five characters of SQLSTATE.
    pub sql_state: String,
    /// The text.
    pub message: String,
}

impl ServerError {
    /// An error of Remora's own making, in the server's form.
    pub fn new(code: u16, sql_state: &str, message: impl Into<String>) -> ServerError {
        ServerError {
            code,
            sql_state: sql_state.to_owned(),
            message: message.into(),
        }
    }

    /// From the payload of an ERR packet.
    pub fn parse(payload: &[u8]) -> Result<ServerError, WireError> {
        let mut reader = Reader::new(payload);
        if reader.u8("ERR packet")? != ERR_MARK {
            return Err(WireError::Malformed("ERR packet"));
        }
        let code = reader.u16("ERR packet's code")?;
        let mut sql_state = "HY000".to_owned();
        if reader.rest().first() == Some(&b'#') {
            reader.u8("ERR packet's SQLSTATE mark")?;
            let state = reader.bytes(SQL_STATE_BYTES, "ERR packet's SQLSTATE")?;
            sql_state = String::from_utf8_lossy(state).into_owned();
        }
        let message = String::from_utf8_lossy(reader.rest()).into_owned();
        Ok(ServerError {
            code,
            sql_state,
            message,
        })
    }

    /// The complete packet, numbered `sequence`.
    pub fn packet(&self, sequence: u8) -> Vec<u8> {
        let mut payload = vec![ERR_MARK];
        payload.extend_from_slice(&self.code.to_le_bytes());
        payload.push(b'#');
        // Exactly five bytes, or the message would begin in the wrong place.
        let state = self.sql_state.bytes().chain(std::iter::repeat(b'0'));
        payload.extend(state.take(SQL_STATE_BYTES));
        payload.extend_from_slice(self.message.as_bytes());
        let mut packet = Vec::with_capacity(payload.len() + 4);
        put_message(&mut packet, sequence, &payload);
        packet
    }
}
