//! The walker with generated answers and with noise, cut anywhere.
//!
//! Servers: none
//! Load: waits

mod support;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use remora_wire::command::ResponseKind;
use remora_wire::response::EndMark;
use remora_wire::walker::Ending;
use remora_wire::{Capabilities, StatusFlags};

use support::packets::{
    Answer, Packets, binary_row, definition, end, error, lenenc, local_file, mark, ok, progress,
    text_row, wide_ok,
};
use support::walk::{EXPECTATIONS, assert_walked, walk};

type Fields = Vec<Option<Vec<u8>>>;

/// One result of an answer to a query.
#[derive(Debug, Clone)]
enum Part {
    Ok {
        info: Vec<u8>,
    },
    ResultSet {
        columns: usize,
        rows: Vec<Fields>,
        binary: bool,
        /// Before which rows a progress report comes.
        reports: Vec<bool>,
    },
    LocalFile,
}

fn field() -> impl Strategy<Value = Option<Vec<u8>>> {
    let bytes = prop_oneof![
        8 => vec(any::<u8>(), 0..6),
        2 => vec(select(vec![0x00, 0xfb, 0xfe, 0xff]), 0..12),
        1 => vec(any::<u8>(), 240..300),
    ];
    option::weighted(0.8, bytes)
}

fn part() -> impl Strategy<Value = Part> {
    let sets = (1usize..6).prop_flat_map(|columns| {
        (
            Just(columns),
            vec(vec(field(), columns), 0..8),
            any::<bool>(),
            vec(any::<bool>(), 8),
        )
    });
    prop_oneof![
        2 => vec(any::<u8>(), 0..40).prop_map(|info| Part::Ok { info }),
        6 => sets.prop_map(|(columns, rows, binary, reports)| Part::ResultSet {
            columns,
            rows,
            binary,
            reports,
        }),
        1 => Just(Part::LocalFile),
    ]
}

struct Builder {
    capabilities: Capabilities,
    packets: Packets,
    local_files: Vec<usize>,
    /// A progress report came, which only this client asked for.
    reported: bool,
}

impl Builder {
    fn put(&mut self, part: &Part, mark: EndMark) {
        match part {
            Part::Ok { info } if info.len() % 2 == 0 => {
                self.packets.put(&wide_ok(mark, info));
            }
            Part::Ok { .. } => {
                self.packets.put(&ok(mark));
            }
            Part::LocalFile => {
                self.packets.put(&local_file("data.csv"));
                self.local_files.push(self.packets.bytes.len());
                self.packets.sequence = self.packets.sequence.wrapping_add(1);
                self.packets.put(&ok(mark));
            }
            Part::ResultSet {
                columns,
                rows,
                binary,
                reports,
            } => {
                self.put_columns(*columns);
                for (row, report) in rows.iter().zip(reports) {
                    if *report {
                        self.packets.put(&progress());
                        self.reported = true;
                    }
                    let fields: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
                    let payload = if *binary {
                        binary_row(&fields)
                    } else {
                        text_row(&fields)
                    };
                    self.packets.put(&payload);
                }
                self.packets.put(&end(self.capabilities, mark));
            }
        }
    }

    fn put_columns(&mut self, columns: usize) {
        self.packets.put(&lenenc(columns));
        for at in 0..columns {
            self.packets.put(&definition(&format!("c{at}")));
        }
        if !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            let between = mark(StatusFlags(0));
            self.packets.put(&end(self.capabilities, between));
        }
    }
}

