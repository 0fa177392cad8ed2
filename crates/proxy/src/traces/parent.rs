//! The trace of the application that a statement belongs to: W3C Trace Context in a comment, as
//! sqlcommenter writes it.
//!
//! <https://www.w3.org/TR/trace-context/#traceparent-header>,
//! <https://google.github.io/sqlcommenter/spec/>

use std::fmt;

/// How far from the end of a statement its comment may begin, bytes.
const COMMENT_BYTES_MAX: usize = 1_024;
const NAME: &[u8] = b"traceparent='";

/// A span of the application's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace; not 0.
    pub trace_id: u128,
    /// The span in it; not 0.
    pub span_id: u64,
    /// Flags: 1 says that the application records it.
    pub flags: u8,
}

impl Parent {
    /// What the comment at a statement's end says: `/*traceparent='00-…-…-01'*/`.
    pub fn of_statement(text: &[u8]) -> Option<Parent> {
        let text = &text[text.len().saturating_sub(COMMENT_BYTES_MAX)..];
        let is_behind = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
        let end = text.iter().rposition(|byte| !is_behind(byte))? + 1;
        let inside = text[..end].strip_suffix(b"*/")?;
        let begin = inside.windows(2).rposition(|pair| pair == b"/*")? + 2;
        let comment = &inside[begin..];
        let at = comment
            .windows(NAME.len())
            .position(|window| window == NAME)?;
        let value = &comment[at + NAME.len()..];
        let length = value.iter().position(|byte| *byte == b'\'')?;
        Parent::read(std::str::from_utf8(&value[..length]).ok()?)
    }

    /// Reads the value of a `traceparent`.
    pub fn read(value: &str) -> Option<Parent> {
        let mut parts = value.split('-');
        let version = number(parts.next()?, 2)?;
        let parent = Parent {
            trace_id: number(parts.next()?, 32)?,
            span_id: u64::try_from(number(parts.next()?, 16)?).ok()?,
            flags: u8::try_from(number(parts.next()?, 2)?).ok()?,
        };
        // Later versions may have more behind it, the first one not.
        let has_end = version > 0 || parts.next().is_none();
        let is_valid = has_end && version != 0xff && parent.trace_id != 0 && parent.span_id != 0;
        is_valid.then_some(parent)
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parent {
            trace_id,
            span_id,
            flags,
        } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

/// So many digits, lower case as the standard wants them.
fn number(digits: &str, count: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_number = digits.len() == count && digits.bytes().all(is_digit);
    is_number
        .then(|| u128::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01";

    #[test]
    fn the_comment_at_the_end_is_read() {
        for text in [
            format!("SELECT 1 /*traceparent='{VALUE}'*/"),
            format!("SELECT 1 /* a */ /*action='%2Fx',traceparent='{VALUE}',tracestate='b'*/ ;\n"),
            format!("{} /* traceparent='{VALUE}' */", "x".repeat(5_000)),
        ] {
            let parent = Parent::of_statement(text.as_bytes()).unwrap();
            assert_eq!(parent.to_string(), VALUE);
        }
    }

    #[test]
    fn what_is_no_parent_is_none() {
        let zeros = VALUE.replace("c532cb4098ac3dd2", "0000000000000000");
        for text in [
            String::new(),
            "*/".to_owned(),
            "/*/".to_owned(),
            "SELECT 1".to_owned(),
            format!("/*traceparent='{VALUE}'*/ SELECT 1"),
            format!("SELECT '/*traceparent=''{VALUE}''*/'"),
            format!("SELECT 1 /*traceparent='{VALUE}*/"),
            format!("SELECT 1 /*traceparent='{VALUE}-1'*/"),
            format!("SELECT 1 /*traceparent='{}'*/", VALUE.to_uppercase()),
            format!("SELECT 1 /*traceparent='{zeros}'*/"),
            format!("SELECT 1 /*traceparent='ff{}'*/", &VALUE[2..]),
            format!(
                "SELECT 1 /*traceparent='{VALUE}'{}*/",
                " ".repeat(COMMENT_BYTES_MAX)
            ),
        ] {
            assert_eq!(Parent::of_statement(text.as_bytes()), None, "{text}");
        }
    }
}
