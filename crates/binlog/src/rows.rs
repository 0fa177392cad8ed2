//! The rows of row events.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::column::{ColumnKind, LoggedColumn, TableMap, Width};
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::inflate::inflate;
use crate::kinds::{RowsFormat, RowsKind};

/// The rows of one row event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    map: Arc<TableMap>,
    kind: RowsKind,
    /// The bitmap of the columns in each row's first image (for updates that of those in the second
    /// too), then the rows.
    bytes: Vec<u8>,
    bitmap_bytes: usize,
}

/// What happened to one row.
#[derive(Debug, Clone, Copy)]
pub struct RowChange<'a> {
    /// The row before; `None` if it was inserted.
    pub before: Option<RowImage<'a>>,
    /// The row after; `None` if it was deleted.
    pub after: Option<RowImage<'a>>,
}

/// A row, or those of its columns that were logged (`binlog_row_image`).
#[derive(Debug, Clone, Copy)]
pub struct RowImage<'a> {
    bytes: &'a [u8],
    fields: &'a [Span],
}

/// A value in a row's image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// Not logged. In the image after an update: as it was before. In an inserted row: a default
    /// value.
    Absent,
    /// NULL.
    Null,
    /// The value as it was logged, without its length. [`ColumnKind`] has readers for it.
    Bytes(&'a [u8]),
}

/// Where a value lies; two that can't be stand for no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

const ABSENT: Span = Span { start: 1, end: 0 };
const NULL: Span = Span { start: 2, end: 0 };

impl Rows {
    /// The rows in `bytes` (a row event's body behind table number and flags). `None` if they can't
    /// be read, or can't be inflated within `bytes_max`.
    pub(crate) fn read(
        map: Arc<TableMap>,
        kind: RowsKind,
        format: RowsFormat,
        bytes: &[u8],
        bytes_max: usize,
    ) -> Option<Self> {
        const FIELD: &str = "rows";
        let mut cursor = Cursor::new(bytes);
        if format == RowsFormat::V2 {
            // The length counts itself.
            let extra_bytes = usize::from(cursor.u16(FIELD).ok()?).checked_sub(2)?;
            cursor.bytes(extra_bytes, FIELD).ok()?;
        }
        let columns = usize::try_from(cursor.length_encoded(FIELD).ok()?).ok()?;
        if columns != map.columns.len() || columns == 0 {
            return None;
        }
        let bitmap_bytes = columns.div_ceil(8);
        let images = if kind == RowsKind::Update { 2 } else { 1 };
        let bytes = if format == RowsFormat::CompressedV1 {
            let mut bytes = cursor.bytes(bitmap_bytes * images, FIELD).ok()?.to_vec();
            bytes.extend(inflate(cursor.rest(), bytes_max).ok()??);
            bytes
        } else {
            cursor.rest().to_vec()
        };
        let rows = Self {
            map,
            kind,
            bytes,
            bitmap_bytes,
        };
        rows.is_sound(images).then_some(rows)
    }

    /// Whether the rows can be told apart: there is one, each has a column, and offsets have 32
    /// bits.
    fn is_sound(&self, images: usize) -> bool {
        self.bytes.len() > self.bitmap_bytes * images
            && u32::try_from(self.bytes.len()).is_ok()
            && count_of(&self.bytes[..self.bitmap_bytes], self.map.columns.len()) > 0
    }

    /// The table.
    pub fn map(&self) -> &Arc<TableMap> {
        &self.map
    }

    /// What happened to the rows.
    pub fn kind(&self) -> RowsKind {
        self.kind
    }

