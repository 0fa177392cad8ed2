//! The checks for the Rust drivers; see ../../README.md. `src/bin` has what differs between them.

pub mod environment;

use std::time::Instant;

use environment::{
    Fallible, SIDES, WARM_UP, digest, expect, hits, hits_since, report, same, variable, words,
};

/// What a connection is made with, beyond what the runner says.
#[derive(Debug, Clone)]
pub struct Options {
    pub user: String,
    pub password: String,
    /// Empty: none.
    pub schema: String,
    /// A file that LOAD DATA LOCAL may read.
    pub local_file: Option<String>,
    /// The authority's certificate.
    pub authority: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            user: variable("USER"),
            password: variable("PASSWORD"),
            schema: variable("SCHEMA"),
            local_file: None,
            authority: variable("TLS_CA"),
        }
    }
}

/// A parameter of a prepared statement.
#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Int(i64),
    Double(f64),
    Text(&'static str),
    Bytes(Vec<u8>),
}

/// One driver's connection. What is shown is text that holds all that the driver tells; an error
/// begins with `error`.
#[allow(async_fn_in_trait, reason = "the program has one thread")]
pub trait Connection: Sized {
    /// Whether it knows LOAD DATA LOCAL.
    const LOADS: bool;
    /// Whether it cuts a zero byte off the end of what a server asks to be signed, see `log_in`.
    const CUTS_NONCES: bool = false;

    async fn connect(side: &str, options: &Options) -> Fallible<Self>;
    /// All results of a text, shown.
    async fn read(&mut self, text: &str) -> String;
    /// All results of a prepared statement, shown.
    async fn execute(&mut self, text: &str, values: &[Value]) -> String;
    /// The last value of the first row; by a prepared statement if there is a number for it.
    async fn value(&mut self, text: &str, number: Option<i64>) -> Fallible<Vec<u8>>;
    /// The number of rows and a digest of them, one by one.
    async fn stream(&mut self, text: &str) -> Fallible<String>;
    /// Inserts rows (id, name, value) in the driver's own way.
    async fn bulk(&mut self, text: &str, rows: Vec<Vec<Value>>) -> Fallible<()>;
    async fn ping(&mut self) -> Fallible<()>;
    async fn close(self) -> Fallible<()>;
}

/// A failure with the side on which it came.
fn on<T>(side: &str, outcome: Fallible<T>) -> Fallible<T> {
    outcome.map_err(|reason| format!("{side}: {reason}"))
}

async fn open<C: Connection>(side: &str) -> Fallible<C> {
    C::connect(side, &Options::default()).await
}

async fn run(connection: &mut impl Connection, texts: &[&str]) -> Fallible<()> {
    for text in texts {
        let seen = connection.read(text).await;
        expect(!seen.contains("error"), format!("{text}: {seen}"))?;
    }
    Ok(())
}

async fn read_all(connection: &mut impl Connection, texts: &[&str]) -> Vec<String> {
    let mut seen = Vec::new();
    for text in texts {
        seen.push(connection.read(text).await);
    }
    seen
}

/// Runs all checks, or those that the program's arguments name.
pub async fn check_all<C: Connection>() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    macro_rules! check {
        ($($name:ident)*) => {$(
            if wanted.is_empty() || wanted.iter().any(|one| one == stringify!($name)) {
                report(stringify!($name), $name::<C>().await);
            }
        )*};
    }
    check!(connect auth tls text prepared transactions transaction_reads errors large multi local_infile streaming bulk results own_writes);
}

