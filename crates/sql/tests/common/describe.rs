//! What a statement reads or changes, written shortly for the tables of tests.
//!
//! A block is `sources | conditions`. A source is `name#table` (the table's index), with `*` if all
//! of it is read; a condition is `column test @sources`.

use remora_sql::{
    Block, Bound, ColumnName, Condition, Constant, NarrowedWrite, Select, Source, Test, WrittenRows,
};

fn constant(constant: &Constant) -> String {
    match constant {
        Constant::Integer(value) => value.to_string(),
        Constant::Decimal(digits) => format!("decimal {digits}"),
        Constant::Text(text) => format!("'{}'", text.escape_ascii()),
        Constant::Parameter(number) => format!("?{number}"),
    }
}

fn bound(sign: &str, bound: Option<&Bound>) -> String {
    bound.map_or(String::new(), |bound| {
        let equal = if bound.inclusive { "=" } else { "" };
        format!(" {sign}{equal} {}", constant(&bound.value))
    })
}

/// `column test`
pub(crate) fn condition(condition: &Condition) -> String {
    let test = match &condition.test {
        Test::In(constants) => {
            let constants: Vec<String> = constants.iter().map(constant).collect();
            format!(" in {}", constants.join(" "))
        }
        Test::Range { from, to } => bound(">", from.as_ref()) + &bound("<", to.as_ref()),
        Test::Column(other) => format!(" = {}", column(other)),
        Test::IsNull => " null".to_owned(),
    };
    column(&condition.column) + &test
}

fn column(name: &ColumnName) -> String {
    let parts = [&name.schema, &name.table].into_iter().flatten();
    let parts: Vec<&str> = parts.chain([&name.column]).map(String::as_str).collect();
    parts.join(".")
}

/// The conditions of a block, without what they restrict.
pub(crate) fn conditions(block: &Block) -> String {
    let conditions: Vec<String> = block.conditions.iter().map(condition).collect();
    conditions.join(", ")
}

fn source(source: &Source) -> String {
    let schema = source
        .schema
        .as_ref()
        .map_or(String::new(), |schema| format!("{schema}."));
    let table = source
        .table
        .map_or(String::new(), |table| format!("#{table}"));
    let all = if source.reads_all.is_some() { "*" } else { "" };
    format!("{schema}{}{table}{all}", source.name)
}

fn block(block: &Block) -> String {
    let sources: Vec<String> = block.sources.iter().map(source).collect();
    let conditions: Vec<String> = block
        .conditions
        .iter()
        .map(|one| {
            let restricted: Vec<String> = (0..block.sources.len())
                .filter(|index| one.restricts.contains(*index))
                .map(|index| index.to_string())
                .collect();
            format!("{} @{}", condition(one), restricted.join(" "))
        })
        .collect();
    format!("{} | {}", sources.join(" "), conditions.join(", "))
}

/// Every block of a statement.
pub(crate) fn described(select: &Select) -> Vec<String> {
    select.reads.blocks.iter().map(block).collect()
}

/// The rows of a write: its conditions, or `(columns) (values) …`.
pub(crate) fn rows(write: &NarrowedWrite) -> String {
    let list = |values: Vec<String>| format!("({})", values.join(" "));
    match &write.rows {
        WrittenRows::Where(conditions) => {
            let conditions: Vec<String> = conditions.iter().map(condition).collect();
            conditions.join(", ")
        }
        WrittenRows::Values { columns, rows } => {
            let columns = columns.iter().map(|columns| list(columns.clone()));
            let value =
                |value: &Option<Constant>| value.as_ref().map_or_else(|| "-".to_owned(), constant);
            let rows = rows.iter().map(|row| list(row.iter().map(value).collect()));
            columns.chain(rows).collect::<Vec<_>>().join(" ")
        }
    }
}
