//! What netping makes of its samples: histograms, statistics, result files, tables and pages. No sockets, no
//! clock.
//!
//! A worker's [`Recorder`] takes samples; [`Collector`] adds up what all workers recorded; the [`Summary`] of the sum
//! stands in a [`Run`], which is saved as JSON and shown in a [`table`] or on a [`page`].

mod bulk;
mod collector;
mod compare;
mod condition;
mod connect;
mod distribution;
mod doubt;
mod error_kind;
mod fairness;
pub mod format;
mod overhead;
pub mod page;
mod precision;
mod recorder;
mod run;
mod save;
mod summary;
pub mod table;
mod warm_up;

pub use bulk::{BulkRun, BulkSettings, BulkStep, BulkSummary, Direction};
pub use collector::{Collected, Collector};
pub use compare::{Difference, Estimate, Shown};
pub use condition::{Answer, Condition};
pub use connect::{ConnectPhase, PhaseSummary, PhaseTimes, Security};
pub use distribution::{Distribution, Histogram, QUANTILES, counts, decode_histogram, histogram, record};
pub use doubt::{Doubt, Facts};
pub use error_kind::ErrorKind;
pub use fairness::{Fairness, PerConnection};
pub use overhead::Overhead;
pub use precision::Precision;
pub use recorder::{Interval, LoopKind, Outside, Recorder, Sample, Sink, Window};
pub use run::{Environment, Histograms, IntervalSummary, Run, SCHEMA_VERSION, Status, Step, StepSettings, Tool};
pub use save::{SaveError, write_atomically};
pub use summary::{Accounting, Cost, ServerDemand, Summary};
pub use warm_up::mser5;
