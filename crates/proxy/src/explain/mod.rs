//! `remora explain`: what Remora makes of a statement, and what it holds of it.
//!
//! It is planned by the code that plans a fill, without a session: in the default dialect, or the
//! one that is asked for, and with the default schema that is given. It registers nothing, so
//! asking changes no later result.
//!
//! | file | what it does |
//! |---|---|
//! | `held` | finds the results that are held |
//! | `ruled` | says which rule decides |
//! | `text` | the page for people |

mod held;
mod ruled;
mod text;

use std::sync::Arc;
use std::time::Duration;

use remora_cache::TableTags;
use remora_engine::facts::{CascadeParent, TableFacts};
use remora_engine::key::may_be_select;
use remora_engine::reason::{Bypass, Words};
use remora_engine::tags::explain::{Dependency, Names, explain_read};
use remora_engine::tags::{Purpose, ReadTables, ReadTags, StringConversion, check_columns};
use remora_sql::{Dialect, Refusal, Select, Statement};
use remora_upstream::catalogue::Lookup;
use serde::Serialize;
use tokio::time::{Instant, sleep};

pub use self::held::{Held, HeldResult};
pub use self::ruled::{DecidingRule, Ruled};
use crate::digests::{DigestReport, Digests};
use crate::shared::Shared;
use crate::traces::Traces;

/// How long definitions that are being loaded are waited for. Less if the HTTP connection lives
/// shorter.
pub const DEFINITIONS_WAIT_MAX: Duration = Duration::from_secs(2);
/// How often it is looked whether they have come.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The statement, as clients send it; `?` stands for bound values.
    pub statement: Vec<u8>,
    /// The default schema of the session that would send it.
    pub schema: Option<String>,
    /// That session's account, as `CURRENT_USER()` gives it: rules may depend on it.
    pub account: Option<String>,
    /// How that session's `sql_mode` makes the server read text.
    pub dialect: Dialect,
    /// Of the results in memory, count only those of sessions with these settings
    /// ([`remora_engine::settings::Fingerprint::id`]).
    pub fingerprint: Option<u64>,
}

/// Why a question has no answer. Its text says what to ask instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoExplanation {
    /// There is no statement.
    #[error("sql: got nothing, accepts a statement")]
    Empty,
    /// It is longer than any that is looked up.
    #[error(
        "sql: got a statement longer than cache.statement_bytes_max ({bytes_max} bytes); such statements pass through without being looked up"
    )]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// Which tables are meant depends on the default schema.
    #[error(
        "schema: got nothing, accepts the default schema of the session; the statement names tables without one"
    )]
    NoSchema,
}

/// What Remora makes of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The statement.
    pub statement: String,
    /// The default schema.
    pub schema: Option<String>,
    /// Whether results of it can be kept, in a session that allows it.
    pub cacheable: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
    /// The operator's rules that decide about it.
    #[serde(flatten)]
    pub ruled: Ruled,
    /// Why nothing at all is cached now, if that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caching_off: Option<Words>,
    /// Why only a sample of such results is stored now, if so. Some workers may still store all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_a_sample: Option<Words>,
    /// What its result depends on. Empty if it can't be kept.
    pub depends_on: Vec<Dependency>,
    /// What drops its result, in plain words.
    pub dropped_by: Vec<String>,
    /// What is in memory of it.
    pub held: Held,
}

/// Why results of a statement can't be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Because {
    /// The reason, with the label of `remora_statements_total{reason}`.
    #[serde(flatten)]
    pub words: Words,
    /// The table that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
}

/// Answers questions about statements.
pub struct Explainer {
    shared: Arc<Shared>,
    definitions_wait: Duration,
}

/// What keeps a result from being kept, and the table that it is about.
type Kept<T> = Result<T, (Bypass, Option<String>)>;

fn words_of(why: Bypass) -> Words {
    Words {
        reason: why.as_str(),
        meaning: why.describe(),
    }
}

impl Explainer {
    /// For a running Remora, whose HTTP connections live for `request_timeout`.
    pub(crate) fn new(shared: Arc<Shared>, request_timeout: Duration) -> Explainer {
        Explainer {
            shared,
            definitions_wait: DEFINITIONS_WAIT_MAX.min(request_timeout / 2),
        }
    }

