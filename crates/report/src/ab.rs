//! The verdict of `netping ab`, and what it rests on.

use netping_measure::status::Status;
use netping_results::{
    ab::{Decided, Decision, Gated},
    comparison::Comparison,
    format::{self, on_one_line, plural, thousands},
    metric::{Better, SERVER_CPU},
    run::{Kind, Run, Step},
};

use crate::{
    finding::{change, change_interval, reading_of, value},
    grouped,
    table::{Column, Layout, Table},
};

/// The columns of [`rows`] with controls, which have the last two.
static COLUMNS: [Column; 8] = [
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
pub fn text(run: &Run) -> String {
    let decided = run.decided();
    let mut lines = vec![sentence(run, &decided)];
    let is_compared = !decided.gated.is_empty();
    lines.extend(is_compared.then(|| table(&decided, Table::whole)));
    lines.extend(failures(run));
    lines.extend(is_compared.then(|| legend(run, &decided)));
    lines.join("\n")
}

/// Lays out the metrics that the verdict rests on.
pub fn table(decided: &Decided, layout: Layout) -> String {
    layout(columns(decided), &rows(decided))
}

/// Returns the columns of [`rows`].
pub(crate) fn columns(decided: &Decided) -> &'static [Column] {
    let controls = if has_controls(decided) { 2 } else { 0 };
    &COLUMNS[..COLUMNS.len() - 2 + controls]
}

/// Returns true if each server was also compared with itself.
fn has_controls(decided: &Decided) -> bool {
    decided.gated.iter().any(|own| !own.controls.is_empty())
}

/// Returns a row for each metric that the verdict rests on.
pub(crate) fn rows(decided: &Decided) -> Vec<Vec<String>> {
    let columns = columns(decided).len();
    decided.gated.iter().map(|own| row(own, columns)).collect()
}

/// Returns the number of whole rounds, as text.
fn rounds(run: &Run) -> String {
    let whole = run.whole_rounds().map_or(0, |rounds| rounds.whole);
    plural(whole as u64, "round")
}

/// Says how to read the table.
pub fn legend(run: &Run, decided: &Decided) -> String {
    let [both, controls] = if has_controls(decided) {
        [
            ", with both of the two measurements of base and new",
            " 'base again' and 'new again' are the changes from a server to itself.",
        ]
    } else {
        [""; 2]
    };
    let looks = if run.is_sequential() {
        ", and held after every round"
    } else {
        ""
    };
    format!(
        "{}: {}. A value is the mean of the rounds on a logarithmic scale{both}; a change is that from base to new. With \
         a probability of 95 %, all of these intervals hold together{looks}; that takes rounds that are \
         independent.{controls}",
        rounds(run),
        how(run, decided).join("; "),
    )
}

/// Says how many requests to which server had no verified reply, if any.
pub fn failures(run: &Run) -> Option<String> {
    let all = run.measurements();
    let servers = grouped(all.iter().map(|own| (own.name(), own.unserved())));
    let of = |(name, counts): &(&str, Vec<u64>)| {
        let failed: u64 = counts.iter().sum();
        (failed > 0).then(|| format!("{} to {}", thousands(failed as f64), on_one_line(name)))
    };
    let failed: Vec<String> = servers.iter().filter_map(of).collect();
    (!failed.is_empty())
        .then(|| format!("requests without a verified reply: {}", failed.join(", ")))
}

/// Says how the servers were called, and what that cannot show.
fn how(run: &Run, decided: &Decided) -> Vec<String> {
    let mut parts = Vec::new();
    let together = run
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
            format::rate(rate),
            thousands(all)
        ));
    } else if targets.is_none() {
        let load = run.steps.first().map(|step| step.settings.load_in_words());
        parts.push(format!(
            "each server had windows of its own, with {}",
            load.unwrap_or_default()
        ));
    } else {
        parts.push(
            "every caller called the servers by turns, one request at a time, in random order, so that each server had \
             a part of the load"
                .to_owned(),
        );
    }
    let is_alone = |step: &Step| step.settings.together.is_none();
    if targets.is_some() && run.steps.iter().any(is_alone) {
        parts.push("the highest rate is that of windows of each server alone".to_owned());
    }
    if !decided
        .gated
        .iter()
        .any(|own| *own.comparison.metric == SERVER_CPU)
    {
        parts.push(
            "the servers' CPU time is not known, so work that a server does after its reply is not seen here"
                .to_owned(),
        );
    }
    parts
}

