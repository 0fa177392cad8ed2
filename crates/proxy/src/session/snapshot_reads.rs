//! Reads inside a transaction at `REPEATABLE READ`: when memory may answer them, and when an answer
//! of the server may be kept. [`remora_cache::Snapshot`] has the argument.

use remora_cache::{BrokenSnapshots, Snapshot, Tag, Unservable};
use remora_engine::reason::{Bypass, Limit};
use remora_engine::rules::Facts;
use remora_engine::rules::TransactionReads;
use remora_engine::session::snapshot::Evidence;
use remora_engine::session::state::Effects;
use remora_engine::settings::Fingerprint;
use remora_engine::tags;
use remora_sql::Select;

use super::Session;

impl Session {
    /// Which reads inside a session's transactions memory may answer: as a rule says, or as is
    /// configured for all.
    pub(super) fn transaction_reads_of(&self, known: &Fingerprint) -> TransactionReads {
        let facts = Facts {
            digest: None,
            tables: &[],
            names_have_case: self.shared.upstream.catalogue.names_have_case(),
            account: known.account.as_deref(),
            schema: known.schema.as_deref(),
        };
        let of_rule = self.shared.rules.get().transaction_reads(&facts);
        of_rule.unwrap_or(self.shared.limits.transaction_reads)
    }

    /// What the answer to a statement can tell of the transaction's snapshot, if the statement is
    /// a `SELECT` that can be cached.
    pub(super) fn evidence_of(&self, select: Option<&Select>) -> Evidence {
        let Some(select) = select.filter(|select| select.rows_come_from_tables) else {
            return Evidence::None;
        };
        if !self.state.can_tell_of_snapshot() {
            return Evidence::None;
        }
        let known = self.state.fingerprint();
        let mut certainly_looks =
            select.tables.len() == 1 && known.is_some_and(|known| !known.selects_nothing);
        for name in &select.tables {
            let Ok(table) = self.read_table(name) else {
                return Evidence::None;
            };
            if !table.facts.is_transactional {
                return Evidence::None;
            }
            certainly_looks = certainly_looks
                && tags::certainly_looks(select, &table.facts, self.string_conversion());
        }
        if certainly_looks {
            Evidence::InAnswer
        } else {
            Evidence::InRows
        }
    }

    /// The server is about to run a read of Remora's own. It may take the snapshot of the
    /// transaction in which the client's next statement stands.
    pub(super) fn note_own_read(&mut self) {
        if self.state.wants_low(&Effects::NONE) {
            let low = self.shared.timeline.as_of();
            self.state.may_have_snapshot(low);
        }
    }

    /// Notes whether a finished answer proves that the snapshot exists.
    pub(super) fn note_evidence(&self, effects: &mut Effects, has_rows: bool) {
        let proves = match effects.snapshot {
            Evidence::None | Evidence::Seen(_) => return,
            Evidence::InRows => has_rows,
            Evidence::InAnswer => true,
        };
        effects.snapshot = if proves {
            Evidence::Seen(self.shared.timeline.end_questions())
        } else {
            Evidence::None
        };
    }

    /// The snapshot for which a proof is awaited before the message is looked at again, if that is
    /// all that the result lacks. Awaited once: if it didn't come in time, the server answers the
    /// transaction's reads until it has.
    pub(super) fn should_await_proof(&self, why: Unservable) -> Option<Snapshot> {
        if why != Unservable::SnapshotUnproven {
            return None;
        }
        let snapshot = self.state.snapshot();
        snapshot.filter(|_| self.awaited_proof_of != snapshot)
    }

    /// Awaits that proof.
    pub(super) async fn await_proof(&mut self, snapshot: Snapshot) {
        self.awaited_proof_of = Some(snapshot);
        let limit = self.shared.limits.snapshot_wait;
        if !self.shared.upstream.until_covered(snapshot, limit).await {
            self.shared.metrics.rare.count_limit(Limit::SnapshotWait);
        }
    }

    /// Whether the open transaction may have written something that a result with these tags
    /// depends on: then the server answers, which knows the transaction's own rows.
    ///
    /// A write concerns exactly the results that its fences cover, see [`remora_engine::tags`]. The
    /// transaction's own fences go up at its commit, so here they are compared with the tags.
    #[inline]
    pub(super) fn has_written(&self, tags: impl Iterator<Item = Tag>) -> bool {
        let written = self.state.written();
        !written.is_nothing()
            && self.shared.timeline.broken().snapshots != BrokenSnapshots::OwnWrites
            && written.concerns(tags)
    }

    /// Whether what a transaction is about to read can be kept: none of it has changed since the
    /// snapshot. Has the log's end asked for if that is still needed.
    ///
    /// A table without transactions (MySQL's MEMORY) shows no snapshot, and its reads are newer.
    /// Its results are as right as outside a transaction: they must fulfil that rule, too.
    pub(super) fn check_fill_in_snapshot(
        &self,
        snapshot: Snapshot,
        tags: &[Tag],
    ) -> Result<(), Bypass> {
        let timeline = &self.shared.timeline;
        if timeline.has_changed_since(snapshot.low, tags.iter().copied()) {
            // With a newer watermark the next transaction's snapshot is known better.
            self.shared.upstream.turned_away();
            return Err(Bypass::ChangedSinceSnapshot);
        }
        if !timeline.covers(snapshot) {
            // By the time the answer comes, perhaps.
            self.shared.upstream.ask_for_end_soon();
        }
        Ok(())
    }
}
