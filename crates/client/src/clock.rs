//! The only file of the client that reads the time.

use std::time::{Duration, Instant, SystemTime};

/// A source of times, in nanoseconds since the clock's origin. All workers of a run share one
/// origin.
pub trait Clock: Clone + 'static {
    /// Returns the current time.
    fn now(&self) -> u64;
}

/// The system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    /// Returns a clock that is at 0 now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

/// A time in the future.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Returns the time `duration` from now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// Returns the time left.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Compares the time of day with the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct TimeOfDay {
    monotonic: Monotonic,
    wall: SystemTime,
}

/// Largest drift between the clocks, in nanoseconds per second of a run: NTP slews at most 500
/// us/s.
const SLEW: u64 = 500_000;

impl TimeOfDay {
    /// Begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Self {
        Self {
            monotonic: Monotonic::start(),
            wall: SystemTime::now(),
        }
    }

    /// Returns the time of day `elapsed` after the beginning, in nanoseconds since 1970, UTC;
    /// `None` if the clock is set to before 1970.
    pub fn after(self, elapsed: Duration) -> Option<u64> {
        let since_1970 = self.wall.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        u64::try_from((since_1970 + elapsed).as_nanos()).ok()
    }

    /// Returns the step of the time of day since the beginning, in nanoseconds; 0 if it was at most
    /// slewed.
    pub fn step(self) -> i64 {
        let later = Self::start();
        let monotonic = self.monotonic.now().cast_signed();
        let wall = match later.wall.duration_since(self.wall) {
            Ok(forward) => forward.as_nanos() as i64,
            Err(error) => -(error.duration().as_nanos() as i64),
        };
        let step = wall - monotonic;
        let allowed = 10_000_000 + monotonic.unsigned_abs() / 1_000_000_000 * SLEW;
        if step.unsigned_abs() > allowed {
            step
        } else {
            0
        }
    }
}

/// Returns the time of day in UTC, as RFC 3339 has it.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn timestamp() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
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
}
