//! The processor time of client and server, second by second.

use std::{
    io, process,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use crate::{
    clock::{Clock, Monotonic},
    probe::metrics::{Probe, Reading, ServerSource},
};

/// The time between two readings.
const PERIOD: Duration = Duration::from_secs(1);

/// Cores that a side keeps busy; `None` where it is not known.
pub(super) type Cores = Option<f64>;

/// Reads the processor time of both sides on a thread of its own, until it is dropped.
#[derive(Debug)]
pub(super) struct CpuMeter {
    latest: Arc<Mutex<[Cores; 2]>>,
    /// Its end ends the thread.
    _stop: Sender<()>,
}

impl CpuMeter {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(super) fn start(server: &ServerSource) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let latest = Arc::new(Mutex::new([None; 2]));
        let shared = Arc::clone(&latest);
        let client = ServerSource::Processes(vec![process::id()]);
        let mut sides = [client, server.clone()].map(Side::new);
        thread::Builder::new()
            .name("live-cpu".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    let cores = sides.each_mut().map(Side::read);
                    *shared.lock().unwrap_or_else(PoisonError::into_inner) = cores;
                }
            })?;
        Ok(Self {
            latest,
            _stop: stop,
        })
    }

    /// Returns the cores that client and server kept busy between the last two readings.
    pub(super) fn latest(&self) -> [Cores; 2] {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One side's counters.
struct Side {
    /// `None` for a side that has none, or did not answer.
    probe: Option<Probe>,
    /// The last reading, and its time.
    last: Option<(u64, Reading)>,
    clock: Monotonic,
}

impl Side {
    fn new(source: ServerSource) -> Self {
        Self {
            probe: (source != ServerSource::Nowhere).then(|| Probe::new(source)),
            last: None,
            clock: Monotonic::start(),
        }
    }

    /// Returns the cores that it kept busy since the last reading.
    fn read(&mut self) -> Cores {
        let Ok(reading) = self.probe.as_ref()?.read() else {
            // A server that has failed to answer once is not asked again.
            self.probe = None;
            return None;
        };
        let now = self.clock.now();
        let (then, before) = self.last.replace((now, reading.clone()))?;
        let demand = before.demand_until(&reading, 1).ok()??;
        Some(demand.cpu_seconds * 1e9 / (now - then).max(1) as f64)
    }
}
