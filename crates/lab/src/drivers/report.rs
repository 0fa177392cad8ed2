//! What a program said of its checks, and what is to be thought of it.

use super::matrix::{CHECKS, Driver};
use super::runs::Run;
use crate::table::Table;

/// What became of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Verdict {
    /// The program didn't get there.
    #[default]
    Missing,
    Ok,
    /// The driver has no such thing.
    None(String),
    Failed(String),
}

/// Statements answered from memory in the last repetition of the reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hits {
    seen: u64,
    reads: u64,
}

/// All that a program said.
#[derive(Debug, Clone)]
pub(super) struct Report {
    driver: Driver,
    verdicts: Vec<Verdict>,
    plugins: Vec<String>,
    hits_text: Option<Hits>,
    hits_prepared: Option<Hits>,
    hits_transactions: Option<Hits>,
    /// Why the program is to be distrusted as a whole.
    crash: Option<String>,
}

impl Report {
    /// Reads a program's lines; those of another form are its own affair.
    pub(super) fn parse(driver: Driver, lines: &str, crash: Option<String>) -> Report {
        let mut report = Report {
            driver,
            verdicts: vec![Verdict::Missing; CHECKS.len()],
            plugins: Vec::new(),
            hits_text: None,
            hits_prepared: None,
            hits_transactions: None,
            crash,
        };
        for line in lines.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (name, detail) = rest.split_once(' ').unwrap_or((rest, ""));
            let verdict = match kind {
                "ok" => Verdict::Ok,
                "none" => Verdict::None(detail.to_owned()),
                "FAIL" => Verdict::Failed(detail.to_owned()),
                "plugins" => {
                    report.plugins = rest.split_whitespace().map(str::to_owned).collect();
                    continue;
                }
                "hits" => {
                    match name {
                        "text" => report.hits_text = Hits::parse(detail),
                        "prepared" => report.hits_prepared = Hits::parse(detail),
                        "transactions" => report.hits_transactions = Hits::parse(detail),
                        _ => {}
                    }
                    continue;
                }
                _ => continue,
            };
            if let Some(index) = CHECKS.iter().position(|check| *check == name) {
                report.verdicts[index] = verdict;
            }
        }
        report
    }

    /// What is wrong with a run; nothing if the driver does all that is expected of it. `only`:
    /// these checks, or all if empty.
    pub(super) fn faults(&self, server_plugins: &[&str], run: Run, only: &[String]) -> Vec<String> {
        let mut faults: Vec<String> = self.crash.iter().cloned().collect();
        let asked = |check: &&str| only.is_empty() || only.iter().any(|one| one == *check);
        for (check, verdict) in CHECKS.iter().zip(&self.verdicts).filter(|(c, _)| asked(c)) {
            let has = !self.driver.without.contains(check) && (*check != "tls" || run.tls);
            match verdict {
                Verdict::Missing => faults.push(format!("{check}: not reported")),
                Verdict::Failed(detail) => faults.push(format!("{check}: {detail}")),
                Verdict::None(why) if has => faults.push(format!("{check}: left out ({why})")),
                Verdict::Ok if !has => {
                    faults.push(format!("{check}: passed, but is not expected to exist"));
                }
                Verdict::None(_) | Verdict::Ok => {}
            }
        }
        if asked(&"auth") {
            let over_tls = self.driver.plugins_over_tls.iter().filter(|_| run.tls);
            let known = self.driver.plugins.iter().chain(over_tls);
            let needed = known.filter(|plugin| server_plugins.contains(*plugin));
            let lacking = needed.filter(|p| !self.plugins.iter().any(|seen| seen == *p));
            faults.extend(lacking.map(|plugin| format!("auth: no login by {plugin}")));
        }
        let mut need = |check: &'static str, hits: Option<Hits>, are_enough: fn(Hits) -> bool| {
            let has = !self.driver.without.contains(&check);
            if asked(&check) && has && !hits.is_some_and(are_enough) {
                faults.push(format!("{check}: hits {}", show(hits)));
            }
        };
        need("text", self.hits_text, Hits::are_complete);
        need("prepared", self.hits_prepared, Hits::are_complete);
        need(
            "transaction_reads",
            self.hits_transactions,
            Hits::are_all_of_a_snapshot,
        );
        faults
    }

    fn row(&self) -> Vec<String> {
        let mark = |verdict: &Verdict| match verdict {
            Verdict::Missing => "?",
            Verdict::Ok => "ok",
            Verdict::None(_) => "-",
            Verdict::Failed(_) => "FAIL",
        };
        let mut fields = vec![self.driver.name.to_owned()];
        fields.extend(self.verdicts.iter().map(|verdict| mark(verdict).to_owned()));
        fields.push(show(self.hits_text));
        fields.push(show(self.hits_prepared));
        fields.push(show(self.hits_transactions));
        fields.push(self.plugins.join(" "));
        fields
    }
}

