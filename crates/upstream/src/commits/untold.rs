//! MariaDB's commits that its position doesn't tell.
//!
//! `binlog_snapshot_position` doesn't wait for every commit. A transaction's own commit is ordered:
//! MariaDB commits it in the engine and moves the position under one lock, so the position never
//! names it before reads see it. Two kinds are only written to the log in that way; the engine
//! commits them afterwards, outside the lock. They hold the watermark back until something else
//! tells that they are visible.
//!
//! **The end of a prepared XA transaction.** Measured: a read sent after the position had passed an
//! `XA COMMIT` missed its rows in 1 of 300 to 9,000 tries, and for seconds if the engine had much
//! to do (a full-text index). `XA RECOVER` lists a transaction from its prepare until its commit is
//! over. The server takes it off the list after the engine's commit, on whichever connection that
//! is (`trans_xa_commit`: first `ha_commit_one_phase` or `ha_commit_or_rollback_by_xid`, then
//! `xid_cache_delete`). So an answer that was asked for after the end was read from the log, and
//! that doesn't list its name, says that the end is visible. An end that failed in the engine stays
//! on the list, and its rows stay invisible. The question takes no privilege.
//!
//! A name can be used again. Then the server lists a later transaction, and this waits for that
//! one, too: longer than needed, never shorter. Its prepare in the log tells the same as its
//! absence from the list, because the server takes no name that it still has.
//!
//! **A commit that is ended by a statement**, because an engine without two-phase commit took part:
//! see [`unordered`](super::unordered). Where the account sees what other connections are doing,
//! this waits until each of them has been idle (`watermark::idle`).

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};

use remora_binlog::Xid;
use remora_cache::Position;
use remora_wire::rows::Row;

use crate::client::{Client, ClientError, text};

const QUESTION: &str = "XA RECOVER";
/// More prepared transactions than any server has.
const PREPARED_MAX: usize = 200_000;
/// Ends that are told apart while they wait. With more, those that come are waited for until no
/// transaction is prepared at all.
const WAITING_MAX: usize = 65_536;
/// With more ends that wait, a prepare isn't compared with them.
const COMPARED_MAX: usize = 64;

/// What tells that a commit is visible.
#[derive(Debug, PartialEq, Eq)]
enum Proof {
    /// That the server doesn't list the name; `None`: that it lists none.
    NotListed(Option<Xid>),
    /// That each connection has been idle. It would prove every commit.
    Idle,
}

/// A commit that isn't known to be visible, or several.
#[derive(Debug)]
struct Waiting {
    proof: Proof,
    first: Position,
    last: Position,
}

/// The commits that wait. They live as long as the log goes on, through any number of connections.
#[derive(Debug, Default)]
pub(crate) struct UntoldCommits {
    /// In the order of the log.
    waiting: VecDeque<Waiting>,
    /// Where the last of them lies that was read. After a lost connection events may come again.
    read: Position,
}

/// What `XA RECOVER` lists.
#[derive(Debug, Default)]
struct Listed {
    xids: HashSet<Xid>,
    /// Also one whose name can't be read.
    has_others: bool,
}

impl Listed {
    fn has(&self, xid: Option<&Xid>) -> bool {
        match xid {
            Some(xid) => self.xids.contains(xid),
            None => self.has_others || !self.xids.is_empty(),
        }
    }
}

impl UntoldCommits {
    /// An XA transaction ended at `end`, in a commit or a rollback. `None`: its name can't be read.
    pub(crate) fn prepared_ended(&mut self, xid: Option<Xid>, end: Position) {
        self.wait(Proof::NotListed(xid), end);
    }

    /// A commit ended at `end` that a statement ended.
    pub(crate) fn unordered(&mut self, end: Position) {
        self.wait(Proof::Idle, end);
    }

    fn wait(&mut self, proof: Proof, end: Position) {
        if end <= self.read {
            return;
        }
        self.read = end;
        let is_full = self.waiting.len() >= WAITING_MAX;
        if let Some(last) = self.waiting.back_mut().filter(|_| is_full) {
            // The one before is waited for with it.
            if last.proof != Proof::Idle {
                last.proof = match proof {
                    Proof::Idle => Proof::Idle,
                    Proof::NotListed(_) => Proof::NotListed(None),
                };
            }
            last.last = end;
            return;
        }
        self.waiting.push_back(Waiting {
            proof,
            first: end,
            last: end,
        });
    }

