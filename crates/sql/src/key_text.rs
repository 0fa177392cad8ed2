//! The text by which a statement is looked up: that of the statement, without what the server
//! passes over.
//!
//! Applications put trace ids into comments (`/*traceparent='00-…'*/`), which would make each text
//! unique. Two texts that share a key text have the same tokens, so they mean the same; and they
//! give the same bytes, column names included. Servers name a column by the text of its expression,
//! white space and, some of them, comments included; so the lists of what is selected keep every
//! byte, and with them whatever lies inside of one:
//!
//! | in the statement | in the key text |
//! |---|---|
//! | white space and comments before the first word and after the last | left out |
//! | the same elsewhere, outside every list of what is selected | one space |
//! | from `SELECT` or `VALUES` to the `FROM` of the same parenthesis | as it is |
//! | strings, quoted names, optimizer hints `/*+ … */` | as they are |
//!
//! A text with an executable comment (`/*! … */`), or with anything that servers might read
//! differently, is its own key text.
//!
//! This reads bytes, not tokens: it stands in the way of every hit. That it reads them as
//! [`crate::Lexer`] does is checked with random texts and by fuzzing.

use crate::dialect::Dialect;
use crate::lexer::is_word_byte;
use crate::skeleton::end_of_quoted;

/// Parentheses may lie so deep within each other.
const DEPTH_MAX: u32 = 63;

/// As many bytes as are looked at in one step.
const STEP_BYTES: usize = 16;

/// Whether the text may differ from its key text. One quick pass, for most texts the only one.
pub fn may_differ_from_key_text(text: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first(), text.last()) else {
        return false;
    };
    let (bytes, nexts) = (&text[..text.len() - 1], &text[1..]);
    let (steps, _) = bytes.as_chunks::<STEP_BYTES>();
    let (next_steps, _) = nexts.as_chunks::<STEP_BYTES>();
    let mut found = steps
        .iter()
        .zip(next_steps)
        .any(|(bytes, nexts)| shows_a_gap(bytes, nexts));
    // The rest, and some bytes before it for the second time: quicker than one by one.
    found |= match (bytes.last_chunk(), nexts.last_chunk()) {
        (Some(bytes), Some(nexts)) => shows_a_gap::<STEP_BYTES>(bytes, nexts),
        _ => bytes
            .iter()
            .zip(nexts)
            .any(|(byte, next)| shows_a_gap(&[*byte], &[*next])),
    };
    found || *first <= b' ' || *last <= b' ' || *last == b'#'
}

/// Whether white space or a comment may begin at one of the bytes; `nexts` are those behind them.
#[inline]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "without an early end it is done for all bytes at once"
)]
fn shows_a_gap<const N: usize>(bytes: &[u8; N], nexts: &[u8; N]) -> bool {
    bytes
        .iter()
        .zip(nexts)
        .fold(false, |found, (&byte, &next)| {
            found
                | (byte < b' ')
                | (byte == b'#')
                | (byte == b' ') & (next == b' ')
                | (byte == b'/') & (next == b'*')
                | (byte == b'-') & (next == b'-')
        })
}

/// Puts the key text into `key`, in place of what it held. False if the text is its own key text;
/// `key` then holds nothing of use.
pub fn key_text(text: &[u8], dialect: Dialect, key: &mut Vec<u8>) -> bool {
    if !may_differ_from_key_text(text) {
        return false;
    }
    key.clear();
    let mut reader = Reader {
        text,
        dialect,
        at: 0,
        kept: 0,
        lists: 0,
        depth: 0,
        last_word: (0, 0),
        key,
    };
    reader.read().is_some()
}

/// `None`: this can't be read with certainty.
type Doubt = Option<()>;

struct Reader<'t> {
    text: &'t [u8],
    dialect: Dialect,
    at: usize,
    /// From here to `at` is still to be put into the key.
    kept: usize,
    /// A bit for each open parenthesis, and one for outside of all: whether this is in a list of
    /// what is selected.
    lists: u64,
    depth: u32,
    /// Where the last word begins and ends.
    last_word: (usize, usize),
    key: &'t mut Vec<u8>,
}

