//! `make bench`.
/// Options.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchOptions {}
/// Runs.
pub fn run(_options: &BenchOptions) -> anyhow::Result<()> {
    Ok(())
}
