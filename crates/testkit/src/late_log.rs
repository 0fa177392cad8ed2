//! A binary log that is held back at random on its way to Remora.
//!
//! What is written is then answered, and visible, some milliseconds before Remora reads of it. That
//! takes some tens of microseconds in life, which few reads meet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::load::Random;
use crate::log_gate::LogGate;

/// Holds the log back and lets it go, by turns, until it is dropped.
#[derive(Debug)]
pub struct LateLog {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<LogGate>>,
}

impl LateLog {
    /// Begins to do so at `gate`. Each time is chosen at random, and shorter than `longest`.
    pub fn begin(gate: LogGate, longest: Duration, mut random: Random) -> LateLog {
        let longest_us = usize::try_from(longest.as_micros()).unwrap_or(usize::MAX);
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut is_held = false;
            while !of_thread.load(Ordering::SeqCst) {
                is_held = !is_held;
                gate.hold(is_held);
                std::thread::sleep(Duration::from_micros(random.below(longest_us) as u64));
            }
            gate.hold(false);
            gate
        });
        LateLog {
            is_over,
            thread: Some(thread),
        }
    }

    /// Ends it. The log goes freely then, and the gate stays open for connections.
    pub fn end(mut self) -> Option<LogGate> {
        self.join()
    }

    fn join(&mut self) -> Option<LogGate> {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take()?.join().ok()
    }
}

impl Drop for LateLog {
    fn drop(&mut self) {
        // The gate lets go as it is dropped.
        self.join();
    }
}
