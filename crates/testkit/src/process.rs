//! Child processes that end with their owner.
//!
//! A child is killed when its [`Process`] is dropped. It is also killed by the kernel if this
//! process dies without dropping anything: children are started through `setpriv --pdeathsig`. The
//! kernel sends that signal when the *thread* that started the child ends, so one thread that never
//! ends starts them all. Children get a process group of their own: Ctrl-C reaches their owner
//! only, which then ends them in order.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};

use crate::{interrupt, programs};

/// Longest wait for a condition that ordinarily comes at once. Where it comes, a long limit costs
/// nothing; a machine that is busy with other things may need it.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// How soon a condition is looked at again, the first time. Each further pause is twice as long.
const POLL_FIRST: Duration = Duration::from_micros(50);
/// The longest pause between two looks at a condition.
const POLL: Duration = Duration::from_millis(2);
/// How much of a log's end is shown with a failure, bytes.
const LOG_TAIL_BYTES: u64 = 4_000;

/// A program that is about to be started.
#[derive(Debug)]
pub struct Program {
    name: String,
    path: PathBuf,
    arguments: Vec<OsString>,
    log: PathBuf,
    standard_input: Option<Arc<OwnedFd>>,
}

impl Program {
    /// The program at `path`; its standard output and standard error are appended to `log`.
    pub fn new(name: &str, path: PathBuf, log: PathBuf) -> Program {
        Program {
            name: name.to_owned(),
            path,
            arguments: Vec::new(),
            log,
            standard_input: None,
        }
    }

    /// The program and arguments that a command is made of.
    ///
    /// # Errors
    /// The command is empty.
    pub fn of_command(
        name: &str,
        command: impl IntoIterator<Item = OsString>,
        log: PathBuf,
    ) -> anyhow::Result<Program> {
        let mut words = command.into_iter();
        let path = words.next().context("a command of no words")?;
        Ok(Program::new(name, path.into(), log).args(words))
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Program {
        self.arguments.push(argument.into());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Program {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// With a standard input other than none.
    #[must_use]
    pub fn standard_input(mut self, file: Arc<OwnedFd>) -> Program {
        self.standard_input = Some(file);
        self
    }

    /// Starts it.
    pub fn spawn(self) -> anyhow::Result<Process> {
        let input = match &self.standard_input {
            Some(file) => file
                .try_clone()
                .context("can't pass its standard input on")?
                .into(),
            None => Stdio::null(),
        };
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("can't write {}", self.log.display()))?;
        let mut command = tied_to_this_process(&self.path);
        command
            .args(&self.arguments)
            .stdin(input)
            .stdout(log.try_clone().context("can't write the log twice")?)
            .stderr(log)
            .process_group(0);
        let child = spawn_from_lasting_thread(command)?
            .with_context(|| format!("can't start {}", self.path.display()))?;
        Ok(Process {
            name: self.name,
            child,
            log: self.log,
        })
    }

    /// Runs it to its end; gives what it wrote.
    ///
    /// # Errors
    /// It failed (what it wrote is in the message), took longer than `limit`, or the user asked to
    /// stop.
    pub fn run(self, limit: Duration) -> anyhow::Result<String> {
        let mut process = self.spawn()?;
        let what = format!("the end of {}", process.name);
        let mut status = None;
        wait_for(&what, limit, || {
            status = process.child.try_wait().context("can't wait for a child")?;
            Ok(status)
        })
        .map_err(|error| process.with_log_tail(&error))?;
        let output = std::fs::read_to_string(&process.log).unwrap_or_default();
        match status {
            Some(status) if status.success() => Ok(output),
            _ => bail!("{} failed; {}", process.name, process.log_tail()),
        }
    }
}

/// A command that the kernel kills when this process dies. Where there is no `setpriv`, only `Drop`
/// does.
fn tied_to_this_process(path: &Path) -> Command {
    let Ok(setpriv) = programs::find("setpriv") else {
        return Command::new(path);
    };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(path);
    command
}

type SpawnJob = (Command, mpsc::SyncSender<std::io::Result<Child>>);

/// Starts a command from the thread that never ends.
fn spawn_from_lasting_thread(command: Command) -> anyhow::Result<std::io::Result<Child>> {
    static JOBS: OnceLock<mpsc::Sender<SpawnJob>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<SpawnJob>();
        std::thread::spawn(move || {
            for (mut command, answer) in receiver {
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let (sender, receiver) = mpsc::sync_channel(1);
    jobs.send((command, sender))
        .map_err(|_| anyhow!("the thread that starts processes is gone"))?;
    receiver
        .recv()
        .context("the thread that starts processes is gone")
}

/// A running child, killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("can't ask after {}", self.name))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let id = id.context("a process without an id")?;
        rustix::process::kill_process(id, signal)
            .with_context(|| format!("can't send a signal to {}", self.name))
    }

    /// Whether each of its threads stands still (SIGSTOP).
    pub fn is_stopped(&self) -> anyhow::Result<bool> {
        let tasks = format!("/proc/{}/task", self.id());
        let mut tasks = std::fs::read_dir(tasks).context("can't list a child's threads")?;
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
            // After the name in parentheses, which may hold anything.
            Some(stat.rsplit_once(')')?.1.trim_start().starts_with('T'))
        };
        // A thread that has ended meanwhile doesn't run either.
        Ok(tasks.all(|task| is_stopped(task).unwrap_or(true)))
    }

    /// Asks it to end (SIGTERM) and waits; kills it when it hasn't ended after `grace`.
    pub fn stop(&mut self, grace: Duration) -> anyhow::Result<ExitStatus> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        self.signal(Signal::TERM)?;
        let end = Instant::now() + grace;
        while Instant::now() < end {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(POLL);
        }
        self.kill()
    }

    /// Ends it at once (SIGKILL), as a crash would, and with it the processes that it has started
    /// in its group.
    pub fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        // It may have ended by itself. If nobody has noticed yet, the group still has its number.
        if self.ended()?.is_none()
            && let Some(group) = i32::try_from(self.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        self.child
            .wait()
            .with_context(|| format!("can't wait for {}", self.name))
    }

    /// Waits until `ready` gives a value; looks again and again.
    ///
    /// # Errors
    /// The process ended, `limit` passed, or the user asked to stop. The end of its log is in the
    /// message.
    pub fn wait_until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut ready: impl FnMut() -> Option<T>,
    ) -> anyhow::Result<T> {
        let outcome = wait_for(what, limit, || {
            if let Some(status) = self.ended()? {
                bail!("{} ended by itself ({status})", self.name);
            }
            Ok(ready())
        });
        outcome.map_err(|error| self.with_log_tail(&error))
    }

