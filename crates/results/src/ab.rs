//! The decision of `netping ab`: whether a new server is worse than its base by more than a margin.

use crate::{
    comparison::Comparison,
    metric::{Better, Metric, P50, P99, RATE},
    run::Run,
    warning::Warnings,
};

/// Rounds in which a metric may have no value: the window of the first one is as long as was guessed. Those in
/// which a server is slow have few requests, so to leave out more of them would favour it. A rate has a value in
/// every round, and none on a logarithmic scale where it is 0: that a server answered nothing at all is not left out.
const MISSING: usize = 1;

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
    /// Each of the two against itself, where that has a value.
    pub controls: Vec<Option<Comparison>>,
    /// Its decision.
    pub decision: Decision,
}

impl Gated {
    fn of(comparison: &Comparison, controls: Vec<Option<Comparison>>, margin: f64) -> Self {
        let mut gated = Self {
            comparison: *comparison,
            controls,
            decision: Decision::Undecided,
        };
        if comparison.is_alike && !gated.is_missing() {
            // Only times are bounds, and of these less is better.
            let [smaller, larger] = comparison.may_be();
            gated.decision = match worsening(comparison) {
                Some([_, high]) if high <= margin && !larger => Decision::NotWorse,
                Some([low, _]) if low > margin && !smaller => Decision::Worse,
                _ => Decision::Undecided,
            };
        }
        gated
    }

    /// Returns the number of rounds in which it has no value.
    pub fn missing(&self) -> usize {
        let sides = [self.comparison.base, self.comparison.new];
        let missing = sides.iter().flatten().map(|own| own.missing);
        missing.max().unwrap_or(0)
    }

    /// Returns true where those are too many to decide.
    pub fn is_missing(&self) -> bool {
        let most = if self.is_of_rate() { 0 } else { MISSING };
        self.missing() > most
    }

    /// Returns true for the number of replies per second.
    pub fn is_of_rate(&self) -> bool {
        *self.comparison.metric == RATE
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
/// the change with the other sign.
pub fn worsening(comparison: &Comparison) -> Option<[f64; 2]> {
    let [low, high] = comparison.interval?;
    Some(match comparison.metric.better {
        Better::Lower => [low, high],
        Better::Higher => [-high, -low],
    })
}

/// Returns true where the interval of a difference lies beyond the margin: above it, or below 1 / (1 + margin).
fn is_apart(comparison: &Comparison, margin: f64) -> bool {
    let ends = comparison.interval;
    ends.is_some_and(|[low, high]| low > margin || high < 1.0 / (1.0 + margin) - 1.0)
}

impl Run {
    /// Decides whether the new server is worse than its base by more than the run's margin, by all pairs that are
    /// no control. Nothing is known where the run is not valid, or where a server differs from itself by more than
    /// the margin.
    pub fn decided(&self) -> Decided {
        let margin = self.margin.unwrap_or(0.0);
        let pairs = self.compared();
        let (controls, pairs): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.is_control);
        let mut gated: Vec<Gated> = Vec::new();
        for pair in &pairs {
            // Those of the same windows: each of the two against itself.
            let servers = [pair.base.number, pair.new.number];
            let of_windows = controls.iter();
            let of_windows: Vec<_> = of_windows
                .filter(|control| servers.contains(&control.base.number))
                .collect();
            for by in pair.comparisons.iter().filter(|by| by.metric.is_claimed()) {
                let own = of_windows
                    .iter()
                    .map(|control| control.by(by.metric).copied());
                gated.push(Gated::of(by, own.collect(), margin));
            }
        }
        let doubt = controls.iter().find_map(|pair| {
            let mut all = pair.comparisons.iter();
            let own = all.find(|own| own.metric.is_claimed() && is_apart(own, margin))?;
            Some((pair.base.name().to_owned(), *own))
        });
        let objections = Warnings::of_run(self).invalidating();
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
        run::{Kind, Pairing, Step},
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
        // A rate is worse where it is lower.
        let rate = &metric::RATE;
        assert_eq!(decision(rate, [-0.0499, 0.2]), Decision::NotWorse);
        assert_eq!(decision(rate, [-0.0501, 0.2]), Decision::Undecided);
        assert_eq!(decision(rate, [-0.2, -0.0499]), Decision::Undecided);
        assert_eq!(decision(rate, [-0.2, -0.0501]), Decision::Worse);
        assert_eq!(decision(p50, [f64::NAN, f64::NAN]), Decision::Undecided);
        // Where requests got no reply, the new value may be larger, or the base's.
        let bound = |is_new: bool, ends| {
            let mut own = comparison(p50, 0.0, Some(ends));
            let side = if is_new { &mut own.new } else { &mut own.base };
            side.as_mut().unwrap().is_bound = true;
            Gated::of(&own, Vec::new(), 0.05).decision
        };
        assert_eq!(bound(true, [-0.01, 0.01]), Decision::Undecided);
        assert_eq!(bound(true, [0.06, 0.2]), Decision::Worse);
        assert_eq!(bound(false, [-0.01, 0.01]), Decision::NotWorse);
        assert_eq!(bound(false, [0.06, 0.2]), Decision::Undecided);
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
            margin: Some(0.05),
            pairings: vec![control, Pairing::new(0, 2)],
            ..run((0..60).map(step).collect())
        }
    }

