//! The dashboard, in a real browser.
//!
//! This side starts the server, Remora and a load; `browser.mjs` opens the page, looks at it and
//! does what a person would. What it needs done outside the browser it asks for by a file, and sees
//! in the page that it was done.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::load::Random;
use remora_testkit::process::{Process, Program};
use remora_testkit::proxies::{Remora, RemoraOptions};
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::{Server, ServerOptions};
use remora_testkit::{ports, programs};

/// Longest time without a wish or a new step of the script. How long all of it takes depends on the
/// machine.
const PATIENCE: Duration = Duration::from_mins(3);
/// Between two statements of the load.
const PAUSE: Duration = Duration::from_millis(2);
/// A value that stands in statements and must never be in the page.
const PRIVATE: u64 = 471_100_815;

const TABLES: [&str; 6] = [
    "CREATE DATABASE shop",
    "USE shop",
    "CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(40), price_cents INT, category_id INT, KEY (category_id))",
    "INSERT INTO product SELECT seq, CONCAT('Product ', seq), 100 + seq, seq % 10 FROM seq_1_to_200",
    "CREATE TABLE stock (product_id INT PRIMARY KEY, sold BIGINT)",
    "INSERT INTO stock SELECT seq, 0 FROM seq_1_to_200",
];

/// The statement of this kind, about something chosen by chance.
fn statement(kind: usize, random: &mut Random) -> String {
    let product = 1 + random.below(200);
    match kind {
        0..5 => format!("SELECT name, price_cents FROM product WHERE id = {product}"),
        5 => format!(
            "SELECT category_id, COUNT(*) FROM product WHERE category_id = {} GROUP BY category_id",
            product % 10
        ),
        6 => format!("SELECT sold FROM stock WHERE product_id = {product}"),
        7 => format!("SELECT NOW(), sold FROM stock WHERE product_id <> {PRIVATE}"),
        8 => format!(
            "SELECT id FROM product WHERE price_cents = {PRIVATE} OR name = 'private {PRIVATE}'"
        ),
        _ => format!("UPDATE stock SET sold = sold + 1 WHERE product_id = {product}"),
    }
}

/// Asks until `is_over`, also while Remora is down.
fn ask(options: &ConnectOptions, seed: u64, is_over: &AtomicBool) {
    let mut random = Random::new(seed);
    let mut client: Option<Client> = None;
    while !is_over.load(Ordering::Relaxed) {
        client = client
            .or_else(|| options.connect().ok())
            .and_then(|mut client| {
                let sql = statement(random.below(10), &mut random);
                client.query(&sql).is_ok().then_some(client)
            });
        std::thread::sleep(PAUSE);
    }
}

/// The script's program, with all that it is told.
fn browser(admin: SocketAddr, wishes: &Path) -> Program {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/once/dashboard");
    let modules = programs::cache_directory().join("dashboard/node_modules");
    for module in ["playwright-core", "axe-core"] {
        assert!(
            modules.join(module).is_dir(),
            "the npm package `{module}` is not in {}; `scripts/setup test` installs all there is to install",
            modules.display()
        );
    }
    let chromium = programs::find("chromium").unwrap();
    Program::new(
        "browser",
        programs::find("node").unwrap(),
        wishes.join("log"),
    )
    .arg(here.join("browser.mjs"))
    .arg(format!("http://{admin}/"))
    .arg(chromium)
    .arg(modules)
    .arg(wishes)
    .arg(PRIVATE.to_string())
}

/// A Remora that can be ended and started again at its addresses.
struct Restarted<'a> {
    server: &'a Server,
    options: RemoraOptions,
    address: SocketAddr,
    admin: SocketAddr,
    running: Option<Remora>,
}

impl Restarted<'_> {
    fn start(&mut self) {
        let started =
            Remora::start_at(self.server, &self.options, self.address, self.admin).unwrap();
        self.running = Some(started);
    }
}

/// Does what the script asks for until it has ended.
fn serve(browser: &mut Process, wishes: &Path, remora: &mut Restarted<'_>, load: &AtomicBool) {
    let asked = |wish: &str| std::fs::remove_file(wishes.join(wish)).is_ok();
    let (mut done, mut written) = (0, 0);
    let mut goes_on = || {
        let before = (done, written);
        if asked("load") {
            load.store(true, Ordering::Relaxed);
            done += 1;
        }
        if asked("stop") {
            // As a crash would.
            drop(remora.running.take());
            done += 1;
        }
        if asked("start") {
            remora.start();
            done += 1;
        }
        written = std::fs::metadata(wishes.join("log")).map_or(0, |log| log.len());
        (before != (done, written)).then_some(())
    };
    let failed = loop {
        let step = browser.wait_until("the script's next step", PATIENCE, &mut goes_on);
        if let Err(failed) = step {
            break failed;
        }
    };
    let status = browser.ended().unwrap();
    assert!(
        status.is_some_and(|status| status.success()),
        "{failed:#}\n{}",
        browser.log_tail()
    );
    assert_eq!(done, 3, "{}", browser.log_tail());
}

#[test]
fn the_page_shows_what_remora_does_and_survives_its_restart() {
    let server = Server::start(ServerOptions::default()).unwrap();
    server.execute(TABLES).unwrap();
    let scratch = Scratch::new().unwrap();
    let wishes: PathBuf = scratch.join("wishes");
    std::fs::create_dir(&wishes).unwrap();
    let token = scratch.join("token");
    std::fs::write(&token, "the-right-token\n").unwrap();
    let mut remora = Restarted {
        server: &server,
        options: RemoraOptions::following().with("admin.token_file", &token.display().to_string()),
        address: ports::free().unwrap(),
        admin: ports::free().unwrap(),
        running: None,
    };
    remora.start();
    let app = server.app().schema("shop").at(remora.address);
    let (load, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut browser = browser(remora.admin, &wishes).spawn().unwrap();
    std::thread::scope(|scope| {
        for seed in [1, 2] {
            let (app, load, is_over) = (&app, &load, &is_over);
            scope.spawn(move || {
                while !load.load(Ordering::Relaxed) && !is_over.load(Ordering::Relaxed) {
                    std::thread::sleep(PAUSE);
                }
                ask(app, seed, is_over);
            });
        }
        let over = OverWhenDropped(&is_over);
        serve(&mut browser, &wishes, &mut remora, &load);
        drop(over);
    });
}

/// Ends the load also when the test fails.
struct OverWhenDropped<'a>(&'a AtomicBool);

impl Drop for OverWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
