//! `query_cache_type`: an option, and a variable of each session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which statements' results are kept, as `query_cache_type` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[repr(u8)]
pub enum CacheType {
    /// None.
    Off,
    /// All that can be kept, but those that say `SQL_NO_CACHE`.
    On,
    /// Those that say `SQL_CACHE`.
    Demand,
}
