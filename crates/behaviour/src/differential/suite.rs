//! A server, a Remora in front of it, and cases run against both.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::case::{Case, Hit, Step};
use super::mode::{Dialogue, Mode};
use super::report::{Place, Report};
use super::side::{Exchange, PREPARE, Side};
use crate::outcome::{HIT, UNCOUNTED, is_passing};
use remora_testkit::client::ConnectOptions;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::servers::{Kind, Server};

/// Longest wait for a read to be answered from memory. Ordinarily milliseconds pass, until the
/// server is known to show what the log says.
const HIT_PATIENCE: Duration = remora_testkit::process::PATIENCE;
/// The same once the suite has failed anyway: one fault is often seen in many cases.
const HIT_PATIENCE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Between two tries.
const HIT_PAUSE: Duration = Duration::from_millis(1);

/// What the cases run against.
pub struct Suite<'a> {
    server: &'a Server,
    remora: InProcessRemora,
    /// Whether the last outcome of each read is noted in the report.
    pub with_outcomes: bool,
}

impl<'a> Suite<'a> {
    /// Starts a Remora in front of the server.
    pub fn start(server: &'a Server, options: RemoraOptions) -> anyhow::Result<Suite<'a>> {
        // With one thread the counters tell what became of each statement.
        let options = RemoraOptions {
            threads: Some(1),
            ..options
        };
        Ok(Suite {
            server,
            remora: InProcessRemora::start(server, &options)?,
            with_outcomes: false,
        })
    }

    /// Runs a case in each of these modes through Remora, and compares with what the server answers
    /// directly. Modes of one dialogue are compared with the same direct run.
    ///
    /// Each mode has its report, in the same order.
    pub fn run(&self, case: &Case, modes: &[&Mode], reports: &mut [Report]) -> anyhow::Result<()> {
        let options = self.server.app().schema(&format!("d_{}", case.name));
        let mut left: Vec<(&Mode, &mut Report)> = modes.iter().copied().zip(reports).collect();
        while let Some((first, _)) = left.first() {
            let dialogue = Dialogue::of(first, &options);
            // Only one dialogue's answers are held at a time: some have many megabytes.
            let (these, others) = left
                .into_iter()
                .partition::<Vec<_>, _>(|(mode, _)| Dialogue::of(mode, &options) == dialogue);
            self.run_dialogue(case, &options, &dialogue, these)?;
            left = others;
        }
        Ok(())
    }

    fn run_dialogue(
        &self,
        case: &Case,
        options: &ConnectOptions,
        dialogue: &Dialogue,
        modes: Vec<(&Mode, &mut Report)>,
    ) -> anyhow::Result<()> {
        let mut direct = None;
        for (mode, report) in modes {
            let direct = match &direct {
                Some(direct) => direct,
                None => direct.insert(self.run_directly(case, mode, dialogue, report)?),
            };
            self.run_through(case, mode, options, direct, report)?;
        }
        Ok(())
    }

    fn run_through(
        &self,
        case: &Case,
        mode: &Mode,
        options: &ConnectOptions,
        direct: &[Vec<Exchange>],
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let (kind, address) = (self.server.kind(), self.remora.address());
        Suite::fresh_schema(&self.server.app().at(address), &options.schema)?;
        let mut side = Side::through(mode, options, &self.remora);
        for (step, expected) in steps_for(case, kind, mode).zip(direct) {
            let place = place(case, mode, step);
            let patience = if report.problems.is_empty() {
                HIT_PATIENCE
            } else {
                HIT_PATIENCE_AFTER_FAILURE
            };
            let until = Instant::now() + patience;
            let seen = side
                .run(step, |so_far| wants_more(step, mode, so_far, until))
                .with_context(|| format!("connecting through Remora, {}", mode.name))?;
            report.compare(place, !mode.is_compressed(options), expected, &seen);
            self.check_outcomes(place, mode, &seen, report);
            if seen.iter().any(|exchange| exchange.failure.is_some()) {
                break;
            }
        }
        Ok(())
    }

    fn run_directly(
        &self,
        case: &Case,
        mode: &Mode,
        dialogue: &Dialogue,
        report: &mut Report,
    ) -> anyhow::Result<Vec<Vec<Exchange>>> {
        Suite::fresh_schema(&self.server.app(), &dialogue.options.schema)?;
        let mut side = Side::direct(dialogue);
        let mut all = Vec::new();
        for step in steps_for(case, self.server.kind(), mode) {
            let exchanges = side
                .run(step, |_| false)
                .with_context(|| format!("connecting directly, {}", mode.name))?;
            if let Some(exchange) = exchanges.iter().find(|exchange| exchange.what != PREPARE) {
                let code = exchange.code;
                if !step.errors.contains(&code) {
                    let answer = String::from_utf8_lossy(&exchange.bytes).into_owned();
                    let what = format!(
                        "directly: error {code}, not one of {:?}: {answer}",
                        step.errors
                    );
                    report.problem(place(case, mode, step), &what);
                }
            }
            all.push(exchanges);
        }
        Ok(all)
    }

    fn check_outcomes(
        &self,
        place: Place<'_>,
        mode: &Mode,
        seen: &[Exchange],
        report: &mut Report,
    ) {
        if seen.iter().any(|exchange| exchange.outcome == UNCOUNTED) {
            report.problem(place, "Remora did not count it");
        }
        let Some(last) = seen.last() else { return };
        if self.with_outcomes && place.step.repeat && mode.warm {
            let (step, text) = (place.step, place.step.text());
            let text = String::from_utf8_lossy(&text).replace('\n', " ");
            let line = format!("{}.sql:{}\t{}\t{text}", place.case, step.line, last.outcome);
            report.outcomes.push(line);
        }
        match place.step.hit {
            Hit::Yes if mode.has_hits && last.outcome != HIT && last.code == 0 => {
                report.problem(place, &format!("never a hit, at last {}", last.outcome));
            }
            Hit::No if seen.iter().any(|exchange| exchange.outcome == HIT) => {
                report.problem(place, "a hit, and must not be");
            }
            _ => {}
        }
    }

    /// Makes the schema anew. What was remembered of its tables is forgotten, for the same side
    /// does it.
    fn fresh_schema(by: &ConnectOptions, schema: &str) -> anyhow::Result<()> {
        let mut client = by.connect()?;
        client.query(&format!("DROP DATABASE IF EXISTS {schema}"))?;
        // The same default on each server.
        client.query(&format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4"))?;
        Ok(())
    }
}

fn place<'a>(case: &'a Case, mode: &'a Mode, step: &'a Step) -> Place<'a> {
    Place {
        case: &case.name,
        mode: mode.name,
        step,
    }
}

fn steps_for<'c>(case: &'c Case, kind: Kind, mode: &Mode) -> impl Iterator<Item = &'c Step> {
    let reads_long = mode.reads_long;
    case.steps
        .iter()
        .filter(move |step| step.servers.contains(&kind) && (reads_long || !step.long))
}

/// Whether a read that must be answered from memory isn't yet and there is time left.
fn wants_more(step: &Step, mode: &Mode, so_far: &[Exchange], until: Instant) -> bool {
    if step.hit != Hit::Yes || !mode.has_hits {
        return false;
    }
    let may_hit = |last: &Exchange| last.code == 0 && is_passing(last.outcome);
    if !so_far.last().is_some_and(may_hit) || Instant::now() > until {
        return false;
    }
    std::thread::sleep(HIT_PAUSE);
    true
}
