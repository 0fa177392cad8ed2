//! A program under valgrind's callgrind, and the instructions that each of its threads has spent.
//!
//! The program runs on valgrind's processor, which counts what it executes in user space: neither
//! other processes nor the machine's caches change that. `vgdb`, which comes with valgrind, zeroes
//! the counters and has them written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use remora_testkit::process::Program;
use remora_testkit::programs;
use remora_testkit::scratch::Scratch;

/// Longest wait for valgrind to do what it is told.
const PATIENCE: Duration = Duration::from_mins(3);
/// What the names of the files begin with that counters are written to.
const DUMP: &str = "counters";

/// The number of a thread, as valgrind gives it.
pub(super) type ThreadNumber = u32;

/// Instructions by thread.
pub(super) type Counts = BTreeMap<ThreadNumber, u64>;

/// Where a program's counters are written to, and what tells valgrind to do so.
#[derive(Debug)]
pub(super) struct Callgrind {
    valgrind: PathBuf,
    vgdb: PathBuf,
    scratch: Scratch,
    /// How often valgrind was told something.
    told: u32,
    /// How often counters were written.
    dumps: u32,
}

impl Callgrind {
    /// Finds valgrind.
    ///
    /// # Errors
    /// It isn't installed.
    pub(super) fn find() -> anyhow::Result<Callgrind> {
        let installed = |name: &str| {
            programs::find(name).map_err(|_| {
                anyhow!("the program `{name}` is not installed; `scripts/setup instructions` installs it")
            })
        };
        Ok(Callgrind {
            valgrind: installed("valgrind")?,
            vgdb: installed("vgdb")?,
            scratch: Scratch::new()?,
            told: 0,
            dumps: 0,
        })
    }

    /// What to put before a program and its arguments.
    pub(super) fn command(&self) -> Vec<OsString> {
        let mut command = vec![self.valgrind.clone().into_os_string()];
        let options = [
            "--tool=callgrind",
            "--quiet",
            // Else a thread that is asked again and again could keep the others from their turn.
            "--fair-sched=try",
            "--separate-threads=yes",
            "--dump-line=no",
        ];
        command.extend(options.map(OsString::from));
        command.push(format!("--callgrind-out-file={}", self.path(DUMP)).into());
        command.push(self.prefix().into());
        command
    }

    /// The numbers of a process' threads by their names.
    pub(super) fn threads(
        &mut self,
        process: u32,
    ) -> anyhow::Result<BTreeMap<String, ThreadNumber>> {
        let told = self.tell(process, "v.info scheduler")?;
        let threads = parse_threads(&told);
        let named = threads.into_iter().filter_map(|(number, system_id)| {
            let file = format!("/proc/{process}/task/{system_id}/comm");
            // A thread that has ended meanwhile needs no number.
            let name = std::fs::read_to_string(file).ok()?;
            Some((name.trim_end().to_owned(), number))
        });
        Ok(named.collect())
    }

    /// Begins to count anew.
    pub(super) fn zero(&mut self, process: u32) -> anyhow::Result<()> {
        self.tell(process, "zero").map(drop)
    }

