//! `SHOW REMORA …`: what Remora knows, for those who may see other people's statements.

use remora_sql::ShowRemora;
use remora_wire::response::ServerError;

use super::super::dispatch::Step;
use super::super::{Ended, Session};
use super::listings::{self, Listing, Wanted};
use super::replace::{Asked, OwnAnswer, Replacement};

/// What the server runs in place of `SHOW REMORA`: it needs the same privilege as seeing what
/// others run (`PROCESS`), and has nothing to do, because this engine has no mutexes to show.
const NEEDS_PROCESS: &[u8] = b"SHOW ENGINE MEMORY MUTEX";

/// The error of a statement that can't be understood (`ER_PARSE_ERROR`).
const PARSE_ERROR: u16 = 1064;

impl Session {
    /// Has the server decide whether the client may see it; then it is shown.
    pub(super) fn show_remora(
        &mut self,
        asked: Asked<'_>,
        show: &ShowRemora,
    ) -> Result<Step, Ended> {
        let shown = Replacement::Shown(Box::new(show.clone()));
        self.replace_answer(asked, NEEDS_PROCESS, shown)
    }

    /// What is shown.
    pub(super) async fn shown(&self, show: &ShowRemora) -> OwnAnswer {
        let Some(listing) = Listing::named(&show.what) else {
            return OwnAnswer::Error(no_such_listing(&show.what));
        };
        if !show.is_complete {
            let message = format!(
                "SHOW REMORA {} takes LIKE '...' and then LIMIT n, and nothing else",
                listing.name()
            );
            return OwnAnswer::Error(ServerError::new(PARSE_ERROR, "42000", message));
        }
        let wanted = Wanted {
            pattern: show.pattern.as_ref(),
            limit: show.limit,
        };
        OwnAnswer::Rows(listings::list(&self.shared, listing, &wanted).await)
    }
}

fn no_such_listing(word: &str) -> ServerError {
    let known: Vec<&str> = Listing::ALL.iter().map(|one| one.name()).collect();
    let known = known.join(", ");
    let message = match word {
        "" => format!("SHOW REMORA needs one of {known}"),
        word => format!("SHOW REMORA knows no '{word}', but {known}"),
    };
    ServerError::new(PARSE_ERROR, "42000", message)
}
