//! The committed figures, and the rule by which new ones are compared with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// By how much a path may cost more than committed before the comparison fails, and less before the
/// figures should be renewed, per cent.
pub(super) const TOLERANCE_PERCENT: f64 = 3.0;

/// What the figures are, for who opens the file.
const ABOUT: &str = "Instructions that remora spends in user space for one of each, counted by `make instructions`. \
    `make bench-update` writes them anew.";

/// Figures, and what they hold for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figures {
    /// What they are.
    about: String,
    /// What compiled the program.
    pub(super) rustc: String,
    /// How it was compiled.
    pub(super) profile: String,
    /// Instructions by path.
    pub(super) instructions: BTreeMap<String, u64>,
}

impl Figures {
    /// Figures without any path yet.
    pub(super) fn new(rustc: String, profile: String) -> Figures {
        Figures {
            about: ABOUT.to_owned(),
            rustc,
            profile,
            instructions: BTreeMap::new(),
        }
    }

    /// Reads them from a file.
    pub(super) fn read(file: &Path) -> anyhow::Result<Figures> {
        let shown = file.display();
        let remedy = "`make bench-update` writes it anew";
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("can't read the committed figures in {shown}; {remedy}"))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{shown} does not hold figures that can be read; {remedy}"))
    }

    /// Writes them to a file, a path on each line.
    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text =
            serde_json::to_string_pretty(self).context("can't put the figures into words")?;
        std::fs::write(file, text + "\n")
            .with_context(|| format!("can't write the figures to {}", file.display()))
    }

    /// Keeps the lower of its own and the other's figure of each path.
    pub(super) fn take_lower(&mut self, other: &Figures) {
        for (path, figure) in &mut self.instructions {
            let others = other.instructions.get(path).copied();
            *figure = others.unwrap_or(*figure).min(*figure);
        }
    }

    /// What these, measured now, say about the committed ones.
    pub(super) fn compare(&self, committed: &Figures, file: &Path) -> Comparison {
        let mut comparison = Comparison::new(file);
        for (label, now, then) in [
            ("compiled by", &self.rustc, &committed.rustc),
            ("profile", &self.profile, &committed.profile),
        ] {
            if now != then {
                let what = format!("they are for another build ({label}: {then}; now: {now})");
                comparison.renewals.push(what);
            }
        }
        for (path, &measured) in &self.instructions {
            match committed.instructions.get(path) {
                Some(&figure) => comparison.judge(path, figure, measured),
                None => comparison.renewals.push(format!("they lack {path}")),
            }
        }
        let is_gone = |path: &&String| !self.instructions.contains_key(*path);
        let gone = committed.instructions.keys().filter(is_gone);
        let gone = gone.map(|path| format!("nothing measures {path} any longer"));
        comparison.renewals.extend(gone);
        comparison
    }
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comparison {
    file: PathBuf,
    /// Paths that cost more than they may.
    dearer: Vec<String>,
    /// Why the figures should be renewed, although nothing is wrong.
    renewals: Vec<String>,
}

impl Comparison {
    fn new(file: &Path) -> Comparison {
        Comparison {
            file: file.to_owned(),
            dearer: Vec::new(),
            renewals: Vec::new(),
        }
    }

    fn judge(&mut self, path: &str, committed: u64, measured: u64) {
        let percent = percent_more(committed, measured);
        let what = format!("{path}: committed {committed}, measured {measured} ({percent:+.1} %)");
        if percent > TOLERANCE_PERCENT {
            self.dearer.push(what);
        } else if percent < -TOLERANCE_PERCENT {
            self.renewals.push(what);
        }
    }

    /// Why the figures should be renewed, in words; `None`: they needn't.
    pub(super) fn renewal(&self) -> Option<String> {
        if self.renewals.is_empty() {
            return None;
        }
        Some(format!(
            "the figures in {} should be renewed by `make bench-update`:\n  {}",
            self.file.display(),
            self.renewals.join("\n  ")
        ))
    }

