//! A small blocking client of the text protocol.
//!
//! It does little, fast, and keeps the bytes of each answer as they came, so that answers that came
//! different ways can be compared. Tests that want an independent opinion use `mysql_async`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use remora_wire::auth::{AuthPacket, NATIVE_PASSWORD, native_password};
use remora_wire::command::Expect;
use remora_wire::handshake::{Greeting, Login};
use remora_wire::packet::{Extent, HEADER_BYTES, Header, extent, put_message};
use remora_wire::response::{ERR_MARK, OK_MARK, ServerError};
use remora_wire::rows::{Row, column_name, parse_text_row};
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};
use remora_wire::{Capabilities, StatusFlags, WireError};

/// What a client asks for at least.
const WANTED: u64 = Capabilities::MYSQL.0
    | Capabilities::PROTOCOL_41.0
    | Capabilities::SECURE_CONNECTION.0
    | Capabilities::PLUGIN_AUTH.0
    | Capabilities::TRANSACTIONS.0
    | Capabilities::MULTI_STATEMENTS.0
    | Capabilities::MULTI_RESULTS.0
    | Capabilities::CONNECT_WITH_DB.0;

/// `utf8mb4_general_ci`.
const COLLATION: u8 = 45;
const PACKET_BYTES_MAX: u32 = 64 << 20;
const READ_BYTES: usize = 16 << 10;

/// Whom to connect as, and where.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The server's or the proxy's address.
    pub address: SocketAddr,
    /// The account's name.
    pub user: String,
    /// The account's password, sent by `mysql_native_password`.
    pub password: String,
    /// The default schema; empty for none.
    pub schema: String,
    /// Whether result sets shall end with an OK packet in place of EOF.
    pub deprecate_eof: bool,
    /// Longest wait for the connection and for each piece of an answer.
    pub timeout: Duration,
}

impl ConnectOptions {
    /// An account at an address, without a default schema.
    pub fn new(address: SocketAddr, user: &str, password: &str) -> ConnectOptions {
        ConnectOptions {
            address,
            user: user.to_owned(),
            password: password.to_owned(),
            schema: String::new(),
            deprecate_eof: true,
            timeout: Duration::from_secs(30),
        }
    }

    /// The same with a default schema.
    #[must_use]
    pub fn schema(mut self, schema: &str) -> ConnectOptions {
        schema.clone_into(&mut self.schema);
        self
    }

    /// The same account elsewhere.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> ConnectOptions {
        self.address = address;
        self
    }

    /// Connects and logs in.
    pub fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(self)
    }
}

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

/// A connection that is logged in.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    capabilities: Capabilities,
    connection_id: u32,
    output: Vec<u8>,
    /// Bytes received; the first `filled` are valid.
    input: Vec<u8>,
    filled: usize,
}

impl Client {
    /// Connects and logs in.
    pub fn connect(options: &ConnectOptions) -> Result<Client, ClientError> {
        let stream = TcpStream::connect_timeout(&options.address, options.timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(options.timeout))?;
        stream.set_write_timeout(Some(options.timeout))?;
        let mut client = Client {
            stream,
            capabilities: Capabilities(WANTED),
            connection_id: 0,
            output: Vec::new(),
            input: vec![0; READ_BYTES],
            filled: 0,
        };
        client.log_in(options)?;
        Ok(client)
    }

    fn log_in(&mut self, options: &ConnectOptions) -> Result<(), ClientError> {
        let payload = self.message(0)?;
        if payload.first() == Some(&ERR_MARK) {
            return Err(ClientError::Server(ServerError::parse(&payload)?));
        }
        let greeting = Greeting::parse(&payload)?;
        let mut wanted = Capabilities(WANTED);
        if options.deprecate_eof {
            wanted = wanted.with(Capabilities::DEPRECATE_EOF);
        }
        self.capabilities = wanted.and(greeting.capabilities).with(Capabilities::MYSQL);
        self.connection_id = greeting.connection_id;
        let login = Login {
            capabilities: self.capabilities,
            packet_bytes_max: PACKET_BYTES_MAX,
            collation: COLLATION,
            user: options.user.clone().into_bytes(),
            authentication: native_password(options.password.as_bytes(), &greeting.salt),
            schema: options.schema.clone().into_bytes(),
            plugin: NATIVE_PASSWORD.as_bytes().to_vec(),
        };
        self.stream.write_all(&login.packet(1))?;
        self.authenticate(options)
    }

    fn authenticate(&mut self, options: &ConnectOptions) -> Result<(), ClientError> {
        let mut sequence = 2;
        loop {
            let payload = self.message(sequence)?;
            match AuthPacket::parse(&payload)? {
                AuthPacket::Ok => return Ok(()),
                AuthPacket::Err => return Err(ClientError::Server(ServerError::parse(&payload)?)),
                AuthPacket::Switch { plugin, data } if plugin == NATIVE_PASSWORD.as_bytes() => {
                    let salt = data.strip_suffix(&[0]).unwrap_or(data);
                    let answer = native_password(options.password.as_bytes(), salt);
                    self.output.clear();
                    put_message(&mut self.output, sequence.wrapping_add(1), &answer);
                    self.stream.write_all(&self.output)?;
                    sequence = sequence.wrapping_add(2);
                }
                AuthPacket::Switch { .. } | AuthPacket::More(_) => {
                    return Err(WireError::Unsupported("an authentication plugin").into());
                }
            }
        }
    }

