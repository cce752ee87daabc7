//! Sentences about the findings of a run.

use netping_results::{
    compare::FileComparison,
    comparison::{Compared, Comparison, Finding},
    estimate::{Estimate, estimate},
    format::{micros, plural, signed, thousands},
    metric::{self, Metric},
    run::{Kind, Measurement, Run},
};

use crate::{
    finding::{change, change_interval, range, value_with_interval},
    ladder::in_words,
};

/// Most sentences about targets: of more, the charts tell.
const MOST: usize = 6;

/// Returns what a run measured and what came out, each result with its interval where it has one.
pub fn sentences(run: &Run) -> Vec<String> {
    let compared = run.compared();
    let mut all = match run.kind {
        Kind::Ladder => return in_words(&compared),
        Kind::Proxy => compared.iter().filter_map(overhead).collect(),
        _ => {
            let targets = fullest(run);
            let alone = targets.iter().filter_map(alone);
            alone
                .chain(differences(&targets, &compared))
                .collect::<Vec<_>>()
        }
    };
    all.truncate(MOST);
    all
}

/// Returns what changed from a base to a new run, a sentence for each measurement.
pub fn changes(comparison: &FileComparison<'_>) -> Vec<String> {
    let pairs = comparison.pairs.iter().take(MOST);
    let mut all: Vec<String> = pairs
        .map(|pair| changed(&comparison.short_name(pair), pair))
        .collect();
    let left = comparison.pairs.len().saturating_sub(MOST);
    if left > 0 {
        let measurements = plural(left as u64, "more measurement");
        all.push(format!("The charts have {measurements}."));
    }
    all
}

/// Says what is claimed of a measurement.
fn changed(name: &str, pair: &Compared<'_>) -> String {
    let claimed: Vec<&Comparison> = pair
        .comparisons
        .iter()
        .filter(|own| own.metric.is_claimed())
        .collect();
    let mut parts: Vec<String> = claimed.iter().filter_map(|own| shown(own)).collect();
    let names = |is_meant: &dyn Fn(Option<Finding>) -> bool| {
        let meant = claimed.iter().filter(|own| is_meant(own.finding()));
        let names: Vec<&str> = meant
            .filter(|own| own.change.is_some())
            .map(|own| own.metric.label)
            .collect();
        names.join(", ")
    };
    let alike =
        names(&|finding| matches!(finding, Some(Finding::NoDifference | Finding::Equivalent)));
    if !alike.is_empty() {
        parts.push(format!("no difference shown: {alike}"));
    }
    let unsure = names(&|finding| finding.is_none());
    if !unsure.is_empty() {
        parts.push(format!("too few trials to tell: {unsure}"));
    }
    format!("{name}: {}.", parts.join("; "))
}

/// Returns a difference that is shown, with its interval; `None` where it is not.
fn shown(comparison: &Comparison) -> Option<String> {
    let word = match comparison.finding()? {
        Finding::Better => "better",
        Finding::Worse => "worse",
        Finding::Equivalent | Finding::NoDifference => return None,
    };
    Some(format!(
        "{} {} ({}), {word}",
        comparison.metric.label,
        change(comparison),
        change_interval(comparison)
    ))
}

/// A target's measurement with the highest rate.
struct Fullest<'a> {
    measurement: Measurement<'a>,
    rate: f64,
    /// The number of its measurements under all loads.
    loads: usize,
    /// True where no load has more than one caller.
    is_alone: bool,
}

/// Returns the fullest measurement of each target, or of each label where there are some; of bulk
/// streams, that with the most bytes per second.
fn fullest(run: &Run) -> Vec<Fullest<'_>> {
    let mut targets: Vec<Fullest<'_>> = Vec::new();
    for measurement in run.measurements() {
        let rate = estimate(rate_of(&measurement), &measurement).map_or(0.0, |own| own.value);
        let is_alone = measurement.settings().callers == 1;
        let mut known = targets.iter_mut();
        match known.find(|own| own.measurement.name() == measurement.name()) {
            Some(own) => {
                own.loads += 1;
                own.is_alone &= is_alone;
                if rate > own.rate {
                    (own.measurement, own.rate) = (measurement, rate);
                }
            }
            None => targets.push(Fullest {
                measurement,
                rate,
                loads: 1,
                is_alone,
            }),
        }
    }
    targets
}

fn rate_of(measurement: &Measurement<'_>) -> &'static Metric {
    match measurement.settings().bulk {
        Some(_) => &metric::BULK_RATE,
        None => &metric::RATE,
    }
}

/// Says what a target did, by its fullest measurement.
fn alone(target: &Fullest<'_>) -> Option<String> {
    let measurement = &target.measurement;
    let settings = measurement.settings();
    let name = measurement.name();
    if let Some(bulk) = &settings.bulk {
        let rate = value(&metric::BULK_RATE, measurement)?;
        return Some(format!("{name} moved {rate} {}.", bulk.direction.name()));
    }
    let p50 = value(&metric::P50, measurement)?;
    let p99 = value(&metric::P99, measurement).map_or_else(String::new, |p99| {
        format!("; for 99 % of them, no more than {p99}")
    });
    Some(match settings.planned_rate {
        Some(rate) => format!(
            "At {} requests per second, half of the responses of {name} took no more than {p50}{p99}.",
            thousands(rate)
        ),
        None if settings.requests_per_connection == Some(1) => format!(
            "Opening a connection to {name} and the first call on it took {p50} at the median{p99}."
        ),
        None if target.is_alone => {
            format!("A round trip to {name} took {p50} at the median{p99}.")
        }
        None => {
            let rate = value(&metric::RATE, measurement)?;
            let most = if target.loads > 1 { " at most" } else { "" };
            let callers = plural(settings.callers as u64, "caller");
            format!(
                "{name} served{most} {rate}, with {callers}; half of the responses then took no more than {p50}{p99}."
            )
        }
    })
}

/// Compares each target with the first, where the fullest measurement of each is under one load.
fn differences(targets: &[Fullest<'_>], compared: &[Compared<'_>]) -> Vec<String> {
    let is_fullest = |measurement: &Measurement<'_>| {
        let mut all = targets.iter();
        all.any(|own| own.measurement.number == measurement.number)
    };
    let pairs = compared
        .iter()
        .filter(|pair| !pair.is_control && is_fullest(&pair.base) && is_fullest(&pair.new));
    pairs.filter_map(difference).collect()
}

