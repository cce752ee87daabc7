//! The numbers that are pushed: for each target, those of the current or last step.

use std::{
    fmt,
    sync::{LazyLock, Mutex, PoisonError, atomic::AtomicU64},
};

use netping_client::plan::Plan;
use netping_measure::{counts::Counts, recorder::Interval, times::Time};
use netping_results::{
    metric::{self, Metric, Source},
    run::Step,
};
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet, text},
    metrics::{MetricType, TypedMetric, family::Family, gauge::Gauge},
    registry::Registry,
};

/// The upper ends of the histogram's buckets, in nanoseconds: 1, 2, 5 and so on, from 1 us to 50 s.
static BOUNDS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let decades = (3..11).map(|power| 10_u64.pow(power));
    let bounds = decades.flat_map(|decade| [decade, 2 * decade, 5 * decade]);
    bounds.collect()
});

type Labels = Vec<(&'static str, String)>;

type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// The numbers of every target.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    running: Gauges,
    callers: Gauges,
    planned_rate: Gauges,
    rate: Gauges,
    replies: Gauges,
    failures: Gauges,
    /// In seconds, as [`metric::COSTS`].
    costs: Vec<Gauges>,
    /// Of the response time of a step that is done, in seconds.
    quantiles: Gauges,
    response_times: Family<Labels, TimeBuckets>,
    /// Those of the current step, or of each of several that are measured together.
    current: Vec<Labels>,
}

impl Metrics {
    /// Returns metrics without a number.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let response_times = Family::default();
        registry.register(
            "netping_response_time_seconds",
            "Response times of the step, in seconds",
            response_times.clone(),
        );
        let mut gauges = |name: &str, help: &str| {
            let gauges = Gauges::default();
            registry.register(format!("netping_{name}"), help, gauges.clone());
            gauges
        };
        Self {
            running: gauges("running", "1 until the numbers of the step are final"),
            callers: gauges("callers", "Callers, each with one request outstanding"),
            planned_rate: gauges("planned_rate_per_second", "Requests due per second"),
            rate: gauges("rate_per_second", "Verified replies per second"),
            replies: gauges("replies", "Verified replies of the step"),
            failures: gauges("failures", "Failed requests of the step"),
            costs: metric::COSTS
                .iter()
                .map(|metric| {
                    let help = format!("{}, in seconds", metric.about);
                    gauges(&metric.key.replace("_us_", "_seconds_"), &help)
                })
                .collect(),
            quantiles: gauges(
                "response_time_quantile_seconds",
                "Quantiles of final times; one of which only a lower bound is known is left out",
            ),
            response_times,
            current: Vec::new(),
            registry,
        }
    }

    /// Begins a step, which replaces an earlier one of the same target; or one for each of several targets that are
    /// measured together.
    pub fn begin(&mut self, plans: &[Plan]) {
        let label = |plan: &Plan| labels(plan.target.url.to_string(), plan.target.label.as_deref());
        self.current = plans.iter().map(label).collect();
        for (plan, own) in plans.iter().zip(&self.current) {
            self.clear(own);
            set(&self.running, own, 1.0);
            set(&self.callers, own, plan.load.callers as f64);
            if let Some(rate) = plan.load.mean_rate(plan.load.arrival) {
                set(&self.planned_rate, own, rate);
            }
            self.add_times(own, &Counts::default());
        }
        if let Some(own) = self.alone() {
            for gauges in [&self.rate, &self.replies, &self.failures] {
                set(gauges, own, 0.0);
            }
        }
    }

    /// Removes what an earlier step had.
    fn clear(&self, own: &Labels) {
        let counts = [
            &self.planned_rate,
            &self.rate,
            &self.replies,
            &self.failures,
        ];
        for gauges in self.costs.iter().chain(counts) {
            gauges.remove(own);
        }
        for metric in metric::PUSHED_QUANTILES {
            self.quantiles.remove(&quantile(own, metric));
        }
        self.response_times.remove(own);
    }

    /// Returns the current step, if it is one: what comes of several together is not told apart before their end.
    fn alone(&self) -> Option<&Labels> {
        match &self.current[..] {
            [own] => Some(own),
            _ => None,
        }
    }

    /// Notes the current rate, in replies per second.
    pub fn set_rate(&self, rate: f64) {
        if let Some(own) = self.alone() {
            set(&self.rate, own, rate);
        }
    }

    /// Adds an interval of a worker.
    pub fn add(&self, interval: &Interval) {
        let Some(own) = self.alone() else {
            return;
        };
        let replies = interval.times[Time::Service].len() as f64;
        let failures = interval.accounting.failed() as f64;
        self.replies.get_or_create(own).inc_by(replies);
        self.failures.get_or_create(own).inc_by(failures);
        self.add_times(own, &interval.response_times().into());
    }

    /// Takes the final numbers of a step.
    pub fn end(&self, step: &Step) {
        let accounting = &step.summary.accounting;
        let own = &labels(step.target.clone(), step.label.as_deref());
        self.clear(own);
        set(&self.running, own, 0.0);
        let numbers = [
            (&self.planned_rate, step.settings.planned_rate),
            (&self.rate, step.rate()),
            (&self.replies, Some(accounting.ok as f64)),
            (&self.failures, Some(accounting.failed() as f64)),
        ];
        let costs = metric::COSTS.iter().map(|metric| metric.of_step(step));
        let costs = costs.map(|micros| micros.map(|micros| micros / 1e6));
        for (gauges, value) in numbers.into_iter().chain(self.costs.iter().zip(costs)) {
            if let Some(value) = value {
                set(gauges, own, value);
            }
        }
        for metric in metric::PUSHED_QUANTILES {
            let known = metric.of_step(step).filter(|_| !metric.is_bound_of(step));
            if let Some(nanos) = known {
                set(&self.quantiles, &quantile(own, metric), nanos / 1e9);
            }
        }
        self.add_times(own, &step.histograms.times[Time::Response]);
    }

    /// Ends a step that failed to start.
    pub fn abandon(&self) {
        for own in &self.current {
            set(&self.running, own, 0.0);
        }
    }

    /// Encodes the numbers in Prometheus' text format.
    ///
    /// # Errors
    /// None in practice: the text is written to memory.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode_registry(&mut text, &self.registry)?;
        Ok(text)
    }

    fn add_times(&self, own: &Labels, times: &Counts) {
        self.response_times.get_or_create(own).add(times);
    }
}

