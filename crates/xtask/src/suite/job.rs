//! What runs: one test program on one server, or a command that checks something else.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::build::Program;
use super::processors::ended_with;
use super::statement::Load;
use crate::root;

/// Longest time that a program may take. One that hangs is ended and has failed.
const PROGRAM_LIMIT: Duration = Duration::from_mins(20);
/// The same for a command, which may do the work of many.
const COMMAND_LIMIT: Duration = Duration::from_mins(45);
/// How many tests of a program that mostly waits run at once.
const WAITING_THREADS: &str = "4";
/// So many words of a command name its log.
const COMMAND_WORDS_MAX: usize = 6;
/// How often a running program is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Where servers keep their data, if it is there: in memory. A third of the time of the tests is
/// the system's, for data directories that last for minutes.
const MEMORY: &str = "/dev/shm";
/// So much must be free there, KiB.
const MEMORY_KIB_MIN: u64 = 8 << 20;

/// Where the tests are that a quick check leaves out: in modules of this name inside others.
const LONG_TESTS: &str = "::long::";
/// Those that only a long run takes.
const EXHAUSTIVE_TESTS: &str = "::exhaustive::";

/// What the generator of random values of the `proptest` library starts from. The same in each run,
/// so that no change is held back by chance; `make soak` gives other seeds.
const PROPERTIES_SEED: &str = "PROPTEST_RNG_SEED";

/// What is to run.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    /// A test program on one server.
    Program(ProgramRun),
    /// A command of the shell, in the repository's root.
    Command(String),
}

/// A test program that is to run.
#[derive(Debug, Clone)]
pub(crate) struct ProgramRun {
    pub(crate) program: Program,
    pub(crate) kind: Option<&'static str>,
    pub(crate) filter: Option<String>,
    /// How often it comes before, where a program is repeated.
    pub(crate) round: usize,
    /// Whether tests run too that are usually left out (`#[ignore]`).
    pub(crate) with_ignored: bool,
    pub(crate) extent: Extent,
}

/// How much of a program's tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Without those that take long ([`LONG_TESTS`], [`EXHAUSTIVE_TESTS`]).
    Quick,
    /// Without [`EXHAUSTIVE_TESTS`].
    Usual,
    /// All.
    Long,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, title) = match self {
            Job::Program(run) => (run.kind.unwrap_or("-"), run.program.title()),
            Job::Command(command) => ("-", command.clone()),
        };
        write!(f, "{kind:<14} {title:<38}")
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
    /// Processor time of it and of what it started and waited for, such as servers; zero where
    /// the system doesn't tell.
    pub(crate) worked: Duration,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    pub(crate) tests: Vec<Timed>,
    /// What tests said of being left out on this server.
    pub(crate) skipped: Vec<String>,
    pub(crate) log: PathBuf,
}

impl Job {
    /// Those with the lowest are started first: the longest, so that none is left over at the end.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Job::Command(_) => 0,
            Job::Program(run) => match (run.program.statement.load, run.kind) {
                (Load::Computes, Some(_)) => 1,
                (Load::Waits, Some(_)) => 2,
                (_, None) => 3,
            },
        }
    }

    /// Whether it starts servers, or may: it takes a while until it is at work.
    pub(crate) fn has_server(&self) -> bool {
        !matches!(self, Job::Program(run) if run.kind.is_none())
    }

    /// Starts it. What it says goes to a file in `logs`.
    pub(crate) fn start(self, logs: &Path) -> anyhow::Result<Running> {
        let log = logs.join(self.log_name());
        let file = File::create(&log).with_context(|| format!("can't write {}", log.display()))?;
        let mut command = match &self {
            Job::Program(run) => run.command(),
            Job::Command(text) => {
                let mut command = Command::new("bash");
                command.current_dir(root()).args(["-euc", text]);
                command
            }
        };
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("can't write the log twice")?)
            .stderr(file);
        if let Some(memory) = memory_directory() {
            command.env("TMPDIR", memory);
        }
        let child = command
            .spawn()
            .with_context(|| format!("can't start {}", self.to_string().trim()))?;
        Ok(Running {
            job: self,
            child,
            log,
            started: Instant::now(),
        })
    }

    fn limit(&self) -> Duration {
        match self {
            Job::Program(_) => PROGRAM_LIMIT,
            Job::Command(_) => COMMAND_LIMIT,
        }
    }

    fn log_name(&self) -> String {
        match self {
            Job::Program(run) => {
                let kind = run.kind.unwrap_or("none");
                let title = run.program.title().replace("::", "-");
                // Repetitions run side by side, and each is read from its own log.
                let round = match run.round {
                    0 => String::new(),
                    round => format!("-{}", round + 1),
                };
                format!("{kind}-{title}{round}.log")
            }
            Job::Command(text) => {
                let is_plain = |c: char| c.is_ascii_alphanumeric();
                let words = text.split(|c| !is_plain(c)).filter(|word| !word.is_empty());
                let words: Vec<_> = words.take(COMMAND_WORDS_MAX).collect();
                format!("command-{}.log", words.join("-"))
            }
        }
    }
}

impl ProgramRun {
    fn command(&self) -> Command {
        let program = &self.program;
        let mut command = Command::new(&program.executable);
        command
            .current_dir(&program.directory)
            .env("CARGO_MANIFEST_DIR", &program.directory)
            // Only for the next option: how long each test takes.
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["-Zunstable-options", "--report-time"])
            .args(&self.filter);
        if self.with_ignored {
            command.arg("--include-ignored");
        }
        if self.extent < Extent::Usual {
            command.args(["--skip", LONG_TESTS]);
        }
        if self.extent < Extent::Long {
            command.args(["--skip", EXHAUSTIVE_TESTS]);
        }
        if program.statement.load == Load::Waits {
            command.args(["--test-threads", WAITING_THREADS]);
        }
        if let Some(kind) = self.kind {
            command.env("REMORA_TEST_SERVER", kind);
        }
        if std::env::var_os(PROPERTIES_SEED).is_none() {
            command.env(PROPERTIES_SEED, "1");
        }
        command
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
    /// What came of it, once it has ended.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<Outcome>> {
        let worked = ended_with(&self.child);
        let status = self.child.try_wait().context("can't wait for a test")?;
        let took = self.started.elapsed();
        let has_passed = match status {
            Some(status) => status.success(),
            None if took < self.job.limit() => return Ok(None),
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
            worked: worked.unwrap_or_default(),
            passed: 0,
            failed: 0,
            ignored: 0,
            tests: Vec::new(),
            skipped: Vec::new(),
            log: self.log.clone(),
        };
        match &self.job {
            Job::Program(_) => said.lines().for_each(|line| outcome.read(line)),
            Job::Command(_) => outcome.passed = usize::from(has_passed),
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
            worked: Duration::ZERO,
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
