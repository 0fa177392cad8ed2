//! `SET` of the query cache's variables.
//!
//! A value that isn't plain, such as a user variable, the server is asked for first, all those of
//! one statement at once.
//!
//! The server decides whether the account may: it is sent an assignment that needs the same
//! privilege and changes nothing. When it has answered OK, the change is put in force, and then its
//! OK goes to the client. An error that is not about the privilege is given by the server, too, so
//! that `SHOW WARNINGS` tells of it.

use remora_engine::emulation::{Change, Decision, Judge, Refused};
use remora_engine::key::Label;
use remora_engine::reason::{Bypass, Limit, Outcome};
use remora_engine::session::state::Effects;
use remora_sql::{Dialect, EmulatedExpression, EmulatedSet, EmulatedValue, Refusal};
use remora_upstream::clock::Instant;
use remora_wire::command::ResponseKind;
use remora_wire::result_set::Parts;
use remora_wire::rows::{column_type, parse_text_row};
use remora_wire::{Capabilities, WireError};

use super::super::dispatch::{Prerequisite, Step};
use super::super::{Ended, Session};
use crate::digests::Count;

/// Needs the privilege to set global variables and changes nothing. Every server has the variable,
/// for the indexes of `MyISAM`; none warns of it, and nobody sets it, so no other `SET` can come
/// between its two halves.
const NEEDS_PRIVILEGE: &[u8] = b"SET GLOBAL preload_buffer_size = @@global.preload_buffer_size";
/// The same without a privilege: it only says whether an `INSERT` of one row tells of its warnings.
/// A `SET`, because MySQL's `DO` is seen by `FOUND_ROWS()`.
const NEEDS_NOTHING: &[u8] = b"SET SESSION sql_warnings = @@session.sql_warnings";

/// A `SET` of the query cache's variables that is to be carried out.
pub(in super::super) struct Assigning {
    set: EmulatedSet,
    /// What the server is asked for the values that aren't plain; nothing if all are.
    question: Option<Vec<u8>>,
    /// What is counted under which digest, and since when it takes.
    label: Label,
    began: Instant,
    no_backslash_escapes: bool,
}

impl Session {
    pub(super) fn begin_assigning(
        &mut self,
        set: &EmulatedSet,
        text: &[u8],
        dialect: Dialect,
        began: Instant,
    ) -> Result<Step, Ended> {
        if self.state.is_early() {
            return Ok(Step::Requires(Prerequisite::OpenTransaction));
        }
        let assigning = Assigning {
            question: self.question_for_values(set, text),
            set: set.clone(),
            label: self.label_of(text, dialect),
            began,
            no_backslash_escapes: dialect.no_backslash_escapes,
        };
        let outcome = Outcome::Bypass(Bypass::Statement(Refusal::NotSelect));
        self.count(Some(assigning.label), outcome);
        if self.unreplayed_hit.has_result() {
            self.keep_count_of_hit();
        }
        if let Some(closed) = self.unreplayed_hit.clear() {
            self.close_late(closed)?;
        }
        Ok(Step::Assign(Box::new(assigning)))
    }

    /// Has the server judge, changes what is to be changed, and tells the client.
    pub(in super::super) async fn assign(&mut self, assigning: Assigning) -> Result<(), Ended> {
        let told = match &assigning.question {
            Some(question) => Some(self.has_answer_to(question).await?),
            None => None,
        };
        let answer = match told {
            Some(told) if told.is_error => told,
            told => {
                let mut set = assigning.set;
                if let Some(told) = told
                    && (told.is_cut || fill_in(&mut set, &told.bytes, self.capabilities()).is_err())
                {
                    // No good value is that long, or in that many packets. The client gets the
                    // usual error for a bad one.
                    self.shared.metrics.rare.count_limit(Limit::MergedBytes);
                    fill_in_too_long(&mut set);
                }
                self.carry_out(&set, assigning.no_backslash_escapes).await?
            }
        };
        self.registration.answered();
        self.registration.update(&self.state);
        let took = assigning.began.elapsed();
        self.worker
            .digests
            .count(assigning.label, Count::Miss { took });
        self.worker
            .metrics
            .count_client_bytes_out(answer.bytes.len());
        self.client.write_all(&answer.bytes).await?;
        Ok(())
    }

    async fn carry_out(
        &mut self,
        set: &EmulatedSet,
        no_backslash_escapes: bool,
    ) -> Result<Answer, Ended> {
        let judge = Judge {
            settings: &self.shared.query_cache,
        };
        let Decision {
            needs_privilege,
            outcome,
        } = judge.decide(set);
        let allowed = match (&outcome, needs_privilege) {
            (_, true) => self.has_answer_to(NEEDS_PRIVILEGE).await?,
            (Ok(_), false) => self.has_answer_to(NEEDS_NOTHING).await?,
            (Err(_), false) => Answer::default(),
        };
        match outcome {
            _ if allowed.is_error => Ok(allowed),
            Ok(change) => {
                self.put_in_force(&change);
                Ok(allowed)
            }
            Err(refused) => self.refuse_assignment(&refused, no_backslash_escapes).await,
        }
    }

    /// What the server is to be asked, for values that aren't plain.
    fn question_for_values(&self, set: &EmulatedSet, text: &[u8]) -> Option<Vec<u8>> {
        let mut question = Vec::new();
        for expression in expressions(set) {
            let part = expression.start..expression.end;
            question.extend_from_slice(if question.is_empty() {
                b"SELECT "
            } else {
                b", "
            });
            question.extend(self.with_values_in(text, part, &expression.uses));
        }
        if question.is_empty() {
            return None;
        }
        // Whatever `sql_select_limit` is.
        question.extend_from_slice(b" LIMIT 1");
        Some(question)
    }

