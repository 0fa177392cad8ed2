//! Each rule on numbers that it must speak of, and on numbers that it must be silent about. Real
//! servers in such states are asked in `crates/behaviour`.

use super::*;
use crate::innodb_status::InnodbStatus;
use crate::number;
use crate::reading::{
    NoShapes, OpenTransaction, ReadingError, STATUS_VARIABLES, Sample, Server, Shape,
};
use crate::report::TakeoverSeen;

/// A server with nothing wrong, read three times in ten seconds.
struct Given {
    brand: Brand,
    release: (u32, u32, u32),
    processors: Option<u32>,
    variables: Vec<(&'static str, String)>,
    /// Status variables: their values at first, and by how much they grow until the last sample.
    status: Vec<(&'static str, f64, f64)>,
    innodb: Result<[InnodbStatus; 3], Unjudged>,
    oldest_transaction: Option<OpenTransaction>,
}

fn innodb(age: u32, written: u32, history_length: u32) -> InnodbStatus {
    let [age, written, history_length] = [age, written, history_length].map(f64::from);
    InnodbStatus {
        log_sequence_number: 1e9 + written,
        last_checkpoint: 1e9 + written - age,
        history_length,
    }
}

impl Given {
    fn sound() -> Given {
        let variables = [
            ("innodb_log_file_size", "100663296"),
            ("innodb_purge_threads", "4"),
            ("innodb_buffer_pool_size", "134217728"),
            ("innodb_lru_scan_depth", "1024"),
            ("innodb_io_capacity", "200"),
            ("innodb_io_capacity_max", "2000"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("table_open_cache", "2000"),
            ("table_definition_cache", "400"),
            ("thread_cache_size", "64"),
            ("max_connections", "151"),
            ("back_log", "80"),
            ("tmp_table_size", "16777216"),
            ("max_heap_table_size", "16777216"),
            ("query_cache_type", "ON"),
            ("query_cache_size", "1048576"),
            ("thread_handling", "one-thread-per-connection"),
        ];
        let status = [
            ("Uptime", 1_000.0, 10.0),
            ("Innodb_buffer_pool_reads", 5_000.0, 10.0),
            ("Innodb_buffer_pool_read_requests", 1e6, 1e5),
            ("Innodb_buffer_pool_pages_total", 8_000.0, 0.0),
            ("Innodb_buffer_pool_pages_free", 100.0, 0.0),
            ("Innodb_buffer_pool_pages_dirty", 800.0, 0.0),
            ("Innodb_buffer_pool_pages_flushed", 100.0, 100.0),
            ("Innodb_buffer_pool_wait_free", 3.0, 0.0),
            ("Opened_tables", 3_000.0, 2.0),
            ("Table_open_cache_overflows", 10.0, 1.0),
            ("Innodb_row_lock_current_waits", 1.0, 0.0),
            ("Open_tables", 2_000.0, 0.0),
            ("Opened_table_definitions", 500.0, 2.0),
            ("Open_table_definitions", 400.0, 0.0),
            ("Threads_created", 70.0, 1.0),
            ("Connections", 1_000.0, 200.0),
            ("Connection_errors_max_connections", 5.0, 0.0),
            ("Threads_connected", 20.0, 0.0),
            ("Threads_running", 3.0, 0.0),
            ("Max_used_connections", 151.0, 0.0),
            ("Created_tmp_disk_tables", 100.0, 5.0),
            ("Created_tmp_tables", 1_000.0, 1_000.0),
            ("Qcache_hits", 0.0, 10_000.0),
            ("Qcache_inserts", 0.0, 500.0),
            ("Qcache_lowmem_prunes", 0.0, 5.0),
            ("Qcache_free_blocks", 10.0, 0.0),
            ("Qcache_total_blocks", 1_000.0, 0.0),
        ];
        let variables = variables.map(|(name, value)| (name, value.to_owned()));
        Given {
            brand: Brand::MariaDb,
            release: (10, 11, 14),
            processors: Some(2),
            variables: variables.to_vec(),
            status: status.to_vec(),
            innodb: Ok([
                innodb(10_000_000, 0, 20),
                innodb(11_000_000, 1_000_000, 30),
                innodb(10_000_000, 2_000_000, 25),
            ]),
            oldest_transaction: None,
        }
    }

    fn with(mut self, name: &'static str, first: f64, growth: f64) -> Given {
        self.status.retain(|(known, ..)| *known != name);
        self.status.push((name, first, growth));
        self
    }

    fn with_variable(mut self, name: &'static str, value: &str) -> Given {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    fn without_variable(mut self, name: &'static str) -> Given {
        self.variables.retain(|(known, _)| *known != name);
        self
    }

    fn with_innodb(mut self, innodb: [InnodbStatus; 3]) -> Given {
        self.innodb = Ok(innodb);
        self
    }

    fn reading_with(&self, shapes: Result<Vec<Shape>, NoShapes>) -> Result<Reading, ReadingError> {
        for (name, ..) in &self.status {
            assert!(STATUS_VARIABLES.contains(name), "{name} isn't asked for");
        }
        let samples = [0_u8, 1, 2].map(|index| {
            let share = f64::from(index) / 2.0;
            let status = self.status.iter().map(|(name, first, growth)| {
                let value = first + growth * share;
                (*name, format!("{value}"))
            });
            Sample {
                at_s: 5.0 * f64::from(index),
                status: status.collect(),
                innodb: self.innodb.map(|all| all[usize::from(index)]),
                oldest_transaction: self.oldest_transaction,
            }
        });
        let server = Server {
            brand: self.brand,
            release: self.release,
            version: "a version".to_owned(),
            processors: self.processors,
        };
        let variables = self.variables.iter().cloned().collect();
        Reading::new(server, variables, samples.to_vec(), shapes)
    }

    fn report(&self) -> Report {
        advise(&self.reading_with(Ok(Vec::new())).unwrap())
    }

    /// What the one rule says that says something.
    fn finding(&self, rule: Rule) -> Finding {
        let report = self.report();
        let found: Vec<_> = report.found().collect();
        let rules: Vec<_> = found.iter().map(|(judgement, _)| judgement.rule).collect();
        assert_eq!(rules, [rule], "{report}");
        found[0].1.clone()
    }

    fn verdict(&self, rule: Rule) -> Verdict {
        self.report().of(rule).unwrap().verdict.clone()
    }
}

fn suggested(finding: &Finding) -> Vec<(&str, &str, bool)> {
    finding
        .settings
        .iter()
        .map(|setting| (setting.name, setting.suggested.as_str(), setting.is_dynamic))
        .collect()
}

#[test]
fn nothing_is_said_of_a_sound_server() {
    let report = Given::sound().report();
    for judgement in &report.judgements {
        assert_eq!(judgement.verdict, Verdict::Fine, "{judgement:?}");
    }
    let text = report.to_string();
    assert!(text.contains("No rule found a limit"), "{text}");
    assert!(text.contains("No sign of: redo_log_small"), "{text}");
}

#[test]
fn a_redo_log_that_is_nearly_full_is_too_small() {
    // 1 MB a second, and 80 of 96 MiB are never free.
    let full = [0, 5_000_000, 10_000_000].map(|written| innodb(80_000_000, written, 20));
    let large_pool = || {
        let pool = "8589934592";
        let given = Given::sound().with_variable("innodb_buffer_pool_size", pool);
        given.with_innodb(full)
    };
    let finding = large_pool().finding(Rule::RedoLogSmall);
    assert!(finding.meaning.contains("after 101 s"), "{finding:?}");
    // Half an hour of it is 1.8 GB.
    let expected = ("innodb_log_file_size", "2147483648", true);
    assert_eq!(suggested(&finding), [expected]);
    // Where it takes a restart, and where the operator sets something else.
    let old = Given {
        brand: Brand::MySql,
        release: (5, 7, 22),
        ..large_pool()
    }
    .with_variable("innodb_log_file_size", "50331648")
    .with_variable("innodb_log_files_in_group", "2");
    let expected = ("innodb_log_file_size", "1073741824", false);
    assert_eq!(suggested(&old.finding(Rule::RedoLogSmall)), [expected]);
    let new = Given {
        brand: Brand::MySql,
        release: (8, 0, 31),
        ..large_pool()
    }
    .with("Innodb_redo_log_capacity_resized", 104_857_600.0, 0.0);
    let expected = ("innodb_redo_log_capacity", "2147483648", true);
    assert_eq!(suggested(&new.finding(Rule::RedoLogSmall)), [expected]);
    // The pool has 128 MiB, and the log 96 already.
    let given = Given::sound().with_innodb(full);
    let expected = ("innodb_log_file_size", "268435456", true);
    assert_eq!(suggested(&given.finding(Rule::RedoLogSmall)), [expected]);
}

#[test]
fn a_redo_log_that_is_full_for_a_moment_or_of_an_idle_server_is_large_enough() {
    let once = [80_000_000, 10_000_000, 10_000_000].map(|age| innodb(age, age, 20));
    let idle = [innodb(80_000_000, 5, 20); 3];
    // 20 KB a second.
    let slow = [0, 100_000, 200_000].map(|written| innodb(80_000_000, written, 20));
    for states in [once, idle, slow] {
        let verdict = Given::sound()
            .with_innodb(states)
            .verdict(Rule::RedoLogSmall);
        assert_eq!(verdict, Verdict::Fine);
    }
}

#[test]
fn what_takes_a_privilege_is_not_judged_without_it() {
    let given = Given {
        innodb: Err(Unjudged::NoPrivilege),
        ..Given::sound()
    };
    for rule in [Rule::RedoLogSmall, Rule::PurgeBehind] {
        let expected = Verdict::Unjudged(Unjudged::NoPrivilege);
        assert_eq!(given.verdict(rule), expected);
    }
    let text = given.report().to_string();
    let expected = "Not judged: redo_log_small, purge_behind. The account lacks";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_purge_that_an_open_transaction_holds_up_names_its_connection() {
    let growing = [6_000, 8_000, 7_900].map(|length| innodb(1, 1, length));
    let given = Given {
        oldest_transaction: Some(OpenTransaction {
            connection_id: 77,
            seconds: 300.0,
        }),
        ..Given::sound().with_innodb(growing)
    };
    let finding = given.finding(Rule::PurgeBehind);
    assert!(finding.remedy.contains("connection 77"), "{finding:?}");
    // One that isn't old isn't to blame, and without one it must be longer.
    let given = Given {
        oldest_transaction: Some(OpenTransaction {
            connection_id: 77,
            seconds: 1.0,
        }),
        ..Given::sound().with_innodb(growing)
    };
    assert_eq!(given.verdict(Rule::PurgeBehind), Verdict::Fine);
    let growing = [90_000, 110_000, 120_000].map(|length| innodb(1, 1, length));
    let given = given.with_innodb(growing);
    let finding = given.finding(Rule::PurgeBehind);
    let expected = ("innodb_purge_threads", "8", true);
    assert_eq!(suggested(&finding), [expected]);
}

#[test]
fn a_history_that_is_long_but_shrinks_is_being_purged() {
    let shrinking = [90_000, 50_000, 10_000].map(|length| innodb(1, 1, length));
    let given = Given::sound().with_innodb(shrinking);
    assert_eq!(given.verdict(Rule::PurgeBehind), Verdict::Fine);
    let longest = [2_000_000, 1_900_000, 1_900_000].map(|length| innodb(1, 1, length));
    Given::sound()
        .with_innodb(longest)
        .finding(Rule::PurgeBehind);
}

#[test]
fn a_full_pool_that_reads_from_disk_is_too_small() {
    let missing = |free: f64| {
        Given::sound()
            .with("Innodb_buffer_pool_reads", 0.0, 5_000.0)
            .with("Innodb_buffer_pool_pages_free", free, 0.0)
    };
    let finding = missing(100.0).finding(Rule::BufferPoolSmall);
    let expected = ("innodb_buffer_pool_size", "268435456", true);
    assert_eq!(suggested(&finding), [expected]);
    // What InnoDB keeps free isn't for lack of need.
    missing(1_100.0).finding(Rule::BufferPoolSmall);
    // While it fills it must read.
    let verdict = missing(4_000.0).verdict(Rule::BufferPoolSmall);
    assert_eq!(verdict, Verdict::Fine);
    // Many are many, whatever the share.
    Given::sound()
        .with("Innodb_buffer_pool_reads", 0.0, 20_000.0)
        .with("Innodb_buffer_pool_read_requests", 0.0, 1e8)
        .finding(Rule::BufferPoolSmall);
}

#[test]
fn statements_that_waited_for_a_free_page_are_told_of() {
    let given = Given::sound().with("Innodb_buffer_pool_wait_free", 3.0, 40.0);
    let finding = given.finding(Rule::FreePagesShort);
    let names: Vec<_> = finding.settings.iter().map(|one| one.name).collect();
    // The most that it may write in a hurry is more already.
    assert_eq!(names, ["innodb_lru_scan_depth", "innodb_io_capacity"]);
    let once = Given::sound().with("Innodb_buffer_pool_wait_free", 3.0, 1.0);
    assert_eq!(once.verdict(Rule::FreePagesShort), Verdict::Fine);
}

#[test]
fn as_many_changed_pages_as_may_be_are_too_many() {
    let full = |growth: f64, flushed: f64| {
        Given::sound()
            .with("Innodb_buffer_pool_pages_dirty", 7_000.0, growth)
            .with("Innodb_buffer_pool_pages_flushed", 0.0, flushed)
    };
    let finding = full(0.0, 2_000.0).finding(Rule::IoCapacityLow);
    // The most that it may write in a hurry is more already.
    let expected = ("innodb_io_capacity", "400", true);
    assert_eq!(suggested(&finding), [expected]);
    // They become fewer, or InnoDB could write more of them and doesn't.
    for given in [full(-500.0, 2_000.0), full(0.0, 500.0)] {
        let verdict = given.verdict(Rule::IoCapacityLow);
        assert_eq!(verdict, Verdict::Fine);
    }
}

#[test]
fn full_caches_of_tables_that_open_more_are_too_small() {
    let given = Given::sound().with("Table_open_cache_overflows", 0.0, 500.0);
    let finding = given.finding(Rule::TableCacheSmall);
    assert_eq!(suggested(&finding), [("table_open_cache", "4000", true)]);
    // Tables are opened, too, because they were changed.
    let given = Given::sound().with("Opened_tables", 0.0, 500.0);
    assert_eq!(given.verdict(Rule::TableCacheSmall), Verdict::Fine);
    let given = Given::sound().with("Opened_table_definitions", 0.0, 500.0);
    let finding = given.finding(Rule::DefinitionCacheSmall);
    let expected = ("table_definition_cache", "800", true);
    assert_eq!(suggested(&finding), [expected]);
}

#[test]
fn new_threads_for_most_connections_are_told_of_unless_there_is_a_pool() {
    let given = Given::sound().with("Threads_created", 70.0, 180.0);
    let finding = given.finding(Rule::ThreadCacheSmall);
    assert_eq!(suggested(&finding), [("thread_cache_size", "128", true)]);
    let verdict = given
        .with_variable("thread_handling", "pool-of-threads")
        .verdict(Rule::ThreadCacheSmall);
    assert_eq!(verdict, Verdict::Unjudged(Unjudged::NotUsed));
}

#[test]
fn refused_connections_are_told_of_if_they_were_refused_now() {
    let given = Given::sound().with("Connection_errors_max_connections", 5.0, 2.0);
    let finding = given.finding(Rule::ConnectionsExhausted);
    assert_eq!(suggested(&finding), [("max_connections", "302", true)]);
    Given::sound()
        .with("Threads_connected", 150.0, 0.0)
        .finding(Rule::ConnectionsExhausted);
}

#[test]
fn more_connections_in_a_second_than_may_wait_are_told_of() {
    let given = Given::sound().with("Connections", 0.0, 1_000.0);
    let finding = given.finding(Rule::BackLogShort);
    assert_eq!(suggested(&finding), [("back_log", "400", false)]);
}

#[test]
fn temporary_tables_on_disk_are_told_of_by_each_servers_own_limit() {
    let given = Given::sound().with("Created_tmp_disk_tables", 0.0, 800.0);
    let finding = given.finding(Rule::TemporaryTablesOnDisk);
    let expected = [
        ("tmp_table_size", "33554432", true),
        ("max_heap_table_size", "33554432", true),
    ];
    assert_eq!(suggested(&finding), expected);
    let new = Given {
        brand: Brand::MySql,
        release: (8, 0, 31),
        ..given
    }
    .with_variable("internal_tmp_mem_storage_engine", "TempTable")
    .with_variable("temptable_max_ram", "1073741824");
    let finding = new.finding(Rule::TemporaryTablesOnDisk);
    let expected = [
        ("tmp_table_size", "33554432", true),
        ("max_heap_table_size", "33554432", true),
        ("temptable_max_ram", "2147483648", true),
    ];
    assert_eq!(suggested(&finding), expected);
}

#[test]
fn many_statements_at_once_are_judged_by_the_processors() {
    let given = Given::sound().with("Threads_running", 10.0, 0.0);
    let finding = given.finding(Rule::ProcessorsShort);
    assert!(finding.remedy.contains("pool-of-threads"), "{finding:?}");
    // Those that wait for one row don't lack a processor.
    let verdict = given
        .with("Innodb_row_lock_current_waits", 8.0, 0.0)
        .verdict(Rule::ProcessorsShort);
    assert_eq!(verdict, Verdict::Fine);
    let large = Given {
        processors: Some(32),
        ..Given::sound()
    }
    .with("Threads_running", 10.0, 0.0);
    assert_eq!(large.verdict(Rule::ProcessorsShort), Verdict::Fine);
    let unknown = Given {
        processors: None,
        ..Given::sound()
    };
    let expected = Verdict::Unjudged(Unjudged::ProcessorsUnknown);
    assert_eq!(unknown.verdict(Rule::ProcessorsShort), expected);
}

#[test]
fn a_query_cache_is_judged_by_what_it_gives() {
    let stores = Given::sound().with("Qcache_inserts", 0.0, 20_000.0);
    let finding = stores.finding(Rule::QueryCacheCosts);
    assert!(finding.meaning.contains("never asked"), "{finding:?}");
    let expected = [
        ("query_cache_type", "OFF", true),
        ("query_cache_size", "0", true),
    ];
    assert_eq!(suggested(&finding), expected);
    let prunes = Given::sound()
        .with("Qcache_lowmem_prunes", 0.0, 400.0)
        .with("Qcache_free_blocks", 600.0, 0.0);
    let finding = prunes.finding(Rule::QueryCacheCosts);
    assert!(finding.meaning.contains("in pieces"), "{finding:?}");
    let quiet = Given::sound()
        .with("Qcache_hits", 0.0, 5.0)
        .with("Qcache_inserts", 0.0, 5.0);
    let expected = Verdict::Unjudged(Unjudged::TooLittle);
    assert_eq!(quiet.verdict(Rule::QueryCacheCosts), expected);
    for off in [
        Given::sound().with_variable("query_cache_type", "OFF"),
        Given::sound().with_variable("query_cache_size", "0"),
        Given::sound().without_variable("query_cache_type"),
    ] {
        let expected = Verdict::Unjudged(Unjudged::NotUsed);
        assert_eq!(off.verdict(Rule::QueryCacheCosts), expected);
    }
}

#[test]
fn what_a_server_does_not_report_is_not_judged() {
    let mut given = Given::sound();
    given.status.retain(|(name, ..)| *name == "Uptime");
    for judgement in given.report().judgements {
        let is_innodb = [Rule::RedoLogSmall, Rule::PurgeBehind].contains(&judgement.rule);
        if !is_innodb {
            let expected = Verdict::Unjudged(Unjudged::NotReported);
            assert_eq!(judgement.verdict, expected, "{judgement:?}");
        }
    }
}

#[test]
fn counters_that_began_again_say_nothing() {
    let restarted = Given::sound().with("Uptime", 1_000.0, -900.0);
    let reading = restarted.reading_with(Ok(Vec::new()));
    assert_eq!(reading.err(), Some(ReadingError::BeganAgain));
    // One that was set back with FLUSH STATUS is no rate.
    let set_back = Given::sound().with("Table_open_cache_overflows", 5_000.0, -4_000.0);
    let expected = Verdict::Unjudged(Unjudged::NotReported);
    assert_eq!(set_back.verdict(Rule::TableCacheSmall), expected);
}

#[test]
fn what_remora_would_take_over_is_a_share_of_statements_and_of_time() {
    let shape = |text: &str, count, server_s, refusal: Option<&str>| Shape {
        text: text.to_owned(),
        count,
        server_s,
        is_read: text.starts_with("SELECT"),
        refusal: refusal.map(str::to_owned),
    };
    let shapes = vec![
        shape("SELECT a", 60.0, 6.0, None),
        shape("SELECT NOW()", 20.0, 1.0, Some("It depends on the time.")),
        shape("UPDATE t", 20.0, 3.0, None),
    ];
    let reading = Given::sound().reading_with(Ok(shapes)).unwrap();
    let TakeoverSeen::Known(takeover) = advise(&reading).takeover else {
        panic!("it isn't known");
    };
    let percents = [takeover.keepable_percent, takeover.keepable_server_percent];
    assert_eq!(percents.map(number::short), ["60", "60"]);
    assert_eq!(takeover.costliest.len(), 1);
    assert_eq!(takeover.refused[0].1, "It depends on the time.");
    let unknown = Given::sound().reading_with(Err(NoShapes::Off)).unwrap();
    assert_eq!(
        advise(&unknown).takeover,
        TakeoverSeen::Unknown(NoShapes::Off)
    );
}

#[test]
fn the_page_for_operators_has_each_rule() {
    let page = include_str!("../../../../docs/advice.md");
    for rule in Rule::ALL {
        let row = format!("\n| `{}` | ", rule.as_str());
        assert!(page.contains(&row), "{row}");
    }
}
