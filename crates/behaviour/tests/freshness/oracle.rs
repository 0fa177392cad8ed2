//! The load generator against a server without a cache finds nothing; against one that serves old
//! rows it must.

use std::time::Duration;

use remora_testkit::load::{CounterLoad, CounterTable, Oracle, Random, Route, Until};
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::HaProxy;
use remora_testkit::servers::{Server, ServerOptions};

fn load(server: &Server, table: CounterTable) -> CounterLoad {
    let seed = Random::fresh_seed();
    println!("seed {seed}");
    CounterLoad {
        table,
        through: server.app(),
        direct: server.app(),
        readers: 4,
        writers_through: 1,
        writers_direct: 1,
        write_pause: Duration::from_millis(1),
        survive_errors: false,
        seed,
    }
}

const UNTIL: Until = Until {
    reads: 3_000,
    time: Duration::from_secs(30),
};

#[test]
fn nothing_is_found_where_nothing_is_cached() {
    let server = Server::start(ServerOptions::default()).unwrap();
    let proxy = HaProxy::start(server.address(), 1, None).unwrap();
    let table = CounterTable::new(50);
    table.create(&mut server.app().connect().unwrap()).unwrap();
    let oracle = Oracle::new(50, 0, Duration::ZERO);
    let mut load = load(&server, table);
    load.through = server.app().at(proxy.address());
    let (mut reads, mut through, mut direct) = (0, 0, 0);
    let is_enough = |reads, through, direct| reads >= UNTIL.reads && through > 10 && direct > 10;
    // A writer may be late.
    for _ in 0..20 {
        if is_enough(reads, through, direct) {
            break;
        }
        let report = load.run(&oracle, UNTIL, || false).unwrap();
        assert_eq!(report.stale_count, 0, "{:?}", report.stale);
        assert_eq!(report.impossible, Vec::<String>::new());
        reads += report.reads;
        through += report.writes_through;
        direct += report.writes_direct;
    }
    assert!(is_enough(reads, through, direct));
}

/// Readers are sent to a table that nobody writes any more, as a cache that has missed a change
/// would answer.
#[test]
fn a_planted_stale_read_is_found_with_all_that_is_known_of_it() {
    let server = Server::start(ServerOptions::default()).unwrap();
    let table = CounterTable::new(50);
    table.create(&mut server.app().connect().unwrap()).unwrap();
    let oracle = Oracle::new(50, 0, Duration::ZERO);
    for route in [Route::Through, Route::Direct] {
        oracle.begin_write(7).done(route);
    }
    let mut load = load(&server, table);
    (load.writers_through, load.writers_direct) = (0, 0);
    let report = load.run(&oracle, UNTIL, || false).unwrap();
    assert!(report.stale_count > 0);
    let stale = &report.stale[0];
    assert_eq!(
        (stale.counter, stale.value, stale.oldest_allowed),
        (7, 0, 2)
    );
    assert_eq!(stale.route, Route::Direct);
    assert!(
        stale
            .position
            .as_deref()
            .unwrap()
            .starts_with("binlog.000001:")
    );
    assert!(stale.statement.contains("counters"));
}

#[test]
fn a_value_that_nobody_wrote_is_found() {
    let server = Server::start(ServerOptions::default()).unwrap();
    let table = CounterTable::new(20);
    table.create(&mut server.app().connect().unwrap()).unwrap();
    server
        .execute(["UPDATE counters SET value = 99 WHERE id = 3"])
        .unwrap();
    let mut load = load(&server, table);
    (load.writers_through, load.writers_direct) = (0, 0);
    let oracle = Oracle::new(20, 0, Duration::ZERO);
    let report = load.run(&oracle, UNTIL, || false).unwrap();
    assert!(!report.impossible.is_empty());
    assert_eq!(report.stale_count, 0);
}

#[test]
fn a_load_that_survives_errors_goes_on_after_a_crash() {
    let mut server = Server::start(ServerOptions::default()).unwrap();
    let table = CounterTable::new(50);
    table.create(&mut server.app().connect().unwrap()).unwrap();
    let oracle = Oracle::new(50, 0, Duration::ZERO);
    let mut load = load(&server, table);
    load.survive_errors = true;
    let until = Until {
        reads: u64::MAX,
        time: Duration::from_mins(1),
    };
    let over = std::sync::atomic::AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            load.run(&oracle, until, || {
                over.load(std::sync::atomic::Ordering::SeqCst)
            })
        });
        let mut direct = server.app().connect().unwrap();
        wait_for("the load's first write", PATIENCE, || {
            let sum = direct.query_value("SELECT SUM(value) > 0 FROM counters")?;
            Ok((sum.as_deref() == Some("1")).then_some(()))
        })
        .unwrap();
        drop(direct);
        server.crash().unwrap();
        server.start_again().unwrap();
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        running.join().unwrap()
    });
    let report = report.unwrap();
    assert!(report.errors > 0);
    assert_eq!(report.stale_count, 0, "{:?}", report.stale);
    assert_eq!(report.impossible, Vec::<String>::new());
}
