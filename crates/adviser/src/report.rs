//! What the rules found, as text and as JSON.

use std::fmt;

use remora_reason::Reason;
use serde::{Serialize, Serializer};

use crate::number::{bytes, short};
use crate::reading::NoShapes;
use crate::rule::{Rule, Unjudged};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
    /// Things.
    Number,
    /// Things in a second.
    PerSecond,
    /// A share, from 0 to 100.
    Percent,
    /// Seconds.
    Seconds,
}

/// A number that a rule went by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is, in words or as the server names it.
    pub what: &'static str,
    /// The number.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evidence { what, value, unit } = self;
        match unit {
            Unit::Bytes => write!(f, "{what}: {}", bytes(*value)),
            Unit::BytesPerSecond => write!(f, "{what}: {} a second", bytes(*value)),
            Unit::Number => write!(f, "{what}: {}", short(*value)),
            Unit::PerSecond => write!(f, "{what}: {} a second", short(*value)),
            Unit::Percent => write!(f, "{what}: {} %", short(*value)),
            Unit::Seconds => write!(f, "{what}: {} s", short(*value)),
        }
    }
}

/// A variable of the server that should have another value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it is, as the server writes it.
    pub now: String,
    /// What to begin with instead.
    pub suggested: String,
    /// What it counts: bytes, or things.
    pub unit: Unit,
    /// Whether `SET GLOBAL` changes it. If not, it takes the configuration file and a restart.
    pub is_dynamic: bool,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, suggested) = (self.name, &self.suggested);
        let now = self.shown(&self.now);
        let wanted = match self.unit {
            Unit::Bytes => self.shown(suggested) + ", ",
            _ => String::new(),
        };
        if self.is_dynamic {
            write!(f, "SET GLOBAL {name} = {suggested};  -- {wanted}now {now}")
        } else {
            let how = "in the configuration file, then restart";
            write!(f, "{name} = {suggested}  # {wanted}now {now}; {how}")
        }
    }
}

impl Setting {
    /// Whether it says anything: more than there is, or nothing at all (0, which switches off).
    pub(crate) fn changes_something(&self) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        match (number(&self.now), number(&self.suggested)) {
            (Some(now), Some(suggested)) => suggested > now || suggested == 0.0,
            _ => self.now != self.suggested,
        }
    }

    /// A value as people read it.
    fn shown(&self, value: &str) -> String {
        match value.parse() {
            Ok(number) if self.unit == Unit::Bytes => bytes(number),
            _ => value.to_owned(),
        }
    }
}

/// Something that limits the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What happens and what it costs.
    pub meaning: String,
    /// What to do about it, beyond the settings.
    pub remedy: String,
    /// What to set.
    pub settings: Vec<Setting>,
}

impl Finding {
    fn has_dynamic(&self) -> bool {
        self.settings.iter().any(|setting| setting.is_dynamic)
    }
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// This limits the server.
    Found(Finding),
    /// It doesn't.
    Fine,
    /// It can't tell.
    #[serde(serialize_with = "label")]
    Unjudged(Unjudged),
}

/// A rule's verdict, and what it went by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The rule.
    #[serde(serialize_with = "label")]
    pub rule: Rule,
    /// What it says.
    pub verdict: Verdict,
    /// The numbers that it went by.
    pub evidence: Vec<Evidence>,
}

/// What Remora could answer of what the server answered meanwhile. An upper bound: it doesn't show
/// how often the same values are asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Takeover {
    /// All statements that ended meanwhile.
    pub statements: f64,
    /// The server's time for all of them, seconds.
    pub server_s: f64,
    /// The share of the statements that are reads whose results can be kept, percent.
    pub keepable_percent: f64,
    /// Their share of the server's time, percent.
    pub keepable_server_percent: f64,
    /// The costliest of those reads: text and share of the server's time, percent.
    pub costliest: Vec<(String, f64)>,
    /// The costliest reads that can't be kept: text and reason.
    pub refused: Vec<(String, String)>,
}

/// That, or why it isn't known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeoverSeen {
    /// It is known.
    Known(Takeover),
    /// It isn't.
    #[serde(serialize_with = "label")]
    Unknown(NoShapes),
}

