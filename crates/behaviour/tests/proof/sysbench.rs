//! Every database script of sysbench 1.0, unmodified, runs through Remora without an error.

use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{SCHEMA, Server, ServerOptions};
use remora_testkit::sysbench::{Length, SCRIPTS, Sysbench};

const EVENTS: u64 = 300;

fn every_script_runs(prepared: bool) {
    let server = Server::start(ServerOptions::default()).unwrap();
    let remora = InProcessRemora::start(&server, &RemoraOptions::following()).unwrap();
    for script in SCRIPTS {
        let mut sysbench = Sysbench::new(script, remora.address(), SCHEMA);
        sysbench.prepared = prepared;
        sysbench.threads = 4;
        // The scripts that select random points and ranges know only one table.
        sysbench.tables = if script.starts_with("oltp") { 2 } else { 1 };
        sysbench.prepare().unwrap();
        let report = sysbench.run(Length::Events(EVENTS)).unwrap();
        assert!(report.queries > 0, "{script}: {report:?}");
        assert_eq!(report.reconnects, 0, "{script}: {report:?}");
        sysbench.clean_up().unwrap();
    }
}

#[test]
fn every_script_runs_with_text_statements() {
    every_script_runs(false);
}

#[test]
fn every_script_runs_with_prepared_statements() {
    every_script_runs(true);
}
