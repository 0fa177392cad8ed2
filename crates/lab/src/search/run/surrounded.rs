//! Changes of what surrounds the statements: see [`Surroundings`](super::super::Surroundings).

use std::io::Write as _;

use anyhow::Context as _;
use remora_testkit::client::Client;
use remora_wire::packet::put_message;

use super::super::answer::Difference;
use super::super::bed::{Asker, perform};
use super::super::script::{Change, Route};
use super::{Checked, Held, Runner, WriterKey, beside_readers, endings};

/// How often each result is asked for on the other server.
const ASKED_AT_OTHER: usize = 2;
/// How often everything is asked for at most while a statement is on its way.
const ASKED_MEANWHILE: usize = 20;

impl Runner<'_> {
    /// A change whose last statement takes long. Others ask meanwhile, and what they were told may
    /// be in memory afterwards.
    pub(super) fn late(&mut self, change: &Change) -> Checked {
        let Some((last, before)) = change.statements.split_last() else {
            return Ok(Ok(()));
        };
        let through = change.route == Route::LateThrough;
        let key = WriterKey {
            through,
            image: change.image.clone(),
            asks: false,
        };
        let mut client = self.writer(&key)?;
        for statement in before {
            let (_, outcome) = self
                .bed
                .counted_if(through, || perform(&mut client, statement));
            outcome.with_context(|| statement.text.clone())?;
        }
        if change.ends_elsewhere {
            drop(client);
            self.bed.wait_until_let_go()?;
            client = self.writer(&key)?;
        }
        self.bed.settle(false)?;
        let options = self.bed.asking(self.script, &self.schema, true);
        beside_readers(self.script, &options, || {
            perform(&mut client, last).with_context(|| last.text.clone())
        })?;
        for text in endings(change) {
            self.say(&mut client, through, &text)?;
        }
        self.bed.set_back(change)?;
        Ok(Ok(()))
    }

    /// The server becomes another in some respect, or what it was.
    pub(super) fn change_facts(&mut self, change: &Change) -> Checked {
        for statement in &change.statements {
            let outcome = perform(self.bed.aside(), statement);
            outcome.with_context(|| statement.text.clone())?;
        }
        if change.route == Route::Restored {
            self.bed.restore_facts()?;
        }
        self.may_be_off = change.route == Route::Fact;
        // Sessions keep the settings with which they began.
        self.writers.clear();
        Ok(Ok(()))
    }

    /// The address leads to the other server for a while: sessions that begin then are told what
    /// that server says, and those that there are what the first says.
    pub(super) fn at_other(&mut self, number: usize, change: &Change) -> Checked {
        self.bed.move_to_other()?;
        let compared = self.beside_first(number, change);
        self.bed.move_back();
        compared
    }

    fn beside_first(&mut self, number: usize, change: &Change) -> Checked {
        let (script, count) = (self.script, self.held.len());
        let options = self.bed.options(&self.schema, true);
        let mut through = Asker::connect(&options, &script.readers, count)?;
        let options = self.bed.options_of_other(&self.schema)?;
        let mut direct = Asker::connect(&options, &script.readers, count)?;
        let mut held = vec![Held::default(); count];
        // In the place of those that ask the first.
        std::mem::swap(&mut self.through, &mut through);
        std::mem::swap(&mut self.direct, &mut direct);
        std::mem::swap(&mut self.held, &mut held);
        let compared = self.compare_at_other(number, change);
        std::mem::swap(&mut self.through, &mut through);
        std::mem::swap(&mut self.direct, &mut direct);
        std::mem::swap(&mut self.held, &mut held);
        if let Err(failure) = compared? {
            return Ok(Err(failure));
        }
        let when = "by a session that has stayed at the first server";
        self.compare_now(number, when)
    }

    fn compare_at_other(&mut self, number: usize, change: &Change) -> Checked {
        if change.route == Route::OtherFollowed {
            self.bed.settle_at_other()?;
        }
        self.ask_truths()?;
        for _ in 0..ASKED_AT_OTHER {
            let when = "by a session at the other server";
            if let Err(failure) = self.compare_now(number, when)? {
                return Ok(Err(failure));
            }
        }
        let key = WriterKey {
            through: true,
            image: change.image.clone(),
            asks: false,
        };
        let mut client = self.writer(&key)?;
        for statement in &change.statements {
            let (_, outcome) = self.bed.counted(|| perform(&mut client, statement));
            outcome.with_context(|| statement.text.clone())?;
        }
        for text in endings(change) {
            self.say(&mut client, true, &text)?;
        }
        let before = self.held.clone();
        self.ask_truths()?;
        for (at, before) in before.iter().enumerate() {
            self.count(at, before, false, false);
        }
        self.compare_now(
            number,
            "by a session at the other server after a write there",
        )
    }

    /// A client sends a statement that writes, and takes nothing of its large answer. Others must
    /// not be told what was before, and are served from memory again when the server is done.
    pub(super) fn slow(&mut self, number: usize, change: &Change) -> Checked {
        let Some((last, before)) = change.statements.split_last() else {
            return Ok(Ok(()));
        };
        let key = WriterKey {
            through: true,
            image: change.image.clone(),
            asks: false,
        };
        let mut client = self.writer(&key)?;
        for statement in before {
            let (_, outcome) = self.bed.counted(|| perform(&mut client, statement));
            outcome.with_context(|| statement.text.clone())?;
        }
        let held = self.held.clone();
        self.bed.hold_log(true);
        send(&client, &last.text)?;
        if let Err(failure) = self.compare_meanwhile(number)? {
            return Ok(Err(failure));
        }
        self.bed.settle(false)?;
        self.ask_truths()?;
        let compared = self.compare_now(number, "beside a client that takes nothing");
        drop(client);
        // What has changed is counted when all is compared as after any change.
        self.held = held;
        compared
    }

    /// Asks until the server's answers have changed, and once more: what comes from memory must be
    /// what the server says before and after.
    fn compare_meanwhile(&mut self, number: usize) -> Checked {
        let mut has_changed = false;
        for _ in 0..ASKED_MEANWHILE {
            let is_last = has_changed;
            for at in 0..self.held.len() {
                let before = self.ask_direct(at)?;
                let (is_hit, reply) = self.ask_through(at)?;
                let after = self.ask_direct(at)?;
                let is_steady = before.difference(&after) == Difference::None;
                let was = self.held[at].truth.replace(after);
                has_changed |=
                    was.is_some_and(|was| was.difference(&before) == Difference::Content);
                if !is_steady || !is_hit {
                    continue;
                }
                let when = "while a statement was on its way";
                if let Err(failure) = self.judge(at, &reply, is_hit, Some(number), when)? {
                    return Ok(Err(failure));
                }
            }
            if is_last {
                break;
            }
        }
        Ok(Ok(()))
    }

    fn ask_truths(&mut self) -> anyhow::Result<()> {
        for at in 0..self.held.len() {
            self.held[at].truth = Some(self.ask_direct(at)?);
        }
        Ok(())
    }

    /// Each result through Remora against what is known of the server's.
    fn compare_now(&mut self, number: usize, when: &str) -> Checked {
        for at in 0..self.held.len() {
            let (is_hit, reply) = self.ask_through(at)?;
            if let Err(failure) = self.judge(at, &reply, is_hit, Some(number), when)? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }
}

/// Sends a statement and reads nothing.
fn send(client: &Client, text: &str) -> anyhow::Result<()> {
    let mut message = Vec::new();
    put_message(&mut message, 0, &[b"\x03", text.as_bytes()].concat());
    client.stream().write_all(&message).context("can't send")
}
