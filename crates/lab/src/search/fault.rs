//! Rules broken on purpose: the search must notice each.

use clap::ValueEnum;
use remora_cache::{BrokenCode, BrokenRules, BrokenSurroundings, BrokenTags};

use super::surroundings::Surroundings;

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
    /// The condition of an outer join narrows the side of which every row counts, by the columns
    /// that it compares.
    PreservedSideNarrowed,
    /// A shape is used although commits that the read may have missed were touched without it.
    ShapeRegisteredTooLate,
    /// What functions write that views call isn't fenced.
    CodeOfViewsIgnored,
    /// Code that a text doesn't show is taken to change nothing in its session.
    CodeInSessionIgnored,
    /// The watermark passes commits of which nothing tells that they can be seen.
    LateCommitsIgnored,
    /// What later checks of the server find counts for nothing.
    FactsIgnored,
    /// A session on another server counts as one on the server that is followed.
    InstanceIgnored,
    /// A fence comes down when its client doesn't take the answer, not when the answer ends.
    SlowReadersIgnored,
}

impl SeededFault {
    /// All of them.
    pub const ALL: [SeededFault; 13] = [
        SeededFault::FencesIgnored,
        SeededFault::TagIgnoresBeforeImage,
        SeededFault::TagIgnoresColumnsOfCondition,
        SeededFault::RangeLevelOffByOne,
        SeededFault::TextNotFolded,
        SeededFault::PreservedSideNarrowed,
        SeededFault::ShapeRegisteredTooLate,
        SeededFault::CodeOfViewsIgnored,
        SeededFault::CodeInSessionIgnored,
        SeededFault::LateCommitsIgnored,
        SeededFault::FactsIgnored,
        SeededFault::InstanceIgnored,
        SeededFault::SlowReadersIgnored,
    ];

    /// Without which surroundings it doesn't show.
    pub fn surroundings(self) -> Option<Surroundings> {
        match self {
            SeededFault::LateCommitsIgnored => Some(Surroundings::LateCommits),
            SeededFault::FactsIgnored => Some(Surroundings::Facts),
            SeededFault::InstanceIgnored => Some(Surroundings::TwoServers),
            SeededFault::SlowReadersIgnored => Some(Surroundings::SlowReaders),
            _ => None,
        }
    }

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
            SeededFault::PreservedSideNarrowed => rules.tags = BrokenTags::PreservedSide,
            SeededFault::ShapeRegisteredTooLate => rules.shapes = true,
            SeededFault::CodeOfViewsIgnored => rules.code = BrokenCode::Views,
            SeededFault::CodeInSessionIgnored => rules.code = BrokenCode::Session,
            SeededFault::LateCommitsIgnored => {
                rules.surroundings = BrokenSurroundings::LateCommits;
            }
            SeededFault::FactsIgnored => rules.surroundings = BrokenSurroundings::Facts,
            SeededFault::InstanceIgnored => rules.surroundings = BrokenSurroundings::Instance,
            SeededFault::SlowReadersIgnored => {
                rules.surroundings = BrokenSurroundings::SlowReaders;
            }
        }
        rules
    }
}
