//! The arrival process of a plan.

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
