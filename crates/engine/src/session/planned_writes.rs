//! What a statement writes, as it is known before it is sent.

use remora_sql::{EverythingReason, NarrowedWrite, Statement, StatementKind, TableName, Writes};
use remora_wire::execute::BoundValue;

use crate::tags::bind;

/// What a statement writes, with names that no longer depend on the session's default schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedWrites {
    /// Nothing.
    Nothing,
    /// These tables: schema and name.
    Tables {
        /// Schema and name of each.
        names: Vec<(String, String)>,
        /// Whether triggers run with it.
        fires_triggers: bool,
        /// Which rows of the only one, if its text says so.
        narrowed: Option<Box<NarrowedWrite>>,
    },
    /// Tables, but which isn't known; and what their triggers write.
    Unnamed,
    /// Anything.
    Everything,
    /// Privileges, and with them what may be read.
    Privileges(PrivilegeStatement),
}

/// How a statement changes privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivilegeStatement {
    /// It says in the log that it has.
    Logged,
    /// It takes privileges away. If it does so for all accounts that it names, it says so in the
    /// log. If it fails, MariaDB may have done so for some of them, and says nothing.
    Revoke,
    /// It has the server read the tables of privileges again, perhaps without a trace in the log.
    Reload,
    /// The same may be in a text that isn't understood, among other things.
    Hidden,
}

impl PlannedWrites {
    /// What a statement writes, if nothing is known but its text. `qualify` gives schema and name
    /// of a table as the session means it; `None` if that isn't certain.
    pub(super) fn of<'n>(
        statement: &'n Statement,
        qualify: impl Fn(&'n TableName) -> Option<(&'n str, &'n str)>,
    ) -> PlannedWrites {
        match &statement.writes {
            Writes::Nothing => PlannedWrites::Nothing,
            Writes::Everything(EverythingReason::AccountManagement) => {
                PlannedWrites::Privileges(match statement.kind {
                    StatementKind::Flush => PrivilegeStatement::Reload,
                    _ => PrivilegeStatement::Logged,
                })
            }
            Writes::Everything(_) if fires_triggers(statement.kind) => PlannedWrites::Unnamed,
            Writes::Everything(_) => PlannedWrites::Everything,
            Writes::Tables(names) => {
                let owned = |(schema, table): (&str, &str)| (schema.to_owned(), table.to_owned());
                let qualified = names.iter().map(|name| qualify(name).map(owned));
                let Some(qualified) = qualified.collect::<Option<Vec<_>>>() else {
                    return if fires_triggers(statement.kind) {
                        PlannedWrites::Unnamed
                    } else {
                        PlannedWrites::Everything
                    };
                };
                let narrowed = statement.narrowed.as_ref();
                let narrowed =
                    narrowed.filter(|write| matches!(&names[..], [one] if *one == write.table));
                PlannedWrites::Tables {
                    names: qualified,
                    fires_triggers: fires_triggers(statement.kind),
                    narrowed: narrowed.cloned().map(Box::new),
                }
            }
        }
    }

    /// How much memory it takes apart from itself, bytes.
    pub fn bytes(&self) -> usize {
        let PlannedWrites::Tables {
            names, narrowed, ..
        } = self
        else {
            return 0;
        };
        let names = names
            .iter()
            .map(|(schema, table)| size_of::<(String, String)>() + schema.len() + table.len());
        let rows = narrowed
            .as_deref()
            .map(|write| size_of::<NarrowedWrite>() + write.constants_bytes());
        names.sum::<usize>() + rows.unwrap_or_default()
    }

    /// Makes it a coarser one that takes no more than `bytes_max`. Gives whether it had to be.
    pub fn coarsen_to(&mut self, bytes_max: usize) -> bool {
        if self.bytes() <= bytes_max {
            return false;
        }
        let mut coarsest = PlannedWrites::Everything;
        if let PlannedWrites::Tables {
            narrowed,
            fires_triggers,
            ..
        } = self
        {
            *narrowed = None;
            if *fires_triggers {
                coarsest = PlannedWrites::Unnamed;
            }
        }
        if self.bytes() > bytes_max {
            *self = coarsest;
        }
        true
    }

    /// Whether it is rows of tables that are written, one of which is `such`.
    pub fn writes_rows_of(&self, such: impl Fn(&str, &str) -> bool) -> bool {
        match self {
            PlannedWrites::Tables {
                names,
                fires_triggers: true,
                ..
            } => names.iter().any(|(schema, table)| such(schema, table)),
            _ => false,
        }
    }

    /// Fills in the values that an execution binds.
    pub fn bind(&mut self, bound: &[BoundValue<'_>]) {
        if let PlannedWrites::Tables {
            narrowed: Some(write),
            ..
        } = self
        {
            bind(write, bound);
        }
    }
}

/// Whether triggers run with statements of this kind that write tables.
fn fires_triggers(kind: StatementKind) -> bool {
    use StatementKind as Kind;
    matches!(
        kind,
        Kind::Insert
            | Kind::Replace
            | Kind::Update
            | Kind::Delete
            | Kind::Load
            | Kind::Explain
            | Kind::Multi
    )
}
