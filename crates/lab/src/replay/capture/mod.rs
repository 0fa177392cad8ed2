//! What clients said, from captured packets.
//!
//! | file | what it knows |
//! |---|---|
//! | `packets` | pcap and pcapng |
//! | `segment` | from a packet to a TCP segment |
//! | `stream` | a client's bytes in order: reordered, repeated, missing ones |
//! | `session` | MySQL's protocol |

mod packets;
mod segment;
mod session;
mod stream;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use super::event::{Item, Place, Read, ReadError, Record};
use packets::Packets;
use segment::Segment;
use session::{Said, Session};
use stream::{Brought, End, Stream};

const CUT_SHORT: &str = "a command whose end isn't in the capture";

/// Reads the client's side of the connections to a port.
pub(super) struct Capture<'a> {
    packets: Packets<'a>,
    port: u16,
    connections: HashMap<(SocketAddr, SocketAddr), Connection>,
    next_connection: u32,
    ready: VecDeque<Item>,
    has_ended: bool,
}

struct Connection {
    /// Given when it does something.
    number: Option<u32>,
    stream: Stream,
    session: Session,
    /// Kept then, so that a segment that comes once more doesn't begin it anew.
    has_ended: bool,
}

impl<'a> Capture<'a> {
    /// # Errors
    /// It doesn't begin like a capture.
    pub(super) fn new<R: std::io::Read + Send + 'a>(
        source: R,
        port: u16,
    ) -> Result<Capture<'a>, ReadError> {
        Ok(Capture {
            packets: Packets::new(source)?,
            port,
            connections: HashMap::new(),
            next_connection: 0,
            ready: VecDeque::new(),
            has_ended: false,
        })
    }

    fn take(&mut self, segment: Segment, captured_us: i64) {
        if segment.to.port() == self.port {
            self.take_question(segment, captured_us);
        } else if segment.from.port() == self.port
            && let Some(connection) = self.connections.get_mut(&(segment.to, segment.from))
            && !connection.has_ended
        {
            let mut said = Vec::new();
            connection
                .session
                .take_answer(segment.sequence, &segment.payload, &mut said);
            connection.has_ended = connection.session.has_ended();
            connection.tell(said, &mut self.next_connection, &mut self.ready);
        }
    }

    fn take_question(&mut self, segment: Segment, captured_us: i64) {
        let key = (segment.from, segment.to);
        let is_news = segment.is_first || !segment.payload.is_empty();
        if !is_news && !self.connections.contains_key(&key) {
            return;
        }
        let connection = self.connections.entry(key).or_insert_with(Connection::new);
        if connection.stream.is_other(&segment) {
            let mut old = std::mem::replace(connection, Connection::new());
            old.finish(&mut self.next_connection, &mut self.ready);
        }
        let Some(connection) = self
            .connections
            .get_mut(&key)
            .filter(|known| !known.has_ended)
        else {
            return;
        };
        let brought = connection.stream.take(segment, captured_us);
        connection.take(&brought, &mut self.next_connection, &mut self.ready);
    }

    /// What is left when the last packet has been read.
    fn finish(&mut self) {
        let mut connections: Vec<_> = self
            .connections
            .drain()
            .map(|(_, connection)| connection)
            .collect();
        connections.sort_by_key(|connection| connection.number);
        for mut connection in connections {
            connection.finish(&mut self.next_connection, &mut self.ready);
        }
    }
}

impl Connection {
    fn new() -> Connection {
        Connection {
            number: None,
            stream: Stream::default(),
            session: Session::new(),
            has_ended: false,
        }
    }

    /// Hands over what a segment has brought.
    fn take(&mut self, brought: &Brought, next: &mut u32, ready: &mut VecDeque<Item>) {
        let is_whole = self.stream.is_whole();
        let mut said = Vec::new();
        for piece in &brought.pieces {
            self.session.take(piece, is_whole, &mut said);
        }
        if brought.end.is_some() {
            self.session.finish(&mut said);
        }
        self.tell(said, next, ready);
        match brought.end {
            _ if self.session.has_ended() => {}
            Some(End::Broken(why)) => ready.push_back(Item::LeftOut(why.into())),
            Some(End::Closed) if self.session.is_within_command() => {
                ready.push_back(Item::LeftOut(CUT_SHORT.into()));
            }
            _ => {}
        }
        self.has_ended |= self.session.has_ended() || brought.end.is_some();
    }

    /// No more of it will come.
    fn finish(&mut self, next: &mut u32, ready: &mut VecDeque<Item>) {
        if self.has_ended {
            return;
        }
        let mut brought = self.stream.finish();
        brought.end.get_or_insert(End::Closed);
        self.take(&brought, next, ready);
    }

    fn tell(&mut self, said: Vec<Said>, next: &mut u32, ready: &mut VecDeque<Item>) {
        for one in said {
            match one {
                Said::LeftOut(why) => ready.push_back(Item::LeftOut(why.into())),
                Said::Did(sent_us, schema, action) => {
                    let number = *self.number.get_or_insert_with(|| {
                        let number = *next;
                        *next = next.wrapping_add(1);
                        number
                    });
                    ready.push_back(Item::Record(Record {
                        sent_us,
                        is_whole_second: false,
                        connection: number,
                        schema,
                        action,
                    }));
                }
            }
        }
    }
}

impl Iterator for Capture<'_> {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if self.has_ended {
                return None;
            }
            let packet = match self.packets.next() {
                Some(Ok(packet)) => packet,
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.has_ended = true;
                    self.finish();
                    continue;
                }
            };
            match segment::segment(&packet) {
                Ok(Some(segment)) => self.take(segment, packet.captured_us),
                Ok(None) => {}
                Err(why) => {
                    return Some(Err(ReadError::malformed(Place::Packet(packet.number), why)));
                }
            }
        }
    }
}
