//! Charts as SVG.
//!
//! Drawn with the templates of the page, not by a chart library: those for Rust write fixed colours
//! and anonymous shapes, and here every point is an element with the file's numbers, and colours
//! are the reader's theme.

mod pen;
mod plane;
mod rows;

use maud::{Markup, PreEscaped, html};

use self::pen::{LINE, PALETTE, Pen, WIDTH, class, number, shape, shortened};
use super::chart::{Chart, Form, Panel};

/// The chart within a page that has the style sheet.
pub(super) fn inline(chart: &Chart) -> Markup {
    svg(chart, &html! {})
}

/// The chart as a document of its own.
pub(super) fn standalone(chart: &Chart) -> String {
    let style = html! {
        style { (PreEscaped(include_str!("../chart.css"))) }
        title { (chart.title) }
        rect."ground" width="100%" height="100%" fill="#ffffff" {}
    };
    svg(chart, &style).into_string()
}

fn svg(chart: &Chart, before: &Markup) -> Markup {
    let mut pen = Pen { y: 4.0 };
    let legend = legend(chart, &mut pen);
    let last = chart.panels.len().saturating_sub(1);
    let panels: Vec<Markup> = chart
        .panels
        .iter()
        .enumerate()
        .map(|(at, panel)| {
            let title = heading(panel, pen.take(LINE + 8.0) + 3.0);
            let body = match &panel.form {
                Form::Plane(plane) => {
                    let height = if chart.panels.len() == 1 {
                        190.0
                    } else {
                        120.0
                    };
                    let named = at == last;
                    plane::draw(
                        panel,
                        &plane::Axes {
                            plane,
                            height,
                            named,
                        },
                        &mut pen,
                    )
                }
                Form::Rows => rows::draw(panel, &mut pen),
            };
            html! { (title) (body) }
        })
        .collect();
    let count = chart.points().count();
    html! {
        svg.chart xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (number(pen.y + 2.0)) } role="img"
            aria-label={ (chart.title) ": " (count) " values" }
            font-family="system-ui, sans-serif" font-size="9.5" fill="#1f2328" color="#1f2328" {
            (before)
            (legend)
            @for panel in panels { (panel) }
        }
    }
}

fn heading(panel: &Panel, top: f64) -> Markup {
    html! { text."panel" x="2" y=(number(top + LINE)) font-weight="600" { (shortened(&panel.title, 48)) } }
}

/// Draws the legend: the colours of series, or of the parts of bars.
fn legend(chart: &Chart, pen: &mut Pen) -> Markup {
    let mut entries: Vec<(&str, usize, bool)> = chart
        .keys
        .iter()
        .map(|&(name, colour)| (name, colour, false))
        .collect();
    for panel in chart
        .panels
        .iter()
        .filter(|panel| matches!(panel.form, Form::Plane(_)))
    {
        for series in &panel.series {
            let entry = (series.name.as_str(), series.colour, series.dashed);
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    let longest = entries
        .iter()
        .map(|(name, ..)| name.chars().count())
        .max()
        .unwrap_or(0);
    let columns = match longest {
        ..14 => 3,
        14..25 => 2,
        _ => 1,
    };
    let height = entries.len().div_ceil(columns) as f64 * LINE;
    let top = pen.take(height);
    html! {
        @for (at, (name, colour, dashed)) in entries.into_iter().enumerate() {
            @let x = (at % columns) as f64 * WIDTH / columns as f64 + 2.0;
            @let y = top + (at / columns) as f64 * LINE + 7.0;
            g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) stroke="currentColor" fill="currentColor" {
                path."line" d={ "M" (number(x)) " " (number(y)) "h16" } stroke-width="1.6"
                    stroke-dasharray=[dashed.then_some("3 2")] {}
                path d=(shape(colour, dashed, x + 8.0, y, 2.6)) stroke="none" {}
            }
            text x=(number(x + 21.0)) y=(number(y + 3.0)) { (shortened(name, 60)) }
        }
    }
}
