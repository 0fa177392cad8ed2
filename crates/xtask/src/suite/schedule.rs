//! Which jobs run side by side.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::Context as _;

use super::job::{Job, Outcome, POLL, Running};
use super::report;

/// How much runs at once, in the units of [`Job::weight`]: two programs that wait, or one that
/// computes.
const CAPACITY: usize = 2;

/// Runs all of them, and says of each how it went; of a failure, all that it said. If
/// `until_failure`, it stops after the first.
///
/// # Errors
/// A program could not be started, or its log not be written.
pub(crate) fn run(
    jobs: Vec<Job>,
    logs: &Path,
    until_failure: bool,
) -> anyhow::Result<Vec<Outcome>> {
    std::fs::create_dir_all(logs).with_context(|| format!("can't make {}", logs.display()))?;
    let all = jobs.len();
    // Those that wait come first: what computes then has the machine to itself.
    let (first, then): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.weight() == 1);
    let mut waiting: VecDeque<Job> = first.into_iter().chain(then).collect();
    let mut running: Vec<Running> = Vec::new();
    let mut outcomes = Vec::new();
    while !(waiting.is_empty() && running.is_empty()) {
        let busy: usize = running.iter().map(Running::weight).sum();
        if let Some(next) = waiting.front()
            && busy + next.weight() <= CAPACITY
            && let Some(next) = waiting.pop_front()
        {
            running.push(next.start(logs)?);
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

fn first_ended(running: &mut [Running]) -> anyhow::Result<Option<(usize, Outcome)>> {
    for (index, one) in running.iter_mut().enumerate() {
        if let Some(outcome) = one.ended()? {
            return Ok(Some((index, outcome)));
        }
    }
    Ok(None)
}
