//! Every kind of exchange, cut on either side, in memory and in simulated time: at every byte near
//! its beginning and its end, and at every seventh in between. The long test cuts at every byte.
//!
//! A relay between a session and the server cuts there, and a client leaves by itself. After each
//! cut nothing goes on: the session ends, and so do its fill, its fence and its connection to the
//! server. The client has got the start of what a client without a fault gets, or that and an
//! error. The next client gets what the server says.
//!
//! The rows never change here. Old rows after a cut write are looked for by the simulation of
//! sessions, and by `behaviour/tests/proof/sweep`, which does the same with real servers at fewer
//! places.
//!
//! | file | what it is |
//! |---|---|
//! | `kinds` | what is sent |
//! | `caller` | the client, which leaves |
//! | `relay` | the connection to the server, which is cut |
//! | `server` | a server that always answers in the same way |

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
use remora_upstream::link::ServerLink;
use remora_upstream::simulated::SimulatedFollower;
use remora_wire::packet::{HEADER_BYTES, Header};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use self::caller::{End, Leave, Played};
use self::kinds::{Kind, kinds, next_client};
use self::relay::{Traffic, Way};
use self::server::Unexpected;
use super::server::{MARK_HOLDER, instance};
use crate::app::build_shared;
use crate::config::link_config;
use crate::metrics::Metrics;
use crate::session::{self, WorkerContext};
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
    None,
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

/// A Remora with a server that never changes.
struct World {
    shared: Arc<Shared>,
    worker: Rc<WorkerContext>,
    follower: SimulatedFollower,
    unexpected: Unexpected,
    /// What makes each exchange another one.
    tag: usize,
    /// What the next client gets, after its login.
    truth: Vec<u8>,
}

impl World {
    async fn new() -> World {
        let settings = super::settings("after_snapshot", 0);
        let metrics = Metrics::new(super::WORKERS);
        let link = ServerLink::new(link_config(&settings.listen, &settings.upstream));
        let link = Arc::new(link.expect("no files"));
        let shared = build_shared(&settings, BrokenRules::default(), &metrics, link, None);
        let follower =
            SimulatedFollower::start(Arc::clone(&shared.upstream), instance(), MARK_HOLDER);
        let of_worker = metrics.worker(0).expect("there is a worker");
        let digests = shared.digests.worker(0).expect("there is a worker");
        let mut world = World {
            worker: Rc::new(WorkerContext::new(&shared, of_worker, digests)),
            shared,
            follower,
            unexpected: Unexpected::default(),
            tag: 0,
            truth: Vec::new(),
        };
        // Nothing is in memory yet: that is what the server says.
        let (said, _) = world.play(&next_client(), Cut::None).await;
        world.truth = after_login(&said).to_vec();
        world.warm().await;
        world
    }

    /// Has memory take what the kinds with hits ask for.
    async fn warm(&mut self) {
        for _ in 0..TRIES_MAX {
            let before = self.hits();
            self.play(&next_client(), Cut::None).await;
            if self.hits() >= before + IN_MEMORY {
                return;
            }
        }
        panic!("memory doesn't take what the next client asks");
    }

    fn hits(&self) -> u64 {
        self.worker.metrics.outcome(Outcome::Hit)
    }

    /// Runs one exchange to its end, whatever that is. Memory has nothing of it.
    async fn play(&mut self, kind: &Kind, cut: Cut) -> (Played, Traffic) {
        self.tag += 1;
        self.play_again(kind, cut).await
    }

    /// The same with the tag of the one before.
    async fn play_again(&mut self, kind: &Kind, cut: Cut) -> (Played, Traffic) {
        let (leave, order) = match cut {
            Cut::None => (Leave::Never, None),
            Cut::Client(leave) => (leave, None),
            Cut::Server(way, at) => (Leave::Never, Some((way, at))),
        };
        let (near, of_client) = Stream::pair(SOCKET_BYTES);
        let (of_server, of_session) = Stream::pair(SOCKET_BYTES);
        let (to_server, far) = Stream::pair(SOCKET_BYTES);
        let traffic = Rc::new(RefCell::new(Traffic::default()));
        let server = spawn_local(server::converse(far, Rc::clone(&self.unexpected)));
        let relay = relay::carry(of_session, to_server, order, Rc::clone(&traffic));
        let relay = spawn_local(relay);
        let (shared, worker) = (Arc::clone(&self.shared), Rc::clone(&self.worker));
        let of_server = Some(Box::new(of_server));
        let session = session::serve(shared, worker, Rc::new(of_client), of_server);
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
        let follower = &mut self.follower;
        let follow = async {
            loop {
                for asked in follower.wanted() {
                    follower.ask(asked);
                }
                while follower.is_asking() {
                    // Its log has nothing.
                    follower.answer(0, 0);
                }
                follower.load();
                sleep(FOLLOWS_EVERY).await;
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
        let unexpected = self.unexpected.take();
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
            let (played, traffic) = self.play(kind, Cut::None).await;
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
        if !kind.begins_at_once() {
            let before = kinds::before();
            let (played, traffic) = self.steady(&before).await;
            from = Lengths::of(&played, &traffic);
            kind = kind.after(&before);
        }
        let (whole, traffic) = self.steady(&kind).await;
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
        for cut in &cuts {
            self.cut_once(&kind, *cut, &whole).await;
        }
        cuts.len()
    }

    async fn cut_once(&mut self, kind: &Kind, cut: Cut, whole: &Played) {
        let what = format!("{}, {cut:?}", kind.name);
        let (played, traffic) = self.play(kind, cut).await;
        let came = match cut {
            Cut::None => true,
            Cut::Client(_) => played.end == End::Left,
            Cut::Server(..) => traffic.was_cut,
        };
        assert!(came, "{what}: {:?}", played.end);
        assert_start_of(whole, &played, &what);
        self.expect_nothing_left(&what).await;
        let hits = self.hits();
        let (next, _) = self.play_again(&next_client(), Cut::None).await;
        assert!(
            self.hits() >= hits + IN_MEMORY,
            "{what}: memory has lost something"
        );
        assert_eq!(next.end, End::Complete, "the next client after {what}");
        assert!(
            after_login(&next) == self.truth,
            "{what}: the next client gets something else"
        );
        self.expect_nothing_left(&what).await;
    }
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
fn assert_start_of(whole: &Played, seen: &Played, what: &str) {
    let (got, whole) = (&seen.received[..], &whole.received[..]);
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
    sweep_all(STEP);
}

mod long {
    #[test]
    fn every_exchange_can_be_cut_at_every_byte_on_either_side() {
        super::sweep_all(1);
    }
}

fn sweep_all(step: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let mut total = 0;
        for kind in kinds() {
            let mut world = Box::pin(World::new()).await;
            let name = kind.name;
            let cuts = Box::pin(world.sweep(kind, step)).await;
            eprintln!("{name:20} {cuts:5} cuts");
            total += cuts;
        }
        eprintln!("{total} cuts");
    });
}
