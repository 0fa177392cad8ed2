//! Pseudo-random numbers that a seed repeats.

/// `SplitMix64`: small, fast and good enough to choose keys. Source: Steele, Lea, Flood, "Fast
/// splittable pseudorandom number generators", 2014.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A seed from the clock, to be printed so that a run can be repeated.
    pub fn fresh_seed() -> u64 {
        let now = std::time::SystemTime::now();
        let since = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Random(since.as_secs() ^ u64::from(since.subsec_nanos()) << 20).next()
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or_default()
    }

    /// A number from 0 up to, but not including, 1.
    #[allow(clippy::cast_precision_loss)]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Numbers below a bound of which the first are the most frequent, as with customers and products:
/// the n-th has a share in proportion to 1 / n^exponent.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// The share of each number and all before it.
    up_to: Vec<f64>,
}

impl Zipf {
    /// For numbers below `bound`.
    #[allow(clippy::cast_precision_loss)]
    pub fn new(bound: usize, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=bound.max(1))
            .map(|n| {
                sum += (n as f64).powf(-exponent);
                sum
            })
            .collect();
        for share in &mut up_to {
            *share /= sum;
        }
        Zipf { up_to }
    }

    /// The next number.
    pub fn next(&self, random: &mut Random) -> usize {
        let at = random.unit();
        self.up_to
            .partition_point(|&share| share <= at)
            .min(self.up_to.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_numbers_stay_below_their_bound() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        for _ in 0..1_000 {
            let number = a.below(10);
            assert!(number < 10);
            assert_eq!(number, b.below(10));
        }
    }

    #[test]
    fn the_first_numbers_are_the_most_frequent() {
        let (zipf, mut random) = (Zipf::new(1_000, 1.0), Random::new(1));
        let mut counts = vec![0; 1_000];
        for _ in 0..100_000 {
            counts[zipf.next(&mut random)] += 1;
        }
        assert!(counts[0] > 10_000 && counts[0] > counts[9] && counts[9] > counts[500]);
    }
}
