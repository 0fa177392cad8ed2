//! `remora advise`, asked about servers in known states: one whose limits are all too small, one
//! with too small a pool, and one with room for the same loads.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use remora_testkit::client::Client;
use remora_testkit::load::Random;
use remora_testkit::process::{PATIENCE, Program, wait_for};
use remora_testkit::programs;
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{FOLLOW_USER, Kind, SCHEMA, Server, ServerOptions, numbers};
use serde_json::Value;

/// As many tables as no small cache of definitions has room for: the least that one can be set to
/// is 400.
const TABLES: u32 = 450;
/// So many statements at once are many for one processor.
const CROWD: usize = 8;

fn server(kind: Kind, further: &[&str]) -> Server {
    let options = ServerOptions {
        kind: Some(kind),
        further: further.iter().map(|text| (*text).to_owned()).collect(),
        ..ServerOptions::default()
    };
    let server = Server::start(options).unwrap();
    let grant = format!("GRANT PROCESS ON *.* TO {FOLLOW_USER}@'%'");
    server.execute([grant]).unwrap();
    server
}

/// Every limit that the adviser looks at is smaller than the loads below need.
fn small(kind: Kind) -> Server {
    let mut further = vec![
        "--table-open-cache=20",
        "--table-definition-cache=400",
        "--thread-cache-size=0",
        "--max-connections=30",
        "--back-log=1",
        "--tmp-table-size=1024",
        "--max-heap-table-size=16384",
        "--innodb-io-capacity=100",
        "--innodb-max-dirty-pages-pct=1",
        "--innodb-adaptive-flushing=OFF",
    ];
    match kind {
        Kind::MySql80 => further.extend([
            "--innodb-redo-log-capacity=8M",
            // Its other engine for them holds megabytes whatever the limits.
            "--internal-tmp-mem-storage-engine=MEMORY",
        ]),
        // Two files.
        Kind::MySql57 | Kind::MySql56 => further.push("--innodb-log-file-size=4M"),
        Kind::MariaDb1011 | Kind::MariaDb114 => {
            further.extend([
                "--innodb-log-file-size=4M",
                "--query-cache-type=1",
                "--query-cache-size=1M",
            ]);
        }
    }
    server(kind, &further)
}

/// What the loads below need, and more.
fn roomy(kind: Kind) -> Server {
    let mut further = vec![
        "--table-open-cache=4000",
        "--table-definition-cache=4000",
        "--thread-cache-size=1000",
        "--back-log=10000",
        "--tmp-table-size=64M",
        "--max-heap-table-size=64M",
        "--innodb-buffer-pool-size=128M",
    ];
    match kind {
        Kind::MySql80 => further.push("--innodb-redo-log-capacity=256M"),
        Kind::MySql57 | Kind::MySql56 => further.push("--innodb-log-file-size=128M"),
        Kind::MariaDb1011 | Kind::MariaDb114 => {
            further.extend([
                "--innodb-log-file-size=256M",
                "--query-cache-type=1",
                "--query-cache-size=16M",
            ]);
        }
    }
    server(kind, &further)
}

/// What `remora advise` says, as JSON; an error if it can't connect.
fn advise(server: &Server, processors: u32) -> anyhow::Result<Value> {
    let scratch = Scratch::new().unwrap();
    let file = server.follow_password_file();
    let program = Program::new("advise", programs::remora().unwrap(), scratch.join("log"))
        .args(["advise", "--json", "--seconds=2", "--interval=1"])
        .arg(format!("--processors={processors}"))
        .arg(format!("--upstream={}", server.address()))
        .arg(format!("--follow-user={FOLLOW_USER}"))
        .arg(format!("--follow-password-file={}", file.display()));
    let output = program.run(PATIENCE)?;
    Ok(serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}")))
}

fn found(report: &Value) -> Vec<String> {
    let judgements = report["judgements"].as_array().unwrap().iter();
    judgements
        .filter(|judgement| judgement["verdict"].get("found").is_some())
        .map(|judgement| judgement["rule"].as_str().unwrap().to_owned())
        .collect()
}

/// Something that clients do, again and again.
struct Load {
    name: &'static str,
    clients: usize,
    /// One step of a client, on its connection.
    step: fn(&Server, &mut Client, &mut Random),
}

fn run(client: &mut Client, sql: &str) {
    client.query(sql).unwrap();
}

const CONNECTIONS: Load = Load {
    name: "connections",
    clients: 2,
    step: |server, _, _| drop(server.root().unwrap()),
};

const MANY_TABLES: Load = Load {
    name: "many tables",
    clients: 2,
    step: |_, client, random| {
        let table = random.below(TABLES as usize);
        run(client, &format!("SELECT a FROM t{table}"));
    },
};

