//! Telling a person who waits what goes on and how long it will take.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// A line that is rewritten on a terminal. Elsewhere, such as in a log, each step is one line.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    expected: Duration,
    rewrites: bool,
    last_width: usize,
}

impl Progress {
    /// Begins; it is expected to take so long in all.
    pub fn new(expected: Duration) -> Progress {
        Progress {
            started: Instant::now(),
            expected,
            rewrites: std::io::stderr().is_terminal(),
            last_width: 0,
        }
    }

    /// From now on it is expected to take so long.
    pub fn expect_left(&mut self, left: Duration) {
        self.expected = self.started.elapsed() + left;
    }

    /// A new step begins.
    pub fn step(&mut self, what: &str) {
        let line = self.line(what);
        self.write(&line, !self.rewrites);
    }

    /// A step goes on. Shown on a terminal only.
    pub fn update(&mut self, what: &str) {
        if self.rewrites {
            let line = self.line(what);
            self.write(&line, false);
        }
    }

    /// All is done: the line is wiped.
    pub fn done(&mut self) {
        if self.rewrites {
            self.write("", false);
            eprint!("\r");
        }
    }

    fn line(&self, what: &str) -> String {
        let elapsed = self.started.elapsed();
        let left = self.expected.saturating_sub(elapsed);
        format!(
            "[{:>3} s, about {:>3} s to go] {what}",
            elapsed.as_secs(),
            left.as_secs()
        )
    }

    fn write(&mut self, line: &str, lasting: bool) {
        let mut stream = std::io::stderr().lock();
        // Progress that can't be shown is no reason to stop.
        let _ = if lasting {
            writeln!(stream, "{line}")
        } else {
            write!(stream, "\r{line:<width$}", width = self.last_width)
        };
        let _ = stream.flush();
        self.last_width = line.chars().count();
    }
}
