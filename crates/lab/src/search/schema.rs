//! Random schemas: tables with keys, foreign keys, triggers, partitions and views, as a model that
//! queries and changes are made from.

use super::dice::Dice;
use super::hidden::Code;
use super::types::Type;
use remora_testkit::servers::Kind;

/// Rows of a table at the beginning.
const ROWS_MIN: usize = 3;
const ROWS_MAX: usize = 14;
/// Share of schemas with code that runs unseen, of a hundred.
const SHARE_WITH_CODE: usize = 60;
/// Names of columns; tables share some, so that natural joins have something to join on.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Type,
    pub(super) is_nullable: bool,
    /// The server computes it.
    pub(super) is_generated: bool,
    /// Rows of other tables, or of this one, are named by it.
    pub(super) is_reference: bool,
}

/// A table or a view.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    pub(super) is_view: bool,
    /// Columns that have a key of their own.
    pub(super) keyed: Vec<usize>,
    pub(super) is_memory: bool,
    is_partitioned: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Schema {
    pub(super) kind: Kind,
    /// Tables first, then views.
    pub(super) tables: Vec<Table>,
    /// What runs without being seen.
    pub(super) code: Code,
}

impl Table {
    /// Columns that statements may write.
    pub(super) fn writable(&self) -> Vec<&Column> {
        self.columns
            .iter()
            .filter(|one| !one.is_generated)
            .collect()
    }

    /// A column, rather one with a key.
    pub(super) fn any_column(&self, dice: &mut Dice) -> &Column {
        if !self.keyed.is_empty() && dice.chance(45) {
            return &self.columns[*dice.pick(&self.keyed)];
        }
        dice.pick(&self.columns)
    }

    /// `(a, b) VALUES (1, 2), (3, 4)` for some or all columns.
    pub(super) fn rows(&self, dice: &mut Dice, count: usize, whole: bool) -> String {
        let writable = self.writable();
        let some = whole || dice.chance(80);
        let columns: Vec<&Column> = if some {
            writable
        } else {
            dice.some_of(writable.len())
                .into_iter()
                .map(|at| writable[at])
                .collect()
        };
        let names: Vec<&str> = columns.iter().map(|one| one.name.as_str()).collect();
        let mut rows = Vec::new();
        for _ in 0..count {
            let values: Vec<String> = columns.iter().map(|one| one.value(dice)).collect();
            rows.push(format!("({})", values.join(", ")));
        }
        format!("({}) VALUES {}", names.join(", "), rows.join(", "))
    }
}

impl Column {
    pub(super) fn new(name: &str, kind: Type, is_nullable: bool) -> Column {
        Column {
            name: name.to_owned(),
            kind,
            is_nullable,
            is_generated: false,
            is_reference: false,
        }
    }

    /// A value to write.
    pub(super) fn value(&self, dice: &mut Dice) -> String {
        if self.is_nullable && dice.chance(12) {
            return super::script::literal("NULL");
        }
        self.kind.value(dice)
    }

    /// As it is declared.
    pub(super) fn declaration(&self) -> String {
        let null = if self.is_nullable { "NULL" } else { "NOT NULL" };
        let default = match (&self.kind, self.is_nullable) {
            // Without one, the first of a table would follow the clock.
            (Type::Timestamp(_), false) => " DEFAULT '2020-01-01 00:00:00'",
            _ => "",
        };
        format!("{} {} {null}{default}", self.name, self.kind.declaration())
    }
}

impl Schema {
    /// A schema and the statements that make it, with its first rows.
    pub(super) fn random(
        dice: &mut Dice,
        kind: Kind,
        is_mostly_code: bool,
    ) -> (Schema, Vec<String>) {
        let mut schema = Schema {
            kind,
            tables: Vec::new(),
            code: Code::default(),
        };
        let mut statements = Vec::new();
        for number in 0..dice.number(1, 4) {
            let made = schema.add_table(dice, number);
            statements.push(made);
        }
        for table in &schema.tables {
            for _ in 0..dice.number(ROWS_MIN, ROWS_MAX) {
                statements.push(format!(
                    "INSERT IGNORE INTO {} {}",
                    table.name,
                    table.rows(dice, 1, true)
                ));
            }
        }
        // After the rows, so that a row that is dropped while a case is made smaller takes nothing
        // else with it.
        for number in 0..dice.number(0, 2) {
            statements.push(schema.trigger(dice, number));
        }
        for number in 0..dice.number(0, 2) {
            let made = schema.add_view(dice, number);
            statements.push(made);
        }
        let (code, made) = if is_mostly_code || dice.chance(SHARE_WITH_CODE) {
            Code::random(dice, &schema)
        } else {
            (Code::default(), Vec::new())
        };
        schema.code = code;
        statements.extend(made);
        let unmarked = |text: String| super::script::Statement::plain(text).text;
        (schema, statements.into_iter().map(unmarked).collect())
    }