async fn connect<C: Connection>() -> Fallible<()> {
    let settings = "SELECT DATABASE(), CURRENT_USER(), @@autocommit, @@sql_mode, @@time_zone, @@character_set_client, \
                    @@collation_connection, @@character_set_results";
    for schema in [variable("SCHEMA"), String::new()] {
        let options = Options {
            schema,
            ..Options::default()
        };
        let mut seen = Vec::new();
        for side in SIDES {
            let mut connection = C::connect(side, &options).await?;
            connection.ping().await?;
            seen.push(connection.read(settings).await);
            connection.close().await?;
        }
        same("settings", &seen[1], &seen[0])?;
    }
    let wrong = || "wrong".to_owned();
    for options in [
        Options {
            password: wrong(),
            ..Options::default()
        },
        Options {
            user: wrong(),
            ..Options::default()
        },
        Options {
            schema: wrong(),
            ..Options::default()
        },
    ] {
        let mut refused = Vec::new();
        for side in SIDES {
            match C::connect(side, &options).await {
                Ok(_) => return Err("a wrong login was accepted".to_owned()),
                Err(error) => refused.push(error),
            }
        }
        same("refusal", &refused[1], &refused[0])?;
    }
    Ok(())
}

/// Logs in by an account of one plugin, and shows as whom.
///
/// A driver that cuts a zero byte off the end of a nonce takes it for a terminator. ed25519's 32
/// random bytes have none: if the last of them is zero, the driver signs too few, and the server
/// refuses the login. That happens in one of 256 logins, so such a login is tried again.
async fn log_in<C: Connection>(side: &str, account: &str) -> String {
    const TRIES_MAX: u32 = 8;
    let options = Options {
        user: format!("{side}_{account}"),
        password: variable("ACCOUNTS_PASSWORD"),
        schema: String::new(),
        ..Options::default()
    };
    let mut tries = 1;
    let outcome = loop {
        let outcome = C::connect(side, &options).await;
        let is_denied = matches!(&outcome, Err(error) if error.starts_with("error 1045 "));
        if !(C::CUTS_NONCES && account == "ed25519" && is_denied) || tries == TRIES_MAX {
            break outcome;
        }
        tries += 1;
    };
    match outcome {
        Ok(mut connection) => connection
            .read("SELECT CURRENT_USER()")
            .await
            .replace(&format!("{side}_"), ""),
        Err(error) => format!("refused: {}", error.replace(&format!("{side}_"), "")),
    }
}

async fn auth<C: Connection>() -> Fallible<()> {
    let mut worked = Vec::new();
    for account in words("ACCOUNTS") {
        let mut seen = Vec::new();
        for side in SIDES {
            // The first login of an account may take a longer way than the second.
            let first = log_in::<C>(side, &account).await;
            seen.push(format!("{first}\n{}", log_in::<C>(side, &account).await));
        }
        same(&format!("login by {account}"), &seen[1], &seen[0])?;
        if !seen[0].contains("refused") {
            worked.push(account);
        }
    }
    println!("plugins {}", worked.join(" "));
    Ok(())
}

async fn tls<C: Connection>() -> Fallible<()> {
    if !environment::tls() {
        return Err("none: the run is without TLS".to_owned());
    }
    let seen = open::<C>("remora")
        .await?
        .read("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        .await;
    expect(
        seen.contains("TLS") || seen.contains("SHA"),
        format!("the server sees no TLS: {seen}"),
    )?;
    let options = Options {
        authority: variable("TLS_WRONG_CA"),
        ..Options::default()
    };
    let refused = C::connect("remora", &options).await.is_err();
    expect(
        refused,
        "a certificate of an unknown authority was accepted",
    )
}

struct Read {
    text: String,
    values: Vec<Value>,
}

fn fixed_reads() -> Vec<Read> {
    let file = std::fs::read_to_string(variable("READS")).expect("the file of reads");
    let lines = file.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| Read {
            text: line.to_owned(),
            values: Vec::new(),
        })
        .collect()
}

async fn text<C: Connection>() -> Fallible<()> {
    let queries = |tables: &str| {
        let of_table = |table: String| {
            let all = format!("SELECT * FROM {table} ORDER BY id");
            let one = move |id: i32| format!("SELECT * FROM {table} WHERE id = {id}");
            std::iter::once(all).chain((1..=5).map(one))
        };
        let texts = words(tables).into_iter().flat_map(of_table);
        texts
            .map(|text| Read {
                text,
                values: Vec::new(),
            })
            .collect::<Vec<_>>()
    };
    let cached = fixed_reads().into_iter().chain(queries("TABLES")).collect();
    reads::<C>("text", cached, queries("PASSED_TABLES"), false).await
}

