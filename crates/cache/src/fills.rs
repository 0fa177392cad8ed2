//! At most one fill per key.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex};

use crate::reason::FillRefused;
use crate::store::DigestHasher;
use crate::sync::lock;

const SHARDS: usize = 64;

type FillShard = Mutex<HashSet<u128, BuildHasherDefault<DigestHasher>>>;

/// The digests of the keys that are being filled, so that one of many clients that miss the same
/// key at once fills it.
///
/// Bounded: at most `fills_max`, rounded up to a multiple of 64 and split evenly over 64 shards,
/// each behind its own mutex; a fill takes it twice, a hit never.
pub struct FillsInFlight {
    shards: Box<[FillShard]>,
    fills_per_shard_max: usize,
}

/// The right to fill one key. Its end, also by a panic or a dropped connection, is the fill's end.
#[must_use = "dropping the permit ends the fill"]
pub struct FillPermit {
    fills: Arc<FillsInFlight>,
    digest: u128,
}

impl FillsInFlight {
    /// Nothing in flight, at most about `fills_max` later.
    pub fn new(fills_max: usize) -> Arc<FillsInFlight> {
        Arc::new(FillsInFlight {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            fills_per_shard_max: fills_max.div_ceil(SHARDS),
        })
    }

    /// Begins a fill.
    ///
    /// # Errors
    /// Another fill of this key is in flight, or too many others are. Neither is a fault: the query
    /// goes to the server, and its result isn't stored.
    pub fn begin(self: &Arc<Self>, digest: u128) -> Result<FillPermit, FillRefused> {
        let mut shard = lock(self.shard(digest));
        if shard.contains(&digest) {
            return Err(FillRefused::InFlight);
        }
        if shard.len() >= self.fills_per_shard_max {
            return Err(FillRefused::Full);
        }
        shard.insert(digest);
        Ok(FillPermit {
            fills: Arc::clone(self),
            digest,
        })
    }

    /// How many fills are in flight.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether none is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[allow(clippy::cast_possible_truncation)]
    fn shard(&self, digest: u128) -> &FillShard {
        &self.shards[(digest >> 64) as usize % SHARDS]
    }
}

impl Drop for FillPermit {
    fn drop(&mut self) {
        lock(self.fills.shard(self.digest)).remove(&self.digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fill_per_key_until_its_permit_ends() {
        let fills = FillsInFlight::new(1000);
        let permit = fills.begin(7).unwrap();
        assert_eq!(fills.begin(7).err(), Some(FillRefused::InFlight));
        let other = fills.begin(8).unwrap();
        assert_eq!(fills.len(), 2);
        drop(permit);
        assert!(fills.begin(7).is_ok());
        drop(other);
        assert!(fills.is_empty());
    }

    #[test]
    fn fills_are_bounded() {
        let fills = FillsInFlight::new(64);
        let permits: Vec<_> = (0..10_000)
            .filter_map(|n| fills.begin(n << 64 | n).ok())
            .collect();
        assert_eq!(permits.len(), 64);
        assert_eq!(fills.begin(u128::MAX).err(), Some(FillRefused::Full));
    }
}
