//! Rules broken on purpose: the search must notice each.

use clap::ValueEnum;
use remora_cache::{BrokenCode, BrokenRules, BrokenTags};

/// A rule that can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeededFault {
    /// Raised fences are ignored: a read right after a write through Remora can be old.
    FencesIgnored,
    /// A changed row touches the tags of its new values only.
    TagIgnoresBeforeImage,
    /// The columns of a condition don't count among those that a statement depends on.
    TagIgnoresColumnsOfCondition,
    /// The last of the intervals that cover a range is left out.
    RangeLevelOffByOne,
    /// Text counts by its bytes, not by what its collation takes for equal.
    TextNotFolded,
    /// A shape is used although commits that the read may have missed were touched without it.
    ShapeRegisteredTooLate,
    /// What functions write that views call isn't fenced.
    CodeOfViewsIgnored,
    /// Code that a text doesn't show is taken to change nothing in its session.
    CodeInSessionIgnored,
}

impl SeededFault {
    /// All of them.
    pub const ALL: [SeededFault; 8] = [
        SeededFault::FencesIgnored,
        SeededFault::TagIgnoresBeforeImage,
        SeededFault::TagIgnoresColumnsOfCondition,
        SeededFault::RangeLevelOffByOne,
        SeededFault::TextNotFolded,
        SeededFault::ShapeRegisteredTooLate,
        SeededFault::CodeOfViewsIgnored,
        SeededFault::CodeInSessionIgnored,
    ];

    /// Whether it shows with code only that a text doesn't show.
    pub fn is_of_code(self) -> bool {
        let of_code = [
            SeededFault::CodeOfViewsIgnored,
            SeededFault::CodeInSessionIgnored,
        ];
        of_code.contains(&self)
    }

    /// The switches that break it.
    pub fn rules(self) -> BrokenRules {
        let mut rules = BrokenRules::default();
        match self {
            SeededFault::FencesIgnored => rules.fences = true,
            SeededFault::TagIgnoresBeforeImage => rules.tags = BrokenTags::BeforeImage,
            SeededFault::TagIgnoresColumnsOfCondition => rules.tags = BrokenTags::ConditionColumns,
            SeededFault::RangeLevelOffByOne => rules.tags = BrokenTags::IntervalBounds,
            SeededFault::TextNotFolded => rules.tags = BrokenTags::TextFolding,
            SeededFault::ShapeRegisteredTooLate => rules.shapes = true,
            SeededFault::CodeOfViewsIgnored => rules.code = BrokenCode::Views,
            SeededFault::CodeInSessionIgnored => rules.code = BrokenCode::Session,
        }
        rules
    }
}
