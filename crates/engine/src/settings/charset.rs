//! What a session's character sets mean for the text of its statements.
//!
//! The server reads a statement in `character_set_client`. It converts the strings in it to
//! `character_set_connection` before it compares them with anything.

use crate::tags::StringConversion;

/// What Remora may assume of a session's statement text, by `character_set_client` and
/// `character_set_connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCharset {
    /// UTF-8: names can be read as they are.
    Utf8,
    /// Bytes below 0x80 are ASCII wherever they stand, but names beyond ASCII mean something else.
    AsciiSafe,
    /// A byte that looks like a quote or a backslash may be half a character (GBK, Shift-JIS,
    /// Big5). Or the server compares other strings than the statement shows.
    Unsafe,
}

impl TextCharset {
    /// For these values of the two variables.
    pub fn of(client: &str, connection: &str) -> TextCharset {
        let of_client = Self::of_client(client);
        let keeps_ascii = match client {
            // Not converted: `'10'` would be one character of `utf16`.
            "binary" => Self::of_client(connection) != TextCharset::Unsafe,
            _ => has_ascii(connection),
        };
        if keeps_ascii {
            of_client
        } else {
            TextCharset::Unsafe
        }
    }

    fn of_client(name: &str) -> TextCharset {
        match name {
            "utf8" | "utf8mb3" | "utf8mb4" => TextCharset::Utf8,
            "latin1" | "latin2" | "latin5" | "latin7" | "ascii" | "binary" | "cp1250"
            | "cp1251" | "cp1256" | "cp1257" | "koi8r" | "koi8u" | "greek" | "hebrew" | "cp850"
            | "cp852" | "cp866" => TextCharset::AsciiSafe,
            _ => TextCharset::Unsafe,
        }
    }
}

/// Whether a character set of the connection has every character of ASCII. Of those that servers
/// have today only `swe7` has not: `'a[b'` is compared as `'a?b'` there.
fn has_ascii(connection: &str) -> bool {
    const OTHERS: &[&str] = &[
        "armscii8", "big5", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk",
        "geostd8", "hp8", "keybcs2", "macce", "macroman", "sjis", "tis620", "ucs2", "ujis",
        "utf16", "utf16le", "utf32",
    ];
    TextCharset::of_client(connection) != TextCharset::Unsafe || OTHERS.contains(&connection)
}

/// What the server does with the strings of a session with these values of the two variables, if
/// its text isn't [`TextCharset::Unsafe`].
pub fn string_conversion(client: &str, connection: &str) -> StringConversion {
    let is_kept = client == connection || [client, connection].contains(&"binary");
    if is_kept {
        StringConversion::None
    } else {
        StringConversion::ToConnection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_have_ascii_is_safe() {
        assert_eq!(TextCharset::of("utf8mb4", "utf8mb4"), TextCharset::Utf8);
        assert_eq!(TextCharset::of("utf8mb3", "utf16"), TextCharset::Utf8);
        assert_eq!(TextCharset::of("binary", "latin1"), TextCharset::AsciiSafe);
        for (client, connection) in [
            ("utf8mb4", "swe7"),
            ("utf8mb4", ""),
            ("gbk", "utf8mb4"),
            ("binary", "utf16"),
        ] {
            assert_eq!(TextCharset::of(client, connection), TextCharset::Unsafe);
        }
    }

    #[test]
    fn strings_are_converted_where_the_character_sets_differ() {
        for (client, connection) in [
            ("utf8mb4", "utf8mb4"),
            ("binary", "utf8mb4"),
            ("latin1", "binary"),
        ] {
            assert_eq!(
                string_conversion(client, connection),
                StringConversion::None
            );
        }
        for (client, connection) in [
            ("utf8mb4", "latin1"),
            ("utf8mb4", "utf8mb3"),
            ("latin1", "utf16"),
        ] {
            assert_eq!(
                string_conversion(client, connection),
                StringConversion::ToConnection
            );
        }
    }
}
