//! A stored result, in one allocation.
//!
//! An entry is a small header and its payload: the tags, the statement's text and the response, one
//! after the other. Both live in the same allocation as the reference counts, so that a look-up
//! touches one run of memory. Without `unsafe` that takes a payload whose length is known to the
//! compiler: there is one array length per size class of the allocator, and the finished entry is
//! turned into one with a payload of any form. A payload that would not fit into an allocation of
//! [`INLINE_ALLOCATION_MAX`] has its own.

use std::mem::{offset_of, size_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::key::{KeyRef, Scope};
use crate::ledger::Ledger;
use crate::position::Position;
use crate::reason::NotStored;
use crate::tag::Tag;
use crate::timeline::AsOf;

/// A result to be stored.
#[derive(Copy, Clone, Debug)]
pub struct NewEntry<'a> {
    /// What it will be looked up by.
    pub key: KeyRef<'a>,
    /// Everything that it depends on; at most 255 tags.
    pub tags: &'a [Tag],
    /// What [`crate::Timeline::as_of`] gave before the query was sent.
    pub as_of: AsOf,
    /// The response as it will be served.
    pub response: &'a [u8],
    /// What whoever stores it wants to know of it when it is found; it has no other meaning.
    pub label: u32,
    /// What [`crate::Store::epoch`] gave before it was decided to store it.
    pub epoch: u64,
    /// From when on it may not be served any more, whatever the timeline says; by the clock whose
    /// time the caller gives to [`Entry::has_expired`], milliseconds.
    pub expires_at_ms: Option<u64>,
}

/// The form of an entry's payload.
pub trait Payload: Send + Sync {
    /// Tags, text and response, perhaps the time of its expiry, and perhaps some zeros.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> Payload for [u8; N] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Payload for Box<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A stored result. The type parameter is of no concern outside this crate.
pub struct Entry<P: ?Sized = dyn Payload> {
    position: Position,
    /// Where the entry's bytes are accounted until they are freed.
    ledger: Arc<Ledger>,

    /// The scope's number, its upper bits in `scope_high`.
    scope_low: u32,
    generation: u32,
    /// The length of the text, above it whether it expires, above that the number of tags.
    text_len_and_tag_count: u32,
    response_len: u32,
    /// Where the eviction policy keeps it. Written and read under the policy's lock only.
    place: AtomicU32,
    /// What whoever stored it wants to know.
    label: u32,
    scope_high: u8,
    /// Asked for since the eviction hand last passed: the only thing that a hit may write.
    visited: AtomicBool,
    payload: P,
}

/// Two reference counts before the value that an `Arc` points to.
const ARC_COUNTS: usize = 2 * size_of::<usize>();
/// From the beginning of an entry's allocation to its payload.
const HEADER: usize = ARC_COUNTS + offset_of!(Entry<[u8; 0]>, payload);
/// The whole allocation of an entry whose payload is elsewhere.
const SPILLED_ALLOCATION: usize = ARC_COUNTS + size_of::<Entry<Box<[u8]>>>();
/// What remains free in an allocation with alignment 8: mimalloc, asked for an alignment, takes the
/// class that holds the size plus the alignment less one.
const ALIGNMENT_LOSS: usize = 8;
/// The smallest allocation of an entry.
const INLINE_ALLOCATION_MIN: usize = 80;
/// The largest allocation that holds an entry with its payload.
const INLINE_ALLOCATION_MAX: usize = 4096;
/// An entry in the map: digest and pointer, in an allocation of its own.
const MAP_ENTRY: usize = 32;
/// Bits of the header that hold the length of the text.
const TEXT_LEN_BITS: u32 = 23;
/// The longest text.
const TEXT_LEN_MAX: u32 = (1 << TEXT_LEN_BITS) - 1;
/// The bit above it: the payload ends with the time of the entry's expiry.
const EXPIRES: u32 = 1 << TEXT_LEN_BITS;
/// Where the number of tags begins.
const TAG_COUNT_SHIFT: u32 = TEXT_LEN_BITS + 1;
/// Bytes of the time of an entry's expiry.
const EXPIRY: usize = size_of::<u64>();
/// Bytes of one tag.
const TAG: usize = size_of::<u64>();

const _: () = assert!(size_of::<(u128, Arc<Entry>)>() == MAP_ENTRY);

/// Calls `$build` with the payload length that fills the smallest allocation of at least `$bytes`
/// bytes.
macro_rules! in_size_class {
    ($bytes:expr, $build:ident $arguments:tt, else $spilled:expr, $($class:literal)+) => {
        match $bytes {
            $(bytes if bytes <= $class - ALIGNMENT_LOSS => $build::<{ $class - ALIGNMENT_LOSS - HEADER }> $arguments,)+
            _ => $spilled,
        }
    };
}

impl Entry {
    /// Makes the entry. Its cost has been reserved in `ledger` by the caller; from here on the
    /// entry gives it back when it is freed.
    pub(crate) fn new(new: &NewEntry<'_>, lengths: Lengths, ledger: Arc<Ledger>) -> Arc<Entry> {
        in_size_class!(
            HEADER + lengths.payload(),
            inline(new, lengths, ledger),
            else spilled(new, lengths, ledger),
            80 96 112 128 160 192 224 256 320 384 448 512 640 768 896 1024 1280 1536 1792 2048
            2560 3072 3584 4096
        )
    }

