//! `remora advise`, asked about servers in known states: one whose limits are all too small, one
//! with too small a pool, and one with room for such loads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

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
/// Between two steps of a client, so that a load leaves the processors to others. Nothing is waited
/// for by it.
const REST: Duration = Duration::from_millis(2);
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
        // With fewer, a connection can take seconds: its first packets are dropped.
        "--back-log=20",
        "--tmp-table-size=1024",
        "--max-heap-table-size=16384",
        "--performance-schema=ON",
        // Not the system's: InnoDB tells in that one since when a transaction is open.
        "--default-time-zone=-11:00",
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
        // In one part: each part has its share only.
        "--table-open-cache=4000",
        "--table-open-cache-instances=1",
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
        .args(["--set=upstream.query_timeout_ms=60000"])
        .args(["--set=upstream.connect_timeout_ms=60000"])
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
    /// Whether its clients rest between two steps: many a second are enough.
    rests: bool,
    /// One step of a client, on its connection.
    step: fn(&Server, &mut Client, &mut Random),
}

fn run(client: &mut Client, sql: &str) {
    client.query(sql).unwrap();
}

const CONNECTIONS: Load = Load {
    name: "connections",
    clients: 2,
    // An ended one may still have its place.
    rests: true,
    step: |server, _, _| drop(server.root().ok()),
};

const MANY_TABLES: Load = Load {
    name: "many tables",
    clients: 2,
    rests: true,
    step: |_, client, random| {
        let table = random.below(TABLES as usize);
        run(client, &format!("SELECT a FROM t{table}"));
    },
};

