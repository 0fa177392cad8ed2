//! The question for a session's settings.

use remora_sql::{Dialect, RESULT_SETTINGS};
use remora_wire::rows::Row;

use super::fingerprint::Isolation;
use crate::facts::{INSTANCE_FIELDS, Instance, UUID_FIELD};

/// The value of `sql_select_limit` that limits nothing: 2^64 - 1. Asked for as bytes,
/// MySQL 5.x gives it as -1.
const NO_SELECT_LIMIT: [&[u8]; 2] = [b"18446744073709551615", b"-1"];

/// The question that a session asks, and how to read its answer. Made once per server, from the
/// variables that this server has.
///
/// No setting of the session distorts the answer: each value is asked for as bytes, which no
/// character set converts, and with a `LIMIT`, which `sql_select_limit` gives way to. One more
/// field is a text on purpose, see [`SettingsQuery::append_collation`].
#[derive(Debug, Clone)]
pub struct SettingsQuery {
    sql: String,
    /// The fields, but for that of the mark.
    fields: String,
    mark: Option<FollowedMark>,
    names: Vec<String>,
    /// How many fields stand behind those: variables of [`remora_sql::CONTACT_SETTINGS`].
    contact_fields: usize,
}

/// What a session sees if it is on the followed server: a user-level lock that the follower holds.
/// Each of the follower's sessions takes a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedMark {
    /// No other mark has it.
    pub number: u64,
    /// The lock's name.
    pub name: String,
    /// The number of the connection that holds it.
    pub holder: String,
}

impl FollowedMark {
    /// Who holds the lock. Its name stands there in digits: a string in the text would be converted
    /// to the connection's character set first.
    fn field(&self) -> String {
        let digits = self.name.bytes().map(|byte| format!("{byte:02x}"));
        format!("IS_USED_LOCK(x'{}')", digits.collect::<String>())
    }
}

/// The places of what is asked for before the variables.
const ACCOUNT_FIELD: usize = 0;
const ROLE_FIELD: usize = 1;
const SCHEMA_FIELD: usize = 2;
const LOG_BIN_FIELD: usize = 3;
/// Of the first of those that make up an [`Instance`].
const INSTANCE_FIELD: usize = 4;
/// Fields before the variables.
const LEADING_FIELDS: usize = INSTANCE_FIELD + INSTANCE_FIELDS.len();

/// The field before the mark: the count that the client would get. The question itself overwrites
/// the server's.
const FOUND_ROWS: &str = "CAST(FOUND_ROWS() AS BINARY)";
/// The last field: a text on purpose. Its definition names the collation in which the server sends
/// texts.
const COLLATION_PROBE: &str = "''";

/// What a server has of all that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerFeatures {
    /// `CURRENT_ROLE()`
    pub has_roles: bool,
    /// `@@server_uuid`
    pub has_uuid: bool,
}

impl SettingsQuery {
    /// A question for these session variables; and for those `of_contact`, which are no part of the
    /// fingerprint.
    pub fn new(
        features: ServerFeatures,
        variables: impl IntoIterator<Item = String>,
        of_contact: &[String],
    ) -> SettingsQuery {
        let names: Vec<String> = variables.into_iter().collect();
        let role = if features.has_roles {
            "CURRENT_ROLE()"
        } else {
            "NULL"
        };
        let mut leading = [""; INSTANCE_FIELD];
        leading[ACCOUNT_FIELD] = "CURRENT_USER()";
        leading[ROLE_FIELD] = role;
        leading[SCHEMA_FIELD] = "DATABASE()";
        leading[LOG_BIN_FIELD] = "@@sql_log_bin";
        let instance = INSTANCE_FIELDS.map(|field| match field {
            UUID_FIELD if !features.has_uuid => "NULL",
            field => field,
        });
        let fields = leading
            .into_iter()
            .chain(instance)
            .map(str::to_owned)
            .chain(
                names
                    .iter()
                    .chain(of_contact)
                    .map(|name| format!("@@{name}")),
            )
            .map(|field| format!("CAST({field} AS BINARY)"))
            .collect::<Vec<_>>()
            .join(", ");
        SettingsQuery {
            sql: format!("SELECT {fields}, {FOUND_ROWS}, NULL, {COLLATION_PROBE} LIMIT 1"),
            fields,
            mark: None,
            names,
            contact_fields: of_contact.len(),
        }
    }

    /// The same question, which also asks for the mark of the server that is followed.
    #[must_use]
    pub fn with_mark(self, mark: FollowedMark) -> SettingsQuery {
        let (fields, field) = (&self.fields, mark.field());
        let mark_field = format!("CAST({field} AS BINARY)");
        SettingsQuery {
            sql: format!("SELECT {fields}, {FOUND_ROWS}, {mark_field}, {COLLATION_PROBE} LIMIT 1"),
            mark: Some(mark),
            ..self
        }
    }

    /// The number of the mark that it asks for; 0 if it asks for none.
    #[inline]
    pub fn mark_number(&self) -> u64 {
        self.mark.as_ref().map_or(0, |mark| mark.number)
    }

    /// What it asks for, but for the mark: equal for two that [are alike](SettingsQuery::is_like).
    pub fn asked_fields(&self) -> &str {
        &self.fields
    }

    /// Whether another one asks for the same, but for the mark.
    pub fn is_like(&self, other: &SettingsQuery) -> bool {
        self.fields == other.fields
    }

