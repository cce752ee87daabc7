//! A run as data: its steps, the metrics of a step, result files, warnings, comparisons and
//! merging. A [`Run`](run::Run) holds steps; [`metric`] is the registry that everything shown is
//! read from.

#![warn(missing_docs)]

pub mod ab;
pub mod anatomy;
pub mod balance;
pub mod bulk;
pub mod burst;
pub mod compare;
pub mod comparison;
pub mod condition;
pub mod connect;
pub mod environment_diff;
pub mod estimate;
pub mod file;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod format;
pub mod limit;
pub mod merge;
pub mod messages;
pub mod metric;
pub mod probe;
pub mod recovery;
pub mod run;
pub mod time_unit;
pub mod times;
pub mod transfer;
pub mod warning;
