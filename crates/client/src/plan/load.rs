//! The requests of a plan.

use std::{num::NonZeroU64, time::Duration};

use netping_protocol::frame::Reply;

use crate::transport::Kind;

/// The requests that a server gets, and the callers and connections that they come from.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The transport that carries requests.
    pub kind: Kind,
    /// The process by which requests come about.
    pub arrival: Arrival,
    /// Bursts of an open loop; `None`: its rate stays the same.
    pub bursts: Option<Bursts>,
    /// The callers that a due request of an open loop is for.
    pub assign: Assign,
    /// Limit on the requests of an open loop that are due and wait for a caller.
    pub max_backlog: usize,
    /// Callers, each with one request outstanding.
    pub callers: usize,
    /// Connections; for a protocol without multiplexing, one for each caller.
    pub connections: usize,
    /// Requests on a connection before it is opened anew; `None`: it is kept.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Bytes of payload in each of netping's own requests.
    pub payload: usize,
    /// The reply that each request asks for.
    pub reply: Reply,
    /// Time limit of a request, and of opening a connection.
    pub timeout: Duration,
}

impl Load {
    /// Returns the planned rate on average, in requests per second, where that between bursts is that of `arrival`;
    /// `None` in a closed loop.
    pub fn mean_rate(&self, arrival: Arrival) -> Option<f64> {
        let rate = arrival.rate()?;
        Some(self.bursts.map_or(rate, |bursts| bursts.mean_rate(rate)))
    }

    /// Returns a closed loop of one caller that has 4 bytes echoed on one connection.
    pub fn one_caller(kind: Kind) -> Self {
        Self {
            kind,
            arrival: Arrival::Closed,
            bursts: None,
            assign: Assign::Any,
            max_backlog: 0,
            callers: 1,
            connections: 1,
            requests_per_connection: None,
            payload: 4,
            reply: Reply::Echo,
            timeout: Duration::from_secs(5),
        }
    }
}

/// The callers that a due request of an open loop is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assign {
    /// Any caller that is free.
    Any,
    /// Those of one connection, known beforehand.
    Fixed,
}

/// The process by which requests come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// Closed loop: a caller sends its next request when it has the last reply.
    Closed,
    /// Requests are due at equal distances; the rate in requests per second.
    Constant(f64),
    /// Requests are due at random, independently of each other: the gaps between them are
    /// exponentially distributed.
    Poisson {
        /// Mean rate, in requests per second.
        rate: f64,
        /// Seed of the random generator; the same seed gives the same times.
        seed: u64,
    },
}

/// Stretches of an open loop with another rate. Each begins half-way through a cycle, the first of which begins with the
/// warm-up's end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// The rate in them, as a multiple of that between them.
    pub factor: f64,
    /// The length of each.
    pub length: Duration,
    /// The length of a cycle, at least twice that of a burst.
    pub every: Duration,
    /// The time before the first cycle.
    pub after: Duration,
}

impl Bursts {
    /// Returns the time at which a request is due that would be due at `time` without bursts, in nanoseconds since the
    /// schedule's beginning: the times without bursts pass `factor` times as fast in a burst (time rescaling of a point
    /// process).
    pub fn due(&self, time: f64) -> f64 {
        let [length, every, after] =
            [self.length, self.every, self.after].map(|time| time.as_nanos() as f64);
        let Some(since) = Some(time - after).filter(|since| *since > 0.0) else {
            return time;
        };
        let before = every / 2.0;
        let stretched = length * self.factor;
        let cycle = every - length + stretched;
        let cycles = (since / cycle).floor();
        let within = since - cycles * cycle;
        let in_burst = (within - before).clamp(0.0, stretched);
        after + cycles * every + (within - in_burst) + in_burst / self.factor
    }

    /// Returns the mean rate over whole cycles, where that between bursts is `rate`.
    pub fn mean_rate(&self, rate: f64) -> f64 {
        let share = self.length.as_secs_f64() / self.every.as_secs_f64();
        rate * (1.0 + share * (self.factor - 1.0))
    }
}

impl Arrival {
    /// Returns the planned rate, in requests per second; `None` in a closed loop.
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant(rate) | Self::Poisson { rate, .. } => Some(rate),
        }
    }

    /// Returns its name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Constant(_) => "constant",
            Self::Poisson { .. } => "poisson",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_has_its_rate_in_the_middle_of_each_cycle() {
        let bursts = Bursts {
            factor: 5.0,
            length: Duration::from_secs(2),
            every: Duration::from_secs(10),
            after: Duration::from_secs(3),
        };
        let base = 100.0;
        let due = (0..10_000).map(|number| bursts.due(f64::from(number) * 1e9 / base) / 1e9);
        let due: Vec<f64> = due.collect();
        assert!(due.is_sorted());
        let count = |from: f64, to: f64| {
            let within = |time: &&f64| (from..to).contains(*time);
            due.iter().filter(within).count()
        };
        for (from, to, expected) in [
            (0.0, 3.0, 300),
            (3.0, 8.0, 500),
            (8.0, 10.0, 1000),
            (10.0, 18.0, 800),
            (18.0, 20.0, 1000),
            (20.0, 28.0, 800),
        ] {
            let found = count(from - 1e-6, to - 1e-6);
            assert!(found.abs_diff(expected) <= 1, "{from}: {found}");
        }
        assert!((bursts.mean_rate(base) - 180.0).abs() < 1e-9);
        // Fewer requests, too.
        let pause = Bursts {
            factor: 0.5,
            ..bursts
        };
        assert!((pause.due(13e9) - 14e9).abs() < 1.0, "{}", pause.due(13e9));
    }
}
