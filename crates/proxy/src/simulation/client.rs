//! A simulated client: what it sends, what it expects, and whether an answer can be right.

use std::collections::BTreeSet;
use std::rc::Rc;

use remora_net::Stream;
use remora_wire::command::ResponseKind;
use remora_wire::handshake::Login;
use remora_wire::walker::{Ending, Progress, ResponseWalker};

use super::engine::{
    Change, DEADLOCK, DUPLICATE, Engine, Mode, NO_SAVEPOINT, Number, READ_ONLY, Rows, Session,
    WAITED_TOO_LONG,
};
use super::prepared::{ClientStatements, Sending, message, parse_row};
use super::random::Random;
use super::server::{CAPABILITIES, damage};
use super::statement::{Isolation, Lock, Read, Statement};

const QUERY: u8 = 3;

/// A client that is logged in.
pub(super) struct Client {
    pub(super) stream: Rc<Stream>,
    /// Its session at the server.
    pub(super) session: Number,
    /// What its transactions should be like.
    mode: Mode,
    /// What the open transaction's snapshot must show: what was acknowledged before its first read.
    acknowledged: Option<Acknowledged>,
    /// The oldest commit that the snapshot may show, by what was read.
    floor: usize,
    /// What it has read since then while the server had no snapshot.
    unproven: Vec<Unproven>,
    /// A `SET` of it was answered since the server last ran something else.
    may_have_pending_set: bool,
    /// Its transactions may be refused because of what memory has answered.
    may_be_refused: bool,
    prepared: ClientStatements,
    asked: Option<Asked>,
    received: Vec<u8>,
    /// What the socket hasn't taken.
    unsent: Vec<u8>,
    /// What it executes next: the first value was sent ahead.
    planned: Option<Statement>,
    /// The last statement that was answered, if the server's name for it is known.
    last: Option<Statement>,
    /// Remora may close the connection: it has refused an execution that loses something by that.
    pub(super) may_be_closed: bool,
}

/// The commits that a read must show: those that were acknowledged to clients, and those that the
/// follower had read before.
pub(super) type Acknowledged = BTreeSet<usize>;

/// The oldest commit that a read may show: the newest acknowledged one that changed what it gives.
fn floor_of(read: &Read, acknowledged: &Acknowledged, engine: &Engine) -> usize {
    let changes = |commit: &&usize| {
        let before = commit.saturating_sub(1);
        engine.read_at(before, read, &[]) != engine.read_at(**commit, read, &[])
    };
    acknowledged
        .iter()
        .rev()
        .find(changes)
        .copied()
        .unwrap_or(0)
}

/// A read that waits to be compared with the snapshot.
#[derive(Debug)]
struct Unproven {
    read: Read,
    rows: Rows,
    /// What the transaction had changed itself by then.
    own: Vec<Change>,
}

/// A statement on its way.
struct Asked {
    statement: Statement,
    form: Form,
    /// Before it was sent.
    acknowledged: Acknowledged,
    /// How many statements the server had run in the session before, and how many of them were a
    /// `SET`.
    ran: [u64; 2],
}

impl Asked {
    /// Whether the server has run nothing for the statement. It may have heard of a `SET` that was
    /// answered before.
    fn is_hit(&self, session: &Session) -> bool {
        let [runs, sets] = self.ran;
        if self.statement.sets() {
            self.ran == [session.runs, session.sets]
        } else {
            session.runs - session.sets == runs - sets
        }
    }
}

/// How it was sent.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Text,
    /// Only its preparation, of this template.
    Preparation(String),
    /// `loses_if_refused`: it names types that nobody else knows, or a value was sent ahead of it.
    /// Refused, it would leave the server with another statement than the client believes.
    Execution {
        loses_if_refused: bool,
    },
}

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Rows(Rows),
    Failed(u16),
}

/// What the world learns of an answer.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The commit that it acknowledges.
    pub(super) acknowledged: Option<usize>,
    /// The server has run nothing for it.
    pub(super) is_hit: bool,
    /// The session was closed.
    pub(super) is_closed: bool,
    /// A transaction was given up for it.
    pub(super) is_conflict: bool,
    /// It was a read, inside a transaction or not.
    pub(super) read_inside: Option<bool>,
    /// How many executions of prepared statements the server has not run: one, or none.
    pub(super) prepared_hits: u64,
    /// How many `SET`s the server hasn't heard of: one, or none.
    pub(super) sets_deferred: u64,
}