async fn prepared<C: Connection>() -> Fallible<()> {
    let queries = |tables: &str| {
        let of_table = |table: String| {
            let text = format!("SELECT * FROM {table} WHERE id = ?");
            (1..=5).map(move |id| Read {
                text: text.clone(),
                values: vec![Value::Int(id)],
            })
        };
        words(tables)
            .into_iter()
            .flat_map(of_table)
            .collect::<Vec<_>>()
    };
    let mut cached: Vec<Read> = fixed_reads().into_iter().chain(queries("TABLES")).collect();
    for (text, values) in [
        (
            "SELECT id, flexible FROM t_strings WHERE flexible = ? OR text_t = ?",
            vec![Value::Text("varying"), Value::Text("text")],
        ),
        (
            "SELECT id FROM t_decimals WHERE double_f > ? ORDER BY id",
            vec![Value::Double(0.05)],
        ),
        (
            "SELECT id FROM t_blobs WHERE tiny_b = ? OR ? IS NULL ORDER BY id",
            vec![Value::Bytes(vec![255]), Value::Null],
        ),
    ] {
        cached.push(Read {
            text: text.to_owned(),
            values,
        });
    }
    reads::<C>("prepared", cached, queries("PASSED_TABLES"), true).await
}

async fn answer(connection: &mut impl Connection, read: &Read, prepared: bool) -> String {
    if prepared {
        connection.execute(&read.text, &read.values).await
    } else {
        connection.read(&read.text).await
    }
}

/// Reads directly, and then again and again through Remora, until memory answers what it can.
async fn reads<C: Connection>(
    kind: &str,
    cached: Vec<Read>,
    passed: Vec<Read>,
    prepared: bool,
) -> Fallible<()> {
    let (mut direct, mut remora) = (open::<C>("direct").await?, open::<C>("remora").await?);
    let mut expected = Vec::new();
    for read in cached.iter().chain(&passed) {
        expected.push(answer(&mut direct, read, prepared).await);
    }
    let (mut seen, until) = (0, Instant::now() + WARM_UP);
    loop {
        let before = hits();
        for (read, expected) in cached.iter().chain(&passed).zip(&expected) {
            same(
                &read.text,
                &answer(&mut remora, read, prepared).await,
                expected,
            )?;
        }
        seen = seen.max(hits_since(before, cached.len()));
        if seen == cached.len() || Instant::now() >= until {
            break;
        }
    }
    println!("hits {kind} {seen} {}", cached.len());
    Ok(())
}

const ROWS: &str = "SELECT id, value FROM w_transactions ORDER BY id";

async fn transactions<C: Connection>() -> Fallible<()> {
    let (mut one, mut other) = (open::<C>("remora").await?, open::<C>("remora").await?);
    run(
        &mut one,
        &["CREATE TABLE w_transactions (id INT PRIMARY KEY, value INT) ENGINE=InnoDB"],
    )
    .await?;
    let empty = one.read(ROWS).await;
    for _ in 0..3 {
        same("at first", &other.read(ROWS).await, &empty)?;
    }
    run(
        &mut one,
        &["BEGIN", "INSERT INTO w_transactions VALUES (1, 1)"],
    )
    .await?;
    let with_one = one.read(ROWS).await;
    expect(with_one != empty, "no row of its own")?;
    same("before the rollback", &other.read(ROWS).await, &empty)?;
    run(&mut one, &["ROLLBACK"]).await?;
    same("after the rollback", &one.read(ROWS).await, &empty)?;
    same("after the rollback", &other.read(ROWS).await, &empty)?;
    run(
        &mut one,
        &[
            "BEGIN",
            "INSERT INTO w_transactions VALUES (1, 1)",
            "SAVEPOINT s",
            "INSERT INTO w_transactions VALUES (2, 2)",
            "ROLLBACK TO SAVEPOINT s",
            "COMMIT",
        ],
    )
    .await?;
    same("after the commit", &one.read(ROWS).await, &with_one)?;
    same("after the commit", &other.read(ROWS).await, &with_one)?;
    isolation(&mut one, &mut other).await?;
    run(&mut one, &["START TRANSACTION READ ONLY"]).await?;
    let refused = one.read("INSERT INTO w_transactions VALUES (9, 9)").await;
    expect(refused.contains("1792"), refused)
}

