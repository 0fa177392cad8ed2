//! Remora's streams with TLS on them: every byte arrives, whatever the pieces, and nobody waits for
//! what a layer already holds.

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use remora_net::Endpoint;
use remora_net::{Bound, Keepalive, Stream};
use remora_testkit::certificates::Authority;
use remora_testkit::load::Random;
use remora_wire::compress::{Algorithm, Role};
use remora_wire::packet::put_message;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;

/// Configurations of two sides that trust each other.
fn configurations() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let authority = Authority::new().unwrap();
    let files = authority.issue("server", &["DNS:localhost"]).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = CertificateDer::pem_file_iter(&files.certificate).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            chain.map(Result::unwrap).collect(),
            PrivateKeyDer::from_pem_file(&files.key).unwrap(),
        )
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority.certificate()).unwrap())
        .unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

/// Two ends of a TCP connection.
async fn connected() -> (Stream, Stream) {
    let any = Endpoint::Tcp {
        host: "127.0.0.1".to_owned(),
        port: 0,
    };
    let keepalive = Keepalive::after_ms(60_000);
    let bound = Bound::bind(&any, 16, keepalive).unwrap();
    let endpoint = bound.endpoint().unwrap();
    let listener = bound.into_listener().unwrap();
    let (accepted, connected) = tokio::join!(
        listener.accept(),
        Stream::connect(&endpoint, Duration::from_secs(5), keepalive)
    );
    (accepted.unwrap().into_stream().unwrap(), connected.unwrap())
}

/// Two ends with TLS on them.
async fn secured() -> (Stream, Stream) {
    let (here, there) = connected().await;
    let (server, client) = configurations();
    let name = ServerName::try_from("localhost").unwrap();
    let (accepted, greeted) =
        tokio::join!(here.accept_tls(server), there.connect_tls(client, name));
    accepted.unwrap();
    greeted.unwrap();
    (here, there)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, test)
            .await
            .expect("the test hangs");
    });
}

/// Sends pieces of random sizes, each wholly.
async fn send(stream: &Stream, data: &[u8], random: &mut Random, largest: usize) {
    let mut rest = data;
    while !rest.is_empty() {
        let size = 1 + random.below(largest);
        let (piece, later) = rest.split_at(size.min(rest.len()));
        stream.write_all(piece).await.unwrap();
        rest = later;
    }
}

