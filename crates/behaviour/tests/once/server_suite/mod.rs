//! MariaDB's own tests of its query cache, run through Remora.
//!
//! The files are those of Debian's package `mariadb-test`; nothing of them is kept here. Each runs
//! twice with the client that the package has for it: on a server whose own query cache is on, and
//! through Remora in front of one without. All that statements print must be the same, but for the
//! counters of the query cache: those that grow otherwise are listed in `expected`, with the
//! reason.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod expected;
mod output;
mod rest;
mod script;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{Kind, Server, ServerOptions};

use self::expected::{FILES, File};
use self::output::Differences;
use self::script::Manner;

/// Where the package has its files.
const SUITE: &str = "/usr/share/mysql/mysql-test";
/// Memory of the cache, MiB, on both sides.
const CACHE_MIB: u32 = 16;

fn server(cache_mib: u32) -> Server {
    let server = Server::start(ServerOptions {
        query_cache_mib: cache_mib,
        further: [
            "--default-storage-engine=InnoDB",
            "--log-bin-trust-function-creators=ON",
            "--secure-file-priv=",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..ServerOptions::default()
    });
    let server = server.unwrap();
    server.execute(["CREATE DATABASE test"]).unwrap();
    server
}

/// Runs a script; gives what it printed.
fn run(script: &str, address: SocketAddr) -> String {
    let scratch = Scratch::new().unwrap();
    let file = scratch.join("script.test");
    std::fs::write(&file, script::bytes_of(script)).unwrap();
    let _ = std::os::unix::fs::symlink(format!("{SUITE}/std_data"), scratch.join("std_data"));
    let output = Command::new("mysqltest")
        .args([
            "--no-defaults",
            "--host=127.0.0.1",
            "--protocol=tcp",
            "--user=root",
        ])
        .args(["--database=test", "--continue-on-error", "--silent"])
        .arg(format!("--port={}", address.port()))
        .arg(format!("--test-file={}", file.display()))
        .arg(format!("--logdir={}", scratch.path().display()))
        .arg(format!("--tmpdir={}", scratch.path().display()))
        .env("MASTER_MYPORT", address.port().to_string())
        .env("MYSQLTEST_VARDIR", scratch.path())
        .env("MYSQL_TMP_DIR", scratch.path())
        .env("MYSQL_TEST_DIR", SUITE)
        .current_dir(SUITE)
        .output()
        .unwrap();
    if !output.stderr.is_empty() {
        println!("{}", String::from_utf8_lossy(&output.stderr));
    }
    script::characters_of(&output.stdout)
}

/// The two ways to run a script.
struct Sides {
    /// With a cache of its own.
    caching: Server,
    /// Behind Remora.
    behind: Server,
    remora: InProcessRemora,
}

impl Sides {
    fn start() -> Sides {
        let options = RemoraOptions {
            threads: Some(1),
            memory_mib: Some(CACHE_MIB),
            ..RemoraOptions::unhurried()
        };
        let behind = server(0);
        Sides {
            caching: server(CACHE_MIB),
            remora: InProcessRemora::start(&behind, &options).unwrap(),
            behind,
        }
    }

    fn compare(&self, file: &File) -> Differences {
        let source = std::fs::read(format!("{SUITE}/{}", file.name)).unwrap();
        let source = script::characters_of(&source);
        let skipped = file.skipped.iter();
        let skipped: Vec<_> = skipped.map(|(from, to, _)| (*from, *to)).collect();
        let manner = |wait| Manner {
            wait,
            skipped: &skipped,
            begins_anew: file.begins_anew,
        };
        let own = run(
            &script::prepare(&source, &manner(None)).text,
            self.caching.address(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let asked = listener.local_addr().unwrap();
        let scratch = Scratch::new().unwrap();
        let program = scratch.join("come-to-rest");
        std::fs::write(&program, rest::program(asked)).unwrap();
        let wait = format!("bash {}", program.display());
        let script = script::prepare(&source, &manner(Some(&wait)));
        let mut calm = rest::Calm {
            script: &script,
            remora: &self.remora,
            root: self.behind.root().unwrap(),
            rested_at: String::new(),
            outcomes: Vec::new(),
        };
        let answering = &mut calm;
        let through = std::thread::scope(|scope| {
            // If that fails, nobody listens any more, and so the script doesn't wait.
            scope.spawn(move || answering.answer(&listener));
            let through = run(&script.text, self.remora.address());
            rest::end(asked);
            through
        });
        keep(
            file,
            &[
                ("server", &own),
                ("remora", &through),
                ("outcomes", &calm.told()),
            ],
        );
        output::compare(&own, &through)
    }
}

/// Keeps what was printed where `SUITE_OUTPUT` says, to find out why something differs.
fn keep(file: &File, texts: &[(&str, &str)]) {
    let Ok(folder) = std::env::var("SUITE_OUTPUT") else {
        return;
    };
    for (kind, text) in texts {
        let path = format!("{folder}/{}.{kind}", file.name.replace('/', "-"));
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn the_servers_own_tests_of_its_cache_see_the_servers_rows() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(
        kind != Kind::MariaDb1011,
        "the package has the tests of MariaDB 10.11",
    ) {
        return;
    }
    let is_missing = !Path::new(SUITE).exists();
    if kind.skips(is_missing, "Debian's package mariadb-test is not installed") {
        return;
    }
    let only = std::env::var("SUITE_FILE").ok();
    let sides = Sides::start();
    let mut failures = Vec::new();
    for file in FILES
        .iter()
        .filter(|file| only.as_deref().is_none_or(|only| only == file.name))
    {
        let differences = sides.compare(file);
        println!(
            "{}: {} statements, {} counters",
            file.name, differences.statements, differences.counters
        );
        for (line, server, remora) in &differences.outputs {
            println!(
                "{}:{line}: other output\n--- server\n{server}\n--- remora\n{remora}",
                file.name
            );
        }
        for growth in &differences.growths {
            println!("{}: {growth:?}", file.name);
        }
        failures.extend(expected::unexpected(file, &differences));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
