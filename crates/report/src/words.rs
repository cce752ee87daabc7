//! Sentences about the findings of a run.

use netping_measure::statistics::difference::Finding;
use netping_results::{
    bulk::BulkStep,
    compare::{Change, Comparison, Pair},
    format::{micros, plural, signed, thousands},
    metric::{self, Better, Metric},
    overhead::Overhead,
    run::{Run, Step},
};

use crate::ladder::in_words;

/// Most sentences about targets: of more, the charts tell.
const MOST: usize = 6;

/// Returns what a run measured and what came out, each result with its interval where it has one.
pub fn sentences(run: &Run) -> Vec<String> {
    if !run.differences.is_empty() {
        return in_words(&run.differences.iter().collect::<Vec<_>>());
    }
    if !run.overheads.is_empty() {
        return overheads(&run.overheads);
    }
    let mut all = bulk(run);
    let targets = targets(run.steps_by_target());
    all.extend(targets.iter().filter_map(|own| alone(own)));
    if let [first, others @ ..] = &targets[..] {
        // As many as the chart of the differences has.
        let mut loads: Vec<_> = first.iter().map(|step| step.settings.asked()).collect();
        loads.sort_unstable();
        loads.dedup();
        let comparisons = others.len() * loads.len() * metric::TRIALS.len();
        let compared = others
            .iter()
            .filter_map(|own| compared(first, own, comparisons));
        all.extend(compared);
    }
    all.truncate(MOST);
    all
}

/// Returns what changed from a base to a new run, a sentence for each measurement.
pub fn changes(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<String> = comparison.pairs.iter().take(MOST).map(changed).collect();
    let left = comparison.pairs.len().saturating_sub(MOST);
    if left > 0 {
        let measurements = plural(left as u64, "more measurement");
        all.push(format!("The charts have {measurements}."));
    }
    all
}

/// Says what is claimed of a measurement.
fn changed(pair: &Pair) -> String {
    let percent = |metric: &Metric, share: f64| {
        let unit = if metric.is_relative() { "%" } else { " points" };
        format!("{:+.1}{unit}", share * 100.0)
    };
    let claimed = || {
        pair.changes
            .iter()
            .filter(|change| change.metric.is_claimed())
    };
    let shown = |change: &Change| {
        let word = match change.finding()? {
            Finding::Better => "better",
            Finding::Worse => "worse",
            Finding::NoDifference => return None,
        };
        let metric = change.metric;
        let [low, high] = change.interval?.map(|end| percent(metric, end));
        let difference = percent(metric, change.difference?);
        Some(format!(
            "{} {difference} ({low}..{high}), {word}",
            metric.label
        ))
    };
    let mut parts: Vec<String> = claimed().filter_map(shown).collect();
    let names = |is_meant: &dyn Fn(&Change) -> bool| {
        let names = claimed()
            .filter(|change| is_meant(change))
            .map(|change| change.metric.label);
        names.collect::<Vec<_>>().join(", ")
    };
    let alike = names(&|change| change.finding() == Some(Finding::NoDifference));
    if !alike.is_empty() {
        parts.push(format!("no difference shown: {alike}"));
    }
    let unsure = names(&|change| change.finding().is_none() && change.difference.is_some());
    if !unsure.is_empty() {
        parts.push(format!("too few trials to tell: {unsure}"));
    }
    format!("{}: {}.", pair.short_name, parts.join("; "))
}

/// Returns the steps of each target, or of each label where there are some.
fn targets(steps: Vec<&Step>) -> Vec<Vec<&Step>> {
    let mut targets: Vec<Vec<&Step>> = Vec::new();
    for step in steps {
        match targets.iter_mut().find(|own| own[0].name() == step.name()) {
            Some(own) => own.push(step),
            None => targets.push(vec![step]),
        }
    }
    targets
}

/// Returns the trials of the load with the highest rate.
fn fullest<'a>(steps: &[&'a Step]) -> Vec<&'a Step> {
    let by_rate = |a: &&&Step, b: &&&Step| a.summary.rate.total_cmp(&b.summary.rate);
    let Some(peak) = steps.iter().max_by(by_rate) else {
        return Vec::new();
    };
    let own = steps
        .iter()
        .filter(|step| step.settings.load() == peak.settings.load());
    own.copied().collect()
}

fn alone(steps: &[&Step]) -> Option<String> {
    let trials = fullest(steps);
    let step = *trials.first()?;
    let settings = &step.settings;
    let name = step.name();
    let p50 = value(&metric::P50, &trials)?;
    let p99 = value(&metric::P99, &trials).map_or_else(String::new, |p99| {
        format!("; for 99 % of them, no more than {p99}")
    });
    let only_one = steps.iter().all(|step| step.settings.callers == 1);
    Some(match settings.planned_rate {
        Some(rate) => format!(
            "At {} requests per second, half of the responses of {name} took no more than {p50}{p99}.",
            thousands(rate)
        ),
        None if settings.requests_per_connection == Some(1) => format!(
            "Opening a connection to {name} and the first call on it took {p50} at the median{p99}."
        ),
        None if only_one => format!("A round trip to {name} took {p50} at the median{p99}."),
        None => {
            let rate = value(&metric::RATE, &trials)?;
            let most = if steps.len() > trials.len() {
                " at most"
            } else {
                ""
            };
            let callers = plural(settings.callers as u64, "caller");
            format!(
                "{name} served{most} {rate}, with {callers}; half of the responses then took no more than {p50}{p99}."
            )
        }
    })
}

