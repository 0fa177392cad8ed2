//! E4: one kind of statement at a time.

use super::plan::{About, Arm, Experiment, Pace, Plan, Point, Script, SysbenchLoad};
use super::sbtest::Sbtest;
use crate::results::Scale;

/// See the module.
pub(super) struct E4;

/// A kind of statement: sysbench's script and the options by which it sends nothing else.
struct Statement {
    name: &'static str,
    script: &'static str,
    /// What is on; of [`COUNTS`] all others are off.
    on: &'static str,
}

/// The options that say how often a transaction sends each kind.
const COUNTS: [&str; 8] = [
    "point_selects",
    "simple_ranges",
    "distinct_ranges",
    "order_ranges",
    "sum_ranges",
    "index_updates",
    "non_index_updates",
    "delete_inserts",
];
/// How many of them a script that only reads has.
const COUNTS_OF_READS: usize = 5;

const STATEMENTS: [Statement; 9] = [
    read("simple select", "point_selects"),
    read("simple range", "simple_ranges"),
    read("distinct range", "distinct_ranges"),
    read("order range", "order_ranges"),
    read("sum range", "sum_ranges"),
    write("index update", "index_updates"),
    write("non-index update", "non_index_updates"),
    write("delete and insert", "delete_inserts"),
    // The whole, for comparison.
    Statement {
        name: "read-write OLTP",
        script: "oltp_read_write",
        on: "",
    },
];
/// Those of a quick run.
const QUICK: [&str; 3] = ["simple select", "order range", "index update"];

const fn read(name: &'static str, on: &'static str) -> Statement {
    let script = "oltp_read_only";
    Statement { name, script, on }
}

const fn write(name: &'static str, on: &'static str) -> Statement {
    let script = "oltp_read_write";
    Statement { name, script, on }
}

/// In which form statements are sent.
#[derive(Clone, Copy)]
enum Form {
    /// As text, each a transaction of its own.
    Text,
    /// As text between BEGIN and COMMIT.
    TextInTransactions,
    /// Prepared, each a transaction of its own.
    Prepared,
    /// Prepared, between BEGIN and COMMIT.
    PreparedInTransactions,
}

impl Form {
    fn suffix(self) -> &'static str {
        match self {
            Form::Text => "",
            Form::TextInTransactions => ", in transactions",
            Form::Prepared => ", prepared",
            Form::PreparedInTransactions => ", prepared, in transactions",
        }
    }

    fn is_prepared(self) -> bool {
        matches!(self, Form::Prepared | Form::PreparedInTransactions)
    }

    fn skips_transactions(self) -> bool {
        matches!(self, Form::Text | Form::Prepared)
    }
}

impl Statement {
    fn options(&self, form: Form) -> Vec<String> {
        let mut options = vec!["--rand-type=uniform".to_owned()];
        if form.skips_transactions() {
            options.push("--skip-trx=on".to_owned());
        }
        if self.on.is_empty() {
            return options;
        }
        let reads_only = self.script == "oltp_read_only";
        if self.on == "delete_inserts" {
            // Without transactions two threads can insert the row that both have deleted.
            options.push("--mysql-ignore-errors=1213,1020,1205,1062".to_owned());
        }
        let known = if reads_only {
            COUNTS_OF_READS
        } else {
            COUNTS.len()
        };
        let count = |name: &&str| format!("--{name}={}", u32::from(**name == *self.on));
        options.extend(COUNTS[..known].iter().map(count));
        let has_ranges = self.on.ends_with("_ranges");
        let switch = if has_ranges { "on" } else { "off" };
        options.push(format!("--range_selects={switch}"));
        if has_ranges {
            options.push("--range_size=100".to_owned());
        }
        options
    }

    fn point(&self, form: Form, threads: u32) -> Point {
        let load = SysbenchLoad {
            script: Script::Its(self.script),
            threads,
            prepared: form.is_prepared(),
            options: self.options(form),
        };
        Point::new(&format!("{}{}", self.name, form.suffix()), load).threads(threads)
    }
}

