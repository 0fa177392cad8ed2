//! Where a response ends: one test for each kind of answer, in both forms of the end mark.
//!
//! Servers: none
//! Load: waits

mod support;

use remora_wire::command::ResponseKind;
use remora_wire::walker::{Ending, Progress, ResponseWalker, Summary};
use remora_wire::{Capabilities, StatusFlags};

use support::packets::{
    Answer, FULL, Packets, binary_row, definition, end, error, lenenc, local_file, mark, ok,
    prepared, progress, text_row, wide_ok,
};
use support::walk::{Walked, assert_walked, assert_walked_however_cut, walk};

const OLD: Capabilities = Capabilities::PROTOCOL_41;
const NEW: Capabilities = Capabilities::PROTOCOL_41.with(Capabilities::DEPRECATE_EOF);
const BOTH: [Capabilities; 2] = [OLD, NEW];
const NONE: StatusFlags = StatusFlags(0);

/// The packets of a result set up to its first row.
fn header(capabilities: Capabilities, columns: usize) -> Packets {
    let mut packets = Packets::answer();
    put_header(&mut packets, capabilities, columns);
    packets
}

fn put_header(packets: &mut Packets, capabilities: Capabilities, columns: usize) {
    packets.put(&lenenc(columns));
    for at in 0..columns {
        packets.put(&definition(&format!("c{at}")));
    }
    if !capabilities.has(Capabilities::DEPRECATE_EOF) {
        packets.put(&end(capabilities, mark(NONE)));
    }
}

fn result_set(capabilities: Capabilities, columns: usize, rows: &[Vec<u8>]) -> Answer {
    let mut packets = header(capabilities, columns);
    for row in rows {
        packets.put(row);
    }
    packets.put(&end(capabilities, mark(NONE)));
    Answer::new(
        ResponseKind::Results,
        capabilities,
        packets,
        Ending::ResultSet,
        Some(mark(NONE)),
    )
}

#[test]
fn an_ok_is_the_whole_answer() {
    for capabilities in BOTH {
        for payload in [
            ok(mark(NONE)),
            wide_ok(mark(NONE), b"Rows matched: 1"),
            wide_ok(mark(NONE), &[7; 300]),
        ] {
            for expect in [ResponseKind::Results, ResponseKind::Single] {
                let mut packets = Packets::answer();
                packets.put(&payload);
                let end = Some(mark(NONE));
                let answer = Answer::new(expect, capabilities, packets, Ending::Ok, end);
                assert_walked_however_cut(&answer);
            }
        }
    }
}

#[test]
fn an_error_is_the_whole_answer_of_every_command() {
    for capabilities in BOTH {
        for expect in [
            ResponseKind::Results,
            ResponseKind::Single,
            ResponseKind::Prepared,
            ResponseKind::Rows,
            ResponseKind::Columns,
            ResponseKind::Authentication,
        ] {
            let mut packets = Packets::answer();
            packets.put(&error(1064, "You have an error in your SQL syntax"));
            let answer = Answer::new(expect, capabilities, packets, Ending::Err(1064), None);
            assert_walked_however_cut(&answer);
        }
    }
}

#[test]
fn a_text_result_set_ends_at_its_end_mark() {
    let rows = [
        text_row(&[Some(b"1"), Some(b"one")]),
        text_row(&[None, None]),
        text_row(&[Some(b""), None]),
        text_row(&[Some(&[0xfe; 3]), Some(&[0xff; 300])]),
        text_row(&[Some(&[b'x'; 251]), Some(&vec![b'y'; 70_000])]),
    ];
    for capabilities in BOTH {
        assert_walked_however_cut(&result_set(capabilities, 2, &rows));
    }
}

#[test]
fn a_binary_result_set_ends_at_its_end_mark() {
    let rows = [
        binary_row(&[Some(b"1"), Some(b"one")]),
        binary_row(&[None, Some(&[0xfe; 9])]),
    ];
    for capabilities in BOTH {
        assert_walked_however_cut(&result_set(capabilities, 2, &rows));
    }
}

#[test]
fn a_result_set_may_have_no_row() {
    for capabilities in BOTH {
        assert_walked_however_cut(&result_set(capabilities, 3, &[]));
    }
}

