//! What a request costs beyond the echo: `--delay` and `--work`.

use std::{thread, time::Duration};

use netping_system::cpu;

use crate::{
    clock,
    options::{EffortArgs, WorkOn},
};

/// Waits and burns CPU time, as the flags say, once for each request.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    work: Duration,
    on_pool: bool,
    delay: Duration,
}

impl Effort {
    /// The effort that `args` ask for.
    pub fn new(args: &EffortArgs) -> Self {
        Self {
            work: args.work,
            on_pool: args.work_on == WorkOn::BlockingPool,
            delay: args.delay,
        }
    }

    /// Spends it in a task.
    pub async fn spend(self) {
        if !self.delay.is_zero() {
            async_io::Timer::after(self.delay).await;
        }
        if self.work.is_zero() {
            return;
        }
        if self.on_pool {
            // It fails only when the runtime shuts down, and then nobody waits for the effort.
            let _ = tokio::task::spawn_blocking(move || burn(self.work)).await;
        } else {
            burn(self.work);
        }
    }

    /// Spends it on this thread.
    pub fn spend_blocking(self) {
        if !self.delay.is_zero() {
            thread::sleep(self.delay);
        }
        if !self.work.is_zero() {
            burn(self.work);
        }
    }
}

/// What it takes to ask for the CPU time that a thread has used, about: a system call.
const ASKING: Duration = Duration::from_micros(1);

/// Uses `work` of this thread's CPU time: being preempted does not count as work. The thread's clock is asked only when, by
/// the wall clock, the work may be done; and not again for less than the asking takes.
fn burn(work: Duration) {
    // Before the thread's clock is asked, which is part of the work.
    let mut until = clock::now() + work;
    let end = cpu::thread_time() + work;
    loop {
        while clock::now() < until {
            std::hint::spin_loop();
        }
        let left = end.saturating_sub(cpu::thread_time());
        if left < ASKING {
            return;
        }
        until = clock::now() + left;
    }
}