    /// The instructions since the last time that they were taken or the counters zeroed. If `kept`
    /// is given, valgrind's files are kept there, one for each thread.
    pub(super) fn take(
        &mut self,
        process: u32,
        kept: Option<&std::path::Path>,
    ) -> anyhow::Result<Counts> {
        self.tell(process, "dump")?;
        self.dumps += 1;
        let prefix = format!("{DUMP}.{}-", self.dumps);
        let mut counts = Counts::new();
        let directory = std::fs::read_dir(self.scratch.path());
        for entry in directory.context("can't list what callgrind has written")? {
            let path = entry
                .context("can't list what callgrind has written")?
                .path();
            let name = path.file_name().unwrap_or_default();
            if !name.to_string_lossy().starts_with(&prefix) {
                continue;
            }
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("can't read {}", path.display()))?;
            let (thread, count) = parse_dump(&text)
                .with_context(|| format!("{} is not what callgrind writes", path.display()))?;
            counts.insert(thread, count);
            if let Some(kept) = kept {
                let kept = kept.with_extension(format!("thread-{thread}"));
                std::fs::write(&kept, text)
                    .with_context(|| format!("can't write {}", kept.display()))?;
            }
            std::fs::remove_file(&path)
                .with_context(|| format!("can't remove {}", path.display()))?;
        }
        Ok(counts)
    }

    /// Has valgrind do something; gives what it says.
    fn tell(&mut self, process: u32, what: &str) -> anyhow::Result<String> {
        self.told += 1;
        let log = self.scratch.join(&format!("told-{}", self.told));
        Program::new("vgdb", self.vgdb.clone(), log)
            .arg(self.prefix())
            .arg(format!("--pid={process}"))
            .args(what.split(' '))
            .run(PATIENCE)
            .with_context(|| format!("valgrind did not take the order `{what}`"))
    }

    fn prefix(&self) -> String {
        format!("--vgdb-prefix={}", self.path("vgdb"))
    }

    fn path(&self, name: &str) -> String {
        self.scratch.join(name).display().to_string()
    }
}

/// The thread and the instructions of a file that callgrind has written.
fn parse_dump(text: &str) -> anyhow::Result<(ThreadNumber, u64)> {
    let after = |label: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(label));
        let value = value.with_context(|| format!("there is no line `{label}`"))?;
        anyhow::Ok(value.trim())
    };
    let events = after("events:")?;
    if events != "Ir" {
        return Err(anyhow!(
            "it counts `{events}`, not instructions alone (`Ir`)"
        ));
    }
    let thread = after("thread:")?;
    let thread = thread
        .parse()
        .with_context(|| format!("its thread is `{thread}`"))?;
    let total = after("totals:")?;
    let total = total
        .parse()
        .with_context(|| format!("its total is `{total}`"))?;
    Ok((thread, total))
}

/// The threads of what valgrind says of its scheduler: their numbers, and those that the system
/// gives them.
fn parse_threads(text: &str) -> Vec<(ThreadNumber, u32)> {
    let read = |line: &str| {
        let (number, rest) = line.strip_prefix("Thread ")?.split_once(": status = ")?;
        let (_, system_id) = rest.split_once("(lwpid ")?;
        Some((
            number.parse().ok()?,
            system_id.trim_end().strip_suffix(')')?.parse().ok()?,
        ))
    };
    text.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP_OF_A_THREAD: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 18311\n\
        cmd:  target/release/remora serve\npart: 3\nthread: 4\n\n\ndesc: I1 cache: \ndesc: Trigger: Client Request\n\n\
        positions: line\nevents: Ir\nsummary: 2122081\n\n\nob=(1) target/release/remora\nfl=(1) ???\nfn=(1) main\n0 12\n\
        calls=0 0 \n0 2122081\n\ntotals: 2136536\n";

    #[test]
    fn a_dump_tells_its_thread_and_its_total() {
        assert_eq!(parse_dump(DUMP_OF_A_THREAD).unwrap(), (4, 2_136_536));
    }

    #[test]
    fn what_is_no_dump_of_instructions_is_refused_with_what_it_lacks() {
        let cut = DUMP_OF_A_THREAD.replace("totals: 2136536\n", "");
        let error = parse_dump(&cut).unwrap_err().to_string();
        assert!(error.contains("totals:"), "{error}");
        let of_caches = DUMP_OF_A_THREAD.replace("events: Ir", "events: Ir Dr Dw");
        let error = parse_dump(&of_caches).unwrap_err().to_string();
        assert!(error.contains("Ir Dr Dw"), "{error}");
    }

    #[test]
    fn threads_are_read_among_their_stacks() {
        let said = "sched status:\n  running_tid=0\n\nThread 1: status = VgTs_WaitSys syscall 202 (lwpid 18311)\n\
            ==18311==    at 0x64FB01: ??? (in /usr/bin/remora)\nclient stack range: [0x1FFEFFA000 0x1FFF000FFF]\n\n\
            Thread 4: status = VgTs_Runnable (lwpid 18315)\n";
        assert_eq!(parse_threads(said), [(1, 18_311), (4, 18_315)]);
    }
}
