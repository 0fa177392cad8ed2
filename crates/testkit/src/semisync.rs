//! A semi-synchronous replica whose acknowledgements are held back.
//!
//! With `rpl_semi_sync_master_wait_point = AFTER_SYNC` a server writes a commit to its binary log,
//! sends it to its replicas, and lets nobody see its rows before a semi-synchronous replica has
//! acknowledged it. Between the two lies what a cache must survive: the event is there, the rows
//! aren't. Here that time is as long as a test wants it.
//!
//! Source of the protocol: MariaDB, `sql/semisync.h`, `sql/semisync_master.cc`.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use remora_wire::packet::put_message;

use crate::client::Client;
use crate::process::wait_for;
use crate::servers::Server;

/// `COM_BINLOG_DUMP`.
const BINLOG_DUMP: u8 = 0x12;
/// Begins the two bytes before each event, and each acknowledgement.
const MAGIC: u8 = 0xef;
/// In the second of those bytes: the event is to be acknowledged.
const WANTS_ACKNOWLEDGEMENT: u8 = 0x01;
/// Where an event's header says its type, and at which offset the next one begins.
const TYPE_AT: usize = 4;
const NEXT_AT: usize = 13;
const HEADER_BYTES: usize = 19;
/// A rotate event names the next file after eight bytes of offset.
const ROTATE: u8 = 4;
/// How long a server waits for an acknowledgement: longer than any test.
const TIMEOUT_MS: u64 = 600_000;
const PATIENCE: Duration = crate::process::PATIENCE;

/// When commits are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledge {
    /// So long after their event arrived.
    After(Duration),
    /// When [`SemiSyncReplica::let_go`] says so.
    WhenTold,
}

#[derive(Debug)]
struct Waiting {
    arrived: Instant,
    file: Vec<u8>,
    offset: u64,
}

#[derive(Debug)]
struct State {
    acknowledge: Acknowledge,
    waiting: VecDeque<Waiting>,
    ended: bool,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A replica that takes part in the server's semi-synchronous replication. Dropped, it turns that
/// off.
#[derive(Debug)]
pub struct SemiSyncReplica {
    shared: Shared,
    stream: TcpStream,
    control: Client,
    threads: Vec<JoinHandle<()>>,
}

impl SemiSyncReplica {
    /// Joins `server` as the replica with this number, and has the server wait for it from now on.
    pub fn join(
        server: &Server,
        server_id: u32,
        acknowledge: Acknowledge,
    ) -> anyhow::Result<SemiSyncReplica> {
        let mut control = server.root()?;
        let position = server.position()?;
        let (file, offset) = position.rsplit_once(':').context("no position")?;
        let mut client = server.root()?;
        client.query("SET @mariadb_slave_capability = 4, @rpl_semi_sync_slave = 1")?;
        client.query("SET @master_binlog_checksum = @@global.binlog_checksum")?;
        let mut dump = vec![BINLOG_DUMP];
        dump.extend_from_slice(&offset.parse::<u32>()?.to_le_bytes());
        dump.extend_from_slice(&[0, 0]);
        dump.extend_from_slice(&server_id.to_le_bytes());
        dump.extend_from_slice(file.as_bytes());
        let mut message = Vec::new();
        put_message(&mut message, 0, &dump);
        let stream = client.stream().try_clone()?;
        stream.set_read_timeout(None)?;
        (&stream).write_all(&message)?;
        control.query(&format!(
            "SET GLOBAL rpl_semi_sync_master_timeout = {TIMEOUT_MS}"
        ))?;
        control.query("SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC")?;
        control.query("SET GLOBAL rpl_semi_sync_master_enabled = ON")?;
        let state = State {
            acknowledge,
            waiting: VecDeque::new(),
            ended: false,
        };
        let shared: Shared = Arc::new((Mutex::new(state), Condvar::new()));
        let reader = {
            let (shared, file) = (Arc::clone(&shared), file.as_bytes().to_vec());
            std::thread::spawn(move || {
                // An error is the end of the connection: the replica left or the server did.
                let _ = read_events(client.stream(), file, &shared);
            })
        };
        let writer = {
            let (shared, stream) = (Arc::clone(&shared), stream.try_clone()?);
            std::thread::spawn(move || acknowledge_all(&shared, &stream))
        };
        let mut replica = SemiSyncReplica {
            shared,
            stream,
            control,
            threads: vec![reader, writer],
        };
        replica.wait_until_counted()?;
        Ok(replica)
    }

