//! The query cache's system variables.

/// A system variable of the query cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmulatedVariable {
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

impl EmulatedVariable {
    /// Every one, in the order in which servers list them.
    pub const ALL: [EmulatedVariable; 7] = [
        EmulatedVariable::Have,
        EmulatedVariable::Limit,
        EmulatedVariable::MinResUnit,
        EmulatedVariable::Size,
        EmulatedVariable::StripComments,
        EmulatedVariable::Type,
        EmulatedVariable::WlockInvalidate,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            EmulatedVariable::Have => "have_query_cache",
            EmulatedVariable::Limit => "query_cache_limit",
            EmulatedVariable::MinResUnit => "query_cache_min_res_unit",
            EmulatedVariable::Size => "query_cache_size",
            EmulatedVariable::StripComments => "query_cache_strip_comments",
            EmulatedVariable::Type => "query_cache_type",
            EmulatedVariable::WlockInvalidate => "query_cache_wlock_invalidate",
        }
    }

    /// The variable with this name, in any case.
    pub fn of(name: &[u8]) -> Option<EmulatedVariable> {
        EmulatedVariable::ALL
            .into_iter()
            .find(|variable| variable.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether sessions have values of their own.
    pub const fn has_session_value(self) -> bool {
        matches!(
            self,
            EmulatedVariable::StripComments
                | EmulatedVariable::Type
                | EmulatedVariable::WlockInvalidate
        )
    }

    /// Whether it is a number rather than a word.
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            EmulatedVariable::Limit | EmulatedVariable::MinResUnit | EmulatedVariable::Size
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
