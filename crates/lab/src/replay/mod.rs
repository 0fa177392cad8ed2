//! `remora-lab replay`: a user's own captured statements, sent with their timing or as fast as
//! possible, directly and through a proxy, side by side.
//!
//! | file | what it knows |
//! |---|---|
//! | `slow`, `general`, `capture` | the files of captured statements, each read in a stream |
//! | `lines`, `time` | what the logs have in common |
//! | `event` | the common form |
//! | `reading` | from a file to events in the order of time |
//! | `plan` | which of them are sent, on which connections |
//! | `lane`, `turn` | sending them |
//! | `measured` | latencies, lag, the series |
//! | `comparing` | whether two targets give the same rows |
//! | `outcome` | the table, and the directory that `remora-lab report` reads |

mod capture;
mod comparing;
pub(crate) mod event;
mod general;
mod lane;
mod lines;
mod measured;
mod outcome;
mod plan;
pub(crate) mod reading;
mod slow;
mod time;
mod turn;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, anyhow, bail};
use remora_sql::Dialect;

pub use comparing::Comparison;
pub use event::{Action, Bytes, Execution, Place, ReadError};
pub use lane::Speed;
pub use measured::{Durations, Second};
pub use plan::{LeftOut, Plan, Step};
pub use reading::{Captured, Event, Format, Settings, detect, read, read_bytes};
pub use turn::{Target, Turn};

use crate::progress::Progress;
use crate::usage;
use remora_testkit::client::{ClientError, ConnectOptions};
use remora_testkit::interrupt;
use turn::{Manner, Standing};

/// What to replay, to whom, and how.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, Clone, clap::Args)]
pub struct ReplayOptions {
    /// A slow query log, a general query log, or a packet capture (pcap, pcapng).
    pub file: PathBuf,
    /// What the file is [default: its content tells].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The server's port in a packet capture.
    #[arg(long, default_value_t = 3306)]
    pub port: u16,
    /// Go on behind parts of the file that can't be read, and count them.
    #[arg(long)]
    pub skip_malformed: bool,
    /// Where to send the statements. Several take turns:
    /// `--to direct=127.0.0.1:3306 --to remora=127.0.0.1:3307`.
    #[arg(long = "to", required = true, value_name = "[LABEL=]HOST:PORT", value_parser = Labelled::parse)]
    pub to: Vec<Labelled>,
    /// The account that sends them, with a password by `mysql_native_password` or
    /// `caching_sha2_password` (this with `--tls`, unless the server remembers the account), or
    /// none.
    #[arg(long)]
    pub user: String,
    /// A file that holds its password.
    #[arg(long)]
    pub password_file: Option<PathBuf>,
    /// The default schema of connections of which the file doesn't tell one.
    #[arg(long)]
    pub schema: Option<String>,
    /// Use TLS where a target offers it. Certificates aren't checked.
    #[arg(long)]
    pub tls: bool,
    /// How many times as fast as captured: 1, 2, 0.5 …, or `max`: each connection as fast as it is
    /// answered.
    #[arg(long, default_value = "1", value_parser = parse_speed)]
    pub speed: Speed,
    /// The most connections at once. Where more were captured, they share these.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections_max: u32,
    /// Also send what writes. Each turn writes once more! Only for servers whose data may change.
    #[arg(long)]
    pub writes: bool,
    /// How often each target has its turn.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Check that every target gives the same rows as the first.
    #[arg(long)]
    pub compare_results: bool,
    /// The admin address of a target that is a Remora: for the share of hits.
    #[arg(long, value_name = "LABEL=HOST:PORT", value_parser = Labelled::parse)]
    pub admin: Vec<Labelled>,
    /// The server's process, if it is on this machine: for its processor time per query.
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// The process of a target that is a proxy on this machine.
    #[arg(long, value_name = "LABEL=PID", value_parser = parse_pid)]
    pub proxy_pid: Vec<(String, u32)>,
    /// Read no more than so many statements.
    #[arg(long, default_value_t = 5_000_000)]
    pub statements_max: usize,
    /// The longest wait for an answer, seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout_s: u64,
    /// The directory for the results; it must not exist, or be empty [default:
    /// results/replay-DATE-TIME].
    #[arg(long)]
    pub output: Option<PathBuf>,
}

