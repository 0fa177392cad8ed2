//! Every kind of exchange with a real server, cut at some steps, on either side.
//!
//! A relay between Remora and the server cuts there, and a client leaves by itself: at boundaries
//! of packets, inside headers and inside payloads. After each cut nothing hangs and nothing is left
//! open. The client has got the start of what a client without a fault gets. The next client gets
//! what the server says.
//!
//! `proxy/src/simulation/cuts` does it without a server, at more places, and in its long test at
//! every byte.

mod caller;
mod kinds;
mod relay;

use std::time::{Duration, Instant};

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::servers::{APP_USER, SCHEMA, Server, ServerOptions, numbers};
use remora_wire::packet::{HEADER_BYTES, Header};

use self::caller::{Caller, End, Leave, Played};
use self::kinds::{Kind, LONG, ROWS, kinds, tagged};
use self::relay::{Relay, Traffic, Way};

const PATIENCE: Duration = remora_testkit::process::PATIENCE;
/// For how long a result may lack a change whose OK nobody got.
const LAG: Duration = Duration::from_millis(302);
/// The most places at which one direction of one kind is cut.
const PLACES_MAX: usize = 7;
/// The same where each takes much time.
const PLACES_MAX_HUGE: usize = 2;
/// The memory that Remora may use for results, MiB.
const MEMORY_MIB: u32 = 16;
/// The most bytes that Remora's memory may grow by: the results, and as much as half of them for
/// all else. It grows by 3 to 8 MiB.
const GROWTH_BYTES_MAX: f64 = 1.5 * MEMORY_MIB as f64 * 1024.0 * 1024.0;

/// Where an exchange is cut.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Client(Leave),
    Server(Way, usize),
}

struct World {
    // Dropped in this order.
    /// A process of its own, whose memory is nobody else's.
    remora: Remora,
    relay: Relay,
    root: Client,
    server: Server,
}

impl World {
    fn new() -> World {
        let mut options = ServerOptions::default();
        options.further.push("--max-allowed-packet=64M".to_owned());
        options.further.push("--local-infile=1".to_owned());
        let server = Server::start(options).unwrap();
        server
            .execute([
                "CREATE TABLE t (id INT PRIMARY KEY, value BIGINT NOT NULL)".to_owned(),
                "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)".to_owned(),
                "CREATE TABLE loaded (a INT)".to_owned(),
                "CREATE TABLE long_rows (id INT PRIMARY KEY, text TEXT)".to_owned(),
                format!(
                    "INSERT INTO long_rows SELECT seq, REPEAT('x', 2000) FROM {}",
                    numbers(100)
                ),
            ])
            .unwrap();
        let relay = Relay::start(server.address());
        let options = RemoraOptions {
            threads: Some(1),
            // Every cut leaves results of its own.
            memory_mib: Some(MEMORY_MIB),
            ..RemoraOptions::storing_all()
        }
        .with("upstream.address", &relay.address().to_string())
        .with("follow.lag_ms_max", "300")
        .with("follow.heartbeat_ms", "50");
        let remora = Remora::start(&server, &options).unwrap();
        let mut root = server.root().unwrap();
        root.query(&format!("USE {SCHEMA}")).unwrap();
        World {
            remora,
            relay,
            root,
            server,
        }
    }

    fn through(&self) -> ConnectOptions {
        self.server.app().at(self.remora.address())
    }

