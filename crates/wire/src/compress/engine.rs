//! The two libraries behind one face.
//!
//! Every packet is compressed on its own, so the working memory, which is large (300 KiB for zlib,
//! more than a MiB for zstd), belongs to the thread and not to the connection.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::zstd_safe::CParameter;

use super::{Algorithm, ZSTD_LEVEL_MAX, ZSTD_LEVEL_MIN};
use crate::WireError;

const WHAT: &str = "compressed packet";

/// A thread's working memory; each is made when it is first needed.
#[derive(Default)]
struct Engines {
    deflate: Option<Compress>,
    inflate: Option<Decompress>,
    zstd_in: Option<zstd::bulk::Compressor<'static>>,
    zstd_out: Option<zstd::bulk::Decompressor<'static>>,
}

thread_local! {
    static ENGINES: RefCell<Engines> = RefCell::default();
}

/// Compresses `plain` into `packed`; `None` if it doesn't fit.
pub(super) fn compress(algorithm: Algorithm, plain: &[u8], packed: &mut [u8]) -> Option<usize> {
    ENGINES.with_borrow_mut(|engines| match algorithm {
        Algorithm::Zlib => engines.deflate(plain, packed),
        Algorithm::Zstd { level } => {
            let level = level.clamp(ZSTD_LEVEL_MIN, ZSTD_LEVEL_MAX);
            engines.compress_zstd(level, plain, packed)
        }
    })
}

/// Appends the `plain_bytes` bytes that `packed` was made of; nothing if it is an error.
pub(super) fn decompress(
    algorithm: Algorithm,
    packed: &[u8],
    plain_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let start = out.len();
    let appended = ENGINES.with_borrow_mut(|engines| match algorithm {
        Algorithm::Zlib => engines.inflate(packed, plain_bytes, out),
        Algorithm::Zstd { .. } => engines.decompress_zstd(packed, plain_bytes, out),
    });
    out.truncate(start + *appended.as_ref().unwrap_or(&0));
    appended.map(|_| ())
}

impl Engines {
    fn deflate(&mut self, plain: &[u8], packed: &mut [u8]) -> Option<usize> {
        let engine = self
            .deflate
            .get_or_insert_with(|| Compress::new(Compression::default(), true));
        engine.reset();
        match engine.compress(plain, packed, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => usize::try_from(engine.total_out()).ok(),
            _ => None,
        }
    }

    fn compress_zstd(&mut self, level: i32, plain: &[u8], packed: &mut [u8]) -> Option<usize> {
        let engine = self.zstd_in.get_or_insert_default();
        engine
            .set_parameter(CParameter::CompressionLevel(level))
            .ok()?;
        engine.compress_to_buffer(plain, packed).ok()
    }

    /// As lenient as servers: a length that is too long and bytes after the stream's end are let
    /// pass.
    fn inflate(
        &mut self,
        packed: &[u8],
        plain_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, WireError> {
        let engine = self.inflate.get_or_insert_with(|| Decompress::new(true));
        engine.reset(true);
        let start = out.len();
        // One more than there may be, so that too much shows.
        out.resize(start + plain_bytes + 1, 0);
        let status = engine.decompress(packed, &mut out[start..], FlushDecompress::Finish);
        let appended = usize::try_from(engine.total_out()).unwrap_or(usize::MAX);
        match status {
            Ok(Status::StreamEnd) if appended <= plain_bytes => Ok(appended),
            _ => Err(WireError::Malformed(WHAT)),
        }
    }

    fn decompress_zstd(
        &mut self,
        packed: &[u8],
        plain_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, WireError> {
        let engine = self.zstd_out.get_or_insert_default();
        let start = out.len();
        out.resize(start + plain_bytes, 0);
        match engine.decompress_to_buffer(packed, &mut out[start..]) {
            Ok(appended) if appended == plain_bytes => Ok(appended),
            _ => Err(WireError::Malformed(WHAT)),
        }
    }
}
