//! The lines of a log, with a look ahead, and the connections that they name.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, Read as _};

use super::event::{Place, ReadError};

/// The longest line that is taken, bytes: no server takes a longer statement.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
}

/// The lines of a file.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    number: u64,
    ahead: VecDeque<Line>,
    has_ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(source: R) -> Lines<R> {
        Lines {
            source,
            number: 0,
            ahead: VecDeque::new(),
            has_ended: false,
        }
    }

    /// The next line; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Line>, ReadError> {
        self.fill(1)?;
        Ok(self.ahead.pop_front())
    }

    /// The line so many lines after the next one, which stays where it is.
    pub(super) fn peek(&mut self, index: usize) -> Result<Option<&Line>, ReadError> {
        self.fill(index + 1)?;
        Ok(self.ahead.get(index))
    }

    /// The bytes of that line; none at the end of the file.
    pub(super) fn peek_bytes(&mut self, index: usize) -> Result<&[u8], ReadError> {
        Ok(self
            .peek(index)?
            .map(|line| line.bytes.as_slice())
            .unwrap_or_default())
    }

    fn fill(&mut self, count: usize) -> Result<(), ReadError> {
        while self.ahead.len() < count && !self.has_ended {
            let place = Place::Line(self.number + 1);
            let mut bytes = Vec::new();
            let read = (&mut self.source)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut bytes)
                .map_err(|error| {
                    self.has_ended = true;
                    ReadError::last(place, format!("can't be read: {error}"))
                })?;
            if read as u64 == LINE_BYTES_MAX {
                self.has_ended = true;
                return Err(ReadError::last(
                    place,
                    "is longer than 1 GiB: this is no log",
                ));
            }
            if read == 0 {
                self.has_ended = true;
                break;
            }
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            self.number += 1;
            self.ahead.push_back(Line {
                number: self.number,
                bytes,
            });
        }
        Ok(())
    }
}

/// Whether the line is the first of the lines that a server writes when it opens a log.
pub(super) fn is_server_start(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line.ends_with(b"started with:") && contains(line, b", Version: ")
}

/// Whether the line is another of those.
pub(super) fn is_server_start_further(line: &[u8]) -> bool {
    let begins =
        |with: &[u8]| line.len() >= with.len() && line[..with.len()].eq_ignore_ascii_case(with);
    begins(b"Tcp port: ") || (begins(b"Time") && line.trim_ascii_end().ends_with(b"Argument"))
}

/// Whether the bytes occur in the text.
pub(super) fn contains(text: &[u8], bytes: &[u8]) -> bool {
    text.windows(bytes.len()).any(|window| window == bytes)
}

/// What stands behind a mark, if that occurs.
pub(super) fn after<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(mark.len()).position(|window| window == mark)?;
    Some(&text[at + mark.len()..])
}

/// The number at the start of the text, behind spaces.
pub(super) fn leading_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// Numbers connections in the order of appearance.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// A server numbers its connections from 1 again when it starts.
    starts: u64,
    numbers: HashMap<(u64, Vec<u8>), u32>,
}

impl Connections {
    /// The server has started again: what it numbers from now on is new.
    pub(super) fn server_started(&mut self) {
        self.starts += 1;
        self.numbers.clear();
    }

    /// The number of the connection that the log calls so.
    pub(super) fn number(&mut self, name: &[u8], next: &mut u32) -> u32 {
        let key = (self.starts, name.to_vec());
        *self.numbers.entry(key).or_insert_with(|| {
            let number = *next;
            *next = next.wrapping_add(1);
            number
        })
    }

    /// The connection that the log calls so has ended; a later one of that name is another.
    pub(super) fn ended(&mut self, name: &[u8]) {
        self.numbers.remove(&(self.starts, name.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_can_be_looked_at_before_they_are_taken() {
        let mut lines = Lines::new(&b"one\ntwo\r\n\nfour"[..]);
        assert_eq!(lines.peek_bytes(3).unwrap(), b"four");
        assert_eq!(lines.peek_bytes(4).unwrap(), b"");
        let taken: Vec<_> = std::iter::from_fn(|| lines.next().unwrap()).collect();
        let numbers: Vec<_> = taken.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!(taken[1].bytes, b"two\r");
    }

    #[test]
    fn a_server_names_itself_when_it_opens_a_log() {
        let line = b"/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-log (Debian 12). started with:";
        assert!(is_server_start(line));
        assert!(!is_server_start(b"SELECT 'started with:'"));
        assert!(is_server_start_further(b"Tcp port: 3306  Unix socket: /x"));
        for heads in [
            &b"Time\t\t    Id Command\tArgument"[..],
            b"Time                 Id Command    Argument",
        ] {
            assert!(is_server_start_further(heads));
        }
    }
}