    /// Whether a table has partitions.
    pub(super) fn has_partitions(&self) -> bool {
        self.tables.iter().any(|one| one.is_partitioned)
    }

    /// Tables, without views.
    pub(super) fn base_tables(&self) -> Vec<&Table> {
        self.tables.iter().filter(|one| !one.is_view).collect()
    }

    fn add_table(&mut self, dice: &mut Dice, number: usize) -> String {
        let is_memory = dice.chance(8);
        let mut columns = vec![self.first_column(dice)];
        let names: Vec<&str> = dice
            .some_of(NAMES.len())
            .into_iter()
            .map(|at| NAMES[at])
            .collect();
        for name in names.into_iter().take(7) {
            let kind = Type::random(dice, self.kind, is_memory);
            let is_nullable = dice.chance(65);
            columns.push(Column::new(name, kind, is_nullable));
        }
        let mut table = Table {
            name: format!("t{number}"),
            columns,
            is_view: false,
            keyed: Vec::new(),
            is_memory,
            is_partitioned: false,
        };
        let mut parts = Schema::keys(dice, &mut table);
        if !table.is_memory && !table.is_partitioned && dice.chance(45) {
            parts.push(self.reference(dice, &mut table));
        }
        if self.kind != Kind::MySql56 && table.columns[0].kind.is_integer() && dice.chance(20) {
            let mut column = Column::new(
                "s",
                Type::Integer {
                    name: "INT",
                    is_unsigned: false,
                },
                true,
            );
            column.is_generated = true;
            // From a key column, or from one that updates change.
            let integers = table.columns.iter().filter(|one| one.kind.is_integer());
            let integers: Vec<_> = integers.map(|one| one.name.clone()).collect();
            let from = integers.last().map_or("id", |name| name);
            let is_virtual = !table.is_memory && table.columns.len().is_multiple_of(2);
            let how = if is_virtual { "VIRTUAL" } else { "STORED" };
            table.columns.push(column);
            parts.push(format!("s INT GENERATED ALWAYS AS ({from} % 4) {how}"));
        }
        let declared = table.columns.iter().filter(|one| !one.is_generated);
        let mut all: Vec<String> = declared.map(Column::declaration).collect();
        all.append(&mut parts);
        let engine = if table.is_memory { "MEMORY" } else { "InnoDB" };
        let partitions = if table.is_partitioned {
            " PARTITION BY HASH (id) PARTITIONS 3"
        } else {
            ""
        };
        let text = format!(
            "CREATE TABLE {} ({}) ENGINE={engine}{partitions}",
            table.name,
            all.join(", ")
        );
        self.tables.push(table);
        text
    }

    fn first_column(&self, dice: &mut Dice) -> Column {
        let kind = match dice.weighted(&[(75, 0), (20, 1), (5, 2)]) {
            0 => Type::integer(dice),
            1 => Type::text(dice, self.kind, true),
            _ => Type::Decimal("DECIMAL(10,2)"),
        };
        Column::new("id", kind, false)
    }

    /// The primary key and others. Decides whether the table is partitioned, which other unique
    /// keys forbid.
    fn keys(dice: &mut Dice, table: &mut Table) -> Vec<String> {
        let mut parts = Vec::new();
        let second = table
            .columns
            .get(1)
            .filter(|one| one.kind.takes_keys() && !one.is_nullable);
        let key = match (dice.weighted(&[(75, 0), (15, 1), (10, 2)]), second) {
            (1, Some(second)) => format!("PRIMARY KEY (id, {})", second.name),
            (2, _) => "KEY k (id)".to_owned(),
            _ => "PRIMARY KEY (id)".to_owned(),
        };
        parts.push(key);
        table.keyed.push(0);
        table.is_partitioned =
            !table.is_memory && table.columns[0].kind.is_integer() && dice.chance(8);
        for at in 1..table.columns.len() {
            let column = &table.columns[at];
            if !column.kind.takes_keys() || !dice.chance(30) {
                continue;
            }
            let is_unique = !table.is_partitioned && dice.chance(25);
            let word = if is_unique { "UNIQUE KEY u" } else { "KEY k" };
            parts.push(format!("{word}{at} ({})", column.name));
            table.keyed.push(at);
        }
        parts
    }

