//! The cores and the engine do no I/O. Their code opens no files or sockets, starts no threads or
//! processes, doesn't wait, and reads no clock. So it can be tested and simulated without any of
//! them. Code for tests and fuzzing is left out.
//!
//! The code names something by a path that leads to it, in a `use` or elsewhere. Names that a `use`
//! has changed by `as` are found where they are changed. What macros write isn't seen.

use super::Violation;
use super::cycles;
use super::repository::Repository;
use super::rust::Token;

/// The crates without I/O, by their directories.
const CORES: [&str; 7] = [
    "adviser", "reason", "wire", "sql", "cache", "binlog", "engine",
];

/// What they don't name: a part of a path, and what it does. The parts are as short as may be, as
/// the rest of the path may stand in a `use`.
const IO: [(&[&str], &str); 13] = [
    (&["std", "fs"], "is about files"),
    (&["net", "TcpStream"], "is a socket"),
    (&["net", "TcpListener"], "is a socket"),
    (&["net", "UdpSocket"], "is a socket"),
    (&["unix", "net"], "is about sockets"),
    (&["process", "Command"], "starts a process"),
    (&["thread", "spawn"], "starts a thread"),
    (&["thread", "scope"], "starts threads"),
    (&["thread", "Builder"], "starts a thread"),
    (&["thread", "sleep"], "waits"),
    (&["Instant", "now"], "reads the clock"),
    (&["SystemTime", "now"], "reads the clock"),
    (&["tokio"], "is about I/O"),
];

/// Finds the names of I/O.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for core in CORES {
        for source in cycles::sources(repository, core) {
            for (line, name, why) in named(&source.tokens) {
                found.push(Violation::new(
                    &source.file.path,
                    line,
                    format!("'{name}' {why}, and {core} does no I/O"),
                    "take what comes of it as a value, and let crates/proxy do it",
                ));
            }
        }
    }
    found
}

/// The names of I/O: the line, the name, and what it does.
fn named(tokens: &[Token<'_>]) -> Vec<(usize, String, &'static str)> {
    let mut named = Vec::new();
    for path in paths(tokens) {
        for (part, why) in IO {
            if path.leads_to(part) {
                named.push((path.line, part.join("::"), why));
            }
        }
    }
    named
}

/// A path in the code.
#[derive(Debug, Clone)]
struct Path<'a> {
    /// The line of its last word.
    line: usize,
    /// Without the `::` between them. `*` stands for whatever there is.
    words: Vec<&'a str>,
}

impl Path<'_> {
    /// Whether the part is in it.
    fn leads_to(&self, part: &[&str]) -> bool {
        self.words.windows(part.len()).any(|words| {
            let mut pairs = words.iter().zip(part).enumerate();
            pairs.all(|(at, (word, its))| word == its || at > 0 && *word == "*")
        })
    }
}

/// The paths in the code, single words included.
fn paths<'a>(tokens: &[Token<'a>]) -> Vec<Path<'a>> {
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at = path(tokens, at, &[], &mut paths);
    }
    paths
}

/// Reads a path, or a `use` tree, whose first words are known. Where it ends, or one further if
/// none begins there.
fn path<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    first: &[&'a str],
    paths: &mut Vec<Path<'a>>,
) -> usize {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let begin = at;
    let mut words = first.to_vec();
    let mut line = 0;
    while is_word(word(at)) || word(at) == "*" && !words.is_empty() {
        words.push(word(at));
        line = tokens[at].line;
        at += 1;
        if word(at) != "::" {
            break;
        }
        at += 1;
    }
    if word(at) == "{" && at > 0 && word(at - 1) == "::" {
        at += 1;
        while at < tokens.len() && word(at) != "}" {
            at = path(tokens, at, &words, paths);
            // The new name behind `as`, too.
            while at < tokens.len() && !matches!(word(at), "," | "}") {
                at += 1;
            }
            if word(at) == "," {
                at += 1;
            }
        }
        return at + 1;
    }
    if words.len() > first.len() {
        paths.push(Path { line, words });
    }
    at.max(begin + 1)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let found = violations(&Repository::of(&[(path, text)]));
        let told = |one: Violation| format!("{}:{} {}", one.path, one.line, one.what);
        found.into_iter().map(told).collect()
    }

    #[test]
    fn names_of_io_are_found_however_the_path_is_written() {
        for (text, expected) in [
            ("use std::fs;", "'std::fs' is about files"),
            ("use ::std::fs::{self};", "'std::fs' is about files"),
            ("use std::{io, fs::File};", "'std::fs' is about files"),
            ("use std::{fmt, fs as files};", "'std::fs' is about files"),
            (
                "fn f() { let a = std::fs::read(b); }",
                "'std::fs' is about files",
            ),
            (
                "use std::net::{IpAddr, TcpStream};",
                "'net::TcpStream' is a socket",
            ),
            (
                "use std::{a::{b, c}, net::{self, TcpListener as D}, e};",
                "'net::TcpListener' is a socket",
            ),
            ("fn f(a: net::UdpSocket) {}", "'net::UdpSocket' is a socket"),
            (
                "use std::os::unix::net::UnixStream;",
                "'unix::net' is about sockets",
            ),
            (
                "use std::process::Command;",
                "'process::Command' starts a process",
            ),
            (
                "use std::process::*;",
                "'process::Command' starts a process",
            ),
            (
                "fn f() { thread::spawn(|| a); }",
                "'thread::spawn' starts a thread",
            ),
            ("use std::thread::sleep;", "'thread::sleep' waits"),
            (
                "const F: fn() -> Instant = Instant::now;",
                "'Instant::now' reads the clock",
            ),
            (
                "fn f() { std::time::SystemTime::now(); }",
                "'SystemTime::now' reads the clock",
            ),
            ("use tokio::sync::Notify;", "'tokio' is about I/O"),
            ("use {std::fmt, tokio};", "'tokio' is about I/O"),
        ] {
            assert_eq!(
                found("crates/cache/src/a/b.rs", &format!("\n{text}")),
                [format!(
                    "crates/cache/src/a/b.rs:2 {expected}, and cache does no I/O"
                )],
                "{text}"
            );
        }
        assert_eq!(
            found("crates/sql/src/lib.rs", "use std::thread::*;").len(),
            4
        );
    }

    #[test]
    fn every_core_is_looked_at_and_nothing_else() {
        for core in CORES {
            let path = format!("crates/{core}/src/lib.rs");
            assert_eq!(found(&path, "use std::fs;").len(), 1, "{path}");
        }
        for path in [
            "crates/proxy/src/lib.rs",
            "crates/sql/tests/a.rs",
            "crates/sql/benches/a.rs",
        ] {
            assert!(found(path, "use std::fs;").is_empty(), "{path}");
        }
    }

    #[test]
    fn values_tests_and_comments_are_right() {
        for text in [
            "use std::net::{IpAddr, SocketAddr};\nuse std::time::{Duration, Instant};",
            "use std::{fmt, io};\nuse crate::{a::fs, b::{fs}};\nfn f() { net::a(TcpStream); }",
            "match a { Refusal::SystemTime => K::SystemTime, _ => now * c::d }",
            "// std::fs\n/// [`Instant::now`]\nconst C: &str = \"tokio\";",
            "#[cfg(test)] mod tests { use std::fs; }",
            "#[cfg(any(test, fuzzing))] use std::fs;",
            "fn f() { std::thread::current().id(); std::process::abort() }",
        ] {
            let told = found("crates/sql/src/a.rs", text);
            assert!(told.is_empty(), "{text}: {told:?}");
        }
    }
}
