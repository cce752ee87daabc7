//! The ladder: the metric of each load, and sentences about the differences that it shows.

use netping_results::{
    comparison::{Compared, Comparison},
    metric::{self, Metric},
    run::StepSettings,
};

use crate::finding::{added_in_words, claim, range};

/// Fewer rounds than these show only the largest differences: of those, nothing is said in words.
pub const FEWEST: usize = 5;

/// Returns the metric by which rungs are measured under a load: a round trip takes as long as it
/// takes, and many callers fill a server.
pub fn metric_of(settings: &StepSettings) -> &'static Metric {
    if settings.callers == 1 {
        &metric::P50
    } else {
        &metric::RATE
    }
}

/// Returns what the differences under loads with small requests show, a sentence for each rung, which says
/// so where it is not to be relied on, and where nothing is claimed of it; none where there are too few
/// rounds.
pub fn in_words(all: &[Compared<'_>]) -> Vec<String> {
    let small: Vec<&Compared<'_>> = all
        .iter()
        .filter(|own| !own.is_control && own.base.settings().message.is_none())
        .collect();
    let sentence = |own: &&Compared<'_>| {
        let [name, base] = names(own);
        if name == base {
            let rate = told(own, &metric::RATE)?;
            let [few, many] = [&own.new, &own.base].map(|side| side.settings().connections);
            let rung = format!("{name} on {few} connections instead of {many}");
            let sentence = format!("{rung} {}.", rate_in_words(rate));
            return claim(&rung, &[own], Some(sentence));
        }
        let time = told(own, &metric::P50)?;
        let loads = small.iter().copied();
        let loads: Vec<_> = loads.filter(|other| names(other) == [name, base]).collect();
        let rate = loads.iter().find_map(|other| told(other, &metric::RATE));
        let rung = format!("{name} over {base}");
        let sentence = shown(time, rate).map(|shown| format!("{rung} {shown}."));
        claim(&rung, &loads, sentence)
    };
    small.iter().filter_map(sentence).collect()
}

/// Says what a rung adds to a round trip, and how much of the rate it has.
fn shown(time: &Comparison, rate: Option<&Comparison>) -> Option<String> {
    let is_shown = |by: &Comparison| by.is_shown() == Some(true);
    if !is_shown(time) && !rate.is_some_and(is_shown) {
        return Some("shows no difference".to_owned());
    }
    let time = if is_shown(time) {
        added_in_words(time, "a round trip")?
    } else {
        "shows no difference in a round trip".to_owned()
    };
    let rate = rate.map(|rate| format!(" and {}", rate_in_words(rate)));
    Some(time + &rate.unwrap_or_default())
}

/// Returns the names of the rung and of the one that it builds on.
fn names<'a>(own: &Compared<'a>) -> [&'a str; 2] {
    [own.new.name(), own.base.name()]
}

/// Returns the comparison by a metric, if it has an interval of enough rounds.
fn told<'a>(own: &'a Compared<'_>, metric: &Metric) -> Option<&'a Comparison> {
    let rounds = |by: &Comparison| by.new.map_or(0, |own| own.trials);
    own.by(metric)
        .filter(|by| by.interval.is_some() && rounds(by) >= FEWEST)
}

