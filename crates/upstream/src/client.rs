//! A small client for Remora's own connections to the server: questions, and the binary log.
//!
//! One command at a time, every answer within a time limit and a size limit. After an error of the
//! connection (anything but [`ClientError::Server`]) the connection can't be used any more.

mod login;

use std::fmt;
use std::io;
use std::time::Duration;

use remora_net::Stream;
use remora_net::tls::RsaError;
use remora_wire::packet::{HEADER_BYTES, Header, put_message};
use remora_wire::reader::Reader;
use remora_wire::response::{
    EOF_BYTES_BELOW, EOF_MARK, ERR_MARK, EndMark, LOCAL_FILE_MARK, OK_MARK, ServerError,
};
use remora_wire::rows::{Row, parse_text_row};
use remora_wire::{Capabilities, StatusFlags, WireError};
use tokio::time::timeout;

use crate::link::{ServerLink, TlsRefused};

/// `COM_QUIT`.
const QUIT: u8 = 0x01;
/// `COM_QUERY`.
const QUERY: u8 = 0x03;
/// `COM_BINLOG_DUMP`.
const BINLOG_DUMP: u8 = 0x12;
/// `COM_REGISTER_SLAVE`.
const REGISTER_REPLICA: u8 = 0x15;
/// `utf8mb4_general_ci`, so that names come as UTF-8.
const COLLATION: u8 = 45;
/// What one read takes from the socket at most, bytes.
const READ_BYTES: usize = 64 << 10;
/// The longest message of an answer to a question, bytes. InnoDB's status alone can have 1 MiB.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// What stays allocated between messages, bytes.
const PAYLOAD_BYTES_KEPT: usize = 1 << 20;
/// Columns of an answer to a question.
const COLUMNS_MAX: usize = 1024;

/// What Remora asks for. No `DEPRECATE_EOF`, no compression: the answers stay simple.
const CAPABILITIES: Capabilities = Capabilities::MYSQL
    .with(Capabilities::PROTOCOL_41)
    .with(Capabilities::TRANSACTIONS)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH);

/// Why a connection of Remora's own or a question on it failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The network, or the server went away.
    #[error("the connection to the server failed: {0}")]
    Io(#[from] io::Error),
    /// No answer in time.
    #[error("the server did not answer within {0:?}")]
    Timeout(Duration),
    /// Bytes that break the protocol.
    #[error("the server's answer can't be read: {0}")]
    Wire(#[from] WireError),
    /// The server answered with an error.
    #[error("the server answered: {0}")]
    Server(ServerError),
    /// The account needs an authentication that Remora doesn't have.
    #[error(
        "the account of `follow.user` uses the authentication plugin {0}; Remora's own \
         connections know caching_sha2_password, sha256_password and mysql_native_password"
    )]
    Authentication(String),
    /// The password can't be sent.
    #[error("the password of `follow.user` can't be sent to the server: {0}")]
    Password(RsaError),
    /// The configuration wants TLS, and there can be none.
    #[error(transparent)]
    Tls(#[from] TlsRefused),
    /// An answer beyond the limits, or of another shape than the question has.
    #[error("the server's answer has an unexpected shape: {0}")]
    Answer(&'static str),
}

impl ClientError {
    /// The server's error number, if the server answered with an error.
    pub fn server_code(&self) -> Option<u16> {
        match self {
            Self::Server(error) => Some(error.code),
            _ => None,
        }
    }
}

/// The account that Remora follows the server with.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The account's name.
    pub user: String,
    /// Its password; may be empty. Never printed.
    pub password: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A message of the binary log's stream.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its payload, or the beginning of it.
    pub kept: &'a [u8],
    /// Length of the whole payload, bytes.
    pub payload_bytes: u64,
}

impl Message<'_> {
    /// Whether all of it was kept.
    pub fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.payload_bytes
    }
}

/// A connection that is logged in.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    /// What was read and not yet used lies at `input_start..input_end`.
    input: Vec<u8>,
    input_start: usize,
    input_end: usize,
    payload: Vec<u8>,
    sequence: u8,
    query_timeout: Duration,
    /// The server's version text.
    pub server_version: String,
}

