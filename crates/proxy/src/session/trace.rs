//! Tracing a share of the statements: see [`crate::traces`].
//!
//! Whether one is traced is drawn when its first bytes have come. What isn't a statement leaves no
//! trace.

use remora_engine::reason::{Outcome, Stage};
use remora_engine::session::prepared::StatementId;
use remora_upstream::clock::Instant;
use remora_wire::Capabilities;

use super::Session;
use crate::traces::{About, Parent, Recorder, TracedCommand};

impl Session {
    /// A message begins: draws whether it is traced.
    #[inline]
    pub(super) fn draw_trace(&mut self) {
        if self.worker.trace.draws() {
            self.begin_trace();
        }
    }

    #[cold]
    pub(super) fn begin_trace(&mut self) {
        self.trace = Some(Box::new(Recorder::begin()));
    }

    /// Of a traced statement, the time since the last mark was this stage's.
    #[inline]
    pub(super) fn mark(&self, stage: Stage) {
        if let Some(recorder) = &self.trace {
            recorder.mark(stage);
        }
    }

    /// Notes of a traced statement what is known of it, if it came as text; none, if the text can't
    /// be read.
    pub(super) fn trace_text(&self, stage: Stage, text: Option<&[u8]>) {
        if let Some(recorder) = &self.trace {
            recorder.note(stage, || About {
                parent: text.and_then(Parent::of_statement),
                ..self.about(TracedCommand::Query, text)
            });
        }
    }

    /// The same of an execution.
    pub(super) fn trace_execution(&self, stage: Stage, id: Option<StatementId>) {
        if let Some(recorder) = &self.trace {
            recorder.note(stage, || {
                let known = id.and_then(|id| self.prepared.get(id));
                let mut about = self.about(TracedCommand::Execute, None);
                about.statement = known.and_then(|known| {
                    let counted = self.shared.digests.about(known.label)?;
                    Some((counted.digest, counted.text.clone()))
                });
                about
            });
        }
    }

    fn about(&self, command: TracedCommand, text: Option<&[u8]>) -> About {
        let known = self.state.fingerprint();
        let text = text.filter(|text| self.tells_values_apart(text));
        let statement = text.zip(self.dialect()).map(|(text, dialect)| {
            let mut normal = Vec::new();
            let digest = remora_sql::normalise(text, dialect, &mut normal);
            (digest, String::from_utf8_lossy(&normal).into_owned())
        });
        About {
            command,
            statement,
            account: known.and_then(|known| known.account.clone()),
            schema: known.and_then(|known| known.schema.clone()),
            // Only MariaDB leaves this flag out.
            is_mariadb: !self.capabilities().has(Capabilities::MYSQL),
            parent: None,
        }
    }

    /// Memory has answered a traced message at this moment. If nothing of the answer remains to be
    /// written, that was all.
    #[cold]
    pub(super) fn trace_hit(
        &mut self,
        payload: &[u8],
        statement: Option<StatementId>,
        bytes: usize,
        answered: Instant,
    ) {
        let Some(recorder) = &self.trace else {
            return;
        };
        recorder.mark_at(Stage::Write, answered);
        recorder.hit(bytes);
        if statement.is_some() {
            self.trace_execution(Stage::Settle, statement);
        } else {
            self.trace_text(Stage::Settle, self.statement_text(&payload[1..]));
        }
    }

    /// Notes what became of a traced statement.
    pub(super) fn trace_outcome(&self, outcome: Outcome) {
        if let Some(recorder) = &self.trace {
            recorder.has_outcome(outcome);
        }
    }

    /// So many bytes of the server's answer have come.
    pub(super) fn trace_answer(&self, bytes: usize) {
        if let Some(recorder) = &self.trace {
            recorder.answered(bytes);
        }
    }

    /// The message is dealt with, and what was traced of it can be looked at. What remains of its
    /// time is this stage's.
    pub(super) fn end_trace(&mut self, stage: Stage) {
        if let Some(recorder) = self.trace.take()
            && let Some(trace) = recorder.finish(stage)
        {
            self.shared.traces.add(trace);
        }
    }
}
