//! What was found, for a terminal.

use std::fmt::Write as _;
use std::time::Duration;

use super::statements::Counted;
use super::{Measured, Outcome};
use crate::table::{Table, grouped};

/// Longest text of a digest that is shown, characters.
const TEXT_MAX: usize = 110;

/// One application.
pub(super) fn of_one(outcome: &Outcome) -> String {
    let mut out = String::new();
    let (all, last) = (outcome.selects.sum(), outcome.last_round.sum());
    let name = &outcome.name;
    let _ = writeln!(out, "{name}: {}, server {}", outcome.what, outcome.server);
    let _ = writeln!(
        out,
        "  {} pages; each way had {} requests, {} of which wrote",
        outcome.pages,
        outcome.through.block.requests(),
        outcome.through.block.writes
    );
    let _ = writeln!(
        out,
        "  SELECTs from memory: {} ({} in the last round), of {}",
        percent(all.hit_share()),
        percent(last.hit_share()),
        grouped(count(all.calls))
    );
    let _ = writeln!(out, "  {}", ceiling(outcome));
    let _ = writeln!(out, "  {}\n", pages(outcome));
    let _ = writeln!(out, "{}", ways(outcome));
    let _ = writeln!(out, "{}", reasons(&all, &last));
    if !all.outdated_by.is_empty() {
        let _ = writeln!(
            out,
            "  outdated, by the table: {}\n",
            most(&all.outdated_by)
        );
    }
    let _ = write!(out, "{}", costliest(outcome));
    out
}

/// All of them, a line each.
pub(super) fn of_all(outcomes: &[Outcome]) -> String {
    let mut table = Table::new(&[
        "application",
        "SELECTs",
        "from memory",
        "last round",
        "asked before",
        "server's own cache",
        "page p50",
        "page p95",
        "server time a page",
        "pages differ",
    ]);
    for outcome in outcomes {
        let (all, last) = (outcome.selects.sum(), outcome.last_round.sum());
        let ceiling = outcome.ceiling.as_ref();
        let repeated = ceiling.map(|one| share(one.logged.repeated, one.logged.selects));
        let query_cache = ceiling.and_then(|one| one.query_cache);
        let shown = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
        let (direct, through) = (&outcome.direct, &outcome.through);
        let ratio = |of: fn(&Measured) -> f64| format!("{:.2}", of(through) / of(direct));
        table.row([
            outcome.name.clone(),
            grouped(count(all.calls)),
            percent(all.hit_share()),
            percent(last.hit_share()),
            shown(repeated),
            shown(query_cache),
            ratio(|way| way.block.took.percentile_ms(50.0)),
            ratio(|way| way.block.took.percentile_ms(95.0)),
            ratio(Measured::server_ms_per_page),
            outcome.compared.different.len().to_string(),
        ]);
    }
    format!("Pages and server time: through Remora, of direct.\n\n{table}")
}

fn ceiling(outcome: &Outcome) -> String {
    let Some(ceiling) = &outcome.ceiling else {
        return "what could be answered from memory was not measured".to_owned();
    };
    let logged = ceiling.logged;
    let mut text = format!(
        "asked before with the same text: {} of {}",
        percent(share(logged.repeated, logged.selects)),
        grouped(count(logged.selects))
    );
    if let Some(share) = ceiling.query_cache {
        let _ = write!(
            text,
            "; the server's own query cache answered {}",
            percent(share)
        );
    }
    text
}

fn pages(outcome: &Outcome) -> String {
    let compared = &outcome.compared;
    let mut text = format!(
        "pages compared: {} equal ({} of them at the second look), {} different, {} that are never the same",
        compared.equal,
        compared.equal_later,
        compared.different.len(),
        compared.unsteady
    );
    if let Some(verified) = outcome.verified {
        let _ = write!(
            text,
            "; {} hits verified, {} faults",
            grouped(verified.hits),
            verified.faults
        );
    }
    text
}

fn ways(outcome: &Outcome) -> Table {
    let mut table = Table::new(&["per page", "directly", "through Remora", "ratio"]);
    let (direct, through) = (&outcome.direct, &outcome.through);
    let mut row = |name: &str, of: fn(&Measured) -> f64| {
        let (a, b) = (of(direct), of(through));
        let ratio = if a > 0.0 {
            format!("{:.2}", b / a)
        } else {
            "–".to_owned()
        };
        table.row([
            name.to_owned(),
            format!("{a:.2} ms"),
            format!("{b:.2} ms"),
            ratio,
        ]);
    };
    row("median", |way| way.block.took.percentile_ms(50.0));
    row("95th percentile", |way| way.block.took.percentile_ms(95.0));
    row("server's processor time", Measured::server_ms_per_page);
    row("Remora's processor time", |way| {
        way.per_page(way.remora_time)
    });
    table
}

fn reasons(all: &Counted, last: &Counted) -> Table {
    let mut table = Table::new(&["SELECTs", "all", "last round"]);
    let mut row = |name: &str, of: &dyn Fn(&Counted) -> u64| {
        let shown = |counted: &Counted| percent(share(of(counted), counted.calls));
        table.row([name.to_owned(), shown(all), shown(last)]);
    };
    row("hit", &|counted| counted.hits);
    row("fill", &|counted| counted.fills);
    let mut refused: Vec<(&String, &u64)> = all.refused.iter().collect();
    refused.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (reason, _) in refused {
        row(reason, &|counted| {
            counted.refused.get(reason).copied().unwrap_or_default()
        });
    }
    table
}

fn costliest(outcome: &Outcome) -> Table {
    let all = outcome.selects.sum().calls;
    let mut table = Table::new(&[
        "went to the server most",
        "calls",
        "hits",
        "share lost",
        "why",
    ]);
    for (text, counted) in outcome.selects.costliest() {
        let shown: String = text.chars().take(TEXT_MAX).collect();
        let mut why = most(&counted.refused);
        if counted.fills > 0 {
            let _ = write!(why, " fill {}", counted.fills);
        }
        table.row([
            shown,
            counted.calls.to_string(),
            percent(counted.hit_share()),
            percent(share(counted.calls - counted.hits, all)),
            why.trim().to_owned(),
        ]);
    }
    table
}

/// Names with their counts, the largest first.
fn most(counts: &std::collections::BTreeMap<String, u64>) -> String {
    let mut all: Vec<(&String, &u64)> = counts.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown: Vec<String> = all
        .iter()
        .take(4)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    shown.join(", ")
}

impl Measured {
    fn server_ms_per_page(&self) -> f64 {
        self.per_page(self.server_time)
    }

    fn per_page(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e3 / count(self.block.requests().max(1))
    }
}

#[allow(clippy::cast_precision_loss)]
fn count(number: u64) -> f64 {
    number as f64
}

fn share(part: u64, of: u64) -> f64 {
    count(part) / count(of.max(1))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
