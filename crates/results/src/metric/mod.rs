//! The registry of metrics.
//!
//! A metric is one entry in `registry.rs`: its name, how its values read, which direction is
//! better, and its value of a step or of a bulk run. The lists below the entries say which metrics
//! an output shows, in its order. Tables, pages, exports, conditions, comparisons and the
//! Prometheus push read them.

mod registry;
mod unit;

use std::borrow::Borrow;

use netping_measure::{
    bulk::BulkRun,
    counts::Counts,
    distribution::{Distribution, samples_for},
    statistics::{difference::Difference, estimate::Estimate, side::Side},
};

pub use self::{registry::*, unit::Unit};
use crate::run::step::Step;

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

/// Returns every metric of a step.
pub fn of_steps() -> impl Iterator<Item = &'static Metric> + Clone {
    TIMES.iter().chain(OTHERS).copied()
}

/// Returns the metrics of calls that stream, if there are such among the steps.
pub fn of_streams<'a>(steps: impl IntoIterator<Item = &'a Step>) -> List {
    let streams = steps.into_iter().any(|step| step.messages.is_some());
    if streams { STREAMS } else { &[] }
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
        let mut names: Vec<_> = all.map(|metric| metric.name).collect();
        names.dedup();
        return Err(format!("'{name}' is not one of {}", names.join(", ")));
    }
    Ok(found)
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

    /// Returns true if a distribution's value is a lower bound, because some requests got no reply.
    pub fn is_bound(&self, times: &Distribution) -> bool {
        match self.source {
            Source::Quantile(percent) | Source::Range(_, percent) => {
                times.is_bound(&format!("p{percent}"))
            }
            Source::Time(_) => times.is_bound(self.name),
            Source::Step(_) | Source::Bulk(_) => false,
        }
    }

    /// Returns a distribution's value as people read it: `>1,234` for a lower bound, `-` where
    /// there is none.
    pub fn cell_of_times(&self, times: &Distribution) -> String {
        let sign = if self.is_bound(times) { ">" } else { "" };
        self.of_times(times).map_or_else(
            || "-".to_owned(),
            |value| sign.to_owned() + &self.show(value),
        )
    }

    /// Returns a step's value as people read it, as [`Metric::cell_of_times`] does.
    pub fn cell_of_step(&self, step: &Step) -> String {
        match self.source {
            Source::Step(of) => self.cell(of(step)),
            _ => self.cell_of_times(&step.summary.response_time),
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
        let (rate, times) = (step.summary.rate, &step.summary.response_time);
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
        self.is_bulk() || CLAIMED.contains(&self)
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
        for percent in netping_measure::quantiles::QUANTILES {
            let name = format!("p{percent}");
            assert!(of_steps().any(|metric| metric.name == name), "{name}");
        }
    }
}