const SORTS: Load = Load {
    name: "sorts",
    clients: 1,
    step: |_, client, random| {
        // No text twice, or MariaDB answers it from its query cache.
        let least = random.below(1 << 40);
        let counts = "SELECT line, COUNT(*) AS n FROM docs";
        run(
            client,
            &format!("{counts} GROUP BY line HAVING n > {least} ORDER BY n"),
        );
    },
};

const CROWDED: Load = Load {
    name: "a crowd",
    clients: CROWD,
    // A statement that waits is one that runs.
    step: |_, client, _| run(client, "SELECT SLEEP(0.5)"),
};

const NEW_QUERIES: Load = Load {
    name: "ever new queries",
    clients: 1,
    step: |_, client, random| {
        let key = random.below(1 << 40);
        run(client, &format!("SELECT id FROM docs WHERE id = {key}"));
    },
};

const WRITES: Load = Load {
    name: "writes",
    clients: 2,
    step: |_, client, random| {
        let first = random.below(2_500);
        let last = first + 200;
        let change = "UPDATE docs SET line = REVERSE(line)";
        run(
            client,
            &format!("{change} WHERE id BETWEEN {first} AND {last}"),
        );
    },
};

const SMALL_WRITES: Load = Load {
    name: "small writes",
    clients: 2,
    step: |_, client, random| run(client, &format!("CALL add_many({})", random.below(1_000))),
};

/// As many connections as the server lets in, and one more.
const ALL_CONNECTIONS: Load = Load {
    name: "all connections",
    clients: 1,
    step: |server, _, _| {
        let all: Vec<Client> = std::iter::from_fn(|| server.app().connect().ok()).collect();
        assert!(all.len() < 1_000, "none was refused");
    },
};

const READS_OF_ALL: Load = Load {
    name: "reads of all rows",
    clients: 2,
    step: |_, client, _| run(client, "SELECT MAX(LENGTH(line)) FROM docs"),
};

/// Fills the tables that the loads use.
fn fill(server: &Server) {
    let mut statements = vec![
        "CREATE TABLE docs (id INT PRIMARY KEY, line VARCHAR(500), filler VARCHAR(4000)) \
         ENGINE=InnoDB"
            .to_owned(),
        format!(
            "INSERT INTO docs SELECT seq, CONCAT(seq, REPEAT('x', 400)), REPEAT('y', 3500) \
             FROM {}",
            numbers(3_000)
        ),
        "CREATE TABLE counters (id INT PRIMARY KEY, n INT) ENGINE=InnoDB".to_owned(),
        format!("INSERT INTO counters SELECT seq, 0 FROM {}", numbers(1_000)),
        "CREATE PROCEDURE add_many(first INT) BEGIN \
         DECLARE i INT DEFAULT 0; \
         WHILE i < 200 DO UPDATE counters SET n = n + 1 WHERE id = (first + i) % 1000 + 1; \
         SET i = i + 1; END WHILE; END"
            .to_owned(),
    ];
    for table in 0..TABLES {
        statements.push(format!("CREATE TABLE t{table} (a INT) ENGINE=MyISAM"));
    }
    server.execute(statements).unwrap();
}

/// Runs loads beside `act`.
fn beside<T>(server: &Server, loads: &[&Load], act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    let at_work = AtomicU32::new(0);
    let clients: usize = loads.iter().map(|load| load.clients).sum();
    std::thread::scope(|scope| {
        for load in loads {
            for number in 0..load.clients {
                let (over, at_work) = (&over, &at_work);
                scope.spawn(move || {
                    // The connections of the load before may still be there.
                    let place = wait_for("a connection", PATIENCE, || Ok(server.root().ok()));
                    let mut client = place.unwrap();
                    run(&mut client, &format!("USE {SCHEMA}"));
                    let mut random = Random::new(number as u64 + 1);
                    (load.step)(server, &mut client, &mut random);
                    at_work.fetch_add(1, Ordering::SeqCst);
                    while !over.load(Ordering::SeqCst) {
                        (load.step)(server, &mut client, &mut random);
                    }
                });
            }
        }
        let ready = wait_for("all clients to be at work", PATIENCE, || {
            let all = at_work.load(Ordering::SeqCst) as usize == clients;
            Ok(all.then_some(()))
        });
        let result = ready.map(|()| act());
        over.store(true, Ordering::SeqCst);
        result.unwrap()
    })
}

