//! What is kept of the events of a transaction payload.

use std::collections::HashSet;

use crate::event::Event;
use crate::limits::DecoderLimits;
use crate::table::LoggedTable;

/// Events of one payload, in bounded room: all of them as long as there is some, then one for each
/// table and statement. A transaction can have millions of row events of few tables.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) events: Vec<Event>,
    events_max: usize,
    /// Room for further rows, bytes.
    pub(crate) rows_bytes_left: usize,
    /// There was no room for rows, or for every event.
    is_full: bool,
    /// The tables whose map, and of which a row event without rows, was kept since it was full.
    mapped: HashSet<LoggedTable>,
    changed: HashSet<LoggedTable>,
}

impl Kept {
    pub(crate) fn new(limits: &DecoderLimits) -> Self {
        Self {
            events: Vec::new(),
            events_max: limits.payload_events_max,
            rows_bytes_left: limits.payload_rows_bytes_max,
            is_full: false,
            mapped: HashSet::new(),
            changed: HashSet::new(),
        }
    }

    /// Takes the next event; its body has `bytes`, of which only the beginning was read if it isn't
    /// `is_whole`. `None` if there are too many.
    pub(crate) fn take(&mut self, mut event: Event, bytes: usize, is_whole: bool) -> Option<()> {
        self.is_full |= self.events.len() >= self.events_max / 2;
        if let Event::Rows { rows, .. } = &mut event {
            match self.rows_bytes_left.checked_sub(bytes) {
                Some(left) if is_whole && !self.is_full => self.rows_bytes_left = left,
                _ => {
                    self.is_full = true;
                    *rows = None;
                }
            }
        }
        let is_news = match &event {
            Event::Ignored(_) => false,
            Event::TableMap { table, .. } if self.is_full => {
                self.mapped.insert(table.table.clone())
            }
            Event::Rows {
                table: Some(table), ..
            } if self.is_full => self.changed.insert(table.table.clone()),
            _ => true,
        };
        if is_news && self.events.len() >= self.events_max {
            return None;
        }
        if is_news {
            self.events.push(event);
        }
        Some(())
    }
}
