//! The published experiments, side by side: `remora-lab run`.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan` | what an experiment is: data, loads, arms |
//! | `results` | what a run leaves |

pub mod plan;
pub mod results;