#[test]
fn a_result_set_may_have_hundreds_of_columns() {
    for capabilities in BOTH {
        for columns in [250, 251, 252, 4096] {
            let row = text_row(&vec![None; columns]);
            assert_walked(&result_set(capabilities, columns, &[row]), &[1], &[9]);
        }
    }
}

#[test]
fn a_row_may_be_a_single_empty_or_null_field() {
    for capabilities in BOTH {
        let rows = [text_row(&[Some(b"")]), text_row(&[None])];
        assert_walked_however_cut(&result_set(capabilities, 1, &rows));
    }
}

#[test]
fn an_error_in_the_middle_of_a_result_set_ends_it() {
    for capabilities in BOTH {
        for rows in [0, 1, 3] {
            let mut packets = header(capabilities, 1);
            for _ in 0..rows {
                packets.put(&text_row(&[Some(b"row")]));
            }
            packets.put(&error(1317, "Query execution was interrupted"));
            let expect = ResponseKind::Results;
            let answer = Answer::new(expect, capabilities, packets, Ending::Err(1317), None);
            assert_walked_however_cut(&answer);
        }
    }
}

#[test]
fn results_follow_one_another_while_their_marks_say_so() {
    let more = mark(StatusFlags::MORE_RESULTS);
    for capabilities in BOTH {
        let mut packets = header(capabilities, 1);
        packets.put(&text_row(&[Some(b"first")]));
        packets.put(&end(capabilities, more));
        packets.put(&ok(more));
        put_header(&mut packets, capabilities, 2);
        packets.put(&end(capabilities, more));
        let mut failing = packets.clone();
        packets.put(&ok(mark(NONE)));
        let last = Some(mark(NONE));
        let answer = Answer::new(
            ResponseKind::Results,
            capabilities,
            packets,
            Ending::Ok,
            last,
        );
        assert_walked_however_cut(&answer.with_results(4));
        failing.put(&error(1146, "no such table"));
        let expect = ResponseKind::Results;
        let answer = Answer::new(expect, capabilities, failing, Ending::Err(1146), None);
        assert_walked_however_cut(&answer.with_results(4));
    }
}

#[test]
fn output_parameters_are_followed_by_an_ok_whatever_their_last_mark_says() {
    let out = mark(StatusFlags::OUT_PARAMETERS.with(StatusFlags::MORE_RESULTS));
    // MySQL's last EOF says nothing of the OK that follows; MariaDB's does.
    for last in [mark(NONE), out] {
        let mut packets = Packets::answer();
        packets.put(&lenenc(1)).put(&definition("out1"));
        packets.put(&end(OLD, out));
        packets.put(&binary_row(&[Some(b"7")]));
        packets.put(&end(OLD, last)).put(&ok(mark(NONE)));
        let last = Some(mark(NONE));
        let answer = Answer::new(ResponseKind::Results, OLD, packets, Ending::Ok, last);
        assert_walked_however_cut(&answer.with_results(2));
    }
}

#[test]
fn a_local_file_is_asked_for_and_then_answered() {
    for capabilities in BOTH {
        let mut packets = Packets::answer();
        packets.put(&local_file("/tmp/data.csv"));
        let asked_at = packets.bytes.len();
        // The client's packets, one with content and an empty one, take two numbers.
        packets.sequence += 2;
        packets.put(&ok(mark(NONE)));
        let last = Some(mark(NONE));
        let mut answer = Answer::new(
            ResponseKind::Results,
            capabilities,
            packets,
            Ending::Ok,
            last,
        );
        answer.local_files.push(asked_at);
        answer.summary.numbered_from_one = false;
        assert_walked_however_cut(&answer);
    }
}

#[test]
fn a_progress_report_ends_nothing() {
    for capabilities in BOTH {
        let mut packets = Packets::answer();
        packets.put(&progress()).put(&progress());
        put_header(&mut packets, capabilities, 1);
        packets.put(&progress());
        packets.put(&text_row(&[Some(b"status")]));
        packets.put(&progress());
        packets.put(&end(capabilities, mark(NONE)));
        let last = Some(mark(NONE));
        let kind = Ending::ResultSet;
        let mut answer = Answer::new(ResponseKind::Results, capabilities, packets, kind, last);
        // Nobody else must be given such an answer.
        answer.summary.numbered_from_one = false;
        assert_walked_however_cut(&answer);
    }
}

