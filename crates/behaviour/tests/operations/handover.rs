//! One process takes over from another: sockets that a service manager keeps, and transactions that
//! may end. The test plays the service manager, in systemd's protocol.

use std::ffi::OsString;
use std::io::{ErrorKind, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use remora_testkit::client::{Client, ClientError};
use remora_testkit::ports;
use remora_testkit::process::{Program, wait_for};
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{SCHEMA, Server};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process};

use crate::lifecycle::program;

use remora_behaviour::front::{PATIENCE, lease};

/// What a service manager is and keeps.
struct Manager {
    socket: UnixDatagram,
    scratch: Scratch,
}

/// What Remora has told it.
#[derive(Debug)]
struct Told {
    lines: Vec<String>,
    sockets: Vec<OwnedFd>,
}

impl Told {
    fn is(&self, line: &str) -> bool {
        self.lines.iter().any(|told| told == line)
    }
}

impl Manager {
    fn new() -> Manager {
        let scratch = Scratch::new().unwrap();
        let socket = UnixDatagram::bind(scratch.join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Manager { socket, scratch }
    }

    /// A Remora that it starts, with a socket that it has kept.
    fn start(
        &self,
        server: &Server,
        options: &RemoraOptions,
        at: (SocketAddr, SocketAddr),
        kept: Option<&Arc<OwnedFd>>,
    ) -> Remora {
        let mut under = self.command(kept);
        let program = under.pop();
        let options = RemoraOptions {
            program: program.map(Into::into),
            under,
            standard_input: kept.cloned(),
            ..options.clone()
        };
        Remora::start_at(server, &options, at.0, at.1).unwrap()
    }

    /// What it starts: Remora, with what it has kept as its standard input.
    fn command(&self, kept: Option<&Arc<OwnedFd>>) -> Vec<OsString> {
        let passing = if kept.is_some() {
            "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; "
        } else {
            ""
        };
        let notify = self.scratch.join("notify");
        let script = format!(
            "{passing}export NOTIFY_SOCKET='{}'; exec \"$@\"",
            notify.display()
        );
        let shell = ["/bin/sh", "-c", &script, "sh"];
        let shell = shell.into_iter().map(OsString::from);
        shell.chain([program().into()]).collect()
    }

    fn log(&self) -> PathBuf {
        self.scratch.join("log")
    }

    /// What it is told next.
    fn told(&self) -> Told {
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
        .unwrap();
        assert!(!received.flags.contains(ReturnFlags::TRUNC));
        let text = std::str::from_utf8(&bytes[..received.bytes]).unwrap();
        let sockets = ancillary.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => sockets.collect(),
            _ => Vec::new(),
        });
        Told {
            lines: text.lines().map(str::to_owned).collect(),
            sockets: sockets.collect(),
        }
    }

    /// The socket that it is to keep, which must be told next.
    fn keeps(&self, name: &str) -> Arc<OwnedFd> {
        let mut told = self.told();
        assert!(told.is("FDSTORE=1"), "{told:?}");
        assert!(told.is("FDPOLL=0"), "{told:?}");
        assert!(told.is(&format!("FDNAME={name}")), "{told:?}");
        assert_eq!(told.sockets.len(), 1, "{told:?}");
        Arc::new(told.sockets.remove(0))
    }

    fn is_told(&self, line: &str) {
        let told = self.told();
        assert!(told.is(line), "{line} is to be told, and it was {told:?}");
    }
}

fn name_of(address: SocketAddr) -> String {
    address.to_string().replace(':', "-")
}

fn free_addresses() -> (SocketAddr, SocketAddr) {
    (ports::free().unwrap(), ports::free().unwrap())
}

