//! The registry of metrics.
//!
//! A metric is one entry in `registry.rs`: its name, how its values read, which direction is
//! better, and its value of a step. The lists below the entries say which metrics
//! an output shows, in its order. Tables, pages, exports, conditions, comparisons and the
//! Prometheus push read them.

mod curve;
mod registry;
mod unit;

use netping_measure::{
    distribution::{Distribution, is_backed, samples_for},
    quantiles::QUANTILES,
    times::Time,
};

pub use self::{
    curve::{CURVE, SERVICE_CURVE},
    registry::*,
    unit::{Reading, Unit},
};
use crate::{recovery::recoveries, run::step::Step, time_unit::TimeUnit};

/// One number that describes a step.
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
    /// The scale on which trials are averaged and compared.
    pub scale: Scale,
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

/// The scale on which a metric's values are averaged and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Values are positive, and differ by factors.
    Logarithmic,
    /// Values may be 0, and differ by amounts.
    Linear,
}

impl Scale {
    /// Returns the place of a value on the scale.
    pub(crate) fn place(self, value: f64) -> f64 {
        match self {
            Self::Logarithmic => value.ln(),
            Self::Linear => value,
        }
    }

    /// Returns the value that lies at `place` on the scale.
    pub(crate) fn back(self, place: f64) -> f64 {
        match self {
            Self::Logarithmic => place.exp(),
            Self::Linear => place,
        }
    }

    /// Returns the change that a difference on the scale stands for: a share on a logarithmic one.
    pub(crate) fn change(self, difference: f64) -> f64 {
        match self {
            Self::Logarithmic => difference.exp_m1(),
            Self::Linear => difference,
        }
    }

    /// Returns how far a change goes on the scale, in either direction.
    pub(crate) fn extent(self, change: f64) -> f64 {
        match self {
            Self::Logarithmic => change.ln_1p().abs(),
            Self::Linear => change.abs(),
        }
    }
}

/// The source of a metric's values.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// A quantile, in per cent, of a distribution of times.
    Quantile(f64),
    /// A quantile, in per cent, of the histogram of a kind of time.
    Histogram(Time, f64),
    /// The difference of two quantiles, in per cent, of a distribution of times.
    Range(f64, f64),
    /// Another statistic of a distribution of times; a step's is that of its response time.
    Time(fn(&Distribution) -> Option<f64>),
    /// A number of a step.
    Step(fn(&Step) -> Option<f64>),
    /// The value of that metric for other times of a step.
    OtherTimes(fn(&Step) -> Option<&Distribution>, &'static Metric),
    /// By how much the value of that metric is higher for the second of two other times of a step.
    Increase([fn(&Step) -> Option<&Distribution>; 2], &'static Metric),
}

/// Returns every metric of a step.
pub fn of_steps() -> impl Iterator<Item = &'static Metric> + Clone {
    TIMES.iter().chain(OTHERS).copied()
}

/// Returns the metrics of calls that stream, if there are such among the steps.
pub fn of_streams<'a>(steps: impl IntoIterator<Item = &'a Step>) -> List {
    let streams = steps.into_iter().any(|step| step.messages.is_some());
    if streams { STREAMS } else { &[] }
}

/// Returns the metrics of bulk streams and of small requests beside them.
pub fn of_bulk() -> impl Iterator<Item = &'static Metric> + Clone {
    BULK.iter().chain(PROBE).copied()
}

/// Returns the metrics of small requests beside bulk streams, if there are such among the steps.
pub fn of_probes<'a>(steps: impl IntoIterator<Item = &'a Step>) -> List {
    let probes = steps.into_iter().any(|step| step.probe.is_some());
    if probes { PROBE } else { &[] }
}

/// Returns the metrics of this name among `all`. Errors have two, in different units.
///
/// # Errors
/// A sentence with the names of all, if none has it.
pub fn named(
    name: &str,
    all: impl Iterator<Item = &'static Metric> + Clone,
) -> Result<Vec<&'static Metric>, String> {
    let found: Vec<_> = all.clone().filter(|metric| metric.name == name).collect();
    if found.is_empty() {
        let mut names: Vec<_> = all.clone().map(|metric| metric.name).collect();
        names.dedup();
        let other = meant(name, all);
        return Err(other.unwrap_or_else(|| format!("'{name}' is not one of {}", names.join(", "))));
    }
    Ok(found)
}

