//! How the file is laid out: the header, the results one after the other, a checksum of it all.
//!
//! ```text
//! magic             16 bytes
//! header            8 bytes of length, JSON
//! results           each: 1, scope, note, as_of, lengths, tags, text, response
//! end               0, 8 bytes: how many results there are
//! checksum          16 bytes: xxh3-128 of everything before
//! ```
//!
//! Numbers are little-endian. Nothing here opens a file.

use std::io::{self, Read, Write};

use remora_cache::{Entry, Position, Scope, Tag};
use xxhash_rust::xxh3::Xxh3Default;

/// The first bytes: what it is, and its version.
const MAGIC: &[u8; 16] = b"remora results 1";
/// Those of every version.
const BEGIN: &[u8] = b"remora results ";
/// Bytes of the checksum.
const CHECKSUM: usize = 16;
/// No header is longer, however many tables and settings there are: another file was named.
const HEADER_BYTES_MAX: u64 = 1 << 30;

/// Writes and sums up what is written.
pub(super) struct Writer<W> {
    to: W,
    sum: Xxh3Default,
    results: u64,
}

impl<W: Write> Writer<W> {
    /// Begins with the header.
    pub(super) fn begin(to: W, header: &[u8]) -> io::Result<Writer<W>> {
        let mut writer = Writer {
            to,
            sum: Xxh3Default::new(),
            results: 0,
        };
        writer.put(MAGIC)?;
        writer.put(&(header.len() as u64).to_le_bytes())?;
        writer.put(header)?;
        Ok(writer)
    }

    /// Adds a result.
    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let (text, response) = (entry.text(), entry.response());
        let tags = entry.tags();
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
        self.put(&[1])?;
        self.put(&entry.scope().number().to_le_bytes())?;
        self.put(&entry.label().to_le_bytes())?;
        self.put(&entry.as_of().position().to_bits().to_le_bytes())?;
        self.put(&[u8::try_from(tags.len()).map_err(io::Error::other)?])?;
        self.put(&length(text)?.to_le_bytes())?;
        self.put(&length(response)?.to_le_bytes())?;
        for tag in tags {
            self.put(&tag.to_bits().to_le_bytes())?;
        }
        self.put(text)?;
        self.put(response)?;
        self.results += 1;
        Ok(())
    }

    /// Ends the file. Gives how many results it has.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.put(&[0])?;
        self.put(&self.results.to_le_bytes())?;
        let sum = self.sum.digest128().to_le_bytes();
        self.to.write_all(&sum)?;
        self.to.flush()?;
        Ok(self.results)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.to.write_all(bytes)
    }
}

/// Whether the file ends with the checksum of what stands before. `length` is the whole file's.
pub(super) fn is_whole(mut file: impl Read, length: u64) -> io::Result<bool> {
    let Some(summed) = length.checked_sub(CHECKSUM as u64) else {
        return Ok(false);
    };
    let mut sum = Xxh3Default::new();
    if sum_up(&mut sum, file.by_ref().take(summed))? != summed {
        return Ok(false);
    }
    let mut written = [0; CHECKSUM];
    file.read_exact(&mut written)?;
    Ok(u128::from_le_bytes(written) == sum.digest128())
}

/// Adds all bytes to a sum. Gives how many there were.
pub(super) fn sum_up(sum: &mut Xxh3Default, mut bytes: impl Read) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut length = 0;
    loop {
        let read = bytes.read(&mut buffer)?;
        if read == 0 {
            return Ok(length);
        }
        sum.update(&buffer[..read]);
        length += read as u64;
    }
}

/// Whether the first bytes are those of such a file, of any version. An empty one may have lost
/// them when the machine stopped.
pub(super) fn begins_like_one(file: &mut impl Read) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.take(BEGIN.len() as u64).read_to_end(&mut begin)?;
    Ok(begin.is_empty() || begin == BEGIN)
}

/// Reads the header. None if it isn't such a file.
pub(super) fn read_header(file: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    if array(file)? != *MAGIC {
        return Ok(None);
    }
    let length = u64::from_le_bytes(array(file)?);
    if length > HEADER_BYTES_MAX {
        return Ok(None);
    }
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header)?;
    Ok((header.len() as u64 == length).then_some(header))
}

/// A result as it was written. Its buffers are used again for the next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) scope: u64,
    pub(super) note: u32,
    pub(super) as_of: Position,
    pub(super) tags: Vec<Tag>,
    pub(super) text: Vec<u8>,
    pub(super) response: Vec<u8>,
}

impl Record {
    /// The scope that it had. None if no scope has such a number.
    pub(super) fn scope(&self) -> Option<Scope> {
        Scope::new(self.scope)
    }

