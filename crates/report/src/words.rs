//! Sentences about the findings of a run.

use netping_results::{
    compare::FileComparison,
    comparison::{Compared, Comparison, Finding},
    estimate::estimate,
    format::{plural, thousands},
    metric::{self, Metric},
    run::{Kind, Measurement, Run},
};

use crate::{
    finding::{self, added_in_words, change, change_interval, range},
    grouped,
    ladder::in_words,
    loads::fullest,
};

/// Most sentences about targets: of more, the charts tell.
const MOST: usize = 6;

/// Returns what a run measured and what came out, each result with its interval where it has one.
pub fn sentences(run: &Run) -> Vec<String> {
    let compared = run.compared();
    let mut all: Vec<String> = match run.kind {
        Kind::Ladder => return in_words(&compared),
        Kind::Proxy => compared.iter().filter_map(overhead).collect(),
        _ => {
            let measurements = run.measurements().into_iter();
            let targets = grouped(measurements.map(|own| (own.name(), own)));
            let is_fullest = |own: &Measurement<'_>| {
                let mut fullest = targets.iter().filter_map(|(_, loads)| fullest(loads));
                fullest.any(|other| other.number == own.number)
            };
            let pairs = compared
                .iter()
                .filter(|pair| !pair.is_control && is_fullest(&pair.base) && is_fullest(&pair.new));
            let alone = targets.iter().filter_map(|(_, loads)| alone(loads));
            alone.chain(pairs.filter_map(difference)).collect()
        }
    };
    all.truncate(MOST);
    all
}

/// Returns what changed from a base to a new run, a sentence for each measurement.
pub fn changes(comparison: &FileComparison<'_>) -> Vec<String> {
    let sentence = |pair: &Compared<'_>| {
        let claims = pair.comparisons.iter();
        let claims = claims.filter(|own| own.metric.is_claimed());
        changed(&comparison.short_name(pair), claims)
    };
    let pairs = &comparison.pairs;
    let mut all: Vec<String> = pairs.iter().take(MOST).map(sentence).collect();
    if pairs.len() > MOST {
        let more = plural((pairs.len() - MOST) as u64, "more measurement");
        all.push(format!("The charts have {more}."));
    }
    all
}

/// Says what the claims of a comparison came to.
fn changed<'a>(name: &str, claims: impl Iterator<Item = &'a Comparison>) -> String {
    let (mut parts, mut alike, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
    for own in claims.filter(|own| own.change.is_some()) {
        let label = own.metric.label;
        let shown = format!("{label} {} ({})", change(own), change_interval(own));
        match own.finding() {
            Some(Finding::Better) => parts.push(shown + ", better"),
            Some(Finding::Worse) => parts.push(shown + ", worse"),
            Some(Finding::Equivalent | Finding::NoDifference) => alike.push(label),
            None => unsure.push(label),
        }
    }
    for (what, labels) in [
        ("no difference shown", alike),
        ("too few trials to tell", unsure),
    ] {
        if !labels.is_empty() {
            parts.push(format!("{what}: {}", labels.join(", ")));
        }
    }
    format!("{name}: {}.", parts.join("; "))
}

/// Says what a target did, by the fullest of its loads.
fn alone(loads: &[Measurement<'_>]) -> Option<String> {
    let measurement = fullest(loads)?;
    let is_alone = loads.iter().all(|own| own.settings().callers == 1);
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
        None if is_alone => {
            format!("A round trip to {name} took {p50} at the median{p99}.")
        }
        None => {
            let rate = value(&metric::RATE, measurement)?;
            let most = if loads.len() > 1 { " at most" } else { "" };
            let callers = plural(settings.callers as u64, "caller");
            format!(
                "{name} served{most} {rate}, with {callers}; half of the responses then took no more than {p50}{p99}."
            )
        }
    })
}

/// Says what the comparison of two targets shows, by the metric that matters under their load.
fn difference(pair: &Compared<'_>) -> Option<String> {
    let settings = pair.base.settings();
    let metric = match settings.planned_rate {
        None if settings.bulk.is_some() => &metric::BULK_RATE,
        None if settings.callers > 1 => &metric::RATE,
        _ => &metric::P50,
    };
    let by = pair.by(metric).filter(|by| by.finding().is_some())?;
    let names = format!("{} against {}", pair.new.name(), pair.base.name());
    Some(changed(&names, [by].into_iter()))
}

/// Returns a metric's value over trials with its interval and its unit.
fn value(metric: &Metric, measurement: &Measurement<'_>) -> Option<String> {
    let unit = match metric.unit {
        metric::Unit::PerSecond => "requests per second",
        metric::Unit::GibPerSecond => "GiB/s",
        _ => "us",
    };
    let own = estimate(metric, measurement)?;
    let ends = own.interval.map(|ends| range(ends, |end| metric.show(end)));
    let ends = ends.map_or_else(String::new, |ends| format!(" ({ends})"));
    Some(format!(
        "{} {unit}{ends}",
        finding::value(metric, Some(own))
    ))
}

/// Says what a proxy adds to the times of the direct path.
fn overhead(pair: &Compared<'_>) -> Option<String> {
    let median = added_in_words(pair.by(&metric::P50)?, "the median")?;
    let rate = pair.new.settings().planned_rate;
    let rate = rate.map(|rate| format!("At {} requests per second, ", thousands(rate)));
    let tail = pair.by(&metric::P99);
    let tail = tail.and_then(|by| added_in_words(by, "the 99th percentile"));
    let tail = tail.map(|tail| format!(", and {tail}"));
    let [rate, tail] = [rate, tail].map(Option::unwrap_or_default);
    Some(format!("{rate}{} {median}{tail}.", pair.new.name()))
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
            pairings: vec![Pairing::new(0, 1)],
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
        assert!(all[2].ends_with(", worse."), "{all:?}");
    }
}
