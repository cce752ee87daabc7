//! Sentences about the findings of a run.

use netping_measure::statistics::recovery::Recovery;
use netping_results::{
    compare::FileComparison,
    comparison::{Compared, Comparison, Finding},
    estimate::estimate,
    format::{self, plural, thousands},
    metric::{self, Metric},
    recovery::recoveries,
    run::{Kind, Measurement, Run},
    time_unit::TimeUnit,
};

use crate::{
    ab,
    finding::{
        self, added_in_words, change, change_interval, claim, connections, marked, range, sides,
    },
    grouped,
    ladder::in_words,
    loads::{BestConnections, best_connections, fullest, load_of},
    verdict::is_valid,
};

/// Most sentences about targets: of more, the charts tell.
const MOST: usize = 6;

/// Returns what a run measured and what came out, each result with its interval where it has one. Where
/// the run is not valid, each sentence says so.
pub fn sentences(run: &Run) -> Vec<String> {
    let compared = run.compared();
    let mut all: Vec<String> = match run.kind {
        Kind::Ladder => return in_words(&compared),
        Kind::Ab => return vec![ab::sentence(run, &run.decided())],
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
            let alone = targets
                .iter()
                .flat_map(|(_, loads)| [alone(loads), on_connections(loads)]);
            let is_valid = is_valid(run);
            alone
                .flatten()
                .map(|sentence| marked(sentence, is_valid))
                .chain(pairs.filter_map(difference))
                .collect()
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
        let name = comparison.short_name(pair);
        claim(&name, &[pair], Some(changed(&name, claims)))
    };
    let pairs = &comparison.pairs;
    let mut all: Vec<String> = pairs.iter().take(MOST).filter_map(sentence).collect();
    if pairs.len() > MOST {
        let more = plural((pairs.len() - MOST) as u64, "more measurement");
        all.push(format!("The charts have {more}."));
    }
    all
}

/// Says what the claims of a comparison came to.
fn changed<'a>(name: &str, claims: impl Iterator<Item = &'a Comparison>) -> String {
    let (mut parts, mut alike) = (Vec::new(), Vec::new());
    let (mut unequal, mut unsure) = (Vec::new(), Vec::new());
    for own in claims.filter(|own| own.change.is_some()) {
        let label = own.metric.label;
        let shown = format!("{label} {} ({})", change(own), change_interval(own));
        match own.finding() {
            Some(Finding::Better) => parts.push(shown + ", better"),
            Some(Finding::Worse) => parts.push(shown + ", worse"),
            Some(Finding::Equivalent | Finding::NoDifference) => alike.push(label),
            Some(Finding::Unequal) => unequal.push(label),
            Some(Finding::NotValid) | None => unsure.push(label),
        }
    }
    for (what, labels) in [
        ("no difference shown", alike),
        ("connections differ", unequal),
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
        p99.strip_prefix('>').map_or_else(
            || format!("; for 99 % of them, no more than {p99}"),
            |least| format!("; 1 % of them took more than {least}"),
        )
    });
    let took = p50.strip_prefix('>').map_or_else(
        || format!("no more than {p50}"),
        |least| format!("more than {least}"),
    );
    Some(match settings.planned_rate {
        Some(rate) => {
            let base = settings.bursts.map_or(rate, |bursts| bursts.base_rate);
            let bursts = settings
                .bursts
                .map(|own| format!(" with {}", own.in_words()));
            format!(
                "At {} requests per second{}, half of the responses of {name} took {took}{p99}.{}",
                format::rate(base),
                bursts.unwrap_or_default(),
                after_bursts(measurement)
            )
        }
        None if settings.requests_per_connection == Some(1) => format!(
            "Opening a connection to {name} and the first call on it took {p50} at the median{p99}."
        ),
        None if is_alone => {
            format!("A round trip to {name} took {p50} at the median{p99}.")
        }
        None => {
            let rate = value(&metric::RATE, measurement)?;
            let most = if loads.len() > 1 { " at most" } else { "" };
            let load = load_of(settings);
            format!(
                "{name} served{most} {rate}, with {load}; half of the responses then took {took}{p99}."
            )
        }
    })
}

