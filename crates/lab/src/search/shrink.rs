//! Makes a failing case small: drops changes, queries, statements, rows, tables, columns and words,
//! as long as it fails.

use super::bed::Bed;
use super::run::Failure;
use super::script::{ROW_IMAGES, Script, Statement};

/// How often a smaller case is tried before it counts as one that doesn't fail; more for a race,
/// which needs luck.
const TRIES: usize = 2;
const RACE_TRIES: usize = 6;

/// Makes cases smaller with a bounded number of runs.
struct Shrinker<'b> {
    bed: &'b mut Bed,
    runs_left: usize,
    best: Script,
    failure: Failure,
}

/// A smaller case that still fails, and how. Takes at most so many runs.
pub fn shrink(
    bed: &mut Bed,
    script: &Script,
    failure: Failure,
    runs_max: usize,
) -> (Script, Failure) {
    let mut shrinker = Shrinker {
        bed,
        runs_left: runs_max,
        best: script.clone(),
        failure,
    };
    shrinker.best.servers.clear();
    shrinker.cut_to_failure();
    loop {
        let before = shrinker.best.clone();
        shrinker.pass();
        if shrinker.best == before || shrinker.runs_left == 0 {
            return (shrinker.best, shrinker.failure);
        }
    }
}

impl Shrinker<'_> {
    /// Takes a case as the best one if it fails.
    fn takes(&mut self, script: Script) -> bool {
        if script == self.best {
            return false;
        }
        let tries = if script.is_race { RACE_TRIES } else { TRIES };
        for _ in 0..tries {
            if self.runs_left == 0 {
                return false;
            }
            self.runs_left -= 1;
            // One that can't be run is no case.
            let Ok(run) = self.bed.run(&script) else {
                return false;
            };
            if let Some(failure) = run.failure {
                self.best = script;
                self.failure = failure;
                return true;
            }
        }
        false
    }

    /// The query that failed alone, and nothing after the change that made it fail.
    fn cut_to_failure(&mut self) {
        let mut cut = self.best.clone();
        let changes = self.failure.change.map_or(0, |at| at + 1);
        cut.changes.truncate(changes);
        self.takes(cut.clone());
        cut.questions = vec![self.best.questions[self.failure.question].clone()];
        self.takes(cut);
        let mut calm = self.best.clone();
        calm.is_race = false;
        self.takes(calm);
    }

    fn pass(&mut self) {
        self.without_parts(|script| &mut script.changes);
        self.without_parts(|script| &mut script.questions);
        for at in 0..self.best.changes.len() {
            self.without_parts(|script| &mut script.changes[at].statements);
            self.without_parts(|script| &mut script.changes[at].asks);
        }
        self.without_parts(|script| &mut script.setup);
        self.without_parts(|script| &mut script.other_setup);
        self.without_parts(|script| &mut script.readers);
        self.without_columns();
        self.plainer();
        for at in 0..self.best.questions.len() {
            self.without_words(|script| &mut script.questions[at].statement);
        }
        for at in 0..self.best.changes.len() {
            for number in 0..self.best.changes[at].statements.len() {
                self.without_words(|script| &mut script.changes[at].statements[number]);
            }
        }
    }

    /// Drops runs of parts, long ones first.
    fn without_parts<T: Clone>(&mut self, part: impl Fn(&mut Script) -> &mut Vec<T>) {
        let mut length = part(&mut self.best).len().div_ceil(2);
        while length > 0 {
            let mut at = 0;
            while at < part(&mut self.best).len() {
                let mut smaller = self.best.clone();
                let parts = part(&mut smaller);
                let end = (at + length).min(parts.len());
                parts.drain(at..end);
                if !self.takes(smaller) {
                    at += length;
                }
            }
            length /= 2;
        }
    }

    /// Drops words of a statement, long runs first.
    fn without_words(&mut self, statement: impl Fn(&mut Script) -> &mut Statement) {
        let words = |script: &mut Script| -> Vec<String> {
            statement(script)
                .text
                .split(' ')
                .map(str::to_owned)
                .collect()
        };
        let mut length = words(&mut self.best).len() / 2;
        while length > 0 {
            let mut at = 0;
            while at + length <= words(&mut self.best).len() {
                let mut smaller = self.best.clone();
                let mut left = words(&mut smaller);
                let gone: Vec<String> = left.drain(at..at + length).collect();
                // Placeholders take their values with them.
                let count = |words: &[String]| words.concat().matches('?').count();
                let (first, gone) = (count(&left[..at]), count(&gone));
                let one = statement(&mut smaller);
                one.text = left.join(" ");
                if let Some(values) = &mut one.values {
                    let end = (first + gone).min(values.len());
                    values.drain(first.min(end)..end);
                }
                if is_balanced(&one.text) && self.takes(smaller) {
                    continue;
                }
                at += 1;
            }
            length /= 2;
        }
    }

    /// Drops columns and keys from definitions, and a column's values from the rows of the
    /// beginning.
    fn without_columns(&mut self) {
        let mut at = 0;
        while at < self.best.setup.len() {
            let mut number = 0;
            while let Some(smaller) = without_column(&self.best, at, number) {
                if !self.takes(smaller) {
                    number += 1;
                }
            }
            at += 1;
        }
    }

    /// The whole row in the log.
    fn plainer(&mut self) {
        for at in 0..self.best.changes.len() {
            let mut plainer = self.best.clone();
            ROW_IMAGES[0].clone_into(&mut plainer.changes[at].image);
            self.takes(plainer);
        }
    }
}