impl Client {
    /// Connects and logs in, each within the link's time for that; over TLS, if the link wants it.
    pub async fn connect(
        link: &ServerLink,
        account: &Account,
        query_timeout: Duration,
    ) -> Result<Client, ClientError> {
        let stream = link.connect(None).await?;
        let connect_timeout = link.connect_timeout();
        let mut client = Client {
            stream,
            input: Vec::new(),
            input_start: 0,
            input_end: 0,
            payload: Vec::new(),
            sequence: 0,
            query_timeout,
            server_version: String::new(),
        };
        match timeout(connect_timeout, client.log_in(link, account)).await {
            Ok(result) => result?,
            Err(_) => return Err(ClientError::Timeout(connect_timeout)),
        }
        // Names in answers are to be UTF-8. Without a mode backslashes escape, as `literal` writes
        // them. MySQL reads a table's expressions under the mode of the session that opens it:
        // under NO_BACKSLASH_ESCAPES, 5.7 couldn't read an escaped quote, and told nothing of the
        // table.
        client.execute("SET NAMES utf8mb4").await?;
        // `init_connect` may have begun a transaction. Only then: the server counts each ROLLBACK.
        if client.is_in_transaction() {
            client.execute("ROLLBACK AND NO CHAIN NO RELEASE").await?;
        }
        // A server may have another default for each of these, or `init_connect` set it. A limit
        // would cut answers without a word; so would a lock that isn't waited for, as
        // `information_schema` then leaves the table out. In a transaction, MySQL 8.0 shows
        // definitions as they were when it began, and at READ UNCOMMITTED some that may be rolled
        // back.
        client
            .execute(
                "SET SESSION sql_mode = '', sql_select_limit = 18446744073709551615, \
                 autocommit = 1, lock_wait_timeout = 31536000",
            )
            .await?;
        client
            .execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            .await?;
        Ok(client)
    }

    /// Asks a question with at most `rows_max` rows of an answer.
    pub async fn query(&mut self, sql: &str, rows_max: usize) -> Result<Vec<Row>, ClientError> {
        self.query_lacking(sql, rows_max, 0).await
    }

    /// The same with a time limit of its own, for a question that is known to take long.
    pub async fn query_within(
        &mut self,
        sql: &str,
        rows_max: usize,
        limit: Duration,
    ) -> Result<Vec<Row>, ClientError> {
        self.ask_within(limit, sql, rows_max, 0).await
    }

    /// The same for an answer whose rows can lack so many of their last columns. `SHOW SLAVE HOSTS`
    /// of MySQL before 8.0 leaves the UUID of a replica out that hasn't told one.
    pub async fn query_lacking(
        &mut self,
        sql: &str,
        rows_max: usize,
        columns_lacking_max: usize,
    ) -> Result<Vec<Row>, ClientError> {
        self.ask_within(self.query_timeout, sql, rows_max, columns_lacking_max)
            .await
    }

    async fn ask_within(
        &mut self,
        limit: Duration,
        sql: &str,
        rows_max: usize,
        columns_lacking_max: usize,
    ) -> Result<Vec<Row>, ClientError> {
        if limit.is_zero() {
            // A timer would let an answer pass that is there at once.
            return Err(ClientError::Timeout(limit));
        }
        match timeout(limit, self.ask(sql, rows_max, columns_lacking_max)).await {
            Ok(result) => result,
            Err(_) => Err(ClientError::Timeout(limit)),
        }
    }

    /// Runs a statement whose answer holds nothing of interest.
    pub async fn execute(&mut self, sql: &str) -> Result<(), ClientError> {
        self.query(sql, 0).await.map(drop)
    }

    /// Whether the statement that was just executed was answered inside a transaction.
    fn is_in_transaction(&self) -> bool {
        let mark = EndMark::from_ok(&self.payload);
        mark.is_ok_and(|mark| mark.status.has(StatusFlags::IN_TRANSACTION))
    }

    /// Says goodbye, so that the server doesn't note a connection that broke.
    pub async fn quit(mut self) {
        // The server may be gone already.
        let _ = timeout(self.query_timeout, self.send(&[QUIT])).await;
    }

    /// Announces itself as a replica with this number (`COM_REGISTER_SLAVE`), so that it shows in
    /// `SHOW REPLICA HOSTS`.
    pub async fn register_replica(&mut self, server_id: u32) -> Result<(), ClientError> {
        let mut payload = vec![REGISTER_REPLICA];
        payload.extend_from_slice(&server_id.to_le_bytes());
        // Empty host, user and password; port, rank and master id 0.
        payload.extend_from_slice(&[0; 3 + 2 + 4 + 4]);
        let limit = self.query_timeout;
        let exchange = async {
            self.send(&payload).await?;
            self.next_answer().await
        };
        match timeout(limit, exchange).await {
            Ok(result) => result,
            Err(_) => Err(ClientError::Timeout(limit)),
        }
    }

