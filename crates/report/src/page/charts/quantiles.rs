//! The whole distribution of the times.

use netping_results::{
    estimate::estimate,
    metric::{CURVE, List, Metric, SERVICE_CURVE},
    run::Run,
};

use crate::page::{
    chart::{Axis, Chart, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::{Fullest, fullest},
    unit::PageUnit,
};

const NOTE: &str = "The time within which a share of the replies came, at the load with the highest rate: p99 is that of 99 % of \
                    them. With several trials, the curve is their mean and the band its 95 % interval; of one, p50 and p99 have \
                    intervals if it was long enough. A quantile with fewer than ten replies beyond it is left out.";

const OPEN: &str = " In an open loop, response time is counted from when a request was due, and service time from when it was sent: \
                    between the two, it waited.";

const RESPONSE: &str = "response time";

/// The axis of quantiles.
pub(super) const QUANTILE: Axis = Axis {
    title: "quantile",
    unit: PageUnit::Quantile,
    scale: AxisScale::Odds,
};

/// Returns the chart of the quantiles of each target, in nanoseconds.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let all = fullest(runs);
    let is_open = |own: &Fullest<'_>| own.measurement.settings().planned_rate.is_some();
    let note = NOTE.to_owned() + if all.iter().any(is_open) { OPEN } else { "" };
    let (title, names) = match &all[..] {
        [only] => (only.name.as_str(), vec![RESPONSE.to_owned()]),
        _ => (RESPONSE, all.iter().map(|own| own.name.clone()).collect()),
    };
    let targets = all.iter().zip(&names);
    let series = targets.flat_map(|(own, name)| curves(own, name, is_open(own)));
    let plane = Plane::new(QUANTILE, AxisScale::Log);
    let panel = Panel::rows(title, PageUnit::NANOS, series.collect()).on(plane);
    let text = ["quantiles", "Quantiles", ""];
    vec![Chart {
        note,
        ..Chart::new(text, "quantile", [panel])
    }]
}

/// The curves of a group: one, or, in an open loop, response and service time.
fn curves(own: &Fullest<'_>, name: &str, is_open: bool) -> Vec<Series> {
    let curve = |name: String, dashed: bool, quantiles: List| {
        let point = |metric: &&'static Metric| {
            let estimate = estimate(metric, &own.measurement)?;
            Some(Point::estimated(metric.quantile()?, estimate))
        };
        Series {
            dashed,
            banded: own.measurement.trials.len() > 1,
            ..Series::new(
                name,
                own.colour,
                quantiles.iter().filter_map(point).collect(),
            )
        }
    };
    let mut all = vec![curve(name.to_owned(), false, CURVE)];
    if is_open {
        let name = if name == RESPONSE {
            "service time".to_owned()
        } else {
            format!("{name}, service time")
        };
        all.push(curve(name, true, SERVICE_CURVE));
    }
    all
}
