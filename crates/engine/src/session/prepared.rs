//! What each prepared statement of a session will do when it is executed, and what its executions
//! are looked up by.

use std::collections::HashMap;
use std::sync::Arc;

use remora_cache::{AsOf, Tag, Timeline};
use remora_sql::{Mentions, Select};
use remora_wire::execute::{BoundValue, Execution, LAST_PREPARED, has_time};

use super::consequences::Consequences;
use super::found_rows::FoundRows;
use super::planned_writes::{PlannedWrites, PrivilegeStatement};

use crate::key::Label;
use crate::reason::Bypass;
use crate::settings::Fingerprint;

/// The server's number of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatementId(
    /// As the protocol has it.
    pub u32,
);

/// A prepared statement, as far as its execution concerns the cache and the session.
#[derive(Debug)]
pub struct PreparedStatement {
    /// What follows when it is executed.
    pub consequences: Consequences,
    /// The names that it mentions.
    pub mentions: Mentions,
    /// Whether its result tells of the statement before it.
    pub diagnostics: bool,
    /// What it does with the count that `FOUND_ROWS()` gives.
    pub found_rows: FoundRows,
    /// Whether its result tells that count.
    pub asks_for_found_rows: bool,
    /// Whether its results can be kept, and what its parameters are for.
    pub kind: PreparedKind,
    /// What it is counted under.
    pub label: Label,
}

/// What the parameters of a prepared statement are for.
#[derive(Debug)]
pub enum PreparedKind {
    /// A read whose results can be kept: it is looked up by them.
    Read(PreparedRead),
    /// Anything else: its writes are narrowed by them.
    Other {
        /// Why its results can't be kept.
        why: Bypass,
        /// What is known of them.
        parameters: WriteParameters,
    },
}

impl PreparedKind {
    /// A statement whose results can't be kept.
    pub fn other(why: Bypass) -> PreparedKind {
        PreparedKind::Other {
            why,
            parameters: WriteParameters::default(),
        }
    }
}

impl PreparedStatement {
    /// What it reads, or why its results can't be kept.
    #[inline]
    pub fn read(&self) -> Result<&PreparedRead, Bypass> {
        match &self.kind {
            PreparedKind::Read(read) => Ok(read),
            PreparedKind::Other { why, .. } => Err(*why),
        }
    }

    /// The same, to be changed.
    #[inline]
    fn read_mut(&mut self) -> Result<&mut PreparedRead, Bypass> {
        match &mut self.kind {
            PreparedKind::Read(read) => Ok(read),
            PreparedKind::Other { why, .. } => Err(*why),
        }
    }

    /// The values by which an execution with this body, behind the statement's number, narrows its
    /// writes. Gives also whether it names its parameters' types.
    #[inline]
    pub fn bind<'b>(
        &mut self,
        body: &'b [u8],
        capabilities: remora_wire::Capabilities,
    ) -> (Vec<BoundValue<'b>>, bool) {
        match &mut self.kind {
            PreparedKind::Read(read) => {
                let execution = read.execution(body, capabilities);
                let names_types = execution.is_some_and(|it| it.types().is_some());
                (Vec::new(), names_types)
            }
            PreparedKind::Other { parameters, .. } => parameters.bind(body, capabilities),
        }
    }

    /// The server may not have read the types that were named last, by which writes are narrowed.
    pub fn forget_write_types(&mut self) {
        if let PreparedKind::Other { parameters, .. } = &mut self.kind {
            parameters.types.clear();
        }
    }

    /// Whether an execution with this body tells the server more than values. If one is refused,
    /// the client then believes something of the statement that the server doesn't know. For a read
    /// it is taken for granted.
    pub fn may_be_new(&self, body: &[u8], capabilities: remora_wire::Capabilities) -> bool {
        match &self.kind {
            PreparedKind::Read(_) => true,
            PreparedKind::Other { parameters, .. } => parameters.may_be_new(body, capabilities),
        }
    }

    /// Whether it may change what reads give without a trace in the log, privileges included.
    fn may_be_unlogged(&self) -> bool {
        use PrivilegeStatement::{Hidden, Reload, Revoke};
        let of_privileges = matches!(
            self.consequences.writes,
            PlannedWrites::Privileges(Revoke | Reload | Hidden)
        );
        self.consequences.unlogged || of_privileges
    }

    /// How much of what is limited it takes, bytes.
    fn text_bytes(&self) -> usize {
        let of_kind = match &self.kind {
            PreparedKind::Read(read) => read.text_bytes() + types_bytes(read.parameters),
            PreparedKind::Other { parameters, .. } if parameters.keeps_types => {
                types_bytes(parameters.count)
            }
            PreparedKind::Other { .. } => 0,
        };
        of_kind + self.consequences.writes.bytes()
    }
}