#[test]
fn clients_that_connect_during_a_restart_wait_for_the_next_process() {
    let server = lease();
    let manager = Manager::new();
    let at = free_addresses();
    let options = RemoraOptions::following();
    let mut first = manager.start(&server, &options, at, None);
    let kept = manager.keeps(&name_of(at.0));
    manager.is_told("READY=1");
    assert!(first.stop().unwrap());
    manager.is_told("STOPPING=1");
    // Now there is no process, and the server's greeting must come from the next.
    let waiting = TcpStream::connect(at.0).expect("nobody is refused");
    let through = server.app().at(at.0);
    let asking = std::thread::spawn(move || through.connect()?.query_value("SELECT 7"));
    let mut second = manager.start(&server, &options, at, Some(&kept));
    assert_eq!(asking.join().unwrap().unwrap().as_deref(), Some("7"));
    drop(waiting);
    // It has that socket already: there is nothing more to be kept.
    manager.is_told("READY=1");
    assert!(second.stop().unwrap());
    manager.is_told("STOPPING=1");

    // On another address, the old socket must be gone before the new one is bound.
    let elsewhere = free_addresses();
    let third = std::thread::scope(|scope| {
        let starting = scope.spawn(|| manager.start(&server, &options, elsewhere, Some(&kept)));
        let told = manager.told();
        assert!(told.is("FDSTOREREMOVE=1"), "{told:?}");
        assert!(told.is(&format!("FDNAME={}", name_of(at.0))), "{told:?}");
        let told = manager.told();
        assert!(told.is("BARRIER=1"), "{told:?}");
        // It is handled when this is closed.
        assert_eq!(told.sockets.len(), 1, "{told:?}");
        drop(told);
        let _kept_now = manager.keeps(&name_of(elsewhere.0));
        manager.is_told("READY=1");
        starting.join().unwrap()
    });
    let said = format!("passed a socket for {}", at.0);
    assert!(third.log_tail().contains(&said), "{}", third.log_tail());
    drop(kept);
    assert!(
        TcpStream::connect(at.0).is_err(),
        "nobody listens there now"
    );
}

#[test]
fn a_unix_sockets_file_outlives_the_process_if_the_socket_is_kept() {
    let server = lease();
    let manager = Manager::new();
    let path = manager.scratch.join("remora.sock");
    let start = |kept: Option<&Arc<OwnedFd>>| {
        let mut program = Program::of_command("remora", manager.command(kept), manager.log())
            .unwrap()
            .arg("serve")
            .arg(format!("--listen=unix:{}", path.display()))
            .arg("--admin=off")
            .arg(format!("--upstream={}", server.address()));
        if let Some(kept) = kept {
            program = program.standard_input(Arc::clone(kept));
        }
        program.spawn().unwrap()
    };
    let greeting = || {
        let mut byte = [0];
        let mut client = UnixStream::connect(&path).expect("nobody is refused");
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        std::thread::spawn(move || client.read_exact(&mut byte).is_ok())
    };
    let mut first = start(None);
    let kept = manager.keeps(&format!("unix-{}", path.display()));
    manager.is_told("READY=1");
    assert!(greeting().join().unwrap());
    assert!(first.stop(PATIENCE).unwrap().success());
    manager.is_told("STOPPING=1");
    let greeted = greeting();
    let mut second = start(Some(&kept));
    manager.is_told("READY=1");
    assert!(greeted.join().unwrap());
    assert!(second.stop(PATIENCE).unwrap().success());
}

#[test]
fn a_reload_is_told_from_its_beginning_to_its_end() {
    let server = lease();
    let manager = Manager::new();
    let at = free_addresses();
    let remora = manager.start(&server, &RemoraOptions::following(), at, None);
    let _kept = manager.keeps(&name_of(at.0));
    manager.is_told("READY=1");
    let id = Pid::from_raw(i32::try_from(remora.id()).unwrap()).unwrap();
    kill_process(id, Signal::HUP).unwrap();
    let told = manager.told();
    assert!(told.is("RELOADING=1"), "{told:?}");
    assert!(
        told.lines
            .iter()
            .any(|line| line.starts_with("MONOTONIC_USEC=")),
        "{told:?}"
    );
    manager.is_told("READY=1");
}

const ACCOUNTS: usize = 4;

/// MySQL's error for the transaction that is rolled back where two wait for each other.
const DEADLOCK: u16 = 1213;

/// A client that moves money from its account to another's, and connects again whenever its
/// connection is closed between transactions.
struct Payer<'a> {
    number: usize,
    /// How many of its payments the server has acknowledged.
    paid: &'a AtomicU64,
}

