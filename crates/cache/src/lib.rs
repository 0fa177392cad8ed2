//! Keys, entries, the store, tags, the watermark, fences and fills in flight. No I/O, no clock.
//!
//! Everything rests on the order of commits in the server's binary log. A [`Position`] is a place
//! in that order. A [`Tag`] is something that a result can depend on. The [`Timeline`] knows, for
//! each tag, the position of the last commit that touched it, and decides whether a stored result
//! may be served; its module documentation holds the argument. The [`Store`] keeps the results,
//! and knows nothing of time: what it returns is only a candidate until the timeline has allowed
//! it.
//!
//! The life of a fill, in the order that makes it right:
//!
//! 1. [`FillsInFlight::begin`]: one fill per key.
//! 2. [`Timeline::as_of`], *before* the query is sent.
//! 3. The query goes to the server, its response is collected.
//! 4. [`Store::insert`] with that `as_of`.
//!
//! The life of a hit: [`Store::with`], and inside it [`Timeline::check_tags`] with the entry's
//! `as_of` and tags.
//!
//! Inside a transaction at `REPEATABLE READ` a hit takes more: see [`Snapshot`], and [`EarlyRead`]
//! for one of which the server doesn't know yet.
//!
//! The life of a write: [`Timeline::raise`] before the server can make it visible,
//! [`Fence::answered`] when the server has answered, and then, on the task that asks the server for
//! its position: [`Timeline::take_answered`], the question, the follower passing the answer,
//! [`FenceBatch::lower`].
//!
//! Results can outlive their process: see [`SavedResults`].

mod answered;
mod early;
mod entry;
mod fence;
mod fills;
mod key;
mod ledger;
mod position;
mod reason;
mod saved;
mod shape;
mod shapes;
mod snapshot;
mod store;
mod sync;
mod tag;
mod timeline;

pub use early::EarlyRead;
pub use entry::{Entry, NewEntry, Tags};
pub use fence::{Definitions, Fence, FenceBatch, FenceScope};
pub use fills::{FillPermit, FillStage, FillWait, FillsInFlight, NoWait};
pub use key::{KeyRef, Scope};
pub use position::Position;
pub use reason::{EvictionReason, FillRefused, InvalidationReason, NotStored, Unservable};
pub use saved::SavedResults;
pub use shape::{
    ColumnSet, EQUALITY_COLUMNS_MAX, INTERVAL_LEVELS, Shape, ShapeColumn, ShapeParts, TableTags,
    Value, ValueHash, interval_of,
};
pub use shapes::{Shapes, ShapesLimits, ShapesSnapshot, TooCoarse};
pub use snapshot::{EndQuestion, Snapshot};
pub use store::{
    Countable, Counts, Evictions, Invalidations, OutdatedJudge, Store, StoreCursor, StoreLimits,
    StoreStats, Stored, SweepReport,
};
pub use tag::{Tag, TagSet};
pub use timeline::{
    AsOf, BrokenCode, BrokenLiveness, BrokenRules, BrokenSnapshots, BrokenSurroundings, BrokenTags,
    Epoch, Timeline, TimelineLimits,
};
