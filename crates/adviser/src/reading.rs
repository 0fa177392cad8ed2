//! What a server said of itself, some times in a row.

use std::collections::BTreeMap;

use remora_reason::reasons;

use crate::innodb_status::InnodbStatus;
use crate::rule::Unjudged;

/// Names and values, as `SHOW GLOBAL STATUS` and `SHOW GLOBAL VARIABLES` give them. Letter case of
/// names doesn't matter: servers differ in it.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// A value as the server writes it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// A value that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Values {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Values {
        let lower = |(name, value): (N, V)| {
            let mut name = name.into();
            name.make_ascii_lowercase();
            (name, value.into())
        };
        Values(pairs.into_iter().map(lower).collect())
    }
}

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brand {
    /// MariaDB.
    MariaDb,
    /// MySQL or Percona Server.
    MySql,
}

/// Which server was read.
#[derive(Debug, Clone)]
pub struct Server {
    /// Whose it is.
    pub brand: Brand,
    /// Its version's leading numbers.
    pub release: (u32, u32, u32),
    /// Its version, as it says it.
    pub version: String,
    /// The processors that it may use. It doesn't say that itself.
    pub processors: Option<u32>,
}

/// The transaction that has been open for longest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenTransaction {
    /// The connection that has it open, as `SHOW PROCESSLIST` numbers them; 0: none, it is a
    /// prepared XA transaction.
    pub connection_id: u64,
    /// For how long it has been open, seconds.
    pub seconds: f64,
}

/// The status variables that rules go by. No others are needed in a [`Sample`].
pub const STATUS_VARIABLES: [&str; 30] = [
    "Connection_errors_max_connections",
    "Connections",
    "Created_tmp_disk_tables",
    "Created_tmp_tables",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_pages_free",
    "Innodb_buffer_pool_pages_total",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_wait_free",
    "Innodb_checkpoint_max_age",
    "Innodb_redo_log_capacity_resized",
    "Innodb_row_lock_current_waits",
    "Max_used_connections",
    "Open_table_definitions",
    "Open_tables",
    "Opened_table_definitions",
    "Opened_tables",
    "Qcache_free_blocks",
    "Qcache_hits",
    "Qcache_inserts",
    "Qcache_lowmem_prunes",
    "Qcache_total_blocks",
    "Table_open_cache_overflows",
    "Threads_connected",
    "Threads_created",
    "Threads_running",
    "Uptime",
    "Uptime_since_flush_status",
];

/// What the server said at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The moment, seconds after some fixed one.
    pub at_s: f64,
    /// Of `SHOW GLOBAL STATUS`, the [`STATUS_VARIABLES`].
    pub status: Values,
    /// `SHOW ENGINE INNODB STATUS`, or why there is none.
    pub innodb: Result<InnodbStatus, Unjudged>,
    /// `None` if none is open, or without the privilege `PROCESS`.
    pub oldest_transaction: Option<OpenTransaction>,
}

/// Statements that differ in their values only, and what they cost while the server was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The text without values.
    pub text: String,
    /// How often they ran.
    pub count: f64,
    /// The server's time for them, seconds.
    pub server_s: f64,
    /// Whether they read rows.
    pub is_read: bool,
    /// Why their results couldn't be kept, if that shows in the text.
    pub refusal: Option<String>,
}

reasons! {
    /// Why it isn't known what ran.
    NoShapes {
        Off: "off", "The performance schema is off. Set performance_schema = ON in the server's configuration file and restart it.";
        NotCounted: "not_counted", "The performance schema counts no statements. Switch on the consumer statements_digest in performance_schema.setup_consumers.";
        Unanswered: "unanswered", "The server didn't answer the question for its digests in time. Raise upstream.query_timeout_ms.";
        Forbidden: "forbidden", "The account may not read the performance schema. Grant it: GRANT SELECT ON performance_schema.events_statements_summary_by_digest TO …";
        NothingRan: "nothing_ran", "No statement of a client ended while the server was read.";
    }
}

/// What a server said, some times in a row.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Which server.
    pub server: Server,
    /// `SHOW GLOBAL VARIABLES` at the beginning.
    pub variables: Values,
    /// What ran meanwhile.
    pub shapes: Result<Vec<Shape>, NoShapes>,
    samples: Vec<Sample>,
}

/// What makes samples worthless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingError {
    /// There are fewer than two, or no time passed between the first and the last.
    TooShort,
    /// Its counters began again between them: it was restarted, or `FLUSH STATUS` ran.
    BeganAgain,
}

impl Reading {
    /// Puts it together. `samples` are in the order in which they were taken.
    ///
    /// # Errors
    /// The samples don't allow to say what happened between them.
    pub fn new(
        server: Server,
        variables: Values,
        samples: Vec<Sample>,
        shapes: Result<Vec<Shape>, NoShapes>,
    ) -> Result<Reading, ReadingError> {
        for since in ["Uptime", "Uptime_since_flush_status"] {
            let samples = samples.iter();
            let uptimes = samples.filter_map(|sample| sample.status.number(since));
            if !uptimes.is_sorted() {
                return Err(ReadingError::BeganAgain);
            }
        }
        let reading = Reading {
            server,
            variables,
            shapes,
            samples,
        };
        if reading.samples.len() < 2 || reading.seconds() <= 0.0 {
            return Err(ReadingError::TooShort);
        }
        Ok(reading)
    }

    /// From the first sample to the last, seconds; more than zero.
    pub fn seconds(&self) -> f64 {
        match (self.samples.first(), self.samples.last()) {
            (Some(first), Some(last)) => last.at_s - first.at_s,
            _ => 0.0,
        }
    }

    /// The samples, in the order in which they were taken.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<&Sample> {
        self.samples.last()
    }

    /// By how much a counter grew. `None`: the server doesn't have it, or it was set back.
    pub(crate) fn growth(&self, counter: &str) -> Option<f64> {
        let first = self.samples.first()?.status.number(counter)?;
        let grown = self.last()?.status.number(counter)? - first;
        (grown >= 0.0).then_some(grown)
    }

    /// What InnoDB said in each sample.
    pub(crate) fn each_of_innodb(
        &self,
        of: impl Fn(&InnodbStatus) -> f64,
    ) -> Result<Vec<f64>, Unjudged> {
        let all = self.samples.iter();
        all.map(|sample| sample.innodb.as_ref().map(&of).map_err(|why| *why))
            .collect()
    }

    /// What was found in each sample that tells it.
    pub(crate) fn each(&self, of: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        self.samples.iter().filter_map(of).collect()
    }

    /// What a status variable was in each sample.
    pub(crate) fn each_status(&self, name: &str) -> Vec<f64> {
        self.each(|sample| sample.status.number(name))
    }

    /// What a status variable was in the last sample.
    pub(crate) fn status(&self, name: &str) -> Option<f64> {
        self.last()?.status.number(name)
    }

    /// Whether the server is this one, of this release or a later one.
    pub(crate) fn is_since(&self, brand: Brand, release: (u32, u32, u32)) -> bool {
        self.server.brand == brand && self.server.release >= release
    }
}
