//! What a session's settings are, and all that are in use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use remora_sql::{Dialect, TableName};
use remora_wire::rows::Row;

use super::after::SettingsAfter;
use super::charset::{self, TextCharset};
use super::flavour::{Flavour, take};
use super::question::SettingsQuery;
use super::set_answers::SetAnswers;
use super::transaction_flags::TransactionFlags;
use crate::facts::Instance;
use crate::tags::StringConversion;

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
    /// What the server answers to a `SET` of transaction defaults, as far as it is known.
    pub set_answers: SetAnswers,
}

/// Of a fingerprint, what is shown of it or needed to show more. Not the fingerprint itself:
/// whoever has that keeps it from being forgotten.
#[derive(Debug)]
pub struct FingerprintNames {
    /// The default schema.
    pub schema: Option<String>,
    /// The account, as `CURRENT_USER()` gives it.
    pub account: Option<String>,
    /// How the server reads the session's text.
    pub dialect: Option<Dialect>,
}

impl Fingerprint {
    /// Schema and name of a table as a session means it; `None` if that isn't certain.
    pub fn qualify<'a>(&'a self, name: &'a TableName) -> Option<(&'a str, &'a str)> {
        let schema = name.schema.as_ref().or(self.schema.as_ref())?;
        let is_readable = match self.charset {
            TextCharset::Utf8 => true,
            TextCharset::AsciiSafe => schema.is_ascii() && name.table.is_ascii(),
            TextCharset::Unsafe => false,
        };
        is_readable.then_some((schema, &name.table))
    }
}

/// A fingerprint with all that it was made of, to be interned again by another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedFingerprint {
    /// [`Fingerprint::id`], in the process that saved it.
    pub id: u64,
    /// What of the connection belongs to it.
    pub flavour: Flavour,
    /// What the server answered.
    pub answer: Row,
}

/// All fingerprints in use. A lock is taken when a session learns its settings, never on a hit.
#[derive(Debug)]
pub struct Fingerprints {
    known: Mutex<Known>,
    /// The same by their ids.
    by_id: Mutex<HashMap<u64, Weak<Fingerprint>>>,
    next_id: AtomicU64,
    limits: FingerprintLimits,
}

/// How many fingerprints may be in use, and how large they may be.
#[derive(Debug, Clone, Copy)]
pub struct FingerprintLimits {
    /// How many in all.
    pub count_max: usize,
    /// How many bytes of settings in all. One may take no more than a 1,024th of them.
    pub bytes_max: usize,
}

/// One fingerprint may take a 1,024th of the bytes, so at least this many fit, whatever settings
/// clients choose.
const FITTING_AT_LEAST: usize = 1_024;

/// The fingerprints by the bytes that they were made from.
#[derive(Debug, Default)]
struct Known {
    fingerprints: HashMap<Vec<u8>, Arc<Fingerprint>>,
    /// The length of all these, bytes.
    bytes: usize,
}

impl Known {
    fn has_room(&self, bytes: usize, limits: FingerprintLimits) -> bool {
        self.fingerprints.len() < limits.count_max && self.bytes + bytes <= limits.bytes_max
    }

    /// Forgets those that no session and no prepared statement has.
    fn forget_unused(&mut self) {
        self.fingerprints.retain(|bytes, fingerprint| {
            let is_used = Arc::strong_count(fingerprint) > 1;
            if !is_used {
                self.bytes -= bytes.len();
            }
            is_used
        });
    }
}

/// There is no room: too many fingerprints are in use, too many bytes, or this one is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyFingerprints;