    /// The scope of its key.
    pub fn scope(&self) -> Scope {
        Scope::from_parts(self.scope_low, self.scope_high)
    }

    /// The text of its key.
    pub fn text(&self) -> &[u8] {
        let begin = self.tags_len();
        &self.bytes()[begin..begin + self.text_len()]
    }

    /// Its key.
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef {
            scope: self.scope(),
            text: self.text(),
        }
    }

    /// What it depends on.
    pub fn tags(&self) -> Tags<'_> {
        Tags(&self.bytes()[..self.tags_len()])
    }

    /// Since when it is known to be right.
    pub fn as_of(&self) -> AsOf {
        AsOf::from_parts(self.generation, self.position)
    }

    /// The response as it was stored.
    pub fn response(&self) -> &[u8] {
        let begin = self.tags_len() + self.text_len();
        &self.bytes()[begin..begin + self.response_len as usize]
    }

    /// What was given with it.
    pub fn label(&self) -> u32 {
        self.label
    }

    /// From when on it may not be served any more, if there is such a time, milliseconds.
    pub fn expires_at_ms(&self) -> Option<u64> {
        if self.text_len_and_tag_count & EXPIRES == 0 {
            return None;
        }
        let begin = self.tags_len() + self.text_len() + self.response_len as usize;
        let bytes = self.bytes().get(begin..)?.first_chunk::<EXPIRY>()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Whether it may not be served any more at this time.
    #[inline]
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms().is_some_and(|end| now_ms >= end)
    }

    /// Whether this is the result for exactly this key.
    pub(crate) fn answers(&self, key: &KeyRef<'_>) -> bool {
        self.scope() == key.scope && self.text() == key.text
    }

    /// Notes that it was asked for. Writes only if that isn't noted yet, so that hits on the same
    /// entry share its cache line.
    #[inline]
    pub(crate) fn mark_visited(&self) {
        if !self.visited.load(Ordering::Relaxed) {
            self.visited.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was asked for since the last call.
    pub(crate) fn take_visited(&self) -> bool {
        self.visited.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn place(&self) -> u32 {
        self.place.load(Ordering::Relaxed)
    }

    pub(crate) fn set_place(&self, place: u32) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Whether it was asked for since the eviction hand last passed it, or since it was stored.
    pub fn was_asked_for(&self) -> bool {
        self.visited.load(Ordering::Relaxed)
    }

    /// The bytes that its ledger accounts for it.
    pub fn cost(&self) -> usize {
        self.lengths().cost()
    }

    fn tags_len(&self) -> usize {
        (self.text_len_and_tag_count >> TAG_COUNT_SHIFT) as usize * TAG
    }

    fn text_len(&self) -> usize {
        (self.text_len_and_tag_count & TEXT_LEN_MAX) as usize
    }

    fn bytes(&self) -> &[u8] {
        self.payload.bytes()
    }
}

impl<P: ?Sized> Entry<P> {
    fn lengths(&self) -> Lengths {
        Lengths {
            // The upper bits, which are exactly those of the type.
            #[allow(clippy::cast_possible_truncation)]
            tags: (self.text_len_and_tag_count >> TAG_COUNT_SHIFT) as u8,
            expires: self.text_len_and_tag_count & EXPIRES != 0,
            text: self.text_len_and_tag_count & TEXT_LEN_MAX,
            response: self.response_len,
        }
    }
}

impl<P: ?Sized> Drop for Entry<P> {
    fn drop(&mut self) {
        self.ledger.give_back(self.lengths().cost());
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("scope", &self.scope())
            .field("text", &String::from_utf8_lossy(self.text()))
            .field("tags", &self.tags().len())
            .field("as_of", &self.as_of())
            .field("response_bytes", &self.response_len)
            .finish()
    }
}

/// The tags of an entry.
#[derive(Clone, Debug)]
pub struct Tags<'a>(&'a [u8]);

impl Iterator for Tags<'_> {
    type Item = Tag;

    #[inline]
    fn next(&mut self) -> Option<Tag> {
        let (first, rest) = self.0.split_first_chunk::<TAG>()?;
        self.0 = rest;
        Some(Tag::from_bits(u64::from_le_bytes(*first)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0.len() / TAG;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Tags<'_> {}

/// The lengths of an entry's parts, known to fit its header.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Lengths {
    tags: u8,
    expires: bool,
    text: u32,
    response: u32,
}

impl Lengths {
    /// The lengths of a result to be stored.
    pub(crate) fn of(new: &NewEntry<'_>) -> Result<Lengths, NotStored> {
        Ok(Lengths {
            tags: u8::try_from(new.tags.len()).map_err(|_| NotStored::TooManyTags)?,
            expires: new.expires_at_ms.is_some(),
            text: u32::try_from(new.key.text.len())
                .ok()
                .filter(|length| *length <= TEXT_LEN_MAX)
                .ok_or(NotStored::TextTooLong)?,
            response: u32::try_from(new.response.len()).map_err(|_| NotStored::TooLarge)?,
        })
    }

    fn payload(self) -> usize {
        let expiry = usize::from(self.expires) * EXPIRY;
        usize::from(self.tags) * TAG + self.text as usize + self.response as usize + expiry
    }

    /// What the entry takes of the allocator, with its entry in the map.
    pub(crate) fn cost(self) -> usize {
        let inline = HEADER + self.payload() + ALIGNMENT_LOSS;
        if inline <= INLINE_ALLOCATION_MAX {
            return allocation_of(inline.max(INLINE_ALLOCATION_MIN)) + MAP_ENTRY;
        }
        allocation_of(SPILLED_ALLOCATION + ALIGNMENT_LOSS)
            + allocation_of(self.payload())
            + MAP_ENTRY
    }
}

/// The size class of mimalloc, the product's allocator, that holds `bytes`: four classes to each
/// power of two up to 128 KiB, then whole slices of 64 KiB.
fn allocation_of(bytes: usize) -> usize {
    const SLICE: usize = 64 * 1024;
    if bytes <= 64 {
        bytes.next_multiple_of(16)
    } else if bytes <= 2 * SLICE {
        // Classes are a quarter of the power of two below them apart.
        let step = 1 << ((bytes - 1).ilog2() - 2);
        bytes.next_multiple_of(step)
    } else {
        bytes.next_multiple_of(SLICE)
    }
}

fn inline<const N: usize>(new: &NewEntry<'_>, lengths: Lengths, ledger: Arc<Ledger>) -> Arc<Entry> {
    let mut payload = [0; N];
    write_payload(new, &mut payload);
    assemble(new, lengths, ledger, payload)
}

fn spilled(new: &NewEntry<'_>, lengths: Lengths, ledger: Arc<Ledger>) -> Arc<Entry> {
    // Not zeroed first: such a payload may be large.
    let mut bytes = Vec::with_capacity(lengths.payload());
    bytes.extend(new.tags.iter().flat_map(|tag| tag.to_bits().to_le_bytes()));
    bytes.extend_from_slice(new.key.text);
    bytes.extend_from_slice(new.response);
    bytes.extend(new.expires_at_ms.iter().flat_map(|end| end.to_le_bytes()));
    assemble(new, lengths, ledger, bytes.into_boxed_slice())
}

fn assemble<P: Payload + 'static>(
    new: &NewEntry<'_>,
    lengths: Lengths,
    ledger: Arc<Ledger>,
    payload: P,
) -> Arc<Entry> {
    let (scope_low, scope_high) = new.key.scope.parts();
    Arc::new(Entry {
        position: new.as_of.position(),
        ledger,
        scope_low,
        generation: new.as_of.generation(),
        text_len_and_tag_count: u32::from(lengths.tags) << TAG_COUNT_SHIFT
            | if lengths.expires { EXPIRES } else { 0 }
            | lengths.text,
        response_len: lengths.response,
        place: AtomicU32::new(0),
        label: new.label,
        scope_high,
        visited: AtomicBool::new(false),
        payload,
    })
}

/// Tags, text, response, expiry; the rest of the payload stays zero.
fn write_payload(new: &NewEntry<'_>, payload: &mut [u8]) {
    let (tags, rest) = payload.split_at_mut(new.tags.len() * TAG);
    for (bytes, tag) in tags.chunks_exact_mut(TAG).zip(new.tags) {
        bytes.copy_from_slice(&tag.to_bits().to_le_bytes());
    }
    let (text, rest) = rest.split_at_mut(new.key.text.len());
    text.copy_from_slice(new.key.text);
    let (response, rest) = rest.split_at_mut(new.response.len());
    response.copy_from_slice(new.response);
    if let Some(end) = new.expires_at_ms {
        rest[..EXPIRY].copy_from_slice(&end.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With bits in both parts of the header that hold it.
    const SCOPE: Scope = Scope::new(0x12_3456_789A).unwrap();

    fn entry(text: &[u8], tags: &[Tag], response: &[u8]) -> Arc<Entry> {
        entry_until(text, tags, response, None)
    }

    fn entry_until(
        text: &[u8],
        tags: &[Tag],
        response: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Arc<Entry> {
        let key = KeyRef { scope: SCOPE, text };
        let as_of = AsOf::from_parts(9, Position::new(1, 2).unwrap());
        let new = NewEntry {
            key,
            tags,
            as_of,
            response,
            label: 0,
            epoch: 0,
            expires_at_ms,
        };
        let lengths = Lengths::of(&new).unwrap();
        let ledger = Arc::new(Ledger::new(usize::MAX));
        assert!(ledger.try_take(lengths.cost()));
        Entry::new(&new, lengths, ledger)
    }

    #[test]
    fn an_entry_gives_back_what_it_was_made_of() {
        let tags: Vec<Tag> = (0..255).map(Tag::from_bits).collect();
        for length in [
            0, 1, 10, 100, 1000, 3000, 4000, 4090, 5000, 100_000, 1_000_000,
        ] {
            for tag_count in [0, 1, 2, 255] {
                let response: Vec<u8> = (0..length).map(|n: usize| n.to_le_bytes()[0]).collect();
                let entry = entry(b"SELECT 1", &tags[..tag_count], &response);
                assert_eq!(entry.text(), b"SELECT 1");
                assert_eq!(entry.tags().collect::<Vec<_>>(), tags[..tag_count]);
                assert_eq!(entry.response(), response);
                assert_eq!(entry.scope(), SCOPE);
                assert_eq!(
                    entry.as_of(),
                    AsOf::from_parts(9, Position::new(1, 2).unwrap())
                );
            }
        }
    }

    #[test]
    fn an_entry_that_expires_is_as_any_other_and_knows_when() {
        let tags: Vec<Tag> = (0..255).map(Tag::from_bits).collect();
        for length in [0, 1, 100, 3000, 3990, 4000, 4090, 100_000] {
            for tag_count in [0, 3, 255] {
                let response = vec![7; length];
                let tags = &tags[..tag_count];
                let entry = entry_until(b"SELECT 1", tags, &response, Some(1_000));
                assert_eq!(entry.text(), b"SELECT 1");
                assert!(entry.tags().eq(tags.iter().copied()));
                assert_eq!(entry.response(), response);
                assert_eq!(entry.expires_at_ms(), Some(1_000));
                assert!(!entry.has_expired(999) && entry.has_expired(1_000));
                let longer = entry_until(b"SELECT 1", tags, &vec![7; length + EXPIRY], None);
                assert_eq!(entry.cost(), longer.cost());
                assert!(!longer.has_expired(u64::MAX));
            }
        }
    }

    #[test]
    fn a_text_that_the_header_has_no_length_for_is_refused() {
        let lengths_of = |text: &[u8]| {
            let key = KeyRef { scope: SCOPE, text };
            Lengths::of(&NewEntry {
                key,
                tags: &[],
                as_of: AsOf::from_parts(9, Position::ZERO),
                response: b"",
                label: 0,
                epoch: 0,
                expires_at_ms: None,
            })
        };
        let mut text = vec![b' '; TEXT_LEN_MAX as usize];
        assert!(lengths_of(&text).is_ok());
        text.push(b' ');
        assert_eq!(lengths_of(&text).err(), Some(NotStored::TextTooLong));
    }

    #[test]
    fn a_freed_entry_gives_back_what_it_took() {
        let entry = entry(b"SELECT 1", &[Tag::definitions()], &[0; 5000]);
        let ledger = Arc::clone(&entry.ledger);
        assert_eq!(ledger.taken(), entry.cost());
        drop(entry);
        assert_eq!(ledger.taken(), 0);
    }

    #[test]
    fn a_small_result_is_one_small_allocation() {
        let entry = entry(&[b'x'; 50], &[Tag::definitions()], &[0; 195]);
        assert_eq!(entry.cost(), 320 + MAP_ENTRY);
        assert_eq!(ARC_COUNTS + size_of_val(&*entry) + ALIGNMENT_LOSS, 320);
    }

    #[test]
    fn size_classes_are_those_of_the_allocator() {
        let classes = [
            16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512,
        ];
        for (below, class) in classes.iter().zip(&classes[1..]) {
            assert_eq!(allocation_of(below + 1), *class);
            assert_eq!(allocation_of(*class), *class);
        }
        assert_eq!(allocation_of(4096), 4096);
        assert_eq!(allocation_of(4097), 5120);
        assert_eq!(allocation_of(200_000), 262_144);
    }
}
