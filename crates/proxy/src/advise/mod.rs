//! Reads a server for a while, so that the adviser can say what limits it.

pub mod on_demand;
mod shapes;

use std::time::{Duration, Instant};

use remora_adviser::{
    Brand, InnodbStatus, OpenTransaction, Reading, ReadingError, Report, STATUS_VARIABLES, Sample,
    Server, Unjudged, Values, advise,
};
use remora_sql::Dialect;
use remora_upstream::UpstreamConfig;
use remora_upstream::client::{Client, ClientError, text};
use remora_upstream::server_facts::{Family, natives, release};

use self::shapes::Shapes;

/// The most status variables or variables that a server is taken to have.
const VALUES_MAX: usize = 10_000;
/// What the server says to an account that lacks a privilege.
const DENIED: [u16; 4] = [1044, 1142, 1143, 1227];

const OLDEST_TRANSACTION: &str = "SELECT trx_mysql_thread_id, \
     TIMESTAMPDIFF(SECOND, trx_started, NOW()) FROM information_schema.INNODB_TRX \
     WHERE trx_mysql_thread_id <> CONNECTION_ID() ORDER BY trx_started LIMIT 1";

/// For how long a server is read, and how often.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// From the first sample to the last.
    pub length: Duration,
    /// From one sample to the next.
    pub interval: Duration,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// The server can't be asked.
    #[error("the server at upstream.address can't be asked as follow.user: {0}")]
    Server(#[from] ClientError),
    /// Its counters began again.
    #[error("the server was restarted while it was read, or FLUSH STATUS ran: ask again")]
    BeganAgain,
    /// Nothing can be said of so short a time.
    #[error("the server was read only once: read it for longer")]
    TooShort,
}

impl From<ReadingError> for AdviseError {
    fn from(error: ReadingError) -> AdviseError {
        match error {
            ReadingError::BeganAgain => AdviseError::BeganAgain,
            ReadingError::TooShort => AdviseError::TooShort,
        }
    }
}

/// Reads the server on connections of its own and judges what it says. `progress` is called after
/// each sample, with the time since the first.
pub async fn ask(
    config: &UpstreamConfig,
    processors: Option<u32>,
    pace: Pace,
    progress: impl FnMut(Duration),
) -> Result<Report, AdviseError> {
    let mut client = remora_upstream::connect(config).await?;
    // InnoDB tells in the system's time since when a transaction is open.
    client.execute("SET SESSION time_zone = 'SYSTEM'").await?;
    let variables = values(&mut client, "SHOW GLOBAL VARIABLES").await?;
    // What it says when it is connected to can be made up.
    let version = variables.text("version").unwrap_or_default().to_owned();
    let (family, release) = (Family::of(&version), release(&version));
    let dialect = Dialect {
        // It writes `COUNT ( * )` in its texts of shapes.
        ignore_space: true,
        natives: natives(family, release),
        ..Dialect::default()
    };
    let server = Server {
        brand: match family {
            Family::MariaDb => Brand::MariaDb,
            Family::MySql => Brand::MySql,
        },
        release,
        version,
        processors,
    };
    let before = Shapes::read(config, &variables).await?;
    let samples = take_samples(&mut client, pace, progress).await?;
    client.quit().await;
    let after = Shapes::read(config, &variables).await?;
    let shapes = Shapes::between(before, after, dialect);
    let reading = Reading::new(server, variables, samples, shapes)?;
    Ok(advise(&reading))
}

async fn take_samples(
    client: &mut Client,
    pace: Pace,
    mut progress: impl FnMut(Duration),
) -> Result<Vec<Sample>, ClientError> {
    let began = Instant::now();
    let mut samples = Vec::new();
    loop {
        let at = began.elapsed();
        samples.push(sample(client, at).await?);
        progress(at);
        if at >= pace.length {
            return Ok(samples);
        }
        let next = (at + pace.interval).min(pace.length);
        tokio::time::sleep(next.saturating_sub(began.elapsed())).await;
    }
}

async fn sample(client: &mut Client, at: Duration) -> Result<Sample, ClientError> {
    Ok(Sample {
        at_s: at.as_secs_f64(),
        status: values(client, &status_question()).await?,
        innodb: innodb_status(client).await?,
        oldest_transaction: oldest_transaction(client).await?,
    })
}

fn status_question() -> String {
    let names = STATUS_VARIABLES.join("', '");
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ('{names}')")
}

async fn values(client: &mut Client, question: &str) -> Result<Values, ClientError> {
    let rows = client.query(question, VALUES_MAX).await?;
    let pair = |row| Some((text(row, 0)?.to_owned(), text(row, 1)?.to_owned()));
    Ok(rows.iter().filter_map(pair).collect())
}

async fn innodb_status(client: &mut Client) -> Result<Result<InnodbStatus, Unjudged>, ClientError> {
    let rows = match client.query("SHOW ENGINE INNODB STATUS", 1).await {
        Ok(rows) => rows,
        Err(error) if is_denied(&error) => return Ok(Err(Unjudged::NoPrivilege)),
        // It has no InnoDB.
        Err(ClientError::Server(_)) => return Ok(Err(Unjudged::NotReported)),
        Err(error) => return Err(error),
    };
    let status = rows.first().and_then(|row| row.get(2)?.as_deref());
    // The text has statements in it, in whatever their clients sent.
    let status = status.map(String::from_utf8_lossy);
    let read = status.and_then(|text| InnodbStatus::parse(&text));
    Ok(read.ok_or(Unjudged::NotReported))
}

async fn oldest_transaction(client: &mut Client) -> Result<Option<OpenTransaction>, ClientError> {
    let rows = match client.query(OLDEST_TRANSACTION, 1).await {
        Ok(rows) => rows,
        // Without the privilege nobody is to blame.
        Err(ClientError::Server(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(rows.first().and_then(|row| {
        Some(OpenTransaction {
            connection_id: text(row, 0)?.parse().ok()?,
            seconds: text(row, 1)?.parse().ok()?,
        })
    }))
}

/// Whether the account lacks the privilege for a question.
fn is_denied(error: &ClientError) -> bool {
    error
        .server_code()
        .is_some_and(|code| DENIED.contains(&code))
}
