//! Remora's clock: milliseconds since the process began to serve, the same for all its threads.

use std::time::Instant;

/// A monotonic clock whose readings all parts of one Remora share. Copies read the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Clock {
        Clock {
            origin: Instant::now(),
        }
    }

    /// Milliseconds since the start.
    pub fn now_ms(&self) -> u64 {
        self.to_ms(Instant::now())
    }

    /// A moment that was read before, in milliseconds since the start.
    pub fn to_ms(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.origin);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
