//! The measurement loop: the callers of one worker, on one thread.

mod assignment;
mod caller;
mod reaper;
#[cfg(any(test, feature = "simulation"))]
pub mod simulated;
#[cfg(test)]
mod simulation;
mod stamps;
mod state;
#[cfg(test)]
mod stream_simulation;
#[cfg(test)]
mod tests;

pub use self::assignment::{Assignment, WorkerReport};

use std::rc::Rc;

use netping_measure::{error_kind::ErrorKind, recorder::Sink};
use tokio::task::{self, JoinHandle};

use self::state::{Shared, Supply};
use crate::{
    clock::Clock,
    engine::{connection_slot::ConnectionSlot, pacer::Pacer, turns::Turn},
    transport::Transport,
};

/// Runs the callers of one worker, spread over `slots`, until the window ends and the drain is
/// over. In a closed loop, they may take turns with those of other plans.
pub async fn run<T: Transport, C: Clock, S: Sink + 'static>(
    assignment: Assignment,
    turn: Option<Turn>,
    slots: &[Rc<ConnectionSlot<T>>],
    clock: C,
    sink: S,
) -> WorkerReport {
    let callers = assignment.share.callers;
    let shared = Rc::new(Shared::new(assignment, turn, clock, sink));
    let start = |number: usize| {
        let slot = Rc::clone(&slots[number % slots.len()]);
        task::spawn_local(caller::call(Rc::clone(&shared), slot, number))
    };
    let mut callers: Vec<_> = (0..callers).map(start).collect();
    let pacer = task::spawn_local(pace(Rc::clone(&shared)));

    let cost = reaper::watch(&shared, &mut callers, start).await;
    callers.push(pacer);
    stop(callers).await;

    let Some(shared) = Rc::into_inner(shared) else {
        unreachable!("every caller is gone, and with it every other owner");
    };
    let mut report = WorkerReport {
        negotiated: slots.iter().find_map(|slot| slot.negotiated.take()),
        cost,
        ..shared.finish(slots.len())
    };
    for (slot, connection) in slots.iter().zip(&mut report.connections) {
        report.remainder.accounting += &slot.counts.borrow();
        (connection.server, connection.local_port) = slot.ends.get();
    }
    report
}

async fn stop(tasks: Vec<JoinHandle<()>>) {
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        if let Err(error) = task.await
            && error.is_panic()
        {
            // A missing caller or pacer would falsify the result.
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Wakes callers when requests are due, in an open loop.
async fn pace<C: Clock, S: Sink>(shared: Rc<Shared<C, S>>) {
    if matches!(shared.supply, Supply::Closed(_)) {
        return;
    }
    let busy_poll = shared.assignment.plan.execution.busy_poll;
    match Pacer::new(shared.clock.clone(), busy_poll) {
        Ok(mut pacer) => match &shared.supply {
            Supply::Closed(_) => {}
            Supply::Any(dispatch) => dispatch.pace(&mut pacer, &shared.clock).await,
            Supply::Fixed(dispatch) => dispatch.pace(&mut pacer, &shared.clock).await,
        },
        // Nothing would ever be due then, and the accounts would show it: all requests not sent.
        Err(error) => shared.note(ErrorKind::Other, format!("no timer: {error}")),
    }
}
