//! Every trial of each target under one load.

use netping_results::{
    metric::{self, Metric},
    run::{Measurement, Run},
};

use super::{strip, strips, sweep::is_sweep};
use crate::page::{
    chart::{Chart, Panel, Series},
    series::{Group, groups},
};

const NOTE: &str = "A dot for each trial, the first at the top of its strip and the last at the bottom. The line is their mean, \
                    and the shaded part its 95 % interval.";

/// Returns the chart of all trials; of sweeps, none.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    let is_alone = groups.len() < 2
        && groups
            .iter()
            .all(|group| group.measurements.iter().all(|own| own.trials.len() < 2));
    let are_sweeps = groups.iter().any(is_sweep);
    let shown = metric::PAGE_TRIALS
        .iter()
        .filter(|_| !is_alone && !are_sweeps);
    let panels = shown.map(|metric| panel(metric, &groups));
    vec![Chart::new(["trials", "Trials", NOTE], "trials", panels)]
}

fn panel(metric: &Metric, groups: &[Group<'_>]) -> Panel {
    let row = |group: &Group<'_>| {
        let points = group
            .measurements
            .iter()
            .filter(|own| is_shown(metric, own));
        let points = points.flat_map(|own| strip(metric, own, "all")).collect();
        Series::new(group.name.clone(), group.colour, points)
    };
    let title = match metric.unit {
        metric::Unit::CpuMicros => format!("{} per request", metric.label),
        _ => metric.label.to_owned(),
    };
    strips(&title, metric, groups.iter().map(row).collect())
}

/// Returns true for what these windows were made to tell: those in which servers were called by turns tell no rate,
/// and those of the highest rate no times.
fn is_shown(metric: &Metric, own: &Measurement<'_>) -> bool {
    let compared = own.run.compared_by(own.settings());
    compared.contains(&metric)
        || (*metric == metric::CLIENT_CPU && compared.contains(&&metric::SERVER_CPU))
}
