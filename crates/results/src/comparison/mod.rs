//! The one way from two measurements to a difference.

mod compared;

pub use self::compared::Compared;

use netping_measure::statistics::{
    difference::{Difference, Side},
    moments::{Moments, t_quantile},
    together::Together,
};

use crate::{
    estimate::{Estimate, Rounds, estimate},
    metric::{Better, Metric, Scale},
    run::{Measurement, Step},
};

/// Relative resolution of a value: that of a slot of a histogram of three digits. Values that agree
/// more closely may do so by rounding alone.
const RESOLUTION: f64 = 1e-3;

/// The comparisons that a command prints together, all of whose intervals hold at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Family {
    /// The number of differences on which a claim is made.
    pub claims: usize,
    /// True where the trials could end after each of several looks.
    pub at_any_time: bool,
    /// True where the new measurements were made after those of the base, or before them, so that drift is in the
    /// differences.
    pub is_apart: bool,
    /// The margin within which values are called equivalent, as a share.
    pub margin: Option<f64>,
}

impl Family {
    /// Returns the smallest difference, as a share, that as many trials show with a probability of
    /// 80 %, if the ratio of two values in a trial has a standard deviation of `spread`, as a share,
    /// from trial to trial; `None` for a single trial.
    pub fn detectable(self, trials: u32, spread: f64) -> Option<f64> {
        let planned = Difference::planned(spread.ln_1p(), trials)?;
        Some(planned.detectable(self.together())?.exp_m1())
    }

    fn together(self) -> Together {
        Together {
            intervals: self.claims.max(1),
            at_any_time: self.at_any_time,
        }
    }
}

/// The finding of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The new value is better.
    Better,
    /// The new value is worse.
    Worse,
    /// No difference is shown, and the values are the same to within the margin.
    Equivalent,
    /// No difference is shown, which does not prove that there is none.
    NoDifference,
    /// The targets had different numbers of connections, so that neither is called better.
    Unequal,
    /// One of the two measurements is not valid, so that nothing is claimed.
    NotValid,
}

/// The trust that a comparison deserves by the warnings about its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The runs are valid.
    Sound,
    /// A run is not valid, though these two of its measurements are: its claims are not to be relied on.
    Doubtful,
    /// One of the two measurements is not valid: nothing is claimed.
    NotValid,
}

/// One metric of two measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The metric.
    pub metric: &'static Metric,
    /// Its value in the base.
    pub base: Option<Estimate>,
    /// Its value in the other measurement.
    pub new: Option<Estimate>,
    /// The new value less the base's, as a share of the base's; of a metric on a linear scale, in
    /// its unit. Absent where a value is missing, or the base's is 0.
    pub change: Option<f64>,
    /// The interval of `change`: with a probability of 95 %, those of all claims of the family hold
    /// their differences. Absent where there is no error bar.
    pub interval: Option<[f64; 2]>,
    /// The probability of a difference at least as large by chance alone, times the number of
    /// claims (Bonferroni), at most 1.
    pub p_value: Option<f64>,
    /// The smallest difference that such measurements show with a probability of 80 %.
    pub detectable: Option<f64>,
    /// True where the values are shown to be the same to within the family's margin.
    pub is_equivalent: bool,
    /// The change of the control, which is noise: no smaller one is shown. Absent without a
    /// control.
    pub noise: Option<f64>,
    /// False where the measurements are of targets with different numbers of connections: see
    /// [`Measurement::has_connections_like`].
    pub is_alike: bool,
    /// The trust that it deserves.
    pub standing: Standing,
}

