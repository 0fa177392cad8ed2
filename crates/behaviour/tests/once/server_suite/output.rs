//! What two runs of one script printed, compared statement by statement.

use std::collections::HashMap;

use super::script::MARK;

/// What a statement printed.
struct Printed<'o> {
    /// The number of its line, or `base`.
    mark: &'o str,
    lines: Vec<&'o str>,
}

fn read(output: &str) -> Vec<Printed<'_>> {
    let mut all: Vec<Printed<'_>> = vec![Printed {
        mark: "0",
        lines: Vec::new(),
    }];
    for line in output.lines() {
        if let Some(mark) = line.strip_prefix(MARK) {
            all.push(Printed {
                mark,
                lines: Vec::new(),
            });
        } else if let Some(last) = all.last_mut() {
            last.lines.push(line);
        }
    }
    all
}

/// By how much a counter of the query cache grew since it was last shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Growth {
    /// The line of the statement that shows it.
    pub line: usize,
    /// Without `Qcache_`.
    pub counter: String,
    /// In front of the server's own cache.
    pub server: i64,
    /// In front of Remora.
    pub remora: i64,
}

/// What differs.
#[derive(Debug, Default)]
pub struct Differences {
    /// Counters whose growth was compared.
    pub counters: usize,
    /// Statements whose output was compared.
    pub statements: usize,
    /// Those counters that grew otherwise.
    pub growths: Vec<Growth>,
    /// Lines of statements with other output, and both outputs.
    pub outputs: Vec<(String, String, String)>,
}

/// Counters as they were last shown.
type Shown = HashMap<String, i64>;

/// A row of a counter, and its value.
fn counter(line: &str) -> Option<(&str, i64)> {
    let (name, value) = line.strip_prefix("Qcache_")?.split_once('\t')?;
    Some((name, value.parse().ok()?))
}

/// Compares the output on the server with that through Remora.
pub fn compare(server: &str, remora: &str) -> Differences {
    let (server, remora) = (read(server), read(remora));
    let mut differences = Differences::default();
    let (mut shown_server, mut shown_remora) = (Shown::new(), Shown::new());
    for (one, other) in server.iter().zip(&remora) {
        // Neither what stands before the first one, nor what was added.
        differences.statements += usize::from(one.mark != "0" && one.mark != "base");
        if one.mark != other.mark || one.lines.len() != other.lines.len() {
            differences.outputs.push(both(one, other));
            if one.mark != other.mark {
                return differences;
            }
            continue;
        }
        let is_base = one.mark == "base";
        for (left, right) in one.lines.iter().zip(&other.lines) {
            match (counter(left), counter(right)) {
                (Some((name, left)), Some((same, right))) if name == same => {
                    let growth = |shown: &mut Shown, now: i64| {
                        now - shown.insert(name.to_owned(), now).unwrap_or(0)
                    };
                    let left = growth(&mut shown_server, left);
                    let right = growth(&mut shown_remora, right);
                    if is_base || name.contains("free") || name.contains("blocks") {
                        continue;
                    }
                    differences.counters += 1;
                    if left != right {
                        differences.growths.push(Growth {
                            line: one.mark.parse().unwrap(),
                            counter: name.to_owned(),
                            server: left,
                            remora: right,
                        });
                    }
                }
                _ if without_place(left) == without_place(right) => {}
                _ => {
                    differences.outputs.push(both(one, other));
                    break;
                }
            }
        }
    }
    if server.len() != remora.len() {
        let counts = (server.len().to_string(), remora.len().to_string());
        differences
            .outputs
            .push(("end".to_owned(), counts.0, counts.1));
    }
    differences
}

fn both(one: &Printed<'_>, other: &Printed<'_>) -> (String, String, String) {
    let text = |printed: &Printed<'_>| printed.lines.join("\n");
    (one.mark.to_owned(), text(one), text(other))
}

/// A message of the client's without the number of the script's line.
fn without_place(line: &str) -> &str {
    let message = line.strip_prefix("mysqltest: At line ");
    message
        .and_then(|rest| rest.split_once(": "))
        .map_or(line, |(_, rest)| rest)
}
