//! The numbers that are pushed: for each target, those of the current or last step.

use std::fmt;

use netping_client::plan::Plan;
use netping_measure::{counts::Counts, recorder::Interval};
use netping_results::{
    metric::{self, Metric, Source},
    run::Step,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::Registry,
};

/// The upper ends of the histogram's buckets, in nanoseconds: 1, 2, 5 and so on, from 1 us to 50 s.
const BOUNDS: [u64; 24] = bounds();

/// The metrics of a step's final numbers that are not times.
const COSTS: [&Metric; 2] = [&metric::CLIENT_CPU, &metric::SERVER_CPU];

const fn bounds() -> [u64; 24] {
    let mut bounds = [0; 24];
    let mut decade = 1000;
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = decade;
        bounds[at + 1] = 2 * decade;
        bounds[at + 2] = 5 * decade;
        decade *= 10;
        at += 3;
    }
    bounds
}

/// The numbers of every target.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    series: Vec<Series>,
    current: usize,
}

/// The numbers of one target.
#[derive(Debug, Clone, Default)]
pub struct Series {
    target: String,
    /// Empty if there is none.
    label: String,
    callers: usize,
    planned_rate: Option<f64>,
    /// Replies per second: lately, and in the end over the window.
    pub rate: f64,
    running: bool,
    ok: u64,
    errors: u64,
    response_time: Buckets,
    /// Quantiles of the response time of a step that is done, in seconds.
    quantiles: Vec<(&'static Metric, f64)>,
    /// In seconds, by place in [`COSTS`].
    costs: [Option<f64>; COSTS.len()],
}

/// A histogram as Prometheus has it.
#[derive(Debug, Clone, Default)]
struct Buckets {
    /// Number of times up to each of [`BOUNDS`], and beyond the last.
    counts: [u64; BOUNDS.len() + 1],
    /// In seconds.
    sum: f64,
}

impl Metrics {
    /// Begins a step, which replaces an earlier one of the same target.
    pub fn begin(&mut self, series: Series) {
        let same =
            |other: &Series| (&other.target, &other.label) == (&series.target, &series.label);
        let place = self.series.iter().position(same);
        self.current = place.unwrap_or(self.series.len());
        match place {
            Some(place) => self.series[place] = series,
            None => self.series.push(series),
        }
    }

    /// Returns the numbers of the current step.
    pub fn current(&mut self) -> &mut Series {
        if self.series.is_empty() {
            self.series.push(Series::default());
        }
        &mut self.series[self.current]
    }

    /// Encodes the numbers in Prometheus' text format.
    ///
    /// # Errors
    /// None in practice: the text is written to memory.
    pub fn into_text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut body = String::new();
        text::encode_registry(&mut body, &registry)?;
        Ok(body)
    }
}

impl Series {
    /// A step that begins.
    pub fn of(plan: &Plan) -> Self {
        Self {
            target: plan.target.url.to_string(),
            label: plan.target.label.clone().unwrap_or_default(),
            callers: plan.load.callers,
            planned_rate: plan.load.arrival.rate(),
            running: true,
            ..Self::default()
        }
    }

    /// Adds an interval of a worker.
    pub fn add(&mut self, interval: &Interval) {
        self.ok += interval.service.len();
        self.errors += interval.errors.values().sum::<u64>();
        let times = interval.response_times();
        self.response_time.add(&times.into());
    }

    /// Takes the final numbers of a step.
    pub fn end(&mut self, step: &Step) {
        let summary = &step.summary;
        self.running = false;
        self.rate = summary.rate;
        self.ok = summary.accounting.ok;
        self.errors = summary.accounting.failed();
        self.response_time = Buckets::default();
        self.response_time.add(&step.histograms.response_time);
        let quantiles = metric::PUSHED_QUANTILES.iter();
        self.quantiles = quantiles
            .filter_map(|metric| Some((*metric, metric.of_step(step)? / 1e9)))
            .collect();
        self.costs = COSTS.map(|metric| Some(metric.of_step(step)? / 1e6));
    }

    /// Ends a step that failed to start.
    pub fn abandon(&mut self) {
        self.running = false;
    }

    fn labels(&self) -> [(&str, &str); 2] {
        [("target", &self.target), ("label", &self.label)]
    }
}

impl Buckets {
    /// Adds times in nanoseconds.
    fn add(&mut self, times: &Counts) {
        for (time, count) in times.iter() {
            self.counts[BOUNDS.partition_point(|&bound| bound < time)] += count;
            self.sum += time as f64 / 1e9 * count as f64;
        }
    }
}

/// A gauge: its name, its help, and its value in a series that has one.
type Gauge = (&'static str, &'static str, fn(&Series) -> Option<f64>);

