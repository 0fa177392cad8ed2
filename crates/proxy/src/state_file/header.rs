//! What the results in the file rest on. It stands before them, as JSON.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use remora_cache::{ColumnSet, Shape, ShapeColumn, ShapeParts, TableTags, Tag};
use remora_engine::key::Label;
use remora_engine::reason::StateOutcome;
use remora_engine::settings::{Fingerprints, Flavour, SavedFingerprint, SettingsQuery};
use remora_engine::tags::{Codec, TableShapes};
use remora_sql::Digest;
use remora_upstream::saved::SavedLog;
use remora_wire::Capabilities;
use serde::{Deserialize, Serialize};

use crate::digests::{About, Digests, Sketch};

/// The first part of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// [`super::build`] of the process that wrote it.
    pub(super) build: String,
    /// When, in milliseconds since 1970.
    pub(super) saved_at_ms: u64,
    /// The rules that were in force.
    pub(super) rules: String,
    /// Whether comments were stripped from the texts of keys.
    pub(super) strip_comments: bool,
    /// Where it had stopped following.
    pub(super) log: SavedLog,
    /// The settings of the sessions that the results are of.
    pub(super) fingerprints: Vec<SettingsRecord>,
    /// The kinds of reads that the results' tags are made of.
    pub(super) tables: Vec<TableRecord>,
    /// What the results are counted under.
    pub(super) digests: Vec<DigestRecord>,
}

/// A fingerprint whose sessions looked at their privileges after the last change of any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SettingsRecord {
    pub(super) id: u64,
    capabilities: u64,
    client: Option<IpAddr>,
    answer: Vec<Option<Vec<u8>>>,
}

/// A digest that had a place of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DigestRecord {
    /// [`Label::number`] in the process that wrote the file.
    label: u32,
    digest: u64,
    text: String,
}

/// The shapes of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableRecord {
    /// [`Tag::to_bits`] of the table.
    table: u64,
    shapes: Vec<ShapeRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ShapeRecord {
    columns: Vec<(u16, Codec)>,
    interval_level: Option<u8>,
    reads: ([u64; 4], bool),
    is_of_existing: bool,
}

impl SettingsRecord {
    /// None if its sessions looked at their privileges before the last change.
    pub(super) fn of(saved: SavedFingerprint, privilege_epoch: u64) -> Option<SettingsRecord> {
        let Flavour {
            capabilities,
            login_epoch,
            schema_epoch,
            role_epoch,
            client,
        } = saved.flavour;
        let epochs = [login_epoch, schema_epoch, role_epoch];
        epochs
            .iter()
            .all(|epoch| *epoch == privilege_epoch)
            .then_some(SettingsRecord {
                id: saved.id,
                capabilities: capabilities.0,
                client,
                answer: saved.answer,
            })
    }

    /// Interns it again. Gives its id in this process.
    pub(super) fn intern(
        &self,
        fingerprints: &Fingerprints,
        question: &SettingsQuery,
        privilege_epoch: u64,
    ) -> Result<u64, StateOutcome> {
        let flavour = Flavour {
            capabilities: Capabilities(self.capabilities),
            login_epoch: privilege_epoch,
            schema_epoch: privilege_epoch,
            role_epoch: privilege_epoch,
            client: self.client,
        };
        let interned = fingerprints.intern(question, &self.answer, flavour);
        let fingerprint = interned.map_err(|_| StateOutcome::NoRoom)?;
        Ok(fingerprint.id)
    }
}

/// All digests that have places.
pub(super) fn digests_of(digests: &Digests) -> Vec<DigestRecord> {
    let record = |(label, about): (Label, Arc<About>)| DigestRecord {
        label: label.number(),
        digest: about.digest.number(),
        text: about.text.clone(),
    };
    digests.places().map(record).collect()
}

/// Gives them places again. Those for which there is none are counted among the others.
pub(super) fn restore_digests(
    digests: &Digests,
    records: &[DigestRecord],
    now_ms: u64,
) -> HashMap<Label, Label> {
    let mut sketch = Sketch::default();
    let restore = |record: &DigestRecord| {
        let digest = Digest::from_number(record.digest);
        let label = digests.label(digest, record.text.as_bytes(), &mut sketch, now_ms);
        (Label::from_number(record.label), label)
    };
    records.iter().map(restore).collect()
}

/// All kinds of reads.
pub(super) fn tables_of(shapes: &TableShapes) -> Vec<TableRecord> {
    let tables = shapes.all().into_iter();
    let record = |(table, shapes): (Tag, Vec<Arc<Shape<Codec>>>)| TableRecord {
        table: table.to_bits(),
        shapes: shapes.iter().map(|shape| ShapeRecord::of(shape)).collect(),
    };
    tables.map(record).collect()
}

/// Registers all kinds of reads again.
pub(super) fn restore_shapes(
    shapes: &TableShapes,
    tables: &[TableRecord],
) -> Result<(), StateOutcome> {
    for record in tables {
        let table = TableTags::of(Tag::from_bits(record.table));
        for shape in &record.shapes {
            let shape = Shape::of_parts(table, &shape.parts());
            let restored = shapes.restore(table, shape);
            restored.map_err(|_| StateOutcome::NoRoom)?;
        }
    }
    Ok(())
}

impl ShapeRecord {
    fn of(shape: &Shape<Codec>) -> ShapeRecord {
        let parts = shape.parts();
        let columns = parts.columns.iter();
        ShapeRecord {
            columns: columns
                .map(|column| (column.ordinal, column.codec))
                .collect(),
            interval_level: parts.interval_level,
            reads: parts.reads.to_words(),
            is_of_existing: parts.is_of_existing,
        }
    }

    fn parts(&self) -> ShapeParts<Codec> {
        let columns = self.columns.iter();
        let (words, beyond) = self.reads;
        ShapeParts {
            columns: columns
                .map(|(ordinal, codec)| ShapeColumn {
                    ordinal: *ordinal,
                    codec: *codec,
                })
                .collect(),
            interval_level: self.interval_level,
            reads: ColumnSet::from_words(words, beyond),
            is_of_existing: self.is_of_existing,
        }
    }
}

/// What stands in the results, and what it is in this process.
pub(super) struct Renamed {
    /// The ids of fingerprints.
    pub(super) fingerprints: HashMap<u64, u64>,
    /// The labels of digests.
    pub(super) labels: HashMap<Label, Label>,
}
