//! The questions that readers ask, each a text that repeats, and what their answers must hold.

use remora_wire::rows::Row;

use super::tables::{Kind, ROWS};

/// A question and how its answer is read.
#[derive(Debug, Clone)]
pub struct Question {
    /// The statement.
    pub text: String,
    /// Of which kind of table it asks first.
    pub kind: Kind,
    /// What the answer is made of.
    pub shape: Shape,
}

/// What an answer is made of.
#[derive(Debug, Clone)]
pub enum Shape {
    /// A row for each of these counters: its `id`, then a value of each kind.
    Rows {
        /// The first `id`.
        first: usize,
        /// The last `id`.
        last: usize,
        /// What the columns after `id` hold.
        columns: Vec<Kind>,
    },
    /// One number made of the values of the counters from `first` to `last`.
    Number {
        /// The first `id`.
        first: usize,
        /// The last `id`.
        last: usize,
        /// How it is made.
        total: Total,
    },
}

/// How one number is made of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// Their sum.
    Sum,
    /// The largest.
    Max,
    /// How many there are.
    Count,
}

impl Question {
    /// The counters that the answer tells of.
    pub fn counters(&self) -> Vec<usize> {
        let (first, last, kinds) = match &self.shape {
            Shape::Rows {
                first,
                last,
                columns,
            } => (*first, *last, columns.as_slice()),
            Shape::Number { first, last, .. } => (*first, *last, std::slice::from_ref(&self.kind)),
        };
        kinds
            .iter()
            .flat_map(|kind| (first..=last).map(|row| kind.counter(row)))
            .collect()
    }

    /// The counters and values of an answer in rows; a message if it isn't what was asked for.
    pub fn read_rows(&self, rows: &[Row]) -> Result<Vec<(usize, u64)>, String> {
        let Shape::Rows {
            first,
            last,
            columns,
        } = &self.shape
        else {
            return Ok(Vec::new());
        };
        if rows.len() != last - first + 1 {
            let seen = rows.len();
            return Err(format!(
                "{seen} rows, not {}: {}",
                last - first + 1,
                self.text
            ));
        }
        let mut values = Vec::new();
        for row in rows {
            let id = number(row, 0)
                .and_then(|id| usize::try_from(id).ok())
                .filter(|id| (*first..=*last).contains(id))
                .ok_or_else(|| format!("a row that nobody asked for: {}", self.text))?;
            for (at, kind) in columns.iter().enumerate() {
                let stored = number(row, at + 1).ok_or_else(|| format!("no number: {row:?}"))?;
                values.push((kind.counter(id), kind.value(stored)));
            }
        }
        Ok(values)
    }

    /// The number of an answer in one number.
    pub fn read_number(&self, rows: &[Row]) -> Result<u64, String> {
        let stored = rows
            .first()
            .and_then(|row| number(row, 0))
            .ok_or_else(|| format!("no number: {rows:?} {}", self.text))?;
        match self.shape {
            Shape::Number {
                total: Total::Count,
                ..
            } => Ok(stored),
            _ => Ok(self.kind.value(stored)),
        }
    }
}

fn number(row: &Row, column: usize) -> Option<u64> {
    std::str::from_utf8(row.get(column)?.as_deref()?)
        .ok()?
        .parse()
        .ok()
}

/// All questions.
pub fn all() -> Vec<Question> {
    let mut questions = Vec::new();
    for kind in Kind::ALL {
        for table in kind.read() {
            about_one_table(kind, table, &mut questions);
        }
    }
    joins(&mut questions);
    questions
}

fn about_one_table(kind: Kind, table: &str, questions: &mut Vec<Question>) {
    let mut rows = |first, last, text| {
        let shape = Shape::Rows {
            first,
            last,
            columns: vec![kind],
        };
        questions.push(Question { text, kind, shape });
    };
    for id in 0..ROWS {
        rows(
            id,
            id,
            format!("SELECT id, value FROM {table} WHERE id = {id}"),
        );
    }
    for first in [0, ROWS / 2] {
        let last = first + ROWS / 2 - 1;
        let list: Vec<String> = (first..=last).map(|id| id.to_string()).collect();
        let list = list.join(", ");
        rows(
            first,
            last,
            format!("select id, value from {table} where id in ({list})"),
        );
        let range = format!("id BETWEEN {first} AND {last}");
        rows(
            first,
            last,
            format!("SELECT id, value FROM {table} WHERE {range} ORDER BY id DESC"),
        );
    }
    let (first, last) = (0, ROWS - 1);
    for (total, function) in [
        (Total::Sum, "SUM(value)"),
        (Total::Max, "MAX(value)"),
        (Total::Count, "COUNT(*)"),
    ] {
        let text = format!("SELECT {function} FROM {table}");
        let shape = Shape::Number { first, last, total };
        questions.push(Question { text, kind, shape });
    }
}

fn joins(questions: &mut Vec<Question>) {
    for (left, a, right, b) in [
        (Kind::Plain, "plain", Kind::Other, "other"),
        (Kind::Plain, "plain", Kind::Plain, "plain"),
        (Kind::Other, "other", Kind::Family, "child"),
        (Kind::Other, "other", Kind::Mirrored, "mirror"),
        (Kind::Family, "parent", Kind::Family, "child"),
        (Kind::Mirrored, "source", Kind::Mirrored, "mirror"),
        (Kind::Memory, "in_memory", Kind::Plain, "plain"),
        (Kind::Isam, "isam", Kind::Other, "other"),
    ] {
        let (first, last) = (0, ROWS - 1);
        let columns = vec![left, right];
        let text = format!(
            "SELECT a.id, a.value, b.value FROM {a} a JOIN {b} b ON a.id = b.id ORDER BY a.id"
        );
        questions.push(Question {
            text,
            kind: left,
            shape: Shape::Rows {
                first,
                last,
                columns,
            },
        });
        let text = format!("SELECT id, value FROM {a} WHERE id = (SELECT MAX(id) FROM {b})");
        questions.push(Question {
            text,
            kind: left,
            shape: Shape::Rows {
                first: last,
                last,
                columns: vec![left],
            },
        });
    }
}
