//! Load that each request causes beyond its reply: `--delay` and `--work`.

use std::{thread, time::Duration};

use netping_system::cpu;

use crate::{
    args::{LoadArgs, WorkOn},
    clock,
};

/// Waits and burns CPU time once per request, as the flags ask.
#[derive(Debug, Clone, Copy)]
pub struct SyntheticLoad {
    work: Duration,
    on_pool: bool,
    delay: Duration,
}

impl SyntheticLoad {
    /// Creates the load that `args` ask for.
    pub fn new(args: &LoadArgs) -> Self {
        Self {
            work: args.work,
            on_pool: args.work_on == WorkOn::BlockingPool,
            delay: args.delay,
        }
    }

    /// Applies the load to a task.
    pub async fn apply(self) {
        if !self.delay.is_zero() {
            async_io::Timer::after(self.delay).await;
        }
        if self.work.is_zero() {
            return;
        }
        if self.on_pool {
            // It fails only when the runtime shuts down, and then the request is lost anyway.
            let _ = tokio::task::spawn_blocking(move || burn(self.work)).await;
        } else {
            burn(self.work);
        }
    }

    /// Applies the load to the calling thread.
    pub fn apply_blocking(self) {
        if !self.delay.is_zero() {
            thread::sleep(self.delay);
        }
        if !self.work.is_zero() {
            burn(self.work);
        }
    }
}

/// Approximate time of reading the thread's CPU clock: one system call.
const CLOCK_READ: Duration = Duration::from_micros(1);

/// Uses `work` of this thread's CPU time; time in which the thread is preempted does not count.
/// Reads the CPU clock only once the wall clock says that the work may be done, and not for a
/// remainder shorter than reading it takes.
fn burn(work: Duration) {
    // Before the CPU clock is read, which is part of the work.
    let mut until = clock::now() + work;
    let end = cpu::thread_time() + work;
    loop {
        while clock::now() < until {
            std::hint::spin_loop();
        }
        let left = end.saturating_sub(cpu::thread_time());
        if left < CLOCK_READ {
            return;
        }
        until = clock::now() + left;
    }
}
