//! Which results were evicted while they were new.

/// Fingerprints of digests in buckets of four; within a bucket the oldest gives way. A false match
/// only puts a new entry into the main queue.
pub(crate) struct Ghost {
    buckets: Vec<[u32; 4]>,
}

impl Ghost {
    /// About `bytes` bytes of fingerprints, at least one bucket.
    pub(crate) fn new(bytes: usize) -> Ghost {
        let buckets = (bytes / size_of::<[u32; 4]>()).max(1);
        Ghost {
            buckets: vec![[0; 4]; buckets],
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<[u32; 4]>()
    }

    pub(crate) fn remember(&mut self, digest: u128) {
        let (bucket, fingerprint) = self.find(digest);
        let bucket = &mut self.buckets[bucket];
        bucket.rotate_right(1);
        bucket[0] = fingerprint;
    }

    /// Whether it was remembered; it is then no longer.
    pub(crate) fn take(&mut self, digest: u128) -> bool {
        let (bucket, fingerprint) = self.find(digest);
        let found = self.buckets[bucket]
            .iter_mut()
            .find(|slot| **slot == fingerprint);
        found.map(|slot| *slot = 0).is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.buckets.fill([0; 4]);
    }

    /// Bits of the digest that neither choose the shard nor the fingerprint choose the bucket. Zero is
    /// the empty slot.
    #[allow(clippy::cast_possible_truncation)]
    fn find(&self, digest: u128) -> (usize, u32) {
        let bucket = (digest as u64) % self.buckets.len() as u64;
        (bucket as usize, ((digest >> 64) as u32).max(1))
    }
}
