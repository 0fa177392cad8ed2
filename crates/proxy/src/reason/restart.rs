//! Why everything that was stored had to be forgotten.

use remora_reason::reasons;

reasons! {
    /// Why a timeline was begun anew, so that everything stored before was forgotten.
    RestartReason {
        FirstStart: "first_start", "Remora followed the log for the first time.";
        ServerRestarted: "server_restarted", "The server was started again, and may have lost its last commits.";
        LogChanged: "log_changed", "Another server or another log answered at the address.";
        LogPurged: "log_purged", "The server no longer had the log from where Remora had stopped.";
        PositionWentBack: "position_went_back", "The log's positions went back, as they do after RESET MASTER.";
        LogUnreadable: "log_unreadable", "An event of the log could not be read.";
        PositionUnplaceable: "position_unplaceable", "A log file's name or an offset could not be placed in the order of commits.";
        NothingToCompare: "nothing_to_compare", "The connection was lost before any event had been seen that could prove that the log goes on.";
        ServerUnsuitable: "server_unsuitable", "A check found the server set up in a way in which changes can be missed, and some may have been since the check before.";
        ChangesUnlogged: "changes_unlogged", "The server replicated from another one for a moment, and doesn't log what it replicates.";
    }
}
