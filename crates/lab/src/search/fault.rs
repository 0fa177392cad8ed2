//! Rules broken on purpose: the search must notice each.

use clap::ValueEnum;
use remora_cache::BrokenRules;

/// A rule that can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeededFault {
    /// Raised fences are ignored: a read right after a write through Remora can be old.
    FencesIgnored,
    /// A changed row touches the tags of its new values only.
    TagIgnoresBeforeImage,
    /// The columns of a condition don't count among those that a statement depends on.
    TagIgnoresColumnsOfCondition,
    /// The dyadic intervals that cover a range are one level too fine.
    RangeLevelOffByOne,
    /// Text counts by its bytes, not by what its collation takes for equal.
    TextNotFolded,
    /// A shape is registered after the query was sent.
    ShapeRegisteredTooLate,
}

impl SeededFault {
    /// All of them.
    pub const ALL: [SeededFault; 6] = [
        SeededFault::FencesIgnored,
        SeededFault::TagIgnoresBeforeImage,
        SeededFault::TagIgnoresColumnsOfCondition,
        SeededFault::RangeLevelOffByOne,
        SeededFault::TextNotFolded,
        SeededFault::ShapeRegisteredTooLate,
    ];

    /// The switches that break it; `None`: there is no such rule yet, as tags are of whole tables.
    pub fn rules(self) -> Option<BrokenRules> {
        match self {
            SeededFault::FencesIgnored => Some(BrokenRules {
                fences: true,
                ..BrokenRules::default()
            }),
            SeededFault::TagIgnoresBeforeImage
            | SeededFault::TagIgnoresColumnsOfCondition
            | SeededFault::RangeLevelOffByOne
            | SeededFault::TextNotFolded
            | SeededFault::ShapeRegisteredTooLate => None,
        }
    }
}
