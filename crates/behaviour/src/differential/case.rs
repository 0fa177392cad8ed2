//! Case files: statements as the `mysql` program reads them, and comments that say what is to be
//! expected.
//!
//! The language is described for its users in `crates/behaviour/differential/README.md`.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::directives::Directives;
pub use super::directives::Hit;
use super::literal::{Literal, with_bytes, with_values};
use super::mask::Mask;
use remora_testkit::servers::Kind;

/// A file of statements about one theme.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file's name without its ending; also a part of the schema's name.
    pub name: String,
    /// What is run, in this order.
    pub steps: Vec<Step>,
}

/// A command, and what is known of it.
#[derive(Debug, Clone)]
pub struct Step {
    /// The line that it begins in.
    pub line: usize,
    /// What is sent.
    pub action: Action,
    /// The connection that it is sent on; empty: the first.
    pub connection: String,
    /// The servers that it is for.
    pub servers: Vec<Kind>,
    /// Whether it is to be answered from memory, in modes that have such answers.
    pub hit: Hit,
    /// Whether it may be prepared.
    pub prepared: bool,
    /// Whether it is sent more than once where answers from memory are wanted.
    pub repeat: bool,
    /// Whether it is run only in modes that read answers of many megabytes.
    pub long: bool,
    /// What of its answer isn't compared.
    pub mask: Option<Mask>,
    /// The errors that the server may answer with, 0 for none.
    pub errors: Vec<u16>,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A statement.
    Statement {
        /// Its text, with placeholders if it has values.
        text: Vec<u8>,
        /// The values of its placeholders.
        values: Vec<Literal>,
    },
    /// `\ping`
    Ping,
    /// `\use schema` (`COM_INIT_DB`)
    Use(String),
    /// `\reset` (`COM_RESET_CONNECTION`)
    Reset,
    /// `\fields table` (`COM_FIELD_LIST`)
    Fields(String),
    /// `\multi on`, `\multi off` (`COM_SET_OPTION`)
    MultiStatements(bool),
}

impl Step {
    /// What is sent, as text, with values in place.
    pub fn text(&self) -> Vec<u8> {
        match &self.action {
            Action::Statement { text, values } => with_values(text, values),
            other => format!("{other:?}").into_bytes(),
        }
    }
}

/// A file that is being read.
#[derive(Default)]
struct Reader {
    file: Directives,
    pending: Directives,
    delimiter: Option<String>,
    statement: String,
    statement_line: usize,
    steps: Vec<Step>,
}

impl Case {
    /// Reads a file.
    pub fn load(path: &Path) -> anyhow::Result<Case> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("can't read {}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Case::parse(&name, &text).with_context(|| path.display().to_string())
    }

    /// All files of a directory, in the order of their names.
    pub fn load_all(directory: &Path) -> anyhow::Result<Vec<Case>> {
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("can't read {}", directory.display()))?;
        let mut paths: Vec<_> = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<anyhow::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "sql"));
        paths.sort();
        paths.iter().map(|path| Case::load(path)).collect()
    }

    /// Reads a case's text.
    pub fn parse(name: &str, text: &str) -> anyhow::Result<Case> {
        let mut reader = Reader::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            reader
                .line(number, line)
                .with_context(|| format!("{name}.sql, line {number}"))?;
        }
        if !reader.statement.trim().is_empty() {
            bail!(
                "{name}.sql, line {}: a statement without its end",
                reader.statement_line
            );
        }
        Ok(Case {
            name: name.to_owned(),
            steps: reader.steps,
        })
    }
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> anyhow::Result<()> {
        if self.statement.is_empty() {
            if line.trim().is_empty() {
                return Ok(());
            }
            if let Some(comment) = line.strip_prefix("--") {
                return self.comment(comment.trim());
            }
            if let Some(delimiter) = line.strip_prefix("DELIMITER ") {
                let delimiter = delimiter.trim();
                self.delimiter = (delimiter != ";").then(|| delimiter.to_owned());
                return Ok(());
            }
            self.statement_line = number;
        } else {
            self.statement.push('\n');
        }
        let delimiter = self.delimiter.clone().unwrap_or_else(|| ";".to_owned());
        let (line, comment) = Reader::split_trailing(line, &delimiter);
        if let Some(comment) = comment {
            self.pending.read(&comment)?;
        }
        if let Some(last) = line.trim_end().strip_suffix(delimiter.as_str()) {
            self.statement.push_str(last);
            return self.end();
        }
        self.statement.push_str(&line);
        Ok(())
    }

    fn comment(&mut self, comment: &str) -> anyhow::Result<()> {
        if let Some(of_file) = comment.strip_prefix("file ")
            && self.file.read(of_file)?
        {
            if !self.steps.is_empty() {
                bail!("what holds for the file must stand before its first statement");
            }
            return Ok(());
        }
        self.pending.read(comment).map(drop)
    }

    /// What stands behind the end of a statement as a comment.
    fn split_trailing(line: &str, delimiter: &str) -> (String, Option<String>) {
        let mark = format!("{delimiter} -- ");
        if let Some((statement, comment)) = line.rsplit_once(&mark) {
            return (format!("{statement}{delimiter}"), Some(comment.to_owned()));
        }
        (line.to_owned(), None)
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let text = std::mem::take(&mut self.statement);
        let directives = std::mem::take(&mut self.pending).or(&self.file);
        let action = match text.strip_prefix('\\') {
            Some(command) => command_of(command.trim())?,
            None => statement_of(&text, &directives)?,
        };
        let is_command = !matches!(action, Action::Statement { .. });
        self.steps.push(Step {
            line: self.statement_line,
            connection: directives.connection.unwrap_or_default(),
            servers: directives.servers.unwrap_or_else(|| Kind::ALL.to_vec()),
            hit: directives
                .hit
                .filter(|_| is_read(&text))
                .unwrap_or(Hit::Any),
            prepared: directives.prepared.unwrap_or(true) && !is_command,
            repeat: directives.repeat.unwrap_or(true) && is_read(&text),
            long: directives.long.unwrap_or(false),
            mask: directives.mask,
            errors: directives.errors.unwrap_or_else(|| vec![0]),
            action,
        });
        Ok(())
    }
}

