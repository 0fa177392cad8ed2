//! Which names a `SHOW` asks for.

use super::parser::Parser;
use crate::token::TokenKind as T;

/// Names that one `WHERE` may list.
const TESTS_MAX: usize = 256;

/// Which names are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameFilter {
    /// All.
    All,
    /// Those that pass one of the tests.
    Any(Vec<NameTest>),
}

/// A test of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameTest {
    /// It is this one, whatever the case.
    Is(String),
    /// It is like this.
    Like(Pattern),
}

/// The pattern of a `LIKE`: `%` stands for anything, `_` for one character, and `\` takes both for
/// themselves. It is ASCII, and case doesn't count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern; it should be ASCII.
    pub fn new(pattern: &str) -> Pattern {
        Pattern(pattern.to_owned())
    }

    /// Whether it matches the whole of `name`.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        // Where the last `%` stands, and from where in the name it is tried next.
        let mut back: Option<(usize, usize)> = None;
        loop {
            let step = match pattern.get(p) {
                Some(b'%') => {
                    back = Some((p, n));
                    p += 1;
                    continue;
                }
                None if n == name.len() => return true,
                None => None,
                Some(b'_') if n < name.len() => Some(1),
                Some(b'\\') if p + 1 < pattern.len() => same(pattern.get(p + 1), name.get(n), 2),
                literal => same(literal, name.get(n), 1),
            };
            match (step, back) {
                (Some(used), _) => {
                    p += used;
                    n += 1;
                }
                (None, Some((percent, from))) if from < name.len() => {
                    back = Some((percent, from + 1));
                    p = percent + 1;
                    n = from + 1;
                }
                (None, _) => return false,
            }
        }
    }
}

fn same(pattern: Option<&u8>, name: Option<&u8>, used: usize) -> Option<usize> {
    pattern?.eq_ignore_ascii_case(name?).then_some(used)
}

impl NameFilter {
    /// Whether a name is asked for.
    pub fn takes(&self, name: &str) -> bool {
        match self {
            NameFilter::All => true,
            NameFilter::Any(tests) => tests.iter().any(|test| match test {
                NameTest::Is(one) => one.eq_ignore_ascii_case(name),
                NameTest::Like(pattern) => pattern.matches(name),
            }),
        }
    }
}

/// The filter from the cursor to the text's end. Only the name's column is known here: another
/// condition is `None`.
pub(super) fn filter(mut parser: Parser<'_>) -> Option<NameFilter> {
    let filter = if parser.take("like") {
        NameFilter::Any(vec![NameTest::Like(Pattern::new(parser.take_string()?))])
    } else if parser.take("where") {
        NameFilter::Any(tests(&mut parser)?)
    } else {
        NameFilter::All
    };
    parser.at_end().then_some(filter)
}

/// `Variable_name = '…'`, `LIKE '…'`, `IN ('…', …)`, and several of them with `OR`.
fn tests(parser: &mut Parser<'_>) -> Option<Vec<NameTest>> {
    let mut tests = Vec::new();
    loop {
        let token = parser.current();
        let name = parser.bytes(token);
        let is_name = match token.kind {
            T::Word(_) => name.eq_ignore_ascii_case(b"variable_name"),
            T::QuotedName => name.eq_ignore_ascii_case(b"`variable_name`"),
            _ => false,
        };
        if !is_name {
            return None;
        }
        parser.advance();
        if parser.take("like") {
            tests.push(NameTest::Like(Pattern::new(parser.take_string()?)));
        } else if parser.take_kind(T::Equal) {
            tests.push(exact(parser)?);
        } else {
            parser.expect("in")?;
            list(parser, &mut tests)?;
        }
        if tests.len() > TESTS_MAX {
            return None;
        }
        if !parser.take("or") {
            return Some(tests);
        }
    }
}

fn list(parser: &mut Parser<'_>, tests: &mut Vec<NameTest>) -> Option<()> {
    if !parser.take_kind(T::LeftParen) {
        return None;
    }
    loop {
        tests.push(exact(parser)?);
        if parser.take_kind(T::RightParen) {
            return Some(());
        }
        if !parser.take_kind(T::Comma) || tests.len() > TESTS_MAX {
            return None;
        }
    }
}

/// A name to be compared as a whole. Servers differ in what spaces at its end mean.
fn exact(parser: &mut Parser<'_>) -> Option<NameTest> {
    let name = parser.take_string()?;
    let is_plain = !name.ends_with(' ') && !name.contains('\\');
    is_plain.then(|| NameTest::Is(name.to_owned()))
}