impl Fingerprints {
    /// None yet, and these limits.
    pub fn new(limits: FingerprintLimits) -> Fingerprints {
        Fingerprints {
            known: Mutex::default(),
            by_id: Mutex::new(HashMap::new()),
            next_id: AtomicU64::new(1),
            limits,
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.known().fingerprints.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What can be shown of each that is known, by its [`Fingerprint::id`].
    pub fn names(&self) -> HashMap<u64, FingerprintNames> {
        let known = self.known();
        let names = known.fingerprints.values().map(|known| {
            let names = FingerprintNames {
                schema: known.schema.clone(),
                account: known.account.clone(),
                dialect: known.dialect,
            };
            (known.id, names)
        });
        names.collect()
    }

    /// The one with this [`Fingerprint::id`], if it isn't forgotten.
    pub fn get(&self, id: u64) -> Option<Arc<Fingerprint>> {
        self.by_id().get(&id)?.upgrade()
    }

    /// All that are known, with what they were made of.
    pub fn saved(&self) -> Vec<SavedFingerprint> {
        let known = self.known();
        let saved = known
            .fingerprints
            .iter()
            .filter_map(|(bytes, fingerprint)| {
                let (flavour, answer) = Self::made_of(bytes)?;
                Some(SavedFingerprint {
                    id: fingerprint.id,
                    flavour,
                    answer,
                })
            });
        saved.collect()
    }

    fn by_id(&self) -> MutexGuard<'_, HashMap<u64, Weak<Fingerprint>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fingerprint for what the server answered. Equal answers give the same one.
    pub fn intern(
        &self,
        query: &SettingsQuery,
        answer: &Row,
        flavour: Flavour,
    ) -> Result<Arc<Fingerprint>, TooManyFingerprints> {
        let bytes = Self::bytes(answer, flavour);
        let mut known = self.known();
        if let Some(fingerprint) = known.fingerprints.get(&bytes) {
            return Ok(Arc::clone(fingerprint));
        }
        if bytes.len() > self.limits.bytes_max / FITTING_AT_LEAST {
            return Err(TooManyFingerprints);
        }
        if !known.has_room(bytes.len(), self.limits) {
            // Ids are never used again, so entries of a forgotten fingerprint are simply out of
            // reach.
            known.forget_unused();
            self.by_id().retain(|_, known| known.strong_count() > 0);
            if !known.has_room(bytes.len(), self.limits) {
                return Err(TooManyFingerprints);
            }
        }
        let character_sets = query.character_sets(answer);
        let [client, connection, _] = &character_sets;
        let fingerprint = Arc::new(Fingerprint {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            schema: SettingsQuery::schema(answer),
            account: SettingsQuery::account(answer),
            instance: SettingsQuery::instance(answer),
            dialect: query.dialect(answer),
            autocommit: query.autocommit(answer),
            isolation: query.isolation(answer),
            charset: TextCharset::of(client, connection),
            string_conversion: charset::string_conversion(client, connection),
            character_sets,
            allows_caching: query.allows_caching(answer),
            ends_transactions_plainly: query.ends_transactions_plainly(answer),
            selects_nothing: query.selects_nothing(answer),
            selects_all: query.selects_all(answer),
            transaction_flags: TransactionFlags::default(),
            after: SettingsAfter::default(),
            set_answers: SetAnswers::default(),
        });
        self.by_id()
            .insert(fingerprint.id, Arc::downgrade(&fingerprint));
        known.bytes += bytes.len();
        known.fingerprints.insert(bytes, Arc::clone(&fingerprint));
        Ok(fingerprint)
    }

    /// The reverse of [`Fingerprints::bytes`].
    fn made_of(mut bytes: &[u8]) -> Option<(Flavour, Row)> {
        let flavour = Flavour::take(&mut bytes)?;
        let mut answer = Row::new();
        while let Some((is_value, rest)) = bytes.split_first() {
            bytes = rest;
            let value = if *is_value == 0 {
                None
            } else {
                let length = take(&mut bytes, 8)?.try_into().ok();
                let length = length.map(u64::from_le_bytes)?;
                Some(take(&mut bytes, usize::try_from(length).ok()?)?.to_vec())
            };
            answer.push(value);
        }
        Some((flavour, answer))
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