impl Comparison {
    /// Compares two measurements; `None` where neither has a value.
    ///
    /// Measurements of one run whose trials were interleaved are compared within each trial. Those
    /// of separate runs are compared by Welch's test; where one side has a single trial, the spread
    /// of the other side's trials stands for both, and where both have, the error bars found within
    /// the runs. The drift within runs that were made one after the other widens the interval. Metrics on
    /// a logarithmic scale are compared there.
    pub fn of(
        metric: &'static Metric,
        base: &Measurement<'_>,
        new: &Measurement<'_>,
        family: Family,
    ) -> Option<Self> {
        let (base_value, new_value) = (estimate(metric, base), estimate(metric, new));
        if base_value.is_none() && new_value.is_none() {
            return None;
        }
        let values = base_value.zip(new_value);
        let change = values.and_then(|(a, b)| change(metric, a.value, b.value));
        let difference = change.and_then(|_| difference(metric, base, new, family.is_apart));
        let together = family.together();
        let back = |value: f64| metric.scale.change(value);
        let margin = family.margin.map(|margin| metric.scale.extent(margin));
        let bounds = [base_value, new_value].map(is_bound);
        Some(Self {
            metric,
            base: base_value,
            new: new_value,
            change,
            interval: difference
                .and_then(|own| own.interval(together))
                .map(|ends| ends.map(back)),
            p_value: difference.and_then(|own| own.p_value(together)),
            detectable: difference
                .and_then(|own| own.detectable(together))
                .map(back),
            is_equivalent: difference
                .and_then(|own| own.equivalence(together))
                .zip(margin)
                .is_some_and(|(least, margin)| least < margin && !bounds.contains(&true)),
            noise: None,
            is_alike: new.has_connections_like(base),
            standing: Standing::Sound,
        })
    }

    /// Says whether the true change may be smaller than the one shown, and whether it may be larger: a value of which
    /// requests without a reply make a lower bound leaves that open.
    pub fn may_be(&self) -> [bool; 2] {
        [self.base, self.new].map(is_bound)
    }

    /// Returns true where a difference is shown: the interval leaves out 0, and the change is larger
    /// than the control's. `None` where there is a change, but no interval.
    pub fn is_shown(&self) -> Option<bool> {
        let change = self.change?;
        let Some([low, high]) = self.interval else {
            return (change == 0.0).then_some(false);
        };
        let is_noise = self.noise.is_some_and(|noise| {
            self.metric.scale.extent(change) <= self.metric.scale.extent(noise)
        });
        let [smaller, larger] = self.may_be();
        let is_apart = (low > 0.0 && !smaller) || (high < 0.0 && !larger);
        Some(is_apart && !is_noise)
    }

    /// Returns what it shows; `None` where a value or the error bar is missing, and for metrics on
    /// which no claim is made.
    pub fn finding(&self) -> Option<Finding> {
        if !self.metric.is_claimed() {
            return None;
        }
        let is_more = self.change? > 0.0;
        if self.standing == Standing::NotValid {
            return Some(Finding::NotValid);
        }
        if !self.is_alike {
            return Some(Finding::Unequal);
        }
        Some(match self.is_shown()? {
            false if self.is_equivalent => Finding::Equivalent,
            false => Finding::NoDifference,
            true if is_more == (self.metric.better == Better::Higher) => Finding::Better,
            true => Finding::Worse,
        })
    }

    /// Returns the change and the ends of its interval in the metric's unit: of a logarithmic
    /// metric, multiples of the base's value. The ends carry the errors of both sides.
    pub fn added(&self) -> Option<(f64, Option<[f64; 2]>)> {
        let unit = match self.metric.scale {
            Scale::Logarithmic => self.base?.value,
            Scale::Linear => 1.0,
        };
        let ends = self.interval.map(|ends| ends.map(|end| end * unit));
        Some((self.change? * unit, ends))
    }
}

/// Returns the number of claims that a comparison by these metrics makes.
pub fn claims(metrics: &[&Metric]) -> usize {
    metrics.iter().filter(|metric| metric.is_claimed()).count()
}

/// Returns these metrics, and of `further` those that are not among them: of bulk streams, or of requests.
pub(crate) fn metrics_and(
    mut all: Vec<&'static Metric>,
    further: &[&'static Metric],
    is_bulk: bool,
) -> Vec<&'static Metric> {
    for metric in further.iter().filter(|own| own.is_bulk() == is_bulk) {
        if !all.contains(metric) {
            all.push(metric);
        }
    }
    all
}

fn is_bound(value: Option<Estimate>) -> bool {
    value.is_some_and(|own| own.is_bound)
}

