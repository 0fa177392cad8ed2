//! What of a capture is sent, and on which connections.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use remora_sql::{
    Dialect, SessionEffect, Statement, StatementKind, Writes, analyse, analyse_prepared,
};

use super::event::{Action, Bytes, begins_with_word};
use super::reading::Captured;

/// A statement that is sent.
#[derive(Debug, Clone)]
pub struct Step {
    /// When, since the beginning.
    pub at: Duration,
    /// The default schema that it needs, if that is known.
    pub schema: Option<Bytes>,
    /// What is sent.
    pub action: Action,
    /// Whether it is a `SELECT`.
    pub is_read: bool,
    /// Whether its rows depend on nothing but its text and the tables, so that they can be
    /// compared.
    pub is_comparable: bool,
    /// Whether the connection begins anew before it.
    pub begins_connection: bool,
}

/// What is sent.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// In the order of time.
    pub steps: Vec<Step>,
    /// For each connection its steps, by their places in `steps`.
    pub lanes: Vec<Vec<u32>>,
    /// Connections in the capture that something is sent of.
    pub connections: usize,
    /// How many of them share a connection with others, for there were more at once than are
    /// allowed.
    pub shared: usize,
    /// What isn't sent: how often, and one of them, by reason.
    pub left_out: BTreeMap<String, LeftOut>,
}

/// Statements that are left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub count: u64,
    /// The first.
    pub example: String,
}

impl Plan {
    /// From the first statement to the last.
    pub fn length(&self) -> Duration {
        self.steps.last().map(|step| step.at).unwrap_or_default()
    }
}

/// Chooses what is sent. Unless `writes`, only what writes nothing; never what can't mean the same
/// here.
pub(super) fn plan(
    captured: &Captured,
    dialect: Dialect,
    writes: bool,
    connections_max: usize,
) -> Plan {
    let mut plan = Plan::default();
    let mut connections = Vec::new();
    for event in &captured.events {
        let (text, statement) = match &event.action {
            Action::Quit => continue,
            Action::Query(text) => (text, analyse(text, dialect)),
            Action::Execution(execution) => {
                (&execution.text, analyse_prepared(&execution.text, dialect))
            }
        };
        if let Some(reason) = reason_to_leave_out(text, &statement, writes) {
            let one = plan.left_out.entry(reason).or_insert_with(|| LeftOut {
                count: 0,
                example: shortened(text),
            });
            one.count += 1;
            continue;
        }
        connections.push(event.connection);
        plan.steps.push(Step {
            at: event.at,
            schema: event.schema.clone(),
            action: event.action.clone(),
            is_read: statement.kind == StatementKind::Select,
            is_comparable: statement.cacheable.is_ok(),
            begins_connection: false,
        });
    }
    if let Some(first) = plan.steps.first().map(|step| step.at) {
        for step in &mut plan.steps {
            step.at -= first;
        }
    }
    assign(&mut plan, &connections, connections_max.max(1));
    plan
}

/// Why a statement isn't sent; `None` if it is.
fn reason_to_leave_out(text: &[u8], statement: &Statement, writes: bool) -> Option<String> {
    let begins = |word| begins_with_word(text, word);
    // The connections' numbers are others here, and nobody asked for the server's end.
    if begins("KILL") || begins("SHUTDOWN") {
        return Some("ends a connection or the server".to_owned());
    }
    if statement.kind == StatementKind::Load {
        return Some("loads a file".to_owned());
    }
    if writes {
        return None;
    }
    match &statement.writes {
        Writes::Nothing => {}
        Writes::Tables(_) => return Some(format!("writes ({})", name_of(statement.kind))),
        Writes::Everything(reason) => return Some(format!("may write: {}", reason.describe())),
    }
    let is_select = statement.kind == StatementKind::Select;
    if is_select && (contains_word(text, b"OUTFILE") || contains_word(text, b"DUMPFILE")) {
        return Some("writes a file".to_owned());
    }
    match (statement.kind, statement.session) {
        (_, SessionEffect::UserLock) => Some("takes or releases a user lock".to_owned()),
        (_, SessionEffect::TemporaryTable) => Some("makes or drops a temporary table".to_owned()),
        (StatementKind::Lock | StatementKind::Flush, _) => {
            Some("locks tables or the server".to_owned())
        }
        (StatementKind::Set, _) if sets_globally(text) => Some("sets a global variable".to_owned()),
        (
            StatementKind::Select
            | StatementKind::Show
            | StatementKind::Explain
            | StatementKind::Set
            | StatementKind::Use
            | StatementKind::Do
            | StatementKind::Transaction
            | StatementKind::Diagnostics
            | StatementKind::Handler
            | StatementKind::Prepare
            | StatementKind::Empty,
            _,
        ) => None,
        _ if begins("VALUES") || begins("TABLE") || begins("CHECKSUM") => None,
        _ => Some("is of a kind that isn't known to write nothing".to_owned()),
    }
}

fn name_of(kind: StatementKind) -> String {
    format!("{kind:?}").to_ascii_uppercase()
}

/// Whether a `SET` may set something for others. A word in a string counts too: then a harmless one
/// is left out.
fn sets_globally(text: &[u8]) -> bool {
    [&b"GLOBAL"[..], b"PERSIST", b"PERSIST_ONLY", b"PASSWORD"]
        .iter()
        .any(|word| contains_word(text, word))
}

