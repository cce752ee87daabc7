//! Tables with a row for each step.

use netping_measure::times::Time;
use netping_results::{
    format::thousands,
    metric::{self, Metric},
    run::{Kind, Step},
};

use super::sparkline::sparkline;
use crate::table::{Column, Table, is_unicode};

/// A column, and the cell of a step in it.
type StepColumn = (Column, CellSource);

/// The source of a column's cells.
#[derive(Debug)]
enum CellSource {
    /// Text made of the step.
    Text(fn(&Step) -> String),
    /// A metric of the step.
    Metric(&'static Metric),
    /// A metric of one of its kinds of time.
    Time(&'static Metric, Time),
}

/// A table whose rows are steps.
#[derive(Debug)]
pub(super) struct StepTable {
    pub(super) table: Table,
    sources: Vec<CellSource>,
}

impl StepTable {
    pub(super) fn new(kind: Kind, is_open: bool) -> Self {
        let columns = match kind {
            _ if is_open => open(),
            Kind::Latency => round_trips(),
            _ => closed(),
        };
        let (columns, sources) = columns.into_iter().unzip();
        Self {
            table: Table::new(columns),
            sources,
        }
    }

    /// Returns a step's row.
    pub(super) fn row(&self, step: &Step) -> String {
        let cell = |source: &CellSource| match source {
            CellSource::Text(text) => text(step),
            CellSource::Metric(metric) => metric.cell_of_step(step),
            CellSource::Time(metric, time) => metric.cell_of_times(&step.summary.times[*time]),
        };
        let cells: Vec<String> = self.sources.iter().map(cell).collect();
        self.table.row(&cells)
    }
}

/// Returns the columns of closed loops.
fn closed() -> Vec<StepColumn> {
    let titled = |width, spare, metric: &'static Metric| of(metric.title, width, spare, metric);
    vec![
        text("callers", 7, 0, |step| step.settings.callers.to_string()),
        text("conns", 5, 5, |step| step.settings.connections.to_string()),
        titled(9, 0, &metric::RATE),
        text("+-%", 4, 2, error_bar),
        titled(6, 0, &metric::P50),
        titled(6, 0, &metric::P99),
        titled(8, 7, &metric::P999),
        titled(7, 6, &metric::MAX),
        titled(6, 4, &metric::CLIENT_CPU),
        titled(6, 3, &metric::SERVER_CPU),
        // Failures have a line of their own, too.
        titled(6, 1, &metric::ERRORS),
    ]
}

/// Returns the columns of open loops.
fn open() -> Vec<StepColumn> {
    let service = |title, spare, metric| time(title, spare, metric, Time::Service);
    let lag = |title, spare, metric| time(title, spare, metric, Time::Lag);
    vec![
        text("planned/s", 9, 0, |step| {
            thousands(step.settings.planned_rate.unwrap_or_default())
        }),
        of(metric::RATE.title, 9, 1, &metric::RATE),
        service("service p50", 4, &metric::P50),
        service("p99 us", 5, &metric::P99),
        of("response p50", 6, 0, &metric::P50),
        of("p99 us", 6, 0, &metric::P99),
        of("max us", 7, 6, &metric::MAX),
        lag("lag p50", 7, &metric::P50),
        lag("p99 us", 8, &metric::P99),
        of(metric::ERRORS.title, 6, 2, &metric::ERRORS),
    ]
}

/// Returns the columns of round trips, in microseconds.
fn round_trips() -> Vec<StepColumn> {
    let named = |spare, metric: &'static Metric| of(metric.name, 5, spare, metric);
    let tail = |step: &Step| sparkline(&step.histograms.times[Time::Response], is_unicode());
    vec![
        named(1, &metric::P1),
        named(5, &metric::P25),
        named(0, &metric::P50),
        named(6, &metric::P75),
        named(0, &metric::P90),
        named(4, &metric::P95),
        named(0, &metric::P99),
        named(0, &metric::P999),
        named(0, &metric::MAX),
        named(0, &metric::MEAN),
        named(3, &metric::SD),
        (
            Column::text("p50..p99.9", 10).spare(2),
            CellSource::Text(tail),
        ),
    ]
}

fn text(title: &'static str, width: u16, spare: u8, text: fn(&Step) -> String) -> StepColumn {
    (
        Column::number(title, width).spare(spare),
        CellSource::Text(text),
    )
}

fn of(title: &'static str, width: u16, spare: u8, metric: &'static Metric) -> StepColumn {
    let column = Column::number(title, width).spare(spare);
    (column, CellSource::Metric(metric))
}

fn time(title: &'static str, spare: u8, metric: &'static Metric, of: Time) -> StepColumn {
    let column = Column::number(title, 6).spare(spare);
    (column, CellSource::Time(metric, of))
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