fn change(metric: &Metric, base: f64, new: f64) -> Option<f64> {
    match metric.scale {
        Scale::Linear => Some(new - base),
        // 0 / 0 counts as no change.
        Scale::Logarithmic if base == 0.0 => (new == 0.0).then_some(0.0),
        Scale::Logarithmic => Some(new / base - 1.0),
    }
}

/// Returns the difference on the metric's scale with its error; `None` without an error bar.
fn difference(
    metric: &Metric,
    base: &Measurement<'_>,
    new: &Measurement<'_>,
    is_apart: bool,
) -> Option<Difference> {
    let [first, second] = [base, new].map(|own| Rounds::of(metric, own));
    let (a, b) = (&first.values[..], &second.values[..]);
    let resolution = resolution(metric, a, b);
    let found = match (a, b) {
        ([], _) | (_, []) => None,
        ([_], [_]) => {
            let side = |rounds: &Rounds<'_>| side_within(metric, rounds.steps[0]);
            Difference::apart(side(&first)?, side(&second)?, resolution)
        }
        _ if std::ptr::eq(base.run, new.run) => Difference::paired(a, b, resolution),
        (_, [one]) => Difference::with_one(a, *one, 1.0, resolution),
        ([one], _) => Difference::with_one(b, *one, -1.0, resolution),
        _ => Difference::apart(Side::of_mean(a)?, Side::of_mean(b)?, resolution),
    }?;
    Some(if is_apart {
        found.in_sequence(a, b)
    } else {
        found
    })
}

/// Returns the resolution of a value on the metric's scale.
fn resolution(metric: &Metric, a: &[f64], b: &[f64]) -> f64 {
    match metric.scale {
        Scale::Logarithmic => RESOLUTION,
        Scale::Linear => {
            let mean = |values: &[f64]| Moments::of(values).map_or(0.0, |own| own.mean.abs());
            RESOLUTION * mean(a).max(mean(b))
        }
    }
}

