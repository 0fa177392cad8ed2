//! What the follower knows of MySQL's transactions: which it has applied, and which of them may not
//! be visible yet.

use std::collections::VecDeque;

use remora_binlog::{Gtid, GtidSet};
use remora_cache::Position;

use crate::server_facts::Visibility;

/// Commits that are told apart while they wait to become visible. More become one with the last of
/// them: the watermark then moves past all of those at once, a little later.
const WAITING_MAX: usize = 4_096;

/// One transaction or several.
#[derive(Debug)]
enum Transactions {
    One(Gtid),
    Several(GtidSet),
}

impl Transactions {
    fn are_in(&self, set: &GtidSet) -> bool {
        match self {
            Transactions::One(gtid) => set.contains(gtid),
            Transactions::Several(several) => several.is_subset_of(set),
        }
    }

    fn add(&mut self, gtid: Gtid) {
        match self {
            Transactions::Several(several) => several.insert(gtid),
            Transactions::One(first) => {
                let mut several = GtidSet::new();
                several.insert(first.clone());
                several.insert(gtid);
                *self = Transactions::Several(several);
            }
        }
    }
}

/// A stretch of the log that isn't known to be visible.
#[derive(Debug)]
struct Waiting {
    transactions: Transactions,
    end: Position,
    /// It is visible once the server's set holds its transactions.
    is_told: bool,
}

/// How far it is known that what lies before the follower's first file can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The file's list of them hasn't been read.
    Unread,
    /// It has, and ends here in the order of what waits.
    Waiting,
    /// All of it can be seen.
    Visible,
}

/// Whether it is known that the server has executed nothing past the log since results are kept. A
/// replica does that which doesn't log what it replicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    /// No result is kept yet: what was purged, say, lies before all of them.
    NothingKept,
    /// Nobody followed for a while: the connection was lost, or an earlier process had ended.
    Due,
    /// It is.
    Done,
}

/// The ledger. It lives as long as the log goes on, through any number of connections.
#[derive(Debug)]
pub(crate) struct Ledger {
    visibility: Visibility,
    /// Where the follower began to read.
    start: Position,
    base: Base,
    /// The transactions that the follower has applied, and those that came before all that it
    /// reads.
    applied: GtidSet,
    /// In the order of the log.
    waiting: VecDeque<Waiting>,
    /// Everything up to here can be seen, by other evidence than the server's set.
    settled: Position,
    /// The server's last answer. The next must hold it.
    answered: GtidSet,
    confirmation: Confirmation,
}

impl Ledger {
    /// For a follower that begins at `start`, the beginning of a file.
    pub(crate) fn new(visibility: Visibility, start: Position) -> Ledger {
        Ledger {
            visibility,
            start,
            base: Base::Unread,
            applied: GtidSet::new(),
            waiting: VecDeque::new(),
            settled: Position::ZERO,
            answered: GtidSet::new(),
            confirmation: Confirmation::NothingKept,
        }
    }

    /// For a follower that goes on where an earlier process had stopped, which had applied these
    /// transactions and knew them to be visible.
    pub(crate) fn resumed(visibility: Visibility, applied: GtidSet) -> Ledger {
        Ledger {
            visibility,
            start: Position::ZERO,
            base: Base::Visible,
            applied,
            waiting: VecDeque::new(),
            settled: Position::ZERO,
            answered: GtidSet::new(),
            confirmation: Confirmation::Due,
        }
    }

    /// A new session goes on with it. What the server executed meanwhile must be compared.
    pub(crate) fn confirm_again(&mut self) {
        if self.confirmation == Confirmation::Done {
            self.confirmation = Confirmation::Due;
        }
    }