async fn isolation(one: &mut impl Connection, other: &mut impl Connection) -> Fallible<()> {
    let value = "SELECT value FROM w_transactions WHERE id = 1";
    let mut now = 1;
    for (level, behind) in [
        ("READ UNCOMMITTED", 0),
        ("READ COMMITTED", 0),
        ("REPEATABLE READ", 1),
    ] {
        run(
            one,
            &[
                &format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
                "BEGIN",
            ],
        )
        .await?;
        same(level, &number(one, value).await?, &now.to_string())?;
        now += 1;
        run(
            other,
            &[&format!("UPDATE w_transactions SET value = {now}")],
        )
        .await?;
        same(
            level,
            &number(one, value).await?,
            &(now - behind).to_string(),
        )?;
        same(level, &number(other, value).await?, &now.to_string())?;
        run(one, &["COMMIT"]).await?;
        same(level, &number(one, value).await?, &now.to_string())?;
    }
    Ok(())
}

/// A number, as text.
async fn number(connection: &mut impl Connection, text: &str) -> Fallible<String> {
    Ok(String::from_utf8_lossy(&connection.value(text, None).await?).into_owned())
}

async fn transaction_reads<C: Connection>() -> Fallible<()> {
    let (mut direct, mut remora) = (open::<C>("direct").await?, open::<C>("remora").await?);
    let mut writer = open::<C>("direct").await?;
    let table = "CREATE TABLE w_reads (id INT PRIMARY KEY, value INT) ENGINE=InnoDB";
    let rows = "INSERT INTO w_reads VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)";
    run(&mut writer, &[table, rows]).await?;
    let expected = within_transactions(&mut direct, &mut writer).await?;
    expect(
        expected[10] != expected[11] && expected[14] != expected[15],
        format!("directly: {expected:?}"),
    )?;
    // Of the rows that nobody changes, all reads but the first of each transaction.
    let (allowed, until) = (expected.len() * 5 / 8, Instant::now() + WARM_UP);
    let mut seen = 0;
    while seen < allowed && Instant::now() < until {
        let before = hits();
        let answers = within_transactions(&mut remora, &mut writer).await?;
        same(
            "answers inside transactions",
            &answers.join("\n"),
            &expected.join("\n"),
        )?;
        seen = seen.max(hits_since(before, expected.len()));
    }
    println!("hits transactions {seen} {}", expected.len());
    Ok(())
}

/// Two transactions, and what they read: another's write in the first, an own one in the second.
async fn within_transactions<C: Connection>(
    connection: &mut C,
    writer: &mut C,
) -> Fallible<Vec<String>> {
    let mut seen = Vec::new();
    run(writer, &["UPDATE w_reads SET value = 0"]).await?;
    run(connection, &["BEGIN"]).await?;
    read_rows(connection, [1, 2, 3, 4], &mut seen).await;
    run(writer, &["UPDATE w_reads SET value = 1 WHERE id = 4"]).await?;
    read_rows(connection, [1, 2, 3, 4], &mut seen).await;
    run(connection, &["COMMIT", "BEGIN"]).await?;
    read_rows(connection, [1, 2, 3, 4], &mut seen).await;
    run(connection, &["UPDATE w_reads SET value = 2 WHERE id = 5"]).await?;
    read_rows(connection, [1, 2, 3, 5], &mut seen).await;
    run(connection, &["COMMIT"]).await?;
    Ok(seen)
}

/// Reads rows by a prepared statement, as both drivers do with values.
async fn read_rows(connection: &mut impl Connection, ids: [i64; 4], seen: &mut Vec<String>) {
    let text = "SELECT value FROM w_reads WHERE id = ?";
    for id in ids {
        seen.push(connection.execute(text, &[Value::Int(id)]).await);
    }
}

