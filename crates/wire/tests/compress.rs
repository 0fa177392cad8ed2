//! The compressed protocol: pieces, cuts, and the numbers that the two sides see.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used)]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use remora_wire::WireError;
use remora_wire::compress::{
    Algorithm, COMPRESSED_HEADER_BYTES, Channel, Compressor, Decompressor, PIECE_BYTES_MAX, Role,
    STORED_BELOW_BYTES,
};

use support::packets::Packets;

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::Zlib,
    Algorithm::Zstd { level: 1 },
    Algorithm::Zstd { level: 3 },
    Algorithm::Zstd { level: 22 },
];

/// A compressed packet, written from the protocol's description alone.
fn packet(sequence: u8, plain_bytes: usize, body: &[u8]) -> Vec<u8> {
    let mut out = body.len().to_le_bytes()[..3].to_vec();
    out.push(sequence);
    out.extend_from_slice(&plain_bytes.to_le_bytes()[..3]);
    out.extend_from_slice(body);
    out
}

fn stored(sequence: u8, body: &[u8]) -> Vec<u8> {
    packet(sequence, 0, body)
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// The numbers and lengths before compression of the packets in `bytes`.
fn headers(mut bytes: &[u8]) -> Vec<(u8, usize, usize)> {
    let length =
        |at: &[u8]| usize::from(at[0]) | usize::from(at[1]) << 8 | usize::from(at[2]) << 16;
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let packed = length(bytes);
        headers.push((bytes[3], packed, length(&bytes[4..])));
        bytes = &bytes[COMPRESSED_HEADER_BYTES + packed..];
    }
    headers
}

fn decompress(algorithm: Algorithm, packed: &[u8], cut: usize) -> Result<Vec<u8>, WireError> {
    let mut decompressor = Decompressor::new(algorithm);
    let mut plain = Vec::new();
    for mut chunk in packed.chunks(cut.max(1)) {
        while !chunk.is_empty() {
            let taken = decompressor.feed(chunk, &mut plain)?;
            assert!(taken > 0, "no progress");
            chunk = &chunk[taken..];
            assert!(decompressor.held_bytes() <= 0xff_ffff);
        }
    }
    Ok(plain)
}

#[test]
fn short_pieces_are_stored_and_so_is_what_gains_nothing() {
    for algorithm in ALGORITHMS {
        let mut compressor = Compressor::new(algorithm);
        let mut packed = Vec::new();
        compressor.push(b"", &mut packed);
        assert!(packed.is_empty());
        compressor.push(&[7; STORED_BELOW_BYTES - 1], &mut packed);
        compressor.push(&[7; STORED_BELOW_BYTES], &mut packed);
        let noise: Vec<u8> = (0..STORED_BELOW_BYTES + 30)
            .map(|at| u8::try_from(at * 37 % 251).unwrap())
            .collect();
        compressor.push(&noise, &mut packed);
        let headers = headers(&packed);
        assert_eq!(headers[0], (0, STORED_BELOW_BYTES - 1, 0));
        assert_eq!((headers[1].0, headers[1].2), (1, STORED_BELOW_BYTES));
        assert!(headers[1].1 < STORED_BELOW_BYTES);
        assert_eq!(headers[2], (2, noise.len(), 0));
    }
}

#[test]
fn long_pieces_are_cut_and_numbers_come_round() {
    for algorithm in ALGORITHMS {
        let mut compressor = Compressor::new(algorithm);
        compressor.continue_after(253);
        let plain = b"0123456789".repeat(PIECE_BYTES_MAX / 4);
        let mut packed = Vec::new();
        compressor.push(&plain, &mut packed);
        let numbers: Vec<u8> = headers(&packed).iter().map(|header| header.0).collect();
        assert_eq!(numbers, [254, 255, 0]);
        assert_eq!(compressor.next_sequence(), 1);
        assert!(packed.len() < plain.len() / 100);
        assert!(decompress(algorithm, &packed, packed.len()).unwrap() == plain);
        assert!(decompress(algorithm, &packed, 1000).unwrap() == plain);
    }
}

#[test]
fn the_longest_packet_is_read() {
    let plain = vec![b'x'; 0xff_ffff];
    let whole = packet(0, plain.len(), &zlib(&plain));
    assert!(decompress(Algorithm::Zlib, &whole, 4096).unwrap() == plain);
    let whole = stored(0, &plain);
    assert!(decompress(Algorithm::Zlib, &whole, 4096).unwrap() == plain);
}