    fn wait_until_counted(&mut self) -> anyhow::Result<()> {
        let control = &mut self.control;
        wait_for("the server to count its replica", PATIENCE, || {
            let rows = control
                .query("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'")?
                .rows()?;
            let clients = rows.first().and_then(|row| row.get(1)?.clone());
            Ok((clients.as_deref() == Some(b"1")).then_some(()))
        })
    }

    /// How many commits wait for their acknowledgement.
    pub fn waiting(&self) -> usize {
        lock(&self.shared).waiting.len()
    }

    /// Waits until a commit waits.
    pub fn wait_until_held(&self) -> anyhow::Result<()> {
        wait_for("a commit that waits", PATIENCE, || {
            Ok((self.waiting() > 0).then_some(()))
        })
    }

    /// Acknowledges what waits, once.
    pub fn let_go(&self) -> anyhow::Result<()> {
        let waiting: Vec<Waiting> = lock(&self.shared).waiting.drain(..).collect();
        if waiting.is_empty() {
            bail!("no commit waits");
        }
        for commit in &waiting {
            send(&self.stream, commit)?;
        }
        Ok(())
    }

    /// Acknowledges in another manner from now on.
    pub fn acknowledge(&self, how: Acknowledge) {
        lock(&self.shared).acknowledge = how;
        self.shared.1.notify_all();
    }
}

impl Drop for SemiSyncReplica {
    fn drop(&mut self) {
        // Those who wait are let go by this; the server may also be gone.
        let _ = self
            .control
            .query("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
        lock(&self.shared).ended = true;
        self.shared.1.notify_all();
        let _ = self.stream.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn read_events(mut stream: &TcpStream, mut file: Vec<u8>, shared: &Shared) -> anyhow::Result<()> {
    let mut payload = Vec::new();
    loop {
        let mut header = [0; 4];
        stream.read_exact(&mut header)?;
        let length =
            usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        payload.resize(length, 0);
        stream.read_exact(&mut payload)?;
        let (&status, rest) = payload.split_first().context("an empty packet")?;
        if status != 0 {
            bail!(
                "the server ended the log: {}",
                String::from_utf8_lossy(rest)
            );
        }
        // Fake events may come without the two bytes; they are never acknowledged.
        let (wants, event) = match rest {
            [MAGIC, flag, event @ ..] => (*flag == WANTS_ACKNOWLEDGEMENT, event),
            event => (false, event),
        };
        let Some(head) = event.first_chunk::<HEADER_BYTES>() else {
            bail!("an event without a header");
        };
        if head[TYPE_AT] == ROTATE
            && let Some(name) = event.get(HEADER_BYTES + 8..HEADER_BYTES + 8 + file.len())
        {
            file = name.to_vec();
        }
        if wants {
            let next = [
                head[NEXT_AT],
                head[NEXT_AT + 1],
                head[NEXT_AT + 2],
                head[NEXT_AT + 3],
            ];
            let waiting = Waiting {
                arrived: Instant::now(),
                file: file.clone(),
                offset: u32::from_le_bytes(next).into(),
            };
            lock(shared).waiting.push_back(waiting);
            shared.1.notify_all();
        }
    }
}

fn acknowledge_all(shared: &Shared, stream: &TcpStream) {
    let mut state = lock(shared);
    while !state.ended {
        let due = match (state.acknowledge, state.waiting.front()) {
            (Acknowledge::After(delay), Some(oldest)) => {
                Some((oldest.arrived + delay).saturating_duration_since(Instant::now()))
            }
            _ => None,
        };
        state = match due {
            Some(Duration::ZERO) => {
                if let Some(commit) = state.waiting.pop_front() {
                    drop(state);
                    if send(stream, &commit).is_err() {
                        return;
                    }
                }
                lock(shared)
            }
            Some(wait) => {
                let waited = shared.1.wait_timeout(state, wait);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = shared.1.wait(state);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
    }
}

fn send(mut stream: &TcpStream, commit: &Waiting) -> std::io::Result<()> {
    let mut payload = vec![MAGIC];
    payload.extend_from_slice(&commit.offset.to_le_bytes());
    payload.extend_from_slice(&commit.file);
    let mut message = Vec::new();
    put_message(&mut message, 0, &payload);
    stream.write_all(&message)
}
