//! Free ports for servers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::bail;

/// Below the ports that Linux gives to outgoing connections (32768 and up), so that no connection
/// can sit on a server's port while the server restarts.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// An address on 127.0.0.1 that nobody listens on now and that this process has not given before.
/// Another process can still take it; whoever starts a server there should try again with another.
pub fn free() -> anyhow::Result<SocketAddr> {
    // Processes that run at the same time should not try the same ports in the same order.
    let start = u64::from(std::process::id()).wrapping_mul(7_919) % u64::from(COUNT);
    for _ in 0..COUNT {
        let step = u64::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = (start + step) % u64::from(COUNT);
        let port = FIRST + u16::try_from(offset).unwrap_or_default();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!(
        "no free port on 127.0.0.1 between {FIRST} and {}",
        FIRST + COUNT
    )
}
