//! Remora's clock: milliseconds, the same for all its threads.

/// A reading of it. It is tokio's, so a test that pauses tokio's clock pauses Remora's.
pub use tokio::time::Instant;

/// What the clock reads when the process begins to serve, milliseconds: a day. It is more than any
/// bound on an age, so that such a bound can be taken off any reading; and 0 is no moment.
pub const BEGINS_AT_MS: u64 = 86_400_000;

/// A monotonic clock whose readings all parts of one Remora share. Copies read the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads [`BEGINS_AT_MS`] now.
    pub fn start() -> Clock {
        Clock {
            origin: Instant::now(),
        }
    }

    /// Milliseconds.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.to_ms(Instant::now())
    }

    /// A moment that was read before, in milliseconds.
    #[inline]
    pub fn to_ms(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.origin);
        let since_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        since_ms.saturating_add(BEGINS_AT_MS)
    }
}
