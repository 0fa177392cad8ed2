//! The command `remora`.
fn main() {}
