//! A sysbench that is read while it runs.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::second::Reader;
use super::{Second, Sysbench};
use crate::process::{Process, Program};
use crate::scratch::Scratch;
use crate::{interrupt, programs};

/// What is added to each script.
const PER_SECOND: &str = include_str!("per_second.lua");
/// The longest wait for what should come each second. Many threads take a while to connect.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often is looked whether something has come.
const POLL: Duration = Duration::from_millis(10);

/// A running sysbench, without an end of its own. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    process: Process,
    output: File,
    reader: Reader,
    seconds: VecDeque<Second>,
    _scratch: Scratch,
}

impl Sysbench {
    /// Starts it, to run until it is dropped.
    pub fn start(&self) -> anyhow::Result<Running> {
        let scratch = Scratch::new()?;
        let script = scratch.join(&format!("{}_per_second.lua", self.script));
        std::fs::write(&script, self.with_seconds())
            .with_context(|| format!("can't write {}", script.display()))?;
        let log = scratch.join("log");
        let process = Program::new("sysbench", programs::find("sysbench")?, log.clone())
            .arg(script)
            .args(self.options(&self.address.port().to_string()))
            .args(["--time=0", "--events=0", "--report-interval=1", "run"])
            .spawn()?;
        Ok(Running {
            process,
            output: File::open(&log).with_context(|| format!("can't read {}", log.display()))?,
            reader: Reader::default(),
            seconds: VecDeque::new(),
            _scratch: scratch,
        })
    }

    /// The script with what is added to it.
    fn with_seconds(&self) -> String {
        let own = self.directory.as_ref().map_or_else(String::new, |path| {
            format!(
                "package.path = \"{}/?.lua;\" .. package.path\n",
                path.display()
            )
        });
        format!("{own}require(\"{}\")\n{PER_SECOND}", self.script)
    }

    /// As one would type it, to `run` or to `prepare`; the port as `PORT`, for it is another one
    /// each time.
    pub fn command_line(&self, what: &str) -> String {
        let seconds = if what == "run" {
            " --time=0 --report-interval=1"
        } else {
            ""
        };
        format!(
            "sysbench {} {}{seconds} {what}",
            self.script,
            self.options("PORT").join(" ")
        )
    }
}

impl Running {
    /// Waits for what it says next.
    ///
    /// # Errors
    /// It met an error or ended, it said nothing for two minutes, or the user asked to stop.
    pub fn next_second(&mut self) -> anyhow::Result<Second> {
        let end = Instant::now() + PATIENCE;
        loop {
            interrupt::check()?;
            if let Some(second) = self.seconds.pop_front() {
                return Ok(second);
            }
            // Asked before the reading, so that nothing is missed of one that has ended.
            let ended = self.process.ended()?;
            self.read()?;
            if self.seconds.is_empty() {
                if let Some(status) = ended {
                    bail!(
                        "sysbench ended by itself ({status}); {}",
                        self.process.log_tail()
                    );
                }
                if Instant::now() > end {
                    bail!(
                        "sysbench said nothing for {} s; {}",
                        PATIENCE.as_secs(),
                        self.process.log_tail()
                    );
                }
                std::thread::sleep(POLL);
            }
        }
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        self.output
            .read_to_end(&mut bytes)
            .context("can't read what sysbench writes")?;
        let (seconds, error) = self.reader.feed(&String::from_utf8_lossy(&bytes));
        if let Some(error) = error {
            bail!("sysbench: {error}");
        }
        self.seconds.extend(seconds);
        Ok(())
    }

    /// Ends it.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.process.kill().map(drop)
    }
}
