//! The bounds of decoding.

/// What a decoder is willing to hold.
#[derive(Debug, Clone, Copy)]
pub struct DecoderLimits {
    /// Longest query text to inflate, bytes. A longer one is [`crate::Event::Unnamed`].
    pub text_bytes_max: usize,
    /// Table numbers kept between a table map and its rows. Past it the rows name no table.
    pub table_ids_max: usize,
    /// Longest transaction payload to decompress, bytes without compression. A longer one is
    /// [`crate::Event::Payload`] without events.
    pub payload_bytes_max: usize,
    /// Events kept of one transaction payload. Past half of them, and past
    /// `payload_rows_bytes_max`, one for each table and each statement is kept. With more it is
    /// [`crate::Event::Payload`] without events.
    pub payload_events_max: usize,
    /// Row events kept with their rows of one transaction payload, bytes. Rows past it are `None`.
    pub payload_rows_bytes_max: usize,
    /// Longest rows of one event to inflate (MariaDB's compressed row events), bytes. Longer ones
    /// are `None`.
    pub rows_bytes_max: usize,
}

impl Default for DecoderLimits {
    fn default() -> Self {
        Self {
            text_bytes_max: 16 << 20,
            table_ids_max: 4096,
            payload_bytes_max: 64 << 20,
            payload_events_max: 16_384,
            payload_rows_bytes_max: 16 << 20,
            rows_bytes_max: 16 << 20,
        }
    }
}
