//! A look at the machine itself: how late it wakes a program that sleeps for a millisecond at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netping_benches::processes::{CLIENT, Said, time_of_day, wait};
use netping_system::cores;

/// The time that the watch sleeps.
const SLEEP: Duration = Duration::from_millis(1);

/// Lateness of the machine itself that may delay a hundredth of a client's requests, in seconds.
const LATE: f64 = 0.01;

/// Runs at most.
const MOST: usize = 5;

/// Returns the first run in which the machine was not late on the client's core, whose load must leave
/// it idle for most of the time.
pub fn undisturbed(run: impl Fn() -> Said) -> Said {
    for _ in 1..MOST {
        let watch = Watch::start();
        let said = run();
        let late = watch.end();
        if late < LATE {
            return said;
        }
        eprintln!("run again: the machine was late by {:.1} ms", late * 1e3);
    }
    run()
}

/// A thread on the client's core that sleeps again and again.
struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<f64>,
}

impl Watch {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            cores::confine(&cores::own()[CLIENT..=CLIENT]);
            let mut latest = 0.0;
            while !ended.load(Ordering::Relaxed) {
                let begun = time_of_day();
                wait(SLEEP);
                latest = f64::max(latest, time_of_day() - begun - SLEEP.as_secs_f64());
            }
            latest
        });
        Self { is_over, thread }
    }

    /// Ends it; returns the longest time by which it woke late, in seconds.
    fn end(self) -> f64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a thread that does not panic")
    }
}