    /// Why the comparison fails, in words; `None`: it doesn't.
    pub(super) fn failure(&self) -> Option<String> {
        if self.dearer.is_empty() {
            return None;
        }
        Some(format!(
            "more than {TOLERANCE_PERCENT} % above the instructions committed in {}:\n  {}\n\
             Find the cause and fix it, or renew the figures by `make bench-update` and say in the commit why they rose.",
            self.file.display(),
            self.dearer.join("\n  ")
        ))
    }
}

/// How much more than `committed` is `measured`, per cent.
#[allow(clippy::cast_precision_loss)]
pub(super) fn percent_more(committed: u64, measured: u64) -> f64 {
    (measured as f64 - committed as f64) * 100.0 / (committed as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(paths: &[(&str, u64)]) -> Figures {
        let mut figures = Figures::new("rustc 1.95.0".to_owned(), "lto = \"thin\"".to_owned());
        let paths = paths.iter().map(|&(path, count)| (path.to_owned(), count));
        figures.instructions = paths.collect();
        figures
    }

    fn compare(committed: &Figures, measured: &Figures) -> Comparison {
        measured.compare(committed, Path::new("results/instructions.json"))
    }

    #[test]
    fn a_path_above_the_tolerance_fails_and_is_named_with_the_remedy() {
        let committed = figures(&[("hit", 1_000), ("miss", 20_000)]);
        let failure = compare(&committed, &figures(&[("hit", 1_031), ("miss", 20_000)]))
            .failure()
            .unwrap();
        for words in [
            "results/instructions.json",
            "hit: committed 1000, measured 1031 (+3.1 %)",
            "make bench-update",
        ] {
            assert!(failure.contains(words), "{failure}");
        }
        assert!(!failure.contains("miss"), "{failure}");
    }

    #[test]
    fn only_what_is_too_much_in_each_process_fails() {
        let committed = figures(&[("hit", 1_000), ("miss", 1_000)]);
        let mut measured = figures(&[("hit", 1_040), ("miss", 1_050)]);
        measured.take_lower(&figures(&[("hit", 1_010), ("miss", 1_060)]));
        assert_eq!(measured, figures(&[("hit", 1_010), ("miss", 1_050)]));
        let failure = compare(&committed, &measured).failure().unwrap();
        assert!(
            failure.contains("miss") && !failure.contains("hit:"),
            "{failure}"
        );
    }

    #[test]
    fn a_path_within_the_tolerance_passes_without_a_word() {
        let committed = figures(&[("hit", 1_000)]);
        for measured in [970, 1_000, 1_030] {
            let comparison = compare(&committed, &figures(&[("hit", measured)]));
            assert_eq!(comparison.failure(), None, "{measured}");
            assert_eq!(comparison.renewal(), None, "{measured}");
        }
    }

    #[test]
    fn a_path_far_below_passes_and_asks_for_renewal() {
        let comparison = compare(&figures(&[("hit", 1_000)]), &figures(&[("hit", 969)]));
        assert_eq!(comparison.failure(), None);
        let renewal = comparison.renewal().unwrap();
        assert!(
            renewal.contains("hit: committed 1000, measured 969 (-3.1 %)"),
            "{renewal}"
        );
    }

    #[test]
    fn another_build_and_other_paths_ask_for_renewal() {
        let committed = figures(&[("hit", 1_000), ("gone", 1)]);
        let mut measured = figures(&[("hit", 1_000), ("new", 1)]);
        measured.rustc = "rustc 1.96.0".to_owned();
        let comparison = compare(&committed, &measured);
        assert_eq!(comparison.failure(), None);
        let renewal = comparison.renewal().unwrap();
        for words in [
            "now: rustc 1.96.0",
            "they lack new",
            "nothing measures gone",
        ] {
            assert!(renewal.contains(words), "{renewal}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_has_a_path_on_each_line() {
        let scratch = remora_testkit::scratch::Scratch::new().unwrap();
        let file = scratch.join("instructions.json");
        let written = figures(&[("hit", 3_540), ("miss", 22_900)]);
        written.write(&file).unwrap();
        assert_eq!(Figures::read(&file).unwrap(), written);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.lines().any(|line| line.trim() == "\"hit\": 3540,"),
            "{text}"
        );
    }
}
