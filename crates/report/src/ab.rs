//! The verdict of `netping ab`, and what it rests on.

use netping_results::{
    ab::{Decided, Decision, Gated},
    format::{on_one_line, plural, thousands},
    run::{Run, Step},
};

use crate::{
    finding::{change, change_interval, value},
    table::{Column, Table},
};

const COLUMNS: [Column; 8] = [
    Column::text(""),
    Column::number("base"),
    Column::number("new"),
    Column::number("change"),
    Column::number("95% interval"),
    Column::text("worse by the margin"),
    Column::number("base again").spare(1),
    Column::number("new again").spare(1),
];

/// Returns the verdict, the metrics that it rests on, and how to read them.
pub fn text(run: &Run, margin: f64) -> String {
    let decided = run.decided(margin);
    let rows: Vec<_> = decided.gated.iter().map(row).collect();
    let rounds = run.steps.iter().map(|step| step.trial).max().unwrap_or(0);
    format!(
        "{}\n{}\n{}: {}. A value is the mean of the rounds on a logarithmic scale, with both of the two measurements \
         of base and new; a change is that from base to new. With a probability of 95 %, all of these intervals held \
         after every round. 'base again' and 'new again' are the changes from a server to itself.",
        sentence(&decided, margin),
        Table::whole(&COLUMNS, &rows),
        plural(rounds.into(), "round"),
        how(run).join("; "),
    )
}

/// Says how the servers were called, and what that cannot show.
fn how(run: &Run) -> Vec<String> {
    let mut parts = Vec::new();
    let mut together = run
        .steps
        .iter()
        .filter(|step| step.settings.together.is_some());
    let targets = together
        .clone()
        .filter_map(|step| step.settings.together)
        .max();
    if let Some(rate) = together.clone().find_map(|step| step.settings.planned_rate) {
        let all = rate * targets.unwrap_or(1) as f64;
        parts.push(format!(
            "each server had {} requests per second, and all had {} at the same time",
            thousands(rate),
            thousands(all)
        ));
    } else {
        parts.push(
            "every caller called the servers by turns, one request at a time, in random order, so that each server had \
             a part of the load"
                .to_owned(),
        );
    }
    let is_alone = |step: &Step| step.settings.together.is_none();
    if run.steps.iter().any(is_alone) {
        parts.push("the highest rate is that of windows of each server alone".to_owned());
    }
    if together.any(|step| step.cost.server.is_none()) {
        parts.push(
            "the servers' CPU time is not known, so work that a server does after its reply is not seen here"
                .to_owned(),
        );
    }
    parts
}

fn row(gated: &Gated) -> Vec<String> {
    let own = &gated.comparison;
    let is_worse = match gated.decision {
        Decision::NotWorse => "no",
        Decision::Worse => "yes",
        Decision::Undecided => "unknown",
    };
    let mut row = vec![
        own.metric.title.to_owned(),
        value(own.metric, own.base),
        value(own.metric, own.new),
        change(own),
        change_interval(own),
        is_worse.to_owned(),
    ];
    row.extend(gated.controls.iter().map(change));
    row.resize(COLUMNS.len(), String::new());
    row
}

/// Returns the verdict: one sentence, and what it rests on. `margin`: a new server that is worse by less is as
/// good as its base.
pub fn verdict(run: &Run, margin: f64) -> String {
    sentence(&run.decided(margin), margin)
}

fn sentence(decided: &Decided, margin: f64) -> String {
    let of = |decision: Decision| -> Vec<&Gated> {
        let all = decided.gated.iter();
        all.filter(|own| own.decision == decision).collect()
    };
    // Without the digits that a product of shares brings.
    let percent = format!("{} %", (margin * 1e6).round() / 1e4);
    match decided.decision {
        Decision::NotWorse => {
            let all = in_words(&of(Decision::NotWorse));
            format!("NOT WORSE: new is worse than base by no more than {percent}: {all}")
        }
        Decision::Worse => {
            let worse = in_words(&of(Decision::Worse));
            format!("WORSE: new is worse than base by more than {percent}: {worse}")
        }
        Decision::Undecided => format!(
            "UNDECIDED: this machine cannot tell whether new is worse than base by more than {percent}: {}",
            why(decided, margin, &of(Decision::Undecided)).join(", ")
        ),
    }
}