async fn errors<C: Connection>() -> Fallible<()> {
    const FAULTY: [&str; 14] = [
        "SELEC 1",
        "SELECT * FROM no_such_table",
        "SELECT no_such_column FROM t_empty",
        "SELECT 1 FROM",
        "INSERT INTO w_errors VALUES (1, 'twice')",
        "INSERT INTO w_errors VALUES (NULL, NULL)",
        "INSERT INTO w_errors VALUES (5)",
        "SELECT * FROM no_such_schema.t",
        "DROP TABLE no_such_table",
        "CALL no_such_procedure()",
        "UPDATE w_errors SET id = 2 WHERE id = 1",
        "SELECT 18446744073709551615 + 1",
        "SIGNAL SQLSTATE '45123' SET MESSAGE_TEXT = 'größe', MYSQL_ERRNO = 4321",
        "SELECT (SELECT id FROM w_errors)",
    ];
    let mut sides = Vec::new();
    for side in SIDES {
        let mut connection = open::<C>(side).await?;
        let table =
            "CREATE TABLE w_errors (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL) ENGINE=InnoDB";
        let rows = "INSERT INTO w_errors VALUES (1, 'once'), (2, 'x')";
        run(
            &mut connection,
            &["DROP TABLE IF EXISTS w_errors", table, rows],
        )
        .await?;
        let mut seen = read_all(&mut connection, &FAULTY).await;
        expect(
            seen.iter().all(|one| one.contains("error")),
            format!("{seen:?}"),
        )?;
        for text in &FAULTY[..5] {
            seen.push(connection.execute(text, &[]).await);
        }
        seen.push(
            connection
                .execute(
                    "INSERT INTO w_errors VALUES (?, ?)",
                    &[Value::Int(1), Value::Text("x")],
                )
                .await,
        );
        let mut other = open::<C>("remora").await?;
        run(
            &mut other,
            &["BEGIN", "UPDATE w_errors SET name = 'held' WHERE id = 1"],
        )
        .await?;
        run(&mut connection, &["SET innodb_lock_wait_timeout = 1"]).await?;
        seen.push(
            connection
                .read("UPDATE w_errors SET name = 'y' WHERE id = 1")
                .await,
        );
        expect(
            seen.last().is_some_and(|last| last.contains("1205")),
            format!("{seen:?}"),
        )?;
        run(&mut other, &["ROLLBACK"]).await?;
        sides.push(seen.join("\n"));
    }
    same("errors", &sides[1], &sides[0])
}

async fn large<C: Connection>() -> Fallible<()> {
    let bytes: Vec<u8> = (0..=255).collect();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (payload, hex) = (bytes.repeat(78_126), digits.repeat(78_126));
    let mut sides = Vec::new();
    for side in SIDES {
        let mut connection = open::<C>(side).await?;
        let mut seen = String::new();
        expect(!words("LARGE_LENGTHS").is_empty(), "no lengths")?;
        for word in words("LARGE_LENGTHS") {
            let whole: usize = word.parse().map_err(|_| format!("{word} is no length"))?;
            // Not alone in its row: sqlx takes what begins with so long a text for the end. The id
            // adds two bytes, which are taken off where it matters how packets end.
            let length = if whole < 0xff_ffff { whole - 2 } else { whole };
            let text = format!("SELECT id, LEFT(data, {length}) FROM large WHERE id = 1");
            let value = on(side, connection.value(&text, None).await)?;
            expect(
                value.len() == length,
                format!("{} instead of {length} bytes", value.len()),
            )?;
            seen += &digest(&value);
        }
        let table = "CREATE TABLE w_large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB";
        run(&mut connection, &["DROP TABLE IF EXISTS w_large", table]).await?;
        run(
            &mut connection,
            &[&format!("INSERT INTO w_large VALUES (1, 0x{hex})")],
        )
        .await?;
        let values = [Value::Int(2), Value::Bytes(payload.clone())];
        let insert = "INSERT INTO w_large VALUES (?, ?)";
        let written = connection.execute(insert, &values).await;
        expect(!written.contains("error"), written)?;
        for id in [1, 2] {
            let text = connection
                .value(
                    &format!("SELECT id, data FROM w_large WHERE id = {id}"),
                    None,
                )
                .await?;
            expect(text == payload, format!("text: row {id}"))?;
            let prepared = connection
                .value("SELECT data FROM w_large WHERE id = ?", Some(id))
                .await?;
            expect(prepared == payload, format!("prepared: row {id}"))?;
        }
        sides.push(seen);
    }
    same("large rows", &sides[1], &sides[0])
}

