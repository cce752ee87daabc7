//! A run as data: its steps, the metrics of a step, result files, warnings, comparisons and merging.

#![warn(missing_docs)]

pub mod bulk;
pub mod compare;
pub mod condition;
pub mod connect;
pub mod environment_diff;
pub mod file;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod format;
pub mod merge;
pub mod overhead;
pub mod run;
pub mod warning;