#[test]
fn a_preparation_is_answered_with_parameters_and_columns() {
    for capabilities in BOTH {
        for (columns, parameters) in [(0, 0), (2, 0), (0, 3), (2, 3), (1, 1)] {
            let mut packets = Packets::answer();
            packets.put(&prepared(0x1234_5678, columns, parameters));
            for count in [parameters, columns] {
                for at in 0..count {
                    packets.put(&definition(&format!("c{at}")));
                }
                if count > 0 && !capabilities.has(Capabilities::DEPRECATE_EOF) {
                    packets.put(&end(capabilities, mark(NONE)));
                }
            }
            let kind = Ending::Prepared {
                statement_id: 0x1234_5678,
                parameters,
            };
            let answer = Answer::new(ResponseKind::Prepared, capabilities, packets, kind, None);
            assert_walked_however_cut(&answer.with_results(0));
        }
    }
}

#[test]
fn opening_a_cursor_sends_no_rows() {
    let opened = mark(StatusFlags::CURSOR_EXISTS);
    for capabilities in BOTH {
        let mut packets = Packets::answer();
        packets.put(&lenenc(2));
        packets.put(&definition("a")).put(&definition("b"));
        packets.put(&end(capabilities, opened));
        let kind = Ending::ResultSet;
        let expect = ResponseKind::ResultsOrCursor;
        let answer = Answer::new(expect, capabilities, packets, kind, Some(opened));
        assert_walked_however_cut(&answer);
    }
}

#[test]
fn the_flag_of_a_cursor_that_was_not_asked_for_means_nothing() {
    let flagged = mark(StatusFlags::CURSOR_EXISTS);
    for capabilities in BOTH {
        let mut packets = Packets::answer();
        packets.put(&lenenc(1)).put(&definition("a"));
        if capabilities == OLD {
            packets.put(&end(capabilities, flagged));
        }
        packets.put(&text_row(&[Some(b"1")]));
        packets.put(&end(capabilities, flagged));
        let kind = Ending::ResultSet;
        let answer = Answer::new(
            ResponseKind::Results,
            capabilities,
            packets,
            kind,
            Some(flagged),
        );
        assert_walked_however_cut(&answer);
    }
}

#[test]
fn fetching_from_a_cursor_sends_only_rows() {
    let last = mark(StatusFlags::CURSOR_EXISTS.with(StatusFlags::LAST_ROW_SENT));
    for capabilities in BOTH {
        for rows in [0, 1, 300] {
            let mut packets = Packets::answer();
            for _ in 0..rows {
                packets.put(&binary_row(&[Some(b"1"), None]));
            }
            packets.put(&end(capabilities, last));
            let kind = Ending::ResultSet;
            let answer = Answer::new(ResponseKind::Rows, capabilities, packets, kind, Some(last));
            assert_walked_however_cut(&answer);
        }
    }
}

#[test]
fn a_field_list_ends_at_its_end_mark() {
    for capabilities in BOTH {
        for columns in [0, 1, 20] {
            let mut packets = Packets::answer();
            for at in 0..columns {
                let mut column = definition(&format!("c{at}"));
                column.push(0xfb);
                packets.put(&column);
            }
            packets.put(&end(capabilities, mark(NONE)));
            let last = Some(mark(NONE));
            let kind = Ending::ResultSet;
            let answer = Answer::new(ResponseKind::Columns, capabilities, packets, kind, last);
            assert_walked_however_cut(&answer);
        }
    }
}

#[test]
fn statistics_are_one_packet_of_text() {
    for capabilities in BOTH {
        let mut packets = Packets::answer();
        packets.put(b"Uptime: 17  Threads: 1  Questions: 2  Slow queries: 0");
        let answer = Answer::new(
            ResponseKind::Single,
            capabilities,
            packets,
            Ending::Ok,
            None,
        );
        assert_walked_however_cut(&answer);
    }
}

