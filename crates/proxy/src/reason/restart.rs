//! Why everything that was stored had to be forgotten.

/// Why a timeline was begun anew, so that everything stored before was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartReason {
    /// Remora follows for the first time.
    FirstStart,
    /// The server was shut down or crashed: it may have lost its last commits.
    ServerRestarted,
    /// Another server or another log answers at the address.
    LogChanged,
    /// The server no longer has the log from where Remora stopped.
    LogPurged,
    /// Positions went back, as after `RESET MASTER`.
    PositionWentBack,
    /// An event could not be read.
    LogUnreadable,
    /// The log's file names or offsets can't be placed in order.
    PositionUnplaceable,
    /// Nothing in the log could prove that it goes on where Remora stopped.
    NothingToCompare,
    /// A check found the server set up in a way in which changes can be missed.
    ServerUnsuitable,
    /// The server replicated for a moment what it doesn't log.
    ChangesUnlogged,
}

impl RestartReason {
    /// Every reason.
    pub const ALL: [RestartReason; 10] = [
        RestartReason::FirstStart,
        RestartReason::ServerRestarted,
        RestartReason::LogChanged,
        RestartReason::LogPurged,
        RestartReason::PositionWentBack,
        RestartReason::LogUnreadable,
        RestartReason::PositionUnplaceable,
        RestartReason::NothingToCompare,
        RestartReason::ServerUnsuitable,
        RestartReason::ChangesUnlogged,
    ];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            RestartReason::FirstStart => "first_start",
            RestartReason::ServerRestarted => "server_restarted",
            RestartReason::LogChanged => "log_changed",
            RestartReason::LogPurged => "log_purged",
            RestartReason::PositionWentBack => "position_went_back",
            RestartReason::LogUnreadable => "log_unreadable",
            RestartReason::PositionUnplaceable => "position_unplaceable",
            RestartReason::NothingToCompare => "nothing_to_compare",
            RestartReason::ServerUnsuitable => "server_unsuitable",
            RestartReason::ChangesUnlogged => "changes_unlogged",
        }
    }

    /// What it means, in a sentence.
    pub const fn describe(self) -> &'static str {
        match self {
            RestartReason::FirstStart => "Remora followed the log for the first time.",
            RestartReason::ServerRestarted => {
                "The server was started again, and may have lost its last commits."
            }
            RestartReason::LogChanged => "Another server or another log answered at the address.",
            RestartReason::LogPurged => {
                "The server no longer had the log from where Remora had stopped."
            }
            RestartReason::PositionWentBack => {
                "The log's positions went back, as they do after RESET MASTER."
            }
            RestartReason::LogUnreadable => "An event of the log could not be read.",
            RestartReason::PositionUnplaceable => {
                "A log file's name or an offset could not be placed in the order of commits."
            }
            RestartReason::NothingToCompare => {
                "The connection was lost before any event had been seen that could prove that the log goes on."
            }
            RestartReason::ServerUnsuitable => {
                "A check found the server set up in a way in which changes can be missed, and some may have been since the check before."
            }
            RestartReason::ChangesUnlogged => {
                "The server replicated from another one for a moment, and doesn't log what it replicates."
            }
        }
    }
}
