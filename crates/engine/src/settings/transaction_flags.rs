//! The status flags that a server's answers carry where transactions begin and end.
//!
//! They depend on the session's settings and on nothing else: whether autocommit is off, whether
//! transactions are read-only, what `sql_mode` says. So they are learnt from the server, once for
//! each fingerprint, and what Remora answers in the server's place carries the same.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use remora_sql::TransactionControl;
use remora_wire::StatusFlags;
use remora_wire::response::EndMark;

/// Where a transaction begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// After `BEGIN`.
    Begin,
    /// After `START TRANSACTION READ ONLY`.
    BeginReadOnly,
    /// After the statement that opens a transaction because autocommit is off.
    FirstRead,
    /// After `COMMIT` and `ROLLBACK`.
    End,
}

impl From<TransactionControl> for Border {
    fn from(control: TransactionControl) -> Border {
        match control {
            TransactionControl::Begin => Border::Begin,
            TransactionControl::BeginReadOnly => Border::BeginReadOnly,
            TransactionControl::Commit | TransactionControl::Rollback => Border::End,
        }
    }
}

/// These stay what they are. They follow `sql_mode`, but not always: a trigger that sets it leaves
/// them behind, in its session only.
const OF_LANGUAGE: StatusFlags = StatusFlags::NO_BACKSLASH_ESCAPES.with(StatusFlags::ANSI_QUOTES);

const BORDERS: usize = 4;
/// In a word that holds flags.
const IS_KNOWN: u32 = 1 << 16;

/// What has been learnt for one fingerprint. Shared by its sessions; written once.
#[derive(Debug, Default)]
pub struct TransactionFlags([AtomicU32; 2 * BORDERS]);

impl TransactionFlags {
    /// The flags after this border, of a session whose flags are `before`.
    #[inline]
    pub fn after(&self, border: Border, before: StatusFlags) -> Option<StatusFlags> {
        let word = self.word(border, before).load(Relaxed);
        let bits = u16::try_from(word & !IS_KNOWN).ok()?;
        let flags = StatusFlags(bits).with(before.within(OF_LANGUAGE));
        (word & IS_KNOWN != 0).then_some(flags)
    }

    /// The server has answered so. An answer with a warning, or with flags of the moment, isn't
    /// what the next one will be, and teaches nothing. Of a first read's the latter are left out.
    pub fn learn(&self, border: Border, before: StatusFlags, mark: EndMark) {
        let flags = mark.status.within(StatusFlags::OF_SESSION);
        let is_plain = mark.warnings == 0 && flags == mark.status;
        let fits = flags.has(StatusFlags::IN_TRANSACTION) == (border != Border::End);
        if fits && (is_plain || border == Border::FirstRead) {
            let word = self.word(border, before);
            let known = IS_KNOWN | u32::from(flags.without(OF_LANGUAGE).0);
            if word.load(Relaxed) != known {
                word.store(known, Relaxed);
            }
        }
    }

    fn word(&self, border: Border, before: StatusFlags) -> &AtomicU32 {
        let autocommit = usize::from(before.has(StatusFlags::AUTOCOMMIT));
        &self.0[2 * border as usize + autocommit]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTOCOMMIT: StatusFlags = StatusFlags::AUTOCOMMIT;
    const INSIDE: StatusFlags = AUTOCOMMIT.with(StatusFlags::IN_TRANSACTION);

    fn mark(status: StatusFlags) -> EndMark {
        EndMark {
            status,
            warnings: 0,
        }
    }

    #[test]
    fn what_the_server_answered_is_known_for_sessions_with_the_same_autocommit() {
        let flags = TransactionFlags::default();
        assert_eq!(flags.after(Border::Begin, AUTOCOMMIT), None);
        flags.learn(Border::Begin, AUTOCOMMIT, mark(INSIDE));
        assert_eq!(flags.after(Border::Begin, AUTOCOMMIT), Some(INSIDE));
        let escapes = StatusFlags::NO_BACKSLASH_ESCAPES;
        assert_eq!(
            flags.after(Border::Begin, AUTOCOMMIT.with(escapes)),
            Some(INSIDE.with(escapes))
        );
        flags.learn(
            Border::Begin,
            AUTOCOMMIT.with(escapes),
            mark(INSIDE.with(escapes)),
        );
        assert_eq!(flags.after(Border::Begin, AUTOCOMMIT), Some(INSIDE));
        assert_eq!(flags.after(Border::Begin, StatusFlags::default()), None);
        assert_eq!(flags.after(Border::BeginReadOnly, AUTOCOMMIT), None);
        assert_eq!(flags.after(Border::End, AUTOCOMMIT), None);
    }

    #[test]
    fn an_answer_that_is_not_the_usual_one_teaches_nothing() {
        let flags = TransactionFlags::default();
        // `COMMIT` that begins another transaction.
        flags.learn(Border::End, INSIDE, mark(INSIDE));
        let changed = AUTOCOMMIT.with(StatusFlags::SESSION_STATE_CHANGED);
        flags.learn(Border::End, INSIDE, mark(changed));
        let warned = EndMark {
            status: AUTOCOMMIT,
            warnings: 1,
        };
        flags.learn(Border::End, INSIDE, warned);
        flags.learn(Border::Begin, AUTOCOMMIT, mark(AUTOCOMMIT));
        assert_eq!(flags.after(Border::End, INSIDE), None);
        assert_eq!(flags.after(Border::Begin, AUTOCOMMIT), None);
        let of_the_moment = StatusFlags::IN_TRANSACTION.with(StatusFlags::NO_INDEX);
        flags.learn(
            Border::FirstRead,
            StatusFlags::default(),
            mark(of_the_moment),
        );
        assert_eq!(
            flags.after(Border::FirstRead, StatusFlags::default()),
            Some(StatusFlags::IN_TRANSACTION)
        );
    }
}
