//! A small blocking client.
//!
//! It does little, fast, and keeps the bytes of each answer as they came, so that answers that came
//! different ways can be compared. Tests that want an independent opinion use `mysql_async`.
//!
//! | file | what it knows |
//! |---|---|
//! | `options` | whom to connect as and with which of the protocol's features |
//! | `login` | the connection phase |
//! | `transport` | TLS and compression |
//! | `prepared` | prepared statements and query attributes |
//! | `answer`, `binary` | packets and rows in the bytes of an answer |

mod answer;
mod binary;
mod error;
mod login;
mod options;
mod prepared;
mod transport;

use std::net::TcpStream;

pub use answer::{Answer, Packet, Packets};
pub use error::ClientError;
pub use options::ConnectOptions;
pub use prepared::{StatementId, Value};
use remora_wire::command::ResponseKind;
pub use remora_wire::compress::Algorithm;
use remora_wire::packet::put_message;
use remora_wire::response::ServerError;
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};
use remora_wire::{Capabilities, WireError};
use transport::Transport;

const READ_BYTES: usize = 16 << 10;

/// A connection that is logged in.
#[derive(Debug)]
pub struct Client {
    transport: Transport,
    capabilities: Capabilities,
    connection_id: u32,
    query_attributes: Vec<(String, String)>,
    output: Vec<u8>,
    /// Bytes received; the first `filled` are valid.
    input: Vec<u8>,
    filled: usize,
}

impl Client {
    /// Connects and logs in.
    pub fn connect(options: &ConnectOptions) -> Result<Client, ClientError> {
        let socket = TcpStream::connect_timeout(&options.address, options.timeout)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(options.timeout))?;
        socket.set_write_timeout(Some(options.timeout))?;
        let mut client = Client {
            transport: Transport::new(socket),
            capabilities: Capabilities(0),
            connection_id: 0,
            query_attributes: options.query_attributes.clone(),
            output: Vec::new(),
            input: vec![0; READ_BYTES],
            filled: 0,
        };
        if options.tls_first {
            client.transport.start_tls()?;
        }
        client.log_in(options)?;
        Ok(client)
    }

    /// Receives a piece; gives where it begins.
    fn receive(&mut self) -> Result<usize, ClientError> {
        if self.input.len() - self.filled < READ_BYTES / 2 {
            self.input.resize(self.input.len() * 2, 0);
        }
        let start = self.filled;
        self.filled += self.transport.receive(&mut self.input, start)?;
        Ok(start)
    }

    /// The server's number of this connection.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The flags that both sides use.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The socket, for tests that send bytes of their own.
    pub fn stream(&self) -> &TcpStream {
        self.transport.socket()
    }

    /// Sends a statement and receives its whole answer.
    ///
    /// # Errors
    /// An ERR packet is [`ClientError::Server`]; [`Client::answer_bytes`] still gives the answer
    /// then.
    pub fn query(&mut self, text: &str) -> Result<Answer<'_>, ClientError> {
        self.query_raw(text.as_bytes())
    }

    /// The same for text in any character set.
    pub fn query_raw(&mut self, text: &[u8]) -> Result<Answer<'_>, ClientError> {
        if self.capabilities.has(Capabilities::QUERY_ATTRIBUTES) {
            let mut body = self.query_prefix();
            body.extend_from_slice(text);
            return self.command(0x03, &body, ResponseKind::Results);
        }
        self.command(0x03, text, ResponseKind::Results)
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
        expect: ResponseKind,
    ) -> Result<Answer<'_>, ClientError> {
        let mut payload = Vec::with_capacity(body.len() + 1);
        payload.push(byte);
        payload.extend_from_slice(body);
        self.output.clear();
        put_message(&mut self.output, 0, &payload);
        self.filled = 0;
        self.transport.send_command(&self.output)?;
        let summary = self.receive_answer(expect)?;
        if let Ending::Err(_) = summary.ending {
            let last = Packets(self.answer_bytes()).last();
            let payload = last.map(|packet| packet.payload).unwrap_or_default();
            return Err(ClientError::Server(ServerError::parse(payload)?));
        }
        Ok(Answer {
            bytes: &self.input[..self.filled],
            summary,
            capabilities: self.capabilities,
        })
    }

    fn receive_answer(&mut self, expect: ResponseKind) -> Result<Summary, ClientError> {
        let mut walker = ResponseWalker::new(expect, self.capabilities);
        if let (_, Progress::Done(summary)) = walker.feed(&[])? {
            return Ok(summary);
        }
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