#[test]
fn an_end_mark_can_be_the_whole_answer() {
    for capabilities in BOTH {
        let mut packets = Packets::answer();
        packets.put(&end(capabilities, mark(NONE)));
        let last = Some(mark(NONE));
        let answer = Answer::new(
            ResponseKind::Single,
            capabilities,
            packets,
            Ending::Ok,
            last,
        );
        assert_walked_however_cut(&answer);
    }
}

#[test]
fn definitions_that_the_client_does_without_are_not_waited_for() {
    let optional = Capabilities::OPTIONAL_RESULTSET_METADATA;
    for extra in [optional, Capabilities::MARIADB_CACHE_METADATA] {
        for capabilities in BOTH.map(|c| c.with(extra)) {
            for defined in [false, true] {
                let mut packets = Packets::answer();
                packets.put(&[&lenenc(2)[..], &[u8::from(defined)]].concat());
                if defined {
                    packets.put(&definition("a")).put(&definition("b"));
                }
                if !capabilities.has(Capabilities::DEPRECATE_EOF) {
                    packets.put(&end(capabilities, mark(NONE)));
                }
                packets.put(&text_row(&[None, Some(b"x")]));
                packets.put(&end(capabilities, mark(NONE)));
                let last = Some(mark(NONE));
                let kind = Ending::ResultSet;
                let answer = Answer::new(ResponseKind::Results, capabilities, packets, kind, last);
                assert_walked_however_cut(&answer);
            }
        }
    }
}

#[test]
fn a_preparation_without_definitions_still_has_their_end_marks() {
    for capabilities in BOTH.map(|c| c.with(Capabilities::OPTIONAL_RESULTSET_METADATA)) {
        for (columns, parameters) in [(0, 0), (2, 0), (0, 3), (2, 3)] {
            for defined in [false, true] {
                let mut packets = Packets::answer();
                let first = prepared(9, columns, parameters);
                packets.put(&[&first[..], &[u8::from(defined)]].concat());
                for count in [parameters, columns] {
                    for at in 0..if defined { count } else { 0 } {
                        packets.put(&definition(&format!("c{at}")));
                    }
                    if count > 0 && !capabilities.has(Capabilities::DEPRECATE_EOF) {
                        packets.put(&end(capabilities, mark(NONE)));
                    }
                }
                let kind = Ending::Prepared {
                    statement_id: 9,
                    parameters,
                };
                let answer = Answer::new(ResponseKind::Prepared, capabilities, packets, kind, None);
                assert_walked_however_cut(&answer.with_results(0));
            }
        }
    }
}

/// Cuts around every header of a large answer, and nowhere else.
fn cuts_around_headers(bytes: &[u8]) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = usize::from(bytes[at]) | usize::from(bytes[at + 1]) << 8;
        let length = length | usize::from(bytes[at + 2]) << 16;
        cuts.extend([at + 1, at + 3, at + 4, at + 5]);
        at += 4 + length;
    }
    cuts
}

#[test]
fn rows_around_and_above_sixteen_mebibytes_are_skipped_whole() {
    // A field of 65,536 bytes to 16 MiB - 1 has a prefix of 4 bytes, a longer one of 9, the first
    // of them 0xfe, which is also the first byte of an end mark.
    for field_bytes in [FULL - 5, FULL - 4, FULL - 3, FULL, FULL + 1, 2 * FULL - 9] {
        for filler in [0xfe, 0xff] {
            let row = text_row(&[Some(&vec![filler; field_bytes])]);
            for capabilities in BOTH {
                let rows = [row.clone(), text_row(&[Some(b"small")])];
                let answer = result_set(capabilities, 1, &rows);
                let next = [1, 0, 0, 1, 0];
                assert_walked(&answer, &next, &[]);
                assert_walked(&answer, &next, &cuts_around_headers(&answer.bytes));
                let cuts: Vec<usize> = (1..answer.bytes.len() / 65_536)
                    .map(|at| at * 65_536)
                    .collect();
                assert_walked(&answer, &next, &cuts);
            }
        }
    }
}

