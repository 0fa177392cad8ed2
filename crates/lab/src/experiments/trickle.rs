//! Statements beside a load, one after another with pauses.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

use super::checker::pause;
use super::data::beginning;
use super::plan::Trickle;
use remora_testkit::client::{ClientError, ConnectOptions};
use remora_testkit::load::Random;

/// Errors that are a part of life where others write too: a deadlock, and a wait for a lock that
/// took too long.
const TOLERATED: [u16; 2] = [1213, 1205];

/// Sends them until `stop`.
pub(super) fn run(
    trickle: &Trickle,
    through: &ConnectOptions,
    seed: u64,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let mut client = through.connect().context("the trickle can't connect")?;
    let mut random = Random::new(seed);
    let mut statements = trickle.statements.iter().cycle();
    while !stop.load(Ordering::Relaxed) {
        let Some(statement) = statements.next() else {
            pause(trickle.pause, stop);
            continue;
        };
        let text = fill_in(statement, trickle.below, &mut random);
        match client.query(&text) {
            Ok(_) => {}
            Err(ClientError::Server(error)) if TOLERATED.contains(&error.code) => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("the trickle's statement {}", beginning(&text)));
            }
        }
        pause(trickle.pause, stop);
    }
    Ok(())
}

/// With a random number below `below` wherever `{n}` stands.
pub(super) fn fill_in(statement: &str, below: u64, random: &mut Random) -> String {
    let mut pieces = statement.split("{n}");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let bound = usize::try_from(below).unwrap_or(usize::MAX).max(1);
        text.push_str(&random.below(bound).to_string());
        text.push_str(piece);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_stand_where_they_should() {
        let mut random = Random::new(3);
        let text = fill_in("a {n} b {n}", 1, &mut random);
        assert_eq!(text, "a 0 b 0");
        assert_eq!(fill_in("none", 5, &mut random), "none");
    }
}
