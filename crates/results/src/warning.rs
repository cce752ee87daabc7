//! Warnings about a step's numbers, each with its remedy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::format;

/// Upper bound of a reported drift: the drift of a rate that begins at 0 has no finite share.
pub(crate) const MOST_DRIFT: f64 = 10.0;

/// The names of all warnings.
pub const NAMES: [&str; 17] = [
    "CLIENT_BOUND",
    "CLIENT_STARVED",
    "CLIENT_THROTTLED",
    "NO_CALLER_FREE",
    "BEHIND_SCHEDULE",
    "NOT_STEADY",
    "STALLED",
    "SERVER_GONE",
    "SERVER_RESTARTED",
    "NOISY",
    "TOO_FEW_SAMPLES",
    "FEW_RUNS",
    "ERRORS",
    "LITTLES_LAW",
    "BIMODAL",
    "SHARED_HOST",
    "CLOCK_STEP",
];

/// A reason why a number may mislead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "name", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Warning {
    /// The client's own cores are full: the numbers are the client's, not the server's.
    ClientBound {
        /// The CPU time of the busiest worker, as a share of the window.
        busiest_worker: f64,
    },
    /// The client was late to send requests of an open loop though a caller was free: other
    /// programs, or the hypervisor, had its cores.
    ClientStarved {
        /// The 99th percentile of that lateness, in nanoseconds.
        #[serde(rename = "late_p99_ns")]
        late_p99: u64,
        /// The 99th percentile of the response time, in nanoseconds.
        #[serde(rename = "response_p99_ns")]
        response_p99: u64,
    },
    /// The limit on the CPU time of the client's cgroup stopped it.
    ClientThrottled {
        /// The time for which it did, over all cores, in seconds.
        seconds: f64,
    },
    /// Requests of an open loop waited because every caller was busy.
    NoCallerFree {
        /// The 99th percentile of that wait, in nanoseconds.
        #[serde(rename = "wait_p99_ns")]
        wait_p99: u64,
        /// The 99th percentile of the response time, in nanoseconds.
        #[serde(rename = "response_p99_ns")]
        response_p99: u64,
    },
    /// Requests of an open loop started later than they were due.
    BehindSchedule {
        /// The median lag, in nanoseconds.
        #[serde(rename = "lag_p50_ns")]
        lag_p50: Option<u64>,
        /// Requests that were due but never sent.
        not_sent: u64,
        /// Verified replies as a share of what was planned.
        achieved: f64,
    },
    /// The rate was not level over the window.
    NotSteady {
        /// The rate of a stretch of the window against that of the rest, less 1; at most 10.
        drift: f64,
        /// The stretch's start, in seconds of the window.
        #[serde(rename = "from_seconds", default)]
        from: Option<f64>,
        /// Its end.
        #[serde(rename = "to_seconds", default)]
        to: Option<f64>,
        /// True where an automatic warm-up found no steady rate in its time.
        #[serde(default)]
        warmup_failed: bool,
    },
    /// For a while no reply came, though there were requests and replies come quickly otherwise.
    Stalled {
        /// When that began, in seconds of the window.
        #[serde(rename = "at_seconds")]
        at: f64,
        /// Its length, in seconds.
        seconds: f64,
    },
    /// From some time on no reply came.
    ServerGone {
        /// That time, in seconds of the window.
        #[serde(rename = "since_seconds")]
        since: f64,
    },
    /// The server was restarted during the step.
    ServerRestarted,
    /// The rate varied so much that it is known only roughly.
    Noisy {
        /// Half the width of its 95 % interval, as a share of it.
        half_width: f64,
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
        /// The share of the callers' time that they took.
        #[serde(default)]
        time_share: f64,
    },
    /// The callers were not all in the server's hands all the time: N differs from X * R (Little's
    /// law).
    LittlesLaw {
        /// Callers (N).
        callers: f64,
        /// Rate times mean time (X * R), failed requests included.
        in_system: f64,
        /// The mean number of callers between a reply and their next request, by the client's own
        /// clock; absent where it was not measured.
        #[serde(default)]
        between: Option<f64>,
    },
    /// The times have two levels, as where client and server share a core at times.
    Bimodal {
        /// The median of the times at the lower level, in nanoseconds.
        #[serde(rename = "low_p50_ns")]
        low_p50: u64,
        /// The median of the times at the higher level, in nanoseconds.
        #[serde(rename = "high_p50_ns")]
        high_p50: u64,
        /// The share of requests at the higher level.
        high_share: f64,
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

/// The weight of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The numbers hold; read them with this in mind.
    Note,
    /// The numbers do not describe the server under the planned load.
    Invalid,
}

