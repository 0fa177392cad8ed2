//! What a `SET` of the query cache's variables does, or the error that it gets: that of a server
//! which has the variable, where such a server refuses the value too.
//!
//! Servers check all assignments before they carry out the first. Of each they look first at what
//! can be set where, then at the privilege, then at the value.

use std::fmt::Write as _;

use remora_sql::{Assignment, EmulatedSet, EmulatedValue, EmulatedVariable, VariableScope};

use super::CacheType;
use super::MIN_RES_UNIT_BYTES;
use super::settings::{Change, QueryCacheSettings};

/// What a `query_cache_size` below this becomes is 0, as with MariaDB.
const SIZE_BYTES_MIN: usize = 40 * 1024;
/// What it is rounded down to, as with MariaDB.
const SIZE_UNIT_BYTES: usize = 1024;

/// Characters that a `SIGNAL` takes as message.
const MESSAGE_CHARACTERS_MAX: usize = 128;

/// What is to be done with a `SET`.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the account must have the privilege to set global variables.
    pub needs_privilege: bool,
    /// What it changes, or the error that it gets after that.
    pub outcome: Result<Change, Refused>,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    code: u16,
    sql_state: &'static str,
    message: String,
}

/// What assignments are judged by.
pub struct Judge<'a> {
    /// The values now.
    pub settings: &'a QueryCacheSettings,
}

impl Refused {
    fn new(code: u16, sql_state: &'static str, message: String) -> Refused {
        Refused {
            code,
            sql_state,
            message,
        }
    }

    /// `ER_INCORRECT_GLOBAL_LOCAL_VAR`: it is read-only.
    fn read_only(variable: EmulatedVariable) -> Refused {
        let message = format!("Variable '{}' is a read only variable", variable.name());
        Refused::new(1238, "HY000", message)
    }

    /// `ER_GLOBAL_VARIABLE`
    fn global(variable: EmulatedVariable) -> Refused {
        let message = format!(
            "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL",
            variable.name()
        );
        Refused::new(1229, "HY000", message)
    }

    /// `ER_WRONG_TYPE_FOR_VAR`
    fn wrong_type(variable: EmulatedVariable) -> Refused {
        let message = format!("Incorrect argument type to variable '{}'", variable.name());
        Refused::new(1232, "42000", message)
    }

    /// `ER_WRONG_VALUE_FOR_VAR`
    fn wrong_value(variable: EmulatedVariable, value: impl std::fmt::Display) -> Refused {
        let message = format!(
            "Variable '{}' can't be set to the value of '{value}'",
            variable.name()
        );
        Refused::new(1231, "42000", message)
    }

    /// MariaDB's `ER_QUERY_CACHE_IS_GLOBALY_DISABLED`
    fn globally_disabled() -> Refused {
        let message =
            "Query cache is globally disabled and you can't enable it only for this session";
        Refused::new(1925, "HY000", message.to_owned())
    }

    /// What no server says: the value is good there, and means nothing here.
    fn not_here(variable: EmulatedVariable, why: &str) -> Refused {
        Refused::new(1231, "42000", format!("Remora: {} {why}", variable.name()))
    }

    /// The statement by which the server itself gives this error, so that it is also found where
    /// errors are looked for afterwards. Needs no privilege and changes nothing.
    pub fn statement(&self, no_backslash_escapes: bool) -> String {
        let mut message = String::new();
        for character in self.message.chars().take(MESSAGE_CHARACTERS_MAX) {
            match character {
                '\'' => message.push_str("''"),
                '\\' if !no_backslash_escapes => message.push_str("\\\\"),
                other => message.push(other),
            }
        }
        let mut text = format!("SIGNAL SQLSTATE '{}' ", self.sql_state);
        // Writing to a string can't fail.
        let _ = write!(
            text,
            "SET MYSQL_ERRNO = {}, MESSAGE_TEXT = '{message}'",
            self.code
        );
        text
    }
}