    /// Reads the next one. False at the end.
    pub(super) fn read_next(&mut self, file: &mut impl Read) -> io::Result<bool> {
        if array(file)? == [0] {
            return Ok(false);
        }
        self.scope = u64::from_le_bytes(array(file)?);
        self.note = u32::from_le_bytes(array(file)?);
        self.as_of = Position::from_bits(u64::from_le_bytes(array(file)?));
        let [tags] = array(file)?;
        let text = u32::from_le_bytes(array(file)?);
        let response = u32::from_le_bytes(array(file)?);
        self.tags.clear();
        for _ in 0..tags {
            self.tags
                .push(Tag::from_bits(u64::from_le_bytes(array(file)?)));
        }
        fill(&mut self.text, file, text)?;
        fill(&mut self.response, file, response)?;
        Ok(true)
    }
}

fn array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads as many bytes. What isn't there isn't allocated either.
fn fill(into: &mut Vec<u8>, file: &mut impl Read, length: u32) -> io::Result<()> {
    into.clear();
    file.take(length.into()).read_to_end(into)?;
    if into.len() as u64 == u64::from(length) {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use remora_cache::{
        BrokenRules, KeyRef, NewEntry, Store, StoreLimits, Timeline, TimelineLimits,
    };

    use super::*;

    const HEADER: &[u8] = b"{\"any\": \"header\"}";

    /// A store with results of several lengths.
    fn store() -> Store {
        let limits = StoreLimits {
            memory_bytes_max: 1 << 20,
            result_bytes_max: 1 << 16,
            shards: 1,
        };
        let timeline = Timeline::new(
            TimelineLimits {
                tag_slots: 64,
                fence_slots: 64,
                lag_ms_max: 10,
            },
            BrokenRules::default(),
        );
        timeline.restart(Position::new(7, 1_234).unwrap());
        timeline.prove(timeline.epoch(), 1);
        let store = Store::new(limits);
        for number in 0..5_u64 {
            let text = format!("SELECT {number}");
            let tags: Vec<Tag> = (0..number).map(Tag::from_bits).collect();
            let response = vec![7; usize::try_from(number * 900).unwrap()];
            let entry = NewEntry {
                key: KeyRef {
                    scope: Scope::new(number << 6).unwrap(),
                    text: text.as_bytes(),
                },
                tags: &tags,
                as_of: timeline.as_of().unwrap(),
                response: &response,
                label: 3,
                epoch: store.epoch(),
                expires_at_ms: None,
            };
            store.insert(&entry).unwrap();
        }
        store
    }

    fn written() -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = Writer::begin(&mut file, HEADER).unwrap();
        store().walk_step(remora_cache::StoreCursor::default(), 100, |entry| {
            writer.add(entry).unwrap();
        });
        assert_eq!(writer.finish().unwrap(), 5);
        file
    }

    fn is_taken(file: &[u8]) -> bool {
        is_whole(file, file.len() as u64).is_ok_and(|is_whole| is_whole)
    }

    #[test]
    fn results_come_back_as_they_were_written() {
        let file = written();
        assert!(is_taken(&file));
        let mut file = &file[..];
        assert_eq!(read_header(&mut file).unwrap().as_deref(), Some(HEADER));
        let (mut record, mut seen) = (Record::default(), Vec::new());
        while record.read_next(&mut file).unwrap() {
            let number = record.scope >> 6;
            assert_eq!(record.text, format!("SELECT {number}").as_bytes());
            assert_eq!(record.response.len() as u64, number * 900);
            assert_eq!(record.tags.len() as u64, number);
            assert_eq!(record.as_of, Position::new(7, 1_234).unwrap());
            assert_eq!(record.note, 3);
            seen.push(number);
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }

    /// Wherever the writing was interrupted, and whichever byte has changed since.
    #[test]
    fn a_file_that_was_cut_off_or_changed_is_not_whole() {
        let file = written();
        for length in 0..file.len() {
            assert!(!is_taken(&file[..length]), "cut off at {length}");
        }
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(!is_taken(&changed), "changed at {at}");
        }
        let longer = [&file[..], b"x"].concat();
        assert!(!is_taken(&longer));
    }

    /// What no checksum has vouched for may be anything; it must not panic, nor allocate what a
    /// length claims.
    #[test]
    fn any_bytes_are_read_or_refused() {
        let file = written();
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] = 0xff;
            let mut changed = &changed[..];
            let Ok(Some(_)) = read_header(&mut changed) else {
                continue;
            };
            let mut record = Record::default();
            while record.read_next(&mut changed).is_ok_and(|more| more) {}
        }
        assert!(
            read_header(&mut &b"remora results 2________"[..])
                .unwrap()
                .is_none()
        );
    }
}
