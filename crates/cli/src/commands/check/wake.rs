//! The time that a sleeping thread needs to run again: every reply waits for it, on either side, where nothing polls.

use std::{
    hint, io,
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Release},
    },
    thread::{self, Thread},
    time::Duration,
};

use netping_client::clock::{Clock, Monotonic};
use netping_measure::{
    counts::Counts,
    distribution::Distribution,
    histogram::{Histogram, histogram, record},
};
use netping_system::cores;

/// Time between two wake-ups, in which the CPU falls asleep.
const ASLEEP: Duration = Duration::from_millis(1);

/// Wake-ups that are measured: enough for a p99.
const COUNT: usize = 1_000;

/// Measures the time from when one thread wakes another until that runs, each on its CPU; or, with `busy`, until one
/// that never sleeps has noticed.
///
/// # Errors
/// The system refused a thread.
pub fn times(cpus: [usize; 2], busy: bool) -> io::Result<Distribution> {
    let pair = Pair {
        clock: Monotonic::start(),
        woken: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let sleeper = thread::Builder::new().spawn_scoped(scope, || pair.sleep(cpus[0], busy))?;
        let thread = sleeper.thread().clone();
        // Not by the calling thread, which stays where it may run.
        let waker = {
            let (pair, thread) = (&pair, thread.clone());
            thread::Builder::new().spawn_scoped(scope, move || pair.wake(cpus[1], &thread))
        };
        if let Err(error) = waker {
            pair.end(&thread);
            return Err(error);
        }
        let times = sleeper.join();
        let times = times.map_err(|_| io::Error::other("a thread ended unexpectedly"))?;
        Ok(Distribution::of(&Counts::from(&times)))
    })
}

/// Two threads, of which one wakes the other.
struct Pair {
    clock: Monotonic,
    /// When the sleeper was woken last; 0 once it has seen that.
    woken: AtomicU64,
    is_over: AtomicBool,
}

impl Pair {
    fn sleep(&self, cpu: usize, busy: bool) -> Histogram {
        cores::pin(cpu);
        let mut times = histogram();
        while !self.is_over.load(Acquire) {
            match self.woken.swap(0, Acquire) {
                0 if busy => hint::spin_loop(),
                0 => thread::park(),
                woken => record(&mut times, self.clock.now() - woken),
            }
        }
        times
    }

    fn wake(&self, cpu: usize, sleeper: &Thread) {
        cores::pin(cpu);
        for _ in 0..COUNT {
            self.rest();
            self.woken.store(self.clock.now().max(1), Release);
            sleeper.unpark();
        }
        self.rest();
        self.end(sleeper);
    }

    /// Sleeps, until the sleeper has seen the last wake-up too: one that took long counts like the others.
    fn rest(&self) {
        thread::sleep(ASLEEP);
        while self.woken.load(Acquire) != 0 {
            thread::sleep(ASLEEP);
        }
    }

    fn end(&self, sleeper: &Thread) {
        self.is_over.store(true, Release);
        sleeper.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_woken_on_the_same_cpu_too() {
        for busy in [false, true] {
            let cpu = cores::own()[0];
            assert_eq!(times([cpu, cpu], busy).unwrap().count, COUNT as u64);
        }
    }
}
