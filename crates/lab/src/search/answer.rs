//! Answers in a form in which they can be compared: the server may give rows in another order, or
//! think of another plan, and still say the same.

use remora_testkit::client::Packets;

/// `SERVER_QUERY_NO_GOOD_INDEX_USED`, `SERVER_QUERY_NO_INDEX_USED`, `SERVER_QUERY_WAS_SLOW`: what
/// the plan was like.
const PLAN_FLAGS: u16 = 0x10 | 0x20 | 0x800;

/// A definition ends with flags (2 bytes), decimals (1) and two bytes of filling.
const FLAGS_FROM_END: usize = 5;

/// An answer, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// An error or an OK: its packet.
    Short(Vec<u8>),
    /// A result set.
    Rows {
        /// Count and definitions of columns.
        head: Vec<Vec<u8>>,
        /// Rows as they came.
        rows: Vec<Vec<u8>>,
        /// The last packet.
        end: Vec<u8>,
    },
}

/// What is unlike in two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// Nothing that matters.
    None,
    /// The order of rows only.
    Order,
    /// Flags of the plan, of columns or of the end, or the count of warnings only.
    End,
    /// What they say.
    Content,
}

impl Reply {
    pub(super) fn parse(bytes: &[u8], deprecate_eof: bool) -> Reply {
        let mut packets: Vec<Vec<u8>> = Packets(bytes)
            .map(|packet| packet.payload.to_vec())
            .collect();
        let first = packets.first().and_then(|payload| payload.first().copied());
        let columns = match first {
            Some(count) if packets.len() > 1 && (1..0xfb).contains(&count) => usize::from(count),
            _ => return Reply::Short(packets.pop().unwrap_or_default()),
        };
        let end = packets.pop().unwrap_or_default();
        let mut head = packets;
        let rows = head.split_off((columns + 1).min(head.len()));
        let skipped = usize::from(!deprecate_eof);
        Reply::Rows {
            head,
            rows: rows.into_iter().skip(skipped).collect(),
            end,
        }
    }

    pub(super) fn is_rows(&self) -> bool {
        // An error may come in place of the end.
        matches!(self, Reply::Rows { end, .. } if end.first() != Some(&0xff))
    }

    /// What another answer has otherwise. Rows in another order are the same unless the order was
    /// asked for.
    pub(super) fn difference(&self, other: &Reply) -> Difference {
        if self == other {
            return Difference::None;
        }
        let (
            Reply::Rows { head, rows, end },
            Reply::Rows {
                head: other_head,
                rows: other_rows,
                end: other_end,
            },
        ) = (self, other)
        else {
            return Difference::Content;
        };
        if without_column_flags(head) != without_column_flags(other_head)
            || sorted(rows) != sorted(other_rows)
        {
            return Difference::Content;
        }
        if rows != other_rows {
            return Difference::Order;
        }
        if head == other_head && without_plan(end) == without_plan(other_end) {
            return Difference::None;
        }
        Difference::End
    }

    /// Whether it has other rows, in any order; how their columns are called isn't asked.
    pub(super) fn has_other_rows(&self, other: &Reply) -> bool {
        match (self, other) {
            (Reply::Rows { rows, .. }, Reply::Rows { rows: others, .. }) => {
                sorted(rows) != sorted(others)
            }
            _ => true,
        }
    }

    /// As a person reads it beside another: its columns where these are what differs.
    pub(super) fn show(&self, other: &Reply) -> String {
        let text = |payload: &[u8]| {
            let shown: String = String::from_utf8_lossy(payload)
                .chars()
                .map(|c| if c.is_control() { '·' } else { c })
                .collect();
            shown
        };
        match self {
            Reply::Rows { head, .. } if matches!(other, Reply::Rows { head: theirs, .. } if theirs != head) =>
            {
                let shown: Vec<String> = head
                    .iter()
                    .map(|one| format!("{} {one:02x?}", text(one)))
                    .collect();
                format!("columns {}", shown.join(" | "))
            }
            Reply::Short(payload) => text(payload),
            Reply::Rows { rows, end, .. } => {
                let shown: Vec<String> = rows.iter().take(12).map(|row| text(row)).collect();
                format!("{} rows [{}] end {end:02x?}", rows.len(), shown.join(" | "))
            }
        }
    }
}

/// Definitions of columns without their flags: whether a column is a part of a key, or can be NULL,
/// is told as the plan has it (a temporary table for a `GROUP BY`, an outer join that was made an
/// inner one).
fn without_column_flags(head: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let one = |definition: &Vec<u8>| {
        let mut definition = definition.clone();
        let flags = definition.len().saturating_sub(FLAGS_FROM_END);
        if flags > 0 {
            definition[flags..flags + 2].fill(0);
        }
        definition
    };
    head.iter().map(one).collect()
}

fn sorted(rows: &[Vec<u8>]) -> Vec<&Vec<u8>> {
    let mut all: Vec<&Vec<u8>> = rows.iter().collect();
    all.sort();
    all
}

/// The end of a result set without the flags of the plan: an EOF packet has warnings and status, an
/// OK packet two numbers (both 0 here), status and warnings.
fn without_plan(end: &[u8]) -> Vec<u8> {
    let mut end = end.to_vec();
    if let [0xfe, _, _, low, high, ..] = &mut end[..] {
        let status = u16::from_le_bytes([*low, *high]) & !PLAN_FLAGS;
        [*low, *high] = status.to_le_bytes();
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&str], status: u8) -> Reply {
        Reply::Rows {
            head: vec![vec![1], b"definition".to_vec()],
            rows: rows.iter().map(|row| row.as_bytes().to_vec()).collect(),
            end: vec![0xfe, 0, 0, status, 0, 0, 0],
        }
    }

    #[test]
    fn only_what_answers_say_counts() {
        let one = rows(&["a", "b"], 2);
        assert_eq!(one.difference(&rows(&["a", "b"], 0x22)), Difference::None);
        assert_eq!(one.difference(&rows(&["b", "a"], 2)), Difference::Order);
        assert_eq!(one.difference(&rows(&["a", "b"], 3)), Difference::End);
        assert_eq!(one.difference(&rows(&["a", "a"], 2)), Difference::Content);
        assert_eq!(
            one.difference(&Reply::Short(vec![0xff])),
            Difference::Content
        );
    }
}