#[test]
fn a_stream_that_does_not_keep_its_header_is_an_error_unless_servers_let_it_pass() {
    let plain = b"SELECT 1 ".repeat(20);
    let stream = zlib(&plain);
    let read =
        |plain_bytes, body: &[u8]| decompress(Algorithm::Zlib, &packet(0, plain_bytes, body), 11);
    assert_eq!(read(plain.len(), &stream), Ok(plain.clone()));
    // These two are let pass.
    assert_eq!(read(plain.len() + 50, &stream), Ok(plain.clone()));
    let trailed = [&stream[..], b"trail"].concat();
    assert_eq!(read(plain.len(), &trailed), Ok(plain.clone()));
    let malformed = Err(WireError::Malformed("compressed packet"));
    assert_eq!(read(plain.len() - 1, &stream), malformed);
    assert_eq!(read(1, &stream), malformed);
    assert_eq!(read(plain.len(), &stream[..stream.len() - 1]), malformed);
    assert_eq!(read(plain.len(), b""), malformed);
    assert_eq!(read(plain.len(), &plain), malformed);
    let packed = zstd::bulk::compress(&plain, 3).unwrap();
    let read = |plain_bytes, body: &[u8]| {
        decompress(
            Algorithm::Zstd { level: 3 },
            &packet(0, plain_bytes, body),
            11,
        )
    };
    assert_eq!(read(plain.len(), &packed), Ok(plain.clone()));
    for wrong in [plain.len() - 1, plain.len() + 1, 1] {
        assert_eq!(read(wrong, &packed), malformed);
    }
    let trailed = [&packed[..], b"trail"].concat();
    assert_eq!(read(plain.len(), &trailed), malformed);
    assert_eq!(read(plain.len(), &stream), malformed);
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(&ALGORITHMS[..3])
}

/// Bytes with repetition, as text has.
fn text() -> impl Strategy<Value = Vec<u8>> {
    (vec(any::<u8>(), 0..40), 1usize..40).prop_map(|(bytes, times)| bytes.repeat(times))
}

proptest! {
    #[test]
    fn what_was_compressed_comes_out_however_it_is_cut(
        algorithm in algorithm(),
        pieces in vec(text(), 0..12),
        cut in 1usize..400,
    ) {
        let mut compressor = Compressor::new(algorithm);
        let mut packed = Vec::new();
        for piece in &pieces {
            compressor.push(piece, &mut packed);
        }
        prop_assert_eq!(decompress(algorithm, &packed, cut), Ok(pieces.concat()));
    }

    #[test]
    fn noise_is_read_or_refused(algorithm in algorithm(), noise in vec(any::<u8>(), 0..300), cut in 1usize..60) {
        let whole = decompress(algorithm, &noise, noise.len());
        let mut channel = Channel::new(algorithm, Role::Server);
        let mut out = Vec::new();
        let mut rest = &noise[..];
        while !rest.is_empty() {
            match channel.receive(rest, &mut out) {
                Ok(taken) => rest = &rest[taken..],
                Err(_) => break,
            }
        }
        prop_assert_eq!(whole.is_ok(), decompress(algorithm, &noise, cut).is_ok());
    }
}

/// One side's way to the other, which is cut where chance will have it.
struct Wire {
    cuts: Vec<usize>,
    at: usize,
}

impl Wire {
    fn cut(&mut self) -> usize {
        self.at += 1;
        self.cuts[self.at % self.cuts.len()]
    }

    /// Sends `plain` through both channels; gives what comes out.
    fn pass(&mut self, from: &mut Channel, to: &mut Channel, plain: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut rest = plain;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.cut().min(rest.len()));
            from.send(now, &mut packed);
            rest = later;
        }
        let mut out = Vec::new();
        let mut rest = &packed[..];
        while !rest.is_empty() {
            let now = self.cut().min(rest.len());
            let taken = to.receive(&rest[..now], &mut out).unwrap();
            rest = &rest[taken..];
        }
        out
    }
}

fn messages(sequence: u8, payloads: &[Vec<u8>]) -> Packets {
    let mut packets = Packets {
        bytes: Vec::new(),
        sequence,
    };
    for payload in payloads {
        packets.put(payload);
    }
    packets
}

/// What happens in one exchange.
#[derive(Debug, Clone)]
enum Exchange {
    /// A command and its answer's messages.
    Answered(Vec<u8>, Vec<Vec<u8>>),
    /// A command without an answer.
    Silent(Vec<u8>),
    /// Messages before a file is asked for, then the file's packets.
    LocalFile(usize, usize),
    /// A change of user: switched, answered, accepted.
    ChangeUser,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    // No message of these begins with the mark of a file.
    let message = vec(0u8..0xfb, 1..60);
    let answer = (vec(message.clone(), 1..4), 1usize..200)
        .prop_map(|(messages, times)| vec![messages; times].concat());
    prop_oneof![
        (message.clone(), answer).prop_map(|(command, answer)| Exchange::Answered(command, answer)),
        message.prop_map(Exchange::Silent),
        (0usize..300, 0usize..600)
            .prop_map(|(before, packets)| Exchange::LocalFile(before, packets)),
        Just(Exchange::ChangeUser),
    ]
}

