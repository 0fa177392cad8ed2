//! What must hold of any text in the binary log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_sql::{LoggedStatement, analyse_logged};

fuzz_target!(|text: &[u8]| {
    let logged = analyse_logged(text);
    if let LoggedStatement::Tables { data, .. } = &logged {
        assert!(data.iter().all(|name| !name.table.is_empty()));
    }
    // White space before a statement means nothing.
    assert_eq!(analyse_logged(&[b" \n", text].concat()), logged);
    // Whatever follows, a write names its table.
    for start in [
        &b"INSERT INTO t1 VALUES (1, "[..],
        b"DELETE FROM t1 WHERE ",
        b"TRUNCATE TABLE shop.t1 ",
        b"ALTER TABLE shop.t1 ",
    ] {
        let text = [start, text].concat();
        let named = match analyse_logged(&text) {
            LoggedStatement::Everything | LoggedStatement::Definitions => true,
            LoggedStatement::Tables { data, .. } => data.iter().any(|name| name.table == "t1"),
            _ => false,
        };
        assert!(named, "{}", String::from_utf8_lossy(&text));
    }
});
