//! Asking the other side of a silent TCP connection whether it is still there.
//!
//! A host that loses its power, or a firewall that forgets a connection, ends it without a word:
//! whoever waits for bytes waits for ever. The system's own default is to ask after two hours.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// How many questions without an answer Linux allows by default before it gives the connection up
/// (`net.ipv4.tcp_keepalive_probes`).
const QUESTIONS: u32 = 9;
/// The system counts in seconds.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// When to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    after: Duration,
}

impl Keepalive {
    /// Asks after this long without a byte, and keeps asking for as long again.
    pub fn after_ms(after_ms: u64) -> Keepalive {
        Keepalive {
            after: Duration::from_millis(after_ms),
        }
    }

    fn interval(self) -> Duration {
        (self.after / QUESTIONS).max(INTERVAL_MIN)
    }

    pub(super) fn set(self, socket: &SockRef<'_>) -> io::Result<()> {
        let keepalive = TcpKeepalive::new()
            .with_time(self.after)
            .with_interval(self.interval());
        socket.set_tcp_keepalive(&keepalive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_take_as_long_as_the_silence_before_them_but_not_less_than_a_second_each() {
        let interval_ms = |after_ms| Keepalive::after_ms(after_ms).interval().as_millis();
        assert_eq!(interval_ms(60_000), 6_666);
        assert_eq!(interval_ms(1_000), 1_000);
    }

    #[test]
    fn a_socket_is_asked_for_by_the_system() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let listening = SockRef::from(&listener);
        Keepalive::after_ms(1_000)
            .set(&listening)
            .expect("it can be set");
        let address = listener.local_addr().expect("it listens");
        let client = std::net::TcpStream::connect(address).expect("it listens");
        let (accepted, _) = listener.accept().expect("a client has connected");
        let is_kept = |stream: &std::net::TcpStream| {
            SockRef::from(stream)
                .keepalive()
                .expect("the socket is open")
        };
        assert!(
            is_kept(&accepted),
            "accepted connections have it from the listener"
        );
        assert!(!is_kept(&client));
    }
}
