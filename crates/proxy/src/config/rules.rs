//! The `[[rules]]` of the configuration file. An error names the line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use remora_engine::rules::{Action, Bounds, Rule, TransactionReads, is_unlike_a_name};
use remora_sql::Digest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::merge::{line_of, nearest};
use super::options::CacheOptions;
use super::value::ByteSize;

/// The longest time to live: a year.
const TIME_TO_LIVE_MS_MAX: u64 = 365 * 24 * 60 * 60 * 1_000;

/// A key of a rule.
pub(super) struct Key {
    /// Its name.
    pub(super) name: &'static str,
    /// What it accepts.
    pub(super) accepts: &'static str,
    /// What it means.
    pub(super) meaning: &'static str,
    /// A value of it, as in the file.
    pub(super) example: &'static str,
}

/// What the section is about.
pub(super) const DESCRIPTION: &str = "What is cached, decided by the operator: the first rule that matches a read decides about it. Each begins with [[rules]]; its conditions must all hold. docs/rules.md has examples. Read again on SIGHUP.";

/// All keys: first the conditions.
pub(super) const KEYS: [Key; 8] = [
    Key {
        name: "digest",
        accepts: "16 hexadecimal digits, as `remora digests` shows them",
        meaning: "Condition: the statement without its values.",
        example: "\"0123456789abcdef\"",
    },
    Key {
        name: "table",
        accepts: "schema.table; each part a name, the beginning of names with * behind it, or *",
        meaning: "Condition: a table that the statement reads, through views too.",
        example: "\"shop.log_*\"",
    },
    Key {
        name: "account",
        accepts: "user or user@host, as SELECT CURRENT_USER() shows it",
        meaning: "Condition: the account of the session, as the server names it.",
        example: "\"report@%\"",
    },
    Key {
        name: "schema",
        accepts: "the name of a schema",
        meaning: "Condition: the session's default schema.",
        example: "\"shop\"",
    },
    Key {
        name: "cache",
        accepts: "true or false",
        meaning: "false: results are never kept. true: they may be, an exception before a later rule. It never makes anything cacheable that isn't.",
        example: "false",
    },
    Key {
        name: "time_to_live_ms",
        accepts: "a whole number from 1 to 31536000000",
        meaning: "A result is never served when it is older, besides everything else that drops it.",
        example: "60000",
    },
    Key {
        name: "result_bytes_max",
        accepts: "a size of at least 1B and at most cache.result_bytes_max, such as \"64KiB\"",
        meaning: "The largest result that is kept.",
        example: "\"64KiB\"",
    },
    Key {
        name: "transaction_reads",
        accepts: "off, after_snapshot or early, in a rule without digest, table or another action",
        meaning: "The value of cache.transaction_reads for sessions with this account and schema. Such a rule decides about nothing else.",
        example: "\"early\"",
    },
];

/// The rules of a file, before they are held against the rest of the configuration.
#[derive(Debug, Default)]
pub(super) struct WrittenRules {
    file: PathBuf,
    rules: Vec<Rule>,
    /// Of the rules that have a size, where it stands and what it is.
    sizes: Vec<(usize, ByteSize)>,
}

impl WrittenRules {
    /// Reads the rules of a file that is known to be TOML.
    pub(super) fn read(file: &Path, text: &str) -> Result<WrittenRules, ConfigError> {
        let mut written = WrittenRules {
            file: file.to_owned(),
            ..WrittenRules::default()
        };
        let Ok(document) = DeTable::parse(text) else {
            return Ok(written);
        };
        let Some(rules) = document.get_ref().get("rules") else {
            return Ok(written);
        };
        let not_rules = |value: &Spanned<DeValue<'_>>| {
            let at = line_of(text, value.span().start);
            written_wrongly(
                file,
                at,
                "rules",
                &text[value.span()],
                "tables that each begin with [[rules]]",
            )
        };
        let items = rules.get_ref().as_array().ok_or_else(|| not_rules(rules))?;
        for item in items {
            let table = item.get_ref().as_table().ok_or_else(|| not_rules(item))?;
            let reader = Reader { file, text };
            let rule = reader.rule(line_of(text, item.span().start), table, &mut written.sizes)?;
            written.rules.push(rule);
        }
        Ok(written)
    }

    /// The rules, if they fit the rest.
    pub(super) fn checked(self, cache: &CacheOptions) -> Result<Vec<Rule>, ConfigError> {
        if let Some(first_beyond) = self.rules.get(cache.rules_max) {
            return Err(ConfigError::TooManyRules {
                path: self.file,
                line: first_beyond.line,
                got: self.rules.len(),
                rules_max: cache.rules_max,
            });
        }
        let bytes_max = cache.result_bytes_max;
        match self.sizes.iter().find(|(_, size)| *size > bytes_max) {
            None => Ok(self.rules),
            Some((line, size)) => {
                let accepts = format!("at most cache.result_bytes_max ({bytes_max})");
                let got = size.to_string();
                Err(written_wrongly(
                    &self.file,
                    *line,
                    "rules.result_bytes_max",
                    &got,
                    &accepts,
                ))
            }
        }
    }
}

fn written_wrongly(
    file: &Path,
    line: usize,
    option: &str,
    got: &str,
    accepts: &str,
) -> ConfigError {
    ConfigError::Rule {
        path: file.to_owned(),
        line,
        option: option.to_owned(),
        got: got.to_owned(),
        accepts: accepts.to_owned(),
    }
}