impl Payer<'_> {
    fn pay_until(&self, is_over: &AtomicBool, connect: impl Fn() -> Result<Client, ClientError>) {
        let mut client = None;
        while !is_over.load(Ordering::SeqCst) {
            let Some(connected) = &mut client else {
                match connect() {
                    Ok(connected) => client = Some(connected),
                    // The old process may have accepted it in its last moment, and closed it.
                    Err(error) => assert!(!is_refused(&error), "a client was refused: {error}"),
                }
                continue;
            };
            let read = format!("SELECT paid FROM payer WHERE id = {}", self.number);
            let begun = connected
                .query_value(&read)
                .map(|paid| {
                    let known = self.paid.load(Ordering::SeqCst).to_string();
                    assert_eq!(paid.unwrap(), known, "an old row");
                })
                .and_then(|()| connected.query("BEGIN").map(drop));
            match begun {
                Ok(()) => self.pay(connected),
                Err(_) => client = None,
            }
        }
    }

    /// What is begun goes on to its end.
    fn pay(&self, client: &mut Client) {
        let (from, to) = (self.number, (self.number + 1) % ACCOUNTS);
        for sql in [
            format!("UPDATE account SET money = money - 1 WHERE id = {from}"),
            "SELECT SUM(money) FROM account".to_owned(),
            format!("UPDATE payer SET paid = paid + 1 WHERE id = {from}"),
            format!("UPDATE account SET money = money + 1 WHERE id = {to}"),
            "COMMIT".to_owned(),
        ] {
            match client.query(&sql) {
                Ok(_) => {}
                // Two payers wait for each other: the server has rolled this one back.
                Err(error) if error.code() == Some(DEADLOCK) => return,
                Err(error) => panic!("a transaction was cut off at {sql}: {error}"),
            }
        }
        self.paid.fetch_add(1, Ordering::SeqCst);
    }
}

fn is_refused(error: &ClientError) -> bool {
    matches!(error, ClientError::Io(error) if error.kind() == ErrorKind::ConnectionRefused)
}

/// Money is moved in transactions while one process after the other takes over, with the results of
/// the one before.
#[test]
fn no_transaction_is_cut_off_and_nobody_is_refused_while_processes_follow_each_other() {
    let server = lease();
    let manager = Manager::new();
    let at = free_addresses();
    let rows = |value: &str| -> String {
        let rows: Vec<_> = (0..ACCOUNTS).map(|id| format!("({id}, {value})")).collect();
        rows.join(", ")
    };
    server
        .execute([
            "CREATE TABLE account (id INT PRIMARY KEY, money INT NOT NULL)".to_owned(),
            format!("INSERT INTO account VALUES {}", rows("100")),
            "CREATE TABLE payer (id INT PRIMARY KEY, paid INT NOT NULL)".to_owned(),
            format!("INSERT INTO payer VALUES {}", rows("0")),
        ])
        .unwrap();
    let file = manager.scratch.join("results");
    // No transaction shall be too long for it, however slow the machine is.
    let options = RemoraOptions::storing_all()
        .with("shutdown.grace_ms", "3600000")
        .with("cache.state_file", &file.display().to_string());
    let mut remora = manager.start(&server, &options, at, None);
    let kept = manager.keeps(&name_of(at.0));
    manager.is_told("READY=1");
    let is_over = AtomicBool::new(false);
    let paid: [AtomicU64; ACCOUNTS] = Default::default();
    let connect = || server.app().at(at.0).connect();
    std::thread::scope(|scope| {
        for (number, paid) in paid.iter().enumerate() {
            let (connect, is_over) = (&connect, &is_over);
            scope.spawn(move || Payer { number, paid }.pay_until(is_over, connect));
        }
        // If one of these fails, the payers end as well.
        let _over = Over(&is_over);
        for _ in 0..4 {
            // A payer that pays has connected to this process.
            each_pays(&paid);
            assert!(remora.stop().unwrap());
            manager.is_told("STOPPING=1");
            remora = manager.start(&server, &options, at, Some(&kept));
            manager.is_told("READY=1");
        }
        each_pays(&paid);
    });
    let mut root = server.root().unwrap();
    for (number, paid) in paid.iter().enumerate() {
        let read = format!("SELECT paid FROM {SCHEMA}.payer WHERE id = {number}");
        let seen = root.query_value(&read).unwrap().unwrap();
        assert_eq!(seen, paid.load(Ordering::SeqCst).to_string());
    }
    let read = format!("SELECT SUM(money) FROM {SCHEMA}.account");
    let sum = root.query_value(&read).unwrap().unwrap();
    assert_eq!(sum, (100 * ACCOUNTS).to_string());
}

/// Waits until each payer has paid twice more.
fn each_pays(paid: &[AtomicU64]) {
    let now = || paid.iter().map(|paid| paid.load(Ordering::SeqCst));
    let before: Vec<u64> = now().collect();
    wait_for("each to pay", PATIENCE, || {
        let has_paid = now().zip(&before).all(|(now, before)| now >= before + 2);
        Ok(has_paid.then_some(()))
    })
    .unwrap();
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
