//! What a process has used: processor time and memory. Source: `proc(5)`.

use std::time::Duration;

use anyhow::Context as _;

/// The processor time that a process has used since its start, of all its threads, in user and
/// system mode. The kernel counts it in ticks of a hundredth of a second.
pub fn cpu_time(process_id: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{process_id}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("can't read {path}"))?;
    let ticks = ticks(&text).with_context(|| format!("can't understand {path}"))?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(ticks * 1_000 / per_second.max(1)))
}

/// The processor time of the calling thread.
pub fn own_thread_cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::ThreadCPUTime);
    // The clock begins at 0 and only goes forward.
    Duration::try_from(now).unwrap_or_default()
}

/// The processor time of all threads of a process that have this name, to a few milliseconds. Names
/// are cut at 15 bytes.
pub fn thread_cpu_time(process_id: u32, name: &str) -> anyhow::Result<Duration> {
    let name = name.get(..15).unwrap_or(name);
    let tasks = format!("/proc/{process_id}/task");
    let mut sum = Duration::ZERO;
    for task in std::fs::read_dir(&tasks).with_context(|| format!("can't read {tasks}"))? {
        let task = task?.path();
        // A thread may have ended meanwhile.
        let is_it =
            std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name);
        if is_it {
            sum += scheduled(&task.join("schedstat").display().to_string())?;
        }
    }
    Ok(sum)
}

/// The first number of a `schedstat`: nanoseconds on a processor.
fn scheduled(path: &str) -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string(path).with_context(|| format!("can't read {path}"))?;
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    nanoseconds
        .map(Duration::from_nanos)
        .with_context(|| format!("can't understand {path}"))
}

/// User and system time, which are fields 14 and 15. Field 2 is a name in parentheses that can hold
/// anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The memory of a process that lies in RAM, bytes.
pub fn resident_bytes(process_id: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process_id}/status");
    let text = std::fs::read_to_string(&path).with_context(|| format!("can't read {path}"))?;
    let kib: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("no VmRSS in {path}"))?;
    Ok(kib * 1_024)
}

/// Microseconds of processor time per query.
#[allow(clippy::cast_precision_loss)]
pub fn microseconds_per_query(used: Duration, queries: u64) -> f64 {
    if queries == 0 {
        0.0
    } else {
        used.as_secs_f64() * 1e6 / queries as f64
    }
}

/// Enough for every connection that the lab opens at once, on both sides of a proxy.
const OPEN_FILES: u64 = 65_536;

/// Lets this process and its children open many files, as far as the system allows.
pub fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= OPEN_FILES) {
        return;
    }
    let current = Some(maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES)));
    // If it is refused, connecting fails later and says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_does_not_confuse() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 30 12 0 0 20 0 1 0 100 1 1";
        assert_eq!(ticks(stat), Some(42));
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        cpu_time(std::process::id()).unwrap();
    }
}
