//! The query cache's variables, as operators know them: what they are set to, and what may set
//! them. The proxy's `session/emulation` answers the statements about them.

mod assign;
mod cache_type;
mod settings;

pub use self::assign::{Decision, Judge, Refused};
pub use self::cache_type::CacheType;
pub use self::settings::{Change, Configured, OwnValues, QueryCacheSettings};
use crate::reason::CachingOff;

/// What the statements of the query cache's SQL interface may do, from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct EmulationLimits {
    /// Whether Remora answers them at all.
    pub enabled: bool,
    /// The longest answer of the server that rows are merged into, bytes.
    pub merged_bytes_max: usize,
    /// The most rows that `SHOW REMORA` shows.
    pub rows_max: usize,
    /// Whether `SHOW REMORA ENTRIES` shows statements with their values.
    pub show_literals: bool,
    /// Caching that the configuration turns off.
    pub configured_off: Option<CachingOff>,
}

/// How the server's own cache divides its memory unless it is told otherwise, bytes. It has no
/// meaning here.
pub const MIN_RES_UNIT_BYTES: u64 = 4_096;