/// Whether a statement's parameters have always had the same types.
///
/// MySQL 8.0 settles a parameter's type with its executions: once `text_column = ?` was given a
/// number, it compares texts with it as numbers too, and an integer after a double as a double. So
/// what an execution means can depend on those before it, which no key and no tag tells. NULL
/// settles nothing.
#[derive(Debug, Default)]
struct TypeHistory {
    /// Of each parameter the first type that wasn't NULL's; or NULL's.
    first: Vec<u8>,
    is_mixed: bool,
}

/// `MYSQL_TYPE_NULL`
const TYPE_NULL: u8 = 0x06;

impl TypeHistory {
    /// An execution with parameters of these types, two bytes each.
    fn note(&mut self, types: &[u8]) {
        if self.first.len() != types.len() {
            self.is_mixed |= !self.first.is_empty();
            self.first = types.to_vec();
            return;
        }
        for (first, now) in self.first.chunks_exact_mut(2).zip(types.chunks_exact(2)) {
            if first[0] == TYPE_NULL {
                first.copy_from_slice(now);
            } else if now[0] != TYPE_NULL {
                self.is_mixed |= class_of(first) != class_of(now);
            }
        }
    }
}

/// What the types of so many parameters take, bytes: the last and the first ones.
fn types_bytes(parameters: u16) -> usize {
    2 * 2 * usize::from(parameters)
}

/// Types that are sent for values of one kind: integers of all widths, strings.
fn class_of(of_type: &[u8]) -> (u8, u8) {
    let kind = match of_type[0] {
        0x01 | 0x02 | 0x03 | 0x08 => 0x08,
        0x0f | 0xfd | 0xfe => 0xfd,
        other => other,
    };
    (kind, of_type[1])
}

/// What is known of the parameters of a prepared statement that writes certain rows.
///
/// As the server does, it remembers the types that the client named last; and forgets them where
/// the server may not have read them.
#[derive(Debug, Default)]
pub struct WriteParameters {
    /// How many it has.
    count: u16,
    /// Their types; empty: unknown.
    types: Vec<u8>,
    history: TypeHistory,
    /// A part of one was sent ahead.
    has_long_data: bool,
    /// There is room for the types. If not, no value is known.
    keeps_types: bool,
}

impl WriteParameters {
    /// The values that an execution with this body, behind the statement's number, binds; empty if
    /// they can't be told. Gives also whether it names their types.
    #[inline]
    fn bind<'b>(
        &mut self,
        body: &'b [u8],
        capabilities: remora_wire::Capabilities,
    ) -> (Vec<BoundValue<'b>>, bool) {
        let has_long_data = std::mem::take(&mut self.has_long_data);
        let Ok(execution) = Execution::parse(body, self.count, capabilities) else {
            self.types.clear();
            return (Vec::new(), false);
        };
        if !self.keeps_types {
            return (Vec::new(), execution.types().is_some());
        }
        if let Some(types) = execution.types() {
            types.store(&mut self.types);
            self.history.note(&self.types);
        }
        if has_long_data || self.history.is_mixed || self.types.len() != 2 * usize::from(self.count)
        {
            return (Vec::new(), execution.types().is_some());
        }
        (
            execution.bound_values(&self.types),
            execution.types().is_some(),
        )
    }

    /// Whether an execution with this body brings the server more than values: types of parameters,
    /// or a part of one that was sent ahead.
    fn may_be_new(&self, body: &[u8], capabilities: remora_wire::Capabilities) -> bool {
        let names_types = |execution: Execution<'_>| execution.types().is_some();
        let execution = Execution::parse(body, self.count, capabilities);
        self.has_long_data || execution.map_or(true, names_types)
    }
}

