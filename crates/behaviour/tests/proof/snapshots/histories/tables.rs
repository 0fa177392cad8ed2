//! The tables that hold the lists, and the statements that read them.

use std::ops::Range;

use remora_testkit::client::{Client, ClientError};
use remora_testkit::histories::{Element, Key, Step};
use remora_testkit::load::Random;
use remora_testkit::mixed::asking::{Asking, filled_in};
use remora_wire::rows::Row;

/// Lists of each table. Those of the second have numbers behind those of the first.
const LISTS: usize = 24;
/// Lists with one value in the column with an index.
const PART: usize = 4;
const TABLES: [&str; 2] = ["lists_a", "lists_b"];

/// Columns that hold nothing of interest.
const OTHERS: usize = 5;

/// All lists.
pub(super) const KEYS: Range<Key> = 0..LISTS * TABLES.len();

/// Makes the tables, or makes them anew: then nothing is known of them, as at first.
pub(super) fn create(client: &mut Client) -> Result<(), ClientError> {
    for (at, table) in TABLES.iter().enumerate() {
        client.query(&format!("DROP TABLE IF EXISTS {table}"))?;
        client.query(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, part INT NOT NULL, list TEXT NOT NULL, \
             {}, KEY (part)) ENGINE=InnoDB",
            columns(usize::MAX, " INT")
        ))?;
        let nothing = ", NULL".repeat(OTHERS);
        let row = |id: usize| format!("({id}, {}, ''{nothing})", id / PART);
        let rows: Vec<_> = (at * LISTS..(at + 1) * LISTS).map(row).collect();
        client.query(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")))?;
    }
    Ok(())
}

/// The other columns that a number chooses, each with something behind it.
fn columns(chosen: usize, behind: &str) -> String {
    let chosen = (0..OTHERS).filter(|column| chosen >> column & 1 == 1);
    let columns: Vec<_> = chosen
        .map(|column| format!("other{column}{behind}"))
        .collect();
    columns.join(", ")
}

/// Appends.
pub(super) fn append(client: &mut Client, key: Key, element: Element) -> Result<(), ClientError> {
    let table = table_of(key);
    let text = format!("UPDATE {table} SET list = CONCAT(list, ',', {element}) WHERE id = {key}");
    client.query(&text).map(drop)
}

fn table_of(key: Key) -> &'static str {
    TABLES[key / LISTS]
}

/// A statement that reads whole lists, with a number for each `?`. Each row has keys with lists.
#[derive(Debug, Clone)]
pub(super) struct Question {
    text: String,
    numbers: Vec<i64>,
    /// Keys with lists in a row; then come other columns.
    pairs: usize,
}

impl Question {
    /// One of those that read a list, so few that they repeat. A number chooses other columns that
    /// are read.
    pub(super) fn about(key: Key, others: usize, random: &mut Random) -> Question {
        let table = table_of(key);
        let part = key / PART * PART;
        let (text, numbers) = match random.below(6) {
            0 => ("id IN (?, ?)", vec![part, key]),
            1 => ("id BETWEEN ? AND ?", vec![part, part + PART - 1]),
            2 => ("part = ?", vec![key / PART]),
            3 => {
                let text = "SELECT a.id, a.list, b.id, b.list FROM lists_a a JOIN lists_b b \
                            ON b.id = a.id + ? WHERE a.id = ?";
                let numbers = [LISTS, key % LISTS];
                return Question {
                    pairs: 2,
                    ..Question::new(text.to_owned(), &numbers)
                };
            }
            _ => ("id = ?", vec![key]),
        };
        let others = columns(others, "");
        let comma = if others.is_empty() { "" } else { ", " };
        let text = format!("SELECT id, list{comma}{others} FROM {table} WHERE {text}");
        Question::new(text, &numbers)
    }

    /// Those that read each list once.
    pub(super) fn of_all_lists() -> impl Iterator<Item = Question> {
        let text = |table| format!("SELECT id, list FROM {table}");
        TABLES
            .iter()
            .map(move |table| Question::new(text(table), &[]))
    }

    fn new(text: String, numbers: &[usize]) -> Question {
        let number = |number: &usize| i64::try_from(*number).expect("there are few lists");
        Question {
            text,
            numbers: numbers.iter().map(number).collect(),
            pairs: 1,
        }
    }

    /// Asks; gives what was read.
    pub(super) fn ask(
        &self,
        client: &mut Client,
        asking: &mut Asking,
    ) -> Result<Vec<Step>, ClientError> {
        let rows = asking.ask_with(client, &self.text, &self.numbers)?;
        Ok(rows.iter().flat_map(|row| self.reads(row)).collect())
    }

    fn reads(&self, row: &Row) -> Vec<Step> {
        let text = |field: &Option<Vec<u8>>| {
            String::from_utf8(field.clone().expect("nothing is NULL")).expect("it is ASCII")
        };
        let pair = |pair: &[Option<Vec<u8>>]| {
            let [key, list] = pair else {
                panic!("a key and a list: {row:?} by {self}");
            };
            let elements = text(list);
            let elements = elements.split(',').filter(|element| !element.is_empty());
            let elements = elements.map(|element| element.parse().expect("an element"));
            Step::Read(text(key).parse().expect("a key"), elements.collect())
        };
        row[..2 * self.pairs].chunks(2).map(pair).collect()
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&filled_in(&self.text, &self.numbers))
    }
}
