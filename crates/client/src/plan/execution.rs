//! The way in which the client runs a plan: how long, and on which threads.

use std::time::Duration;

use netping_results::warning::Subject;

use super::{ClientPart, Together};
use crate::clock::Moment;

/// The phases' lengths and the client's threads.
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings that do not depend on one another"
)]
#[derive(Debug, Clone, Copy)]
pub struct Execution {
    /// The phase before the window, whose requests do not count.
    pub warmup: Warmup,
    /// The longest automatic warm-up.
    pub warmup_max: Duration,
    /// The length of the window.
    pub extent: Extent,
    /// Worker threads; never more than connections.
    pub workers: usize,
    /// Each worker stays on a core of its own.
    pub pin: bool,
    /// Workers poll all the time.
    pub busy_poll: bool,
    /// The client is one of several that measure in step.
    pub in_step: bool,
    /// The moment at which the first request is sent; `None`: once the connections are open, or not known yet.
    pub start_at: Option<Moment>,
    /// The subject of the measurement.
    pub subject: Subject,
    /// Every request is kept, to check the statistics against them.
    pub keep_samples: bool,
    /// Each request is taken apart by the kernel's time stamps.
    pub anatomy: bool,
    /// Instructions and system calls are counted.
    pub perf_events: bool,
    /// The targets that are measured at the same time as this one; `None`: it alone.
    pub together: Option<Together>,
    /// The part that this client has of what several do; `None`: all of it.
    pub part: Option<ClientPart>,
}

/// The phase before the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmup {
    /// This long.
    Time(Duration),
    /// Until the server is steady by the rule MSER-5.
    Auto,
}

/// The length of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This long.
    Time(Duration),
    /// Until this number of requests is issued.
    Requests(u64),
}

impl Default for Execution {
    /// One worker, a short warm-up, and a window without end.
    fn default() -> Self {
        Self {
            warmup: Warmup::Time(Duration::from_millis(200)),
            warmup_max: Duration::from_mins(1),
            extent: Extent::Requests(u64::MAX),
            workers: 1,
            pin: false,
            busy_poll: false,
            in_step: false,
            start_at: None,
            subject: Subject::Server,
            keep_samples: false,
            anatomy: false,
            perf_events: false,
            together: None,
            part: None,
        }
    }
}

impl Execution {
    /// Returns the longest time that a step takes from its first request to the last reply, which comes
    /// within `timeout`; without what is not known beforehand.
    pub fn longest(&self, timeout: Duration) -> Duration {
        let known = [self.warmup.duration(), self.extent.duration()];
        known.into_iter().flatten().sum::<Duration>() + timeout
    }
}

impl Warmup {
    /// Returns its length, if known beforehand.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Time(duration) => Some(duration),
            Self::Auto => None,
        }
    }
}

impl Extent {
    /// Returns its length, if known beforehand.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Time(duration) => Some(duration),
            Self::Requests(_) => None,
        }
    }

    /// Returns the number of requests that ends it, if that is what does.
    pub fn requests(self) -> Option<u64> {
        match self {
            Self::Time(_) => None,
            Self::Requests(requests) => Some(requests),
        }
    }
}
