//! Which test programs there are: what `cargo test --no-run` has built.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::statement::Statement;
use crate::root;

/// A built test program.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) package: String,
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
    /// The package's directory, in which its tests expect to run.
    pub(crate) directory: PathBuf,
    pub(crate) statement: Statement,
}

impl Program {
    /// Whether a user would call it so.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.title() == name
    }

    /// Its name with its package's, which no other program has.
    pub(crate) fn title(&self) -> String {
        format!("{}::{}", self.package, self.name)
    }
}

/// What cargo says of what it has built: one JSON object a line.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// Builds all of them, and the programs that they start.
///
/// # Errors
/// Something doesn't compile, or a program doesn't say on which servers it runs.
pub(crate) fn programs() -> anyhow::Result<Vec<Program>> {
    // In one go, so that every package is built once, with the same features.
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-run", "--locked"]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("can't run cargo")?;
    ensure!(output.status.success(), "the tests don't build; see above");
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Message = serde_json::from_str(line).context("cargo says what is no JSON")?;
        if let Some(program) = program(message)? {
            programs.push(program);
        }
    }
    programs.sort_by_key(Program::title);
    Ok(programs)
}

fn program(message: Message) -> anyhow::Result<Option<Program>> {
    let Message {
        reason,
        manifest_path,
        target: Some(target),
        profile: Some(Profile { test: true }),
        executable: Some(executable),
    } = message
    else {
        return Ok(None);
    };
    if reason != "compiler-artifact" {
        return Ok(None);
    }
    let directory = manifest_path.parent().context("a manifest lies nowhere")?;
    let package = package_of(&manifest_path)?;
    let statement = if target.kind == ["test"] {
        let source = std::fs::read_to_string(&target.src_path)
            .with_context(|| format!("can't read {}", target.src_path.display()))?;
        Statement::read(&source).with_context(|| target.src_path.display().to_string())?
    } else {
        Statement::UNIT_TESTS
    };
    let name = match target.kind.first().map(String::as_str) {
        Some("lib") => "lib".to_owned(),
        Some("test") => target.name,
        other => format!("{}-{}", other.unwrap_or("program"), target.name),
    };
    Ok(Some(Program {
        package,
        name,
        executable,
        directory: directory.to_owned(),
        statement,
    }))
}

/// The package's name, from its manifest.
fn package_of(manifest: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(manifest)
        .with_context(|| format!("can't read {}", manifest.display()))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \""));
    let name = name.and_then(|rest| rest.split('"').next());
    Ok(name.context("a manifest without a name")?.to_owned())
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
