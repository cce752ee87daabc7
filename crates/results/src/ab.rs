//! The answer of `netping ab`: whether a new server is worse than its base by more than a margin.

use crate::{
    comparison::Comparison,
    metric::{Better, Metric, P50, P99},
    run::Run,
    warning::Warnings,
};

/// An answer about one metric, or about all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The new server is worse by no more than the margin: the worse end of the interval lies within it.
    Within,
    /// It is worse by more: the whole interval lies beyond the margin.
    Beyond,
    /// Neither is known.
    Unknown,
}

/// A metric that decides, and its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gated {
    /// The new server against its base.
    pub comparison: Comparison,
    /// Its answer.
    pub answer: Answer,
}

impl Gated {
    fn of(comparison: &Comparison, margin: f64) -> Self {
        let answer = match worsening(comparison) {
            Some([_, high]) if high <= margin => Answer::Within,
            Some([low, _]) if low > margin => Answer::Beyond,
            _ => Answer::Unknown,
        };
        Self {
            comparison: *comparison,
            answer,
        }
    }
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
    /// Returns the metrics that decide whether the new server is worse than its base, of all pairs that are no
    /// control and of which the run has values.
    pub fn gated(&self, margin: f64) -> Vec<Gated> {
        let pairs = self.compared();
        let pairs = pairs.iter().filter(|pair| !pair.is_control);
        let claimed = pairs.flat_map(|pair| pair.comparisons.iter().copied());
        let claimed = claimed.filter(|own| own.metric.is_claimed());
        claimed.map(|own| Gated::of(&own, margin)).collect()
    }

    /// Returns the names of the warnings that invalidate it, but for those that are allowed.
    pub fn objections(&self) -> Vec<&'static str> {
        let mut names = Warnings::of_run(self).invalidating();
        names.retain(|name| !self.allowed.iter().any(|own| own == name));
        names
    }

    /// Returns the first control that differs from itself by more than the margin, and by which metric.
    pub fn doubt(&self, margin: f64) -> Option<(String, Comparison)> {
        let pairs = self.compared();
        let mut controls = pairs.iter().filter(|pair| pair.is_control);
        controls.find_map(|pair| {
            let mut all = pair.comparisons.iter();
            let own = all.find(|own| own.metric.is_claimed() && is_apart(own, margin))?;
            Some((pair.base.name().to_owned(), *own))
        })
    }

    /// Returns the answer of all metrics together. Nothing is known where the run is not valid, or where a server
    /// differs from itself by more than the margin.
    pub fn answer(&self, margin: f64) -> Answer {
        let gated = self.gated(margin);
        let has = |answer: Answer| gated.iter().any(|own| own.answer == answer);
        let is_doubtful = self.doubt(margin).is_some() || !self.objections().is_empty();
        if is_doubtful {
            return Answer::Unknown;
        }
        // A time of which too few requests tell is no time that is good enough.
        let is_known = |metric: &Metric| gated.iter().any(|own| own.comparison.metric == metric);
        let are_known = is_known(&P50) && is_known(&P99);
        match () {
            () if has(Answer::Beyond) => Answer::Beyond,
            () if has(Answer::Unknown) || !are_known => Answer::Unknown,
            () => Answer::Within,
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
        let answer = |metric, ends| {
            let own = comparison(metric, 0.0, Some(ends));
            Gated::of(&own, 0.05).answer
        };
        let p50 = &metric::P50;
        assert_eq!(answer(p50, [-0.2, 0.0499]), Answer::Within);
        assert_eq!(answer(p50, [-0.2, 0.0501]), Answer::Unknown);
        assert_eq!(answer(p50, [0.0499, 0.2]), Answer::Unknown);
        assert_eq!(answer(p50, [0.0501, 0.2]), Answer::Beyond);
        // A rate that is worse by 5 % is that of the base over 1.05.
        let rate = &metric::RATE;
        assert_eq!(answer(rate, [-0.0475, 0.2]), Answer::Within);
        assert_eq!(answer(rate, [-0.0477, 0.2]), Answer::Unknown);
        assert_eq!(answer(rate, [-0.2, -0.0475]), Answer::Unknown);
        assert_eq!(answer(rate, [-0.2, -0.0477]), Answer::Beyond);
        assert_eq!(answer(p50, [f64::NAN, f64::NAN]), Answer::Unknown);
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
    fn all_metrics_answer_together() {
        assert_eq!(trials(1.0, 1.0).answer(0.05), Answer::Within);
        assert_eq!(trials(1.0, 0.5).answer(0.05), Answer::Within);
        assert_eq!(trials(1.0, 1.2).answer(0.05), Answer::Beyond);
        // A base that differs from itself decides nothing.
        assert_eq!(trials(1.2, 1.2).answer(0.05), Answer::Unknown);
        assert_eq!(trials(0.8, 1.2).answer(0.05), Answer::Unknown);
        let mut wrong = trials(1.0, 1.2);
        for step in &mut wrong.steps {
            step.warnings = vec![ClientThrottled { seconds: 0.5 }.into()];
        }
        assert_eq!(wrong.answer(0.05), Answer::Unknown);
        wrong.allowed = vec!["CLIENT_THROTTLED".to_owned()];
        assert_eq!(wrong.answer(0.05), Answer::Beyond);
        assert_eq!(run(Vec::new()).answer(0.05), Answer::Unknown);
        // Too few requests for a p99.
        let mut few = trials(1.0, 1.0);
        for step in &mut few.steps {
            let quantiles = Quantiles::of(|percent| (percent < 99.0).then_some(1000));
            step.summary.times[Time::Response].quantiles = quantiles;
        }
        assert_eq!(few.answer(0.05), Answer::Unknown);
    }
}