impl Experiment for E4 {
    fn about(&self) -> About {
        About {
            id: "e4",
            title: "Statement by statement",
            question: "Which kinds of statements does what stands in front of a server make faster or slower, at how many \
                       threads, and steadily?",
            source_figure: "one kind of statement at a time, 16 tables of 2.5 M rows, 1 to 1,024 threads, transactions/s and \
                            95th percentile second by second: a dip that a minute's mean hides is the finding",
            published: Vec::new(),
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let size = Size::of(scale);
        let is_wanted = |statement: &&Statement| match scale {
            Scale::Tiny => statement.on == "point_selects" || statement.on == "index_updates",
            Scale::Quick => QUICK.contains(&statement.name),
            Scale::Normal | Scale::Full => true,
        };
        let mut points = Vec::new();
        for &form in size.forms {
            for statement in STATEMENTS.iter().filter(is_wanted) {
                let point = |&threads: &u32| statement.point(form, threads);
                points.extend(size.threads.iter().map(point));
            }
        }
        Plan {
            data: size.tables.data(),
            server_options: vec![
                size.tables.server_option(),
                format!("--innodb-log-file-size={}M", size.redo_log_mib),
            ],
            points,
            arms: size.arms.to_vec(),
            pace: size.pace,
        }
    }
}

const REMORA: Arm = Arm::Remora { memory_mib: 256 };
const PROXYSQL: Arm = Arm::ProxySql {
    time_to_live_ms: 1_000,
};

struct Size {
    tables: Sbtest,
    redo_log_mib: u32,
    threads: &'static [u32],
    forms: &'static [Form],
    arms: &'static [Arm],
    pace: Pace,
}

impl Size {
    fn of(scale: Scale) -> Size {
        match scale {
            Scale::Tiny => Size {
                tables: Sbtest::TINY,
                redo_log_mib: 24,
                threads: &[2],
                forms: &[Form::Prepared],
                arms: &[Arm::Direct, REMORA],
                pace: Pace::TINY,
            },
            Scale::Quick => Size {
                tables: Sbtest::QUICK,
                redo_log_mib: 96,
                threads: &[16],
                forms: &[Form::Text],
                arms: &[Arm::Direct, REMORA],
                pace: Pace::QUICK,
            },
            Scale::Normal => Size {
                tables: Sbtest::NORMAL,
                redo_log_mib: 256,
                threads: &[8, 64],
                forms: &[Form::Text, Form::PreparedInTransactions],
                arms: &[Arm::Direct, Arm::Hop, PROXYSQL, REMORA],
                pace: Pace::new(3, 6, 6),
            },
            Scale::Full => Size {
                tables: Sbtest {
                    tables: 16,
                    rows: 2_500_000,
                    buffer_pool_mib: 12_288,
                },
                redo_log_mib: 2_048,
                threads: &[1, 4, 16, 64, 256, 1_024],
                forms: &[
                    Form::Text,
                    Form::TextInTransactions,
                    Form::Prepared,
                    Form::PreparedInTransactions,
                ],
                arms: &[
                    Arm::Direct,
                    Arm::Builtin { mib: 64 },
                    Arm::Hop,
                    PROXYSQL,
                    REMORA,
                ],
                pace: Pace::new(5, 30, 20),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_statement_switches_all_others_off() {
        let order = STATEMENTS.iter().find(|s| s.name == "order range").unwrap();
        let options = order.options(Form::Text);
        let on: Vec<&String> = options.iter().filter(|o| o.ends_with("=1")).collect();
        assert_eq!(on, ["--order_ranges=1"]);
        assert!(options.contains(&"--point_selects=0".to_owned()));
        assert!(!options.iter().any(|o| o.contains("updates")));
        let update = STATEMENTS
            .iter()
            .find(|s| s.name == "index update")
            .unwrap();
        let options = update.options(Form::PreparedInTransactions);
        assert!(options.contains(&"--range_selects=off".to_owned()));
        assert!(!options.iter().any(|o| o.contains("skip-trx")));
    }
}
