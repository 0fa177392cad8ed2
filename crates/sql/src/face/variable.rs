//! The query cache's system variables.

/// A system variable of the query cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaceVariable {
    /// `have_query_cache`: whether there is one. Can't be set.
    Have,
    /// `query_cache_limit`: the largest result, bytes.
    Limit,
    /// `query_cache_min_res_unit`: how the server's own cache divides its memory, bytes.
    MinResUnit,
    /// `query_cache_size`: its memory, bytes.
    Size,
    /// `query_cache_strip_comments`: whether comments count in comparing texts.
    StripComments,
    /// `query_cache_type`: OFF, ON, or DEMAND.
    Type,
    /// `query_cache_wlock_invalidate`: whether a table's write lock keeps its results from being
    /// served.
    WlockInvalidate,
}

impl FaceVariable {
    /// Every one, in the order in which servers list them.
    pub const ALL: [FaceVariable; 7] = [
        FaceVariable::Have,
        FaceVariable::Limit,
        FaceVariable::MinResUnit,
        FaceVariable::Size,
        FaceVariable::StripComments,
        FaceVariable::Type,
        FaceVariable::WlockInvalidate,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            FaceVariable::Have => "have_query_cache",
            FaceVariable::Limit => "query_cache_limit",
            FaceVariable::MinResUnit => "query_cache_min_res_unit",
            FaceVariable::Size => "query_cache_size",
            FaceVariable::StripComments => "query_cache_strip_comments",
            FaceVariable::Type => "query_cache_type",
            FaceVariable::WlockInvalidate => "query_cache_wlock_invalidate",
        }
    }

    /// The variable with this name, in any case.
    pub fn of(name: &[u8]) -> Option<FaceVariable> {
        FaceVariable::ALL
            .into_iter()
            .find(|variable| variable.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether sessions have values of their own.
    pub const fn has_session_value(self) -> bool {
        matches!(
            self,
            FaceVariable::StripComments | FaceVariable::Type | FaceVariable::WlockInvalidate
        )
    }

    /// Whether it is a number rather than a word.
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            FaceVariable::Limit | FaceVariable::MinResUnit | FaceVariable::Size
        )
    }
}

/// Which value of a variable is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// `GLOBAL`.
    Global,
    /// `SESSION` or `LOCAL`.
    Session,
    /// Nothing is written: the session's if there is one.
    Default,
}

impl VariableScope {
    /// The scope that a word means.
    pub(super) fn of(word: &[u8]) -> Option<VariableScope> {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        if is("global") {
            Some(VariableScope::Global)
        } else {
            (is("session") || is("local")).then_some(VariableScope::Session)
        }
    }
}
