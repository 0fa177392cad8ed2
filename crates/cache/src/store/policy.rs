//! Which result goes when the room is needed: S3-FIFO, plain and single-threaded.
//!
//! New entries go into a small queue (a tenth of the bytes). When the hand reaches one there, it
//! moves to the main queue if it has been asked for since, otherwise it leaves, and its fingerprint
//! is remembered: if the same key comes again, it enters the main queue at once. In the main queue
//! the hand gives each entry that has been asked for since its last visit another round. So a
//! scan passes through the small queue and leaves the main queue alone.
//!
//! Before that, whatever the hand meets that a change has outdated leaves first.
//!
//! The queues are doubly linked lists in one slab, so that an entry can leave from the middle. The
//! slab grows in chunks and nothing is ever copied.

use std::sync::Arc;

use super::ghost::Ghost;
use crate::entry::Entry;
use crate::reason::EvictionReason;

/// How many entries the hand may spare in one eviction. It bounds the time under the lock.
const SPARED_MAX: usize = 128;
/// Nodes per chunk of the slab: as many as fill 2048 bytes.
pub(crate) const CHUNK: usize = 85;
/// What a node costs: the node itself and its part of the chunk directory.
pub(crate) const NODE_BYTES: usize = size_of::<Node>() + 1;
/// Nodes are numbered with 31 bits; one more bit tells the queue.
const NODES_MAX: usize = 1 << 31;

const NONE: u32 = u32::MAX;

struct Node {
    entry: Option<Arc<Entry>>,
    /// Towards the head, where entries come in.
    newer: u32,
    /// Towards the tail, where they leave; in a free node the next free one.
    older: u32,
}

#[derive(Copy, Clone)]
struct Queue {
    head: u32,
    tail: u32,
    bytes: usize,
}

const EMPTY: Queue = Queue {
    head: NONE,
    tail: NONE,
    bytes: 0,
};
const SMALL: usize = 0;
const MAIN: usize = 1;

pub(crate) struct Policy {
    chunks: Vec<Box<[Node]>>,
    free: u32,
    queues: [Queue; 2],
    entries: usize,
    ghost: Ghost,
}

impl Policy {
    pub(crate) fn new() -> Policy {
        let ghost = Ghost::default();
        Policy {
            chunks: Vec::new(),
            free: NONE,
            queues: [EMPTY; 2],
            entries: 0,
            ghost,
        }
    }

