//! Random joins, with conditions on either side in `ON` and in `WHERE`.

use super::conditions::Scope;
use super::dice::Dice;
use super::questions::any_table;
use super::schema::{Schema, Table};

/// Two tables, perhaps the same, and what may be said of both.
struct Pair<'s> {
    left: &'s Table,
    right: &'s Table,
    both: Scope,
}

impl<'s> Pair<'s> {
    fn random(dice: &mut Dice, schema: &'s Schema) -> Pair<'s> {
        let (left, right) = (any_table(dice, schema), any_table(dice, schema));
        let mut both = Scope::of(left, "l");
        both.add(right, "r");
        Pair { left, right, both }
    }

    /// What joins the two: columns of them that are alike, and perhaps more.
    fn on(&self, dice: &mut Dice) -> String {
        let references = self.right.columns.iter().any(|one| one.is_reference);
        let joined = match dice.index(3) {
            0 if references => "l.id = r.p".to_owned(),
            1 => {
                let name = self.shared(dice);
                format!("l.{name} = r.{name}")
            }
            _ => "l.id = r.id".to_owned(),
        };
        match dice.index(3) {
            0 => format!("{joined} AND {}", self.constant(dice)),
            _ => joined,
        }
    }

    /// The name of a column that both have.
    fn shared(&self, dice: &mut Dice) -> &'s str {
        let shared: Vec<&str> = self
            .left
            .columns
            .iter()
            .map(|one| one.name.as_str())
            .filter(|name| self.right.columns.iter().any(|one| one.name == *name))
            .collect();
        shared[dice.index(shared.len())]
    }

    /// A condition with constants on the column of that name of one of the two.
    fn on_joined(&self, dice: &mut Dice, name: &str) -> String {
        let (table, alias) = if dice.chance(50) {
            (self.left, "l")
        } else {
            (self.right, "r")
        };
        let column = table.columns.iter().find(|one| one.name == name);
        let mut value = || column.map_or_else(String::new, |one| one.kind.compared(dice));
        let (one, other) = (value(), value());
        match dice.index(6) {
            0 => format!("{alias}.{name} IN ({one}, {other})"),
            1 => format!("{alias}.{name} BETWEEN {one} AND {other}"),
            _ => format!("{alias}.{name} = {one}"),
        }
    }

    /// A condition with a constant on one of the two.
    fn constant(&self, dice: &mut Dice) -> String {
        let (table, alias) = if dice.chance(50) {
            (self.left, "l")
        } else {
            (self.right, "r")
        };
        match dice.index(3) {
            0 => Scope::equality(dice, table, alias),
            1 => Scope::of(table, alias).range(dice),
            _ => Scope::of(table, alias).condition(dice, 0),
        }
    }

    fn further(&self, dice: &mut Dice) -> String {
        match dice.index(4) {
            0 => String::new(),
            1 => format!(" WHERE {} AND {}", self.constant(dice), self.constant(dice)),
            2 => format!(" WHERE {}", self.both.condition(dice, 2)),
            _ => format!(" WHERE {}", self.constant(dice)),
        }
    }

    fn columns(dice: &mut Dice) -> &'static str {
        dice.word(&[
            "*",
            "l.*",
            "r.*",
            "l.id, r.id",
            "COUNT(*)",
            "r.id",
            "COUNT(r.id)",
        ])
    }
}

pub(super) fn inner(dice: &mut Dice, schema: &Schema) -> String {
    let pair = Pair::random(dice, schema);
    let columns = Pair::columns(dice);
    let (left, right) = (&pair.left.name, &pair.right.name);
    if dice.chance(25) {
        let constant = pair.constant(dice);
        return format!(
            "SELECT {columns} FROM {left} l, {right} r WHERE {} AND {constant}",
            pair.on(dice)
        );
    }
    let word = dice.word(&["JOIN", "INNER JOIN", "CROSS JOIN", "STRAIGHT_JOIN"]);
    format!(
        "SELECT {columns} FROM {left} AS l {word} {right} AS r ON {}{}",
        pair.on(dice),
        pair.further(dice)
    )
}

