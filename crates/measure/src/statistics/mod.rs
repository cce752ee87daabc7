//! Estimates, intervals and comparisons.

pub mod bootstrap;
pub mod change_point;
pub mod difference;
pub mod estimate;
pub mod knee;
pub mod modes;
pub mod paired;
pub mod precision;
pub mod queue;
pub mod side;
#[cfg(test)]
mod simulation;
pub mod trimmed;
pub mod warm_up;
pub mod welch;
