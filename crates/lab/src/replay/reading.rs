//! From a file to what can be replayed.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::capture::Capture;
use super::event::{Action, Bytes, Execution, Item, Read, ReadError, Record};
use super::general::{self, GeneralLog};
use super::slow::{self, SlowLog};
use crate::progress::Progress;
use remora_testkit::interrupt;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A slow query log.
    Slow,
    /// A general query log.
    General,
    /// A packet capture, pcap or pcapng.
    Pcap,
}

/// How a file is read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What it is; `None`: its content tells.
    pub format: Option<Format>,
    /// The server's port in a capture.
    pub port: u16,
    /// Go on behind what can't be read.
    pub skip_malformed: bool,
    /// How many statements are taken at most.
    pub statements_max: usize,
}

/// Something that a connection did, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Since the first event.
    pub at: Duration,
    /// Which connection, numbered from 0.
    pub connection: u32,
    /// The default schema: `None` if that isn't known, empty if there is none.
    pub schema: Option<Bytes>,
    /// What it did.
    pub action: Action,
}

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// In the order of time.
    pub events: Vec<Event>,
    /// What can't be repeated: how often, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Parts that could not be read.
    pub malformed: u64,
    /// The first of them.
    pub first_malformed: Option<ReadError>,
    /// Whether there were more statements than are taken.
    pub is_cut: bool,
}

impl Captured {
    /// From the first event to the last.
    pub fn length(&self) -> Duration {
        self.events.last().map(|event| event.at).unwrap_or_default()
    }
}

/// How much of a file is looked at to tell what it is, bytes.
const LOOK_BYTES: u64 = 256 << 10;

/// Tells what a file is by its first bytes; `None` if they tell nothing.
pub fn detect(beginning: &[u8]) -> Option<Format> {
    const CAPTURES: [[u8; 4]; 5] = [
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    if beginning
        .first_chunk::<4>()
        .is_some_and(|first| CAPTURES.contains(first))
    {
        return Some(Format::Pcap);
    }
    let lines: Vec<&[u8]> = beginning.split(|&byte| byte == b'\n').collect();
    let next = lines.iter().skip(1).copied().chain([&b""[..]]);
    lines.iter().zip(next).find_map(|(line, next)| {
        if slow::is_entry_start(line, next) {
            Some(Format::Slow)
        } else if general::is_entry_start(line) {
            Some(Format::General)
        } else {
            None
        }
    })
}

/// A file that counts what has been read of it.
struct Counted {
    file: File,
    bytes: Arc<AtomicU64>,
}

impl std::io::Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(into)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Reads a file.
///
/// # Errors
/// It can't be read, it is nothing that is known, or, unless that is to be skipped, a part is
/// malformed: then the error names the line or the packet.
pub fn read(path: &Path, settings: &Settings, progress: &mut Progress) -> anyhow::Result<Captured> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("can't open {name}"))?;
    let whole_bytes = file
        .metadata()
        .with_context(|| format!("can't read {name}"))?
        .len();
    let format = match settings.format {
        Some(format) => format,
        None => format_of(path)?,
    };
    let bytes = Arc::new(AtomicU64::new(0));
    let source = BufReader::with_capacity(
        1 << 20,
        Counted {
            file,
            bytes: Arc::clone(&bytes),
        },
    );
    let shown = Shown {
        begun: Instant::now(),
        whole_bytes,
        bytes,
    };
    collect(reader(source, format, settings.port)?, settings, |count| {
        shown.show(progress, count);
    })
    .with_context(|| format!("can't read {name}"))
}

/// The reader of a format.
fn reader<'a, R: BufRead + Send + 'a>(
    source: R,
    format: Format,
    port: u16,
) -> Result<Box<dyn Iterator<Item = Read> + 'a>, ReadError> {
    Ok(match format {
        Format::Slow => Box::new(SlowLog::new(source)),
        Format::General => Box::new(GeneralLog::new(source)),
        Format::Pcap => Box::new(Capture::new(source, port)?),
    })
}

/// Reads what is in memory already, as tests do.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8], format: Format, settings: &Settings) -> anyhow::Result<Captured> {
    collect(reader(bytes, format, settings.port)?, settings, |_| ())
}

