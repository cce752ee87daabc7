//! The shares of client, server and others in the processor time of this host, second by second.

use std::{mem, time::Duration};

use netping_client::{
    clock::Deadline,
    engine::{BalanceMeter, Processes},
};
use netping_report::balance::in_words;

/// The time between two readings.
const PERIOD: Duration = Duration::from_secs(1);

/// Reads the processor time once a second.
pub(super) struct CpuMeter {
    processes: Processes,
    meter: BalanceMeter,
    next: Deadline,
    latest: Vec<String>,
}

impl CpuMeter {
    pub(super) fn new(processes: Processes) -> Self {
        Self {
            meter: BalanceMeter::start(processes.clone()),
            next: Deadline::after(PERIOD),
            latest: Vec::new(),
            processes,
        }
    }

    /// Returns who had each set of CPUs between the last two readings, in words.
    pub(super) fn latest(&mut self) -> &[String] {
        if self.next.left().is_zero() {
            self.next = Deadline::after(PERIOD);
            let balances =
                mem::replace(&mut self.meter, BalanceMeter::start(self.processes.clone())).finish();
            self.latest = balances.iter().filter_map(in_words).collect();
        }
        &self.latest
    }
}
