//! Two-phase XA transactions: their rows are in the log where they are prepared, but become visible
//! where they are committed, and that event names only the transaction.

use std::collections::HashMap;

use crate::touched::Touched;

/// Longest of each of an XID's two parts, bytes (the X/Open standard's, which servers keep to).
const PART_BYTES_MAX: usize = 64;

/// The name of an XA transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Xid {
    format_id: u32,
    global: Vec<u8>,
    branch: Vec<u8>,
}

impl Xid {
    /// An XID of its parts: the format's number, the global transaction's name, the branch's.
    /// `None` if a part is too long.
    pub fn new(format_id: u32, global: &[u8], branch: &[u8]) -> Option<Self> {
        let fits = global.len() <= PART_BYTES_MAX && branch.len() <= PART_BYTES_MAX;
        fits.then(|| Self {
            format_id,
            global: global.to_vec(),
            branch: branch.to_vec(),
        })
    }

    /// The XID that a logged `XA COMMIT` or `XA ROLLBACK` names. Servers write it in one way
    /// (`XA COMMIT X'7831',X'',1`); anything else is `None`.
    pub(crate) fn of_end(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let text = text
            .strip_prefix("XA COMMIT ")
            .or_else(|| text.strip_prefix("XA ROLLBACK "))?;
        let mut parts = text.split(',');
        let global = read_hex(parts.next()?)?;
        let branch = read_hex(parts.next()?)?;
        let format_id = parts.next()?.parse().ok()?;
        match parts.next() {
            None => Self::new(format_id, &global, &branch),
            Some(_) => None,
        }
    }
}

/// `X'0aff'`.
fn read_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("X'")?.strip_suffix('\'')?.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits
        .chunks(2)
        .map(|pair| u8::try_from((digit(pair[0])? << 4) | digit(pair[1])?).ok())
        .collect()
}

/// What a prepared transaction will change.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) touched: Touched,
    pub(crate) accounts: bool,
}

impl Prepared {
    /// What may be anything: a transaction that was prepared before following began, or that could
    /// not be remembered.
    pub(crate) fn unknown() -> Self {
        Self {
            touched: Touched::Everything,
            accounts: true,
        }
    }

    /// Its share of the bound.
    fn weight(&self) -> usize {
        match &self.touched {
            Touched::Tables(tables) => tables.len().max(1),
            Touched::Everything => 1,
        }
    }
}

/// The prepared transactions whose end hasn't been read, in bounded room.
#[derive(Debug)]
pub(crate) struct PreparedTransactions {
    weight_max: usize,
    weight: usize,
    by_xid: HashMap<Xid, Prepared>,
}

impl PreparedTransactions {
    /// At most `tables_max` tables of all of them together are remembered (and at most so many
    /// transactions).
    pub(crate) fn new(tables_max: usize) -> Self {
        Self {
            weight_max: tables_max,
            weight: 0,
            by_xid: HashMap::new(),
        }
    }

    /// Remembers a transaction. False if there is no room: its end will be of everything.
    pub(crate) fn remember(&mut self, xid: Xid, mut prepared: Prepared) -> bool {
        if self.take(&xid).is_some() {
            // The same XID prepared again without an end between. Something was missed.
            prepared = Prepared::unknown();
        }
        let weight = prepared.weight();
        if self.weight + weight > self.weight_max {
            return false;
        }
        self.weight += weight;
        self.by_xid.insert(xid, prepared);
        true
    }

    /// What ends with the transaction's end, if it was remembered.
    pub(crate) fn take(&mut self, xid: &Xid) -> Option<Prepared> {
        let prepared = self.by_xid.remove(xid)?;
        self.weight -= prepared.weight();
        Some(prepared)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::table::LoggedTable;

    fn prepared(tables: &[&str]) -> Prepared {
        let tables = tables.iter().map(|name| LoggedTable::new("app", *name));
        Prepared {
            touched: Touched::Tables(tables.collect()),
            accounts: false,
        }
    }

    fn xid(name: &str) -> Xid {
        Xid::new(1, name.as_bytes(), b"").unwrap()
    }

    #[test]
    fn the_xid_of_an_end_is_read_as_servers_write_it() {
        assert_eq!(Xid::of_end(b"XA COMMIT X'78',X'',1"), Some(xid("x")));
        let other = Xid::new(7, &[0x0a, 0xff], b"b");
        assert_eq!(Xid::of_end(b"XA ROLLBACK X'0aFF',X'62',7"), other);
        for odd in [
            &b"XA COMMIT X'78',X'',1 ONE PHASE"[..],
            b"XA COMMIT 'x'",
            b"xa commit X'78',X'',1",
            b"XA COMMIT X'7',X'',1",
            b"XA COMMIT X'7g',X'',1",
            b"XA COMMIT X'78',X''",
            b"XA COMMIT X'78',X'',-1",
            b"XA COMMIT X'78',X'',1,2",
            b"XA COMMIT X'\xff',X'',1",
            b"",
        ] {
            assert_eq!(Xid::of_end(odd), None);
        }
        let long = format!("XA COMMIT X'{}',X'',1", "61".repeat(65));
        assert_eq!(Xid::of_end(long.as_bytes()), None);
    }

    #[test]
    fn the_tables_of_all_prepared_transactions_together_are_bounded() {
        let mut all = PreparedTransactions::new(4);
        assert!(all.remember(xid("a"), prepared(&["t", "u"])));
        assert!(all.remember(xid("b"), prepared(&[])));
        assert!(!all.remember(xid("c"), prepared(&["t", "u"])));
        assert!(all.take(&xid("c")).is_none());
        assert_eq!(
            all.take(&xid("a")).unwrap().touched,
            prepared(&["t", "u"]).touched
        );
        assert!(all.take(&xid("a")).is_none());
        assert!(all.remember(xid("c"), prepared(&["t", "u", "v"])));
        assert!(!all.remember(xid("d"), Prepared::unknown()));
    }

    #[test]
    fn an_xid_that_is_prepared_twice_is_of_everything() {
        let mut all = PreparedTransactions::new(4);
        all.remember(xid("a"), prepared(&["t"]));
        all.remember(xid("a"), prepared(&["u"]));
        assert_eq!(all.take(&xid("a")).unwrap().touched, Touched::Everything);
        assert_eq!(all.weight, 0);
    }
}