fn answer() -> impl Strategy<Value = Answer> {
    (vec(part(), 1..5), any::<bool>(), any::<bool>()).prop_map(|(parts, new, fails)| {
        let mut capabilities = Capabilities::PROTOCOL_41;
        if new {
            capabilities = capabilities.with(Capabilities::DEPRECATE_EOF);
        }
        let mut builder = Builder {
            capabilities,
            packets: Packets::answer(),
            local_files: Vec::new(),
            reported: false,
        };
        let more = mark(StatusFlags::MORE_RESULTS);
        let last = mark(StatusFlags::IN_TRANSACTION);
        for (at, part) in parts.iter().enumerate() {
            let is_last = at + 1 == parts.len() && !fails;
            builder.put(part, if is_last { last } else { more });
        }
        let mut results = parts.iter().map(|_| 1).sum::<u32>();
        let (ending, mark) = match parts.last() {
            _ if fails => {
                results += 1;
                builder.packets.put(&error(1213, "Deadlock found"));
                (Ending::Err(1213), None)
            }
            Some(Part::ResultSet { .. }) => (Ending::ResultSet, Some(last)),
            _ => (Ending::Ok, Some(last)),
        };
        let Builder {
            packets,
            local_files,
            reported,
            ..
        } = builder;
        let mut answer = Answer::new(ResponseKind::Results, capabilities, packets, ending, mark)
            .with_results(results);
        answer.summary.numbered_from_one = local_files.is_empty() && !reported;
        answer.local_files = local_files;
        answer
    })
}

/// Packets with payloads that are likely to mean something.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        select(vec![0x00u8, 0x01, 0x02, 0xfb, 0xfc, 0xfe, 0xff]),
        any::<u8>()
    ];
    let payload = prop_oneof![
        6 => (first, vec(any::<u8>(), 0..30)).prop_map(|(first, rest)| [&[first], &rest[..]].concat()),
        2 => Just(ok(mark(StatusFlags::MORE_RESULTS))),
        2 => Just(end(Capabilities::DEPRECATE_EOF, mark(StatusFlags(0)))),
        2 => Just(end(Capabilities::PROTOCOL_41, mark(StatusFlags(0)))),
        1 => Just(Vec::new()),
        1 => Just(progress()),
    ];
    let packets = vec(payload, 0..12).prop_map(|payloads| {
        let mut packets = Packets::answer();
        for payload in &payloads {
            packets.put(payload);
        }
        packets.bytes
    });
    prop_oneof![4 => packets, 1 => vec(any::<u8>(), 0..64)]
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(0usize..1200, 0..40).prop_map(|mut cuts| {
        cuts.sort_unstable();
        cuts
    })
}

const RELEVANT: [Capabilities; 4] = [
    Capabilities::DEPRECATE_EOF,
    Capabilities::OPTIONAL_RESULTSET_METADATA,
    Capabilities::MARIADB_CACHE_METADATA,
    Capabilities::MARIADB_PROGRESS,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn an_answer_is_consumed_exactly_however_it_is_cut(
        answer in answer(),
        next in vec(any::<u8>(), 0..20),
        cuts in cuts(),
    ) {
        assert_walked(&answer, &next, &cuts);
        assert_walked(&answer, &next, &[]);
    }

    #[test]
    fn a_part_of_an_answer_is_never_taken_for_the_whole(answer in answer(), cuts in cuts(), share in 0.0..1.0f64) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let length = (answer.bytes.len() as f64 * share) as usize;
        let walked = walk(answer.expect, answer.capabilities, &answer.bytes[..length], &cuts);
        prop_assert_eq!(walked.consumed, length);
        prop_assert_eq!(walked.end, Ok(None));
    }

    #[test]
    fn noise_is_read_alike_however_it_is_cut(
        noise in noise(),
        cuts in cuts(),
        expect in select(EXPECTATIONS.to_vec()),
        chosen in vec(any::<bool>(), RELEVANT.len()),
    ) {
        let capabilities = RELEVANT
            .into_iter()
            .zip(chosen)
            .filter(|(_, chosen)| *chosen)
            .fold(Capabilities::PROTOCOL_41, |set, (one, _)| set.with(one));
        let whole = walk(expect, capabilities, &noise, &[]);
        let pieces = walk(expect, capabilities, &noise, &cuts);
        prop_assert_eq!(&whole.end, &pieces.end);
        if whole.end.is_ok() {
            prop_assert_eq!(whole, pieces);
        }
    }
}
