//! Which jobs run side by side: another is started whenever the processors have time for it.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::job::{Job, Outcome, POLL, Running};
use super::processors::Processors;
use super::report;

/// At most so many run at once: each may have several servers, and they need memory.
const RUNNING_MAX: usize = 5;
/// So many run at once where nothing tells how busy the processors are.
const RUNNING_UNTOLD: usize = 2;
/// Another is started if the processors were idle for at least this share of the time.
const IDLE_PERCENT_MIN: u64 = 15;
/// The time over which that is looked at. What was started last is at work by then.
const WINDOW: Duration = Duration::from_secs(2);
/// The same behind a program without a server, which is at work at once. Most of them end before
/// this is over.
const WINDOW_WITHOUT_SERVER: Duration = Duration::from_millis(250);

/// Runs all of them, and says of each how it went; of a failure, all that it said. If
/// `until_failure`, it stops after the first.
///
/// # Errors
/// A program could not be started, or its log not be written.
pub(crate) fn run(
    mut jobs: Vec<Job>,
    logs: &Path,
    until_failure: bool,
) -> anyhow::Result<Vec<Outcome>> {
    std::fs::create_dir_all(logs).with_context(|| format!("can't make {}", logs.display()))?;
    let all = jobs.len();
    jobs.sort_by_key(Job::rank);
    let mut waiting = VecDeque::from(jobs);
    let mut running: Vec<Running> = Vec::new();
    let mut outcomes = Vec::new();
    let mut window = Window::begin(WINDOW);
    while !(waiting.is_empty() && running.is_empty()) {
        if window.has_room(running.len())
            && let Some(next) = waiting.pop_front()
        {
            let length = if next.has_server() {
                WINDOW
            } else {
                WINDOW_WITHOUT_SERVER
            };
            running.push(next.start(logs)?);
            window = Window::begin(length);
            continue;
        }
        let Some((index, outcome)) = first_ended(&mut running)? else {
            std::thread::sleep(POLL);
            continue;
        };
        running.swap_remove(index);
        report::tell_one(&outcome, outcomes.len() + 1, all);
        if until_failure && !outcome.has_passed {
            waiting.clear();
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// The time in which the processors are watched.
#[derive(Debug)]
struct Window {
    began: Instant,
    length: Duration,
    processors: Option<Processors>,
}

impl Window {
    fn begin(length: Duration) -> Window {
        Window {
            began: Instant::now(),
            length,
            processors: Processors::now(),
        }
    }

    /// Whether another may be started beside those that run.
    fn has_room(&mut self, running: usize) -> bool {
        if running == 0 {
            return true;
        }
        if running >= RUNNING_MAX || self.began.elapsed() < self.length {
            return false;
        }
        let now = Processors::now();
        let idle = self
            .processors
            .zip(now)
            .map(|(then, now)| now.idle_percent_since(then));
        *self = Window {
            began: Instant::now(),
            length: self.length,
            processors: now,
        };
        idle.map_or(running < RUNNING_UNTOLD, |percent| {
            percent >= IDLE_PERCENT_MIN
        })
    }
}

fn first_ended(running: &mut [Running]) -> anyhow::Result<Option<(usize, Outcome)>> {
    for (index, one) in running.iter_mut().enumerate() {
        if let Some(outcome) = one.ended()? {
            return Ok(Some((index, outcome)));
        }
    }
    Ok(None)
}
