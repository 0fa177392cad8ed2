//! One log stream's events, in order.

use std::collections::HashMap;
use std::sync::Arc;

use flate2::Crc;

use crate::body;
use crate::column::{Family, TableMap};
use crate::error::DecodeError;
use crate::event::{ChecksumAlgorithm, Event, FormatDescription, GroupBegin, GroupShape};
use crate::gtid::Gtid;
use crate::header::{EventHeader, HEADER_BYTES, LOG_IN_USE, event_type as ty};
use crate::kept::Kept;
use crate::kinds::RowsFormat;
use crate::kinds::RowsKind;
use crate::kinds::{ends_group, is_about_the_log, is_ignored, rows_kind};
use crate::limits::DecoderLimits;
use crate::mysql_gtid;
use crate::payload;
use crate::rows::Rows;

const CHECKSUM_BYTES: usize = 4;
/// Row event flag: the last of its statement; table numbers are void after it.
const STATEMENT_ENDS: u64 = 1;
/// Enough of a row event to tell its table and flags.
const ROWS_HEAD_BYTES: usize = 64;
/// How far one event may move the position on. More means that it went back instead.
const STEP_BYTES_MAX: u64 = 1 << 31;

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The header.
    pub header: EventHeader,
    /// The offset in the current file at which the event ends; `None` if it isn't in the log
    /// (made up by the server for this reader). If the header has none, which MariaDB since 11.4
    /// leaves out within a group, it is the least that it can be: the server doesn't send all
    /// events.
    pub end_offset: Option<u64>,
    /// The event.
    pub event: Event,
}

/// Decodes the events of one connection, in the order in which they come.
///
/// It keeps the checksum algorithm, the current file, the offset in 64 bits (events carry 32) and
/// the tables' numbers. After an error the stream can't be read on.
#[derive(Debug)]
pub struct StreamDecoder {
    limits: DecoderLimits,
    file: String,
    offset: u64,
    checksum: ChecksumAlgorithm,
    post_header_bytes: Option<Vec<u8>>,
    tables: HashMap<u64, Arc<TableMap>>,
    /// The last event with an offset of its own began a group of MariaDB's.
    inside_group: bool,
}

impl StreamDecoder {
    /// A decoder for a stream that was asked for from `offset` of `file`.
    pub fn new(file: String, offset: u64, limits: DecoderLimits) -> Self {
        Self {
            limits,
            file,
            offset,
            checksum: ChecksumAlgorithm::None,
            post_header_bytes: None,
            tables: HashMap::new(),
            inside_group: false,
        }
    }

    /// The file that events come from now.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The end of the last event in it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Decodes one whole event.
    pub fn decode(&mut self, event: &[u8]) -> Result<Decoded, DecodeError> {
        let header = EventHeader::parse(event)?;
        check_length(&header, event.len() as u64)?;
        let body_end = self.verify(&header, event)?;
        let body = event
            .get(HEADER_BYTES..body_end)
            .ok_or(DecodeError::Truncated {
                field: "event body",
                needed: HEADER_BYTES,
                left: body_end,
            })?;
        let end_offset = self.end_offset(&header)?;
        let event = self.body(&header, body)?;
        Ok(self.place(header, end_offset, event))
    }

    /// Decodes an event of which only the beginning was kept because it is very long. Only row
    /// events can still be named; others that change something are [`Event::Unnamed`]. Its
    /// checksum isn't verified.
    pub fn decode_oversized(
        &mut self,
        beginning: &[u8],
        event_bytes: u64,
    ) -> Result<Decoded, DecodeError> {
        let header = EventHeader::parse(beginning)?;
        check_length(&header, event_bytes)?;
        let end_offset = self.end_offset(&header)?;
        let event = self.beginning(&header, &beginning[HEADER_BYTES..])?;
        Ok(self.place(header, end_offset, event))
    }

