//! Replaying captured statements: what is read from logs and captures of real servers is what was
//! sent to them, and replaying it measures, compares and spares data.
//!
//! Servers: mariadb-10.11
//! Tier: test
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod captures;
mod logs;
mod players;
mod wire;

use std::path::Path;

use clap::Parser as _;
use remora_lab::replay::{Action, Captured, ReplayOptions, Settings};

/// The options as a user gives them.
#[derive(clap::Parser)]
struct CommandLine {
    #[command(flatten)]
    options: ReplayOptions,
}

fn options(arguments: &[&str]) -> ReplayOptions {
    let all = ["replay"].iter().chain(arguments);
    CommandLine::try_parse_from(all).unwrap().options
}

fn settings(port: u16) -> Settings {
    Settings {
        format: None,
        port,
        skip_malformed: false,
        statements_max: 1_000_000,
    }
}

fn read(path: &Path, port: u16) -> Captured {
    let mut progress = remora_lab::progress::Progress::new(std::time::Duration::ZERO);
    remora_lab::replay::read(path, &settings(port), &mut progress).unwrap()
}

/// What the connection said that has said `marker`, with its default schema then.
fn said(captured: &Captured, marker: &[u8]) -> Vec<(Option<String>, Vec<u8>)> {
    let text = |action: &Action| match action {
        Action::Query(text) => text.to_vec(),
        Action::Execution(execution) => execution.text.to_vec(),
        Action::Quit => b"(quit)".to_vec(),
    };
    let connection = captured
        .events
        .iter()
        .find(|event| {
            text(&event.action)
                .windows(marker.len())
                .any(|part| part == marker)
        })
        .unwrap_or_else(|| panic!("nobody said {}", String::from_utf8_lossy(marker)))
        .connection;
    let own = captured
        .events
        .iter()
        .filter(|event| event.connection == connection);
    own.map(|event| {
        let schema = event
            .schema
            .as_ref()
            .map(|schema| String::from_utf8_lossy(schema).into_owned());
        (schema, text(&event.action))
    })
    .collect()
}
