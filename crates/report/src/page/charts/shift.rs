//! The difference of two targets at every quantile.

use netping_results::{
    comparison::{Compared, Comparison},
    estimate::Estimate,
    metric,
    run::{Kind, Run},
};

use super::quantiles::QUANTILE;
use crate::page::{
    chart::{Chart, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::of_run,
    unit::PageUnit,
};

/// Most pairs that are drawn.
const MOST: usize = 6;

const NOTE: &str = "The difference at every quantile, so that one in the tail is seen beside one of the median, and its 95 % \
                    interval, which at each quantile is as wide as a claim's. Grey: differences that such measurements show in \
                    fewer than 80 % of cases. A quantile that a round has too few requests for is left out.";

/// Returns the chart of the pairs that runs compare themselves.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut panels = Vec::new();
    let of_quantiles = |run: &&Run| !matches!(run.kind, Kind::Ladder | Kind::Proxy | Kind::Bulk);
    for (at, run) in runs.iter().enumerate().filter(|(_, run)| of_quantiles(run)) {
        for pair in &run.compared_and(metric::CURVE) {
            let tells_times = run
                .compared_by(pair.base.settings())
                .contains(&&metric::P50);
            if tells_times && !pair.is_control {
                let names = format!("{} against {}", pair.new.name(), pair.base.name());
                panels.extend(panels_of(
                    &of_run(runs, at, &names),
                    pair,
                    [pair.base.name(), pair.new.name()],
                ));
            }
        }
    }
    vec![chart(panels)]
}

/// Returns the chart of pairs from a base and a new run, which are compared by all quantiles.
pub(in crate::page) fn compared(pairs: &[(String, &Compared<'_>)]) -> Chart {
    let panels = pairs
        .iter()
        .flat_map(|(name, pair)| panels_of(name, pair, ["base", "new"]));
    Chart {
        variant: Some("compared"),
        ..chart(panels.collect())
    }
}

fn chart(panels: Vec<Panel>) -> Chart {
    let panels = panels.into_iter().take(2 * MOST);
    Chart::new(
        ["shift", "Differences at every quantile", NOTE],
        "quantile",
        panels,
    )
}

/// Returns the curves of both sides of a pair, and their difference below.
fn panels_of(name: &str, pair: &Compared<'_>, sides: [&str; 2]) -> [Panel; 2] {
    let shift = pair.shift();
    let curve = |colour: usize, side: fn(&Comparison) -> Option<Estimate>| {
        let points = shift
            .iter()
            .filter_map(|(percent, own)| Some(Point::new(*percent, side(own)?.value)));
        Series::new(sides[colour].to_owned(), colour, points.collect())
    };
    let curves = vec![curve(0, |own| own.base), curve(1, |own| own.new)];
    let difference = |(percent, own): &(f64, &Comparison)| {
        Some(Point::new(*percent, own.change?).with_range(own.interval))
    };
    let differences = Series {
        banded: true,
        ..Series::new(
            "difference".to_owned(),
            2,
            shift.iter().filter_map(difference).collect(),
        )
    };
    let mut plane = Plane::new(QUANTILE, AxisScale::Linear);
    let hidden = |(percent, own): &(f64, &Comparison)| {
        let least = own.detectable?;
        Some((*percent, [1.0 / (1.0 + least) - 1.0, least]))
    };
    plane.grey = shift.iter().filter_map(hidden).collect();
    [
        Panel::rows(name, PageUnit::NANOS, curves).on(Plane::new(QUANTILE, AxisScale::Log)),
        Panel::rows(
            "difference",
            PageUnit::Change(&metric::P50),
            vec![differences],
        )
        .on(plane),
    ]
}
