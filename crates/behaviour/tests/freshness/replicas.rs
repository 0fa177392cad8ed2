//! Remora among other replicas of its server.

use std::time::Duration;

use remora_testkit::client::Client;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Server, ServerOptions};
use remora_wire::command::ResponseKind;

const PATIENCE: Duration = remora_testkit::process::PATIENCE;
/// `COM_REGISTER_SLAVE`.
const REGISTER_REPLICA: u8 = 0x15;
const READ: &str = "SELECT a FROM t";

fn server() -> Server {
    let server = Server::start(ServerOptions::default()).unwrap();
    server
        .execute(["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (0)"])
        .unwrap();
    server
}

fn sum(remora: &InProcessRemora, metric: &str) -> f64 {
    remora.metrics().unwrap().sum(metric)
}

/// Asks until an answer comes from memory; gives it.
fn hit(remora: &InProcessRemora, client: &mut Client) -> String {
    wait_for("a hit", PATIENCE, || {
        let before = sum(remora, "remora_hits_total");
        let value = client.query_value(READ)?.unwrap();
        Ok((sum(remora, "remora_hits_total") > before).then_some(value))
    })
    .unwrap()
}

#[test]
fn two_remoras_follow_one_server_side_by_side() {
    let server = server();
    let options = RemoraOptions::unhurried();
    let remoras = [(); 2].map(|()| InProcessRemora::start(&server, &options).unwrap());
    let mut clients = [&remoras[0], &remoras[1]]
        .map(|remora| server.app().at(remora.address()).connect().unwrap());
    for round in 1..=20 {
        let written_at = round % 2;
        clients[written_at]
            .query(&format!("UPDATE t SET a = {round}"))
            .unwrap();
        let own = clients[written_at].query_value(READ).unwrap();
        assert_eq!(own, Some(round.to_string()));
        for (remora, client) in remoras.iter().zip(&mut clients) {
            wait_for("the new row", PATIENCE, || {
                Ok((hit(remora, client) == round.to_string()).then_some(()))
            })
            .unwrap();
        }
    }
    for remora in &remoras {
        let connections = sum(remora, "remora_follower_connections_total");
        assert!(
            connections < 1.5,
            "one ends the other's stream: {connections} connections"
        );
    }
}

/// MySQL before 8.0 leaves a column out of the list of replicas then.
#[test]
fn a_replica_without_a_uuid_disturbs_nobody() {
    let server = server();
    let mut other = server.root().unwrap();
    let mut body = 4_711_u32.to_le_bytes().to_vec();
    body.extend([0; 3 + 2 + 4 + 4]);
    other
        .command(REGISTER_REPLICA, &body, ResponseKind::Single)
        .unwrap();
    let listed = server
        .root()
        .unwrap()
        .query_bytes("SHOW SLAVE HOSTS")
        .map(<[u8]>::to_vec);
    assert!(String::from_utf8_lossy(&listed.unwrap()).contains("4711"));
    let remora = InProcessRemora::start(&server, &RemoraOptions::following()).unwrap();
    let mut client = server.app().at(remora.address()).connect().unwrap();
    assert_eq!(hit(&remora, &mut client), "0");
}
