//! A server that answers each message at once, in the same way each time. One row changes, by the
//! storage and the log of the simulation of sessions.

use std::cell::RefCell;
use std::rc::Rc;

use remora_net::Stream;
use remora_wire::StatusFlags;
use remora_wire::packet::{HEADER_BYTES, Header, put_message};
use remora_wire::response::ServerError;
use remora_wire::result_set::Parts;

use super::super::engine::{Engine, Mode, Number, Outcome, Rows};
use super::super::log::{Format, Log, LoggedEvent};
use super::super::prepared::{CLOSE, EXECUTE, LONG_DATA, PREPARE, ServerStatements, as_binary};
use super::super::random::Random;
use super::super::server::{
    CAPABILITIES, SELECT_SETTINGS, SHOW_COUNTS, counts, end_mark, greeting, instance, next_message,
    ok, result_set, settings,
};
use super::super::statement::{Begin, Lock, Read, Statement, Write};
use super::kinds::{
    BY_ID, CHANGE_USER, CURSOR, FETCH, FIELD_LIST, LOAD, LONG, LONG_VALUE, OPTION, PING, QUERY,
    QUIT, READ, RESET_CONNECTION, RESET_STATEMENT, ROWS, SCHEMA, SEVERAL, STATISTICS, WRITE, WRONG,
};

/// `ER_NO_SUCH_TABLE`.
const NO_SUCH_TABLE: u16 = 1146;
/// Rows of the long result set.
const LONG_ROWS: u64 = 30;
/// Where a hint's form begins, which makes a text another one.
const HINT: &str = " /*+";

/// The table and the row that writes change, and what its value is at first. Others have fewer
/// digits.
const CHANGED: (usize, u64) = (0, 10);
const FIRST_VALUE: u64 = 5_000;
/// Its ids are below this.
const IDS: u64 = 100;

/// What all conversations share.
pub(super) struct Storage {
    engine: Engine,
    log: Log,
    random: Random,
    /// What no session should have sent.
    unexpected: Vec<String>,
}

impl Storage {
    pub(super) fn new() -> Rc<RefCell<Storage>> {
        let format = Format {
            is_minimal: false,
            one_text_in: 0,
            one_long_in: 0,
        };
        let mut storage = Storage {
            engine: Engine::new(),
            log: Log::new(format, instance().server_id),
            random: Random::new(1),
            unexpected: Vec::new(),
        };
        let elsewhere = storage.engine.connect();
        storage.run(elsewhere, &write(FIRST_VALUE));
        Rc::new(RefCell::new(storage))
    }

    /// The value that reads show now.
    pub(super) fn shown_value(&self) -> u64 {
        let (table, id) = CHANGED;
        let read = Read::ById { table, id };
        let rows = self.engine.read_at(self.engine.visible(), &read, &[]);
        rows.first().and_then(|row| row[0]).unwrap_or_default()
    }

    /// The log's next event, and what is left of it.
    pub(super) fn next_event(&mut self) -> Option<LoggedEvent> {
        self.log.read(&self.engine, &mut self.random)
    }

    /// How many commits the log has. All can be seen.
    pub(super) fn commits(&self) -> usize {
        self.engine.logged()
    }

    /// What should not have been sent.
    pub(super) fn take_unexpected(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unexpected)
    }

    /// Runs a statement to its end.
    fn run(&mut self, session: Number, statement: &Statement) -> Option<Rows> {
        let outcome = self.engine.run(session, statement);
        while self.engine.is_committing(session) {
            self.engine.show_next();
        }
        match outcome {
            Outcome::Rows(rows) => Some(rows),
            Outcome::Done | Outcome::Committing => Some(Rows::new()),
            Outcome::Failed(_) | Outcome::Blocked => None,
        }
    }
}

/// Gives the row a value.
fn write(value: u64) -> Statement {
    let (table, id) = CHANGED;
    Statement::Write(Write::Value { table, id, value })
}

/// One conversation.
struct Conversation {
    storage: Rc<RefCell<Storage>>,
    session: Number,
    prepared: ServerStatements,
    /// The rows that a cursor has yet to give, in packets of a binary result set.
    cursor: Vec<Vec<u8>>,
}

