//! Runs a case: holds its results, applies its changes, compares.

mod surrounded;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

use super::answer::{Difference, Reply};
use super::bed::{Asker, Bed, perform, tolerate};
use super::dice::Dice;
use super::report::{Tallies, Tally};
use super::script::{Change, Question, ROW_IMAGES, Route, Script, Statement};
use remora_testkit::client::{Client, ConnectOptions};

/// How often a question is asked at most until it is held.
const WARMING: usize = 4;
/// How far on the first question after a write is from the one before.
const TURN: usize = 17;
/// Changes between two comparisons while readers race with them.
const RACE_CHANGES: usize = 4;
/// Settings of every session that writes.
const WRITERS: &str = "SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5";
/// And of one that doesn't ask.
const LENIENT: &str = "SET SESSION sql_mode = ''";
/// Readers of a race.
const RACE_READERS: usize = 2;

/// A result that isn't the server's.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Which question.
    pub question: usize,
    /// After which change; `None`: before all of them.
    pub change: Option<usize>,
    /// When it was asked, and whether memory answered.
    pub what: String,
    /// What the server says.
    pub expected: String,
    /// What came through Remora.
    pub got: String,
}

/// What a run has found.
#[derive(Debug, Default)]
pub struct Run {
    /// Counts by shape.
    pub tallies: Tallies,
    /// The first failure; the run ended with it.
    pub failure: Option<Failure>,
}

/// What is known of a question.
#[derive(Clone, Default)]
struct Held {
    /// The server's answer after the last change.
    truth: Option<Reply>,
    /// Memory has it.
    is_hit: bool,
    /// The server itself gives different answers to it.
    is_unstable: bool,
}

struct Runner<'b> {
    bed: &'b mut Bed,
    script: &'b Script,
    schema: String,
    through: Asker,
    direct: Asker,
    writers: HashMap<WriterKey, Client>,
    held: Vec<Held>,
    tallies: Tallies,
    /// A fact has been changed, so that nothing may be served from memory.
    may_be_off: bool,
}

/// What sets a writer's session apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WriterKey {
    through: bool,
    /// `binlog_row_image`.
    image: String,
    /// It has the settings of readers.
    asks: bool,
}

/// A comparison's end: nothing found, or the first failure.
type Checked = anyhow::Result<Result<(), Failure>>;

impl Bed {
    /// Runs a case in a schema of its own.
    ///
    /// # Errors
    /// A connection broke, or Remora doesn't see changes any more.
    pub fn run(&mut self, script: &Script) -> anyhow::Result<Run> {
        let schema = self.new_schema()?;
        for text in &script.setup {
            tolerate(self.aside().query(text).map(drop)).with_context(|| text.clone())?;
        }
        if script.needs_other() {
            self.set_up_other(&schema, script)?;
        }
        let count = script.questions.len();
        self.settle(false)?;
        let options = self.asking(script, &schema, true);
        let through = Asker::connect(&options, &script.readers, count)?;
        let options = self.asking(script, &schema, false);
        let direct = Asker::connect(&options, &script.readers, count)?;
        let mut runner = Runner {
            bed: self,
            script,
            schema: schema.clone(),
            through,
            direct,
            writers: HashMap::new(),
            held: vec![Held::default(); count],
            tallies: Tallies::default(),
            may_be_off: false,
        };
        let outcome = runner.all();
        let tallies = std::mem::take(&mut runner.tallies);
        drop(runner);
        if script.changes.iter().any(|one| one.route.is_of_facts()) {
            self.restore_facts()?;
        }
        let failure = outcome?.err();
        self.drop_schema(&schema)?;
        Ok(Run { tallies, failure })
    }
}

