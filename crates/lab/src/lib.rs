//! Experiments with Remora: private servers, workloads, measurements.