const GAUGES: [Gauge; 6] = [
    (
        "netping_running",
        "1 while the step is measured, 0 when its numbers are final",
        |series| Some(f64::from(u8::from(series.running))),
    ),
    (
        "netping_callers",
        "Callers, each with one request outstanding",
        |series| Some(series.callers as f64),
    ),
    (
        "netping_planned_rate_per_second",
        "Requests due per second, in an open loop",
        |series| series.planned_rate,
    ),
    (
        "netping_rate_per_second",
        "Verified replies per second",
        |series| Some(series.rate),
    ),
    (
        "netping_replies",
        "Verified replies of the step",
        |series| Some(series.ok as f64),
    ),
    (
        "netping_failures",
        "Failed requests of the step",
        |series| Some(series.errors as f64),
    ),
];

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in GAUGES {
            self.encode_gauge(&mut encoder, name, help, value)?;
        }
        for (at, metric) in COSTS.iter().enumerate() {
            let name = format!("netping_{}", metric.key.replace("_us_", "_seconds_"));
            let help = format!("{}, in seconds", metric.about);
            self.encode_gauge(&mut encoder, &name, &help, |series| series.costs[at])?;
        }
        self.encode_quantiles(&mut encoder)?;
        let help = "Response times of the step, in seconds";
        let mut metric = encoder.encode_descriptor(
            "netping_response_time_seconds",
            help,
            None,
            MetricType::Histogram,
        )?;
        for series in &self.series {
            let Buckets { counts, sum } = &series.response_time;
            let bounds = BOUNDS
                .iter()
                .map(|&bound| bound as f64 / 1e9)
                .chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
            let total = counts.iter().sum();
            metric
                .encode_family(&series.labels())?
                .encode_histogram::<NoLabelSet>(*sum, total, &buckets, None)?;
        }
        Ok(())
    }
}

impl Metrics {
    fn encode_gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&Series) -> Option<f64>,
    ) -> fmt::Result {
        let values: Vec<_> = self
            .series
            .iter()
            .filter_map(|series| Some((series, value(series)?)))
            .collect();
        // A name without a value is of no use to anybody.
        if values.is_empty() {
            return Ok(());
        }
        let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (series, value) in values {
            gauge
                .encode_family(&series.labels())?
                .encode_gauge(&value)?;
        }
        Ok(())
    }

    fn encode_quantiles(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut values = Vec::new();
        for series in &self.series {
            let own = series.quantiles.iter();
            values.extend(own.map(|(metric, value)| (series.labels(), share(metric), *value)));
        }
        if values.is_empty() {
            return Ok(());
        }
        let help = "Quantiles of the response times of a step that is done, in seconds";
        let mut metric = encoder.encode_descriptor(
            "netping_response_time_quantile_seconds",
            help,
            None,
            MetricType::Gauge,
        )?;
        for ([target, label], name, value) in values {
            metric
                .encode_family(&[target, label, ("quantile", name.as_str())])?
                .encode_gauge(&value)?;
        }
        Ok(())
    }
}

/// Returns a quantile as Prometheus writes it: `0.999`.
fn share(metric: &Metric) -> String {
    match metric.source {
        Source::Quantile(percent) => {
            let digits = format!("{:.6}", percent / 100.0);
            digits.trim_end_matches('0').to_owned()
        }
        _ => metric.name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a sample, by the text before it.
    fn sample(text: &str, name: &str) -> Option<f64> {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    fn series(target: &str, times: &[(u64, u64)]) -> Series {
        let mut series = Series {
            target: target.to_owned(),
            rate: 5.0,
            ..Series::default()
        };
        series.response_time.add(&times.to_vec().into());
        series
    }

    #[test]
    fn buckets_add_up_from_the_left() {
        let mut metrics = Metrics::default();
        metrics.begin(series(
            "tcp://h:1",
            &[(900, 1), (1000, 1), (1001, 2), (90_000_000_000, 1)],
        ));
        let text = metrics.into_text().unwrap();
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
        let mut metrics = Metrics::default();
        metrics.begin(series("tcp://h:1", &[(900, 7)]));
        metrics.begin(series("tcp://h:2", &[(900, 8)]));
        metrics.begin(series("tcp://h:1", &[(900, 9)]));
        metrics.current().rate = 6.0;
        let text = metrics.into_text().unwrap();
        let rate = |target: &str| {
            sample(
                &text,
                &format!("netping_rate_per_second{{target=\"{target}\",label=\"\"}}"),
            )
            .map(|rate| rate as u64)
        };
        assert_eq!(
            (rate("tcp://h:1"), rate("tcp://h:2")),
            (Some(6), Some(5)),
            "{text}"
        );
        assert_eq!(text.matches("netping_response_time_seconds_sum").count(), 2);
    }

    #[test]
    fn what_has_no_value_is_left_out_and_labels_are_escaped() {
        let mut metrics = Metrics::default();
        metrics.begin(Series {
            label: "a\"b\\c\nd".to_owned(),
            ..series("tcp://h:1", &[])
        });
        let text = metrics.into_text().unwrap();
        assert!(
            !text.contains("netping_planned_rate") && !text.contains("quantile"),
            "{text}"
        );
        assert!(text.contains("label=\"a\\\"b\\\\c\\nd\""), "{text}");
    }
}
