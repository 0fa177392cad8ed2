//! A relay between Remora and its server: an address that can be moved to another server while
//! connections to the old one stay, and on which some of Remora's questions and answers can be held
//! back.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use remora_testkit::process::{PATIENCE, wait_for};

/// What a connection is asked that begins to follow, before anything else.
const ASKED_AT_FIRST: &[u8] = b"SELECT @@version";
/// What Remora asks only when it looks at what a server is.
const GRANTS: &[u8] = b"SHOW GRANTS";
const PIECE_BYTES: usize = 64 << 10;

/// A gate at which connections wait while it is shut.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn is_shut(&self) -> bool {
        *self.is_shut.lock().unwrap()
    }

    fn shut(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut is_shut = self.is_shut.lock().unwrap();
        while *is_shut {
            is_shut = self.changed.wait(is_shut).unwrap();
        }
        drop(is_shut);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Where connections lead, and what in the answers from there is put for what.
struct Target {
    server: SocketAddr,
    disguise: Option<[Vec<u8>; 2]>,
}

struct State {
    target: Mutex<Target>,
    checks: Gate,
    grants: Gate,
    is_ended: AtomicBool,
}

/// A running relay. It takes no more connections once dropped.
pub(super) struct Relay {
    address: SocketAddr,
    state: Arc<State>,
}

impl Relay {
    /// To this server.
    pub(super) fn start(target: SocketAddr) -> Relay {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            target: Mutex::new(Target {
                server: target,
                disguise: None,
            }),
            checks: Gate::default(),
            grants: Gate::default(),
            is_ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if of_thread.is_ended.load(Ordering::SeqCst) {
                    break;
                }
                // A server that is gone closes the connection, as it would its own.
                let _ = relay(client, &of_thread);
            }
        });
        Relay { address, state }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// New connections go to another server; those that there are stay.
    pub(super) fn move_to(&self, target: SocketAddr) {
        *self.state.target.lock().unwrap() = Target {
            server: target,
            disguise: None,
        };
    }

    /// The same, where the other server gives the old one's port for its own.
    pub(super) fn move_to_disguised(&self, target: SocketAddr) {
        let mut now = self.state.target.lock().unwrap();
        let ports = [target.port(), now.server.port()].map(|port| port.to_string().into_bytes());
        assert_eq!(ports[0].len(), ports[1].len(), "answers keep their length");
        *now = Target {
            server: target,
            disguise: Some(ports),
        };
    }

    /// Holds the answers on each connection on which a check begins from now on, or lets them go.
    /// What begins to follow is let through: following may end by chance, and comes back.
    pub(super) fn hold_checks(&self, holds: bool) {
        self.state.checks.shut(holds);
    }

    /// Holds the question for what is granted on each connection that begins to follow from now on,
    /// or lets it go.
    pub(super) fn hold_grants(&self, holds: bool) {
        self.state.grants.shut(holds);
    }

    /// Waits until such a question is held.
    pub(super) fn wait_until_grants_are_asked_for(&self) {
        wait_for("the question for what is granted", PATIENCE, || {
            let waiting = self.state.grants.waiting.load(Ordering::SeqCst);
            Ok((waiting > 0).then_some(()))
        })
        .unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.hold_checks(false);
        self.hold_grants(false);
        self.state.is_ended.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
    }
}

fn relay(client: TcpStream, state: &Arc<State>) -> std::io::Result<()> {
    let target = state.target.lock().unwrap();
    let server = TcpStream::connect(target.server)?;
    let disguise = target.disguise.clone();
    drop(target);
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let is_held = Arc::new(AtomicBool::new(false));
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let (seen, of_requests) = (Arc::clone(&is_held), Arc::clone(state));
    std::thread::spawn(move || {
        let mut begins_to_follow = false;
        copy(from_client, to_server, |piece| {
            begins_to_follow |= contains(piece, ASKED_AT_FIRST);
            if !contains(piece, GRANTS) {
                return;
            }
            if begins_to_follow {
                of_requests.grants.pass();
            } else if of_requests.checks.is_shut() {
                seen.store(true, Ordering::SeqCst);
            }
        });
    });
    let of_answers = Arc::clone(state);
    std::thread::spawn(move || {
        copy(server, client, |piece| {
            if let Some([from, to]) = &disguise {
                replace(piece, from, to);
            }
            if is_held.load(Ordering::SeqCst) {
                of_answers.checks.pass();
            }
        });
    });
    Ok(())
}

fn contains(piece: &[u8], words: &[u8]) -> bool {
    piece.windows(words.len()).any(|window| window == words)
}

/// Puts `to` for `from`, which is as long.
fn replace(piece: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while at + from.len() <= piece.len() {
        if piece[at..].starts_with(from) {
            piece[at..at + from.len()].copy_from_slice(to);
        }
        at += 1;
    }
}

/// Copies until one side ends; then both have ended.
fn copy(mut from: TcpStream, mut to: TcpStream, mut seen: impl FnMut(&mut [u8])) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        seen(&mut piece[..count]);
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    // They may be closed already.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
