//! The only file of the client that reads the time.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Where times come from, in nanoseconds since the clock's own origin. All workers of a run share one origin.
pub trait Clock: Clone + 'static {
    /// Now.
    fn now(&self) -> u64;
    /// The runtime's form of a time, for its timers.
    fn instant(&self, nanoseconds: u64) -> tokio::time::Instant;
}

/// The system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    /// A clock that is at 0 now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn instant(&self, nanoseconds: u64) -> tokio::time::Instant {
        (self.origin + Duration::from_nanos(nanoseconds)).into()
    }
}

/// A time in the future.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// So long from now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// How long it still is.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// CPU time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// The time of day, as RFC 3339 in UTC.
pub fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A clock that stands still until it is moved, for tests.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub struct Manual(std::rc::Rc<std::cell::Cell<u64>>);

#[cfg(test)]
impl Manual {
    /// Moves it on.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.set(self.0.get() + nanoseconds);
    }
}

#[cfg(test)]
impl Clock for Manual {
    fn now(&self) -> u64 {
        self.0.get()
    }

    fn instant(&self, _nanoseconds: u64) -> tokio::time::Instant {
        // Far enough that no timer of a test fires.
        Monotonic::start().instant(3_600_000_000_000)
    }
}
