//! Tables with a row for each step.

use netping_measure::times::Time;
use netping_results::{
    format::{self, time_of_day, width},
    metric::{self, Metric, Reading},
    run::{Kind, Step},
    time_unit::TimeUnit,
};

use super::sparkline::sparkline;
use crate::table::{Column, Table, is_unicode};

/// A column, and the cell of a step in it.
#[derive(Debug, Clone)]
struct StepColumn {
    column: Column,
    cell: Cell,
}

/// The cell of a step.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// A text.
    Text(fn(&Step) -> String),
    /// A metric; one of times, of times of this kind.
    Metric(&'static Metric, Time, Reading),
}

impl Cell {
    fn of(self, step: &Step) -> String {
        match self {
            Self::Text(of) => of(step),
            Self::Metric(metric, time, reading) if metric.is_of_response_time() => {
                metric.cell_of_times(&step.summary.times[time], reading)
            }
            Self::Metric(metric, _, reading) => metric.cell_of_step(step, reading),
        }
    }
}

/// Returns the value of a metric, or, of one of times, that of the times of this kind.
fn value(metric: &Metric, time: Time, step: &Step) -> Option<f64> {
    if metric.is_of_response_time() {
        metric.of_times(&step.summary.times[time])
    } else {
        metric.of_step(step)
    }
}

/// A table whose rows are steps. Its columns have the unit that suits the first of them.
#[derive(Debug)]
pub(super) struct StepTable {
    pub(super) table: Table,
    cells: Vec<Cell>,
}

impl StepTable {
    /// Returns an empty table for rows that begin with this step's; `has_times` adds the time of day at
    /// which each step began.
    pub(super) fn new(kind: Kind, step: &Step, has_times: bool) -> Self {
        let mut columns = match kind {
            _ if step.settings.planned_rate.is_some() => open(),
            Kind::Latency => round_trips(),
            _ => closed(),
        };
        if has_times {
            let begun = |step: &Step| step.window_started_at.map_or("-".to_owned(), time_of_day);
            columns.insert(0, text("UTC", 8, 0, begun));
        }
        let main = unit_of(step);
        for StepColumn { column, cell } in &mut columns {
            let Cell::Metric(metric, time, reading) = cell else {
                continue;
            };
            let value = value(metric, *time, step);
            *reading = if metric.is_of_response_time() {
                metric.unit.reading_in(main).beside(value)
            } else {
                // Costs are no part of the response time.
                metric.reading(value)
            };
            let Some(unit) = reading.times() else {
                continue;
            };
            // The heading of round trips has the unit of most.
            if kind != Kind::Latency || unit != main {
                let title = &column.title;
                *column = column.clone().titled(format!("{title} {}", unit.name()));
            }
        }
        let (columns, cells) = columns
            .into_iter()
            .map(|own| (own.column, own.cell))
            .unzip();
        Self {
            table: Table::new(columns),
            cells,
        }
    }

    /// Returns false if a time of a step is hard to read in the unit of its column.
    pub(super) fn suits(&self, step: &Step) -> bool {
        self.cells.iter().all(|cell| match cell {
            Cell::Text(_) => true,
            Cell::Metric(metric, time, reading) => {
                value(metric, *time, step).is_none_or(|value| reading.is_readable(value))
            }
        })
    }

    /// Returns a step's row.
    pub(super) fn row(&self, step: &Step) -> String {
        let cells: Vec<String> = self.cells.iter().map(|cell| cell.of(step)).collect();
        self.table.row(&cells)
    }
}

/// Returns the unit of most columns of a table that begins with this step: that of its median.
pub(super) fn unit_of(step: &Step) -> TimeUnit {
    let median = metric::P50.of_times(&step.summary.times[Time::Response]);
    TimeUnit::of(median)
}

/// Returns the columns of closed loops.
fn closed() -> Vec<StepColumn> {
    vec![
        text("callers", 7, 0, |step| step.settings.callers.to_string()),
        text("conns", 5, 5, |step| step.settings.connections.to_string()),
        number(&metric::RATE, "req/s", 9, 0),
        text("+-%", 4, 2, error_bar),
        number(&metric::P50, "p50", 6, 0),
        number(&metric::P99, "p99", 6, 0),
        number(&metric::P999, "p99.9", 8, 7),
        number(&metric::MAX, "max", 7, 6),
        number(&metric::CLIENT_CPU, "cli", 6, 4),
        number(&metric::SERVER_CPU, "srv", 6, 3),
        // Failures have a line of their own, too.
        number(&metric::ERRORS, "failed", 6, 1),
    ]
}

/// Returns the columns of open loops.
fn open() -> Vec<StepColumn> {
    vec![
        text("planned/s", 9, 0, |step| {
            format::rate(step.settings.planned_rate.unwrap_or_default())
        }),
        number(&metric::RATE, "req/s", 9, 1),
        times(&metric::P50, Time::Service, "service p50", 4),
        times(&metric::P99, Time::Service, "p99", 5),
        number(&metric::P50, "response p50", 6, 0),
        number(&metric::P99, "p99", 6, 0),
        number(&metric::MAX, "max", 7, 6),
        times(&metric::P50, Time::Lag, "lag p50", 7),
        times(&metric::P99, Time::Lag, "p99", 8),
        number(&metric::ERRORS, "failed", 6, 2),
    ]
}

/// Returns the columns of round trips, most of which have the unit of the heading.
fn round_trips() -> Vec<StepColumn> {
    let tail = StepColumn {
        column: Column::text("p50..p99.9").spare(2),
        cell: Cell::Text(|step| sparkline(&step.histograms.times[Time::Response], is_unicode())),
    };
    vec![
        number(&metric::P1, "p1", 5, 1),
        number(&metric::P25, "p25", 5, 5),
        number(&metric::P50, "p50", 5, 0),
        number(&metric::P75, "p75", 5, 6),
        number(&metric::P90, "p90", 5, 0),
        number(&metric::P95, "p95", 5, 4),
        number(&metric::P99, "p99", 5, 0),
        number(&metric::P999, "p99.9", 5, 0),
        number(&metric::MAX, "max", 5, 0),
        number(&metric::MEAN, "mean", 5, 0),
        number(&metric::SD, "sd", 5, 3),
        tail,
    ]
}

fn text(title: &'static str, width: u16, spare: u8, cell: fn(&Step) -> String) -> StepColumn {
    StepColumn {
        column: Column::number(title).wide(width).spare(spare),
        cell: Cell::Text(cell),
    }
}

/// Returns a column of a metric; one of times, of the response time.
fn number(metric: &'static Metric, title: &'static str, width: u16, spare: u8) -> StepColumn {
    StepColumn {
        column: Column::number(title).wide(width).spare(spare),
        cell: Cell::Metric(metric, Time::Response, metric.reading([])),
    }
}

/// Returns a column of a metric of one kind of a step's times.
fn times(metric: &'static Metric, time: Time, title: &'static str, spare: u8) -> StepColumn {
    StepColumn {
        cell: Cell::Metric(metric, time, metric.reading([])),
        ..number(metric, title, 6, spare)
    }
}

/// Returns half the width of the rate's 95 % interval, in per cent of the rate.
fn error_bar(step: &Step) -> String {
    let summary = &step.summary;
    let half = summary.precision.rate_half_width;
    let share = half
        .filter(|_| summary.rate > 0.0)
        .map(|half| half / summary.rate);
    share.map_or_else(
        || "-".to_owned(),
        |share| width(share).trim_end_matches('%').to_owned(),
    )
}
