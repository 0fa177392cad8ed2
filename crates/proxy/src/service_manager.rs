//! What Remora and the program that started it tell each other, in systemd's protocol.
//!
//! Sockets that listen outlive the process: the service manager keeps those that it is sent, and
//! gives them to the next process. So clients that connect during a restart aren't refused. They
//! wait in the system's queue, at most `listen.backlog` of them.
//!
//! Without a service manager nothing here does anything. See `sd_notify(3)`, `sd_listen_fds(3)`.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use listenfd::ListenFd;
use remora_net::{Bound, Endpoint};
use sd_notify::NotifyState;

/// How long it may take the service manager to handle what it was told.
const PATIENCE: Duration = Duration::from_secs(5);
/// The bytes that a name of a kept socket may have.
const NAME_BYTES_MAX: usize = 255;

/// The program that has started Remora, if it is one that can be told something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceManager {
    is_there: bool,
}

impl ServiceManager {
    /// As the environment says.
    pub(crate) fn from_environment() -> ServiceManager {
        ServiceManager {
            is_there: std::env::var_os("NOTIFY_SOCKET").is_some_and(|path| !path.is_empty()),
        }
    }

    /// Clients can connect.
    pub(crate) fn ready(self) {
        self.tell(&[NotifyState::Ready]);
    }

    /// Certificates, rules and the like are read again, until Remora is ready again.
    pub(crate) fn reloading(self) {
        // Without a clock there is nothing to be told.
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            self.tell(&[NotifyState::Reloading, now]);
        }
    }

    /// Remora was asked to stop.
    pub(crate) fn stopping(self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// Has a socket kept for the next process.
    pub(crate) fn keep(self, bound: &mut Bound) {
        let Some(name) = name_of(bound).filter(|_| self.is_there) else {
            return;
        };
        let state = [
            NotifyState::FdStore,
            NotifyState::FdName(&name),
            // A socket that listens has no end that would have to be noticed.
            NotifyState::Custom("FDPOLL=0"),
        ];
        match sd_notify::notify_with_fds(&state, &[bound.as_fd()]) {
            Ok(()) => bound.keep_file(),
            Err(error) => warn(&error),
        }
    }

    /// Has sockets closed that were kept. Afterwards their addresses are free, unless somebody else
    /// has the sockets: a socket unit keeps its own.
    pub(crate) fn forget(self, unwanted: Vec<Bound>) {
        let names: Vec<_> = unwanted.iter().filter_map(name_of).collect();
        drop(unwanted);
        for name in &names {
            self.tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)]);
        }
        if self.is_there
            && !names.is_empty()
            && let Err(error) = wait_until_handled()
        {
            warn(&error);
        }
    }

    fn tell(self, state: &[NotifyState<'_>]) {
        if self.is_there
            && let Err(error) = sd_notify::notify(state)
        {
            warn(&error);
        }
    }
}

/// Waits until the service manager has handled all that it was told: it closes what comes with
/// this.
fn wait_until_handled() -> io::Result<()> {
    let (mut ours, theirs) = UnixStream::pair()?;
    sd_notify::notify_with_fds(&[NotifyState::Custom("BARRIER=1")], &[theirs.as_fd()])?;
    drop(theirs);
    ours.set_read_timeout(Some(PATIENCE))?;
    let mut nothing = [0];
    ours.read(&mut nothing).map(|_| ())
}

fn warn(error: &io::Error) {
    tracing::warn!("can't notify the service manager (NOTIFY_SOCKET): {error}");
}

/// The sockets that the service manager has given to this process.
pub(crate) fn passed_sockets() -> Vec<Bound> {
    // Without our own `LISTEN_PID`, the sockets may be meant for another process.
    let is_for_us =
        std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    if !is_for_us {
        return Vec::new();
    }
    let mut passed = ListenFd::from_env();
    let mut sockets = Vec::new();
    for place in 0..passed.len() {
        let bound = match passed.take_tcp_listener(place) {
            Ok(listener) => listener.map(Bound::from_tcp),
            // It may be of the other kind.
            Err(_) => passed
                .take_unix_listener(place)
                .ok()
                .flatten()
                .and_then(Bound::from_unix),
        };
        if let Some(bound) = bound {
            sockets.push(bound);
        } else {
            tracing::warn!(
                "the service manager passed something that isn't a socket to listen on; it isn't \
                 used"
            );
        }
    }
    sockets
}

/// What a kept socket is called: its address, in bytes that a name may have.
fn name_of(bound: &Bound) -> Option<String> {
    let name = name_at(&bound.endpoint().ok()?);
    (name.len() <= NAME_BYTES_MAX).then_some(name)
}

fn name_at(endpoint: &Endpoint) -> String {
    let is_allowed = |c: &char| c.is_ascii_graphic() && *c != ':';
    endpoint
        .to_string()
        .chars()
        .map(|c| if is_allowed(&c) { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_sockets_name_is_its_address_without_colons() {
        let name = |endpoint: &str| name_at(&endpoint.parse().unwrap());
        assert_eq!(name("127.0.0.1:3307"), "127.0.0.1-3307");
        assert_eq!(name("[::1]:3307"), "[--1]-3307");
        assert_eq!(name("unix:/run/ein könig"), "unix-/run/ein-k-nig");
    }
}
