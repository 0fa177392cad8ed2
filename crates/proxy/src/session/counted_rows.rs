//! `SELECT SQL_CALC_FOUND_ROWS …` and the `SELECT FOUND_ROWS()` that follows it, as a pair.
//!
//! The answer to the question is kept beside the first result, with the same tags and the same
//! `as_of`: the server has counted the rows when it read that result. It is looked up by the texts
//! of both, and served only behind a hit of that very `as_of`. So it is the count of the result
//! that the client got: one key has one fill at a time, and the count is kept only behind the fill
//! of its result. What has changed since doesn't matter; the server, too, counts the rows when it
//! reads them. If there is no such count, the server runs the hit first ([`super::replay`]).
//!
//! Only outside transactions. MySQL 8.0 warns of both statements, and answers with warnings aren't
//! kept.

use std::time::Instant;

use remora_cache::{KeyRef, Scope};
use remora_wire::packet::HEADER_BYTES;

use super::dispatch::Step;
use super::fill::Fill;
use super::questions::QUERY;
use super::{Ended, Session};
use crate::digests::Label;

/// A result that was kept, whose rows the server has counted. The question may come next.
pub(super) struct CountedRows {
    /// The question's answer is kept under the same conditions.
    pub(super) fill: Box<Fill>,
    /// What the result is looked up by.
    pub(super) key: Vec<u8>,
}

/// Whether a statement asks for the count and nothing else.
pub(super) fn is_question(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text).trim_ascii();
    let words = text.split(u8::is_ascii_whitespace);
    let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
    let [select, rows] = &words[..] else {
        return false;
    };
    select.eq_ignore_ascii_case(b"SELECT") && rows.eq_ignore_ascii_case(b"FOUND_ROWS()")
}

/// What the answer is looked up by. No statement begins so, so none is answered with it.
fn key_of(question: &[u8], counted: &[u8]) -> Vec<u8> {
    [b"\0", question, b"\0", counted].concat()
}

impl Session {
    /// The answer to this statement, which goes to the server now, is to be kept if it asks for the
    /// count of the result that was kept just before.
    pub(super) fn fill_of_count(&mut self, text: &[u8], label: Label) -> Option<Fill> {
        let counted = self.counted_rows.take()?;
        if !is_question(text) || !self.state.is_certainly_outside_transaction() {
            return None;
        }
        self.fill_text = key_of(text, &counted.key);
        let mut fill = *counted.fill;
        fill.label = label;
        Some(fill)
    }

    /// Answers a question for the count of the hit just before it. `None`: memory can't.
    pub(super) fn count_from_memory(
        &mut self,
        message: &[u8],
        text: &[u8],
        began: Instant,
    ) -> Result<Option<Step>, Ended> {
        let Some((key, scope)) = self.key_of_count(text) else {
            return Ok(None);
        };
        let as_of = self.unreplayed_hit.as_of();
        let key = KeyRef { scope, text: &key };
        let served = self.shared.store.with(&key, key.digest(), |entry| {
            let is_of_hit = as_of == Some(entry.as_of());
            is_of_hit.then(|| self.serve_unverified(entry))
        });
        match served.flatten() {
            Some(sent) => {
                let payload = message.get(HEADER_BYTES..).unwrap_or_default();
                self.after_hit(payload, None, sent?, began).map(Some)
            }
            None => Ok(None),
        }
    }

    fn key_of_count(&self, text: &[u8]) -> Option<(Vec<u8>, Scope)> {
        let (command, body) = self.unreplayed_hit.payload().split_first()?;
        if *command != QUERY
            || !is_question(text)
            || !self.state.is_certainly_outside_transaction()
            || self.may_be_elsewhere()
        {
            return None;
        }
        let counted = self.statement_text(body)?;
        let mut stripped = Vec::new();
        let key = key_of(text, self.key_text(counted, &mut stripped));
        Some((key, self.state.scope().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plain_question_counts() {
        for text in ["SELECT FOUND_ROWS()", " select  Found_Rows() ; "] {
            assert!(is_question(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "SELECT",
            "SELECT FOUND_ROWS() + 1",
            "SELECT FOUND_ROWS() AS n",
            "SELECT FOUND_ROWS(), 1",
            "SELECT 1; SELECT FOUND_ROWS()",
            "SELECT FOUND_ROWS() FROM t",
        ] {
            assert!(!is_question(text.as_bytes()), "{text}");
        }
    }
}
