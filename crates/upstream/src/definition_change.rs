//! A statement that changes definitions, while it is on its way. The catalogue keeps out of its
//! way.

use std::sync::Arc;

use crate::catalogue::TableKey;
use crate::state::UpstreamShared;

/// Tables about which nothing is asked, as long as this is held.
pub struct DefinitionChange {
    of: Arc<UpstreamShared>,
    tables: Vec<TableKey>,
}

impl DefinitionChange {
    /// Holds tables back, by their names as a statement writes them.
    pub fn begin<'n>(
        of: &Arc<UpstreamShared>,
        names: impl Iterator<Item = (&'n str, &'n str)>,
    ) -> DefinitionChange {
        DefinitionChange {
            tables: of.catalogue.hold(names),
            of: Arc::clone(of),
        }
    }
}

impl Drop for DefinitionChange {
    fn drop(&mut self) {
        self.of.catalogue.release(&self.tables);
    }
}
