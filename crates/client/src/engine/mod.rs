//! Runs one step: connect, warm up, measure, drain.
//!
//! Each worker is an OS thread with its own single-threaded runtime, its own connections and its
//! own recorder. Workers send finished intervals to the engine over a channel; on the way of a
//! request they share only the [`Timeline`](timeline::Timeline) and, in an open loop, the requests
//! that found no caller: the [`Backlog`](backlog::Backlog).

mod backlog;
mod connection_slot;
mod dispatch;
mod hiccups;
mod measurement;
mod observer;
mod pacer;
mod rate_meter;
mod running;
mod schedule;
mod share;
#[cfg(test)]
mod tests;
mod timeline;
mod worker;
mod worker_thread;
mod workers;

pub use self::{
    measurement::Measurement,
    observer::{Observer, Phase},
};

use std::sync::Arc;

use self::{
    running::Running,
    workers::{Launch, Workers},
};
use crate::{error::StartError, interrupt::Interrupt, plan::Plan};

/// Runs `plan`.
///
/// # Errors
/// [`StartError`], and then no request was sent.
pub fn run(
    plan: &Plan,
    interrupt: &Interrupt,
    observer: &dyn Observer,
) -> Result<Measurement, StartError> {
    let endpoint = plan.target.endpoint()?;
    observer.phase(Phase::Connect, None);
    let launch = Launch(Arc::new(plan.clone()));
    let workers: Workers = plan.load.kind.visit(endpoint, launch)?;
    let negotiated = workers.connected(&plan.target.url, interrupt)?;
    let measurement = Running::new(plan, interrupt, observer, &workers)?.measure();
    workers.join()?;
    let measurement = measurement?;
    Ok(Measurement {
        // The security of measured connections takes precedence over that of the ones before.
        negotiated: measurement.negotiated.or(negotiated),
        ..measurement
    })
}
