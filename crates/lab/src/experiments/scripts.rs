//! The lab's own scripts for sysbench, which go with the program.

use std::path::Path;

use anyhow::Context as _;

/// Names, as in [`super::plan::Script::Ours`], and contents.
const SCRIPTS: &[(&str, &str)] = &[
    ("big_result", include_str!("../../sysbench/big_result.lua")),
    ("heavy", include_str!("../../sysbench/heavy.lua")),
    ("hit_ratio", include_str!("../../sysbench/hit_ratio.lua")),
    ("light", include_str!("../../sysbench/light.lua")),
    ("social", include_str!("../../sysbench/social.lua")),
    ("tables", include_str!("../../sysbench/tables.lua")),
];

/// Writes them all into a directory.
pub(super) fn write_to(directory: &Path) -> anyhow::Result<()> {
    for (name, text) in SCRIPTS {
        let path = directory.join(name).with_extension("lua");
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

/// The script with this name.
pub(super) fn text(name: &str) -> Option<&'static str> {
    let script = SCRIPTS.iter().find(|(known, _)| *known == name);
    script.map(|(_, text)| *text)
}
