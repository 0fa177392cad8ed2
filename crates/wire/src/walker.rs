//! Finding the end of a response in a stream of bytes, without decoding its rows.
//!
//! The proxy hands each chunk that the server sent to [`ResponseWalker::feed`] and relays it as it
//! is. The walker steps from header to header, reads the few bytes that decide what a packet means,
//! and skips everything else, however the chunks are cut and however long the packets are.

use crate::command::ResponseKind;
use crate::packet::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX};
use crate::reader::Reader;
use crate::response::{
    EOF_BYTES_BELOW, EOF_MARK, ERR_MARK, EndMark, LOCAL_FILE_MARK, OK_MARK, PROGRESS_CODE,
};
use crate::{Capabilities, StatusFlags, WireError};

/// How many bytes of a packet's payload can decide what it means: an OK packet's mark, two numbers
/// of at most nine bytes each, status and warnings.
const DECISIVE_BYTES: usize = 24;

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// OK, or another single packet that is no error.
    Ok,
    /// One or more complete result sets (or rows, or column definitions).
    ResultSet,
    /// An error with its code, possibly in the middle of a result set.
    Err(u16),
    /// A statement was prepared.
    Prepared {
        /// The server's number of the statement.
        statement_id: u32,
        /// How many parameters it has.
        parameters: u16,
    },
}

/// What is known of a response when its last byte has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// How it ended.
    pub ending: Ending,
    /// The last OK or EOF packet; `None` after an error or an answer that has none.
    pub mark: Option<EndMark>,
    /// How many results (OK packets, result sets, errors) it had; none for a preparation.
    pub results: u32,
    /// Whether its packets were numbered one after the other from 1, with nothing between them that
    /// only this client wanted.
    pub numbered_from_one: bool,
}

impl Summary {
    /// Whether it ended without an error.
    pub fn succeeded(&self) -> bool {
        !matches!(self.ending, Ending::Err(_))
    }
}

/// What the bytes fed so far amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The response goes on.
    More,
    /// The server wants a file from the client; its content goes up, then the response goes on.
    LocalFile,
    /// The response is complete.
    Done(Summary),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first packet of a response or of its next result.
    Start(ResponseKind),
    /// A local file was asked for.
    LocalFile,
    /// `left` definitions to come, then an end mark unless it is deprecated, then `then`.
    Definitions {
        left: u64,
        then: AfterDefinitions,
    },
    /// The end mark of definitions.
    DefinitionsEnd {
        then: AfterDefinitions,
    },
    Rows,
    /// Definitions up to an end mark, without a count.
    OpenDefinitions,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterDefinitions {
    Rows,
    /// A preparation's columns, after its parameters.
    Columns {
        /// How many the statement has. With none, nothing follows.
        count: u64,
        /// Whether they are defined. If not, their end mark still comes.
        defined: bool,
    },
    End,
}

/// Walks one response.
#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is independent of the others"
)]
pub struct ResponseWalker {
    capabilities: Capabilities,
    state: State,
    /// The start of the packet at hand: header, then decisive bytes.
    head: [u8; HEADER_BYTES + DECISIVE_BYTES],
    head_length: usize,
    /// Bytes of the packet at hand that remain to be skipped.
    skip: usize,
    /// Whether the next packet continues a payload that filled the one before.
    continued: bool,
    next_sequence: u8,
    untouched: bool,
    has_rows: bool,
    summary: Summary,
    /// Whether the definitions' end mark said that more results follow these output parameters.
    /// MySQL says so there; its rows' EOF doesn't repeat it, though an OK always follows.
    more_after_out_parameters: bool,
    /// What the command is answered by.
    expect: ResponseKind,
}

impl ResponseWalker {
    /// A walker for the answer to a command, for a client with these capabilities.
    pub fn new(expect: ResponseKind, capabilities: Capabilities) -> ResponseWalker {
        let state = match expect {
            ResponseKind::Rows => State::Rows,
            ResponseKind::Columns => State::OpenDefinitions,
            ResponseKind::ResultsOrCursor => State::Start(ResponseKind::Results),
            other => State::Start(other),
        };
        let mut walker = ResponseWalker {
            capabilities,
            state,
            head: [0; HEADER_BYTES + DECISIVE_BYTES],
            head_length: 0,
            skip: 0,
            continued: false,
            next_sequence: 1,
            untouched: true,
            has_rows: false,
            summary: Summary {
                ending: Ending::Ok,
                mark: None,
                results: 0,
                numbered_from_one: true,
            },
            more_after_out_parameters: false,
            expect,
        };
        if expect == ResponseKind::Nothing {
            walker.state = State::Done;
        }
        walker
    }

