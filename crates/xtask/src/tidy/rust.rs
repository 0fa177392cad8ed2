//! Reads Rust roughly: which lines are comments, and which words the code consists of. What stands
//! in literals is neither.

/// A word, or a sign, of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// Counted from 1.
    pub(crate) line: usize,
    /// An identifier, a number, `::`, or one other sign.
    pub(crate) text: &'a str,
}

/// What a file in Rust consists of.
#[derive(Debug, Default)]
pub(crate) struct Lexed<'a> {
    pub(crate) tokens: Vec<Token<'a>>,
    /// The lines that are nothing but a `//` comment, with their numbers from 1 on.
    pub(crate) comments: Vec<(usize, &'a str)>,
}

/// Reads a file.
pub(crate) fn lex(text: &str) -> Lexed<'_> {
    let mut lexed = Lexed::default();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let length = piece(rest);
        let (taken, left) = rest.split_at(length);
        if taken.starts_with("//") {
            let begin = text.len() - rest.len();
            let before = text[..begin].rsplit('\n').next().unwrap_or_default();
            if before.trim().is_empty() {
                let whole = &text[begin - before.len()..begin + length];
                lexed.comments.push((line, whole));
            }
        } else if is_code(taken) {
            lexed.tokens.push(Token { line, text: taken });
        }
        line += taken.matches('\n').count();
        rest = left;
    }
    lexed
}

/// Whether it is neither white space, nor a comment, nor a literal in quotes.
fn is_code(piece: &str) -> bool {
    let is_other = piece.starts_with(char::is_whitespace)
        || piece.starts_with("/*")
        || piece.starts_with(['"', '\''])
        || piece.ends_with(['"', '\'', '#']) && piece.len() > 1;
    !is_other
}

/// How long the first piece of the text is: a comment, a literal, a word or a sign.
fn piece(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if let Some(length) = raw_string(text) {
        return length;
    }
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '"' => string(text),
        '\'' => quote(text),
        'b' | 'c' if text[1..].starts_with('"') => 1 + string(&text[1..]),
        'b' if text[1..].starts_with('\'') => 1 + quote(&text[1..]),
        _ if text.starts_with("::") => 2,
        _ if is_of_word(first) => text.find(|c| !is_of_word(c)).unwrap_or(text.len()),
        _ => first.len_utf8(),
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Block comments lie within each other.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// `r"…"`, `br#"…"#` and the like.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let after = after.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = text.len() - body.len();
    Some(
        body.find(&end)
            .map_or(text.len(), |at| begin + at + end.len()),
    )
}

fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A character, or the quote alone if it begins a lifetime.
fn quote(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            let end = chars.skip(1).find(|(_, c)| *c == '\'');
            end.map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// The conditions under which code is compiled for tests only, fuzzing and simulation included.
const FOR_TESTS: [&[&str]; 3] = [
    &["test"],
    &["any", "(", "test", ",", "fuzzing", ")"],
    &[
        "any",
        "(",
        "test",
        ",",
        "fuzzing",
        ",",
        "feature",
        "=",
        "\"simulation\"",
        ")",
    ],
];

/// The tokens without what is compiled for tests only, and the names of the modules in files of
/// their own that are.
pub(crate) fn without_tests<'a>(tokens: &[Token<'a>]) -> (Vec<Token<'a>>, Vec<&'a str>) {
    let mut kept = Vec::new();
    let mut modules = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_for_tests(&tokens[at..]) {
            let end = at + item(&tokens[at..]);
            let words: Vec<&str> = tokens[at..end].iter().map(|token| token.text).collect();
            if let [.., "mod", name, ";"] = words[..] {
                modules.push(name);
            }
            at = end;
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    (kept, modules)
}

/// Whether an attribute begins here that leaves what follows to tests.
fn is_for_tests(tokens: &[Token<'_>]) -> bool {
    let begins = |condition: &&[&str]| {
        let words = [&["#", "[", "cfg", "("], *condition, &[")", "]"]].concat();
        let its = tokens.iter().map(|token| token.text).take(words.len());
        its.eq(words)
    };
    FOR_TESTS.iter().any(begins)
}

/// The words with which items, and `let`, begin.
const ITEMS: [&str; 15] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "let",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "unsafe",
    "use",
];

/// How many tokens the first item has, its attributes included: to its `;`, or to the end of its
/// braces. A field, a variant or an arm of a `match` may also end with its `,`.
fn item(tokens: &[Token<'_>]) -> usize {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut begin = 0;
    while word(begin) == "#" {
        begin += 1 + group(&tokens[begin + 1..]);
    }
    let mut at = begin;
    if word(at) == "pub" {
        at += 1;
        if word(at) == "(" {
            at += group(&tokens[at..]);
        }
    }
    // In a signature a `,` may also stand between `<` and `>`.
    let may_end_with_comma = !ITEMS.contains(&word(at));
    while at < tokens.len() {
        match word(at) {
            ";" => return at + 1,
            "," if may_end_with_comma => return at + 1,
            // What is around it ends.
            "}" | ")" | "]" => return at,
            "{" => {
                at += group(&tokens[at..]);
                // An arm goes on behind the braces of its pattern.
                let goes_on = may_end_with_comma && matches!(word(at), "=" | "|" | "if" | ",");
                if !goes_on {
                    return at;
                }
            }
            "(" | "[" => at += group(&tokens[at..]),
            _ => at += 1,
        }
    }
    at
}

/// How many tokens there are to the bracket that closes the first one.
fn group(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        lex(text).tokens.iter().map(|token| token.text).collect()
    }

    #[test]
    fn literals_and_comments_are_no_code() {
        let text = "let a = \"b // \\\" c\"; // d\nlet e: &'f str = r#\"g\n// \"h\"#; /* i /* j */ */ k('\\'', b'l')";
        let expected = "let a = ; let e : & f str = ; k ( , )";
        assert_eq!(words(text).join(" "), expected);
    }

    #[test]
    fn comment_lines_have_their_numbers_and_not_those_in_strings() {
        let text = "let a = \"\n// no\";\n    /// yes\nb(); // no\n//! too";
        assert_eq!(lex(text).comments, [(3, "    /// yes"), (5, "//! too")]);
    }

    #[test]
    fn what_is_for_tests_is_left_out() {
        let text = "a; #[cfg(test)] mod tests { b { c } } d; #[cfg(test)] #[x] mod e; f";
        let lexed = lex(text);
        let (kept, modules) = without_tests(&lexed.tokens);
        let kept: Vec<&str> = kept.iter().map(|token| token.text).collect();
        assert_eq!(kept, ["a", ";", "d", ";", "f"]);
        assert_eq!(modules, ["e"]);
    }
    #[test]
    fn what_is_for_tests_and_fuzzing_is_left_out() {
        for (text, expected) in [
            ("#[cfg(any(test, fuzzing))] pub(crate) mod a; b;", "b ;"),
            (
                "#[cfg(any(test, fuzzing))] fn a<B, C>(d: [u8; 2]) -> E<B, C> { f } g;",
                "g ;",
            ),
            (
                "enum A { B(C), #[cfg(any(test, fuzzing))] D(E, F), G, }",
                "enum A { B ( C ) , G , }",
            ),
            (
                "struct A { #[cfg(test)] pub(super) b: C, d: E, #[cfg(test)] f: G }",
                "struct A { d : E , }",
            ),
            (
                "match a { b => c, #[cfg(any(test, fuzzing))] D { e, .. } => { f; g } h => i }",
                "match a { b = > c , h = > i }",
            ),
            (
                "match a { #[cfg(any(test, fuzzing))] B(c) => d(e, f), g => h }",
                "match a { g = > h }",
            ),
            (
                "#[cfg(any(unix, fuzzing))] mod a; #[cfg(not(test))] mod b;",
                "# [ cfg ( any ( unix , fuzzing ) ) ] mod a ; # [ cfg ( not ( test ) ) ] mod b ;",
            ),
        ] {
            let lexed = lex(text);
            let (kept, _) = without_tests(&lexed.tokens);
            let kept: Vec<&str> = kept.iter().map(|token| token.text).collect();
            assert_eq!(kept.join(" "), expected, "{text}");
        }
        let lexed = lex("#[cfg(any(test, fuzzing))] pub(crate) mod a;");
        assert_eq!(without_tests(&lexed.tokens).1, ["a"]);
    }
}