    /// An event of which there is only the beginning of its body.
    fn beginning(&mut self, header: &EventHeader, body: &[u8]) -> Result<Event, DecodeError> {
        Ok(match rows_kind(header.event_type) {
            Some((kind, _)) => self.rows(kind, None, header, body)?,
            None if is_ignored(header) => Event::Ignored(header.event_type),
            None if header.event_type == ty::TRANSACTION_PAYLOAD => Event::Payload(None),
            None => Event::Unnamed(header.event_type),
        })
    }

    /// Verifies the checksum; gives the offset at which the body ends.
    fn verify(&mut self, header: &EventHeader, event: &[u8]) -> Result<usize, DecodeError> {
        let described = header.event_type == ty::FORMAT_DESCRIPTION;
        if described {
            self.checksum = body::checksum_algorithm(event)?;
        }
        if self.post_header_bytes.is_none() && !described {
            // The artificial rotate event that comes first. Nothing has said yet whether it carries
            // a checksum, so it does if the bytes are right.
            let end = event.len().saturating_sub(CHECKSUM_BYTES);
            let fits = end >= HEADER_BYTES && checksum_of(&event[..end], false) == event[end..];
            return Ok(if fits { end } else { event.len() });
        }
        let with_checksum = self.checksum == ChecksumAlgorithm::Crc32;
        if !with_checksum && !described {
            return Ok(event.len());
        }
        let Some(end) = event
            .len()
            .checked_sub(CHECKSUM_BYTES)
            .filter(|end| *end >= HEADER_BYTES)
        else {
            return Err(DecodeError::Truncated {
                field: "checksum",
                needed: CHECKSUM_BYTES,
                left: event.len(),
            });
        };
        if with_checksum && checksum_of(&event[..end], described) != event[end..] {
            return Err(DecodeError::Checksum {
                event_type: header.event_type,
            });
        }
        // A format description has the algorithm before the checksum's four bytes.
        Ok(if described { end - 1 } else { end })
    }

    fn end_offset(&self, header: &EventHeader) -> Result<Option<u64>, DecodeError> {
        // A heartbeat has the place up to which the server has sent the log. Between two files that
        // is the end of the old one, while the stream already is in the next.
        let is_heartbeat = matches!(header.event_type, ty::HEARTBEAT | ty::HEARTBEAT_V2);
        if header.artificial() || is_heartbeat {
            return Ok(None);
        }
        if header.end_offset_low == 0 {
            return match header.event_type {
                ty::ROTATE
                | ty::FORMAT_DESCRIPTION
                | ty::GTID_LIST
                | ty::START_ENCRYPTION
                | ty::PREVIOUS_GTIDS => Ok(None),
                other if self.inside_group && !ends_group(other) => {
                    Ok(Some(self.offset.saturating_add(header.event_bytes.into())))
                }
                other => Err(DecodeError::NoPosition(other)),
            };
        }
        // Events carry 32 bits. A file can be longer: one huge transaction isn't split.
        let low = u64::from(header.end_offset_low);
        let same_high = (self.offset & !0xffff_ffff) | low;
        let end = if same_high >= self.offset {
            Some(same_high)
        } else {
            same_high.checked_add(1 << 32)
        };
        end.filter(|end| end - self.offset <= STEP_BYTES_MAX)
            .map(Some)
            .ok_or(DecodeError::PositionWentBack {
                from: self.offset,
                to: low,
            })
    }