    /// The longest statement that is explained, bytes.
    pub fn statement_bytes_max(&self) -> usize {
        self.shared.limits.statement_bytes_max
    }

    /// What was counted of each digest.
    pub fn digests(&self) -> Vec<DigestReport> {
        self.digest_table().report()
    }

    /// Where they are counted.
    pub(crate) fn digest_table(&self) -> &Digests {
        &self.shared.digests
    }

    /// Where traced statements are.
    pub(crate) fn traces(&self) -> &Traces {
        &self.shared.traces
    }

    /// Answers a question.
    ///
    /// # Errors
    /// What is wrong with the question.
    pub async fn explain(&self, question: &Question) -> Result<Explanation, NoExplanation> {
        let text = &question.statement[..];
        if text.iter().all(u8::is_ascii_whitespace) {
            return Err(NoExplanation::Empty);
        }
        let bytes_max = self.statement_bytes_max();
        if text.len() > bytes_max {
            return Err(NoExplanation::TooLong { bytes_max });
        }
        let dialect = self.shared.upstream.aged(question.dialect);
        let mut stripped = Vec::new();
        let is_stripped = self.shared.query_cache.strip_comments()
            && remora_sql::key_text(text, dialect, &mut stripped);
        let key = if is_stripped { &stripped } else { text };
        let mut ruled = Ruled::default();
        let planned = match cacheable(text, dialect) {
            Ok(select) => self.plan(&select, question, &mut ruled).await?,
            Err(why) => Err((Bypass::Statement(why), None)),
        };
        let (because, depends_on) = match planned {
            Ok(depends_on) => (None, depends_on),
            Err((why, table)) => {
                let words = words_of(why);
                (Some(Because { words, table }), Vec::new())
            }
        };
        let off = self
            .shared
            .emulation
            .configured_off
            .or_else(|| self.shared.upstream.state().caching_off());
        Ok(Explanation {
            statement: String::from_utf8_lossy(text).into_owned(),
            schema: question.schema.clone(),
            cacheable: because.is_none(),
            because,
            ruled,
            caching_off: off.map(Words::of),
            only_a_sample: self.only_a_sample(text, dialect).map(words_of),
            dropped_by: dropped_by(&depends_on),
            depends_on,
            held: held::find(&self.shared, key, question.fingerprint).await,
        })
    }

    /// Why only a sample of such statements' results is stored, if that is so.
    fn only_a_sample(&self, text: &[u8], dialect: Dialect) -> Option<Bypass> {
        let of_digest = || {
            let digest = remora_sql::normalise(text, dialect, &mut Vec::new());
            let report = self.shared.digests.report_of(Some(digest));
            report.is_some_and(|report| report.only_a_sample)
        };
        let limits = &self.shared.limits;
        limits
            .stores_only_a_sample(of_digest)
            .then_some(Bypass::NotWorthStoring)
    }

