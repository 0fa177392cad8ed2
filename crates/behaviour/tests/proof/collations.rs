//! Whether texts that a server takes for equal are the same to Remora, under each collation that
//! narrows reads; see `remora_engine::tags::collations` for the rule.
//!
//! The strings: every one or two printable ASCII characters, random ones made of what is special
//! somewhere, and some beyond ASCII. `SEED` in the environment repeats a run.

use std::collections::HashMap;
use std::fmt::Write as _;

use remora_engine::tags::collations::{folded, is_known, known};
use remora_testkit::client::{Client, ClientError, Value};
use remora_testkit::load::Random;
use remora_testkit::servers::{SCHEMA, Server, ServerOptions};

const RANDOM_STRINGS: usize = 1_000;
/// Strings of which each is compared with each, without an index.
const FEW: usize = 300;
/// Strings that are sent as constants under each character set of the connection.
const CONSTANTS: usize = 12;
const UNKNOWN_COLLATION: u16 = 1273;
const UNKNOWN_CHARACTER_SET: u16 = 1115;

/// What is one letter, two letters, or none in some language or other.
const PIECES: &[&str] = &[
    "a", "A", "b", "c", "ch", "CH", "Ch", "cs", "dz", "DZ", "dzs", "ddzs", "ll", "LL", "ij", "IJ",
    "ss", "SS", "ae", "AE", "oe", "aa", "AA", "rr", "nj", "lj", "gy", "ggy", "ssz", "i", "y", "v",
    "w", "k", "K", "0", "00", "1", " ", "  ", "-", "'", "\"", "\\", "%", "_", ".", ",", "~", "`",
    "^", "$", "+", "<", "=", "|", "@",
];

/// Beyond printable ASCII: accents, ligatures, what expands, what is ignored, what only looks the
/// same.
const ODD: &[&str] = &[
    "\u{e4}",
    "\u{c4}",
    "\u{e9}",
    "\u{df}",
    "\u{1e9e}",
    "\u{e6}",
    "\u{c6}",
    "\u{152}",
    "\u{133}",
    "\u{fb03}",
    "\u{212a}",
    "\u{ff41}",
    "\u{131}",
    "\u{130}",
    "\u{17f}",
    "a\u{301}",
    "a\u{200b}",
    "a\u{200d}b",
    "a\u{ad}b",
    "\u{feff}a",
    "a\0",
    "a\u{1}",
    "\u{7f}a",
    "a\tb",
    "a\n",
    "a\u{a0}",
    "\u{3000}",
    "\u{2126}",
    "\u{1f600}",
    "\u{1f600}a",
    "\u{b9}",
    "\u{bd}",
    "\u{2474}",
    "\u{3b1}",
];

/// Collations that aren't on the list because letters of theirs are equal to others.
const LEFT_OUT: &[&str] = &[
    "utf8_lithuanian_ci",
    "utf8mb4_lithuanian_ci",
    "utf8mb4_lt_0900_ai_ci",
    "utf8mb4_hu_0900_ai_ci",
    "utf8mb4_hungarian_ci",
    "utf8mb4_czech_ci",
    "utf8mb4_spanish2_ci",
    "utf8mb4_croatian_ci",
    "utf8mb4_uca1400_lithuanian_ai_ci",
];

fn strings(random: &mut Random) -> Vec<String> {
    let printable = || (b' '..=b'~').map(char::from);
    let pairs = printable().flat_map(|one| printable().map(move |two| format!("{one}{two}")));
    let mut strings: Vec<String> = printable().map(String::from).collect();
    for _ in 0..RANDOM_STRINGS {
        let pieces = (0..=random.below(4)).map(|_| PIECES[random.below(PIECES.len())]);
        strings.push(pieces.collect());
        // Neighbours of what is there already: other case, one space more, one piece more.
        let other = strings[random.below(strings.len())].clone();
        strings.push(match random.below(4) {
            0 => other.to_ascii_uppercase(),
            1 => other + " ",
            2 => format!(" {other}"),
            _ => other + PIECES[random.below(PIECES.len())],
        });
    }
    strings.extend(ODD.iter().map(ToString::to_string));
    strings.extend(pairs);
    strings.push(String::new());
    strings.sort_unstable();
    strings.dedup();
    strings
}