/// Receives with buffers of random sizes.
async fn receive(stream: &Stream, bytes: usize, random: &mut Random, largest: usize) -> Vec<u8> {
    let mut data = Vec::new();
    while data.len() < bytes {
        let size = 1 + random.below(largest);
        let mut buffer = vec![0; size];
        match stream.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => data.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                stream.readable().await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    data
}

fn noise(bytes: usize, random: &mut Random) -> Vec<u8> {
    (0..bytes)
        .map(|_| u8::try_from(random.below(256)).unwrap())
        .collect()
}

#[test]
fn every_byte_arrives_in_both_directions_at_once_whatever_the_pieces() {
    run(async {
        let seed = Random::fresh_seed();
        println!("seed {seed}");
        let mut random = Random::new(seed);
        for (written, read) in [
            (100, 100),
            (200_000, 70_000),
            (200_000, 900),
            (3_000, 70_000),
        ] {
            let (here, there) = secured().await;
            let (up, down) = (noise(300_000, &mut random), noise(1_500_000, &mut random));
            let mut randoms = [1, 2, 3, 4].map(|n| Random::new(seed + n));
            let [a, b, c, d] = &mut randoms;
            let ((), (), got_up, got_down) = tokio::join!(
                send(&there, &up, a, written),
                send(&here, &down, b, written),
                receive(&here, up.len(), c, read),
                receive(&there, down.len(), d, read),
            );
            assert!(got_up == up, "upwards, pieces of {written} read by {read}");
            assert!(
                got_down == down,
                "downwards, pieces of {written} read by {read}"
            );
        }
    });
}

/// Bytes that compress by about a half.
fn text(bytes: usize, random: &mut Random) -> Vec<u8> {
    (0..bytes)
        .map(|_| b'a' + u8::try_from(random.below(16)).unwrap())
        .collect()
}

/// Commands and answers of random sizes; whoever receives must get the packets that were sent.
async fn converse(client: &Stream, server: &Stream, random: &mut Random) {
    for largest in [10, 100, 5_000, 70_000, 300_000, 100, 10] {
        let bytes = 1 + random.below(largest);
        let mut command = Vec::new();
        let mut sequence = put_message(&mut command, 0, &text(bytes, random));
        let mut answer = Vec::new();
        for _ in 0..=random.below(5) {
            let bytes = 1 + random.below(largest);
            sequence = put_message(&mut answer, sequence, &text(bytes, random));
        }
        for (from, to, what) in [(client, server, &command), (server, client, &answer)] {
            let (mut a, mut b) = (Random::new(random.next()), Random::new(random.next()));
            let (written, read) = (1 + random.below(100_000), 1 + random.below(100_000));
            let ((), got) = tokio::join!(
                send(from, what, &mut a, written),
                receive(to, what.len(), &mut b, read)
            );
            assert!(&got == what, "{} bytes", what.len());
        }
    }
}

#[test]
fn packets_arrive_through_compression_with_and_without_tls() {
    run(async {
        let seed = Random::fresh_seed();
        println!("seed {seed}");
        let mut random = Random::new(seed);
        for algorithm in [Algorithm::Zlib, Algorithm::Zstd { level: 3 }] {
            for (server, client) in [connected().await, secured().await] {
                converse(&client, &server, &mut random).await;
                server.compress(algorithm, Role::Server);
                client.compress(algorithm, Role::Client);
                converse(&client, &server, &mut random).await;
            }
        }
    });
}

#[test]
fn a_slow_reader_of_compressed_bytes_gets_them_all_once() {
    run(async {
        let (server, client) = connected().await;
        server.compress(Algorithm::Zlib, Role::Server);
        client.compress(Algorithm::Zlib, Role::Client);
        let mut random = Random::new(7);
        let mut answer = Vec::new();
        put_message(&mut answer, 1, &noise(6 << 20, &mut random));
        let mut command = Vec::new();
        put_message(&mut command, 0, b"\x03SELECT");
        client.write_all(&command).await.unwrap();
        assert_eq!(
            receive(&server, command.len(), &mut random, 100).await,
            command
        );
        // Until the socket is full, so that the layer holds what it has not sent.
        let mut written = 0;
        while let count @ 1.. = server.write_now(&answer[written..]).unwrap() {
            written += count;
        }
        assert!(written < answer.len());
        let ((), got) = tokio::join!(
            async { server.write_all(&answer[written..]).await.unwrap() },
            receive(&client, answer.len(), &mut random, 50_000)
        );
        assert!(got == answer);
    });
}

#[test]
fn what_a_layer_holds_is_announced_without_news_from_the_socket() {
    run(async {
        let (here, there) = secured().await;
        there.write_all(&[7; 10_000]).await.unwrap();
        let mut got = 0;
        while got < 10_000 {
            // Smaller than a record: all but the first piece lie in the layer.
            let mut buffer = [0; 10];
            here.readable().await.unwrap();
            match here.try_read(&mut buffer) {
                Ok(count) => got += count,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
        let mut buffer = [0; 10];
        let error = here.try_read(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    });
}

#[test]
fn a_peer_that_does_not_read_makes_nothing_grow_and_gets_everything_when_it_does() {
    run(async {
        let (here, there) = secured().await;
        let piece = vec![9; 1 << 20];
        let mut taken = 0;
        // The layer takes no more than the socket does, but for one piece.
        loop {
            match here.write_now(&piece).unwrap() {
                0 => break,
                count => taken += count,
            }
            assert!(taken < 64 << 20, "the socket takes no end of bytes");
        }
        assert_eq!(here.write_now(&piece).unwrap(), 0);
        let mut random = Random::new(1);
        let ((), got) = tokio::join!(
            async { here.write_all(&piece).await.unwrap() },
            receive(&there, taken + piece.len(), &mut random, 100_000)
        );
        assert_eq!(got.len(), taken + piece.len());
        assert!(got.iter().all(|byte| *byte == 9));
    });
}

#[test]
fn the_end_is_seen_after_the_last_byte() {
    run(async {
        let (here, there) = secured().await;
        here.write_all(b"farewell").await.unwrap();
        drop(here);
        let mut random = Random::new(1);
        assert_eq!(
            receive(&there, usize::MAX, &mut random, 3).await,
            b"farewell"
        );
    });
}

#[test]
fn a_peer_that_vanishes_without_farewell_is_an_end_too() {
    run(async {
        let (here, there) = secured().await;
        there.shutdown(Shutdown::Both).unwrap();
        let mut random = Random::new(1);
        assert_eq!(receive(&here, usize::MAX, &mut random, 100).await, b"");
    });
}

#[test]
fn bytes_that_are_no_tls_are_an_error_and_not_a_wait() {
    run(async {
        let (here, there) = connected().await;
        let (server, _) = configurations();
        there
            .write_all(b"\x05\x00\x00\x01\x00 this is no handshake of TLS")
            .await
            .unwrap();
        here.accept_tls(server).await.unwrap_err();
    });
}
