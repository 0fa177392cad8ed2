//! Reports and comparisons of made-up runs.

use std::process::Command;

use crate::results::{Scale, State};
use crate::statistics::testing::seeded;
use remora_testkit::load::random::Random;

use super::testing::{Synthetic, everything};
use super::*;

pub(super) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub(super) fn report_of(run: &Synthetic) -> String {
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

/// The verdict on the whole run.
pub(super) fn lead(html: &str) -> &str {
    let rest = html.split("<p class=\"lead\">").nth(1).unwrap();
    rest.split("</p>").next().unwrap()
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
        "Remora pays from a hit ratio of",
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
    assert!(html.contains("<p class=\"verdict\">Remora pays from a hit ratio of"));
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
    let proxysql = run
        .results
        .cells
        .iter_mut()
        .find(|cell| cell.arm == "proxysql");
    proxysql.unwrap().repetitions[1].stale_reads = 3;
    let html = report_of(&run);
    let before_charts = html.split("<svg").next().unwrap();
    for part in [
        "incomplete: </strong>the server died",
        "The figures mean nothing",
        "Stale reads through Remora: 19</strong> of 95,000 reads checked; through ProxySQL: 3 of 40,000.",
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

/// Where a browser is at hand, a report is looked at in it: light, dark and on a phone. The
/// pictures are kept in the directory that `REMORA_LAB_PICTURES` names.
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
