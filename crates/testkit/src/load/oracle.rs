//! The oracle: knows for each counter the oldest value that a read may return.
//!
//! A counter is a row whose value only grows, by one writer at a time. From the moment a write
//! through Remora has its `OK`, no read that is sent later, by anybody, may return an older value.
//! A write directly to the server binds reads only after its `OK` and the lag that is allowed. A
//! write whose outcome is unknown (its connection died) binds nobody, but its value may be seen.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a write went to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Through Remora: binds from its `OK` on.
    Through,
    /// Directly: binds after its `OK` and the allowed lag.
    Direct,
}

/// A read that returned an older value than it may.
#[derive(Debug, Clone)]
pub struct StaleRead {
    /// Which counter.
    pub counter: usize,
    /// The value that was read.
    pub value: u64,
    /// The oldest value that was allowed.
    pub oldest_allowed: u64,
    /// How the write of the oldest allowed value went.
    pub route: Route,
    /// From that write's `OK` to the moment the read was sent.
    pub after_ok: Duration,
    /// From the oracle's start to the moment the read was sent.
    pub sent_at: Duration,
    /// From the read's sending to its answer.
    pub took: Duration,
    /// The statement that read it.
    pub statement: String,
    /// The server's position in its binary log just after, as `file:offset`, if somebody asked.
    pub position: Option<String>,
}

impl std::fmt::Display for StaleRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "counter {}: read {}, but {} was written ({:?}) and had its OK {:?} before the read was sent; the read \
             was sent at {:?} and took {:?}; server at {}; {}",
            self.counter,
            self.value,
            self.oldest_allowed,
            self.route,
            self.after_ok,
            self.sent_at,
            self.took,
            self.position.as_deref().unwrap_or("an unknown position"),
            self.statement
        )
    }
}

/// A value that nobody has written was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeverWritten {
    /// Which counter.
    pub counter: usize,
    /// The value that was read.
    pub value: u64,
    /// The newest value that anybody has begun to write.
    pub newest: u64,
}

/// A write that has its `OK`.
#[derive(Debug, Clone, Copy)]
struct Bound {
    value: u64,
    route: Route,
    /// When it had its `OK`.
    ok_at: Instant,
    /// From when on it binds reads.
    binds_at: Instant,
}

#[derive(Debug)]
struct Counter {
    /// Held by the writer of the moment; the value of the last write begun.
    writer: Mutex<u64>,
    /// The same value, for readers.
    newest: AtomicU64,
    /// The write that binds reads now.
    binding: Mutex<Bound>,
    /// Writes that will bind later, by their values.
    later: Mutex<VecDeque<Bound>>,
    later_count: AtomicUsize,
}

/// The oldest value a read may return, taken before it is sent.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    counter: usize,
    bound: Bound,
    sent_at: Instant,
}

impl Floor {
    /// The oldest value that the read may return.
    pub fn oldest_allowed(&self) -> u64 {
        self.bound.value
    }
}

/// What is known of a set of counters.
#[derive(Debug)]
pub struct Oracle {
    counters: Vec<Counter>,
    lag_allowed: Duration,
    started: Instant,
}

/// The right to write one counter, and the value to write. Dropped without [`WriteTurn::done`], the
/// outcome is unknown: the value may be seen or not, and the next write has a higher one.
#[derive(Debug)]
#[must_use]
pub struct WriteTurn<'a> {
    counter: &'a Counter,
    value: u64,
    lag_allowed: Duration,
    _writer: MutexGuard<'a, u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks guard is whole at every moment, also after a panic elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Oracle {
    /// Counters that all hold `value`, and the lag that reads after a direct write may have.
    pub fn new(count: usize, value: u64, lag_allowed: Duration) -> Oracle {
        let now = Instant::now();
        let counter = || Counter {
            writer: Mutex::new(value),
            newest: AtomicU64::new(value),
            binding: Mutex::new(Bound {
                value,
                route: Route::Through,
                ok_at: now,
                binds_at: now,
            }),
            later: Mutex::new(VecDeque::new()),
            later_count: AtomicUsize::new(0),
        };
        Oracle {
            counters: std::iter::repeat_with(counter).take(count).collect(),
            lag_allowed,
            started: now,
        }
    }

    /// How many counters there are.
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Waits for the right to write a counter. To hold several, take them in ascending order.
    pub fn begin_write(&self, counter: usize) -> WriteTurn<'_> {
        let counter = &self.counters[counter];
        let mut writer = lock(&counter.writer);
        *writer += 1;
        let value = *writer;
        counter.newest.store(value, Ordering::SeqCst);
        WriteTurn {
            counter,
            value,
            lag_allowed: self.lag_allowed,
            _writer: writer,
        }
    }

    /// To be called before a read of the counter is sent.
    pub fn before_read(&self, counter: usize) -> Floor {
        let sent_at = Instant::now();
        let bound = self.counters[counter].bound_at(sent_at);
        Floor {
            counter,
            bound,
            sent_at,
        }
    }

    /// Judges the value that a read returned. `statement` is only called for a stale read.
    pub fn judge(
        &self,
        floor: Floor,
        value: u64,
        statement: impl FnOnce() -> String,
    ) -> Result<(), Box<StaleRead>> {
        if value >= floor.bound.value {
            return Ok(());
        }
        Err(Box::new(StaleRead {
            counter: floor.counter,
            value,
            oldest_allowed: floor.bound.value,
            route: floor.bound.route,
            after_ok: floor.sent_at.saturating_duration_since(floor.bound.ok_at),
            sent_at: floor.sent_at.saturating_duration_since(self.started),
            took: floor.sent_at.elapsed(),
            statement: statement(),
            position: None,
        }))
    }

    /// Whether a value that was read has been written at all (or may have been).
    pub fn judge_newest(&self, counter: usize, value: u64) -> Result<(), NeverWritten> {
        let newest = self.counters[counter].newest.load(Ordering::SeqCst);
        if value <= newest {
            Ok(())
        } else {
            Err(NeverWritten {
                counter,
                value,
                newest,
            })
        }
    }

    /// The newest value that anybody has begun to write.
    pub fn newest(&self, counter: usize) -> u64 {
        self.counters[counter].newest.load(Ordering::SeqCst)
    }

    /// Forgets what has been written: all counters hold `value` now, because the server was given
    /// other contents. No read may be on its way.
    pub fn reset(&self, value: u64) {
        let now = Instant::now();
        for counter in &self.counters {
            *lock(&counter.writer) = value;
            counter.newest.store(value, Ordering::SeqCst);
            lock(&counter.later).clear();
            counter.later_count.store(0, Ordering::SeqCst);
            *lock(&counter.binding) = Bound {
                value,
                route: Route::Through,
                ok_at: now,
                binds_at: now,
            };
        }
    }
}

