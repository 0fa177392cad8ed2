//! A case of the search as plain SQL: what is made, what is asked, what is changed. It can be
//! written to a file, read from one and run again.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};

use remora_testkit::client::Value;

/// Marks where a literal begins and ends while a statement is made, so that it can be bound
/// instead.
const LITERAL_BEGINS: char = '\u{1}';
const LITERAL_ENDS: char = '\u{2}';

/// A literal that may be bound.
pub(super) fn literal(text: &str) -> String {
    format!("{LITERAL_BEGINS}{text}{LITERAL_ENDS}")
}

/// A statement: its text and, if it is prepared, what is bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Its text, without a line break.
    pub text: String,
    /// Values for its placeholders; `None`: it is sent as text.
    pub values: Option<Vec<Value>>,
}

impl Statement {
    /// One that is sent as text.
    pub fn plain(text: impl Into<String>) -> Statement {
        Statement {
            text: text.into().replace([LITERAL_BEGINS, LITERAL_ENDS], ""),
            values: None,
        }
    }

    /// One that leaves a text in `@q`, whatever quotes mean in the session. Its bytes are taken for
    /// characters of `charset`, as the server takes those of a session's text.
    pub(super) fn executed(marked: &str, charset: &str) -> Statement {
        let text = Statement::plain(marked).text;
        let digits = text.bytes().map(|byte| format!("{byte:02x}"));
        Statement::plain(format!(
            "SET @q = CONVERT(0x{} USING {charset})",
            digits.collect::<String>()
        ))
    }

    /// From a text with marked literals, those that can be bound being placeholders.
    pub(super) fn prepared(marked: &str) -> Statement {
        let (mut text, mut values) = (String::new(), Vec::new());
        let mut rest = marked;
        while let Some((before, after)) = rest.split_once(LITERAL_BEGINS) {
            let (inside, behind) = after.split_once(LITERAL_ENDS).unwrap_or((after, ""));
            text.push_str(before);
            match bound(inside) {
                Some(value) => {
                    text.push('?');
                    values.push(value);
                }
                None => text.push_str(inside),
            }
            rest = behind;
        }
        text.push_str(rest);
        Statement {
            text,
            values: Some(values),
        }
    }
}

/// The value of a simple literal.
fn bound(literal: &str) -> Option<Value> {
    if literal == "NULL" {
        return Some(Value::Null);
    }
    if let Ok(number) = literal.parse::<i64>() {
        return Some(Value::Int(number));
    }
    if let Ok(number) = literal.parse::<u64>() {
        return Some(Value::Unsigned(number));
    }
    let quoted = literal
        .strip_prefix('\'')
        .and_then(|s| s.strip_suffix('\''));
    if let Some(text) = quoted.filter(|text| !text.contains(['\'', '\\'])) {
        return Some(Value::Text(text.as_bytes().to_vec()));
    }
    literal.parse().ok().map(Value::Double)
}

/// Which way a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Through Remora while the log is held back from it, and what it changed is asked for at once.
    ThroughHeld,
    /// Through Remora, and what it changed is asked for at once.
    ThroughAtOnce,
    /// Through Remora, and asked for when the follower has read it.
    Through,
    /// Past Remora, and asked for when the follower has read it.
    Direct,
    /// Past Remora. Others ask while the last statement, which takes long, is on its way.
    Late,
    /// The same through Remora.
    LateThrough,
    /// Past Remora: it changes what the server is, so that caching may have to end.
    Fact,
    /// Past Remora: the server is again what it was.
    Restored,
    /// Through Remora by new sessions, while its address leads to another server.
    Other,
    /// The same, and it stays there until Remora follows that server.
    OtherFollowed,
    /// Through Remora by a client that doesn't take the answer of the last statement.
    Slow,
}

impl Route {
    const ALL: [Route; 11] = [
        Route::ThroughHeld,
        Route::ThroughAtOnce,
        Route::Through,
        Route::Direct,
        Route::Late,
        Route::LateThrough,
        Route::Fact,
        Route::Restored,
        Route::Other,
        Route::OtherFollowed,
        Route::Slow,
    ];

    /// Whether results are compared right after the answer.
    pub(super) fn is_at_once(self) -> bool {
        matches!(self, Route::ThroughHeld | Route::ThroughAtOnce)
    }

    /// Whether it is an ordinary change, for which what is dropped can be measured: others may have
    /// filled it again, or all is forgotten for another reason.
    pub(super) fn is_measured(self) -> bool {
        matches!(self, Route::Through | Route::Direct)
    }

    /// Whether the server changes, not its rows.
    pub(super) fn is_of_facts(self) -> bool {
        matches!(self, Route::Fact | Route::Restored)
    }

    /// Whether another server is there meanwhile.
    pub(super) fn is_to_other(self) -> bool {
        matches!(self, Route::Other | Route::OtherFollowed)
    }

