//! Random changes of definitions. The model follows them as if the server took each.

use super::dice::Dice;
use super::schema::{Column, Schema, Table};
use super::types::Type;

/// What it is, and its statements.
pub(super) fn random(
    dice: &mut Dice,
    schema: &mut Schema,
    number: usize,
) -> (&'static str, Vec<String>) {
    let bases = schema.base_tables().len();
    let at = dice.index(bases);
    match dice.index(9) {
        0 => ("ddl-add-column", add_column(dice, schema, at, number)),
        1 => ("ddl-drop-column", drop_column(dice, schema, at)),
        2 | 3 => ("ddl-modify-column", modify_column(dice, schema, at)),
        4 => ("ddl-index", index(dice, &schema.tables[at], number)),
        5 => ("ddl-swap", swap(dice, schema, at, number)),
        6 => ("ddl-view", view(dice, schema)),
        7 => ("ddl-recreate", recreate(dice, schema, at, number)),
        _ => ("ddl-rebuild", vec![rebuild(dice, &schema.tables[at])]),
    }
}

fn add_column(dice: &mut Dice, schema: &mut Schema, at: usize, number: usize) -> Vec<String> {
    let kind = Type::random(dice, schema.kind, true);
    let column = Column::new(&format!("n{number}"), kind, true);
    let table = &mut schema.tables[at];
    let (place, index) = match dice.index(3) {
        0 => (" FIRST", 0),
        1 => (" AFTER id", 1),
        _ => ("", table.columns.len()),
    };
    let text = format!(
        "ALTER TABLE {} ADD COLUMN {}{place}",
        table.name,
        column.declaration()
    );
    if index == table.columns.len() {
        table.columns.push(column);
    }
    // Elsewhere the model would lose what it knows of the other columns' places; that the column is
    // there is enough.
    vec![text]
}

fn drop_column(dice: &mut Dice, schema: &mut Schema, at: usize) -> Vec<String> {
    let table = &mut schema.tables[at];
    let droppable = table.columns.len() > 2 && !table.columns[table.columns.len() - 1].is_reference;
    let last = table.columns.len() - 1;
    if !droppable || table.keyed.contains(&last) {
        return vec![rebuild(dice, table)];
    }
    let text = format!(
        "ALTER TABLE {} DROP COLUMN {}",
        table.name, table.columns[last].name
    );
    table.columns.truncate(last);
    vec![text]
}

fn modify_column(dice: &mut Dice, schema: &mut Schema, at: usize) -> Vec<String> {
    let kind = schema.kind;
    let table = &mut schema.tables[at];
    let index = dice.index(table.columns.len());
    let is_memory = table.is_memory;
    let column = &mut table.columns[index];
    if column.is_generated || column.is_reference {
        return vec![rebuild(dice, table)];
    }
    column.kind = match &column.kind {
        Type::Integer { .. } if dice.chance(60) => Type::integer(dice),
        // Most often its collation only.
        Type::Text { name, .. } if dice.chance(80) => {
            let name = *name;
            match Type::text(dice, kind, true) {
                Type::Text { collation, .. } => Type::Text { name, collation },
                other => other,
            }
        }
        _ => Type::random(dice, kind, is_memory || index == 0),
    };
    vec![format!(
        "ALTER TABLE {} MODIFY COLUMN {}",
        table.name,
        column.declaration()
    )]
}

fn index(dice: &mut Dice, table: &Table, number: usize) -> Vec<String> {
    let column = dice.pick(&table.columns);
    let key = if column.kind.takes_keys() {
        column.name.clone()
    } else {
        "id".to_owned()
    };
    let mut all = vec![format!("CREATE INDEX i{number} ON {} ({key})", table.name)];
    if dice.chance(40) {
        all.push(format!("DROP INDEX i{number} ON {}", table.name));
    }
    all
}

/// As tools do that change a table online: a copy is made, filled, changed and put in the table's
/// place.
fn swap(dice: &mut Dice, schema: &mut Schema, at: usize, number: usize) -> Vec<String> {
    let others = schema.base_tables().len();
    let table = &mut schema.tables[at];
    let name = table.name.clone();
    if others > 1 && dice.chance(35) {
        // Two tables change places.
        let other = dice.index(others);
        if other != at {
            let second = schema.tables[other].name.clone();
            schema.tables[other].name.clone_from(&name);
            schema.tables[at].name.clone_from(&second);
            return vec![format!(
                "RENAME TABLE {name} TO swap{number}, {second} TO {name}, swap{number} TO {second}"
            )];
        }
    }
    let names: Vec<&str> = table
        .writable()
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let names = names.join(", ");
    let column = Column::new(&format!("w{number}"), Type::integer(dice), true);
    let mut all = vec![
        format!("CREATE TABLE new{number} LIKE {name}"),
        format!(
            "ALTER TABLE new{number} ADD COLUMN {}",
            column.declaration()
        ),
        format!("INSERT IGNORE INTO new{number} ({names}) SELECT {names} FROM {name}"),
        format!("RENAME TABLE {name} TO old{number}, new{number} TO {name}"),
    ];
    table.columns.push(column);
    if dice.chance(50) {
        all.push(format!("DROP TABLE old{number}"));
    }
    all
}

fn view(dice: &mut Dice, schema: &Schema) -> Vec<String> {
    let tables = schema.base_tables();
    let table = tables[dice.index(tables.len())];
    let body = Schema::view_body(dice, table);
    vec![format!("CREATE OR REPLACE VIEW v0 AS {body}")]
}

/// Dropped and made again with the same definition and other rows.
fn recreate(dice: &mut Dice, schema: &Schema, at: usize, number: usize) -> Vec<String> {
    let table = &schema.tables[at];
    let name = &table.name;
    vec![
        format!("CREATE TABLE kept{number} LIKE {name}"),
        format!("DROP TABLE {name}"),
        format!("RENAME TABLE kept{number} TO {name}"),
        format!("INSERT IGNORE INTO {name} {}", table.rows(dice, 4, true)),
    ]
}

fn rebuild(dice: &mut Dice, table: &Table) -> String {
    match dice.index(3) {
        0 => format!("ALTER TABLE {} FORCE", table.name),
        1 => format!("OPTIMIZE TABLE {}", table.name),
        _ => format!("ALTER TABLE {} COMMENT = 'changed'", table.name),
    }
}
