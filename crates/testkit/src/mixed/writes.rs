//! The forms of a write: every way in which a value can get into a row.

use std::collections::HashMap;

use remora_wire::command::ResponseKind;

use super::tables::{Kind, ROWS};
use crate::client::{Client, ClientError};
use crate::load::oracle::{Oracle, Route};
use crate::load::random::Random;

/// `COM_STMT_PREPARE`.
const PREPARE: u8 = 0x16;
/// `COM_STMT_EXECUTE`.
const EXECUTE: u8 = 0x17;
/// `MYSQL_TYPE_LONGLONG`.
const LONGLONG: u8 = 8;
/// Far above every value that a counter reaches: seen only where a rollback wasn't heeded.
const NEVER_COMMITTED: u64 = 1_000_000_000;

/// The form of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An autocommit `UPDATE`.
    Update,
    /// One `UPDATE` of several rows.
    Many,
    /// A statement prepared in the binary protocol.
    Prepared,
    /// `EXECUTE IMMEDIATE`, on MySQL `PREPARE` and `EXECUTE`.
    Immediate,
    /// Several statements in one message.
    MultiStatement,
    /// `INSERT … ON DUPLICATE KEY UPDATE`.
    Upsert,
    /// `REPLACE`.
    Replace,
    /// `BEGIN`, two statements, `COMMIT`.
    Transaction,
    /// The same in one message.
    TransactionInOneMessage,
    /// A transaction that ends because another begins.
    BeginTwice,
    /// With `autocommit = 0`, ended by `COMMIT`.
    AutocommitOff,
    /// With `autocommit = 0`, ended by `SET autocommit = 1`.
    AutocommitOn,
    /// A transaction that a definition ends.
    Definition,
    /// `DELETE` and `INSERT` in a transaction.
    DeleteInsert,
    /// A transaction of which a part is undone.
    Savepoint,
    /// A transaction that is undone.
    Rollback,
    /// A procedure.
    Call,
    /// A `SELECT` of a function that writes.
    Function,
    /// An `UPDATE` of a join.
    UpdateJoin,
    /// An XA transaction.
    Xa,
}

/// The forms with the weight of each: what forgets much is seldom, so that there is something to
/// hit.
const FORMS: [(Form, usize); 20] = [
    (Form::Update, 72),
    (Form::Many, 36),
    (Form::Prepared, 36),
    (Form::Immediate, 1),
    (Form::MultiStatement, 12),
    (Form::Upsert, 24),
    (Form::Replace, 24),
    (Form::Transaction, 48),
    (Form::TransactionInOneMessage, 12),
    (Form::BeginTwice, 18),
    (Form::AutocommitOff, 18),
    (Form::AutocommitOn, 18),
    (Form::Definition, 1),
    (Form::DeleteInsert, 24),
    (Form::Savepoint, 18),
    (Form::Rollback, 24),
    (Form::Call, 1),
    (Form::Function, 1),
    (Form::UpdateJoin, 12),
    (Form::Xa, 1),
];

impl Form {
    /// A form that this kind of table can be written in.
    pub fn choose(kind: Kind, random: &mut Random) -> Form {
        let all: usize = FORMS.iter().map(|(_, weight)| weight).sum();
        loop {
            let mut at = random.below(all);
            let chosen = FORMS.iter().find(|(_, weight)| {
                let here = at < *weight;
                at = at.saturating_sub(*weight);
                here
            });
            if let Some((form, _)) = chosen
                && form.fits(kind)
            {
                return *form;
            }
        }
    }

    fn fits(self, kind: Kind) -> bool {
        match self {
            Form::Replace => kind.stands_alone(),
            Form::DeleteInsert => kind.stands_alone() && kind.is_transactional(),
            Form::Call | Form::Function | Form::UpdateJoin => kind == Kind::Plain,
            Form::Transaction
            | Form::TransactionInOneMessage
            | Form::BeginTwice
            | Form::AutocommitOff
            | Form::AutocommitOn
            | Form::Definition
            | Form::Savepoint
            | Form::Rollback
            | Form::Xa => kind.is_transactional(),
            _ => true,
        }
    }
}

/// A connection that writes.
pub struct Writer<'a> {
    /// The connection.
    pub client: &'a mut Client,
    /// How it goes to the server.
    pub route: Route,
    /// Whether that is a MySQL.
    pub is_mysql: bool,
    /// Numbers of prepared statements.
    pub prepared: HashMap<Kind, u32>,
}

