//! Fences whose writes the server has answered, and that wait to be taken: see [`crate::fence`].

/// The queue of answered fences: a set of slots.
pub(crate) struct AnsweredFences {
    pub(crate) slots: Vec<u32>,
    pub(crate) is_queued: Box<[bool]>,
    pub(crate) everything: bool,
    /// Which kinds of doubt are in it.
    pub(crate) doubts: [bool; 2],
}

impl AnsweredFences {
    pub(crate) fn new(fence_slots: usize) -> AnsweredFences {
        AnsweredFences {
            slots: Vec::new(),
            is_queued: vec![false; fence_slots].into_boxed_slice(),
            everything: false,
            doubts: [false; 2],
        }
    }
}