fn row(gated: &Gated, columns: usize) -> Vec<String> {
    let own = &gated.comparison;
    let is_worse = match gated.decision {
        Decision::NotWorse => "no",
        Decision::Worse => "yes",
        Decision::Undecided => "unknown",
    };
    let reading = reading_of(own.metric, [own.base, own.new]);
    let mut row = vec![
        own.metric.title_in(reading),
        value(reading, own.base),
        value(reading, own.new),
        change(own),
        change_interval(own),
        is_worse.to_owned(),
    ];
    let control = |own: &Option<Comparison>| own.as_ref().map(change).unwrap_or_default();
    row.extend(gated.controls.iter().map(control));
    row.resize(columns, String::new());
    row
}

/// Returns the verdict: one sentence, and what it rests on.
pub fn sentence(run: &Run, decided: &Decided) -> String {
    let margin = run.margin.unwrap_or(0.0);
    let of = |decision: Decision| -> Vec<&Gated> {
        let all = decided.gated.iter();
        all.filter(|own| own.decision == decision).collect()
    };
    let [base, new] = sides(run);
    // Without the digits that a product of shares brings.
    let percent = format!("{} %", (margin * 1e6).round() / 1e4);
    match decided.decision {
        Decision::NotWorse => {
            let all = in_words(&of(Decision::NotWorse));
            format!("NOT WORSE: {new} is not worse than {base} by more than {percent}: {all}")
        }
        Decision::Worse => {
            let worse = in_words(&of(Decision::Worse));
            format!("WORSE: {new} is worse than {base} by more than {percent}: {worse}")
        }
        Decision::Undecided if !decided.objections.is_empty() => format!(
            "UNDECIDED: the run is NOT VALID ({}), so nobody knows whether {new} is worse than {base} by more than {percent}",
            decided.objections.join(", ")
        ),
        Decision::Undecided if run.status == Status::Partial => format!(
            "UNDECIDED: the run ended after {}, before it was known whether new is worse than base by more than {percent}",
            rounds(run)
        ),
        Decision::Undecided => format!(
            "UNDECIDED: {} cannot tell whether {new} is worse than {base} by more than {percent}: {}",
            if run.kind == Kind::Ab {
                "this machine"
            } else {
                "these trials"
            },
            why(run, decided, &of(Decision::Undecided)).join(", ")
        ),
    }
}

