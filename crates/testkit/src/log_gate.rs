//! A relay between Remora and its server that can hold the binary log back: what is then written is
//! answered before Remora reads it from the log, for as long as it takes to ask for all that is
//! held. It can also lead new connections to another server, while existing ones stay.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;

/// `COM_BINLOG_DUMP` and `COM_BINLOG_DUMP_GTID`.
const DUMPS: [u8; 2] = [0x12, 0x1e];
const HEADER_BYTES: usize = 4;
const PIECE_BYTES: usize = 64 << 10;
/// Packets of so many bytes are long.
const LONG_BYTES: usize = 256 << 10;
/// In how many pieces they come after [`LogGate::trickle`].
pub const LONG_PIECES: usize = 40;

/// What becomes of the log's packets.
#[derive(Debug, Default)]
enum Passing {
    /// They pass.
    #[default]
    All,
    /// They pass up to and including the first that has these bytes.
    UpTo(Vec<u8>),
    /// They are held.
    Nothing,
}

#[derive(Debug)]
struct Gate {
    target: Mutex<SocketAddr>,
    passing: Mutex<Passing>,
    /// Before each piece of a long packet of the log.
    pause: Mutex<Duration>,
    changed: Condvar,
    is_ended: AtomicBool,
}

impl Gate {
    fn set(&self, passing: Passing) {
        *self.passing.lock().unwrap_or_else(PoisonError::into_inner) = passing;
        self.changed.notify_all();
    }

    fn target(&self) -> MutexGuard<'_, SocketAddr> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on a packet of the log.
    fn hand_on(&self, packet: &[u8], to: &mut TcpStream) -> std::io::Result<()> {
        let pause = *self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        if pause.is_zero() || packet.len() < LONG_BYTES {
            return to.write_all(packet);
        }
        for piece in packet.chunks(packet.len().div_ceil(LONG_PIECES)) {
            std::thread::sleep(pause);
            to.write_all(piece)?;
        }
        Ok(())
    }

    /// Returns when this packet may pass.
    fn pass(&self, packet: &[u8]) {
        let mut passing = self.passing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*passing {
                Passing::All => return,
                Passing::UpTo(last) => {
                    if packet.windows(last.len()).any(|part| part == last) {
                        *passing = Passing::Nothing;
                    }
                    return;
                }
                Passing::Nothing => {
                    passing = self
                        .changed
                        .wait(passing)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// A running relay. It takes no more connections once dropped; those that it has end with their
/// ends.
#[derive(Debug)]
pub struct LogGate {
    address: SocketAddr,
    gate: Arc<Gate>,
}

impl LogGate {
    /// Starts one in front of a server.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(server: SocketAddr) -> anyhow::Result<LogGate> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no port for a relay")?;
        let address = listener.local_addr()?;
        let gate = Arc::new(Gate {
            target: Mutex::new(server),
            passing: Mutex::default(),
            pause: Mutex::default(),
            changed: Condvar::new(),
            is_ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&gate);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if of_thread.is_ended.load(Ordering::Relaxed) {
                    break;
                }
                // A server that is gone closes the connection, as it would its own.
                let _ = relay(client, &of_thread);
            }
        });
        Ok(LogGate { address, gate })
    }

    /// Where Remora connects to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Holds the log back, or lets it go.
    pub fn hold(&self, is_held: bool) {
        self.gate.set(if is_held {
            Passing::Nothing
        } else {
            Passing::All
        });
    }

    /// Lets go of what is held up to the first packet that has these bytes, and holds the rest.
    pub fn let_through(&self, last: &[u8]) {
        self.gate.set(Passing::UpTo(last.to_vec()));
    }

    /// Has long packets of the log come in [`LONG_PIECES`] pieces, with this pause before each.
    pub fn trickle(&self, pause: Duration) {
        *self
            .gate
            .pause
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = pause;
    }

    /// New connections go to this server; those that there are stay.
    pub fn move_to(&self, server: SocketAddr) {
        *self.gate.target() = server;
    }
}

impl Drop for LogGate {
    fn drop(&mut self) {
        self.gate.set(Passing::All);
        self.gate.is_ended.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
    }
}

fn relay(client: TcpStream, gate: &Arc<Gate>) -> std::io::Result<()> {
    let target = *gate.target();
    let server = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let is_log = Arc::new(AtomicBool::new(false));
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let seen = Arc::clone(&is_log);
    std::thread::spawn(move || {
        copy(from_client, to_server, |piece, server| {
            if asks_for_log(piece) {
                seen.store(true, Ordering::SeqCst);
            }
            server.write_all(piece)
        });
    });
    let gate = Arc::clone(gate);
    std::thread::spawn(move || {
        let mut log = Vec::new();
        copy(server, client, |piece, client| {
            if !is_log.load(Ordering::SeqCst) {
                return client.write_all(piece);
            }
            log.extend_from_slice(piece);
            let mut at = 0;
            while let Some(length) = packet_bytes(&log[at..]) {
                let packet = &log[at..at + length];
                gate.pass(packet);
                gate.hand_on(packet, client)?;
                at += length;
            }
            log.drain(..at);
            Ok(())
        });
    });
    Ok(())
}

/// How many bytes the first packet has, if it is whole.
fn packet_bytes(bytes: &[u8]) -> Option<usize> {
    let [low, middle, high, _] = *bytes.first_chunk::<HEADER_BYTES>()?;
    let length = HEADER_BYTES + u32::from_le_bytes([low, middle, high, 0]) as usize;
    (length <= bytes.len()).then_some(length)
}

/// Whether these bytes are one packet that asks for the log.
fn asks_for_log(piece: &[u8]) -> bool {
    match piece {
        [low, middle, high, 0, command, ..] => {
            let length = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
            DUMPS.contains(command) && piece.len() == HEADER_BYTES + length
        }
        _ => false,
    }
}

/// Hands on what comes until nothing more does, and says so. If one side is gone, so is the other.
fn copy(
    mut from: TcpStream,
    mut to: TcpStream,
    mut hand_on: impl FnMut(&[u8], &mut TcpStream) -> std::io::Result<()>,
) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => {
                // It may be closed already.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(count) => {
                if hand_on(&piece[..count], &mut to).is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
