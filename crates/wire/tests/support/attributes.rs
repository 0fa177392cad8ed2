//! Statements with query attributes, written from the protocol's description alone.

use super::packets::{lenenc, lenenc_text};

/// A type (its number and its flags), and a value as it is sent; `None` is NULL.
pub type Attribute = (u8, u8, Option<Vec<u8>>);

/// The type NULL.
pub const TYPE_NULL: u8 = 6;

/// A value of each type that clients send, in each of its lengths.
pub fn values() -> Vec<(&'static str, Attribute)> {
    let fixed = |kind, bytes: usize| (kind, 0, Some(vec![1; bytes]));
    let text = |kind, bytes: usize| (kind, 0, Some(lenenc_text(&b"x".repeat(bytes))));
    let time = |kind, parts: &[u8]| (kind, 0, Some(lenenc_text(parts)));
    vec![
        ("tiny", fixed(1, 1)),
        ("short", fixed(2, 2)),
        ("long", fixed(3, 4)),
        ("float", fixed(4, 4)),
        ("double", fixed(5, 8)),
        ("longlong", fixed(8, 8)),
        ("unsigned longlong", (8, 0x80, Some(vec![0xff; 8]))),
        ("decimal", (0, 0, Some(lenenc_text(b"1.5")))),
        ("newdecimal", (246, 0, Some(lenenc_text(b"2.5")))),
        ("timestamp of no length", time(7, &[])),
        ("date", time(10, &[0xe7, 7, 1, 2])),
        ("datetime with seconds", time(12, &[0xe7, 7, 1, 2, 3, 4, 5])),
        (
            "datetime with microseconds",
            time(12, &[0xe7, 7, 1, 2, 3, 4, 5, 6, 0, 0, 0]),
        ),
        ("time of no length", time(11, &[])),
        ("time with seconds", time(11, &[0, 1, 0, 0, 0, 2, 3, 4])),
        (
            "time with microseconds",
            time(11, &[0, 1, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0]),
        ),
        ("varchar", text(15, 3)),
        ("bit", text(16, 1)),
        ("json", text(245, 2)),
        ("enum", text(247, 1)),
        ("set", text(248, 1)),
        ("tinyblob", text(249, 0)),
        ("mediumblob", text(250, 70_000)),
        ("longblob", text(251, 250)),
        ("blob", text(252, 251)),
        ("var_string", text(253, 65_535)),
        ("string", text(254, 65_536)),
        ("geometry", text(255, 25)),
    ]
}

/// The payload of a `COM_QUERY` after the command's byte.
pub fn body(attributes: &[Attribute], text: &str) -> Vec<u8> {
    let mut out = lenenc(attributes.len());
    out.push(1);
    if !attributes.is_empty() {
        let mut nulls = vec![0; attributes.len().div_ceil(8)];
        for (index, attribute) in attributes.iter().enumerate() {
            if attribute.2.is_none() {
                nulls[index / 8] |= 1 << (index % 8);
            }
        }
        out.extend(nulls);
        out.push(1);
        for (index, (kind, flags, _)) in attributes.iter().enumerate() {
            out.extend([*kind, *flags]);
            out.extend(lenenc_text(format!("name{index}").as_bytes()));
        }
        for (_, _, value) in attributes {
            out.extend_from_slice(value.as_deref().unwrap_or_default());
        }
    }
    out.extend_from_slice(text.as_bytes());
    out
}

/// Bodies of all kinds; what is called malformed is so to the server.
pub fn bodies(text: &str) -> Vec<(String, Vec<u8>)> {
    let values = values();
    let mut bodies = vec![("none".to_owned(), body(&[], text))];
    for (name, value) in &values {
        bodies.push((
            format!("one {name}"),
            body(std::slice::from_ref(value), text),
        ));
        let null = (value.0, value.1, None);
        let two = [null, value.clone(), (TYPE_NULL, 0, None)];
        bodies.push((format!("a NULL, {name}, a NULL"), body(&two, text)));
    }
    let all: Vec<_> = values.into_iter().map(|(_, value)| value).collect();
    bodies.push(("all".to_owned(), body(&all, text)));
    let one = body(&all[..1], text);
    // Number, number of sets, bitmap, whether types follow.
    for (at, wrong) in [(1, 0), (1, 2), (3, 0)] {
        let mut malformed = one.clone();
        malformed[at] = wrong;
        bodies.push((format!("malformed: {wrong} at {at}"), malformed));
    }
    let mut lenient = one.clone();
    lenient[3] = 2;
    bodies.push((
        "one, and a flag that is neither 0 nor 1".to_owned(),
        lenient,
    ));
    let mut malformed = body(&[], text);
    malformed[1] = 0;
    bodies.push(("malformed: none in no set".to_owned(), malformed));
    bodies
}
