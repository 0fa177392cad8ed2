//! The command `remora`.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use remora::admin::client;
use remora::advise::Pace;
use remora::cli::{
    self, AdviseArgs, Command, DigestsArgs, ExplainArgs, NoCommand, PrintArgs, SettingsArgs,
    TopArgs, TracesArgs,
};
use remora::config::{self, Settings};
use remora::digests::{DigestReport, table};
use remora::top::{self, TopError, View};
use remora::traces::{self, TraceReport};
use remora::{commands, logging, metrics, open_files};
use remora_engine::reason;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit status for what is wrong with the command line or the configuration.
const STATUS_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(NoCommand::Asked(text)) => return print(&text),
        Err(NoCommand::Wrong(line)) => return complain(&line, STATUS_USAGE),
    };
    match cli.command {
        Command::Serve(args) => serve(&args),
        Command::Check(args) => check(&args),
        Command::Advise(args) => advise(&args),
        Command::Explain(args) => explain(&args),
        Command::Digests(args) => digests(&args),
        Command::Traces(args) => traces(&args),
        Command::Top(args) => watch(&args),
        Command::Config(PrintArgs { markdown: false }) => print(&config::example_toml()),
        Command::Config(PrintArgs { markdown: true }) => print(&config::reference_markdown()),
        // Without a choice of format there is only one: Markdown reads well in a terminal.
        Command::Metrics(_) => print(&metrics::reference_markdown()),
        Command::Reasons(_) => print(&reason::reference_markdown()),
        Command::Completions(args) => print(&cli::completions(args.shell)),
    }
}

fn serve(args: &SettingsArgs) -> ExitCode {
    let settings = match load(args) {
        Ok(settings) => settings,
        Err(status) => return status,
    };
    for warning in settings
        .warnings
        .iter()
        .cloned()
        .chain(open_files::make_room_for(settings.workers.connections_max))
    {
        tracing::warn!("{warning}");
    }
    match commands::serve(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error.to_string(), 1),
    }
}

fn check(args: &SettingsArgs) -> ExitCode {
    let settings = match load(args) {
        Ok(settings) => settings,
        Err(status) => return status,
    };
    match commands::check_server(&settings, &mut std::io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => complain(&error.to_string(), 1),
    }
}

fn advise(args: &AdviseArgs) -> ExitCode {
    let settings = match load(&args.settings) {
        Ok(settings) => settings,
        Err(status) => return status,
    };
    let pace = Pace {
        length: Duration::from_secs(args.seconds),
        interval: Duration::from_secs(args.interval),
    };
    let shows_progress = std::io::stderr().is_terminal();
    let report = commands::advise(&settings, args.processors, pace, |read| {
        if shows_progress {
            let read = read.as_secs();
            eprint!("\rreading the server: {read} of {} s", args.seconds);
        }
    });
    if shows_progress {
        eprintln!();
    }
    let report = match report {
        Ok(report) => report,
        Err(error) => return complain(&error.to_string(), 1),
    };
    if args.json {
        match serde_json::to_string_pretty(&report) {
            Ok(json) => print(&(json + "\n")),
            Err(error) => complain(&format!("can't write the report as JSON: {error}"), 1),
        }
    } else {
        print(&report.to_string())
    }
}

fn explain(args: &ExplainArgs) -> ExitCode {
    let address = match args.running.address() {
        Ok(address) => address,
        Err(why) => return complain(&why, STATUS_USAGE),
    };
    match client::ask(address, &args.request()) {
        Ok(page) => print(&page),
        Err(error @ client::AskError::Refused(_)) => complain(&error.to_string(), STATUS_USAGE),
        Err(error) => complain(&error.to_string(), 1),
    }
}

fn digests(args: &DigestsArgs) -> ExitCode {
    let address = match args.running.address() {
        Ok(address) => address,
        Err(why) => return complain(&why, STATUS_USAGE),
    };
    let page = match client::digests(address) {
        Ok(page) => page,
        Err(error) => return complain(&error.to_string(), 1),
    };
    if args.json {
        return print(&page);
    }
    match serde_json::from_str::<Vec<DigestReport>>(&page) {
        Ok(all) => print(&table(&all, args.sort, args.limit)),
        Err(error) => complain(
            &format!(
                "{address} did not answer as this version does ({error}); --json shows what it says"
            ),
            1,
        ),
    }
}

fn traces(args: &TracesArgs) -> ExitCode {
    let address = match args.running.address() {
        Ok(address) => address,
        Err(why) => return complain(&why, STATUS_USAGE),
    };
    let page = match client::traces(address, args.digest.as_deref(), args.limit) {
        Ok(page) => page,
        Err(error @ client::AskError::Refused(_)) => {
            return complain(&error.to_string(), STATUS_USAGE);
        }
        Err(error) => return complain(&error.to_string(), 1),
    };
    if args.json {
        return print(&page);
    }
    match serde_json::from_str::<Vec<TraceReport>>(&page) {
        Ok(newest) => print(&traces::table(&newest)),
        Err(error) => complain(
            &format!(
                "{address} did not answer as this version does ({error}); --json shows what it says"
            ),
            1,
        ),
    }
}

fn watch(args: &TopArgs) -> ExitCode {
    let address = match args.running.address() {
        Ok(address) => address,
        Err(why) => return complain(&why, STATUS_USAGE),
    };
    let mut output = std::io::stdout().lock();
    let view = View {
        order: args.sort,
        count_max: args.limit,
        interval: Duration::from_secs(args.interval),
        pictures: args.count,
        clears: output.is_terminal(),
    };
    match top::run(address, &view, &mut output) {
        // A reader that has left is no error.
        Ok(()) | Err(TopError::Output(_)) => ExitCode::SUCCESS,
        Err(error) => complain(&error.to_string(), 1),
    }
}

/// Loads the settings and starts the log.
fn load(args: &SettingsArgs) -> Result<Settings, ExitCode> {
    let settings = args
        .load()
        .map_err(|error| complain(&error.to_string(), STATUS_USAGE))?;
    logging::start(settings.log_level);
    Ok(settings)
}

/// Writes text to standard output. A reader that has left, such as `head`, is no error.
fn print(text: &str) -> ExitCode {
    let mut output = std::io::stdout().lock();
    let _ = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    ExitCode::SUCCESS
}

/// Writes one line to standard error.
fn complain(line: &str, status: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "remora: {line}");
    ExitCode::from(status)
}
