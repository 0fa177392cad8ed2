//! What a stored result says of itself to whoever finds it.

use remora_cache::Entry;

use super::Label;

/// What a stored result carries for whoever finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// What it is counted under.
    pub label: Label,
    /// Whether the server, when it gives this answer, makes the snapshot of a transaction that has
    /// none.
    pub makes_snapshot: bool,
    /// Whether the server has counted rows for a later `FOUND_ROWS()`.
    pub counts_found_rows: bool,
}

/// The bits of a note beside the label's.
const MAKES_SNAPSHOT: u32 = 1 << Label::BITS;
const COUNTS_FOUND_ROWS: u32 = MAKES_SNAPSHOT << 1;

impl Note {
    /// As a number.
    #[inline]
    pub fn number(self) -> u32 {
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        self.label.number()
            | bit(self.makes_snapshot, MAKES_SNAPSHOT)
            | bit(self.counts_found_rows, COUNTS_FOUND_ROWS)
    }

    /// That of an entry.
    #[inline]
    pub fn of(entry: &Entry) -> Note {
        Note::from_number(entry.label())
    }

    /// What [`Note::number`] gave.
    #[inline]
    pub fn from_number(number: u32) -> Note {
        Note {
            label: Label::from_number(number & (MAKES_SNAPSHOT - 1)),
            makes_snapshot: number & MAKES_SNAPSHOT != 0,
            counts_found_rows: number & COUNTS_FOUND_ROWS != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_keeps_its_label() {
        let label = Label::from_number(MAKES_SNAPSHOT - 1);
        for (makes_snapshot, counts_found_rows) in [(false, true), (true, false)] {
            let number = Note {
                label,
                makes_snapshot,
                counts_found_rows,
            }
            .number();
            assert_eq!(number & (MAKES_SNAPSHOT - 1), label.number());
            assert_eq!(number & MAKES_SNAPSHOT != 0, makes_snapshot);
            assert_eq!(number & COUNTS_FOUND_ROWS != 0, counts_found_rows);
        }
    }
}