impl Judge<'_> {
    /// What is to be done.
    pub fn decide(&self, set: &EmulatedSet) -> Decision {
        let assignments = match set {
            EmulatedSet::Assignments(assignments) => assignments,
            EmulatedSet::Mixed(variable) => {
                let why = "is set by a SET of the query cache's variables alone, and not to what only a query tells";
                return Decision {
                    needs_privilege: false,
                    outcome: Err(Refused::not_here(*variable, why)),
                };
            }
        };
        let mut needs_privilege = false;
        let mut change = Change::default();
        for one in assignments {
            let judged = check_scope(one).and_then(|()| {
                needs_privilege |= one.scope == VariableScope::Global;
                self.add(one, &mut change)
            });
            if let Err(refused) = judged {
                return Decision {
                    needs_privilege,
                    outcome: Err(refused),
                };
            }
        }
        Decision {
            needs_privilege,
            outcome: Ok(change),
        }
    }

    fn add(&self, one: &Assignment, change: &mut Change) -> Result<(), Refused> {
        match one.variable {
            // It can't be set at all.
            EmulatedVariable::Have => {}
            EmulatedVariable::Type => self.add_type(one, change)?,
            EmulatedVariable::Size => change.size_bytes = Some(self.size_bytes(one)?),
            EmulatedVariable::Limit => change.limit_bytes = Some(self.limit_bytes(one)?),
            EmulatedVariable::StripComments => {
                let wanted = switch(one)?;
                if one.scope == VariableScope::Global {
                    let configured = self.settings.configured().strip_comments;
                    change.global_strips = Some(wanted.unwrap_or(configured));
                } else {
                    let global = self.settings.strip_comments();
                    let default = change.global_strips.unwrap_or(global);
                    change.session_strips = Some(wanted.unwrap_or(default));
                }
            }
            EmulatedVariable::MinResUnit => {
                if !matches!(number(one)?, None | Some(MIN_RES_UNIT_BYTES)) {
                    let why = "stays 4096: Remora's memory is not divided into such units";
                    return Err(Refused::not_here(one.variable, why));
                }
            }
            EmulatedVariable::WlockInvalidate => {
                if switch(one)? == Some(true) {
                    let why = "stays OFF: results are served while another session has locked their table";
                    return Err(Refused::not_here(one.variable, why));
                }
            }
        }
        Ok(())
    }

    fn add_type(&self, one: &Assignment, change: &mut Change) -> Result<(), Refused> {
        let global = self.settings.cache_type();
        let wanted = cache_type(one)?;
        if one.scope == VariableScope::Global {
            change.global_type = Some(wanted.unwrap_or(self.settings.configured().cache_type));
            return Ok(());
        }
        if global == CacheType::Off && !matches!(wanted, None | Some(CacheType::Off)) {
            return Err(Refused::globally_disabled());
        }
        let default = change.global_type.unwrap_or(global);
        change.session_type = Some(wanted.unwrap_or(default));
        Ok(())
    }

    /// Servers take what they can of it, too: whole kibibytes, and nothing of less than they need.
    fn size_bytes(&self, one: &Assignment) -> Result<usize, Refused> {
        let highest = self.settings.configured().size_bytes;
        let wanted = number(one)?.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(match wanted {
            None => highest,
            Some(bytes) if bytes >= highest => highest,
            Some(bytes) if bytes < SIZE_BYTES_MIN => 0,
            Some(bytes) => bytes - bytes % SIZE_UNIT_BYTES,
        })
    }

    fn limit_bytes(&self, one: &Assignment) -> Result<usize, Refused> {
        let highest = self.settings.configured().limit_bytes;
        let wanted = number(one)?.map_or(Ok(highest), usize::try_from);
        wanted
            .ok()
            .filter(|bytes| *bytes <= highest)
            .ok_or_else(|| {
                let why = format!(
                    "is at most {highest}; for more set cache.result_bytes_max, then restart"
                );
                Refused::not_here(one.variable, &why)
            })
    }
}

/// Whether the variable can be set where it is.
fn check_scope(one: &Assignment) -> Result<(), Refused> {
    if one.variable == EmulatedVariable::Have {
        Err(Refused::read_only(one.variable))
    } else if one.scope != VariableScope::Global && !one.variable.has_session_value() {
        Err(Refused::global(one.variable))
    } else {
        Ok(())
    }
}

/// `OFF`, `ON`, `DEMAND`, or their numbers; `None`: `DEFAULT`.
fn cache_type(one: &Assignment) -> Result<Option<CacheType>, Refused> {
    let known = [
        ("OFF", CacheType::Off),
        ("ON", CacheType::On),
        ("DEMAND", CacheType::Demand),
    ];
    Ok(choice(one, known.map(|(name, _)| name))?.map(|at| known[at].1))
}

