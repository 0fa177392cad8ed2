//! What the runner tells a program (see ../../README.md), and how a program answers.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The two ways to the server.
pub const SIDES: [&str; 2] = ["direct", "remora"];
/// How long reads are repeated until memory answers as many of them as it can.
pub const WARM_UP: Duration = Duration::from_secs(120);

/// A failure, in words.
pub type Fallible<T> = Result<T, String>;

/// A variable of the runner's.
pub fn variable(name: &str) -> String {
    std::env::var(format!("DRIVER_{name}")).unwrap_or_default()
}

/// A variable that holds words.
pub fn words(name: &str) -> Vec<String> {
    variable(name)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// A side's port.
pub fn port(side: &str) -> u16 {
    let name = if side == "direct" {
        "SERVER_PORT"
    } else {
        "REMORA_PORT"
    };
    variable(name).parse().expect("a port")
}

/// Whether connections use TLS.
pub fn tls() -> bool {
    variable("TLS") == "on"
}

/// Statements that Remora has answered from memory.
pub fn hits() -> usize {
    let mut stream = TcpStream::connect(variable("ADMIN")).expect("Remora's metrics");
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").expect("Remora's metrics");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("Remora's metrics");
    let number = page
        .lines()
        .find_map(|line| line.strip_prefix("remora_hits_total "));
    number
        .and_then(|number| number.parse().ok())
        .expect("remora_hits_total")
}

/// Hits since then, at most as many as expected; they are counted after their answers were sent.
pub fn hits_since(before: usize, expected: usize) -> usize {
    for _ in 0..10 {
        if hits() - before >= expected {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    expected.min(hits() - before)
}

/// Reports a check in one line.
pub fn report(name: &str, outcome: Fallible<()>) {
    match outcome {
        Ok(()) => println!("ok {name}"),
        Err(reason) => match reason.strip_prefix("none: ") {
            Some(reason) => println!("none {name} {reason}"),
            None => {
                let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
                println!(
                    "FAIL {name} {}",
                    reason.chars().take(600).collect::<String>()
                );
            }
        },
    }
}

/// The two must be equal; the message shows where they begin to differ.
pub fn same(what: &str, seen: &str, expected: &str) -> Fallible<()> {
    if seen == expected {
        return Ok(());
    }
    let at = seen
        .chars()
        .zip(expected.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let window = |text: &str| {
        text.chars()
            .skip(at.saturating_sub(40))
            .take(160)
            .collect::<String>()
    };
    Err(format!(
        "{what}: through Remora …{} instead of …{}",
        window(seen),
        window(expected)
    ))
}

/// An error in words unless the condition holds.
pub fn expect(condition: bool, what: impl Into<String>) -> Fallible<()> {
    if condition { Ok(()) } else { Err(what.into()) }
}

/// Stands for a long value.
pub fn digest(value: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{} bytes {:x}", value.len(), hasher.finish())
}