fn is_balanced(text: &str) -> bool {
    text.matches('(').count() == text.matches(')').count()
        && text.matches('\'').count().is_multiple_of(2)
}

/// The case without the so-many-th part of a `CREATE TABLE`; `None` if it is none or has no such
/// part.
fn without_column(script: &Script, at: usize, number: usize) -> Option<Script> {
    let (head, body, tail) = definition(&script.setup[at])?;
    let mut parts = split(body);
    if number >= parts.len() || parts.len() == 1 {
        return None;
    }
    let gone = parts.remove(number);
    let column = gone.split(' ').next()?;
    let table = head.strip_prefix("CREATE TABLE ")?.trim();
    let mut smaller = script.clone();
    smaller.setup[at] = format!("{head}({}){tail}", parts.join(", "));
    for text in &mut smaller.setup {
        if let Some(without) = row_without(text, table, column) {
            *text = without;
        }
    }
    Some(smaller)
}

/// `CREATE TABLE t `, what is between its parentheses, and the rest.
fn definition(text: &str) -> Option<(&str, &str, &str)> {
    if !text.starts_with("CREATE TABLE ") {
        return None;
    }
    let (open, close) = (text.find('(')?, text.rfind(") ENGINE")?);
    Some((
        &text[..open],
        text.get(open + 1..close)?,
        &text[close + 1..],
    ))
}

/// `INSERT … INTO table (a, b) VALUES (1, 2)` without one of its columns.
fn row_without(text: &str, table: &str, column: &str) -> Option<String> {
    let (head, rest) = text.split_once(&format!(" INTO {table} ("))?;
    let (names, values) = rest.split_once(") VALUES (")?;
    let mut names = split(names);
    let mut values = split(values.strip_suffix(')')?);
    let at = names.iter().position(|name| *name == column)?;
    if values.len() != names.len() {
        return None;
    }
    names.remove(at);
    values.remove(at);
    Some(format!(
        "{head} INTO {table} ({}) VALUES ({})",
        names.join(", "),
        values.join(", ")
    ))
}

/// Parts between commas that are in no parentheses and no quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut quoted, mut begin) = (Vec::new(), 0_i32, false, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_goes_with_its_values() {
        let script = Script {
            setup: vec![
                "CREATE TABLE t0 (id INT NOT NULL, a ENUM('x','y') NULL, PRIMARY KEY (id)) ENGINE=InnoDB".to_owned(),
                "INSERT IGNORE INTO t0 (id, a) VALUES (1, 'x, y')".to_owned(),
            ],
            ..Script::default()
        };
        let smaller = without_column(&script, 0, 1).unwrap();
        assert_eq!(
            smaller.setup[0],
            "CREATE TABLE t0 (id INT NOT NULL, PRIMARY KEY (id)) ENGINE=InnoDB"
        );
        assert_eq!(smaller.setup[1], "INSERT IGNORE INTO t0 (id) VALUES (1)");
        let smaller = without_column(&script, 0, 2).unwrap();
        assert_eq!(smaller.setup[1], script.setup[1]);
        assert_eq!(without_column(&script, 0, 3), None);
        assert_eq!(without_column(&script, 1, 0), None);
    }
}