    fn body(&mut self, header: &EventHeader, body: &[u8]) -> Result<Event, DecodeError> {
        match header.event_type {
            ty::FORMAT_DESCRIPTION => self.format_description(header, body),
            ty::ROTATE => body::rotate(body).map(|(file, offset)| Event::Rotate { file, offset }),
            ty::HEARTBEAT => {
                // Behind 4 GiB of a file, newer MariaDB puts eight bytes of the position first. The
                // last of them is 0, which is in no file's name.
                let name = match body.split_at_checked(8) {
                    Some((position, name)) if position[7] == 0 => name,
                    _ => body,
                };
                let file = crate::cursor::utf8(name, "heartbeat's file name")?;
                Ok(Event::Heartbeat { file })
            }
            ty::HEARTBEAT_V2 => body::heartbeat_v2(body).map(|file| Event::Heartbeat { file }),
            other if self.post_header_bytes.is_none() => {
                Err(DecodeError::NoFormatDescription(other))
            }
            ty::QUERY | ty::QUERY_COMPRESSED => self.query(header, body),
            ty::TABLE_MAP => self.table_map(body),
            ty::GTID => body::gtid(body).map(|group| Event::Gtid { gtid: None, group }),
            ty::MYSQL_GTID | ty::MYSQL_ANONYMOUS_GTID => mysql_gtid::gtid(body).map(mysql_group),
            ty::MYSQL_GTID_TAGGED => Ok(mysql_group(mysql_gtid::tagged(body))),
            ty::PREVIOUS_GTIDS => {
                let ignored = Event::Ignored(header.event_type);
                mysql_gtid::previous(body).map(|set| set.map_or(ignored, Event::PreviousGtids))
            }
            ty::XID => Ok(Event::Xid),
            ty::XA_PREPARE => {
                body::xa_prepare(body).map(|(one_phase, xid)| Event::XaPrepare { one_phase, xid })
            }
            ty::TRANSACTION_PAYLOAD => Ok(Event::Payload(self.payload(body))),
            ty::BINLOG_CHECKPOINT => body::checkpoint(body).map(|file| Event::Checkpoint { file }),
            ty::STOP => Ok(Event::Stop),
            ty::INCIDENT => Ok(Event::Incident),
            other => match rows_kind(other) {
                Some((kind, format)) => self.rows(kind, format, header, body),
                None if is_ignored(header) => Ok(Event::Ignored(other)),
                None => Ok(Event::Unnamed(other)),
            },
        }
    }

    fn format_description(
        &mut self,
        header: &EventHeader,
        body: &[u8],
    ) -> Result<Event, DecodeError> {
        let format = body::format_description(body)?;
        self.post_header_bytes = Some(format.post_header_bytes);
        self.tables.clear();
        Ok(Event::FormatDescription(FormatDescription {
            server_version: format.server_version,
            created: format.created,
            file_begun: header.timestamp,
            server_id: header.server_id,
            checksum: self.checksum,
        }))
    }

    fn query(&self, header: &EventHeader, body: &[u8]) -> Result<Event, DecodeError> {
        let compressed = header.event_type == ty::QUERY_COMPRESSED;
        // Both have the same post-header; the compressed one's length isn't in older tables.
        let post = self.post_header_bytes_of(ty::QUERY);
        let query = body::query(body, post, compressed, self.limits.text_bytes_max)?;
        Ok(query.map_or(Event::Unnamed(header.event_type), Event::Query))
    }

    fn table_map(&mut self, body: &[u8]) -> Result<Event, DecodeError> {
        let table_id_bytes = self.table_id_bytes(ty::TABLE_MAP);
        let (table_id, table) = body::table_map(body, table_id_bytes, self.family())?;
        let table = Arc::new(table);
        if self.tables.len() < self.limits.table_ids_max || self.tables.contains_key(&table_id) {
            self.tables.insert(table_id, table.clone());
        }
        Ok(Event::TableMap { table_id, table })
    }

    /// A rows event; `format` is `None` if its rows can't be read.
    fn rows(
        &mut self,
        kind: RowsKind,
        format: Option<RowsFormat>,
        header: &EventHeader,
        body: &[u8],
    ) -> Result<Event, DecodeError> {
        let (table_id, flags, bytes) = body::rows(body, self.table_id_bytes(header.event_type))?;
        let table = self.tables.get(&table_id).cloned();
        let statement_ends = u64::from(flags) & STATEMENT_ENDS != 0;
        if statement_ends {
            self.tables.clear();
        }
        let bytes_max = self.limits.rows_bytes_max;
        let rows = table.clone().zip(format);
        let rows = rows.and_then(|(map, format)| Rows::read(map, kind, format, bytes, bytes_max));
        Ok(Event::Rows {
            kind,
            table,
            statement_ends,
            rows,
        })
    }