    async fn refuse_assignment(
        &mut self,
        refused: &Refused,
        no_backslash_escapes: bool,
    ) -> Result<Answer, Ended> {
        let statement = refused.statement(no_backslash_escapes);
        self.has_answer_to(statement.as_bytes()).await
    }

    /// Has the server run a statement in place of the client's.
    async fn has_answer_to(&mut self, statement: &[u8]) -> Result<Answer, Ended> {
        let message = [self.query_head(), statement].concat();
        self.server_contact_ms = self.shared.clock.now_ms();
        let bytes_max = self.shared.emulation.merged_bytes_max;
        let mut answer = Answer::default();
        let summary = self
            .ask_in_pieces(&message, ResponseKind::Results, |piece| {
                answer.take_in(piece, bytes_max);
            })
            .await?;
        self.state.after(&Effects::NONE, None, &summary);
        answer.is_error = !summary.succeeded();
        Ok(answer)
    }

    fn put_in_force(&mut self, change: &Change) {
        let shared = &self.shared;
        let must_drop_all = shared.query_cache.change(change);
        if let Some(bytes) = change.size_bytes {
            shared.store.limit_results(bytes);
        }
        if must_drop_all {
            shared.flush();
        }
        let global = Change {
            session_type: None,
            session_strips: None,
            ..*change
        };
        if global != Change::default() {
            tracing::info!(?global, "a SET has changed the query cache's variables");
        }
        if let Some(cache_type) = change.session_type {
            self.state.set_cache_type(cache_type);
        }
        if let Some(strips) = change.session_strips {
            self.state.set_strip_comments(strips);
        }
    }
}

fn expressions(set: &EmulatedSet) -> impl Iterator<Item = &EmulatedExpression> {
    let assignments = match set {
        EmulatedSet::Assignments(all) => &all[..],
        EmulatedSet::Mixed(_) => &[],
    };
    assignments.iter().filter_map(|one| match &one.value {
        EmulatedValue::Expression(expression) => Some(expression),
        _ => None,
    })
}

/// Puts the values of the server's only row in the places of the expressions, in their order.
fn fill_in(
    set: &mut EmulatedSet,
    answer: &[u8],
    capabilities: Capabilities,
) -> Result<(), WireError> {
    const WHAT: &str = "values of an assignment";
    let parts = Parts::of(answer, capabilities)?;
    let row = parts.rows.first().ok_or(WireError::Truncated(WHAT))?;
    let row = parse_text_row(row, parts.columns)?;
    // Without definitions, which clients may do without, a number is told by its digits.
    let definitions = parts.head.get(1..=parts.definitions).unwrap_or_default();
    let mut types = definitions.iter().map(|one| column_type(one));
    let mut values = row.into_iter();
    let EmulatedSet::Assignments(all) = set else {
        return Ok(());
    };
    for one in all {
        if matches!(one.value, EmulatedValue::Expression(_)) {
            let value = values.next().ok_or(WireError::Truncated(WHAT))?;
            one.value = told_value(value, types.next().transpose()?);
        }
    }
    Ok(())
}

/// `MYSQL_TYPE_TINY`, `…SHORT`, `…LONG`, `…LONGLONG`, `…INT24`.
const WHOLE_NUMBERS: [u8; 5] = [0x01, 0x02, 0x03, 0x08, 0x09];
/// `MYSQL_TYPE_DECIMAL`, `…FLOAT`, `…DOUBLE`, `…NEWDECIMAL`.
const FRACTIONS: [u8; 4] = [0x00, 0x04, 0x05, 0xf6];

fn told_value(value: Option<Vec<u8>>, of_type: Option<u8>) -> EmulatedValue {
    let Some(value) = value else {
        return EmulatedValue::Null;
    };
    let text = String::from_utf8_lossy(&value).into_owned();
    let is_whole = of_type.is_none_or(|number| WHOLE_NUMBERS.contains(&number));
    match text.parse() {
        Ok(number) if is_whole => EmulatedValue::Number(number),
        _ if of_type.is_some_and(|number| FRACTIONS.contains(&number)) => {
            EmulatedValue::Fraction(text)
        }
        _ => EmulatedValue::String(text),
    }
}

/// Replaces each expression with a value that no variable accepts.
fn fill_in_too_long(set: &mut EmulatedSet) {
    let EmulatedSet::Assignments(all) = set else {
        return;
    };
    for one in all {
        if matches!(one.value, EmulatedValue::Expression(_)) {
            one.value = EmulatedValue::String(TOO_LONG.to_owned());
        }
    }
}

/// What the error shows in place of a value that is too long to be held.
const TOO_LONG: &str = "(too long)";

/// What the server answered.
#[derive(Default)]
struct Answer {
    /// All of it, unless it is cut.
    bytes: Vec<u8>,
    /// It was too long to be held.
    is_cut: bool,
    is_error: bool,
}

impl Answer {
    fn take_in(&mut self, piece: &[u8], bytes_max: usize) {
        self.is_cut |= self.bytes.len() + piece.len() > bytes_max;
        if !self.is_cut {
            self.bytes.extend_from_slice(piece);
        }
    }
}
