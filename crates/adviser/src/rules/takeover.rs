//! What Remora could answer in the server's place.

use super::percent;
use crate::reading::{NoShapes, Reading, Shape};
use crate::report::{Takeover, TakeoverSeen};

/// So many statements of either kind are named.
const NAMED_MAX: usize = 5;
/// Of a text so much is shown, characters.
const TEXT_CHARACTERS_MAX: usize = 100;

pub(super) fn takeover(reading: &Reading) -> TakeoverSeen {
    match &reading.shapes {
        Ok(shapes) if shapes.is_empty() => TakeoverSeen::Unknown(NoShapes::NothingRan),
        Ok(shapes) => TakeoverSeen::Known(of_shapes(shapes)),
        Err(why) => TakeoverSeen::Unknown(*why),
    }
}

fn of_shapes(shapes: &[Shape]) -> Takeover {
    let sum = |of: fn(&Shape) -> f64, which: &dyn Fn(&Shape) -> bool| -> f64 {
        shapes.iter().filter(|shape| which(shape)).map(of).sum()
    };
    let all = |_: &Shape| true;
    let is_keepable = |shape: &Shape| shape.is_read && shape.refusal.is_none();
    let statements = sum(|shape| shape.count, &all);
    let server_s = sum(|shape| shape.server_s, &all);
    let keepable = sum(|shape| shape.count, &is_keepable);
    let keepable_s = sum(|shape| shape.server_s, &is_keepable);
    let mut by_cost: Vec<_> = shapes.iter().collect();
    by_cost.sort_by(|a, b| b.server_s.total_cmp(&a.server_s));
    let costliest = by_cost.iter().filter(|shape| is_keepable(shape));
    let refused = by_cost.iter().filter(|shape| shape.is_read);
    Takeover {
        statements,
        server_s,
        keepable_percent: percent(keepable, statements),
        keepable_server_percent: percent(keepable_s, server_s),
        costliest: costliest
            .take(NAMED_MAX)
            .map(|shape| (shown(&shape.text), percent(shape.server_s, server_s)))
            .collect(),
        refused: refused
            .filter_map(|shape| Some((shown(&shape.text), shape.refusal.clone()?)))
            .take(NAMED_MAX)
            .collect(),
    }
}

fn shown(text: &str) -> String {
    let mut start: String = text.trim().chars().take(TEXT_CHARACTERS_MAX).collect();
    if start.len() < text.trim().len() {
        start.push('…');
    }
    start
}
