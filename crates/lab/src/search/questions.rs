//! Random queries, by shape. Each has one right answer for a state of the data, up to the order of
//! rows unless it has a `LIMIT`: what decides between equal values
//! ([`Type::identity`](super::types::Type::identity)) is named.

use super::conditions::Scope;
use super::dice::Dice;
use super::joins;
use super::schema::{Column, Schema, Table};
use super::script::{Question, Statement};
use remora_testkit::servers::Kind;

/// Share of queries that are prepared, of a hundred.
const PREPARED: usize = 25;

/// What makes a text of a shape.
type Maker = fn(&mut Dice, &Schema) -> String;

/// Every shape with its weight.
const SHAPES: &[(usize, (&str, Maker))] = &[
    (16, ("point", point)),
    (9, ("in-list", in_list)),
    (9, ("range", range)),
    (12, ("condition", condition)),
    (4, ("whole-table", whole)),
    (7, ("count", count)),
    (5, ("aggregate", aggregate)),
    (4, ("group", group)),
    (3, ("distinct", distinct)),
    (4, ("limit", limit)),
    (7, ("inner-join", joins::inner)),
    (7, ("outer-join", joins::outer)),
    (3, ("natural-join", joins::natural)),
    (3, ("nested-join", joins::nested)),
    (7, ("equal-join", joins::equal)),
    (2, ("scoped-join", joins::scoped)),
    (4, ("union", union)),
    (3, ("derived", derived)),
    (3, ("cte", cte)),
    (6, ("subquery", subquery)),
    (3, ("view", view)),
    (3, ("window", window)),
    (2, ("view-of-code", view_of_code)),
];

/// A query.
pub(super) fn random(dice: &mut Dice, schema: &Schema) -> Question {
    loop {
        let (shape, make) = dice.weighted(SHAPES);
        let marked = make(dice, schema);
        if marked.is_empty() {
            // The server or the schema hasn't what the shape needs.
            continue;
        }
        // MySQL 8.0.31 crashes when it prepares an IN for a partitioned table.
        let is_fatal = schema.kind == Kind::MySql80 && schema.has_partitions();
        // MySQL 5.7 names the table of a merged derived table's columns now so, now not at all,
        // when it is prepared.
        let is_undecided = schema.kind == Kind::MySql57 && matches!(shape, "derived" | "view");
        let is_prepared = dice.chance(PREPARED) && !is_fatal && !is_undecided;
        let statement = if is_prepared {
            Statement::prepared(&marked)
        } else {
            Statement::plain(marked)
        };
        return Question {
            shape: shape.to_owned(),
            statement,
        };
    }
}

pub(super) fn any_table<'s>(dice: &mut Dice, schema: &'s Schema) -> &'s Table {
    let tables = schema.base_tables();
    tables[dice.index(tables.len())]
}

/// Columns to select of a table: all, or some.
pub(super) fn selected(dice: &mut Dice, table: &Table, alias: &str) -> String {
    let dot = if alias.is_empty() { "" } else { "." };
    match dice.index(4) {
        0 => format!("{alias}{dot}*"),
        1 => format!("{alias}{dot}id"),
        _ => {
            let chosen = dice.some_of(table.columns.len()).into_iter();
            let name = |at: usize| format!("{alias}{dot}{}", table.columns[at].name);
            let mut names: Vec<String> = chosen.map(name).collect();
            if dice.chance(15) {
                names[0].push_str(" AS x");
            }
            names.join(", ")
        }
    }
}

fn ordered(dice: &mut Dice, text: String) -> String {
    if dice.chance(50) {
        format!("{text} ORDER BY id")
    } else {
        text
    }
}

fn simple(dice: &mut Dice, table: &Table, condition: &str) -> String {
    let (alias, named) = match dice.index(3) {
        0 => ("", table.name.clone()),
        1 => (table.name.as_str(), table.name.clone()),
        _ => ("z", format!("{} AS z", table.name)),
    };
    let columns = selected(dice, table, alias);
    let text = format!("SELECT {columns} FROM {named} WHERE {condition}");
    ordered(dice, text)
}

