//! Verdicts, and published ratios beside measured ones, of made-up runs.

use crate::statistics::testing::seeded;

use super::testing::Synthetic;
use super::tests::{assert_well_formed, lead, report_of, written};

/// A run whose published figures are those of an experiment.
fn run_of(experiment: &str, repetitions: u32) -> Synthetic {
    let about = crate::experiments::find(experiment).unwrap().about();
    let mut run = Synthetic::new(experiment, seeded());
    run.results.published = about.published;
    run.repetitions = repetitions;
    run
}

/// The row of the published table that begins with this.
fn row<'a>(html: &'a str, what: &str) -> &'a str {
    let table = html.split("<table class=\"beside\">").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap();
    let mut rows = table.split("<tr>");
    rows.find(|row| row.contains(what))
        .unwrap_or_else(|| panic!("no row {what} in {table}"))
}

#[test]
fn a_published_ratio_stands_beside_the_cells_that_answer_to_it() {
    let mut run = run_of("e1", 5);
    run.noise = 0.0001;
    for (arm, speed) in [
        ("direct", 10_000.0),
        ("builtin_64mib", 3_000.0),
        ("builtin_256mib", 20_000.0),
        ("remora", 5_000.0),
    ] {
        run.cell("complex read-only OLTP", None, arm, speed);
        // The others have nothing to do with it.
        let other = "complex read-only OLTP, without transactions";
        run.cell(other, None, arm, 7_777.0);
    }
    let html = report_of(&run);
    assert_well_formed(&html);
    let expect = |what: &str, parts: &[&str]| {
        let row = row(&html, what);
        for part in parts {
            assert!(row.contains(part), "no {part} in {row}");
        }
    };
    expect(
        "query cache of 64 MB<span class=\"of\">÷ query cache off, transactions/s",
        &[
            "<td>0.12\u{a0}×</td>",
            "<td>0.30\u{a0}×",
            "query cache of 64 MiB</span><span class=\"of\">÷ direct<",
            "<td>yes</td>",
            "<td>0.50\u{a0}×",
            "Remora</span><span class=\"of\">÷ direct<",
        ],
    );
    expect(
        "query cache of 64 MB<span class=\"of\">÷ query cache off, ms",
        &["<td>2.98\u{a0}×</td>", "<td>3.33\u{a0}×", "<td>2.00\u{a0}×"],
    );
    expect(
        "query cache of 128 MB<span class=\"of\">÷ query cache off, transactions/s",
        &[
            "not in this run: query cache of 128 MiB",
            "<td>0.045\u{a0}×</td>",
        ],
    );
    expect(
        "query cache of 256 MB<span class=\"of\">÷ query cache off, transactions/s",
        &["<td>2.00\u{a0}×", "no, the opposite"],
    );
    let lead = lead(&html);
    assert!(
        lead.ends_with(
            "of 4 published ratios with their like in this run, 2 go the same way here and 2 go the other way here."
        ),
        "{lead}"
    );
}

#[test]
fn a_verdict_says_what_was_asked_and_no_more_than_intervals_show() {
    // E5 asks whether the most threads are as good as the best number of them.
    let over_threads = |repetitions: u32, at_last: f64| {
        let mut run = run_of("e5", repetitions);
        run.noise = 0.002;
        for (threads, speed) in [(2.0, 500.0), (32.0, 1_000.0), (256.0, 1_000.0 * at_last)] {
            for arm in ["direct", "remora"] {
                run.cell("point selects", Some(("threads", "", threads)), arm, speed);
            }
        }
        report_of(&run)
    };
    let falls = over_threads(5, 0.5);
    let said = lead(&falls);
    assert!(
        said.starts_with("Remora's throughput at 256 threads (the most) is 0.50\u{a0}× ("),
        "{said}"
    );
    assert!(
        said.contains(" that at 32 threads (the best): a fall;"),
        "{said}"
    );
    assert!(
        said.contains("”, 1.00\u{a0}×, isn't level here: 0.50"),
        "{said}"
    );
    assert!(row(&falls, "the most threads").contains("no, it differs"));
    let few = over_threads(2, 0.5);
    let said = lead(&few);
    assert!(said.contains("(no interval) that at"), "{said}");
    assert!(said.matches("too few times").count() == 2, "{said}");
    assert!(row(&few, "the most threads").contains("too few repetitions"));
}

