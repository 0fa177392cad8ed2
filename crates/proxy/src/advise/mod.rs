//! Reads a server for a while, so that the adviser can say what limits it.

pub mod desk;
mod shapes;

use std::time::{Duration, Instant};

use remora_adviser::{
    Brand, InnodbStatus, OpenTransaction, Reading, ReadingError, Report, Sample, Server, Values,
    advise,
};
use remora_sql::Dialect;
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
    #[error("the server was restarted while it was read: ask again")]
    Restarted,
    /// Nothing can be said of so short a time.
    #[error("--seconds: the server was read only once; give it more time than --interval")]
    TooShort,
}

impl From<ReadingError> for AdviseError {
    fn from(error: ReadingError) -> AdviseError {
        match error {
            ReadingError::Restarted => AdviseError::Restarted,
            ReadingError::TooShort => AdviseError::TooShort,
        }
    }
}

/// Reads the server on a connection of its own and judges what it says. `progress` is called after
/// each sample, with the time since the first.
pub async fn ask(
    client: &mut Client,
    processors: Option<u32>,
    pace: Pace,
    mut progress: impl FnMut(Duration),
) -> Result<Report, AdviseError> {
    let variables = values(client, "SHOW GLOBAL VARIABLES").await?;
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
    let before = Shapes::read(client, &variables).await?;
    let began = Instant::now();
    let mut samples = Vec::new();
    loop {
        let at = began.elapsed();
        samples.push(sample(client, at).await?);
        progress(at);
        if at >= pace.length {
            break;
        }
        let next = (at + pace.interval).min(pace.length);
        tokio::time::sleep(next.saturating_sub(began.elapsed())).await;
    }
    let after = Shapes::read(client, &variables).await?;
    let shapes = Shapes::between(before, after, dialect);
    let reading = Reading::new(server, variables, samples, shapes)?;
    Ok(advise(&reading))
}

async fn sample(client: &mut Client, at: Duration) -> Result<Sample, ClientError> {
    Ok(Sample {
        at_s: at.as_secs_f64(),
        status: values(client, "SHOW GLOBAL STATUS").await?,
        innodb: innodb_status(client).await?,
        oldest_transaction: oldest_transaction(client).await?,
    })
}

async fn values(client: &mut Client, question: &str) -> Result<Values, ClientError> {
    let rows = client.query(question, VALUES_MAX).await?;
    let pair = |row| Some((text(row, 0)?.to_owned(), text(row, 1)?.to_owned()));
    Ok(rows.iter().filter_map(pair).collect())
}

async fn innodb_status(client: &mut Client) -> Result<Option<InnodbStatus>, ClientError> {
    let answer = client.query("SHOW ENGINE INNODB STATUS", 1).await;
    let rows = permitted(answer)?.unwrap_or_default();
    let status = rows.first().and_then(|row| row.get(2)?.as_deref());
    // The text has statements in it, in whatever their clients sent.
    Ok(status.and_then(|bytes| InnodbStatus::parse(&String::from_utf8_lossy(bytes))))
}

async fn oldest_transaction(client: &mut Client) -> Result<Option<OpenTransaction>, ClientError> {
    let rows = permitted(client.query(OLDEST_TRANSACTION, 1).await)?.unwrap_or_default();
    Ok(rows.first().and_then(|row| {
        Some(OpenTransaction {
            connection_id: text(row, 0)?.parse().ok()?,
            seconds: text(row, 1)?.parse().ok()?,
        })
    }))
}

/// An answer; `None` if the account lacks the privilege for the question.
fn permitted<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error)
            if error
                .server_code()
                .is_some_and(|code| DENIED.contains(&code)) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
