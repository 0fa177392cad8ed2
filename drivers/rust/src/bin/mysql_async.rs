//! mysql_async.

use std::fmt::Write as _;

use mysql_async::prelude::*;
use mysql_async::{
    BinaryProtocol, Conn, Error, OptsBuilder, Params, QueryResult, SslOpts, TextProtocol,
    WhiteListFsHandler,
};
use remora_drivers::environment::{Fallible, digest, port, tls, variable};
use remora_drivers::{Connection, Options, Value, check_all};

struct Session(Conn);

fn describe(error: &Error) -> String {
    match error {
        Error::Server(error) => format!("error {} {} {}", error.code, error.state, error.message),
        other => format!("error {other}"),
    }
}

fn parameters(values: &[Value]) -> Params {
    let value = |value: &Value| match value {
        Value::Null => mysql_async::Value::NULL,
        Value::Int(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::Text(text) => (*text).into(),
        Value::Bytes(bytes) => bytes.clone().into(),
    };
    if values.is_empty() {
        Params::Empty
    } else {
        Params::Positional(values.iter().map(value).collect())
    }
}

async fn show<P: Protocol>(mut result: QueryResult<'_, '_, P>) -> String {
    let mut shown = String::new();
    loop {
        for column in result.columns_ref() {
            let _ = writeln!(
                shown,
                "{} {} {} {} {} {:?} {:?} {} {} {}",
                column.name_str(),
                column.org_name_str(),
                column.table_str(),
                column.org_table_str(),
                column.schema_str(),
                column.column_type(),
                column.flags(),
                column.character_set(),
                column.column_length(),
                column.decimals()
            );
        }
        match result.collect::<mysql_async::Row>().await {
            Ok(rows) => rows
                .into_iter()
                .flat_map(mysql_async::Row::unwrap)
                .for_each(|value| match value {
                    mysql_async::Value::Bytes(bytes) if bytes.len() > 1000 => {
                        shown += &digest(&bytes)
                    }
                    value => {
                        let _ = writeln!(shown, "{value:?}");
                    }
                }),
            Err(error) => return shown + &describe(&error),
        }
        if result.is_empty() {
            break;
        }
    }
    let _ = write!(
        shown,
        "{} rows, id {:?}, {} warnings",
        result.affected_rows(),
        result.last_insert_id(),
        result.warnings()
    );
    shown
}

impl Connection for Session {
    const LOADS: bool = true;
    // `AuthSwitchRequest::plugin_data` of mysql_common does, up to 0.37.3 at least.
    const CUTS_NONCES: bool = true;

    async fn connect(side: &str, options: &Options) -> Fallible<Session> {
        let mut builder = OptsBuilder::default()
            .ip_or_hostname(variable("HOST"))
            .tcp_port(port(side))
            .user(Some(&options.user))
            .pass(Some(&options.password))
            .prefer_socket(false)
            .max_allowed_packet(Some(64 << 20));
        if !options.schema.is_empty() {
            builder = builder.db_name(Some(&options.schema));
        }
        if let Some(file) = &options.local_file {
            builder = builder.local_infile_handler(Some(WhiteListFsHandler::new([file])));
        }
        if tls() {
            let authority = std::path::PathBuf::from(&options.authority);
            let ssl = SslOpts::default()
                .with_root_certs(vec![authority.into()])
                .with_disable_built_in_roots(true);
            builder = builder.ssl_opts(Some(ssl));
        }
        Conn::new(builder)
            .await
            .map(Session)
            .map_err(|error| describe(&error))
    }

    async fn read(&mut self, text: &str) -> String {
        match self.0.query_iter(text).await {
            Ok(result) => show::<TextProtocol>(result).await,
            Err(error) => describe(&error),
        }
    }

    async fn execute(&mut self, text: &str, values: &[Value]) -> String {
        match self.0.exec_iter(text, parameters(values)).await {
            Ok(result) => show::<BinaryProtocol>(result).await,
            Err(error) => describe(&error),
        }
    }

    async fn value(&mut self, text: &str, number: Option<i64>) -> Fallible<Vec<u8>> {
        let row: Result<Option<mysql_async::Row>, Error> = match number {
            None => self.0.query_first(text).await,
            Some(number) => self.0.exec_first(text, (number,)).await,
        };
        let row = row.map_err(|error| describe(&error))?.ok_or("no row")?;
        match row.unwrap().pop() {
            Some(mysql_async::Value::Bytes(bytes)) => Ok(bytes),
            Some(mysql_async::Value::Int(number)) => Ok(number.to_string().into_bytes()),
            other => Err(format!("not a text: {other:?}")),
        }
    }

    async fn stream(&mut self, text: &str) -> Fallible<String> {
        let mut result = self
            .0
            .query_iter(text)
            .await
            .map_err(|error| describe(&error))?;
        let (mut rows, mut all) = (0, Vec::new());
        while let Some(row) = result.next().await.map_err(|error| describe(&error))? {
            rows += 1;
            all.extend_from_slice(format!("{row:?}").as_bytes());
        }
        Ok(format!("{rows} rows {}", digest(&all)))
    }

    async fn bulk(&mut self, text: &str, rows: Vec<Vec<Value>>) -> Fallible<()> {
        let rows = rows.iter().map(|row| parameters(row));
        self.0
            .exec_batch(text, rows)
            .await
            .map_err(|error| describe(&error))
    }

    async fn ping(&mut self) -> Fallible<()> {
        self.0.ping().await.map_err(|error| describe(&error))
    }

    async fn close(self) -> Fallible<()> {
        self.0.disconnect().await.map_err(|error| describe(&error))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    check_all::<Session>().await;
}