impl Drop for Conversation {
    /// What is open is rolled back.
    fn drop(&mut self) {
        self.storage.borrow_mut().engine.disconnect(self.session);
    }
}

/// Answers until the other side ends.
pub(super) async fn converse(stream: Stream, storage: Rc<RefCell<Storage>>) {
    let session = storage.borrow_mut().engine.connect();
    let mut conversation = Conversation {
        storage: Rc::clone(&storage),
        session,
        prepared: ServerStatements::default(),
        cursor: Vec::new(),
    };
    let mut received = Vec::new();
    if stream.write_all(&greeting()).await.is_err() {
        return;
    }
    let Some(_login) = next_message(&stream, &mut received, 1).await else {
        return;
    };
    let mut answer = ok(conversation.status(), 2);
    loop {
        if stream.write_all(&answer).await.is_err() {
            return;
        }
        if asks_for_a_file(&answer) {
            let mut number = 2;
            while let Some(piece) = next_message(&stream, &mut received, number).await {
                number += 1;
                if piece.len() == HEADER_BYTES {
                    break;
                }
            }
            answer = ok(conversation.status(), number);
            continue;
        }
        let Some(message) = next_message(&stream, &mut received, 0).await else {
            return;
        };
        let payload = &message[HEADER_BYTES..];
        if payload == [QUIT] {
            return;
        }
        answer = conversation.answer(payload).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(payload).into_owned();
            storage.borrow_mut().unexpected.push(text);
            ServerError::new(NO_SUCH_TABLE, "HY000", "unexpected").packet(1)
        });
    }
}

fn asks_for_a_file(answer: &[u8]) -> bool {
    answer.get(HEADER_BYTES) == Some(&0xfb)
}

fn packet(payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    put_message(&mut packet, 1, payload);
    packet
}

/// One answer after the other, numbered as one.
fn in_one(answers: &[Vec<u8>]) -> Vec<u8> {
    let mut whole = answers.concat();
    let (mut at, mut number) = (0, 1_u8);
    while let Some(header) = Header::peek(&whole[at..]) {
        whole[at + HEADER_BYTES - 1] = number;
        number = number.wrapping_add(1);
        at += HEADER_BYTES + header.length;
    }
    whole
}

impl Conversation {
    fn mode(&self) -> Mode {
        self.storage.borrow().engine.session(self.session).mode
    }

    fn status(&self) -> StatusFlags {
        let status = StatusFlags::AUTOCOMMIT;
        if self.mode().is_open {
            status.with(StatusFlags::IN_TRANSACTION)
        } else {
            status
        }
    }