/// A prepared `SELECT` whose results can be kept.
///
/// **Types.** A client names the types of its parameters when they change and leaves it to the
/// server to remember them. What was answered from memory the server has not seen; so Remora
/// remembers whether the server knows the types, and if it doesn't, puts them into the next
/// execution that goes there (the proxy's `session/types.rs`).
#[derive(Debug)]
pub struct PreparedRead {
    /// What stands for the text that was prepared: its key text.
    pub text: Arc<[u8]>,
    /// What it reads.
    pub select: Arc<Select>,
    /// The settings under which it was prepared: names, literals and parameters were read under
    /// them.
    pub fingerprint: Arc<Fingerprint>,
    /// When it was prepared, or last executed by the server; `None`: nobody knows. After a change
    /// of definitions the server prepares it again, and says so in the answer's status.
    pub prepared_at: Option<AsOf>,
    /// How many parameters it has.
    parameters: u16,
    /// The types that the client named last; empty before the first time.
    types: Vec<u8>,
    /// What the server has of them.
    server_types: ServerTypes,
    /// It was executed under other settings than those of its preparation, or may have been.
    was_executed_elsewhere: bool,
    history: TypeHistory,
    /// A part of a parameter was sent ahead.
    has_long_data: bool,
    /// The server may hold a cursor's rows for it, which its next execution ends.
    has_cursor: bool,
}

/// Which of a statement's types the server has.
#[derive(Debug)]
enum ServerTypes {
    /// Not those that the client named last.
    NotTheLast,
    /// Those, from a message that was sent under these settings, if they were known.
    NamedUnder(Option<Arc<Fingerprint>>),
}

impl PreparedRead {
    /// A statement that is about to be prepared.
    pub fn new(
        text: &[u8],
        select: Select,
        fingerprint: Arc<Fingerprint>,
        prepared_at: Option<AsOf>,
    ) -> PreparedRead {
        PreparedRead {
            text: text.into(),
            select: Arc::new(select),
            fingerprint,
            prepared_at,
            parameters: 0,
            types: Vec::new(),
            server_types: ServerTypes::NotTheLast,
            was_executed_elsewhere: false,
            history: TypeHistory::default(),
            has_long_data: false,
            has_cursor: false,
        }
    }

    /// How much of what is limited it takes, bytes: its text, and the constants in it.
    fn text_bytes(&self) -> usize {
        self.text.len() + self.select.reads.constants_bytes()
    }