/// Says what the comparison of two targets shows, by the metric that matters under their load.
fn difference(pair: &Compared<'_>) -> Option<String> {
    let settings = pair.base.settings();
    let metric = match settings.planned_rate {
        None if settings.bulk.is_some() => &metric::BULK_RATE,
        None if settings.callers > 1 => &metric::RATE,
        _ => &metric::P50,
    };
    let comparison = pair.by(metric)?;
    let names = format!("{} against {}", pair.new.name(), pair.base.name());
    let (label, change) = (metric.label, change(comparison));
    let ends = change_interval(comparison);
    Some(match comparison.finding()? {
        Finding::NoDifference => format!("{names}: no difference of {label} shown ({ends})."),
        Finding::Equivalent => format!("{names}: {label} is equivalent ({ends})."),
        Finding::Better => format!("{names}: {label} {change} ({ends}), which is better."),
        Finding::Worse => format!("{names}: {label} {change} ({ends}), which is worse."),
    })
}

/// Returns a metric's value over trials with its interval and its unit.
fn value(metric: &Metric, measurement: &Measurement<'_>) -> Option<String> {
    let unit = match metric.unit {
        metric::Unit::PerSecond => "requests per second",
        metric::Unit::GibPerSecond => "GiB/s",
        _ => "us",
    };
    let own: Estimate = estimate(metric, measurement)?;
    Some(value_with_interval(metric, own, unit))
}

/// Says what a proxy adds to the times of the direct path.
fn overhead(pair: &Compared<'_>) -> Option<String> {
    let median = added(pair.by(&metric::P50)?)?;
    let settings = pair.new.settings();
    let rate = settings.planned_rate.map_or_else(String::new, |rate| {
        format!("At {} requests per second, ", thousands(rate))
    });
    let tail = pair.by(&metric::P99).and_then(added);
    let tail = tail.map_or_else(String::new, |tail| {
        format!(", and {tail} to the 99th percentile")
    });
    let name = pair.new.name();
    Some(format!("{rate}{name} adds {median} to the median{tail}."))
}

/// Returns the time that a comparison adds, with its interval; `None` where a value is missing.
fn added(comparison: &Comparison) -> Option<String> {
    let (added, ends) = comparison.added()?;
    let us = |time: f64| micros(time / 1e3);
    Some(match ends {
        None => format!("{} us", us(added)),
        Some(ends) if comparison.is_shown() == Some(false) => {
            let ends = range(ends, |end| signed(end / 1e3));
            format!("no time that is shown ({ends} us)")
        }
        Some(ends) => format!("{} us ({})", us(added), range(ends, us)),
    })
}

#[cfg(test)]
mod tests {
    use netping_results::{fixtures, run::Pairing};

    use super::*;

    #[test]
    fn a_sweep_tells_its_highest_rate_and_what_it_costs() {
        let mut run = fixtures::run(Vec::new());
        for callers in [1, 8] {
            let mut step = fixtures::step(2, |_| vec![1_000_000; 2000]);
            step.measurement = callers;
            step.settings.callers = callers;
            step.summary.rate = 1000.0 * callers as f64;
            run.steps.push(step);
        }
        let [sentence] = &sentences(&run)[..] else {
            panic!("{:?}", sentences(&run));
        };
        assert!(
            sentence.contains("served at most 8,000 requests per second")
                && sentence.contains("with 8 callers"),
            "{sentence}"
        );
        assert!(
            sentence.contains("for 99 % of them, no more than 1,000 us"),
            "{sentence}"
        );
    }

    #[test]
    fn one_caller_is_a_round_trip_and_two_targets_are_compared() {
        let mut run = Run {
            pairings: vec![Pairing {
                base: 0,
                new: 1,
                is_control: false,
            }],
            ..fixtures::run(Vec::new())
        };
        for (at, name, time) in [(0, "first", 1_000_000), (1, "second", 2_000_000)] {
            for trial in 1..=3 {
                let mut step = fixtures::step(2, |_| vec![time + u64::from(trial) * 1000; 2000]);
                step.settings.callers = 1;
                step.label = Some(name.to_owned());
                (step.measurement, step.trial) = (at, trial);
                run.steps.push(step);
            }
        }
        let all = sentences(&run);
        assert!(
            all[0].starts_with("A round trip to first took 1,00"),
            "{all:?}"
        );
        assert!(all[2].starts_with("second against first: p50"), "{all:?}");
        assert!(all[2].ends_with("which is worse."), "{all:?}");
    }
}
