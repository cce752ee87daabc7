//! Runs one step: connect, warm up, measure, drain.
//!
//! Each worker is an OS thread with its own single-threaded runtime, its own connections and its
//! own recorder. Workers send finished intervals to the engine over a channel; on the way of a
//! request they share only the [`Timeline`](timeline::Timeline) and, in an open loop, the requests
//! that found no caller: the [`Backlog`](backlog::Backlog).

mod backlog;
mod balance;
mod connection_slot;
mod dispatch;
mod fixed_dispatch;
mod hiccups;
mod measured;
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

pub use self::balance::{BalanceMeter, complete_balances};
#[cfg(feature = "simulation")]
pub use self::worker::simulated;
pub use self::{
    measured::Measured,
    observer::{Observer, Phase},
};

use std::{hint, sync::Arc, thread, time::Duration};

use self::{
    running::Running,
    workers::{LOOK, Launch, Workers},
};
use crate::{clock::Moment, error::StartError, interrupt::Interrupt, plan::Plan};

/// Runs `plan`.
///
/// # Errors
/// [`StartError`], and then no request was sent.
pub fn run(
    plan: &Plan,
    interrupt: &Interrupt,
    observer: &dyn Observer,
) -> Result<Measured, StartError> {
    let endpoint = plan.target.endpoint()?;
    observer.phase(Phase::Connect, None);
    let launch = Launch(Arc::new(plan.clone()));
    let workers: Workers = plan.load.kind.visit(endpoint, launch)?;
    let negotiated = workers.connected(interrupt)?;
    if let Some(moment) = plan.execution.start_at {
        wait_until(moment, interrupt)?;
    }
    let measurement = Running::new(plan, interrupt, observer, &workers)?.measure();
    workers.join()?;
    let mut measurement = measurement?;
    // The security of measured connections takes precedence over that of the ones before.
    let measured = &mut measurement.report.negotiated;
    *measured = measured.take().or(negotiated);
    Ok(measurement)
}

/// The time before a moment from which on the clock is watched without sleeping: longer than a sleep is
/// late on an idle machine (the kernel's timer slack is 50 us), and short, since clients that share a
/// machine watch it all at once.
const WATCHED: Duration = Duration::from_micros(200);

/// Waits until a moment.
fn wait_until(moment: Moment, interrupt: &Interrupt) -> Result<(), StartError> {
    let late = |late| StartError::Late { at: moment, late };
    let mut left = moment.left().map_err(late)?;
    while !left.is_zero() {
        if interrupt.is_set() {
            return Err(StartError::Interrupted);
        }
        match left.checked_sub(WATCHED) {
            Some(time) if !time.is_zero() => thread::sleep(time.min(LOOK)),
            _ => hint::spin_loop(),
        }
        left = moment.left().unwrap_or_default();
    }
    Ok(())
}
