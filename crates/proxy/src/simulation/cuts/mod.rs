//! Every kind of exchange, cut on either side, in memory and in simulated time: at every byte near
//! its beginning and its end, and at every seventh in between. The long test cuts at every byte.
//!
//! A relay between a session and the server cuts there, and a client leaves by itself. After each
//! cut nothing goes on: the session ends, and so do its fill, its fence and its connection to the
//! server. The client has got the start of what a client without a fault gets, or that and an
//! error. The next client gets what the server says.
//!
//! `behaviour/tests/proof/sweep` does the same with real servers, at fewer places.
//!
//! | file | what it is |
//! |---|---|
//! | `kinds` | what is sent |
//! | `caller` | the client, which leaves |
//! | `relay` | the connection to the server, which is cut |
//! | `server` | a server that answers at once |

mod caller;
mod kinds;
mod relay;
mod server;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use remora_cache::BrokenRules;
use remora_engine::reason::Outcome;
use remora_net::Stream;
use remora_upstream::simulated::SimulatedFollower;
use remora_wire::packet::{HEADER_BYTES, Header};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use self::caller::{End, Leave, Played};
use self::kinds::{Kind, kinds, next_client};
use self::relay::{Traffic, Way};
use self::server::Storage;
use super::server::{MARK_HOLDER, instance};
use crate::session::{self, ClientConnection, WorkerContext};
use crate::shared::Shared;

/// What a socket holds, bytes: less than the long result set, so that its writers wait.
const SOCKET_BYTES: usize = 200;
/// Longer than anything takes if nothing hangs.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often the follower asks and is answered.
const FOLLOWS_EVERY: Duration = Duration::from_millis(1);
/// Nearer than this to where an exchange begins or ends it is cut at every byte.
const NEAR_BYTES: usize = 150;
/// In between it is cut at every so many bytes.
const STEP: usize = 7;
/// How many of the next client's statements memory answers, whatever came before.
const IN_MEMORY: u64 = 2;
/// How many exchanges without a cut it may take until memory has what the next client asks, or
/// until two go alike.
const TRIES_MAX: usize = 10;

/// Where an exchange is cut.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Client(Leave),
    Server(Way, usize),
}

/// How much went each way, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lengths {
    sent: usize,
    received: usize,
    to_server: usize,
    to_remora: usize,
}

impl Lengths {
    fn of(played: &Played, traffic: &Traffic) -> Lengths {
        Lengths {
            sent: played.sent.len(),
            received: played.received.len(),
            to_server: traffic.to_server.len(),
            to_remora: traffic.to_remora.len(),
        }
    }

    /// Where the first cut is: after one byte. Before it there is nothing to cut.
    fn first_byte() -> Lengths {
        Lengths {
            sent: 1,
            received: 1,
            to_server: 1,
            to_remora: 1,
        }
    }
}

/// What the next client got, when memory had nothing and the row had this value.
struct Said {
    bytes: Vec<u8>,
    value: u64,
}

/// A Remora, its follower, and what the server's conversations share.
struct World {
    shared: Arc<Shared>,
    worker: Rc<WorkerContext>,
    follower: SimulatedFollower,
    storage: Rc<RefCell<Storage>>,
    /// What makes each exchange another one.
    tag: usize,
    /// What the next client gets, after its login; `None` until it was asked.
    said: Option<Said>,
}

impl World {
    async fn new(broken: BrokenRules) -> World {
        let settings = super::settings("after_snapshot", 0);
        let (shared, metrics) = super::shared(&settings, broken);
        let follower =
            SimulatedFollower::start(Arc::clone(&shared.upstream), instance(), MARK_HOLDER);
        let of_worker = metrics.worker(0).expect("there is a worker");
        let digests = shared.digests.worker(0).expect("there is a worker");
        let mut world = World {
            worker: Rc::new(WorkerContext::new(&shared, of_worker, digests)),
            shared,
            follower,
            storage: Storage::new(),
            tag: 0,
            said: None,
        };
        // Nothing is in memory yet: that is what the server says.
        let (said, _) = world.play(&next_client(), None).await;
        world.said = Some(Said {
            bytes: after_login(&said).to_vec(),
            value: world.value(),
        });
        world.warm().await;
        world
    }

