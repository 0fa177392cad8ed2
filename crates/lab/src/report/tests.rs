//! Reports and comparisons of made-up runs.

use std::process::Command;

use crate::experiments::results::{Scale, State};
use crate::load::random::Random;
use crate::statistics::testing::seeded;

use super::testing::{Synthetic, everything};
use super::*;

pub(super) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn report_of(run: &Synthetic) -> String {
    let directory = scratch();
    run.write(directory.path());
    write(directory.path()).unwrap();
    std::fs::read_to_string(directory.path().join(REPORT)).unwrap()
}

pub(super) fn written(run: &Synthetic) -> tempfile::TempDir {
    let directory = scratch();
    run.write(directory.path());
    directory
}

/// Each opening tag has its closing one, in order.
pub(super) fn assert_well_formed(html: &str) {
    const VOID: [&str; 9] = [
        "meta", "br", "!DOCTYPE", "polyline", "line", "rect", "circle", "polygon", "hr",
    ];
    let mut open = Vec::new();
    for tag in html.split('<').skip(1) {
        let name: String = tag
            .chars()
            .take_while(|letter| !letter.is_whitespace() && *letter != '>')
            .collect();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "in <{tag}");
        } else if !VOID.contains(&name.trim_end_matches('/')) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_report_holds_all_that_was_measured_and_asks_for_nothing_else() {
    let html = report_of(&everything(seeded(), 1.0));
    assert_well_formed(&html);
    for part in [
        "From which hit ratio does a query cache pay? &lt;b&gt;&amp;",
        "Stale reads through Remora: 0",
        "query cache of 64 MB",
        "4,802",
        "point selects",
        "σ, contention",
        "Break-even: it pays from a hit ratio of",
        "Latency at a set rate, without coordinated omission",
        "Processor time per query",
        "Throughput second by second",
        "The noise of the machine",
        "Qcache_inserts",
        "4,745,672",
        "Example 9000",
        "MariaDB 10.11.6",
        "memory = &quot;64MiB&quot;",
        "sysbench oltp_point_select --threads=8 run",
        "prefers-color-scheme: dark",
    ] {
        assert!(html.contains(part), "no {part}");
    }
    let without_links_inside = html.replace("href=\"#", "");
    for outside in ["src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!without_links_inside.contains(outside), "it has {outside}");
    }
    // Of each chart there is one for screens and one for phones, and each says what it is.
    let charts = html.matches("role=\"img\" aria-label=\"").count();
    assert!(charts > 20 && charts.is_multiple_of(2), "{charts}");
}

#[test]
fn what_is_said_agrees_with_what_was_planted() {
    let html = report_of(&everything(Random::new(7), 1.0));
    let said = |arm: &str, what: &str| {
        let name = format!("<b>{arm}: </b>");
        let said = html.split(&name).skip(1);
        let mut said = said.map(|rest| rest.split("</li>").next().unwrap());
        assert!(
            said.any(|said| said.contains(what)),
            "of {arm} it isn't said: {what}"
        );
    };
    // Planted: Remora above direct everywhere but at 0, 10 and 25 % of hits.
    let lead = html.split("<p class=\"lead\">").nth(1).unwrap();
    assert!(
        lead.starts_with("Remora is faster than direct at 16 of 19 points ("),
        "{lead:.200}"
    );
    assert!(lead.contains(" and slower at 3 ("), "{lead:.200}");
    said("query cache of 64 MiB", "Scalability is negative");
    let capacity = "From capacity 64\u{a0}tables to 16,384\u{a0}tables throughput";
    said("direct", &format!("{capacity} falls"));
    said("Remora", &format!("{capacity} isn't shown to change"));
    said("Remora", "Break-even: it pays from a hit ratio of");
    said(
        "query cache of 64 MiB",
        "Break-even: it isn't as fast as direct at the highest",
    );
    assert!(html.contains("99th percentile is 3.00 times the median"));
}

#[test]
fn stale_reads_incompleteness_and_a_tiny_scale_are_said_at_once() {
    let mut run = everything(seeded(), 1.0);
    run.results.scale = Scale::Tiny;
    run.results.state = State::Incomplete {
        why: "the server died".to_owned(),
    };
    for cell in &mut run.results.cells {
        if cell.arm == "remora" {
            cell.repetitions[0].stale_reads = 1;
        }
    }
    let html = report_of(&run);
    let before_charts = html.split("<svg").next().unwrap();
    for part in [
        "incomplete: </strong>the server died",
        "The figures mean nothing",
        "Stale reads through Remora: 19</strong>",
    ] {
        assert!(before_charts.contains(part), "no {part}");
    }
}