    /// The events in a transaction payload.
    fn payload(&mut self, body: &[u8]) -> Option<Vec<Event>> {
        // Its table maps are its own.
        self.tables.clear();
        let events = self.payload_events(body);
        self.tables.clear();
        events
    }

    fn payload_events(&mut self, body: &[u8]) -> Option<Vec<Event>> {
        let limits = self.limits;
        let mut payload = payload::open(body, limits.payload_bytes_max)?;
        let mut kept = Kept::new(&limits);
        while !payload.is_at_end()? {
            let rows_bytes_left = kept.rows_bytes_left as u64;
            let inner = payload.next(|event_type, bytes| match rows_kind(event_type) {
                Some(_) if bytes > rows_bytes_left => ROWS_HEAD_BYTES,
                Some(_) => usize::try_from(bytes).unwrap_or(usize::MAX),
                None => limits.text_bytes_max,
            })?;
            if is_about_the_log(inner.header.event_type) {
                return None;
            }
            let event = if inner.is_whole {
                self.body(&inner.header, &inner.body).ok()?
            } else {
                self.beginning(&inner.header, &inner.body).ok()?
            };
            kept.take(event, inner.body.len(), inner.is_whole)?;
        }
        Some(kept.events)
    }

    /// The server that wrote the log: MySQL doesn't know the events that MariaDB's format
    /// description tells of (its version can be anything).
    fn family(&self) -> Family {
        let types = self.post_header_bytes.as_ref().map_or(0, Vec::len);
        if types >= usize::from(ty::ANNOTATE_ROWS) {
            Family::MariaDb
        } else {
            Family::MySql
        }
    }

    fn post_header_bytes_of(&self, event_type: u8) -> usize {
        let table = self.post_header_bytes.as_deref().unwrap_or_default();
        let at = usize::from(event_type).wrapping_sub(1);
        table.get(at).map_or(0, |bytes| usize::from(*bytes))
    }

    /// Four in logs of MySQL 5.1 betas, whose post-header has six bytes; else six.
    fn table_id_bytes(&self, event_type: u8) -> usize {
        if self.post_header_bytes_of(event_type) == 6 {
            4
        } else {
            6
        }
    }

    /// Moves the decoder on to the event's end (or into the next file).
    fn place(&mut self, header: EventHeader, end_offset: Option<u64>, event: Event) -> Decoded {
        if let Some(end) = end_offset {
            self.offset = end;
            if header.end_offset_low != 0 {
                self.inside_group = header.event_type == ty::GTID;
            }
        }
        if let Event::Rotate { file, offset } = &event {
            self.file.clone_from(file);
            self.offset = *offset;
            self.tables.clear();
        }
        Decoded {
            header,
            end_offset,
            event,
        }
    }
}

fn check_length(header: &EventHeader, received: u64) -> Result<(), DecodeError> {
    let said = u64::from(header.event_bytes);
    if said == received {
        Ok(())
    } else {
        Err(DecodeError::Length { said, received })
    }
}

/// CRC32 of an event. The format description's is made as if the log weren't in use.
fn checksum_of(bytes: &[u8], format_description: bool) -> [u8; CHECKSUM_BYTES] {
    const FLAGS_AT: usize = 17;
    let mut crc = Crc::new();
    if format_description {
        crc.update(&bytes[..FLAGS_AT]);
        crc.update(&[bytes[FLAGS_AT] & !LOG_IN_USE.to_le_bytes()[0]]);
        crc.update(&bytes[FLAGS_AT + 1..]);
    } else {
        crc.update(bytes);
    }
    crc.sum().to_le_bytes()
}

/// MySQL's GTID events say no more about the group than its identity.
fn mysql_group(gtid: Option<Gtid>) -> Event {
    let group = GroupBegin {
        domain: 0,
        sequence: 0,
        shape: GroupShape::ToldByFirstStatement,
        ddl: false,
        begins_alter: false,
        xa: None,
    };
    Event::Gtid { gtid, group }
}