impl Client {
    pub(super) fn new(stream: Rc<Stream>, session: Number, may_be_refused: bool) -> Client {
        Client {
            stream,
            session,
            mode: Mode::new(),
            acknowledged: None,
            floor: 0,
            may_have_pending_set: false,
            may_be_refused,
            unproven: Vec::new(),
            prepared: ClientStatements::default(),
            asked: None,
            received: Vec::new(),
            unsent: Vec::new(),
            planned: None,
            last: None,
            may_be_closed: false,
        }
    }

    /// What it logs in with.
    pub(super) fn login() -> Vec<u8> {
        let login = Login {
            capabilities: CAPABILITIES,
            packet_bytes_max: 1 << 24,
            collation: 45,
            user: b"u".to_vec(),
            authentication: Vec::new(),
            schema: b"s".to_vec(),
            plugin: remora_wire::auth::NATIVE_PASSWORD.as_bytes().to_vec(),
        };
        login.packet(1)
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.mode.is_open
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.asked.is_some()
    }

    /// Sends a statement as text.
    pub(super) fn send(
        &mut self,
        statement: Statement,
        acknowledged: Acknowledged,
        engine: &Engine,
    ) -> std::io::Result<()> {
        let payload = [&[QUERY], statement.text().as_bytes()].concat();
        self.put(&message(&payload))?;
        self.expect_answer(statement, Form::Text, acknowledged, engine);
        Ok(())
    }

    /// Sends a statement as a prepared one, or prepares it.
    pub(super) fn send_prepared(
        &mut self,
        statement: Statement,
        random: &mut Random,
        acknowledged: Acknowledged,
        engine: &Engine,
    ) -> std::io::Result<()> {
        let closing = self.prepared.close_some(random);
        let mut messages = closing.map_or(Vec::new(), |payload| message(&payload));
        let form = match self.prepared.send(&statement.text(), random) {
            Sending::Preparation { payload, template } => {
                messages.extend(message(&payload));
                Form::Preparation(template)
            }
            Sending::Execution {
                payload,
                names_types,
            } => {
                messages.extend(message(&payload));
                let loses_if_refused = names_types && !statement.is_plain_read();
                Form::Execution { loses_if_refused }
            }
        };
        self.put(&messages)?;
        self.expect_answer(statement, form, acknowledged, engine);
        Ok(())
    }

    /// Sends a value of a statement ahead, if that is prepared and has one.
    pub(super) fn send_ahead(&mut self, statement: &Statement) -> std::io::Result<bool> {
        let Some(payload) = self.prepared.send_ahead(&statement.text()) else {
            return Ok(false);
        };
        self.put(&message(&payload))?;
        self.planned = Some(statement.clone());
        Ok(true)
    }

    /// Whether a value of an execution has been sent ahead of it.
    pub(super) fn has_sent_ahead(&self) -> bool {
        self.planned.is_some()
    }

    /// Sends that execution.
    pub(super) fn send_rest(
        &mut self,
        random: &mut Random,
        acknowledged: Acknowledged,
        engine: &Engine,
    ) -> std::io::Result<()> {
        let Some(statement) = self.planned.take() else {
            return Ok(());
        };
        if let Some(payload) = self.prepared.send_rest(&statement.text(), random) {
            self.put(&message(&payload))?;
            let loses_if_refused = true;
            let form = Form::Execution { loses_if_refused };
            self.expect_answer(statement, form, acknowledged, engine);
        }
        Ok(())
    }

