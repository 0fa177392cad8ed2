//! What the rules look at: the repository's files and their text.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// A file of the repository.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Its path from the repository's root, with `/` between the parts.
    pub(crate) path: String,
    /// Its text; empty if it is no text.
    pub(crate) text: String,
}

impl File {
    /// Its lines, with their numbers from 1 on.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Its name without the directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether its name ends so: `rs`, `md`.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|its| its == extension)
    }
}

/// All files that belong to the repository, by their paths.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) files: Vec<File>,
}

impl Repository {
    /// Reads the files that git tracks, as they are in the directory now. Without git, all files
    /// below it except what is built.
    ///
    /// # Errors
    /// A file or directory can't be read.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Repository> {
        let mut paths = match tracked(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        paths.sort();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let place = root.join(&path);
            // A tracked file may have been deleted, and a link may lead to a directory.
            if place.is_file() {
                let bytes = std::fs::read(&place).with_context(|| format!("can't read {path}"))?;
                let text = String::from_utf8(bytes).unwrap_or_default();
                files.push(File { path, text });
            }
        }
        Ok(Repository { files })
    }

    /// The file with this path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The text of the file with this path; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> &str {
        self.file(path).map_or("", |file| &file.text)
    }

    /// The files in Rust.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.has_extension("rs"))
    }

    /// Whether there is such a file, or a directory with files.
    pub(crate) fn has(&self, path: &str) -> bool {
        let is_below = |file: &File| {
            file.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.is_empty() || self.files.iter().any(is_below)
    }

    /// A repository of made-up files.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Repository {
        let file = |&(path, text): &(&str, &str)| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        Repository {
            files: files.iter().map(file).collect(),
        }
    }
}

/// What git tracks; `None` if there is no git, or this is no work tree of its own.
fn tracked(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let paths = String::from_utf8(output.stdout).ok()?;
    let paths = paths.split('\0').filter(|path| !path.is_empty());
    Some(paths.map(str::to_owned).collect())
}

/// Every file below the root, but for git's own and what cargo builds.
fn walked(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("can't read {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type()?.is_dir() {
                if name != ".git" && name != "target" {
                    directories.push(entry.path());
                }
            } else if let Some(path) = entry.path().strip_prefix(root)?.to_str() {
                paths.push(path.to_owned());
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn without_git_the_directory_is_walked() {
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let repository = Repository::read(crate_root).unwrap();
        assert!(repository.file("src/tidy/repository.rs").is_some());
        assert!(repository.text("Cargo.toml").contains("[package]"));
    }

    #[test]
    fn a_directory_with_files_is_there() {
        let repository = Repository::of(&[("docs/a.md", "")]);
        assert!(repository.has("docs/a.md") && repository.has("docs"));
        assert!(!repository.has("doc") && !repository.has("docs/a"));
    }
}
