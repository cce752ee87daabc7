//! The shares of client, server and others in the processor time of this host, second by second.

use std::time::Duration;

use netping_client::{
    clock::Deadline,
    engine::BalanceMeter,
    plan::{Destination, Plan},
};
use netping_report::balance::in_words;

/// The time between two readings.
const PERIOD: Duration = Duration::from_secs(1);

/// The servers of a step, and who counts as client.
#[derive(Debug, Clone)]
pub(super) struct Sides {
    targets: Vec<Destination>,
    /// Other clients on this host measure in step with this one.
    is_one_of_several: bool,
}

impl Sides {
    /// Returns the sides of plans that are measured together.
    pub(super) fn of(plans: &[Plan]) -> Self {
        Self {
            targets: plans.iter().map(|plan| plan.target.clone()).collect(),
            is_one_of_several: plans.iter().any(|plan| plan.execution.in_step),
        }
    }

    fn meter(&self) -> BalanceMeter {
        BalanceMeter::start(self.targets.iter(), self.is_one_of_several)
    }
}

/// Reads the processor time once a second.
pub(super) struct CpuMeter {
    sides: Sides,
    meter: BalanceMeter,
    next: Deadline,
    latest: Vec<String>,
}

impl CpuMeter {
    pub(super) fn new(sides: Sides) -> Self {
        Self {
            meter: sides.meter(),
            next: Deadline::after(PERIOD),
            latest: Vec::new(),
            sides,
        }
    }

    /// Returns who had each set of CPUs between the last two readings, in words.
    pub(super) fn latest(&mut self) -> &[String] {
        if self.next.left().is_zero() {
            self.next = Deadline::after(PERIOD);
            let balances = std::mem::replace(&mut self.meter, self.sides.meter()).finish();
            self.latest = balances.iter().filter_map(in_words).collect();
        }
        &self.latest
    }
}
