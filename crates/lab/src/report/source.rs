//! Reading a run's directory.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::results::{Results, SCHEMA_VERSION};

/// The results' name in a run's directory.
pub(super) const RESULTS: &str = "results.json";

/// A run's results and series.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) results: Results,
    /// By [`crate::results::Repetition::series`].
    pub(super) series: BTreeMap<String, Vec<Second>>,
    /// What couldn't be read.
    pub(super) notes: Vec<String>,
}

/// A line of a series.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Second {
    /// Since the measurement began.
    pub(super) second: f64,
    pub(super) queries_per_s: f64,
}

/// Reads a run's results and series.
pub(super) fn read(directory: &Path) -> anyhow::Result<Run> {
    let results = read_results(directory)?;
    let (mut series, mut notes) = (BTreeMap::new(), Vec::new());
    let repetitions = results.cells.iter().flat_map(|cell| &cell.repetitions);
    for name in repetitions.map(|repetition| &repetition.series) {
        match read_series(directory, name) {
            Ok(seconds) => drop(series.insert(name.clone(), seconds)),
            Err(error) => notes.push(format!("{error:#}")),
        }
    }
    Ok(Run {
        results,
        series,
        notes,
    })
}

/// Reads a run's results.
pub(super) fn read_results(directory: &Path) -> anyhow::Result<Results> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let path = directory.join(RESULTS);
    let shown = path.display();
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("can't read {shown}: give the directory that a run wrote"))?;
    let Version { schema_version } = serde_json::from_str(&text)
        .with_context(|| format!("can't understand {shown}: it isn't what a run wrote"))?;
    ensure!(
        schema_version == SCHEMA_VERSION,
        "{shown} is of version {schema_version} of the schema, and this program reads version {SCHEMA_VERSION}: \
         use the program that wrote it, or run the experiment again"
    );
    serde_json::from_str(&text).with_context(|| format!("can't understand {shown}: it is damaged"))
}

fn read_series(directory: &Path, name: &str) -> anyhow::Result<Vec<Second>> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    ensure!(
        Path::new(name).components().all(inside),
        "the series {name} isn't in the run's directory"
    );
    let mut reader = csv::Reader::from_path(directory.join(name))
        .with_context(|| format!("can't read the series {name}"))?;
    reader
        .deserialize()
        .collect::<Result<_, _>>()
        .with_context(|| format!("can't understand the series {name}"))
}

/// The subdirectories that hold a run, by name.
pub(super) fn subdirectories(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = directory.display();
    let entries = std::fs::read_dir(directory).with_context(|| format!("can't read {shown}"))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("can't read {shown}"))?.path();
        if path.join(RESULTS).is_file() {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!(
            "neither {shown} nor a directory in it holds {RESULTS}: give a directory that a run wrote"
        );
    }
    found.sort();
    Ok(found)
}

/// The last part of a path.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}
