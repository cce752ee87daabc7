//! Throughput and cost of bulk streams, by their settings.

use netping_results::{
    bulk::{BulkStep, SERVERS_CHOICE},
    metric,
    run::Run,
};

use super::stacked;
use crate::page::{
    chart::{Chart, Form, Mark, Panel, Point, Series},
    series::of_run,
    unit::Unit,
};

/// Colours of the client's and the server's share.
const SIDES: [(&str, usize); 2] = [("client", 0), ("server", 1)];

/// The colour of what is neither.
const SPEED: usize = 2;

const NOTE: &str = "The mean of the runs with its 95 % interval, and a dot for each run. Names have the settings that differ. \
                    Colours tell client and server apart in the CPU time, and rows above it.";

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let rows = rows(runs);
    let panel = |title: &str, unit, of: fn(&BulkStep) -> Vec<Point>| {
        let series =
            |(name, step): &(String, &BulkStep)| Series::new(name.clone(), SPEED, of(step));
        let series = rows.iter().map(series).collect();
        Panel::new(title, Unit::Of(unit), Form::Rows, series)
    };
    let speed = panel("GiB/s", metric::BULK_RATE.unit, speed);
    let cost = panel("CPU seconds per GiB", metric::BULK_CLIENT_CPU.unit, cost);
    let mut chart = Chart::new(["bulk", "Bulk streams", NOTE], "run or side", [speed, cost]);
    if let Some(chart) = &mut chart
        && chart.panels.len() > 1
    {
        chart.keys = SIDES.to_vec();
    }
    chart.into_iter().collect()
}

/// The bulk steps with names: target and settings, as far as they differ.
fn rows(runs: &[Run]) -> Vec<(String, &BulkStep)> {
    let bulk = |(at, run)| -> Vec<(usize, &BulkStep)> {
        let run: &Run = run;
        run.bulk.iter().map(|step| (at, step)).collect()
    };
    let all: Vec<(usize, &BulkStep)> = runs.iter().enumerate().flat_map(bulk).collect();
    let words: Vec<Vec<String>> = all.iter().map(|(_, step)| described(step)).collect();
    let differs = |place: usize| words.iter().any(|parts| parts[place] != words[0][place]);
    let name = |parts: &[String], step: &BulkStep| {
        let parts = parts.iter().enumerate();
        let shown = parts.filter(|(place, _)| differs(*place));
        let shown: Vec<&str> = shown.map(|(_, part)| part.as_str()).collect();
        if shown.is_empty() {
            step.target.clone()
        } else {
            shown.join(", ")
        }
    };
    all.iter()
        .zip(&words)
        .map(|(&(at, step), parts)| (of_run(runs, at, &name(parts, step)), step))
        .collect()
}

/// Target and settings, each in words; as many for every step.
fn described(step: &BulkStep) -> Vec<String> {
    let settings = &step.settings;
    let optional = |size: Option<u64>, what: &str| match size {
        None => format!("own {what}"),
        Some(size) => format!("{what} {}", bytes(size)),
    };
    let verified = if settings.verify {
        "verified"
    } else {
        "not verified"
    };
    vec![
        step.target.clone(),
        settings.direction.name().to_owned(),
        chosen("size", settings.size_bytes),
        format!("chunks {}", chosen("length", settings.chunk_bytes)),
        format!("{} streams", settings.streams),
        optional(settings.window_bytes, "window"),
        optional(settings.frame_bytes, "frame"),
        verified.to_owned(),
    ]
}

/// A size in words, which may be the server's choice.
fn chosen(what: &str, size: u64) -> String {
    if size == SERVERS_CHOICE {
        format!("server's {what}")
    } else {
        bytes(size)
    }
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
    let costs = [
        summary.client_cpu_seconds_per_gib,
        summary.server_cpu_seconds_per_gib,
    ];
    let parts = SIDES.into_iter().zip(costs);
    stacked(parts.filter_map(|((side, colour), cost)| Some((side, colour, cost?))))
}
