//! Free ports for servers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::bail;

/// Below the ports that Linux gives to outgoing connections (32768 and up), so that no connection
/// can sit on a server's port while the server restarts.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// What keeps other processes from giving out the ports that this one has given. A server may leave
/// its port for a moment, when it restarts.
static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// An address on 127.0.0.1 that nobody listens on now, and that neither this process nor another
/// that runs has been given here. Whoever starts a server there should still try again with
/// another: not every program asks here.
pub fn free() -> anyhow::Result<SocketAddr> {
    // Processes that run at the same time should not try the same ports in the same order.
    let start = u64::from(std::process::id()).wrapping_mul(7_919) % u64::from(COUNT);
    for _ in 0..COUNT {
        let step = u64::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = (start + step) % u64::from(COUNT);
        let port = FIRST + u16::try_from(offset).unwrap_or_default();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if reserve(port) && TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!(
        "no free port on 127.0.0.1 between {FIRST} and {}",
        FIRST + COUNT
    )
}

/// Reserves a port among the processes that ask here, until this one ends. An abstract socket's
/// name is known to all of them, and goes with its process.
fn reserve(port: u16) -> bool {
    let name = format!("remora-test-port-{port}");
    let reserved =
        UnixAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name));
    let Ok(reserved) = reserved else {
        return false;
    };
    let mut all = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(reserved);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_given_is_reserved() {
        let port = free().unwrap().port();
        assert!(!reserve(port), "it is given again");
    }
}
