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
//! - **Stripping comments** decides by which text a result is kept and looked for. A text that was
//!   made by one rule is, taken as a statement, one with the same result as those that it was made
//!   from, by the argument of [`remora_sql::key_text`]. So whoever comes to it by the other rule
//!   finds the right result.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use crate::config::CacheType;

/// The values of the configuration: those at the start, and those that `DEFAULT` means.
#[derive(Debug, Clone, Copy)]
pub struct Configured {
    /// `query_cache_type`.
    pub cache_type: CacheType,
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
    /// Whether `query_cache_size` is what is configured, not 0.
    has_size: AtomicBool,
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
    /// `query_cache_strip_comments`.
    pub strip_comments: Option<bool>,
    /// Whether `query_cache_size` is what is configured, else 0.
    pub has_size: Option<bool>,
}

impl QueryCacheSettings {
    /// As they are at the start.
    pub fn new(configured: Configured) -> QueryCacheSettings {
        QueryCacheSettings {
            configured,
            cache_type: AtomicU8::new(configured.cache_type as u8),
            limit_bytes: AtomicUsize::new(configured.limit_bytes),
            strip_comments: AtomicBool::new(configured.strip_comments),
            has_size: AtomicBool::new(true),
        }
    }

    /// What is configured.
    pub fn configured(&self) -> Configured {
        self.configured
    }

    /// The global `query_cache_type`.
    pub fn cache_type(&self) -> CacheType {
        let number = self.cache_type.load(Ordering::SeqCst);
        let all = [CacheType::Off, CacheType::On, CacheType::Demand];
        let known = all.into_iter().find(|one| *one as u8 == number);
        known.unwrap_or(CacheType::Off)
    }

    /// Whether `query_cache_size` isn't 0.
    pub fn has_size(&self) -> bool {
        self.has_size.load(Ordering::SeqCst)
    }

    /// Whether anything may be kept at all. A fill asks when it has taken the store's epoch.
    pub fn is_on(&self) -> bool {
        self.has_size() && self.cache_type() != CacheType::Off
    }

    /// The largest result that is kept, bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Whether a statement is looked up by its text without comments. Asked for each statement.
    pub fn strip_comments(&self) -> bool {
        self.strip_comments.load(Ordering::Relaxed)
    }

    /// Puts the global values of a change in force. Gives whether everything must be dropped now:
    /// nothing is to be kept any more.
    #[must_use]
    pub fn change(&self, change: &Change) -> bool {
        if let Some(cache_type) = change.global_type {
            self.cache_type.store(cache_type as u8, Ordering::SeqCst);
        }
        if let Some(bytes) = change.limit_bytes {
            self.limit_bytes.store(bytes, Ordering::Relaxed);
        }
        if let Some(strips) = change.strip_comments {
            self.strip_comments.store(strips, Ordering::Relaxed);
        }
        if let Some(has_size) = change.has_size {
            self.has_size.store(has_size, Ordering::SeqCst);
        }
        change.has_size == Some(false) || change.global_type == Some(CacheType::Off)
    }
}
