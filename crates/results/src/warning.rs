//! Warnings about a step's numbers, each with its remedy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::format;

/// Upper bound of a reported drift: the drift of a rate that begins at 0 has no finite share.
pub(crate) const MOST_DRIFT: f64 = 10.0;

/// A reason why a number may mislead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Warning {
    /// The client's own cores are full: the numbers are the client's, not the server's.
    ClientBound {
        /// The CPU time of the busiest worker, as a share of the window.
        busiest_worker: f64,
    },
    /// Requests of an open loop started later than they were due.
    BehindSchedule {
        /// The median lag, in nanoseconds.
        lag_p50: Option<u64>,
        /// Requests that were due but never sent.
        not_sent: u64,
        /// Verified replies as a share of what was planned.
        achieved: f64,
    },
    /// The rate was not level over the window.
    NotSteady {
        /// The rate of the window's last third against that of its first, less 1; at most 10.
        drift: f64,
        /// True where an automatic warm-up found no steady rate in its time.
        #[serde(default)]
        warmup_failed: bool,
    },
    /// There are too few samples for the 99th percentile.
    TooFewSamples {
        /// Their number.
        samples: u64,
    },
    /// A bulk stream has too few runs to estimate their variation.
    FewRuns {
        /// Their number.
        runs: u64,
    },
    /// Requests, or runs of a bulk stream, failed.
    Errors {
        /// The share of requests without a verified reply, or of runs in which not every byte
        /// arrived.
        share: f64,
    },
    /// The callers were not all in the server's hands all the time: N differs from X * R (Little's
    /// law).
    LittlesLaw {
        /// Callers (N).
        callers: f64,
        /// Rate times mean time (X * R).
        in_system: f64,
    },
    /// Client and server share a machine, and so its cores.
    SharedHost,
    /// The time of day was set while the step ran, so that timestamps from other sources do not
    /// fit.
    ClockStep {
        /// The change, in nanoseconds.
        nanoseconds: i64,
    },
}

impl Warning {
    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => "CLIENT_BOUND",
            Self::BehindSchedule { .. } => "BEHIND_SCHEDULE",
            Self::NotSteady { .. } => "NOT_STEADY",
            Self::TooFewSamples { .. } => "TOO_FEW_SAMPLES",
            Self::FewRuns { .. } => "FEW_RUNS",
            Self::Errors { .. } => "ERRORS",
            Self::LittlesLaw { .. } => "LITTLES_LAW",
            Self::SharedHost => "SHARED_HOST",
            Self::ClockStep { .. } => "CLOCK_STEP",
        }
    }

    /// Returns the remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => {
                "give the client more --workers (a bulk stream has one) or faster cores, or use several clients"
            }
            Self::BehindSchedule { .. } => {
                "if the server is not full, give more callers (-c) or --workers; otherwise this rate is too high for it"
            }
            Self::NotSteady { .. } => {
                "warm up longer (--warmup), measure longer (-d), and look for other load"
            }
            Self::TooFewSamples { .. } => "measure longer (-d, --requests or --samples)",
            Self::FewRuns { .. } => "measure more often (--runs)",
            Self::Errors { .. } => {
                "fix the failures first: failed requests cost less than served ones"
            }
            // More than there are: requests from before the window weigh in it.
            Self::LittlesLaw { callers, in_system } if in_system > callers => {
                "the server stalled at the window's edge, and the window is too short for that: measure longer (-d)"
            }
            Self::LittlesLaw { .. } => {
                "the client spent time of its own between requests: many callers need more --workers and more requests, a \
                 single one a quieter machine"
            }
            Self::SharedHost => {
                "compare targets with each other; for absolute numbers, put the client on another host"
            }
            Self::ClockStep { .. } => {
                "measure again without setting the clock; netping's own times are not affected"
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientBound { busiest_worker } => {
                write!(
                    f,
                    "the busiest client worker used {:.0}% of its core",
                    busiest_worker * 100.0
                )
            }
            Self::BehindSchedule {
                lag_p50,
                not_sent,
                achieved,
            } => {
                let lag = format::nanos_as_micros(*lag_p50);
                let achieved = achieved * 100.0;
                write!(
                    f,
                    "{achieved:.1}% of the planned rate, median lag {lag} us, {not_sent} requests not sent"
                )
            }
            Self::NotSteady {
                drift,
                warmup_failed,
            } => {
                if *warmup_failed {
                    f.write_str("the warm-up found no steady rate; ")?;
                }
                let more = if *drift >= MOST_DRIFT { " or more" } else { "" };
                write!(
                    f,
                    "the last third of the window was {:+.1}%{more} in rate against the first",
                    drift * 100.0
                )
            }
            Self::TooFewSamples { samples } => write!(f, "{samples} samples are too few for p99"),
            Self::FewRuns { runs } => {
                write!(f, "{runs} runs are too few to estimate how much they vary")
            }
            Self::Errors { share } => write!(
                f,
                "{} of the requests or runs failed",
                format::share(*share)
            ),
            Self::LittlesLaw { callers, in_system } => {
                write!(f, "N = {callers} callers, but X * R = {in_system:.2}")
            }
            Self::SharedHost => f.write_str("client and server share this machine's cores"),
            Self::ClockStep { nanoseconds } => {
                write!(
                    f,
                    "the time of day was set by {:.3} ms during the step",
                    *nanoseconds as f64 / 1e6
                )
            }
        }
    }
}