/// A client worker that uses this share of what it could get of its core decides the numbers.
const CLIENT_BOUND: f64 = 0.9;

impl Warning {
    /// Returns its severity.
    pub fn severity(&self) -> Severity {
        let is_note = match self {
            Self::ClientBound { busiest_worker } => *busiest_worker < CLIENT_BOUND,
            // Without any, nothing was measured.
            Self::TooFewSamples { samples: count } | Self::FewRuns { runs: count } => *count > 0,
            Self::NoCallerFree { .. }
            | Self::Stalled { .. }
            | Self::Noisy { .. }
            | Self::Bimodal { .. }
            | Self::SharedHost
            | Self::ClockStep { .. } => true,
            Self::ClientStarved { .. }
            | Self::ClientThrottled { .. }
            | Self::BehindSchedule { .. }
            | Self::NotSteady { .. }
            | Self::ServerGone { .. }
            | Self::ServerRestarted
            | Self::Errors { .. }
            | Self::LittlesLaw { .. } => false,
        };
        if is_note {
            Severity::Note
        } else {
            Severity::Invalid
        }
    }

    /// Returns true if it is about the client rather than the server or the path to it.
    pub fn is_of_client(&self) -> bool {
        matches!(
            self,
            Self::ClientBound { .. } | Self::ClientStarved { .. } | Self::ClientThrottled { .. }
        )
    }

    /// Returns true if it weighs more than another of its kind, or says more of the same.
    pub fn is_worse_than(&self, other: &Self) -> bool {
        let weight = |warning: &Self| warning.severity() == Severity::Invalid;
        (weight(self), self.extent()) > (weight(other), other.extent())
    }

    /// Returns how far it goes, on a scale of its kind.
    fn extent(&self) -> f64 {
        match *self {
            Self::ClientBound { busiest_worker } => busiest_worker,
            Self::ClientStarved { late_p99, .. } => late_p99 as f64,
            Self::ClientThrottled { seconds } | Self::Stalled { seconds, .. } => seconds,
            Self::NoCallerFree { wait_p99, .. } => wait_p99 as f64,
            Self::BehindSchedule { achieved, .. } => -achieved,
            Self::NotSteady { drift, .. } => drift.abs(),
            Self::ServerGone { since } => -since,
            Self::Noisy { half_width } => half_width,
            Self::TooFewSamples { samples: count } | Self::FewRuns { runs: count } => {
                -(count as f64)
            }
            Self::Errors { share, .. } => share,
            Self::LittlesLaw {
                callers, in_system, ..
            } => (in_system / callers - 1.0).abs(),
            Self::Bimodal {
                low_p50, high_p50, ..
            } => high_p50 as f64 / low_p50.max(1) as f64,
            Self::ClockStep { nanoseconds } => nanoseconds.unsigned_abs() as f64,
            Self::ServerRestarted | Self::SharedHost => 0.0,
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => "CLIENT_BOUND",
            Self::ClientStarved { .. } => "CLIENT_STARVED",
            Self::ClientThrottled { .. } => "CLIENT_THROTTLED",
            Self::NoCallerFree { .. } => "NO_CALLER_FREE",
            Self::BehindSchedule { .. } => "BEHIND_SCHEDULE",
            Self::NotSteady { .. } => "NOT_STEADY",
            Self::Stalled { .. } => "STALLED",
            Self::ServerGone { .. } => "SERVER_GONE",
            Self::ServerRestarted => "SERVER_RESTARTED",
            Self::Noisy { .. } => "NOISY",
            Self::TooFewSamples { .. } => "TOO_FEW_SAMPLES",
            Self::FewRuns { .. } => "FEW_RUNS",
            Self::Errors { .. } => "ERRORS",
            Self::LittlesLaw { .. } => "LITTLES_LAW",
            Self::Bimodal { .. } => "BIMODAL",
            Self::SharedHost => "SHARED_HOST",
            Self::ClockStep { .. } => "CLOCK_STEP",
        }
    }

