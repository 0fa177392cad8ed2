//! The bare responder: the limit for a hit.
//!
//! It greets like a server, lets everybody in, and answers each `COM_QUERY` with the same stored
//! bytes. It looks at nothing but packet lengths, so no cache in front of a server can answer a
//! query with less work: one wait, one read and one write. One thread accepts and hands connections
//! to the others in turn, as Remora does.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::Context as _;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use remora_wire::Capabilities;
use remora_wire::handshake::Greeting;
use remora_wire::packet::{Extent, HEADER_BYTES, extent, put_message};

const WAKE: Token = Token(usize::MAX);
const READ_BYTES: usize = 16 << 10;
/// The longest message that is taken, bytes.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// An OK packet with the number 1: nothing changed, autocommit.
const OK: [u8; 11] = [7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
/// The same at the end of a login.
const LOGGED_IN: [u8; 11] = [7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;

/// What to say.
#[derive(Debug, Clone)]
pub struct Script {
    /// The version to greet with, e.g. `10.11.6-MariaDB`.
    pub server_version: String,
    /// The whole answer to a query: a result set whose columns and rows end with EOF packets.
    pub answer: Vec<u8>,
}

/// Serves until the process ends.
pub fn serve(address: SocketAddr, threads: usize, script: Script) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(address).with_context(|| format!("can't listen on {address}"))?;
    let script = Arc::new(script);
    let mut workers = Vec::new();
    for _ in 0..threads.max(1) {
        let (sender, receiver) = channel();
        let mut worker = Worker::new(receiver, Arc::clone(&script))?;
        let waker = Waker::new(worker.poll.registry(), WAKE).context("no waker")?;
        workers.push((sender, waker));
        std::thread::spawn(move || worker.run());
    }
    accept(&listener, &workers, &script)
}

fn accept(
    listener: &TcpListener,
    workers: &[(Sender<TcpStream>, Waker)],
    script: &Script,
) -> anyhow::Result<()> {
    let greeting = greeting(script);
    for (sender, waker) in workers.iter().cycle() {
        let (mut stream, _) = listener.accept().context("can't accept")?;
        let ready = stream
            .write_all(&greeting)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| stream.set_nonblocking(true));
        if ready.is_ok() && sender.send(TcpStream::from_std(stream)).is_ok() {
            waker.wake().context("can't wake a worker")?;
        }
    }
    Ok(())
}

fn greeting(script: &Script) -> Vec<u8> {
    let capabilities = Capabilities::MYSQL
        .with(Capabilities::PROTOCOL_41)
        .with(Capabilities::SECURE_CONNECTION)
        .with(Capabilities::PLUGIN_AUTH)
        .with(Capabilities::TRANSACTIONS)
        .with(Capabilities::MULTI_STATEMENTS)
        .with(Capabilities::MULTI_RESULTS)
        .with(Capabilities::CONNECT_WITH_DB);
    let greeting = Greeting {
        server_version: script.server_version.clone(),
        connection_id: 1,
        salt: b"aaaaaaaabbbbbbbbbbbb".to_vec(),
        capabilities,
        collation: 45,
        status: 2,
        plugin: remora_wire::auth::NATIVE_PASSWORD.to_owned(),
    };
    let mut packet = Vec::new();
    put_message(&mut packet, 0, &greeting.payload());
    packet
}

struct Connection {
    stream: TcpStream,
    logged_in: bool,
    /// The beginning of a message whose rest has not come.
    received: Vec<u8>,
    /// What the socket did not take at once.
    unsent: Vec<u8>,
}

struct Worker {
    poll: Poll,
    new: Receiver<TcpStream>,
    script: Arc<Script>,
    connections: Vec<Option<Connection>>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Worker {
    fn new(new: Receiver<TcpStream>, script: Arc<Script>) -> anyhow::Result<Worker> {
        Ok(Worker {
            poll: Poll::new().context("no epoll")?,
            new,
            script,
            connections: Vec::new(),
            input: vec![0; READ_BYTES],
            output: Vec::new(),
        })
    }

    fn run(&mut self) {
        let mut events = Events::with_capacity(1_024);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &events {
                let token = event.token();
                if token == WAKE {
                    self.take_new();
                } else if self.serve(token.0).is_err() {
                    self.connections[token.0] = None;
                }
            }
        }
    }

    fn take_new(&mut self) {
        while let Ok(mut stream) = self.new.try_recv() {
            let free = self.connections.iter().position(Option::is_none);
            let place = free.unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self
                .poll
                .registry()
                .register(&mut stream, Token(place), interest)
                .is_ok()
            {
                self.connections[place] = Some(Connection {
                    stream,
                    logged_in: false,
                    received: Vec::new(),
                    unsent: Vec::new(),
                });
            }
        }
    }

    /// Sends what is left, then reads and answers. An error, or the client's leaving, ends the
    /// connection.
    fn serve(&mut self, place: usize) -> std::io::Result<()> {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return Ok(());
        };
        connection.flush()?;
        loop {
            let count = match connection.stream.read(&mut self.input) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            self.output.clear();
            connection.answer(&self.input[..count], &self.script, &mut self.output)?;
            connection.send(&self.output)?;
            // A read that did not fill the buffer has emptied the socket; the next bytes are a new
            // event.
            if count < self.input.len() {
                return Ok(());
            }
        }
    }
}

impl Connection {
    fn answer(&mut self, new: &[u8], script: &Script, out: &mut Vec<u8>) -> std::io::Result<()> {
        if self.received.is_empty() {
            let used = self.answer_messages(new, script, out)?;
            self.received.extend_from_slice(&new[used..]);
            return Ok(());
        }
        self.received.extend_from_slice(new);
        let received = std::mem::take(&mut self.received);
        let used = self.answer_messages(&received, script, out)?;
        self.received = received;
        self.received.drain(..used);
        Ok(())
    }

    /// Answers the complete messages; gives how many bytes they were.
    fn answer_messages(
        &mut self,
        bytes: &[u8],
        script: &Script,
        out: &mut Vec<u8>,
    ) -> std::io::Result<usize> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let sequence = u8::from(!self.logged_in);
            match extent(rest, sequence).map_err(std::io::Error::other)? {
                Extent::Partial { known_bytes } if known_bytes > MESSAGE_BYTES_MAX => {
                    return Err(ErrorKind::InvalidData.into());
                }
                Extent::Partial { .. } => return Ok(at),
                Extent::Complete { bytes: length, .. } => {
                    match (self.logged_in, rest.get(HEADER_BYTES)) {
                        (false, _) => {
                            self.logged_in = true;
                            out.extend_from_slice(&LOGGED_IN);
                        }
                        (true, Some(&COM_QUERY)) => out.extend_from_slice(&script.answer),
                        (true, Some(&COM_QUIT)) => return Err(ErrorKind::UnexpectedEof.into()),
                        (true, _) => out.extend_from_slice(&OK),
                    }
                    at += length;
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let sent = write_some(&mut self.stream, bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if !self.unsent.is_empty() {
            let sent = write_some(&mut self.stream, &self.unsent)?;
            self.unsent.drain(..sent);
        }
        Ok(())
    }
}

/// Writes until all is written or the socket takes no more.
fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
