//! Keys, entries, the store, tags, the watermark, fences and fills in flight. No I/O.
