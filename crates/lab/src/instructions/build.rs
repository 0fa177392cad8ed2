//! What compiled the program that is measured, and how: what the figures hold for.

use anyhow::{Context as _, bail};

use remora_testkit::programs;

use super::baseline::Figures;

/// How the compiler names itself in what it compiles.
const COMPILER: &[u8] = b"rustc version ";
/// The workspace's own file, at the time when this was compiled.
const WORKSPACE: &str = include_str!("../../../../Cargo.toml");

/// Figures without any path, for the built program that is found.
///
/// # Errors
/// It is not a release build.
pub(super) fn figures() -> anyhow::Result<Figures> {
    if cfg!(debug_assertions) && std::env::var_os("REMORA_BINARY").is_none() {
        bail!(
            "the figures are for the release build; name it by REMORA_BINARY=target/release/remora, or run `make instructions`"
        );
    }
    let program = programs::remora()?;
    let bytes =
        std::fs::read(&program).with_context(|| format!("can't read {}", program.display()))?;
    let rustc = compiler(&bytes).with_context(|| {
        format!(
            "{} does not say what compiled it; is it stripped?",
            program.display()
        )
    })?;
    Ok(Figures::new(rustc, profile(WORKSPACE)))
}

/// The version of the compiler that a program names in itself.
fn compiler(program: &[u8]) -> Option<String> {
    let at = program
        .windows(COMPILER.len())
        .position(|window| window == COMPILER)?;
    let version = program.get(at + COMPILER.len()..)?;
    let is_version = |byte: &&u8| byte.is_ascii_graphic();
    let version: Vec<u8> = version.iter().take_while(is_version).copied().collect();
    String::from_utf8(version).ok()
}

/// The options of the release profile, as the workspace's file has them.
fn profile(workspace: &str) -> String {
    let lines = workspace.lines().map(str::trim);
    let options: Vec<&str> = lines
        .skip_while(|line| *line != "[profile.release]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    format!("release: {}", options.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_its_compiler() {
        let program = b"\0\0GCC: 12\0rustc version 1.95.0 (59807616e 2026-04-14)\0\0";
        assert_eq!(compiler(program).unwrap(), "1.95.0");
        assert_eq!(compiler(b"stripped"), None);
    }

    #[test]
    fn the_profile_is_that_of_the_workspace() {
        let file = "[profile.dev]\ndebug = 1\n\n[profile.release]\n# why\nlto = \"thin\"\ndebug = 0\n\n[profile.x]\na = 1\n";
        assert_eq!(profile(file), "release: lto = \"thin\", debug = 0");
        assert!(profile(WORKSPACE).contains("lto"));
    }
}