fn point(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let mut condition = Scope::equality(dice, table, "");
    for _ in 0..dice.weighted(&[(70, 0), (22, 1), (8, 2)]) {
        condition = format!("{condition} AND {}", Scope::equality(dice, table, ""));
    }
    simple(dice, table, &condition)
}

fn in_list(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let condition = Scope::of(table, "").list(dice);
    simple(dice, table, &condition)
}

fn range(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let condition = Scope::of(table, "").range(dice);
    simple(dice, table, &condition)
}

fn condition(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let depth = dice.number(0, 3);
    let condition = Scope::of(table, "").condition(dice, depth);
    simple(dice, table, &condition)
}

fn whole(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let columns = selected(dice, table, "");
    let text = format!("SELECT {columns} FROM {}", table.name);
    ordered(dice, text)
}

/// ` WHERE …` or nothing.
fn perhaps_where(dice: &mut Dice, scope: &Scope) -> String {
    if dice.chance(25) {
        return String::new();
    }
    let depth = dice.number(0, 2);
    format!(" WHERE {}", scope.condition(dice, depth))
}

fn count(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let column = dice.pick(&table.columns);
    let what = match dice.index(4) {
        0 => column.name.clone(),
        1 => format!("DISTINCT {}", column.kind.identity(&column.name)),
        _ => "*".to_owned(),
    };
    let further = perhaps_where(dice, &Scope::of(table, ""));
    format!("SELECT COUNT({what}) FROM {}{further}", table.name)
}

fn aggregate(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let mut parts = Vec::new();
    for at in dice.some_of(table.columns.len()) {
        let column = &table.columns[at];
        let identity = column.kind.identity(&column.name);
        let function = match (column.kind.takes_sum(), dice.index(3)) {
            (true, 0) => "SUM",
            (_, 1) => "MIN",
            _ => "MAX",
        };
        parts.push(format!("{function}({identity})"));
    }
    let further = perhaps_where(dice, &Scope::of(table, ""));
    format!("SELECT {} FROM {}{further}", parts.join(", "), table.name)
}

fn group(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let column = table.any_column(dice);
    let identity = column.kind.identity(&column.name);
    let further = perhaps_where(dice, &Scope::of(table, ""));
    let having = if dice.chance(40) {
        " HAVING COUNT(*) > 1"
    } else {
        ""
    };
    format!(
        "SELECT {identity} AS k, COUNT(*) FROM {}{further} GROUP BY {identity}{having} ORDER BY 1",
        table.name
    )
}

