//! What the person who runs the tests sees.

use std::time::Duration;

use super::job::Outcome;

/// So many of the slowest tests are named.
const SLOWEST: usize = 10;

/// One job has ended.
pub(crate) fn tell_one(outcome: &Outcome, number: usize, all: usize) {
    let word = if outcome.has_passed { "ok" } else { "FAILED" };
    println!(
        "[{number:>3}/{all}] {} {:>4} s  {:>4} passed  {word}",
        outcome.title,
        outcome.took.as_secs(),
        outcome.passed
    );
    for line in &outcome.skipped {
        println!("          {line}");
    }
    if !outcome.has_passed {
        println!("--- {}", outcome.log.display());
        let said = std::fs::read(&outcome.log).unwrap_or_default();
        println!("{}", String::from_utf8_lossy(&said));
        println!("--- the end of {}", outcome.log.display());
    }
}

/// All have ended. Whether all passed.
pub(crate) fn tell(outcomes: &[Outcome], took: Duration) -> bool {
    let mut tests: Vec<(f64, String)> = outcomes
        .iter()
        .flat_map(|one| {
            let kind = one.title.split(' ').next().unwrap_or_default();
            one.tests
                .iter()
                .map(move |test| (test.seconds, format!("{kind:<14} {}", test.name)))
        })
        .collect();
    tests.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("\nthe slowest tests:");
    for (seconds, name) in tests.iter().take(SLOWEST) {
        println!("  {seconds:>6.1} s  {name}");
    }
    let failed: Vec<&Outcome> = outcomes.iter().filter(|one| !one.has_passed).collect();
    for one in &failed {
        println!("FAILED  {}", one.title);
    }
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>();
    println!("{} programs in {} s", outcomes.len(), took.as_secs());
    println!(
        "{} passed, {} failed, {} skipped",
        sum(|one| one.passed),
        sum(|one| one.failed),
        sum(|one| one.ignored)
    );
    failed.is_empty()
}
