//! A client beside each load that writes and reads back: whether what a way to the server answers
//! is up to date.
//!
//! It has two counters in a table of its own. One it writes itself; the other is written by another
//! connection through the same way. From a write's `OK` on, a read must show it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};

use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::load::{CounterTable, Oracle, Route};
use remora_testkit::servers::Server;

/// Between a write, the reads that can be kept, and those that can be answered from what was kept.
/// So few queries, about 15 reads a second, hardly show in a load and in its hit ratio.
const PAUSE: Duration = Duration::from_millis(200);
/// How soon an end is noticed.
const POLL: Duration = Duration::from_millis(20);
/// Longest wait for an answer, under a load that leaves little to others.
const PATIENCE: Duration = Duration::from_mins(2);
const TABLE: &str = "lab_checker";

/// What the checker found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// Reads that it judged.
    pub(super) reads: u64,
    /// Those that lacked a write.
    pub(super) stale: u64,
    /// The first of them, in words.
    pub(super) first_stale: Option<String>,
}

/// Makes the checker's table anew, directly on the server.
pub(super) fn make_table(server: &Server) -> anyhow::Result<()> {
    let mut client = server.app().connect()?;
    let mut table = CounterTable::new(2);
    TABLE.clone_into(&mut table.name);
    table
        .create(&mut client)
        .context("can't make the checker's table")
}

/// Writes and reads until `stop`. `through` leads to the schema that has the table.
///
/// # Errors
/// The server or what stands in front of it refused a statement, or answered what nobody has
/// written.
pub(super) fn run(through: &ConnectOptions, stop: &AtomicBool) -> anyhow::Result<Checked> {
    let mut through = through.clone();
    through.timeout = PATIENCE;
    let mut own = through.connect()?;
    let mut other = through.connect()?;
    let oracle = Oracle::new(2, 0, Duration::ZERO);
    let mut checked = Checked::default();
    while !stop.load(Ordering::Relaxed) {
        write(&mut own, &oracle, 0)?;
        read(&mut own, &oracle, 0, &mut checked)?;
        write(&mut other, &oracle, 1)?;
        read(&mut own, &oracle, 1, &mut checked)?;
        // Once a cache may keep what was written, it gets the chance to, and to answer from it:
        // only then can the next write find something that it should have driven out.
        for _ in 0..2 {
            pause(PAUSE, stop);
            read(&mut own, &oracle, 0, &mut checked)?;
            read(&mut own, &oracle, 1, &mut checked)?;
        }
    }
    Ok(checked)
}

/// Sleeps for so long, or until `stop`.
pub(super) fn pause(length: Duration, stop: &AtomicBool) {
    let end = std::time::Instant::now() + length;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(POLL));
    }
}

fn write(client: &mut Client, oracle: &Oracle, id: usize) -> anyhow::Result<()> {
    let turn = oracle.begin_write(id);
    let value = turn.value();
    client.query(&format!(
        "UPDATE {TABLE} SET value = {value} WHERE id = {id}"
    ))?;
    turn.done(Route::Through);
    Ok(())
}

fn read(
    client: &mut Client,
    oracle: &Oracle,
    id: usize,
    checked: &mut Checked,
) -> anyhow::Result<()> {
    let text = format!("SELECT value FROM {TABLE} WHERE id = {id}");
    let floor = oracle.before_read(id);
    let value = client
        .query_value(&text)?
        .context("the checker's row is gone")?;
    let value: u64 = value
        .parse()
        .with_context(|| format!("the checker's counter is {value:?}"))?;
    checked.reads += 1;
    if let Err(stale) = oracle.judge(floor, value, || text.clone()) {
        checked.stale += 1;
        checked.first_stale.get_or_insert_with(|| stale.to_string());
    }
    if let Err(never) = oracle.judge_newest(id, value) {
        bail!("{text} gave what nobody has written: {never:?}");
    }
    Ok(())
}