    /// Reads an execution's body, behind the statement's number.
    #[inline]
    pub fn execution<'b>(
        &self,
        body: &'b [u8],
        capabilities: remora_wire::Capabilities,
    ) -> Option<Execution<'b>> {
        Execution::parse(body, self.parameters, capabilities).ok()
    }

    /// Whether an execution names other types than the one before.
    #[inline]
    pub fn names_others(&self, execution: &Execution<'_>) -> bool {
        let types = execution.types();
        types.is_some_and(|types| !types.are(&self.types))
    }

    /// The client names the parameters' types, if it does. Gives whether they were others before.
    /// The message may be looked at more than once.
    #[inline]
    pub fn name_types(&mut self, execution: &Execution<'_>) -> bool {
        let Some(types) = execution.types().filter(|types| !types.are(&self.types)) else {
            return false;
        };
        let had_others = !self.types.is_empty();
        types.store(&mut self.types);
        self.history.note(&self.types);
        self.server_types = ServerTypes::NotTheLast;
        had_others
    }

    /// The types that the client named last; empty before the first time.
    #[inline]
    pub fn types(&self) -> &[u8] {
        &self.types
    }

    /// The types that the client named last, if the server lacks them: only memory has answered the
    /// executions since.
    #[inline]
    pub fn unseen_types(&self) -> Option<&[u8]> {
        let server_lacks_them = matches!(self.server_types, ServerTypes::NotTheLast);
        (server_lacks_them && !self.types.is_empty()).then_some(&self.types)
    }

    /// The server has got them from a message that was sent under these settings, if known.
    #[inline]
    pub fn server_got_types(&mut self, now: Option<&Arc<Fingerprint>>) {
        self.server_types = ServerTypes::NamedUnder(now.cloned());
    }

    /// The server may not have read the types in the last message.
    #[inline]
    pub fn server_may_lack_types(&mut self) {
        self.server_types = ServerTypes::NotTheLast;
    }

    /// Whether the server has the parameters' types from a message that was sent under other
    /// character sets than those of the preparation. MariaDB goes on to convert strings as it did
    /// then.
    #[inline]
    pub fn types_were_named_elsewhere(&self, execution: &Execution<'_>) -> bool {
        if execution.types().is_some() {
            return false;
        }
        match &self.server_types {
            ServerTypes::NotTheLast => false,
            ServerTypes::NamedUnder(None) => true,
            // Mostly they are the very same.
            ServerTypes::NamedUnder(Some(then)) => {
                !Arc::ptr_eq(then, &self.fingerprint)
                    && then.character_sets != self.fingerprint.character_sets
            }
        }
    }

    /// An execution was answered. `at`: what was visible before it was sent, if it succeeded.
    ///
    /// A server that prepares the statement again reads its text under the settings of then. So
    /// once it was executed under others, nobody knows what a later change of a definition has made
    /// of it.
    #[inline]
    pub fn executed(&mut self, at: Option<AsOf>, under_others: bool) {
        self.was_executed_elsewhere |= under_others;
        if !self.was_executed_elsewhere && at.is_some() {
            self.prepared_at = at;
        }
    }

    /// The values that an execution binds.
    #[inline]
    pub fn bound_values<'b>(&self, execution: &Execution<'b>) -> Vec<BoundValue<'b>> {
        execution.bound_values(&self.types)
    }

    /// Whether an execution can be looked up, and if so puts down what by.
    #[inline]
    pub fn put_key(
        &self,
        execution: &Execution<'_>,
        timeline: &Timeline,
        key: &mut Vec<u8>,
    ) -> Result<(), Bypass> {
        if self.has_long_data {
            return Err(Bypass::PreparedLongData);
        }
        if self.has_cursor || execution.wants_cursor {
            return Err(Bypass::PreparedCursor);
        }
        if self.types.len() != 2 * usize::from(self.parameters)
            || has_time(&self.types)
            || self.history.is_mixed
        {
            return Err(Bypass::PreparedParameters);
        }
        let definitions = || std::iter::once(Tag::any_definition());
        let is_current = self
            .prepared_at
            .is_some_and(|prepared_at| timeline.outdated(prepared_at, definitions()).is_none());
        if !is_current {
            return Err(Bypass::PreparedBeforeDefinition);
        }
        key.clear();
        key.extend_from_slice(&self.text);
        key.extend_from_slice(&self.types);
        execution.put_values(key);
        // Where the text ends: without it another text could go on as these values do.
        key.extend_from_slice(&(self.text.len() as u64).to_le_bytes());
        Ok(())
    }

    /// An execution is going to the server.
    #[inline]
    pub fn sent(&mut self, execution: Option<&Execution<'_>>, now: Option<&Arc<Fingerprint>>) {
        // With the execution the server forgets what was sent ahead, and the cursor before it.
        self.has_long_data = false;
        self.has_cursor = execution.is_none_or(|execution| execution.wants_cursor);
        match execution {
            Some(execution) if execution.types().is_some() => {
                // One that is too long isn't looked up, so its types are noted here.
                self.name_types(execution);
                self.server_got_types(now);
            }
            Some(_) => {}
            None => self.forget_types(),
        }
    }

    /// Nobody knows which types the server remembers: until they are named again nothing is looked
    /// up.
    pub fn forget_types(&mut self) {
        self.types.clear();
        self.server_types = ServerTypes::NotTheLast;
    }

    /// Whether a part of a parameter was sent ahead.
    #[inline]
    pub fn has_long_data(&self) -> bool {
        self.has_long_data
    }
}

/// A session's prepared statements, up to a limit. One that isn't here may write everything.
#[derive(Debug)]
pub struct PreparedStatements {
    known: HashMap<StatementId, PreparedStatement>,
    capacity: usize,
    /// Text that may be kept, and constants, bytes.
    text_bytes_max: usize,
    text_bytes: usize,
    last: Option<StatementId>,
    /// One that isn't kept may change what reads give without a trace in the log.
    lost_unlogged: bool,
}

/// What of a statement could not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKept {
    /// Nothing of it: it counts as unknown.
    Statement,
    /// Its text: it can't be looked up. Or its constants: it writes whole tables.
    Text,
}

impl PreparedStatements {
    /// Room for `capacity` statements and so many bytes of their texts and constants.
    pub fn new(capacity: usize, text_bytes_max: usize) -> PreparedStatements {
        PreparedStatements {
            known: HashMap::new(),
            capacity,
            text_bytes_max,
            text_bytes: 0,
            last: None,
            lost_unlogged: false,
        }
    }