/// Says which of `all` is most likely meant by a name that people or other tools use; `None` for any other name.
pub(crate) fn meant(name: &str, mut all: impl Iterator<Item = &'static Metric>) -> Option<String> {
    const QUANTILE: &str = "name a quantile of the times, such as ";
    const OTHERS: [(&[&str], &str, &str); 7] = [
        (
            &["latency", "lat", "time", "rtt", "response", "response-time"],
            "p99",
            QUANTILE,
        ),
        (&["average", "avg"], "mean", "write "),
        (&["median"], "p50", "write "),
        (
            &["throughput", "rps", "qps", "tps", "req/s", "requests"],
            "rate",
            "write ",
        ),
        (
            &["error", "failed", "failures", "error-rate"],
            "errors",
            "write ",
        ),
        (&["cpu"], "server-cpu", "name a side, such as "),
        (&["stddev", "stdev"], "sd", "write "),
    ];
    let lower = name.to_lowercase();
    let (_, own, why) = OTHERS.iter().find(|(names, ..)| names.contains(&&*lower))?;
    all.any(|metric| metric.name == *own)
        .then(|| format!("there is no '{name}': {why}{own}"))
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
            _ => None,
        }
    }

    /// Returns true for a metric of times, whose value for a step is that of its response time.
    pub fn is_of_response_time(&self) -> bool {
        matches!(
            self.source,
            Source::Quantile(_) | Source::Range(..) | Source::Time(_)
        )
    }

    /// Returns the value of a step; that of a time is of its response time.
    pub fn of_step(&self, step: &Step) -> Option<f64> {
        match self.source {
            Source::Step(of) => of(step),
            Source::OtherTimes(times, metric) => metric.of_times(times(step)?),
            Source::Increase(both, metric) => {
                let [before, after] = both.map(|times| times(step));
                // What is at least so much is no more than anything.
                let before = before.filter(|times| !metric.is_bound(times))?;
                Some(metric.of_times(after?)? - metric.of_times(before)?)
            }
            Source::Histogram(time, percent) => {
                let times = &step.histograms.times[time];
                let value = times.quantile(percent / 100.0);
                value
                    .filter(|_| is_backed(times.len(), percent))
                    .map(|value| value as f64)
            }
            Source::Quantile(_) | Source::Range(..) | Source::Time(_) => {
                self.of_times(&step.summary.times[Time::Response])
            }
        }
    }

    /// Returns true if a distribution's value is a lower bound, because some requests got no reply, or took longer
    /// than histograms tell.
    pub fn is_bound(&self, times: &Distribution) -> bool {
        match self.source {
            Source::Quantile(percent) | Source::Range(_, percent) => {
                times.is_bound(&format!("p{percent}"))
            }
            Source::Time(_) => times.is_bound(self.name),
            _ => false,
        }
    }

    /// Returns true if a step's value is a lower bound: for the same reasons, or because the server was not seen to
    /// recover from a burst.
    pub fn is_bound_of(&self, step: &Step) -> bool {
        match self.source {
            Source::Step(_) => {
                *self == RECOVERY && recoveries(step).is_some_and(|own| own.is_missing())
            }
            Source::OtherTimes(times, metric) | Source::Increase([_, times], metric) => {
                times(step).is_some_and(|times| metric.is_bound(times))
            }
            // By the next quantile that is known to be one or not.
            Source::Histogram(time, percent) => {
                let next = QUANTILES.into_iter().find(|own| *own >= percent);
                next.is_some_and(|next| step.summary.times[time].is_bound(&format!("p{next}")))
            }
            Source::Quantile(_) | Source::Range(..) | Source::Time(_) => {
                self.is_bound(&step.summary.times[Time::Response])
            }
        }
    }

    /// Returns its title in a table, with the unit in which its times read there.
    pub fn title_in(&self, reading: Reading) -> String {
        let unit = reading.times().map(TimeUnit::name);
        unit.map_or_else(
            || self.title.to_owned(),
            |unit| format!("{} {unit}", self.plain_title()),
        )
    }

    /// Returns its title without a unit of time.
    pub fn plain_title(&self) -> &'static str {
        self.title.strip_suffix(" us").unwrap_or(self.title)
    }

    /// Returns a distribution's value in a table: `>1,234` for a lower bound, `-` where there is none.
    pub fn cell_of_times(&self, times: &Distribution, reading: Reading) -> String {
        let value = self.of_times(times);
        marked(value, self.is_bound(times), |value| reading.show(value))
    }

    /// Returns a distribution's value with its unit, as a sentence has it; as [`Metric::cell_of_times`]
    /// otherwise.
    pub fn tell_times(&self, times: &Distribution) -> String {
        let value = self.of_times(times);
        marked(value, self.is_bound(times), |value| self.unit.tell(value))
    }

    /// Returns a step's value in a table, as [`Metric::cell_of_times`] does.
    pub fn cell_of_step(&self, step: &Step, reading: Reading) -> String {
        let value = self.of_step(step);
        marked(value, self.is_bound_of(step), |value| reading.show(value))
    }

    /// Returns a step's value with its unit, as [`Metric::tell_times`] does.
    pub fn tell_step(&self, step: &Step) -> String {
        let value = self.of_step(step);
        marked(value, self.is_bound_of(step), |value| self.unit.tell(value))
    }

    /// Returns true for a metric of bulk streams.
    pub fn is_bulk(&self) -> bool {
        of_bulk().any(|own| own == self)
    }

    /// Returns true for a value that the few longest times make: a quantile beyond p99, or the
    /// maximum.
    pub(crate) fn is_of_few_times(&self) -> bool {
        match self.source {
            Source::OtherTimes(_, metric) | Source::Increase(_, metric) => metric.is_of_few_times(),
            _ => *self == MAX || self.quantile().is_some_and(|percent| percent > 99.0),
        }
    }

    /// Returns the quantile that it is, in per cent.
    pub fn quantile(&self) -> Option<f64> {
        match self.source {
            Source::Quantile(percent) | Source::Histogram(_, percent) => Some(percent),
            _ => None,
        }
    }

    /// Returns the number of samples that the value takes.
    pub fn samples(&self) -> u64 {
        match self.source {
            Source::Quantile(percent)
            | Source::Histogram(_, percent)
            | Source::Range(_, percent) => samples_for(percent),
            Source::OtherTimes(_, metric) | Source::Increase(_, metric) => metric.samples(),
            Source::Step(_) | Source::Time(_) => 1,
        }
    }

    /// Returns the 95 % interval of a step's value, where the step has one.
    pub fn interval(&self, step: &Step) -> Option<[f64; 2]> {
        let (rate, times) = (step.summary.rate, &step.summary.times[Time::Response]);
        let time = |ends: Option<[u64; 2]>| ends.map(|ends| ends.map(|end| end as f64));
        match self.name {
            "rate" => step
                .summary
                .precision
                .rate_half_width
                .map(|half| [rate - half, rate + half]),
            "p50" => time(times.p50_interval),
            "p99" => time(times.p99_interval),
            _ => None,
        }
    }

    /// Returns true if a difference of it may be called better or worse.
    pub fn is_claimed(&self) -> bool {
        CLAIMED.contains(&self)
    }

    /// Returns the form in which these values read together.
    pub fn reading(&self, values: impl IntoIterator<Item = f64>) -> Reading {
        self.unit.reading(values)
    }
}