/// Whether a literal and a value of a row may be equal as far as Remora knows.
fn may_be_equal(one: &str, two: &str) -> bool {
    match (folded(one.as_bytes()), folded(two.as_bytes())) {
        (Some(one), Some(two)) => one == two,
        _ => true,
    }
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn number(row: &[Option<Vec<u8>>], at: usize) -> usize {
    let text = std::str::from_utf8(row[at].as_deref().unwrap()).unwrap();
    text.parse().unwrap()
}

/// What was found out about a collation.
#[derive(Debug, Default)]
struct Findings {
    /// Pairs that the server takes for equal.
    equal: usize,
    /// Of these, those with a string that isn't printable ASCII.
    equal_beyond: usize,
    /// Of these, those that Remora tells apart.
    told_apart: Vec<(String, String, &'static str)>,
    /// Pairs that are the same to Remora and not to the server: results that are dropped for
    /// nothing.
    coarse: usize,
}

struct Bench {
    _server: Server,
    client: Client,
    strings: Vec<String>,
    /// Places of some of them.
    few: Vec<usize>,
    random: Random,
}

impl Bench {
    fn start() -> Bench {
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(Random::fresh_seed);
        println!("SEED={seed}");
        let mut random = Random::new(seed);
        let strings = strings(&mut random);
        let is_few = |text: &String| {
            text.len() == 1 || !text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        let mut few: Vec<usize> = (0..strings.len())
            .filter(|at| is_few(&strings[*at]))
            .collect();
        while few.len() < FEW {
            few.push(random.below(strings.len()));
        }
        few.sort_unstable();
        few.dedup();
        let server = Server::start(ServerOptions::default()).unwrap();
        let mut bench = Bench {
            client: server.root().unwrap(),
            _server: server,
            strings,
            few,
            random,
        };
        bench.store();
        bench
    }

    fn run(&mut self, statement: &str) {
        let answer = self.client.query(statement);
        answer.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    fn store(&mut self) {
        self.run(&format!("USE {SCHEMA}"));
        self.run("SET NAMES utf8mb4");
        self.run(
            "CREATE TABLE strings (id INT PRIMARY KEY, is_few INT, s VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)",
        );
        let row = |(at, text): (usize, &String)| {
            let hex = hex(text);
            let is_few = i32::from(self.few.binary_search(&at).is_ok());
            format!("({at}, {is_few}, CONVERT(X'{hex}' USING utf8mb4))")
        };
        let rows: Vec<String> = self.strings.iter().enumerate().map(row).collect();
        for rows in rows.chunks(4_000) {
            self.run(&format!("INSERT INTO strings VALUES {}", rows.join(", ")));
        }
    }

    /// Makes a table of the strings with this collation; `None` if the server hasn't got it.
    fn tables(&mut self, collation: &str) -> Option<()> {
        let character_set = collation.split('_').next().unwrap();
        self.run("DROP TABLE IF EXISTS many, few");
        for (table, key) in [("many", ", KEY (s)"), ("few", "")] {
            let made = self.client.query(&format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, s VARCHAR(40) CHARACTER SET {character_set} COLLATE {collation}{key}) ENGINE=InnoDB"
            ));
            match made {
                Ok(_) => {}
                Err(ClientError::Server(error))
                    if [UNKNOWN_COLLATION, UNKNOWN_CHARACTER_SET].contains(&error.code) =>
                {
                    return None;
                }
                Err(error) => panic!("{collation}: {error}"),
            }
            let few = if table == "few" {
                " AND is_few = 1"
            } else {
                ""
            };
            self.run(&format!(
                "INSERT IGNORE INTO {table} SELECT id, s FROM strings WHERE \
                 CAST(CONVERT(CONVERT(s USING {character_set}) USING utf8mb4) AS BINARY) = CAST(s AS BINARY){few}"
            ));
        }
        Some(())
    }

    /// Pairs of numbers of strings.
    fn pairs(&mut self, question: &str) -> Vec<(usize, usize)> {
        let answer = self.client.query(question);
        let rows = answer
            .unwrap_or_else(|error| panic!("{question}: {error}"))
            .rows()
            .unwrap();
        rows.iter()
            .map(|row| (number(row, 0), number(row, 1)))
            .collect()
    }

    fn judge(&self, pairs: &[(usize, usize)], how: &'static str, findings: &mut Findings) {
        findings.equal += pairs.len();
        for (one, two) in pairs {
            let (one, two) = (&self.strings[*one], &self.strings[*two]);
            let is_beyond = folded(one.as_bytes()).is_none() || folded(two.as_bytes()).is_none();
            findings.equal_beyond += usize::from(is_beyond);
            if !may_be_equal(one, two) {
                findings.told_apart.push((one.clone(), two.clone(), how));
            }
        }
    }

    /// What the server says of this collation; `None` if it hasn't got it.
    fn look_at(&mut self, collation: &str) -> Option<Findings> {
        self.tables(collation)?;
        let mut findings = Findings::default();
        let character_set = collation.split('_').next().unwrap();
        let by_index =
            self.pairs("SELECT a.id, b.id FROM many a JOIN many b ON b.s = a.s WHERE b.id > a.id");
        self.judge(&by_index, "by an index", &mut findings);
        let one_by_one =
            self.pairs("SELECT a.id, b.id FROM few a JOIN few b ON b.id > a.id WHERE a.s = b.s");
        self.judge(&one_by_one, "one by one", &mut findings);
        let of =
            |table: &str| format!("CONVERT({table}.s USING {character_set}) COLLATE {collation}");
        let (a, b) = (of("a"), of("b"));
        let converted = self.pairs(&format!(
            "SELECT a.id, b.id FROM few a JOIN few b ON b.id > a.id WHERE {a} = {b}"
        ));
        self.judge(&converted, "converted", &mut findings);
        for names in [
            "utf8mb4",
            "latin1",
            "utf8",
            "binary",
            "utf8mb4 COLLATE utf8mb4_czech_ci",
        ] {
            self.run(&format!("SET NAMES {names}"));
            let constants = self.constants();
            self.judge(&constants, "as a constant", &mut findings);
        }
        self.run("SET NAMES utf8mb4");
        findings.coarse = self.coarse(&by_index);
        Some(findings)
    }

    /// Random printable strings with what the column's strings are equal to, sent as text and as
    /// parameters.
    fn constants(&mut self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let statement = self
            .client
            .prepare(b"SELECT id, 0 FROM few WHERE s = ?")
            .unwrap();
        for _ in 0..CONSTANTS {
            let at = self.few[self.random.below(self.few.len())];
            let text = self.strings[at].clone();
            if folded(text.as_bytes()).is_none() {
                continue;
            }
            let quoted = text.replace('\\', "\\\\").replace('\'', "''");
            let as_text = self.pairs(&format!("SELECT id, {at} FROM few WHERE s = '{quoted}'"));
            assert!(
                as_text.contains(&(at, at)),
                "{text:?} isn't equal to itself"
            );
            pairs.extend(as_text);
            let answer = self
                .client
                .execute(statement, &[Value::Text(text.into_bytes())])
                .unwrap();
            let rows = answer.binary_rows().unwrap();
            assert!(!rows.is_empty());
            pairs.extend(rows.iter().map(|row| (number(row, 0), at)));
        }
        self.client.close_statement(statement).unwrap();
        pairs
    }

    /// Pairs that fold to the same and are unequal.
    fn coarse(&self, equal: &[(usize, usize)]) -> usize {
        let mut alike: HashMap<Vec<u8>, usize> = HashMap::new();
        for form in self
            .strings
            .iter()
            .filter_map(|text| folded(text.as_bytes()))
        {
            *alike.entry(form).or_default() += 1;
        }
        let alike: usize = alike.values().map(|count| count * (count - 1) / 2).sum();
        let is_both = |(one, two): &&(usize, usize)| {
            let form = |at: &usize| folded(self.strings[*at].as_bytes());
            form(one).is_some() && form(one) == form(two)
        };
        alike - equal.iter().filter(is_both).count()
    }
}

#[test]
fn texts_that_the_server_takes_for_equal_have_the_same_form() {
    let mut bench = Bench::start();
    let mut seen = 0;
    for name in known() {
        // Servers before MySQL 8.0.29 and MariaDB 10.6 call it by its short name only.
        let short = name.replace("utf8mb3_", "utf8_");
        let found = bench.look_at(&name).or_else(|| bench.look_at(&short));
        let Some(found) = found else { continue };
        seen += 1;
        println!(
            "{name}: {} equal pairs, {} of them with more than printable ASCII; {} pairs are alike to Remora only",
            found.equal, found.equal_beyond, found.coarse
        );
        let bad = &found.told_apart[..found.told_apart.len().min(10)];
        assert!(bad.is_empty(), "{name} takes for equal: {bad:?}");
        // The question has shown case and accents where the collation ignores them.
        if ["unicode_ci", "0900_ai_ci", "uca1400_ai_ci"]
            .iter()
            .any(|ending| name.ends_with(ending))
        {
            assert!(
                found.equal > 5_000 && found.equal_beyond > 20,
                "{name}: {found:?}"
            );
        }
    }
    assert!(seen >= 15, "only {seen} collations");
}

/// The same questions notice a collation that mustn't be on the list.
#[test]
fn a_collation_with_letters_of_its_own_is_found_out() {
    let mut bench = Bench::start();
    let mut breaking = Vec::new();
    for name in LEFT_OUT {
        assert!(!is_known(name), "{name}");
        let Some(found) = bench.look_at(name) else {
            continue;
        };
        println!("{name}: {:?}", found.told_apart.first());
        if !found.told_apart.is_empty() {
            breaking.push(name);
        }
    }
    assert!(!breaking.is_empty(), "none of them breaks the rule");
}

#[test]
fn what_goes_beyond_printable_ascii_has_no_form() {
    for text in ODD {
        assert_eq!(folded(text.as_bytes()), None, "{text:?}");
    }
    for byte in (0..b' ').chain([0x7f]).chain(0x80..=0xff) {
        assert_eq!(folded(&[b'a', byte]), None, "{byte}");
    }
}