    /// A foreign key to an earlier table or to the same one.
    fn reference(&self, dice: &mut Dice, table: &mut Table) -> String {
        let before = self
            .tables
            .iter()
            .filter(|one| !one.is_memory && !one.is_partitioned);
        let mut parents: Vec<(String, Type)> = before
            .map(|one| (one.name.clone(), one.columns[0].kind.clone()))
            .collect();
        parents.push((table.name.clone(), table.columns[0].kind.clone()));
        let (parent, kind) = dice.pick(&parents).clone();
        let action = |dice: &mut Dice| {
            dice.word(&["CASCADE", "CASCADE", "SET NULL", "RESTRICT", "NO ACTION"])
        };
        let (on_delete, on_update) = (action(dice), action(dice));
        let mut column = Column::new("p", kind, true);
        column.is_reference = true;
        table.keyed.push(table.columns.len());
        table.columns.push(column);
        format!(
            "KEY kp (p), FOREIGN KEY (p) REFERENCES {parent} (id) ON DELETE {on_delete} ON UPDATE {on_update}"
        )
    }

    /// A trigger, the table of which comes before the one it writes, so that none calls itself.
    fn trigger(&self, dice: &mut Dice, number: usize) -> String {
        let tables = self.base_tables();
        let from = dice.index(tables.len());
        let event = dice.word(&["INSERT", "UPDATE", "DELETE"]);
        let row = if event == "DELETE" { "OLD" } else { "NEW" };
        let name = format!("tr{number}{}", event.to_lowercase());
        if from + 1 == tables.len() {
            let column = dice.pick(&tables[from].columns);
            let event = if event == "DELETE" { "INSERT" } else { event };
            let value = column.value(dice);
            let body = if column.is_generated {
                "SET @changed = 1".to_owned()
            } else {
                format!("SET NEW.{} = {value}", column.name)
            };
            return format!("CREATE TRIGGER {name} BEFORE {event} ON t{from} FOR EACH ROW {body}");
        }
        let to = tables[dice.number(from + 1, tables.len() - 1)];
        let column = *dice.pick(&to.writable());
        let body = match dice.index(3) {
            0 => format!("INSERT IGNORE INTO {} {}", to.name, to.rows(dice, 1, true)),
            1 => format!(
                "UPDATE IGNORE {} SET {} = {} WHERE id = {row}.id",
                to.name,
                column.name,
                column.value(dice)
            ),
            _ => format!("DELETE FROM {} WHERE id = {row}.id", to.name),
        };
        let when = dice.word(&["AFTER", "BEFORE"]);
        format!(
            "CREATE TRIGGER {name} {when} {event} ON {} FOR EACH ROW {body}",
            tables[from].name
        )
    }

    fn add_view(&mut self, dice: &mut Dice, number: usize) -> String {
        let table = dice.pick(&self.base_tables()).to_owned().clone();
        let view = Table {
            name: format!("v{number}"),
            is_view: true,
            ..table.clone()
        };
        let text = format!(
            "CREATE VIEW {} AS {}",
            view.name,
            Schema::view_body(dice, &table)
        );
        self.tables.push(view);
        text
    }

    /// What a view selects: all columns of a table.
    pub(super) fn view_body(dice: &mut Dice, table: &Table) -> String {
        let names: Vec<&str> = table.columns.iter().map(|one| one.name.as_str()).collect();
        let names = names.join(", ");
        let column = table.any_column(dice);
        let condition = match dice.index(3) {
            0 => String::new(),
            1 => format!(" WHERE {} > {}", column.name, column.kind.value(dice)),
            _ => format!(" WHERE {} = {}", column.name, column.kind.value(dice)),
        };
        format!("SELECT {names} FROM {}{condition}", table.name)
    }
}
