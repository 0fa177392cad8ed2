//! Random changes: statements that write, alone and in transactions.

use super::conditions::Scope;
use super::definitions;
use super::dice::Dice;
use super::hidden;
use super::questions::any_table;
use super::schema::{Schema, Table};
use super::script::{Change, Question, ROW_IMAGES, Route, Statement};

/// Share of writes that are prepared, of a hundred.
const PREPARED: usize = 15;
/// Share of changes whose session asks then, of a hundred; and where most changes run code.
const ASKING: usize = 25;
const ASKING_AFTER_CODE: usize = 75;
/// Weight of changes that run code; and where most do.
const CODE: usize = 14;
const MOSTLY_CODE: usize = 200;
/// How much it asks.
const ASKS_MAX: usize = 5;

type Maker = fn(&mut Dice, &Schema) -> String;

const WRITES: &[(usize, (&str, Maker))] = &[
    (30, ("insert", insert)),
    (6, ("insert-several", insert_several)),
    (7, ("upsert", upsert)),
    (5, ("insert-ignore", insert_ignore)),
    (5, ("insert-select", insert_select)),
    (7, ("replace", replace)),
    (26, ("update", update)),
    (8, ("update-key", update_key)),
    (3, ("update-nothing", update_nothing)),
    (3, ("update-limit", update_limit)),
    (14, ("delete", delete)),
    (4, ("update-join", update_join)),
    (2, ("delete-join", delete_join)),
    (2, ("update-view", update_view)),
];

/// A change; a definition that it makes is kept in the model.
pub(super) fn random(
    dice: &mut Dice,
    schema: &mut Schema,
    number: usize,
    questions: &[Question],
    is_mostly_code: bool,
) -> Change {
    let route = dice.weighted(&[
        (18, Route::ThroughHeld),
        (12, Route::ThroughAtOnce),
        (30, Route::Through),
        (40, Route::Direct),
    ]);
    let image = if dice.chance(60) {
        "FULL"
    } else {
        dice.word(&ROW_IMAGES)
    };
    let (of_code, asking) = if is_mostly_code {
        (MOSTLY_CODE, ASKING_AFTER_CODE)
    } else {
        (CODE, ASKING)
    };
    let (kind, statements) = match dice.weighted(&[
        (57, 0),
        (14, 1),
        (3, 2),
        (3, 3),
        (2, 4),
        (7, 5),
        (of_code, 6),
    ]) {
        0 => {
            let (kind, statement) = write(dice, schema);
            (kind.to_owned(), vec![statement])
        }
        1 => ("transaction".to_owned(), transaction(dice, schema)),
        2 => (
            "autocommit-off".to_owned(),
            without_autocommit(dice, schema),
        ),
        3 => ("xa".to_owned(), distributed(dice, schema, number)),
        4 => {
            let table = any_table(dice, schema).name.clone();
            (
                "truncate".to_owned(),
                vec![Statement::plain(format!("TRUNCATE TABLE {table}"))],
            )
        }
        5 => {
            let (kind, texts) = definitions::random(dice, schema, number);
            (
                kind.to_owned(),
                texts.into_iter().map(Statement::plain).collect(),
            )
        }
        _ => {
            let (kind, statements) = hidden::random(dice, schema, route);
            (kind.to_owned(), statements)
        }
    };
    Change {
        route,
        image: image.to_owned(),
        kind,
        statements,
        ends_elsewhere: false,
        asks: asks(dice, questions, asking),
    }
}

/// Some of the questions that are text, most often none.
fn asks(dice: &mut Dice, questions: &[Question], percent: usize) -> Vec<Statement> {
    if !dice.chance(percent) {
        return Vec::new();
    }
    let count = dice.number(1, ASKS_MAX);
    let chosen = (0..count).map(|_| dice.pick(questions).statement.clone());
    chosen.filter(|one| one.values.is_none()).collect()
}

/// The text of a statement that writes, its literals marked.
pub(super) fn any_write(dice: &mut Dice, schema: &Schema) -> String {
    loop {
        let (_, make) = dice.weighted(WRITES);
        let marked = make(dice, schema);
        if !marked.is_empty() {
            return marked;
        }
    }
}

