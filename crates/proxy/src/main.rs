//! The command `remora`.

use std::io::Write as _;
use std::process::ExitCode;

use remora::cli::{self, Command, NoCommand, PrintArgs, SettingsArgs};
use remora::config::{self, Settings};
use remora::{logging, metrics, open_files, reason};

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
        Command::Serve(args) => with_settings(&args, "serve"),
        Command::Check(args) => with_settings(&args, "check"),
        Command::Config(PrintArgs { markdown: false }) => print(&config::example_toml()),
        Command::Config(PrintArgs { markdown: true }) => print(&config::reference_markdown()),
        // Without a choice of format there is only one: Markdown reads well in a terminal.
        Command::Metrics(_) => print(&metrics::reference_markdown()),
        Command::Reasons(_) => print(&reason::reference_markdown()),
    }
}

/// Loads the settings and starts the log.
fn with_settings(args: &SettingsArgs, command: &str) -> ExitCode {
    let settings: Settings = match args.load() {
        Ok(settings) => settings,
        Err(error) => return complain(&error.to_string(), STATUS_USAGE),
    };
    logging::start(settings.log_level);
    let warnings = settings.warnings.iter().cloned();
    for warning in warnings.chain(open_files::make_room_for(settings.workers.connections_max)) {
        tracing::warn!("{warning}");
    }
    complain(
        &format!("the command {command} is not part of this build"),
        1,
    )
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
