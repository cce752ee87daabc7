//! The one way from trials to a number.

use std::{collections::BTreeMap, f64::consts::LN_2, iter};

use netping_measure::{
    statistics::{moments::Moments, together::Together},
    status::Status,
};

use crate::{
    metric::Metric,
    run::{Measurement, Step},
};

/// The value of a metric over the trials of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value, in the metric's unit.
    pub value: f64,
    /// Its 95 % interval: that of the trials, or, of a single trial, the one within it. Absent where
    /// there is none.
    pub interval: Option<[f64; 2]>,
    /// The number of trials that have a value, and count.
    pub trials: usize,
    /// The number of trials that do not.
    pub missing: usize,
    /// True where the value is a lower bound, because some requests got no reply.
    pub is_bound: bool,
}

impl Estimate {
    /// Returns half the width of the interval upwards, as a share of the value.
    pub fn half_width(&self) -> Option<f64> {
        let [_, high] = self.interval?;
        (self.value > 0.0).then(|| high / self.value - 1.0)
    }
}

/// Returns the value of `metric` over the trials of a measurement; `None` where none has a value.
///
/// Every trial counts once, however many requests it had. On a logarithmic scale the value is the
/// geometric mean, so that the ratio of two values is the mean of the trials' ratios; else it is the
/// arithmetic mean. The interval is Student's t of the same mean. A trial that was cut short, or has
/// too few samples for a value, is missing, and is missing from every measurement that this one is
/// compared with. Where the trials could end at several looks, the interval holds at all of them.
///
/// A value that few times make, such as the maximum, is not near enough to normal for Student's t: it
/// has bounds, between which the median of the trials lies.
pub fn estimate(metric: &Metric, measurement: &Measurement<'_>) -> Option<Estimate> {
    let together = Together {
        intervals: 1,
        at_any_time: measurement.run.is_sequential(),
    };
    let rounds = Rounds::of(metric, measurement);
    let trials = rounds.steps.len();
    let missing = measurement.trials.len() - trials;
    let mut steps = rounds.steps.iter().chain(&measurement.again);
    let is_bound = steps.any(|step| metric.is_bound_of(step));
    let of = |value, interval| Estimate {
        value,
        interval,
        trials,
        missing,
        is_bound,
    };
    match rounds.steps[..] {
        [] => without_value(metric, measurement),
        [only] if measurement.again.is_empty() => Some(of(
            metric.of_step(only)?,
            metric.interval(only).filter(|_| !together.at_any_time),
        )),
        _ => {
            let moments = Moments::of(&rounds.values)?;
            let ends = if metric.is_of_few_times() {
                bounds(&rounds.values, moments.mean, measurement.run.looks)
            } else {
                let half = moments.half_width(together);
                half.map(|half| [moments.mean - half, moments.mean + half])
            };
            let interval = ends.map(|ends| ends.map(|end| metric.scale.back(end)));
            Some(of(metric.scale.back(moments.mean), interval))
        }
    }
}

/// Returns the values between which the median lies with a probability of 95 %, whatever their
/// distribution, and `value` too (David and Nagaraja, "Order Statistics", section 7.1); widened for the
/// number of looks. `None` with fewer than six values.
fn bounds(values: &[f64], value: f64, looks: usize) -> Option<[f64; 2]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // The logarithm of the probability that a certain number of values, and no more, lies below the median: of a
    // thousand values, that of the first is less than a float can hold.
    let mut chance = -(n as f64) * LN_2;
    let (mut beyond, mut below) = (2.0 * chance.exp(), 0);
    while beyond * looks as f64 <= 0.05 && below < n / 2 {
        below += 1;
        chance += ((n - below + 1) as f64 / below as f64).ln();
        beyond += 2.0 * chance.exp();
    }
    let low = sorted[below.checked_sub(1)?];
    Some([low.min(value), sorted[n - below].max(value)])
}

/// Returns the 0 that all trials of a logarithmic metric have, such as the rate of a server that
/// never replied, or the value of a single trial that was cut short.
fn without_value(metric: &Metric, measurement: &Measurement<'_>) -> Option<Estimate> {
    let mut values = measurement.trials.iter().map(|step| metric.of_step(step));
    let value = if let [only] = measurement.trials[..] {
        metric.of_step(only)?
    } else {
        values.find(|value| *value == Some(0.0))??
    };
    Some(Estimate {
        value,
        interval: None,
        trials: 0,
        missing: measurement.trials.len(),
        is_bound: measurement
            .trials
            .iter()
            .any(|step| metric.is_bound_of(step)),
    })
}

/// The trials of a measurement that have a value, on the scale of the metric.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    pub steps: Vec<&'a Step>,
    pub values: Vec<f64>,
}

