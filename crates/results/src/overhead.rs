//! The overhead of a proxy over the direct path.

use netping_measure::statistics::{estimate::Moments, paired::Paired};
use serde::{Deserialize, Serialize};

use crate::{
    metric::{self, Metric},
    run::step::Step,
};

/// One metric of the response time through a proxy, against the direct path. Times are in
/// microseconds, and means of the trials' values; with a quantile that a trial has too few samples
/// for, there is no overhead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overhead {
    /// The proxy's name.
    pub via: String,
    /// The planned rate, in requests per second; absent in a closed loop.
    #[serde(rename = "planned_rate_per_s")]
    pub planned_rate: Option<f64>,
    /// The metric's name: `p50`, `p99.99`, `max`, `tm99.9`, `sd` and so on.
    pub measure: String,
    /// Its value on the direct path.
    pub direct_us: f64,
    /// Its value through the proxy.
    pub via_us: f64,
    /// The proxy's overhead: the second less the first.
    pub added_us: f64,
    /// The interval of `added_us`: with a probability of 95 %, those of all metrics hold their
    /// differences. Absent with one trial.
    pub interval_us: Option<[f64; 2]>,
    /// The probability of a difference at least as large by chance alone, times the number of
    /// metrics (Bonferroni), at most 1; absent with one trial.
    pub p_value: Option<f64>,
    /// Requests without a verified reply on either path. Where there are any, the times are of the
    /// others alone, and do not describe the proxy.
    #[serde(default)]
    pub failed: u64,
}

impl Overhead {
    /// Compares the path through the proxy `via` with the direct one, by each metric of which every
    /// trial of both sides has a value: Student's t-test of the differences within each trial,
    /// since the trials of all paths are interleaved. The steps are the trials of one setting,
    /// which both sides share.
    pub fn between(via: &str, direct: &[Step], by_way: &[Step]) -> Vec<Self> {
        metric::OVERHEAD
            .iter()
            .filter_map(|metric| by(metric, via, direct, by_way))
            .collect()
    }

    /// Returns the proxy's name, with a `*` where requests failed.
    pub fn marked_via(&self) -> String {
        let mark = if self.failed > 0 { "*" } else { "" };
        format!("{}{mark}", self.via)
    }

    /// Returns the addition as a share of the direct path's value; `None` where that is 0.
    pub fn relative(&self) -> Option<f64> {
        (self.direct_us != 0.0).then(|| self.added_us / self.direct_us)
    }
}

fn by(metric: &'static Metric, via: &str, direct: &[Step], by_way: &[Step]) -> Option<Overhead> {
    let [first, second] = [metric.of_trials(direct)?, metric.of_trials(by_way)?];
    let paired = Paired::compare(&first, &second, metric::OVERHEAD.len());
    let mean = |values: &[f64]| Some(Moments::of(values)?.mean / 1e3);
    let [direct_us, via_us] = [mean(&first)?, mean(&second)?];
    let added_us = via_us - direct_us;
    Some(Overhead {
        via: via.to_owned(),
        planned_rate: by_way.first()?.settings.planned_rate,
        measure: metric.name.to_owned(),
        direct_us,
        via_us,
        added_us,
        interval_us: paired.map(|paired| {
            let half = paired.half_width / 1e3;
            [added_us - half, added_us + half]
        }),
        p_value: paired.map(|paired| paired.p_value),
        failed: direct
            .iter()
            .chain(by_way)
            .map(|step| step.summary.unserved())
            .sum(),
    })
}

#[cfg(test)]
mod tests {
    use std::slice;

    use netping_measure::{
        aggregate::Aggregate, histogram::histogram, recorder::Interval, sample::LoopKind,
        window::Window,
    };

    use super::*;
    use crate::{fixtures, run::StepSettings};

    /// A trial with these response times, in microseconds, `times` of each.
    fn step(microseconds: &[u64], times: u64) -> Step {
        let mut interval = Interval::new(0);
        for us in microseconds {
            interval.service.saturating_record_n(us * 1000, times);
            interval.response.saturating_record_n(us * 1000, times);
        }
        let mut aggregate = Aggregate::new(LoopKind::Open);
        aggregate.add(interval);
        let step = fixtures::of(&aggregate.finish(
            Window {
                start: 0,
                end: 1_000_000_000,
            },
            &histogram(),
            &histogram(),
        ));
        let settings = StepSettings {
            arrivals: "constant".to_owned(),
            planned_rate: Some(1000.0),
            ..step.settings
        };
        Step { settings, ..step }
    }

    /// Trials whose times lie around these levels.
    fn trials(levels: [u64; 3]) -> Vec<Step> {
        levels
            .iter()
            .map(|level| step(&[*level, level + 20, level * 2, level * 3], 50_000))
            .collect()
    }