/// What was found of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Which server, as it says itself.
    pub server: String,
    /// For how long it was read, seconds.
    pub seconds: f64,
    /// How often it was read.
    pub samples: usize,
    /// What each rule says.
    pub judgements: Vec<Judgement>,
    /// What Remora could take over.
    pub takeover: TakeoverSeen,
}

impl Report {
    /// Those that found something.
    pub fn found(&self) -> impl Iterator<Item = (&Judgement, &Finding)> {
        self.judgements
            .iter()
            .filter_map(|judgement| match &judgement.verdict {
                Verdict::Found(finding) => Some((judgement, finding)),
                Verdict::Fine | Verdict::Unjudged(_) => None,
            })
    }

    /// Which server was read, and for how long.
    pub fn title(&self) -> String {
        let (server, samples) = (&self.server, self.samples);
        let seconds = short(self.seconds);
        format!("{server}, read {samples} times in {seconds} s")
    }

    /// The verdict of a rule.
    pub fn of(&self, rule: Rule) -> Option<&Judgement> {
        self.judgements
            .iter()
            .find(|judgement| judgement.rule == rule)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title())?;
        for (number, (judgement, finding)) in self.found().enumerate() {
            let rule = judgement.rule;
            writeln!(
                f,
                "\n{}. {} [{}]",
                number + 1,
                rule.describe(),
                rule.as_str()
            )?;
            writeln!(f, "   {}", finding.meaning)?;
            for evidence in &judgement.evidence {
                writeln!(f, "   - {evidence}")?;
            }
            writeln!(f, "   What to do: {}", finding.remedy)?;
            for setting in &finding.settings {
                writeln!(f, "     {setting}")?;
            }
        }
        if self.found().any(|(_, finding)| finding.has_dynamic()) {
            let file = "put the same into its configuration file";
            writeln!(f, "\nSET GLOBAL lasts until the server restarts: {file}.")?;
        }
        self.write_rest(f)?;
        match &self.takeover {
            TakeoverSeen::Known(takeover) => write!(f, "\n{takeover}"),
            TakeoverSeen::Unknown(why) => writeln!(
                f,
                "\nWhat Remora could take over isn't known. {}",
                why.describe()
            ),
        }
    }
}

impl Report {
    fn write_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_fine = |judgement: &&Judgement| judgement.verdict == Verdict::Fine;
        let fine: Vec<_> = self.judgements.iter().filter(is_fine).collect();
        if self.found().next().is_none() {
            writeln!(f, "\nNo rule found a limit.")?;
        }
        if !fine.is_empty() {
            let names: Vec<_> = fine.iter().map(|one| one.rule.as_str()).collect();
            writeln!(f, "\nNo sign of: {}", names.join(", "))?;
        }
        for why in Unjudged::ALL {
            let is_so = |judgement: &&Judgement| judgement.verdict == Verdict::Unjudged(*why);
            let names: Vec<_> = self
                .judgements
                .iter()
                .filter(is_so)
                .map(|one| one.rule.as_str())
                .collect();
            if !names.is_empty() {
                writeln!(f, "\nNot judged: {}. {}", names.join(", "), why.describe())?;
            }
        }
        Ok(())
    }
}

impl Takeover {
    /// The shares, without any statement.
    pub fn summary(&self) -> String {
        format!(
            "What Remora could take over: {} % of the {} statements, {} % of the time that they \
             took.\nAt most: how often the same values are asked for doesn't show here.",
            short(self.keepable_percent),
            short(self.statements),
            short(self.keepable_server_percent)
        )
    }
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary())?;
        if !self.costliest.is_empty() {
            writeln!(f, "The costliest of them, by share of that time:")?;
        }
        for (text, percent) in &self.costliest {
            writeln!(f, "  {:>4} %  {text}", short(*percent))?;
        }
        if !self.refused.is_empty() {
            writeln!(f, "Costly reads that it would leave to the server:")?;
        }
        for (text, why) in &self.refused {
            writeln!(f, "  {text}\n          {why}")?;
        }
        Ok(())
    }
}

fn label<S: Serializer, R: Reason>(reason: &R, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.as_str())
}
