//! What proxies add to the direct path.

use crate::{
    overhead::Overhead,
    page::{
        chart::{Chart, Form, Panel, Point, Series},
        strand::of_run,
        unit::Unit,
    },
    run::Run,
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
    let row = |(at, overhead): &(usize, &Overhead)| Series {
        name: of_run(runs, *at, &name(overhead)),
        colour: proxies.iter().position(|proxy| *proxy == (*at, overhead.via.as_str())).unwrap_or(0),
        dashed: false,
        points: vec![Point::new(overhead.measure.as_str(), overhead.added_us).with_range(overhead.interval_us)],
    };
    let panels: Vec<Panel> = measures
        .iter()
        .map(|measure| Panel {
            title: format!("added to {measure}"),
            unit: Unit::Micros,
            form: Form::Rows,
            series: all.iter().filter(|(_, overhead)| overhead.measure == *measure).map(row).collect(),
        })
        .collect();
    if panels.is_empty() {
        return Vec::new();
    }
    vec![Chart {
        kind: "overhead",
        variant: None,
        title: "What proxies add".to_owned(),
        note: "Response time by way of the proxy, less that of the direct path, with the 95 % interval over the trials. An \
               interval across 0 shows no difference."
            .to_owned(),
        x_title: "measure",
        keys: Vec::new(),
        panels,
    }]
}

fn name(overhead: &Overhead) -> String {
    overhead
        .planned_rate
        .map_or_else(|| overhead.via.clone(), |rate| format!("{} at {}", overhead.via, Unit::Rate.shown(rate)))
}
