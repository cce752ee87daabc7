//! The decision of `netping ab`: whether a new server is worse than its base by more than a margin.

use crate::{
    comparison::Comparison,
    metric::{Better, Metric, P50, P99},
    run::Run,
    warning::Warnings,
};

/// A decision about one metric, or about all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The new server is worse by no more than the margin: the worse end of the interval lies within it.
    NotWorse,
    /// It is worse by more: the whole interval lies beyond the margin.
    Worse,
    /// Neither is known.
    Undecided,
}

/// A metric that decides, and what it decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated {
    /// The new server against its base.
    pub comparison: Comparison,
    /// Each of the two against itself.
    pub controls: Vec<Comparison>,
    /// Its decision.
    pub decision: Decision,
}

impl Gated {
    fn of(comparison: &Comparison, controls: Vec<Comparison>, margin: f64) -> Self {
        let decision = match worsening(comparison) {
            Some([_, high]) if high <= margin => Decision::NotWorse,
            Some([low, _]) if low > margin => Decision::Worse,
            _ => Decision::Undecided,
        };
        Self {
            comparison: *comparison,
            controls,
            decision,
        }
    }
}

/// What a run decides, and by what.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The decision of all metrics together.
    pub decision: Decision,
    /// The metrics of which the run has values.
    pub gated: Vec<Gated>,
    /// The names of the warnings that invalidate the run, but for those that are allowed.
    pub objections: Vec<&'static str>,
    /// The first server that differs from itself by more than the margin, and the metric by which it does.
    pub doubt: Option<(String, Comparison)>,
}

/// Returns the interval of a change as that by which the new value is worse: of a metric of which more is better,
/// that of the base over the new.
pub fn worsening(comparison: &Comparison) -> Option<[f64; 2]> {
    let [low, high] = comparison.interval?;
    Some(match comparison.metric.better {
        Better::Lower => [low, high],
        Better::Higher => [high, low].map(|end| 1.0 / (1.0 + end) - 1.0),
    })
}

/// Returns true where two values differ by more than the margin, beyond doubt.
fn is_apart(comparison: &Comparison, margin: f64) -> bool {
    let ends = comparison.interval;
    ends.is_some_and(|[low, high]| low > margin || high < 1.0 / (1.0 + margin) - 1.0)
}

impl Run {
    /// Decides whether the new server is worse than its base by more than this share, by all pairs that are no
    /// control. Nothing is known where the run is not valid, or where a server differs from itself by more than
    /// the margin.
    pub fn decided(&self, margin: f64) -> Decided {
        let pairs = self.compared();
        let (controls, pairs): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.is_control);
        let claimed = pairs.iter().flat_map(|pair| &pair.comparisons);
        let claimed = claimed.filter(|own| own.metric.is_claimed());
        let gate = |own: &Comparison| {
            let controls = controls.iter().filter_map(|pair| pair.by(own.metric));
            Gated::of(own, controls.copied().collect(), margin)
        };
        let gated: Vec<Gated> = claimed.map(gate).collect();
        let doubt = controls.iter().find_map(|pair| {
            let mut all = pair.comparisons.iter();
            let own = all.find(|own| own.metric.is_claimed() && is_apart(own, margin))?;
            Some((pair.base.name().to_owned(), *own))
        });
        let mut objections = Warnings::of_run(self).invalidating();
        objections.retain(|name| !self.allowed.iter().any(|own| own == name));
        let has = |decision: Decision| gated.iter().any(|own| own.decision == decision);
        // A time of which too few requests tell is no time that is good enough.
        let is_known = |metric: &Metric| gated.iter().any(|own| own.comparison.metric == metric);
        let decision = if doubt.is_some() || !objections.is_empty() {
            Decision::Undecided
        } else if has(Decision::Worse) {
            Decision::Worse
        } else if has(Decision::Undecided) || !is_known(&P50) || !is_known(&P99) {
            Decision::Undecided
        } else {
            Decision::NotWorse
        };
        Decided {
            decision,
            gated,
            objections,
            doubt,
        }
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::{quantiles::Quantiles, times::Time};

