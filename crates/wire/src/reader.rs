//! Reading the protocol's fields from a payload.
//!
//! Source: MySQL internals, "Protocol Basics: Data Types".

use crate::WireError;

/// A cursor over one payload. Every method names what it was reading when the bytes run out.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `payload` from its start.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let (head, tail) = self
            .rest
            .split_at_checked(count)
            .ok_or(WireError::Truncated(what))?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let (head, tail) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(WireError::Truncated(what))?;
        self.rest = tail;
        Ok(*head)
    }

    /// `int<1>`.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// `int<2>`, little-endian.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// `int<4>`, little-endian.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// `int<lenenc>`. `None` is the NULL marker 0xfb of text rows.
    pub fn length_encoded(&mut self, what: &'static str) -> Result<Option<u64>, WireError> {
        match self.u8(what)? {
            0xfb => Ok(None),
            0xfc => self.u16(what).map(|v| Some(u64::from(v))),
            0xfd => {
                let [a, b, c] = self.array(what)?;
                Ok(Some(u64::from(u32::from_le_bytes([a, b, c, 0]))))
            }
            0xfe => self.array(what).map(|v| Some(u64::from_le_bytes(v))),
            0xff => Err(WireError::Malformed(what)),
            small => Ok(Some(u64::from(small))),
        }
    }

    /// `int<lenenc>` where NULL isn't allowed.
    pub fn length(&mut self, what: &'static str) -> Result<u64, WireError> {
        self.length_encoded(what)?.ok_or(WireError::Malformed(what))
    }

    /// `string<lenenc>`; `None` is NULL.
    pub fn length_encoded_bytes(
        &mut self,
        what: &'static str,
    ) -> Result<Option<&'a [u8]>, WireError> {
        let Some(length) = self.length_encoded(what)? else {
            return Ok(None);
        };
        let length = usize::try_from(length).map_err(|_| WireError::Malformed(what))?;
        self.bytes(length, what).map(Some)
    }

    /// `string<NUL>`, without its end mark.
    pub fn until_nul(&mut self, what: &'static str) -> Result<&'a [u8], WireError> {
        let end = self
            .rest
            .iter()
            .position(|&b| b == 0)
            .ok_or(WireError::Truncated(what))?;
        let (head, tail) = self.rest.split_at(end);
        self.rest = &tail[1..];
        Ok(head)
    }

    /// `string<EOF>` that some peers end with a NUL and some don't.
    pub fn until_nul_or_end(&mut self) -> &'a [u8] {
        let end = self
            .rest
            .iter()
            .position(|&b| b == 0)
            .unwrap_or(self.rest.len());
        let (head, tail) = self.rest.split_at(end);
        self.rest = tail.get(1..).unwrap_or_default();
        head
    }
}

/// Appends an `int<lenenc>`.
pub fn put_length(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}