fn rate_in_words(rate: &Comparison) -> String {
    let shown = rate.change.zip(rate.interval);
    let Some((change, [low, high])) = shown.filter(|_| rate.is_shown() == Some(true)) else {
        return "shows no difference in the rate".to_owned();
    };
    // A difference that is shown is not 1.00.
    let digits = if [change, low, high].iter().any(|share| share.abs() < 0.005) {
        3
    } else {
        2
    };
    let times = |share: f64| format!("{:.digits$}", 1.0 + share);
    let ends = range([low, high], times);
    format!("has {} ({ends}) times the rate", times(change))
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures,
        run::{Kind, Pairing, Run, Step},
        warning::Errors,
    };

    use super::*;
    use crate::text::tables;

    /// Five rounds of a rung, whose p50 in ns (with one caller) or rate (with 64) has this level.
    fn rounds(
        measurement: usize,
        name: &str,
        [callers, connections]: [usize; 2],
        level: f64,
    ) -> Vec<Step> {
        let round = |trial: u32| {
            let near = level * (1.0 + 0.001 * f64::from(trial));
            let mut step = fixtures::step(1, |_| vec![near as u64; 1000]);
            (step.measurement, step.trial) = (measurement, trial);
            step.label = Some(name.to_owned());
            (step.settings.callers, step.settings.connections) = (callers, connections);
            step.summary.rate = near;
            step
        };
        (1..=5).map(round).collect()
    }

    #[test]
    fn a_rate_that_is_told_to_differ_is_not_the_same_in_words() {
        let steps = [[64, 64], [64, 4]].into_iter().zip([100_000.0, 99_600.0]);
        let steps = steps.enumerate();
        let steps = steps.flat_map(|(number, (load, rate))| rounds(number, "QUIC", load, rate));
        let run = Run {
            kind: Kind::Ladder,
            pairings: vec![Pairing::new(0, 1)],
            ..fixtures::run(steps.collect())
        };
        let words = in_words(&run.compared()).concat();
        let start = "QUIC on 4 connections instead of 64 has 0.996 (0.99";
        assert!(words.starts_with(start), "{words}");
    }

    #[test]
    fn a_rung_has_a_sentence_with_what_is_shown() {
        let (alone, many, shared) = ([1, 1], [64, 64], [64, 4]);
        let steps = [
            rounds(0, "TCP", alone, 50_000.0),
            rounds(1, "TLS", alone, 53_000.0),
            rounds(2, "PSK", alone, 50_000.0),
            rounds(3, "gRPC", alone, 50_000.0),
            rounds(4, "TCP", many, 100_000.0),
            rounds(5, "TLS", many, 86_000.0),
            rounds(6, "PSK", many, 100_000.0),
            rounds(7, "gRPC", many, 50_000.0),
            rounds(8, "QUIC", many, 20_000.0),
            rounds(9, "QUIC", shared, 100_000.0),
        ];
        let pairs = [[0, 1], [0, 2], [0, 3], [4, 5], [4, 6], [4, 7], [8, 9]];
        let mut run = Run {
            kind: Kind::Ladder,
            pairings: pairs.map(|[base, new]| Pairing::new(base, new)).to_vec(),
            ..fixtures::run(Vec::new())
        };
        run.steps = steps.concat();
        let words = in_words(&run.compared());
        assert!(
            words[0].starts_with("TLS over TCP adds 3.0")
                && words[0].contains(") to a round trip and has 0.86 ("),
            "{words:?}"
        );
        assert_eq!(words[1], "PSK over TCP shows no difference.");
        assert!(
            words[2]
                .starts_with("gRPC over TCP shows no difference in a round trip and has 0.50 ("),
            "{words:?}"
        );
        assert!(
            words[3].starts_with("QUIC on 4 connections instead of 64 has 5.00 (")
                && words[3].ends_with(") times the rate."),
            "{words:?}"
        );
        run.pairings[0].is_control = true;
        assert_eq!(in_words(&run.compared()).len(), 3);
        run.pairings[0].is_control = false;
        let spoil = |run: &mut Run, measurement: usize, windows: usize| {
            let steps = run.steps.iter_mut();
            let own = steps.filter(|step| step.measurement == measurement);
            for step in own.take(windows) {
                step.warnings = vec![
                    Errors {
                        share: 0.1,
                        time_share: 0.0,
                    }
                    .into(),
                ];
            }
        };
        // A fifth of the windows is not more than it.
        spoil(&mut run, 6, 1);
        assert_eq!(in_words(&run.compared()), words);
        spoil(&mut run, 6, 2);
        let doubted = in_words(&run.compared());
        assert_eq!(doubted[0], format!("Not to be relied on: {}", words[0]));
        assert_eq!(
            doubted[1],
            "PSK over TCP: no claim, since windows were not valid (ERRORS)."
        );
        assert_eq!(doubted[3], format!("Not to be relied on: {}", words[3]));
        let text = tables(&run);
        assert!(text.starts_with("NOT VALID: ERRORS; "), "{text}");
        let rungs: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("PSK "))
            .collect();
        assert!(
            rungs[0].contains(" ~ ") && rungs[1].contains(" - "),
            "{text}"
        );
        assert!(!rungs[1].contains(".."), "{text}");
        assert!(
            text.replace('\n', " ").contains(" -: no claim, as "),
            "{text}"
        );
        run.steps.retain(|step| step.trial < 5);
        assert!(in_words(&run.compared()).is_empty());
    }
}