    /// Whether all that the follower has applied can be seen, and the server's answers showed
    /// nothing that was executed past the log.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_confirmed() && self.base == Base::Visible && self.waiting.is_empty()
    }

    /// The transactions that were applied, as [`Ledger::resumed`] takes them.
    pub(crate) fn applied(&self) -> String {
        self.applied.to_string()
    }

    /// A file begins, and lists all transactions of the files before it.
    pub(crate) fn begin_file(&mut self, previous: &GtidSet) {
        self.applied.merge(previous);
        if self.base == Base::Unread {
            self.base = Base::Waiting;
            self.waiting.push_front(Waiting {
                transactions: Transactions::Several(previous.clone()),
                end: self.start,
                is_told: self.visibility == Visibility::Gtids { xa_in_order: true },
            });
        }
    }

    /// The follower has applied a transaction that ends at `end`. `is_of_xa`: it commits an
    /// XA transaction, or ends a prepared one.
    pub(crate) fn commit(&mut self, gtid: &Gtid, end: Position, is_of_xa: bool) {
        let is_told = match self.visibility {
            Visibility::Gtids { xa_in_order } => xa_in_order || !is_of_xa,
            Visibility::Position | Visibility::NeverTold => false,
        };
        self.applied.insert(gtid.clone());
        let is_full = self.waiting.len() >= WAITING_MAX;
        if let Some(last) = self.waiting.back_mut().filter(|_| is_full) {
            last.transactions.add(gtid.clone());
            last.end = end;
            last.is_told &= is_told;
            return;
        }
        self.waiting.push_back(Waiting {
            transactions: Transactions::One(gtid.clone()),
            end,
            is_told,
        });
    }

    /// Takes the server's set. False if it has lost transactions since the last time.
    pub(crate) fn answer(&mut self, executed: &GtidSet) -> bool {
        let goes_on = self.answered.is_subset_of(executed);
        self.answered.clone_from(executed);
        goes_on
    }

    /// Everything up to here can be seen.
    pub(crate) fn settle(&mut self, settled: Position) {
        self.settled = self.settled.max(settled);
    }

    /// Whether the next commit that waits will never be told by the server's set.
    pub(crate) fn needs_other_evidence(&self) -> bool {
        self.waiting.front().is_some_and(|first| !first.is_told)
    }

    /// How far reads can see, by the server's last answer: to the end of what waits no longer.
    /// `None` if everything waits as before.
    pub(crate) fn take_visible(&mut self) -> Option<Position> {
        let mut visible = None;
        while let Some(first) = self.waiting.front() {
            let is_told = first.is_told && first.transactions.are_in(&self.answered);
            if !is_told && first.end > self.settled {
                break;
            }
            visible = Some(first.end);
            self.waiting.pop_front();
            if self.base == Base::Waiting {
                // It was put before everything else.
                self.base = Base::Visible;
            }
        }
        visible
    }

    /// Whether all commits before the follower's first file can be seen.
    pub(crate) fn is_base_visible(&self) -> bool {
        self.base == Base::Visible
    }

    /// Whether the follower has applied these, or they came before all that it reads.
    pub(crate) fn knows(&self, executed: &GtidSet) -> bool {
        executed.is_subset_of(&self.applied)
    }

    /// Whether an answer of the server has been compared, and had nothing that isn't in the log.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmation == Confirmation::Done
    }

    /// The server had executed these, and the follower has applied all that was in the log then.
    /// False if some of them are in no log, and may have changed what kept results were read from.
    pub(crate) fn confirm(&mut self, executed: &GtidSet) -> bool {
        if self.confirmation == Confirmation::NothingKept {
            self.applied.merge(executed);
        }
        let are_known = self.knows(executed);
        self.confirmation = if are_known {
            Confirmation::Done
        } else {
            Confirmation::Due
        };
        are_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gtid(number: u64) -> Gtid {
        Gtid::new([7; 16], "", number).unwrap()
    }

    fn set(numbers: &[u64]) -> GtidSet {
        let mut set = GtidSet::new();
        for number in numbers {
            set.insert(gtid(*number));
        }
        set
    }

    fn at(offset: u64) -> Position {
        Position::new(1, offset).unwrap()
    }

    const TOLD: Visibility = Visibility::Gtids { xa_in_order: true };

    fn ledger(visibility: Visibility) -> Ledger {
        let mut ledger = Ledger::new(visibility, at(4));
        ledger.begin_file(&set(&[1, 2]));
        ledger
    }

    #[test]
    fn the_watermark_stops_before_the_first_commit_that_is_not_in_the_servers_set() {
        let mut ledger = ledger(TOLD);
        for number in 3..7 {
            ledger.commit(&gtid(number), at(number * 100), false);
        }
        assert!(ledger.answer(&set(&[1, 2, 3, 4, 6])));
        assert_eq!(ledger.take_visible(), Some(at(400)));
        assert_eq!(ledger.take_visible(), None);
        assert!(ledger.answer(&set(&[1, 2, 3, 4, 5, 6])));
        assert_eq!(ledger.take_visible(), Some(at(600)));
    }

    #[test]
    fn nothing_is_visible_before_the_files_before_the_first_are() {
        let mut ledger = ledger(TOLD);
        ledger.commit(&gtid(3), at(300), false);
        assert!(ledger.answer(&set(&[1, 3])));
        assert_eq!(ledger.take_visible(), None);
        assert!(!ledger.is_base_visible());
        assert!(ledger.answer(&set(&[1, 2, 3])));
        assert_eq!(ledger.take_visible(), Some(at(300)));
        assert!(ledger.is_base_visible());
    }

    #[test]
    fn a_set_that_has_lost_a_transaction_is_noticed() {
        let mut ledger = ledger(TOLD);
        assert!(ledger.answer(&set(&[1, 2, 3])));
        assert!(ledger.answer(&set(&[1, 2, 3])));
        assert!(!ledger.answer(&set(&[1, 2])));
    }

    #[test]
    fn what_the_set_does_not_tell_waits_for_other_evidence() {
        let mut ledger = ledger(Visibility::NeverTold);
        ledger.commit(&gtid(3), at(300), false);
        assert!(ledger.answer(&set(&[1, 2, 3])));
        assert!(ledger.needs_other_evidence());
        assert_eq!(ledger.take_visible(), None);
        ledger.settle(at(299));
        assert_eq!(ledger.take_visible(), Some(at(4)));
        ledger.settle(at(300));
        assert_eq!(ledger.take_visible(), Some(at(300)));
    }

    #[test]
    fn the_end_of_a_prepared_transaction_is_waited_for_where_the_set_tells_it_early() {
        let mut ledger = ledger(Visibility::Gtids { xa_in_order: false });
        ledger.settle(at(4));
        ledger.commit(&gtid(3), at(300), false);
        ledger.commit(&gtid(4), at(400), true);
        ledger.commit(&gtid(5), at(500), false);
        assert!(ledger.answer(&set(&[1, 2, 3, 4, 5])));
        assert_eq!(ledger.take_visible(), Some(at(300)));
        assert!(ledger.needs_other_evidence());
        ledger.settle(at(450));
        assert_eq!(ledger.take_visible(), Some(at(500)));
    }

    #[test]
    fn more_than_can_be_told_apart_become_visible_together() {
        let mut ledger = ledger(TOLD);
        let last = WAITING_MAX as u64 + 100;
        for number in 3..=last {
            ledger.commit(&gtid(number), at(number * 100), false);
        }
        assert_eq!(ledger.waiting.len(), WAITING_MAX);
        let all_but_one: Vec<_> = (1..last).collect();
        assert!(ledger.answer(&set(&all_but_one)));
        let visible = ledger.take_visible().unwrap();
        assert!(visible < at((last - 50) * 100), "{visible}");
        assert!(ledger.answer(&set(&(1..=last).collect::<Vec<_>>())));
        assert_eq!(ledger.take_visible(), Some(at(last * 100)));
    }

    #[test]
    fn the_follower_knows_what_it_read_and_what_came_before() {
        let mut ledger = ledger(TOLD);
        assert!(ledger.knows(&set(&[1, 2])));
        assert!(!ledger.knows(&set(&[1, 2, 3])));
        ledger.commit(&gtid(3), at(300), false);
        assert!(ledger.knows(&set(&[1, 2, 3])));
    }

    #[test]
    fn what_is_in_no_log_is_accepted_only_before_anything_is_kept() {
        let mut ledger = ledger(TOLD);
        assert!(ledger.confirm(&set(&[1, 2, 9])), "9 was purged before");
        assert!(ledger.confirm(&set(&[1, 2, 9])));
        ledger.commit(&gtid(3), at(300), false);
        assert!(ledger.confirm(&set(&[1, 2, 3, 9])));
        assert!(!ledger.confirm(&set(&[1, 2, 3, 9, 10])), "10 is in no log");
        let mut resumed = Ledger::resumed(TOLD, ledger.applied().parse().unwrap());
        assert!(!resumed.is_confirmed());
        resumed.commit(&gtid(4), at(400), false);
        assert!(resumed.confirm(&set(&[1, 2, 3, 4, 9])) && resumed.is_confirmed());
        resumed.confirm_again();
        assert!(!resumed.is_confirmed());
        assert!(!resumed.confirm(&set(&[1, 2, 3, 4, 9, 10])) && !resumed.is_confirmed());
    }
}