fn contains_word(text: &[u8], word: &[u8]) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.split(|byte| !is_inner(byte))
        .any(|one| one.eq_ignore_ascii_case(word))
}

/// A statement's beginning on one line, for people.
pub(super) fn shortened(text: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 100;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * CHARACTERS_MAX)]).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= CHARACTERS_MAX {
        return line;
    }
    line.chars().take(CHARACTERS_MAX).chain(['…']).collect()
}

/// Gives each captured connection one of its own, as far as they go; more are shared out.
fn assign(plan: &mut Plan, connections: &[u32], lanes_max: usize) {
    let mut last = HashMap::new();
    for (place, connection) in connections.iter().enumerate() {
        last.insert(*connection, place);
    }
    plan.connections = last.len();
    let mut lane_of: HashMap<u32, usize> = HashMap::new();
    let mut users: Vec<usize> = Vec::new();
    let mut free = VecDeque::new();
    for (place, connection) in connections.iter().enumerate() {
        let lane = *lane_of.entry(*connection).or_insert_with(|| {
            let lane = if plan.lanes.len() < lanes_max {
                plan.lanes.push(Vec::new());
                users.push(0);
                plan.lanes.len() - 1
            } else if let Some(lane) = free.pop_front() {
                lane
            } else {
                plan.shared += 1;
                usize::try_from(*connection).unwrap_or_default() % lanes_max
            };
            plan.steps[place].begins_connection = users[lane] == 0;
            users[lane] += 1;
            lane
        });
        plan.lanes[lane].push(u32::try_from(place).unwrap_or(u32::MAX));
        if last.get(connection) == Some(&place) {
            users[lane] -= 1;
            if users[lane] == 0 {
                free.push_back(lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::replay::reading::Event;

    fn captured(statements: &[(u32, &str)]) -> Captured {
        let event = |(at, (connection, text)): (u64, &(u32, &str))| Event {
            at: Duration::from_millis(at),
            connection: *connection,
            schema: None,
            action: Action::Query(Arc::from(text.as_bytes())),
        };
        Captured {
            events: (5..).zip(statements).map(event).collect(),
            ..Captured::default()
        }
    }

    fn sent(text: &str, writes: bool) -> bool {
        let plan = plan(&captured(&[(1, text)]), Dialect::default(), writes, 10);
        assert_eq!(plan.steps.len() + plan.left_out.len(), 1);
        !plan.steps.is_empty()
    }

    #[test]
    fn what_writes_nothing_is_sent() {
        for text in [
            "SELECT a FROM t WHERE b = ';'",
            "(SELECT 1) UNION SELECT 2",
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
            "SET NAMES utf8mb4",
            "SET @a = 1",
            "SET SESSION sql_mode = ''",
            "USE shop",
            "BEGIN",
            "COMMIT",
            "SELECT a FROM t FOR UPDATE",
        ] {
            assert!(sent(text, false), "{text}");
        }
    }

    #[test]
    fn what_writes_or_ends_something_is_left_out() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "DROP TABLE t",
            "CREATE TEMPORARY TABLE t (a INT)",
            "CALL p()",
            "SELECT f_of_theirs(1)",
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "SELECT GET_LOCK('a', 10)",
            "LOCK TABLES t READ",
            "FLUSH TABLES WITH READ LOCK",
            "SET GLOBAL max_connections = 1",
            "SET @@global.max_connections = 1",
            "SET PERSIST max_connections = 1",
            "SET PASSWORD = 'x'",
            "SELECT 1; DROP TABLE t",
            "EXECUTE s",
            "GRANT ALL ON *.* TO x",
            "XA START 'a'",
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
            "RESET MASTER",
            "KILL 5",
            "SHUTDOWN",
            "nonsense",
        ] {
            assert!(!sent(text, false), "{text}");
        }
    }

    #[test]
    fn even_with_writes_nothing_is_killed() {
        assert!(sent("INSERT INTO t VALUES (1)", true));
        assert!(!sent("kill 5", true));
        assert!(!sent("SHUTDOWN", true));
        assert!(!sent("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", true));
    }

    #[test]
    fn each_connection_gets_one_of_its_own_up_to_the_limit() {
        let all = [
            (1, "SELECT 1"),
            (2, "SELECT 2"),
            (1, "SELECT 3"),
            (3, "SELECT 4"),
            (4, "SELECT 5"),
        ];
        let own = plan(&captured(&all), Dialect::default(), false, 10);
        assert_eq!(own.lanes, [vec![0, 2], vec![1], vec![3], vec![4]]);
        assert!(own.steps[0].begins_connection && !own.steps[2].begins_connection);
        // The second has ended when the third begins: its place is taken, with a connection that
        // begins anew.
        let two = plan(&captured(&all), Dialect::default(), false, 2);
        assert_eq!(two.lanes, [vec![0, 2, 4], vec![1, 3]]);
        assert!(two.steps[3].begins_connection);
        assert_eq!((two.connections, two.shared), (4, 0));
        let shared = plan(&captured(&all), Dialect::default(), false, 1);
        assert_eq!(shared.lanes.len(), 1);
        assert!(shared.shared > 0);
        assert_eq!(own.steps[0].at, Duration::ZERO);
    }
}
