//! A chart's numbers as a table, for those who do not see the chart.

use maud::{Markup, html};

use super::chart::{Chart, Exact, Mark, Panel, Point};
use crate::table::Column;

/// Stands where a panel has no value.
const NOTHING: &str = "-";

/// Renders a table that can be scrolled where it is too wide; words in its first column name the rows.
pub(super) fn render(columns: &[Column], rows: &[Vec<String>]) -> Markup {
    html! {
        div."scroll" {
            table {
                thead {
                    tr { @for own in columns { th class=[number(own)] scope="col" { (own.title) } } }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (at, (own, cell)) in columns.iter().zip(row).enumerate() {
                                @if at == 0 && own.left { th scope="row" { (cell) } }
                                @else { td class=[number(own)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the class of a column of numbers.
fn number(column: &Column) -> Option<&'static str> {
    (!column.left).then_some("num")
}

/// The table, folded: panels side by side. There is none where nothing would be in it.
pub(super) fn of(chart: &Chart) -> Markup {
    let rows = rows(chart);
    if rows.is_empty() {
        return html! {};
    }
    let mut columns = vec![Column::text("row"), Column::text(chart.x_title)];
    columns.extend(
        chart
            .panels
            .iter()
            .map(|panel| Column::number("").titled(titled(panel))),
    );
    html! { details { summary { "Table" } (render(&columns, &rows)) } }
}

fn titled(panel: &Panel) -> String {
    match &panel.band[..] {
        "" => panel.title.clone(),
        band => format!("{band}: {}", panel.title),
    }
}

/// Returns a row for a series at an x, with the value in each panel.
fn rows(chart: &Chart) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (at, panel) in (2..).zip(&chart.panels) {
        for series in &panel.series {
            for point in series.points.iter().filter(|point| is_listed(point)) {
                let names = [series.name.clone(), shown(panel, point)];
                // Trials have the same names: the first in each panel goes with the first in the others.
                let is_own = |row: &Vec<String>| row[..2] == names && row[at] == NOTHING;
                let place = rows.iter().position(is_own).unwrap_or_else(|| {
                    let mut row = names.to_vec();
                    row.resize(2 + chart.panels.len(), NOTHING.to_owned());
                    rows.push(row);
                    rows.len() - 1
                });
                rows[place][at] = panel.shown(point);
            }
        }
    }
    rows
}

/// Cells of a heatmap are too many to be read.
fn is_listed(point: &Point) -> bool {
    !matches!(point.mark, Mark::Cell { .. })
}

fn shown(panel: &Panel, point: &Point) -> String {
    match (&panel.plane, &point.x) {
        (Some(plane), Exact::Number(number)) => plane.x.unit.shown(*number),
        (_, x) => x.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{chart::Series, unit::PageUnit};

    #[test]
    fn panels_stand_side_by_side_and_trials_below_each_other() {
        let panel = |title: &str, values: [f64; 2]| Panel {
            title: title.to_owned(),
            unit: PageUnit::RATE,
            band: String::new(),
            plane: None,
            scale: crate::page::scale::AxisScale::Linear,
            series: vec![Series {
                name: "tcp".to_owned(),
                colour: 0,
                dashed: false,
                banded: false,
                points: values.map(|value| Point::new(64.0, value)).to_vec(),
            }],
        };
        let mut panels = vec![panel("first", [1.0, 2.0]), panel("second", [3.0, 4.0])];
        panels[1].series[0].points.pop();
        let chart = Chart {
            kind: "k",
            variant: None,
            title: String::new(),
            note: String::new(),
            x_title: "x",
            keys: vec![],
            panels,
            leads: false,
        };
        assert_eq!(
            rows(&chart),
            [
                ["tcp", "64", "1.00 req/s", "3.00 req/s"],
                ["tcp", "64", "2.00 req/s", "-"]
            ]
        );
    }
}