fn statement_of(text: &str, directives: &Directives) -> anyhow::Result<Action> {
    let text = match directives.bytes {
        Some(true) => with_bytes(text)?,
        _ => text.as_bytes().to_vec(),
    };
    Ok(Action::Statement {
        text,
        values: directives.values.clone(),
    })
}

fn command_of(command: &str) -> anyhow::Result<Action> {
    let (name, argument) = command.split_once(' ').unwrap_or((command, ""));
    Ok(match (name, argument) {
        ("ping", "") => Action::Ping,
        ("reset", "") => Action::Reset,
        ("use", schema) => Action::Use(schema.to_owned()),
        ("fields", table) => Action::Fields(table.to_owned()),
        ("multi", "on") => Action::MultiStatements(true),
        ("multi", "off") => Action::MultiStatements(false),
        _ => bail!("there is no command \\{command}"),
    })
}

/// Whether the text begins as a query does. Sending it again is harmless, or else the same on both
/// sides.
fn is_read(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        if let Some((_, after)) = rest.strip_prefix("/*").and_then(|r| r.split_once("*/")) {
            rest = after.trim_start();
        } else if let Some(after) = rest.strip_prefix('(') {
            rest = after.trim_start();
        } else {
            break;
        }
    }
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    ["SELECT", "WITH", "VALUES", "TABLE"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "-- A theme.
-- file hit: yes
CREATE TABLE t (a INT);

-- connection: b
SELECT *
  FROM t;
SELECT NOW(), a FROM t; -- hit: no; mask: clock
SELEC; -- error: 1064
DELIMITER $$
CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END $$
DELIMITER ;
-- servers: mysql-5.7+, mariadb-10.11
SELECT 1; SELECT 2;
\\ping;
-- values: 1
SELECT a FROM t WHERE a = ?;
-- bytes: yes
SELECT '«E9»';
";

    #[test]
    fn a_file_is_read_as_its_writer_means_it() {
        let case = Case::parse("theme", TEXT).unwrap();
        let texts: Vec<String> = case
            .steps
            .iter()
            .map(|step| String::from_utf8_lossy(&step.text()).into_owned())
            .collect();
        let expected = [
            "CREATE TABLE t (a INT)",
            "SELECT *\n  FROM t",
            "SELECT NOW(), a FROM t",
            "SELEC",
            "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END ",
            "SELECT 1; SELECT 2",
            "Ping",
            "SELECT a FROM t WHERE a = 1",
            "SELECT '\u{fffd}'",
        ];
        assert_eq!(texts, expected);
        let hits: Vec<_> = case.steps.iter().map(|step| step.hit).collect();
        let (yes, no, any) = (Hit::Yes, Hit::No, Hit::Any);
        assert_eq!(hits, [any, yes, no, any, any, yes, any, yes, yes]);
        assert_eq!(case.steps[1].connection, "b");
        assert_eq!(case.steps[2].connection, "");
        assert_eq!(case.steps[2].mask, Some(Mask::Clock));
        assert_eq!(case.steps[3].errors, [1064]);
        let kinds = [Kind::MySql80, Kind::MySql57, Kind::MariaDb1011];
        assert_eq!(case.steps[5].servers, kinds);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, line) in [
            ("SELECT 1;\nSELECT 2", 2),
            ("-- hit: perhaps\nSELECT 1;", 1),
            ("SELECT 1;\n-- hits: yes\n", 2),
            ("\n\\dance;", 2),
            ("SELECT 1; -- mask: nothing", 1),
            ("-- servers: oracle\n", 1),
            ("SELECT 1;\n-- file hit: yes\n", 2),
        ] {
            let error = format!("{:#}", Case::parse("bad", text).unwrap_err());
            assert!(error.contains(&format!("line {line}")), "{error}");
        }
    }
}