impl Writer<'_> {
    /// Writes one counter, or several, and tells the oracle. Gives the row that was written.
    pub fn write(
        &mut self,
        oracle: &Oracle,
        kind: Kind,
        form: Form,
        random: &mut Random,
    ) -> Result<usize, ClientError> {
        let row = random.below(ROWS);
        match form {
            Form::Rollback => self.roll_back(kind, row)?,
            Form::Many => self.write_many(oracle, kind, row)?,
            _ => {
                let turn = oracle.begin_write(kind.counter(row));
                self.write_one(kind, form, row, kind.stored(row, turn.value()))?;
                turn.done(self.route);
            }
        }
        Ok(row)
    }

    fn run(&mut self, statements: &[&str]) -> Result<(), ClientError> {
        for statement in statements {
            self.client.query(statement)?;
        }
        Ok(())
    }

    fn roll_back(&mut self, kind: Kind, row: usize) -> Result<(), ClientError> {
        let never = update(kind, row, kind.stored(row, NEVER_COMMITTED + row as u64));
        self.run(&["BEGIN", &never, "ROLLBACK"])
    }

    fn write_many(&mut self, oracle: &Oracle, kind: Kind, row: usize) -> Result<(), ClientError> {
        let rows: Vec<usize> = (row..ROWS).take(3).collect();
        let turns: Vec<_> = rows
            .iter()
            .map(|row| oracle.begin_write(kind.counter(*row)))
            .collect();
        let cases: Vec<String> = rows
            .iter()
            .zip(&turns)
            .map(|(row, turn)| format!("WHEN {row} THEN {}", kind.stored(*row, turn.value())))
            .collect();
        let ids: Vec<String> = rows.iter().map(ToString::to_string).collect();
        self.client.query(&format!(
            "UPDATE {} SET value = CASE id {} ELSE value END WHERE id IN ({})",
            kind.written(),
            cases.join(" "),
            ids.join(", ")
        ))?;
        for turn in turns {
            turn.done(self.route);
        }
        Ok(())
    }

    fn write_one(
        &mut self,
        kind: Kind,
        form: Form,
        row: usize,
        stored: u64,
    ) -> Result<(), ClientError> {
        let table = kind.written();
        let update = update(kind, row, stored);
        let insert = format!("INSERT INTO {table} (id, value) VALUES ({row}, {stored})");
        match form {
            Form::Update | Form::Many | Form::Rollback => self.run(&[&update]),
            Form::Prepared => self.execute(kind, row, stored),
            Form::Immediate if self.is_mysql => self.run(&[
                &format!("PREPARE immediate FROM '{update}'"),
                "EXECUTE immediate",
            ]),
            Form::Immediate => self.run(&[&format!("EXECUTE IMMEDIATE '{update}'")]),
            Form::MultiStatement => self.run(&[&format!("{update}; DO 1")]),
            Form::Upsert => self.run(&[&format!(
                "{insert} ON DUPLICATE KEY UPDATE value = VALUES(value)"
            )]),
            Form::Replace => self.run(&[&format!(
                "REPLACE INTO {table} (id, value) VALUES ({row}, {stored})"
            )]),
            Form::Transaction => self.run(&["START TRANSACTION", "DO 1", &update, "COMMIT"]),
            Form::TransactionInOneMessage => {
                self.run(&[&format!("BEGIN; {update}; COMMIT")])
            }
            Form::BeginTwice => {
                // The second one commits the first.
                self.run(&["BEGIN", &update, "BEGIN"])?;
                // Its end is nobody's news.
                self.run(&["ROLLBACK"])
            }
            Form::AutocommitOff => self.run(&[
                "SET autocommit = 0",
                &update,
                "COMMIT",
                "SET autocommit = 1",
            ]),
            Form::AutocommitOn => {
                self.run(&["SET autocommit = 0", &update, "SET autocommit = 1"])
            }
            Form::Definition => self.run(&[
                "BEGIN",
                &update,
                "CREATE TABLE IF NOT EXISTS ends_a_transaction (a INT)",
            ]),
            Form::DeleteInsert => {
                let delete = format!("DELETE FROM {table} WHERE id = {row}");
                self.run(&["BEGIN", &delete, &insert, "COMMIT"])
            }
            Form::Savepoint => {
                let never = self::update(kind, row, kind.stored(row, NEVER_COMMITTED + 500));
                self.run(&[
                    "BEGIN",
                    &update,
                    "SAVEPOINT s",
                    &never,
                    "ROLLBACK TO s",
                    "COMMIT",
                ])
            }
            Form::Call => self.run(&[&format!("CALL put({row}, {stored})")]),
            Form::Function => self.run(&[&format!("SELECT store({row}, {stored})")]),
            Form::UpdateJoin => self.run(&[&format!(
                "UPDATE plain p JOIN other o ON p.id = o.id SET p.value = {stored} WHERE o.id = {row}"
            )]),
            Form::Xa => {
                let name = format!("'{}'", self.client.connection_id());
                let xa = |what: &str| format!("XA {what} {name}");
                self.run(&[
                    &xa("START"),
                    &update,
                    &xa("END"),
                    &xa("PREPARE"),
                    &xa("COMMIT"),
                ])
            }
        }
    }

    fn execute(&mut self, kind: Kind, row: usize, stored: u64) -> Result<(), ClientError> {
        let id = match self.prepared.get(&kind) {
            Some(id) => *id,
            None => self.prepare(kind)?,
        };
        let mut body = id.to_le_bytes().to_vec();
        // No cursor, once, no NULLs, types follow.
        body.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, LONGLONG, 0, LONGLONG, 0]);
        body.extend_from_slice(&stored.to_le_bytes());
        body.extend_from_slice(&(row as u64).to_le_bytes());
        self.client.command(EXECUTE, &body, ResponseKind::Results)?;
        Ok(())
    }

    fn prepare(&mut self, kind: Kind) -> Result<u32, ClientError> {
        let text = format!("UPDATE {} SET value = ? WHERE id = ?", kind.written());
        let answer = self
            .client
            .command(PREPARE, text.as_bytes(), ResponseKind::Prepared)?;
        // After the packet's header and the OK mark.
        let number = answer.bytes().get(5..9).and_then(|b| b.try_into().ok());
        let id = u32::from_le_bytes(number.unwrap_or_default());
        self.prepared.insert(kind, id);
        Ok(id)
    }
}

fn update(kind: Kind, row: usize, stored: u64) -> String {
    format!(
        "UPDATE {} SET value = {stored} WHERE id = {row}",
        kind.written()
    )
}