    #[test]
    fn a_slower_path_adds_time_within_its_interval() {
        let overheads =
            Overhead::between("relay", &trials([100, 102, 98]), &trials([150, 149, 152]));
        let names: Vec<_> = overheads
            .iter()
            .map(|overhead| overhead.measure.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "tm99.9", "sd"
            ]
        );
        for overhead in &overheads {
            assert_eq!(
                (overhead.via.as_str(), overhead.planned_rate),
                ("relay", Some(1000.0))
            );
            assert!(
                overhead.added_us > 0.0 && overhead.relative().unwrap() > 0.0,
                "{overhead:?}"
            );
            let [low, high] = overhead.interval_us.unwrap();
            assert!(
                low <= overhead.added_us && overhead.added_us <= high && low < high,
                "{overhead:?}"
            );
            assert!(
                (0.0..=1.0).contains(&overhead.p_value.unwrap()),
                "{overhead:?}"
            );
        }
        // The mean of 120, 122 and 118, and of 170, 169 and 172.
        let p50 = &overheads[0];
        assert!(
            (p50.direct_us - 120.0).abs() < 0.2 && (p50.via_us - 170.3).abs() < 0.2,
            "{p50:?}"
        );
        // The mean of 300, 306 and 294.
        let max = &overheads[6];
        assert!((max.direct_us - 300.0).abs() < 0.4, "{max:?}");
    }

    #[test]
    fn a_faster_path_has_negative_overhead() {
        let overheads =
            Overhead::between("cache", &trials([150, 149, 152]), &trials([100, 102, 98]));
        assert!(
            overheads.iter().all(|overhead| overhead.added_us < 0.0),
            "{overheads:?}"
        );
        assert!(
            overheads
                .iter()
                .all(|overhead| overhead.interval_us.unwrap()[1] < 0.0),
            "{overheads:?}"
        );
    }

    #[test]
    fn drift_that_both_paths_have_is_not_an_overhead() {
        let steps = [trials([100, 130, 160]), trials([101, 129, 161])];
        for overhead in Overhead::between("nothing", &steps[0], &steps[1]) {
            let [low, high] = overhead.interval_us.unwrap();
            assert!(low < 0.0 && high > 0.0, "{overhead:?}");
        }
        // Unpaired, 10 us more would drown in the drift of 60.
        let slower = Overhead::between("relay", &steps[0], &trials([110, 140, 170]));
        assert!(slower[0].interval_us.unwrap()[0] > 0.0, "{:?}", slower[0]);
    }

    #[test]
    fn one_trial_has_values_but_no_interval() {
        let overheads =
            Overhead::between("relay", &[step(&[100], 200_000)], &[step(&[150], 200_000)]);
        assert_eq!(overheads.len(), 9);
        for overhead in &overheads {
            assert_eq!((overhead.interval_us, overhead.p_value), (None, None));
        }
        assert!(
            (overheads[0].added_us - 50.0).abs() < 0.2,
            "{:?}",
            overheads[0]
        );
    }

    #[test]
    fn requests_that_failed_on_either_path_are_counted() {
        let failing = |failed: u64| {
            let mut step = step(&[100], 1000);
            step.summary.scheduled = step.summary.accounting.ok + failed;
            step
        };
        let failed = |direct: &[Step], by_way: &[Step]| -> Vec<u64> {
            Overhead::between("relay", direct, by_way)
                .iter()
                .map(|overhead| overhead.failed)
                .collect()
        };
        let sums = failed(&[failing(0), failing(2)], &[failing(3), failing(0)]);
        assert!(
            !sums.is_empty() && sums.iter().all(|sum| *sum == 5),
            "{sums:?}"
        );
        assert!(
            failed(&[failing(0)], &[failing(0)])
                .iter()
                .all(|sum| *sum == 0)
        );
    }

    #[test]
    fn a_metric_without_enough_samples_in_every_trial_is_left_out() {
        let names = |direct: &[Step], by_way: &[Step]| -> Vec<String> {
            Overhead::between("relay", direct, by_way)
                .into_iter()
                .map(|overhead| overhead.measure)
                .collect()
        };
        let (many, few) = (step(&[100, 200], 50_000), step(&[100, 200], 500));
        let without_the_tail = ["p50", "p90", "p95", "p99", "max", "tm99.9", "sd"];
        assert_eq!(
            names(&[many.clone(), few.clone()], &[many.clone(), many.clone()]),
            without_the_tail
        );
        let many = slice::from_ref(&many);
        assert_eq!(names(many, &[few]), without_the_tail);
        // Nothing came back at all.
        assert_eq!(names(many, &[step(&[], 0)]), Vec::<String>::new());
        assert_eq!(names(many, &[]), Vec::<String>::new());
    }
}