    use super::*;
    use crate::{
        fixtures::{comparison, run, step},
        metric,
        run::{Pairing, Step},
        warning::ClientThrottled,
    };

    #[test]
    fn an_interval_decides_by_its_worse_end_or_as_a_whole() {
        let decision = |metric, ends| {
            let own = comparison(metric, 0.0, Some(ends));
            Gated::of(&own, Vec::new(), 0.05).decision
        };
        let p50 = &metric::P50;
        assert_eq!(decision(p50, [-0.2, 0.0499]), Decision::NotWorse);
        assert_eq!(decision(p50, [-0.2, 0.0501]), Decision::Undecided);
        assert_eq!(decision(p50, [0.0499, 0.2]), Decision::Undecided);
        assert_eq!(decision(p50, [0.0501, 0.2]), Decision::Worse);
        // A rate that is worse by 5 % is that of the base over 1.05.
        let rate = &metric::RATE;
        assert_eq!(decision(rate, [-0.0475, 0.2]), Decision::NotWorse);
        assert_eq!(decision(rate, [-0.0477, 0.2]), Decision::Undecided);
        assert_eq!(decision(rate, [-0.2, -0.0475]), Decision::Undecided);
        assert_eq!(decision(rate, [-0.2, -0.0477]), Decision::Worse);
        assert_eq!(decision(p50, [f64::NAN, f64::NAN]), Decision::Undecided);
    }

    #[test]
    fn a_control_is_apart_by_the_margin_in_either_direction() {
        let is_apart = |ends| is_apart(&comparison(&metric::P50, 0.0, Some(ends)), 0.2);
        assert!(is_apart([0.201, 0.3]) && !is_apart([0.199, 0.3]));
        // To be as much better is to be 1 / 1.2 of it.
        assert!(is_apart([-0.3, -0.167]) && !is_apart([-0.3, -0.166]));
    }

    /// Returns twenty trials of a base, its control and a new server, whose times are so much longer.
    fn trials(control: f64, new: f64) -> Run {
        let times = [1.0, control, new];
        let step = |at: usize| {
            let (measurement, trial) = (at % 3, at as u32 / 3 + 1);
            let noise = 1.0 + 0.001 * (at * 7 % 5) as f64;
            let time = (1e6 * times[measurement] * noise) as u64;
            Step {
                measurement,
                trial,
                target: format!("tcp://h:{measurement}"),
                ..step(1, |_| vec![time; 1000])
            }
        };
        let control = Pairing {
            is_control: true,
            ..Pairing::new(0, 1)
        };
        Run {
            pairings: vec![control, Pairing::new(0, 2)],
            ..run((0..60).map(step).collect())
        }
    }

    #[test]
    fn all_metrics_decide_together() {
        assert_eq!(trials(1.0, 1.0).decided(0.05).decision, Decision::NotWorse);
        assert_eq!(trials(1.0, 0.5).decided(0.05).decision, Decision::NotWorse);
        assert_eq!(trials(1.0, 1.2).decided(0.05).decision, Decision::Worse);
        // A base that differs from itself decides nothing.
        assert_eq!(trials(1.2, 1.2).decided(0.05).decision, Decision::Undecided);
        assert_eq!(trials(0.8, 1.2).decided(0.05).decision, Decision::Undecided);
        let mut wrong = trials(1.0, 1.2);
        for step in &mut wrong.steps {
            step.warnings = vec![ClientThrottled { seconds: 0.5 }.into()];
        }
        assert_eq!(wrong.decided(0.05).decision, Decision::Undecided);
        wrong.allowed = vec!["CLIENT_THROTTLED".to_owned()];
        assert_eq!(wrong.decided(0.05).decision, Decision::Worse);
        assert_eq!(run(Vec::new()).decided(0.05).decision, Decision::Undecided);
        // Too few requests for a p99.
        let mut few = trials(1.0, 1.0);
        for step in &mut few.steps {
            let quantiles = Quantiles::of(|percent| (percent < 99.0).then_some(1000));
            step.summary.times[Time::Response].quantiles = quantiles;
        }
        assert_eq!(few.decided(0.05).decision, Decision::Undecided);
    }
}
