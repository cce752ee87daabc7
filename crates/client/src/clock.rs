//! The only file of the client that reads the time.

use std::{
    env, fmt,
    str::FromStr,
    sync::LazyLock,
    time::{Duration, Instant, SystemTime},
};

use netping_protocol::units;
use nix::time::{ClockId, clock_gettime};

/// A source of times, in nanoseconds since the clock's origin. All workers of a run share one
/// origin.
pub trait Clock: Clone + 'static {
    /// Returns the current time.
    fn now(&self) -> u64;
}

/// The system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic {
    /// In nanoseconds since the system's own origin.
    origin: u64,
}

impl Monotonic {
    /// Returns a clock that is at 0 now.
    pub fn start() -> Self {
        Self {
            origin: since_boot(),
        }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        since_boot() - self.origin
    }
}

/// Returns what [`Instant`] is made of, whose arithmetic would take longer than the reading itself: every request
/// needs several.
fn since_boot() -> u64 {
    let Ok(time) = clock_gettime(ClockId::CLOCK_MONOTONIC) else {
        unreachable!("every Linux has this clock");
    };
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
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

/// The variable by which tests put a client's time of day forward, such as `10ms`: clocks that
/// disagree cannot be had otherwise on one machine.
const TEST_OFFSET: &str = "NETPING_TEST_CLOCK_OFFSET";

/// Returns the time of day as the kernel has it, in nanoseconds since 1970, UTC: that of its time stamps.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn time_of_day() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, nanos)
}

/// Returns the time of day.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn wall() -> SystemTime {
    static OFFSET: LazyLock<Duration> = LazyLock::new(|| {
        let given = env::var(TEST_OFFSET).ok();
        let offset = given.and_then(|text| humantime::parse_duration(&text).ok());
        offset.unwrap_or_default()
    });
    SystemTime::now() + *OFFSET
}

/// A time of day, in nanoseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Returns the present.
    pub fn now() -> Self {
        let since_1970 = wall().duration_since(SystemTime::UNIX_EPOCH);
        Self(since_1970.map_or(0, nanos))
    }

    fn read(text: &str) -> Option<Self> {
        if let Some(time) = text.strip_prefix('+') {
            return Some(Self::now().after(units::time(time).ok()?));
        }
        if let Ok(nanoseconds) = text.parse() {
            return Some(Self(nanoseconds));
        }
        let time = humantime::parse_rfc3339(text).ok()?;
        let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Self(nanos(since_1970)))
    }

    /// Returns the nanoseconds since 1970.
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the time left until then, or the time since.
    ///
    /// # Errors
    /// The time since, if it is past.
    pub fn left(self) -> Result<Duration, Duration> {
        let now = Self::now().0;
        let left = self.0.checked_sub(now).map(Duration::from_nanos);
        left.ok_or_else(|| Duration::from_nanos(now - self.0))
    }

    /// Returns the moment that is `time` after this one.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(nanos(time)))
    }

    /// Returns the moment that is `time` before this one.
    #[must_use]
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(time)))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl FromStr for Moment {
    type Err = String;

    /// Reads RFC 3339 in UTC, nanoseconds since 1970, or a time from now on, such as `+5s`.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text).ok_or_else(|| {
            "a moment looks like 2026-01-31T12:00:00Z, 1769860800000000000 (nanoseconds since 1970) or +5s"
                .to_owned()
        })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.0);
        humantime::format_rfc3339_millis(time).fmt(f)
    }
}

/// Compares the time of day with the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct TimeOfDay {
    monotonic: Monotonic,
    begun: Moment,
}

/// Largest drift between the clocks, in nanoseconds per second of a run: NTP slews at most 500
/// us/s.
const SLEW: u64 = 500_000;

impl TimeOfDay {
    /// Begins now.
    pub fn start() -> Self {
        Self {
            monotonic: Monotonic::start(),
            begun: Moment::now(),
        }
    }

    /// Returns one that began at `moment`, which is not long past.
    pub fn since(moment: Moment) -> Self {
        let Monotonic { origin } = Monotonic::start();
        let ago = moment.left().err().map_or(0, nanos);
        Self {
            monotonic: Monotonic {
                origin: origin.saturating_sub(ago),
            },
            begun: moment,
        }
    }

    /// Returns the time since the beginning, in nanoseconds.
    pub fn elapsed(self) -> u64 {
        self.monotonic.now()
    }

    /// Returns the time of day `elapsed` after the beginning, in nanoseconds since 1970, UTC;
    /// `None` if the clock is set to before 1970.
    pub fn after(self, elapsed: Duration) -> Option<u64> {
        (self.begun.0 > 0).then(|| self.begun.after(elapsed).0)
    }

    /// Returns the step of the time of day since the beginning, in nanoseconds; 0 if it was at most
    /// slewed.
    pub fn step(self) -> i64 {
        let monotonic = self.elapsed();
        let wall = Moment::now().0.cast_signed() - self.begun.0.cast_signed();
        let step = wall - monotonic.cast_signed();
        let allowed = 10_000_000 + monotonic / 1_000_000_000 * SLEW;
        let was_set = step.unsigned_abs() > allowed;
        if was_set { step } else { 0 }
    }
}

/// Returns the time of day in UTC, as RFC 3339 has it.
pub fn timestamp() -> String {
    humantime::format_rfc3339_seconds(wall()).to_string()
}

/// A clock that stands still until it is moved, for tests and simulations.
#[cfg(any(test, feature = "simulation"))]
#[derive(Debug, Clone, Default)]
pub struct Manual(std::rc::Rc<std::cell::Cell<u64>>);

#[cfg(any(test, feature = "simulation"))]
impl Manual {
    /// Moves it on.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.set(self.0.get() + nanoseconds);
    }
}

#[cfg(any(test, feature = "simulation"))]
impl Clock for Manual {
    fn now(&self) -> u64 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_in_each_of_its_forms() {
        let moment: Moment = "2026-01-31T12:00:00.25Z".parse().unwrap();
        assert_eq!("1769860800250000000".parse(), Ok(moment));
        assert_eq!(moment.to_string(), "2026-01-31T12:00:00.250Z");
        assert_eq!(
            moment
                .after(Duration::from_secs(5))
                .before(Duration::from_secs(5)),
            moment
        );
        assert!("+1h".parse::<Moment>().unwrap().left().is_ok());
        assert!("1".parse::<Moment>().unwrap().left().is_err());
        for wrong in ["", "+", "noon", "2026-01-31", "+5", "-5s"] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }
}