    /// Size of the rows as they are held, bytes.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Calls `take` for each row, in their order, until it breaks.
    ///
    /// # Errors
    /// The bytes aren't rows of the table. What `take` has seen until then may be wrong: the whole
    /// table counts as changed.
    pub fn for_each(
        &self,
        mut take: impl FnMut(RowChange<'_>) -> ControlFlow<()>,
    ) -> Result<(), DecodeError> {
        let (first, rest) = self.bytes.split_at(self.bitmap_bytes);
        let first = Present::new(first, self.map.columns.len());
        let second = match self.kind {
            RowsKind::Update => Some(Present::new(
                &rest[..self.bitmap_bytes],
                self.map.columns.len(),
            )),
            RowsKind::Write | RowsKind::Delete => None,
        };
        let mut reader = Reader {
            columns: &self.map.columns,
            bytes: &self.bytes,
            at: self.bitmap_bytes * if second.is_some() { 2 } else { 1 },
        };
        let capacity = self.map.columns.len();
        let mut fields = Vec::with_capacity(capacity);
        let mut fields_after = Vec::with_capacity(if second.is_some() { capacity } else { 0 });
        while reader.at < self.bytes.len() {
            reader.image(first, &mut fields)?;
            if let Some(second) = second {
                reader.image(second, &mut fields_after)?;
            }
            let image = RowImage {
                bytes: &self.bytes,
                fields: &fields,
            };
            let image_after = RowImage {
                bytes: &self.bytes,
                fields: &fields_after,
            };
            let (before, after) = match self.kind {
                RowsKind::Write => (None, Some(image)),
                RowsKind::Delete => (Some(image), None),
                RowsKind::Update => (Some(image), Some(image_after)),
            };
            if take(RowChange { before, after }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl<'a> RowImage<'a> {
    /// The column with this ordinal (from 0).
    pub fn field(&self, column: usize) -> Field<'a> {
        match self.fields.get(column) {
            None | Some(&ABSENT) => Field::Absent,
            Some(&NULL) => Field::Null,
            Some(span) => self
                .bytes
                .get(span.start as usize..span.end as usize)
                .map_or(Field::Absent, Field::Bytes),
        }
    }
}

/// The columns that an image has.
#[derive(Debug, Clone, Copy)]
struct Present<'a> {
    bitmap: &'a [u8],
    is_all: bool,
    null_bytes: usize,
}

impl<'a> Present<'a> {
    fn new(bitmap: &'a [u8], columns: usize) -> Self {
        let count = count_of(bitmap, columns);
        Self {
            bitmap,
            is_all: count == columns,
            null_bytes: count.div_ceil(8),
        }
    }
}

fn count_of(bitmap: &[u8], columns: usize) -> usize {
    (0..columns).filter(|at| is_set(bitmap, *at)).count()
}

fn is_set(bitmap: &[u8], at: usize) -> bool {
    bitmap
        .get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 != 0)
}

/// Reads images one after the other.
struct Reader<'a> {
    columns: &'a [LoggedColumn],
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next image: which of its columns are NULL, then the values of the others.
    fn image(&mut self, present: Present<'_>, fields: &mut Vec<Span>) -> Result<(), DecodeError> {
        let bytes = self.bytes;
        let nulls = bytes
            .get(self.at..self.at + present.null_bytes)
            .ok_or_else(|| self.truncated(present.null_bytes))?;
        self.at += present.null_bytes;
        fields.clear();
        let mut number = 0;
        for (at, column) in self.columns.iter().enumerate() {
            if !present.is_all && !is_set(present.bitmap, at) {
                fields.push(ABSENT);
                continue;
            }
            let is_null = is_set(nulls, number);
            number += 1;
            fields.push(if is_null {
                NULL
            } else {
                self.value(column.kind)?
            });
        }
        Ok(())
    }

    fn value(&mut self, kind: ColumnKind) -> Result<Span, DecodeError> {
        let (prefix_bytes, value_bytes) = match kind.width() {
            Width::Fixed(bytes) => (0, bytes),
            Width::Prefixed(bytes) => {
                let prefix = self
                    .bytes
                    .get(self.at..self.at + bytes)
                    .ok_or_else(|| self.truncated(bytes))?;
                let length = prefix
                    .iter()
                    .rev()
                    .fold(0_usize, |value, byte| (value << 8) | usize::from(*byte));
                (bytes, length)
            }
        };
        let start = self.at + prefix_bytes;
        let end = start
            .checked_add(value_bytes)
            .filter(|end| *end <= self.bytes.len())
            .ok_or_else(|| self.truncated(value_bytes))?;
        self.at = end;
        // Offsets fit: the rows have been looked at.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Ok(Span {
            start: offset(start),
            end: offset(end),
        })
    }

    fn truncated(&self, needed: usize) -> DecodeError {
        DecodeError::Truncated {
            field: "row",
            needed,
            left: self.bytes.len().saturating_sub(self.at),
        }
    }
}
