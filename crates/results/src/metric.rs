//! The registry of metrics.
//!
//! A metric is one entry here: its name, how its values read, which direction is better, and its
//! value of a step or of a bulk run. The lists below the entries say which metrics an output shows,
//! in its order. Tables, pages, exports, conditions, comparisons and the Prometheus push read them.

use std::borrow::Borrow;

use netping_measure::{
    bulk::BulkRun,
    counts::Counts,
    distribution::{Distribution, samples_for},
    statistics::{difference::Difference, estimate::Estimate, side::Side},
};

use crate::{
    format::{micros, share, thousands},
    run::step::Step,
};

/// One number that describes a step, or a run of a bulk stream.
#[derive(Debug)]
pub struct Metric {
    /// Its name in conditions: `client-cpu`.
    pub name: &'static str,
    /// Its title in narrow tables, with the unit: `cli us`.
    pub title: &'static str,
    /// Its name in prose and wide tables, without the unit: `client CPU`.
    pub label: &'static str,
    /// A phrase that defines it.
    pub about: &'static str,
    /// The stem of its name in files: `client_cpu_us_per_request`; for times, what stands between
    /// the distribution's name and the unit.
    pub key: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// The direction in which values are better.
    pub better: Better,
    /// The source of its values.
    pub source: Source,
}

/// The direction in which a metric's values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better, as with rates.
    Higher,
    /// Less is better, as with times.
    Lower,
}

/// The unit of a metric's values, as in result files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests per second.
    PerSecond,
    /// Nanoseconds.
    Nanos,
    /// Microseconds of CPU time per request.
    CpuMicros,
    /// A share, from 0 to 1.
    Share,
    /// A number of requests.
    Count,
    /// GiB per second.
    GibPerSecond,
    /// Seconds of CPU time per GiB.
    CpuPerGib,
}

/// The source of a metric's values.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// A quantile, in per cent, of a distribution of times. Over several trials it is that of all
    /// samples together; every other metric is the mean of the trials' values.
    Quantile(f64),
    /// The difference of two quantiles, in per cent, of a distribution of times.
    Range(f64, f64),
    /// Another statistic of a distribution of times; a step's is that of its response time.
    Time(fn(&Distribution) -> Option<f64>),
    /// A number of a step.
    Step(fn(&Step) -> Option<f64>),
    /// A number of a run of a bulk stream.
    Bulk(fn(&BulkRun) -> Option<f64>),
}

