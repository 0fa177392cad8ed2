//! sqlx.

use std::fmt::Write as _;

use remora_drivers::environment::{Fallible, digest, port, tls, variable};
use remora_drivers::{Connection, Options, Value, check_all};
use sqlx::mysql::{
    MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlQueryResult, MySqlRow,
    MySqlSslMode,
};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Either, Error, Row as _,
    TypeInfo as _, ValueRef as _,
};

struct Session(MySqlConnection);

type Piece = Result<Either<MySqlQueryResult, MySqlRow>, Error>;

fn describe(error: &Error) -> String {
    match error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>())
    {
        Some(error) => format!(
            "error {} {:?} {}",
            error.number(),
            error.code(),
            error.message()
        ),
        None => format!("error {error}"),
    }
}

/// A value as the server sent it.
fn bytes(row: &MySqlRow, column: usize) -> Option<Vec<u8>> {
    row.try_get_unchecked(column)
        .unwrap_or_else(|error| Some(error.to_string().into_bytes()))
}

fn show(shown: &mut String, piece: Piece) {
    match piece {
        Ok(Either::Left(result)) => {
            let _ = writeln!(
                shown,
                "{} rows, id {}",
                result.rows_affected(),
                result.last_insert_id()
            );
        }
        Ok(Either::Right(row)) => {
            for (index, column) in row.columns().iter().enumerate() {
                let _ = write!(shown, "{} {} ", column.name(), column.type_info().name());
                let kind = row
                    .try_get_raw(index)
                    .map(|value| value.type_info().name().to_owned());
                let value = bytes(&row, index).map(|value| match String::from_utf8(value) {
                    Ok(text) if text.len() <= 1000 => text,
                    Ok(text) => digest(text.as_bytes()),
                    Err(error) => digest(error.as_bytes()),
                });
                let _ = writeln!(shown, "{kind:?} {value:?}");
            }
        }
        Err(error) => shown.push_str(&describe(&error)),
    }
}

fn bound<'q>(
    text: &str,
    values: &[Value],
) -> sqlx::query::Query<'q, sqlx::MySql, sqlx::mysql::MySqlArguments> {
    let mut query = sqlx::query(AssertSqlSafe(text.to_owned()));
    for value in values {
        query = match value.clone() {
            Value::Null => query.bind(None::<String>),
            Value::Int(number) => query.bind(number),
            Value::Double(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
            Value::Bytes(bytes) => query.bind(bytes),
        };
    }
    query
}

/// Calls a function with each piece of an answer, as it comes.
macro_rules! each {
    ($stream:expr, $then:expr) => {{
        let mut stream = $stream;
        while let Some(piece) =
            std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await
        {
            $then(piece);
        }
    }};
}

impl Connection for Session {
    const LOADS: bool = false;

    async fn connect(side: &str, options: &Options) -> Fallible<Session> {
        let mut wanted = MySqlConnectOptions::new()
            .host(&variable("HOST"))
            .port(port(side))
            .username(&options.user)
            .password(&options.password)
            .ssl_mode(MySqlSslMode::Disabled)
            .disable_statement_logging();
        if !options.schema.is_empty() {
            wanted = wanted.database(&options.schema);
        }
        if tls() {
            wanted = wanted
                .ssl_mode(MySqlSslMode::VerifyCa)
                .ssl_ca(&options.authority);
        }
        MySqlConnection::connect_with(&wanted)
            .await
            .map(Session)
            .map_err(|error| describe(&error))
    }

    async fn read(&mut self, text: &str) -> String {
        let mut shown = String::new();
        each!(
            sqlx::raw_sql(AssertSqlSafe(text.to_owned())).fetch_many(&mut self.0),
            |piece| show(&mut shown, piece)
        );
        shown
    }

    async fn execute(&mut self, text: &str, values: &[Value]) -> String {
        let mut shown = String::new();
        #[allow(deprecated, reason = "results one by one are what is to be shown")]
        let pieces = bound(text, values).fetch_many(&mut self.0);
        each!(pieces, |piece| show(&mut shown, piece));
        shown
    }

    async fn value(&mut self, text: &str, number: Option<i64>) -> Fallible<Vec<u8>> {
        let row = match number {
            None => {
                sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
                    .fetch_one(&mut self.0)
                    .await
            }
            Some(number) => {
                bound(text, &[Value::Int(number)])
                    .fetch_one(&mut self.0)
                    .await
            }
        };
        let row = row.map_err(|error| describe(&error))?;
        bytes(&row, row.len() - 1).ok_or_else(|| "NULL".to_owned())
    }

    async fn stream(&mut self, text: &str) -> Fallible<String> {
        let (mut rows, mut shown) = (0, String::new());
        each!(bound(text, &[]).fetch(&mut self.0), |row: Result<
            MySqlRow,
            Error,
        >| {
            rows += usize::from(row.is_ok());
            show(&mut shown, row.map(Either::Right));
        });
        Ok(format!("{rows} rows {}", digest(shown.as_bytes())))
    }

    async fn bulk(&mut self, text: &str, rows: Vec<Vec<Value>>) -> Fallible<()> {
        // sqlx has no way of its own: rows in one statement, some at a time.
        let (insert, places) = text.split_once("VALUES").ok_or("no VALUES")?;
        for some in rows.chunks(100) {
            let many = format!("{insert} VALUES {}", vec![places; some.len()].join(", "));
            let values: Vec<Value> = some.iter().flatten().cloned().collect();
            bound(&many, &values)
                .execute(&mut self.0)
                .await
                .map_err(|error| describe(&error))?;
        }
        Ok(())
    }

    async fn ping(&mut self) -> Fallible<()> {
        self.0.ping().await.map_err(|error| describe(&error))
    }

    async fn close(self) -> Fallible<()> {
        self.0.close().await.map_err(|error| describe(&error))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    check_all::<Session>().await;
}
