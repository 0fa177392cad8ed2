//! The text by which a statement is looked up.

/// Whether text can be a `SELECT` at all, by its first letter: only such text is looked up.
#[inline]
pub fn may_be_select(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(
        first,
        Some(b's' | b'S' | b'w' | b'W' | b'(' | b'/' | b'-' | b'#')
    )
}

/// The statement's text within the key of an execution, as a prepared read puts it.
#[inline]
pub fn text_of_key(key: &[u8]) -> &[u8] {
    let length = key.last_chunk().copied().map(u64::from_le_bytes);
    let length = length.and_then(|length| usize::try_from(length).ok());
    length.and_then(|length| key.get(..length)).unwrap_or(key)
}