    /// Remora has no client and reads no result, and the server has no connection of a client.
    fn wait_until_nothing_is_open(&mut self, what: &str) {
        let count = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{APP_USER}'"
        );
        let (remora, root) = (&self.remora, &mut self.root);
        wait_for(&format!("all to be closed after {what}"), PATIENCE, || {
            let metrics = remora.metrics()?;
            let here = metrics.sum("remora_connections") + metrics.sum("remora_fills_in_flight");
            let there = root.query_value(&count)?;
            Ok((here < 0.5 && there.as_deref() == Some("0")).then_some(()))
        })
        .unwrap();
    }

    /// The next client gets what the server says.
    fn expect_truth(&mut self, what: &str, texts: &[String]) {
        let mut client = self.through().connect().unwrap();
        for text in texts {
            let start = Instant::now();
            loop {
                // Before the read: it may come late.
                let may_lag = start.elapsed() <= LAG;
                let truth = self.root.query_bytes(text).unwrap().to_vec();
                if client.query_bytes(text).unwrap() == truth {
                    break;
                }
                assert!(may_lag, "{what}: {text} is not what the server says");
            }
        }
    }

    fn warm(&mut self) {
        let mut client = self.through().connect().unwrap();
        for text in [ROWS, LONG] {
            wait_for("a hit", PATIENCE, || {
                let before = self.remora.metrics()?.sum("remora_hits_total");
                client.query(text)?;
                Ok((self.remora.metrics()?.sum("remora_hits_total") > before).then_some(()))
            })
            .unwrap();
        }
        drop(client);
        self.wait_until_nothing_is_open("warming");
    }

    /// What statements of all kinds have changed is as it was.
    fn reset(&mut self, kind: &Kind) {
        self.root
            .query("UPDATE t SET value = 2 WHERE id = 2")
            .unwrap();
        if kind.is_hit {
            self.expect_truth("a reset", &[ROWS.to_owned(), LONG.to_owned()]);
            self.warm();
        }
    }
}

/// Places worth cutting at: the boundaries of packets after `from`, and places inside.
fn places(stream: &[u8], from: usize, places_max: usize) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(header) = Header::peek(&stream[at..]) {
        let end = at + HEADER_BYTES + header.length;
        places.extend([
            at,
            at + 2,
            at + HEADER_BYTES,
            at + HEADER_BYTES + header.length / 2,
            end,
        ]);
        at = end.min(stream.len());
    }
    places.retain(|place| *place >= from.max(1) && *place <= stream.len());
    places.sort_unstable();
    places.dedup();
    // Spread evenly, so that no kind of place is left out; the first and the last are among them.
    let last = places.len().saturating_sub(1);
    let mut chosen: Vec<usize> = (0..places_max)
        .filter_map(|number| places.get(number * last / (places_max - 1)).copied())
        .collect();
    chosen.dedup();
    chosen
}

/// The bytes after the login, without the numbers of statements, which are where they were in
/// `whole`.
fn after_login(played: &Played, whole: &Played) -> Vec<u8> {
    if played.login == (0, 0) {
        return Vec::new();
    }
    let mut bytes = played.received[played.login.1..].to_vec();
    for at in &whole.statements_at {
        let at = at - whole.login.1;
        for byte in bytes.iter_mut().skip(at).take(4) {
            *byte = 0;
        }
    }
    bytes
}

/// Whether the client got the start of what it would have got, or that and an error.
fn assert_start_of(whole: &Played, seen: &Played, what: &str) {
    let (got, whole) = (after_login(seen, whole), after_login(whole, whole));
    if whole.starts_with(&got) {
        return;
    }
    let same = got.iter().zip(&whole).take_while(|(a, b)| a == b).count();
    // The packet in which they part is an error, whose number is right, and the last.
    let mut at = 0;
    while let Some(header) = Header::peek(&got[at..]) {
        let end = at + HEADER_BYTES + header.length;
        if end > same {
            let is_error = got.get(at + HEADER_BYTES) == Some(&0xff) && end == got.len();
            assert!(is_error, "{what}: {:?}", &got[at..got.len().min(at + 60)]);
            return;
        }
        at = end;
    }
}

#[test]
fn every_exchange_can_be_cut_on_either_side() {
    let mut world = World::new();
    let (mut total, mut tag) = (0, 0);
    let mut resident: Vec<f64> = Vec::new();
    for kind in kinds() {
        // Servers learnt to reset a connection when they learnt to track sessions.
        let is_new = kind.name == "reset a connection";
        if is_new && !world.server.kind().tracks_sessions() {
            continue;
        }
        total += sweep(&mut world, &kind, &mut tag);
        if !kind.is_huge {
            let metrics = world.remora.metrics().unwrap();
            resident.push(metrics.sum("remora_resident_memory_bytes"));
        }
    }
    let growth = resident[resident.len() - 1] - resident[0];
    println!(
        "{total} cuts; memory grew by {:.1} MiB",
        growth / 1_048_576.0
    );
    assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes more");
}

