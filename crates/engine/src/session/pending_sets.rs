//! `SET`s that were answered in the server's place, and that it hasn't been sent.
//!
//! Drivers and frameworks turn autocommit off before each transaction, and on again after it. What
//! the server would answer is known, so the client gets that at once. The server is sent the `SET`
//! before it gets anything else that it answers. Usually the next `SET` has taken the first back by
//! then, and there is nothing to send.
//!
//! **What a statement at the server sees.** It is sent when nothing is pending. So the server runs
//! it under the settings that the client has chosen, and in the transaction that it would be in.
//! Until then the server is outside a transaction, so nothing there depends on when it is told.

use remora_sql::TransactionDefaults;

/// What the server must be sent, and which settings it has.
#[derive(Debug, Default)]
pub struct PendingSets {
    /// The fingerprint of the settings at the server; of no meaning where nothing is pending.
    at_server: u64,
    /// In the order in which the client sent them. One that a later one overrides is dropped.
    sets: Vec<PendingSet>,
}

#[derive(Debug)]
struct PendingSet {
    defaults: TransactionDefaults,
    /// The message's payload.
    payload: Box<[u8]>,
}

impl PendingSets {
    /// Whether the server has all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// A `SET` of these defaults, and of nothing else, was answered. It leads from some settings to
    /// others, which have these [fingerprints](crate::settings::Fingerprint::id).
    pub fn push(
        &mut self,
        defaults: TransactionDefaults,
        payload: &[u8],
        [before, after]: [u64; 2],
    ) {
        if self.is_empty() {
            self.at_server = before;
        }
        if self.at_server == after {
            self.sets.clear();
            return;
        }
        self.sets
            .retain(|earlier| earlier.defaults.then(defaults) != defaults);
        self.sets.push(PendingSet {
            defaults,
            payload: payload.into(),
        });
    }

    /// What the server must be sent now, message by message. Afterwards nothing is pending.
    pub fn take(&mut self) -> impl Iterator<Item = Box<[u8]>> + use<> {
        let sets = std::mem::take(&mut self.sets);
        sets.into_iter().map(|set| set.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: TransactionDefaults = sets(Some(false), None);
    const ON: TransactionDefaults = sets(Some(true), None);
    const READ_ONLY: TransactionDefaults = sets(None, Some(true));
    const READ_WRITE: TransactionDefaults = sets(None, Some(false));

    const fn sets(autocommit: Option<bool>, read_only: Option<bool>) -> TransactionDefaults {
        TransactionDefaults {
            isolation: None,
            read_only,
            autocommit,
        }
    }

    /// What is sent after these, each with the number of the settings that it leads to. The server
    /// has those of number 0.
    fn sent(steps: &[(TransactionDefaults, &str, u64)]) -> Vec<String> {
        let mut pending = PendingSets::default();
        let mut before = 0;
        for (sets, text, after) in steps {
            pending.push(*sets, text.as_bytes(), [before, *after]);
            before = *after;
        }
        let is_empty = pending.is_empty();
        let sent: Vec<_> = pending
            .take()
            .map(|payload| String::from_utf8(payload.into()).unwrap())
            .collect();
        assert_eq!(sent.is_empty(), is_empty);
        assert!(pending.is_empty());
        sent
    }

    #[test]
    fn the_server_is_sent_what_it_does_not_have() {
        assert_eq!(sent(&[(OFF, "off", 1)]), ["off"]);
        assert_eq!(
            sent(&[(READ_ONLY, "ro", 1), (OFF, "off", 2)]),
            ["ro", "off"]
        );
        // It has what the last of these lead back to.
        assert!(sent(&[(OFF, "off", 1), (ON, "on", 0)]).is_empty());
        let back = [
            (READ_ONLY, "ro", 1),
            (OFF, "off", 2),
            (ON, "on", 1),
            (READ_WRITE, "rw", 0),
        ];
        assert!(sent(&back).is_empty());
        // One that says the same as a later one isn't sent.
        assert_eq!(sent(&back[..3]), ["ro", "on"]);
        assert_eq!(
            sent(&[back[0], back[1], (READ_WRITE, "rw", 3)]),
            ["off", "rw"]
        );
        let both = sets(Some(true), Some(true));
        assert_eq!(sent(&[(OFF, "off", 1), (both, "both", 4)]), ["both"]);
        assert_eq!(sent(&[(both, "both", 4), (OFF, "off", 1)]), ["both", "off"]);
    }
}