const SORTS: Load = Load {
    name: "sorts",
    clients: 1,
    rests: true,
    step: |_, client, random| {
        // No text twice, or MariaDB answers it from its query cache.
        let least = random.below(1 << 40);
        let counts = "SELECT line, COUNT(*) AS n FROM docs WHERE id <= 20";
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
    rests: true,
    step: |_, client, _| run(client, "SELECT SLEEP(0.5)"),
};

const NEW_QUERIES: Load = Load {
    name: "ever new queries",
    clients: 1,
    rests: true,
    step: |_, client, random| {
        let key = random.below(1 << 40);
        run(client, &format!("SELECT id FROM docs WHERE id = {key}"));
    },
};

const WRITES: Load = Load {
    name: "writes",
    clients: 2,
    rests: false,
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

/// What a server with room for it keeps up with.
const SOME_WRITES: Load = Load {
    name: "some writes",
    clients: 1,
    rests: true,
    step: |_, client, random| {
        let first = random.below(2_500);
        let last = first + 5;
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
    rests: false,
    step: |_, client, random| run(client, &format!("CALL add_many({})", random.below(1_000))),
};

/// As many connections as the server lets in, and one more.
const ALL_CONNECTIONS: Load = Load {
    name: "all connections",
    clients: 1,
    rests: true,
    step: |server, _, _| {
        let all: Vec<Client> = std::iter::from_fn(|| server.app().connect().ok()).collect();
        assert!(all.len() < 1_000, "none was refused");
    },
};

const READS_OF_ALL: Load = Load {
    name: "reads of all rows",
    clients: 2,
    rests: true,
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
                    // The log would be large, and is of no concern here.
                    run(&mut client, "SET sql_log_bin = 0");
                    let mut random = Random::new(number as u64 + 1);
                    (load.step)(server, &mut client, &mut random);
                    at_work.fetch_add(1, Ordering::SeqCst);
                    while !over.load(Ordering::SeqCst) {
                        if load.rests {
                            std::thread::sleep(REST);
                        }
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

/// What `remora advise` finds while loads run: `is_enough` is told, again and again, what was found
/// so far and what the last report has.
fn watch(
    (server, processors): (&Server, u32),
    loads: &[&Load],
    is_enough: impl Fn(&BTreeSet<String>, &Value) -> bool,
) -> Value {
    let (mut all, mut last, began) = (BTreeSet::new(), Value::Null, Instant::now());
    let ended = beside(server, loads, || {
        wait_for("what is expected", PATIENCE, || {
            match advise(server, processors) {
                Ok(report) => last = report,
                // It may be the one that isn't let in.
                Err(error) => {
                    println!("{error:#}");
                    return Ok(None);
                }
            }
            all.extend(found(&last));
            Ok(is_enough(&all, &last).then_some(()))
        })
    });
    let names: Vec<_> = loads.iter().map(|load| load.name).collect();
    println!("{names:?}: {:.1} s", began.elapsed().as_secs_f32());
    assert!(ended.is_ok(), "{names:?}: found {all:?}, at last {last:#}");
    last
}

/// While loads run, all of these are found, sooner or later.
fn expect_found(server: &Server, loads: &[&Load], rules: &[&str]) -> Value {
    watch((server, 1), loads, |all, _| {
        rules.iter().all(|rule| all.contains(*rule))
    })
}

/// While loads run, the rules are silent, sooner or later: at first caches are still empty.
fn expect_silent(server: &Server, loads: &[&Load], rules: &[&str]) {
    watch((server, 1), loads, |_, last| {
        let found = found(last);
        rules
            .iter()
            .all(|rule| !found.iter().any(|one| one == rule))
    });
}

/// The rules for which a report had too little to go by.
fn unjudged(report: &Value) -> Vec<&str> {
    let judgements = report["judgements"].as_array().unwrap().iter();
    judgements
        .filter(|judgement| judgement["verdict"].get("unjudged").is_some())
        .map(|judgement| judgement["rule"].as_str().unwrap())
        .collect()
}

/// What a rule found in a report.
fn finding<'r>(report: &'r Value, rule: &str) -> &'r Value {
    let judgements = report["judgements"].as_array().unwrap();
    let judgement = judgements.iter().find(|one| one["rule"] == rule).unwrap();
    &judgement["verdict"]["found"]
}

/// A server takes what it is told to be set without a restart.
fn set_what_is_suggested(server: &Server, report: &Value) {
    let mut root = server.root().unwrap();
    for judgement in report["judgements"].as_array().unwrap() {
        let Some(settings) = judgement["verdict"]["found"]["settings"].as_array() else {
            continue;
        };
        for setting in settings {
            if setting["is_dynamic"] == true {
                let text = |field: &str| setting[field].as_str().unwrap();
                let sql = format!("SET GLOBAL {} = {}", text("name"), text("suggested"));
                run(&mut root, &sql);
            }
        }
    }
}

fn has_query_cache(kind: Kind) -> bool {
    matches!(kind, Kind::MariaDb1011 | Kind::MariaDb114)
}

/// Each load, and what is found under it where there is no room.
const MET: [(&Load, &[&str]); 6] = [
    (&CONNECTIONS, &["thread_cache_small", "back_log_short"]),
    (&ALL_CONNECTIONS, &["connections_exhausted"]),
    (
        &MANY_TABLES,
        &["table_cache_small", "definition_cache_small"],
    ),
    (&SORTS, &["temporary_tables_on_disk"]),
    (&CROWDED, &["processors_short"]),
    (&WRITES, &["redo_log_small", "io_capacity_low"]),
];

fn small_limits_are_found(kind: Kind) {
    let server = small(kind);
    fill(&server);
    let mut reader = server.root().unwrap();
    run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    // Changed pages are still written out.
    expect_silent(&server, &[], &ALL_RULES);
    let mut reports = Vec::new();
    for (load, rules) in MET {
        reports.push(expect_found(&server, &[load], rules));
    }
    if has_query_cache(kind) {
        let report = expect_found(&server, &[&NEW_QUERIES], &["query_cache_costs"]);
        reports.push(report);
    }
    // It has been open for longer than ten seconds by now, or will be soon.
    let report = expect_found(&server, &[&SMALL_WRITES], &["purge_behind"]);
    let remedy = finding(&report, "purge_behind")["remedy"].to_string();
    let id = reader.query_value("SELECT CONNECTION_ID()").unwrap();
    let to_end = format!("KILL {} ", id.unwrap());
    assert!(remedy.contains(&to_end), "{remedy}, and it is {to_end}");
    let reads = &report["takeover"]["known"]["statements"];
    assert!(reads.as_f64().unwrap() > 0.0, "{report:#}");
    for report in &reports {
        set_what_is_suggested(&server, report);
    }
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
    let report = expect_found(&server, &[&READS_OF_ALL, &WRITES], pool);
    set_what_is_suggested(&server, &report);
}

/// What only a server without room is told.
const ALL_RULES: [&str; 11] = [
    "redo_log_small",
    "purge_behind",
    "buffer_pool_small",
    "free_pages_short",
    "io_capacity_low",
    "table_cache_small",
    "definition_cache_small",
    "thread_cache_small",
    "connections_exhausted",
    "back_log_short",
    "temporary_tables_on_disk",
];

fn nothing_is_found_where_there_is_room(kind: Kind) {
    let server = roomy(kind);
    fill(&server);
    for load in [
        &CONNECTIONS,
        &MANY_TABLES,
        &SORTS,
        &SOME_WRITES,
        &SMALL_WRITES,
        &READS_OF_ALL,
    ] {
        expect_silent(&server, &[load], &ALL_RULES);
    }
    // The same reads again and again, where there is a query cache.
    expect_silent(&server, &[&MANY_TABLES], &["query_cache_costs"]);
    // Many statements at once are none too many for many processors.
    watch((&server, 64), &[&CROWDED], |_, last| {
        // Of the query cache: too little was asked, or there is none.
        found(last).is_empty() && unjudged(last) == ["query_cache_costs"]
    });
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
fn nothing_is_found_of_mariadb_under_such_loads_where_there_is_room() {
    nothing_is_found_where_there_is_room(Kind::MariaDb1011);
}

#[test]
fn nothing_is_found_of_mysql_under_such_loads_where_there_is_room() {
    nothing_is_found_where_there_is_room(Kind::MySql80);
}