#[test]
fn few_repetitions_have_no_intervals_and_no_conclusions() {
    let mut run = Synthetic::new("e1", seeded());
    run.repetitions = 2;
    for arm in ["direct", "remora"] {
        let speed = if arm == "remora" { 9_000.0 } else { 1_000.0 };
        run.cell("point selects", Some(("threads", "", 8.0)), arm, speed);
    }
    let html = report_of(&run);
    assert!(
        html.contains("the throughput of direct, measured too few times to conclude anything."),
        "{html}"
    );
    assert!(html.contains("nothing is concluded"));
    assert!(html.contains("(no interval)"));
}

#[test]
fn an_empty_run_and_missing_series_still_have_a_report() {
    let mut run = Synthetic::new("e1", seeded());
    assert_eq!(lead(&report_of(&run)), "Nothing was measured.");
    run.cell("point selects", None, "direct", 1_000.0);
    assert!(lead(&report_of(&run)).contains("none is compared"));
    run.results.cells[0].repetitions[1].series = "series/gone.csv".to_owned();
    run.results.cells[0].repetitions[2].series = "../../etc/passwd".to_owned();
    let html = report_of(&run);
    assert!(html.contains("can't read the series series/gone.csv"));
    assert!(html.contains("../../etc/passwd isn't in the run's directory"));
    run.results.cells[0].repetitions.clear();
    assert_well_formed(&report_of(&run));
}

#[test]
fn an_index_links_to_each_report() {
    let directory = scratch();
    everything(seeded(), 1.0).write(&directory.path().join("e1"));
    Synthetic::new("e2", seeded()).write(&directory.path().join("e 2"));
    let path = rewrite(directory.path()).unwrap();
    let html = std::fs::read_to_string(path).unwrap();
    assert_well_formed(&html);
    assert!(
        html.contains("href=\"e1/report.html\"") && html.contains("href=\"e%202/report.html\"")
    );
    assert!(directory.path().join("e1").join(REPORT).exists());
    let error = rewrite(&directory.path().join("e1/series")).unwrap_err();
    assert!(
        format!("{error:#}").contains("give a directory that a run wrote"),
        "{error:#}"
    );
}

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

/// The verdict on the whole run.
fn lead(html: &str) -> &str {
    let rest = html.split("<p class=\"lead\">").nth(1).unwrap();
    rest.split("</p>").next().unwrap()
}

#[test]
fn a_published_ratio_stands_beside_the_cells_that_answer_to_it() {
    let mut run = run_of("e1", 5);
    run.noise = 0.001;
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

/// Where a browser is at hand, a report is looked at in it: light, dark and on a phone. The pictures are kept in the
/// directory that `REMORA_LAB_PICTURES` names.
#[test]
fn a_browser_shows_a_report() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
    else {
        println!("no Chromium here: not looked at");
        return;
    };
    let directory = scratch();
    let kept = std::env::var_os("REMORA_LAB_PICTURES").map(PathBuf::from);
    let pictures = kept.unwrap_or_else(|| directory.path().to_owned());
    let run = pictures.join("run");
    everything(seeded(), 1.0).write(&run);
    write(&run).unwrap();
    let take = |name: &str, size: &str, further: &[&str]| -> Vec<u8> {
        let path = pictures.join(name);
        let page = format!("file://{}", run.join(REPORT).display());
        let output = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .arg(format!(
                "--user-data-dir={}",
                directory.path().join("profile").display()
            ))
            .arg(format!("--screenshot={}", path.display()))
            .arg(format!("--window-size={size}"))
            .args(further)
            .arg(page)
            .output()
            .unwrap();
        std::fs::read(&path)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    let light = take("light.png", "1000,7000", &[]);
    let dark = take(
        "dark.png",
        "1000,7000",
        &["--blink-settings=preferredColorScheme=0"],
    );
    let phone = take("phone.png", "500,7000", &[]);
    assert!(light.len() > 50_000 && phone.len() > 50_000);
    assert_ne!(light, dark);
}
