//! What two runs are compared by.

use crate::{
    format::{micros, share, thousands},
    run::Step,
};
use netping_measure::bulk::BulkRun;

/// What two runs are compared by. The longest time is none of them: it is a single request's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// Verified replies per second.
    Rate,
    /// The mean response time, in microseconds.
    Mean,
    /// A quantile of the response time, given in per cent; in microseconds.
    Quantile(f64),
    /// CPU time of the client for each request, in microseconds.
    ClientCpu,
    /// CPU time of the server for each request, in microseconds.
    ServerCpu,
    /// The share of requests without a verified reply, from 0 to 1.
    Errors,
    /// GiB per second of a bulk stream.
    BulkRate,
    /// CPU time of the client for each GiB, in seconds.
    BulkClientCpu,
    /// CPU time of the server for each GiB, in seconds.
    BulkServerCpu,
}

impl Measure {
    /// Those of a step.
    pub const OF_STEPS: [Self; 8] = [
        Self::Rate,
        Self::Mean,
        Self::Quantile(50.0),
        Self::Quantile(99.0),
        Self::Quantile(99.9),
        Self::ClientCpu,
        Self::ServerCpu,
        Self::Errors,
    ];

    /// Those of a bulk stream.
    pub const OF_BULK: [Self; 3] = [Self::BulkRate, Self::BulkClientCpu, Self::BulkServerCpu];

    /// Its name in conditions.
    pub fn name(self) -> String {
        match self {
            Self::Rate => "rate".to_owned(),
            Self::Mean => "mean".to_owned(),
            Self::Quantile(percent) => format!("p{percent}"),
            Self::ClientCpu => "client-cpu".to_owned(),
            Self::ServerCpu => "server-cpu".to_owned(),
            Self::Errors => "errors".to_owned(),
            Self::BulkRate => "bulk-rate".to_owned(),
            Self::BulkClientCpu => "bulk-client-cpu".to_owned(),
            Self::BulkServerCpu => "bulk-server-cpu".to_owned(),
        }
    }

    /// Its title in tables, with the unit.
    pub fn title(self) -> String {
        match self {
            Self::Rate => "req/s".to_owned(),
            Self::Mean | Self::Quantile(_) => format!("{} us", self.name()),
            Self::ClientCpu => "cli us".to_owned(),
            Self::ServerCpu => "srv us".to_owned(),
            Self::Errors => "failed".to_owned(),
            Self::BulkRate => "GiB/s".to_owned(),
            Self::BulkClientCpu => "cli s/GiB".to_owned(),
            Self::BulkServerCpu => "srv s/GiB".to_owned(),
        }
    }

    /// A value of it, as people read it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Rate => thousands(value),
            Self::Errors => share(value),
            Self::BulkRate | Self::BulkClientCpu | Self::BulkServerCpu => format!("{value:.3}"),
            Self::Mean | Self::Quantile(_) | Self::ClientCpu | Self::ServerCpu => micros(value),
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Rate | Self::BulkRate)
    }

    /// Whether its differences are shares of the base's value. Those of errors are not: the base has none, mostly.
    pub fn is_relative(self) -> bool {
        self != Self::Errors
    }

    /// Its value in a step.
    pub(super) fn of_step(self, step: &Step) -> Option<f64> {
        let time = &step.summary.response_time;
        match self {
            Self::Rate => Some(step.summary.rate),
            Self::Mean => time.mean.map(|mean| mean / 1e3),
            Self::Quantile(percent) => time.quantile(percent).map(|time| time as f64 / 1e3),
            Self::ClientCpu => step.cost.client_cpu_us_per_request,
            Self::ServerCpu => step.cost.server_cpu_us_per_request(),
            Self::Errors => Some(step.summary.accounting.error_rate()),
            Self::BulkRate | Self::BulkClientCpu | Self::BulkServerCpu => None,
        }
    }

    /// Its value in a run of a bulk stream.
    pub(super) fn of_bulk(self, run: &BulkRun) -> Option<f64> {
        match self {
            Self::BulkRate => Some(run.gib_per_second),
            Self::BulkClientCpu => run.client_cpu_seconds_per_gib,
            Self::BulkServerCpu => run.server_cpu_seconds_per_gib,
            _ => None,
        }
    }
}
