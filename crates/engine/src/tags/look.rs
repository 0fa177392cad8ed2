//! Whether a server can answer a read without a look at its table.
//!
//! It can if it sees from the definition that no row will do (`WHERE 1 = 0`, a TINYINT that is to
//! be 1000, a string longer than the column) or that none is wanted (`LIMIT 0`), or if statistics
//! that are exact tell. Then it doesn't make a transaction's snapshot. So a read certainly looks
//! if:
//!
//! - it reads one `InnoDB` table without partitions. Of such a table no statistics are exact, and
//!   no partition can be ruled out;
//! - nothing but `=` and `IN` with constants filters its rows, each column at most once. So no two
//!   conditions contradict each other;
//! - each constant is of the column's own type, and the column can hold it. So no condition is
//!   FALSE by itself;
//! - no string is empty: MariaDB may take that for NULL (`EMPTY_STRING_IS_NULL`);
//! - no `LIMIT` says 0, and `sql_select_limit` isn't 0, which the caller looks at.
//!
//! Measured on each server: `behaviour/tests/freshness/transactions.rs`.

use remora_cache::BrokenTags;
use remora_sql::{Constant, Select, Test};

use super::codec::Codec;
use super::literal::{Literal, StringConversion};
use super::resolve::restricted;
use crate::facts::{ColumnFacts, TableFacts};

/// Whether the server certainly looks at the table. `facts` are those of [`Select::tables`], of
/// which there must be one.
pub fn certainly_looks(select: &Select, facts: &TableFacts, conversion: StringConversion) -> bool {
    let is_plain_table =
        facts.is_transactional && !facts.is_partitioned && facts.view_of.is_empty();
    let ([block], [_]) = (&select.reads.blocks[..], &select.tables[..]) else {
        return false;
    };
    if !is_plain_table
        || !select.rows_come_from_tables
        || !select.filters_by_conditions_only
        || block.sources.len() != 1
    {
        return false;
    }
    let mut seen = Vec::new();
    block.conditions.iter().all(|condition| {
        let Some((_, ordinal)) = restricted(block, condition, |_| Some(facts)) else {
            return false;
        };
        let is_first = !seen.contains(&ordinal);
        seen.push(ordinal);
        let Test::In(constants) = &condition.test else {
            return false;
        };
        let column = facts.columns.get(ordinal);
        let fits = |constant| column.is_some_and(|column| can_hold(column, constant, conversion));
        is_first && constants.iter().all(fits)
    })
}

/// Whether the column can hold a constant of its own type, as it stands.
fn can_hold(column: &ColumnFacts, constant: &Constant, conversion: StringConversion) -> bool {
    let Some(codec) = Codec::of(&column.kind) else {
        return false;
    };
    // What a parameter is bound to is known with the execution only.
    let literal = Literal::of(constant, &[], conversion);
    let fits = match (codec, literal) {
        (Codec::Integer { .. }, Literal::Integer(_)) => true,
        (Codec::Text | Codec::Binary, Literal::Text { bytes, .. }) => {
            let is_printable = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
            let fits = |most: u32| u32::try_from(bytes.len()).is_ok_and(|length| length <= most);
            is_printable && !bytes.is_empty() && column.characters_max.is_some_and(fits)
        }
        _ => false,
    };
    fits && codec.constant(&literal, BrokenTags::default()).is_some()
}