    /// Returns the remedy. The flags that it takes stand in parentheses.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => {
                "give the client more threads (--workers) or faster cores, or use several clients"
            }
            Self::ClientStarved { .. } => {
                "stop other programs on the client's host, or use a host with cores of its own"
            }
            Self::ClientThrottled { .. } => {
                "raise the limit on the CPU time of the client's cgroup, or give it fewer threads (--workers)"
            }
            Self::NoCallerFree { .. } => {
                "give more callers (-c), unless users wait in the same way"
            }
            Self::BehindSchedule { .. } => {
                "if the server is not full, give more callers (-c) or threads (--workers); otherwise this rate is too high for it"
            }
            Self::NotSteady { .. } => {
                "warm up longer (--warmup), measure longer (-d), and look for other load"
            }
            Self::Stalled { .. } => {
                "look for pauses of the server, its host or the network; the numbers have the stall in them"
            }
            Self::ServerGone { .. } => "start the server again, and find out why it stopped",
            Self::ServerRestarted => "measure again without restarting the server",
            Self::Noisy { .. } => "measure longer (-d), repeat (--trials), and look for other load",
            Self::TooFewSamples { .. } => "measure longer (-d, --requests, --samples)",
            Self::FewRuns { .. } => "measure more often (--runs)",
            Self::Errors { .. } => {
                "fix the failures first: failed requests cost less than served ones"
            }
            Self::LittlesLaw {
                callers,
                in_system,
                between,
            } => {
                // Files of version 1 do not say what callers did between requests.
                let missing = callers - in_system;
                if missing > 0.0 && between.is_none_or(|between| between * 2.0 > missing) {
                    "the client spent time of its own between requests: many callers need more threads (--workers) and more requests, a \
                     single one a quieter machine"
                } else {
                    "requests that began before the window, or ended after it, weigh in it: measure longer (-d, --requests)"
                }
            }
            Self::Bimodal { .. } => {
                "give client and server cores of their own (taskset, --pin), or quote both levels"
            }
            Self::SharedHost => {
                "compare targets with each other; for absolute numbers, put the client on another host"
            }
            Self::ClockStep { .. } => {
                "measure again without setting the clock; netping's own times are not affected"
            }
        }
    }

    /// Returns the remedy with those of its flags for which `has` holds.
    pub fn remedy_with(&self, has: impl Fn(&str) -> bool) -> String {
        with_flags(self.remedy(), has)
    }
}