pub(super) fn outer(dice: &mut Dice, schema: &Schema) -> String {
    let pair = Pair::random(dice, schema);
    let columns = Pair::columns(dice);
    let (left, right) = (&pair.left.name, &pair.right.name);
    let word = dice.word(&["LEFT JOIN", "RIGHT JOIN", "LEFT OUTER JOIN"]);
    let further = match dice.index(4) {
        0 => " WHERE r.id IS NULL".to_owned(),
        1 => " WHERE l.id IS NULL".to_owned(),
        _ => pair.further(dice),
    };
    format!(
        "SELECT {columns} FROM {left} AS l {word} {right} AS r ON {}{further}",
        pair.on(dice)
    )
}

pub(super) fn natural(dice: &mut Dice, schema: &Schema) -> String {
    let pair = Pair::random(dice, schema);
    let columns = Pair::columns(dice);
    let (left, right) = (&pair.left.name, &pair.right.name);
    let further = pair.further(dice);
    match dice.index(4) {
        0 => format!("SELECT {columns} FROM {left} l NATURAL JOIN {right} r{further}"),
        1 => format!("SELECT {columns} FROM {left} l NATURAL LEFT JOIN {right} r{further}"),
        2 => format!("SELECT {columns} FROM {left} l JOIN {right} r USING (id){further}"),
        _ => format!("SELECT {columns} FROM {left} l LEFT JOIN {right} r USING (id){further}"),
    }
}

pub(super) fn nested(dice: &mut Dice, schema: &Schema) -> String {
    let pair = Pair::random(dice, schema);
    let third = any_table(dice, schema);
    let columns = Pair::columns(dice);
    let (left, right) = (&pair.left.name, &pair.right.name);
    let outside = dice.word(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
    let inside = dice.word(&["JOIN", "LEFT JOIN"]);
    let name = &third.name;
    let condition = Scope::of(third, "m").condition(dice, 0);
    let further = pair.further(dice);
    format!(
        "SELECT {columns} FROM {left} l {outside} ({right} r {inside} {name} m ON r.id = m.id AND {condition}) ON {}{further}",
        pair.on(dice)
    )
}

/// A join by columns of one name, and a condition with constants on one of these: it says something
/// of the others as well.
pub(super) fn equal(dice: &mut Dice, schema: &Schema) -> String {
    let pair = Pair::random(dice, schema);
    let name = pair.shared(dice).to_owned();
    let on = match dice.index(3) {
        0 => format!("r.{name} = l.{name}"),
        _ => format!("l.{name} = r.{name}"),
    };
    let columns = Pair::columns(dice);
    let (left, right) = (&pair.left.name, &pair.right.name);
    let word = dice.word(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
    // The same table once more, behind the others or within the second.
    let third = match dice.index(4) {
        0 => format!(" {word} {right} m ON r.{name} = m.{name}"),
        1 => format!(" JOIN {right} m ON m.{name} = r.{name}"),
        _ => String::new(),
    };
    let (right, behind) = if dice.chance(30) && !third.is_empty() {
        (format!("({right} r{third})"), String::new())
    } else {
        (format!("{right} r"), third)
    };
    let constant = pair.on_joined(dice, &name);
    let (also_on, filter) = match dice.index(3) {
        0 => (format!(" AND {constant}"), String::new()),
        _ => (String::new(), format!(" WHERE {constant}")),
    };
    format!("SELECT {columns} FROM {left} l {word} {right} ON {on}{also_on}{behind}{filter}")
}

/// A join in a subquery whose condition names a table that the join doesn't combine: it means the
/// one outside, although a table inside has the same name.
pub(super) fn scoped(dice: &mut Dice, schema: &Schema) -> String {
    let pair = Pair::random(dice, schema);
    let name = pair.shared(dice).to_owned();
    let (outside, third) = (any_table(dice, schema), any_table(dice, schema));
    let (left, right, third) = (&pair.left.name, &pair.right.name, &third.name);
    let constant = pair.on_joined(dice, &name);
    // The outer one may lack the column: then the server finds an error, or the one inside.
    let outside = if dice.chance(70) { pair.left } else { outside };
    let from = match dice.index(3) {
        0 => format!("{left} l, {right} r JOIN {third} m ON l.{name} = r.{name}"),
        1 => format!("{right} r JOIN {third} m ON l.{name} = r.{name} JOIN {left} l"),
        _ => format!("{left} l JOIN ({right} r JOIN {third} m ON r.{name} = l.{name})"),
    };
    format!(
        "SELECT l.id FROM {} l WHERE EXISTS (SELECT 1 FROM {from} WHERE {constant})",
        outside.name
    )
}