impl Runner<'_> {
    fn all(&mut self) -> Checked {
        self.bed.settle(false)?;
        if let Err(failure) = self.warm()? {
            return Ok(Err(failure));
        }
        let script = self.script;
        if script.is_race {
            return self.race();
        }
        for (number, change) in script.changes.iter().enumerate() {
            self.bed.hold_log(change.route == Route::ThroughHeld);
            let applied = match change.route {
                Route::Late | Route::LateThrough => self.late(change)?,
                Route::Fact | Route::Restored => self.change_facts(change)?,
                Route::Other | Route::OtherFollowed => self.at_other(number, change)?,
                Route::Slow => self.slow(number, change)?,
                _ => self.apply(number, change)?,
            };
            if let Err(failure) = applied {
                return Ok(Err(failure));
            }
            if let Err(failure) = self.check(number, change.route)? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// The server's answers now, and each result in memory where that can be.
    fn warm(&mut self) -> Checked {
        for at in 0..self.held.len() {
            self.held[at].truth = Some(self.ask_direct(at)?);
        }
        for _ in 0..WARMING {
            // On a busy machine nothing may be kept for a moment.
            self.bed.settle(false)?;
            for at in 0..self.held.len() {
                if self.held[at].is_hit || !self.is_answered(at) {
                    continue;
                }
                let (is_hit, reply) = self.ask_through(at)?;
                self.held[at].is_hit = is_hit;
                if let Err(failure) =
                    self.judge(at, &reply, is_hit, None, "while it was first asked")?
                {
                    return Ok(Err(failure));
                }
            }
        }
        for (question, held) in self.script.questions.iter().zip(&self.held) {
            let tally = self.tallies.of(&question.shape);
            tally.questions += 1;
            tally.held += u64::from(held.is_hit);
        }
        Ok(Ok(()))
    }

    /// Compares everything after a change.
    fn check(&mut self, change: usize, route: Route) -> Checked {
        let count = self.held.len();
        let at_once = route.is_at_once();
        let mut early = Vec::new();
        if at_once {
            // Each has its turn to be among the first.
            for at in (0..count).map(|at| (at + change * TURN) % count) {
                early.push((at, self.ask_through(at)?));
            }
        }
        let before: Vec<Held> = self.held.clone();
        for at in 0..count {
            self.held[at].truth = Some(self.ask_direct(at)?);
        }
        for (at, (is_hit, reply)) in early {
            self.tally(at).at_once += 1;
            self.tally(at).at_once_hits += u64::from(is_hit);
            if let Err(failure) =
                self.judge(at, &reply, is_hit, Some(change), "right after the write")?
            {
                return Ok(Err(failure));
            }
        }
        self.bed.settle(self.may_be_off)?;
        for (at, before) in before.iter().enumerate() {
            let (is_hit, reply) = self.ask_through(at)?;
            if let Err(failure) = self.judge(
                at,
                &reply,
                is_hit,
                Some(change),
                "when Remora had seen the change",
            )? {
                return Ok(Err(failure));
            }
            self.count(at, before, is_hit, route.is_measured());
            self.held[at].is_hit = is_hit;
        }
        self.refill(Some(change))
    }

    /// What is not in memory is asked for again: what the first asking put there must be right too.
    fn refill(&mut self, change: Option<usize>) -> Checked {
        for at in 0..self.held.len() {
            if self.held[at].is_hit || !self.is_answered(at) {
                continue;
            }
            let (is_hit, reply) = self.ask_through(at)?;
            self.held[at].is_hit = is_hit;
            if let Err(failure) = self.judge(at, &reply, is_hit, change, "when asked once more")? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// Counts a pair of a question and a change.
    fn count(&mut self, at: usize, before: &Held, is_hit: bool, is_measured: bool) {
        let now = self.held[at].truth.clone();
        let (Some(then), Some(now)) = (&before.truth, &now) else {
            return;
        };
        if !then.is_rows() && !now.is_rows() {
            return;
        }
        let has_changed = then.difference(now) == Difference::Content;
        let tally = self.tally(at);
        tally.pairs += 1;
        tally.changed += u64::from(has_changed);
        if before.is_hit && is_measured {
            tally.measured += 1;
            tally.dropped += u64::from(!is_hit);
            tally.dropped_rightly += u64::from(!is_hit && has_changed);
        }
    }

    /// An answer through Remora against the server's.
    fn judge(
        &mut self,
        at: usize,
        reply: &Reply,
        is_hit: bool,
        change: Option<usize>,
        when: &str,
    ) -> Checked {
        let Some(truth) = self.held[at].truth.clone() else {
            return Ok(Ok(()));
        };
        match truth.difference(reply) {
            Difference::None => return Ok(Ok(())),
            Difference::Order if !self.script.questions[at].statement.text.contains(" LIMIT ") => {
                self.tally(at).order += 1;
                return Ok(Ok(()));
            }
            Difference::End => {
                self.tally(at).ends += 1;
                self.tally(at).ends_from_memory += u64::from(is_hit);
                return Ok(Ok(()));
            }
            Difference::Order | Difference::Content => {}
        }
        let again = self.ask_direct(at)?;
        let is_unstable = self.held[at].is_unstable
            || truth.difference(&again) != Difference::None
            || self.depends_on_preparation(at, &truth)?
            || (!is_hit && self.was_of_the_moment(at, &truth)?);
        if is_unstable {
            self.held[at].is_unstable = true;
            self.tally(at).unstable += 1;
            return Ok(Ok(()));
        }
        let source = if is_hit { "from memory" } else { "relayed" };
        Ok(Err(Failure {
            question: at,
            change,
            what: format!("{source}, {when}"),
            expected: truth.show(reply),
            got: reply.show(&truth),
        }))
    }

    /// Whether the server's own answer is another once the question is prepared again there. MySQL
    /// 8.0 looks at a preparation's collations before it notices that a column is gone: one that
    /// was made before the column went gives another error than one that is made now.
    fn depends_on_preparation(&mut self, at: usize, truth: &Reply) -> anyhow::Result<bool> {
        self.direct.forget(at);
        let fresh = self.ask_direct(at)?;
        Ok(truth.difference(&fresh) != Difference::None)
    }

    /// Whether a relayed answer was another only because of what the server had made of the
    /// question at that moment: asked once more, it gives the right answer. MySQL 8.0 settles a
    /// preparation's types and collations by what it has executed and by definitions that have
    /// changed since; MariaDB compares a `BIT` with a string in one way by an index and in another
    /// without.
    fn was_of_the_moment(&mut self, at: usize, truth: &Reply) -> anyhow::Result<bool> {
        self.through.forget(at);
        let (_, reply) = self.ask_through(at)?;
        Ok(truth.difference(&reply) == Difference::None)
    }

    fn tally(&mut self, at: usize) -> &mut Tally {
        self.tallies.of(&self.script.questions[at].shape)
    }

    fn is_answered(&self, at: usize) -> bool {
        self.held[at].truth.as_ref().is_some_and(Reply::is_rows)
    }

    fn ask_direct(&mut self, at: usize) -> anyhow::Result<Reply> {
        let question = &self.script.questions[at];
        if let Some(error) = self.direct.prepare(at, question)? {
            return Ok(error);
        }
        self.direct.ask(at, question)
    }

    fn ask_through(&mut self, at: usize) -> anyhow::Result<(bool, Reply)> {
        let question = &self.script.questions[at];
        if self.through.prepares(at, question) {
            let (_, error) = self.bed.counted(|| self.through.prepare(at, question));
            if let Some(error) = error? {
                return Ok((false, error));
            }
        }
        let (is_hit, reply) = self.bed.counted(|| self.through.ask(at, question));
        Ok((is_hit, reply?))
    }

    /// Runs the statements of a change on the connection that it needs, and what it asks then.
    fn apply(&mut self, number: usize, change: &Change) -> Checked {
        let through = change.route != Route::Direct;
        let key = WriterKey {
            through,
            image: change.image.clone(),
            asks: !change.asks.is_empty(),
        };
        let mut client = match self.writers.remove(&key) {
            Some(client) => client,
            None => self.writer(&key)?,
        };
        for statement in &change.statements {
            let (_, outcome) = self
                .bed
                .counted_if(through, || perform(&mut client, statement));
            outcome.with_context(|| statement.text.clone())?;
        }
        if change.statements.len() > 1 {
            // A case that was made smaller may lack the end of its transaction.
            for text in endings(change) {
                self.say(&mut client, through, &text)?;
            }
        }
        for asked in &change.asks {
            if let Err(failure) = self.ask_as_writer(&mut client, through, number, asked)? {
                return Ok(Err(failure));
            }
        }
        if !key.asks {
            // One that asks is new each time: what was done to it before may keep it from memory.
            self.writers.insert(key, client);
        }
        Ok(Ok(()))
    }

    /// A statement of a writer that may fail.
    fn say(&self, client: &mut Client, through: bool, text: &str) -> anyhow::Result<()> {
        let (_, outcome) = self
            .bed
            .counted_if(through, || tolerate(client.query(text).map(drop)));
        outcome.with_context(|| text.to_owned())
    }

    /// What a writer is told must be what the server tells it in this session: whatever has been
    /// done to it, also by code that no text shows.
    fn ask_as_writer(
        &mut self,
        client: &mut Client,
        through: bool,
        number: usize,
        asked: &Statement,
    ) -> Checked {
        let deprecate_eof = client
            .capabilities()
            .has(remora_wire::Capabilities::DEPRECATE_EOF);
        let (is_hit, outcome) = self
            .bed
            .counted_if(through, || tolerate(client.query(&asked.text).map(drop)));
        outcome.with_context(|| asked.text.clone())?;
        // In a race the hits of others are counted, too.
        if !is_hit || self.script.is_race {
            return Ok(Ok(()));
        }
        let got = Reply::parse(client.answer_bytes(), deprecate_eof);
        // Text that the server has to execute always reaches it.
        let executed = Statement::executed(&asked.text, self.script.charset());
        for text in [&executed.text, "PREPARE q FROM @q"] {
            self.say(client, through, text)?;
        }
        self.say(client, through, "EXECUTE q")?;
        let truth = Reply::parse(client.answer_bytes(), deprecate_eof);
        // MySQL 5.7 names the table of a derived table's columns otherwise when it is prepared.
        if !truth.has_other_rows(&got) {
            return Ok(Ok(()));
        }
        let questions = &self.script.questions;
        let question = questions.iter().position(|one| one.statement == *asked);
        Ok(Err(Failure {
            question: question.unwrap_or_default(),
            change: Some(number),
            what: format!("from memory, to the session that wrote: {}", asked.text),
            expected: truth.show(&got),
            got: got.show(&truth),
        }))
    }

    fn writer(&self, key: &WriterKey) -> anyhow::Result<Client> {
        let mut client = self.bed.options(&self.schema, key.through).connect()?;
        let mut settings = vec![WRITERS.to_owned()];
        if key.asks {
            settings.extend(self.script.readers.iter().cloned());
        } else {
            settings.push(LENIENT.to_owned());
        }
        if key.image != ROW_IMAGES[0] {
            // Not where it is the default: Remora may have to think of more when it sees the
            // setting changed.
            settings.push(format!("SET SESSION binlog_row_image = {}", key.image));
        }
        for text in settings {
            self.say(&mut client, key.through, &text)?;
        }
        Ok(client)
    }

    /// Changes are made while readers ask; then all is quiet and compared.
    fn race(&mut self) -> Checked {
        let script = self.script;
        for (group, changes) in script.changes.chunks(RACE_CHANGES).enumerate() {
            if let Err(failure) = self.race_with(group * RACE_CHANGES, changes)? {
                return Ok(Err(failure));
            }
            let before = self.held.clone();
            for at in 0..self.held.len() {
                self.held[at].truth = Some(self.ask_direct(at)?);
            }
            self.bed.settle(false)?;
            let last = group * RACE_CHANGES + changes.len() - 1;
            for (at, before) in before.iter().enumerate() {
                let (is_hit, reply) = self.ask_through(at)?;
                let when = "when all was quiet after a race";
                if let Err(failure) = self.judge(at, &reply, is_hit, Some(last), when)? {
                    return Ok(Err(failure));
                }
                for _ in changes {
                    self.count(at, before, is_hit, false);
                }
                self.held[at].is_hit = is_hit;
            }
            if let Err(failure) = self.refill(Some(last))? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    fn race_with(&mut self, first: usize, changes: &[Change]) -> Checked {
        let options = self.bed.asking(self.script, &self.schema, true);
        beside_readers(self.script, &options, || {
            let mut applied = Ok(Ok(()));
            for (number, change) in changes.iter().enumerate() {
                self.bed.hold_log(number % 2 == 1);
                applied = self.apply(first + number, change);
                if !matches!(applied, Ok(Ok(()))) {
                    break;
                }
            }
            applied
        })
    }
}

/// Runs something while readers ask.
fn beside_readers<T>(
    script: &Script,
    options: &ConnectOptions,
    run: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    // A case that was made smaller may have nothing to ask.
    let reader_count = if script.questions.is_empty() {
        0
    } else {
        RACE_READERS
    };
    let askers = (0..reader_count)
        .map(|_| Asker::connect(options, &script.readers, script.questions.len()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0_u64..)
            .zip(askers)
            .map(|(number, mut asker)| {
                let done = &done;
                scope.spawn(move || {
                    let mut dice = Dice::new(number);
                    while !done.load(Ordering::Relaxed) {
                        let at = dice.index(script.questions.len());
                        asker.ask_anyhow(at, &script.questions[at])?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        let outcome = run();
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            if let Ok(asked) = reader.join() {
                asked?;
            }
        }
        outcome
    })
}

/// What ends any transaction that a change has begun.
fn endings(change: &Change) -> Vec<String> {
    let mut texts = change.statements.iter().map(|one| one.text.as_str());
    match texts.find_map(|text| text.strip_prefix("XA START ")) {
        Some(name) => vec![format!("XA END {name}"), format!("XA ROLLBACK {name}")],
        None => vec!["ROLLBACK".to_owned(), "SET autocommit = 1".to_owned()],
    }
}

impl Asker {
    /// Asks whatever the question is and whatever is answered.
    fn ask_anyhow(&mut self, at: usize, question: &Question) -> anyhow::Result<()> {
        if self.prepare(at, question)?.is_none() {
            self.ask(at, question)?;
        }
        Ok(())
    }
}
