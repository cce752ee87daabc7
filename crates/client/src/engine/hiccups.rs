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
    histogram::{Histogram, histogram, record_n},
};

use crate::clock::{Clock, Monotonic};

/// The shortest sleep, in nanoseconds: 1 ms.
const SHORTEST: u64 = 1_000_000;

/// The longest sleep, in nanoseconds: 4 ms.
const LONGEST: u64 = 4_000_000;

/// Sleeps take this part of the time so far: a window of a second has enough of them for a p99, and a longer
/// one does not pay for many more, each of which takes CPU time from a worker.
const PARTS: u64 = 1000;

/// Records by how much a thread wakes up late, as jHiccup does. It runs from its start until
/// [`HiccupMeter::finish`], and uses less than a hundredth of a core.
#[derive(Debug)]
pub struct HiccupMeter {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Hiccups>,
}

impl HiccupMeter {
    /// Starts the thread, which records into this.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(clock: Monotonic, mut lateness: Lateness) -> io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = thread::Builder::new()
            .name("hiccups".to_owned())
            .spawn(move || {
                let begun = clock.now();
                let mut before = begun;
                while !end.load(Ordering::Relaxed) {
                    let sleep = next_sleep(before - begun);
                    thread::sleep(Duration::from_nanos(sleep));
                    let after = clock.now();
                    lateness.record(sleep, after - before);
                    before = after;
                }
                lateness.finish()
            })?;
        Ok(Self { ended, thread })
    }

    /// Ends the thread; returns what it saw, `None` if it failed.
    pub fn finish(self) -> Option<Hiccups> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}

/// Returns the length of the sleep that begins so long after the first one, all in nanoseconds.
fn next_sleep(elapsed: u64) -> u64 {
    (elapsed / PARTS).clamp(SHORTEST, LONGEST)
}

/// The lateness of wake-ups, each as often as its sleep is long: so its quantiles are those over the time.
#[derive(Debug)]
pub struct Lateness {
    times: Histogram,
    wake_ups: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            times: histogram(),
            wake_ups: 0,
        }
    }
}

impl Lateness {
    /// Records a wake-up after a sleep that was to take `planned` and took `slept`, in nanoseconds.
    fn record(&mut self, planned: u64, slept: u64) {
        let microseconds = planned / 1000;
        record_n(&mut self.times, slept.saturating_sub(planned), microseconds);
        self.wake_ups += 1;
    }

    fn finish(self) -> Hiccups {
        let quantile = |percent: f64| {
            let is_backed = is_backed(self.wake_ups, percent);
            is_backed.then(|| self.times.value_at_quantile(percent / 100.0))
        };
        Hiccups {
            p99_ns: quantile(99.0),
            p999_ns: quantile(99.9),
            max_ns: self.times.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sleeps for so many seconds, and wakes up `late` nanoseconds late, which depends on the time so far.
    fn slept(seconds: u64, late: impl Fn(u64) -> u64) -> Lateness {
        let (mut lateness, mut now) = (Lateness::default(), 0);
        while now < seconds * 1000 * MS {
            let planned = next_sleep(now);
            let slept = planned + late(now);
            lateness.record(planned, slept);
            now += slept;
        }
        lateness
    }

    #[test]
    fn a_second_has_a_p99_and_a_long_window_few_more_wake_ups() {
        let wake_ups = |seconds| slept(seconds, |_| 0).wake_ups;
        assert_eq!(wake_ups(1), 1000);
        assert!((2300..2500).contains(&wake_ups(4)), "{}", wake_ups(4));
        assert_eq!(wake_ups(24) - wake_ups(4), 5000);
        let first = slept(1, |_| 0).finish();
        assert_eq!((first.p99_ns, first.p999_ns), (Some(0), None));
        assert_eq!(slept(40, |_| 0).finish().p999_ns, Some(0));
    }

    #[test]
    fn quantiles_are_those_of_the_time_however_long_the_sleeps_are() {
        // The first half of a second, with a fifth of all wake-ups, is late: a 20th of the time.
        let lateness = slept(10, |now| if now < 500 * MS { 1000 } else { 10 });
        let late = lateness.times.count_between(900, 1100) as f64 / lateness.times.len() as f64;
        assert!((0.049..0.051).contains(&late), "{late}");
        let seen = lateness.finish();
        assert_eq!((seen.p99_ns, seen.max_ns), (Some(1000), 1000));
    }
}
