//! Code that statements run without showing it in their text: functions behind views, procedures,
//! triggers that set variables or create temporary tables, text that is executed.

use super::changes::any_write;
use super::dice::Dice;
use super::questions::any_table;
use super::schema::{Schema, Table};
use super::script::{Route, Statement};

/// Settings on which results may depend, and which code may change.
const SETTINGS: &[&str] = &[
    "time_zone = '+03:00'",
    "time_zone = 'SYSTEM'",
    "sql_select_limit = 1",
    "sql_select_limit = 0",
    "character_set_results = latin1",
    "character_set_results = utf16",
    "character_set_results = NULL",
    "character_set_client = gbk",
    "collation_connection = utf8mb4_bin",
    "sql_mode = 'ANSI_QUOTES'",
    "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
    "sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "div_precision_increment = 1",
    "group_concat_max_len = 5",
];
/// What turns the session's log on again and shows the tables that temporary ones stood in for.
const LOG_ON: &str = "SET sql_log_bin = 1";

/// Whether a procedure turns the log off for its session: nothing could tell Remora of what is
/// written then past it.
type LogOff = bool;

/// What a schema has of such code.
#[derive(Debug, Clone, Default)]
pub(super) struct Code {
    functions: Vec<String>,
    /// Views with one column `x`, made by functions that write.
    views: Vec<String>,
    /// Whether there is a procedure `p0`, and whether it turns the log off.
    procedure: Option<LogOff>,
    /// Views with one column `n`, made by functions that only read.
    pub(super) reading: Vec<String>,
}

impl Code {
    /// Some code for a schema, and the statements that make it.
    pub(super) fn random(dice: &mut Dice, schema: &Schema) -> (Code, Vec<String>) {
        let (mut code, mut all) = (Code::default(), Vec::new());
        for number in 0..dice.number(1, 2) {
            code.add_function(dice, schema, number, &mut all);
        }
        if dice.chance(50) {
            code.add_procedure(dice, schema, &mut all);
        }
        if dice.chance(50) {
            all.push(trigger(dice, schema));
        }
        if dice.chance(30) {
            let (table, counted) = (any_table(dice, schema), any_table(dice, schema));
            all.push(format!(
                "CREATE FUNCTION r0() RETURNS BIGINT READS SQL DATA RETURN (SELECT COUNT(*) FROM {})",
                counted.name
            ));
            all.push(format!(
                "CREATE VIEW x0 AS SELECT r0() AS n FROM {}",
                table.name
            ));
            code.reading.push("x0".to_owned());
        }
        (code, all)
    }

    fn add_function(
        &mut self,
        dice: &mut Dice,
        schema: &Schema,
        number: usize,
        all: &mut Vec<String>,
    ) {
        let body = body(dice, schema);
        let (function, view) = (format!("f{number}"), format!("w{number}"));
        all.push(format!(
            "CREATE FUNCTION {function}() RETURNS INT MODIFIES SQL DATA BEGIN {body}; RETURN 1; END"
        ));
        all.push(format!("CREATE VIEW {view} AS SELECT {function}() AS x"));
        if dice.chance(40) {
            all.push(format!("CREATE VIEW o{view} AS SELECT x FROM {view}"));
            self.views.push(format!("o{view}"));
        }
        self.functions.push(function);
        self.views.push(view);
    }

    fn add_procedure(&mut self, dice: &mut Dice, schema: &Schema, all: &mut Vec<String>) {
        let off = "SET SESSION sql_log_bin = 0";
        let (turns_log_off, body) = match dice.index(4) {
            0 => (true, off.to_owned()),
            1 => (true, format!("{off}; {}", any_write(dice, schema))),
            _ => (false, body(dice, schema)),
        };
        all.push(format!("CREATE PROCEDURE p0() BEGIN {body}; END"));
        self.procedure = Some(turns_log_off);
    }
}

/// What code does: it writes, it changes a setting, or it puts a temporary table in place of
/// another.
fn body(dice: &mut Dice, schema: &Schema) -> String {
    match dice.weighted(&[(15, 0), (45, 3), (25, 1), (15, 2)]) {
        0 => any_write(dice, schema),
        3 => {
            let table = any_table(dice, schema);
            turn(dice, table)
        }
        1 => format!("SET SESSION {}", dice.word(SETTINGS)),
        _ => temporary(any_table(dice, schema)),
    }
}

