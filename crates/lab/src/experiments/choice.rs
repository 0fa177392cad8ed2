//! Which part of a plan is wanted.

use anyhow::bail;

use super::arms::why_left_out;
use super::plan::{Arm, Plan, Point};
use super::run::Request;

/// Leaves in the plan the arms that are wanted and can be measured; gives those that can't, and
/// why.
pub(super) fn arms(plan: &mut Plan, request: &Request) -> anyhow::Result<Vec<String>> {
    let labels: Vec<String> = plan.arms.iter().map(|arm| arm.label()).collect();
    for wanted in &request.arms {
        if !labels
            .iter()
            .any(|label| label.starts_with(wanted.as_str()))
        {
            bail!(
                "{} has no arm {wanted}; it has {}",
                request.experiment.about().id,
                labels.join(", ")
            );
        }
    }
    let is_wanted = |arm: &Arm| {
        let label = arm.label();
        request.arms.is_empty() || request.arms.iter().any(|a| label.starts_with(a.as_str()))
    };
    plan.arms.retain(is_wanted);
    let mut left_out = Vec::new();
    plan.arms.retain(|&arm| {
        let why = why_left_out(arm, request.kind);
        left_out.extend(why.iter().map(|why| format!("{}: {why}", arm.label())));
        why.is_none()
    });
    if plan.arms.is_empty() {
        bail!("no arm is left to measure: {}", left_out.join("; "));
    }
    Ok(left_out)
}

/// Leaves in the plan the points that are wanted, and measures them as often as wanted.
pub(super) fn points(plan: &mut Plan, request: &Request) -> anyhow::Result<()> {
    let is_at = |point: &Point, wanted: f64| {
        point
            .x
            .as_ref()
            .is_some_and(|x| x.value.total_cmp(&wanted).is_eq())
    };
    for &wanted in &request.at {
        if !plan.points.iter().any(|point| is_at(point, wanted)) {
            let mut places: Vec<f64> = plan
                .points
                .iter()
                .filter_map(|point| point.x.as_ref().map(|x| x.value))
                .collect();
            places.sort_by(f64::total_cmp);
            places.dedup();
            let places: Vec<String> = places.iter().map(f64::to_string).collect();
            bail!(
                "{} measures nothing at {wanted}; its places are {}",
                request.experiment.about().id,
                places.join(", ")
            );
        }
    }
    if !request.at.is_empty() {
        let is_wanted = |point: &Point| request.at.iter().any(|&wanted| is_at(point, wanted));
        plan.points.retain(is_wanted);
    }
    plan.pace.repetitions = request.repetitions.unwrap_or(plan.pace.repetitions);
    Ok(())
}

/// What is measured otherwise than the plan says.
pub(super) fn changed(request: &Request) -> Vec<String> {
    let mut changed = Vec::new();
    if !request.at.is_empty() {
        let places: Vec<String> = request.at.iter().map(f64::to_string).collect();
        changed.push(format!("only at {}", places.join(" and ")));
    }
    changed.extend(
        request
            .repetitions
            .map(|count| format!("{count} repetitions")),
    );
    changed
}