/// Declares metrics, each with its name, title, label and key, its unit and better direction, and
/// its definition and source.
macro_rules! metrics {
    ($($(#[$doc:meta])* $id:ident: $name:literal, $title:literal, $label:literal, $key:literal,
        $unit:ident, $better:ident, $about:expr, $source:ident($($of:expr),*);)*) => {$(
        $(#[$doc])*
        pub static $id: Metric = Metric {
            name: $name,
            title: $title,
            label: $label,
            about: $about,
            key: $key,
            unit: Unit::$unit,
            better: Better::$better,
            source: Source::$source($($of),*),
        };
    )*};
}

const QUANTILE: &str = "Quantile of the response time";

metrics! {
    /// Verified replies per second.
    RATE: "rate", "req/s", "rate", "rate_per_second", PerSecond, Higher,
        "Verified replies per second", Step(|step| Some(step.summary.rate));
    /// The shortest time.
    MIN: "min", "min us", "min", "min", Nanos, Lower,
        "Shortest response time", Time(|time| time.min.map(|time| time as f64));
    /// The arithmetic mean of the times.
    MEAN: "mean", "mean us", "mean", "mean", Nanos, Lower,
        "Mean response time", Time(|time| time.mean);
    /// The mean without the lowest and the highest 0.1 % of the samples.
    TRIMMED_MEAN: "tm99.9", "tm99.9 us", "tm99.9", "trimmed_mean", Nanos, Lower,
        "Mean response time without the lowest and the highest 0.1 %", Time(|time| time.trimmed_mean);
    /// The standard deviation of the times.
    SD: "sd", "sd us", "sd", "sd", Nanos, Lower,
        "Standard deviation of the response time", Time(|time| time.sd);
    /// The interquartile range: the spread of the middle half, which a few slow requests do not
    /// widen.
    IQR: "iqr", "iqr us", "iqr", "iqr", Nanos, Lower,
        "Interquartile range of the response time", Range(25.0, 75.0);
    /// The 1st percentile.
    P1: "p1", "p1 us", "p1", "p1", Nanos, Lower, QUANTILE, Quantile(1.0);
    /// The lower quartile.
    P25: "p25", "p25 us", "p25", "p25", Nanos, Lower, QUANTILE, Quantile(25.0);
    /// The median.
    P50: "p50", "p50 us", "p50", "p50", Nanos, Lower, QUANTILE, Quantile(50.0);
    /// The upper quartile.
    P75: "p75", "p75 us", "p75", "p75", Nanos, Lower, QUANTILE, Quantile(75.0);
    /// The 90th percentile.
    P90: "p90", "p90 us", "p90", "p90", Nanos, Lower, QUANTILE, Quantile(90.0);
    /// The 95th percentile.
    P95: "p95", "p95 us", "p95", "p95", Nanos, Lower, QUANTILE, Quantile(95.0);
    /// The 99th percentile.
    P99: "p99", "p99 us", "p99", "p99", Nanos, Lower, QUANTILE, Quantile(99.0);
    /// The 99.9th percentile.
    P999: "p99.9", "p99.9 us", "p99.9", "p99.9", Nanos, Lower, QUANTILE, Quantile(99.9);
    /// The 99.99th percentile.
    P9999: "p99.99", "p99.99 us", "p99.99", "p99.99", Nanos, Lower, QUANTILE, Quantile(99.99);
    /// The 99.999th percentile.
    P99999: "p99.999", "p99.999 us", "p99.999", "p99.999", Nanos, Lower, QUANTILE, Quantile(99.999);
    /// The longest time.
    MAX: "max", "max us", "max", "max", Nanos, Lower,
        "Longest response time", Time(|time| time.max.map(|time| time as f64));
    /// CPU time of the client per request.
    CLIENT_CPU: "client-cpu", "cli us", "client CPU", "client_cpu_us_per_request", CpuMicros, Lower,
        "CPU time of the client for each request", Step(|step| step.cost.client_cpu_us_per_request);
    /// CPU time of the server per request.
    SERVER_CPU: "server-cpu", "srv us", "server CPU", "server_cpu_us_per_request", CpuMicros, Lower,
        "CPU time of the server for each request", Step(|step| step.cost.server_cpu_us_per_request());
    /// The share of requests without a verified reply.
    ERROR_SHARE: "errors", "failed", "failed", "error_rate", Share, Lower,
        "Share of requests without a verified reply",
        Step(|step| Some(step.summary.accounting.error_rate()));
    /// The number of requests without a verified reply.
    ERRORS: "errors", "failed", "failed", "errors", Count, Lower,
        "Requests without a verified reply", Step(|step| Some(step.summary.unserved() as f64));
    /// GiB per second of a bulk stream.
    BULK_RATE: "bulk-rate", "GiB/s", "bulk rate", "gib_per_second", GibPerSecond, Higher,
        "GiB per second of a bulk stream", Bulk(|run| Some(run.gib_per_second));
    /// CPU time of the client per GiB.
    BULK_CLIENT_CPU: "bulk-client-cpu", "cli s/GiB", "client CPU", "client_cpu_seconds_per_gib",
        CpuPerGib, Lower,
        "CPU time of the client for each GiB", Bulk(|run| run.client_cpu_seconds_per_gib);
    /// CPU time of the server per GiB.
    BULK_SERVER_CPU: "bulk-server-cpu", "srv s/GiB", "server CPU", "server_cpu_seconds_per_gib",
        CpuPerGib, Lower,
        "CPU time of the server for each GiB", Bulk(|run| run.server_cpu_seconds_per_gib);
}

/// Some metrics, in the order of an output.
pub type List = &'static [&'static Metric];

/// Declares lists of metrics.
macro_rules! lists {
    ($($(#[$doc:meta])* $id:ident: $($metric:ident)*;)*) => {$(
        $(#[$doc])*
        pub static $id: List = &[$(&$metric),*];
    )*};
}

lists! {
    /// The description of a distribution of times: the columns of CSV.
    TIMES: MIN MEAN TRIMMED_MEAN SD IQR P1 P25 P50 P75 P90 P95 P99 P999 P9999 P99999 MAX;
    /// The metrics of a step that are not times.
    OTHERS: RATE CLIENT_CPU SERVER_CPU ERROR_SHARE ERRORS;
    /// The columns of a table in Markdown.
    MARKDOWN: RATE P50 P99 P999 MAX CLIENT_CPU SERVER_CPU ERRORS;
    /// The table of steps in a page.
    PAGE: RATE P50 P99 P999 MAX TRIMMED_MEAN SD IQR CLIENT_CPU SERVER_CPU;
    /// The panels of a page's charts of throughput.
    THROUGHPUT_CHARTS: RATE CLIENT_CPU SERVER_CPU;
    /// The panels of a page's charts of latency.
    LATENCY_CHARTS: P50 P99 P999;
    /// The units of a line in Go's benchmark format.
    BENCHMARK: MEAN RATE P50 P99 P999 MAX CLIENT_CPU SERVER_CPU;
    /// The metrics that trials of several targets are compared by.
    TRIALS: RATE P50 P99;
    /// The metrics of a proxy's overhead.
    OVERHEAD: P50 P90 P95 P99 P999 P9999 MAX TRIMMED_MEAN SD;
    /// The metrics that steps of two runs are compared by. The longest time is not one of them: it
    /// is that of a single request.
    COMPARED: RATE MEAN P50 P99 P999 CLIENT_CPU SERVER_CPU ERROR_SHARE;
    /// The metrics of bulk streams.
    BULK: BULK_RATE BULK_CLIENT_CPU BULK_SERVER_CPU;
    /// The quantiles that are pushed to Prometheus.
    PUSHED_QUANTILES: P50 P90 P99 P999 P9999;
}

/// Returns every metric of a step.
pub fn of_steps() -> impl Iterator<Item = &'static Metric> {
    TIMES.iter().chain(OTHERS).copied()
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.unit) == (other.name, other.unit)
    }
}