    /// Has memory take what the kinds with hits ask for.
    async fn warm(&mut self) {
        for _ in 0..TRIES_MAX {
            let before = self.hits();
            self.play(&next_client(), None).await;
            self.expect_nothing_left("warming").await;
            if self.hits() >= before + IN_MEMORY {
                return;
            }
        }
        panic!("memory doesn't take what the next client asks");
    }

    /// The value of the row that is changed.
    fn value(&self) -> u64 {
        self.storage.borrow().shown_value()
    }

    fn hits(&self) -> u64 {
        self.worker.metrics.outcome(Outcome::Hit)
    }

    /// Runs one exchange to its end, whatever that is. Memory has nothing of it.
    async fn play(&mut self, kind: &Kind, cut: Option<Cut>) -> (Played, Traffic) {
        self.tag += 1;
        self.play_again(kind, cut).await
    }

    /// The same with the tag of the one before.
    async fn play_again(&mut self, kind: &Kind, cut: Option<Cut>) -> (Played, Traffic) {
        let (leave, order) = match cut {
            None => (Leave::Never, None),
            Some(Cut::Client(leave)) => (leave, None),
            Some(Cut::Server(way, at)) => (Leave::Never, Some((way, at))),
        };
        let (near, of_client) = Stream::pair(SOCKET_BYTES);
        let (of_server, of_session) = Stream::pair(SOCKET_BYTES);
        let (to_server, far) = Stream::pair(SOCKET_BYTES);
        let traffic = Rc::new(RefCell::new(Traffic::default()));
        let server = spawn_local(server::converse(far, Rc::clone(&self.storage)));
        let relay = relay::carry(of_session, to_server, order, Rc::clone(&traffic));
        let relay = spawn_local(relay);
        let (shared, worker) = (Arc::clone(&self.shared), Rc::clone(&self.worker));
        let of_server = Some(Box::new(of_server));
        let session = session::serve(
            shared,
            worker,
            Rc::new(ClientConnection::new(of_client)),
            of_server,
        );
        let session = spawn_local(session);
        let caller = spawn_local(caller::play(near, leave, kind.commands(self.tag)));
        let all = async {
            let played = caller.await.expect("the caller comes to its end");
            session.await.expect("the session comes to its end");
            relay.await.expect("the relay comes to its end");
            server.await.expect("the server comes to its end");
            played
        };
        let played = self.until(&format!("{}, {cut:?}", kind.name), all).await;
        (played, traffic.take())
    }

    /// Follows the server until something is over.
    async fn until<T>(&mut self, what: &str, over: impl Future<Output = T>) -> T {
        let (follower, storage) = (&mut self.follower, &self.storage);
        let follow = async {
            loop {
                // First it waits: what a client does at once is done before the log is read.
                sleep(FOLLOWS_EVERY).await;
                let mut storage = storage.borrow_mut();
                while let Some(event) = storage.next_event() {
                    follower.take(&event.kept, event.bytes);
                }
                for asked in follower.wanted() {
                    follower.ask(asked);
                }
                while follower.is_asking() {
                    follower.answer(storage.commits(), storage.commits());
                }
                follower.load();
            }
        };
        let over = timeout(SILENCE_MAX, over);
        tokio::select! {
            // In a fixed order, so that each run is the same.
            biased;
            result = over => result.unwrap_or_else(|_| panic!("{what}: it hangs")),
            () = follow => unreachable!("it follows for ever"),
        }
    }