/// Reads rules of one file.
struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn rule(
        &self,
        line: usize,
        table: &DeTable<'_>,
        sizes: &mut Vec<(usize, ByteSize)>,
    ) -> Result<Rule, ConfigError> {
        let mut rule = Rule {
            line,
            ..Rule::default()
        };
        let (mut cache, mut bounds) = (None, Bounds::default());
        let mut transaction_reads = None;
        for (name, value) in table {
            let key = self.key(name)?;
            match key.name {
                "digest" => rule.digest = Some(self.text_as(key, value, parse_digest)?),
                "table" => rule.table = Some(self.parsed(key, value)?),
                "account" => rule.account = Some(self.parsed(key, value)?),
                "schema" => rule.schema = Some(self.text_as(key, value, parse_schema)?),
                "cache" => cache = Some(self.value(key, value, boolean)?),
                "time_to_live_ms" => {
                    bounds.time_to_live_ms = Some(self.value(key, value, time_to_live)?);
                }
                "transaction_reads" => {
                    transaction_reads = Some(self.text_as(key, value, parse_transaction_reads)?);
                }
                _ => {
                    let size = self.value(key, value, size)?;
                    sizes.push((self.line(value), size));
                    bounds.result_bytes_max = Some(size.bytes());
                }
            }
        }
        rule.action = match transaction_reads {
            None => self.action(line, cache, bounds)?,
            Some(reads) => {
                let says_more = cache.is_some() || bounds != Bounds::default();
                if says_more || rule.digest.is_some() || rule.table.is_some() {
                    return Err(written_wrongly(
                        self.file,
                        line,
                        "rules",
                        "a rule with transaction_reads and more",
                        "only account and schema beside it, for it is about all transactions of a session",
                    ));
                }
                Action::ReadInTransactions(reads)
            }
        };
        Ok(rule)
    }

    fn action(
        &self,
        line: usize,
        cache: Option<bool>,
        bounds: Bounds,
    ) -> Result<Action, ConfigError> {
        let is_bounded = bounds != Bounds::default();
        let wrong = |got, accepts| Err(written_wrongly(self.file, line, "rules", got, accepts));
        match cache {
            Some(false) if is_bounded => wrong(
                "a rule with cache = false and a bound",
                "time_to_live_ms and result_bytes_max only where results are kept",
            ),
            Some(false) => Ok(Action::Refuse),
            None if !is_bounded => wrong(
                "a rule that says nothing",
                "rules with cache, time_to_live_ms, result_bytes_max or transaction_reads",
            ),
            Some(true) | None => Ok(Action::Keep(bounds)),
        }
    }

    fn key(&self, name: &Spanned<std::borrow::Cow<'_, str>>) -> Result<&'static Key, ConfigError> {
        let written: &str = name.get_ref();
        KEYS.iter().find(|key| key.name == written).ok_or_else(|| {
            let names = KEYS.iter().map(|key| key.name);
            ConfigError::UnknownInRule {
                path: self.file.to_owned(),
                line: line_of(self.text, name.span().start),
                nearest: nearest(written, names.clone()).map(str::to_owned),
                name: written.to_owned(),
                known: names.collect::<Vec<_>>().join(", "),
            }
        })
    }

    fn line(&self, value: &Spanned<DeValue<'_>>) -> usize {
        line_of(self.text, value.span().start)
    }

    /// The value, if `read` can.
    fn value<T>(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
        read: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Result<T, ConfigError> {
        read(value.get_ref()).ok_or_else(|| {
            let option = format!("rules.{}", key.name);
            let got = self.text.get(value.span()).unwrap_or_default();
            written_wrongly(self.file, self.line(value), &option, got, key.accepts)
        })
    }

    fn text_as<T>(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        self.value(key, value, |value| read(value.as_str()?))
    }

    fn parsed<T: FromStr>(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<T, ConfigError> {
        self.text_as(key, value, |text| text.parse().ok())
    }
}

fn parse_digest(text: &str) -> Option<Digest> {
    let is_one = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_one.then(|| u64::from_str_radix(text, 16).ok())??;
    Some(Digest::from_number(number))
}

fn parse_schema(text: &str) -> Option<Box<str>> {
    let is_name = !text.is_empty() && !is_unlike_a_name(text) && !text.contains('*');
    is_name.then(|| text.into())
}

fn parse_transaction_reads(text: &str) -> Option<TransactionReads> {
    let all = [
        TransactionReads::Off,
        TransactionReads::AfterSnapshot,
        TransactionReads::Early,
    ];
    all.into_iter().find(|reads| reads.as_str() == text)
}

fn boolean(value: &DeValue<'_>) -> Option<bool> {
    value.as_bool()
}

fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn time_to_live(value: &DeValue<'_>) -> Option<u64> {
    whole_number(value).filter(|time| (1..=TIME_TO_LIVE_MS_MAX).contains(time))
}

fn size(value: &DeValue<'_>) -> Option<ByteSize> {
    let size = match value {
        DeValue::String(text) => text.parse().ok()?,
        other => ByteSize::new(usize::try_from(whole_number(other)?).ok()?),
    };
    (size.bytes() > 0).then_some(size)
}

/// The section of the reference page.
pub(super) fn markdown() -> String {
    let mut page = format!(
        "\n## `[[rules]]`\n\n{DESCRIPTION}\n\n| key | accepts | meaning |\n|---|---|---|\n"
    );
    for key in &KEYS {
        let (name, accepts, meaning) = (key.name, key.accepts, key.meaning);
        let _ = writeln!(page, "| `{name}` | {accepts} | {meaning} |");
    }
    page
}

/// The section of the example file, all of it commented out.
pub(super) fn example() -> impl Iterator<Item = (String, String)> {
    let comment = |key: &Key| format!("{} Accepts {}.", key.meaning, key.accepts);
    KEYS.iter()
        .map(move |key| (comment(key), format!("# {} = {}\n", key.name, key.example)))
}
