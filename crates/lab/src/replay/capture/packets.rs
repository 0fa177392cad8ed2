//! The packets of a capture file, pcap or pcapng.

use std::io::Read;

use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use crate::replay::event::{Place, ReadError};

/// Bytes that are read at once, and the most that a packet may have.
const BUFFER_BYTES: usize = 1 << 20;
const BUFFER_BYTES_MAX: usize = 64 << 20;

/// How often more is read for one packet: even the largest comes in fewer pieces.
const REFILLS_MAX: u32 = 10_000;

/// A captured packet.
#[derive(Debug, Clone)]
pub(super) struct Packet {
    /// From 1.
    pub(super) number: u64,
    /// Microseconds since 1970.
    pub(super) captured_us: i64,
    /// What its first bytes are: `LINKTYPE_*`.
    pub(super) link: i32,
    /// As far as it was captured.
    pub(super) bytes: Vec<u8>,
    /// Whether it was longer.
    pub(super) is_cut: bool,
}

/// How an interface's packets are read.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: i32,
    ticks_per_second: u64,
    offset_s: i64,
}

/// Reads packets one after another.
pub(super) struct Packets<'a> {
    reader: Box<dyn PcapReaderIterator + Send + 'a>,
    interfaces: Vec<Interface>,
    number: u64,
    buffer_bytes: usize,
    has_ended: bool,
}

impl<'a> Packets<'a> {
    /// # Errors
    /// It doesn't begin like a capture.
    pub(super) fn new<R: Read + Send + 'a>(source: R) -> Result<Packets<'a>, ReadError> {
        let reader = create_reader(BUFFER_BYTES, source)
            .map_err(|error| ReadError::last(Place::Packet(1), describe(&error)))?;
        Ok(Packets {
            reader,
            interfaces: Vec::new(),
            number: 0,
            buffer_bytes: BUFFER_BYTES,
            has_ended: false,
        })
    }

    fn read(&mut self) -> Result<Option<Packet>, ReadError> {
        for _ in 0..REFILLS_MAX {
            let place = Place::Packet(self.number + 1);
            let failure = match self.reader.next() {
                Ok((used, block)) => {
                    let packet = take(block, &mut self.interfaces, self.number + 1);
                    self.reader.consume(used);
                    match packet.map_err(|why| ReadError::malformed(place, why)) {
                        Ok(None) => continue,
                        outcome => {
                            self.number += 1;
                            return outcome;
                        }
                    }
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_)) => None,
                Err(PcapError::BufferTooSmall) if self.buffer_bytes < BUFFER_BYTES_MAX => {
                    self.buffer_bytes *= 2;
                    None
                }
                Err(error) => Some(describe(&error)),
            };
            if let Some(why) = failure {
                return Err(ReadError::last(place, why));
            }
            self.reader.grow(self.buffer_bytes);
            let refilled = self.reader.refill().map_err(|error| describe(&error));
            refilled.map_err(|why| ReadError::last(place, why))?;
        }
        Err(ReadError::last(
            Place::Packet(self.number + 1),
            "a block without an end",
        ))
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<Packet, ReadError>;

    fn next(&mut self) -> Option<Result<Packet, ReadError>> {
        if self.has_ended {
            return None;
        }
        let packet = self.read();
        self.has_ended = !matches!(
            &packet,
            Ok(Some(_))
                | Err(ReadError {
                    is_final: false,
                    ..
                })
        );
        packet.transpose()
    }
}

/// The packet in a block, if it holds one.
fn take(
    block: PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    number: u64,
) -> Result<Option<Packet>, String> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let is_nanosecond = header.is_nanosecond_precision();
            interfaces.push(Interface {
                link: header.network.0,
                ticks_per_second: if is_nanosecond {
                    1_000_000_000
                } else {
                    1_000_000
                },
                offset_s: 0,
            });
        }
        PcapBlockOwned::Legacy(block) => {
            let interface = interfaces
                .first()
                .copied()
                .ok_or("a packet before the head")?;
            let fraction = u64::from(block.ts_usec);
            let ticks = u64::from(block.ts_sec) * interface.ticks_per_second + fraction;
            let bytes = block.data;
            return Ok(Some(interface.packet(number, ticks, bytes, block.origlen)));
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => interfaces.push(Interface {
            link: block.linktype.0,
            ticks_per_second: block
                .ts_resolution()
                .filter(|ticks| *ticks > 0)
                .unwrap_or(1_000_000),
            offset_s: block.ts_offset(),
        }),
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            let interface = usize::try_from(block.if_id)
                .ok()
                .and_then(|at| interfaces.get(at));
            let interface = interface.ok_or("it names an interface that isn't described")?;
            let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
            let bytes = block.packet_data();
            return Ok(Some(interface.packet(number, ticks, bytes, block.origlen)));
        }
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            return Err("it has no time (a simple packet block)".to_owned());
        }
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
}

impl Interface {
    fn packet(self, number: u64, ticks: u64, bytes: &[u8], whole_bytes: u32) -> Packet {
        let us = i128::from(ticks) * 1_000_000 / i128::from(self.ticks_per_second.max(1))
            + i128::from(self.offset_s) * 1_000_000;
        Packet {
            number,
            captured_us: i64::try_from(us).unwrap_or_default(),
            link: self.link,
            bytes: bytes.to_vec(),
            is_cut: (bytes.len() as u64) < u64::from(whole_bytes),
        }
    }
}

/// What is wrong, without the bytes at which it was found.
fn describe(error: &PcapError<&[u8]>) -> String {
    match error {
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => {
            "the capture is cut short".to_owned()
        }
        PcapError::HeaderNotRecognized => "this is no capture (pcap or pcapng)".to_owned(),
        PcapError::ReadError => "the file can't be read".to_owned(),
        PcapError::BufferTooSmall => "a block of more than 64 MiB".to_owned(),
        _ => "a block that breaks the format of captures".to_owned(),
    }
}
