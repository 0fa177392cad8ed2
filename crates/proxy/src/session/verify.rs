//! Having the server answer what memory has answered, and comparing the two.
//!
//! Remora knows no passwords, so the session asks on its client's own connection, between two
//! messages, as it does when the server has to know of a hit ([`remora_engine::session::replay`]).
//! The client has its answer by then; only its next statement waits. The server has run the
//! statement afterwards: `FOUND_ROWS()` and its like tell of it, and it isn't run again for them.
//!
//! **Only outside a transaction.** There the statement is one of its own that leaves nothing
//! behind. Inside one it would, even at `READ COMMITTED` where hits are possible: it would begin
//! the transaction in the storage engine, hold the tables' metadata locks to its end, so that
//! somebody's `ALTER TABLE` waits for it and everybody else for that; and in a transaction whose
//! isolation level isn't what it seems to be it would take the snapshot that the client's next
//! statement is to take.
//!
//! **A fault is a broken promise and nothing else.** The server may have run the statement after a
//! change that memory didn't know of yet: that is allowed for `lag_ms_max` after the change was
//! answered. So when the answers differ, it is waited until
//!
//! - the result is outdated: then the change was on its way, a *race*; or
//! - the follower has been proven to have applied all that the server had at some moment after its
//!   answer, *and* `lag_ms_max` has passed since. The second is for MySQL, which shows rows a
//!   moment before it counts them among what it has: their change is in no proof yet, but neither
//!   has its writer been answered.
//!
//! If the result may still be served by then, no change that the server's answer has seen concerns
//! it. The server is asked again; if it still answers otherwise, and the result still isn't
//! outdated, that is a fault. What can't be found so is a row that was served too long, but for
//! less time than the log took.

use std::sync::Arc;
use std::time::Duration;

use remora_cache::{Entry, InvalidationReason};
use remora_engine::key::Note;
use remora_engine::reason::{Limit, NotVerified, Stage, Verdict};
use remora_engine::session::replay::Replay;
use remora_sql::{Dialect, Digest, Statement};
use remora_wire::walker::{Ending, Summary};
use tokio::time::{Instant, sleep};

use super::{Ended, Session};
use crate::verification::comparison::{Comparison, Difference, Facts};
use crate::verification::switched_off::Switched;

/// How often it is looked whether the log has told.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Errors that tell of the result: the server would not have given it. Unknown schema, access to a
/// schema denied, unknown column, access to a table or column denied, no such table, invalid view.
const TELLING_ERRORS: [u16; 7] = [1049, 1044, 1054, 1142, 1143, 1146, 1356];

/// What the server answered.
enum Answer {
    /// As memory had, but perhaps for what doesn't count.
    Same(Verdict),
    /// Otherwise.
    Different(Facts),
}

/// What became of a result after the server had answered otherwise.
#[derive(Debug, PartialEq, Eq)]
enum Since {
    Outdated,
    StillValid,
}

impl Session {
    /// Whether results of a statement are no longer kept because of a fault.
    pub(super) fn is_switched_off(&self, statement: &[u8]) -> bool {
        let off = &self.shared.verification.off;
        let dialect = self.dialect().unwrap_or_default();
        off.has(|| remora_sql::normalise(statement, dialect, &mut Vec::new()))
    }

    /// Writes the rest of a hit to the client, then has the server answer it, too, and compares.
    pub(super) async fn verify(&mut self, entry: &Arc<Entry>, written: usize) -> Result<(), Ended> {
        self.client.write_all(&entry.response()[written..]).await?;
        self.end_trace(Stage::Write);
        if let Some(why) = self.reason_not_to_verify(entry) {
            self.shared.metrics.rare.count_not_verified(why);
            return Ok(());
        }
        let Replay { payload, .. } = self.unreplayed_hit.take();
        self.found_rows = None;
        match self.verdict_on(entry, &payload).await? {
            Ok((verdict, facts)) => {
                self.shared.metrics.rare.count_verdict(verdict);
                if let Some(facts) = facts {
                    self.found_fault(entry, &payload, &facts);
                }
            }
            Err(why) => self.shared.metrics.rare.count_not_verified(why),
        }
        Ok(())
    }

    fn reason_not_to_verify(&self, entry: &Entry) -> Option<NotVerified> {
        if !self.state.is_certainly_outside_transaction() {
            return Some(NotVerified::InTransaction);
        }
        let label = Note::of(entry).label;
        let mean = self.worker.digests.mean_miss(label).unwrap_or_default();
        (mean > self.shared.verification.timeout).then_some(NotVerified::TooSlow)
    }

    /// Asks the server, and once more if it answers otherwise for no known cause. With a fault
    /// comes what is known of it.
    async fn verdict_on(
        &mut self,
        entry: &Entry,
        payload: &[u8],
    ) -> Result<Result<(Verdict, Option<Facts>), NotVerified>, Ended> {
        match self.answer_again(entry, payload).await? {
            Ok(Answer::Same(verdict)) => return Ok(Ok((verdict, None))),
            Ok(Answer::Different(_)) => {}
            Err(why) => return Ok(Err(why)),
        }
        match self.wait_for_log(entry).await {
            Ok(Since::Outdated) => return Ok(Ok((Verdict::Race, None))),
            Ok(Since::StillValid) => {}
            Err(why) => return Ok(Err(why)),
        }
        let facts = match self.answer_again(entry, payload).await? {
            Ok(Answer::Same(_)) => return Ok(Ok((Verdict::Race, None))),
            Ok(Answer::Different(facts)) => facts,
            Err(why) => return Ok(Err(why)),
        };
        let timeline = &self.shared.timeline;
        let found = match timeline.outdated(entry.as_of(), entry.tags()) {
            Some(_) => (Verdict::Race, None),
            None => (Verdict::Fault, Some(facts)),
        };
        Ok(Ok(found))
    }

