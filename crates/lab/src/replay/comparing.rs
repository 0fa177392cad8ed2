//! Whether the targets give the same rows.
//!
//! While nothing is written, what a read gave in a target's turn must be what it gave in another's.
//! Where it isn't, both are asked again, one after the other, and the first once more: what its
//! second answer differs in, time or chance or somebody's write has changed. With writes the turns
//! can't be compared; then each different read is asked of each target after all writes.

use std::collections::{HashMap, HashSet};

use super::event::{Action, Bytes};
use super::lane::{Asker, statement_text};
use super::plan::{Plan, Step, shortened};
use super::turn::{Target, Turn};
use remora_testkit::client::ClientError;
use remora_testkit::interrupt;

/// How many different reads are asked again at most, and how many differences are shown.
const ASKED_MAX: usize = 100_000;
const EXAMPLES_MAX: usize = 5;
/// How often a read is asked again that differs only now and then.
const TRIES: u32 = 3;

/// What came of the comparison of a target with the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The target's label.
    pub label: String,
    /// Reads that were compared.
    pub compared: u64,
    /// Those that gave other rows, also when asked again.
    pub different: u64,
    /// Those that gave other rows in their turns and the same when asked again: somebody wrote
    /// meanwhile, or it was an old result.
    pub passing: u64,
    /// Those whose rows change by themselves, or could not be asked for again.
    pub unsettled: u64,
    /// Some of the different ones.
    pub examples: Vec<String>,
}

/// What makes two reads the same.
type Key = (Option<Bytes>, Bytes, Vec<u8>);

fn key(step: &Step) -> Key {
    let values = match &step.action {
        Action::Execution(execution) => [execution.types.as_slice(), &execution.values].concat(),
        _ => Vec::new(),
    };
    (
        step.schema.clone(),
        statement_text(&step.action).into(),
        values,
    )
}

/// Compares what the turns gave.
pub(super) fn compare_turns(
    plan: &Plan,
    targets: &[Target],
    turns: &[Turn],
    mut show: impl FnMut(&str),
) -> Result<Vec<Comparison>, ClientError> {
    let mut all = Vec::new();
    for (number, target) in targets.iter().enumerate().skip(1) {
        let mut comparison = Comparison {
            label: target.label.clone(),
            ..Comparison::default()
        };
        let mut doubtful: HashMap<Key, (u32, u64)> = HashMap::new();
        for turn in turns.iter().filter(|turn| turn.target == number) {
            let first = turns
                .iter()
                .find(|other| other.target == 0 && other.round == turn.round);
            let Some(first) = first else { continue };
            for (place, digest) in &turn.digests {
                let known = first
                    .digests
                    .binary_search_by_key(place, |(place, _)| *place);
                let Ok(known) = known else { continue };
                comparison.compared += 1;
                if *digest != first.digests[known].1
                    && let Some(step) = step_at(plan, *place)
                {
                    doubtful.entry(key(step)).or_insert((*place, 0)).1 += 1;
                }
            }
        }
        let mut doubtful: Vec<_> = doubtful.into_values().collect();
        doubtful.sort_unstable();
        show(&format!(
            "asking {} reads again of {}",
            doubtful.len(),
            target.label
        ));
        settle(plan, &targets[0], target, &doubtful, &mut comparison, true)?;
        all.push(comparison);
    }
    Ok(all)
}

/// Compares what each different read gives now.
pub(super) fn compare_now(
    plan: &Plan,
    targets: &[Target],
    mut show: impl FnMut(&str),
) -> Result<Vec<Comparison>, ClientError> {
    let mut known = HashSet::new();
    let mut places = Vec::new();
    for (place, step) in (0..).zip(&plan.steps) {
        if step.is_comparable && places.len() < ASKED_MAX && known.insert(key(step)) {
            places.push((place, 1));
        }
    }
    let mut all = Vec::new();
    for target in targets.iter().skip(1) {
        show(&format!(
            "asking {} reads of {}",
            places.len(),
            target.label
        ));
        let mut comparison = Comparison {
            label: target.label.clone(),
            compared: places.len() as u64,
            ..Comparison::default()
        };
        settle(plan, &targets[0], target, &places, &mut comparison, false)?;
        all.push(comparison);
    }
    Ok(all)
}

fn step_at(plan: &Plan, place: u32) -> Option<&Step> {
    plan.steps.get(usize::try_from(place).ok()?)
}

/// What asking again has told of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Different,
    Unsettled,
}

/// Asks both for each read. `have_differed`: in the turns they gave different rows.
fn settle(
    plan: &Plan,
    first: &Target,
    other: &Target,
    places: &[(u32, u64)],
    comparison: &mut Comparison,
    have_differed: bool,
) -> Result<(), ClientError> {
    if places.is_empty() {
        return Ok(());
    }
    let (mut a, mut b) = (
        Asker::connect(&first.connect)?,
        Asker::connect(&other.connect)?,
    );
    for (asked, (place, count)) in places.iter().enumerate() {
        let Some(step) = step_at(plan, *place) else {
            continue;
        };
        if asked >= ASKED_MAX || interrupt::is_set() {
            comparison.unsettled += count;
            continue;
        }
        match verdict(&mut a, &mut b, step)? {
            Verdict::Different => {
                comparison.different += count;
                if comparison.examples.len() < EXAMPLES_MAX {
                    comparison
                        .examples
                        .push(shortened(statement_text(&step.action)));
                }
            }
            Verdict::Same if have_differed => comparison.passing += count,
            Verdict::Same => {}
            Verdict::Unsettled => comparison.unsettled += count,
        }
    }
    Ok(())
}

fn verdict(a: &mut Asker, b: &mut Asker, step: &Step) -> Result<Verdict, ClientError> {
    for _ in 0..TRIES {
        let (Some(before), Some(theirs), Some(after)) =
            (asked(a, step)?, asked(b, step)?, asked(a, step)?)
        else {
            return Ok(Verdict::Unsettled);
        };
        if before != after {
            continue;
        }
        return Ok(if theirs == before {
            Verdict::Same
        } else {
            Verdict::Different
        });
    }
    Ok(Verdict::Unsettled)
}

/// What a read's rows come to; `None` if the server answers with an error.
fn asked(asker: &mut Asker, step: &Step) -> Result<Option<u64>, ClientError> {
    match asker.ask(step) {
        Ok(digest) => Ok(Some(digest)),
        Err(ClientError::Server(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