#[test]
fn the_rest_of_a_split_row_is_not_taken_for_a_mark() {
    for tail in [0, 1, 5, 7, 8] {
        let mut row = text_row(&[Some(&vec![b'x'; FULL - 4 + tail])]);
        for byte in &mut row[FULL..] {
            *byte = 0xfe;
        }
        for capabilities in BOTH {
            let answer = result_set(capabilities, 1, &[row.clone()]);
            assert_walked(&answer, &[0xfe], &[]);
            assert_walked(&answer, &[0xfe], &cuts_around_headers(&answer.bytes));
        }
    }
}

#[test]
fn an_error_may_fill_more_than_a_packet() {
    let mut packets = Packets::answer();
    packets.put(&error(1064, &"x".repeat(FULL)));
    let answer = Answer::new(ResponseKind::Results, NEW, packets, Ending::Err(1064), None);
    assert_walked(&answer, &[1], &[]);
    assert_walked(&answer, &[1], &cuts_around_headers(&answer.bytes));
}

#[test]
fn packets_that_skip_a_number_are_noticed() {
    let mut packets = Packets::answer();
    packets.put(&lenenc(1)).put(&definition("a"));
    packets.sequence += 1;
    packets.put(&end(NEW, mark(NONE)));
    let kind = Ending::ResultSet;
    let mut answer = Answer::new(ResponseKind::Results, NEW, packets, kind, Some(mark(NONE)));
    answer.summary.numbered_from_one = false;
    assert_walked_however_cut(&answer);
}

#[test]
fn a_row_that_skips_a_number_is_noticed_wherever_it_is() {
    for skipping in [0, 1, 17, 39] {
        let mut packets = header(NEW, 1);
        for number in 0..40 {
            packets.sequence = packets.sequence.wrapping_add(u8::from(number == skipping));
            packets.put(&text_row(&[Some(b"x")]));
        }
        packets.put(&end(NEW, mark(NONE)));
        let kind = Ending::ResultSet;
        let mut answer = Answer::new(ResponseKind::Results, NEW, packets, kind, Some(mark(NONE)));
        answer.summary.numbered_from_one = false;
        assert_walked_however_cut(&answer);
    }
}

#[test]
fn numbers_begin_again_after_255() {
    let rows = vec![text_row(&[Some(b"x")]); 600];
    for capabilities in BOTH {
        assert_walked_however_cut(&result_set(capabilities, 1, &rows));
    }
}

#[test]
fn a_walker_is_untouched_until_its_first_byte_and_never_again() {
    let answer = result_set(NEW, 1, &vec![text_row(&[None]); 600]);
    let mut walker = ResponseWalker::new(ResponseKind::Results, NEW);
    assert!(walker.is_untouched());
    assert_eq!(walker.feed(&[]), Ok((0, Progress::More)));
    assert!(walker.is_untouched());
    for byte in &answer.bytes {
        walker.feed(std::slice::from_ref(byte)).unwrap();
        assert!(!walker.is_untouched());
    }
}

#[test]
fn a_command_without_an_answer_is_done_at_once() {
    let mut walker = ResponseWalker::new(ResponseKind::Nothing, NEW);
    let summary = Summary {
        ending: Ending::Ok,
        mark: None,
        results: 0,
        numbered_from_one: true,
    };
    assert_eq!(walker.feed(&[1, 0, 0]), Ok((0, Progress::Done(summary))));
    assert!(walker.is_untouched());
}

#[test]
fn broken_answers_are_errors() {
    let broken: [(ResponseKind, &[u8]); 8] = [
        (ResponseKind::Results, &[]),
        (ResponseKind::Single, &[]),
        (ResponseKind::Prepared, &[]),
        (ResponseKind::Results, &[0x00, 0xfc]),
        (ResponseKind::Results, &[0xff, 0x01]),
        (ResponseKind::Results, &[0xfc, 0x01]),
        (ResponseKind::Prepared, &[0xfe, 0, 0, 0, 0, 0, 0, 0, 0]),
        (ResponseKind::Prepared, &[0x00, 1, 2, 3]),
    ];
    for capabilities in BOTH {
        for (expect, payload) in broken {
            let mut packets = Packets::answer();
            packets.put(payload);
            let Walked { end, .. } = walk(expect, capabilities, &packets.bytes, &[]);
            assert!(end.is_err(), "{expect:?} {payload:?} gave {end:?}");
        }
    }
}
