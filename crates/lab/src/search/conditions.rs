//! Random conditions over columns in scope.

use super::dice::Dice;
use super::schema::{Column, Table};

/// Columns that a condition may name, each with how it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) columns: Vec<(String, Column)>,
}

impl Scope {
    /// The columns of a table under an alias; without one by their bare names.
    pub(super) fn of(table: &Table, alias: &str) -> Scope {
        let mut scope = Scope::default();
        scope.add(table, alias);
        scope
    }

    pub(super) fn add(&mut self, table: &Table, alias: &str) {
        for column in &table.columns {
            let written = match alias {
                "" => column.name.clone(),
                _ => format!("{alias}.{}", column.name),
            };
            self.columns.push((written, column.clone()));
        }
    }

    pub(super) fn any(&self, dice: &mut Dice) -> (String, Column) {
        dice.pick(&self.columns).clone()
    }

    /// A condition of some depth.
    pub(super) fn condition(&self, dice: &mut Dice, depth: usize) -> String {
        if depth == 0 {
            return self.simple(dice);
        }
        match dice.weighted(&[(40, 0), (16, 1), (6, 2), (38, 3)]) {
            0 => format!(
                "{} AND {}",
                self.condition(dice, depth - 1),
                self.condition(dice, depth - 1)
            ),
            1 => format!(
                "({} OR {})",
                self.condition(dice, depth - 1),
                self.condition(dice, depth - 1)
            ),
            2 => format!("NOT ({})", self.condition(dice, depth - 1)),
            _ => self.simple(dice),
        }
    }

    /// A condition on one column that a key could serve.
    pub(super) fn equality(dice: &mut Dice, table: &Table, alias: &str) -> String {
        let column = table.any_column(dice);
        let dot = if alias.is_empty() { "" } else { "." };
        format!(
            "{alias}{dot}{} = {}",
            column.name,
            column.kind.compared(dice)
        )
    }

    /// An `IN` on one column.
    pub(super) fn list(&self, dice: &mut Dice) -> String {
        let (name, column) = self.any(dice);
        let count = dice.number(1, 4);
        let values: Vec<String> = (0..count).map(|_| column.kind.compared(dice)).collect();
        let not = if dice.chance(10) { "NOT " } else { "" };
        format!("{name} {not}IN ({})", values.join(", "))
    }

    /// A range of one column.
    pub(super) fn range(&self, dice: &mut Dice) -> String {
        let (name, column) = self.any(dice);
        let (low, high) = (column.kind.compared(dice), column.kind.compared(dice));
        match dice.index(4) {
            0 => format!("{name} BETWEEN {low} AND {high}"),
            1 => format!("{name} >= {low} AND {name} < {high}"),
            2 => format!("{name} {} {low}", dice.word(&["<", "<=", ">", ">="])),
            _ => format!("{low} {} {name}", dice.word(&["<", "<=", ">", ">="])),
        }
    }

    fn simple(&self, dice: &mut Dice) -> String {
        let (name, column) = self.any(dice);
        let value = column.kind.compared(dice);
        match dice.weighted(&[
            (34, 0),
            (14, 1),
            (16, 2),
            (4, 3),
            (5, 4),
            (4, 5),
            (4, 6),
            (4, 7),
            (5, 8),
            (3, 9),
            (3, 10),
            (2, 11),
            (2, 12),
        ]) {
            0 => format!("{name} = {value}"),
            1 => self.list(dice),
            2 => self.range(dice),
            3 => format!("{name} <> {value}"),
            4 => format!("{name} IS NULL"),
            5 => format!("{name} <=> {value}"),
            6 => format!(
                "{name} LIKE {}",
                dice.word(&["'a%'", "'%'", "'_'", "'5%'", "'a'", "'A_'", "'2020%'"])
            ),
            7 => {
                let (other, _) = self.any(dice);
                format!("{name} {} {other}", dice.word(&["=", "<", "<=>"]))
            }
            8 => format!("{value} = {name}"),
            9 => format!("{name} IS NOT NULL"),
            10 => self.row(dice),
            11 => name,
            _ => format!("{name} = {value} + 0"),
        }
    }

    /// A comparison of rows.
    fn row(&self, dice: &mut Dice) -> String {
        let ((name, column), (other, further)) = (self.any(dice), self.any(dice));
        let pair = |dice: &mut Dice| {
            format!(
                "({}, {})",
                column.kind.compared(dice),
                further.kind.compared(dice)
            )
        };
        match dice.index(2) {
            0 => format!("({name}, {other}) = {}", pair(dice)),
            _ => format!("({name}, {other}) IN ({}, {})", pair(dice), pair(dice)),
        }
    }
}