    /// The same failure with what the program wrote. That the user asked to stop stays as it is.
    pub fn with_log_tail(&self, error: &anyhow::Error) -> anyhow::Error {
        if error.is::<interrupt::Interrupted>() {
            return interrupt::Interrupted.into();
        }
        anyhow!("{error:#}\n{}", self.log_tail())
    }

    /// The end of what it wrote, with the log's path.
    pub fn log_tail(&self) -> String {
        let text = tail(&self.log).unwrap_or_default();
        format!(
            "the end of {}'s log ({}):\n{text}",
            self.name,
            self.log.display()
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Looks at `ready` again and again until it gives a value.
///
/// # Errors
/// `ready` failed, `limit` passed, or the user asked to stop.
pub fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut ready: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let end = Instant::now() + limit;
    let mut pause = POLL_FIRST;
    loop {
        interrupt::check()?;
        if let Some(value) = ready()? {
            return Ok(value);
        }
        if Instant::now() >= end {
            bail!("waited {} s in vain for {what}", limit.as_secs_f32());
        }
        std::thread::sleep(pause);
        pause = POLL.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn sleeper(scratch: &Scratch) -> Process {
        let path = programs::find("sleep").unwrap();
        Program::new("sleep", path, scratch.join("log"))
            .arg("600")
            .spawn()
            .unwrap()
    }

    #[test]
    fn what_it_has_started_goes_with_it() {
        let scratch = Scratch::new().unwrap();
        let (shell, pid_file) = (programs::find("sh").unwrap(), scratch.join("pid"));
        let script = format!("sleep 600 & echo $! > {}; wait", pid_file.display());
        let process = Program::new("shell", shell, scratch.join("log"))
            .args(["-c", &script])
            .spawn()
            .unwrap();
        let started = wait_for("the sleeper", PATIENCE, || {
            let text = std::fs::read_to_string(&pid_file).unwrap_or_default();
            Ok(text.trim().parse::<u32>().ok())
        });
        let started = started.unwrap();
        assert!(is_alive(started));
        drop(process);
        let gone = wait_for("its end", PATIENCE, || {
            Ok((!is_alive(started)).then_some(()))
        });
        gone.unwrap();
    }

    fn is_alive(id: u32) -> bool {
        // One that nobody has waited for yet has ended, too.
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let scratch = Scratch::new().unwrap();
        let process = sleeper(&scratch);
        let id = process.id();
        assert!(is_alive(id));
        drop(process);
        assert!(!is_alive(id));
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let scratch = Scratch::new().unwrap();
        let mut process = std::thread::scope(|s| s.spawn(|| sleeper(&scratch)).join().unwrap());
        assert_eq!(process.ended().unwrap(), None);
        assert!(!process.stop(Duration::from_secs(5)).unwrap().success());
    }

    #[test]
    fn a_failure_shows_what_the_program_wrote() {
        let scratch = Scratch::new().unwrap();
        let shell = programs::find("sh").unwrap();
        let program = Program::new("shell", shell, scratch.join("log"));
        let failed = program
            .args(["-c", "echo so it goes >&2; exit 3"])
            .run(Duration::from_secs(5));
        assert!(failed.unwrap_err().to_string().contains("so it goes"));
    }
}
