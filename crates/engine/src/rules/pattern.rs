//! Names in rules.

use std::fmt;
use std::str::FromStr;

/// Whether two names are the same where letter case counts, or doesn't.
pub(super) fn is_same(one: &str, other: &str, has_case: bool) -> bool {
    one == other || (!has_case && one.eq_ignore_ascii_case(other))
}

/// What a rule's text is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAPattern;

/// A name, the beginning of names (`log_*`), or any name (`*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamePattern {
    /// `*`
    Any,
    /// The name itself.
    Name(Box<str>),
    /// What stands before the `*`.
    Beginning(Box<str>),
}

impl NamePattern {
    fn matches(&self, name: &str, has_case: bool) -> bool {
        match self {
            NamePattern::Any => true,
            NamePattern::Name(wanted) => is_same(wanted, name, has_case),
            NamePattern::Beginning(wanted) => {
                name.as_bytes().get(..wanted.len()).is_some_and(|start| {
                    start == wanted.as_bytes()
                        || (!has_case && start.eq_ignore_ascii_case(wanted.as_bytes()))
                })
            }
        }
    }
}

impl FromStr for NamePattern {
    type Err = NotAPattern;

    fn from_str(text: &str) -> Result<NamePattern, NotAPattern> {
        let (name, has_star) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        if is_unlike_a_name(name) || name.contains('*') || (name.is_empty() && !has_star) {
            return Err(NotAPattern);
        }
        Ok(match (name, has_star) {
            ("", _) => NamePattern::Any,
            (name, true) => NamePattern::Beginning(name.into()),
            (name, false) => NamePattern::Name(name.into()),
        })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamePattern::Any => f.write_str("*"),
            NamePattern::Name(name) => f.write_str(name),
            NamePattern::Beginning(name) => write!(f, "{name}*"),
        }
    }
}

/// Names that are written in quotes, or with what no name has, would match nothing.
pub fn is_unlike_a_name(text: &str) -> bool {
    text.chars()
        .any(|c| c.is_control() || matches!(c, '`' | '"' | '\''))
}

/// Tables: `schema.table`, each of them a [`NamePattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePattern {
    schema: NamePattern,
    table: NamePattern,
}

impl TablePattern {
    pub(super) fn matches(&self, schema: &str, table: &str, has_case: bool) -> bool {
        self.schema.matches(schema, has_case) && self.table.matches(table, has_case)
    }
}

impl FromStr for TablePattern {
    type Err = NotAPattern;

    fn from_str(text: &str) -> Result<TablePattern, NotAPattern> {
        let (schema, table) = text.split_once('.').ok_or(NotAPattern)?;
        Ok(TablePattern {
            schema: schema.parse()?,
            table: table.parse()?,
        })
    }
}

impl fmt::Display for TablePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

/// Accounts: a user, on any host or on one, as `CURRENT_USER()` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPattern {
    user: Box<str>,
    host: Option<Box<str>>,
}

impl AccountPattern {
    pub(super) fn matches(&self, account: &str) -> bool {
        let (user, host) = account.rsplit_once('@').unwrap_or((account, ""));
        // Users have letter case on every server, hosts on none.
        *user == *self.user
            && self
                .host
                .as_deref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(host))
    }
}

impl FromStr for AccountPattern {
    type Err = NotAPattern;

    fn from_str(text: &str) -> Result<AccountPattern, NotAPattern> {
        let (user, host) = match text.rsplit_once('@') {
            Some((user, host)) => (user, Some(host)),
            None => (text, None),
        };
        let is_empty = host.map_or(user.is_empty(), str::is_empty);
        if is_empty || is_unlike_a_name(text) {
            return Err(NotAPattern);
        }
        Ok(AccountPattern {
            user: user.into(),
            host: host.map(Into::into),
        })
    }
}

impl fmt::Display for AccountPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.user)?;
        match &self.host {
            Some(host) => write!(f, "@{host}"),
            None => Ok(()),
        }
    }
}
