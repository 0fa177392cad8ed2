//! A server, a Remora in front of it, and cases run against both.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::case::{Case, Hit, Step};
use super::mode::Mode;
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

    /// Runs a case in a mode, directly and through Remora, and compares.
    pub fn run(&self, case: &Case, mode: &Mode, report: &mut Report) -> anyhow::Result<()> {
        let kind = self.server.kind();
        let schema = format!("d_{}", case.name);
        let options = self.server.app().schema(&schema);
        Suite::fresh_schema(&self.server.app(), &schema)?;
        let direct = self.run_directly(case, mode, &options, report)?;
        Suite::fresh_schema(&self.server.app().at(self.remora.address()), &schema)?;
        let mut side = Side::through(mode, &options, &self.remora);
        for (step, expected) in steps_for(case, kind).zip(&direct) {
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
            report.compare(place, !mode.is_compressed(&options), expected, &seen);
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
        options: &ConnectOptions,
        report: &mut Report,
    ) -> anyhow::Result<Vec<Vec<Exchange>>> {
        let mut side = Side::direct(mode, options);
        let mut all = Vec::new();
        for step in steps_for(case, self.server.kind()) {
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

fn steps_for(case: &Case, kind: Kind) -> impl Iterator<Item = &Step> {
    case.steps
        .iter()
        .filter(move |step| step.servers.contains(&kind))
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