impl<'a> Rounds<'a> {
    /// Returns the complete rounds of `measurement`: those in which every measurement that it is
    /// compared with has a value. A measurement without any value is not waited for. Where its control counts
    /// as well, a round's value is the mean of both.
    pub fn of(metric: &Metric, measurement: &Measurement<'a>) -> Self {
        let mut known: BTreeMap<u32, usize> = BTreeMap::new();
        let mut valued: Vec<usize> = Vec::new();
        for step in &*measurement.together {
            if value(metric, step).is_some() {
                *known.entry(step.trial).or_default() += 1;
                if !valued.contains(&step.measurement) {
                    valued.push(step.measurement);
                }
            }
        }
        let is_complete = |step: &Step| known.get(&step.trial) == Some(&valued.len());
        let place = |step: &Step| {
            let again = measurement.again.iter();
            let again = again.filter(|other| other.trial == step.trial);
            let all = iter::once(&step).chain(again);
            let places: Option<Vec<f64>> = all.map(|own| value(metric, own)).collect();
            Some(Moments::of(&places?)?.mean)
        };
        let (steps, places) = measurement
            .trials
            .iter()
            .filter(|step| is_complete(step))
            .filter_map(|step| Some((*step, place(step)?)))
            .unzip();
        Self {
            steps,
            values: places,
        }
    }
}

/// Returns the value of a whole trial on the metric's scale.
fn value(metric: &Metric, step: &Step) -> Option<f64> {
    let value = metric
        .of_step(step)
        .filter(|_| step.status == Status::Complete)?;
    Some(metric.scale.place(value)).filter(|place| place.is_finite())
}

#[cfg(test)]
mod tests {
    use std::slice;

    use netping_measure::times::Time;

    use super::*;
    use crate::{
        fixtures::{self, run, step},
        metric,
        run::{Pairing, Run},
    };

    fn around(microseconds: f64, requests: usize) -> Step {
        step(1, |_| vec![(microseconds * 1e3) as u64; requests])
    }

    fn p50(run: &Run) -> Estimate {
        estimate(&metric::P50, &run.measurements()[0]).unwrap()
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 2e-3
    }

    #[test]
    fn every_trial_counts_once_however_many_requests_it_had() {
        let trials = vec![
            around(8.06, 9000),
            around(8.16, 9000),
            around(8.04, 9000),
            around(8.23, 9000),
            around(8.04, 9000),
            around(208.0, 300),
        ];
        let estimate = p50(&run(trials));
        // exp of the mean of the logarithms; the arithmetic mean would be 41.4, the pooled median
        // 8.06.
        assert!(near(estimate.value, 13_931.0), "{estimate:?}");
        let [low, high] = estimate.interval.unwrap();
        // t(0.975, 5) = 2.5706 standard errors of 0.5409 on logarithms.
        assert!(near(low, 3_466.0) && near(high, 55_929.0), "{estimate:?}");
        assert_eq!((estimate.trials, estimate.missing), (6, 0));
    }

    #[test]
    fn one_trial_has_the_interval_found_within_it() {
        let one = step(60, |second| {
            (0..200)
                .map(|at| 10_000 + at * 10 + second * 37 % 50)
                .collect()
        });
        let interval = one.summary.times[Time::Response].p50_interval.unwrap();
        let estimate = p50(&run(vec![one]));
        assert_eq!(estimate.interval, Some(interval.map(|end| end as f64)));
        assert_eq!((estimate.trials, estimate.missing), (1, 0));
    }

    #[test]
    fn a_trial_without_a_value_is_missing_and_does_not_erase_the_others() {
        let cut_short = Step {
            status: Status::Partial,
            ..around(50.0, 1000)
        };
        let run = run(vec![
            around(10.0, 1000),
            around(90.0, 3),
            around(10.0, 1000),
            cut_short,
        ]);
        let estimate = p50(&run);
        assert!(near(estimate.value, 10_000.0), "{estimate:?}");
        assert_eq!((estimate.trials, estimate.missing), (2, 2));
    }

    #[test]
    fn compared_measurements_have_the_same_rounds() {
        let other = |step: Step| Step {
            target: "tcp://b:1".to_owned(),
            ..step
        };
        let mut run = run(vec![
            around(10.0, 1000),
            around(20.0, 1000),
            around(40.0, 1000),
            other(around(30.0, 1000)),
            other(around(90.0, 3)),
            other(around(30.0, 1000)),
        ]);
        assert!(near(p50(&run).value, 20_000.0));
        run.pairings = vec![Pairing::new(0, 1)];
        // Without the round that the other lacks.
        let estimate = p50(&run);
        assert!(
            near(estimate.value, 20_000.0) && estimate.trials == 2,
            "{estimate:?}"
        );
        let pair = &run.compared()[0];
        let by = pair.by(&metric::P50).unwrap();
        let ratio = by.new.unwrap().value / by.base.unwrap().value;
        assert!(near(by.change.unwrap() + 1.0, ratio), "{by:?}");
    }

