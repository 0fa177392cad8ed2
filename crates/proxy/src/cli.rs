//! The command line.
//!
//! An option here that sets an option of the file takes precedence over it, and is checked by the
//! same rules: it becomes an [`Override`], a name and a text.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::admin::client::Request;
use crate::config::{ConfigError, Override, Settings, one_line};
use crate::digests::Order;

/// A query cache for MySQL and MariaDB that follows the binary log.
#[derive(Debug, Parser)]
#[command(name = "remora", version, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Stand in front of a server and serve its clients
    Serve(SettingsArgs),
    /// Look at the server, and say what keeps caching from being on and how to fix it
    Check(SettingsArgs),
    /// Read the server for a minute, and say what limits it, what to set, and what Remora could
    /// take over; changes nothing
    Advise(AdviseArgs),
    /// Ask a running Remora what becomes of a statement: whether it is cached, what it depends on,
    /// what is held
    Explain(ExplainArgs),
    /// Ask a running Remora what became of each query: hits, time, what was not kept and why
    Digests(DigestsArgs),
    /// Ask a running Remora where the time of single statements went, stage by stage
    Traces(TracesArgs),
    /// Watch a running Remora: what it did in the last seconds, again and again
    Top(TopArgs),
    /// Print a configuration file with every option, its meaning and its default
    Config(PrintArgs),
    /// Print every metric and its meaning
    Metrics(PrintArgs),
    /// Print every reason that statements are counted with, and its meaning
    Reasons(PrintArgs),
    /// Print the completions of this command line for a shell
    Completions(CompletionsArgs),
}

/// How a server is read.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// How long to read it, under its usual load
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub interval: u64,
    /// How many processors the server may use [default: as many as this process may, if the server
    /// is on this machine]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub processors: Option<u32>,
    /// Print JSON instead of words
    #[arg(long)]
    pub json: bool,
    /// Which server, and with which account.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// Which running Remora is asked.
#[derive(Debug, Args)]
pub struct RunningArgs {
    /// Where that Remora serves metrics and health: IP address and port [default: as `config` says,
    /// else 127.0.0.1:9307]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// That Remora's configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl RunningArgs {
    /// Where its admin listener is.
    ///
    /// # Errors
    /// What is wrong with the options or the configuration.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let args = SettingsArgs {
            config: self.config.clone().filter(|_| self.admin.is_none()),
            admin: self.admin.clone(),
            ..SettingsArgs::default()
        };
        let settings = args.load().map_err(|error| error.to_string())?;
        settings.admin_listen.ok_or_else(|| {
            "admin.listen: got off, accepts an address: without it a running Remora can't be asked"
                .to_owned()
        })
    }
}

/// What is asked of a running Remora.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The statement, as clients send it; `?` stands for bound values
    #[arg(value_name = "STATEMENT")]
    pub statement: String,
    /// The default schema of the session that would send it
    #[arg(long, value_name = "NAME")]
    pub schema: Option<String>,
    /// The account of that session, as `CURRENT_USER()` gives it: rules may depend on it
    #[arg(long, value_name = "USER@HOST")]
    pub account: Option<String>,
    /// Which Remora is asked.
    #[command(flatten)]
    pub running: RunningArgs,
    /// Print JSON instead of words
    #[arg(long)]
    pub json: bool,
    /// Read it as under `ANSI_QUOTES`
    #[arg(long)]
    pub ansi_quotes: bool,
    /// Read it as under `NO_BACKSLASH_ESCAPES`
    #[arg(long)]
    pub no_backslash_escapes: bool,
}

/// What is asked of a running Remora about its digests.
#[derive(Debug, Args)]
pub struct DigestsArgs {
    /// The order, the largest first
    #[arg(long, value_enum, default_value_t)]
    pub sort: Order,
    /// How many are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub limit: usize,
    /// Print JSON, all of it and in no order
    #[arg(long)]
    pub json: bool,
    /// Which Remora is asked.
    #[command(flatten)]
    pub running: RunningArgs,
}

/// What is asked of a running Remora about its traces.
#[derive(Debug, Args)]
pub struct TracesArgs {
    /// Only those of this digest, as `remora digests` shows it
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// How many are shown, the newest
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub limit: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Which Remora is asked.
    #[command(flatten)]
    pub running: RunningArgs,
}

/// How a running Remora is watched.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The order of the digests, the largest first
    #[arg(long, value_enum, default_value_t)]
    pub sort: Order,
    /// How many digests are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub limit: usize,
    /// Seconds between two pictures
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub interval: u64,
    /// Pictures, after which it ends [default: until Ctrl-C]
    #[arg(long, value_name = "NUMBER")]
    pub count: Option<u32>,
    /// Which Remora is asked.
    #[command(flatten)]
    pub running: RunningArgs,
}

impl ExplainArgs {
    /// What to ask.
    pub fn request(&self) -> Request {
        Request {
            statement: self.statement.clone(),
            schema: self.schema.clone(),
            account: self.account.clone(),
            json: self.json,
            ansi_quotes: self.ansi_quotes,
            no_backslash_escapes: self.no_backslash_escapes,
        }
    }
}

/// How a reference is printed.
#[derive(Clone, Copy, Debug, Args)]
pub struct PrintArgs {
    /// Print it as the Markdown page of the documentation
    #[arg(long)]
    pub markdown: bool,
}