    /// Nothing is left of an exchange.
    async fn expect_nothing_left(&mut self, what: &str) {
        let shared = Arc::clone(&self.shared);
        let nothing_left = async {
            // The follower takes a step at least.
            sleep(2 * FOLLOWS_EVERY).await;
            while shared.timeline.has_fences() {
                // A cut write wakes nobody: its fence is lowered with the next probe.
                shared.upstream.wake();
                sleep(FOLLOWS_EVERY).await;
            }
        };
        self.until(what, nothing_left).await;
        assert!(self.shared.fills.is_empty(), "{what}: a fill goes on");
        assert!(
            self.shared.sessions.all().is_empty(),
            "{what}: a session is listed"
        );
        let unexpected = self.storage.borrow_mut().take_unexpected();
        assert!(
            unexpected.is_empty(),
            "{what}: the server didn't expect {unexpected:?}"
        );
    }

    /// Runs an exchange that nothing cuts until two go alike. At first Remora may ask the server
    /// more than later.
    async fn steady(&mut self, kind: &Kind) -> (Played, Traffic) {
        let mut before = None;
        for _ in 0..TRIES_MAX {
            if kind.writes() {
                self.warm().await;
            }
            let (played, traffic) = self.play(kind, None).await;
            assert_eq!(played.end, End::Complete, "{}", kind.name);
            self.expect_nothing_left(kind.name).await;
            let lengths = Lengths::of(&played, &traffic);
            if before.replace(lengths) == Some(lengths) {
                return (played, traffic);
            }
        }
        panic!("{}: no two exchanges go alike", kind.name);
    }

    /// Cuts one kind everywhere; gives how many cuts there were.
    async fn sweep(&mut self, kind: Kind, step: usize) -> usize {
        let mut from = Lengths::first_byte();
        let mut kind = kind;
        if !kind.begins_at_once {
            let before = kinds::before();
            let (played, traffic) = self.steady(&before).await;
            from = Lengths::of(&played, &traffic);
            kind = kind.after(&before);
        }
        let (whole, traffic) = self.steady(&kind).await;
        // It was the last, and wrote at most once.
        let value = self.value() - u64::from(kind.writes());
        let places = |stream: &[u8], from: usize| places(stream.len(), from, step);
        let after_sending = places(&whole.sent, from.sent).into_iter();
        let mut after_receiving = places(&whole.received, from.received);
        // There it is over.
        after_receiving.retain(|at| *at < whole.received.len());
        let to_server = places(&traffic.to_server, from.to_server).into_iter();
        let to_remora = places(&traffic.to_remora, from.to_remora).into_iter();
        let cuts: Vec<_> = after_sending
            .map(|at| Cut::Client(Leave::AfterSending(at)))
            .chain(
                after_receiving
                    .into_iter()
                    .map(|at| Cut::Client(Leave::AfterReceiving(at))),
            )
            .chain(to_server.map(|at| Cut::Server(Way::ToServer, at)))
            .chain(to_remora.map(|at| Cut::Server(Way::ToRemora, at)))
            .collect();
        let whole = Whole {
            received: whole.received,
            value,
        };
        for cut in &cuts {
            self.cut_once(&kind, *cut, &whole).await;
        }
        cuts.len()
    }

    async fn cut_once(&mut self, kind: &Kind, cut: Cut, whole: &Whole) {
        let what = format!("{}, {cut:?}", kind.name);
        if kind.writes() {
            self.warm().await;
        }
        let value = self.value();
        let (played, traffic) = self.play(kind, Some(cut)).await;
        let came = match cut {
            Cut::Client(_) => played.end == End::Left,
            Cut::Server(..) => traffic.was_cut,
        };
        assert!(came, "{what}: {:?}", played.end);
        let expected = with_values(&whole.received, whole.value, value);
        assert_start_of(&expected, &played.received, &what);
        // At once, and when the log was read and the fence lowered.
        self.expect_truth(&what).await;
        self.expect_nothing_left(&what).await;
        let hits = self.hits();
        self.expect_truth(&what).await;
        // Of what a write has changed it may have lost.
        let in_memory = if kind.writes() { 1 } else { IN_MEMORY };
        let is_kept = self.hits() >= hits + in_memory;
        assert!(is_kept, "{what}: memory has lost something");
        self.expect_nothing_left(&what).await;
    }

