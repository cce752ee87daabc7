//! What a window at one rate says about it.

use std::fmt;

use netping_measure::{status::Status, times::Time};
use netping_results::{
    condition::{Answer, Condition},
    run::Step,
    warning::{Severity, Warning},
};

use crate::args::output::ToleranceArgs;

/// Requests were late by the client's doing if their mean lateness while a caller was free is longer than
/// this, in nanoseconds, which the timer is not late by, and more than this share of their whole lag.
const LATE: f64 = 500_000.0;
const OF_CLIENT: f64 = 0.5;

/// The outcome of a window at one rate.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The condition was kept, at this rate, in requests/s.
    Kept(f64),
    /// The server did not keep the condition, was behind schedule, or had more failures than allowed; this
    /// says which.
    Broken(&'static str),
    /// The client was late, or other programs had the CPUs or the server: the window says nothing about the server. The
    /// names of the warnings that say so.
    Disturbed(Vec<&'static str>),
    /// There are too few samples to decide.
    Undecided,
    /// The user ended it.
    Interrupted,
}

impl Outcome {
    /// Returns the outcome of a step.
    pub fn of(step: &Step, condition: &Condition, tolerated: &ToleranceArgs) -> Self {
        let disturbances = disturbances(step, tolerated);
        let mut behind = step.warnings.iter().filter_map(|warning| match warning {
            Warning::BehindSchedule(own) => Some(own),
            _ => None,
        });
        let answer = condition.check(step);
        if step.status != Status::Complete {
            Self::Interrupted
        } else if !disturbances.is_empty() {
            Self::Disturbed(disturbances)
        } else if matches!(answer, Answer::Fails(_)) {
            Self::Broken("not met")
        } else if let Some(behind) = behind.next() {
            Self::Broken(if behind.outlasts_warmup {
                "longer than the warm-up"
            } else {
                "behind schedule"
            })
        } else if step.summary.failure_share() > tolerated.max_error_rate {
            Self::Broken("too many failed")
        } else if matches!(answer, Answer::Holds(_)) {
            Self::Kept(step.summary.rate)
        } else {
            Self::Undecided
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(_) => f.write_str("met"),
            Self::Broken(objection) => f.write_str(objection),
            Self::Disturbed(names) => write!(f, "disturbed: {}", names.join(", ")),
            Self::Undecided => f.write_str("too few samples to tell"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// Returns the names of the warnings by which the client or other programs spoiled a window, rather than the
/// server, but for those that are accepted.
pub fn disturbances(step: &Step, tolerated: &ToleranceArgs) -> Vec<&'static str> {
    let is_disturbance = |warning: &&Warning| match warning {
        Warning::ForeignLoad(_) | Warning::ServerShared(_) => true,
        Warning::BehindSchedule(_) => is_late_by_client(step),
        _ => warning.is_of_client(),
    };
    let warnings = step.warnings.iter().filter(is_disturbance);
    warnings
        .filter(|own| own.severity() == Severity::Invalid)
        .map(Warning::name)
        .filter(|name| !tolerated.accepted.accepts(name))
        .collect()
}

/// Returns true if requests were late mostly though a caller was free.
fn is_late_by_client(step: &Step) -> bool {
    let mean = |time| step.summary.times[time].mean.unwrap_or(0.0);
    let late = mean(Time::ClientLate);
    late > LATE && late > mean(Time::Lag) * OF_CLIENT
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};
    use netping_results::{
        fixtures,
        warning::{BehindSchedule, ClientBound, ForeignLoad, SideOfCpus},
    };

    use super::*;

    /// A window of an open loop at 1,000 requests/s, with response times of 1 ms.
    fn window(warnings: &[Warning]) -> Step {
        let mut step = fixtures::step(1, |_| vec![1_000_000; 1000]);
        step.settings.planned_rate = Some(1000.0);
        step.warnings = warnings.to_vec();
        step
    }

    fn read(flags: &[&str], step: &Step, condition: &str) -> Outcome {
        let command = clap::Command::new("netping").no_binary_name(true);
        let matches = ToleranceArgs::augment_args(command).get_matches_from(flags);
        let tolerated = ToleranceArgs::from_arg_matches(&matches).unwrap();
        Outcome::of(step, &condition.parse().unwrap(), &tolerated)
    }

    #[test]
    fn what_the_client_spoiled_is_known_by_the_warnings() {
        let bound = |busiest_worker| Warning::from(ClientBound { busiest_worker });
        let (met, not_met) = ("p99<2ms", "p99<0.5ms");
        let of = |warnings: &[Warning], condition| read(&[], &window(warnings), condition);
        assert_eq!(of(&[], met), Outcome::Kept(1000.0));
        assert_eq!(of(&[], not_met), Outcome::Broken("not met"));
        assert_eq!(of(&[], "p99.9<1ms"), Outcome::Undecided);
        // A note does not spoil it.
        assert_eq!(of(&[bound(0.8)], not_met), Outcome::Broken("not met"));
        let spoiled = Outcome::Disturbed(vec!["CLIENT_BOUND"]);
        for condition in [met, not_met, "p99.9<1ms"] {
            assert_eq!(of(&[bound(0.95)], condition), spoiled);
        }
        assert_eq!(spoiled.to_string(), "disturbed: CLIENT_BOUND");
        let load = ForeignLoad {
            side: SideOfCpus::Both,
            others: 0.5,
            steal: 0.0,
            waited: 0.0,
            busiest: None,
        };
        let spoiled = Outcome::Disturbed(vec!["FOREIGN_LOAD"]);
        assert_eq!(of(&[load.clone().into()], not_met), spoiled);
        let accepted = ["--allow", "FOREIGN_LOAD"];
        assert_eq!(
            read(&accepted, &window(&[load.into()]), met),
            Outcome::Kept(1000.0)
        );
        let mut step = window(&[bound(0.95)]);
        step.status = Status::Partial;
        assert_eq!(read(&[], &step, met), Outcome::Interrupted);
    }

    #[test]
    fn lateness_is_the_clients_where_a_caller_was_free() {
        let own = BehindSchedule {
            lag_p50: Some(2_000_000),
            not_sent: 0,
            achieved: 0.9,
            outlasts_warmup: false,
        };
        let of = |late: f64, lag: f64| {
            let mut step = window(&[own.clone().into()]);
            step.summary.times[Time::ClientLate].mean = Some(late);
            step.summary.times[Time::Lag].mean = Some(lag);
            read(&[], &step, "p99<2ms")
        };
        let spoiled = Outcome::Disturbed(vec!["BEHIND_SCHEDULE"]);
        let behind = Outcome::Broken("behind schedule");
        assert_eq!(of(1.1e6, 2.0e6), spoiled);
        assert_eq!(of(0.9e6, 2.0e6), behind);
        // So much is the timer's.
        assert_eq!(of(0.4e6, 0.4e6), behind);
        let outlasting = BehindSchedule {
            outlasts_warmup: true,
            ..own
        };
        assert_eq!(
            read(&[], &window(&[outlasting.into()]), "p99<2ms"),
            Outcome::Broken("longer than the warm-up")
        );
    }
}
