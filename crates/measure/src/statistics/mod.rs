//! Estimates, intervals and comparisons.

pub mod change_point;
pub mod difference;
pub mod knee;
pub mod modes;
pub mod moments;
pub mod precision;
pub mod queue;
#[cfg(test)]
mod simulation;
pub mod warm_up;
