//! Waiting for Remora to come to rest, when the client of the tests asks for it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use remora_behaviour::front::catch_up;
use remora_cache::{Entry, Position};
use remora_testkit::client::Client;
use remora_testkit::metrics;
use remora_testkit::process::{PATIENCE, wait_for};
use remora_testkit::proxies::InProcessRemora;

use super::script::{Script, bytes_of};

/// A program for the shell that asks, with the line's number as its argument. The client would take
/// a `$` in its own script for a variable of its own.
pub fn program(address: SocketAddr) -> String {
    format!(
        "exec 3<>/dev/tcp/{}/{}; echo $1 >&3; read -r done <&3\n",
        address.ip(),
        address.port()
    )
}

const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES \
     WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN \
     ('mysql', 'sys', 'information_schema', 'performance_schema')";

/// What came of the statements before a line, as the metrics tell it: labels and how often.
pub type Outcomes = Vec<(usize, Vec<(String, f64)>)>;

/// Has Remora come to rest.
pub struct Calm<'s> {
    pub script: &'s Script,
    pub remora: &'s InProcessRemora,
    /// To the server, past Remora.
    pub root: Client,
    /// Where the log was when all had been applied.
    pub rested_at: String,
    pub outcomes: Outcomes,
}

impl Calm<'_> {
    /// What came of the statements, a line for each line at which was waited.
    pub fn told(&self) -> String {
        self.outcomes.iter().fold(String::new(), |mut text, one| {
            let _ = writeln!(text, "{one:?}");
            text
        })
    }

    /// Answers until somebody says `end`.
    pub fn answer(&mut self, listener: &TcpListener) {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            if line.trim() == "end" {
                return;
            }
            let number: usize = line.trim().parse().unwrap();
            self.come_to_rest();
            self.learn_tables(number);
            let metrics = self.remora.metrics().unwrap();
            let counted = metrics.labelled("remora_statements_total").into_iter();
            let counted = counted.map(|(labels, count)| (labels.to_owned(), count));
            self.outcomes.push((number, counted.collect()));
            // The client may have given up waiting.
            let _ = (&stream).write_all(b"done\n");
        }
    }

    /// All that was written is known and visible, and what it outdated is gone.
    fn come_to_rest(&mut self) {
        let rows = self
            .root
            .query("SHOW MASTER STATUS")
            .unwrap()
            .rows()
            .unwrap();
        let field = |at: usize| String::from_utf8(rows[0][at].clone().unwrap()).unwrap();
        let (file, offset) = (field(0), field(1));
        let place = format!("{file}:{offset}");
        if place == self.rested_at {
            return;
        }
        let number = file.rsplit_once('.').unwrap().1.parse().unwrap();
        let at = Position::new(number, offset.parse().unwrap()).unwrap();
        let shared = self.remora.app().unwrap().shared();
        let timeline = &shared.timeline;
        // Then all fences are lowered that were answered before.
        catch_up(self.remora);
        wait_for("Remora to come to rest", PATIENCE, || {
            shared.upstream.wake();
            let knows = timeline.applied() >= at
                && timeline.visible() >= at
                && shared.upstream.catalogue.hidden_code.is_known();
            if !knows {
                return Ok(None);
            }
            // The files wait nowhere while one of their statements is blocked by another.
            let on_their_way = self.remora.metrics()?.sum("remora_fills_in_flight");
            Ok((on_their_way == 0.0).then_some(()))
        })
        .unwrap();
        let outdated = |entry: &Entry| timeline.outdated(entry.as_of(), entry.tags());
        let sweep = || shared.store.sweep_step(usize::MAX, outdated, |_, _| ());
        while !sweep().finished {}
        self.learn_all_tables();
        self.rested_at = place;
    }

    /// The definitions of the tables that a statement reads are there when it comes. It may be a
    /// statement that nobody has read.
    fn learn_tables(&mut self, number: usize) {
        let mut statements = self.script.statements.iter();
        if let Some((_, schema, text)) = statements.find(|(at, ..)| *at == number) {
            let text = text.trim().trim_end_matches(';');
            self.learn_tables_of(&bytes_of(schema), &bytes_of(text));
        }
    }

    /// All tables that there are now. Some statements stand in variables of the script, and some in
    /// other statements: nobody can tell from those which tables they read.
    fn learn_all_tables(&mut self) {
        let rows = self.root.query(TABLES).unwrap().rows().unwrap();
        for row in rows {
            let [Some(schema), Some(table)] = &row[..] else {
                continue;
            };
            let read = [b"SELECT * FROM `", table.as_slice(), b"`"].concat();
            self.learn_tables_of(schema, &read);
        }
    }

    fn learn_tables_of(&self, schema: &[u8], text: &[u8]) {
        let encoded = |bytes: &[u8]| -> String {
            bytes.iter().fold(String::new(), |mut encoded, byte| {
                let _ = write!(encoded, "%{byte:02x}");
                encoded
            })
        };
        let page = format!("/explain?schema={}&sql={}", encoded(schema), encoded(text));
        wait_for("the definitions of tables", PATIENCE, || {
            // It says so of what is no statement that reads.
            let page = metrics::get(self.remora.admin(), &page);
            let is_loading = page.is_ok_and(|page| page.body.contains("table_loading"));
            Ok((!is_loading).then_some(()))
        })
        .unwrap();
    }
}

/// Has [`Calm::answer`] return, unless it has failed: that is told then.
pub fn end(address: SocketAddr) {
    let stream = TcpStream::connect(address);
    let _ = stream.and_then(|mut stream| stream.write_all(b"end\n"));
}
