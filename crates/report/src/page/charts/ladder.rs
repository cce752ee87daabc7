//! The ladder: the value of each rung under each load, what it adds, and the CPU time of both sides.

use netping_results::{
    comparison::Compared,
    estimate::estimate,
    metric::{CLIENT_CPU, Metric, SERVER_CPU},
    run::{Kind, Measurement, Run, StepSettings},
};

use super::{
    forest::{difference, notes, title_of},
    strip, strips,
};
use crate::{
    grouped,
    ladder::metric_of,
    page::{
        chart::{Chart, Mark, Panel, Point, Series},
        series::{apart, of_run},
        unit::PageUnit,
    },
};

const NOTE: &str = "From the plainest server up. Left: each round is a dot, the line is the mean of the rounds, and the shaded part its \
                    95 % interval. Middle: what a rung adds to the rung that it builds on, within rounds. Right: the CPU time of client \
                    and server for each request. Client and servers share this machine: compare the rungs with each other, not \
                    with other machines.";

/// The sides whose CPU time is drawn.
const SIDES: [(&str, &Metric); 2] = [("client", &CLIENT_CPU), ("server", &SERVER_CPU)];

/// Returns the chart of the rungs.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut bands = Vec::new();
    let compared: Vec<Vec<Compared<'_>>> = runs.iter().map(Run::compared).collect();
    let mut note = NOTE.to_owned();
    for (at, (run, pairs)) in runs.iter().zip(&compared).enumerate() {
        let all = run.measurements();
        let loads = all.iter().filter(|_| run.kind == Kind::Ladder);
        for (load, rungs) in
            grouped(loads.map(|own| (of_run(runs, at, &load(own.settings())), own)))
        {
            bands.extend(band(&load, &rungs, pairs));
        }
        if run.kind == Kind::Ladder {
            note += &notes(&pairs.iter().collect::<Vec<_>>());
        }
    }
    let key = |(place, (side, _)): (usize, &(&str, &Metric))| {
        Series::new((*side).to_owned(), place, Vec::new())
    };
    vec![Chart {
        note,
        keys: SIDES.iter().enumerate().map(key).collect(),
        ..Chart::new(["ladder", "Ladder", ""], "callers", bands)
    }]
}

/// Returns the panels of all rungs under one load.
fn band(load: &str, rungs: &[&Measurement<'_>], pairs: &[Compared<'_>]) -> [Panel; 3] {
    let metric = metric_of(rungs[0].settings());
    let names = apart(rungs);
    let name = |own: &Measurement<'_>| names[&own.number].join(", ");
    let value = |own: &&Measurement<'_>| {
        let callers = own.settings().callers as f64;
        Series::new(name(own), 0, strip(metric, own, callers))
    };
    let values = strips(metric.label, metric, rungs.iter().map(value).collect());
    let added = |pair: &&Compared<'_>| {
        let own = pair.by(metric)?;
        let own_words = &names[&pair.new.number];
        let mut base = names.get(&pair.base.number)?.clone();
        base.retain(|word| !own_words.contains(word));
        let over = if pair.is_control { "against " } else { "over " };
        let point = Point {
            name: Some(over.to_owned() + &base.join(", ")),
            ..difference(own, pair.base.name(), true)?
        };
        Some(Series::new(name(&pair.new), 0, vec![point]))
    };
    let here = pairs
        .iter()
        .filter(|pair| names.contains_key(&pair.new.number));
    let (title, unit) = title_of(metric, true);
    let added = Panel::rows(
        &title,
        unit,
        here.collect::<Vec<_>>().iter().filter_map(added).collect(),
    );
    let cost = |own: &&Measurement<'_>| Series::new(name(own), 0, cost(own));
    let unit = PageUnit::Of(CLIENT_CPU.unit);
    let costs = Panel::rows(
        "CPU time per request",
        unit,
        rungs.iter().map(cost).collect(),
    );
    [values, added, costs].map(|panel| Panel {
        band: load.to_owned(),
        ..panel
    })
}

/// Returns the CPU time of both sides, one bar after the other.
fn cost(own: &Measurement<'_>) -> Vec<Point> {
    let mut end = 0.0;
    let bar = |(place, (side, metric)): (usize, &(&str, &'static Metric))| {
        let own = estimate(metric, own)?;
        let from = end;
        end += own.value;
        let colour = Some(place);
        Some(Point::new(*side, own.value).marked(Mark::Bar { from, colour }))
    };
    SIDES.iter().enumerate().filter_map(bar).collect()
}

/// Returns a load in words, with its message.
fn load(settings: &StepSettings) -> String {
    let message = settings.message.as_ref();
    let message = message.map(|name| format!(", {name} message"));
    settings.load_in_words() + &message.unwrap_or_default()
}
