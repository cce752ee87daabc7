//! The parts of round trips: a bar for those about p50, and one for those beyond p99.

use std::collections::BTreeSet;

use netping_measure::anatomy::Part;
use netping_results::{
    anatomy::{AnatomySummary, PartMeans},
    run::Run,
};

use crate::page::{
    chart::{Chart, Mark, Panel, Point, Series},
    series::{apart, of_run},
    unit::PageUnit,
};

const NOTE: &str = "By the kernel's time stamps. Send: from the start until the kernel hands the request to the network device. \
                    Away: the network and the server, until the reply has come; where the server tells its times, \
                    out: until it has read the request, server: until it replies, back: until the reply has come; network: out \
                    and back together, where the server's clock is another. Wake: until this client has woken up, read the \
                    reply and verified it. First the means of the middle tenth of all requests, then those of the slowest \
                    hundredth, on an axis of its own: the parts of each add up to its whole.";

/// Returns the chart of the parts of round trips.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut panels = [const { Vec::new() }; 2];
    let mut parts = BTreeSet::new();
    for (at, run) in runs.iter().enumerate() {
        let mut all = run.measurements();
        all.retain(|own| own.trials.iter().any(|step| step.anatomy.is_some()));
        let names = apart(&all.iter().collect::<Vec<_>>());
        for own in &all {
            let of_trials = own.trials.iter().filter_map(|step| step.anatomy.as_ref());
            let Some(anatomy) = AnatomySummary::sum(of_trials) else {
                continue;
            };
            let name = of_run(runs, at, &names[&own.number].join(", "));
            parts.extend(anatomy.parts.keys().copied());
            for (rows, means) in panels.iter_mut().zip([&anatomy.typical, &anatomy.slowest]) {
                let points = means.iter().flat_map(points).collect();
                rows.push(Series::new(name.clone(), 0, points));
            }
        }
    }
    let [typical, slowest] = panels;
    let panels = [("about p50", typical), ("beyond p99", slowest)];
    let panels = panels.map(|(title, rows)| Panel::rows(title, PageUnit::NANOS, rows));
    let key = |part: &Part| Series::new(part.name().to_owned(), *part as usize, Vec::new());
    vec![Chart {
        keys: parts.iter().map(key).collect(),
        ..Chart::new(["anatomy", "Where the time goes", NOTE], "part", panels)
    }]
}

/// Returns a bar of parts, each of which begins where the one before it ends.
fn points(means: &PartMeans) -> Vec<Point> {
    let mut end = 0.0;
    let bar = |(part, mean): (&Part, &f64)| {
        let from = end;
        end += mean;
        let mark = Mark::Bar {
            from,
            colour: Some(*part as usize),
        };
        Point::new(part.name(), *mean).marked(mark)
    };
    means.means.iter().map(bar).collect()
}
