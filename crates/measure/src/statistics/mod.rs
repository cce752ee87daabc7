//! Estimates, intervals and comparisons.

pub mod change_point;
pub mod difference;
mod drift;
pub mod knee;
pub mod modes;
pub mod moments;
pub mod outliers;
pub mod precision;
pub mod queue;
pub mod recovery;
#[cfg(test)]
pub(crate) mod simulation;
pub mod slowdown;
pub mod together;
pub mod warm_up;
