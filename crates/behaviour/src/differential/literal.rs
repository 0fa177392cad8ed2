//! Values of placeholders as a case file writes them, and text with bytes of any character set.

use anyhow::{Context as _, bail};

use remora_testkit::client::Value;

/// A value as it is sent in a prepared statement, and as it is written into a statement's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// What is sent.
    pub value: Value,
    /// What is written.
    pub text: String,
}

impl Literal {
    /// Reads a list such as `1, -2, 3u, 0.5, 'text', X'00ff', NULL`.
    pub fn parse_list(list: &str) -> anyhow::Result<Vec<Literal>> {
        split_outside_quotes(list)
            .into_iter()
            .map(Literal::parse)
            .collect()
    }

    fn parse(text: &str) -> anyhow::Result<Literal> {
        let unquoted = |text: &str| {
            let inner = text
                .strip_prefix('\'')
                .and_then(|rest| rest.strip_suffix('\''));
            inner.map(ToOwned::to_owned)
        };
        let literal = |value, text: &str| Literal {
            value,
            text: text.to_owned(),
        };
        if text.eq_ignore_ascii_case("NULL") {
            return Ok(literal(Value::Null, text));
        }
        if let Some(inner) = unquoted(text) {
            return Ok(literal(Value::Text(inner.into_bytes()), text));
        }
        if let Some(inner) = text.strip_prefix('X').and_then(unquoted) {
            return Ok(literal(Value::Text(hexadecimal(&inner)?), text));
        }
        if let Some(digits) = text.strip_suffix('u') {
            let number = digits
                .parse()
                .with_context(|| format!("not a number: {text}"))?;
            return Ok(literal(Value::Unsigned(number), digits));
        }
        if let Ok(number) = text.parse() {
            return Ok(literal(Value::Int(number), text));
        }
        let number = text
            .parse()
            .with_context(|| format!("not a value: {text}"))?;
        Ok(literal(Value::Double(number), text))
    }
}

fn split_outside_quotes(list: &str) -> Vec<&str> {
    let mut quoted = false;
    let parts = list.split(move |c| {
        quoted ^= c == '\'';
        c == ',' && !quoted
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

fn hexadecimal(digits: &str) -> anyhow::Result<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        bail!("an odd number of hexadecimal digits: {digits}");
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| {
            let pair = digits.get(at..at + 2).context("not ASCII")?;
            u8::from_str_radix(pair, 16).with_context(|| format!("not hexadecimal: {pair}"))
        })
        .collect()
}

/// Text in which `«E9»` stands for the byte 0xE9, and `«82A0»` for two.
pub(super) fn with_bytes(text: &str) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('«') {
        let (digits, after) = after.split_once('»').context("« without »")?;
        out.extend_from_slice(before.as_bytes());
        out.extend(hexadecimal(digits)?);
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// The text with its placeholders replaced. Placeholders inside quotes are none.
pub(super) fn with_values(text: &[u8], values: &[Literal]) -> Vec<u8> {
    let mut values = values.iter();
    let mut quote = None;
    let mut out = Vec::new();
    for &byte in text {
        match (quote, byte) {
            (None, b'?') => {
                if let Some(literal) = values.next() {
                    out.extend_from_slice(literal.text.as_bytes());
                    continue;
                }
            }
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_written() {
        let list = Literal::parse_list("1, -2, 3u, 0.5, 'a,b', X'00ff', NULL").unwrap();
        let values: Vec<Value> = list.iter().map(|literal| literal.value.clone()).collect();
        let expected = [
            Value::Int(1),
            Value::Int(-2),
            Value::Unsigned(3),
            Value::Double(0.5),
            Value::Text(b"a,b".to_vec()),
            Value::Text(vec![0, 0xff]),
            Value::Null,
        ];
        assert_eq!(values, expected);
        let text = with_values(b"SELECT ?, '?', ? FROM t", &list[2..]);
        assert_eq!(text, b"SELECT 3, '?', 0.5 FROM t");
        assert!(Literal::parse_list("what").is_err());
    }

    #[test]
    fn bytes_stand_for_themselves() {
        assert_eq!(with_bytes("a«E9»b«82A0»").unwrap(), b"a\xe9b\x82\xa0");
        assert!(with_bytes("«E»").is_err());
        assert!(with_bytes("«E9").is_err());
    }
}
