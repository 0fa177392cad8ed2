//! What `SET` changes of the query cache's variables while Remora runs, for all sessions.
//!
//! Each value stands for itself, so nothing is locked. None of them can make an old row be served,
//! whatever changes while results are on their way:
//!
//! - **The type and the size** decide whether a result is kept, and whether it is looked for. What
//!   is in memory is dropped by the changes that concern it, whoever looks for it meanwhile or
//!   doesn't. Switching off also drops everything, by the store's epoch: a fill takes that first
//!   and looks here afterwards, so none that was allowed before is stored behind it.
//! - **The limit** only keeps results out.
//! - **Stripping comments**, of which each session has a value of its own, decides by which text a
//!   result is kept and looked for. A text that was
//!   made by one rule is, taken as a statement, one with the same result as those that it was made
//!   from, by the argument of [`remora_sql::key_text`]. So whoever comes to it by the other rule
//!   finds the right result.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use super::CacheType;

/// The values of the configuration: those at the start, and those that `DEFAULT` means.
#[derive(Debug, Clone, Copy)]
pub struct Configured {
    /// `query_cache_type`.
    pub cache_type: CacheType,
    /// The memory for results, bytes: also the highest value that can be set.
    pub size_bytes: usize,
    /// The largest result that is kept, bytes: also the highest value that can be set.
    pub limit_bytes: usize,
    /// Whether a statement is looked up by its text without comments ([`remora_sql::key_text`]).
    pub strip_comments: bool,
}

/// The values now.
#[derive(Debug)]
pub struct QueryCacheSettings {
    configured: Configured,
    cache_type: AtomicU8,
    limit_bytes: AtomicUsize,
    strip_comments: AtomicBool,
    /// `query_cache_size`; 0: nothing is kept.
    size_bytes: AtomicUsize,
}

/// The values that each session has for itself. It takes the global ones when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnValues {
    /// `query_cache_type`.
    pub cache_type: CacheType,
    /// `query_cache_strip_comments`.
    pub strip_comments: bool,
}

/// What a `SET` changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// The session's `query_cache_type`.
    pub session_type: Option<CacheType>,
    /// `query_cache_type` of sessions that begin from now on; `Off` is for all.
    pub global_type: Option<CacheType>,
    /// `query_cache_limit`, bytes.
    pub limit_bytes: Option<usize>,
    /// The session's `query_cache_strip_comments`.
    pub session_strips: Option<bool>,
    /// `query_cache_strip_comments` of sessions that begin from now on.
    pub global_strips: Option<bool>,
    /// `query_cache_size`, bytes.
    pub size_bytes: Option<usize>,
}

impl QueryCacheSettings {
    /// As they are at the start.
    pub fn new(configured: Configured) -> QueryCacheSettings {
        QueryCacheSettings {
            configured,
            cache_type: AtomicU8::new(configured.cache_type as u8),
            limit_bytes: AtomicUsize::new(configured.limit_bytes),
            strip_comments: AtomicBool::new(configured.strip_comments),
            size_bytes: AtomicUsize::new(configured.size_bytes),
        }
    }

    /// What is configured.
    #[inline]
    pub fn configured(&self) -> Configured {
        self.configured
    }

    /// The global `query_cache_type`.
    #[inline]
    pub fn cache_type(&self) -> CacheType {
        let number = self.cache_type.load(Ordering::SeqCst);
        let all = [CacheType::Off, CacheType::On, CacheType::Demand];
        let known = all.into_iter().find(|one| *one as u8 == number);
        known.unwrap_or(CacheType::Off)
    }

    /// `query_cache_size`, bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::SeqCst)
    }

    /// What a session begins with.
    #[inline]
    pub fn own_values(&self) -> OwnValues {
        OwnValues {
            cache_type: self.cache_type(),
            strip_comments: self.strip_comments(),
        }
    }

    /// Whether anything may be kept at all. A fill asks when it has taken the store's epoch.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.size_bytes() != 0 && self.cache_type() != CacheType::Off
    }

    /// The largest result that is kept, bytes.
    #[inline]
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// The global `query_cache_strip_comments`.
    #[inline]
    pub fn strip_comments(&self) -> bool {
        self.strip_comments.load(Ordering::Relaxed)
    }

    /// Puts the global values of a change in force. Gives whether everything must be dropped now:
    /// nothing is to be kept any more, or the memory has another size, upon which servers drop
    /// everything, too.
    #[must_use]
    pub fn change(&self, change: &Change) -> bool {
        if let Some(cache_type) = change.global_type {
            self.cache_type.store(cache_type as u8, Ordering::SeqCst);
        }
        if let Some(bytes) = change.limit_bytes {
            self.limit_bytes.store(bytes, Ordering::Relaxed);
        }
        if let Some(strips) = change.global_strips {
            self.strip_comments.store(strips, Ordering::Relaxed);
        }
        let is_resized = change
            .size_bytes
            .is_some_and(|bytes| self.size_bytes.swap(bytes, Ordering::SeqCst) != bytes);
        is_resized || change.global_type == Some(CacheType::Off)
    }
}
