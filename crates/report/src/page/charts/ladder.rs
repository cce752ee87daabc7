//! The ladder: what each rung costs.

use netping_results::run::{Run, Step};

use crate::page::{
    chart::{Chart, Form, Mark, Panel, Point, Series},
    headline,
    series::{StepSeries, step_series},
    unit::Unit,
};

const NOTE: &str = "From the plainest server up. The upper bars are the median of the rounds with one caller, with a dot for \
                    each round; the lower ones the best step of the sweep, with a dot for each step. Client and servers share \
                    a machine: compare rungs, not machines.";

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut groups = step_series(runs);
    groups.retain(|group| headline::command(&runs[group.run]) == "ladder");
    let panel = |title: &str, unit, of: fn(&StepSeries<'_>) -> Vec<Point>| {
        let series =
            |group: &StepSeries<'_>| Series::new(group.name.clone(), group.colour, of(group));
        Panel::new(title, unit, Form::Rows, groups.iter().map(series).collect())
    };
    let panels = [
        panel("p50 with one caller", Unit::NANOS, alone),
        panel("highest rate", Unit::RATE, peak),
    ];
    let chart = Chart::new(["ladder", "Ladder", NOTE], "callers", panels);
    chart.into_iter().collect()
}

/// The median service times with one caller, and the median of these.
fn alone(group: &StepSeries<'_>) -> Vec<Point> {
    let rounds = group.steps.iter().filter(|step| step.settings.callers == 1);
    let mut medians: Vec<u64> = rounds
        .filter_map(|step| step.summary.service_time.quantile(50.0))
        .collect();
    let dots = medians.iter().map(|&median| Point::new(1_u64, median));
    let dots: Vec<Point> = dots.collect();
    medians.sort_unstable();
    let bar = medians
        .get(medians.len() / 2)
        .map(|&median| Point::new("median", median).marked(Mark::BAR));
    bar.into_iter().chain(dots).collect()
}

/// The highest rate of the sweep, and all of its rates.
fn peak(group: &StepSeries<'_>) -> Vec<Point> {
    let sweep = || group.steps.iter().filter(|step| step.settings.callers > 1);
    let rate = |step: &&Step| Point::new(step.settings.callers, step.summary.rate);
    let highest = sweep().max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate));
    let bar = highest.map(|step| Point::new("highest", step.summary.rate).marked(Mark::BAR));
    bar.into_iter().chain(sweep().map(rate)).collect()
}