/// Whose completions are printed.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// A script that makes a shell complete Remora's commands and options.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "remora", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// A configuration file, and options that take precedence over it.
#[derive(Debug, Default, Args)]
pub struct SettingsArgs {
    /// Configuration file; `remora config` prints one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The server's address: `host:port` or `unix:/path` [default: 127.0.0.1:3306]
    #[arg(long, value_name = "ADDRESS")]
    pub upstream: Option<String>,
    /// Where clients connect to: `host:port` or `unix:/path`; may be repeated [default:
    /// 127.0.0.1:3307]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// Remora's own account on the server, which follows the binary log
    #[arg(long, value_name = "NAME")]
    pub follow_user: Option<String>,
    /// File with that account's password
    #[arg(long, value_name = "FILE")]
    pub follow_password_file: Option<String>,
    /// Remora's number among the server's replicas [default: derived]
    #[arg(long, value_name = "NUMBER")]
    pub server_id: Option<String>,
    /// Where metrics and health are served: IP address and port, or off [default: 127.0.0.1:9307]
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// Memory for cached results, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Threads that serve clients [default: one for each processor core]
    #[arg(long, value_name = "NUMBER")]
    pub workers: Option<String>,
    /// How much is logged: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Any option of the configuration file; may be repeated
    #[arg(long, value_name = "SECTION.OPTION=VALUE", value_parser = parse_assignment)]
    pub set: Vec<(String, String)>,
}

fn parse_assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((option, value)) => Ok((option.trim().to_owned(), value.trim().to_owned())),
        None => Err("section.option=value".to_owned()),
    }
}

impl SettingsArgs {
    /// The settings: the file's, with these options in place of its own.
    pub fn load(&self) -> Result<Settings, ConfigError> {
        Settings::load(self.config.as_deref(), &self.overrides())
    }

    fn overrides(&self) -> Vec<Override> {
        let listen = (!self.listen.is_empty()).then(|| self.listen.join(","));
        let named = [
            ("--upstream", "upstream.address", &self.upstream),
            ("--listen", "listen.addresses", &listen),
            ("--follow-user", "follow.user", &self.follow_user),
            (
                "--follow-password-file",
                "follow.password_file",
                &self.follow_password_file,
            ),
            ("--server-id", "follow.server_id", &self.server_id),
            ("--admin", "admin.listen", &self.admin),
            ("--memory", "cache.memory_bytes_max", &self.memory),
            ("--workers", "workers.threads", &self.workers),
            ("--log-level", "log.level", &self.log_level),
        ];
        let named = named.into_iter().filter_map(|(flag, option, value)| {
            let value = value.as_ref()?.clone();
            Some(Override {
                flag: flag.to_owned(),
                option: option.to_owned(),
                value,
            })
        });
        let set = self.set.iter().map(|(option, value)| Override {
            flag: "--set".to_owned(),
            option: option.clone(),
            value: value.clone(),
        });
        named.chain(set).collect()
    }
}

/// Why there is no command to run.
#[derive(Debug, PartialEq, Eq)]
pub enum NoCommand {
    /// Help or the version was asked for: text for standard output; exit status 0.
    Asked(String),
    /// Something on the command line is wrong: a line for standard error; exit status 2.
    Wrong(String),
}

/// Reads the command line. The first argument is the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, NoCommand> {
    Cli::try_parse_from(arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            NoCommand::Asked(error.render().to_string())
        }
        _ => NoCommand::Wrong(explain(&error)),
    })
}

/// What is wrong, in one line that names the option, what it got and what it accepts.
fn explain(error: &clap::Error) -> String {
    let text = |kind| {
        error
            .get(kind)
            .map(context_text)
            .filter(|text| !text.is_empty())
    };
    // `--memory <SIZE>`: only the name.
    let argument = text(ContextKind::InvalidArg).map(|argument| {
        argument
            .split([' ', '='])
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    let argument = argument.unwrap_or_else(|| "the command line".to_owned());
    match error.kind() {
        ErrorKind::UnknownArgument => match text(ContextKind::SuggestedArg) {
            Some(nearest) => format!("{argument} does not exist; did you mean {nearest}?"),
            None => format!("{argument} does not exist; `remora serve --help` lists what does"),
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let got = text(ContextKind::InvalidValue).map_or("nothing".to_owned(), |value| {
                format!("\"{}\"", one_line(&value))
            });
            let accepts = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(values)) if !values.is_empty() => {
                    format!("one of {}", values.join(", "))
                }
                _ => std::error::Error::source(error)
                    .map_or("a value".to_owned(), ToString::to_string),
            };
            format!("{argument}: got {got}, accepts {accepts}")
        }
        ErrorKind::ArgumentConflict => format!("{argument}: got it twice, accepts it once"),
        ErrorKind::InvalidSubcommand => {
            let got = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!(
                "command: got \"{}\", accepts {}",
                one_line(&got),
                commands()
            )
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("command: got nothing, accepts {}", commands())
        }
        _ => {
            let rendered = error.render().to_string();
            let first = rendered.lines().next().unwrap_or_default();
            one_line(first.trim_start_matches("error: "))
        }
    }
}

fn context_text(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(texts) => texts.join(", "),
        other => other.to_string(),
    }
}

fn commands() -> String {
    let command = Cli::command();
    let names: Vec<_> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    format!("one of {}", names.join(", "))
}