    /// A transaction of this name was prepared at `at`: what ended with it before is visible.
    pub(crate) fn prepared(&mut self, xid: &Xid, at: Position) {
        if self.waiting.len() <= COMPARED_MAX {
            let is_of_name =
                |proof: &Proof| matches!(proof, Proof::NotListed(Some(name)) if name == xid);
            self.waiting
                .retain(|waiting| waiting.last >= at || !is_of_name(&waiting.proof));
        }
    }

    /// Whether no commit waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The highest position up to `told` that is before everything that waits.
    pub(crate) fn visible(&self, told: Position) -> Position {
        match self.waiting.front() {
            Some(first) => told.min(first.first.before()),
            None => told,
        }
    }

    /// Asks which of the ends that have been read are visible.
    pub(crate) async fn ask(
        untold: &RefCell<UntoldCommits>,
        client: &mut Client,
    ) -> Result<(), ClientError> {
        let (is_due, until) = {
            let untold = untold.borrow();
            (untold.waits_for_list(), untold.read)
        };
        if is_due {
            let rows = client.query(QUESTION, PREPARED_MAX).await?;
            untold.borrow_mut().take_list(until, &list(&rows));
        }
        Ok(())
    }

    fn waits_for_list(&self) -> bool {
        self.waiting.iter().any(|one| one.proof != Proof::Idle)
    }

    /// Whether it has to be known which connections are idle.
    pub(crate) fn waits_for_idle(&self) -> bool {
        self.waiting.iter().any(|one| one.proof == Proof::Idle)
    }

    /// Takes an answer to a question that was sent when the log had been read up to `until`.
    fn take_list(&mut self, until: Position, listed: &Listed) {
        let is_proven = |waiting: &Waiting| match &waiting.proof {
            Proof::NotListed(xid) => waiting.last <= until && !listed.has(xid.as_ref()),
            Proof::Idle => false,
        };
        self.waiting.retain(|waiting| !is_proven(waiting));
    }

    /// Every commit up to here can be seen.
    pub(crate) fn settle(&mut self, settled: Position) {
        self.waiting.retain(|waiting| waiting.last > settled);
    }
}

fn list(rows: &[Row]) -> Listed {
    let mut listed = Listed::default();
    for row in rows {
        match xid_of(row) {
            Some(xid) => {
                listed.xids.insert(xid);
            }
            None => listed.has_others = true,
        }
    }
    listed
}

