//! A chart's numbers as a table, for those who do not see the chart.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::chart::{Chart, Exact, Form, Mark, Point};

/// A line of the table: a series at an x, and the value in each panel.
struct Line<'a> {
    series: &'a str,
    x: String,
    cells: Vec<Option<String>>,
}

/// The table, folded: panels side by side. There is none where nothing would be in it.
pub(super) fn of(chart: &Chart) -> Markup {
    let lines = lines(chart);
    if lines.is_empty() {
        return html! {};
    }
    html! { details { summary { "Table" } (table(chart, &lines)) } }
}

fn table(chart: &Chart, lines: &[Line<'_>]) -> Markup {
    html! {
        div."wide" {
            table {
                thead {
                    tr {
                        th scope="col" { "series" }
                        th scope="col" { (chart.x_title) }
                        @for panel in &chart.panels { th."num" scope="col" { (panel.title) } }
                    }
                }
                tbody {
                    @for line in lines {
                        tr {
                            th scope="row" { (line.series) }
                            td { (line.x) }
                            @for cell in &line.cells { td."num" { (cell.as_deref().unwrap_or("-")) } }
                        }
                    }
                }
            }
        }
    }
}

fn lines(chart: &Chart) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    // Trials have the same series and x: the first in each panel goes with the first in the others.
    let mut known: BTreeMap<(&str, String, usize), usize> = BTreeMap::new();
    for (column, panel) in chart.panels.iter().enumerate() {
        let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for series in &panel.series {
            for point in series.points.iter().filter(|point| is_listed(point)) {
                let x = point.x.to_string();
                let nth = seen.entry((&series.name, x.clone())).or_default();
                let at = *known.entry((&series.name, x, *nth)).or_insert_with(|| {
                    let cells = vec![None; chart.panels.len()];
                    lines.push(Line {
                        series: &series.name,
                        x: shown(&panel.form, point),
                        cells,
                    });
                    lines.len() - 1
                });
                *nth += 1;
                lines[at].cells[column] = Some(panel.shown(point));
            }
        }
    }
    lines
}

/// Cells of a heatmap are too many to be read.
fn is_listed(point: &Point) -> bool {
    !matches!(point.mark, Mark::Cell { .. })
}

fn shown(form: &Form, point: &Point) -> String {
    match (form, &point.x) {
        (_, Exact::Word(word)) => word.clone(),
        (Form::Plane(plane), number) => plane.x.unit.shown(number.value()),
        (Form::Rows, number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{
        chart::{Panel, Series},
        unit::Unit,
    };

    #[test]
    fn panels_stand_side_by_side_and_trials_below_each_other() {
        let panel = |title: &str, values: [f64; 2]| Panel {
            title: title.to_owned(),
            unit: Unit::RATE,
            form: Form::Rows,
            series: vec![Series {
                name: "tcp".to_owned(),
                colour: 0,
                dashed: false,
                points: values.map(|value| Point::new(64_u64, value)).to_vec(),
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
        };
        let cells: Vec<Vec<Option<String>>> =
            lines(&chart).into_iter().map(|line| line.cells).collect();
        let cell = |text: &str| Some(text.to_owned());
        assert_eq!(
            cells,
            [[cell("1 req/s"), cell("3 req/s")], [cell("2 req/s"), None]]
        );
    }
}