/// A write that changes something each time.
pub(super) fn turn(dice: &mut Dice, table: &Table) -> String {
    let writable = table.writable();
    let others = writable.iter().filter(|column| column.name != "id");
    let others: Vec<_> = others.collect();
    let column = match others.as_slice() {
        [] => writable[0],
        others => *dice.pick(others),
    };
    let (name, one, other) = (
        &column.name,
        column.kind.value(dice),
        column.kind.value(dice),
    );
    format!(
        "UPDATE IGNORE {} SET {name} = IF({name} <=> {one}, {other}, {one})",
        table.name
    )
}

/// A temporary table with a table's name and the names of its columns.
fn temporary(table: &Table) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| format!("{} VARCHAR(8) NULL DEFAULT '7'", column.name))
        .collect();
    format!(
        "CREATE TEMPORARY TABLE IF NOT EXISTS {} ({})",
        table.name,
        columns.join(", ")
    )
}

/// A trigger that changes a setting or creates a temporary table.
fn trigger(dice: &mut Dice, schema: &Schema) -> String {
    let tables = schema.base_tables();
    let from = dice.index(tables.len());
    let other = tables[(from + 1) % tables.len()];
    let body = match dice.index(2) {
        0 if tables.len() > 1 => format!("BEGIN {}; END", temporary(other)),
        _ => format!("SET SESSION {}", dice.word(SETTINGS)),
    };
    let event = dice.word(&["INSERT", "UPDATE", "DELETE"]);
    format!(
        "CREATE TRIGGER trc AFTER {event} ON {} FOR EACH ROW {body}",
        tables[from].name
    )
}

/// What it is, and its statements.
pub(super) fn random(
    dice: &mut Dice,
    schema: &Schema,
    route: Route,
) -> (&'static str, Vec<Statement>) {
    let code = &schema.code;
    match dice.weighted(&[(60, 0), (15, 1), (25, 2)]) {
        0 if !code.views.is_empty() => ("code-view", calling(dice, schema)),
        1 if code.procedure == Some(false)
            || (code.procedure.is_some() && route != Route::Direct) =>
        {
            let all = ["CALL p0()", &any_write(dice, schema), LOG_ON];
            ("code-procedure", all.map(Statement::plain).into())
        }
        _ => ("code-executed", executed(dice, schema, route)),
    }
}

/// A statement that calls a function, most often through a view.
fn calling(dice: &mut Dice, schema: &Schema) -> Vec<Statement> {
    let code = &schema.code;
    let (view, function) = (dice.pick(&code.views), dice.pick(&code.functions));
    let table = &any_table(dice, schema).name;
    let text = match dice.index(11) {
        0 | 1 => format!("SELECT x FROM {view}"),
        2 => format!("SELECT 1 FROM {table} WHERE id = (SELECT x FROM {view})"),
        3 => format!("SET @a = (SELECT x FROM {view})"),
        4 => format!("DO (SELECT MAX(x) FROM {view})"),
        5 => format!("INSERT IGNORE INTO {table} (id) SELECT x FROM {view}"),
        6 => format!("CREATE TABLE made_{view} AS SELECT x FROM {view}"),
        7 => format!("UPDATE {table} SET id = id WHERE id = (SELECT x FROM {view})"),
        8 => format!("DELETE FROM {table} WHERE id = (SELECT x + 90 FROM {view})"),
        9 => format!("SELECT {function}()"),
        _ => format!("DO {function}()"),
    };
    let is_select = text.starts_with("SELECT");
    let statement = if is_select && dice.chance(30) {
        Statement::prepared(&text)
    } else {
        Statement::plain(text)
    };
    if dice.chance(25) {
        let [begin, commit] = ["BEGIN", "COMMIT"].map(Statement::plain);
        return vec![begin, statement, commit];
    }
    vec![statement]
}

/// Text that the server is given as a value and executes.
fn executed(dice: &mut Dice, schema: &Schema, route: Route) -> Vec<Statement> {
    // Past Remora nothing tells of what isn't logged.
    let text = match dice.index(6) {
        0 if route != Route::Direct => "SET sql_log_bin = 0".to_owned(),
        1 => format!("SET SESSION {}", dice.word(SETTINGS)),
        _ => any_write(dice, schema),
    };
    let mut all = vec![Statement::executed(&text, "utf8mb4")];
    let tail = if schema.kind.is_mysql() || dice.chance(50) {
        vec!["PREPARE q FROM @q", "EXECUTE q"]
    } else {
        vec!["EXECUTE IMMEDIATE @q"]
    };
    all.extend(tail.into_iter().map(Statement::plain));
    all.push(Statement::plain(any_write(dice, schema)));
    all.push(Statement::plain(LOG_ON));
    all
}
