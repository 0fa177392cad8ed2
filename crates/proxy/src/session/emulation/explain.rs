//! `EXPLAIN REMORA SELECT …`: what Remora makes of a statement in this session, for those who may
//! have it explained.

use std::sync::Arc;
use std::time::Duration;

use remora_engine::emulation::CacheType;
use remora_engine::reason::Bypass;
use remora_wire::response::ServerError;
use remora_wire::result_set::Column;

use super::super::dispatch::{Prerequisite, Step};
use super::super::{Ended, Session};
use super::listings::Table;
use super::replace::{Asked, OwnAnswer, Replacement};
use crate::explain::{DEFINITIONS_WAIT_MAX, Explainer, Explanation, Question};

/// The error of what can't be answered (`ER_UNKNOWN_ERROR`).
const UNKNOWN_ERROR: u16 = 1105;
/// As long as a request of the admin listener that waits for definitions as long as it can.
const PATIENCE: Duration = DEFINITIONS_WAIT_MAX.saturating_mul(2);

/// What is to be explained.
#[derive(Debug)]
pub(in super::super) struct Explain {
    statement: Vec<u8>,
}

impl Session {
    /// Has the server explain the statement, which needs the privileges that the statement needs.
    pub(super) fn explain_remora(
        &mut self,
        asked: Asked<'_>,
        analyze: bool,
        statement: &[u8],
    ) -> Result<Step, Ended> {
        if self.wants_settings() && self.shared.upstream.settings_query().is_some() {
            return Ok(Step::Requires(Prerequisite::LearnSettings));
        }
        if analyze {
            return self.analyze_remora(asked, statement);
        }
        let explain = Explain {
            statement: statement.to_vec(),
        };
        let hintless = self.text_without_cache_hint(statement);
        let text_sent = [b"EXPLAIN ", hintless.as_deref().unwrap_or(statement)].concat();
        self.replace_answer(asked, &text_sent, Replacement::Explained(explain))
    }

    /// The reason if results are kept on demand in this session, and the statement doesn't demand
    /// it.
    fn misses_hint(&self, statement: &[u8]) -> Option<Bypass> {
        if self.state.cache_type() != CacheType::Demand {
            return None;
        }
        let statement = remora_sql::analyse(statement, self.dialect()?);
        let select = statement.cacheable.ok()?;
        (!select.says_cache).then_some(Bypass::QueryCacheOnDemand)
    }

    /// What Remora makes of it.
    pub(super) async fn explained(&self, explain: &Explain) -> OwnAnswer {
        let session = self.state.scope().err();
        let session = session.or_else(|| self.misses_hint(&explain.statement));
        let Some(known) = self.state.fingerprint() else {
            let limits = &self.shared.emulation;
            let off = limits
                .configured_off
                .or_else(|| self.shared.upstream.state().caching_off());
            let why = session.unwrap_or(Bypass::SettingsUnknown);
            let (reason, meaning) = off.map_or((why.as_str(), why.describe()), |off| {
                (off.as_str(), off.describe())
            });
            let message = format!(
                "EXPLAIN REMORA needs to know this session's settings ({reason}: {meaning})"
            );
            return OwnAnswer::Error(ServerError::new(UNKNOWN_ERROR, "HY000", message));
        };
        let question = Question {
            statement: explain.statement.clone(),
            schema: known.schema.clone(),
            account: known.account.clone(),
            dialect: self.dialect().unwrap_or_default(),
            fingerprint: Some(known.id),
        };
        let explainer = Explainer::new(Arc::clone(&self.shared), PATIENCE);
        match explainer.explain(&question).await {
            Ok(explanation) => OwnAnswer::Rows(table(&explanation, session)),
            Err(why) => {
                let message = format!("EXPLAIN REMORA: {why}");
                OwnAnswer::Error(ServerError::new(UNKNOWN_ERROR, "HY000", message))
            }
        }
    }
}

/// An explanation, a fact in each row. `session` is why this session has nothing cached.
fn table(explanation: &Explanation, session: Option<Bypass>) -> Table {
    let mut rows = Vec::new();
    let mut put = |item: &str, value: &str| {
        rows.push(vec![Some(item.to_owned()), Some(value.to_owned())]);
    };
    put(
        "cacheable",
        if explanation.cacheable { "yes" } else { "no" },
    );
    if let Some(because) = &explanation.because {
        put("reason", because.words.reason);
        put("meaning", because.words.meaning);
        if let Some(table) = &because.table {
            put("table", table);
        }
    }
    if let Some(rule) = &explanation.ruled.by {
        put("rule", &rule.words);
    }
    if let Some(off) = explanation.caching_off {
        put("caching_off", &format!("{}: {}", off.reason, off.meaning));
    }
    if let Some(why) = session {
        put("session", &format!("{}: {}", why.as_str(), why.describe()));
    }
    if let Some(why) = explanation.only_a_sample {
        put("only_a_sample", &format!("{}: {}", why.reason, why.meaning));
    }
    for dependency in &explanation.depends_on {
        put("depends_on", &dependency.words);
    }
    for line in &explanation.dropped_by {
        put("dropped_by", line);
    }
    let held = &explanation.held;
    put("held_results", &held.results.to_string());
    put("held_servable", &held.servable.to_string());
    put("held_bytes", &held.bytes.to_string());
    Table {
        columns: vec![Column::text("item", 64), Column::text("value", 4_096)],
        rows,
    }
}
