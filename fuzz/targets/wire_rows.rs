//! Small text result sets that are decoded whole, and the fields that they are made of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::reader::{Reader, put_length};
use remora_wire::rows::{column_name, parse_text_row};

fuzz_target!(|data: &[u8]| {
    let Some((&columns, payload)) = data.split_first() else {
        return;
    };
    let _ = column_name(payload);
    if let Ok(row) = parse_text_row(payload, usize::from(columns)) {
        assert_eq!(row.len(), usize::from(columns));
        let bytes: usize = row.iter().flatten().map(Vec::len).sum();
        assert!(bytes <= payload.len());
    }
    assert!(parse_text_row(payload, usize::MAX).is_err());
    let mut reader = Reader::new(payload);
    if let Ok(Some(value)) = reader.length_encoded("number") {
        let mut written = Vec::new();
        put_length(&mut written, value);
        assert!(written.len() <= payload.len() - reader.rest().len());
        assert_eq!(Reader::new(&written).length("number"), Ok(value));
    }
});
