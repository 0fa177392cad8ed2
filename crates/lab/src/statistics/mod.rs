//! What may be concluded from a handful of measurements.
//!
//! | file | what it holds |
//! |---|---|
//! | `bootstrap` | medians and their ratios with intervals, and whether two samples differ |
//! | `break_even` | from which place on the x axis one line lies above another |
//! | `noise` | how much repetitions of the same differ |
//! | `scalability` | the Universal Scalability Law |
//! | `steady` | whether a throughput has become steady |

pub mod bootstrap;
pub mod break_even;
pub mod noise;
pub mod scalability;
pub mod steady;

#[cfg(test)]
pub(crate) mod testing;