/// An address with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// The name; the address if none is given.
    pub label: String,
    /// `HOST:PORT`.
    pub address: String,
}

impl Labelled {
    fn parse(text: &str) -> Result<Labelled, String> {
        let (label, address) = text.split_once('=').unwrap_or((text, text));
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "._:[]-".contains(c);
        if label.is_empty() || !label.chars().all(is_fine) {
            return Err(format!(
                "{label:?} is no label: letters, digits, `.`, `_` and `-` are"
            ));
        }
        let port = address
            .rsplit_once(':')
            .map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(_))) {
            return Err(format!("{address:?} is no address: HOST:PORT is"));
        }
        Ok(Labelled {
            label: label.to_owned(),
            address: address.to_owned(),
        })
    }

    fn resolve(&self) -> anyhow::Result<SocketAddr> {
        let mut addresses = self
            .address
            .to_socket_addrs()
            .with_context(|| format!("can't find {}", self.address))?;
        addresses
            .next()
            .with_context(|| format!("{} has no address", self.address))
    }
}

fn parse_pid(text: &str) -> Result<(String, u32), String> {
    let parts = text.split_once('=');
    let parsed = parts.and_then(|(label, pid)| Some((label.to_owned(), pid.parse().ok()?)));
    parsed.ok_or_else(|| "LABEL=PID, such as remora=1234".to_owned())
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    match text.parse::<f64>() {
        Ok(times) if (0.001..=1_000_000.0).contains(&times) => Ok(Speed::Times(times)),
        _ => Err("a number above 0, or `max`".to_owned()),
    }
}

/// All that a replay has measured.
#[derive(Debug, Default)]
pub struct Outcome {
    /// When it began.
    pub started: Option<SystemTime>,
    /// In the order in which they took place.
    pub turns: Vec<Turn>,
    /// Of each target after the first with the first.
    pub comparisons: Vec<Comparison>,
    /// Why it ended before its end.
    pub ended_early: Option<String>,
    /// Of each target the server's version, as it tells it.
    pub versions: Vec<String>,
}

/// Reads a file, replays it, and shows and keeps what was measured.
pub fn run(options: &ReplayOptions) -> anyhow::Result<()> {
    let directory = outcome::directory(options.output.as_deref())?;
    let (plan, outcome) = replay(options, &mut |line| println!("{line}"))?;
    print!("{}", outcome::tables(options, &outcome));
    outcome::write(&directory, options, &plan, &outcome)?;
    println!("\nresults: {}", directory.display());
    match &outcome.ended_early {
        Some(_) if interrupt::is_set() => Err(interrupt::Interrupted.into()),
        Some(why) => Err(anyhow!("{why}; what was measured until then is kept")),
        None => Ok(()),
    }
}

