//! `SET`s that were answered in the server's place, and of which it hasn't heard.
//!
//! Drivers and frameworks turn autocommit off before each transaction, and on again behind it. What
//! the server would answer is known. So the client gets that at once, and the server is told before
//! it gets anything else that it answers. Mostly the next `SET` has taken the first back by then,
//! and there is nothing to tell.
//!
//! **What a statement at the server sees.** It is sent when nothing is owed. So the server runs it
//! under the settings that the client has chosen, and in the transaction that it would be in. Until
//! then the server is outside a transaction, so nothing there depends on when it is told.

use remora_sql::TransactionDefaults;

/// What the server must be told, and under which settings it is.
#[derive(Debug, Default)]
pub struct OwedSettings {
    /// The fingerprint of the settings at the server; of no meaning where nothing is owed.
    told: u64,
    /// In the order in which the client sent them. None says only what a later one says too.
    statements: Vec<OwedStatement>,
}

#[derive(Debug)]
struct OwedStatement {
    sets: TransactionDefaults,
    /// The message's payload.
    payload: Box<[u8]>,
}

impl OwedSettings {
    /// Whether the server has been told all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// A `SET` was answered that leads from some settings to others, which have these
    /// [fingerprints](crate::settings::Fingerprint::id).
    pub fn owe(&mut self, sets: TransactionDefaults, payload: &[u8], [before, after]: [u64; 2]) {
        if self.is_empty() {
            self.told = before;
        }
        if self.told == after {
            // The server has these.
            self.statements.clear();
            return;
        }
        self.statements
            .retain(|earlier| earlier.sets.then(sets) != sets);
        self.statements.push(OwedStatement {
            sets,
            payload: payload.into(),
        });
    }

    /// What the server must be told now, message by message. Afterwards nothing is owed.
    pub fn take(&mut self) -> impl Iterator<Item = Box<[u8]>> + use<> {
        let statements = std::mem::take(&mut self.statements);
        statements.into_iter().map(|statement| statement.payload)
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

    /// What is told after these, each with the number of the settings that it leads to. The server
    /// has those of number 0.
    fn told(steps: &[(TransactionDefaults, &str, u64)]) -> Vec<String> {
        let mut owed = OwedSettings::default();
        let mut before = 0;
        for (sets, text, after) in steps {
            owed.owe(*sets, text.as_bytes(), [before, *after]);
            before = *after;
        }
        let is_empty = owed.is_empty();
        let told: Vec<_> = owed
            .take()
            .map(|payload| String::from_utf8(payload.into()).unwrap())
            .collect();
        assert_eq!(told.is_empty(), is_empty);
        assert!(owed.is_empty());
        told
    }

    #[test]
    fn the_server_is_told_what_it_does_not_have() {
        assert_eq!(told(&[(OFF, "off", 1)]), ["off"]);
        assert_eq!(
            told(&[(READ_ONLY, "ro", 1), (OFF, "off", 2)]),
            ["ro", "off"]
        );
        // It has what the last of these lead back to.
        assert!(told(&[(OFF, "off", 1), (ON, "on", 0)]).is_empty());
        let back = [
            (READ_ONLY, "ro", 1),
            (OFF, "off", 2),
            (ON, "on", 1),
            (READ_WRITE, "rw", 0),
        ];
        assert!(told(&back).is_empty());
        // One that says the same as a later one isn't told.
        assert_eq!(told(&back[..3]), ["ro", "on"]);
        assert_eq!(
            told(&[back[0], back[1], (READ_WRITE, "rw", 3)]),
            ["off", "rw"]
        );
        let both = sets(Some(true), Some(true));
        assert_eq!(told(&[(OFF, "off", 1), (both, "both", 4)]), ["both"]);
        assert_eq!(told(&[(both, "both", 4), (OFF, "off", 1)]), ["both", "off"]);
    }
}
