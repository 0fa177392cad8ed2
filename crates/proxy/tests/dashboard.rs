//! The dashboard's page and what it asks for, over real connections.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use remora::admin::{self, AdminHandle, Tools};
use remora::config::options::AdminOptions;
use remora::config::{Override, Settings};
use remora::metrics::{
    Caching, FollowerObservation, Metrics, Observation, Observed, Reachability, RulesObservation,
    StoreObservation,
};
use remora_engine::reason::{CachingOff, Outcome};
use serde_json::Value;

/// A Remora that can't reach its server.
struct Unreachable;

impl Observed for Unreachable {
    fn observe(&self) -> Observation {
        Observation {
            caching: Caching::Off(CachingOff::FollowerLost),
            upstream: Reachability::Unreachable("refused".to_owned()),
            statements: None,
            connections: 3,
            fingerprints: 0,
            digests: 0,
            digests_off: 0,
            catalogue_tables: 0,
            shape_tables: 0,
            shapes: 0,
            catalogue_loads: 0,
            catalogue_batches: 0,
            limits: Vec::new(),
            rules: RulesObservation::default(),
            store: StoreObservation::default(),
            follower: FollowerObservation::default(),
        }
    }
}

fn start() -> (AdminHandle, Arc<Metrics>) {
    let metrics = Metrics::new(1);
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let observed = Arc::new(Unreachable);
    let options = AdminOptions::default();
    let admin = admin::start(
        any_port,
        &options,
        Arc::clone(&metrics),
        observed,
        Tools::default(),
    )
    .unwrap();
    (admin, metrics)
}

/// The head and the body of an answer.
fn get(admin: &AdminHandle, path: &str, accept: &str) -> (String, String) {
    let mut connection = TcpStream::connect(admin.address()).unwrap();
    let patience = Some(Duration::from_secs(30));
    connection.set_read_timeout(patience).unwrap();
    write!(
        connection,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn json(admin: &AdminHandle, path: &str) -> Value {
    let (head, body) = get(admin, path, "*/*");
    assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
    serde_json::from_str(&body).unwrap()
}

/// What stands between the quotes after each `before`.
fn quoted<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let parts = text.split(before).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

#[test]
fn a_browser_gets_the_page_and_others_the_list_of_paths() {
    let (admin, _) = start();
    let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    let (head, page) = get(&admin, "/", browser);
    assert!(head.contains("content-type: text/html"), "{head}");
    assert_eq!(get(&admin, "/dashboard", "*/*").1, page);
    let (head, list) = get(&admin, "/", "*/*");
    assert!(head.contains("content-type: text/plain"), "{head}");
    assert!(list.contains("/dashboard "), "{list}");
}

#[test]
fn the_page_needs_nothing_but_its_own_files_and_nothing_stands_in_it() {
    let (admin, _) = start();
    let (head, page) = get(&admin, "/dashboard", "*/*");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
    ] {
        assert!(head.contains(part), "{head}");
    }
    assert!(!head.contains("unsafe"), "{head}");
    for inline in ["<style", "<script>", " style=", " onclick="] {
        assert!(!page.contains(inline), "{inline}");
    }
    let mut files: Vec<String> = [quoted(&page, "src=\""), quoted(&page, "href=\"dashboard/")]
        .concat()
        .into_iter()
        .map(|file| file.trim_start_matches("dashboard/").to_owned())
        .collect();
    assert!(files.contains(&"main.js".to_owned()), "{files:?}");
    let mut at = 0;
    while at < files.len() {
        let (head, text) = get(&admin, &format!("/dashboard/{}", files[at]), "*/*");
        assert!(head.starts_with("http/1.1 200"), "{}: {head}", files[at]);
        assert!(
            !text.is_empty() && head.contains("nosniff"),
            "{}",
            files[at]
        );
        // And what that file wants in turn.
        for file in quoted(&text, "from \"./") {
            if !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
        at += 1;
    }
    assert!(files.len() > 10, "{files:?}");
    let (head, _) = get(&admin, "/dashboard/no-such.js", "*/*");
    assert!(head.starts_with("http/1.1 404"), "{head}");
}

#[test]
fn what_happened_since_the_page_last_asked_is_told() {
    let (admin, metrics) = start();
    let worker = metrics.worker(0).unwrap();
    worker.count_hit(10, Duration::from_micros(5));
    worker.count(Outcome::Write);
    let end = Instant::now() + Duration::from_secs(30);
    let live = loop {
        let live = json(&admin, "/dashboard/live");
        if live["samples"]
            .as_array()
            .is_some_and(|samples| samples.len() >= 2)
        {
            break live;
        }
        assert!(Instant::now() < end, "{live}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(live["caching_off"]["reason"], "follower_lost");
    assert_eq!(live["upstream_error"], "refused");
    let (run, samples) = (live["run"].as_str().unwrap(), &live["samples"]);
    assert_eq!(
        (&samples[0]["number"], &samples[0]["connections"]),
        (&1.into(), &3.into())
    );
    let sum = |name: &str| -> u64 {
        let samples = samples.as_array().unwrap().iter();
        samples.map(|sample| sample[name].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("hits"), sum("writes"), sum("misses")), (1, 1, 0));
    let later = json(&admin, &format!("/dashboard/live?run={run}&after=1"));
    assert_eq!(later["samples"][0]["number"], 2);
    // What the page has is of another run: it gets all of this one.
    let all = json(&admin, "/dashboard/live?run=another&after=1000");
    assert_eq!(all["samples"][0]["number"], 1);
}

#[test]
fn without_an_account_the_page_says_why_the_server_is_not_read() {
    let (admin, _) = start();
    assert_eq!(json(&admin, "/dashboard/advice")["state"], "no_account");
}

/// The status line of an answer to a `POST` with these headers.
fn post(admin: &AdminHandle, path: &str, headers: &str) -> String {
    let mut connection = TcpStream::connect(admin.address()).unwrap();
    let patience = Some(Duration::from_secs(30));
    connection.set_read_timeout(patience).unwrap();
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n{headers}\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[test]
fn only_the_page_can_have_the_server_read() {
    let (admin, _) = start();
    let from_elsewhere = post(&admin, "/dashboard/advice", "");
    assert!(from_elsewhere.contains(" 403 "), "{from_elsewhere}");
    // There is no account here to read with.
    let from_page = post(&admin, "/dashboard/advice", "X-Remora-Page: advice\r\n");
    assert!(from_page.contains(" 404 "), "{from_page}");
}

#[test]
fn the_configuration_is_shown_without_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "4711-secret\n").unwrap();
    let given = [
        ("follow.user", "remora"),
        ("follow.password_file", file.to_str().unwrap()),
        ("cache.memory_bytes_max", "64MiB"),
    ];
    let overrides = given.map(|(option, value)| Override {
        flag: format!("--set {option}"),
        option: option.to_owned(),
        value: value.to_owned(),
    });
    let settings = Settings::load(None, &overrides).unwrap();
    let all = settings.in_force();
    let one = |name: &str| all.iter().find(|one| one.option == name).unwrap();
    let memory = one("cache.memory_bytes_max");
    assert_eq!(memory.value.as_deref(), Some("64MiB"));
    assert_eq!(memory.default.as_deref(), Some("256MiB"));
    assert_eq!(one("follow.user").value.as_deref(), Some("remora"));
    assert_eq!(one("upstream.tls_ca_file").value, None);
    let shown = serde_json::to_string(&all).unwrap();
    assert!(!shown.contains("4711-secret"));
}
