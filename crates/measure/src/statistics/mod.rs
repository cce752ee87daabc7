//! Estimates, intervals and comparisons.

pub mod difference;
pub mod knee;
pub mod precision;
pub mod warm_up;
pub mod welch;