fn format_of(path: &Path) -> anyhow::Result<Format> {
    const PACKED: [&[u8]; 3] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd], b"BZh"];
    let mut beginning = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LOOK_BYTES).read_to_end(&mut beginning))
        .with_context(|| format!("can't read {}", path.display()))?;
    if PACKED.iter().any(|mark| beginning.starts_with(mark)) {
        bail!("{} is compressed: unpack it first", path.display());
    }
    detect(&beginning).with_context(|| {
        format!(
            "{} is neither a slow query log, nor a general query log, nor a capture, as far as its first {} KiB tell; \
             `--format` says what it is",
            path.display(),
            LOOK_BYTES >> 10
        )
    })
}

/// How far the reading is.
struct Shown {
    begun: Instant,
    whole_bytes: u64,
    bytes: Arc<AtomicU64>,
}

impl Shown {
    #[allow(clippy::cast_precision_loss)]
    fn show(&self, progress: &mut Progress, statements: usize) {
        let share = self.bytes.load(Ordering::Relaxed) as f64 / self.whole_bytes.max(1) as f64;
        let share = share.clamp(0.001, 1.0);
        progress.expect_left(self.begun.elapsed().mul_f64(1.0 / share - 1.0));
        progress.update(&format!(
            "reading: {:.0} %, {statements} statements",
            share * 100.0
        ));
    }
}

/// How often it is looked whether to stop, items.
const LOOK_EVERY: usize = 4_096;

fn collect(
    reader: impl Iterator<Item = Read>,
    settings: &Settings,
    mut show: impl FnMut(usize),
) -> anyhow::Result<Captured> {
    let mut captured = Captured::default();
    let mut records = Vec::new();
    let mut texts = Texts::default();
    for (count, read) in reader.enumerate() {
        if count % LOOK_EVERY == 0 {
            interrupt::check()?;
            show(records.len());
        }
        match read {
            Ok(Item::LeftOut(why)) => {
                *captured.left_out.entry(why.into_owned()).or_default() += 1;
            }
            Ok(Item::Record(_)) if records.len() >= settings.statements_max => {
                captured.is_cut = true;
                break;
            }
            Ok(Item::Record(record)) => records.push(texts.share(record)),
            Err(error) if settings.skip_malformed => {
                captured.malformed += 1;
                captured.first_malformed.get_or_insert(error);
            }
            Err(error) => {
                let what = if error.is_final {
                    "takes what comes before"
                } else {
                    "goes on behind it"
                };
                bail!("{error} (`--skip-malformed` {what})");
            }
        }
    }
    captured.events = in_order(records);
    Ok(captured)
}

/// Texts that occur again are held once.
#[derive(Default)]
struct Texts(HashSet<Bytes>);

impl Texts {
    fn share(&mut self, mut record: Record) -> Record {
        match &mut record.action {
            Action::Query(text) => *text = self.one(text),
            Action::Execution(execution) => {
                let text = self.one(&execution.text);
                if !Arc::ptr_eq(&text, &execution.text) {
                    *execution = Arc::new(Execution {
                        text,
                        ..Execution::clone(execution)
                    });
                }
            }
            Action::Quit => {}
        }
        record.schema = record.schema.map(|schema| self.one(&schema));
        record
    }

    fn one(&mut self, text: &Bytes) -> Bytes {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        self.0.insert(Arc::clone(text));
        Arc::clone(text)
    }
}

