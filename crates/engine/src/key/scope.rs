//! The scope: the number under which results are kept for the sessions that share them.

use remora_cache::Scope;
use remora_wire::StatusFlags;

use crate::reason::Bypass;

/// The status flags that differ between sessions and stand in each result.
const STATUS_IN_KEY: [StatusFlags; 5] = [
    StatusFlags::AUTOCOMMIT,
    StatusFlags::IN_TRANSACTION,
    StatusFlags::IN_READ_ONLY_TRANSACTION,
    // They follow `sql_mode`, but not always: a trigger that sets it leaves them behind.
    StatusFlags::NO_BACKSLASH_ESCAPES,
    StatusFlags::ANSI_QUOTES,
];

/// The flags that differ between sessions and stand in each result, as bits.
#[inline]
pub fn status_bits(status: StatusFlags) -> u8 {
    STATUS_IN_KEY
        .iter()
        .enumerate()
        .fold(0, |bits, (at, flag)| {
            bits | u8::from(status.has(*flag)) << at
        })
}

/// The scope of a fingerprint with these flags: the number that no other combination has.
#[inline]
pub fn scope_of(
    fingerprint_id: u64,
    status: StatusFlags,
    rows: RowFormat,
) -> Result<Scope, Bypass> {
    let bits = u64::from(status_bits(status)) << 1 | rows as u64;
    Scope::new(fingerprint_id << (STATUS_IN_KEY.len() + 1) | bits).ok_or(Bypass::FingerprintsFull)
}

/// The fingerprint of the sessions whose results are in a scope.
#[inline]
pub fn fingerprint_of(scope: Scope) -> u64 {
    scope.number() >> (STATUS_IN_KEY.len() + 1)
}

/// The scope that stands in the same relation to another fingerprint as this one to its own.
pub fn with_fingerprint(scope: Scope, fingerprint_id: u64) -> Result<Scope, Bypass> {
    let bits = scope.number() & ((1 << (STATUS_IN_KEY.len() + 1)) - 1);
    Scope::new(fingerprint_id << (STATUS_IN_KEY.len() + 1) | bits).ok_or(Bypass::FingerprintsFull)
}

/// Whether a scope is of executions of prepared statements.
#[inline]
pub fn is_binary(scope: Scope) -> bool {
    scope.number() & 1 == RowFormat::Binary as u64
}

/// How the rows of a result are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// As text: the answers to `COM_QUERY`.
    Text = 0,
    /// In the binary protocol: the answers to `COM_STMT_EXECUTE`.
    Binary = 1,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_moved_to_another_fingerprint_keeps_all_else() {
        let status = StatusFlags::AUTOCOMMIT;
        let of = |id, rows| scope_of(id, status, rows).unwrap();
        let moved = with_fingerprint(of(17, RowFormat::Binary), 4).unwrap();
        assert_eq!(moved, of(4, RowFormat::Binary));
        assert_ne!(moved, of(4, RowFormat::Text));
        assert_eq!(fingerprint_of(moved), 4);
        assert!(with_fingerprint(moved, 1 << 40).is_err());
    }
}
