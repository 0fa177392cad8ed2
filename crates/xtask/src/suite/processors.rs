//! How busy the processors are, as Linux tells in `/proc/stat`, and with what.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Time that all processors together have spent since the machine was started, ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Processors {
    idle: u64,
    all: u64,
}

/// The fields of the first line that are idle time: idle, and waiting for a disk.
const IDLE_FIELDS: [usize; 2] = [3, 4];
/// Those that count: user, nice, system, idle, iowait, irq, softirq, steal. What follows is
/// contained in them.
const FIELDS: usize = 8;

impl Processors {
    /// Up to now; `None` where the system doesn't tell.
    pub(crate) fn now() -> Option<Processors> {
        Processors::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(text: &str) -> Option<Processors> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields = line.split_whitespace().take(FIELDS).map(str::parse);
        let fields: Vec<u64> = fields.collect::<Result<_, _>>().ok()?;
        let mut idle = 0;
        for field in IDLE_FIELDS {
            idle += fields.get(field)?;
        }
        Some(Processors {
            idle,
            all: fields.iter().sum(),
        })
    }

    /// The share of the time since `then` in which they had nothing to do, per cent.
    pub(crate) fn idle_percent_since(self, then: Processors) -> u64 {
        let all = self.all.saturating_sub(then.all);
        let idle = self.idle.saturating_sub(then.idle);
        (idle * 100).checked_div(all).unwrap_or(0)
    }
}

/// Which fields of `/proc/PID/stat` behind the name are processor time, ticks: its own in user
/// space and in the system, then both of the processes that it has waited for.
const WORK_FIELDS: std::ops::Range<usize> = 11..15;

/// The processor time of a process that has ended and hasn't been waited for, with that of those
/// that it waited for. `None` while it runs, and where the system doesn't tell.
pub(crate) fn ended_with(child: &Child) -> Option<Duration> {
    let pid = Pid::from_child(child);
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), peek).ok()??;
    work(&std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?)
}

fn work(stat: &str) -> Option<Duration> {
    // The name may contain blanks and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields
        .get(WORK_FIELDS)?
        .iter()
        .map(|field| field.parse::<u64>());
    let ticks: u64 = ticks.sum::<Result<u64, _>>().ok()?;
    let milliseconds = ticks * 1_000 / rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(milliseconds))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_read_from_what_linux_tells() {
        let then = Processors::read("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 2 3\n").unwrap();
        assert_eq!(
            then,
            Processors {
                idle: 850,
                all: 1_000
            }
        );
        let now = Processors::read("cpu  170 0 50 820 60 0 0 0 7 7\n").unwrap();
        assert_eq!(now.idle_percent_since(then), 30);
        assert_eq!(then.idle_percent_since(then), 0);
        assert_eq!(Processors::read("cpu one two"), None);
        assert_eq!(Processors::read(""), None);
    }

    #[test]
    fn work_is_known_once_a_process_has_ended_with_that_of_its_children() {
        let stat = "7 (a (b) c) Z 1 7 7 0 -1 4 0 0 0 0 20 30 300 50 20 0 1 0 5\n";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(work(stat), Some(Duration::from_millis(400_000 / ticks)));
        assert_eq!(work("7 (a) Z 1"), None);
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(ended_with(&child), None);
        drop(child.stdin.take());
        while ended_with(&child).is_none() {
            std::thread::yield_now();
        }
        assert!(child.wait().unwrap().success());
    }
}
