//! In which order is measured: within each repetition, every point through every arm in random
//! order, so that what drifts on a machine doesn't favour an arm.

use remora_testkit::load::Random;

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Its place among all, from 0.
    pub(super) number: u32,
    /// Of the point, in the plan.
    pub(super) point: usize,
    /// Of the arm, in the plan.
    pub(super) arm: usize,
}

/// All measurements in their order. The same seed gives the same order.
pub(super) fn turns(points: usize, arms: usize, repetitions: u32, seed: u64) -> Vec<Turn> {
    let mut random = Random::new(seed);
    let mut turns = Vec::new();
    for _ in 0..repetitions {
        let cell = |point| (0..arms).map(move |arm| (point, arm));
        let mut round: Vec<(usize, usize)> = (0..points).flat_map(cell).collect();
        for last in (1..round.len()).rev() {
            round.swap(last, random.below(last + 1));
        }
        for (point, arm) in round {
            let number = u32::try_from(turns.len()).unwrap_or(u32::MAX);
            turns.push(Turn { number, point, arm });
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_turn_in_each_repetition_and_a_seed_repeats_the_order() {
        let order = turns(3, 4, 5, 7);
        assert_eq!(order, turns(3, 4, 5, 7));
        assert_ne!(order, turns(3, 4, 5, 8));
        for round in order.chunks(12) {
            let mut cells: Vec<_> = round.iter().map(|turn| (turn.point, turn.arm)).collect();
            cells.sort_unstable();
            cells.dedup();
            assert_eq!(cells.len(), 12);
        }
        assert!(
            order
                .windows(2)
                .all(|pair| pair[0].number + 1 == pair[1].number)
        );
    }
}
