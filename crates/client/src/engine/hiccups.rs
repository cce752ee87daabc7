//! A thread that only sleeps and wakes up, to see what the machine adds to every wake-up.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netping_measure::{
    cost::Hiccups,
    distribution::is_backed,
    histogram::{histogram, record},
};

use crate::clock::{Clock, Monotonic};

/// The length of a sleep.
const SLEEP: Duration = Duration::from_millis(1);

/// Records by how much a thread wakes up late, as jHiccup does. It runs from its start until
/// [`HiccupMeter::finish`], and uses less than a hundredth of a core.
#[derive(Debug)]
pub struct HiccupMeter {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Hiccups>,
}

impl HiccupMeter {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(clock: Monotonic) -> io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = thread::Builder::new()
            .name("hiccups".to_owned())
            .spawn(move || {
                let mut late = histogram();
                while !end.load(Ordering::Relaxed) {
                    let before = clock.now();
                    thread::sleep(SLEEP);
                    let slept = clock.now() - before;
                    record(&mut late, slept.saturating_sub(SLEEP.as_nanos() as u64));
                }
                let quantile = |percent: f64| {
                    is_backed(late.len(), percent).then(|| late.value_at_quantile(percent / 100.0))
                };
                Hiccups {
                    p99_ns: quantile(99.0),
                    p999_ns: quantile(99.9),
                    max_ns: late.max(),
                }
            })?;
        Ok(Self { ended, thread })
    }

    /// Ends the thread; returns what it saw, `None` if it failed.
    pub fn finish(self) -> Option<Hiccups> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}
