//! What an application is, as its `application.toml` says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

/// An application of the directory `applications`.
///
/// Beside its description there are two programs. `fill` installs it into the schema that the
/// environment names and puts content there; `serve` serves its pages until it is killed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Application {
    /// Its directory's name.
    #[serde(skip)]
    pub(super) id: String,
    /// Where its programs are.
    #[serde(skip)]
    pub(super) directory: PathBuf,
    /// What people call it.
    pub(super) name: String,
    /// What it is, and what it reaches the server with.
    pub(super) what: String,
    /// Paths from which its pages are found.
    pub(super) start: Vec<String>,
    /// Links that hold one of these aren't followed.
    #[serde(default)]
    pub(super) skip: Vec<String>,
    /// Lines that hold one of these aren't compared: they tell how long something took, or such.
    #[serde(default)]
    pub(super) mask: Vec<String>,
    /// How one of the clients logs in; the others stay anonymous.
    pub(super) login: Option<Form>,
    /// Whether all clients log in: the application shows nothing to others.
    #[serde(default)]
    pub(super) everybody_logs_in: bool,
    /// What clients write.
    #[serde(default)]
    pub(super) write: Vec<Form>,
}

/// A form that clients fill in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    /// What it does.
    pub(super) name: String,
    /// The page that has it; `None`: any page that does.
    pub(super) page: Option<String>,
    /// A part of the address that it is sent to, or of its id.
    #[serde(rename = "form")]
    pub(super) marker: String,
    /// What is put into its fields; what isn't here stays as the page gives it. `{n}` stands for a
    /// number that is never the same.
    pub(super) fields: BTreeMap<String, String>,
}

impl Application {
    /// All of them, or those of these names, in the order of their names.
    pub(super) fn read(sources: &Path, only: &[String]) -> anyhow::Result<Vec<Application>> {
        let mut known = Vec::new();
        let shown = sources.display();
        for entry in std::fs::read_dir(sources).with_context(|| format!("can't read {shown}"))? {
            let path = entry?.path();
            if path.join("application.toml").is_file() {
                known.push(Application::of(&path)?);
            }
        }
        known.sort_by(|a, b| a.id.cmp(&b.id));
        let ids: Vec<&str> = known.iter().map(|known| known.id.as_str()).collect();
        let all = ids.join(", ");
        if let Some(name) = only.iter().find(|name| !ids.contains(&name.as_str())) {
            anyhow::bail!("no application is called {name}; there are {all}");
        }
        known.retain(|application| only.is_empty() || only.contains(&application.id));
        Ok(known)
    }

    fn of(directory: &Path) -> anyhow::Result<Application> {
        let file = directory.join("application.toml");
        let shown = file.display();
        let text = std::fs::read_to_string(&file).with_context(|| format!("can't read {shown}"))?;
        let read: Application =
            toml::from_str(&text).with_context(|| format!("{shown} is no description"))?;
        let id = directory.file_name().unwrap_or_default();
        Ok(Application {
            id: id.to_string_lossy().into_owned(),
            directory: directory.to_owned(),
            ..read
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repositorys_descriptions_can_be_read() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../applications");
        let all = Application::read(&sources, &[]).unwrap();
        assert!(all.iter().any(|one| one.id == "wordpress"));
        for one in &all {
            assert!(!one.start.is_empty() && !one.write.is_empty(), "{}", one.id);
            assert!(!one.everybody_logs_in || one.login.is_some(), "{}", one.id);
        }
        let error = Application::read(&sources, &["nothing".to_owned()]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("no application is called nothing")
        );
    }
}
