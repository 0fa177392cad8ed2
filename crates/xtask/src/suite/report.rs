//! What the person who runs the tests sees.

use std::time::Duration;

use super::job::Outcome;

/// So many of the slowest tests are named.
const SLOWEST: usize = 10;
/// So many lines of each panic are said again at the end.
const PANIC_LINES: usize = 8;
/// So many of the last lines are said again of what failed without a panic, such as a command.
const LAST_LINES: usize = 20;

/// One job has ended.
pub(crate) fn tell_one(outcome: &Outcome, number: usize, all: usize) {
    let word = if outcome.has_passed { "ok" } else { "FAILED" };
    println!(
        "[{number:>3}/{all}] {} {:>4} s, {:>4} s of processor time  {:>4} passed  {word}",
        outcome.title,
        outcome.took.as_secs(),
        outcome.worked.as_secs(),
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
        let said = std::fs::read(&one.log).unwrap_or_default();
        for line in reasons(&String::from_utf8_lossy(&said)) {
            println!("        {line}");
        }
    }
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>();
    let worked: Duration = outcomes.iter().map(|one| one.worked).sum();
    println!(
        "{} programs in {} s, with {} s of processor time",
        outcomes.len(),
        took.as_secs(),
        worked.as_secs()
    );
    println!(
        "{} passed, {} failed, {} skipped",
        sum(|one| one.passed),
        sum(|one| one.failed),
        sum(|one| one.ignored)
    );
    failed.is_empty()
}

/// Why a job failed, as far as its output tells: the end of a long log is what is read first, and
/// sometimes all that is kept.
fn reasons(said: &str) -> Vec<&str> {
    let told = panics(said);
    if !told.is_empty() {
        return told;
    }
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].to_vec()
}

/// What the panics in a program's output said, without the traces.
fn panics(said: &str) -> Vec<&str> {
    let mut told = Vec::new();
    let mut left = 0;
    for line in said.lines() {
        if line.starts_with("thread '") && line.contains(" panicked at ") {
            left = PANIC_LINES;
        } else if line.is_empty() || line.starts_with("stack backtrace:") {
            left = 0;
        }
        if left > 0 {
            told.push(line);
            left -= 1;
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_found_with_what_they_say_and_without_their_traces() {
        let said = "test a ... FAILED <1.397s>\n\n\
            ---- a stdout ----\n\n\
            thread 'a' (6129) panicked at tests/a.rs:255:5:\n\
            assertion `left == right` failed\n  left: 91\n right: 90\n\
            stack backtrace:\n   0: core::panicking::panic_fmt\n\n\
            thread 'b' panicked at tests/b.rs:1:1:\nno\n\nfailures:\n    a\n";
        assert_eq!(
            panics(said),
            [
                "thread 'a' (6129) panicked at tests/a.rs:255:5:",
                "assertion `left == right` failed",
                "  left: 91",
                " right: 90",
                "thread 'b' panicked at tests/b.rs:1:1:",
                "no",
            ]
        );
    }

    #[test]
    fn what_failed_without_a_panic_is_told_by_its_last_lines() {
        let said = format!("{}==> installing\n\nno such host\n", "x\n".repeat(100));
        let told = reasons(&said);
        assert_eq!(told.len(), LAST_LINES);
        assert_eq!(told[LAST_LINES - 2..], ["==> installing", "no such host"]);
        assert_eq!(reasons("it died"), ["it died"]);
    }

    #[test]
    fn a_long_message_is_cut() {
        let said = format!("thread 'a' panicked at a.rs:1:1:\n{}", "x\n".repeat(100));
        assert_eq!(panics(&said).len(), PANIC_LINES);
    }
}
