//! Ctrl-C. Whoever waits asks here whether to go on, so that every owner's `Drop` gets its turn.
//!
//! A signal is sent to a process, so this is the one thing in the lab that is global.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit status of a program that Ctrl-C ended.
pub const EXIT_STATUS: u8 = 130;

/// How often a wait asks whether it has been interrupted.
const POLL: Duration = Duration::from_millis(20);

/// The user asked to stop. Not a failure: it needs no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// From now on SIGINT, SIGTERM and SIGHUP set the flag that [`check`] reads, and a second one ends
/// the process at once (its children then end with it).
pub fn install() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime for signals")?;
    let mut signals = {
        let _guard = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    let waiting = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = signals.0.recv() => {}
                    _ = signals.1.recv() => {}
                    _ = signals.2.recv() => {}
                }
                if INTERRUPTED.swap(true, Ordering::SeqCst) {
                    std::process::exit(i32::from(EXIT_STATUS));
                }
                eprintln!("\nstopping and cleaning up …");
            }
        });
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(waiting)
        .context("no thread for signals")?;
    Ok(())
}

/// Whether the user asked to stop.
pub fn is_set() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// An error if the user asked to stop.
pub fn check() -> Result<(), Interrupted> {
    if is_set() { Err(Interrupted) } else { Ok(()) }
}

/// Waits for a length of time that belongs to an experiment, or until the user asks to stop.
pub fn sleep(length: Duration) -> Result<(), Interrupted> {
    let end = Instant::now() + length;
    loop {
        check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(POLL));
    }
}
