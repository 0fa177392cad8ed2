//! Query attributes: named values that a client sends along with a statement.
//!
//! Under [`crate::Capabilities::QUERY_ATTRIBUTES`] a `COM_QUERY` has them before its text, always:
//! a client without any sends their number, 0, and a 1. Source: MySQL internals, "`COM_QUERY`"
//! (8.0.23).

use crate::WireError;
use crate::parameters::{NullBitmap, ParameterType, read_value};
use crate::reader::Reader;

/// Where the text of a statement begins: gives the length of the attributes, bytes, and the text.
///
/// `body` is the payload of a `COM_QUERY` after the command's byte, from a client that has asked
/// for [`crate::Capabilities::QUERY_ATTRIBUTES`]. An error means that the server won't understand
/// it either, or that the type of a value isn't known.
pub fn statement_text(body: &[u8]) -> Result<(usize, &[u8]), WireError> {
    let mut reader = Reader::new(body);
    let count = reader.length("number of query attributes")?;
    // The number of rows of values. Servers take nothing but one.
    if reader.length("number of sets of query attributes")? != 1 {
        return Err(WireError::Malformed(WHAT));
    }
    if count > 0 {
        // Each takes two bytes at least, so a number that is too large ends here.
        let count = usize::try_from(count).map_err(|_| WireError::Malformed(WHAT))?;
        skip_attributes(&mut reader, count)?;
    }
    let text = reader.rest();
    Ok((body.len() - text.len(), text))
}

const WHAT: &str = "query attributes";

fn skip_attributes(reader: &mut Reader<'_>, count: usize) -> Result<(), WireError> {
    let nulls = NullBitmap::read(reader, count)?;
    if reader.u8(WHAT)? == 0 {
        // No types. There is no earlier execution to have them from.
        return Err(WireError::Malformed(WHAT));
    }
    let mut types = *reader;
    for _ in 0..count {
        ParameterType::read(reader)?;
        reader
            .length_encoded_bytes("query attribute's name")?
            .ok_or(WireError::Malformed(WHAT))?;
    }
    for index in 0..count {
        let of_type = ParameterType::read(&mut types)?;
        types.length_encoded_bytes("query attribute's name")?;
        if !nulls.is_null(index) {
            read_value(reader, of_type)?;
        }
    }
    Ok(())
}
