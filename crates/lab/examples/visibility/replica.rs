//! A server that replicates what is written to another one.

use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::servers::{APP_PASSWORD, APP_USER, Server, ServerOptions};

use super::WRITERS;
use super::load::connect;

/// The server that is written to.
pub(super) fn source(options: &ServerOptions) -> Server {
    let options = ServerOptions {
        further: vec!["--server-id=2".to_owned()],
        ..options.clone()
    };
    Server::start(options).unwrap()
}

/// Those of the replica.
pub(super) fn options(options: &ServerOptions) -> ServerOptions {
    let mut options = options.clone();
    options.further.push("--log-slave-updates".to_owned());
    options
}

/// Has `replica` replicate what is written to `source` from now on.
pub(super) fn follow(source: &Server, replica: &Server) {
    let position = source.position().unwrap();
    let (file, offset) = position.split_once(':').unwrap();
    let port = source.address().port();
    let change = format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, \
         MASTER_USER = '{APP_USER}', MASTER_PASSWORD = '{APP_PASSWORD}', MASTER_SSL = 0, \
         MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {offset}"
    );
    replica.execute([&*change, "START SLAVE"]).unwrap();
}

/// Ends replication when what is on its way has been applied.
pub(super) fn stop(replica: &Server) {
    replica.execute(["STOP SLAVE"]).unwrap();
}

/// Waits until the server has the tables that are written.
pub(super) fn wait_for_tables(server: &Server) {
    let mut client = connect(server);
    let last = format!("SELECT 1 FROM other{} LIMIT 1", WRITERS - 1);
    let has_tables = || Ok(client.query(&last).ok().map(drop));
    wait_for("the tables to be replicated", PATIENCE, has_tables).unwrap();
}

/// A MySQL server's identity, as it stands in its transactions' numbers.
pub(super) fn uuid(server: &Server) -> String {
    let uuid = connect(server).query_value("SELECT @@server_uuid");
    uuid.unwrap().unwrap()
}
