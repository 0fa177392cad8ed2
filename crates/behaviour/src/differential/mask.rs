//! What differs between two runs of the same statement on the same server, whatever stands between.
//!
//! A statement's mask is named where the statement is. It takes out the rows (and an error's words,
//! and what an OK says of the session), no more: their number, the columns, the warnings and the
//! status are still compared. [`Mask::Sessions`] takes out the number of rows, too, and
//! [`Mask::Place`] the width of the columns.
//!
//! Without being named, these are masked: the number of a prepared statement
//! ([`hide_statement_number`]), and packets' numbers on compressed connections, which servers take
//! from the compressed packets, cut as it comes.

use remora_wire::{Capabilities, StatusFlags};

use remora_testkit::client::Packets;

/// Why a statement's rows can't be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// They tell the time.
    Clock,
    /// They tell the connection's number.
    Connection,
    /// They list the server's sessions. How many there are isn't compared either.
    Sessions,
    /// They are drawn at random or unique.
    Chance,
    /// They count what happened on the server so far.
    Counters,
    /// They tell a place in the binary log, or the number of a transaction.
    Place,
    /// They tell how long something took.
    Duration,
    /// Only the flags that say whether an index was used aren't compared.
    Plan,
}

impl Mask {
    /// All of them.
    pub const ALL: [Mask; 8] = [
        Mask::Clock,
        Mask::Connection,
        Mask::Sessions,
        Mask::Chance,
        Mask::Counters,
        Mask::Place,
        Mask::Duration,
        Mask::Plan,
    ];

    /// Its name in a case file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mask::Clock => "clock",
            Mask::Connection => "connection",
            Mask::Sessions => "sessions",
            Mask::Chance => "chance",
            Mask::Counters => "counters",
            Mask::Place => "place",
            Mask::Duration => "duration",
            Mask::Plan => "plan",
        }
    }

    /// Why it must be.
    pub const fn describe(self) -> &'static str {
        match self {
            Mask::Clock => "The time goes on between the two runs.",
            Mask::Connection => "Each connection has a number of its own on the server.",
            Mask::Sessions => "A session that has ended stays in the list for a while.",
            Mask::Chance => "Chance has no memory of the other run.",
            Mask::Counters => {
                "The server counts on from the one run to the other, and Remora asks things of its own."
            }
            Mask::Place => {
                "What the first run wrote stands in the log before what the second writes."
            }
            Mask::Duration => "No statement takes the same time twice.",
            Mask::Plan => {
                "MySQL 8 reads its dictionary by statistics that it gathers when it likes."
            }
        }
    }

    /// The mask of this name.
    pub fn parse(name: &str) -> Option<Mask> {
        Mask::ALL.into_iter().find(|mask| mask.as_str() == name)
    }
}

/// Where a walk over an answer's packets is.
enum Place {
    First,
    Definitions(usize),
    DefinitionsEnd,
    Rows,
}

/// The packets of an answer as they are compared: number and payload, what is masked replaced by
/// its mask's name.
pub fn visible_packets(
    bytes: &[u8],
    mask: Option<Mask>,
    capabilities: Capabilities,
) -> Vec<(u8, Vec<u8>)> {
    let packets = Packets(bytes).map(|packet| (packet.sequence, packet.payload.to_vec()));
    let Some(mask) = mask else {
        return packets.collect();
    };
    if mask == Mask::Plan {
        return packets.map(without_plan_flags).collect();
    }
    let mut place = Place::First;
    let masked = packets.map(|(sequence, payload)| {
        let was_in_rows = matches!(place, Place::Rows);
        let payload = masked(&mut place, payload, mask, capabilities);
        (sequence, payload, was_in_rows)
    });
    if mask != Mask::Sessions {
        return masked
            .map(|(sequence, payload, _)| (sequence, payload))
            .collect();
    }
    // The end's own number tells how many rows there were.
    masked
        .map(|(sequence, payload, was_in_rows)| (if was_in_rows { 0 } else { sequence }, payload))
        .filter(|(_, payload)| payload != mask.as_str().as_bytes())
        .collect()
}

fn masked(place: &mut Place, payload: Vec<u8>, mask: Mask, capabilities: Capabilities) -> Vec<u8> {
    let first = payload.first().copied().unwrap_or_default();
    match place {
        _ if first == 0xff => cut(payload, 9, mask),
        Place::First if first == 0 => cut(payload, 7, mask),
        Place::First => {
            *place = Place::Definitions(usize::from(first));
            payload
        }
        Place::Definitions(left) => {
            *left -= 1;
            let payload = if mask == Mask::Place {
                without_display_width(payload)
            } else {
                payload
            };
            if *left == 0 {
                *place = if capabilities.has(Capabilities::DEPRECATE_EOF) {
                    Place::Rows
                } else {
                    Place::DefinitionsEnd
                };
            }
            payload
        }
        Place::DefinitionsEnd => {
            *place = Place::Rows;
            payload
        }
        Place::Rows if first == 0xfe && payload.len() < 9 => {
            *place = Place::First;
            payload
        }
        Place::Rows => mask.as_str().as_bytes().to_vec(),
    }
}

