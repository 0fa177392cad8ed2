//! What ran, by shape, as the performance schema counts it.

use std::collections::HashMap;

use remora_adviser::{NoShapes, Shape, Values};
use remora_sql::{Dialect, StatementKind, analyse_prepared};
use remora_upstream::UpstreamConfig;
use remora_upstream::client::{ClientError, text};

use super::is_denied;

/// The most shapes that are read. A server keeps 10,000 by default.
const SHAPES_MAX: usize = 20_000;
/// The row without a digest counts all that there was no room for.
const QUESTION: &str = "SELECT CONCAT_WS('.', SCHEMA_NAME, DIGEST), IFNULL(DIGEST_TEXT, ''), \
     COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_statements_summary_by_digest \
     ORDER BY COUNT_STAR DESC LIMIT 20000";
/// What a second has of the units of `SUM_TIMER_WAIT`.
const PICOSECONDS: f64 = 1e12;

/// What one shape has cost since the server counts.
#[derive(Debug)]
struct Cost {
    text: String,
    count: f64,
    server_s: f64,
}

/// All shapes at one moment, by schema and digest.
#[derive(Debug)]
pub(super) struct Shapes(Result<HashMap<String, Cost>, NoShapes>);

impl Shapes {
    /// Asks for them on a connection of its own, so that nothing else is lost if that takes too
    /// long.
    pub(super) async fn read(
        config: &UpstreamConfig,
        variables: &Values,
    ) -> Result<Shapes, ClientError> {
        if variables.text("performance_schema") != Some("ON") {
            return Ok(Shapes(Err(NoShapes::Off)));
        }
        let mut client = remora_upstream::connect(config).await?;
        let rows = match client.query(QUESTION, SHAPES_MAX).await {
            Ok(rows) => rows,
            Err(error) if is_denied(&error) => return Ok(Shapes(Err(NoShapes::Forbidden))),
            Err(_) => return Ok(Shapes(Err(NoShapes::Unanswered))),
        };
        client.quit().await;
        let cost = |row| {
            let number = |column| text(row, column)?.parse::<f64>().ok();
            let cost = Cost {
                text: text(row, 1)?.to_owned(),
                count: number(2)?,
                server_s: number(3)? / PICOSECONDS,
            };
            Some((text(row, 0)?.to_owned(), cost))
        };
        Ok(Shapes(Ok(rows.iter().filter_map(cost).collect())))
    }

    /// What ran between two moments.
    pub(super) fn between(
        before: Shapes,
        after: Shapes,
        dialect: Dialect,
    ) -> Result<Vec<Shape>, NoShapes> {
        let (before, after) = (before.0?, after.0?);
        if after.is_empty() {
            return Err(NoShapes::NotCounted);
        }
        let grown = after.into_iter().filter_map(|(key, cost)| {
            let (count, server_s) = before
                .get(&key)
                .map_or((0.0, 0.0), |then| (then.count, then.server_s));
            // Less than before: somebody emptied the table meanwhile.
            let count = cost.count - count;
            let server_s = (cost.server_s - server_s).max(0.0);
            let counts = count > 0.0 && !is_about_server(&cost.text);
            counts.then(|| shape(cost.text, count, server_s, dialect))
        });
        Ok(grown.collect())
    }
}

fn shape(text: String, count: f64, server_s: f64, dialect: Dialect) -> Shape {
    let read = as_statement(&text);
    let statement = analyse_prepared(read.as_bytes(), dialect);
    let is_read = statement.kind == StatementKind::Select;
    let refusal = if read.trim_end().ends_with("...") {
        Some("The server has cut its text short.".to_owned())
    } else {
        let refusal = statement.cacheable.err();
        refusal.map(|why| why.describe().to_owned())
    };
    Shape {
        refusal: refusal.filter(|_| is_read),
        text,
        count,
        server_s,
        is_read,
    }
}

/// A text of a shape as a statement: servers write `IN (...)` for a list of values, and MariaDB
/// quotes the names of functions.
fn as_statement(text: &str) -> String {
    let text = text.replace("(...)", "(?)").replace(", ...", "");
    let mut parts: Vec<&str> = text.split('`').collect();
    let mut statement = parts.remove(0).to_owned();
    // What stands between quotes, and what stands behind it.
    for pair in parts.chunks(2) {
        let (name, behind) = (pair[0], pair.get(1).copied().unwrap_or_default());
        let quote = if behind.starts_with(" (") { "" } else { "`" };
        statement.extend([quote, name, quote, behind]);
    }
    statement
}

/// Whether it asks the server about itself, as the adviser does.
fn is_about_server(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["information_schema", "performance_schema"]
        .iter()
        .any(|schema| text.contains(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect() -> Dialect {
        Dialect {
            ignore_space: true,
            ..Dialect::default()
        }
    }

    fn at(shapes: &[(&str, f64)]) -> Shapes {
        let cost = |(text, count): &(&str, f64)| {
            let cost = Cost {
                text: (*text).to_owned(),
                count: *count,
                server_s: *count / 100.0,
            };
            ((*text).to_owned(), cost)
        };
        Shapes(Ok(shapes.iter().map(cost).collect()))
    }

    #[test]
    fn only_what_ran_meanwhile_counts() {
        let before = at(&[("SELECT 1", 10.0), ("BEGIN", 5.0)]);
        let after = at(&[
            ("SELECT 1", 30.0),
            ("BEGIN", 5.0),
            ("COMMIT", 2.0),
            ("SELECT * FROM `information_schema` . `INNODB_TRX`", 2.0),
        ]);
        let mut shapes = Shapes::between(before, after, dialect()).unwrap();
        shapes.sort_by(|a, b| a.text.cmp(&b.text));
        let counts: Vec<_> = shapes
            .iter()
            .map(|shape| (shape.text.as_str(), shape.count))
            .collect();
        assert_eq!(counts, [("COMMIT", 2.0), ("SELECT 1", 20.0)]);
    }

    #[test]
    fn a_read_tells_why_it_could_not_be_kept() {
        let refusal = |text: &str| {
            let shape = shape(text.to_owned(), 1.0, 0.0, dialect());
            assert!(shape.is_read, "{text}");
            shape.refusal
        };
        for text in [
            "SELECT `c` FROM `sbtest1` WHERE `id` = ?",
            "SELECT COUNT ( * ) FROM `t` WHERE `a` IN (...) LIMIT ?",
            "SELECT `IFNULL` ( `a` , ? ) , SUM ( `b` ) FROM `t` GROUP BY `a` ORDER BY `a` LIMIT ?, ...",
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
        assert!(refusal("SELECT NOW ( ) FROM `t`").is_some());
        assert!(refusal("SELECT `a` FROM `t` WHERE `b` = ? AND...").is_some());
        let write = shape("DELETE FROM `t`".to_owned(), 1.0, 0.0, Dialect::default());
        assert!(!write.is_read);
        assert_eq!(write.refusal, None);
    }
}
