//! The command line: what each command prints, and how a wrong one is refused.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::process::{Command, Output};

fn remora(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_remora"))
        .args(arguments)
        .output()
        .unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = remora(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line that a wrong command line gets.
fn refusal(arguments: &[&str]) -> String {
    let output = remora(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    line.trim_end().to_owned()
}

#[test]
fn config_prints_what_it_accepts() {
    assert_eq!(printed(&["config"]), remora::config::example_toml());
    assert_eq!(
        printed(&["config", "--markdown"]),
        remora::config::reference_markdown()
    );
}

#[test]
fn the_references_are_printed() {
    assert_eq!(
        printed(&["reasons", "--markdown"]),
        remora_engine::reason::reference_markdown()
    );
    assert_eq!(
        printed(&["metrics", "--markdown"]),
        remora::metrics::reference_markdown()
    );
}

#[test]
fn a_shell_completes_commands_options_and_their_values() {
    let script = printed(&["completions", "bash"]);
    let complete = |words: &[&str]| {
        // What bash does when the tabulator key is pressed behind the last word.
        let ask = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; COMPREPLY=()\n\
             _remora remora '{}' '{}'; echo \"${{COMPREPLY[*]}}\"",
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = Command::new("bash").args(["-c", &ask]).output().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    };
    assert_eq!(complete(&["remora", "ser"]), "serve");
    assert_eq!(complete(&["remora", "digests", "--so"]), "--sort");
    assert_eq!(complete(&["remora", "digests", "--sort", "sa"]), "saved");
    assert_eq!(complete(&["remora", "completions", "z"]), "zsh");
    for shell in ["elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("digests"), "{shell}: {script}");
    }
}

#[test]
fn the_version_and_the_help_are_printed() {
    assert_eq!(
        printed(&["--version"]),
        concat!("remora ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert!(printed(&["--help"]).contains("serve"));
    let help = printed(&["serve", "--help"]);
    for option in [
        "--upstream",
        "--listen",
        "--follow-user",
        "--follow-password-file",
        "--config",
    ] {
        assert!(help.contains(option), "{option}");
    }
}

#[test]
fn a_wrong_command_line_gets_one_line_and_status_2() {
    for (arguments, expected) in [
        (
            &["serve", "--memory", "lots"][..],
            "remora: --memory (cache.memory_bytes_max): got \"lots\", accepts a size from 1MiB to 16TiB, such as \"8MiB\"",
        ),
        (
            &["check", "--upstream", "nowhere"],
            "remora: --upstream (upstream.address): got \"nowhere\", accepts host:port or unix:/path",
        ),
        (
            &["serve", "--listen", "127.0.0.1:1", "--listen", "x"],
            "remora: --listen (listen.addresses): got [\"127.0.0.1:1\", \"x\"], accepts a list of one or more of host:port or unix:/path",
        ),
        (
            &["digests", "--sort", "name"],
            "remora: --sort: got \"name\", accepts one of time, calls, misses, saved, outdated",
        ),
        (
            &["completions", "tcsh"],
            "remora: <SHELL>: got \"tcsh\", accepts one of bash, elvish, fish, powershell, zsh",
        ),
        (
            &["serve", "--workers", "many"],
            "remora: --workers (workers.threads): got \"many\", accepts a whole number from 0 to 1024",
        ),
        (
            &["serve", "--memori", "1MiB"],
            "remora: --memori does not exist; did you mean --memory?",
        ),
        (
            &["serve", "--frobnicate"],
            "remora: --frobnicate does not exist; `remora serve --help` lists what does",
        ),
        (
            &["serve", "--memory"],
            "remora: --memory: got nothing, accepts a value",
        ),
        (
            &["serve", "--memory", "8MiB", "--memory", "9MiB"],
            "remora: --memory: got it twice, accepts it once",
        ),
        (
            &["serve", "--set", "nonsense"],
            "remora: --set: got \"nonsense\", accepts section.option=value",
        ),
        (
            &["serve", "--set", "cache.shard=4"],
            "remora: --set (cache.shard) does not exist; did you mean cache.shards?",
        ),
        (
            &["explain", "--admin", "off", "SELECT 1"],
            "remora: admin.listen: got off, accepts an address: without it a running Remora can't be asked",
        ),
        (
            &["explain", "--admin", "nowhere", "SELECT 1"],
            "remora: --admin (admin.listen): got \"nowhere\", accepts an IP address and port, or off",
        ),
        (
            &["swim"],
            "remora: command: got \"swim\", accepts one of serve, check, advise, explain, digests, traces, top, config, metrics, reasons, completions",
        ),
        (
            &[],
            "remora: command: got nothing, accepts one of serve, check, advise, explain, digests, traces, top, config, metrics, reasons, completions",
        ),
    ] {
        assert_eq!(refusal(arguments), expected);
    }
}

#[test]
fn a_stray_argument_is_refused() {
    let line = refusal(&["serve", "stray"]);
    assert!(line.contains("stray"), "{line}");
}

#[test]
fn a_wrong_file_gets_one_line_and_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("remora.toml");
    std::fs::write(&path, "[cache]\nmemory = '1GiB'\n").unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(
        refusal(&["serve", "--config", path]),
        format!(
            "remora: {path}: cache.memory does not exist; did you mean cache.memory_bytes_max?"
        )
    );
}

#[test]
fn explaining_without_a_running_remora_says_what_to_start() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let output = remora(&["explain", "--admin", &address, "SELECT 1"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(
        line.contains(&address) && line.contains("remora serve"),
        "{line}"
    );
}
