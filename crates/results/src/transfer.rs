//! The transfer of bulk streams, which is a step.

use netping_measure::{
    aggregate::Aggregate,
    bulk::BulkRun,
    cost::Cost,
    error_kind::ErrorKind,
    histogram::record,
    recorder::Interval,
    sample::LoopKind,
    times::Time,
    window::{INTERVAL, Window},
};

use crate::{
    bulk::BulkSettings,
    run::{Place, Step, StepSettings},
    warning::{ClientBound, Errors, ForeignLoad, SharedHost, Warning},
};

/// A transfer of bulk streams: what one step measured.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// The bytes that were moved, or the kind of the failure that ended it.
    pub outcome: Result<BulkRun, ErrorKind>,
    /// Its length, in seconds.
    pub seconds: f64,
    /// When it began, by the client's time of day, in nanoseconds since 1970.
    pub started_at: Option<u64>,
}

impl Transfer {
    /// Returns the step that it is: one request, whose time is that of the transfer.
    pub fn step(&self, target: String, settings: BulkSettings, place: Place) -> Step {
        let length = (self.seconds.max(0.0) * 1e9).round() as u64;
        let window = Window {
            start: 0,
            end: length,
        };
        let mut sample = Interval::new(length.saturating_sub(1) / INTERVAL);
        match self.outcome {
            Ok(_) => record(&mut sample.times[Time::Service], length),
            Err(kind) => {
                sample.accounting.errors.insert(kind, 1);
                record(&mut sample.times[Time::Failed], length);
            }
        }
        let mut aggregate = Aggregate::new(LoopKind::Closed);
        aggregate.add(sample);
        let totals = aggregate.finish(window);
        let cpu = |run: &BulkRun| Some(run.client_cpu_seconds_per_gib? * run.gib());
        let bulk = self.outcome.ok();
        Step {
            window_started_at: self.started_at,
            cost: Cost {
                client_worker_cpu_seconds: bulk.as_ref().and_then(cpu).into_iter().collect(),
                ..Cost::default()
            },
            bulk,
            ..Step::of(target, place, StepSettings::of_bulk(settings), &totals)
        }
    }
}

impl Step {
    /// Finds the warnings about a transfer. `shared_host`: the server is on the client's host.
    pub fn warn_of_transfer(&mut self, shared_host: bool) {
        self.warnings = [
            ClientBound::of_transfer(&self.cost, self.summary.seconds).map(Warning::from),
            ForeignLoad::of_balances(&self.cost.balances).map(Warning::from),
            Errors::of_summary(&self.summary).map(Warning::from),
            shared_host.then_some(SharedHost.into()),
        ]
        .into_iter()
        .flatten()
        .collect();
    }
}

impl StepSettings {
    /// Returns the settings of a step that measures bulk streams.
    fn of_bulk(bulk: BulkSettings) -> Self {
        Self {
            callers: bulk.streams.max(1),
            connections: bulk.streams.max(1),
            workers: 1,
            arrivals: "closed".to_owned(),
            client: "bulk".to_owned(),
            payload_bytes: bulk.chunk_bytes as usize,
            requests: Some(1),
            bulk: Some(bulk),
            ..Self::default()
        }
    }
}
