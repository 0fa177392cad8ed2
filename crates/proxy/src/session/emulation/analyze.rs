//! `EXPLAIN REMORA ANALYZE SELECT …`: the statement is run as this session would run it, and the
//! client gets where the time went in place of the result.
//!
//! It is looked up, planned, sent, and its result kept, all by the code that does so for the
//! statement itself. What the server says of it, an error for instance, is what it says of the
//! statement.

use std::sync::Arc;
use std::time::Duration;

use remora_cache::Entry;
use remora_engine::key::Note;
use remora_engine::reason::{Bypass, Outcome, Stage};
use remora_upstream::clock::Instant;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;
use remora_wire::result_set::{Column, ColumnKind, ResultSet, end_mark};

use super::super::dispatch::{Prerequisite, Step};
use super::super::early::EarlyHit;
use super::super::exchange::{Plan, Relay};
use super::super::look_up::Look;
use super::super::query::Planned;
use super::super::{Ended, Session};
use super::listings::Table;
use super::replace::Asked;
use crate::digests::Count;
use crate::traces::microseconds;

impl Session {
    /// Runs the statement with a recorder.
    pub(super) fn analyze_remora(&mut self, asked: Asked<'_>, text: &[u8]) -> Result<Step, Ended> {
        let payload = [self.query_head(), text].concat();
        let payload = self.as_the_server_reads(&payload).into_owned();
        let mut message = Vec::new();
        put_message(&mut message, 0, &payload);
        // Whether this statement was drawn for a trace doesn't matter any more.
        self.begin_trace();
        let mut stripped = Vec::new();
        let key = self.key_text(text, &mut stripped);
        let place = self.place_of(key);
        let began = Instant::now();
        self.mark(Stage::Key);
        // A hit here opens a transaction whenever a plain hit would.
        let remembers = self.may_remember_hit(message.len());
        if let Some(place) = place
            && let Ok(remembers) = remembers
        {
            match self.find(place, key, began, Arc::clone) {
                Ok(entry) => {
                    let early = remembers.then(|| Box::new(EarlyHit::of(&entry)));
                    return self.analyse_hit(&entry, &payload, early, began);
                }
                Err(Look::NotNow(label, why)) => {
                    let plan = Plan {
                        counted: Some((label, began)),
                        relay: Relay::Pass.analysed(),
                        ..Plan::plain(ResponseKind::Results)
                    };
                    let plan = self.with_code_of_entry(plan, text);
                    let outcome = Outcome::Bypass(Bypass::Unservable(why));
                    return self.forward(&message, plan, outcome);
                }
                Err(Look::Outdated(entry, reason)) => self.drop_outdated(&entry, reason),
                Err(Look::Nothing | Look::NeedsSnapshot(_) | Look::Sent(_)) => {}
            }
            self.mark(Stage::LookUp);
        }
        let statement = self.analyse_miss(text, asked.dialect, place, began);
        self.mark(Stage::Analysis);
        if statement.diagnostics && !self.unreplayed_hit.is_none() {
            return Ok(Step::Requires(Prerequisite::RepeatHit));
        }
        let planned = Planned {
            text,
            dialect: asked.dialect,
            key,
            place,
            began,
            label: self.label_of_analysed(&statement, text, asked.dialect),
            worth_storing: statement.worth_storing,
            known: statement.known(),
        };
        let (mut plan, outcome) = self.plan_statement(&statement, &planned);
        if let Some(first) = self.take_look_again() {
            return Ok(Step::Requires(first));
        }
        plan.relay = plan.relay.analysed();
        self.forward(&message, plan, outcome)
    }

    /// Memory has the result. The client gets the stages, ended as the result would have ended.
    fn analyse_hit(
        &mut self,
        entry: &Entry,
        payload: &[u8],
        early: Option<Box<EarlyHit>>,
        began: Instant,
    ) -> Result<Step, Ended> {
        if let Some(recorder) = &self.trace {
            recorder.hit(entry.response().len());
        }
        let table = self.analysed();
        let (end, mark) = end_mark(entry.response(), self.capabilities())?;
        let mut set = ResultSet::begin(self.capabilities(), mark.status, &table.columns);
        for row in &table.rows {
            let fields = row.iter().map(|field| field.as_deref());
            set.row(fields.map(|field| field.map(str::as_bytes)));
        }
        let packets = set.finish_as(end);
        let written = self.client.write_now(&packets)?;
        if self.state.may_open_early() {
            self.note_early_hit(payload, early);
        }
        let (bytes, took) = (packets.len(), began.elapsed());
        self.worker.metrics.count_hit(bytes, took);
        let note = Note::of(entry);
        let hit = Count::Hit { bytes, took };
        self.worker.digests.count(note.label, hit);
        self.looked_again_for = None;
        // What the client asks about the statement before is answered as after the statement
        // itself.
        if let Some(closed) = self.unreplayed_hit.set(payload, None) {
            self.close_late(closed)?;
        }
        self.counted_rows = None;
        if note.counts_found_rows {
            self.unreplayed_hit.counts(self.count_of_hit.take());
        }
        Ok(Step::Send { packets, written })
    }

    /// Where the time went: a stage in each row, and last the whole, with what became of the
    /// statement.
    pub(super) fn analysed(&self) -> Table {
        let mut rows = Vec::new();
        let mut put = |stage: &str, took: Duration, note: String| {
            let took = format!("{:.3}", microseconds(took));
            rows.push(vec![Some(stage.to_owned()), Some(took), Some(note)]);
        };
        if let Some(recorder) = &self.trace {
            let mut total = Duration::ZERO;
            for (stage, took) in recorder.so_far().filter(|(_, took)| !took.is_zero()) {
                total += took;
                put(stage.as_str(), took, stage.describe().to_owned());
            }
            let (outcome, bytes) = recorder.outcome();
            let note = match outcome {
                Some(outcome @ Outcome::Bypass(why)) => {
                    let (label, meaning) = (why.as_str(), why.describe());
                    format!("{}, {label}; {bytes} bytes. {meaning}", outcome.as_str())
                }
                Some(outcome) => {
                    let (label, meaning) = (outcome.as_str(), outcome.describe());
                    format!("{label}; {bytes} bytes. {meaning}")
                }
                None => String::new(),
            };
            put("total", total, note);
        }
        Table {
            columns: vec![
                Column::text("stage", 64),
                Column {
                    name: "microseconds".to_owned(),
                    kind: ColumnKind::Double,
                },
                Column::text("note", 1_024),
            ],
            rows,
        }
    }
}
