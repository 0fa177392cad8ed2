//! A TCP relay between Remora and the server that cuts one connection at a byte of its choice.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToRemora,
}

/// What went over a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    pub(crate) to_server: Vec<u8>,
    pub(crate) to_remora: Vec<u8>,
}

impl Traffic {
    fn of(&mut self, way: Way) -> &mut Vec<u8> {
        match way {
            Way::ToServer => &mut self.to_server,
            Way::ToRemora => &mut self.to_remora,
        }
    }
}

/// What to do with the next connection.
#[derive(Debug, Clone, Default)]
struct Order {
    /// Cut it after so many bytes this way.
    cut: Option<(Way, usize)>,
    /// Where to put down what went over it.
    traffic: Arc<Mutex<Traffic>>,
    was_cut: Arc<AtomicBool>,
}

/// An order that was given.
pub(crate) struct Armed(Order);

impl Armed {
    /// What went over the connection so far.
    pub(crate) fn traffic(&self) -> Traffic {
        lock(&self.0.traffic).clone()
    }

    /// Whether the byte came at which to cut.
    pub(crate) fn was_cut(&self) -> bool {
        self.0.was_cut.load(Ordering::SeqCst)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Relay {
    address: SocketAddr,
    next: Arc<Mutex<Option<Order>>>,
    over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn start(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (next, over) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let (orders, ending) = (Arc::clone(&next), Arc::clone(&over));
        let acceptor = std::thread::spawn(move || {
            while let Ok((remora, _)) = listener.accept() {
                if ending.load(Ordering::SeqCst) {
                    return;
                }
                let order = lock(&orders).take();
                if let Ok(upstream) = TcpStream::connect(server) {
                    pump_both(&remora, &upstream, order.as_ref());
                }
            }
        });
        Relay {
            address,
            next,
            over,
            acceptor: Some(acceptor),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Orders what becomes of the next connection.
    pub(crate) fn arm(&self, cut: Option<(Way, usize)>) -> Armed {
        let order = Order {
            cut,
            ..Order::default()
        };
        *lock(&self.next) = Some(order.clone());
        Armed(order)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Starts a thread for each way. They end with the connection.
fn pump_both(remora: &TcpStream, upstream: &TcpStream, order: Option<&Order>) {
    for (way, from, to) in [
        (Way::ToServer, remora, upstream),
        (Way::ToRemora, upstream, remora),
    ] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let _ = to.set_nodelay(true);
        let order = order.cloned();
        std::thread::spawn(move || pump(way, &from, &to, order.as_ref()));
    }
}

fn pump(way: Way, mut from: &TcpStream, mut to: &TcpStream, order: Option<&Order>) {
    let limit = match order.and_then(|order| order.cut) {
        Some((at, bytes)) if at == way => bytes,
        _ => usize::MAX,
    };
    let mut passed = 0;
    let mut chunk = [0; 16 << 10];
    while passed < limit {
        let count = match from.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(count) => count.min(limit - passed),
        };
        if let Some(order) = order {
            lock(&order.traffic)
                .of(way)
                .extend_from_slice(&chunk[..count]);
        }
        passed += count;
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    if passed >= limit {
        if let Some(order) = order {
            order.was_cut.store(true, Ordering::SeqCst);
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    } else {
        let _ = to.shutdown(Shutdown::Write);
    }
}
