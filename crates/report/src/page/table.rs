//! A chart's numbers as a table, for those who do not see the chart.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::chart::{Chart, Exact, Form, Point};

/// A line of the table: a series at an x, and the value in each panel.
struct Line<'a> {
    series: &'a str,
    x: String,
    cells: Vec<Option<String>>,
}

/// The table: panels side by side.
pub(super) fn of(chart: &Chart) -> Markup {
    let lines = lines(chart);
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
                    @for line in &lines {
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
            for point in &series.points {
                let x = point.x.to_string();
                let nth = seen.entry((&series.name, x.clone())).or_default();
                let at = *known.entry((&series.name, x, *nth)).or_insert_with(|| {
                    let cells = vec![None; chart.panels.len()];
                    lines.push(Line { series: &series.name, x: shown(&panel.form, point), cells });
                    lines.len() - 1
                });
                *nth += 1;
                lines[at].cells[column] = Some(panel.shown(point));
            }
        }
    }
    lines
}

fn shown(form: &Form, point: &Point) -> String {
    match (form, &point.x) {
        (_, Exact::Word(word)) => word.clone(),
        (Form::Plane { x, .. }, number) => x.unit.shown(number.value()),
        (Form::Rows, number) => number.to_string(),
    }
}