/// Returns a step's value on a logarithmic scale with its standard error, from the error bar found
/// within the run; `None` where the step has none.
///
/// It describes how much a number varies within a run, and does not cover what varies from run to
/// run, such as the placement of threads: only trials show that.
///
/// - Half of the rate's bar is `t(0.975, n - 1)` standard errors of `n` batches.
/// - A quantile's bar is symmetric on a logarithmic scale, and half of it is as many standard errors
///   of `n` seconds. A value is rounded to its slot, which adds the variance of a uniform
///   distribution.
///
/// Files of older versions do not say `n`; it is the number of seconds.
fn side_within(metric: &Metric, step: &Step) -> Option<Side> {
    let precision = &step.summary.precision;
    let is_quantile = metric.quantile().is_some();
    let count = if is_quantile {
        precision.blocks
    } else {
        precision.rate_batches
    };
    let n = count.map_or(step.summary.seconds.floor(), |count| count as f64);
    if n < 2.0 {
        return None;
    }
    let value = metric.of_step(step).filter(|value| *value > 0.0)?;
    let [low, high] = metric.interval(step)?;
    let factor = t_quantile(n - 1.0)?;
    let error = if is_quantile && low > 0.0 {
        let drawn = (high / low).ln() / 2.0 / factor;
        (drawn.powi(2) + RESOLUTION.powi(2) / 12.0).sqrt()
    } else {
        (high - low) / 2.0 / factor / value
    };
    Some(Side {
        n,
        value: value.ln(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use netping_measure::cost::ServerDemand;

    use super::*;
    use crate::{
        fixtures::{run, step},
        metric,
        run::{Kind, Pairing, Run},
        warning::ClientThrottled,
    };

    /// Trials of a target, whose p50 is `microseconds`.
    fn trials(target: &str, microseconds: &[f64]) -> Vec<Step> {
        let one = |time: &f64| Step {
            target: target.to_owned(),
            ..step(1, |_| vec![(time * 1e3) as u64; 1000])
        };
        microseconds.iter().map(one).collect()
    }

    /// A run in which all others are compared with the first, the last of them as the control.
    fn against_first(targets: &[&[f64]], has_control: bool) -> Run {
        let mut steps = Vec::new();
        for (at, times) in targets.iter().enumerate() {
            steps.extend(trials(&format!("tcp://h:{at}"), times));
        }
        let last = targets.len() - 1;
        Run {
            pairings: Pairing::against_first(0..targets.len())
                .map(|pairing| Pairing {
                    is_control: has_control && pairing.new == last,
                    ..pairing
                })
                .collect(),
            ..run(steps)
        }
    }

    fn by_p50<'a>(pairs: &'a [Compared<'_>], at: usize) -> &'a Comparison {
        pairs[at].by(&metric::P50).unwrap()
    }

    #[test]
    fn what_ab_decides_by_counts_with_its_control() {
        // The base's noise is the opposite of its control's.
        let times: [&[f64]; 4] = [
            &[100.0, 110.0, 100.0, 110.0],
            &[110.0, 100.0, 110.0, 100.0],
            &[200.0, 200.0, 200.0, 200.0],
            &[242.0, 242.0, 242.0, 242.0],
        ];
        let mut run = against_first(&times, false);
        let control = |base, new| Pairing {
            is_control: true,
            ..Pairing::new(base, new)
        };
        run.pairings = vec![control(0, 1), control(2, 3), Pairing::new(0, 2)];
        let found = |run: &Run| {
            let all = run.compared();
            let own = *all[2].by(&metric::P50).unwrap();
            let control = all[1].by(&metric::P50).unwrap().change.unwrap();
            (own, control, all[2].new.names())
        };
        let (alone, _, name) = found(&run);
        assert_eq!(name, "tcp://h:2");
        run.kind = Kind::Ab;
        for (at, step) in run.steps.iter_mut().enumerate() {
            // By turns, as `ab` measures.
            (step.settings.together, step.trial) = (Some(4), (at % 4 + 1) as u32);
            step.cost.server = Some(ServerDemand {
                cpu_us_per_request: Some(10.0 + at as f64),
                ..ServerDemand::default()
            });
        }
        let has_cpu = |run: &Run| -> Vec<bool> {
            let all = run.compared();
            all.iter()
                .map(|own| own.by(&metric::SERVER_CPU).is_some())
                .collect()
        };
        // By command, each is a process of its own.
        assert_eq!(has_cpu(&run), [true; 3]);
        // Together, one server has one window: it cannot differ from itself.
        let mut same = run.clone();
        for step in &mut same.steps {
            step.target = format!("tcp://h:{}", step.measurement / 2);
        }
        assert_eq!(has_cpu(&same), [false, false, true]);
        // Nothing is claimed about controls.
        assert_eq!(run.family().claims, claims(metric::BY_TURNS));
        let (both, control, name) = found(&run);
        assert_eq!(name, "tcp://h:2 and tcp://h:3");
        assert!((control - 0.21).abs() < 1e-3, "{control}");
        // The means of both on logarithms: 104.88 and 220.
        let change = both.change.unwrap();
        assert!((change - (220.0 / 104.88 - 1.0)).abs() < 2e-3, "{change}");
        let ratio = both.new.unwrap().value / both.base.unwrap().value - 1.0;
        assert!((ratio - change).abs() < 1e-9);
        let width = |own: &Comparison| own.interval.map(|[low, high]| high - low).unwrap();
        assert!(width(&both) < width(&alone) / 5.0, "{both:?}");
    }

    #[test]
    fn rounds_cancel_what_changes_from_round_to_round() {
        // 5 % between targets, a factor of 2 between rounds.
        let run = against_first(&[&[100.0, 200.0, 150.0], &[105.0, 210.5, 157.0]], false);
        let pairs = run.compared();
        let by = by_p50(&pairs, 0);
        assert_eq!(by.finding(), Some(Finding::Worse), "{by:?}");
        let [low, high] = by.interval.unwrap();
        assert!(
            0.02 < low && low < 0.05 && 0.05 < high && high < 0.08,
            "{by:?}"
        );
        let (added, ends) = by.added().unwrap();
        let base = by.base.unwrap().value;
        assert!((added / (by.change.unwrap() * base) - 1.0).abs() < 1e-9);
        assert_eq!(ends, Some([low * base, high * base]));
    }

    #[test]
    fn all_that_is_claimed_together_widens_each_interval() {
        let times: &[f64] = &[100.0, 101.0, 99.0, 100.5];
        let slower: &[f64] = &[103.0, 102.0, 102.5, 103.0];
        let two = against_first(&[times, slower], false);
        let many = against_first(&[times, slower, times, times, times, times], false);
        assert_eq!((two.family().claims, many.family().claims), (4, 20));
        let width = |run: &Run| {
            let [low, high] = by_p50(&run.compared(), 0).interval.unwrap();
            high - low
        };
        assert!(width(&many) > 1.5 * width(&two));
        // Where trials could end earlier, four of them are too few for any, and ten are not.
        let looks = |times: &[f64], slower: &[f64]| Run {
            looks: 5,
            ..against_first(&[times, slower], false)
        };
        let few = looks(times, slower);
        assert_eq!(by_p50(&few.compared(), 0).interval, None);
        let [times, slower] = [times, slower].map(|own| own.repeat(3));
        let fixed = against_first(&[&times, &slower], false);
        assert!(width(&looks(&times, &slower)) > width(&fixed));
    }

    #[test]
    fn no_difference_within_that_of_the_control_is_shown() {
        let base: &[f64] = &[100.0, 101.0, 99.0, 100.5];
        let slower: &[f64] = &[103.0, 104.0, 102.0, 103.5];
        let near: &[f64] = &[100.1, 101.0, 99.1, 100.5];
        let far: &[f64] = &[96.0, 97.0, 95.0, 96.5];
        let run = against_first(&[base, slower, near], true);
        let pairs = run.compared();
        assert_eq!(by_p50(&pairs, 0).finding(), Some(Finding::Worse));
        assert!(by_p50(&pairs, 0).noise.is_some() && by_p50(&pairs, 1).noise.is_none());
        let run = against_first(&[base, slower, far], true);
        let pairs = run.compared();
        assert_eq!(by_p50(&pairs, 0).finding(), Some(Finding::NoDifference));
    }

    #[test]
    fn a_control_counts_on_a_logarithmic_scale() {
        let noise = |noise: f64, change: f64| Comparison {
            change: Some(change),
            interval: Some([change - 1e-3, change + 1e-3]),
            noise: Some(noise),
            ..*by_p50(
                &against_first(&[&[100.0, 101.0], &[103.0, 104.0]], false).compared(),
                0,
            )
        };
        // As much as the control is no more than it.
        assert_eq!(noise(0.05, 0.05).is_shown(), Some(false));
        // 1 / 1.10 is as far from 1 as 1.10.
        assert_eq!(noise(-0.0909, 0.0999).is_shown(), Some(false));
        assert_eq!(noise(-0.0909, 0.1001).is_shown(), Some(true));
    }

    #[test]
    fn values_within_the_margin_are_equivalent() {
        let base: &[f64] = &[100.0, 101.0, 99.0, 100.5];
        let same: &[f64] = &[100.2, 100.9, 99.1, 100.4];
        let with = |margin| {
            let run = Run {
                margin,
                ..against_first(&[base, same], false)
            };
            by_p50(&run.compared(), 0).finding()
        };
        assert_eq!(with(Some(0.05)), Some(Finding::Equivalent));
        assert_eq!(with(Some(0.001)), Some(Finding::NoDifference));
        assert_eq!(with(None), Some(Finding::NoDifference));
        // The least margin is that of the two one-sided tests, as four claims are made.
        let logarithms = |times: &[f64]| -> Vec<f64> {
            let slots = trials("tcp://h:1", times);
            let values = slots.iter().filter_map(|step| metric::P50.of_step(step));
            values.map(f64::ln).collect()
        };
        let (first, second) = (logarithms(base), logarithms(same));
        let difference = Difference::paired(&first, &second, RESOLUTION).unwrap();
        let least = difference.equivalence(Together::fixed(4)).unwrap().exp_m1();
        assert_eq!(with(Some(1.001 * least)), Some(Finding::Equivalent));
        assert_eq!(with(Some(0.999 * least)), Some(Finding::NoDifference));
    }

    #[test]
    fn metrics_without_a_claim_have_no_finding() {
        let run = Run {
            kind: Kind::Proxy,
            ..against_first(&[&[100.0, 101.0], &[200.0, 203.0]], false)
        };
        let mut planned = run.clone();
        for step in &mut planned.steps {
            step.settings.planned_rate = Some(1000.0);
        }
        let pairs = planned.compared();
        assert_eq!(planned.family().claims, 2);
        let p90 = pairs[0].by(&metric::P90).unwrap();
        assert!(p90.finding().is_none() && p90.interval.is_some());
        assert!(by_p50(&pairs, 0).finding().is_some());
        // With a fixed number of callers, a time says nothing that the rate does not.
        let pairs = run.compared();
        assert!(pairs[0].by(&metric::P50).is_none() && pairs[0].by(&metric::RATE).is_some());
    }

    #[test]
    fn fewer_claims_and_more_trials_show_smaller_differences() {
        let family = |claims| Family {
            claims,
            at_any_time: false,
            is_apart: false,
            margin: None,
        };
        // t(0.99643, 5) = 4.38175 and t(0.8, 5) = 0.91954, times a standard error of ln(1.05) / sqrt(6).
        let least = family(7).detectable(6, 0.05).unwrap();
        assert!((least - 0.111_370).abs() < 1e-6, "{least}");
        assert!(family(35).detectable(6, 0.05) > Some(least));
        assert!(family(7).detectable(12, 0.05) < Some(least));
        assert_eq!(family(7).detectable(1, 0.05), None);
    }

    #[test]
    fn neither_of_two_targets_is_called_better_where_their_connections_differ() {
        let mut run = against_first(&[&[100.0, 101.0, 99.0], &[200.0, 203.0, 201.0]], false);
        assert_eq!(by_p50(&run.compared(), 0).finding(), Some(Finding::Worse));
        for step in run.steps.iter_mut().filter(|step| step.measurement == 1) {
            step.settings.connections = 1;
        }
        assert_eq!(by_p50(&run.compared(), 0).finding(), Some(Finding::Unequal));
        // A target on other connections is compared on purpose.
        for step in &mut run.steps {
            step.target = "tcp://h:1".to_owned();
        }
        assert_eq!(by_p50(&run.compared(), 0).finding(), Some(Finding::Worse));
    }

    #[test]
    fn what_is_not_valid_claims_nothing_and_makes_the_rest_doubtful() {
        let times: &[f64] = &[100.0, 101.0, 99.0, 100.5, 100.0];
        let slower: &[f64] = &[103.0, 104.0, 102.0, 103.5, 103.0];
        let mut run = against_first(&[times, slower, slower], false);
        let standings = |run: &Run| -> Vec<_> {
            let pairs = run.compared();
            let pairs = pairs
                .iter()
                .map(|pair| (pair.standing(), pair.invalidating.clone()));
            pairs.collect()
        };
        let sound = (Standing::Sound, Vec::new());
        assert_eq!(standings(&run), [sound.clone(), sound.clone()]);
        // A fifth of the last target's windows, and two.
        let throttled = ClientThrottled { seconds: 0.5 };
        run.steps[10].warnings = vec![throttled.clone().into()];
        assert_eq!(standings(&run), [sound.clone(), sound]);
        run.steps[11].warnings = vec![throttled.into()];
        let doubtful = (Standing::Doubtful, Vec::new());
        let not_valid = (Standing::NotValid, vec!["CLIENT_THROTTLED"]);
        assert_eq!(standings(&run), [doubtful, not_valid]);
        let pairs = run.compared();
        assert_eq!(by_p50(&pairs, 0).finding(), Some(Finding::Worse));
        assert_eq!(by_p50(&pairs, 1).finding(), Some(Finding::NotValid));
    }

    #[test]
    fn a_change_from_0_has_no_share() {
        assert_eq!(change(&metric::SERVER_CPU, 0.0, 2.0), None);
        assert_eq!(change(&metric::SERVER_CPU, 0.0, 0.0), Some(0.0));
        assert_eq!(change(&metric::SERVER_CPU, 4.0, 5.0), Some(0.25));
        // Errors differ in percentage points.
        assert_eq!(change(&metric::ERROR_SHARE, 0.0, 0.25), Some(0.25));
    }
}
