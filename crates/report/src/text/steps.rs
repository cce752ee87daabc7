//! Tables with a row for each step.

use netping_measure::times::Time;
use netping_results::{
    format::{thousands, time_of_day},
    metric::{self, Metric},
    run::{Kind, Step},
};

use super::sparkline::sparkline;
use crate::table::{Column, Table, is_unicode};

/// A column, and the cell of a step in it.
type StepColumn = (Column, fn(&Step) -> String);

/// A table whose rows are steps.
#[derive(Debug)]
pub(super) struct StepTable {
    pub(super) table: Table,
    cells: Vec<fn(&Step) -> String>,
}

impl StepTable {
    /// Returns an empty table; `has_times` adds the time of day at which each step began.
    pub(super) fn new(kind: Kind, is_open: bool, has_times: bool) -> Self {
        let mut columns = match kind {
            _ if is_open => open(),
            Kind::Latency => round_trips(),
            _ => closed(),
        };
        if has_times {
            let begun = |step: &Step| step.window_started_at.map_or("-".to_owned(), time_of_day);
            columns.insert(0, column("UTC", 8, 0, begun));
        }
        let (columns, cells) = columns.into_iter().unzip();
        Self {
            table: Table::new(columns),
            cells,
        }
    }

    /// Returns a step's row.
    pub(super) fn row(&self, step: &Step) -> String {
        let cells: Vec<String> = self.cells.iter().map(|cell| cell(step)).collect();
        self.table.row(&cells)
    }
}

/// Returns the columns of closed loops.
fn closed() -> Vec<StepColumn> {
    vec![
        column("callers", 7, 0, |step| step.settings.callers.to_string()),
        column("conns", 5, 5, |step| step.settings.connections.to_string()),
        column("req/s", 9, 0, |step| metric::RATE.cell_of_step(step)),
        column("+-%", 4, 2, error_bar),
        column("p50 us", 6, 0, |step| metric::P50.cell_of_step(step)),
        column("p99 us", 6, 0, |step| metric::P99.cell_of_step(step)),
        column("p99.9 us", 8, 7, |step| metric::P999.cell_of_step(step)),
        column("max us", 7, 6, |step| metric::MAX.cell_of_step(step)),
        column("cli us", 6, 4, |step| metric::CLIENT_CPU.cell_of_step(step)),
        column("srv us", 6, 3, |step| metric::SERVER_CPU.cell_of_step(step)),
        // Failures have a line of their own, too.
        column("failed", 6, 1, |step| metric::ERRORS.cell_of_step(step)),
    ]
}

/// Returns the columns of open loops.
fn open() -> Vec<StepColumn> {
    vec![
        column("planned/s", 9, 0, |step| {
            thousands(step.settings.planned_rate.unwrap_or_default())
        }),
        column("req/s", 9, 1, |step| metric::RATE.cell_of_step(step)),
        column("service p50", 6, 4, |step| {
            time(step, Time::Service, &metric::P50)
        }),
        column("p99 us", 6, 5, |step| {
            time(step, Time::Service, &metric::P99)
        }),
        column("response p50", 6, 0, |step| metric::P50.cell_of_step(step)),
        column("p99 us", 6, 0, |step| metric::P99.cell_of_step(step)),
        column("max us", 7, 6, |step| metric::MAX.cell_of_step(step)),
        column("lag p50", 6, 7, |step| time(step, Time::Lag, &metric::P50)),
        column("p99 us", 6, 8, |step| time(step, Time::Lag, &metric::P99)),
        column("failed", 6, 2, |step| metric::ERRORS.cell_of_step(step)),
    ]
}

/// Returns the columns of round trips, in microseconds.
fn round_trips() -> Vec<StepColumn> {
    let tail: StepColumn = (Column::text("p50..p99.9").spare(2), |step| {
        sparkline(&step.histograms.times[Time::Response], is_unicode())
    });
    vec![
        column("p1", 5, 1, |step| metric::P1.cell_of_step(step)),
        column("p25", 5, 5, |step| metric::P25.cell_of_step(step)),
        column("p50", 5, 0, |step| metric::P50.cell_of_step(step)),
        column("p75", 5, 6, |step| metric::P75.cell_of_step(step)),
        column("p90", 5, 0, |step| metric::P90.cell_of_step(step)),
        column("p95", 5, 4, |step| metric::P95.cell_of_step(step)),
        column("p99", 5, 0, |step| metric::P99.cell_of_step(step)),
        column("p99.9", 5, 0, |step| metric::P999.cell_of_step(step)),
        column("max", 5, 0, |step| metric::MAX.cell_of_step(step)),
        column("mean", 5, 0, |step| metric::MEAN.cell_of_step(step)),
        column("sd", 5, 3, |step| metric::SD.cell_of_step(step)),
        tail,
    ]
}

fn column(title: &'static str, width: u16, spare: u8, cell: fn(&Step) -> String) -> StepColumn {
    (Column::number(title).wide(width).spare(spare), cell)
}

/// Returns a metric of one kind of a step's times.
fn time(step: &Step, kind: Time, metric: &Metric) -> String {
    metric.cell_of_times(&step.summary.times[kind])
}

/// Returns half the width of the rate's 95 % interval, in per cent of the rate.
fn error_bar(step: &Step) -> String {
    let summary = &step.summary;
    let half = summary.precision.rate_half_width;
    let share = half
        .filter(|_| summary.rate > 0.0)
        .map(|half| half / summary.rate);
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0))
}
