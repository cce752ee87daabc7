//! A sweep: the rate that each load reached, and the time that it took.

use netping_measure::cost::{Balance, SideUse};
use netping_results::{
    balance::sums,
    estimate::estimate,
    format::thousands,
    metric::{self, Metric},
    run::{Measurement, Run, StepSettings},
};

use crate::{
    distinct,
    loads::knee_of,
    page::{
        chart::{Axis, Chart, Panel, Plane, Point, Series},
        scale::AxisScale,
        series::{Group, groups},
        unit::PageUnit,
    },
};

/// A kind of load.
struct Load {
    variant: Option<&'static str>,
    title: &'static str,
    note: &'static str,
    of: fn(&StepSettings) -> Option<usize>,
}

static LOADS: [Load; 2] = [
    Load {
        variant: None,
        title: "Rate and latency by number of callers",
        note: "Each point is a number of callers: the rate that they reached, and the time within which SHARE of the replies \
               came, with its 95 % interval. Up to the knee, more callers bring more replies; beyond it, they mostly wait \
               longer.",
        of: |own| own.planned_rate.is_none().then_some(own.callers),
    },
    Load {
        variant: Some("open"),
        title: "Rate and latency by planned rate",
        note: "Each point is a planned rate: the rate that was reached, and the time within which SHARE of the replies came, \
               counted from when each request was due, with its 95 % interval.",
        of: |own| own.planned_rate.map(|rate| rate.round() as usize),
    },
];

const WAIT: &str = " Below: the time for which threads of client and server were ready to run but waited for a CPU, summed over \
                    threads, as a share of the window.";

const RATE: Axis = Axis {
    title: "rate, req/s",
    unit: PageUnit::RATE,
    scale: AxisScale::Linear,
};

/// Returns the charts of sweeps: one of closed loops, and one of open ones.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    LOADS.iter().map(|load| chart(&groups, load)).collect()
}

/// Returns true if the measurements of a group have several loads. Windows in which targets are called by turns are no
/// part of a sweep: they tell no rate.
pub(super) fn is_sweep(group: &Group<'_>) -> bool {
    let settings = group.measurements.iter().map(Measurement::settings);
    let alone = settings.filter(|own| own.together.is_none());
    distinct(alone.map(StepSettings::load_in_words)).len() > 1
}

fn chart(groups: &[Group<'_>], load: &Load) -> Chart {
    let sweeps: Vec<&Group<'_>> = groups.iter().filter(|group| is_sweep(group)).collect();
    let has = |metric: &Metric, own: &Measurement<'_>| estimate(metric, own).is_some();
    let has_p99 = |own: &Measurement<'_>| has(&metric::P99, own) || !has(&metric::P50, own);
    let mut measurements = sweeps.iter().flat_map(|group| &group.measurements);
    // Windows that are too short for p99 have a median.
    let (metric, share) = if measurements.all(has_p99) {
        (&metric::P99, "99 %")
    } else {
        (&metric::P50, "half")
    };
    let series = sweeps.iter().map(|group| times(group, load, metric));
    let waits = sweeps.iter().flat_map(|group| waits(group, load, metric));
    let waits: Vec<Series> = waits.collect();
    let has_waits = waits.iter().any(|series| !series.points.is_empty());
    let title = format!("{} response time", metric.label);
    let panels = [
        Panel::rows(&title, PageUnit::NANOS, series.collect()).on(Plane::new(RATE, AxisScale::Log)),
        Panel::rows("time spent waiting for a CPU", PageUnit::CpuShare, waits)
            .on(Plane::new(RATE, AxisScale::Linear)),
    ];
    let mut note = load.note.replace("SHARE", share);
    if has_waits {
        note.push_str(WAIT);
    }
    Chart {
        variant: load.variant,
        note,
        ..Chart::new(["sweep", load.title, ""], "rate", panels)
    }
}

/// Returns the time at each rate, named by the load.
fn times(group: &Group<'_>, load: &Load, metric: &Metric) -> Series {
    let knee = knee_of(&group.measurements);
    let point = |(at, own): (usize, &Measurement<'_>)| {
        let count = (load.of)(own.settings())?;
        let rate = estimate(&metric::RATE, own)?.value;
        let is_knee = knee == Some(at);
        let count = thousands(count as f64);
        Some(Point {
            name: Some(if is_knee {
                format!("{count}, the knee")
            } else {
                count
            }),
            stands_out: is_knee,
            ..Point::estimated(rate, estimate(metric, own)?)
        })
    };
    let all = group.measurements.iter().enumerate();
    Series::new(
        group.name.clone(),
        group.colour,
        all.filter_map(point).collect(),
    )
}

/// The part of a side in a balance.
type SideOf = fn(&Balance) -> Option<SideUse>;

/// Returns the waits of both sides at each rate.
fn waits(group: &Group<'_>, load: &Load, metric: &Metric) -> [Series; 2] {
    let sides: [(&str, bool, SideOf); 2] = [
        ("client", false, |own| own.client),
        ("server", true, |own| own.server),
    ];
    sides.map(|(side, dashed, of)| {
        let point = |own: &Measurement<'_>| {
            let count = (load.of)(own.settings())?;
            estimate(metric, own)?;
            let balances = sums(own.trials.iter().flat_map(|step| &step.cost.balances));
            let share = balances
                .iter()
                .find_map(|balance| Some(of(balance)?.waited_seconds? / balance.window_seconds))?;
            let rate = estimate(&metric::RATE, own)?.value;
            Some(Point {
                aside: Some(thousands(count as f64)),
                ..Point::new(rate, share)
            })
        };
        Series {
            dashed,
            ..Series::new(
                format!("{}, {side}", group.name),
                group.colour,
                group.measurements.iter().filter_map(point).collect(),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use netping_results::fixtures;

    use super::*;

    #[test]
    fn a_sweep_has_its_callers_at_their_rates_and_one_knee() {
        let mut steps = Vec::new();
        for (callers, rate) in [(1, 1000.0), (4, 3900.0), (16, 9000.0), (64, 9100.0)] {
            let mut step = fixtures::step(2, |_| vec![100_000 * callers as u64; 2000]);
            step.settings.callers = callers;
            step.summary.rate = rate;
            steps.push(step);
        }
        let chart = charts(&[fixtures::run(steps)]).remove(0);
        let points = &chart.panels[0].series[0].points;
        let names: Vec<&str> = points
            .iter()
            .filter_map(|own| own.name.as_deref())
            .collect();
        assert_eq!(names, ["1", "4", "16, the knee", "64"]);
        let rates: Vec<f64> = points.iter().map(|own| own.x.value()).collect();
        assert_eq!(rates, [1000.0, 3900.0, 9000.0, 9100.0]);
        assert_eq!(points.iter().filter(|own| own.stands_out).count(), 1);
        // A single load is no sweep.
        let one = fixtures::run(vec![fixtures::step(2, |_| vec![100_000; 2000])]);
        assert!(charts(&[one]).iter().all(|chart| chart.panels.is_empty()));
    }
}
