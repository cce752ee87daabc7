//! Throughput and cost of bulk streams, by their settings.

use std::collections::BTreeSet;

use netping_results::{bulk::BulkStep, metric, run::Run};

use crate::page::{
    chart::{Chart, Form, Mark, Panel, Point, Series},
    series::of_run,
    unit::Unit,
};

/// Colours of the client's and the server's share.
const SIDES: [(&str, usize); 2] = [("client", 0), ("server", 1)];

/// The colour of what is neither.
const SPEED: usize = 2;

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let rows = rows(runs);
    let panel = |title: &str, unit, of: fn(&BulkStep) -> Vec<Point>| Panel {
        title: title.to_owned(),
        unit,
        form: Form::Rows,
        series: rows
            .iter()
            .map(|(name, step)| Series {
                name: name.clone(),
                colour: SPEED,
                dashed: false,
                points: of(step),
            })
            .filter(|series| !series.points.is_empty())
            .collect(),
    };
    let speed = panel("GiB/s", Unit::Of(metric::BULK_RATE.unit), speed);
    let cost = panel(
        "CPU seconds per GiB",
        Unit::Of(metric::BULK_CLIENT_CPU.unit),
        cost,
    );
    if speed.series.is_empty() {
        return Vec::new();
    }
    let keys = if cost.series.is_empty() {
        Vec::new()
    } else {
        SIDES.to_vec()
    };
    vec![Chart {
        kind: "bulk",
        variant: None,
        title: "Bulk streams".to_owned(),
        note:
            "The mean of the runs with its 95 % interval, and a dot for each run. Names have the settings that differ. \
               Colours tell client and server apart in the CPU time, and rows above it."
                .to_owned(),
        x_title: "run or side",
        keys,
        panels: [speed, cost].into_iter().filter(|panel| !panel.series.is_empty()).collect(),
    }]
}

/// The bulk steps with names: target and settings, as far as they differ.
fn rows(runs: &[Run]) -> Vec<(String, &BulkStep)> {
    let all: Vec<(usize, &BulkStep)> = runs
        .iter()
        .enumerate()
        .flat_map(|(at, run)| run.bulk.iter().map(move |step| (at, step)))
        .collect();
    let words: Vec<Vec<String>> = all.iter().map(|(_, step)| described(step)).collect();
    let differs = |place: usize| {
        words
            .iter()
            .map(|parts| &parts[place])
            .collect::<BTreeSet<_>>()
            .len()
            > 1
    };
    all.iter()
        .zip(&words)
        .map(|(&(at, step), parts)| {
            let shown: Vec<&str> = parts
                .iter()
                .enumerate()
                .filter(|(place, _)| differs(*place))
                .map(|(_, part)| part.as_str())
                .collect();
            let name = if shown.is_empty() {
                step.target.clone()
            } else {
                shown.join(", ")
            };
            (of_run(runs, at, &name), step)
        })
        .collect()
}

/// Target and settings, each in words; as many for every step.
fn described(step: &BulkStep) -> Vec<String> {
    let settings = &step.settings;
    let optional = |size: Option<u64>, what: &str| {
        size.map_or_else(
            || format!("own {what}"),
            |size| format!("{what} {}", bytes(size)),
        )
    };
    vec![
        step.target.clone(),
        settings.direction.name().to_owned(),
        bytes(settings.size_bytes),
        format!("chunks {}", bytes(settings.chunk_bytes)),
        format!("{} streams", settings.streams),
        optional(settings.window_bytes, "window"),
        optional(settings.frame_bytes, "frame"),
        if settings.verify {
            "verified"
        } else {
            "not verified"
        }
        .to_owned(),
    ]
}

/// `64 KiB`.
fn bytes(size: u64) -> String {
    let units = ["GiB", "MiB", "KiB"];
    let whole = units
        .iter()
        .zip([30_u32, 20, 10])
        .find(|(_, bits)| size >= 1_u64 << bits && size.trailing_zeros() >= *bits);
    whole.map_or_else(
        || format!("{size} B"),
        |(unit, bits)| format!("{} {unit}", size >> bits),
    )
}

fn speed(step: &BulkStep) -> Vec<Point> {
    let mean = step.summary.map(|summary| {
        let of = summary.gib_per_second;
        let range = of.half_width.map(|half| [of.mean - half, of.mean + half]);
        Point::new("mean", of.mean)
            .with_range(range)
            .marked(Mark::BAR)
    });
    let runs = step
        .runs
        .iter()
        .enumerate()
        .map(|(at, run)| Point::new(at + 1, run.gib_per_second));
    mean.into_iter().chain(runs).collect()
}

fn cost(step: &BulkStep) -> Vec<Point> {
    let Some(summary) = &step.summary else {
        return Vec::new();
    };
    let mut from = 0.0;
    let mut points = Vec::new();
    for ((side, colour), cost) in SIDES.into_iter().zip([
        summary.client_cpu_seconds_per_gib,
        summary.server_cpu_seconds_per_gib,
    ]) {
        let Some(cost) = cost else { continue };
        points.push(Point::new(side, cost).marked(Mark::Bar {
            from,
            colour: Some(colour),
        }));
        from += cost;
    }
    points
}