    #[test]
    fn values_that_may_be_0_are_averaged_as_they_are() {
        let failing = |failed: u64| {
            let mut step = around(10.0, 1000);
            step.summary.scheduled = 1000 + failed;
            step.summary.accounting.not_sent = failed;
            step
        };
        let run = run(vec![failing(0), failing(1000)]);
        let errors = estimate(&metric::ERROR_SHARE, &run.measurements()[0]).unwrap();
        assert!((errors.value - 0.25).abs() < 1e-9, "{errors:?}");
    }

    #[test]
    fn a_rate_of_0_is_told_only_where_there_is_no_other() {
        let dead = |_: u64| Vec::new();
        let all = run(vec![step(1, dead), step(1, dead)]);
        let rate = |run: &Run| estimate(&metric::RATE, &run.measurements()[0]).unwrap();
        assert_eq!((rate(&all).value, rate(&all).interval), (0.0, None));
        let one = run(vec![step(1, dead)]);
        assert!(rate(&one).value.abs() < 1e-9);
        let some = rate(&run(vec![step(1, dead), around(10.0, 1000)]));
        assert_eq!((some.value, some.trials, some.missing), (1000.0, 1, 1));
    }

    #[test]
    fn an_estimate_is_a_bound_where_a_trial_is() {
        let times = fixtures::step(1, |_| vec![1_000_000; 1000]);
        let mut unanswered = times.clone();
        unanswered.histograms.censored = unanswered.histograms.times[Time::Response].clone();
        unanswered.summary.times[Time::Response] =
            netping_measure::distribution::Distribution::censored(
                &unanswered.histograms.times[Time::Response],
                &unanswered.histograms.censored,
            );
        assert!(!p50(&run(vec![times.clone()])).is_bound);
        assert!(p50(&run(slice::from_ref(&unanswered).to_vec())).is_bound);
        assert!(p50(&run(vec![times, unanswered])).is_bound);
    }

    /// Binomial: six values are the fewest, of which the extremes are bounds (2 / 2^6 = 3.1 %); of
    /// nine the second and the eighth (2 * 10 / 2^9 = 3.9 %); of twenty the sixth and the fifteenth
    /// (4.1 %), by the table of David and Nagaraja.
    #[test]
    fn the_median_lies_between_order_statistics() {
        let values: Vec<f64> = (1..=22).rev().map(f64::from).collect();
        let of = |n: usize, looks| bounds(&values[22 - n..], 5.5, looks);
        // By the normal approximation, 1000.5 -+ 1.96 sqrt(2000) / 2 = 956.7 and 1044.3.
        let many: Vec<f64> = (1..=2000).map(f64::from).collect();
        assert_eq!(bounds(&many, 1000.0, 1), Some([956.0, 1045.0]));
        assert_eq!(of(5, 1), None);
        assert_eq!(of(6, 1), Some([1.0, 6.0]));
        assert_eq!(of(8, 1), Some([1.0, 8.0]));
        assert_eq!(of(9, 1), Some([2.0, 8.0]));
        assert_eq!(of(20, 1), Some([5.5, 15.0]));
        // 4.9 % for the fifth of 17, and 5.2 % for the seventh of 22.
        assert_eq!(of(17, 1), Some([5.0, 13.0]));
        assert_eq!(of(22, 1), Some([5.5, 17.0]));
        assert_eq!(bounds(&values, 6.5, 1), Some([6.0, 17.0]));
        assert_eq!(bounds(&values, 20.0, 1), Some([6.0, 20.0]));
        assert_eq!(of(9, 2), Some([1.0, 9.0]));
        for (metric, is_one) in [
            (&metric::P99, false),
            (&metric::P999, true),
            (&metric::SERVICE_P99, false),
            (&metric::SERVICE_P999, true),
            (&metric::MAX, true),
        ] {
            assert_eq!(metric.is_of_few_times(), is_one, "{}", metric.name);
        }
        let trials = (1..=6).map(|at| around(10.0 * f64::from(at), 1000));
        let longest = estimate(&metric::MAX, &run(trials.collect()).measurements()[0]).unwrap();
        let [low, high] = longest.interval.unwrap();
        assert!(near(low, 10_000.0) && near(high, 60_000.0), "{longest:?}");
    }
}
