//! The query string of a URL: names and values, percent-encoded.

/// The pairs of a query string. What isn't encoded as it should be stands for itself.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match after {
                [high, low, after @ ..] => match hex(*high).zip(hex(*low)) {
                    Some((high, low)) => {
                        rest = after;
                        high << 4 | low
                    }
                    None => byte,
                },
                _ => byte,
            },
            _ => byte,
        });
    }
    decoded
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Bytes as a name or value of a query string.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let one = |byte: &u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            char::from(*byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    bytes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let query = format!("sql={}&schema=a+b&flag", encode(&all));
        let expected = [
            (b"sql".to_vec(), all),
            (b"schema".to_vec(), b"a b".to_vec()),
            (b"flag".to_vec(), Vec::new()),
        ];
        assert!(pairs(&query).eq(expected));
    }

    #[test]
    fn what_is_not_encoded_stands_for_itself() {
        for text in ["%", "%4", "%zz", "100%"] {
            assert_eq!(decode(text), text.as_bytes());
        }
    }
}