/// Takes the statement's number out of the answer to a preparation: MariaDB counts the statements
/// of all connections together.
pub fn hide_statement_number(packets: &mut [(u8, Vec<u8>)]) {
    if let Some((_, payload)) = packets.first_mut()
        && payload.first() == Some(&0)
        && let Some(number) = payload.get_mut(1..5)
    {
        number.fill(0);
    }
}

/// Takes the column's width out of its definition. Where the server lists transactions, that is as
/// long as the list.
fn without_display_width(mut payload: Vec<u8>) -> Vec<u8> {
    // Behind it: type, flags, decimals and two empty bytes.
    const BEHIND: usize = 1 + 2 + 1 + 2;
    const WIDTH: usize = 4;
    if let Some(start) = payload.len().checked_sub(BEHIND + WIDTH) {
        payload[start..start + WIDTH].fill(0);
    }
    payload
}

/// Takes the flags of [`Mask::Plan`] out of what ends a result set, of either form.
fn without_plan_flags((sequence, mut payload): (u8, Vec<u8>)) -> (u8, Vec<u8>) {
    const STATUS_AT: usize = 3;
    let plan = StatusFlags::NO_INDEX.with(StatusFlags::NO_GOOD_INDEX);
    if payload.first() == Some(&0xfe) && payload.len() < 9 && payload.len() > STATUS_AT {
        payload[STATUS_AT] &= !plan.0.to_le_bytes()[0];
    }
    (sequence, payload)
}

/// The beginning, which is no matter of the mask.
fn cut(mut payload: Vec<u8>, keep: usize, mask: Mask) -> Vec<u8> {
    if payload.len() > keep {
        payload.truncate(keep);
        payload.extend_from_slice(mask.as_str().as_bytes());
    }
    payload
}

#[cfg(test)]
mod tests {
    use remora_wire::packet::put_message;

    use super::*;

    fn answer(packets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sequence = 1;
        for payload in packets {
            sequence = put_message(&mut bytes, sequence, payload);
        }
        bytes
    }

    #[test]
    fn a_mask_hides_rows_and_nothing_else() {
        let one = answer(&[b"\x01", b"def", b"\x03abc", b"\xfe\0\0\x02\0\0\0"]);
        let other = answer(&[b"\x01", b"def", b"\x01x", b"\xfe\0\0\x02\0\0\0"]);
        let flags = Capabilities::DEPRECATE_EOF;
        let seen = |bytes: &[u8], mask| visible_packets(bytes, mask, flags);
        assert_ne!(seen(&one, None), seen(&other, None));
        let mask = Some(Mask::Clock);
        assert_eq!(seen(&one, mask), seen(&other, mask));
        for different in [
            answer(&[b"\x01", b"dEf", b"\x01x", b"\xfe\0\0\x02\0\0\0"]),
            answer(&[b"\x01", b"def", b"\x01x", b"\xfe\0\0\x03\0\0\0"]),
            answer(&[b"\x01", b"def", b"\x01x", b"\x01x", b"\xfe\0\0\x02\0\0\0"]),
            answer(&[b"\xff\x10\x04#42000words"]),
        ] {
            assert_ne!(seen(&one, mask), seen(&different, mask));
        }
        let more = answer(&[b"\x01", b"def", b"\x01x", b"\x01y", b"\xfe\0\0\x02\0\0\0"]);
        let sessions = Some(Mask::Sessions);
        assert_eq!(seen(&one, sessions), seen(&more, sessions));
        let renamed = answer(&[b"\x01", b"dEf", b"\x01x", b"\xfe\0\0\x02\0\0\0"]);
        assert_ne!(seen(&one, sessions), seen(&renamed, sessions));
        let wide = [
            answer(&[
                b"\x01",
                b"def\x0c\x2d\0\xa0\0\0\0\xfd\x01\0\x1f\0\0",
                b"\x01x",
            ]),
            answer(&[
                b"\x01",
                b"def\x0c\x2d\0\xa4\0\0\0\xfd\x01\0\x1f\0\0",
                b"\x01x",
            ]),
        ];
        let place = Some(Mask::Place);
        assert_eq!(seen(&wide[0], place), seen(&wide[1], place));
        assert_ne!(seen(&wide[0], mask), seen(&wide[1], mask));
        let errors = [
            answer(&[b"\xff\x10\x04#42000one"]),
            answer(&[b"\xff\x10\x04#42000two"]),
        ];
        assert_eq!(seen(&errors[0], mask), seen(&errors[1], mask));
    }
}