    #[test]
    fn each_metric_has_the_controls_of_its_own_windows() {
        let mut run = trials(1.0, 1.0);
        let alone = |step: Step| Step {
            measurement: step.measurement + 3,
            ..step
        };
        let windows: Vec<Step> = run.steps.iter().cloned().map(alone).collect();
        for step in &mut run.steps {
            step.settings.together = Some(3);
        }
        run.steps.extend(windows);
        run.kind = Kind::Ab;
        let control = |base: usize| Pairing {
            is_control: true,
            ..Pairing::new(base, base + 1)
        };
        run.pairings = vec![
            control(0),
            Pairing::new(0, 2),
            control(3),
            Pairing::new(3, 5),
        ];
        let gated = run.decided().gated;
        assert_eq!(gated.len(), 3);
        let has_own = |own: &Gated| own.controls.len() == 1 && own.controls[0].is_some();
        assert!(gated.iter().all(has_own));
    }

    #[test]
    fn all_metrics_decide_together() {
        assert_eq!(trials(1.0, 1.0).decided().decision, Decision::NotWorse);
        assert_eq!(trials(1.0, 0.5).decided().decision, Decision::NotWorse);
        assert_eq!(trials(1.0, 1.2).decided().decision, Decision::Worse);
        // A base that differs from itself decides nothing.
        assert_eq!(trials(1.2, 1.2).decided().decision, Decision::Undecided);
        assert_eq!(trials(0.8, 1.2).decided().decision, Decision::Undecided);
        let mut wrong = trials(1.0, 1.2);
        for step in &mut wrong.steps {
            step.warnings = vec![ClientThrottled { seconds: 0.5 }.into()];
        }
        assert_eq!(wrong.decided().decision, Decision::Undecided);
        wrong.allowed = vec!["CLIENT_THROTTLED".to_owned()];
        assert_eq!(wrong.decided().decision, Decision::Worse);
        assert_eq!(run(Vec::new()).decided().decision, Decision::Undecided);
        // Too few requests for a p99.
        let mut few = trials(1.0, 1.0);
        for step in &mut few.steps {
            let quantiles = Quantiles::of(|percent| (percent < 99.0).then_some(1000));
            step.summary.times[Time::Response].quantiles = quantiles;
        }
        assert_eq!(few.decided().decision, Decision::Undecided);
        // A round without a p99 may be the first; more of them may be those in which the new server was slow.
        let without = |rounds: u32| {
            let mut run = trials(1.0, 1.0);
            for step in run.steps.iter_mut().filter(|own| own.trial <= rounds) {
                let quantiles = Quantiles::of(|percent| (percent < 99.0).then_some(1_000_000));
                step.summary.times[Time::Response].quantiles = quantiles;
            }
            run.decided()
        };
        assert_eq!(without(1).decision, Decision::NotWorse);
        let more = without(2);
        assert_eq!(more.decision, Decision::Undecided);
        let is_p99 = |own: &&Gated| own.comparison.metric == &P99;
        let p99 = more.gated.iter().find(is_p99).unwrap();
        assert!(p99.is_missing() && p99.missing() == 2);
        // A server that answered nothing in a round has no rate there, and is not the better for it.
        let mut silent = trials(1.0, 1.0);
        silent.steps[2].summary.rate = 0.0;
        assert_eq!(silent.decided().decision, Decision::Undecided);
        // What more connections do is not what the new server does.
        for new in [1.0, 1.2] {
            let mut unlike = trials(1.0, new);
            for step in unlike.steps.iter_mut().filter(|own| own.measurement == 2) {
                step.settings.connections += 1;
            }
            assert_eq!(unlike.decided().decision, Decision::Undecided);
        }
    }
}