/// Puts records in the order of time. Those of which a log tells whole seconds only are spread over
/// their second.
fn in_order(mut records: Vec<Record>) -> Vec<Event> {
    records.sort_by_key(|record| record.sent_us);
    let mut at = 0;
    while at < records.len() {
        let second = records[at].sent_us;
        let same = records[at..]
            .iter()
            .take_while(|record| record.sent_us == second)
            .count();
        let all = &mut records[at..at + same];
        if all.iter().all(|record| record.is_whole_second) {
            for (place, record) in (0_i64..).zip(all) {
                // A damaged log can name the last second that there is.
                let later = place * 1_000_000 / i64::try_from(same).unwrap_or(i64::MAX);
                record.sent_us = record.sent_us.saturating_add(later);
            }
        }
        at += same;
    }
    let first = records
        .first()
        .map(|record| record.sent_us)
        .unwrap_or_default();
    let event = |record: Record| Event {
        at: Duration::from_micros(record.sent_us.saturating_sub(first).unsigned_abs()),
        connection: record.connection,
        schema: record.schema,
        action: record.action,
    };
    records.into_iter().map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use remora_testkit::load::random::Random;

    const SLOW: &str = "# Time: 230101 12:00:00\n# User@Host: a[a] @ h []\n# Thread_id: 5  Schema: s  QC_hit: No\n\
                        # Query_time: 0.5  Lock_time: 0\nSET timestamp=1672574400;\nSELECT 1;\n";
    const GENERAL: &str = "230101  9:00:00\t     5 Connect\ta@h on s using TCP/IP\n\t\t     5 Query\tSELECT 1\n\
                           \t\t     5 Query\tSELECT 2\n\t\t     5 Query\tSELECT 3\n230101  9:00:01\t     5 Quit\t\n";

    fn settings() -> Settings {
        Settings {
            format: None,
            port: 3_306,
            skip_malformed: true,
            statements_max: 1_000,
        }
    }

    #[test]
    fn a_file_tells_what_it_is() {
        assert_eq!(detect(SLOW.as_bytes()), Some(Format::Slow));
        assert_eq!(detect(GENERAL.as_bytes()), Some(Format::General));
        assert_eq!(detect(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0]), Some(Format::Pcap));
        assert_eq!(detect(b"SELECT 1;\n"), None);
        assert_eq!(detect(b""), None);
    }

    #[test]
    fn statements_of_one_second_are_spread_over_it() {
        let captured = read_bytes(GENERAL.as_bytes(), Format::General, &settings()).unwrap();
        let at: Vec<_> = captured
            .events
            .iter()
            .map(|event| event.at.as_millis())
            .collect();
        assert_eq!(at, [0, 333, 666, 1_000]);
    }

    #[test]
    fn what_is_malformed_is_counted_or_ends_the_reading() {
        let text = format!("garbage\n{SLOW}{SLOW}");
        let captured = read_bytes(text.as_bytes(), Format::Slow, &settings()).unwrap();
        assert_eq!((captured.events.len(), captured.malformed), (2, 1));
        let strict = Settings {
            skip_malformed: false,
            ..settings()
        };
        let error = read_bytes(text.as_bytes(), Format::Slow, &strict).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("line 1: no entry begins here"),
            "{error:#}"
        );
    }

    /// Breaks bytes in ways that files are broken, and in others.
    fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
        for _ in 0..=random.below(6) {
            let length = bytes.len().max(1);
            let (at, other) = (random.below(length), random.below(length));
            match random.below(5) {
                0 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).unwrap(),
                1 => bytes.truncate(at.max(1)),
                2 => {
                    let (from, to) = (at.min(other), at.max(other).min(bytes.len()));
                    bytes.drain(from.min(to)..to);
                }
                3 => {
                    let (from, to) = (at.min(other), at.max(other).min(bytes.len()));
                    let piece = bytes[from.min(to)..to].to_vec();
                    let at = random.below(bytes.len() + 1);
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let marks: [&[u8]; 6] = [b"\n", b"\t", b"# ", b";", b"\xff", b"# Time: "];
                    let at = random.below(bytes.len() + 1);
                    bytes.splice(at..at, marks[random.below(6)].iter().copied());
                }
            }
        }
    }

    #[test]
    fn a_log_may_end_with_the_last_second_that_there_is() {
        for stamp in ["9223372036854", "9223372036855", "9223372036854775807"] {
            let text = SLOW.replace("1672574400", stamp).repeat(3);
            let read = read_bytes(text.as_bytes(), Format::Slow, &settings());
            assert!(read.is_ok(), "{stamp}");
        }
    }

    #[test]
    fn no_log_makes_a_reader_panic() {
        let seed = Random::fresh_seed();
        println!("seed {seed}");
        let mut random = Random::new(seed);
        for round in 0..1_000 {
            let (text, format) = if round % 2 == 0 {
                (SLOW.repeat(3), Format::Slow)
            } else {
                (GENERAL.repeat(3), Format::General)
            };
            let mut bytes = text.into_bytes();
            mutate(&mut random, &mut bytes);
            detect(&bytes);
            // An error is fine.
            let _ = read_bytes(&bytes, format, &settings());
        }
    }
}