    fn as_str(self) -> &'static str {
        match self {
            Route::ThroughHeld => "held",
            Route::ThroughAtOnce => "at-once",
            Route::Through => "through",
            Route::Direct => "direct",
            Route::Late => "late",
            Route::LateThrough => "late-through",
            Route::Fact => "fact",
            Route::Restored => "restored",
            Route::Other => "other",
            Route::OtherFollowed => "other-followed",
            Route::Slow => "slow",
        }
    }
}

/// An account that may read only what it is given, and its password.
pub(super) const READER: &str = "search_reader";
pub(super) const READER_PASSWORD: &str = "search-reader";

/// How much of a row the writer's session logs: `binlog_row_image`.
pub(super) const ROW_IMAGES: [&str; 3] = ["FULL", "MINIMAL", "NOBLOB"];

/// A query whose result is held.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What the report counts it under.
    pub shape: String,
    /// The query.
    pub statement: Statement,
}

/// Statements of one session, after which the results are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Which way they go.
    pub route: Route,
    /// `binlog_row_image` of their session.
    pub image: String,
    /// What the statements are, for people.
    pub kind: String,
    /// The statements.
    pub statements: Vec<Statement>,
    /// The last statement is sent by another session, when the first is gone.
    pub ends_elsewhere: bool,
    /// What the same session asks then, if anything. It has the settings of readers.
    pub asks: Vec<Statement>,
}

/// A whole case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    /// The servers that it is for, by name; empty: all.
    pub servers: Vec<String>,
    /// Readers ask while changes are made, and results are compared only after all of them.
    pub is_race: bool,
    /// Those who ask have an account of their own, which may read only what it is given.
    pub reads_as_reader: bool,
    /// Run directly before all.
    pub setup: Vec<String>,
    /// Run after it on the other server, where there is one: there the rows are others.
    pub other_setup: Vec<String>,
    /// Settings of those who ask.
    pub readers: Vec<String>,
    /// What is held.
    pub questions: Vec<Question>,
    /// What is done, in this order.
    pub changes: Vec<Change>,
}

impl Script {
    /// The character set in which those who ask send their text. Code that the text doesn't show
    /// may choose another, in which Remora keeps nothing.
    pub(super) fn charset(&self) -> &'static str {
        if self.readers.iter().any(|text| text == "SET NAMES latin1") {
            "latin1"
        } else {
            "utf8mb4"
        }
    }

    /// Whether it takes another server.
    pub(super) fn needs_other(&self) -> bool {
        self.changes.iter().any(|one| one.route.is_to_other())
    }

    /// As a file has it.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if !self.servers.is_empty() {
            let _ = writeln!(out, "-- servers: {}", self.servers.join(" "));
        }
        if self.is_race {
            out.push_str("-- race\n");
        }
        if self.reads_as_reader {
            out.push_str("-- reads as reader\n");
        }
        out.push_str("-- setup\n");
        let line = |out: &mut String, text: &str| {
            let _ = writeln!(out, "{text};");
        };
        let statement = |out: &mut String, statement: &Statement| {
            if let Some(values) = &statement.values {
                let values: Vec<String> = values.iter().map(value_to_text).collect();
                let _ = writeln!(out, "-- bind: {}", values.join(" "));
            }
            line(out, &statement.text);
        };
        self.setup.iter().for_each(|text| line(&mut out, text));
        if !self.other_setup.is_empty() {
            out.push_str("-- other server\n");
            let texts = self.other_setup.iter();
            texts.for_each(|text| line(&mut out, text));
        }
        out.push_str("-- readers\n");
        self.readers.iter().for_each(|text| line(&mut out, text));
        for question in &self.questions {
            let _ = writeln!(out, "-- question: {}", question.shape);
            statement(&mut out, &question.statement);
        }
        for change in &self.changes {
            let route = change.route.as_str();
            let _ = writeln!(out, "-- change: {route} {} {}", change.image, change.kind);
            change
                .statements
                .iter()
                .for_each(|one| statement(&mut out, one));
            if change.ends_elsewhere {
                out.push_str("-- ends elsewhere\n");
            }
            if !change.asks.is_empty() {
                out.push_str("-- asks\n");
                change.asks.iter().for_each(|one| statement(&mut out, one));
            }
        }
        out
    }

    /// From a file's text.
    ///
    /// # Errors
    /// It isn't one, or a line of it can't be read.
    pub fn parse(text: &str) -> anyhow::Result<Script> {
        let mut parser = Parser::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() {
                parser
                    .line(line)
                    .with_context(|| format!("line {}: {line}", number + 1))?;
            }
        }
        Ok(parser.script)
    }
}

#[derive(Debug, Default)]
enum Section {
    #[default]
    Head,
    Setup,
    OtherSetup,
    Readers,
    Question(String),
    Change,
    Asks,
}

#[derive(Default)]
struct Parser {
    script: Script,
    section: Section,
    values: Option<Vec<Value>>,
}