/// The name in a row of `XA RECOVER`: the format, the lengths of the two parts, both parts.
fn xid_of(row: &Row) -> Option<Xid> {
    let format_id = text(row, 0)?.parse().ok()?;
    let global_bytes = text(row, 1)?.parse().ok()?;
    let branch_bytes: usize = text(row, 2)?.parse().ok()?;
    let parts = row.get(3)?.as_deref()?;
    let (global, branch) = parts.split_at_checked(global_bytes)?;
    if branch.len() != branch_bytes {
        return None;
    }
    Xid::new(format_id, global, branch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Position {
        Position::new(1, offset).unwrap()
    }

    fn xid(name: &str) -> Xid {
        Xid::new(1, name.as_bytes(), b"").unwrap()
    }

    fn listed(names: &[&str]) -> Listed {
        Listed {
            xids: names.iter().map(|name| xid(name)).collect(),
            has_others: false,
        }
    }

    /// As seen: the server says 500 while the end at 300 isn't visible.
    #[test]
    fn the_position_is_not_believed_beyond_an_end_that_is_still_listed() {
        let mut ends = UntoldCommits::default();
        assert_eq!(ends.visible(at(500)), at(500));
        ends.prepared_ended(Some(xid("a")), at(300));
        assert_eq!(ends.visible(at(200)), at(200));
        assert_eq!(ends.visible(at(500)), at(299));
        ends.take_list(at(300), &listed(&["a", "b"]));
        assert_eq!(ends.visible(at(500)), at(299));
        ends.take_list(at(300), &listed(&["b"]));
        assert_eq!(ends.visible(at(500)), at(500));
    }

    #[test]
    fn an_end_that_was_read_after_the_question_waits_for_the_next() {
        let mut ends = UntoldCommits::default();
        ends.prepared_ended(Some(xid("a")), at(300));
        ends.prepared_ended(Some(xid("b")), at(400));
        ends.take_list(at(300), &listed(&[]));
        assert_eq!(ends.visible(at(500)), at(399));
    }

    #[test]
    fn an_end_without_a_name_waits_until_none_is_listed() {
        let mut ends = UntoldCommits::default();
        ends.prepared_ended(None, at(300));
        ends.take_list(at(300), &listed(&["a"]));
        assert_eq!(ends.visible(at(500)), at(299));
        let has_others = true;
        ends.take_list(
            at(300),
            &Listed {
                has_others,
                ..Listed::default()
            },
        );
        assert_eq!(ends.visible(at(500)), at(299));
        ends.take_list(at(300), &listed(&[]));
        assert_eq!(ends.visible(at(500)), at(500));
    }

    #[test]
    fn a_later_prepare_of_the_same_name_shows_that_the_end_is_visible() {
        let mut ends = UntoldCommits::default();
        ends.prepared_ended(Some(xid("a")), at(300));
        // Its own, read once more after a lost connection.
        ends.prepared(&xid("a"), at(200));
        ends.prepared(&xid("b"), at(400));
        assert_eq!(ends.visible(at(500)), at(299));
        ends.prepared(&xid("a"), at(400));
        assert_eq!(ends.visible(at(500)), at(500));
    }

    #[test]
    fn an_end_that_comes_again_is_not_waited_for_again() {
        let mut ends = UntoldCommits::default();
        ends.prepared_ended(Some(xid("a")), at(300));
        ends.take_list(at(300), &listed(&[]));
        ends.prepared_ended(Some(xid("a")), at(300));
        assert_eq!(ends.visible(at(500)), at(500));
    }

    #[test]
    fn ends_beyond_the_bound_are_waited_for_together() {
        let mut ends = UntoldCommits::default();
        let last = WAITING_MAX as u64 + 10;
        for number in 1..=last {
            ends.prepared_ended(Some(xid(&number.to_string())), at(number * 100));
        }
        assert_eq!(ends.waiting.len(), WAITING_MAX);
        ends.take_list(at(last * 100).before(), &listed(&[]));
        assert_eq!(ends.waiting.len(), 1, "the last came after the question");
        ends.take_list(at(last * 100), &listed(&["another"]));
        let until = at((last - 10) * 100).before();
        assert_eq!(ends.visible(at(u64::from(u32::MAX))), until);
        ends.take_list(at(last * 100), &listed(&[]));
        assert_eq!(ends.waiting.len(), 0);
    }

    #[test]
    fn a_commit_that_a_statement_ended_waits_until_everybody_was_idle() {
        let mut ends = UntoldCommits::default();
        ends.unordered(at(300));
        ends.prepared_ended(Some(xid("a")), at(400));
        ends.take_list(at(400), &listed(&[]));
        assert!(ends.waits_for_idle());
        assert_eq!(ends.visible(at(500)), at(299));
        ends.settle(at(299));
        assert_eq!(ends.visible(at(500)), at(299));
        ends.settle(at(300));
        assert_eq!(ends.visible(at(500)), at(500));
        assert!(!ends.waits_for_idle());
    }

    #[test]
    fn names_are_read_as_the_server_lists_them() {
        let row = |fields: [&[u8]; 4]| fields.map(|field| Some(field.to_vec())).to_vec();
        let rows = [
            row([b"1", b"1", b"0", b"x"]),
            row([b"7", b"2", b"1", &[0x0a, 0xff, b'b']]),
        ];
        let listed = list(&rows);
        assert!(listed.has(Some(&xid("x"))));
        assert!(listed.has(Xid::new(7, &[0x0a, 0xff], b"b").as_ref()));
        assert!(!listed.has_others);
        for odd in [
            row([b"1", b"3", b"0", b"x"]),
            row([b"1", b"1", b"1", b"x"]),
            row([b"-1", b"1", b"0", b"x"]),
        ] {
            assert!(list(&[odd]).has_others);
        }
    }
}