/// Whether the server refused something of it.
fn has_error(answers: &[u8]) -> bool {
    let mut at = 0;
    while let Some(header) = Header::peek(&answers[at..]) {
        if answers.get(at + HEADER_BYTES) == Some(&0xff) {
            return true;
        }
        at += HEADER_BYTES + header.length;
    }
    false
}

/// All places at which to cut an exchange that went so, bytes from the start of the connection.
fn cuts(kind: &Kind, whole: &Played, traffic: &Traffic, is_login: bool) -> Vec<Cut> {
    // The login goes through in its own length.
    let (sent, received) = if is_login { (0, 0) } else { whole.login };
    let places_max = if kind.is_huge {
        PLACES_MAX_HUGE
    } else {
        PLACES_MAX
    };
    let mut cuts = Vec::new();
    let mut add = |stream: &[u8], from: usize, cut: fn(usize) -> Cut| {
        cuts.extend(places(stream, from, places_max).into_iter().map(cut));
    };
    add(&whole.sent, sent, |at| Cut::Client(Leave::AfterSending(at)));
    add(&whole.received, received, |at| {
        Cut::Client(Leave::AfterReceiving(at))
    });
    add(&traffic.to_server, sent, |at| {
        Cut::Server(Way::ToServer, at)
    });
    add(&traffic.to_remora, received, |at| {
        Cut::Server(Way::ToRemora, at)
    });
    cuts
}

/// An exchange that nothing cuts, and where to cut those that go like it. At first Remora may ask
/// the server more than it does later: two in a row must have as many places.
fn steady(world: &mut World, kind: &Kind, tag: &mut usize) -> (Played, Vec<Cut>) {
    let mut places_before = None;
    let steady = wait_for("two exchanges that go alike", PATIENCE, || {
        world.reset(kind);
        let armed = world.relay.arm(None);
        *tag += 1;
        let commands = kind.commands(*tag);
        let whole = Caller::play(world.remora.address(), Leave::Never, &commands);
        assert_eq!(whole.end, End::Complete, "{}", kind.name);
        assert_eq!(
            has_error(&after_login(&whole, &whole)),
            kind.name == "error",
            "{}",
            kind.name
        );
        world.wait_until_nothing_is_open(kind.name);
        let cuts = cuts(kind, &whole, &armed.traffic(), commands.is_empty());
        let is_steady = places_before.replace(cuts.len()) == Some(cuts.len());
        Ok(is_steady.then_some((whole, cuts)))
    });
    steady.unwrap()
}

/// Cuts one kind everywhere; gives how many cuts there were.
fn sweep(world: &mut World, kind: &Kind, tag: &mut usize) -> usize {
    let start = Instant::now();
    let (whole, cuts) = steady(world, kind, tag);
    let mut reached = 0;
    for cut in &cuts {
        *tag += 1;
        reached += usize::from(cut_once(world, kind, *cut, &whole, *tag));
    }
    println!(
        "{:28} {:3} cuts, {reached:3} reached, {:.1} s",
        kind.name,
        cuts.len(),
        start.elapsed().as_secs_f32()
    );
    assert!(
        reached * 2 > cuts.len(),
        "{}: {reached} of {}",
        kind.name,
        cuts.len()
    );
    cuts.len()
}

/// Whether the cut came to be.
fn cut_once(world: &mut World, kind: &Kind, cut: Cut, whole: &Played, tag: usize) -> bool {
    let what = format!("{}, {cut:?}", kind.name);
    world.reset(kind);
    let (leave, order) = match cut {
        Cut::Client(leave) => (leave, None),
        Cut::Server(way, at) => (Leave::Never, Some((way, at))),
    };
    let armed = world.relay.arm(order);
    let played = Caller::play(world.remora.address(), leave, &kind.commands(tag));
    world.wait_until_nothing_is_open(&what);
    if kind.is_repeatable {
        assert_start_of(whole, &played, &what);
    }
    let texts = [
        ROWS.to_owned(),
        LONG.to_owned(),
        tagged(ROWS, tag),
        tagged(LONG, tag),
    ];
    world.expect_truth(&what, &texts);
    world.wait_until_nothing_is_open(&what);
    match cut {
        Cut::Client(_) => played.end == End::Left,
        Cut::Server(..) => armed.was_cut(),
    }
}