fn labels(target: String, label: Option<&str>) -> Labels {
    vec![
        ("target", target),
        ("label", label.unwrap_or_default().to_owned()),
    ]
}

fn set(gauges: &Gauges, own: &Labels, value: f64) {
    gauges.get_or_create(own).set(value);
}

/// Returns the labels of a quantile, which Prometheus writes as a share: `0.999`.
fn quantile(own: &Labels, metric: &Metric) -> Labels {
    let share = match metric.source {
        Source::Quantile(percent) => {
            let digits = format!("{:.6}", percent / 100.0);
            digits.trim_end_matches('0').to_owned()
        }
        _ => metric.name.to_owned(),
    };
    [&own[..], &[("quantile", share)]].concat()
}

/// A histogram as Prometheus has it: the sum in seconds, and the number of times up to each of
/// [`BOUNDS`], and beyond the last.
#[derive(Debug, Default)]
struct TimeBuckets(Mutex<(f64, [u64; 25])>);

impl TimeBuckets {
    /// Adds times in nanoseconds.
    fn add(&self, times: &Counts) {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (sum, counts) = &mut *own;
        for (time, count) in times.iter() {
            counts[BOUNDS.partition_point(|&bound| bound < time)] += count;
            *sum += time as f64 / 1e9 * count as f64;
        }
    }
}

impl TypedMetric for TimeBuckets {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for TimeBuckets {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let (sum, counts) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bounds = BOUNDS.iter().map(|&bound| bound as f64 / 1e9);
        let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        encoder.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use netping_client::{
        plan::{Destination, Trust},
        probe::metrics::ServerSource,
        transport::Kind,
    };
    use netping_protocol::secure::Connector;
    use netping_results::fixtures;

    use super::*;

    fn plan(target: &str, label: Option<&str>) -> Plan {
        let secured = (Connector::Plain, Trust::default());
        let url = target.parse().unwrap();
        let mut destination = Destination::new(url, ServerSource::Nowhere, secured);
        destination.label = label.map(str::to_owned);
        Plan::new(destination, Kind::Line)
    }