    /// The next client gets what the server says.
    async fn expect_truth(&mut self, what: &str) {
        let (next, _) = self.play_again(&next_client(), None).await;
        assert_eq!(next.end, End::Complete, "the next client after {what}");
        let said = self.said.as_ref().expect("it was asked at first");
        let truth = with_values(&said.bytes, said.value, self.value());
        let is_true = after_login(&next) == truth;
        assert!(is_true, "{what}: the next client gets something else");
    }
}

/// An exchange that nothing cut: what the client got, and the row's value before it.
struct Whole {
    received: Vec<u8>,
    value: u64,
}

/// The bytes with another value of the row, and with one more where they have one more; in texts
/// and in binary rows.
fn with_values(bytes: &[u8], from: u64, to: u64) -> Vec<u8> {
    let mut replaced = bytes.to_vec();
    for more in [0, 1] {
        let (from, to) = (from + more, to + more);
        let forms = [
            (from.to_string().into_bytes(), to.to_string().into_bytes()),
            (from.to_le_bytes().to_vec(), to.to_le_bytes().to_vec()),
        ];
        for (from, to) in forms {
            let mut at = 0;
            // To look at each place whole would be most of what a sweep does.
            while let Some(next) = bytes[at..].iter().position(|byte| *byte == from[0]) {
                at += next;
                if bytes[at..].starts_with(&from) {
                    replaced[at..at + to.len()].copy_from_slice(&to);
                }
                at += 1;
            }
        }
    }
    replaced
}

/// Where to cut a stream, from some byte on: at every byte near its beginning and its end, and at
/// every so many in between.
fn places(bytes: usize, from: usize, step: usize) -> Vec<usize> {
    let is_near_an_end = |at: &usize| at - from < NEAR_BYTES || bytes - at < NEAR_BYTES;
    (from..=bytes)
        .filter(|at| is_near_an_end(at) || (at - from).is_multiple_of(step))
        .collect()
}

fn after_login(played: &Played) -> &[u8] {
    &played.received[played.login.1..]
}

/// Whether the client got the start of what it would have got, or that and an error.
fn assert_start_of(whole: &[u8], got: &[u8], what: &str) {
    if whole.starts_with(got) {
        return;
    }
    let same = got.iter().zip(whole).take_while(|(a, b)| a == b).count();
    // The packet in which they part is an error, and the last.
    let mut at = 0;
    while let Some(header) = Header::peek(&got[at..]) {
        let end = at + HEADER_BYTES + header.length;
        if end > same {
            let is_error = got.get(at + HEADER_BYTES) == Some(&0xff) && end == got.len();
            assert!(is_error, "{what}: {:?}", &got[at..]);
            return;
        }
        at = end;
    }
    panic!("{what}: it got more than a client without a fault");
}

#[test]
fn every_exchange_can_be_cut_on_either_side() {
    sweep_all(STEP, BrokenRules::default(), |_| true);
}

#[test]
#[should_panic(expected = "the next client gets something else")]
fn an_old_row_after_a_cut_write_is_found() {
    let broken = BrokenRules {
        fences: true,
        ..BrokenRules::default()
    };
    sweep_all(STEP, broken, |kind| kind.name == "write");
}

mod exhaustive {
    use super::{BrokenRules, sweep_all};

    #[test]
    fn every_exchange_can_be_cut_at_every_byte_on_either_side() {
        sweep_all(1, BrokenRules::default(), |_| true);
    }
}

fn sweep_all(step: usize, broken: BrokenRules, is_meant: fn(&Kind) -> bool) {
    super::in_simulated_time(async {
        let mut total = 0;
        for kind in kinds().into_iter().filter(is_meant) {
            let mut world = Box::pin(World::new(broken)).await;
            let name = kind.name;
            let cuts = Box::pin(world.sweep(kind, step)).await;
            eprintln!("{name:20} {cuts:5} cuts");
            total += cuts;
        }
        eprintln!("{total} cuts");
    });
}