/// A client's and a server's channel, with the number that is due in the exchange at hand.
struct Pair {
    wire: Wire,
    client: Channel,
    server: Channel,
    next: u8,
}

impl Pair {
    fn new(algorithm: Algorithm, cuts: Vec<usize>) -> Pair {
        Pair {
            wire: Wire { cuts, at: 0 },
            client: Channel::new(algorithm, Role::Client),
            server: Channel::new(algorithm, Role::Server),
            next: 0,
        }
    }

    fn up(&mut self, payloads: &[Vec<u8>]) {
        let packets = messages(self.next, payloads);
        self.next = packets.sequence;
        let Pair {
            wire,
            client,
            server,
            ..
        } = self;
        assert!(wire.pass(client, server, &packets.bytes) == packets.bytes);
    }

    fn down(&mut self, payloads: &[Vec<u8>]) {
        let packets = messages(self.next, payloads);
        self.next = packets.sequence;
        let Pair {
            wire,
            client,
            server,
            ..
        } = self;
        assert!(wire.pass(server, client, &packets.bytes) == packets.bytes);
    }

    fn run(&mut self, exchange: &Exchange) {
        let ok = [vec![0; 7]];
        self.next = 0;
        match exchange {
            Exchange::Silent(command) => self.up(std::slice::from_ref(command)),
            Exchange::Answered(command, answer) => {
                self.up(std::slice::from_ref(command));
                self.down(answer);
            }
            Exchange::LocalFile(before, packets) => {
                self.up(&[b"\x03LOAD".to_vec()]);
                let mut answer = vec![b"row".to_vec(); *before];
                answer.push(b"\xfbfile".to_vec());
                self.down(&answer);
                let mut file = vec![b"line".to_vec(); *packets];
                file.push(Vec::new());
                self.up(&file);
                self.down(&ok);
            }
            Exchange::ChangeUser => {
                self.up(&[b"\x11user\0".to_vec()]);
                self.down(&[b"\xfeplugin\0salt".to_vec()]);
                self.up(&[b"answer".to_vec()]);
                self.down(&ok);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_sides_see_plain_packets_with_plain_numbers(
        algorithm in algorithm(),
        cuts in vec(1usize..300, 1..9),
        exchanges in vec(exchange(), 1..12),
    ) {
        let mut pair = Pair::new(algorithm, cuts);
        for exchange in &exchanges {
            pair.run(exchange);
        }
    }
}

#[test]
fn payloads_of_more_than_a_packet_pass_both_ways() {
    let mut pair = Pair::new(Algorithm::Zlib, vec![70_000]);
    let long = vec![3; 0x1ff_ffff];
    let answer = vec![b"one".to_vec(), long.clone(), b"two".to_vec()];
    pair.run(&Exchange::Answered(long, answer));
    pair.run(&Exchange::LocalFile(1, 3));
    assert_eq!(pair.client.held_bytes() + pair.server.held_bytes(), 0);
}

fn receive(channel: &mut Channel, packed: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::new();
    let mut rest = packed;
    while !rest.is_empty() {
        let taken = channel.receive(rest, &mut out)?;
        rest = &rest[taken..];
    }
    Ok(out)
}

fn send(channel: &mut Channel, plain: &[u8]) -> Vec<(u8, usize)> {
    let mut packed = Vec::new();
    channel.send(plain, &mut packed);
    headers(&packed)
        .into_iter()
        .map(|(sequence, packed, _)| (sequence, packed))
        .collect()
}

fn one(sequence: u8, payload: &[u8]) -> Vec<u8> {
    messages(sequence, &[payload.to_vec()]).bytes
}

#[test]
fn a_servers_inner_numbers_are_of_no_account() {
    // As measured: after a flush the inner number is the outer one.
    let mut channel = Channel::new(Algorithm::Zlib, Role::Client);
    assert_eq!(send(&mut channel, &one(0, b"\x03a;b;c")), [(0, 10)]);
    let first = [
        one(1, b"1"),
        one(2, b"def"),
        one(3, b"row"),
        one(4, b"\xfe"),
    ]
    .concat();
    let received = [
        stored(1, &first),
        stored(2, &one(2, b"ok")),
        stored(3, &one(3, b"ok")),
    ];
    let plain = receive(&mut channel, &received.concat()).unwrap();
    assert_eq!(plain, [first, one(5, b"ok"), one(6, b"ok")].concat());
    // The next command begins with 0 again, its answer with 1.
    assert_eq!(send(&mut channel, &one(0, b"\x0e")), [(0, 5)]);
    assert_eq!(
        receive(&mut channel, &stored(1, &one(1, b"ok"))),
        Ok(one(1, b"ok"))
    );
}

#[test]
fn an_answer_to_a_command_in_several_packets_has_the_number_that_is_due_on_either_side() {
    // The client's one packet comes in three, so the answer's compressed packet is the fourth.
    let command = one(0, b"\x03SELECT 1");
    let mut server = Channel::new(Algorithm::Zlib, Role::Server);
    let pieces = [
        stored(0, &command[..2]),
        stored(1, &command[2..7]),
        stored(2, &command[7..]),
    ];
    assert_eq!(receive(&mut server, &pieces.concat()), Ok(command.clone()));
    assert_eq!(send(&mut server, &one(1, b"ok")), [(3, 6)]);
    // And as a server numbers its answer to such a command.
    let mut client = Channel::new(Algorithm::Zlib, Role::Client);
    for (piece, sequence) in [(&command[..5], 0), (&command[5..7], 1), (&command[7..], 2)] {
        assert_eq!(send(&mut client, piece), [(sequence, piece.len())]);
    }
    assert_eq!(
        receive(&mut client, &stored(3, &one(3, b"ok"))),
        Ok(one(1, b"ok"))
    );
}

#[test]
fn a_clients_inner_numbers_are_of_no_account_as_servers_hold_it() {
    let mut channel = Channel::new(Algorithm::Zlib, Role::Server);
    assert_eq!(
        receive(&mut channel, &stored(0, &one(7, b"\x0e"))),
        Ok(one(0, b"\x0e"))
    );
    assert_eq!(send(&mut channel, &one(1, b"ok")), [(1, 6)]);
    // An empty packet first counts, and is nothing else.
    let empty_first = [stored(0, b""), stored(1, &one(0, b"\x0e"))].concat();
    assert_eq!(receive(&mut channel, &empty_first), Ok(one(0, b"\x0e")));
    assert_eq!(send(&mut channel, &one(1, b"ok")), [(2, 6)]);
}

#[test]
fn a_compressed_packet_out_of_order_is_refused_as_servers_do() {
    let refused = |expected, got| Err(WireError::OutOfOrder { expected, got });
    let mut channel = Channel::new(Algorithm::Zlib, Role::Server);
    assert_eq!(
        receive(&mut channel, &stored(5, &one(0, b"\x0e"))),
        refused(0, 5)
    );
    let mut channel = Channel::new(Algorithm::Zlib, Role::Server);
    let command = one(0, b"\x03SELECT 1");
    receive(&mut channel, &stored(0, &command[..6])).unwrap();
    assert_eq!(
        receive(&mut channel, &stored(0, &command[6..])),
        refused(1, 0)
    );
    let mut channel = Channel::new(Algorithm::Zlib, Role::Client);
    send(&mut channel, &command);
    receive(&mut channel, &stored(1, &one(1, b"row")[..5])).unwrap();
    assert_eq!(receive(&mut channel, &stored(3, b"ow")), refused(2, 3));
}

#[test]
fn two_commands_never_share_a_compressed_packet() {
    let mut channel = Channel::new(Algorithm::Zlib, Role::Client);
    let closes = [
        one(0, b"\x19aaaa"),
        one(0, b"\x19bbbb"),
        one(0, b"\x03SELECT 1"),
    ];
    assert_eq!(
        send(&mut channel, &closes.concat()),
        [(0, 9), (0, 9), (0, 13)]
    );
    assert_eq!(
        receive(&mut channel, &stored(1, &one(1, b"ok"))),
        Ok(one(1, b"ok"))
    );
}

#[test]
fn answers_to_commands_that_came_together_are_numbered_each_for_itself() {
    let commands = [stored(0, &one(0, b"\x0e")), stored(0, &one(0, b"\x0e"))].concat();
    let mut server = Channel::new(Algorithm::Zlib, Role::Server);
    let wanted = [one(0, b"\x0e"), one(0, b"\x0e")].concat();
    assert_eq!(receive(&mut server, &commands), Ok(wanted));
    let answers = [one(1, b"ok"), one(1, b"row"), one(2, b"end")].concat();
    assert_eq!(send(&mut server, &answers), [(1, 6), (1, 14)]);
    // The same the other way.
    let mut client = Channel::new(Algorithm::Zlib, Role::Client);
    send(&mut client, &[one(0, b"\x0e"), one(0, b"\x0e")].concat());
    let answers = [stored(1, &one(1, b"ok")), stored(1, &one(1, b"ok"))].concat();
    let wanted = [one(1, b"ok"), one(1, b"ok")].concat();
    assert_eq!(receive(&mut client, &answers), Ok(wanted));
}
