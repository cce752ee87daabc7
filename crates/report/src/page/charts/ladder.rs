//! The ladder: the value of each rung under each load, and the differences to the rungs they build
//! on.

use netping_results::{
    format::plural,
    metric,
    round_difference::RoundDifference,
    run::{Run, Step},
};

use crate::page::{
    chart::{Chart, Form, Mark, Panel, Point, Series},
    headline,
    series::of_run,
    unit::Unit,
};

const VALUES: &str = "From the plainest server up. A bar is the median of the rounds, with a dot for each. Client and servers \
                      share a machine: compare rungs, not machines.";

const DIFFERENCES: &str = "Each rung against the rung it builds on, within rounds. The intervals of all differences hold together with \
                           a probability of 95 %; one across 0 shows no difference. 'TCP again' is a second server like the reference: \
                           smaller differences than its own are noise.";

/// Returns true for the run of a ladder.
pub(in crate::page) fn is_ladder(run: &Run) -> bool {
    headline::command(run) == "ladder"
}

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let ladders = || runs.iter().enumerate().filter(|(_, run)| is_ladder(run));
    let mut loads: Vec<Load> = Vec::new();
    for step in ladders().flat_map(|(_, run)| &run.steps) {
        let load = Load::of(step);
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    let values = loads.iter().map(|load| {
        let rows = ladders().flat_map(|(at, run)| load.rows(runs, at, run));
        Panel::new(&load.title(), load.unit(), Form::Rows, rows.collect())
    });
    let differences: Vec<(usize, &RoundDifference)> = ladders()
        .flat_map(|(at, run)| run.differences.iter().map(move |own| (at, own)))
        .collect();
    let times = |own: &RoundDifference| own.metric == metric::P50.name;
    let panel = |title, unit, is_own: &dyn Fn(&RoundDifference) -> bool| {
        let own = differences.iter().filter(|(_, own)| is_own(own));
        let row = |(place, (at, own)): (usize, &(usize, &RoundDifference))| {
            let name = of_run(runs, *at, &name(own));
            Series::new(name, place, vec![point(own)])
        };
        Panel::new(title, unit, Form::Rows, own.enumerate().map(row).collect())
    };
    let differences = [
        panel("added to a round trip", Unit::NANOS, &times),
        panel("change of the rate", Unit::Count("%"), &|own| {
            !times(own) && own.target != own.base
        }),
        panel("change by sharing", Unit::Count("%"), &|own| {
            own.target == own.base
        }),
    ];
    let mut charts: Vec<Chart> = Vec::new();
    let chart = Chart::new(
        ["ladder", "What each rung adds", DIFFERENCES],
        "over",
        differences,
    );
    charts.extend(chart.map(|chart| Chart {
        variant: Some("differences"),
        ..chart
    }));
    charts.extend(Chart::new(["ladder", "Ladder", VALUES], "callers", values));
    charts
}

/// The name of a difference's row.
fn name(difference: &RoundDifference) -> String {
    let message = difference.message.as_ref().map(|_| ", message");
    let message = message.unwrap_or_default();
    if difference.target == difference.base {
        let [few, many] = difference.connections;
        return format!(
            "{}{message}: {few} over {many} connections",
            difference.target
        );
    }
    format!("{}{message} over {}", difference.target, difference.base)
}

/// The point of a difference: times in nanoseconds, rates in per cent.
fn point(difference: &RoundDifference) -> Point {
    let point = Point::new(difference.base.as_str(), difference.relative);
    let (at, range) = if difference.metric == metric::P50.name {
        difference.absolute()
    } else {
        let range = difference.interval.unwrap_or(difference.range);
        (difference.relative * 100.0, range.map(|end| end * 100.0))
    };
    Point { at, ..point }.with_range(Some(range))
}

/// A load under which rungs are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Load {
    callers: usize,
    /// Connections, where callers share them.
    shared: Option<usize>,
    message: Option<String>,
}

impl Load {
    fn of(step: &Step) -> Self {
        let settings = &step.settings;
        Self {
            callers: settings.callers,
            shared: Some(settings.connections).filter(|count| *count < settings.callers),
            message: settings.message.clone(),
        }
    }

    fn is_alone(&self) -> bool {
        self.callers == 1
    }

    fn title(&self) -> String {
        let callers = plural(self.callers as u64, "caller");
        let metric = if self.is_alone() { "p50" } else { "rate" };
        let connections = self.shared.map(|count| format!(" on {count} connections"));
        let message = self
            .message
            .as_ref()
            .map(|message| format!(", {message} message"));
        let rest = [connections, message]
            .into_iter()
            .flatten()
            .collect::<String>();
        format!("{metric}, {callers}{rest}")
    }

    fn unit(&self) -> Unit {
        if self.is_alone() {
            Unit::NANOS
        } else {
            Unit::RATE
        }
    }

    /// Returns a row for each rung of a run that was measured under this load.
    fn rows(&self, runs: &[Run], at: usize, run: &Run) -> Vec<Series> {
        let mut labels: Vec<&str> = Vec::new();
        for step in &run.steps {
            if !labels.contains(&step.name()) {
                labels.push(step.name());
            }
        }
        let row = |(colour, label): (usize, &&str)| {
            let own = run
                .steps
                .iter()
                .filter(|step| step.name() == *label && Self::of(step) == *self);
            let dots: Vec<Point> = own.filter_map(|step| self.dot(step)).collect();
            Series::new(of_run(runs, at, label), colour, with_median(dots))
        };
        labels.iter().enumerate().map(row).collect()
    }

    fn dot(&self, step: &Step) -> Option<Point> {
        let callers = step.settings.callers;
        if self.is_alone() {
            let median = step.summary.service_time.quantile(50.0)?;
            return Some(Point::new(callers, median));
        }
        Some(Point::new(callers, step.summary.rate))
    }
}

/// Adds a bar at the median of some dots.
fn with_median(mut dots: Vec<Point>) -> Vec<Point> {
    let mut sorted: Vec<&Point> = dots.iter().collect();
    sorted.sort_unstable_by(|a, b| a.at.total_cmp(&b.at));
    let bar = sorted.get(sorted.len() / 2).map(|median| {
        let bar = Point::new("median", median.y.clone());
        bar.marked(Mark::BAR)
    });
    dots.splice(0..0, bar);
    dots
}