    /// Has the server answer, and compares.
    async fn answer_again(
        &mut self,
        entry: &Entry,
        payload: &[u8],
    ) -> Result<Result<Answer, NotVerified>, Ended> {
        let mut comparison = Comparison::with(entry.response());
        let Summary { ending, .. } = self
            .run_again(payload, |piece| comparison.feed(piece))
            .await?;
        if let Ending::Err(code) = ending
            && !TELLING_ERRORS.contains(&code)
        {
            return Ok(Err(NotVerified::AnswerIsError));
        }
        Ok(Ok(match comparison.end(self.capabilities()) {
            Difference::None => Answer::Same(Verdict::Equal),
            Difference::Order => Answer::Same(Verdict::Reordered),
            Difference::Content(facts) => Answer::Different(facts),
        }))
    }

    /// Waits until the log has told whether the result is outdated. The server has answered
    /// otherwise just now.
    async fn wait_for_log(&self, entry: &Entry) -> Result<Since, NotVerified> {
        let shared = &self.shared;
        let answered_ms = shared.clock.now_ms();
        let give_up = Instant::now() + shared.verification.timeout;
        loop {
            // Before the changes are looked at: whoever proves has noted them.
            let is_proven = shared.timeline.proved_at_ms() > answered_ms;
            let now_ms = shared.clock.now_ms();
            let check = shared
                .timeline
                .check_tags(entry.as_of(), entry.tags(), now_ms);
            let lag_is_over = now_ms.saturating_sub(answered_ms) > shared.verification.lag_ms_max;
            match check {
                Ok(()) if is_proven && lag_is_over => return Ok(Since::StillValid),
                Err(why) if why.invalidation().is_some() => return Ok(Since::Outdated),
                _ if Instant::now() >= give_up => return Err(NotVerified::LogBehind),
                _ => {}
            }
            if !is_proven {
                shared.upstream.wake();
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// Says all that is known of a fault, and sees to it that it isn't served again.
    fn found_fault(&self, entry: &Arc<Entry>, payload: &[u8], facts: &Facts) {
        let dialect = self.dialect().unwrap_or_default();
        let statement = self.statement_of(entry, payload);
        let mut normal = Vec::new();
        let digest = remora_sql::normalise(&statement, dialect, &mut normal);
        self.log_fault(entry, facts, &statement, (digest, &normal, dialect));
        let shared = &self.shared;
        shared
            .store
            .remove_if_same(entry, InvalidationReason::Faulty);
        if !shared.verification.disables_digest {
            return;
        }
        match shared.verification.off.switch_off(digest) {
            Switched::Already => return,
            Switched::Off => tracing::error!(
                %digest,
                "everything in memory is forgotten, and results of this digest are no longer kept until Remora is restarted"
            ),
            Switched::AllOff => {
                shared.metrics.rare.count_limit(Limit::DigestsOff);
                tracing::error!(
                    %digest,
                    "faults were found in as many digests as observe.verify_digests_off_max allows: nothing is kept any longer until Remora is restarted"
                );
            }
        }
        // After the digest is known as switched off: see `SwitchedOff::has`.
        shared.timeline.forget();
    }

    /// The text of the statement that was answered, without bound values.
    fn statement_of(&self, entry: &Entry, payload: &[u8]) -> Vec<u8> {
        let prepared = payload
            .get(1..)
            .filter(|_| payload.first() == Some(&super::questions::EXECUTE));
        let prepared = prepared
            .and_then(|body| self.statement_meant(body))
            .and_then(|id| self.prepared.get(id))
            .and_then(|statement| statement.read().ok());
        prepared.map_or_else(|| entry.text().to_vec(), |read| read.text.to_vec())
    }

    fn log_fault(
        &self,
        entry: &Entry,
        facts: &Facts,
        statement: &[u8],
        (digest, normal, dialect): (Digest, &[u8], Dialect),
    ) {
        let timeline = &self.shared.timeline;
        let schema = self.state.fingerprint();
        let schema = schema.and_then(|known| known.schema.as_deref());
        let Facts {
            at,
            kept_bytes,
            seen_bytes,
            kept_hash,
            seen_hash,
        } = facts;
        tracing::error!(
            %digest,
            statement = %String::from_utf8_lossy(normal),
            schema = schema.unwrap_or_default(),
            scope = entry.scope().number(),
            depends_on = %self.dependencies(statement, dialect),
            tags = entry.tags().len(),
            as_of = %entry.as_of().position(),
            visible = %timeline.visible(),
            applied = %timeline.applied(),
            kept_bytes,
            seen_bytes,
            first_difference = at,
            kept_hash = %format_args!("{kept_hash:032x}"),
            seen_hash = %seen_hash.map_or_else(|| "longer".to_owned(), |hash| format!("{hash:032x}")),
            "verification has found a fault: memory served what the server does not answer, though nothing in the log has outdated it"
        );
    }

    /// What a statement's result depends on, in words and without values.
    fn dependencies(&self, statement: &[u8], dialect: Dialect) -> String {
        let Statement { cacheable, .. } = match remora_sql::analyse(statement, dialect) {
            read @ Statement {
                cacheable: Ok(_), ..
            } => read,
            _ => remora_sql::analyse_prepared(statement, dialect),
        };
        let Ok(select) = cacheable else {
            return "unknown".to_owned();
        };
        let named = |name| match self.qualify(name) {
            Some((schema, table)) => format!("{schema}.{table}"),
            None => "an unknown table".to_owned(),
        };
        let tables: Vec<String> = select.tables.iter().map(named).collect();
        tables.join(", ")
    }
}