/// Returns a value, with `>` before a lower bound; `-` where there is none.
fn marked(value: Option<f64>, is_bound: bool, show: impl FnOnce(f64) -> String) -> String {
    let mark = if is_bound { ">" } else { "" };
    value.map_or_else(|| "-".to_owned(), |value| mark.to_owned() + &show(value))
}

#[cfg(test)]
mod tests {
    use netping_measure::{counts::Counts, histogram::LONGEST};

    use super::*;
    use crate::{fixtures, probe::ProbeSummary};

    #[test]
    fn names_are_unique_but_for_the_two_units_of_errors() {
        let all: Vec<&Metric> = of_steps().chain(of_bulk()).collect();
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
        let times = |counts: Vec<(u64, u64)>| Distribution::of(&Counts::from(counts));
        let spread = times(vec![(1000, 30), (1200, 40), (1500, 30)]);
        assert_eq!(IQR.of_times(&spread), Some(500.0));
        assert_eq!(IQR.of_times(&times(vec![(1000, 39)])), None);
        assert_eq!(IQR.samples(), 40);
    }

    #[test]
    fn times_beyond_the_histograms_range_are_bounds_wherever_they_are() {
        let beyond = Counts::from(vec![(1_000, 500), (LONGEST, 500)]);
        let short = Counts::from(vec![(1_000, 1000)]);
        let mut step = fixtures::step(1, |_| vec![1000; 1000]);
        step.summary.times[Time::Service] = Distribution::of(&beyond);
        assert_eq!(
            [&SERVICE_P50, &SERVICE_P99].map(|own| own.is_bound_of(&step)),
            [false, true]
        );
        assert_eq!(SERVICE_P99.tell_step(&step), ">60.0 s");
        let probe = |idle: &Counts, loaded: &Counts| {
            Box::new(ProbeSummary::of([idle.clone(), loaded.clone()], 0, 0))
        };
        step.probe = Some(probe(&short, &beyond));
        assert!(PROBE_P99.is_bound_of(&step) && PROBE_ADDED_P99.is_bound_of(&step));
        assert_eq!(PROBE_ADDED_P50.of_step(&step), Some(0.0));
        // A difference to a lower bound is no bound.
        step.probe = Some(probe(&beyond, &beyond));
        assert_eq!(PROBE_ADDED_P99.of_step(&step), None);
    }

    #[test]
    fn every_quantile_of_a_summary_is_a_metric() {
        for percent in netping_measure::quantiles::QUANTILES {
            let name = format!("p{percent}");
            assert!(of_steps().any(|metric| metric.name == name), "{name}");
        }
    }
}
