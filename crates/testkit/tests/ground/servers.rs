//! The lab's own ground: private servers start, survive what tests do to them, and leave nothing
//! behind.

use std::path::Path;

use remora_testkit::servers::{Kind, SCHEMA, Server, ServerOptions, numbers};

fn is_alive(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

#[test]
fn a_server_starts_with_its_accounts_and_is_gone_when_dropped() {
    let server = Server::start(ServerOptions::default()).unwrap();
    let mut app = server.app().connect().unwrap();
    let expected = format!("app@127.0.0.1 {SCHEMA}");
    let seen = app
        .query_value("SELECT CONCAT(USER(), ' ', DATABASE())")
        .unwrap();
    assert_eq!(seen, Some(expected));
    let id = server.id().unwrap();
    let directory = server.log_path().parent().unwrap().to_owned();
    assert!(is_alive(id) && directory.is_dir());
    drop(server);
    assert!(!is_alive(id));
    assert!(!directory.exists());
}

#[test]
fn data_survive_a_restart_and_a_crash_but_not_other_contents() {
    let mut server = Server::start(ServerOptions::default()).unwrap();
    server
        .execute(["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"])
        .unwrap();
    let count = |server: &Server| {
        let mut client = server.app().connect().unwrap();
        client
            .query_value("SELECT COUNT(*) FROM t")
            .map_err(|error| error.code())
    };
    let address = server.address();
    server.restart().unwrap();
    assert_eq!(count(&server), Ok(Some("1".to_owned())));
    server.crash().unwrap();
    assert!(server.app().connect().is_err());
    server.start_again().unwrap();
    assert_eq!(count(&server), Ok(Some("1".to_owned())));
    server.restart_with_other_contents().unwrap();
    assert_eq!(count(&server), Err(Some(1146)));
    assert_eq!(server.address(), address);
}

#[test]
fn a_frozen_server_answers_when_it_thaws() {
    let server = Server::start(ServerOptions::default()).unwrap();
    let mut options = server.app();
    options.timeout = std::time::Duration::from_millis(200);
    let mut client = options.connect().unwrap();
    server.freeze().unwrap();
    assert!(client.query("SELECT 1").is_err());
    server.thaw().unwrap();
    assert_eq!(
        server
            .app()
            .connect()
            .unwrap()
            .query_value("SELECT 1")
            .unwrap()
            .unwrap(),
        "1"
    );
}

#[test]
fn the_query_cache_is_there_when_asked_for() {
    let kind = Kind::from_environment().unwrap();
    if kind.skips(!kind.has_query_cache(), "it has no query cache") {
        return;
    }
    let options = ServerOptions {
        query_cache_mib: 8,
        ..ServerOptions::default()
    };
    let server = Server::start(options).unwrap();
    server.execute(["CREATE TABLE t (a INT)"]).unwrap();
    let mut client = server.app().connect().unwrap();
    for _ in 0..3 {
        client.query("SELECT * FROM t").unwrap();
    }
    let hits = client
        .query("SHOW GLOBAL STATUS LIKE 'Qcache_hits'")
        .unwrap()
        .rows()
        .unwrap();
    assert_eq!(hits[0][1].as_deref(), Some(&b"2"[..]));
}

#[test]
fn an_answer_of_any_size_is_received_whole() {
    let server = Server::start(ServerOptions::default()).unwrap();
    for deprecate_eof in [true, false] {
        let mut options = server.app();
        options.deprecate_eof = deprecate_eof;
        let mut client = options.connect().unwrap();
        let text = format!(
            "SELECT seq, REPEAT('x', seq), NULL FROM {} ORDER BY seq",
            numbers(2_000)
        );
        let answer = client.query(&text).unwrap();
        assert_eq!(
            answer.column_names().unwrap(),
            ["seq", "REPEAT('x', seq)", "NULL"]
        );
        let rows = answer.rows().unwrap();
        assert_eq!(rows.len(), 2_000);
        let last = &rows[1_999];
        assert_eq!(last[0].as_deref(), Some(&b"2000"[..]));
        assert_eq!(last[1].as_ref().map(Vec::len), Some(2_000));
        assert_eq!(last[2], None);
        let failed = client.query("SELECT * FROM nowhere").unwrap_err();
        assert_eq!(failed.code(), Some(1146));
        assert_eq!(
            client.query_value("SELECT 42").unwrap().as_deref(),
            Some("42")
        );
    }
}