    /// Receives one message during the login.
    fn message(&mut self, sequence: u8) -> Result<Vec<u8>, ClientError> {
        loop {
            let received = &self.input[..self.filled];
            if let Extent::Complete { bytes, .. } = extent(received, sequence)? {
                let payload = remora_wire::packet::join_payload(&received[..bytes]);
                self.input.copy_within(bytes..self.filled, 0);
                self.filled -= bytes;
                return Ok(payload);
            }
            self.receive()?;
        }
    }

    /// Receives a piece; gives where it begins.
    fn receive(&mut self) -> Result<usize, ClientError> {
        if self.input.len() - self.filled < READ_BYTES / 2 {
            self.input.resize(self.input.len() * 2, 0);
        }
        let start = self.filled;
        let count = self.stream.read(&mut self.input[start..])?;
        if count == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        self.filled += count;
        Ok(start)
    }

    /// The server's number of this connection.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The socket, for tests that send bytes of their own.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a statement and receives its whole answer.
    ///
    /// # Errors
    /// An ERR packet is [`ClientError::Server`]; [`Client::answer_bytes`] still gives the answer then.
    pub fn query(&mut self, text: &str) -> Result<Answer<'_>, ClientError> {
        self.command(0x03, text.as_bytes(), Expect::Results)
    }

    /// Sends a statement; gives all bytes of its answer, whatever it is.
    pub fn query_bytes(&mut self, text: &str) -> Result<&[u8], ClientError> {
        match self.query(text) {
            Ok(_) | Err(ClientError::Server(_)) => Ok(self.answer_bytes()),
            Err(error) => Err(error),
        }
    }

    /// Sends a statement; gives the first field of its first row, `None` without a row or for NULL.
    pub fn query_value(&mut self, text: &str) -> Result<Option<String>, ClientError> {
        let rows = self.query(text)?.rows()?;
        let field = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next())
            .flatten();
        Ok(field.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Sends a command other than a statement: its byte, what follows, and what answers it.
    pub fn command(
        &mut self,
        byte: u8,
        body: &[u8],
        expect: Expect,
    ) -> Result<Answer<'_>, ClientError> {
        let mut payload = Vec::with_capacity(body.len() + 1);
        payload.push(byte);
        payload.extend_from_slice(body);
        self.output.clear();
        put_message(&mut self.output, 0, &payload);
        self.filled = 0;
        self.stream.write_all(&self.output)?;
        let summary = self.receive_answer(expect)?;
        if let Ending::Err(_) = summary.ending {
            let payload = Packets(self.answer_bytes()).last().unwrap_or_default();
            return Err(ClientError::Server(ServerError::parse(payload)?));
        }
        Ok(Answer {
            bytes: &self.input[..self.filled],
            summary,
            capabilities: self.capabilities,
        })
    }

    fn receive_answer(&mut self, expect: Expect) -> Result<Summary, ClientError> {
        let mut walker = ResponseWalker::new(expect, self.capabilities);
        loop {
            let start = self.receive()?;
            let piece = &self.input[start..self.filled];
            match walker.feed(piece)? {
                (used, Progress::Done(summary)) if used == piece.len() => return Ok(summary),
                (_, Progress::Done(_)) => {
                    return Err(WireError::Malformed("answer: bytes follow its end").into());
                }
                (_, Progress::LocalFile) => {
                    return Err(WireError::Unsupported("LOAD DATA LOCAL").into());
                }
                (_, Progress::More) => {}
            }
        }
    }

    /// All bytes of the last answer, headers included.
    pub fn answer_bytes(&self) -> &[u8] {
        &self.input[..self.filled]
    }
}

/// The payloads of single packets.
struct Packets<'a>(&'a [u8]);

impl<'a> Iterator for Packets<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let header = Header::peek(self.0)?;
        let (packet, rest) = self.0.split_at_checked(HEADER_BYTES + header.length)?;
        self.0 = rest;
        Some(&packet[HEADER_BYTES..])
    }
}

/// The answer to a statement that did not fail.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    bytes: &'a [u8],
    summary: Summary,
    capabilities: Capabilities,
}

impl<'a> Answer<'a> {
    /// All its bytes, headers included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How it ended.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// The session's status flags after it.
    pub fn status(&self) -> StatusFlags {
        self.summary
            .mark
            .map(|mark| mark.status)
            .unwrap_or_default()
    }

    /// Its rows; none if it is no result set. Of several result sets, the first.
    pub fn rows(&self) -> Result<Vec<Row>, ClientError> {
        let mut packets = Packets(self.bytes);
        let columns = Self::column_count(&mut packets);
        for _ in 0..columns {
            packets.next();
        }
        self.skip_eof(columns, &mut packets);
        let rows = packets.take_while(|payload| columns > 0 && !is_end_mark(payload));
        rows.map(|payload| parse_text_row(payload, columns).map_err(ClientError::from))
            .collect()
    }

    /// The names of its columns.
    pub fn column_names(&self) -> Result<Vec<String>, ClientError> {
        let mut packets = Packets(self.bytes);
        let columns = Self::column_count(&mut packets);
        let names = packets
            .take(columns)
            .map(|payload| Ok(column_name(payload)?));
        names.collect()
    }

    fn column_count(packets: &mut Packets<'_>) -> usize {
        match packets.next().and_then(|payload| payload.first()) {
            Some(&count) if count != OK_MARK && count < 0xfb => usize::from(count),
            _ => 0,
        }
    }

    fn skip_eof(&self, columns: usize, packets: &mut Packets<'_>) {
        if columns > 0 && !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            packets.next();
        }
    }
}

/// Rows here are below 16 MiB, so one that begins with 0xfe ends the result set.
fn is_end_mark(payload: &[u8]) -> bool {
    payload.first().is_some_and(|&first| first == 0xfe)
}
