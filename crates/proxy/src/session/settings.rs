//! The session's settings as the server itself reports them, and their place in the cache key.
//!
//! Remora computes no setting from a `SET`: the server tells them. Whenever a statement may have
//! changed a setting that can change a result, the session asks the server for all of them in one
//! `SELECT` on the client's own connection before the next look-up. The answer's bytes, together
//! with the account, the protocol's flavour and the collation in which texts are sent, are the
//! **fingerprint**: two sessions share entries only if theirs are equal byte for byte.
//!
//! What they are after a `SET` to literals is asked once, see [`super::settings_after`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use remora_sql::{Dialect, RESULT_SETTINGS};
use remora_wire::Capabilities;
use remora_wire::rows::Row;

use super::charset::{self, TextCharset};
use super::settings_after::SettingsAfter;
use super::transaction_flags::TransactionFlags;
use crate::tags::StringConversion;
use crate::upstream::server_facts::{INSTANCE_FIELDS, Instance, UUID_FIELD};

/// How the open transaction, or the next, sees other transactions' commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what is committed when it begins.
    ReadCommitted,
    /// All statements of a transaction see the same.
    RepeatableRead,
    /// `READ UNCOMMITTED` or `SERIALIZABLE`, whose reads aren't those of committed rows alone.
    Other,
}

/// The value of `sql_select_limit` that limits nothing: 2^64 - 1, which MySQL 5.x gives with a sign
/// as bytes.
const NO_SELECT_LIMIT: [&[u8]; 2] = [b"18446744073709551615", b"-1"];

/// What a session's settings are, as far as they can change a result.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub struct Fingerprint {
    /// Unique in this process and never used again.
    pub id: u64,
    /// The default schema.
    pub schema: Option<String>,
    /// The account, as `CURRENT_USER()` gives it.
    pub account: Option<String>,
    /// The server that the session speaks to; `None` if its answer can't be read.
    pub instance: Option<Instance>,
    /// How the server reads statement text; `None` if as a language that Remora can't read.
    pub dialect: Option<Dialect>,
    /// Whether each statement without `BEGIN` is a transaction, as the variable says.
    pub autocommit: bool,
    /// The isolation level of transactions that begin from now on.
    pub isolation: Isolation,
    /// `character_set_client`, `character_set_connection` and `collation_connection`.
    pub character_sets: [String; 3],
    /// How bytes of statement text relate to characters.
    pub charset: TextCharset,
    /// What the server does with the strings in statements.
    pub string_conversion: StringConversion,
    /// Whether each setting has a value under which results can be kept.
    pub allows_caching: bool,
    /// Whether `COMMIT` and `ROLLBACK` do nothing else (`completion_type`).
    pub ends_transactions_plainly: bool,
    /// Whether a `SELECT` without `LIMIT` gives no rows (`sql_select_limit`), and then the server
    /// need not look for any.
    pub selects_nothing: bool,
    /// Whether it gives all rows.
    pub selects_all: bool,
    /// The flags of the server's answers where transactions begin and end, as far as they are
    /// known.
    pub transaction_flags: TransactionFlags,
    /// The settings after each `SET` that determines them.
    pub after: SettingsAfter,
}