impl Metric {
    /// Returns the value of a distribution of times; `None` where there are too few samples, and
    /// for a metric that is not of times.
    pub fn of_times(&self, times: &Distribution) -> Option<f64> {
        match self.source {
            Source::Quantile(percent) => times.quantile(percent).map(|time| time as f64),
            Source::Range(low, high) => {
                let [low, high] = [times.quantile(low)?, times.quantile(high)?];
                Some(high.saturating_sub(low) as f64)
            }
            Source::Time(of) => of(times),
            Source::Step(_) | Source::Bulk(_) => None,
        }
    }

    /// Returns the value of a step; that of a time is of its response time.
    pub fn of_step(&self, step: &Step) -> Option<f64> {
        match self.source {
            Source::Step(of) => of(step),
            _ => self.of_times(&step.summary.response_time),
        }
    }

    /// Returns the value of a run of a bulk stream.
    pub fn of_bulk(&self, run: &BulkRun) -> Option<f64> {
        match self.source {
            Source::Bulk(of) => of(run),
            _ => None,
        }
    }

    /// Returns true for a metric of bulk streams.
    pub fn is_bulk(&self) -> bool {
        matches!(self.source, Source::Bulk(_))
    }

    /// Returns the values of all steps; `None` where a step has none: the others would be the
    /// luckier ones.
    pub fn of_trials<S: Borrow<Step>>(&self, steps: &[S]) -> Option<Vec<f64>> {
        steps
            .iter()
            .map(|step| self.of_step(step.borrow()))
            .collect()
    }

    /// Returns the value over at least two trials with its standard error: the mean of the trials,
    /// or the quantile of all their samples.
    pub fn side<S: Borrow<Step>>(&self, steps: &[S]) -> Option<Side> {
        let values = self.of_trials(steps)?;
        let Source::Quantile(percent) = self.source else {
            return Side::of_mean(&values);
        };
        let trials: Vec<&Counts> = steps
            .iter()
            .map(|step| &step.borrow().histograms.response_time)
            .collect();
        Side::of_quantile(&trials, percent)
    }

    /// Returns the value over all trials, with its interval where there are several.
    pub fn estimate<S: Borrow<Step>>(&self, steps: &[S]) -> Option<Estimate> {
        match steps {
            [_] => Estimate::of(&self.of_trials(steps)?),
            _ => self.side(steps).map(Side::estimate),
        }
    }