impl Parser {
    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        match line.strip_prefix("-- ") {
            Some(directive) => self.directive(directive),
            None => self.statement(line.strip_suffix(';').unwrap_or(line)),
        }
    }

    fn directive(&mut self, directive: &str) -> anyhow::Result<()> {
        let (name, rest) = directive.split_once(": ").unwrap_or((directive, ""));
        match name.trim_end_matches(':') {
            "servers" => self.script.servers = rest.split_whitespace().map(str::to_owned).collect(),
            "race" => self.script.is_race = true,
            "reads as reader" => self.script.reads_as_reader = true,
            "other server" => self.section = Section::OtherSetup,
            "ends elsewhere" => {
                let change = self.script.changes.last_mut();
                change.context("no change")?.ends_elsewhere = true;
            }
            "setup" => self.section = Section::Setup,
            "readers" => self.section = Section::Readers,
            "asks" => self.section = Section::Asks,
            "question" => self.section = Section::Question(rest.to_owned()),
            "bind" => {
                let values = rest.split_whitespace().map(value_from_text);
                self.values = Some(values.collect::<anyhow::Result<_>>()?);
            }
            "change" => {
                let mut words = rest.splitn(3, ' ');
                let route = words.next().unwrap_or_default();
                let route = Route::ALL.into_iter().find(|one| one.as_str() == route);
                self.script.changes.push(Change {
                    route: route.context("no such route")?,
                    image: words.next().context("no row image")?.to_owned(),
                    kind: words.next().unwrap_or_default().to_owned(),
                    statements: Vec::new(),
                    ends_elsewhere: false,
                    asks: Vec::new(),
                });
                self.section = Section::Change;
            }
            // A remark.
            _ => {}
        }
        Ok(())
    }

    fn statement(&mut self, text: &str) -> anyhow::Result<()> {
        let statement = Statement {
            text: text.to_owned(),
            values: self.values.take(),
        };
        match &self.section {
            Section::Head => bail!("a statement before any section"),
            Section::Setup => self.script.setup.push(statement.text),
            Section::OtherSetup => self.script.other_setup.push(statement.text),
            Section::Readers => self.script.readers.push(statement.text),
            Section::Question(shape) => self.script.questions.push(Question {
                shape: shape.clone(),
                statement,
            }),
            Section::Change => {
                let change = self.script.changes.last_mut();
                change.context("no change")?.statements.push(statement);
            }
            Section::Asks => {
                let change = self.script.changes.last_mut();
                change.context("no change")?.asks.push(statement);
            }
        }
        Ok(())
    }
}

fn value_to_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Int(number) => format!("int:{number}"),
        Value::Unsigned(number) => format!("unsigned:{number}"),
        Value::Double(number) => format!("double:{number:?}"),
        Value::Text(text) => {
            let digits = text.iter().map(|byte| format!("{byte:02x}"));
            format!("text:{}", digits.collect::<String>())
        }
    }
}

fn value_from_text(text: &str) -> anyhow::Result<Value> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    Ok(match kind {
        "null" => Value::Null,
        "int" => Value::Int(rest.parse()?),
        "unsigned" => Value::Unsigned(rest.parse()?),
        "double" => Value::Double(rest.parse()?),
        "text" => {
            let byte = |at: usize| u8::from_str_radix(rest.get(at..at + 2).unwrap_or("?"), 16);
            Value::Text(
                (0..rest.len())
                    .step_by(2)
                    .map(byte)
                    .collect::<Result<_, _>>()?,
            )
        }
        _ => bail!("no such kind of value: {kind}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_was_written() {
        let marked = format!(
            "SELECT * FROM t WHERE a = {} AND b IN ({}, {})",
            literal("5"),
            literal("'ä'"),
            literal("0x35")
        );
        let script = Script {
            servers: vec!["mysql-8.0".to_owned()],
            is_race: true,
            reads_as_reader: true,
            setup: vec!["CREATE TABLE t (a INT)".to_owned()],
            other_setup: vec!["DELETE FROM t".to_owned()],
            readers: vec!["SET time_zone = '+05:00'".to_owned()],
            questions: vec![
                Question {
                    shape: "point".to_owned(),
                    statement: Statement::prepared(&marked),
                },
                Question {
                    shape: "all".to_owned(),
                    statement: Statement::plain(marked),
                },
            ],
            changes: vec![Change {
                route: Route::ThroughAtOnce,
                image: "FULL".to_owned(),
                kind: "insert".to_owned(),
                statements: vec![Statement {
                    text: "INSERT INTO t VALUES (?, ?)".to_owned(),
                    values: Some(vec![Value::Null, Value::Double(0.5)]),
                }],
                ends_elsewhere: true,
                asks: vec![Statement::plain("SELECT a FROM t")],
            }],
        };
        let read = Script::parse(&script.to_text()).unwrap();
        assert_eq!(read, script);
        assert_eq!(
            read.questions[0].statement.values.as_ref().unwrap().len(),
            2
        );
    }
}
