//! How many statements run at once.

use super::{Case, Found, median};
use crate::report::{Finding, Unit};
use crate::rule::Unjudged;

/// So many statements at once may run for each processor: some of them wait for disks or locks.
const RUNNING_PER_PROCESSOR_MAX: f64 = 4.0;

pub(super) fn processors_short(case: &mut Case<'_>) -> Found {
    let processors = case.reading.server.processors;
    let processors = f64::from(processors.ok_or(Unjudged::ProcessorsUnknown)?);
    let running = case.reading.each_status("Threads_running");
    let waiting = case.reading.each_status("Innodb_row_lock_current_waits");
    // One of them asks for this. What waits for a row needs no processor.
    let running = median(running).ok_or(Unjudged::NotReported)? - 1.0;
    let running = (running - median(waiting).unwrap_or(0.0)).max(0.0);
    case.note("statements at once, median", running, Unit::Number);
    case.note("processors", processors, Unit::Number);
    if running < processors * RUNNING_PER_PROCESSOR_MAX {
        return Ok(None);
    }
    let is_pooled = case.reading.variables.text("thread_handling") == Some("pool-of-threads");
    let instead = match (case.is_mariadb(), is_pooled) {
        (true, true) => "The thread pool is on already: look at thread_pool_size.",
        (true, false) => {
            "MariaDB's thread pool limits all clients: thread_handling = pool-of-threads in the \
             configuration file, and a restart."
        }
        (false, _) => "Look at those that take longest first.",
    };
    Ok(Some(Finding {
        meaning: "Statements take turns, and hold locks while they wait. With more of them at \
                  once, less gets done."
            .to_owned(),
        remedy: format!(
            "Let fewer run at once: smaller connection pools, or Remora's \
             upstream.statements_max (two to four times the processors). {instead}"
        ),
        settings: Vec::new(),
    }))
}