/// While loads run, all of these are found, sooner or later.
fn expect_found(server: &Server, loads: &[&Load], rules: &[&str]) {
    let (mut last, began) = (Value::Null, Instant::now());
    let all = beside(server, loads, || {
        wait_for("the findings", PATIENCE, || {
            // It may be the one that isn't let in.
            let Ok(report) = advise(server, 1) else {
                return Ok(None);
            };
            let found = found(&report);
            let has = |rule: &&str| found.iter().any(|one| one == rule);
            let has_all = rules.iter().all(has);
            last = report;
            Ok(has_all.then_some(()))
        })
    });
    let names: Vec<_> = loads.iter().map(|load| load.name).collect();
    println!("{names:?}: {:.1} s", began.elapsed().as_secs_f32());
    assert!(all.is_ok(), "{names:?}: not all of {rules:?} in {last:#}");
}

fn has_query_cache(kind: Kind) -> bool {
    matches!(kind, Kind::MariaDb1011 | Kind::MariaDb114)
}

fn small_limits_are_found(kind: Kind) {
    let server = small(kind);
    fill(&server);
    let silent = wait_for("nothing to be found, as nothing happens", PATIENCE, || {
        // Changed pages are still written out.
        let idle = advise(&server, 1)?;
        Ok(found(&idle).is_empty().then_some(()))
    });
    silent.unwrap();
    let connections = ["thread_cache_small", "back_log_short"];
    expect_found(&server, &[&CONNECTIONS], &connections);
    expect_found(&server, &[&ALL_CONNECTIONS], &["connections_exhausted"]);
    let caches = ["table_cache_small", "definition_cache_small"];
    expect_found(&server, &[&MANY_TABLES], &caches);
    expect_found(&server, &[&SORTS], &["temporary_tables_on_disk"]);
    expect_found(&server, &[&CROWDED], &["processors_short"]);
    let log = ["redo_log_small", "io_capacity_low"];
    expect_found(&server, &[&WRITES], &log);
    if has_query_cache(kind) {
        expect_found(&server, &[&NEW_QUERIES], &["query_cache_costs"]);
    }
    let mut reader = server.root().unwrap();
    run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    expect_found(&server, &[&SMALL_WRITES], &["purge_behind"]);
}

fn a_small_pool_is_found(kind: Kind) {
    let further = [
        "--innodb-buffer-pool-size=8M",
        "--innodb-io-capacity=100",
        "--innodb-lru-scan-depth=100",
    ];
    let server = server(kind, &further);
    fill(&server);
    // MariaDB finds free pages all the same where files are as fast as memory.
    let pool = match kind {
        Kind::MySql80 => &["buffer_pool_small", "free_pages_short"][..],
        _ => &["buffer_pool_small"],
    };
    expect_found(&server, &[&READS_OF_ALL, &WRITES], pool);
}

/// The loads that small limits are found under.
const ALL: [&Load; 7] = [
    &CONNECTIONS,
    &MANY_TABLES,
    &SORTS,
    &CROWDED,
    &WRITES,
    &SMALL_WRITES,
    &READS_OF_ALL,
];

fn nothing_is_found_where_there_is_room(kind: Kind) {
    let server = roomy(kind);
    fill(&server);
    // What is read for the first time comes from disk, and tables are opened once.
    for table in 0..TABLES {
        server.execute([format!("SELECT a FROM t{table}")]).unwrap();
    }
    let report = beside(&server, &ALL, || advise(&server, 64).unwrap());
    assert!(found(&report).is_empty(), "{report:#}");
    let unjudged = report["judgements"].as_array().unwrap().iter();
    let unjudged: Vec<_> = unjudged
        .filter(|judgement| judgement["verdict"].get("unjudged").is_some())
        .map(|judgement| judgement["rule"].as_str().unwrap())
        .collect();
    let expected: &[&str] = if has_query_cache(kind) {
        &[]
    } else {
        &["query_cache_costs"]
    };
    assert_eq!(unjudged, expected, "{report:#}");
}

#[test]
fn small_limits_of_mariadb_are_found_under_the_loads_that_meet_them() {
    small_limits_are_found(Kind::MariaDb1011);
}

#[test]
fn small_limits_of_mysql_are_found_under_the_loads_that_meet_them() {
    small_limits_are_found(Kind::MySql80);
}

#[test]
fn a_small_pool_of_mariadb_is_found() {
    a_small_pool_is_found(Kind::MariaDb1011);
}

#[test]
fn a_small_pool_of_mysql_is_found() {
    a_small_pool_is_found(Kind::MySql80);
}

#[test]
fn nothing_is_found_of_mariadb_under_the_same_loads_where_there_is_room() {
    nothing_is_found_where_there_is_room(Kind::MariaDb1011);
}

#[test]
fn nothing_is_found_of_mysql_under_the_same_loads_where_there_is_room() {
    nothing_is_found_where_there_is_room(Kind::MySql80);
}
