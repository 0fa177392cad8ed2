//! What a session's settings are after a `SET` whose text determines them.
//!
//! For the sessions with one fingerprint: their fingerprint after `SET NAMES utf8mb4`, after `SET
//! SESSION TRANSACTION READ ONLY`, as the server told it once. The next session with the same
//! settings has the same ones after the same statements, so it needn't ask. Which statements these
//! are: [`remora_sql::sets_to_literals`], [`TransactionDefaults`].

use std::sync::{Arc, Mutex, PoisonError, Weak};

use remora_sql::TransactionDefaults;

use super::fingerprint::Fingerprint;

/// The most changes that are remembered for one fingerprint. The oldest makes room.
const CHANGES_MAX: usize = 64;
/// The most bytes of statements, together, since the settings were known. Beyond that the server
/// is asked.
pub const STATEMENTS_BYTES_MAX: usize = 1_024;

/// What successful statements have changed of a session's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsChange {
    /// What its transactions are like.
    Transactions(TransactionDefaults),
    /// What these statements say, one after the other.
    Statements(Box<[u8]>),
}

impl SettingsChange {
    /// This change and a later one. `None`: that is more than is remembered.
    pub(crate) fn then(&self, later: &SettingsChange) -> Option<SettingsChange> {
        if let (SettingsChange::Transactions(first), SettingsChange::Transactions(second)) =
            (self, later)
        {
            return Some(SettingsChange::Transactions(first.then(*second)));
        }
        let mut texts = Vec::new();
        self.put(&mut texts);
        later.put(&mut texts);
        (texts.len() <= STATEMENTS_BYTES_MAX).then(|| SettingsChange::Statements(texts.into()))
    }

    fn put(&self, texts: &mut Vec<u8>) {
        match self {
            // No statement begins like this.
            SettingsChange::Transactions(defaults) => {
                texts.extend_from_slice(format!("{defaults:?}").as_bytes());
            }
            SettingsChange::Statements(text) => texts.extend_from_slice(text),
        }
        texts.push(0);
    }
}

/// The fingerprints after changes of one.
#[derive(Debug, Default)]
pub struct SettingsAfter(Mutex<Vec<KnownChange>>);

/// What the server has told once.
#[derive(Debug)]
struct KnownChange {
    change: SettingsChange,
    /// Of the follower's mark at that time: another server, or the same one after a restart, may
    /// make something else of the change.
    mark_number: u64,
    after: Weak<Fingerprint>,
}

impl SettingsAfter {
    /// The settings after this, if they are known and not forgotten.
    pub(crate) fn get(
        &self,
        change: &SettingsChange,
        mark_number: u64,
    ) -> Option<Arc<Fingerprint>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| known.change == *change)?;
        let after = found.after.upgrade();
        after.filter(|_| found.mark_number == mark_number)
    }

    /// The server told them, when the follower had this mark.
    pub(crate) fn learn(
        &self,
        change: &SettingsChange,
        mark_number: u64,
        after: &Arc<Fingerprint>,
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.change != *change);
        if known.len() >= CHANGES_MAX {
            known.remove(0);
        }
        known.push(KnownChange {
            change: change.clone(),
            mark_number,
            after: Arc::downgrade(after),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &[u8]) -> SettingsChange {
        SettingsChange::Statements(text.into())
    }

    fn autocommit(on: bool) -> SettingsChange {
        SettingsChange::Transactions(TransactionDefaults {
            autocommit: Some(on),
            ..TransactionDefaults::default()
        })
    }

    #[test]
    fn changes_are_told_apart_by_their_order_and_kind() {
        let both = |one: &SettingsChange, other: &SettingsChange| one.then(other).unwrap();
        let (names, mode) = (
            statements(b"SET NAMES latin1"),
            statements(b"SET sql_mode=''"),
        );
        let off = autocommit(false);
        let different = [
            names.clone(),
            mode.clone(),
            off.clone(),
            both(&names, &mode),
            both(&mode, &names),
            both(&names, &off),
            both(&off, &names),
            both(&off, &both(&names, &off)),
            statements(b"SET NAMES latin1SET sql_mode=''"),
        ];
        for (at, one) in different.iter().enumerate() {
            assert!(!different[..at].contains(one), "{one:?}");
        }
        assert_eq!(both(&autocommit(true), &off), off);
        let long = statements(&[b' '; STATEMENTS_BYTES_MAX]);
        assert_eq!(long.then(&names), None);
    }
}
