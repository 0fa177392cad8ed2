//! The statements of the query cache's SQL interface: what Remora answers, or completes, in the
//! server's place.
//!
//! They are found among the statements that memory doesn't answer, so a hit pays nothing for them.
//!
//! | file | what it does |
//! |---|---|
//! | `analyze` | `EXPLAIN REMORA ANALYZE` |
//! | `answer` | statements that the server answers in other words |
//! | `assign` | `SET` of the query cache's variables |
//! | `hint` | `SQL_CACHE` on servers that no longer know it |
//! | `merge` | rows of Remora's own in an answer of the server |
//! | `replace` | an answer of Remora's own in place of the server's |
//! | `last_packet` | what is kept of that one |
//! | `show`, `explain` | `SHOW REMORA`, `EXPLAIN REMORA` |
//! | `listings/` | the rows of `SHOW REMORA` |
//! | `counters` | the query cache's variables and counters, filled with Remora's |

mod analyze;
mod answer;
mod assign;
mod counters;
mod explain;
mod hint;
mod last_packet;
mod listings;
mod merge;
mod replace;
mod show;

use remora_engine::reason::{Limit, Stage};
use remora_engine::settings::TextCharset;
use remora_sql::{Dialect, EmulatedStatement, Refusal, ShowNames, Statement, recognise};
use remora_wire::walker::{Progress, ResponseWalker, Summary};

pub(super) use self::assign::Assigning;
pub(super) use self::replace::Replacement;
use super::{CHUNK_BYTES, Ended, Session};

impl Session {
    /// The emulated statement that a text is, if emulation is on and the text can be read.
    /// `statement` is what its analysis has told.
    pub(super) fn emulated_statement<'t>(
        &self,
        statement: &Statement,
        text: &'t [u8],
        dialect: Dialect,
    ) -> Option<EmulatedStatement<'t>> {
        // What can be cached names none of the emulated variables. What can be read in more than
        // one way may do anything.
        let is_another = matches!(statement.cacheable, Ok(_) | Err(Refusal::Ambiguous));
        if is_another || !self.shared.emulation.enabled {
            return None;
        }
        let found = recognise(text, dialect)?;
        let charset = self.state.fingerprint().map(|known| known.charset);
        let is_readable = match charset {
            Some(TextCharset::Utf8 | TextCharset::AsciiSafe) => true,
            Some(TextCharset::Unsafe) | None => text.is_ascii(),
        };
        is_readable.then_some(found)
    }

    /// Relays the answer to a `SHOW` with rows of Remora's own in it. No summary: the answer is
    /// longer than is held; what came of it was relayed as it is, and `walker` stands behind that.
    pub(super) async fn relay_merged(
        &mut self,
        walker: &mut ResponseWalker,
        names: &ShowNames,
    ) -> Result<Option<Summary>, Ended> {
        let mut held = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let summary = loop {
            let count = self.read_server(&mut chunk).await?;
            if count == 0 {
                return Err(self.relay_held(&held).await);
            }
            self.trace_answer(count);
            let (used, progress) = walker.feed(&chunk[..count])?;
            held.extend_from_slice(&chunk[..count]);
            if used < count {
                return Err(self.relay_held(&held).await);
            }
            match progress {
                Progress::Done(summary) => {
                    self.turn = None;
                    break Some(summary);
                }
                Progress::LocalFile => return Err(Ended::closed()),
                Progress::More if held.len() > self.shared.emulation.merged_bytes_max => {
                    self.shared.metrics.rare.count_limit(Limit::MergedBytes);
                    break None;
                }
                Progress::More => {}
            }
        };
        let merged = summary.and_then(|_| {
            let own = if names.is_global {
                self.shared.query_cache.own_values()
            } else {
                self.state.own_values()
            };
            let listed = counters::listed(&self.shared, names.listing, own);
            merge::merge(&held, self.capabilities(), &names.filter, &listed)
        });
        let answer = merged.unwrap_or(held);
        self.worker.metrics.count_client_bytes_out(answer.len());
        self.client.write_all(&answer).await?;
        self.mark(Stage::Write);
        Ok(summary)
    }

    /// The server closes in the middle of an answer: the client sees as much of it as there is.
    async fn relay_held(&self, held: &[u8]) -> Ended {
        match self.client.write_all(held).await {
            Ok(()) => Ended::closed(),
            Err(error) => error.into(),
        }
    }
}
