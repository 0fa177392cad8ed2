//! A follower without a server, for the session simulation. The log, the watermark and the
//! catalogue move one step at a time, in any order that is possible with a real server.
//!
//! Events are applied by the real [`Applier`]. The other steps are those of the watermark when it
//! settles an answer of MariaDB, and of the loader.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use remora_binlog::event_type;
use remora_cache::{EndQuestion, Epoch, FenceBatch, Position, Tag};
use remora_engine::facts::{ColumnFacts, ColumnKind, Instance, TableFacts};
use remora_engine::settings::{FollowedMark, ServerFeatures, SettingsQuery};
use remora_sql::{CONTACT_SETTINGS, Natives, RESULT_SETTINGS};

use super::applier::{Applier, Start, TransactionLimits};
use super::place::LogName;
use super::progress::Progress;
use super::want::Want;
use super::{UpstreamShared, UpstreamState};

/// The log's files are named so, and the first one has this number.
const FILE_BASE: &str = "log";
const FIRST_FILE: u64 = 2;
/// Where the log's first event begins: after the magic number.
pub const LOG_BEGINS_AT: u32 = 4;
/// Where the type stands in an event's header.
const EVENT_TYPE_AT: usize = 4;

/// The schema of all tables.
pub const SCHEMA: &str = "s";

/// What is asked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// How far reads can see.
    Visible,
    /// Where the log ends.
    End,
}

/// A question on its way, or an answer that the follower has yet to catch up with.
struct Question {
    epoch: Epoch,
    batch: FenceBatch,
    asked_at_ms: u64,
    end: Option<EndQuestion>,
    /// The commit that the server named.
    answer: Option<usize>,
}

/// The follower's side of one Remora.
pub struct SimulatedFollower {
    shared: Arc<UpstreamShared>,
    mark_holder: String,
    query: SettingsQuery,
    applier: Applier<Arc<UpstreamShared>, Rc<Progress>>,
    /// How many commits lie before the log file that it reads.
    base: usize,
    /// The server has said that all those can be seen.
    is_base_visible: bool,
    /// The file's beginning, then the end of each commit that was applied.
    ends: Vec<Position>,
    questions: VecDeque<Question>,
    is_lost: bool,
    /// The timeline is suspended until the next proof.
    resumes_when_proven: bool,
}

impl SimulatedFollower {
    /// Begins to follow a server whose log has no commit yet.
    pub fn start(
        shared: Arc<UpstreamShared>,
        instance: Instance,
        mark_holder: &str,
    ) -> SimulatedFollower {
        let features = ServerFeatures {
            has_roles: true,
            has_uuid: false,
        };
        let is_of_mysql = |name: &str| name == "transaction_isolation";
        let settings = RESULT_SETTINGS.iter().map(|setting| setting.name);
        let settings = settings
            .filter(|name| !is_of_mysql(name))
            .map(str::to_owned);
        let of_contact = CONTACT_SETTINGS.iter().map(|name| (*name).to_owned());
        let query = SettingsQuery::new(features, settings, &of_contact.collect::<Vec<_>>());
        shared.set_natives(Natives::Oldest);
        shared.set_logins(false, false);
        shared.catalogue.set_lower_case_table_names(0);
        shared.set_instance(instance);
        let mut follower = SimulatedFollower {
            applier: applier(&shared, FIRST_FILE),
            ends: vec![position(FIRST_FILE, LOG_BEGINS_AT.into())],
            shared,
            mark_holder: mark_holder.to_owned(),
            query,
            base: 0,
            is_base_visible: true,
            questions: VecDeque::new(),
            is_lost: false,
            resumes_when_proven: false,
        };
        follower.shared.timeline.restart(follower.ends[0]);
        follower.connected();
        let timeline = &follower.shared.timeline;
        timeline.prove(timeline.epoch(), follower.shared.clock.now_ms());
        follower
    }

    /// Each time that it connects, it holds another mark.
    fn connected(&mut self) {
        let shared = &self.shared;
        shared.set_settings_query(self.query.clone().with_mark(FollowedMark {
            number: shared.next_mark_number(),
            name: "mark".to_owned(),
            holder: self.mark_holder.clone(),
        }));
        shared.checked(shared.clock.now_ms());
        shared.set_state(UpstreamState::Following { lagging: true });
        self.is_lost = false;
    }

    /// The connection to the server is lost, and the questions on it.
    pub fn lose(&mut self) {
        self.questions.clear();
        self.shared.timeline.suspend();
        self.shared.set_state(UpstreamState::Lost("lost".into()));
        self.is_lost = true;
    }

    /// Whether it is.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// It is connected again, and the log goes on where it was.
    pub fn go_on(&mut self) {
        self.connected();
        self.resumes_when_proven = true;
    }

    /// It is connected again, and the log is another: it begins with this file, behind this many
    /// commits.
    pub fn restart(&mut self, file: u64, commits: usize) {
        self.base = commits;
        self.is_base_visible = false;
        self.ends = vec![position(file, LOG_BEGINS_AT.into())];
        self.applier = applier(&self.shared, file);
        self.resumes_when_proven = false;
        self.shared.timeline.restart(self.ends[0]);
        self.shared.privileges.changed();
        self.connected();
    }

    /// How many commits it has applied, those before its log file included.
    pub fn applied(&self) -> usize {
        self.base + self.ends.len() - 1
    }

