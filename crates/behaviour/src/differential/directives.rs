//! What the comments of a case file say: `-- hit: yes`, `-- error: 1064; servers: mysql`.

use anyhow::{Context as _, bail};

use super::literal::Literal;
use super::mask::Mask;
use remora_testkit::servers::Kind;

/// What is expected of a read where answers may come from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// It must come to be answered from memory.
    Yes,
    /// It must never be.
    No,
    /// Either is right.
    Any,
}

impl Hit {
    fn parse(value: &str) -> anyhow::Result<Hit> {
        match value {
            "yes" => Ok(Hit::Yes),
            "no" => Ok(Hit::No),
            "any" => Ok(Hit::Any),
            _ => bail!("neither yes nor no nor any"),
        }
    }
}

/// What is said of a statement, or of all statements of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Directives {
    pub(super) hit: Option<Hit>,
    pub(super) servers: Option<Vec<Kind>>,
    pub(super) connection: Option<String>,
    pub(super) prepared: Option<bool>,
    pub(super) mask: Option<Mask>,
    pub(super) errors: Option<Vec<u16>>,
    pub(super) values: Vec<Literal>,
    pub(super) bytes: Option<bool>,
    pub(super) repeat: Option<bool>,
    pub(super) long: Option<bool>,
}

impl Directives {
    /// Reads the text of a comment. False if it is no directive: one begins with one word and a
    /// colon.
    pub(super) fn read(&mut self, comment: &str) -> anyhow::Result<bool> {
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase());
        let looks_like_one = |part: &str| {
            let head = part.split_once(':');
            head.is_some_and(|(name, _)| is_name(name.trim()))
        };
        if !looks_like_one(comment) {
            return Ok(false);
        }
        for part in comment.split(';') {
            let (name, value) = part
                .split_once(':')
                .with_context(|| format!("not of the form `name: value`: {part}"))?;
            self.set(name.trim(), value.trim())
                .with_context(|| format!("in `{}`", part.trim()))?;
        }
        Ok(true)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "hit" => self.hit = Some(Hit::parse(value)?),
            "prepared" => self.prepared = Some(yes_or_no(value)?),
            "bytes" => self.bytes = Some(yes_or_no(value)?),
            "repeat" => self.repeat = Some(yes_or_no(value)?),
            "long" => self.long = Some(yes_or_no(value)?),
            "servers" => self.servers = Some(servers(value)?),
            "connection" => self.connection = Some(value.to_owned()),
            "mask" => self.mask = Some(Mask::parse(value).context("there is no such mask")?),
            "error" => self.errors = Some(errors(value)?),
            "values" => self.values = Literal::parse_list(value)?,
            _ => bail!("there is no directive of this name"),
        }
        Ok(())
    }

    /// These, and where they say nothing, those of the file.
    pub(super) fn or(self, file: &Directives) -> Directives {
        Directives {
            hit: self.hit.or(file.hit),
            servers: self.servers.or_else(|| file.servers.clone()),
            connection: self.connection.or_else(|| file.connection.clone()),
            prepared: self.prepared.or(file.prepared),
            mask: self.mask.or(file.mask),
            errors: self.errors.or_else(|| file.errors.clone()),
            values: self.values,
            bytes: self.bytes.or(file.bytes),
            repeat: self.repeat.or(file.repeat),
            long: self.long.or(file.long),
        }
    }
}

fn yes_or_no(value: &str) -> anyhow::Result<bool> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => bail!("neither yes nor no"),
    }
}

/// A list of error codes, in which `none` is 0: no error is right, too.
fn errors(value: &str) -> anyhow::Result<Vec<u16>> {
    let codes = value.split(',').map(str::trim);
    codes
        .map(|code| match code {
            "none" => Ok(0),
            _ => code
                .parse()
                .with_context(|| format!("not an error code: {code}")),
        })
        .collect()
}

/// `mysql`, `mariadb`, a kind, or a kind with `+` for it and all newer ones of its family.
fn servers(value: &str) -> anyhow::Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for item in value.split(',').map(str::trim) {
        match item {
            "mysql" => kinds.extend(family(true)),
            "mariadb" => kinds.extend(family(false)),
            _ => kinds.extend(kind_or_newer(item)?),
        }
    }
    Ok(kinds)
}

fn family(is_mysql: bool) -> impl Iterator<Item = Kind> {
    let all = Kind::ALL.into_iter();
    all.filter(move |kind| kind.is_mysql() == is_mysql)
}

fn kind_or_newer(item: &str) -> anyhow::Result<Vec<Kind>> {
    let name = item.trim_end_matches('+');
    let known = Kind::ALL.into_iter().find(|kind| kind.as_str() == name);
    let kind = known.with_context(|| format!("there is no server {name}"))?;
    if name == item {
        return Ok(vec![kind]);
    }
    let newer = |other: &Kind| version(*other) >= version(kind);
    Ok(family(kind.is_mysql()).filter(newer).collect())
}

/// The numbers in its name.
fn version(kind: Kind) -> Vec<u32> {
    let numbers = kind.as_str().split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}
