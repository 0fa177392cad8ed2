//! Files that hold a secret on one line: a password, a token.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A secret longer than this is none: the wrong file was named.
const SECRET_BYTES_MAX: usize = 4_096;

/// What such a file holds.
pub(crate) struct Secret {
    /// Its text without the line break at the end.
    pub(crate) text: String,
    /// Others than the file's owner can use it.
    pub(crate) is_open: bool,
}

/// Reads the file. An error says what is wrong with it, and doesn't name it.
pub(crate) fn read_secret(path: &Path) -> Result<Secret, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let is_open = metadata.mode() & 0o077 != 0 && metadata.is_file();
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.len() > SECRET_BYTES_MAX || line.contains('\n') {
        return Err("it holds more than one line of text".to_owned());
    }
    Ok(Secret {
        text: line.to_owned(),
        is_open,
    })
}

/// The warning about a file that others can use.
pub(crate) fn open_file_warning(option: &str, path: &Path) -> String {
    format!(
        "{option}: others than its owner can use {}; fix it with `chmod 600 {0}`",
        path.display()
    )
}
