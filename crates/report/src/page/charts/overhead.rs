//! The overhead of proxies over the direct path.

use netping_results::{overhead::Overhead, run::Run};

use crate::page::{
    chart::{Chart, Form, Panel, Point, Series},
    series::of_run,
    unit::Unit,
};

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let all: Vec<(usize, &Overhead)> = runs
        .iter()
        .enumerate()
        .flat_map(|(at, run)| run.overheads.iter().map(move |overhead| (at, overhead)))
        .collect();
    let mut measures: Vec<&str> = Vec::new();
    let mut proxies: Vec<(usize, &str)> = Vec::new();
    for (at, overhead) in &all {
        if !measures.contains(&overhead.measure.as_str()) {
            measures.push(&overhead.measure);
        }
        if !proxies.contains(&(*at, overhead.via.as_str())) {
            proxies.push((*at, &overhead.via));
        }
    }
    let row = |(at, overhead): &(usize, &Overhead)| {
        let is_own = |proxy: &(usize, &str)| *proxy == (*at, overhead.via.as_str());
        let colour = proxies.iter().position(is_own).unwrap_or(0);
        let point = Point::new(overhead.measure.as_str(), overhead.added_us);
        let points = vec![point.with_range(overhead.interval_us)];
        Series::new(of_run(runs, *at, &name(overhead)), colour, points)
    };
    let panels = measures.iter().map(|measure| {
        let own = all.iter().filter(|(_, own)| own.measure == *measure);
        let title = format!("added to {measure}");
        Panel::new(&title, Unit::Micros, Form::Rows, own.map(row).collect())
    });
    let mut chart = Chart::new(["overhead", "Overhead of proxies", NOTE], "measure", panels);
    if let Some(chart) = &mut chart
        && all.iter().any(|(_, overhead)| overhead.failed > 0)
    {
        chart.note += MARK;
    }
    chart.into_iter().collect()
}

const NOTE: &str = "Response time by way of the proxy, less that of the direct path, with the 95 % interval over the trials. An \
                    interval across 0 shows no difference.";

/// The meaning of the mark at a proxy's name.
const MARK: &str = " *: requests failed on this path or on the direct one; the times are of the successful requests alone and do not describe \
                        the proxy.";

fn name(overhead: &Overhead) -> String {
    let via = overhead.marked_via();
    match overhead.planned_rate {
        Some(rate) => format!("{via} at {}", Unit::RATE.shown(rate)),
        None => via,
    }
}

#[cfg(test)]
mod tests {
    use netping_results::fixtures;

    use super::*;

    #[test]
    fn a_path_on_which_requests_failed_is_marked() {
        let overhead = |via: &str, failed| Overhead {
            via: via.to_owned(),
            planned_rate: None,
            measure: "p50".to_owned(),
            direct_us: 100.0,
            via_us: 150.0,
            added_us: 50.0,
            interval_us: None,
            p_value: None,
            failed,
        };
        let chart = |overheads| {
            charts(&[Run {
                overheads,
                ..fixtures::run(Vec::new())
            }])
            .remove(0)
        };
        let names = |chart: &Chart| -> Vec<String> {
            chart.panels[0]
                .series
                .iter()
                .map(|series| series.name.clone())
                .collect()
        };
        let sound = chart(vec![overhead("sound", 0)]);
        assert_eq!(names(&sound), ["sound"]);
        assert!(!sound.note.contains("failed"));
        let failed = chart(vec![overhead("sound", 0), overhead("lossy", 3)]);
        assert_eq!(names(&failed), ["sound", "lossy*"]);
        assert!(failed.note.contains("requests failed"));
    }
}