    /// Keeps a statement that the server has prepared, with so many parameters.
    pub fn insert(
        &mut self,
        id: StatementId,
        parameters: u16,
        mut statement: PreparedStatement,
    ) -> Result<(), NotKept> {
        // A number that is used anew never means the old statement.
        self.remove(id);
        self.last = Some(id);
        if self.known.len() >= self.capacity {
            self.lost_unlogged |= statement.may_be_unlogged();
            return Err(NotKept::Statement);
        }
        let mut kept = Ok(());
        let left = self.text_bytes_max.saturating_sub(self.text_bytes);
        let types = types_bytes(parameters);
        if let Ok(read) = statement.read()
            && read.text_bytes() + types > left
        {
            statement.kind = PreparedKind::other(Bypass::PreparedTextsFull);
            kept = Err(NotKept::Text);
        }
        match &mut statement.kind {
            PreparedKind::Read(read) => read.parameters = parameters,
            PreparedKind::Other { parameters: of, .. } => {
                of.count = parameters;
                of.keeps_types = types <= left;
                if !of.keeps_types {
                    kept = Err(NotKept::Text);
                }
            }
        }
        let taken =
            self.text_bytes + statement.text_bytes() - statement.consequences.writes.bytes();
        let left = self.text_bytes_max.saturating_sub(taken);
        if statement.consequences.writes.coarsen_to(left) {
            kept = Err(NotKept::Text);
        }
        self.text_bytes += statement.text_bytes();
        self.known.insert(id, statement);
        kept
    }

    /// A preparation failed: nobody knows a statement that was prepared last.
    pub fn none_prepared(&mut self) {
        self.last = None;
    }

    /// A preparation isn't noted. `unlogged`: it may change what reads give without a trace in the
    /// log.
    pub fn is_not_noted(&mut self, unlogged: bool) {
        self.last = None;
        self.lost_unlogged |= unlogged;
    }

    /// Whether a statement that isn't kept may change what reads give without a trace in the log.
    pub fn has_lost_unlogged(&self) -> bool {
        self.lost_unlogged
    }

    /// Which statement a message means. `last_is_known`: the server is one of those on which a
    /// certain number means the statement prepared last.
    #[inline]
    pub fn resolve(&self, id: StatementId, last_is_known: bool) -> Option<StatementId> {
        if id.0 == LAST_PREPARED && last_is_known {
            self.last
        } else {
            Some(id)
        }
    }

    /// The statement with this number.
    #[inline]
    pub fn get(&self, id: StatementId) -> Option<&PreparedStatement> {
        self.known.get(&id)
    }

    /// The read that the statement with this number is, if its results can be kept.
    #[inline]
    pub fn read_mut(&mut self, id: StatementId) -> Option<&mut PreparedRead> {
        self.known.get_mut(&id)?.read_mut().ok()
    }

    /// The same, to be looked at.
    #[inline]
    pub fn read(&self, id: StatementId) -> Option<&PreparedRead> {
        self.known.get(&id)?.read().ok()
    }

    /// The same, or why its results aren't looked up.
    #[inline]
    pub fn lookup(&mut self, id: StatementId) -> Result<&mut PreparedRead, Bypass> {
        let known = self.known.get_mut(&id).ok_or(Bypass::PreparedStatement)?;
        known.read_mut()
    }

    /// The statement with this number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: StatementId) -> Option<&mut PreparedStatement> {
        self.known.get_mut(&id)
    }

    /// A part of a parameter goes to the server ahead of the execution.
    pub fn sends_long_data(&mut self, id: StatementId) {
        match self.known.get_mut(&id).map(|known| &mut known.kind) {
            Some(PreparedKind::Read(read)) => read.has_long_data = true,
            Some(PreparedKind::Other { parameters, .. }) => parameters.has_long_data = true,
            None => {}
        }
    }

    /// Forgets a statement that the client closed.
    pub fn remove(&mut self, id: StatementId) {
        if let Some(statement) = self.known.remove(&id) {
            self.text_bytes -= statement.text_bytes();
        }
        if self.last == Some(id) {
            self.last = None;
        }
    }

    /// Forgets all: the session was reset.
    pub fn clear(&mut self) {
        self.known.clear();
        self.text_bytes = 0;
        self.last = None;
        self.lost_unlogged = false;
    }
}