    /// Whether no byte of the response has been fed.
    pub fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// Whether a row has come so far, or a definition of an answer that is nothing else.
    pub fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// Walks over `bytes`; gives how many belong to this response and what they amount to. After
    /// [`Progress::Done`] nothing more is consumed.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Progress), WireError> {
        let mut at = 0;
        // Not told from the numbers: they begin again after 256 packets.
        self.untouched &= bytes.is_empty() || self.state == State::Done;
        loop {
            let skipped = self.skip.min(bytes.len() - at);
            self.skip -= skipped;
            at += skipped;
            if self.skip > 0 {
                return Ok((at, Progress::More));
            }
            if self.state == State::LocalFile && !self.continued {
                self.state = State::Start(ResponseKind::Results);
                // The client's packets take part in the numbering from here on.
                self.summary.numbered_from_one = false;
                return Ok((at, Progress::LocalFile));
            }
            if self.state == State::Done && !self.continued {
                return Ok((at, Progress::Done(self.summary)));
            }
            at += self.plain_rows(&bytes[at..]);
            match self.next_packet(&bytes[at..])? {
                Some(used) => at += used,
                None => return Ok((bytes.len(), Progress::More)),
            }
        }
    }

    /// Steps over the complete packets at the start of `bytes` that are nothing but rows or
    /// definitions, and gives how many bytes they have. A long answer is thousands of them, often
    /// of a dozen bytes: everything else is looked at closely only where this stops.
    fn plain_rows(&mut self, bytes: &[u8]) -> usize {
        let is_among_rows = matches!(self.state, State::Rows | State::OpenDefinitions);
        if !is_among_rows || self.continued || self.head_length > 0 {
            return 0;
        }
        let (mut at, mut in_order) = (0, true);
        let mut next_sequence = self.next_sequence;
        while let Some(&[a, b, c, sequence, first]) = bytes[at..].first_chunk() {
            let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            let end = at + HEADER_BYTES + length;
            // An empty packet has no first byte; a full one is continued.
            let is_plain = first < EOF_MARK && length > 0 && length < PAYLOAD_BYTES_MAX;
            if !is_plain || end > bytes.len() {
                break;
            }
            in_order &= sequence == next_sequence;
            next_sequence = sequence.wrapping_add(1);
            at = end;
        }
        self.next_sequence = next_sequence;
        self.summary.numbered_from_one &= in_order;
        self.has_rows |= at > 0;
        at
    }

    /// Takes in the next packet's header and decisive bytes, and acts on them. `None`: `bytes` end
    /// before they are complete; they are kept.
    fn next_packet(&mut self, bytes: &[u8]) -> Result<Option<usize>, WireError> {
        if self.head_length == 0
            && let Some(header) = Header::peek(bytes)
        {
            // The common case: everything decisive lies in this chunk.
            let wanted = self.decisive_bytes(header, bytes.get(HEADER_BYTES).copied());
            if let Some(payload) = bytes.get(HEADER_BYTES..HEADER_BYTES + wanted) {
                self.begin(header, payload)?;
                return Ok(Some(HEADER_BYTES + wanted));
            }
        }
        self.next_packet_in_pieces(bytes)
    }

    fn next_packet_in_pieces(&mut self, bytes: &[u8]) -> Result<Option<usize>, WireError> {
        let mut used = 0;
        loop {
            let wanted = match Header::peek(&self.head[..self.head_length]) {
                None => HEADER_BYTES,
                Some(header) => {
                    let first = self.head[..self.head_length].get(HEADER_BYTES).copied();
                    HEADER_BYTES + self.decisive_bytes(header, first)
                }
            };
            if self.head_length >= HEADER_BYTES && self.head_length >= wanted {
                let head = self.head;
                let length = self.head_length;
                self.head_length = 0;
                if let Some(header) = Header::peek(&head) {
                    self.begin(header, &head[HEADER_BYTES..length])?;
                }
                return Ok(Some(used));
            }
            let Some(&byte) = bytes.get(used) else {
                return Ok(None);
            };
            self.head[self.head_length] = byte;
            self.head_length += 1;
            used += 1;
        }
    }

    /// How many bytes of a packet's payload must be seen, given its first.
    fn decisive_bytes(&self, header: Header, first: Option<u8>) -> usize {
        if self.continued {
            return 0;
        }
        let full = header.length.min(DECISIVE_BYTES);
        match (self.state, first) {
            // Rows and definitions are told by one byte, unless that byte may be an end mark.
            (State::Definitions { .. }, _) => 0,
            (State::Rows | State::OpenDefinitions, Some(first)) if first < EOF_MARK => full.min(1),
            (State::Rows | State::OpenDefinitions, None) => full.min(1),
            _ => full,
        }
    }

    /// A packet begins: `payload` are its decisive bytes. Sets how much is to be skipped.
    fn begin(&mut self, header: Header, payload: &[u8]) -> Result<(), WireError> {
        if header.sequence != self.next_sequence {
            self.summary.numbered_from_one = false;
        }
        self.next_sequence = header.sequence.wrapping_add(1);
        self.skip = header.length - payload.len();
        let is_continuation = self.continued;
        self.continued = header.is_continued();
        if is_continuation {
            return Ok(());
        }
        match self.state {
            State::Start(expect) => self.on_first(expect, header, payload),
            State::Definitions { left, then } => {
                self.definitions(left.saturating_sub(1), then);
                Ok(())
            }
            State::DefinitionsEnd { then } => self.on_definitions_end(then, payload),
            State::Rows | State::OpenDefinitions => self.on_row(header, payload),
            State::LocalFile | State::Done => Ok(()),
        }
    }

    fn on_first(
        &mut self,
        expect: ResponseKind,
        header: Header,
        payload: &[u8],
    ) -> Result<(), WireError> {
        let Some(&first) = payload.first() else {
            return Err(WireError::Malformed("response: its first packet is empty"));
        };
        if first == ERR_MARK {
            return self.on_error(payload);
        }
        match expect {
            ResponseKind::Prepared => self.on_prepared(payload),
            ResponseKind::Results => match first {
                OK_MARK => self.on_ok(payload),
                LOCAL_FILE_MARK => {
                    self.state = State::LocalFile;
                    Ok(())
                }
                _ => self.on_column_count(payload),
            },
            _ => {
                self.summary.mark = match first {
                    OK_MARK => EndMark::from_ok(payload).ok(),
                    EOF_MARK if self.is_end_mark(header) => self.end_mark(payload).ok(),
                    _ => None,
                };
                self.finish(Ending::Ok);
                Ok(())
            }
        }
    }

    fn on_ok(&mut self, payload: &[u8]) -> Result<(), WireError> {
        self.end_of_result(EndMark::from_ok(payload)?, Ending::Ok);
        Ok(())
    }

    /// The count of columns and, if the client can do without their definitions, whether these
    /// follow. MySQL's manual has the mark before the count; its server sends it after, as
    /// MariaDB's.
    fn on_column_count(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let mut reader = Reader::new(payload);
        let columns = reader.length("result set's column count")?;
        let optional = self
            .capabilities
            .has(Capabilities::OPTIONAL_RESULTSET_METADATA)
            || self.capabilities.has(Capabilities::MARIADB_CACHE_METADATA);
        let defined =
            !optional || reader.is_empty() || reader.u8("result set's metadata mark")? != 0;
        let left = if defined { columns } else { 0 };
        self.definitions(left, AfterDefinitions::Rows);
        Ok(())
    }

    /// Goes on with `left` definitions, or with what follows the last.
    fn definitions(&mut self, left: u64, then: AfterDefinitions) {
        if left > 0 {
            self.state = State::Definitions { left, then };
        } else if self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            self.after_definitions(then);
        } else {
            self.state = State::DefinitionsEnd { then };
        }
    }

    fn after_definitions(&mut self, then: AfterDefinitions) {
        match then {
            AfterDefinitions::Rows => self.state = State::Rows,
            AfterDefinitions::Columns { count: 0, .. } | AfterDefinitions::End => {
                self.state = State::Done;
            }
            AfterDefinitions::Columns { count, defined } => {
                self.definitions(if defined { count } else { 0 }, AfterDefinitions::End);
            }
        }
    }

    fn on_definitions_end(
        &mut self,
        then: AfterDefinitions,
        payload: &[u8],
    ) -> Result<(), WireError> {
        if payload.first() == Some(&ERR_MARK) {
            return self.on_error(payload);
        }
        let mark = EndMark::from_eof(payload)?;
        let out_parameters = StatusFlags::OUT_PARAMETERS.with(StatusFlags::MORE_RESULTS);
        self.more_after_out_parameters = mark.status.has(out_parameters);
        // A cursor was opened: its rows are fetched by commands of their own. MariaDB sets the flag
        // also while a procedure reads by a cursor of its own.
        let asked = self.expect == ResponseKind::ResultsOrCursor;
        let is_opened = asked && mark.status.has(StatusFlags::CURSOR_EXISTS);
        if then == AfterDefinitions::Rows && is_opened {
            self.end_of_result(mark, Ending::ResultSet);
        } else {
            self.after_definitions(then);
        }
        Ok(())
    }

    fn on_prepared(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let mut reader = Reader::new(payload);
        if reader.u8("preparation")? != OK_MARK {
            return Err(WireError::Malformed("preparation"));
        }
        let statement_id = reader.u32("preparation's statement id")?;
        let columns = u64::from(reader.u16("preparation's column count")?);
        let parameters = reader.u16("preparation's parameter count")?;
        let optional = Capabilities::OPTIONAL_RESULTSET_METADATA;
        let defined = !self.capabilities.has(optional)
            || reader.bytes(3, "preparation's warnings").is_err()
            || reader.is_empty()
            || reader.u8("preparation's metadata mark")? != 0;
        self.summary.ending = Ending::Prepared {
            statement_id,
            parameters,
        };
        let then = AfterDefinitions::Columns {
            count: columns,
            defined,
        };
        if parameters > 0 {
            let parameters = if defined { parameters } else { 0 };
            self.definitions(u64::from(parameters), then);
        } else {
            self.after_definitions(then);
        }
        Ok(())
    }

    /// A packet where a row, a definition without count, or their end may come.
    fn on_row(&mut self, header: Header, payload: &[u8]) -> Result<(), WireError> {
        match payload.first() {
            Some(&ERR_MARK) => self.on_error(payload),
            Some(&EOF_MARK) if self.is_end_mark(header) => {
                let mark = self.end_mark(payload)?;
                self.end_of_result(mark, Ending::ResultSet);
                Ok(())
            }
            _ => {
                self.has_rows = true;
                Ok(())
            }
        }
    }

    /// A row that begins with 0xfe has a first field of at least 16 MiB, so its first packet is
    /// full; with the old EOF it can't be told by that, but EOF is short.
    fn is_end_mark(&self, header: Header) -> bool {
        if self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            !header.is_continued()
        } else {
            header.length < EOF_BYTES_BELOW
        }
    }

    /// Reads what [`Self::is_end_mark`] told to be one.
    fn end_mark(&self, payload: &[u8]) -> Result<EndMark, WireError> {
        if self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            EndMark::from_ok(payload)
        } else {
            EndMark::from_eof(payload)
        }
    }

    fn on_error(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let mut reader = Reader::new(payload);
        reader.u8("ERR packet")?;
        let code = reader.u16("ERR packet's code")?;
        if code == PROGRESS_CODE {
            // Only this client asked for it, and another's answer would be numbered differently.
            self.summary.numbered_from_one = false;
        } else {
            self.summary.mark = None;
            self.finish(Ending::Err(code));
        }
        Ok(())
    }

    fn end_of_result(&mut self, mark: EndMark, ending: Ending) {
        self.summary.mark = Some(mark);
        let more = mark.status.has(StatusFlags::MORE_RESULTS) || self.more_after_out_parameters;
        self.more_after_out_parameters = false;
        if more {
            self.summary.results += 1;
            self.state = State::Start(ResponseKind::Results);
        } else {
            self.finish(ending);
        }
    }

    fn finish(&mut self, ending: Ending) {
        self.summary.results += 1;
        self.summary.ending = ending;
        self.state = State::Done;
    }
}