/// Says how long the bursts of all trials were felt, if there were any.
fn after_bursts(measurement: &Measurement<'_>) -> String {
    let found = measurement
        .trials
        .iter()
        .filter_map(|step| recoveries(step));
    let each: Vec<Recovery> = found.flat_map(|own| own.each).collect();
    let lost = each.iter().filter(|own| own.after.is_none()).count();
    match each.iter().filter_map(|own| own.after).max() {
        _ if lost > 0 => {
            let of = plural(each.len() as u64, "burst");
            format!(" The p99 of a second did not come back to what it was before {lost} of {of}.")
        }
        Some(longest) => format!(
            " The p99 of a second was as before at most {longest} s after the end of a burst."
        ),
        None => String::new(),
    }
}

/// Says which number of connections gave a target its highest rate, at the most callers that it had, and
/// where more made it fall; `None` where one number of connections was measured.
pub fn on_connections(loads: &[Measurement<'_>]) -> Option<String> {
    let BestConnections {
        best,
        fall,
        unclear,
    } = best_connections(loads)?;
    let count = |own: &Measurement<'_>| thousands(own.settings().connections as f64);
    let rate = value(&metric::RATE, best)?;
    let fall = fall.and_then(|own| {
        let rate = value(&metric::RATE, own)?;
        Some(format!("; on {} it fell to {rate}", count(own)))
    });
    let unclear: Vec<String> = unclear.into_iter().map(count).collect();
    let has_interval = estimate(&metric::RATE, best).is_some_and(|own| own.interval.is_some());
    let why = if has_interval {
        ""
    } else {
        "without error bars, "
    };
    let unclear = match &unclear[..] {
        [] => String::new(),
        counts => format!("; {why}no difference is shown to {}", counts.join(", ")),
    };
    Some(format!(
        "With {}, {} had its highest rate on {}: {rate}{}{unclear}.",
        plural(best.settings().callers as u64, "caller"),
        best.name(),
        connections(best.settings()),
        fall.unwrap_or_default(),
    ))
}

/// Says what the comparison of two targets shows, by the metric that matters under their load.
fn difference(pair: &Compared<'_>) -> Option<String> {
    if !pair.new.has_connections_like(&pair.base) {
        let [new, base] = sides(pair);
        return Some(format!(
            "{new}, is not ranked against {base}: connections differ."
        ));
    }
    let settings = pair.base.settings();
    let metric = match settings.planned_rate {
        None if settings.bulk.is_some() => &metric::BULK_RATE,
        None if settings.callers > 1 => &metric::RATE,
        _ => &metric::P50,
    };
    let by = pair.by(metric).filter(|by| by.finding().is_some())?;
    let names = format!("{} against {}", pair.new.name(), pair.base.name());
    claim(&names, &[pair], Some(changed(&names, [by].into_iter())))
}

/// Returns a metric's value over trials with its interval and its unit.
fn value(metric: &Metric, measurement: &Measurement<'_>) -> Option<String> {
    let own = estimate(metric, measurement)?;
    let reading = metric.reading([own.value]);
    let unit = match metric.unit {
        metric::Unit::PerSecond => "requests per second",
        metric::Unit::GibPerSecond => "GiB/s",
        _ => reading.times().map_or("", TimeUnit::name),
    };
    let ends = own
        .interval
        .map(|ends| range(ends, |end| reading.show(end)));
    let ends = ends.map_or_else(String::new, |ends| format!(" ({ends})"));
    Some(format!(
        "{} {unit}{ends}",
        finding::value(reading, Some(own))
    ))
}

/// Says what a proxy adds to the times of the direct path, as far as that is claimed.
fn overhead(pair: &Compared<'_>) -> Option<String> {
    let median = pair.by(&metric::P50)?;
    claim(pair.new.name(), &[pair], overhead_in_words(pair, median))
}

/// Says what a proxy adds to the times of the direct path.
fn overhead_in_words(pair: &Compared<'_>, median: &Comparison) -> Option<String> {
    let median = added_in_words(median, "the median")?;
    let rate = pair.new.settings().planned_rate;
    let rate = rate.map(|rate| format!("At {} requests per second, ", format::rate(rate)));
    let tail = pair.by(&metric::P99);
    let tail = tail.and_then(|by| added_in_words(by, "the 99th percentile"));
    let tail = tail.map(|tail| format!(", and {tail}"));
    let [rate, tail] = [rate, tail].map(Option::unwrap_or_default);
    Some(format!("{rate}{} {median}{tail}.", pair.new.name()))
}

#[cfg(test)]
mod tests {
    use netping_results::{
        burst::BurstSettings, compare::compare_runs, fixtures, run::Pairing,
        warning::ClientThrottled,
    };

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
            sentence.contains("for 99 % of them, no more than 1.00 ms"),
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
            all[0].starts_with("A round trip to first took 1.00 ms ("),
            "{all:?}"
        );
        assert!(all[2].starts_with("second against first: p50"), "{all:?}");
        assert!(all[2].ends_with(", worse."), "{all:?}");
    }

    #[test]
    fn what_is_not_valid_is_marked_and_claims_nothing() {
        let steps = [
            ("TCP", [64, 64], 1000.0),
            ("QUIC", [64, 64], 1400.0),
            ("gRPC", [64, 64], 700.0),
        ];
        let mut run = Run {
            pairings: vec![Pairing::new(0, 1), Pairing::new(0, 2)],
            ..trials(&steps, 0.001)
        };
        let sound = sentences(&run);
        for step in &mut run.steps[6..] {
            step.warnings = vec![ClientThrottled { seconds: 0.5 }.into()];
        }
        let said = sentences(&run);
        for at in 0..4 {
            assert_eq!(said[at], format!("Not to be relied on: {}", sound[at]));
        }
        assert_eq!(
            said[4],
            "gRPC against TCP: no claim, since windows were not valid (CLIENT_THROTTLED)."
        );
        let (base, new) = (trials(&steps, 0.001), run);
        let changed = changes(&compare_runs(&base, &new, &[]));
        assert!(
            changed[0].starts_with("Not to be relied on: TCP, 64 callers: "),
            "{changed:?}"
        );
        assert_eq!(
            changed[2],
            "gRPC, 64 callers: no claim, since windows were not valid (CLIENT_THROTTLED)."
        );
    }

    /// Returns a run of three trials of each of these: a target, its callers and connections, and the rate
    /// of the second trial; the others are off it by this share.
    fn trials(steps: &[(&str, [usize; 2], f64)], spread: f64) -> Run {
        let mut run = fixtures::run(Vec::new());
        for (at, (name, [callers, connections], rate)) in steps.iter().enumerate() {
            for trial in 1..=3 {
                let mut step = fixtures::step(2, |_| vec![1_000_000; 2000]);
                step.label = Some((*name).to_owned());
                step.settings.callers = *callers;
                step.settings.connections = *connections;
                step.summary.rate = rate * (1.0 + spread * (f64::from(trial) - 2.0));
                (step.measurement, step.trial) = (at, trial);
                run.steps.push(step);
            }
        }
        run
    }

    #[test]
    fn targets_are_ranked_on_like_connections_alone() {
        let said = |connections| {
            let steps = [
                ("TCP", [64, 64], 1000.0),
                ("QUIC", [64, connections], 1400.0),
            ];
            let run = Run {
                pairings: vec![Pairing::new(0, 1)],
                ..trials(&steps, 0.001)
            };
            sentences(&run)
        };
        let alike = said(64);
        assert!(
            alike[2].starts_with("QUIC against TCP: rate +40.0% (")
                && alike[2].ends_with(", better."),
            "{alike:?}"
        );
        let unequal = said(1);
        assert_eq!(
            unequal[2],
            "QUIC, 64 callers on 1 connection, is not ranked against TCP, 64 callers on 64 connections: connections differ."
        );
        assert!(
            unequal[0].contains("with 64 callers; ")
                && unequal[1].contains("with 64 callers on 1 connection; "),
            "{unequal:?}"
        );
    }

    #[test]
    fn a_grid_tells_its_best_connections_and_a_fall_with_more() {
        let grid = |rates: [f64; 4], spread| {
            let on = |connections, rate| ("gRPC", [64, connections], rate);
            let steps = [
                ("gRPC", [8, 8], 9000.0),
                on(1, rates[0]),
                on(4, rates[1]),
                on(16, rates[2]),
                on(64, rates[3]),
            ];
            on_connections(&trials(&steps, spread).measurements()).unwrap()
        };
        let peaked = [1000.0, 3990.0, 4000.0, 3000.0];
        let said = grid(peaked, 0.01);
        assert!(
            said.starts_with(
                "With 64 callers, gRPC had its highest rate on 16 connections: 4,000 requests per second (3,9"
            ),
            "{said}"
        );
        assert!(
            said.contains("; on 64 it fell to 3,000 requests per second (2,9")
                && said.ends_with("); no difference is shown to 4."),
            "{said}"
        );
        // Wide intervals overlap, so that no fall is claimed.
        let said = grid(peaked, 0.2);
        assert!(
            said.ends_with("); no difference is shown to 4, 64.") && !said.contains("fell"),
            "{said}"
        );
        // A single trial that is too short has none.
        let mut short = trials(&[("t", [64, 1], 9.0), ("t", [64, 4], 3.0)], 0.0);
        short.steps.retain(|step| step.trial == 1);
        for step in &mut short.steps {
            step.summary.precision.rate_half_width = None;
        }
        let said = on_connections(&short.measurements()).unwrap();
        assert!(
            said.ends_with(
                "on 1 connection: 9.00 requests per second; without error bars, no difference is shown to 4."
            ),
            "{said}"
        );
        // A rise is no fall.
        let said = grid([1000.0, 2000.0, 3000.0, 4000.0], 0.01);
        assert!(
            said.contains("highest rate on 64 connections: 4,000") && !said.contains(';'),
            "{said}"
        );
    }

    #[test]
    fn bursts_are_told_with_how_long_they_were_felt() {
        let said = |is_slow: fn(u64) -> bool| {
            let time = |second| {
                if is_slow(second) {
                    50_000_000
                } else {
                    1_000_000 + second % 3
                }
            };
            let mut step = fixtures::step(20, |second| vec![time(second); 1000]);
            step.settings.planned_rate = Some(1400.0);
            step.settings.bursts = Some(BurstSettings {
                base_rate: 1000.0,
                rate: 5000.0,
                length: 2,
                every: 20,
            });
            sentences(&fixtures::run(vec![step])).remove(0)
        };
        let back = said(|second| (10..15).contains(&second));
        let load =
            "At 1,000 requests per second with bursts of 5,000 req/s for 2 s every 20 s, half";
        assert!(back.starts_with(load), "{back}");
        assert!(
            back.ends_with("as before at most 3 s after the end of a burst."),
            "{back}"
        );
        let lost = said(|second| second >= 10);
        assert!(lost.ends_with("what it was before 1 of 1 burst."), "{lost}");
    }

    #[test]
    fn a_sweep_over_callers_alone_tells_nothing_of_connections() {
        let steps = [("TCP", [8, 8], 1000.0), ("TCP", [64, 64], 2000.0)];
        assert_eq!(on_connections(&trials(&steps, 0.01).measurements()), None);
        // An open loop has the rate that was planned.
        let mut run = trials(&[("t", [64, 1], 1000.0), ("t", [64, 4], 2000.0)], 0.01);
        assert!(on_connections(&run.measurements()).is_some());
        for step in &mut run.steps {
            step.settings.planned_rate = Some(1000.0);
        }
        assert_eq!(on_connections(&run.measurements()), None);
    }
}
