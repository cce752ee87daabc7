//! Runs one step: connect, warm up, measure, drain.
//!
//! Each worker is an OS thread with its own single-threaded runtime, its own connections and its
//! own recorder. Several targets can be measured together: then each worker has a part of every plan, and
//! the callers of a closed loop go from target to target, in random order within each cycle. Workers send finished intervals to the engine over a channel; on the way of a
//! request they share only the [`Timeline`](timeline::Timeline) and, in an open loop, the requests
//! that found no caller: the [`Backlog`](backlog::Backlog).

mod backlog;
mod balance;
mod connection_slot;
mod dispatch;
mod dropped;
mod fixed_dispatch;
mod hiccups;
mod measured;
mod observer;
mod pacer;
mod paths;
mod rate_meter;
mod running;
mod schedule;
mod share;
#[cfg(test)]
mod tests;
mod timeline;
mod turns;
mod worker;
mod worker_part;
mod workers;

pub use self::balance::{BalanceMeter, Counted, Processes, complete_balances};
pub(crate) use self::paths::tcp_readings;
#[cfg(feature = "simulation")]
pub use self::worker::simulated;
pub use self::{
    measured::Measured,
    observer::{Observer, Phase, Silent},
};

use std::{hint, slice, thread, time::Duration};

use self::{
    running::{Prepared, Running},
    workers::{LOOK, Workers},
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
    let mut all = run_together(slice::from_ref(plan), interrupt, observer)?;
    Ok(all.remove(0))
}

/// Runs plans that differ in their targets alone at the same time, on the same workers, and returns what was
/// measured of each. The callers of a closed loop call the targets by turns, one at a time; an open loop sends
/// every target requests of its own.
///
/// # Errors
/// [`StartError`], and then no request was sent.
pub fn run_together(
    plans: &[Plan],
    interrupt: &Interrupt,
    observer: &dyn Observer,
) -> Result<Vec<Measured>, StartError> {
    observer.phase(Phase::Connect, None);
    let workers = Workers::launch(plans)?;
    let negotiated = workers.connected(interrupt)?;
    let prepared = Prepared::find(plans, &workers);
    if let Some(moment) = plans[0].execution.start_at {
        wait_until(moment, interrupt)?;
    }
    let measured = Running::new(plans, interrupt, observer, &workers, prepared)?.measure();
    workers.join()?;
    let mut measured = measured?;
    for (own, before) in measured.iter_mut().zip(negotiated) {
        // The security of measured connections takes precedence over that of the ones before.
        let found = &mut own.report.negotiated;
        *found = found.take().or(before);
    }
    Ok(measured)
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
