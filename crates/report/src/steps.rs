//! Terminal tables with a row for each step.

use netping_measure::distribution::Distribution;
use netping_results::{
    format::thousands,
    metric::{self, Metric},
    run::Step,
};

use crate::{
    sparkline::sparkline,
    table::{Column, Table, is_unicode},
};

/// A table whose rows are steps.
#[derive(Debug)]
pub struct StepTable {
    table: Table,
    cells: Vec<Cell>,
}

/// The source of a column's cells.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// Text made of the step.
    Text(fn(&Step) -> String),
    /// A metric of the step.
    Of(&'static Metric),
    /// A metric of one of its distributions of times.
    Time(&'static Metric, fn(&Step) -> &Distribution),
}

impl StepTable {
    /// Returns the table of closed loops.
    pub fn closed() -> Self {
        let of = |metric: &'static Metric, width| {
            (Column::number(metric.title, width), Cell::Of(metric))
        };
        Self::new(vec![
            number("callers", 7, |step| step.settings.callers.to_string()),
            spare(
                5,
                number("conns", 5, |step| step.settings.connections.to_string()),
            ),
            of(&metric::RATE, 9),
            spare(2, number("+-%", 4, error_bar)),
            of(&metric::P50, 6),
            of(&metric::P99, 6),
            spare(7, of(&metric::P999, 8)),
            spare(6, of(&metric::MAX, 7)),
            spare(4, of(&metric::CLIENT_CPU, 6)),
            spare(3, of(&metric::SERVER_CPU, 6)),
            // Failures have a line of their own, too.
            spare(1, of(&metric::ERRORS, 6)),
        ])
    }

    /// Returns the table of open loops.
    pub fn open() -> Self {
        let time = |title, metric, of| (Column::number(title, 6), Cell::Time(metric, of));
        Self::new(vec![
            number("planned/s", 9, |step| {
                thousands(step.settings.planned_rate.unwrap_or_default())
            }),
            spare(
                1,
                (
                    Column::number(metric::RATE.title, 9),
                    Cell::Of(&metric::RATE),
                ),
            ),
            spare(4, time("service p50", &metric::P50, service)),
            spare(5, time("p99 us", &metric::P99, service)),
            time("response p50", &metric::P50, response),
            time("p99 us", &metric::P99, response),
            spare(6, (Column::number("max us", 7), Cell::Of(&metric::MAX))),
            spare(7, time("lag p50", &metric::P50, lag)),
            spare(8, time("p99 us", &metric::P99, lag)),
            spare(
                2,
                (
                    Column::number(metric::ERRORS.title, 6),
                    Cell::Of(&metric::ERRORS),
                ),
            ),
        ])
    }

    /// Returns the table of round trips, in microseconds.
    pub fn latency() -> Self {
        let of = |metric: &'static Metric| {
            let column = Column::number(metric.name, 5);
            (column, Cell::Of(metric))
        };
        let tail: fn(&Step) -> String =
            |step| sparkline(&step.histograms.response_time, is_unicode());
        Self::new(vec![
            spare(1, of(&metric::P1)),
            spare(5, of(&metric::P25)),
            of(&metric::P50),
            spare(6, of(&metric::P75)),
            of(&metric::P90),
            spare(4, of(&metric::P95)),
            of(&metric::P99),
            of(&metric::P999),
            of(&metric::MAX),
            of(&metric::MEAN),
            spare(3, of(&metric::SD)),
            spare(2, (Column::text("p50..p99.9", 10), Cell::Text(tail))),
        ])
    }

    /// Returns the line of titles.
    pub fn header(&self) -> String {
        self.table.header()
    }

    /// Returns a step's row.
    pub fn row(&self, step: &Step) -> String {
        let cells: Vec<String> = self.cells.iter().map(|cell| cell.of(step)).collect();
        self.table.row(&cells)
    }

    fn new(columns: Vec<(Column, Cell)>) -> Self {
        let (columns, cells) = columns.into_iter().unzip();
        Self {
            table: Table::new(columns),
            cells,
        }
    }
}

impl Cell {
    fn of(self, step: &Step) -> String {
        match self {
            Self::Text(text) => text(step),
            Self::Of(metric) => metric.cell_of_step(step),
            Self::Time(metric, of) => metric.cell_of_times(of(step)),
        }
    }
}

fn number(title: &'static str, width: u16, text: fn(&Step) -> String) -> (Column, Cell) {
    (Column::number(title, width), Cell::Text(text))
}

fn spare(rank: u8, (column, cell): (Column, Cell)) -> (Column, Cell) {
    (column.spare(rank), cell)
}

fn service(step: &Step) -> &Distribution {
    &step.summary.service_time
}

fn response(step: &Step) -> &Distribution {
    &step.summary.response_time
}

fn lag(step: &Step) -> &Distribution {
    &step.summary.lag
}

/// Returns half the width of the rate's 95 % interval, in per cent of the rate.
fn error_bar(step: &Step) -> String {
    let summary = &step.summary;
    let half = summary
        .precision
        .rate_half_width
        .filter(|_| summary.rate > 0.0);
    half.map_or_else(
        || "-".to_owned(),
        |half| format!("{:.1}", half / summary.rate * 100.0),
    )
}