/// `OFF`, `ON`, or their numbers; `None`: `DEFAULT`.
fn switch(one: &Assignment) -> Result<Option<bool>, Refused> {
    Ok(choice(one, ["OFF", "ON"])?.map(|at| at == 1))
}

/// Which of these names, or of their numbers from 0 on; `None`: `DEFAULT`.
fn choice<const N: usize>(one: &Assignment, names: [&str; N]) -> Result<Option<usize>, Refused> {
    let variable = one.variable;
    match &one.value {
        EmulatedValue::Default => Ok(None),
        EmulatedValue::Null => Err(Refused::wrong_value(variable, "NULL")),
        // Servers read what doesn't fit 64 bits as a decimal number.
        EmulatedValue::Number(number) if !fits_64_bits(*number) => {
            Err(Refused::wrong_type(variable))
        }
        EmulatedValue::Fraction(_) | EmulatedValue::Expression(_) => {
            Err(Refused::wrong_type(variable))
        }
        EmulatedValue::Number(number) => usize::try_from(*number)
            .ok()
            .filter(|at| *at < N)
            .map(Some)
            .ok_or_else(|| Refused::wrong_value(variable, number)),
        EmulatedValue::Word(text) | EmulatedValue::String(text) => names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text))
            .map(Some)
            .ok_or_else(|| Refused::wrong_value(variable, text)),
    }
}

/// A number of bytes; `None`: `DEFAULT`. A negative one is refused as in strict mode, where servers
/// don't take the nearest value instead.
fn number(one: &Assignment) -> Result<Option<u64>, Refused> {
    match &one.value {
        EmulatedValue::Default => Ok(None),
        EmulatedValue::Number(number) if *number < 0 => {
            Err(Refused::wrong_value(one.variable, number))
        }
        EmulatedValue::Number(number) => Ok(Some(u64::try_from(*number).unwrap_or(u64::MAX))),
        EmulatedValue::Word(_)
        | EmulatedValue::String(_)
        | EmulatedValue::Fraction(_)
        | EmulatedValue::Null
        | EmulatedValue::Expression(_) => Err(Refused::wrong_type(one.variable)),
    }
}

fn fits_64_bits(number: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number)
}

#[cfg(test)]
mod tests {
    use remora_sql::{Dialect, EmulatedStatement, recognise};

    use super::super::settings::Configured;
    use super::*;

    fn settings() -> QueryCacheSettings {
        QueryCacheSettings::new(Configured {
            cache_type: CacheType::On,
            size_bytes: 1 << 28,
            limit_bytes: 1 << 20,
            strip_comments: true,
        })
    }

    fn decide_by(settings: &QueryCacheSettings, text: &str) -> Decision {
        let Some(EmulatedStatement::Set(set)) = recognise(text.as_bytes(), Dialect::default())
        else {
            panic!("{text} is no SET of the query cache's variables");
        };
        let judge = Judge { settings };
        judge.decide(&set)
    }

    fn decide(text: &str) -> Decision {
        decide_by(&settings(), text)
    }

