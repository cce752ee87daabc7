//! Load that each request causes beyond its reply: `--delay` and `--work`.

use std::{
    cell::RefCell,
    hash::{BuildHasher, RandomState},
    thread,
    time::Duration,
};

use netping_system::cpu;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, Exp1};

use crate::{
    args::{Delay, LoadArgs, WorkOn},
    clock,
};

thread_local! {
    static RANDOM: RefCell<ChaCha8Rng> =
        RefCell::new(ChaCha8Rng::seed_from_u64(RandomState::new().hash_one(0)));
}

impl LoadArgs {
    /// Returns true if there is none.
    pub fn is_none(self) -> bool {
        self.delay.mean.is_zero() && self.work.is_zero()
    }

    /// Returns true if the load keeps no task waiting: [`LoadArgs::apply_blocking`] then does the same as
    /// [`LoadArgs::apply`].
    pub fn is_immediate(self) -> bool {
        let burns_here = self.work.is_zero() || self.work_on == WorkOn::Inline;
        self.delay.mean.is_zero() && burns_here
    }

    /// Applies the load to a task.
    pub async fn apply(self) {
        if !self.delay.mean.is_zero() {
            async_io::Timer::after(self.delay.draw()).await;
        }
        if self.work.is_zero() {
            return;
        }
        if self.work_on == WorkOn::BlockingPool {
            // It fails only when the runtime shuts down, and then the request is lost anyway.
            let _ = tokio::task::spawn_blocking(move || burn(self.work)).await;
        } else {
            burn(self.work);
        }
    }

    /// Applies the load to the calling thread.
    pub fn apply_blocking(self) {
        if !self.delay.mean.is_zero() {
            thread::sleep(self.delay.draw());
        }
        if !self.work.is_zero() {
            burn(self.work);
        }
    }
}

impl Delay {
    /// Returns the time to wait before one reply.
    fn draw(self) -> Duration {
        if !self.is_random {
            return self.mean;
        }
        let factor = RANDOM.with_borrow_mut(|random| Exp1.sample(random));
        self.mean.mul_f64(factor)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_delays_have_their_mean_and_spread() {
        RANDOM.set(ChaCha8Rng::seed_from_u64(1));
        let delay: Delay = "exp:5ms".parse().unwrap();
        let drawn: Vec<f64> = (0..20_000)
            .map(|_| delay.draw().as_secs_f64() * 1e3)
            .collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean - 5.0).abs() < 0.15, "{mean}");
        assert!((variance.sqrt() - 5.0).abs() < 0.3, "{variance}");
        let constant: Delay = "5ms".parse().unwrap();
        assert_eq!(constant.draw(), Duration::from_millis(5));
        assert!("exp:".parse::<Delay>().is_err());
    }
}
