//! A statement behind query attributes, and the values of prepared statements.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_wire::attributes::statement_text;
use remora_wire::parameters::{ParameterType, read_value};
use remora_wire::reader::Reader;

fuzz_target!(|data: &[u8]| {
    if let Ok((length, text)) = statement_text(data) {
        assert_eq!(&data[length..], text);
        assert!(length >= 2);
        // What follows has no part in where the text begins.
        assert_eq!(statement_text(&data[..length]), Ok((length, &b""[..])));
        for shorter in 0..length {
            assert!(statement_text(&data[..shorter]).is_err());
        }
    }
    let mut reader = Reader::new(data);
    while let Ok(of_type) = ParameterType::read(&mut reader) {
        let before = reader.rest();
        let Ok(value) = read_value(&mut reader, of_type) else {
            break;
        };
        assert!(!value.is_empty() && before.starts_with(value));
        assert_eq!(reader.rest(), &before[value.len()..]);
    }
});
