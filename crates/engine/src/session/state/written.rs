//! What a transaction has written.

use remora_cache::{FenceScope, TableTags, Tag, TagSet};

/// Tags of tables that a transaction may write before they count as everything: those of 64 tables.
pub(super) const WRITTEN_TABLE_TAGS_MAX: usize = 64 * TableTags::FENCES;
/// Tags that a transaction's writes may have before the tables count as wholes.
pub(super) const WRITTEN_TAGS_MAX: usize = 512;

/// What a statement's writes fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteScope {
    /// What they concern of tables.
    Tables {
        /// As little as is certain.
        fine: Vec<Tag>,
        /// The same tables as wholes.
        whole: Vec<Tag>,
    },
    /// Anything.
    Everything,
}

/// What the open transaction has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Of tables with these tags; nothing if there are none.
    Tables {
        /// What the statements wrote; void if there is more than is kept.
        fine: Option<TagSet>,
        /// The same tables as wholes.
        whole: TagSet,
    },
    /// Nobody knows.
    Everything,
}

impl Written {
    pub(super) fn nothing() -> Written {
        Written::Tables {
            fine: Some(TagSet::default()),
            whole: TagSet::default(),
        }
    }

    /// Whether it may have changed a result with these tags: one of them has the fence of something
    /// that was written ([`Tag::fence`]). Few tags are compared with few, and only by transactions
    /// that have written.
    #[inline]
    pub fn concerns(&self, mut tags: impl Iterator<Item = Tag>) -> bool {
        match self {
            Written::Tables { fine, whole } => {
                let written = fine.as_ref().unwrap_or(whole);
                let is_written = |tag: Tag| written.iter().any(|one| one.fence() == tag.fence());
                tags.any(is_written)
            }
            Written::Everything => true,
        }
    }

    /// Whether nothing was written.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        matches!(self, Written::Tables { whole, .. } if whole.is_empty())
    }

    /// Adds what a statement writes.
    pub fn add(&mut self, scope: &WriteScope) {
        let (
            Written::Tables { fine, whole },
            WriteScope::Tables {
                fine: finer,
                whole: more,
            },
        ) = (&mut *self, scope)
        else {
            *self = Written::Everything;
            return;
        };
        whole.extend(more);
        if let Some(tags) = fine {
            tags.extend(finer);
        }
        if fine
            .as_ref()
            .is_some_and(|tags| tags.len() > WRITTEN_TAGS_MAX)
        {
            *fine = None;
        }
        if whole.len() > WRITTEN_TABLE_TAGS_MAX {
            *self = Written::Everything;
        }
    }

    /// What must be fenced when this becomes visible.
    pub fn scope(&self) -> FenceScope {
        match self {
            Written::Tables { fine, whole } => {
                FenceScope::Tables(fine.as_ref().unwrap_or(whole).iter().copied().collect())
            }
            Written::Everything => FenceScope::Everything,
        }
    }
}