/// Returns the names of the base and of the new server.
fn sides(run: &Run) -> [String; 2] {
    let pairing = run.pairings.iter().find(|own| !own.is_control);
    let name = |number: usize, other: &str| {
        let step = run.steps.iter().find(|step| step.measurement == number);
        step.map_or_else(|| other.to_owned(), |step| on_one_line(step.name()))
    };
    pairing.map_or_else(
        || ["base", "new"].map(str::to_owned),
        |own| [name(own.base, "base"), name(own.new, "new")],
    )
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
fn why(run: &Run, decided: &Decided, unknown: &[&Gated]) -> Vec<String> {
    let margin = run.margin.unwrap_or(0.0);
    let longer = if run.kind == Kind::Ab {
        "--budget"
    } else {
        "-d"
    };
    if let Some((name, own)) = &decided.doubt {
        let (name, metric) = (on_one_line(name), own.metric.name);
        return vec![format!(
            "{name} differs from itself in {metric} ({})",
            change_interval(own)
        )];
    }
    if unknown.is_empty() {
        let text = "p50 or p99 has no value: too few requests in every round; give a longer";
        return vec![format!("{text} {longer}")];
    }
    let least = |gated: &&Gated| {
        let own = &gated.comparison;
        let name = own.metric.name;
        if !own.is_alike {
            return format!(
                "{name} of different numbers of connections, which may be all the difference; give both the same --connections"
            );
        }
        if gated.is_missing() {
            let missing = plural(gated.missing() as u64, "round");
            if gated.is_of_rate() {
                return format!("the rate is 0 in {missing}: nothing was answered then");
            }
            return format!(
                "{name} has no value in {missing}: too few requests; give a longer {longer}"
            );
        }
        let Some(least) = own.detectable else {
            return format!("{name} has no interval");
        };
        format!(
            "{name} {} ({}), where {:.1} % worse would have been called worse in 80 % of such runs",
            change(own),
            change_interval(own),
            least_worse(own.metric.better, margin, least) * 100.0
        )
    };
    unknown.iter().map(least).collect()
}

/// Returns the share by which a new server must be worse to be shown to be worse by more than the margin, where
/// `detectable` is the least change that is shown to be one.
fn least_worse(better: Better, margin: f64, detectable: f64) -> f64 {
    match better {
        Better::Lower => (1.0 + margin) * (1.0 + detectable) - 1.0,
        Better::Higher => 1.0 - (1.0 - margin) / (1.0 + detectable),
    }
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
            order_seed: Some(1),
            looks: 1000,
            pairings: vec![control(0), control(2), Pairing::new(0, 2)],
            ..run((0..80).map(step).collect())
        }
    }

    #[test]
    fn a_page_has_what_the_verdict_rests_on() {
        let run = rounds(1.2);
        let page = crate::page::html(std::slice::from_ref(&run));
        let cells = rows(&run.decided()).concat();
        assert!(!cells.is_empty());
        for cell in cells {
            let cell = cell.replace('<', "&lt;").replace('>', "&gt;");
            assert!(page.contains(&format!(">{cell}</t")), "{cell}");
        }
    }

    #[test]
    fn the_verdict_comes_first_and_names_what_decided() {
        let said = |new: f64, margin: f64| {
            text(&Run {
                margin: Some(margin),
                ..rounds(new)
            })
        };
        let worse = said(1.2, 0.05);
        assert!(
            worse.starts_with("WORSE: new is worse than base by more than 5 %: p50 +20."),
            "{worse}"
        );
        let same = said(1.0, 0.05);
        assert!(
            same.starts_with("NOT WORSE: new is not worse than base by more than 5 %: p50 "),
            "{same}"
        );
        assert!(
            same.contains("CPU time is not known") && !same.contains("highest rate"),
            "{same}"
        );
        assert!(said(1.0, 0.07).contains(" 7 %: "), "{same}");
        assert!((least_worse(Better::Lower, 0.05, 0.02) - 0.071).abs() < 1e-9);
        // A rate of 0.95 times the base's that is 2 % lower still.
        assert!((least_worse(Better::Higher, 0.05, 0.02) - 0.068_627).abs() < 1e-6);
        assert!(!same.contains("without a verified reply"), "{same}");
        let mut cut = rounds(1.2);
        cut.steps.truncate(2);
        cut.status = Status::Partial;
        assert_eq!(
            text(&cut),
            "UNDECIDED: the run ended after 0 rounds, before it was known whether new is worse than base by more than 0 %"
        );
        // The margin lies within the interval.
        let unknown = said(1.0, 0.000_001);
        assert!(unknown.starts_with("UNDECIDED: "), "{unknown}");
        assert!(
            unknown.contains("called worse in 80 % of such runs")
                && unknown.contains("20 rounds: "),
            "{unknown}"
        );
        let row = worse
            .lines()
            .find(|line| line.starts_with("p50 ms"))
            .unwrap();
        assert!(
            row.contains("yes") && row.matches('%').count() >= 4,
            "{row}"
        );
    }
}