async fn multi<C: Connection>() -> Fallible<()> {
    const IDS: &str = "SELECT id FROM w_multi ORDER BY id";
    let mut sides = Vec::new();
    for side in SIDES {
        let mut connection = open::<C>(side).await?;
        let table =
            "DROP TABLE IF EXISTS w_multi; CREATE TABLE w_multi (id INT PRIMARY KEY) ENGINE=InnoDB";
        let procedure =
            "CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT COUNT(*) FROM w_multi; END";
        run(
            &mut connection,
            &[table, "DROP PROCEDURE IF EXISTS two_results", procedure],
        )
        .await?;
        let mixed = format!(
            "SELECT 1 AS a; INSERT INTO w_multi VALUES (1), (2); {IDS}; UPDATE w_multi SET id = 3 WHERE id = 2"
        );
        let call = "UPDATE w_multi SET id = 4 WHERE id = 3; CALL two_results()";
        let seen = read_all(&mut connection, &[&mixed, IDS, IDS, IDS, call, IDS]).await;
        // The drivers leave what follows an error unread.
        let mut broken = open::<C>(side).await?;
        sides.push(
            seen.join("\n")
                + &broken
                    .read("SELECT 1; SELECT * FROM no_such_table; SELECT 2")
                    .await,
        );
    }
    same("multi-statements", &sides[1], &sides[0])
}

async fn local_infile<C: Connection>() -> Fallible<()> {
    if !C::LOADS {
        return Err("none: the driver has no LOAD DATA LOCAL".to_owned());
    }
    let file = std::env::temp_dir()
        .join(format!("remora-drivers-{}.tsv", std::process::id()))
        .display()
        .to_string();
    let lines: String = (1..=5000)
        .map(|number| format!("{number}\tline {number}\n"))
        .collect();
    std::fs::write(&file, lines).map_err(|error| error.to_string())?;
    let options = Options {
        local_file: Some(file.clone()),
        ..Options::default()
    };
    let total = "SELECT COUNT(*), SUM(id), MAX(name) FROM w_local";
    let mut sides = Vec::new();
    for side in SIDES {
        let mut connection = C::connect(side, &options).await?;
        let table = "CREATE TABLE w_local (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB";
        run(&mut connection, &["DROP TABLE IF EXISTS w_local", table]).await?;
        let load = format!("LOAD DATA LOCAL INFILE '{file}' INTO TABLE w_local");
        sides.push(
            read_all(&mut connection, &[total, total, total, &load, total])
                .await
                .join("\n"),
        );
        same(
            "rows",
            &number(&mut connection, "SELECT COUNT(*) FROM w_local").await?,
            "5000",
        )?;
    }
    let _ = std::fs::remove_file(&file);
    same("LOAD DATA LOCAL", &sides[1], &sides[0])
}

async fn streaming<C: Connection>() -> Fallible<()> {
    let rows = "SELECT id, name, amount FROM many ORDER BY id";
    let join = "SELECT m.id, n.name FROM many m JOIN many n USING (id) ORDER BY id";
    let mut sides = Vec::new();
    for side in SIDES {
        let mut connection = open::<C>(side).await?;
        let mut seen = String::new();
        for text in [rows, rows, join] {
            let shown = connection.stream(text).await?;
            expect(shown.starts_with("16384 rows"), shown.clone())?;
            seen += &shown;
        }
        sides.push(seen);
    }
    same("streamed rows", &sides[1], &sides[0])
}

