//! `SET` of the query cache's variables.
//!
//! The server decides whether the account may: it is sent an assignment that needs the same
//! privilege and changes nothing. When it has answered OK, the change is put in force, and then its
//! OK goes to the client. An error that is not about the privilege is given by the server, too, so
//! that `SHOW WARNINGS` tells of it.

use std::time::Instant;

use remora_sql::{Dialect, FaceSet, Refusal};
use remora_wire::command::Expect;

use super::super::dispatch::Step;
use super::super::state::Effects;
use super::super::{Ended, Session};
use crate::digests::{Count, Label};
use crate::query_cache::{Change, Decision, Judge, Refused};
use crate::reason::{Bypass, Outcome};

/// Needs the privilege to set global variables and changes nothing. Every server has the variable,
/// for the indexes of `MyISAM`; none warns of it, and nobody sets it, so no other `SET` can come
/// between its two halves.
const NEEDS_PRIVILEGE: &str = "SET GLOBAL preload_buffer_size = @@global.preload_buffer_size";
/// The same without a privilege: it only says whether an `INSERT` of one row tells of its warnings.
/// A `SET`, because MySQL's `DO` is seen by `FOUND_ROWS()`.
const NEEDS_NOTHING: &str = "SET SESSION sql_warnings = @@session.sql_warnings";

/// A `SET` of the query cache's variables that is to be carried out.
pub(in super::super) struct Assigning {
    decision: Decision,
    /// What is counted under which digest, and since when it takes.
    label: Label,
    began: Instant,
    no_backslash_escapes: bool,
}

impl Session {
    pub(super) fn begin_assigning(
        &mut self,
        set: &FaceSet,
        text: &[u8],
        dialect: Dialect,
        began: Instant,
    ) -> Result<Step, Ended> {
        let judge = Judge {
            settings: &self.shared.query_cache,
            size_bytes: self.shared.store.stats().memory_bytes_max,
        };
        let assigning = Assigning {
            decision: judge.decide(set),
            label: self.label_of(text, dialect),
            began,
            no_backslash_escapes: dialect.no_backslash_escapes,
        };
        let outcome = Outcome::Bypass(Bypass::Statement(Refusal::NotSelect));
        self.count(Some(assigning.label), outcome);
        if let Some(closed) = self.unseen_hit.clear() {
            self.close_late(closed)?;
        }
        Ok(Step::Assign(Box::new(assigning)))
    }

    /// Has the server judge, changes what is to be changed, and tells the client.
    pub(in super::super) async fn assign(&mut self, assigning: Assigning) -> Result<(), Ended> {
        let Decision {
            needs_privilege,
            outcome,
        } = assigning.decision;
        let allowed = match (&outcome, needs_privilege) {
            (_, true) => self.has_answer_to(NEEDS_PRIVILEGE).await?,
            (Ok(_), false) => self.has_answer_to(NEEDS_NOTHING).await?,
            (Err(_), false) => Answer::default(),
        };
        let answer = match outcome {
            _ if allowed.is_error => allowed,
            Ok(change) => {
                self.put_in_force(&change);
                allowed
            }
            Err(refused) => {
                let no_backslash_escapes = assigning.no_backslash_escapes;
                self.refuse_assignment(&refused, no_backslash_escapes)
                    .await?
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

    async fn refuse_assignment(
        &mut self,
        refused: &Refused,
        no_backslash_escapes: bool,
    ) -> Result<Answer, Ended> {
        let statement = refused.statement(no_backslash_escapes);
        self.has_answer_to(&statement).await
    }

    /// Has the server run a statement in place of the client's.
    async fn has_answer_to(&mut self, statement: &str) -> Result<Answer, Ended> {
        let message = [self.query_head(), statement.as_bytes()].concat();
        self.server_contact_ms = self.shared.clock.now_ms();
        let mut bytes = Vec::new();
        let summary = self
            .ask(&message, Expect::Results, Some(&mut bytes))
            .await?;
        self.state.after(&Effects::NONE, None, &summary);
        Ok(Answer {
            bytes,
            is_error: !summary.succeeded(),
        })
    }

    fn put_in_force(&mut self, change: &Change) {
        let shared = &self.shared;
        let must_drop_all = shared.query_cache.change(change);
        if must_drop_all {
            shared.flush();
        }
        let global = Change {
            session_type: None,
            ..*change
        };
        if global != Change::default() {
            tracing::info!(?global, "a SET has changed the query cache's variables");
        }
        if let Some(cache_type) = change.session_type {
            self.state.set_cache_type(cache_type);
        }
    }
}

/// What the server answered.
#[derive(Default)]
struct Answer {
    bytes: Vec<u8>,
    is_error: bool,
}