    /// `None`: nobody should have sent that.
    fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let (command, body) = message.split_first()?;
        let status = self.status();
        match *command {
            PING | SCHEMA | RESET_STATEMENT => Some(ok(status, 1)),
            CHANGE_USER | RESET_CONNECTION => {
                let mut storage = self.storage.borrow_mut();
                storage.engine.disconnect(self.session);
                self.session = storage.engine.connect();
                drop(storage);
                self.prepared = ServerStatements::default();
                Some(ok(self.status(), 1))
            }
            STATISTICS => Some(packet(b"Uptime: 1")),
            OPTION => Some(packet(&end_mark(status))),
            FIELD_LIST => {
                let set = result_set(&Vec::new(), status);
                let parts = Parts::of(&set, CAPABILITIES).ok()?;
                // A default value follows the definition.
                let definition = [parts.head[1], &[0xfb]].concat();
                Some(in_one(&[packet(&definition), packet(&end_mark(status))]))
            }
            QUERY => self.answer_text(std::str::from_utf8(body).ok()?),
            PREPARE => {
                let template = String::from_utf8(body.to_vec()).ok()?;
                Some(self.prepared.prepare(template, &end_mark(status)))
            }
            EXECUTE => self.execute(body),
            FETCH => self.fetch(body),
            // No answer follows.
            LONG_DATA => self.prepared.take_ahead(body).map(|()| Vec::new()),
            CLOSE => self.prepared.close(body).map(|()| Vec::new()),
            _ => None,
        }
    }

    fn answer_text(&mut self, text: &str) -> Option<Vec<u8>> {
        let status = self.status();
        let text = text.split(HINT).next()?;
        if text.starts_with(SELECT_SETTINGS) {
            return Some(settings(self.mode(), status, text));
        }
        if let Some(rows) = self.rows_of(text) {
            return Some(result_set(&rows, status));
        }
        match text {
            text if text.starts_with(SHOW_COUNTS) => return Some(counts(status)),
            SEVERAL => {
                let more = status.with(StatusFlags::MORE_RESULTS);
                let one = |number| vec![vec![Some(number)]];
                return Some(in_one(&[
                    result_set(&one(1), more),
                    ok(more, 1),
                    result_set(&self.rows_of(ROWS)?, more),
                    result_set(&one(2), status),
                ]));
            }
            WRONG => return Some(ServerError::new(NO_SUCH_TABLE, "42S02", "no table").packet(1)),
            LOAD => return Some(packet(b"\xfbrows")),
            _ => {}
        }
        let begin = |begin: &Begin| begin.text() == text;
        let statement = match text {
            "BEGIN" => Statement::Begin(Begin::default()),
            "COMMIT" => Statement::Commit,
            "ROLLBACK" | "ROLLBACK AND NO CHAIN NO RELEASE" => Statement::Rollback,
            WRITE => write(self.storage.borrow().shown_value() + 1),
            _ if text.starts_with("DO ") || text.starts_with("SET ") => {
                return Some(ok(status, 1));
            }
            _ => Statement::Begin(Begin::all().find(begin)?),
        };
        self.storage.borrow_mut().run(self.session, &statement)?;
        Some(ok(self.status(), 1))
    }

    fn execute(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let text = self.prepared.text_of(body)?;
        let text = text.split(HINT).next()?.to_owned();
        self.prepared.executed(body);
        let Some(rows) = self.rows_of(&text) else {
            return self.answer_text(&text);
        };
        let set = as_binary(&result_set(&rows, self.status()), &rows);
        if body.get(4..9) != Some(&CURSOR) {
            return Some(set);
        }
        let parts = Parts::of(&set, CAPABILITIES).ok()?;
        self.cursor = parts.rows.iter().map(|row| row.to_vec()).collect();
        let mark = end_mark(self.status().with(StatusFlags::CURSOR_EXISTS));
        // The definitions, and the mark in place of the one behind them.
        let head = &parts.head[..parts.head.len() - 1];
        let head: Vec<_> = head.iter().map(|payload| packet(payload)).collect();
        Some(in_one(&[head.concat(), packet(&mark)]))
    }

    fn fetch(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let wanted = usize::from(*body.get(4)?).min(self.cursor.len());
        let rows: Vec<_> = self
            .cursor
            .drain(..wanted)
            .map(|row| packet(&row))
            .collect();
        let status = self.status().with(StatusFlags::CURSOR_EXISTS);
        let status = if self.cursor.is_empty() {
            status.with(StatusFlags::LAST_ROW_SENT)
        } else {
            status
        };
        Some(in_one(&[rows.concat(), packet(&end_mark(status))]))
    }

    /// What a read gives.
    fn rows_of(&self, text: &str) -> Option<Rows> {
        let table = CHANGED.0;
        let all = Read::Between {
            table,
            ids: [0, IDS],
        };
        let by_id = Read::ById {
            table,
            id: CHANGED.1,
        };
        let run = |read| {
            let lock = Lock::None;
            let statement = Statement::Read { read, lock };
            self.storage.borrow_mut().run(self.session, &statement)
        };
        match text {
            ROWS => run(all),
            READ => {
                let rows = run(all)?;
                Some(rows.into_iter().map(|row| row[..1].to_vec()).collect())
            }
            BY_ID => run(by_id),
            LONG => Some(
                (1..=LONG_ROWS)
                    .map(|id| vec![Some(id), Some(100 + id)])
                    .collect(),
            ),
            LONG_VALUE => Some(vec![vec![Some(100)]]),
            _ => None,
        }
    }
}