fn identities(table: &Table, chosen: &[usize]) -> String {
    let one = |&at: &usize| {
        let column: &Column = &table.columns[at];
        column.kind.identity(&column.name)
    };
    chosen.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn distinct(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let chosen = dice.some_of(table.columns.len());
    let further = perhaps_where(dice, &Scope::of(table, ""));
    format!(
        "SELECT DISTINCT {} FROM {}{further}",
        identities(table, &chosen),
        table.name
    )
}

fn limit(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let chosen = dice.some_of(table.columns.len());
    let identities = identities(table, &chosen);
    let further = perhaps_where(dice, &Scope::of(table, ""));
    let direction = dice.word(&["", " DESC"]);
    let offset = dice.word(&["", " OFFSET 1", " OFFSET 3"]);
    let count = dice.number(0, 4);
    format!(
        "SELECT {identities} FROM {}{further} ORDER BY {identities}{direction} LIMIT {count}{offset}",
        table.name
    )
}

fn union(dice: &mut Dice, schema: &Schema) -> String {
    let mut operators = vec!["UNION", "UNION ALL", "UNION DISTINCT"];
    if matches!(
        schema.kind,
        Kind::MariaDb1011 | Kind::MariaDb114 | Kind::MySql80
    ) {
        operators.extend(["EXCEPT", "INTERSECT"]);
    }
    let part = |dice: &mut Dice| {
        let table = any_table(dice, schema);
        let column = table.any_column(dice);
        let further = perhaps_where(dice, &Scope::of(table, ""));
        format!(
            "SELECT {} AS x FROM {}{further}",
            column.kind.identity(&column.name),
            table.name
        )
    };
    let mut text = part(dice);
    for _ in 0..dice.number(1, 2) {
        text = format!("{text} {} {}", dice.word(&operators), part(dice));
    }
    text
}

fn derived(dice: &mut Dice, schema: &Schema) -> String {
    let table = any_table(dice, schema);
    let (inner, outer) = (Scope::of(table, ""), Scope::of(table, "x"));
    let further = perhaps_where(dice, &inner);
    let what = dice.word(&["x.*", "x.id", "COUNT(*)"]);
    let condition = outer.condition(dice, 1);
    format!(
        "SELECT {what} FROM (SELECT * FROM {}{further}) AS x WHERE {condition}",
        table.name
    )
}

fn cte(dice: &mut Dice, schema: &Schema) -> String {
    if !schema.kind.has_common_table_expressions() {
        return String::new();
    }
    let table = any_table(dice, schema);
    let further = perhaps_where(dice, &Scope::of(table, ""));
    let head = format!("WITH x AS (SELECT * FROM {}{further})", table.name);
    match dice.index(3) {
        0 => format!("{head} SELECT x.id, y.id FROM x JOIN x AS y ON x.id = y.id"),
        1 => format!("{head} SELECT COUNT(*) FROM x"),
        _ => format!(
            "{head} SELECT x.* FROM x WHERE {}",
            Scope::of(table, "x").condition(dice, 1)
        ),
    }
}

fn subquery(dice: &mut Dice, schema: &Schema) -> String {
    let (table, other) = (any_table(dice, schema), any_table(dice, schema));
    let (outer, inner) = (Scope::of(table, "o"), Scope::of(other, "i"));
    let ((name, _), (within, kind)) = (outer.any(dice), inner.any(dice));
    let restriction = inner.condition(dice, 1);
    let correlated = format!("{within} = {name}");
    let further = if dice.chance(50) {
        format!(" AND {}", outer.condition(dice, 0))
    } else {
        String::new()
    };
    let not = dice.word(&["", "", "NOT "]);
    let from = format!("FROM {} AS o", table.name);
    let below = format!("FROM {} AS i", other.name);
    match dice.index(5) {
        0 => format!(
            "SELECT o.* {from} WHERE {name} {not}IN (SELECT {within} {below} WHERE {restriction}){further}"
        ),
        1 => format!(
            "SELECT o.* {from} WHERE {not}EXISTS (SELECT 1 {below} WHERE {correlated} AND {restriction}){further}"
        ),
        2 => format!(
            "SELECT o.id, (SELECT COUNT(*) {below} WHERE {correlated}) {from} WHERE 1 = 1{further}"
        ),
        3 => {
            let identity = kind.kind.identity(&within);
            format!(
                "SELECT o.id {from} WHERE {name} = (SELECT MAX({identity}) {below} WHERE {restriction}){further}"
            )
        }
        _ => format!(
            "SELECT COUNT(*) {from} WHERE {not}EXISTS (SELECT * {below} WHERE {restriction}){further}"
        ),
    }
}

fn view(dice: &mut Dice, schema: &Schema) -> String {
    let views: Vec<&Table> = schema.tables.iter().filter(|one| one.is_view).collect();
    if views.is_empty() {
        return String::new();
    }
    let view = views[dice.index(views.len())];
    let condition = Scope::of(view, "").condition(dice, 1);
    simple(dice, view, &condition)
}

/// A view whose rows a function makes of another table.
fn view_of_code(dice: &mut Dice, schema: &Schema) -> String {
    match schema.code.reading.as_slice() {
        [] => String::new(),
        views => format!("SELECT n FROM {}", dice.pick(views)),
    }
}

fn window(dice: &mut Dice, schema: &Schema) -> String {
    if !schema.kind.has_common_table_expressions() {
        return String::new();
    }
    let table = any_table(dice, schema);
    let everything: Vec<usize> = (0..table.columns.len()).collect();
    let order = identities(table, &everything);
    let column = dice.pick(&table.columns);
    let further = perhaps_where(dice, &Scope::of(table, ""));
    let partition = column.kind.identity(&column.name);
    match dice.index(2) {
        0 => format!(
            "SELECT id, ROW_NUMBER() OVER (ORDER BY {order}) FROM {}{further}",
            table.name
        ),
        _ => format!(
            "SELECT id, COUNT(*) OVER (PARTITION BY {partition}) FROM {}{further}",
            table.name
        ),
    }
}
