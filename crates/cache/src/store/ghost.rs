//! Which results were evicted while they were new, or not taken in because there was no room.

/// Fingerprints of digests in buckets of four; within a bucket the oldest gives way. A false match
/// only puts a new entry into the main queue.
///
/// It is empty until something is evicted, and then has about one fingerprint for each place in the
/// queues.
#[derive(Default)]
pub(crate) struct Ghost {
    buckets: Box<[[u32; 4]]>,
}

/// Bytes of one bucket.
const BUCKET: usize = size_of::<[u32; 4]>();

impl Ghost {
    /// The bytes that a ghost for so many entries takes.
    pub(crate) const fn bytes_for(entries: usize) -> usize {
        entries.div_ceil(4) * BUCKET
    }

    pub(crate) fn bytes(&self) -> usize {
        self.buckets.len() * BUCKET
    }

    /// Takes a new size, and forgets what it remembered.
    pub(crate) fn resize_for(&mut self, entries: usize) {
        self.buckets = vec![[0; 4]; Ghost::bytes_for(entries) / BUCKET].into_boxed_slice();
    }

    pub(crate) fn remember(&mut self, digest: u128) {
        let (bucket, fingerprint) = self.find(digest);
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            bucket.rotate_right(1);
            bucket[0] = fingerprint;
        }
    }

    /// Whether it is remembered; if not, it is from now on.
    pub(crate) fn recall(&mut self, digest: u128) -> bool {
        let (bucket, fingerprint) = self.find(digest);
        let Some(bucket) = self.buckets.get_mut(bucket) else {
            // Nothing can be remembered yet.
            return true;
        };
        let is_known = bucket.contains(&fingerprint);
        if !is_known {
            bucket.rotate_right(1);
            bucket[0] = fingerprint;
        }
        is_known
    }

    /// Whether it was remembered; it is then no longer.
    pub(crate) fn take(&mut self, digest: u128) -> bool {
        let (bucket, fingerprint) = self.find(digest);
        let Some(bucket) = self.buckets.get_mut(bucket) else {
            return false;
        };
        let found = bucket.iter_mut().find(|slot| **slot == fingerprint);
        found.map(|slot| *slot = 0).is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.buckets.fill([0; 4]);
    }

    /// The low half of the digest chooses the bucket, of the high half 32 bits are the fingerprint.
    /// Zero is the empty slot.
    #[allow(clippy::cast_possible_truncation)]
    fn find(&self, digest: u128) -> (usize, u32) {
        let bucket = (digest as u64) % (self.buckets.len() as u64).max(1);
        (bucket as usize, ((digest >> 64) as u32).max(1))
    }
}
