//! How clients connect.

use super::{Case, Found, percent};
use crate::report::{Finding, Unit};
use crate::rule::Unjudged;

/// So many threads may be made in a second.
const CREATED_PER_S_MAX: f64 = 1.0;
/// This share of the connections may get a new thread, percent.
const CREATED_PERCENT_MAX: f64 = 20.0;
/// The most that it can be set to.
const BACK_LOG_MAX: f64 = 65_535.0;
/// Where the connections have reached this share of the most, some are soon refused, percent.
const CONNECTED_PERCENT_MAX: f64 = 95.0;

pub(super) fn thread_cache_small(case: &mut Case<'_>) -> Found {
    if case.reading.variables.text("thread_handling") == Some("pool-of-threads") {
        return Err(Unjudged::NotUsed);
    }
    let created = case.rate("Threads_created")?;
    let connections = case.rate("Connections")?;
    let most = case.variable("thread_cache_size")?;
    let share = percent(created, connections);
    case.note("connections with a new thread", share, Unit::Percent);
    if created < CREATED_PER_S_MAX || share < CREATED_PERCENT_MAX {
        return Ok(None);
    }
    Ok(Some(Finding {
        meaning: "A thread that has served a client is thrown away, and the next client waits for \
                  a new one."
            .to_owned(),
        remedy: "Keep as many threads as connections come and go at once. Better: let clients \
                 keep their connections."
            .to_owned(),
        settings: vec![case.set("thread_cache_size", (2.0 * most).max(64.0), true)],
    }))
}

pub(super) fn connections_exhausted(case: &mut Case<'_>) -> Found {
    let refused = case.growth("Connection_errors_max_connections")?;
    let connected = case.reading.each_status("Threads_connected");
    let connected = connected.into_iter().reduce(f64::max);
    let connected = connected.ok_or(Unjudged::NotReported)?;
    let most = case.variable("max_connections")?;
    case.note("connections refused", refused, Unit::Number);
    case.note("connections at once, the most", connected, Unit::Number);
    case.note("max_connections", most, Unit::Number);
    let since_start = case.reading.status("Max_used_connections");
    let since_start = since_start.ok_or(Unjudged::NotReported)?;
    case.note(
        "the most since the server's start",
        since_start,
        Unit::Number,
    );
    if refused <= 0.0 && percent(connected, most) < CONNECTED_PERCENT_MAX {
        return Ok(None);
    }
    Ok(Some(Finding {
        meaning: "Clients are told \"Too many connections\", or the next ones will be.".to_owned(),
        remedy: "Look whether clients keep more connections than they use: smaller pools are \
                 better than more connections. If they use them, allow more: each takes memory \
                 and an open file."
            .to_owned(),
        settings: vec![case.set("max_connections", 2.0 * most, true)],
    }))
}

pub(super) fn back_log_short(case: &mut Case<'_>) -> Found {
    let connections = case.rate("Connections")?;
    let back_log = case.variable("back_log")?;
    case.note("back_log", back_log, Unit::Number);
    if connections <= back_log {
        return Ok(None);
    }
    Ok(Some(Finding {
        meaning: "More clients connect in a second than the server lets wait. A pause of a second \
                  would turn some away, and the server doesn't count those."
            .to_owned(),
        remedy: "Raise back_log, and the system's net.core.somaxconn to at least that. Better: \
                 let clients keep their connections."
            .to_owned(),
        settings: vec![case.set(
            "back_log",
            (4.0 * connections).ceil().min(BACK_LOG_MAX),
            false,
        )],
    }))
}
