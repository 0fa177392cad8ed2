//! Reports and comparisons of made-up runs.

use std::path::Path;
use std::process::Command;

use crate::experiments::results::{Scale, State};
use crate::load::random::Random;
use crate::statistics::bootstrap::Verdict;
use crate::statistics::testing::seeded;

use super::compare::Change;
use super::testing::{Synthetic, everything};
use super::*;

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn report_of(run: &Synthetic) -> String {
    let directory = scratch();
    run.write(directory.path());
    write(directory.path()).unwrap();
    std::fs::read_to_string(directory.path().join(REPORT)).unwrap()
}

/// Each opening tag has its closing one, in order.
fn assert_well_formed(html: &str) {
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
        "0.12\u{a0}×",
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
    for outside in ["src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!html.contains(outside), "it has {outside}");
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
        lead.starts_with(
            "Remora: Throughput against direct is higher at 16 of 19 points and lower at 3"
        ),
        "{lead:.200}"
    );
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
        html.contains(
            "Throughput against direct is not shown to differ at 1 of 1 point (measured: "
        ),
        "{html}"
    );
    assert!(html.contains("nothing is concluded"));
    assert!(html.contains("(no interval)"));
}

#[test]
fn an_empty_run_and_missing_series_still_have_a_report() {
    let mut run = Synthetic::new("e1", seeded());
    assert!(report_of(&run).contains("none is compared"));
    run.cell("point selects", None, "direct", 1_000.0);
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

fn written(run: &Synthetic) -> tempfile::TempDir {
    let directory = scratch();
    run.write(directory.path());
    directory
}

#[test]
fn a_planted_regression_is_called_one_and_a_rerun_is_not() {
    let mut random = seeded();
    for _ in 0..3 {
        let mut run = |remora: f64| written(&everything(Random::new(random.next()), remora));
        let (before, again, slower) = (run(1.0), run(1.0), run(0.75));
        let rerun = compare(before.path(), again.path()).unwrap();
        let called: Vec<_> = rerun.regressions().collect();
        assert!(called.is_empty(), "{called:?}");
        assert_eq!(rerun.overall_regressions().count(), 0, "{rerun}");
        let regression = compare(before.path(), slower.path()).unwrap();
        let called: Vec<_> = regression.regressions().collect();
        let is_planted = |change: &&Change| change.arm == "remora";
        assert!(called.iter().all(is_planted), "{called:?}");
        let cells = called
            .iter()
            .filter(|change| change.measure == "queries/s")
            .count();
        assert!(cells >= 17, "{cells} of 19 cells");
        let overall: Vec<_> = regression.overall_regressions().collect();
        assert!(
            overall
                .iter()
                .any(|found| found.arm == "remora" && found.measure == "queries/s")
        );
        assert!(
            overall.iter().all(|found| found.arm == "remora"),
            "{overall:?}"
        );
        let back = compare(slower.path(), before.path()).unwrap();
        assert_eq!(back.regressions().count(), 0);
        let better = back.experiments[0].changes.iter();
        assert!(
            better
                .filter(|change| change.verdict == Verdict::Better)
                .count()
                >= 17
        );
        assert!(regression.to_string().contains("WORSE"));
        assert_well_formed(&regression.html());
    }
}

#[test]
fn a_small_regression_that_no_cell_shows_shows_over_all_cells() {
    let mut random = seeded();
    let mut run = |remora: f64| written(&everything(Random::new(random.next()), remora));
    let (before, slower) = (run(1.0), run(0.92));
    let comparison = compare(before.path(), slower.path()).unwrap();
    let found = comparison
        .overall_regressions()
        .find(|found| found.measure == "queries/s");
    let found = found.unwrap();
    assert_eq!((found.arm.as_str(), found.cells), ("remora", 19));
    assert!((0.89..0.95).contains(&found.ratio.value), "{found:?}");
}

#[test]
fn a_slower_machine_is_no_regression() {
    let before = written(&everything(seeded(), 1.0));
    let mut run = everything(seeded(), 1.0);
    for repetition in run
        .results
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.repetitions)
    {
        repetition.queries_per_s *= 0.5;
    }
    let busy = written(&run);
    let is_ours = |change: &&Change| change.arm == "remora" && change.measure == "queries/s";
    let comparison = compare(before.path(), busy.path()).unwrap();
    assert_eq!(comparison.regressions().filter(is_ours).count(), 0);
    // Without direct beside it there is nothing to tell the machine from Remora by.
    run.results.cells.retain(|cell| cell.arm != "direct");
    let alone = written(&run);
    let comparison = compare(before.path(), alone.path()).unwrap();
    assert!(comparison.regressions().filter(is_ours).count() > 15);
}

#[test]
fn runs_that_can_not_be_compared_are_refused() {
    let of = |experiment: &str, scale: Scale| {
        let mut run = Synthetic::new(experiment, seeded());
        run.results.scale = scale;
        written(&run)
    };
    let refused = |a: &Path, b: &Path| format!("{:#}", compare(a, b).unwrap_err());
    let (e1, e2) = (of("e1", Scale::Quick), of("e2", Scale::Quick));
    let full = of("e1", Scale::Full);
    assert!(refused(e1.path(), e2.path()).contains("the same experiments"));
    assert!(refused(e1.path(), full.path()).contains("the scales quick and full"));
    let mut other = Synthetic::new("e1", seeded());
    other.results.schema_version += 1;
    let other = written(&other);
    assert!(refused(e1.path(), other.path()).contains("version 2 of the schema"));
    assert!(refused(e1.path(), &e1.path().join("gone")).contains("can't read"));
    std::fs::write(e2.path().join("results.json"), "{").unwrap();
    assert!(refused(e1.path(), e2.path()).contains("isn't what a run wrote"));
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
