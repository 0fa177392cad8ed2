//! The command `remora-lab`.
fn main() {}
