//! How many statements run at once.

use super::{Case, Found, median};
use crate::report::{Finding, Unit, Unjudged};

/// So many statements at once may run for each processor: some of them wait for disks or locks.
const RUNNING_PER_PROCESSOR_MAX: f64 = 4.0;

pub(super) fn processors_short(case: &mut Case<'_>) -> Found {
    let processors = case.reading.server.processors;
    let processors = f64::from(processors.ok_or(Unjudged::ProcessorsUnknown)?);
    let running = case
        .reading
        .each(|sample| sample.status.number("Threads_running"));
    // One of them asks for this.
    let running = median(running).ok_or(Unjudged::NotReported)? - 1.0;
    case.note("statements at once, median", running, Unit::Number);
    case.note("processors", processors, Unit::Number);
    if running < processors * RUNNING_PER_PROCESSOR_MAX {
        return Ok(None);
    }
    let has_pool = case
        .reading
        .variables
        .number("thread_pool_max_threads")
        .is_some();
    let (instead, settings) = if case.is_mariadb() && has_pool {
        let is_on = case.reading.variables.text("thread_handling") == Some("pool-of-threads");
        let remedy = if is_on {
            "The thread pool is on already: have the clients ask for less at once."
        } else {
            "The thread pool (thread_handling = pool-of-threads) does it for all clients."
        };
        (remedy, Vec::new())
    } else {
        let limit = 2.0 * processors;
        let setting = case.set("innodb_thread_concurrency", limit, true);
        ("InnoDB can be told how many it lets in.", vec![setting])
    };
    Ok(Some(Finding {
        meaning: "They take turns, and hold locks while they wait. More of them at once means \
                  fewer done."
            .to_owned(),
        remedy: format!(
            "Let fewer run at once: with smaller pools of connections, or with Remora's \
             upstream.statements_max. {instead}"
        ),
        settings,
    }))
}
