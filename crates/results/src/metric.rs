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
    /// True where more is better, as with rates; of most, less is.
    pub more_is_better: bool,
    /// Where its values come from.
    pub source: Source,
    /// Its 95 % interval within one step.
    pub interval: fn(&Step) -> Option<[f64; 2]>,
    /// Samples that it takes; a quantile takes more.
    pub samples: u64,
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
    /// Another statistic of a distribution of times; a step's is that of its response time.
    Time(fn(&Distribution) -> Option<f64>),
    /// A number of a step.
    Step(fn(&Step) -> Option<f64>),
    /// A number of a run of a bulk stream.
    Bulk(fn(&BulkRun) -> Option<f64>),
}

const TIME: Metric = Metric {
    name: "",
    title: "",
    label: "",
    about: "",
    key: "",
    unit: Unit::Nanos,
    more_is_better: false,
    source: Source::Quantile(50.0),
    interval: |_| None,
    samples: 1,
};

const fn quantile(percent: f64, name: &'static str, title: &'static str) -> Metric {
    Metric {
        name,
        title,
        label: name,
        about: "Quantile of the response time",
        key: name,
        source: Source::Quantile(percent),
        ..TIME
    }
}

/// Verified replies per second.
pub static RATE: Metric = Metric {
    name: "rate",
    title: "req/s",
    label: "rate",
    about: "Verified replies per second",
    key: "rate_per_second",
    unit: Unit::PerSecond,
    more_is_better: true,
    source: Source::Step(|step| Some(step.summary.rate)),
    interval: |step| {
        let half = step.summary.precision.rate_half_width?;
        Some([step.summary.rate - half, step.summary.rate + half])
    },
    ..TIME
};

/// The shortest time.
pub static MIN: Metric = Metric {
    name: "min",
    title: "min us",
    label: "min",
    about: "Shortest response time",
    key: "min",
    source: Source::Time(|time| time.min.map(|time| time as f64)),
    ..TIME
};

/// The arithmetic mean of the times.
pub static MEAN: Metric = Metric {
    name: "mean",
    title: "mean us",
    label: "mean",
    about: "Mean response time",
    key: "mean",
    source: Source::Time(|time| time.mean),
    ..TIME
};

/// The mean without the lowest and the highest 0.1 % of the samples.
pub static TRIMMED_MEAN: Metric = Metric {
    name: "tm99.9",
    title: "tm99.9 us",
    label: "tm99.9",
    about: "Mean response time without the lowest and the highest 0.1 %",
    key: "trimmed_mean",
    source: Source::Time(|time| time.trimmed_mean),
    ..TIME
};

/// The standard deviation of the times.
pub static SD: Metric = Metric {
    name: "sd",
    title: "sd us",
    label: "sd",
    about: "Standard deviation of the response time",
    key: "sd",
    source: Source::Time(|time| time.sd),
    ..TIME
};

/// The interquartile range of the times.
pub static IQR: Metric = Metric {
    name: "iqr",
    title: "iqr us",
    label: "iqr",
    about: "Interquartile range of the response time",
    key: "iqr",
    source: Source::Time(interquartile_range),
    samples: 40,
    ..TIME
};

/// The 1st percentile.
pub static P1: Metric = quantile(1.0, "p1", "p1 us");
/// The lower quartile.
pub static P25: Metric = quantile(25.0, "p25", "p25 us");
/// The median.
pub static P50: Metric = Metric {
    interval: |step| {
        step.summary
            .precision
            .p50
            .map(|ends| ends.map(|end| end as f64))
    },
    ..quantile(50.0, "p50", "p50 us")
};
/// The upper quartile.
pub static P75: Metric = quantile(75.0, "p75", "p75 us");
/// The 90th percentile.
pub static P90: Metric = quantile(90.0, "p90", "p90 us");
/// The 95th percentile.
pub static P95: Metric = quantile(95.0, "p95", "p95 us");
/// The 99th percentile.
pub static P99: Metric = Metric {
    interval: |step| {
        step.summary
            .precision
            .p99
            .map(|ends| ends.map(|end| end as f64))
    },
    ..quantile(99.0, "p99", "p99 us")
};
/// The 99.9th percentile.
pub static P999: Metric = quantile(99.9, "p99.9", "p99.9 us");
/// The 99.99th percentile.
pub static P9999: Metric = quantile(99.99, "p99.99", "p99.99 us");
/// The 99.999th percentile.
pub static P99999: Metric = quantile(99.999, "p99.999", "p99.999 us");

/// The longest time.
pub static MAX: Metric = Metric {
    name: "max",
    title: "max us",
    label: "max",
    about: "Longest response time",
    key: "max",
    source: Source::Time(|time| time.max.map(|time| time as f64)),
    ..TIME
};

/// CPU time of the client per request.
pub static CLIENT_CPU: Metric = Metric {
    name: "client-cpu",
    title: "cli us",
    label: "client CPU",
    about: "CPU time of the client for each request",
    key: "client_cpu_us_per_request",
    unit: Unit::CpuMicros,
    source: Source::Step(|step| step.cost.client_cpu_us_per_request),
    ..TIME
};

/// CPU time of the server per request.
pub static SERVER_CPU: Metric = Metric {
    name: "server-cpu",
    title: "srv us",
    label: "server CPU",
    about: "CPU time of the server for each request",
    key: "server_cpu_us_per_request",
    unit: Unit::CpuMicros,
    source: Source::Step(|step| step.cost.server_cpu_us_per_request()),
    ..TIME
};