    fn change(text: &str) -> (Change, bool) {
        let decision = decide(text);
        let change = decision
            .outcome
            .unwrap_or_else(|why| panic!("{text}: {why:?}"));
        (change, decision.needs_privilege)
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn values_are_taken_in_every_spelling() {
        let none = Change::default();
        for (text, expected, needs_privilege) in [
            (
                "SET query_cache_type = DEMAND",
                Change {
                    session_type: Some(CacheType::Demand),
                    ..none
                },
                false,
            ),
            (
                "SET @@session.query_cache_type := 'off'",
                Change {
                    session_type: Some(CacheType::Off),
                    ..none
                },
                false,
            ),
            (
                "SET LOCAL query_cache_type = DEFAULT",
                Change {
                    session_type: Some(CacheType::On),
                    ..none
                },
                false,
            ),
            (
                "SET GLOBAL query_cache_type = 2, SESSION query_cache_type = DEFAULT",
                Change {
                    global_type: Some(CacheType::Demand),
                    session_type: Some(CacheType::Demand),
                    ..none
                },
                true,
            ),
            (
                "SET GLOBAL query_cache_size = 0",
                Change {
                    size_bytes: Some(0),
                    ..none
                },
                true,
            ),
            (
                "SET GLOBAL query_cache_size = 1355777",
                Change {
                    size_bytes: Some(1_355_776),
                    ..none
                },
                true,
            ),
            (
                "SET GLOBAL query_cache_size = 99999999999",
                Change {
                    size_bytes: Some(1 << 28),
                    ..none
                },
                true,
            ),
            (
                "SET GLOBAL query_cache_size = 2048",
                Change {
                    size_bytes: Some(0),
                    ..none
                },
                true,
            ),
            (
                "SET SESSION query_cache_strip_comments = OFF",
                Change {
                    session_strips: Some(false),
                    ..none
                },
                false,
            ),
            (
                "SET @@global.query_cache_size = 256 * 1024 * 1024",
                Change {
                    size_bytes: Some(1 << 28),
                    ..none
                },
                true,
            ),
            (
                "SET GLOBAL query_cache_limit = 4096, GLOBAL query_cache_strip_comments = OFF",
                Change {
                    limit_bytes: Some(4096),
                    global_strips: Some(false),
                    ..none
                },
                true,
            ),
            (
                "SET GLOBAL query_cache_wlock_invalidate = 0, GLOBAL query_cache_min_res_unit = DEFAULT",
                none,
                true,
            ),
        ] {
            assert_eq!(change(text), (expected, needs_privilege), "{text}");
        }
    }

    #[test]
    fn one_bad_value_refuses_all_and_the_privilege_is_asked_for_in_its_turn() {
        for (text, code, needs_privilege) in [
            (
                "SET GLOBAL query_cache_type = ON, query_cache_type = 7",
                1231,
                true,
            ),
            (
                "SET query_cache_type = 7, GLOBAL query_cache_type = ON",
                1231,
                false,
            ),
            (
                "SET query_cache_type = ON, query_cache_size = 7",
                1229,
                false,
            ),
            (
                "SET GLOBAL query_cache_size = 0, have_query_cache = 7",
                1238,
                true,
            ),
            ("SET GLOBAL query_cache_limit = 99999999999", 1231, true),
            ("SET GLOBAL query_cache_limit = -1", 1231, true),
            ("SET GLOBAL query_cache_wlock_invalidate = ON", 1231, true),
            ("SET query_cache_wlock_invalidate = 1", 1231, false),
            ("SET GLOBAL query_cache_min_res_unit = 512", 1231, true),
            (
                "SET GLOBAL query_cache_limit = 1, max_connections = 5",
                1231,
                false,
            ),
        ] {
            let decision = decide(text);
            assert_eq!(decision.needs_privilege, needs_privilege, "{text}");
            let refused = decision.outcome.unwrap_err();
            assert_eq!(refused.code, code, "{text}");
            let characters = refused.message.chars().count();
            assert!(
                characters <= MESSAGE_CHARACTERS_MAX,
                "{characters} {refused:?}"
            );
        }
    }

    #[test]
    fn a_session_cannot_switch_on_what_is_off_for_all() {
        let settings = settings();
        let off = Change {
            global_type: Some(CacheType::Off),
            ..Change::default()
        };
        assert!(settings.change(&off));
        let on = decide_by(&settings, "SET query_cache_type = ON");
        assert_eq!(on.outcome.unwrap_err().code, 1925);
        for text in [
            "SET query_cache_type = OFF",
            "SET query_cache_type = DEFAULT",
        ] {
            let change = decide_by(&settings, text).outcome.unwrap();
            assert_eq!(change.session_type, Some(CacheType::Off), "{text}");
        }
    }

    #[test]
    fn an_error_is_written_as_the_server_reads_it() {
        let refused = Refused::wrong_value(EmulatedVariable::Type, r"a'b\");
        assert_eq!(
            refused.statement(false),
            r"SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1231, MESSAGE_TEXT = 'Variable ''query_cache_type'' can''t be set to the value of ''a''b\\'''"
        );
        assert!(refused.statement(true).contains(r"a''b\''"));
        let long = Refused::wrong_value(EmulatedVariable::Type, "x".repeat(500));
        assert!(long.statement(false).contains(&"x".repeat(70)));
        assert!(!long.statement(false).contains(&"x".repeat(80)));
    }
}