async fn bulk<C: Connection>() -> Fallible<()> {
    let total = "SELECT COUNT(*), SUM(id), SUM(value), MAX(name) FROM w_bulk";
    let mut sides = Vec::new();
    for side in SIDES {
        let mut connection = open::<C>(side).await?;
        let table =
            "CREATE TABLE w_bulk (id INT PRIMARY KEY, name VARCHAR(20), value INT) ENGINE=InnoDB";
        run(
            &mut connection,
            &[
                "DROP TABLE IF EXISTS w_bulk",
                table,
                total,
                total,
                total,
                "BEGIN",
            ],
        )
        .await?;
        let row = |id: i64| {
            vec![
                Value::Int(id),
                Value::Text("row"),
                if id % 7 == 0 {
                    Value::Null
                } else {
                    Value::Int(id % 7)
                },
            ]
        };
        connection
            .bulk(
                "INSERT INTO w_bulk VALUES (?, ?, ?)",
                (1..=2000).map(row).collect(),
            )
            .await?;
        run(&mut connection, &["COMMIT"]).await?;
        same(
            "rows",
            &number(&mut connection, "SELECT COUNT(*) FROM w_bulk").await?,
            "2000",
        )?;
        sides.push(connection.read(total).await);
    }
    same("bulk insert", &sides[1], &sides[0])
}

async fn results<C: Connection>() -> Fallible<()> {
    const WRITES: [&str; 10] = [
        "INSERT INTO w_results (value) VALUES (1)",
        "INSERT INTO w_results (value) VALUES (2), (3), (4)",
        "UPDATE w_results SET value = 9 WHERE id > 1",
        "UPDATE w_results SET value = 9",
        "DELETE FROM w_results WHERE id = 4",
        "INSERT INTO w_results VALUES (1, 1) ON DUPLICATE KEY UPDATE value = 8",
        "REPLACE INTO w_results VALUES (2, 2)",
        "INSERT IGNORE INTO w_results VALUES (1, 1)",
        "SHOW WARNINGS",
        "SELECT LAST_INSERT_ID()",
    ];
    const READS: [&str; 4] = [
        "SELECT id, value FROM w_results ORDER BY id",
        "SELECT FOUND_ROWS(), ROW_COUNT()",
        "SELECT value / 0, CAST(CONCAT(value, 'x') AS SIGNED) FROM w_results ORDER BY id",
        "SHOW WARNINGS",
    ];
    let mut sides = Vec::new();
    for side in SIDES {
        let mut connection = open::<C>(side).await?;
        let table = "CREATE TABLE w_results (id INT AUTO_INCREMENT PRIMARY KEY, value TINYINT) ENGINE=InnoDB";
        run(&mut connection, &["DROP TABLE IF EXISTS w_results", table]).await?;
        let mut seen = read_all(&mut connection, &WRITES).await;
        for _ in 0..3 {
            seen.extend(read_all(&mut connection, &READS).await);
        }
        let values = [Value::Int(1), Value::Int(2)];
        seen.push(
            connection
                .execute("INSERT INTO w_results (value) VALUES (?), (?)", &values)
                .await,
        );
        sides.push(seen.join("\n"));
    }
    same("results", &sides[1], &sides[0])
}

async fn own_writes<C: Connection>() -> Fallible<()> {
    let mut connection = open::<C>("remora").await?;
    let table = "CREATE TABLE w_own (id INT PRIMARY KEY, value VARCHAR(10)) ENGINE=InnoDB";
    run(
        &mut connection,
        &[table, "INSERT INTO w_own VALUES (1, 0), (2, 0)"],
    )
    .await?;
    for number in 1..=500_i64 {
        run(
            &mut connection,
            &[&format!("UPDATE w_own SET value = {number} WHERE id = 1")],
        )
        .await?;
        connection
            .execute(
                "UPDATE w_own SET value = ? WHERE id = ?",
                &[Value::Int(number), Value::Int(2)],
            )
            .await;
        for _ in 0..2 {
            let text = connection
                .value("SELECT value FROM w_own WHERE id = 1", None)
                .await?;
            expect(
                text == number.to_string().as_bytes(),
                format!("text: {text:?} instead of {number}"),
            )?;
            let prepared = connection
                .value("SELECT value FROM w_own WHERE id = ?", Some(2))
                .await?;
            expect(
                prepared == number.to_string().as_bytes(),
                format!("prepared: {prepared:?} instead of {number}"),
            )?;
        }
    }
    connection.close().await
}