fn with_flags(remedy: &str, has: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut rest = remedy;
    while let Some((before, (inside, after))) = rest
        .split_once(" (")
        .and_then(|(before, after)| Some((before, after.split_once(')')?)))
    {
        text.push_str(before);
        let known = inside.split(", ");
        let known: Vec<_> = known
            .filter(|word| !word.starts_with('-') || has(word))
            .collect();
        if !known.is_empty() {
            text.extend([" (", &known.join(", "), ")"]);
        }
        rest = after;
    }
    text + rest
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientBound { busiest_worker } => {
                write!(
                    f,
                    "the busiest client worker used {:.0}% of the CPU time it could get",
                    busiest_worker * 100.0
                )
            }
            Self::ClientStarved {
                late_p99,
                response_p99,
            } => {
                let (late, response) = (us(*late_p99), us(*response_p99));
                write!(
                    f,
                    "the client was late by {late} at p99, in response times of {response}"
                )
            }
            Self::ClientThrottled { seconds } => {
                write!(
                    f,
                    "a limit on CPU time stopped the client for {seconds:.2} s"
                )
            }
            Self::NoCallerFree {
                wait_p99,
                response_p99,
            } => no_caller_free(f, *wait_p99, *response_p99),
            Self::BehindSchedule {
                lag_p50,
                not_sent,
                achieved,
            } => behind_schedule(f, *lag_p50, *not_sent, *achieved),
            Self::NotSteady {
                drift,
                from,
                to,
                warmup_failed,
            } => not_steady(f, *drift, from.zip(*to), *warmup_failed),
            Self::Stalled { at, seconds } => {
                write!(f, "no reply for {seconds:.1} s, from {at:.1} s on")
            }
            Self::ServerGone { since } => write!(f, "no reply since {since:.1} s"),
            Self::ServerRestarted => f.write_str("the server's process was started anew"),
            Self::Noisy { half_width } => {
                write!(f, "the rate is known to +-{:.0}% only", half_width * 100.0)
            }
            Self::TooFewSamples { samples } => {
                write!(
                    f,
                    "too few samples for p99: {}",
                    format::thousands(*samples as f64)
                )
            }
            Self::FewRuns { runs } => {
                write!(f, "too few runs to estimate how much they vary: {runs}")
            }
            Self::Errors { share, time_share } => {
                write!(f, "{} failed or were never sent", format::share(*share))?;
                if time_share > share {
                    write!(f, ", {} of the callers' time", format::share(*time_share))?;
                }
                Ok(())
            }
            Self::LittlesLaw {
                callers,
                in_system,
                between,
            } => {
                let between = between.map(|between| format!(", and {between:.2} between requests"));
                let between = between.unwrap_or_default();
                write!(
                    f,
                    "by rate times mean time, {in_system:.2} of {} waited for a reply{between} (Little's law)",
                    format::plural(*callers as u64, "caller")
                )
            }
            Self::Bimodal {
                low_p50,
                high_p50,
                high_share,
            } => {
                let (low, high, share) = (us(*low_p50), us(*high_p50), high_share * 100.0);
                write!(
                    f,
                    "two levels: {low}, and for {share:.0}% of the requests {high}"
                )
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

fn no_caller_free(f: &mut fmt::Formatter<'_>, wait: u64, response: u64) -> fmt::Result {
    write!(f, "requests waited {} at p99 for a free caller", us(wait))?;
    // Of requests that were never sent, the response time is only a lower bound.
    if wait < response {
        write!(f, ", in response times of {}", us(response))?;
    }
    Ok(())
}

fn behind_schedule(
    f: &mut fmt::Formatter<'_>,
    lag_p50: Option<u64>,
    not_sent: u64,
    achieved: f64,
) -> fmt::Result {
    let (achieved, lag) = (achieved * 100.0, format::nanos_as_micros(lag_p50));
    write!(
        f,
        "{achieved:.1}% of the planned rate, median lag {lag} us, {} requests not sent",
        format::thousands(not_sent as f64)
    )
}

fn not_steady(
    f: &mut fmt::Formatter<'_>,
    drift: f64,
    stretch: Option<(f64, f64)>,
    warmup_failed: bool,
) -> fmt::Result {
    if warmup_failed {
        f.write_str("the warm-up found no steady rate")?;
        if drift == 0.0 {
            return Ok(());
        }
        f.write_str("; ")?;
    }
    let least = if drift >= MOST_DRIFT { "at least " } else { "" };
    let higher = if drift < 0.0 { "lower" } else { "higher" };
    let percent = drift.abs() * 100.0;
    match stretch {
        Some((from, to)) => write!(
            f,
            "from {from:.1} s to {to:.1} s the rate was {least}{percent:.1}% {higher} than in the rest"
        ),
        None => write!(
            f,
            "in the last third of the window the rate was {least}{percent:.1}% {higher} than in the first"
        ),
    }
}

/// Returns a time of so many nanoseconds in microseconds.
fn us(nanoseconds: u64) -> String {
    format::nanos_as_micros(Some(nanoseconds)) + " us"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_keeps_the_flags_that_are_asked_for() {
        let remedy = "measure longer (-d, --requests), repeat (--trials), or pin (taskset, --pin)";
        assert_eq!(with_flags(remedy, |_| true), remedy);
        let quick = with_flags(remedy, |flag| flag == "-d");
        assert_eq!(quick, "measure longer (-d), repeat, or pin (taskset)");
    }
}
