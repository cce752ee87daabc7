//! What netping makes of its samples: histograms, statistics, result files, tables and pages. No sockets, no
//! clock.
//!
//! A worker's [`Recorder`] takes samples; [`Collector`] adds up what all workers recorded; the [`Summary`] of the sum
//! stands in a [`Run`], which is saved as JSON and shown in a [`table`] or on a [`page`].

mod bulk;
mod check;
mod collector;
mod compare;
mod compare_runs;
mod condition;
mod connect;
mod distribution;
mod doubt;
mod doubts;
mod encoded;
mod error_kind;
pub mod export;
mod fairness;
pub mod format;
mod gap;
mod knee;
mod load;
mod merge;
mod overhead;
pub mod page;
mod precision;
mod recorder;
mod run;
#[cfg(test)]
mod sample;
mod save;
mod sparkline;
mod summary;
pub mod table;
mod unlike;
mod warm_up;

pub use bulk::{BulkRun, BulkSettings, BulkStep, BulkSummary, Direction};
pub use collector::{Collected, Collector};
pub use compare::{Difference, Estimate, Shown};
pub use compare_runs::{Change, Comparison, Gate, Measure, Pair, compare_runs};
pub use condition::{Answer, Condition};
pub use connect::{ConnectPhase, PhaseSummary, PhaseTimes, Security};
pub use distribution::{
    Distribution, Histogram, QUANTILES, counts, decode_histogram, histogram, record,
};
pub use doubt::{Doubt, Facts};
pub use doubts::Doubts;
pub use error_kind::ErrorKind;
pub use fairness::{Fairness, PerConnection};
pub use knee::knee;
pub use load::{LARGEST, LoadError, Unreadable};
pub use merge::{MergeError, Part, PartStep, merge};
pub use overhead::Overhead;
pub use precision::Precision;
pub use recorder::{Interval, LoopKind, Outside, Recorder, Sample, Sink, Window};
pub use run::{
    Environment, Histograms, IntervalSummary, Run, SCHEMA_VERSION, Status, Step, StepSettings, Tool,
};
pub use save::{SaveError, prepare_file, write_atomically};
pub use sparkline::sparkline;
pub use summary::{Accounting, Cost, ServerDemand, Summary};
pub use unlike::Unlike;
pub use warm_up::mser5;