impl Counter {
    fn bound_at(&self, now: Instant) -> Bound {
        if self.later_count.load(Ordering::SeqCst) > 0 {
            let mut later = lock(&self.later);
            while let Some(&bound) = later.front() {
                if bound.binds_at > now {
                    break;
                }
                // In this order: who sees no later write sees it bind.
                self.bind(bound);
                later.pop_front();
                self.later_count.fetch_sub(1, Ordering::SeqCst);
            }
        }
        *lock(&self.binding)
    }

    fn bind(&self, bound: Bound) {
        let mut binding = lock(&self.binding);
        if bound.value > binding.value {
            *binding = bound;
        }
    }
}

impl WriteTurn<'_> {
    /// The value to write.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The write has its `OK`.
    pub fn done(self, route: Route) {
        let ok_at = Instant::now();
        let binds_at = match route {
            Route::Through => ok_at,
            Route::Direct => ok_at + self.lag_allowed,
        };
        let bound = Bound {
            value: self.value,
            route,
            ok_at,
            binds_at,
        };
        match route {
            Route::Through => self.counter.bind(bound),
            Route::Direct => {
                lock(&self.counter.later).push_back(bound);
                self.counter.later_count.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(oracle: &Oracle, floor: Floor, value: u64) -> Result<(), Box<StaleRead>> {
        oracle.judge(floor, value, String::new)
    }

    #[test]
    fn a_read_after_a_write_through_remora_must_see_it() {
        let oracle = Oracle::new(2, 0, Duration::from_secs(1));
        let turn = oracle.begin_write(1);
        let value = turn.value();
        let before = oracle.before_read(1);
        turn.done(Route::Through);
        let after = oracle.before_read(1);
        assert!(judge(&oracle, before, 0).is_ok());
        assert!(judge(&oracle, after, value).is_ok());
        let stale = judge(&oracle, after, 0).unwrap_err();
        assert_eq!(
            (stale.counter, stale.value, stale.oldest_allowed),
            (1, 0, value)
        );
        assert!(judge(&oracle, oracle.before_read(0), 0).is_ok());
    }

    #[test]
    fn a_read_after_a_direct_write_may_lag_for_a_while() {
        let while_it_may = Oracle::new(1, 0, Duration::from_hours(1));
        while_it_may.begin_write(0).done(Route::Direct);
        assert!(judge(&while_it_may, while_it_may.before_read(0), 0).is_ok());
        let afterwards = Oracle::new(1, 0, Duration::ZERO);
        afterwards.begin_write(0).done(Route::Direct);
        let stale = judge(&afterwards, afterwards.before_read(0), 0).unwrap_err();
        assert_eq!(stale.route, Route::Direct);
    }

    #[test]
    fn a_write_of_unknown_outcome_binds_nobody_but_may_be_seen() {
        let oracle = Oracle::new(1, 0, Duration::ZERO);
        drop(oracle.begin_write(0));
        assert!(judge(&oracle, oracle.before_read(0), 0).is_ok());
        assert!(oracle.judge_newest(0, 1).is_ok());
        assert!(oracle.judge_newest(0, 2).is_err());
        assert_eq!(oracle.begin_write(0).value(), 2);
    }
}