/// Reads a file and replays it; tells by `say` what it holds before it begins.
///
/// # Errors
/// The file can't be read, nothing of it can be sent, or a target refuses connections at the
/// beginning.
pub fn replay(
    options: &ReplayOptions,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<(Plan, Outcome)> {
    usage::raise_open_files_limit();
    let targets = targets(options)?;
    let mut outcome = Outcome {
        started: Some(SystemTime::now()),
        ..Outcome::default()
    };
    let mut dialect = Dialect::default();
    for (number, target) in targets.iter().enumerate() {
        let (version, modes) = ask_about(target)?;
        outcome.versions.push(version);
        if number == 0 {
            dialect = Dialect::from_sql_mode(&modes).with_context(|| {
                format!(
                    "{} has sql_mode {modes}: what a statement writes can't be told there",
                    target.label
                )
            })?;
        }
    }
    let mut progress = Progress::new(Duration::ZERO);
    let settings = Settings {
        format: options.format,
        port: options.port,
        skip_malformed: options.skip_malformed,
        statements_max: options.statements_max,
    };
    let captured = read(&options.file, &settings, &mut progress)?;
    let connections_max = usize::try_from(options.connections_max).unwrap_or(1);
    let plan = plan::plan(&captured, dialect, options.writes, connections_max);
    progress.done();
    say(outcome::summary(options, &captured, &plan).trim_end());
    drop(captured);
    if plan.steps.is_empty() {
        bail!(
            "{} holds nothing to send{}",
            options.file.display(),
            if options.writes {
                ""
            } else {
                "; `--writes` would also send what writes"
            }
        );
    }
    play_all(options, &targets, &plan, &mut progress, &mut outcome)?;
    progress.done();
    Ok((plan, outcome))
}

/// Lets the targets take turns.
fn play_all(
    options: &ReplayOptions,
    targets: &[Target],
    plan: &Plan,
    progress: &mut Progress,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let manner = Manner {
        speed: options.speed,
        with_digests: options.compare_results && !options.writes,
    };
    let order = order(targets.len(), options.rounds);
    for (done, (round, number)) in order.iter().enumerate() {
        let target = &targets[*number];
        let mut clock = Clock::new(plan, options.speed, &outcome.turns, order.len() - done - 1);
        let name = format!("{}, round {round} of {}", target.label, options.rounds);
        progress.expect_left(clock.left(plan, None));
        progress.step(&name);
        let turn = turn::play(target, plan, manner, |standing| {
            progress.expect_left(clock.left(plan, Some(standing)));
            progress.update(&shown(&name, options.speed, standing));
        })?;
        let ended_early = turn.ended_early.clone();
        outcome.turns.push(Turn {
            target: *number,
            round: *round,
            ..turn
        });
        if let Some(why) = ended_early {
            outcome.ended_early = Some(format!("{}: {why}", target.label));
            return Ok(());
        }
    }
    if options.compare_results && targets.len() > 1 {
        let show = |line: &str| progress.step(line);
        let compared = if options.writes {
            comparing::compare_now(plan, targets, show)
        } else {
            comparing::compare_turns(plan, targets, &outcome.turns, show)
        };
        match compared {
            Ok(comparisons) => outcome.comparisons = comparisons,
            Err(error) => outcome.ended_early = Some(format!("while comparing: {error}")),
        }
    }
    Ok(())
}

/// Who has a turn when: in every other round the other way round, so that none is always the first.
fn order(targets: usize, rounds: u32) -> Vec<(u32, usize)> {
    let mut order = Vec::new();
    for round in 1..=rounds {
        let mut all: Vec<_> = (0..targets).map(|number| (round, number)).collect();
        if round % 2 == 0 {
            all.reverse();
        }
        order.extend(all);
    }
    order
}

/// How long it will take.
struct Clock {
    speed: Speed,
    /// What a turn takes, as far as that is known.
    turn: Option<Duration>,
    turns_left: u32,
    begun: Instant,
}

impl Clock {
    fn new(plan: &Plan, speed: Speed, turns: &[Turn], turns_left: usize) -> Clock {
        let last = turns.last().map(|turn| turn.length);
        Clock {
            speed,
            turn: speed.due(plan.length()).or(last),
            turns_left: u32::try_from(turns_left).unwrap_or(u32::MAX),
            begun: Instant::now(),
        }
    }

    /// What is left of this turn and of those that follow.
    #[allow(clippy::cast_precision_loss)]
    fn left(&mut self, plan: &Plan, standing: Option<Standing>) -> Duration {
        let elapsed = self.begun.elapsed();
        let share =
            standing.map(|standing| standing.queries as f64 / plan.steps.len().max(1) as f64);
        if let Some(share) = share.filter(|share| *share > 0.01)
            && self.speed == Speed::Max
        {
            self.turn = Some(elapsed.div_f64(share));
        }
        let turn = self.turn.unwrap_or_default();
        turn.saturating_sub(elapsed) + turn.saturating_mul(self.turns_left)
    }
}

#[allow(clippy::cast_precision_loss)]
fn shown(name: &str, speed: Speed, standing: Standing) -> String {
    let rate = standing.queries as f64 / standing.elapsed.as_secs_f64().max(0.001);
    let rate = crate::table::grouped(rate);
    match speed {
        Speed::Max => format!("{name}: {rate} queries/s"),
        Speed::Times(_) => format!(
            "{name}: {rate} queries/s, lag {:.1} ms",
            standing.lag_p95_ms
        ),
    }
}

/// Whom to send to.
fn targets(options: &ReplayOptions) -> anyhow::Result<Vec<Target>> {
    let password = match &options.password_file {
        Some(file) => password(file)?,
        None => String::new(),
    };
    let mut targets: Vec<Target> = Vec::new();
    for to in &options.to {
        if targets.iter().any(|target| target.label == to.label) {
            bail!(
                "two targets are called {}: `--to LABEL=HOST:PORT` tells them apart",
                to.label
            );
        }
        let mut connect = ConnectOptions::new(to.resolve()?, &options.user, &password);
        connect.schema = options.schema.clone().unwrap_or_default();
        connect.tls = options.tls;
        connect.timeout = Duration::from_secs(options.timeout_s);
        targets.push(Target {
            label: to.label.clone(),
            connect,
            admin: None,
            proxy_pid: None,
            server_pid: options.server_pid,
        });
    }
    for admin in &options.admin {
        let target = targets
            .iter_mut()
            .find(|target| target.label == admin.label);
        let target = target.with_context(|| {
            format!(
                "--admin {}=… names no target; `--to {}=HOST:PORT` is missing",
                admin.label, admin.label
            )
        })?;
        target.admin = Some(admin.resolve()?);
    }
    for (label, pid) in &options.proxy_pid {
        let target = targets.iter_mut().find(|target| target.label == *label);
        let target =
            target.with_context(|| format!("--proxy-pid {label}={pid} names no target"))?;
        target.proxy_pid = Some(*pid);
    }
    Ok(targets)
}

fn password(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("can't read the password in {}", file.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The server's version and its `sql_mode`.
fn ask_about(target: &Target) -> anyhow::Result<(String, String)> {
    let (label, address) = (&target.label, target.connect.address);
    let mut client = target.connect.connect().map_err(|error| {
        let remedy = match &error {
            ClientError::Wire(remora_wire::WireError::Unsupported(_)) => {
"; an account by caching_sha2_password needs --tls, one by another plugin than that and mysql_native_password can't be used"
            }
            ClientError::Io(_) => "; is the server there?",
            _ => "",
        };
        anyhow!("can't connect to {label} ({address}): {error}{remedy}")
    })?;
    let mut ask = |what: &str| -> anyhow::Result<String> {
        let value = client
            .query_value(what)
            .with_context(|| format!("{label}: {what}"))?;
        Ok(value.unwrap_or_default())
    };
    Ok((ask("SELECT VERSION()")?, ask("SELECT @@sql_mode")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_labels() {
        let parsed = Labelled::parse("direct=127.0.0.1:3306").unwrap();
        assert_eq!(
            (parsed.label.as_str(), parsed.address.as_str()),
            ("direct", "127.0.0.1:3306")
        );
        assert_eq!(Labelled::parse("db:3306").unwrap().label, "db:3306");
        assert_eq!(
            Labelled::parse("a=[::1]:3306").unwrap().address,
            "[::1]:3306"
        );
        assert!(Labelled::parse("db").is_err());
        assert!(Labelled::parse("a/b=db:3306").is_err());
    }

    #[test]
    fn a_speed_is_a_number_or_max() {
        assert_eq!(parse_speed("max"), Ok(Speed::Max));
        assert_eq!(parse_speed("2"), Ok(Speed::Times(2.0)));
        assert_eq!(
            Speed::Times(2.0).due(Duration::from_secs(3)),
            Some(Duration::from_millis(1_500))
        );
        for wrong in ["0", "-1", "fast", "NaN", "inf"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_target_is_always_the_first() {
        assert_eq!(
            order(2, 3),
            [(1, 0), (1, 1), (2, 1), (2, 0), (3, 0), (3, 1)]
        );
    }
}
