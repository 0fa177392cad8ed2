//! From a test file of the server's to one that tells where it is and lets Remora come to rest.

use std::fmt::Write as _;

/// Stands before what a statement prints, with the number of its line.
pub const MARK: &str = "#line ";

/// Beginnings of what is left out, in lower case: what asks of the server how it was built, and
/// what sets the query cache's variables: both run with it switched on, and with the same size.
const LEFT_OUT: [&str; 16] = [
    "source include/have_",
    "source include/not_",
    "source include/no_",
    "source include/long_",
    "source include/default_charset",
    "source include/count_sessions",
    "source include/wait_until_count_sessions",
    "source include/check_var_limit",
    "set global query_cache_",
    "set local query_cache_",
    "set session query_cache_",
    "set query_cache_",
    "set @@query_cache_",
    "set @@global.query_cache_",
    "set global sql_mode",
    "set @@global.sql_mode",
];

/// Beginnings of statements before which there is something to wait for.
const WAITED_FOR: [&str; 8] = [
    "select", "(select", "show", "execute", "eval", "call", "flush", "reset",
];

/// A command of the client, or a statement, with the comments and commands that stand before it.
#[derive(Default)]
struct Part {
    line: usize,
    /// Lines that begin with `--` or `#`.
    before: String,
    text: String,
}

/// The script, and its statements by their lines.
#[derive(Default)]
pub struct Script {
    /// What the client gets.
    pub text: String,
    /// What stands in each line at which it waits: the line, the schema, the statement.
    pub statements: Vec<(usize, String, String)>,
    /// What ends a statement.
    delimiter: String,
    /// The default schema, as far as the file says so.
    schema: String,
    /// Whether another connection than the first is spoken on.
    elsewhere: bool,
}

/// How a file is run.
pub struct Manner<'m> {
    /// What the client runs before a statement, with the line's number behind it.
    pub wait: Option<&'m str>,
    /// Lines that are left out, first and last.
    pub skipped: &'m [(usize, usize)],
    /// The first session begins anew when tables are dropped, so that what one section did to it
    /// isn't left to the next.
    pub begins_anew: bool,
}

/// Reads a test file.
pub fn prepare(source: &str, manner: &Manner<'_>) -> Script {
    let mut script = Script {
        schema: "test".to_owned(),
        delimiter: ";".to_owned(),
        ..Script::default()
    };
    // Whatever another file has left is gone, and both count from here.
    let _ = writeln!(
        script.text,
        "reset query cache;\nflush status;\n--echo {MARK}base\nshow status like 'Qcache\\_%';"
    );
    let mut part = Part::default();
    for (index, line) in source.lines().enumerate() {
        let number = index + 1;
        let mut skipped = manner.skipped.iter();
        if skipped.any(|(from, to)| (*from..=*to).contains(&number)) {
            continue;
        }
        let trimmed = line.trim();
        if part.text.is_empty() {
            if trimmed.is_empty() {
                continue;
            }
            if let Some(next) = trimmed.strip_prefix("--delimiter ") {
                next.trim().clone_into(&mut script.delimiter);
            }
            if trimmed.starts_with('#') || trimmed.starts_with("--") {
                put_command(&mut part.before, trimmed);
                continue;
            }
            part.line = number;
        }
        part.text.push_str(line);
        part.text.push('\n');
        let code = trimmed.split(" #").next().unwrap_or_default().trim_end();
        let is_block = matches!(trimmed, "{" | "}");
        if code.ends_with(&script.delimiter) || is_block {
            let text = part.text.trim().to_lowercase();
            if let Some(rest) = text.strip_prefix("delimiter ") {
                let next = rest
                    .strip_suffix(script.delimiter.as_str())
                    .unwrap_or(rest)
                    .trim();
                next.clone_into(&mut script.delimiter);
            }
            put(&mut script, &std::mem::take(&mut part), manner);
        }
    }
    script.text.push_str(&part.before);
    script
}

/// A line that begins with `--` or `#`, unless it is left out.
fn put_command(before: &mut String, line: &str) {
    let command = line.trim_start_matches('-').trim_start().to_lowercase();
    if line.starts_with('#') || LEFT_OUT.iter().any(|start| command.starts_with(start)) {
        return;
    }
    before.push_str(&line.replace("localhost", "127.0.0.1"));
    before.push('\n');
}

fn put(script: &mut Script, part: &Part, manner: &Manner<'_>) {
    let words: Vec<&str> = part.text.split_whitespace().collect();
    let plain = words.join(" ").to_lowercase();
    if LEFT_OUT.iter().any(|start| plain.starts_with(start)) {
        // What an error was expected of is left out with its expectation.
        let kept = part
            .before
            .lines()
            .filter(|line| !line.replace(' ', "").starts_with("--error"));
        kept.for_each(|line| {
            let _ = writeln!(script.text, "{line}");
        });
        return;
    }
    let is_statement = !matches!(plain.as_str(), "{" | "}")
        && !plain.starts_with("while")
        && !plain.starts_with("delimiter");
    if is_statement {
        let _ = writeln!(script.text, "--echo {MARK}{}", part.line);
        if WAITED_FOR.iter().any(|start| plain.starts_with(start)) {
            if let Some(wait) = manner.wait {
                let _ = writeln!(script.text, "--exec {wait} {}", part.line);
            }
            let at = (part.line, script.schema.clone(), part.text.clone());
            script.statements.push(at);
        }
    }
    script.text.push_str(&part.before);
    // The accounts are those of connections by TCP.
    script
        .text
        .push_str(&part.text.replace("localhost", "127.0.0.1"));
    if plain.starts_with("use ") {
        let schema = part.text.trim().get(4..).unwrap_or_default();
        let schema = schema.trim_matches([';', '`', ' ']);
        schema.clone_into(&mut script.schema);
    }
    if let Some(name) = plain.strip_prefix("connection ") {
        script.elsewhere = !name.starts_with("default");
    }
    script.elsewhere |= plain.starts_with("connect (") || plain.starts_with("connect(");
    if manner.begins_anew && !script.elsewhere && plain.starts_with("drop table ") {
        let _ = writeln!(script.text, "--change_user root,,{}", script.schema);
    }
    if plain.starts_with("flush status") {
        // Where the server begins to count anew, the proxy doesn't.
        let _ = writeln!(script.text, "--echo {MARK}base");
        let _ = writeln!(
            script.text,
            "show status like 'Qcache\\_%'{}",
            script.delimiter
        );
    }
}

/// A file's bytes as characters, one for each: the files have several character sets.
pub fn characters_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The reverse of [`characters_of`].
pub fn bytes_of(text: &str) -> Vec<u8> {
    let byte = |character| u8::try_from(u32::from(character)).unwrap_or(b'?');
    text.chars().map(byte).collect()
}
