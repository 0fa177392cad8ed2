//! The server's answers to `SET`s of transaction defaults.
//!
//! On one server they depend on the statement, on the session's settings and on its flags, and on
//! nothing else. So they are learnt from the server, once for each fingerprint. What Remora answers
//! in the server's place is the same to the byte, including what the server tells a client that
//! tracks its session.

use std::sync::{Arc, Mutex, PoisonError};

use remora_wire::reader::Reader;
use remora_wire::response::{EndMark, OK_MARK};
use remora_wire::{Capabilities, StatusFlags, WireError};

/// The most answers that are remembered for one fingerprint. The oldest makes room.
const ANSWERS_MAX: usize = 64;
/// A longer statement isn't remembered, nor is one with a longer answer, bytes.
const BYTES_MAX: usize = 256;
/// `SESSION_TRACK_SYSTEM_VARIABLES`
const VARIABLE: u8 = 0;
/// `SESSION_TRACK_STATE_CHANGE`
const STATE_CHANGE: u8 = 2;

/// What has been learnt for one fingerprint. Shared by its sessions.
#[derive(Debug, Default)]
pub struct SetAnswers(Mutex<Vec<KnownAnswer>>);

#[derive(Debug)]
struct KnownAnswer {
    text: Box<[u8]>,
    /// The session's flags before it.
    before: StatusFlags,
    /// Of the follower's mark at that time: another server may answer otherwise.
    mark_number: u64,
    answer: Arc<SetAnswer>,
}

/// What the server has answered once.
#[derive(Debug, PartialEq, Eq)]
pub struct SetAnswer {
    /// The OK packet's payload.
    pub payload: Box<[u8]>,
    /// What it says of the session.
    pub mark: EndMark,
}

impl SetAnswers {
    /// The answer to this text in a session with these flags, if it is known.
    pub fn get(
        &self,
        text: &[u8],
        before: StatusFlags,
        mark_number: u64,
    ) -> Option<Arc<SetAnswer>> {
        let before = before.within(StatusFlags::OF_SESSION);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known
            .iter()
            .find(|known| *known.text == *text && known.before == before)?;
        (found.mark_number == mark_number).then(|| Arc::clone(&found.answer))
    }

    /// The server has answered so to a session with these capabilities, when the follower had this
    /// mark. An answer that tells more than what the statement says, as a warning does, teaches
    /// nothing.
    pub fn learn(
        &self,
        (text, before): (&[u8], StatusFlags),
        mark_number: u64,
        payload: &[u8],
        capabilities: Capabilities,
    ) {
        let is_short = text.len() <= BYTES_MAX && payload.len() <= BYTES_MAX;
        let Some(mark) = plain_mark(payload, capabilities).filter(|_| is_short) else {
            return;
        };
        let before = before.within(StatusFlags::OF_SESSION);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| *known.text != *text || known.before != before);
        if known.len() >= ANSWERS_MAX {
            known.remove(0);
        }
        known.push(KnownAnswer {
            text: text.into(),
            before,
            mark_number,
            answer: Arc::new(SetAnswer {
                payload: payload.into(),
                mark,
            }),
        });
    }
}

/// What an OK packet says of the session, if it says no more than a `SET` outside a transaction
/// makes it say each time.
fn plain_mark(payload: &[u8], capabilities: Capabilities) -> Option<EndMark> {
    let mark = EndMark::from_ok(payload).ok()?;
    let changed = StatusFlags::SESSION_STATE_CHANGED;
    let is_plain = payload.starts_with(&[OK_MARK, 0, 0])
        && mark.warnings == 0
        && mark.status.within(StatusFlags::OF_SESSION.with(changed)) == mark.status
        && !mark.status.has(StatusFlags::IN_TRANSACTION);
    let tells_defaults = || tells_only_defaults(payload, capabilities).unwrap_or(false);
    (is_plain && (!mark.status.has(changed) || tells_defaults())).then_some(mark)
}

/// Whether what an OK packet tells of the session's state is transaction defaults, and that there
/// is something to tell. Anything else could be an earlier statement's.
fn tells_only_defaults(payload: &[u8], capabilities: Capabilities) -> Result<bool, WireError> {
    if !capabilities.has(Capabilities::SESSION_TRACK) {
        return Ok(false);
    }
    let mut reader = Reader::new(payload);
    // The mark, two counts of one byte, the flags and the warnings.
    reader.bytes(3 + 2 + 2, "OK packet")?;
    reader.length_encoded_bytes("OK packet's text")?;
    let state = reader.length_encoded_bytes("session state")?;
    let state = state.unwrap_or_default();
    let mut rest = Reader::new(state);
    while !rest.is_empty() {
        let kind = rest.u8("kind of session state")?;
        let piece = rest.length_encoded_bytes("piece of session state")?;
        let is_of_set = match kind {
            VARIABLE => {
                let mut variable = Reader::new(piece.unwrap_or_default());
                let name = variable.length_encoded_bytes("tracked variable")?;
                name.is_some_and(is_transaction_default)
            }
            STATE_CHANGE => true,
            _ => false,
        };
        if !is_of_set {
            return Ok(false);
        }
    }
    Ok(!state.is_empty() && reader.is_empty())
}