impl Hits {
    fn parse(text: &str) -> Option<Hits> {
        let (seen, reads) = text.split_once(' ')?;
        Some(Hits {
            seen: seen.parse().ok()?,
            reads: reads.parse().ok()?,
        })
    }

    fn are_complete(self) -> bool {
        self.reads > 0 && self.seen >= self.reads
    }

    /// Whether memory answered, inside the transactions of the check `transaction_reads`, the reads
    /// of rows that nobody changes but the first of each transaction: five of eight.
    fn are_all_of_a_snapshot(self) -> bool {
        self.reads > 0 && self.seen * 8 >= self.reads * 5
    }
}

fn show(hits: Option<Hits>) -> String {
    hits.map_or_else(
        || "-".to_owned(),
        |hits| format!("{}/{}", hits.seen, hits.reads),
    )
}

/// The matrix: a row for each driver, a column for each check.
pub(super) fn matrix(reports: &[Report]) -> Table {
    let mut heads = vec!["driver"];
    heads.extend(CHECKS);
    heads.extend(["hits text", "hits prepared", "hits transactions", "plugins"]);
    let mut table = Table::new(&heads);
    for report in reports {
        table.row(report.row());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::matrix::DRIVERS;
    use super::*;
    use remora_testkit::servers::Kind;

    const PLAIN: Run = Run {
        kind: Kind::MariaDb1011,
        tls: false,
    };
    const OVER_TLS: Run = Run { tls: true, ..PLAIN };

    fn all_ok(driver: &Driver) -> String {
        let line = |check: &&str| match (driver.without.contains(check), *check) {
            (true, _) | (false, "tls") => format!("none {check} for a reason\n"),
            (false, _) => format!("ok {check}\n"),
        };
        let lines: String = CHECKS.iter().map(line).collect();
        format!("{lines}plugins native\nhits text 5 5\nhits prepared 5 5\nhits transactions 5 8\n")
    }

    #[test]
    fn a_driver_that_does_all_has_no_faults() {
        for driver in DRIVERS {
            let report = Report::parse(*driver, &all_ok(driver), None);
            assert_eq!(report.faults(&["native"], PLAIN, &[]), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_missing_failed_or_left_out_is_a_fault() {
        let driver = &DRIVERS[0];
        let changes = [
            ("ok text\n", "", "text: not reported"),
            ("ok text\n", "FAIL text it broke\n", "text: it broke"),
            ("ok text\n", "none text lazy\n", "text: left out (lazy)"),
            ("plugins native\n", "plugins\n", "auth: no login by native"),
            ("hits text 5 5\n", "hits text 4 5\n", "text: hits 4/5"),
            (
                "hits transactions 5 8\n",
                "hits transactions 4 8\n",
                "transaction_reads: hits 4/8",
            ),
            (
                "none prepared for a reason\n",
                "ok prepared\n",
                "prepared: passed, but is not expected to exist",
            ),
        ];
        for (from, to, fault) in changes {
            let lines = all_ok(driver).replace(from, to);
            let report = Report::parse(*driver, &lines, None);
            assert_eq!(report.faults(&["native"], PLAIN, &[]), [fault]);
        }
        let crashed = Report::parse(*driver, &all_ok(driver), Some("it ended".to_owned()));
        assert_eq!(crashed.faults(&["native"], PLAIN, &[]), ["it ended"]);
        let with_tls = Report::parse(*driver, &all_ok(driver), None);
        assert_eq!(
            with_tls.faults(&[], OVER_TLS, &[]),
            ["tls: left out (for a reason)"]
        );
    }
}
