//! `make demo`.
/// Options.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoOptions {}
/// Runs.
pub fn run(_options: &DemoOptions) -> anyhow::Result<()> {
    Ok(())
}