/// Compares a target with the first, where both have trials of one load.
fn compared(first: &[&Step], own: &[&Step], comparisons: usize) -> Option<String> {
    let (first, own) = (fullest(first), fullest(own));
    let (base, other) = (*first.first()?, *own.first()?);
    if base.settings.asked() != other.settings.asked() {
        return None;
    }
    let metric = match base.settings.planned_rate {
        None if base.settings.callers > 1 => &metric::RATE,
        _ => &metric::P50,
    };
    let difference = metric.difference(&first, &own, comparisons)?;
    let percent = |share: f64| format!("{:+.1}%", share * 100.0);
    let [low, high] = difference.interval.map(percent);
    let names = format!("{} against {}", other.name(), base.name());
    let word = match difference.finding(metric.better == Better::Higher) {
        Finding::NoDifference => {
            return Some(format!(
                "{names}: no difference of {} shown ({low}..{high}).",
                metric.name
            ));
        }
        Finding::Better => "better",
        Finding::Worse => "worse",
    };
    let relative = percent(difference.relative);
    Some(format!(
        "{names}: {} {relative} ({low}..{high}), which is {word}.",
        metric.name
    ))
}

/// Returns a metric's value over trials with its 95 % interval, and its unit.
fn value(metric: &Metric, trials: &[&Step]) -> Option<String> {
    let unit = match metric.unit {
        metric::Unit::PerSecond => "requests per second",
        _ => "us",
    };
    if let [step] = trials {
        metric.of_step(step)?;
        let shown = metric.cell_of_step(step);
        let interval = metric
            .interval(step)
            .map_or_else(String::new, |[low, high]| {
                format!(" ({}..{})", metric.show(low), metric.show(high))
            });
        return Some(format!("{shown} {unit}{interval}"));
    }
    let estimate = metric.estimate(trials)?;
    let interval = estimate.half_width.map_or_else(String::new, |half| {
        let [low, high] = [estimate.mean - half, estimate.mean + half];
        format!(" ({}..{})", metric.show(low.max(0.0)), metric.show(high))
    });
    Some(format!("{} {unit}{interval}", metric.show(estimate.mean)))
}

fn bulk(run: &Run) -> Vec<String> {
    let sentence = |step: &BulkStep| {
        let rate = step.summary?.gib_per_second;
        let interval = rate.half_width.map_or_else(String::new, |half| {
            let [low, high] = [rate.mean - half, rate.mean + half];
            format!(" ({}..{})", micros(low.max(0.0)), micros(high))
        });
        let direction = step.settings.direction.name();
        let rate = micros(rate.mean);
        Some(format!(
            "{} moved {rate} GiB/s{interval} {direction}.",
            step.target
        ))
    };
    let mut best: Vec<&BulkStep> = Vec::new();
    let mean = |step: &BulkStep| step.summary.map_or(0.0, |of| of.gib_per_second.mean);
    for step in &run.bulk {
        match best.iter_mut().find(|other| other.target == step.target) {
            Some(other) if mean(step) > mean(other) => *other = step,
            Some(_) => {}
            None => best.push(step),
        }
    }
    best.into_iter().filter_map(sentence).collect()
}

fn overheads(all: &[Overhead]) -> Vec<String> {
    let medians = all.iter().filter(|own| own.measure == metric::P50.name);
    let sentence = |median: &Overhead| {
        let tail = all.iter().find(|own| {
            own.via == median.via
                && own.planned_rate == median.planned_rate
                && own.measure == metric::P99.name
        });
        let rate = median.planned_rate.map_or_else(String::new, |rate| {
            format!("At {} requests per second, ", thousands(rate))
        });
        let tail = tail.map_or_else(String::new, |tail| {
            format!(", and {} to the 99th percentile", added(tail))
        });
        format!(
            "{rate}{} adds {} to the median{tail}.",
            median.via,
            added(median)
        )
    };
    medians.map(sentence).take(MOST).collect()
}

fn added(overhead: &Overhead) -> String {
    match overhead.interval_us {
        Some([low, high]) if low <= 0.0 && high >= 0.0 => {
            format!(
                "no time that is shown ({}..{} us)",
                signed(low),
                signed(high)
            )
        }
        Some([low, high]) => format!(
            "{} us ({}..{})",
            micros(overhead.added_us),
            micros(low),
            micros(high)
        ),
        None => format!("{} us", micros(overhead.added_us)),
    }
}

#[cfg(test)]
mod tests {
    use netping_results::fixtures;

    use super::*;

    #[test]
    fn a_sweep_tells_its_highest_rate_and_what_it_costs() {
        let mut run = fixtures::run(Vec::new());
        for callers in [1, 8] {
            let mut step = fixtures::step(2, |_| vec![1_000_000; 2000]);
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
        let mut run = fixtures::run(Vec::new());
        for (name, time) in [("first", 1_000_000), ("second", 2_000_000)] {
            for trial in 1..=3 {
                let mut step = fixtures::step(2, |_| vec![time + u64::from(trial) * 1000; 2000]);
                step.settings.callers = 1;
                step.label = Some(name.to_owned());
                step.trial = trial;
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