#[test]
fn a_verdict_on_the_tail_names_what_it_is_over() {
    let mut run = run_of("e9", 5);
    let place = |clients: f64| Some(("clients that join", "", clients));
    for arm in ["direct", "builtin_64mib", "remora"] {
        run.cell("the join alone", place(1.0), arm, 100.0);
        let beside = "joins asked for the first time, small queries beside";
        run.cell(beside, place(4.0), arm, 100.0);
    }
    let html = report_of(&run);
    let said = lead(&html);
    assert!(
        said.starts_with("The published ratio of “under load with the query cache, the longest” to “alone”, 6.25\u{a0}×, goes the same way here: "),
        "{said}"
    );
    assert!(said.ends_with("through Remora."), "{said}");
}

#[test]
fn the_verdict_on_break_even_is_the_hit_ratio_from_which_it_pays() {
    let mut run = run_of("break-even", 5);
    run.noise = 0.002;
    for percent in [0.0, 50.0, 100.0] {
        let place = Some(("hit ratio", "%", percent));
        run.cell("light", place, "direct", 1_000.0);
        run.cell("light", place, "remora", 500.0 + 10.0 * percent);
    }
    let html = report_of(&run);
    let said = lead(&html);
    assert!(
        said.starts_with("Light: Remora pays from a hit ratio of "),
        "{said}"
    );
    // 8 % was published, and 10 % isn't among these places.
    let row = row(&html, "hit ratio about 8 %");
    assert!(
        row.contains("not in this run: query cache of 64 MiB"),
        "{row}"
    );
    assert!(
        row.contains("not in this run: hit ratio 10\u{a0}%"),
        "{row}"
    );
}

#[test]
fn overlapping_intervals_are_no_difference() {
    let mut run = Synthetic::new("e1", seeded());
    run.cell("point selects", None, "direct", 1_000.0);
    run.cell("point selects", None, "remora", 1_000.0);
    // The same figures in another order: however they fell out, they overlap.
    let mut same = run.results.cells[0].repetitions.clone();
    same.reverse();
    run.results.cells[1].repetitions = same;
    let html = report_of(&run);
    assert_eq!(lead(&html), "Remora is not shown to differ from direct.");
}

#[test]
fn processor_time_that_was_not_measured_is_no_zero() {
    let mut run = Synthetic::new("replay", seeded());
    for arm in ["direct", "remora"] {
        run.cell("replay", None, arm, 1_000.0);
    }
    let repetitions = |run: &mut Synthetic, proxy: Option<f64>| {
        let cells = run.results.cells.iter_mut();
        for repetition in cells.flat_map(|cell| &mut cell.repetitions) {
            repetition.server_cpu_us = None;
            repetition.proxy_cpu_us = proxy;
        }
    };
    repetitions(&mut run, None);
    let directory = written(&run);
    let json = std::fs::read_to_string(directory.path().join("results.json")).unwrap();
    assert!(json.contains("\"server_cpu_us\": null"), "{json}");
    let html = report_of(&run);
    assert!(html.contains("Not measured: that takes the processes"));
    assert!(!html.contains("server CPU, µs/query"));
    // With a proxy's alone, what both take together isn't known either.
    repetitions(&mut run, Some(9.0));
    let html = report_of(&run);
    let table = html
        .split("Processor time per query: medians")
        .nth(2)
        .unwrap();
    let table = table.split("</table>").next().unwrap();
    assert!(
        table.contains("<td>–</td><td>9.00</td><td>–</td>"),
        "{table}"
    );
}

#[test]
fn a_replay_with_its_timing_is_no_closed_loop() {
    let mut run = Synthetic::new("replay", seeded());
    run.cell("replay", None, "direct", 1_000.0);
    run.cell("replay", None, "remora", 1_000.0);
    let html = report_of(&run);
    assert!(
        !html.contains("closed loop") && !html.contains("sysbench's") && !html.contains("set rate")
    );
    assert!(html.contains("Latency from when a statement was due, without coordinated omission"));
    for repetition in run
        .results
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.repetitions)
    {
        repetition.open_loop = None;
    }
    let html = report_of(&run);
    assert!(html.contains("Latency where each connection sends as soon as it is answered"));
}