    async fn plan(
        &self,
        select: &Select,
        question: &Question,
        ruled: &mut Ruled,
    ) -> Result<Kept<Vec<Dependency>>, NoExplanation> {
        let default_schema = question.schema.as_deref();
        let names: Option<Vec<_>> = select
            .tables
            .iter()
            .map(|name| {
                let schema = name.schema_or(default_schema)?;
                Some((schema.to_owned(), name.table.clone()))
            })
            .collect();
        let names = names.ok_or(NoExplanation::NoSchema)?;
        let names = Names {
            tables: &names,
            default_schema,
        };
        let give_up = Instant::now() + self.definitions_wait;
        loop {
            let planned = self.plan_now(select, question, &names, ruled);
            let is_loading = matches!(planned, Err((Bypass::TableLoading, _)));
            if !is_loading || Instant::now() >= give_up {
                return Ok(planned);
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// As a fill is planned; by what is known now.
    fn plan_now(
        &self,
        select: &Select,
        question: &Question,
        names: &Names<'_>,
        ruled: &mut Ruled,
    ) -> Kept<Vec<Dependency>> {
        let shared = &self.shared;
        // Before anything is looked up that a later commit may replace.
        let as_of = shared
            .timeline
            .as_of()
            .ok_or((Bypass::FollowerNotLive, None))?;
        if !shared.query_cache.is_on() {
            return Err((Bypass::QueryCacheOff, None));
        }
        let tables = names.tables.iter();
        let tables: Kept<Vec<_>> = tables
            .map(|(schema, table)| self.read_table(schema, table))
            .collect();
        let tables = tables?;
        check_columns(select, &tables).map_err(|(number, why)| {
            let table = names.tables.get(number);
            let table = table.map(|(schema, table)| format!("{schema}.{table}"));
            (Bypass::Table(why), table)
        })?;
        *ruled = self.ask_rules(question, names, &tables);
        if ruled.refuses {
            return Err((Bypass::RuleRefuses, None));
        }
        let under = ReadTags {
            shapes: &shared.upstream.shapes,
            as_of,
            broken: shared.timeline.broken().tags,
            bound: &[],
            // As for a session that converts no strings.
            conversion: StringConversion::None,
            purpose: Purpose::Explanation,
        };
        let mut is_loading = None;
        let dependencies = explain_read(select, &tables, names, &under, |parent| {
            let facts = self.known_parent(parent);
            facts.unwrap_or_else(|()| {
                is_loading = Some(format!("{}.{}", parent.schema, parent.table));
                None
            })
        });
        match is_loading {
            Some(parent) => Err((Bypass::TableLoading, Some(parent))),
            None => Ok(dependencies),
        }
    }

    fn read_table(&self, schema: &str, table: &str) -> Kept<ReadTables> {
        let refused = |why| (why, Some(format!("{schema}.{table}")));
        match self.shared.upstream.catalogue.lookup(schema, table) {
            Lookup::Known(facts) => {
                facts.cacheable.map_err(|why| refused(Bypass::Table(why)))?;
                let tags = TableTags::new(schema, table);
                Ok(ReadTables { tags, facts })
            }
            Lookup::Loading => Err(refused(Bypass::TableLoading)),
            Lookup::Unavailable => Err(refused(Bypass::TableUnknown)),
        }
    }

    /// The facts of a parent; `Err` if they are being asked for.
    fn known_parent(&self, parent: &CascadeParent) -> Result<Option<Arc<TableFacts>>, ()> {
        match self
            .shared
            .upstream
            .catalogue
            .lookup(&parent.schema, &parent.table)
        {
            Lookup::Known(facts) => Ok(Some(facts)),
            Lookup::Loading => Err(()),
            Lookup::Unavailable => Ok(None),
        }
    }
}

/// What the statement reads, if its text can be cached; with `?` it counts as one that is prepared.
fn cacheable(text: &[u8], dialect: Dialect) -> Result<Select, Refusal> {
    let Statement { cacheable, .. } = remora_sql::analyse(text, dialect);
    let cacheable = match cacheable {
        Err(Refusal::Placeholder) => remora_sql::analyse_prepared(text, dialect).cacheable,
        other => other,
    };
    cacheable.and_then(|select| {
        if may_be_select(text) {
            Ok(select)
        } else {
            Err(Refusal::NotSelect)
        }
    })
}

/// What drops a result with these dependencies.
fn dropped_by(dependencies: &[Dependency]) -> Vec<String> {
    if dependencies.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut tables: Vec<&str> = Vec::new();
    for dependency in dependencies {
        if !lines.contains(&dependency.dropped_by) {
            lines.push(dependency.dropped_by.clone());
        }
        if dependency.coarse.is_none() && !tables.contains(&dependency.table.as_str()) {
            tables.push(&dependency.table);
        }
    }
    for table in tables {
        lines.push(format!(
            "changes of {table} that can't be told row by row: of its definition, TRUNCATE, rows of which the log doesn't tell these columns"
        ));
    }
    lines.push(
        "changes of everything: GRANT, REVOKE, the schema mysql, a statement that the log has as text only, a log that is lost".to_owned(),
    );
    lines
}
