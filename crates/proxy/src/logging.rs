//! The log: one line an event on standard error, for people.

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;

use crate::config::LogLevel;

/// Starts logging for the whole process. Only the first call counts: tests may start several
/// Remoras.
pub fn start(level: LogLevel) {
    // Refused if logging has been started before, which then goes on as it was.
    let _ = tracing_subscriber::fmt()
        .with_max_level(filter(level))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
