//! One test program on one server.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::build::Program;
use super::statement::Load;

/// Longest time that a program may take. One that hangs is ended and has failed.
const LIMIT: Duration = Duration::from_mins(20);
/// How many tests of a program that mostly waits run at once.
const WAITING_THREADS: &str = "4";
/// How often a running program is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Where servers keep their data, if it is there: in memory. A third of the time of the tests is
/// the system's, for data directories that last for minutes.
const MEMORY: &str = "/dev/shm";
/// So much must be free there, KiB.
const MEMORY_KIB_MIN: u64 = 8 << 20;

/// A program that is to run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    program: Program,
    kind: Option<&'static str>,
    filter: Option<String>,
    /// How often it comes before, where a program is repeated.
    round: usize,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.unwrap_or("-");
        write!(f, "{kind:<14} {:<38}", self.program.title())
    }
}

/// A test with the time that it took, seconds.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) seconds: f64,
}

/// What came of a job.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) title: String,
    pub(crate) has_passed: bool,
    pub(crate) took: Duration,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    pub(crate) tests: Vec<Timed>,
    /// What tests said of being left out on this server.
    pub(crate) skipped: Vec<String>,
    pub(crate) log: PathBuf,
}

impl Job {
    pub(crate) fn new(
        program: &Program,
        kind: Option<&'static str>,
        filter: Option<String>,
        round: usize,
    ) -> Job {
        Job {
            program: program.clone(),
            kind,
            filter,
            round,
        }
    }

    /// How much of the machine it takes: 2 is all of it.
    pub(crate) fn weight(&self) -> usize {
        match self.program.statement.load {
            Load::Computes => 2,
            Load::Waits => 1,
        }
    }

    /// Starts it. What it says goes to a file in `logs`.
    pub(crate) fn start(self, logs: &Path) -> anyhow::Result<Running> {
        let kind = self.kind.unwrap_or("none");
        let title = self.program.title().replace("::", "-");
        // Repetitions run side by side, and each is read from its own log.
        let round = match self.round {
            0 => String::new(),
            round => format!("-{}", round + 1),
        };
        let log = logs.join(format!("{kind}-{title}{round}.log"));
        let file = File::create(&log).with_context(|| format!("can't write {}", log.display()))?;
        let mut command = Command::new(&self.program.executable);
        command
            .current_dir(&self.program.directory)
            .env("CARGO_MANIFEST_DIR", &self.program.directory)
            // Only for the next option: how long each test takes.
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["-Zunstable-options", "--report-time"])
            .args(&self.filter)
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("can't write the log twice")?)
            .stderr(file);
        if self.program.statement.load == Load::Waits {
            command.args(["--test-threads", WAITING_THREADS]);
        }
        if let Some(memory) = memory_directory() {
            command.env("TMPDIR", memory);
        }
        if let Some(kind) = self.kind {
            command.env("REMORA_TEST_SERVER", kind);
        }
        let child = command
            .spawn()
            .with_context(|| format!("can't start {}", self.program.executable.display()))?;
        Ok(Running {
            job: self,
            child,
            log,
            started: Instant::now(),
        })
    }
}

/// A program that runs. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Running {
    job: Job,
    child: Child,
    log: PathBuf,
    started: Instant,
}

impl Running {
    pub(crate) fn weight(&self) -> usize {
        self.job.weight()
    }

    /// What came of it, once it has ended.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<Outcome>> {
        let status = self.child.try_wait().context("can't wait for a test")?;
        let took = self.started.elapsed();
        let has_passed = match status {
            Some(status) => status.success(),
            None if took < LIMIT => return Ok(None),
            None => {
                self.child.kill().context("can't end a test that hangs")?;
                self.child.wait().context("can't wait for a test")?;
                false
            }
        };
        let said = std::fs::read(&self.log).context("can't read a test's log")?;
        let said = String::from_utf8_lossy(&said);
        let mut outcome = Outcome {
            title: self.job.to_string(),
            has_passed,
            took,
            passed: 0,
            failed: 0,
            ignored: 0,
            tests: Vec::new(),
            skipped: Vec::new(),
            log: self.log.clone(),
        };
        for line in said.lines() {
            outcome.read(line);
        }
        if !has_passed && outcome.failed == 0 {
            // It has died, or was ended.
            outcome.failed = 1;
        }
        Ok(Some(outcome))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    /// Reads one line of what the test harness says.
    fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count(counts, " passed");
            self.failed += count(counts, " failed");
            self.ignored += count(counts, " ignored");
        } else if let Some(at) = line.find("skipped on ") {
            let what = line[at..].to_owned();
            if !self.skipped.contains(&what) {
                self.skipped.push(what);
            }
        } else if let Some(timed) = timed(line) {
            self.tests.push(timed);
        }
    }
}

/// The directory in memory, unless the user has chosen one for temporary files, or it is small.
fn memory_directory() -> Option<&'static str> {
    if std::env::var_os("TMPDIR").is_some() {
        return None;
    }
    let output = Command::new("df").args(["-kP", MEMORY]).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let free: u64 = said
        .lines()
        .nth(1)?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()?;
    (free >= MEMORY_KIB_MIN).then_some(MEMORY)
}

/// The number before a word.
fn count(text: &str, word: &str) -> usize {
    let Some((before, _)) = text.split_once(word) else {
        return 0;
    };
    let number = before.rsplit(' ').next();
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A line such as `test a_name ... ok <1.234s>`.
fn timed(line: &str) -> Option<Timed> {
    let rest = line.strip_prefix("test ")?;
    let (name, rest) = rest.split_once(" ... ")?;
    let (_, seconds) = rest.strip_suffix("s>")?.rsplit_once('<')?;
    Some(Timed {
        name: name.to_owned(),
        seconds: seconds.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_is_understood() {
        let mut outcome = Outcome {
            title: String::new(),
            has_passed: true,
            took: Duration::ZERO,
            passed: 0,
            failed: 0,
            ignored: 0,
            tests: Vec::new(),
            skipped: Vec::new(),
            log: PathBuf::new(),
        };
        for line in [
            "running 3 tests",
            "skipped on mysql-5.6: a_test: it has none",
            "test a_test ... ok <1.250s>",
            "test result: ok. 7 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 2.00s",
        ] {
            outcome.read(line);
        }
        let counts = (outcome.passed, outcome.failed, outcome.ignored);
        assert_eq!(counts, (7, 2, 1));
        assert_eq!(
            outcome.skipped,
            ["skipped on mysql-5.6: a_test: it has none"]
        );
        assert_eq!(outcome.tests.len(), 1);
        assert_eq!(outcome.tests[0].name, "a_test");
        assert!((outcome.tests[0].seconds - 1.25).abs() < 1e-9);
    }
}
