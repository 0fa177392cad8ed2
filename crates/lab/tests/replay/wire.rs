//! Captures of real sessions: a relay notes what passes, and a small writer makes packets of it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use etherparse::PacketBuilder;
use remora_testkit::load::random::Random;

/// The port that the server has in the packets.
pub(crate) const PORT: u16 = 3_306;

/// What passed on a connection: whether from the client, and the bytes.
type Passed = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// Relays one connection after another and notes what passes.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    connections: Arc<Mutex<Vec<Passed>>>,
}

impl Relay {
    pub(crate) fn to(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Arc<Mutex<Vec<Passed>>> = Arc::default();
        let kept = Arc::clone(&connections);
        // Both end with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let server = TcpStream::connect(server).unwrap();
                let passed = Passed::default();
                kept.lock().unwrap().push(Arc::clone(&passed));
                pass(&client, &server, &passed, true);
                pass(&server, &client, &passed, false);
            }
        });
        Relay {
            address,
            connections,
        }
    }

    /// What has passed on each connection so far.
    pub(crate) fn passed(&self) -> Vec<Vec<(bool, Vec<u8>)>> {
        let connections = self.connections.lock().unwrap();
        connections
            .iter()
            .map(|passed| passed.lock().unwrap().clone())
            .collect()
    }
}

fn pass(from: &TcpStream, to: &TcpStream, passed: &Passed, is_client: bool) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    from.set_nodelay(true).unwrap();
    let passed = Arc::clone(passed);
    std::thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count) = from.read(&mut bytes) {
            if count == 0 {
                break;
            }
            passed
                .lock()
                .unwrap()
                .push((is_client, bytes[..count].to_vec()));
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// A captured packet: microseconds, bytes of an Ethernet frame.
pub(crate) type Packet = (u64, Vec<u8>);

/// The packets of a connection, as one would capture them: each side acknowledges what it has.
pub(crate) fn packets(number: u16, passed: &[(bool, Vec<u8>)], random: &mut Random) -> Vec<Packet> {
    // Numbers near their end, so that they wrap around.
    let mut next = [u32::MAX - 500, u32::MAX - 900];
    let mut now_us = 1_700_000_000_000_000 + u64::from(number) * 10;
    let mut all = Vec::new();
    let mut put = |is_client: bool, next: [u32; 2], payload: &[u8], flags: &str| {
        now_us += 100;
        let side = usize::from(!is_client);
        let (from, to) = if is_client {
            (40_000 + number, PORT)
        } else {
            (PORT, 40_000 + number)
        };
        let addresses = if is_client {
            ([10, 0, 0, 1], [10, 0, 0, 2])
        } else {
            ([10, 0, 0, 2], [10, 0, 0, 1])
        };
        let mut builder = PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4(addresses.0, addresses.1, 64)
            .tcp(from, to, next[side], 60_000)
            .ack(next[1 - side]);
        for flag in flags.chars() {
            builder = match flag {
                'S' => builder.syn(),
                _ => builder.fin(),
            };
        }
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        all.push((now_us, bytes));
    };
    for is_client in [true, false] {
        let side = usize::from(!is_client);
        put(is_client, next, &[], "S");
        next[side] = next[side].wrapping_add(1);
    }
    for (is_client, bytes) in passed {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(1 + random.below(1_400)));
            put(*is_client, next, now, "");
            let side = usize::from(!is_client);
            next[side] = next[side].wrapping_add(u32::try_from(now.len()).unwrap());
            rest = later;
        }
    }
    put(true, next, &[], "F");
    all
}

/// Swaps neighbours and repeats packets, as networks do.
pub(crate) fn disturb(packets: &mut Vec<Packet>, random: &mut Random) {
    let mut out: Vec<Packet> = Vec::new();
    for packet in packets.drain(..) {
        if random.below(4) == 0 {
            out.push(packet.clone());
        }
        out.push(packet);
    }
    for at in 1..out.len() {
        if random.below(3) == 0 {
            let (before, now) = (out[at - 1].0, out[at].0);
            out.swap(at - 1, at);
            // Captures are in the order of time.
            out[at - 1].0 = before;
            out[at].0 = now;
        }
    }
    *packets = out;
}

/// A pcap file.
pub(crate) fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(0xa1b2_c3d4_u32.to_le_bytes());
    out.extend([2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(262_144_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    for (us, bytes) in packets {
        let length = u32::try_from(bytes.len()).unwrap();
        out.extend(u32::try_from(us / 1_000_000).unwrap().to_le_bytes());
        out.extend(u32::try_from(us % 1_000_000).unwrap().to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out
}

/// A pcapng file.
pub(crate) fn pcapng(packets: &[Packet]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = u32::try_from(12 + body.len().next_multiple_of(4)).unwrap();
        out.extend(kind.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend_from_slice(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(length.to_le_bytes());
    };
    let mut head = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    head.extend([1, 0, 0, 0]);
    head.extend(u64::MAX.to_le_bytes());
    block(0x0a0d_0d0a, &head);
    // Ethernet, no limit, times in nanoseconds.
    block(
        1,
        &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0],
    );
    for (us, bytes) in packets {
        let ns = us * 1_000;
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let mut body = 0_u32.to_le_bytes().to_vec();
        body.extend(u32::try_from(ns >> 32).unwrap().to_le_bytes());
        body.extend(u32::try_from(ns & 0xffff_ffff).unwrap().to_le_bytes());
        body.extend(length);
        body.extend(length);
        body.extend_from_slice(bytes);
        block(6, &body);
    }
    out
}
