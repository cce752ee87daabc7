//! The processor time of client and server, second by second.

use std::process;

use netping_client::{
    clock::{Clock, Monotonic},
    probe::metrics::{Probe, Reading, ServerSource},
};

/// Nanoseconds between two readings.
const PERIOD: u64 = 1_000_000_000;

/// Cores that a side keeps busy; `None` where it is not known.
pub(super) type Cores = Option<f64>;

/// Reads the processor time of both sides once a second.
pub(super) struct CpuMeter {
    clock: Monotonic,
    next: u64,
    sides: [CpuSide; 2],
    latest: [Cores; 2],
}

impl CpuMeter {
    pub(super) fn new(server: &ServerSource) -> Self {
        let client = ServerSource::Processes(vec![process::id()]);
        Self {
            clock: Monotonic::start(),
            next: 0,
            sides: [client, server.clone()].map(CpuSide::new),
            latest: [None; 2],
        }
    }

    /// Returns the cores that client and server kept busy between the last two readings.
    pub(super) fn cores(&mut self) -> [Cores; 2] {
        if self.clock.now() >= self.next {
            self.next = self.clock.now() + PERIOD;
            let clock = self.clock;
            self.latest = self.sides.each_mut().map(|side| side.read(clock));
        }
        self.latest
    }
}

/// One side's counters.
struct CpuSide {
    /// `None` for a side that has none, or did not answer.
    probe: Option<Probe>,
    /// The last reading, and its time.
    last: Option<(u64, Reading)>,
}

impl CpuSide {
    fn new(source: ServerSource) -> Self {
        Self {
            probe: (source != ServerSource::Nowhere).then(|| Probe::new(source)),
            last: None,
        }
    }

    /// Returns the cores that it kept busy since the last reading.
    fn read(&mut self, clock: Monotonic) -> Cores {
        let Ok(reading) = self.probe.as_ref()?.read() else {
            // A server that has failed to answer once is not asked again.
            self.probe = None;
            return None;
        };
        let now = clock.now();
        let (then, before) = self.last.replace((now, reading.clone()))?;
        let demand = before.demand_until(&reading, 1).ok()??;
        Some(demand.cpu_seconds * 1e9 / (now - then).max(1) as f64)
    }
}
