//! Waits until a request is due, to within microseconds: tokio's own timers have steps of 1 ms.

use std::time::Duration;

use nix::{
    errno::Errno,
    sys::{
        time::TimeSpec,
        timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
    },
};
use tokio::{io::AsyncReadExt, net::unix::pipe, task::yield_now};

use crate::clock::Clock;

/// Longest lateness of the timer that is made up for by waking early, in nanoseconds.
const MOST_EARLY: u64 = 100_000;

/// A kernel timer in the runtime's event loop.
#[derive(Debug)]
pub struct Pacer<C> {
    clock: C,
    timer: TimerFd,
    expired: pipe::Receiver,
    /// The runtime polls all the time anyway.
    busy: bool,
    /// Smoothed lateness of the timer, in nanoseconds. It is set to expire earlier by as much, and
    /// the rest is spent polling.
    late: u64,
}

impl<C: Clock> Pacer<C> {
    /// Returns a pacer for the current runtime.
    ///
    /// # Errors
    /// If the system refuses a timer.
    pub fn new(clock: C, busy: bool) -> std::io::Result<Self> {
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        // A timer's descriptor is read like a pipe's, which is all that the runtime needs.
        let expired = pipe::Receiver::from_owned_fd_unchecked(
            std::os::fd::AsFd::as_fd(&timer).try_clone_to_owned()?,
        )?;
        Ok(Self {
            clock,
            timer,
            expired,
            busy,
            late: MOST_EARLY / 2,
        })
    }

    /// Waits until `due`, in nanoseconds on the run's clock.
    pub async fn wait_until(&mut self, due: u64) {
        let now = self.clock.now();
        if !self.busy && due.saturating_sub(now) > self.late {
            let wake = due - self.late;
            if self.sleep(wake - now).await.is_ok() {
                let late = self.clock.now().saturating_sub(wake);
                self.late = (self.late * 7 + late.min(MOST_EARLY)) / 8;
            }
        }
        while self.clock.now() < due {
            yield_now().await;
        }
    }

    async fn sleep(&mut self, nanoseconds: u64) -> std::io::Result<()> {
        let length = TimeSpec::from_duration(Duration::from_nanos(nanoseconds.max(1)));
        let set = self
            .timer
            .set(Expiration::OneShot(length), TimerSetTimeFlags::empty());
        set.map_err(|errno: Errno| std::io::Error::from(errno))?;
        // The number of expirations, as eight bytes.
        self.expired.read_exact(&mut [0; 8]).await.map(drop)
    }
}
