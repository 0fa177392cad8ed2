//! Servers that are given back are as they were, or not given again.

use remora_testkit::servers::{Pool, SCHEMA, Server, ServerOptions};

fn start() -> anyhow::Result<Server> {
    Server::start(ServerOptions::default())
}

fn count(server: &Server, what: &str) -> String {
    let mut root = server.root().unwrap();
    let value = root.query_value(&format!("SELECT COUNT(*) FROM {what}"));
    value.unwrap().unwrap()
}

#[test]
fn a_server_that_is_given_back_is_clean_for_the_next() {
    static POOL: Pool = Pool::new(start);
    let server = POOL.lease().unwrap();
    let id = server.id();
    let identified = server.kind().identified_by("a password");
    server
        .execute([
            "CREATE TABLE t (a INT)".to_owned(),
            "CREATE DATABASE left_behind".to_owned(),
            format!("CREATE USER left_behind@'%' {identified}"),
        ])
        .unwrap();
    let mut open = server.app().connect().unwrap();
    drop(server);
    assert!(open.query("SELECT 1").is_err(), "connections are ended");
    let server = POOL.lease().unwrap();
    assert_eq!(server.id(), id, "it is the same server");
    let tables = format!("information_schema.TABLES WHERE TABLE_SCHEMA = '{SCHEMA}'");
    let schemas = "information_schema.SCHEMATA WHERE SCHEMA_NAME = 'left_behind'";
    for gone in [&tables, schemas, "mysql.user WHERE User = 'left_behind'"] {
        assert_eq!(count(&server, gone), "0", "{gone}");
    }
    assert!(server.app().connect().is_ok());
}

#[test]
fn global_variables_get_their_values_back() {
    static POOL: Pool = Pool::new(start);
    let server = POOL.lease().unwrap();
    let id = server.id();
    let changes = [
        "SET GLOBAL max_connections = 77",
        "SET GLOBAL init_connect = 'SET @a = 1'",
        "SET GLOBAL log_bin_trust_function_creators = ON",
    ];
    server.execute(changes).unwrap();
    drop(server);
    let server = POOL.lease().unwrap();
    assert_eq!(server.id(), id);
    for changed in [
        "@@max_connections = 77",
        "@@init_connect <> ''",
        "@@log_bin_trust_function_creators",
    ] {
        let what = format!("DUAL WHERE {changed}");
        assert_eq!(count(&server, &what), "0", "{changed}");
    }
}

#[test]
fn a_server_whose_grants_have_changed_is_not_given_again() {
    static POOL: Pool = Pool::new(start);
    let mut used = Vec::new();
    for change in [
        "REVOKE TRIGGER ON *.* FROM remora@'%'",
        "GRANT SELECT ON lab.* TO remora@'%'",
    ] {
        let server = POOL.lease().unwrap();
        assert!(!used.contains(&server.id()), "before {change}");
        server.execute([change]).unwrap();
        used.push(server.id());
    }
    assert!(!used.contains(&POOL.lease().unwrap().id()));
}

#[test]
fn two_leases_are_two_servers() {
    static POOL: Pool = Pool::new(start);
    let (one, two) = (POOL.lease().unwrap(), POOL.lease().unwrap());
    assert_ne!(one.id(), two.id());
}