    /// Asks for the binary log from `offset` of `file` on. Its events come by [`Self::next_event`].
    pub async fn dump_binlog(
        &mut self,
        file: &str,
        offset: u32,
        server_id: u32,
    ) -> Result<(), ClientError> {
        let mut payload = vec![BINLOG_DUMP];
        payload.extend_from_slice(&offset.to_le_bytes());
        payload.extend_from_slice(&0_u16.to_le_bytes());
        payload.extend_from_slice(&server_id.to_le_bytes());
        payload.extend_from_slice(file.as_bytes());
        self.send(&payload).await
    }

    /// The next message of the log: the event's bytes after the status byte. Of an event longer
    /// than `keep_bytes_max` only the beginning is kept. Waits up to `quiet_max` whenever nothing
    /// has come yet: a long event may take longer than that on a slow link. `heard_more` is called
    /// as more of such an event comes.
    pub async fn next_event(
        &mut self,
        keep_bytes_max: usize,
        quiet_max: Duration,
        heard_more: impl Fn(),
    ) -> Result<Message<'_>, ClientError> {
        let payload_bytes = self
            .next_message(keep_bytes_max + 1, Some(quiet_max), heard_more)
            .await?;
        match self.payload.first() {
            Some(&OK_MARK) => Ok(Message {
                kept: &self.payload[1..],
                payload_bytes: payload_bytes - 1,
            }),
            Some(&ERR_MARK) => Err(ClientError::Server(ServerError::parse(&self.payload)?)),
            Some(&EOF_MARK) => Err(ClientError::Io(io::ErrorKind::UnexpectedEof.into())),
            _ => Err(ClientError::Answer("a packet of the log that is no event")),
        }
    }

    async fn send(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let mut packet = Vec::with_capacity(payload.len() + HEADER_BYTES);
        put_message(&mut packet, 0, payload);
        self.stream.write_all(&packet).await?;
        Ok(())
    }

    async fn ask(
        &mut self,
        sql: &str,
        rows_max: usize,
        columns_lacking_max: usize,
    ) -> Result<Vec<Row>, ClientError> {
        let mut payload = vec![QUERY];
        payload.extend_from_slice(sql.as_bytes());
        self.send(&payload).await?;
        self.next_answer().await?;
        match self.payload.first() {
            Some(&OK_MARK) => return Ok(Vec::new()),
            Some(&LOCAL_FILE_MARK) => return Err(ClientError::Answer("asks for a file")),
            _ => {}
        }
        let columns = Reader::new(&self.payload).length("column count")?;
        let columns = usize::try_from(columns).unwrap_or(usize::MAX);
        if columns > COLUMNS_MAX {
            return Err(ClientError::Answer("too many columns"));
        }
        // Definitions and the EOF after them.
        for _ in 0..=columns {
            self.next_answer().await?;
        }
        let mut rows = Vec::new();
        loop {
            self.next_answer().await?;
            if self.payload.first() == Some(&EOF_MARK) && self.payload.len() < EOF_BYTES_BELOW {
                return Ok(rows);
            }
            if rows.len() >= rows_max {
                return Err(ClientError::Answer("too many rows"));
            }
            let row = (0..=columns_lacking_max.min(columns))
                .find_map(|lacking| parse_text_row(&self.payload, columns - lacking).ok());
            rows.push(row.ok_or(WireError::Malformed("text row"))?);
        }
    }

    /// Reads a message whole into `payload`; an ERR packet is an error.
    async fn next_answer(&mut self) -> Result<(), ClientError> {
        let payload_bytes = self.next_message(ANSWER_BYTES_MAX, None, || {}).await?;
        if payload_bytes > ANSWER_BYTES_MAX as u64 {
            return Err(ClientError::Answer("a message over the limit"));
        }
        match self.payload.first() {
            Some(&ERR_MARK) => Err(ClientError::Server(ServerError::parse(&self.payload)?)),
            Some(_) => Ok(()),
            None => Err(ClientError::Answer("an empty message")),
        }
    }

    /// Reads a message; up to `keep_bytes_max` of its payload stay in `payload`. Gives its length.
    async fn next_message(
        &mut self,
        keep_bytes_max: usize,
        quiet_max: Option<Duration>,
        heard_more: impl Fn(),
    ) -> Result<u64, ClientError> {
        self.payload.clear();
        self.payload.shrink_to(PAYLOAD_BYTES_KEPT);
        let mut payload_bytes = 0;
        loop {
            let header = loop {
                if let Some(header) = Header::peek(&self.input[self.input_start..self.input_end]) {
                    break header;
                }
                self.read_more(quiet_max).await?;
            };
            self.input_start += HEADER_BYTES;
            self.sequence = header.sequence.wrapping_add(1);
            payload_bytes += header.length as u64;
            let mut left = header.length;
            while left > 0 {
                if self.input_start == self.input_end {
                    self.read_more(quiet_max).await?;
                    heard_more();
                }
                let have = &self.input[self.input_start..self.input_end];
                let have = &have[..have.len().min(left)];
                let room = keep_bytes_max
                    .saturating_sub(self.payload.len())
                    .min(have.len());
                self.payload.extend_from_slice(&have[..room]);
                left -= have.len();
                self.input_start += have.len();
            }
            if !header.is_continued() {
                return Ok(payload_bytes);
            }
        }
    }

    /// Reads what is there, at least one byte, behind what isn't used yet. Waits up to `quiet_max`
    /// for it, if there is such a limit.
    async fn read_more(&mut self, quiet_max: Option<Duration>) -> Result<(), ClientError> {
        self.input.copy_within(self.input_start..self.input_end, 0);
        self.input_end -= self.input_start;
        self.input_start = 0;
        // It grows once: zeroing this much for each event would take longer than all else.
        let room = self.input_end + READ_BYTES;
        if self.input.len() < room {
            self.input.resize(room, 0);
        }
        let count = loop {
            match self.stream.try_read(&mut self.input[self.input_end..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => break other?,
            }
            let readable = self.stream.readable();
            match quiet_max {
                Some(limit) => timeout(limit, readable)
                    .await
                    .map_err(|_| ClientError::Timeout(limit))??,
                None => readable.await?,
            }
        };
        if count == 0 {
            return Err(ClientError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        self.input_end += count;
        Ok(())
    }
}

/// A field of a row as text; NULL and what isn't UTF-8 are `None`.
pub fn text(row: &Row, column: usize) -> Option<&str> {
    row.get(column)?
        .as_deref()
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
}

/// A string as an SQL literal, on a session of a [`Client`]: in UTF-8, and with backslashes that
/// escape.
pub fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use remora_net::{Endpoint, Keepalive};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const QUIET_MAX: Duration = Duration::from_secs(1);

    /// A client that is logged in, and its server.
    async fn connected() -> (Client, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
        };
        let keepalive = Keepalive::after_ms(60_000);
        let stream = Stream::connect(&endpoint, Duration::from_mins(1), keepalive).await;
        let (server, _) = listener.accept().await.unwrap();
        let client = Client {
            stream: stream.unwrap(),
            input: Vec::new(),
            input_start: 0,
            input_end: 0,
            payload: Vec::new(),
            sequence: 0,
            query_timeout: QUIET_MAX,
            server_version: String::new(),
        };
        (client, server)
    }

    /// Sends a message in pieces, for longer than [`QUIET_MAX`]. Gives the longest pause in that.
    async fn send_slowly(socket: &mut TcpStream, message: &[u8]) -> Duration {
        let mut longest = Duration::ZERO;
        let mut sent_at = Instant::now();
        for piece in message.chunks(message.len() / 12) {
            longest = longest.max(sent_at.elapsed());
            socket.write_all(piece).await.unwrap();
            sent_at = Instant::now();
            tokio::time::sleep(QUIET_MAX / 10).await;
        }
        longest
    }

    #[tokio::test]
    async fn an_event_may_take_longer_than_a_server_may_be_silent() {
        let mut message = Vec::new();
        put_message(&mut message, 0, &[OK_MARK; 5_000]);
        loop {
            let (mut client, mut server) = connected().await;
            let (longest, event) = tokio::join!(
                send_slowly(&mut server, &message),
                client.next_event(10_000, QUIET_MAX, || {})
            );
            // A machine that stands still for so long proves nothing.
            if longest < QUIET_MAX / 2 {
                assert_eq!(event.unwrap().payload_bytes, 4_999);
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_is_silent_for_too_long_is_given_up() {
        let (mut client, _server) = connected().await;
        let limit = Duration::from_millis(1);
        let event = client.next_event(10, limit, || {}).await;
        assert!(matches!(event, Err(ClientError::Timeout(_))), "{event:?}");
    }
}
