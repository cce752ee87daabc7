//! The processor time of client, server and others, second by second.

use std::{iter, process};

use netping_client::{
    clock::{Clock, Monotonic},
    engine::{BalanceMeter, Counted, complete_balances},
    plan::{Destination, Plan},
    probe::metrics::{Probe, Reading, ServerSource},
};
use netping_measure::cost::{Balance, ServerDemand, SideUse};
use netping_report::balance::in_words;

/// Nanoseconds between two readings.
const PERIOD: u64 = 1_000_000_000;

/// The processor time of the last second.
#[derive(Debug, Clone, Default)]
pub(super) struct CpuUse {
    /// The cores that client and server kept busy; `None` where that is not known.
    pub(super) cores: [Option<f64>; 2],
    /// Who had each set of CPUs, in words.
    pub(super) balances: Vec<String>,
}

/// The server of a step, and who counts as client.
#[derive(Debug, Clone)]
pub(super) struct Sides {
    target: Destination,
    /// Other clients on this host measure in step with this one.
    is_one_of_several: bool,
}

impl Sides {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            target: plan.target.clone(),
            is_one_of_several: plan.execution.start_at.is_some(),
        }
    }
}

/// Reads the processor time once a second.
pub(super) struct CpuMeter {
    clock: Monotonic,
    next: u64,
    sides: Sides,
    counters: [SideCounters; 2],
    balance: Option<BalanceMeter>,
    latest: CpuUse,
}

impl CpuMeter {
    pub(super) fn new(sides: Sides) -> Self {
        let client = ServerSource::Processes(vec![process::id()]);
        let server = sides.target.server.clone();
        Self {
            clock: Monotonic::start(),
            next: 0,
            sides,
            counters: [client, server].map(SideCounters::new),
            balance: None,
            latest: CpuUse::default(),
        }
    }

    /// Returns the processor time between the last two readings.
    pub(super) fn latest(&mut self) -> &CpuUse {
        if self.clock.now() >= self.next {
            self.next = self.clock.now() + PERIOD;
            self.read();
        }
        &self.latest
    }

    fn read(&mut self) {
        let clock = self.clock;
        let spent = self.counters.each_mut().map(|side| side.read(clock));
        let target = &self.sides.target;
        let mut balances = self
            .balance
            .take()
            .map_or_else(Vec::new, BalanceMeter::finish);
        if !balances.is_empty() {
            let server = spent[1].as_ref();
            let counted = Counted {
                target,
                demand: server.map(|own| &own.demand),
                readings: server.map(|own| &own.readings),
            };
            complete_balances(&mut balances, &[counted]);
        }
        self.balance = Some(BalanceMeter::start(
            iter::once(target),
            self.sides.is_one_of_several,
        ));
        let [client, server] = spent.map(|own| Some(own?.cores));
        self.latest = CpuUse {
            cores: [
                client.or_else(|| cores_of(&balances, |own| own.client)),
                server.or_else(|| cores_of(&balances, |own| own.server)),
            ],
            balances: balances.iter().filter_map(in_words).collect(),
        };
    }
}

/// Returns the cores that a side without counters kept busy, if its processes are known.
fn cores_of(balances: &[Balance], side: fn(&Balance) -> Option<SideUse>) -> Option<f64> {
    balances
        .iter()
        .find_map(|own| Some(side(own)?.cpu_seconds / own.window_seconds))
}

/// One side's counters.
struct SideCounters {
    /// `None` for a side that has none, or did not answer.
    probe: Option<Probe>,
    /// The last reading, and its time.
    last: Option<(u64, Reading)>,
}

/// What a side used between two readings.
struct Spent {
    readings: (Reading, Reading),
    demand: ServerDemand,
    cores: f64,
}

impl SideCounters {
    fn new(source: ServerSource) -> Self {
        Self {
            probe: (source != ServerSource::Nowhere).then(|| Probe::new(source)),
            last: None,
        }
    }

    /// Returns what it used since the last reading.
    fn read(&mut self, clock: Monotonic) -> Option<Spent> {
        let Ok(reading) = self.probe.as_ref()?.read() else {
            // A server that has failed to answer once is not asked again.
            self.probe = None;
            return None;
        };
        let now = clock.now();
        let (then, before) = self.last.replace((now, reading.clone()))?;
        let demand = before.demand_until(&reading, 1).ok()??;
        Some(Spent {
            cores: demand.cpu_seconds * 1e9 / (now - then).max(1) as f64,
            demand,
            readings: (before, reading),
        })
    }
}