/// Of a fingerprint, what is shown of it or needed to show more. Not the fingerprint itself:
/// whoever has that keeps it from being forgotten.
#[derive(Debug)]
pub(crate) struct FingerprintNames {
    pub(crate) schema: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) dialect: Option<Dialect>,
}

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
            sql: format!("SELECT {fields}, NULL, {COLLATION_PROBE} LIMIT 1"),
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
        SettingsQuery {
            sql: format!("SELECT {fields}, CAST({field} AS BINARY), {COLLATION_PROBE} LIMIT 1"),
            mark: Some(mark),
            ..self
        }
    }

    /// The number of the mark that it asks for; 0 if it asks for none.
    pub fn mark_number(&self) -> u64 {
        self.mark.as_ref().map_or(0, |mark| mark.number)
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
        LEADING_FIELDS + self.names.len() + self.contact_fields + 2
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
    fn allows_caching(&self, row: &Row) -> bool {
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

    fn dialect(&self, row: &Row) -> Option<Dialect> {
        let modes = self.value(row, &["sql_mode"])?;
        Dialect::from_sql_mode(&String::from_utf8_lossy(modes))
    }

    fn autocommit(&self, row: &Row) -> bool {
        let value = self.value(row, &["autocommit"]);
        value.is_none_or(|value| value == b"1" || value.eq_ignore_ascii_case(b"ON"))
    }

    fn isolation(&self, row: &Row) -> Isolation {
        match self.value(row, &["transaction_isolation", "tx_isolation"]) {
            Some(b"READ-COMMITTED") => Isolation::ReadCommitted,
            Some(b"REPEATABLE-READ") => Isolation::RepeatableRead,
            _ => Isolation::Other,
        }
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

    fn ends_transactions_plainly(&self, row: &Row) -> bool {
        let value = self.value(row, &["completion_type"]);
        value.is_some_and(|value| value == b"0" || value.eq_ignore_ascii_case(b"NO_CHAIN"))
    }

    /// See [`Fingerprint::character_sets`].
    fn character_sets(&self, row: &Row) -> [String; 3] {
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

/// What of a connection belongs to the fingerprint beside the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavour {
    /// The protocol features that both sides use.
    pub capabilities: Capabilities,
    /// The epoch of privileges in which the session logged in: the server looks at an account's
    /// global privileges only then, so a session from before a `REVOKE` may still read what a later
    /// one may not.
    pub login_epoch: u64,
    /// The same when it chose its default schema, the moment at which the server looks at the
    /// account's privileges on that schema.
    pub schema_epoch: u64,
    /// The same when it took up its role.
    pub role_epoch: u64,
    /// The client's address, if the server is told it: privileges on schemas, tables and columns
    /// are given to hosts, and the server looks for them by this address, not by the account's.
    pub client: Option<IpAddr>,
}

impl Flavour {
    fn put(self, bytes: &mut Vec<u8>) {
        let capabilities = self.capabilities.without(WITHOUT_EFFECT_ON_RESULTS);
        bytes.extend_from_slice(&capabilities.0.to_le_bytes());
        for epoch in [self.login_epoch, self.schema_epoch, self.role_epoch] {
            bytes.extend_from_slice(&epoch.to_le_bytes());
        }
        match self.client {
            None => bytes.push(0),
            Some(IpAddr::V4(address)) => {
                bytes.push(4);
                bytes.extend_from_slice(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                bytes.push(6);
                bytes.extend_from_slice(&address.octets());
            }
        }
    }
}

/// Flags that change how a connection begins or what it may send, but no byte of a result set.
const WITHOUT_EFFECT_ON_RESULTS: Capabilities = Capabilities::CONNECT_WITH_DB
    .with(Capabilities::LOCAL_FILES)
    .with(Capabilities::COMPRESS)
    .with(Capabilities::SSL)
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::PLUGIN_AUTH)
    .with(Capabilities::CONNECT_ATTRS)
    .with(Capabilities::PLUGIN_AUTH_LENENC_DATA)
    .with(Capabilities::EXPIRED_PASSWORDS)
    .with(Capabilities::PROGRESS_OBSOLETE)
    .with(Capabilities::MARIADB_PROGRESS)
    .with(Capabilities::MARIADB_STMT_BULK_OPERATIONS);

/// All fingerprints in use. A lock is taken when a session learns its settings, never on a hit.
#[derive(Debug)]
pub struct Fingerprints {
    known: Mutex<HashMap<Vec<u8>, Arc<Fingerprint>>>,
    next_id: AtomicU64,
    capacity: usize,
}

/// More different settings are in use than `fingerprints_max` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyFingerprints;

impl Fingerprints {
    /// Room for `capacity` fingerprints in use at the same time.
    pub fn new(capacity: usize) -> Fingerprints {
        Fingerprints {
            known: Mutex::new(HashMap::new()),
            next_id: AtomicU64::new(1),
            capacity,
        }
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What can be shown of each that is known, by its [`Fingerprint::id`].
    pub(crate) fn names(&self) -> HashMap<u64, FingerprintNames> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = known.values().map(|known| {
            let names = FingerprintNames {
                schema: known.schema.clone(),
                account: known.account.clone(),
                dialect: known.dialect,
            };
            (known.id, names)
        });
        names.collect()
    }

    /// The fingerprint for what the server answered. Equal answers give the same one.
    pub fn intern(
        &self,
        query: &SettingsQuery,
        answer: &Row,
        flavour: Flavour,
    ) -> Result<Arc<Fingerprint>, TooManyFingerprints> {
        let bytes = Self::bytes(answer, flavour);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fingerprint) = known.get(&bytes) {
            return Ok(Arc::clone(fingerprint));
        }
        if known.len() >= self.capacity {
            // Ids are never used again, so entries of a forgotten fingerprint are simply out of
            // reach.
            known.retain(|_, fingerprint| Arc::strong_count(fingerprint) > 1);
            if known.len() >= self.capacity {
                return Err(TooManyFingerprints);
            }
        }
        let character_sets = query.character_sets(answer);
        let [client, connection, _] = &character_sets;
        let fingerprint = Arc::new(Fingerprint {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            schema: text(answer, SCHEMA_FIELD),
            account: text(answer, ACCOUNT_FIELD),
            instance: Instance::of_fields(&answer[INSTANCE_FIELD..LEADING_FIELDS]),
            dialect: query.dialect(answer),
            autocommit: query.autocommit(answer),
            isolation: query.isolation(answer),
            charset: TextCharset::of(client, connection),
            string_conversion: charset::string_conversion(client, connection),
            character_sets,
            allows_caching: query.allows_caching(answer),
            ends_transactions_plainly: query.ends_transactions_plainly(answer),
            selects_nothing: query.value(answer, &["sql_select_limit"]) == Some(b"0"),
            selects_all: query
                .value(answer, &["sql_select_limit"])
                .is_some_and(|value| NO_SELECT_LIMIT.contains(&value)),
            transaction_flags: TransactionFlags::default(),
            after: SettingsAfter::default(),
        });
        known.insert(bytes, Arc::clone(&fingerprint));
        Ok(fingerprint)
    }

    fn bytes(answer: &Row, flavour: Flavour) -> Vec<u8> {
        let mut bytes = Vec::new();
        flavour.put(&mut bytes);
        for field in answer {
            match field {
                None => bytes.push(0),
                Some(value) => {
                    bytes.push(1);
                    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(value);
                }
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(number: u64, name: &str) -> SettingsQuery {
        let features = ServerFeatures {
            has_roles: false,
            has_uuid: false,
        };
        let variables = ["sql_mode".to_owned()];
        let query = SettingsQuery::new(features, variables, &["wait_timeout".to_owned()]);
        query.with_mark(FollowedMark {
            number,
            name: name.to_owned(),
            holder: "17".to_owned(),
        })
    }

    fn answer(query: &SettingsQuery, holder: Option<&str>) -> Row {
        let mut row = vec![Some(b"1".to_vec()); query.fields()];
        SettingsQuery::remove_collation_probe(&mut row);
        *row.last_mut().expect("it has fields") = holder.map(|holder| holder.as_bytes().to_vec());
        row
    }

    #[test]
    fn the_mark_is_asked_for_by_a_name_that_no_character_set_converts() {
        let sql = query(1, "a 1").sql().to_owned();
        let end = ", CAST(IS_USED_LOCK(x'612031') AS BINARY), '' LIMIT 1";
        assert!(sql.ends_with(end), "{sql}");
    }

    #[test]
    fn a_session_is_on_the_followed_server_only_if_it_sees_who_holds_the_mark() {
        let query = query(1, "a");
        for (holder, is_seen) in [
            (Some("17"), true),
            (Some("18"), false),
            (Some(""), false),
            (None, false),
        ] {
            let mut row = answer(&query, holder);
            assert_eq!(query.take_mark(&mut row), is_seen, "{holder:?}");
            assert_eq!(row.len(), query.fields() - 2);
        }
    }

    #[test]
    fn neither_a_new_mark_nor_one_that_is_not_seen_makes_a_new_fingerprint() {
        let known = Fingerprints::new(10);
        let flavour = Flavour {
            capabilities: Capabilities(0),
            login_epoch: 0,
            schema_epoch: 0,
            role_epoch: 0,
            client: None,
        };
        let id = |number, name, holder| {
            let query = query(number, name);
            let mut row = answer(&query, holder);
            query.take_mark(&mut row);
            assert_eq!(query.take_patience_ms(&mut row), Some(1_000));
            let fingerprint = known.intern(&query, &row, flavour);
            fingerprint.expect("there is room").id
        };
        let first = id(1, "a", Some("17"));
        assert_eq!(id(2, "b", Some("17")), first);
        assert_eq!(
            id(2, "b", None),
            first,
            "it stays that of what was prepared"
        );
    }

    #[test]
    fn questions_for_the_same_settings_are_alike_whatever_the_mark() {
        let (one, other) = (query(1, "a"), query(2, "b"));
        assert!(one.is_like(&other));
        assert_ne!(one.sql(), other.sql());
        assert_eq!((one.mark_number(), other.mark_number()), (1, 2));
    }
}
