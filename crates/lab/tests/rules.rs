//! What an operator may change while Remora runs: what is held, and who may ask for it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod front;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use remora_lab::metrics::{Page, get, post};
use remora_lab::process::wait_for;
use remora_lab::proxies::RemoraOptions;
use remora_lab::scratch::Scratch;

use front::{Front, PATIENCE, own_server};

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
];

const TOKEN: &str = "open-sesame";

/// A file that only its owner can read.
fn put(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn token_file(scratch: &Scratch) -> PathBuf {
    let path = scratch.join("token");
    put(&path, TOKEN);
    path
}

fn with_token(path: &Path) -> RemoraOptions {
    RemoraOptions::following().with("admin.token_file", &path.display().to_string())
}

fn ask(front: &Front, path: &str, token: &str) -> Page {
    let header = format!("Authorization: Bearer {token}\r\n");
    post(front.remora().admin(), path, &header).unwrap()
}

fn truth(front: &Front, sql: &str) -> Vec<u8> {
    front.direct().query_bytes(sql).unwrap().to_vec()
}

/// The SQL that keeps readers of a table waiting until it is let go.
const HOLD: &str = "LOCK TABLES t WRITE";

#[test]
fn what_changes_something_needs_the_token_and_what_shows_something_does_not() {
    let scratch = Scratch::new().unwrap();
    let path = token_file(&scratch);
    let front = Front::with("token", with_token(&path), &TABLE);
    let admin = front.remora().admin();
    for headers in [
        "",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Basic open-sesame\r\n",
        "Authorization: Bearer open-sesame2\r\n",
    ] {
        let refused = post(admin, "/flush", headers).unwrap();
        assert_eq!(
            (refused.status, refused.body.as_str()),
            (401, ""),
            "{headers}"
        );
    }
    assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
    // A page that shows something is open, and a request that nobody makes stays none.
    assert_eq!(get(admin, "/digests").unwrap().status, 200);
    assert_eq!(get(admin, "/flush").unwrap().status, 405);
    // Read again.
    put(&path, "another");
    front.remora().app().unwrap().reload_token().unwrap();
    assert_eq!(ask(&front, "/flush", TOKEN).status, 401);
    assert_eq!(ask(&front, "/flush", "another").status, 200);
    // A file without one changes nothing.
    put(&path, "\n");
    let error = front.remora().app().unwrap().reload_token().unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
    assert_eq!(ask(&front, "/flush", "another").status, 200);
}

#[test]
fn without_a_token_the_admin_listener_is_read_only() {
    let front = Front::new("no_token", &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 1";
    guest.becomes_hit(sql, &truth(&front, sql));
    for token in ["", "x"] {
        let refused = ask(&front, "/flush", token);
        assert_eq!((refused.status, refused.body.as_str()), (401, ""));
    }
    assert!(front.remora().app().unwrap().shared().store.stats().entries > 0);
}

#[test]
fn a_flush_drops_what_is_held() {
    let scratch = Scratch::new().unwrap();
    let server = std::sync::Arc::new(own_server());
    let front = Front::on(server, "flushed", with_token(&token_file(&scratch)), &TABLE);
    let mut guest = front.guest();
    let sql = "SELECT b FROM t WHERE a = 1";
    let expected = truth(&front, sql);
    guest.becomes_hit(sql, &expected);
    assert_eq!(guest.run(sql).outcome, "hit");
    assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
    let shared = front.remora().app().unwrap().shared();
    assert_eq!(shared.store.stats().entries, 0);
    assert_eq!(guest.run(sql).outcome, "fill");
    guest.becomes_hit(sql, &expected);
}

#[test]
fn a_flush_drops_what_is_on_its_way_into_memory() {
    let scratch = Scratch::new().unwrap();
    let server = std::sync::Arc::new(own_server());
    let front = Front::on(
        server,
        "in_flight",
        with_token(&token_file(&scratch)),
        &TABLE,
    );
    let sql = "SELECT b FROM t WHERE a = 2";
    let expected = truth(&front, sql);
    // Its settings and the table are known then.
    let mut guest = front.guest();
    guest.becomes_hit(sql, &expected);
    assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
    let mut holder = front.direct();
    holder.query(HOLD).unwrap();
    let shared = front.remora().app().unwrap().shared();
    let seen = std::thread::scope(|scope| {
        let asked = scope.spawn(|| guest.run(sql));
        wait_for("a fill in flight", PATIENCE, || {
            Ok((shared.fills.len() == 1).then_some(()))
        })
        .unwrap();
        assert_eq!(ask(&front, "/flush", TOKEN).status, 200);
        holder.query("UNLOCK TABLES").unwrap();
        asked.join().unwrap()
    });
    assert_eq!(seen.outcome, "not_stored_cleared");
    assert_eq!(seen.bytes, expected);
    assert_eq!(shared.store.stats().entries, 0);
    front.guest().becomes_hit(sql, &expected);
}