/// One statement that writes.
fn write(dice: &mut Dice, schema: &Schema) -> (&'static str, Statement) {
    loop {
        let (kind, make) = dice.weighted(WRITES);
        let marked = make(dice, schema);
        if marked.is_empty() {
            continue;
        }
        let is_prepared = dice.chance(PREPARED);
        let statement = if is_prepared {
            Statement::prepared(&marked)
        } else {
            Statement::plain(marked)
        };
        return (kind, statement);
    }
}

pub(super) fn writes(dice: &mut Dice, schema: &Schema, count: usize) -> Vec<Statement> {
    (0..count).map(|_| write(dice, schema).1).collect()
}

fn transaction(dice: &mut Dice, schema: &Schema) -> Vec<Statement> {
    let begin = dice.word(&[
        "START TRANSACTION",
        "BEGIN",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    ]);
    let mut all = vec![Statement::plain(begin)];
    let count = dice.number(1, 3);
    all.extend(writes(dice, schema, count));
    if dice.chance(35) {
        all.push(Statement::plain("SAVEPOINT s"));
        all.extend(writes(dice, schema, 1));
        if dice.chance(70) {
            all.push(Statement::plain("ROLLBACK TO SAVEPOINT s"));
        }
        let count = dice.index(2);
        all.extend(writes(dice, schema, count));
    }
    let end = dice.weighted(&[(75, "COMMIT"), (25, "ROLLBACK")]);
    all.push(Statement::plain(end));
    all
}

fn without_autocommit(dice: &mut Dice, schema: &Schema) -> Vec<Statement> {
    let mut all = vec![Statement::plain("SET autocommit = 0")];
    all.extend(writes(dice, schema, 2));
    all.push(Statement::plain(
        dice.word(&["COMMIT", "ROLLBACK", "COMMIT"]),
    ));
    all.push(Statement::plain("SET autocommit = 1"));
    all
}

fn distributed(dice: &mut Dice, schema: &Schema, number: usize) -> Vec<Statement> {
    let mut all = vec![Statement::plain(format!("XA START 'x{number}'"))];
    all.extend(writes(dice, schema, 2));
    all.push(Statement::plain(format!("XA END 'x{number}'")));
    if dice.chance(60) {
        all.push(Statement::plain(format!("XA PREPARE 'x{number}'")));
        all.push(Statement::plain(format!(
            "XA {} 'x{number}'",
            dice.word(&["COMMIT", "COMMIT", "ROLLBACK"])
        )));
    } else {
        all.push(Statement::plain(format!("XA COMMIT 'x{number}' ONE PHASE")));
    }
    all
}

/// ` WHERE …` that mostly chooses few rows.
fn chosen(dice: &mut Dice, table: &Table) -> String {
    let scope = Scope::of(table, "");
    match dice.index(10) {
        0..=5 => format!(" WHERE {}", Scope::equality(dice, table, "")),
        6 => format!(" WHERE {}", scope.list(dice)),
        7 => format!(" WHERE {}", scope.range(dice)),
        _ => format!(" WHERE {}", scope.condition(dice, 1)),
    }
}

/// ` SET …` of some columns, mostly not the first.
fn assignments(dice: &mut Dice, table: &Table, alias: &str) -> String {
    let writable = table.writable();
    let others: Vec<_> = writable.iter().filter(|one| one.name != "id").collect();
    let count = dice.weighted(&[(70, 1), (30, 2)]);
    let mut parts = Vec::new();
    for _ in 0..count {
        let column = if others.is_empty() {
            writable[0]
        } else {
            others[dice.index(others.len())]
        };
        let value = match (column.kind.takes_sum(), dice.index(5)) {
            (true, 0) => format!("{alias}{} + 1", column.name),
            (_, 1) if !others.is_empty() => {
                format!("{alias}{}", others[dice.index(others.len())].name)
            }
            _ => column.value(dice),
        };
        parts.push(format!("{alias}{} = {value}", column.name));
    }
    format!(" SET {}", parts.join(", "))
}

