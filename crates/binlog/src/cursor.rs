//! Reading fields from bytes without panics.

use crate::error::DecodeError;

/// The rest of an event's bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn bytes(
        &mut self,
        count: usize,
        field: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(DecodeError::Truncated {
                field,
                needed: count,
                left: self.rest.len(),
            });
        };
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.bytes(1, field).map(|bytes| bytes[0])
    }

    /// A little-endian unsigned integer of up to eight bytes.
    pub(crate) fn uint(&mut self, size: usize, field: &'static str) -> Result<u64, DecodeError> {
        let bytes = self.bytes(size, field)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        let bytes = self.bytes(2, field)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let bytes = self.bytes(4, field)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// The protocol's length-encoded integer.
    pub(crate) fn length_encoded(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        match self.u8(field)? {
            first @ 0..=250 => Ok(u64::from(first)),
            252 => self.uint(2, field),
            253 => self.uint(3, field),
            254 => self.uint(8, field),
            _ => Err(DecodeError::Invalid(field)),
        }
    }
}

pub(crate) fn utf8(bytes: &[u8], field: &'static str) -> Result<String, DecodeError> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| DecodeError::Utf8(field))
}