    /// The statement.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Whether it asks for this variable: the server has it.
    pub fn asks_for(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// How many fields the answer has.
    pub fn fields(&self) -> usize {
        LEADING_FIELDS + self.names.len() + self.contact_fields + 3
    }

    /// Removes the field that is asked for only to see its definition.
    pub fn remove_collation_probe(row: &mut Row) {
        row.pop();
    }

    /// Appends the collation in which the server sends texts. The variables don't tell. They are
    /// the same after `SET NAMES latin1 COLLATE latin1_bin` as after `SET NAMES latin1` and `SET
    /// collation_connection = latin1_bin`, but MySQL's column definitions differ.
    pub fn append_collation(row: &mut Row, collation: Option<u16>) {
        row.push(collation.map(|number| number.to_le_bytes().to_vec()));
    }

    /// Takes off an answer what it says of the mark: whether the session sees it. It is no part of
    /// the fingerprint, as each of the follower's sessions has another mark on the same server.
    pub fn take_mark(&self, row: &mut Row) -> bool {
        let holder = row.pop().flatten();
        let mark = self.mark.as_ref();
        mark.is_some_and(|mark| holder.as_deref() == Some(mark.holder.as_bytes()))
    }

    /// Takes the count off an answer that `FOUND_ROWS()` would have given the client; `None` if it
    /// can't be read. The mark must have been [taken off](SettingsQuery::take_mark) before.
    pub fn take_found_rows(row: &mut Row) -> Option<usize> {
        std::str::from_utf8(&row.pop()??).ok()?.parse().ok()
    }

    /// Takes off an answer what is no part of the fingerprint: how long the server waits for the
    /// session, milliseconds, if not for ever. None too if it can't be read.
    pub fn take_patience_ms(&self, row: &mut Row) -> Option<u64> {
        let of_contact = row.split_off(row.len().saturating_sub(self.contact_fields));
        let seconds = of_contact
            .into_iter()
            .flatten()
            .filter_map(|value| std::str::from_utf8(&value).ok()?.parse::<u64>().ok());
        let patience = seconds.filter(|seconds| *seconds > 0).min()?;
        Some(patience.saturating_mul(1_000))
    }

    fn value<'r>(&self, row: &'r Row, names: &[&str]) -> Option<&'r [u8]> {
        let at = self
            .names
            .iter()
            .position(|name| names.contains(&name.as_str()))?;
        row.get(LEADING_FIELDS + at)?.as_deref()
    }

    /// Whether no setting has a value under which results depend on more than the key says.
    pub(super) fn allows_caching(&self, row: &Row) -> bool {
        RESULT_SETTINGS.iter().all(|setting| {
            let (Some(allowed), Some(value)) =
                (setting.only_when, self.value(row, &[setting.name]))
            else {
                return true;
            };
            allowed
                .iter()
                .any(|allowed| value.eq_ignore_ascii_case(allowed.as_bytes()))
        })
    }

    pub(super) fn dialect(&self, row: &Row) -> Option<Dialect> {
        let modes = self.value(row, &["sql_mode"])?;
        Dialect::from_sql_mode(&String::from_utf8_lossy(modes))
    }

    pub(super) fn autocommit(&self, row: &Row) -> bool {
        let value = self.value(row, &["autocommit"]);
        value.is_none_or(|value| value == b"1" || value.eq_ignore_ascii_case(b"ON"))
    }

    pub(super) fn isolation(&self, row: &Row) -> Isolation {
        match self.value(row, &["transaction_isolation", "tx_isolation"]) {
            Some(b"READ-COMMITTED") => Isolation::ReadCommitted,
            Some(b"REPEATABLE-READ") => Isolation::RepeatableRead,
            _ => Isolation::Other,
        }
    }

    /// The default schema.
    pub(super) fn schema(row: &Row) -> Option<String> {
        text(row, SCHEMA_FIELD)
    }

    /// The account.
    pub(super) fn account(row: &Row) -> Option<String> {
        text(row, ACCOUNT_FIELD)
    }

    /// Which server has answered; `None` if that can't be read.
    pub(super) fn instance(row: &Row) -> Option<Instance> {
        Instance::of_fields(row.get(INSTANCE_FIELD..LEADING_FIELDS)?)
    }

    /// Whether a `SELECT` without `LIMIT` gives no rows.
    pub(super) fn selects_nothing(&self, row: &Row) -> bool {
        self.value(row, &["sql_select_limit"]) == Some(b"0")
    }

    /// Whether it gives all rows.
    pub(super) fn selects_all(&self, row: &Row) -> bool {
        let limit = self.value(row, &["sql_select_limit"]);
        limit.is_some_and(|limit| NO_SELECT_LIMIT.contains(&limit))
    }

    /// Takes out of an answer which server has given it, for tests that break the rule that rests
    /// on it.
    pub fn hide_instance(row: &mut Row) {
        let fields = row.iter_mut().take(LEADING_FIELDS).skip(INSTANCE_FIELD);
        fields.for_each(|field| *field = None);
    }

    /// Whether the session's changes reach the log (`@@sql_log_bin`).
    pub fn logs_changes(row: &Row) -> bool {
        field(row, LOG_BIN_FIELD)
            .is_some_and(|value| value == b"1" || value.eq_ignore_ascii_case(b"ON"))
    }

    pub(super) fn ends_transactions_plainly(&self, row: &Row) -> bool {
        let value = self.value(row, &["completion_type"]);
        value.is_some_and(|value| value == b"0" || value.eq_ignore_ascii_case(b"NO_CHAIN"))
    }

    /// See [`Fingerprint::character_sets`].
    pub(super) fn character_sets(&self, row: &Row) -> [String; 3] {
        let names = [
            "character_set_client",
            "character_set_connection",
            "collation_connection",
        ];
        names.map(|name| {
            let name = self.value(row, &[name]).unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        })
    }
}

fn field(row: &Row, at: usize) -> Option<&[u8]> {
    row.get(at)?.as_deref()
}

fn text(row: &Row, at: usize) -> Option<String> {
    String::from_utf8(field(row, at)?.to_vec()).ok()
}