fn insert(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    format!("INSERT INTO {} {}", table.name, table.rows(dice, 1, false))
}

fn insert_several(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let ignore = dice.word(&["", "IGNORE "]);
    format!(
        "INSERT {ignore}INTO {} {}",
        table.name,
        table.rows(dice, 3, false)
    )
}

fn upsert(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let rows = table.rows(dice, 1, true);
    let set = assignments(dice, table, "").replacen(" SET ", "", 1);
    format!(
        "INSERT INTO {} {rows} ON DUPLICATE KEY UPDATE {set}",
        table.name
    )
}

fn insert_ignore(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    format!(
        "INSERT IGNORE INTO {} {}",
        table.name,
        table.rows(dice, 1, true)
    )
}

fn insert_select(dice: &mut Dice, schema: &Schema) -> String {
    let (table, from) = (any_table(dice, schema), any_table(dice, schema));
    let (into, source) = (table.writable(), from.writable());
    let pairs = into.len().min(source.len());
    let names = |columns: &[&super::schema::Column]| {
        let names = columns.iter().take(pairs).map(|one| one.name.clone());
        names.collect::<Vec<_>>().join(", ")
    };
    let condition = Scope::of(from, "").condition(dice, 0);
    format!(
        "INSERT IGNORE INTO {} ({}) SELECT {} FROM {} WHERE {condition}",
        table.name,
        names(&into),
        names(&source),
        from.name
    )
}

fn replace(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    format!("REPLACE INTO {} {}", table.name, table.rows(dice, 1, true))
}

fn update(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let set = assignments(dice, table, "");
    let ignore = dice.word(&["", "", "IGNORE "]);
    format!("UPDATE {ignore}{}{set}{}", table.name, chosen(dice, table))
}

fn update_key(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let value = if table.columns[0].kind.is_integer() && dice.chance(50) {
        "id + 1".to_owned()
    } else {
        table.columns[0].value(dice)
    };
    format!(
        "UPDATE {} SET id = {value}{}",
        table.name,
        chosen(dice, table)
    )
}

fn update_nothing(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let writable = table.writable();
    let column = &dice.pick(&writable).name;
    format!(
        "UPDATE {} SET {column} = {column}{}",
        table.name,
        chosen(dice, table)
    )
}

fn update_limit(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let set = assignments(dice, table, "");
    format!("UPDATE {}{set} ORDER BY id DESC LIMIT 1", table.name)
}

fn delete(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    if dice.chance(15) {
        format!("DELETE FROM {} ORDER BY id LIMIT 1", table.name)
    } else {
        format!("DELETE FROM {}{}", table.name, chosen(dice, table))
    }
}

fn update_join(dice: &mut Dice, schema: &Schema) -> String {
    let (left, right) = (any_table(dice, schema), any_table(dice, schema));
    let mut set = assignments(dice, left, "l.");
    if dice.chance(40) {
        set = format!(
            "{set}, {}",
            assignments(dice, right, "r.").replacen(" SET ", "", 1)
        );
    }
    let condition = Scope::equality(dice, right, "r");
    let word = dice.word(&["JOIN", "LEFT JOIN"]);
    format!(
        "UPDATE {} l {word} {} r ON l.id = r.id{set} WHERE {condition}",
        left.name, right.name
    )
}

fn delete_join(dice: &mut Dice, schema: &Schema) -> String {
    let (left, right) = (any_table(dice, schema), any_table(dice, schema));
    let condition = Scope::equality(dice, right, "r");
    let targets = dice.word(&["l", "l, r", "r"]);
    format!(
        "DELETE {targets} FROM {} l JOIN {} r ON l.id = r.id WHERE {condition}",
        left.name, right.name
    )
}

fn update_view(dice: &mut Dice, schema: &Schema) -> String {
    let views: Vec<&Table> = schema.tables.iter().filter(|one| one.is_view).collect();
    if views.is_empty() {
        return String::new();
    }
    let view = views[dice.index(views.len())];
    let set = assignments(dice, view, "");
    format!("UPDATE {}{set}{}", view.name, chosen(dice, view))
}