/// Whether a variable is one of those that such a `SET` sets.
fn is_transaction_default(name: &[u8]) -> bool {
    name == b"autocommit" || name.starts_with(b"tx_") || name.starts_with(b"transaction_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"SET autocommit=0";
    const ON: StatusFlags = StatusFlags::AUTOCOMMIT;
    const TRACKS: Capabilities = Capabilities::PROTOCOL_41.with(Capabilities::SESSION_TRACK);

    fn ok(status: StatusFlags, rest: &[u8]) -> Vec<u8> {
        let [low, high] = status.0.to_le_bytes();
        [&[OK_MARK, 0, 0, low, high, 0, 0], rest].concat()
    }

    fn learnt(payload: &[u8], capabilities: Capabilities) -> Option<Arc<SetAnswer>> {
        let answers = SetAnswers::default();
        answers.learn((TEXT, ON), 1, payload, capabilities);
        answers.get(TEXT, ON, 1)
    }

    #[test]
    fn the_same_statement_in_the_same_state_has_the_same_answer() {
        let answers = SetAnswers::default();
        let off = StatusFlags::default();
        assert_eq!(answers.get(TEXT, ON, 1), None);
        answers.learn((TEXT, ON), 1, &ok(off, b""), TRACKS);
        let answer = answers.get(TEXT, ON, 1).unwrap();
        assert_eq!(*answer.payload, *ok(off, b""));
        assert_eq!(answer.mark.status, off);
        let of_moment = ON.with(StatusFlags::SESSION_STATE_CHANGED);
        assert!(answers.get(TEXT, of_moment, 1).is_some());
        assert_eq!(answers.get(b"SET autocommit = 0", ON, 1), None);
        assert_eq!(answers.get(TEXT, off, 1), None);
        assert_eq!(answers.get(TEXT, ON, 2), None, "another server");
        answers.learn((TEXT, ON), 2, &ok(ON, b""), TRACKS);
        assert_eq!(answers.get(TEXT, ON, 1), None);
        assert_eq!(answers.get(TEXT, ON, 2).unwrap().mark.status, ON);
    }

    #[test]
    fn what_a_client_tracks_is_part_of_the_answer() {
        let changed = StatusFlags::SESSION_STATE_CHANGED;
        // A text without a byte, and so many bytes of state: a variable and its value.
        let tracked = |name: &str| {
            let mut variable = vec![u8::try_from(name.len()).unwrap()];
            variable.extend_from_slice(name.as_bytes());
            variable.extend_from_slice(b"\x03OFF");
            let bytes = u8::try_from(variable.len()).unwrap();
            ok(
                changed,
                &[&[0, bytes + 2, 0, bytes], &variable[..]].concat(),
            )
        };
        assert!(learnt(&tracked("autocommit"), TRACKS).is_some());
        assert!(learnt(&tracked("tx_read_only"), TRACKS).is_some());
        assert_eq!(learnt(&tracked("time_zone"), TRACKS), None, "a function's");
        let not_tracking = Capabilities::PROTOCOL_41;
        assert_eq!(learnt(&tracked("autocommit"), not_tracking), None);
        assert_eq!(learnt(&ok(changed, b"\x00\x00"), TRACKS), None, "nothing");
        let gtid = ok(changed, b"\x00\x04\x03\x02\x00\x00");
        assert_eq!(learnt(&gtid, TRACKS), None, "a GTID");
        let cut = ok(changed, b"\x00\x0a\x00");
        assert_eq!(learnt(&cut, TRACKS), None, "cut off");
    }

    #[test]
    fn an_answer_that_tells_more_teaches_nothing() {
        for status in [
            StatusFlags::IN_TRANSACTION,
            StatusFlags::MORE_RESULTS,
            StatusFlags::QUERY_WAS_SLOW,
        ] {
            assert_eq!(learnt(&ok(status, b""), TRACKS), None, "{status:?}");
        }
        assert_eq!(learnt(&[OK_MARK, 0, 0, 0, 0, 1, 0], TRACKS), None);
        assert_eq!(learnt(&[OK_MARK, 1, 0, 0, 0, 0, 0], TRACKS), None);
        assert_eq!(learnt(b"\xff\x01\x02", TRACKS), None);
        let long = ok(ON, &[0; BYTES_MAX]);
        assert_eq!(learnt(&long, TRACKS), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let answers = SetAnswers::default();
        let texts: Vec<_> = (0..=ANSWERS_MAX)
            .map(|at| format!("SET autocommit = 0 -- {at}").into_bytes())
            .collect();
        for text in &texts {
            answers.learn((text, ON), 1, &ok(ON, b""), TRACKS);
        }
        assert_eq!(answers.get(&texts[0], ON, 1), None);
        assert!(answers.get(&texts[ANSWERS_MAX], ON, 1).is_some());
    }
}