/// The share of requests without a verified reply.
pub static ERROR_SHARE: Metric = Metric {
    name: "errors",
    title: "failed",
    label: "failed",
    about: "Share of requests without a verified reply",
    key: "error_rate",
    unit: Unit::Share,
    source: Source::Step(|step| Some(step.summary.accounting.error_rate())),
    ..TIME
};

/// The number of requests without a verified reply.
pub static ERRORS: Metric = Metric {
    name: "errors",
    title: "failed",
    label: "failed",
    about: "Requests without a verified reply",
    key: "errors",
    unit: Unit::Count,
    source: Source::Step(|step| Some(step.summary.unserved() as f64)),
    ..TIME
};

/// GiB per second of a bulk stream.
pub static BULK_RATE: Metric = Metric {
    name: "bulk-rate",
    title: "GiB/s",
    label: "bulk rate",
    about: "GiB per second of a bulk stream",
    key: "gib_per_second",
    unit: Unit::GibPerSecond,
    more_is_better: true,
    source: Source::Bulk(|run| Some(run.gib_per_second)),
    ..TIME
};

/// CPU time of the client per GiB.
pub static BULK_CLIENT_CPU: Metric = Metric {
    name: "bulk-client-cpu",
    title: "cli s/GiB",
    label: "client CPU",
    about: "CPU time of the client for each GiB",
    key: "client_cpu_seconds_per_gib",
    unit: Unit::CpuPerGib,
    source: Source::Bulk(|run| run.client_cpu_seconds_per_gib),
    ..TIME
};

/// CPU time of the server per GiB.
pub static BULK_SERVER_CPU: Metric = Metric {
    name: "bulk-server-cpu",
    title: "srv s/GiB",
    label: "server CPU",
    about: "CPU time of the server for each GiB",
    key: "server_cpu_seconds_per_gib",
    unit: Unit::CpuPerGib,
    source: Source::Bulk(|run| run.server_cpu_seconds_per_gib),
    ..TIME
};

/// Some metrics, in the order of an output.
pub type List = &'static [&'static Metric];

/// The description of a distribution of times: the columns of CSV.
pub static TIMES: List = &[
    &MIN,
    &MEAN,
    &TRIMMED_MEAN,
    &SD,
    &IQR,
    &P1,
    &P25,
    &P50,
    &P75,
    &P90,
    &P95,
    &P99,
    &P999,
    &P9999,
    &P99999,
    &MAX,
];

/// The metrics of a step that are not times.
pub static OTHERS: List = &[&RATE, &CLIENT_CPU, &SERVER_CPU, &ERROR_SHARE, &ERRORS];

/// The columns of a table in Markdown.
pub static MARKDOWN: List = &[
    &RATE,
    &P50,
    &P99,
    &P999,
    &MAX,
    &CLIENT_CPU,
    &SERVER_CPU,
    &ERRORS,
];

/// The table of steps in a page.
pub static PAGE: List = &[
    &RATE,
    &P50,
    &P99,
    &P999,
    &MAX,
    &TRIMMED_MEAN,
    &SD,
    &IQR,
    &CLIENT_CPU,
    &SERVER_CPU,
];

/// The panels of a page's charts of throughput.
pub static THROUGHPUT_CHARTS: List = &[&RATE, &CLIENT_CPU, &SERVER_CPU];

/// The panels of a page's charts of latency.
pub static LATENCY_CHARTS: List = &[&P50, &P99, &P999];

/// The units of a line in Go's benchmark format.
pub static BENCHMARK: List = &[
    &MEAN,
    &RATE,
    &P50,
    &P99,
    &P999,
    &MAX,
    &CLIENT_CPU,
    &SERVER_CPU,
];

/// The numbers that trials of several targets are compared by.
pub static TRIALS: List = &[&RATE, &P50, &P99];

/// The numbers that a proxy's overhead is told by.
pub static OVERHEAD: List = &[
    &P50,
    &P90,
    &P95,
    &P99,
    &P999,
    &P9999,
    &MAX,
    &TRIMMED_MEAN,
    &SD,
];

/// The numbers that steps of two runs are compared by. The longest time is none of them: it is a
/// single request's.
pub static COMPARED: List = &[
    &RATE,
    &MEAN,
    &P50,
    &P99,
    &P999,
    &CLIENT_CPU,
    &SERVER_CPU,
    &ERROR_SHARE,
];

/// The metrics of bulk streams.
pub static BULK: List = &[&BULK_RATE, &BULK_CLIENT_CPU, &BULK_SERVER_CPU];

/// The quantiles that are pushed to Prometheus.
pub static PUSHED_QUANTILES: List = &[&P50, &P90, &P99, &P999, &P9999];

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
            Source::Quantile(percent) => samples_for(percent),
            _ => self.samples,
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

/// Returns the upper quartile less the lower one: the spread of the middle half, which a few slow
/// requests do not widen.
fn interquartile_range(times: &Distribution) -> Option<f64> {
    let (low, high) = (times.quantile(25.0)?, times.quantile(75.0)?);
    Some(high.saturating_sub(low) as f64)
}

/// Reads a number; `k` and `M` stand for thousands and millions.
fn number(text: &str) -> Option<f64> {
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => text
            .strip_suffix('M')
            .map_or((text, 1.0), |digits| (digits, 1e6)),
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
