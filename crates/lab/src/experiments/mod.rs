//! The published experiments, side by side: `remora-lab run`.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan` | what an experiment is: data, loads, arms |
//! | `command` | `remora-lab run` and `remora-lab list` |
//! | `run` | from a plan to a directory of results, and on after an interruption |
//! | `choice` | which part of a plan is wanted |
//! | `directory` | that directory |
//! | `schedule` | in which order is measured |
//! | `data` | contents of servers, filled once |
//! | `stage` | the servers of a run |
//! | `arms` | the ways to a server and what they count |
//! | `measure` | one measurement |
//! | `checker`, `trickle`, `open_loop` | what goes on beside and after the load |
//! | `machine` | where it runs |
//! | `scripts` | the lab's own scripts for sysbench |
//! | `sbtest` | sysbench's tables |
//! | `filling` | statements that fill the tables of the lab's own workloads |
//! | `e1` …, `break_even`, `social` | the experiments |

mod arms;
pub mod break_even;
mod checker;
mod choice;
mod command;
mod data;
mod directory;
mod e1;
pub mod e2;
mod e4;
mod e5;
pub mod e8;
pub mod e9;
mod filling;
pub(crate) mod machine;
mod measure;
mod open_loop;
pub mod plan;
mod run;
mod sbtest;
mod schedule;
mod scripts;
pub mod social;
mod stage;
mod trickle;

pub use command::{RunOptions, list, run};
pub use run::{Request, measure_into};

use plan::Experiment;

/// All experiments, in the order in which `all` runs them.
pub fn all() -> [&'static dyn Experiment; 8] {
    [
        &e1::E1,
        &e2::E2,
        &e4::E4,
        &e5::E5,
        &e8::E8,
        &e9::E9,
        &break_even::BreakEven,
        &social::Social,
    ]
}

/// The experiment with this name.
pub fn find(id: &str) -> Option<&'static dyn Experiment> {
    all()
        .into_iter()
        .find(|experiment| experiment.about().id == id)
}

#[cfg(test)]
mod tests {
    use super::all;
    use super::plan::Experiment;
    use crate::results::{Median, Place, Scale};

    fn assert_is_planned(experiment: &dyn Experiment, median: &Median) {
        let plan = experiment.plan(Scale::Full);
        let id = experiment.about().id;
        let arms: Vec<String> = plan.arms.iter().map(|arm| arm.label()).collect();
        assert!(arms.contains(&median.arm), "{id}: {median:?}");
        let is_there = plan.points.iter().any(|point| {
            let is_at = match (median.place, &point.x) {
                (Place::At(place), Some(x)) => x.value.total_cmp(&place).is_eq(),
                (Place::At(_), None) => false,
                (Place::Last | Place::Highest, _) => true,
            };
            point.workload == median.workload && is_at
        });
        assert!(is_there, "{id}: {median:?}");
    }

    #[test]
    fn published_ratios_have_their_like_at_full_scale() {
        let mut ratios = 0;
        for experiment in all() {
            let about = experiment.about();
            for published in &about.published {
                let Some(ratio) = &published.ratio else {
                    continue;
                };
                ratios += 1;
                // The same may be published in several units.
                let mut others = about.published.iter();
                let has_below =
                    others.any(|other| other.what == ratio.to && other.unit == published.unit);
                assert!(has_below, "{published:?}");
                for quotient in [&ratio.here, &ratio.remora] {
                    assert_is_planned(experiment, &quotient.above);
                    assert_is_planned(experiment, &quotient.below);
                }
                assert_eq!(ratio.remora.above.arm, "remora");
            }
        }
        assert!(ratios >= 11, "{ratios}");
    }
}