    /// Bytes of the entries in the queues.
    pub(crate) fn bytes(&self) -> usize {
        self.queues[SMALL].bytes + self.queues[MAIN].bytes
    }

    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// How many nodes there are, free ones included.
    pub(crate) fn nodes(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Whether an entry can be added without growing the slab.
    pub(crate) fn has_free_node(&self) -> bool {
        self.free != NONE
    }

    /// Adds a chunk of free nodes. `false` if there are as many as can be numbered.
    pub(crate) fn grow(&mut self) -> bool {
        let first = self.nodes();
        if first + CHUNK > NODES_MAX {
            return false;
        }
        let chunk = (first..first + CHUNK).map(|index| {
            let older = if index + 1 == first + CHUNK {
                self.free
            } else {
                number(index + 1)
            };
            Node {
                entry: None,
                newer: NONE,
                older,
            }
        });
        self.chunks.push(chunk.collect());
        self.free = number(first);
        true
    }

    /// Adds a new entry. `false` without a free node.
    pub(crate) fn add(&mut self, entry: &Arc<Entry>, digest: u128) -> bool {
        let index = self.free;
        if index == NONE {
            return false;
        }
        let queue = if self.ghost.take(digest) { MAIN } else { SMALL };
        self.free = self.node(index).older;
        self.node_mut(index).entry = Some(Arc::clone(entry));
        self.entries += 1;
        self.push(index, queue, entry.cost());
        entry.set_place(index << 1 | number(queue));
        true
    }

    /// Puts `new` into the place of `old`, which is in a queue.
    pub(crate) fn replace(&mut self, old: &Entry, new: &Arc<Entry>) -> Option<Arc<Entry>> {
        let place = old.place();
        let queue = &mut self.queues[queue_of(place)];
        queue.bytes = queue.bytes - old.cost() + new.cost();
        new.set_place(place);
        // Its key was asked for while the old one was there.
        new.mark_visited();
        self.node_mut(place >> 1).entry.replace(Arc::clone(new))
    }

    /// Takes an entry out of its queue.
    pub(crate) fn remove(&mut self, entry: &Entry) -> Option<Arc<Entry>> {
        let place = entry.place();
        let index = place >> 1;
        self.unlink(index, queue_of(place), entry.cost());
        self.entries -= 1;
        let free = self.free;
        let node = self.node_mut(index);
        node.older = free;
        let taken = node.entry.take();
        self.free = index;
        taken
    }

    /// Chooses the entry to go and takes it out. `None` if there is none.
    pub(crate) fn evict(
        &mut self,
        is_outdated: impl Fn(&Entry) -> bool,
    ) -> Option<(Arc<Entry>, EvictionReason)> {
        // The main queue's next is looked at too, so that it doesn't keep what is worth nothing.
        if let Some(oldest) = self.oldest(MAIN).filter(|entry| is_outdated(entry)) {
            return self
                .remove(&oldest)
                .map(|entry| (entry, EvictionReason::Outdated));
        }
        for spared in 0.. {
            let queue = self.next_queue();
            let oldest = self.oldest(queue)?;
            let reason = if is_outdated(&oldest) {
                EvictionReason::Outdated
            } else if spared < SPARED_MAX && oldest.take_visited() {
                self.move_to_main(&oldest, queue);
                continue;
            } else if queue == SMALL {
                self.ghost.remember(oldest.key().digest());
                EvictionReason::SmallQueue
            } else {
                EvictionReason::MainQueue
            };
            return self.remove(&oldest).map(|entry| (entry, reason));
        }
        None
    }

    /// The entry in the node with this number, if there is such a node and it isn't free.
    pub(crate) fn entry_at(&self, index: usize) -> Option<&Arc<Entry>> {
        self.chunks.get(index / CHUNK)?[index % CHUNK]
            .entry
            .as_ref()
    }

    /// Any entry.
    pub(crate) fn any(&self) -> Option<Arc<Entry>> {
        self.oldest(SMALL).or_else(|| self.oldest(MAIN))
    }

    pub(crate) fn ghost(&mut self) -> &mut Ghost {
        &mut self.ghost
    }

    /// The queue whose oldest entry is next to go.
    fn next_queue(&self) -> usize {
        let small = &self.queues[SMALL];
        if self.queues[MAIN].tail == NONE || (small.tail != NONE && small.bytes > self.bytes() / 10)
        {
            SMALL
        } else {
            MAIN
        }
    }

    fn oldest(&self, queue: usize) -> Option<Arc<Entry>> {
        let tail = self.queues[queue].tail;
        if tail == NONE {
            None
        } else {
            self.node(tail).entry.clone()
        }
    }

    fn move_to_main(&mut self, entry: &Entry, from: usize) {
        let index = entry.place() >> 1;
        self.unlink(index, from, entry.cost());
        self.push(index, MAIN, entry.cost());
        entry.set_place(index << 1 | number(MAIN));
    }

    /// Links a node in at a queue's head.
    fn push(&mut self, index: u32, queue: usize, cost: usize) {
        let head = self.queues[queue].head;
        let node = self.node_mut(index);
        node.newer = NONE;
        node.older = head;
        if head == NONE {
            self.queues[queue].tail = index;
        } else {
            self.node_mut(head).newer = index;
        }
        let queue = &mut self.queues[queue];
        queue.head = index;
        queue.bytes += cost;
    }

    fn unlink(&mut self, index: u32, queue: usize, cost: usize) {
        let Node { newer, older, .. } = *self.node(index);
        if newer == NONE {
            self.queues[queue].head = older;
        } else {
            self.node_mut(newer).older = older;
        }
        if older == NONE {
            self.queues[queue].tail = newer;
        } else {
            self.node_mut(older).newer = newer;
        }
        self.queues[queue].bytes -= cost;
    }

    fn node(&self, index: u32) -> &Node {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    fn node_mut(&mut self, index: u32) -> &mut Node {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

fn queue_of(place: u32) -> usize {
    (place & 1) as usize
}

/// A node's or a queue's number; [`Policy::grow`] keeps nodes below [`NODES_MAX`].
#[allow(clippy::cast_possible_truncation)]
fn number(index: usize) -> u32 {
    index as u32
}