    /// Sends, or keeps for later what the socket doesn't take.
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.unsent.extend_from_slice(bytes);
        let sent = self.stream.write_now(&self.unsent)?;
        self.unsent.drain(..sent);
        Ok(())
    }

    /// Sends a message that is damaged, whatever else is on its way.
    pub(super) fn send_damaged(&mut self, statement: &Statement, random: &mut Random) {
        let commands = [QUERY, QUERY, random.byte()];
        let command = commands[random.index(commands.len())];
        let mut message = message(&[&[command], statement.text().as_bytes()].concat());
        for _ in 0..random.below(4) {
            damage(&mut message, random);
        }
        // If that fails, reading says why.
        let _ = self.put(&message);
    }

    fn expect_answer(
        &mut self,
        statement: Statement,
        form: Form,
        acknowledged: Acknowledged,
        engine: &Engine,
    ) {
        let session = engine.session(self.session);
        self.asked = Some(Asked {
            statement,
            form,
            acknowledged,
            ran: [session.runs, session.sets],
        });
    }

    /// Takes what has come. If that is a whole answer, checks it: an error says why it is wrong.
    pub(super) fn receive(&mut self, engine: &Engine) -> Result<Option<Told>, String> {
        let mut chunk = [0; 4096];
        // If that fails, reading says why.
        let _ = self.put(&[]);
        let mut is_closed = false;
        loop {
            match self.stream.try_read(&mut chunk) {
                Ok(0) => {
                    is_closed = true;
                    break;
                }
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        let told = self.take_answer(engine)?;
        Ok(if is_closed {
            Some(Told {
                is_closed,
                ..told.unwrap_or_default()
            })
        } else {
            told
        })
    }

    fn take_answer(&mut self, engine: &Engine) -> Result<Option<Told>, String> {
        let form = self.asked.as_ref().map_or(&Form::Text, |asked| &asked.form);
        let Some(answer) = parse(&self.received, form)? else {
            return Ok(None);
        };
        let Some(asked) = self.asked.take() else {
            return Err("an answer to nothing".to_owned());
        };
        let received = std::mem::take(&mut self.received);
        let told = match &asked.form {
            Form::Preparation(template) => {
                self.check_preparation(&asked, template, &answer, &received, engine)
            }
            Form::Text | Form::Execution { .. } => self.check(&asked, &answer, engine),
        };
        told.map(Some)
            .map_err(|why| format!("{:?}: {answer:?}: {why}", asked.statement))
    }

    fn check_preparation(
        &mut self,
        asked: &Asked,
        template: &str,
        answer: &Answer,
        received: &[u8],
        engine: &Engine,
    ) -> Result<Told, String> {
        let mut told = Told {
            is_hit: asked.is_hit(engine.session(self.session)),
            ..Told::default()
        };
        self.last = None;
        self.may_have_pending_set &= told.is_hit || asked.statement.sets();
        match answer {
            Answer::Failed(DEADLOCK) if self.may_be_refused => {
                self.mode.is_open = false;
                self.end();
                told.is_conflict = true;
            }
            Answer::Failed(_) => return Err("it can't fail like this".to_owned()),
            _ => self.prepared.prepared(template, received)?,
        }
        if !engine.session(self.session).is_over {
            self.check_mode(told.is_hit, engine)?;
        }
        Ok(told)
    }

    fn check(&mut self, asked: &Asked, answer: &Answer, engine: &Engine) -> Result<Told, String> {
        let is_hit = asked.is_hit(engine.session(self.session));
        let is_prepared = matches!(asked.form, Form::Execution { .. });
        let mut told = Told {
            is_hit,
            prepared_hits: u64::from(is_hit && is_prepared),
            ..Told::default()
        };
        self.may_have_pending_set &= told.is_hit || asked.statement.sets();
        let statement = &asked.statement;
        if let Answer::Failed(code) = answer {
            if !self.may_fail(statement, *code) {
                return Err("it can't fail like this".to_owned());
            }
            self.last = None;
            if *code == DEADLOCK {
                self.mode.is_open = false;
                self.end();
                told.is_conflict = true;
                let loses_if_refused = true;
                self.may_be_closed =
                    self.may_be_refused && asked.form == Form::Execution { loses_if_refused };
            } else {
                self.mode.take(statement);
            }
            if !engine.session(self.session).is_over {
                self.check_mode(told.is_hit, engine)?;
            }
            return Ok(told);
        }
        self.may_be_closed = false;
        if told.is_hit && statement.must_run() {
            return Err("the server has not run it".to_owned());
        }
        match (statement, answer) {
            (Statement::Read { read, lock }, Answer::Rows(rows)) => {
                told.read_inside = Some(self.mode.is_open);
                self.check_read(read, *lock, rows, &asked.acknowledged, engine)?;
            }
            (Statement::Warnings, Answer::Rows(rows)) if rows.is_empty() => {}
            (Statement::Warnings, _) => return Err("not an empty result".to_owned()),
            (Statement::Read { .. }, _) => return Err("no rows".to_owned()),
            (_, Answer::Rows(_)) => return Err("rows".to_owned()),
            _ => {}
        }
        if self.mode.ends(statement).is_some() {
            self.end();
        }
        self.mode.take(statement);
        told.sets_deferred = u64::from(told.is_hit && statement.sets());
        self.may_have_pending_set |= statement.sets();
        let makes_snapshot = matches!(statement, Statement::Begin(begin) if begin.with_snapshot);
        if makes_snapshot && self.mode.level == Isolation::RepeatableRead {
            let session = engine.session(self.session);
            let mut acknowledged = asked.acknowledged.clone();
            acknowledged.insert(session.committed);
            self.acknowledged = Some(acknowledged);
            if session.snapshot.is_none() {
                return Err("no snapshot was made".to_owned());
            }
        }
        if *statement == Statement::RollbackToSavepoint
            && engine.session(self.session).snapshot.is_none()
        {
            // It undoes the snapshot if that was made behind the savepoint.
            self.end();
        }
        // What an earlier statement has committed was acknowledged with that.
        told.acknowledged = Some(engine.session(self.session).committed);
        if !engine.session(self.session).is_over {
            self.check_mode(told.is_hit, engine)?;
            self.check_what_ran(statement, engine)?;
            self.check_unproven(engine)?;
        }
        Ok(told)
    }

    /// `SHOW WARNINGS` is about the statement before it: that is the one that the server has run
    /// last.
    fn check_what_ran(&mut self, statement: &Statement, engine: &Engine) -> Result<(), String> {
        if *statement != Statement::Warnings {
            // There are several ways to begin a transaction.
            let is_known = !matches!(statement, Statement::Begin(_));
            self.last = is_known.then(|| statement.clone());
            return Ok(());
        }
        let ran = &engine.session(self.session).last;
        match &self.last {
            Some(last) if ran.as_ref() != Some(last) => {
                Err(format!("they are those of {ran:?}, not of {last:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a statement may fail with this code. With `early` each may be refused because the
    /// transaction has read what no longer holds.
    fn may_fail(&self, statement: &Statement, code: u16) -> bool {
        let codes: &[u16] = match statement {
            Statement::Write(_) | Statement::Call { .. } => {
                &[WAITED_TOO_LONG, DEADLOCK, DUPLICATE, READ_ONLY]
            }
            Statement::Read {
                lock: Lock::Exclusive,
                ..
            } => &[WAITED_TOO_LONG, DEADLOCK],
            Statement::RollbackToSavepoint => &[NO_SAVEPOINT],
            _ => &[],
        };
        codes.contains(&code) || code == DEADLOCK && self.may_be_refused
    }

    /// Whether the server's session is in the transaction that the client is in. One of which the
    /// server doesn't know has run nothing there.
    fn check_mode(&self, is_hit: bool, engine: &Engine) -> Result<(), String> {
        let at_server = engine.session(self.session).mode;
        let is_early = self.mode.is_open && !at_server.is_open;
        if is_early && !is_hit {
            return Err("the server has run it outside the transaction".to_owned());
        }
        let set = if self.may_have_pending_set {
            at_server
        } else {
            self.mode
        };
        let expected = Mode {
            autocommit: set.autocommit,
            isolation: set.isolation,
            level: at_server.level,
            is_open: self.mode.is_open && !is_early,
            is_read_only: at_server.is_read_only,
        };
        if at_server != expected {
            return Err(format!(
                "the server's session is {at_server:?}, the client's should be {:?}",
                self.mode
            ));
        }
        let is_same =
            self.mode.level == at_server.level && self.mode.is_read_only == at_server.is_read_only;
        if at_server.is_open && !is_same {
            return Err(format!(
                "the server's transaction is {at_server:?}, the client's {:?}",
                self.mode
            ));
        }
        Ok(())
    }

    fn check_read(
        &mut self,
        read: &Read,
        lock: Lock,
        rows: &Rows,
        acknowledged: &Acknowledged,
        engine: &Engine,
    ) -> Result<(), String> {
        let own = &engine.session(self.session).own;
        let shows = |commit: &usize| engine.read_at(*commit, read, own) == *rows;
        let is_in_transaction = self.mode.is_open || !self.mode.autocommit;
        let level = if self.mode.is_open {
            self.mode.level
        } else {
            self.mode.isolation
        };
        let is_repeatable =
            is_in_transaction && level == Isolation::RepeatableRead && lock == Lock::None;
        let is_repeatable = is_repeatable && !matches!(read, Read::Nothing { .. });
        if !is_repeatable {
            let range = floor_of(read, acknowledged, engine)..=engine.visible();
            let is_right = range.clone().any(|commit| shows(&commit));
            return is_right.then_some(()).ok_or_else(|| {
                let first = range.start();
                let older = (0..*first).rev().find(|commit| shows(commit));
                format!("none of the commits {range:?} shows that, an older one: {older:?}")
            });
        }
        self.check_repeatable(read, rows, acknowledged, engine)
    }

    /// All reads of the transaction show the state after one commit: that of the server's snapshot,
    /// once it has made one. Until then memory may answer, as long as there is such a commit.
    fn check_repeatable(
        &mut self,
        read: &Read,
        rows: &Rows,
        acknowledged: &Acknowledged,
        engine: &Engine,
    ) -> Result<(), String> {
        let acknowledged = self
            .acknowledged
            .get_or_insert_with(|| acknowledged.clone());
        self.floor = self.floor.max(floor_of(read, acknowledged, engine));
        let floor = self.floor;
        self.unproven.push(Unproven {
            read: read.clone(),
            rows: rows.clone(),
            own: engine.session(self.session).own.clone(),
        });
        if engine.session(self.session).snapshot.is_some()
            || (floor..=engine.visible()).any(|commit| self.is_all_shown_by(commit, engine))
        {
            return self.check_unproven(engine);
        }
        let reads = &self.unproven;
        Err(format!("no commit from {floor} on shows all of {reads:?}"))
    }

    fn is_all_shown_by(&self, commit: usize, engine: &Engine) -> bool {
        let mut all = self.unproven.iter();
        all.all(|one| engine.read_at(commit, &one.read, &one.own) == one.rows)
    }

    /// Once the server has made the snapshot, that must show all that was read before.
    fn check_unproven(&mut self, engine: &Engine) -> Result<(), String> {
        let Some(snapshot) = engine.session(self.session).snapshot else {
            return Ok(());
        };
        let (reads, floor) = (&self.unproven, self.floor);
        if !reads.is_empty() && snapshot < floor {
            return Err(format!(
                "the snapshot is of commit {snapshot}, older than {floor}"
            ));
        }
        if !self.is_all_shown_by(snapshot, engine) {
            return Err(format!(
                "the snapshot of commit {snapshot} doesn't show all of {reads:?}"
            ));
        }
        self.unproven.clear();
        Ok(())
    }

    /// A transaction ends.
    fn end(&mut self) {
        self.acknowledged = None;
        self.floor = 0;
        self.unproven.clear();
    }
}

/// What a whole answer says; `None` if it isn't whole.
fn parse(received: &[u8], form: &Form) -> Result<Option<Answer>, String> {
    let kind = match form {
        Form::Text | Form::Execution { .. } => ResponseKind::Results,
        Form::Preparation(_) => ResponseKind::Prepared,
    };
    let mut walker = ResponseWalker::new(kind, CAPABILITIES);
    let (used, progress) = walker.feed(received).map_err(|error| error.to_string())?;
    let Progress::Done(summary) = progress else {
        return Ok(None);
    };
    if used < received.len() {
        return Err("more than an answer".to_owned());
    }
    Ok(Some(match summary.ending {
        Ending::Err(code) => Answer::Failed(code),
        Ending::ResultSet => Answer::Rows(rows(received, form)?),
        _ => Answer::Done,
    }))
}

fn rows(received: &[u8], form: &Form) -> Result<Rows, String> {
    let parts = remora_wire::result_set::Parts::of(received, CAPABILITIES);
    let parts = parts.map_err(|error| error.to_string())?;
    let row = |payload: &&[u8]| match form {
        Form::Execution { .. } => {
            parse_row(payload, parts.columns).ok_or("a row that can't be read".to_owned())
        }
        Form::Text | Form::Preparation(_) => text_row(payload, parts.columns),
    };
    parts.rows.iter().map(row).collect()
}

fn text_row(payload: &[u8], columns: usize) -> Result<Vec<Option<u64>>, String> {
    let fields = remora_wire::rows::parse_text_row(payload, columns);
    let fields = fields.map_err(|error| error.to_string())?;
    let number =
        |field: Option<Vec<u8>>| field.and_then(|text| String::from_utf8_lossy(&text).parse().ok());
    Ok(fields.into_iter().map(number).collect())
}