    /// Compares two sets of trials, as one of `comparisons` made together.
    pub fn difference<S: Borrow<Step>>(
        &self,
        first: &[S],
        second: &[S],
        comparisons: usize,
    ) -> Option<Difference> {
        Difference::between(self.side(first)?, self.side(second)?, comparisons)
    }

    /// Returns the number of samples that the value takes.
    pub fn samples(&self) -> u64 {
        match self.source {
            Source::Quantile(percent) | Source::Range(_, percent) => samples_for(percent),
            _ => 1,
        }
    }

    /// Returns the 95 % interval of a step's value, where the step has one.
    pub fn interval(&self, step: &Step) -> Option<[f64; 2]> {
        let (rate, precision) = (step.summary.rate, &step.summary.precision);
        let time = |ends: Option<[u64; 2]>| ends.map(|ends| ends.map(|end| end as f64));
        match self.name {
            "rate" => precision
                .rate_half_width
                .map(|half| [rate - half, rate + half]),
            "p50" => time(precision.p50),
            "p99" => time(precision.p99),
            _ => None,
        }
    }

    /// Returns true where differences are shares of the first value. Those of errors are not: the
    /// first value is 0, mostly.
    pub fn is_relative(&self) -> bool {
        self.unit != Unit::Share
    }

    /// Returns a value as people read it.
    pub fn show(&self, value: f64) -> String {
        self.unit.show(value)
    }

    /// Returns a value as people read it, or `-` without one.
    pub fn cell(&self, value: Option<f64>) -> String {
        value.map_or_else(|| "-".to_owned(), |value| self.show(value))
    }
}

impl Unit {
    /// Returns a value as it stands in a table: times in microseconds.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::Count => thousands(value),
            Self::Nanos => micros(value / 1e3),
            Self::CpuMicros => micros(value),
            Self::Share => share(value),
            Self::GibPerSecond | Self::CpuPerGib => format!("{value:.3}"),
        }
    }

    /// Returns a value with its unit.
    pub fn show_with_unit(self, value: f64) -> String {
        let suffix = match self {
            Self::Nanos | Self::CpuMicros => " us",
            Self::GibPerSecond => " GiB/s",
            Self::CpuPerGib => " s/GiB",
            Self::PerSecond | Self::Count | Self::Share => "",
        };
        self.show(value) + suffix
    }

    /// Reads a limit: `1ms`, `0.1%`, `100k`.
    pub fn parse(self, text: &str) -> Option<f64> {
        match self {
            Self::Nanos => time(text),
            Self::CpuMicros => time(text).map(|nanoseconds| nanoseconds / 1e3),
            Self::Share => number(text.strip_suffix('%')?).map(|percent| percent / 100.0),
            _ => number(text),
        }
    }
}

/// Reads a number; `k` and `M` stand for thousands and millions.
fn number(text: &str) -> Option<f64> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    plain(digits).map(|number| number * unit)
}

/// Reads a time with its unit, in nanoseconds.
fn time(text: &str) -> Option<f64> {
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]
        .into_iter()
        // No thousands or millions of a unit: `5Ms` is a slip for 5ms.
        .find_map(|(unit, nanoseconds)| Some(plain(text.strip_suffix(unit)?)? * nanoseconds))
}

fn plain(digits: &str) -> Option<f64> {
    digits
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_but_for_the_two_units_of_errors() {
        let all: Vec<&Metric> = of_steps().chain(BULK.iter().copied()).collect();
        for (at, metric) in all.iter().enumerate() {
            assert!(!all[..at].contains(metric), "{}", metric.name);
            assert!(
                !metric.about.is_empty() && !metric.key.is_empty(),
                "{}",
                metric.name
            );
        }
    }

    #[test]
    fn the_interquartile_range_is_that_of_the_middle_half() {
        let times =
            |counts: Vec<(u64, u64)>| Distribution::of(&Counts::from(counts).to_histogram());
        let spread = times(vec![(1000, 30), (1200, 40), (1500, 30)]);
        assert_eq!(IQR.of_times(&spread), Some(500.0));
        assert_eq!(IQR.of_times(&times(vec![(1000, 39)])), None);
        assert_eq!(IQR.samples(), 40);
    }

    #[test]
    fn every_quantile_of_a_summary_is_a_metric() {
        for percent in netping_measure::distribution::QUANTILES {
            let name = format!("p{percent}");
            assert!(of_steps().any(|metric| metric.name == name), "{name}");
        }
    }
}