/// Returns the changes of these metrics with their intervals.
fn in_words(gated: &[&Gated]) -> String {
    let of = |own: &&Gated| {
        let own = &own.comparison;
        format!(
            "{} {} ({})",
            own.metric.name,
            change(own),
            change_interval(own)
        )
    };
    gated.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Says why there is no answer.
fn why(decided: &Decided, margin: f64, unknown: &[&Gated]) -> Vec<String> {
    let invalid = &decided.objections;
    if !invalid.is_empty() {
        return vec![format!("the run is NOT VALID ({})", invalid.join(", "))];
    }
    if let Some((name, own)) = &decided.doubt {
        let (name, metric) = (on_one_line(name), own.metric.name);
        return vec![format!(
            "{name} differs from itself in {metric} ({})",
            change_interval(own)
        )];
    }
    if unknown.is_empty() {
        let text = "p50 or p99 has no value: too few requests in a round; give a longer --budget";
        return vec![text.to_owned()];
    }
    let least = |own: &&Gated| {
        let own = &own.comparison;
        let Some(least) = own.detectable else {
            return format!("{} has no interval", own.metric.name);
        };
        format!(
            "{} {} ({}), where {:.1} % worse would have been called worse",
            own.metric.name,
            change(own),
            change_interval(own),
            least_worse(margin, least) * 100.0
        )
    };
    unknown.iter().map(least).collect()
}

/// Returns the share by which a new server must be worse to be shown to be worse by more than the margin, where
/// `detectable` is the least change that is shown to be one.
fn least_worse(margin: f64, detectable: f64) -> f64 {
    (1.0 + margin) * (1.0 + detectable) - 1.0
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures::{run, step},
        run::{Kind, Pairing},
    };

    use super::*;

    /// Returns twenty rounds of the four servers, of which the new ones take so much longer, and a run of them.
    fn rounds(new: f64) -> Run {
        let step = |at: usize| {
            let (measurement, trial) = (at % 4, at as u32 / 4 + 1);
            let factor = if measurement < 2 { 1.0 } else { new };
            let noise = 1.0 + 0.001 * (at * 7 % 5) as f64;
            let mut step = Step {
                measurement,
                trial,
                label: Some(["base", "base again", "new", "new again"][measurement].to_owned()),
                ..step(1, |_| vec![(1e6 * factor * noise) as u64; 1000])
            };
            step.settings.together = Some(4);
            step
        };
        let control = |base: usize| Pairing {
            is_control: true,
            ..Pairing::new(base, base + 1)
        };
        Run {
            kind: Kind::Ab,
            looks: 1000,
            pairings: vec![control(0), control(2), Pairing::new(0, 2)],
            ..run((0..80).map(step).collect())
        }
    }

    #[test]
    fn the_verdict_comes_first_and_names_what_decided() {
        let said = |new: f64, margin: f64| text(&rounds(new), margin);
        let worse = said(1.2, 0.05);
        assert!(
            worse.starts_with("WORSE: new is worse than base by more than 5 %: p50 +20."),
            "{worse}"
        );
        let same = said(1.0, 0.05);
        assert!(
            same.starts_with("NOT WORSE: new is worse than base by no more than 5 %: p50 "),
            "{same}"
        );
        assert!(
            same.contains("CPU time is not known") && !same.contains("highest rate"),
            "{same}"
        );
        assert!(said(1.0, 0.07).contains(" 7 %: "), "{same}");
        assert!((least_worse(0.05, 0.02) - 0.071).abs() < 1e-9);
        // The margin lies within the interval.
        let unknown = said(1.0, 0.000_001);
        assert!(unknown.starts_with("UNDECIDED: "), "{unknown}");
        assert!(
            unknown.contains("would have been called worse") && unknown.contains("20 rounds: "),
            "{unknown}"
        );
        let row = worse
            .lines()
            .find(|line| line.starts_with("p50 us"))
            .unwrap();
        assert!(
            row.contains("yes") && row.matches('%').count() >= 4,
            "{row}"
        );
    }
}
