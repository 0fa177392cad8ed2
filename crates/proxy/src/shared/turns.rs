//! How many statements run at the server at a time, if that is limited.
//!
//! A server that runs far more statements than it has processors does less in all, and each takes
//! longer. Those beyond the limit wait here, first come, first served.
//!
//! **Nobody waits for itself.** A session that may hold locks doesn't wait: what runs could be
//! waiting for it. It counts, so that the others wait for it too, and the limit can be exceeded by
//! as many statements as there are such sessions.
//!
//! The lock is held briefly, and only where the limit is set. Only a full queue and the metrics
//! walk the queue under it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The statements at the server, and those that wait.
#[derive(Debug)]
pub struct Turns {
    statements_max: usize,
    waiting_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// One statement at the server. When it is dropped, the next may run.
#[derive(Debug)]
pub struct Turn(Arc<Turns>);

/// A statement that must wait.
#[derive(Debug)]
pub struct Waiting(oneshot::Receiver<Turn>);

/// Why a statement can't run now.
#[derive(Debug)]
pub enum NotYet {
    /// Others run; it is in the queue.
    Waits(Waiting),
    /// The queue is full.
    Full,
}

impl Turns {
    /// `statements_max` at a time, but for sessions that may hold locks, and so many that wait.
    pub fn new(statements_max: usize, waiting_max: usize) -> Turns {
        Turns {
            statements_max,
            waiting_max,
            state: Mutex::default(),
        }
    }

    /// A statement is to run. `may_hold_locks`: its session may, and so must not wait.
    ///
    /// # Errors
    /// It can't run now.
    pub fn enter(self: &Arc<Turns>, may_hold_locks: bool) -> Result<Turn, NotYet> {
        let mut state = self.lock();
        // Who waits came first.
        if may_hold_locks || (state.running < self.statements_max && state.waiting.is_empty()) {
            state.running += 1;
            return Ok(Turn(Arc::clone(self)));
        }
        if state.waiting.len() >= self.waiting_max {
            // Some may have given up since.
            state.waiting.retain(|waiting| !waiting.is_closed());
            if state.waiting.len() >= self.waiting_max {
                return Err(NotYet::Full);
            }
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push_back(sender);
        Err(NotYet::Waits(Waiting(receiver)))
    }

    /// Statements at the server.
    pub fn running(&self) -> usize {
        self.lock().running
    }

    /// Statements that wait.
    pub fn waiting(&self) -> usize {
        let state = self.lock();
        let still = state.waiting.iter().filter(|waiting| !waiting.is_closed());
        still.count()
    }

    fn leave(self: &Arc<Turns>) {
        // Those that have given up give their turn back when it is dropped, outside the lock.
        let mut refused = Vec::new();
        let mut state = self.lock();
        state.running -= 1;
        while state.running < self.statements_max
            && let Some(next) = state.waiting.pop_front()
        {
            if next.is_closed() {
                continue;
            }
            state.running += 1;
            if let Err(turn) = next.send(Turn(Arc::clone(self))) {
                refused.push(turn);
            }
        }
        drop(state);
        drop(refused);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Waiting {
    /// The turn, when it has come.
    pub async fn turn(&mut self) -> Option<Turn> {
        (&mut self.0).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(turns: &Arc<Turns>) -> Waiting {
        match turns.enter(false) {
            Err(NotYet::Waits(waiting)) => waiting,
            other => panic!("{other:?}"),
        }
    }

    fn has_come(waiting: &mut Waiting) -> Option<Turn> {
        waiting.0.try_recv().ok()
    }

    #[test]
    fn as_many_run_as_the_limit_says_and_the_others_in_the_order_in_which_they_came() {
        let turns = Arc::new(Turns::new(2, 10));
        let one = turns.enter(false).unwrap();
        let two = turns.enter(false).unwrap();
        let (mut three, mut four) = (waits(&turns), waits(&turns));
        assert_eq!((turns.running(), turns.waiting()), (2, 2));
        assert!(has_come(&mut three).is_none());
        drop(one);
        let three = has_come(&mut three).expect("the first in the queue");
        assert!(has_come(&mut four).is_none());
        drop((two, three));
        assert!(has_come(&mut four).is_some());
        assert_eq!((turns.running(), turns.waiting()), (0, 0));
    }

    #[test]
    fn who_may_hold_locks_runs_at_once_and_counts() {
        let turns = Arc::new(Turns::new(1, 10));
        let one = turns.enter(false).unwrap();
        let mut two = waits(&turns);
        let holder = turns.enter(true).unwrap();
        assert_eq!(turns.running(), 2);
        drop(one);
        assert!(has_come(&mut two).is_none(), "one still runs");
        drop(holder);
        assert!(has_come(&mut two).is_some());
    }

    #[test]
    fn who_has_given_up_holds_nobody_up() {
        let turns = Arc::new(Turns::new(1, 2));
        let one = turns.enter(false).unwrap();
        let (two, mut three) = (waits(&turns), waits(&turns));
        assert!(matches!(turns.enter(false), Err(NotYet::Full)));
        drop(two);
        let four = waits(&turns);
        drop(one);
        let three = has_come(&mut three).expect("the next that still waits");
        // A turn that has come and isn't taken goes to the next.
        drop(three);
        assert_eq!(turns.running(), 1);
        drop(four);
        assert_eq!((turns.running(), turns.waiting()), (0, 0));
    }
}
