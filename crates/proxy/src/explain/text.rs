//! An explanation as a page for people.

use std::fmt;

use super::{Explanation, Held, HeldResult};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.because {
            None => writeln!(f, "cacheable")?,
            Some(because) => {
                let about = because.table.as_ref();
                let about = about.map_or(String::new(), |table| format!("{table}: "));
                writeln!(
                    f,
                    "not cacheable ({}): {about}{}",
                    because.words.reason, because.words.meaning
                )?;
            }
        }
        if let Some(rule) = &self.ruled.by {
            writeln!(f, "decided by {}", rule.words)?;
        }
        for rule in &self.ruled.of_accounts {
            writeln!(f, "for that account alone by {}", rule.words)?;
        }
        if let Some(off) = self.caching_off {
            writeln!(f, "caching is off now ({}): {}", off.reason, off.meaning)?;
        }
        if let Some(why) = self.only_a_sample.filter(|_| self.because.is_none()) {
            writeln!(
                f,
                "only a sample is stored ({}): {}",
                why.reason, why.meaning
            )?;
        }
        if self.because.is_none() && self.depends_on.is_empty() {
            put_list(f, "depends on", ["the session's settings, and no table"])?;
        }
        put_list(
            f,
            "depends on",
            self.depends_on.iter().map(|one| &one.words),
        )?;
        put_list(f, "what drops it", &self.dropped_by)?;
        writeln!(f)?;
        self.held.fmt(f)
    }
}

fn put_list(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    lines: impl IntoIterator<Item = impl fmt::Display>,
) -> fmt::Result {
    for (number, line) in lines.into_iter().enumerate() {
        if number == 0 {
            writeln!(f, "\n{title}:")?;
        }
        writeln!(f, "  {line}")?;
    }
    Ok(())
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.results {
            0 => return writeln!(f, "held: no result"),
            1 => writeln!(f, "held: 1 result, {} bytes", self.bytes)?,
            results => writeln!(
                f,
                "held: {results} results, {} bytes; {} can be served now",
                self.bytes, self.servable
            )?,
        }
        for result in &self.shown {
            writeln!(f, "  {result}")?;
        }
        let more = self.results - self.shown.len();
        if more > 0 {
            writeln!(f, "  and {more} more")?;
        }
        Ok(())
    }
}

impl fmt::Display for HeldResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_prepared {
            "an execution"
        } else {
            "as text"
        };
        let asked = if self.was_asked_for { "yes" } else { "no" };
        write!(
            f,
            "{kind}, {} bytes, {} tags; asked for since the eviction hand last passed: {asked}; ",
            self.bytes, self.tags
        )?;
        match self.unservable {
            None => write!(f, "can be served now"),
            Some(why) => write!(f, "can't be served now ({}): {}", why.reason, why.meaning),
        }
    }
}
