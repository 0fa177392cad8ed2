//! `remora top`: what a running Remora does, in a terminal, again and again.
//!
//! Each picture is the difference of two questions to the admin listener: what happened between
//! them.

mod head;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use self::head::{Gauges, head};
use crate::admin::client::{AskError, digests, metrics};
use crate::digests::{DigestReport, Order, since, table};

/// How it is shown.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// What digests are ordered by.
    pub order: Order,
    /// How many digests are shown.
    pub count_max: usize,
    /// Between two pictures.
    pub interval: Duration,
    /// How many pictures; `None`: until somebody ends it.
    pub pictures: Option<u32>,
    /// Each picture takes the place of the one before.
    pub clears: bool,
}

/// Puts the cursor to the top, and clears what is below: control sequences of ECMA-48.
const CLEAR: &str = "\x1b[H\x1b[J";

/// What was known at a moment.
struct Moment {
    at: Instant,
    gauges: Gauges,
    digests: Vec<DigestReport>,
}

impl Moment {
    fn now(address: SocketAddr) -> Result<Moment, AskError> {
        let page = digests(address)?;
        let digests = serde_json::from_str(&page).map_err(|error| AskError::NotRemora {
            address,
            why: format!("its digests are of another version: {error}"),
        })?;
        Ok(Moment {
            at: Instant::now(),
            gauges: Gauges::of(&metrics(address)?),
            digests,
        })
    }
}

/// Why pictures end.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// Remora doesn't answer any more.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Nobody reads what is written.
    #[error("can't write: {0}")]
    Output(#[from] io::Error),
}

/// Shows pictures until there were enough.
///
/// # Errors
/// Remora doesn't answer, or nobody reads.
pub fn run(address: SocketAddr, view: &View, output: &mut impl Write) -> Result<(), TopError> {
    let mut before = Moment::now(address)?;
    let mut shown = 0;
    while view.pictures.is_none_or(|pictures| shown < pictures) {
        std::thread::sleep(view.interval);
        let now = Moment::now(address)?;
        let took = now.at.duration_since(before.at);
        let lately = since(&now.digests, &before.digests);
        let picture = format!(
            "{}{}\n{}",
            if view.clears { CLEAR } else { "" },
            head(address, &before.gauges, &now.gauges, took),
            table(&lately, view.order, view.count_max)
        );
        output.write_all(picture.as_bytes())?;
        output.flush()?;
        before = now;
        shown += 1;
    }
    Ok(())
}
