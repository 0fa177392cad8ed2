//! From a captured packet to a TCP segment.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

use super::packets::Packet;

/// `LINKTYPE_*` of tcpdump.org.
const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const RAW: [i32; 5] = [12, 14, 101, 228, 229];
const LOOP: i32 = 108;
const LINUX_SLL: i32 = 113;
const LINUX_SLL2: i32 = 276;

/// A TCP segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// The number of its first byte.
    pub(super) sequence: u32,
    /// The number of the byte that the sender expects next.
    pub(super) acknowledged: u32,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    pub(super) payload: Vec<u8>,
    /// The end of the payload was not captured.
    pub(super) is_cut: bool,
}

/// The segment in a packet; `None` if it holds none.
///
/// # Errors
/// Its link is of a kind that isn't read.
pub(super) fn segment(packet: &Packet) -> Result<Option<Segment>, String> {
    let bytes = packet.bytes.as_slice();
    let behind = |count: usize| bytes.get(count..).unwrap_or_default();
    let sliced = match packet.link {
        ETHERNET => LaxSlicedPacket::from_ethernet(bytes).ok(),
        NULL | LOOP => LaxSlicedPacket::from_ip(behind(4)).ok(),
        LINUX_SLL => LaxSlicedPacket::from_ip(behind(16)).ok(),
        LINUX_SLL2 => LaxSlicedPacket::from_ip(behind(20)).ok(),
        link if RAW.contains(&link) => LaxSlicedPacket::from_ip(bytes).ok(),
        other => return Err(format!("a packet of link type {other}, which is not read")),
    };
    Ok(sliced.and_then(|sliced| of(&sliced, packet.is_cut)))
}

fn of(sliced: &LaxSlicedPacket<'_>, is_cut: bool) -> Option<Segment> {
    let (from, to): (IpAddr, IpAddr) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let TransportSlice::Tcp(tcp) = sliced.transport.as_ref()? else {
        return None;
    };
    Some(Segment {
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledged: tcp.acknowledgment_number(),
        is_first: tcp.syn(),
        is_last: tcp.fin(),
        payload: tcp.payload().to_vec(),
        is_cut,
    })
}