    /// The log's next event comes.
    ///
    /// # Panics
    ///
    /// If the real follower would give the log up.
    pub fn take(&mut self, event: &[u8], event_bytes: u64) {
        let is_whole = event.len() as u64 == event_bytes;
        let taken = self.applier.take(event, event_bytes, is_whole);
        if let Err(lost) = taken {
            panic!("the log can't be followed: {}", lost.describe());
        }
        let applied = self.shared.timeline.applied();
        match event.get(EVENT_TYPE_AT) {
            Some(&event_type::XID) => self.ends.push(applied),
            // The server is past it when its log is read.
            Some(&event_type::FORMAT_DESCRIPTION) => self.ends = vec![applied],
            _ => return,
        }
        self.settle();
    }

    /// What sessions want to have asked.
    pub fn wanted(&self) -> Vec<Asked> {
        if self.is_lost {
            return Vec::new();
        }
        let shared = &self.shared;
        let end = shared.is_end_wanted() || shared.is_end_wanted_soon();
        let wanted = [
            (
                shared.watermark_wanted.now() != Want::Nothing,
                Asked::Visible,
            ),
            (end, Asked::End),
        ];
        let wanted = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted);
        wanted.map(|(_, asked)| asked).collect()
    }

    /// Sends a question.
    pub fn ask(&mut self, asked: Asked) {
        let shared = &self.shared;
        match asked {
            Asked::Visible => {
                shared.watermark_wanted.take();
            }
            Asked::End => shared.take_end_wanted(),
        }
        // As often as it asks anything, it checks the server.
        shared.checked(shared.clock.now_ms());
        let timeline = &shared.timeline;
        self.questions.push_back(Question {
            epoch: timeline.epoch(),
            batch: timeline.take_answered(),
            asked_at_ms: shared.clock.now_ms(),
            end: (asked == Asked::End).then(|| timeline.begin_end_question()),
            answer: None,
        });
    }

    /// Whether a question waits for the server.
    pub fn is_asking(&self) -> bool {
        self.questions
            .iter()
            .any(|question| question.answer.is_none())
    }

    /// The server answers the question that is on its way.
    pub fn answer(&mut self, visible: usize, logged: usize) {
        let unanswered = self
            .questions
            .iter_mut()
            .find(|question| question.answer.is_none());
        if let Some(question) = unanswered {
            question.answer = Some(match question.end {
                Some(_) => logged,
                None => visible,
            });
        }
        self.settle();
    }

    /// Lowers and proves what the log has been applied up to.
    fn settle(&mut self) {
        let (shared, base) = (&self.shared, self.base);
        let timeline = &shared.timeline;
        let told = self
            .questions
            .iter()
            .filter(|question| question.end.is_none());
        let told = told.filter_map(|question| Some((question.epoch, question.answer?)));
        for (epoch, commit) in told {
            let visible = self.ends[commit.min(self.applied()).saturating_sub(base)];
            if visible > timeline.visible() {
                timeline.advance_visible(epoch, visible);
                shared.visible_bell.notify_waiters();
            }
        }
        let applied = self.applied();
        // While a commit before the file isn't visible, nobody knows what reads may show.
        let told = told_commits(&self.questions);
        self.is_base_visible |= told.is_some_and(|commit| commit >= base);
        if !self.is_base_visible {
            return;
        }
        let is_due = |question: &mut Question| question.answer.is_some_and(|it| it <= applied);
        while let Some(question) = self.questions.pop_front_if(is_due) {
            if std::mem::take(&mut self.resumes_when_proven) {
                timeline.resume();
            }
            if timeline.prove(question.epoch, question.asked_at_ms) {
                if let Some(end) = question.end {
                    timeline.prove_end(question.epoch, end);
                    shared.end_bell.notify_waiters();
                }
                question.batch.lower();
            }
        }
    }

    /// Lists the views that run code, of which there are none, and loads the tables that are asked
    /// for.
    pub fn load(&self) {
        let catalogue = &self.shared.catalogue;
        let Some(as_of) = self.shared.timeline.as_of() else {
            return;
        };
        catalogue.load_made_up(as_of, facts);
    }
}

/// How many commits are visible, by the server's latest answers.
fn told_commits(questions: &VecDeque<Question>) -> Option<usize> {
    let told = questions.iter().filter(|question| question.end.is_none());
    told.filter_map(|question| question.answer).max()
}

fn position(file: u64, offset: u64) -> Position {
    Position::new(file, offset).expect("a place in the log")
}

/// An applier that reads a file from its beginning.
fn applier(shared: &Arc<UpstreamShared>, file: u64) -> Applier<Arc<UpstreamShared>, Rc<Progress>> {
    let progress = Rc::new(Progress::simulated(shared));
    let limits = TransactionLimits {
        tables_max: 10,
        tags_max: 100,
    };
    let name = LogName::parse(&format!("{FILE_BASE}.{file:06}")).expect("a file's name");
    let start = Start::Anew(name, LOG_BEGINS_AT.into());
    Applier::new(Arc::clone(shared), progress, limits, start)
}

/// A table of InnoDB with the columns `id`, which is its key, `g` and `v`.
fn facts(schema: &str, table: &str) -> TableFacts {
    let column = |name: &str, bytes: u8| {
        let unsigned = false;
        ColumnFacts {
            is_nullable: name != "id",
            ..ColumnFacts::new(name, ColumnKind::Integer { bytes, unsigned })
        }
    };
    TableFacts {
        cacheable: Ok(()),
        tag: Tag::table(schema, table),
        writes_are_foreseeable: true,
        is_transactional: true,
        is_partitioned: false,
        cascades_to: Vec::new(),
        cascaded_from: Vec::new(),
        cascade_parents: Vec::new(),
        view_of: Vec::new(),
        columns: Arc::new([column("id", 4), column("g", 4), column("v", 8)]),
        columns_match_log: true,
        key_columns: Arc::new([0]),
        has_other_unique_keys: false,
    }
}