    /// The value of a sample, by the text before it.
    fn sample(text: &str, name: &str) -> Option<f64> {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    fn begin(metrics: &mut Metrics, target: &str, label: Option<&str>, times: &[(u64, u64)]) {
        metrics.begin(&[plan(target, label)]);
        metrics.set_rate(5.0);
        metrics.add_times(&metrics.current[0], &times.to_vec().into());
    }

    #[test]
    fn buckets_add_up_from_the_left() {
        let mut metrics = Metrics::new();
        let times = [(900, 1), (1000, 1), (1001, 2), (90_000_000_000, 1)];
        begin(&mut metrics, "tcp://h:1", None, &times);
        let text = metrics.text().unwrap();
        let labels = "{target=\"tcp://h:1\",label=\"\"}";
        let count = format!("netping_response_time_seconds_count{labels}");
        assert_eq!(
            sample(&text, &count).map(|count| count as u64),
            Some(5),
            "{text}"
        );
        let buckets: Vec<u64> = text
            .lines()
            .filter(|line| line.starts_with("netping_response_time_seconds_bucket{"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(
            (
                buckets.len(),
                buckets[0],
                buckets[1],
                buckets[23],
                buckets[24]
            ),
            (25, 2, 4, 4, 5)
        );
        assert!(
            text.contains("le=\"+Inf\"") && !text.contains("# EOF"),
            "{text}"
        );
    }

    #[test]
    fn a_targets_next_step_takes_the_place_of_its_last() {
        let mut metrics = Metrics::new();
        begin(&mut metrics, "tcp://h:1", None, &[(900, 7)]);
        begin(&mut metrics, "tcp://h:2", None, &[(900, 8)]);
        begin(&mut metrics, "tcp://h:1", None, &[(900, 9)]);
        metrics.set_rate(6.0);
        let text = metrics.text().unwrap();
        let value = |name: &str, target: &str| {
            let name = format!("netping_{name}{{target=\"{target}\",label=\"\"}}");
            sample(&text, &name).map(|value| value as u64)
        };
        let rates = ["tcp://h:1", "tcp://h:2"].map(|target| value("rate_per_second", target));
        assert_eq!(rates, [Some(6), Some(5)], "{text}");
        assert_eq!(
            value("response_time_seconds_count", "tcp://h:1"),
            Some(9),
            "{text}"
        );
        assert_eq!(text.matches("netping_response_time_seconds_sum").count(), 2);
    }

    #[test]
    fn lower_bounds_and_rates_that_others_decide_on_are_left_out() {
        let mut metrics = Metrics::new();
        begin(&mut metrics, "tcp://h:1", None, &[]);
        let mut step = fixtures::step(1, |_| vec![1000; 1000]);
        step.target = "tcp://h:1".to_owned();
        let has = |metrics: &Metrics| {
            let text = metrics.text().unwrap();
            ["netping_rate_", "quantile=\"0.5\"", "quantile=\"0.99\""].map(|own| text.contains(own))
        };
        metrics.end(&step);
        assert_eq!(has(&metrics), [true, true, true]);
        step.settings.together = Some(2);
        let times = &mut step.summary.times[Time::Response];
        times.at_least.insert("p99".to_owned());
        metrics.end(&step);
        assert_eq!(has(&metrics), [false, true, false]);
    }

    #[test]
    fn targets_that_are_measured_together_each_have_their_own_numbers() {
        let mut metrics = Metrics::new();
        metrics.begin(&["tcp://h:1", "tcp://h:2"].map(|target| plan(target, None)));
        metrics.set_rate(5.0);
        let value = |metrics: &Metrics, name: &str, target: &str| {
            let text = metrics.text().unwrap();
            let name = format!("netping_{name}{{target=\"{target}\",label=\"\"}}");
            sample(&text, &name).map(|value| value as u64)
        };
        let both = |metrics: &Metrics, name: &str| {
            ["tcp://h:1", "tcp://h:2"].map(|target| value(metrics, name, target))
        };
        assert_eq!(both(&metrics, "running"), [Some(1); 2]);
        assert_eq!(both(&metrics, "rate_per_second"), [None; 2]);
        for (target, count) in [("tcp://h:1", 100), ("tcp://h:2", 200)] {
            metrics.end(&Step {
                target: target.to_owned(),
                ..fixtures::step(1, |_| vec![1000; count])
            });
        }
        assert_eq!(both(&metrics, "running"), [Some(0); 2]);
        assert_eq!(both(&metrics, "replies"), [Some(100), Some(200)]);
    }

    #[test]
    fn what_has_no_value_is_left_out_and_labels_are_escaped() {
        let mut metrics = Metrics::new();
        begin(&mut metrics, "tcp://h:1", Some("a\"b\\c\nd"), &[]);
        let text = metrics.text().unwrap();
        assert!(
            !text.contains("netping_planned_rate") && !text.contains("quantile"),
            "{text}"
        );
        assert!(text.contains("label=\"a\\\"b\\\\c\\nd\""), "{text}");
    }
}
