//! The parts of round trips: a bar for those about p50, and one for those beyond p99.

use netping_measure::anatomy::Part;
use netping_results::{
    anatomy::{AnatomySummary, PartMeans},
    run::Run,
};

use crate::page::{
    chart::{Chart, Mark, Panel, Point, Series},
    series::groups,
    unit::PageUnit,
};

const NOTE: &str = "By the kernel's time stamps. Send: from the start until the kernel hands the request to the network device. \
                    Away: the network and the server, until the reply has come. Wake: until this client has woken up, read the \
                    reply and verified it. First the means of the middle tenth of all requests, then those of the slowest \
                    hundredth, on an axis of its own: the parts of each add up to its whole.";

/// Returns the chart of the parts of round trips.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    let several = groups.iter().any(|group| group.measurements.len() > 1);
    let mut panels = [const { Vec::new() }; 2];
    for group in &groups {
        for own in &group.measurements {
            let of_trials = own.trials.iter().filter_map(|step| step.anatomy.as_ref());
            let Some(anatomy) = AnatomySummary::sum(of_trials) else {
                continue;
            };
            let name = if several {
                group.name_of(own)
            } else {
                group.name.clone()
            };
            for (rows, means) in panels.iter_mut().zip([&anatomy.typical, &anatomy.slowest]) {
                let points = means.iter().flat_map(points).collect();
                rows.push(Series::new(name.clone(), 0, points));
            }
        }
    }
    let [typical, slowest] = panels;
    let panels = [("about p50", typical), ("beyond p99", slowest)];
    let panels = panels.map(|(title, rows)| Panel::rows(title, PageUnit::NANOS, rows));
    let key =
        |(colour, part): (usize, Part)| Series::new(part.name().to_owned(), colour, Vec::new());
    vec![Chart {
        keys: Part::ALL.into_iter().enumerate().map(key).collect(),
        ..Chart::new(["anatomy", "Where the time goes", NOTE], "part", panels)
    }]
}

/// Returns a bar of parts, each of which begins where the one before it ends.
fn points(means: &PartMeans) -> Vec<Point> {
    let mut end = 0.0;
    let bar = |(colour, part): (usize, Part)| {
        let mean = *means.means.get(&part)?;
        let from = end;
        end += mean;
        let mark = Mark::Bar {
            from,
            colour: Some(colour),
        };
        Some(Point::new(part.name(), mean).marked(mark))
    };
    Part::ALL.into_iter().enumerate().filter_map(bar).collect()
}
