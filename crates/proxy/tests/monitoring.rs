//! The files for Grafana and Prometheus name only metrics and labels that there are.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use remora::metrics::{Kind, Metric, declared};
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

const DASHBOARD: &str = include_str!("../../../contrib/grafana/remora.json");
const ALERTS: &str = include_str!("../../../contrib/prometheus/remora-alerts.yaml");

/// Labels that Prometheus adds to each metric.
const ADDED: [&str; 2] = ["job", "instance"];

/// The metric of this name, or to which a series of this name belongs.
fn metric_of(name: &str) -> Option<&'static Metric> {
    let is_it = |metric: &&Metric| {
        let of_histogram = || {
            ["_bucket", "_sum", "_count"]
                .iter()
                .any(|end| name.strip_suffix(end) == Some(metric.name))
        };
        metric.name == name || (metric.kind == Kind::Histogram && of_histogram())
    };
    declared().iter().find(is_it)
}

/// The words of an expression that could be names, each with the character behind it, outside
/// quotes.
fn words(expression: &str) -> Vec<(&str, Option<char>)> {
    let mut words = Vec::new();
    for (at, part) in expression.split('"').enumerate() {
        if at % 2 == 1 {
            continue;
        }
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let mut rest = part;
        while let Some(begin) = rest.find(is_of_name) {
            rest = &rest[begin..];
            let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let behind = rest[end..].trim_start().chars().next();
            words.push((&rest[..end], behind));
            rest = &rest[end..];
        }
    }
    words
}

/// What is wrong with an expression, or a text with such in it.
fn check(expression: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut metrics: Vec<&Metric> = Vec::new();
    for (word, _) in words(expression) {
        if word.starts_with("remora_") {
            match metric_of(word) {
                Some(metric) => metrics.push(metric),
                None => wrong.push(format!("no metric {word}")),
            }
        }
    }
    // A label stands before a comparison within braces, or in the list of a grouping.
    for braces in between(expression, '{', '}') {
        let names = words(braces).into_iter();
        for (label, _) in names.filter(|(_, behind)| matches!(behind, Some('=' | '!'))) {
            wrong.extend(check_label(label, &metrics));
        }
    }
    for grouping in ["by (", "without (", "on ("] {
        for list in expression.split(grouping).skip(1) {
            let labels = list.split(')').next().unwrap().split(',');
            wrong.extend(labels.filter_map(|label| check_label(label.trim(), &metrics)));
        }
    }
    wrong
}

fn check_label(label: &str, metrics: &[&Metric]) -> Option<String> {
    let is_bucket = |metric: &&Metric| metric.kind == Kind::Histogram && label == "le";
    let has = |metric: &&Metric| metric.labels.contains(&label) || is_bucket(metric);
    let known = ADDED.contains(&label) || metrics.iter().any(has);
    (!known).then(|| format!("no label {label}"))
}

fn between(text: &str, open: char, close: char) -> Vec<&str> {
    let parts = text.split(open).skip(1);
    parts
        .map(|part| part.split(close).next().unwrap())
        .collect()
}

/// Every value of this name in a document.
fn values_of<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                match value.as_str().filter(|_| member == name) {
                    Some(text) => found.push(text),
                    None => values_of(value, name, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values_of(item, name, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_for_grafana_asks_for_what_there_is() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let mut expressions = Vec::new();
    values_of(&dashboard, "expr", &mut expressions);
    assert!(expressions.len() > 20, "{expressions:?}");
    for expression in expressions {
        assert_eq!(check(expression), Vec::<String>::new(), "{expression}");
    }
    // Each panel has a place and a number of its own, and asks the data source that is chosen.
    let panels = dashboard["panels"].as_array().unwrap();
    let mut numbers: Vec<u64> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(
            panel["datasource"]["uid"], "${datasource}",
            "{}",
            panel["title"]
        );
        assert!(panel["gridPos"]["w"].as_u64().unwrap() > 0);
    }
}

#[test]
fn the_alerts_ask_for_what_there_is() {
    let documents = YamlLoader::load_from_str(ALERTS).unwrap();
    let rules = documents[0]["groups"][0]["rules"].as_vec().unwrap();
    assert!(rules.len() >= 5);
    for rule in rules {
        let text = |value: &Yaml| value.as_str().map(str::to_owned);
        let name = text(&rule["alert"]).unwrap();
        let expression = text(&rule["expr"]).unwrap();
        assert_eq!(
            check(&expression),
            Vec::<String>::new(),
            "{name}: {expression}"
        );
        let annotations = &rule["annotations"];
        let summary = text(&annotations["summary"]).unwrap();
        assert!(summary.contains("{{ $labels.instance }}"), "{name}");
        let runbook = text(&annotations["runbook"]).unwrap();
        assert!(runbook.ends_with('.') && !runbook.contains("  "), "{name}");
        for word in runbook.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            assert!(
                !word.starts_with("remora_") || metric_of(word).is_some(),
                "{name}: {word}"
            );
        }
    }
}

#[test]
fn a_metric_or_label_that_there_is_not_is_noticed() {
    assert_eq!(
        check("rate(remora_hit_total[1m])"),
        ["no metric remora_hit_total"]
    );
    assert_eq!(check("remora_hits_total{limit=\"x\"}"), ["no label limit"]);
    assert_eq!(
        check("sum by (table) (remora_hits_total)"),
        ["no label table"]
    );
    assert_eq!(check("remora_hits_total{job=~\"remora_none\"}"), [""; 0]);
    assert_eq!(
        check("remora_hits_total_bucket"),
        ["no metric remora_hits_total_bucket"]
    );
}