impl Reader<'_> {
    fn byte(&self, offset: usize) -> Option<u8> {
        self.text.get(self.at + offset).copied()
    }

    /// Nothing if the text can't be read with certainty, or if nothing of it is left out.
    fn read(&mut self) -> Doubt {
        while let Some(byte) = self.byte(0) {
            match byte {
                _ if is_word_byte(byte) => self.word(),
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | b'#' => self.gap()?,
                b'-' if self.byte(1) == Some(b'-') => self.dashes()?,
                b'/' if self.byte(1) == Some(b'*') => self.gap()?,
                b'\'' => self.quoted(!self.dialect.no_backslash_escapes)?,
                b'"' => {
                    let is_string = !self.dialect.ansi_quotes;
                    self.quoted(is_string && !self.dialect.no_backslash_escapes)?;
                }
                b'`' => self.quoted(false)?,
                b'(' => self.open()?,
                b')' => self.close()?,
                // Behind it a comment is a statement, an empty one.
                b';' if self.byte(1).is_some() => return None,
                // No server takes it for more than the end, or an error.
                0 => return None,
                _ => self.at += 1,
            }
        }
        if self.kept == 0 {
            return None;
        }
        self.key.extend_from_slice(&self.text[self.kept..]);
        Some(())
    }

    fn quoted(&mut self, has_escapes: bool) -> Doubt {
        self.at = end_of_quoted(self.text, self.at, has_escapes)?;
        Some(())
    }

    fn open(&mut self) -> Doubt {
        self.depth += 1;
        self.at += 1;
        (self.depth <= DEPTH_MAX).then_some(())
    }

    fn close(&mut self) -> Doubt {
        self.lists &= !(1 << self.depth);
        self.depth = self.depth.checked_sub(1)?;
        self.at += 1;
        Some(())
    }

    /// A word, a number or what looks like one.
    fn word(&mut self) {
        let start = self.at;
        let length = self.text[start..]
            .iter()
            .take_while(|byte| is_word_byte(**byte))
            .count();
        self.at += length;
        let word = &self.text[start..self.at];
        // Behind a dot or an at sign it is a name, whatever it says.
        let is_name = start > 0 && matches!(self.text[start - 1], b'.' | b'@');
        if !is_name {
            let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
            match length {
                6 if is(b"SELECT") || is(b"VALUES") => self.lists |= 1 << self.depth,
                // `a IS DISTINCT FROM b` goes on in the list.
                4 if is(b"FROM") && !self.follows_distinct() => self.lists &= !(1 << self.depth),
                _ => {}
            }
        }
        self.last_word = (start, self.at);
    }

    fn follows_distinct(&self) -> bool {
        self.text[self.last_word.0..self.last_word.1].eq_ignore_ascii_case(b"DISTINCT")
    }

    /// `--`: a comment before white space, a control character or the end, else two signs.
    fn dashes(&mut self) -> Doubt {
        match self.byte(2) {
            None => self.gap(),
            Some(byte) if byte == b' ' || byte.is_ascii_control() => self.gap(),
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'(' => {
                self.at += 2;
                Some(())
            }
            // White space in some character sets; or a comment, in whose place a space would make
            // these one.
            Some(_) => None,
        }
    }

    /// White space and comments up to what is neither.
    fn gap(&mut self) -> Doubt {
        let start = self.at;
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => self.at += 1,
                Some(b'#') => self.line()?,
                Some(b'-') if self.begins_dash_comment() => self.line()?,
                Some(b'/') if self.byte(1) == Some(b'*') => {
                    if self.byte(2) == Some(b'+') {
                        return self.hint(start);
                    }
                    self.comment()?;
                }
                _ => break,
            }
        }
        if self.begins_arguments_behind_comment(start) {
            return None;
        }
        self.leave_out(start);
        Some(())
    }

    /// Under `IGNORE_SPACE`, `COUNT (x)` calls the server's own function and `COUNT/**/(x)` a
    /// stored one.
    fn begins_arguments_behind_comment(&self, start: usize) -> bool {
        let has_comment = || {
            !self.text[start..self.at]
                .iter()
                .all(u8::is_ascii_whitespace)
        };
        self.dialect.ignore_space && self.byte(0) == Some(b'(') && has_comment()
    }

    fn begins_dash_comment(&self) -> bool {
        self.byte(1) == Some(b'-')
            && self
                .byte(2)
                .is_none_or(|byte| byte == b' ' || byte.is_ascii_control())
    }

    /// A comment to the end of the line.
    fn line(&mut self) -> Doubt {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        let length = length.unwrap_or(rest.len());
        self.at += length;
        (!rest[..length].contains(&0)).then_some(())
    }

    /// A comment `/* … */`.
    fn comment(&mut self) -> Doubt {
        match self.byte(2)? {
            b'!' => return None,
            b'M' if self.byte(3) == Some(b'!') => return None,
            _ => {}
        }
        let body = &self.text[self.at + 2..];
        let length = body.windows(2).position(|pair| pair == b"*/")?;
        self.at += length + 4;
        (!body[..length].contains(&0)).then_some(())
    }

    /// A hint, behind a gap that began at `start`. It is kept.
    fn hint(&mut self, start: usize) -> Doubt {
        self.leave_out(start);
        let hint = self.at;
        self.comment()?;
        let body = &self.text[hint..self.at];
        // A quote in a hint may hide a `*/` from a server that reads hints.
        let is_plain = !body.iter().any(|byte| matches!(byte, b'\'' | b'"' | b'`'));
        is_plain.then_some(())
    }

    /// The gap from `start` to `at`: it becomes one space, or none at either end of the text.
    fn leave_out(&mut self, start: usize) {
        let is_space = &self.text[start..self.at] == b" ";
        let is_at_end = start == 0 || self.at == self.text.len();
        if self.lists != 0 || (is_space && !is_at_end) || start == self.at {
            return;
        }
        self.key.extend_from_slice(&self.text[self.kept..start]);
        if !is_at_end {
            self.key.push(b' ');
        }
        self.kept = self.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(text: &str) -> String {
        let mut key = Vec::new();
        let differs = key_text(text.as_bytes(), Dialect::default(), &mut key);
        if differs {
            String::from_utf8(key).unwrap()
        } else {
            text.to_owned()
        }
    }

    fn is_its_own(text: &str) {
        assert_eq!(key_of(text), text);
    }

    #[test]
    fn comments_around_a_statement_are_no_part_of_its_key() {
        for text in [
            "SELECT a FROM t WHERE id = 1",
            "SELECT a FROM t WHERE id = 1 /*traceparent='00-5bd66ef5-1',route='x'*/",
            "SELECT a FROM t WHERE id = 1/* x */",
            "/* app:web */ SELECT a FROM t WHERE id = 1",
            "-- app\n  SELECT a FROM t WHERE id = 1",
            "# app\nSELECT a FROM t WHERE id = 1 -- x",
            "SELECT a FROM t /* it's */ WHERE  id =\n\t1  ",
            "SELECT a FROM/**/t WHERE id = 1 --",
        ] {
            assert_eq!(key_of(text), "SELECT a FROM t WHERE id = 1", "{text}");
        }
    }

    #[test]
    fn under_ignore_space_a_comment_is_more_than_a_space_before_arguments() {
        let dialect = Dialect {
            ignore_space: true,
            ..Dialect::default()
        };
        let mut key = Vec::new();
        let text = |gap: &str| format!("SELECT a FROM t WHERE b = (c) HAVING MAX{gap}(d) = 1");
        for (gap, differs) in [("  ", true), ("/**/", false), (" /* x */ ", false)] {
            let found = key_text(text(gap).as_bytes(), dialect, &mut key);
            assert_eq!(found, differs, "{gap}");
        }
        assert!(key_text(
            text("/**/").as_bytes(),
            Dialect::default(),
            &mut key
        ));
    }

    #[test]
    fn what_names_a_column_stays_as_it_is() {
        is_its_own("SELECT a  +  b FROM t");
        is_its_own("SELECT a /* x */, b FROM t");
        is_its_own("SELECT /* x */ a FROM t");
        is_its_own("SELECT (SELECT a FROM t  WHERE  b = 1) FROM u");
        is_its_own("SELECT * FROM (SELECT a  + 1 FROM t) AS x");
        is_its_own("WITH x AS (SELECT a  + 1 FROM t) SELECT * FROM x");
        is_its_own("SELECT * FROM (VALUES (1  + 1)) AS x");
        is_its_own("SELECT EXTRACT(YEAR FROM d)  + 1 FROM t");
        is_its_own("SELECT a IS DISTINCT FROM b  + 1, c FROM t");
        is_its_own("SELECT t.from  + 1 FROM t");
        is_its_own("SELECT 1  /* no table */");
    }

    #[test]
    fn outside_of_what_is_selected_white_space_is_one_space() {
        let folded = [
            (
                "SELECT * FROM (SELECT a  +1 FROM t  WHERE b) AS x  LIMIT 1",
                "SELECT * FROM (SELECT a  +1 FROM t WHERE b) AS x LIMIT 1",
            ),
            (
                "SELECT a  FROM t UNION  SELECT b  +1 FROM u\nORDER BY 1",
                "SELECT a  FROM t UNION SELECT b  +1 FROM u ORDER BY 1",
            ),
            (
                "SELECT a FROM t WHERE b IN ( SELECT c  FROM u  )  AND d",
                "SELECT a FROM t WHERE b IN ( SELECT c  FROM u ) AND d",
            ),
            (
                "WITH\n x AS (SELECT a FROM t)  SELECT * FROM x",
                "WITH x AS (SELECT a FROM t) SELECT * FROM x",
            ),
        ];
        for (text, key) in folded {
            assert_eq!(key_of(text), key);
        }
    }

    #[test]
    fn a_gap_is_seen_wherever_it_lies() {
        for length in 1..70 {
            let plain = vec![b'a'; length];
            assert!(!may_differ_from_key_text(&plain));
            for at in 0..length {
                for gap in [&b"\n"[..], b"#", b"  ", b"/*", b"--"] {
                    let mut text = plain.clone();
                    if let Some(place) = text.get_mut(at..at + gap.len()) {
                        place.copy_from_slice(gap);
                        assert!(may_differ_from_key_text(&text), "{length} {at} {gap:?}");
                    }
                }
                let mut single = plain.clone();
                single[at] = b' ';
                let is_at_an_end = at == 0 || at == length - 1;
                assert_eq!(may_differ_from_key_text(&single), is_at_an_end);
            }
        }
    }

    #[test]
    fn strings_names_hints_and_executable_comments_stay() {
        is_its_own("SELECT a FROM t WHERE b = 'x  /* y */ -- z'");
        is_its_own("SELECT a FROM t WHERE b = 'it''s  x\\'  y'");
        is_its_own("SELECT a FROM `t  u` WHERE b = \"c  d\"");
        is_its_own("SELECT a FROM t /*! WHERE  b */");
        is_its_own("SELECT a FROM t /*M! WHERE  b */");
        is_its_own("SELECT a FROM t WHERE b = '  ");
        is_its_own("SELECT a FROM t /* open  ");
        is_its_own("SELECT a FROM t WHERE b = 5--1");
        is_its_own("SELECT a FROM t WHERE b = 5--/**/1");
        is_its_own("SELECT a FROM t; /* x */");
        assert_eq!(
            key_of("SELECT a FROM t WHERE b IN (SELECT /*+ NO_MERGE() */ c FROM u)  /* x */"),
            "SELECT a FROM t WHERE b IN (SELECT /*+ NO_MERGE() */ c FROM u)"
        );
        assert_eq!(
            key_of("SELECT a FROM t  /*+  x */  WHERE  b"),
            "SELECT a FROM t /*+  x */ WHERE b"
        );
    }

    #[test]
    fn quotes_are_read_as_the_session_reads_them() {
        let key_in = |dialect: Dialect, text: &str| {
            let mut key = Vec::new();
            key_text(text.as_bytes(), dialect, &mut key).then(|| String::from_utf8(key).unwrap())
        };
        let plain = Dialect::default();
        let escapes = "SELECT a FROM t WHERE b = 'x\\'  AND  c = '  y'";
        let no_backslash_escapes = Dialect {
            no_backslash_escapes: true,
            ..plain
        };
        assert_eq!(key_in(plain, escapes), None, "an open string");
        assert_eq!(
            key_in(no_backslash_escapes, escapes).unwrap(),
            "SELECT a FROM t WHERE b = 'x\\' AND c = '  y'"
        );
    }
}
