//! Charts as SVG.
//!
//! Drawn with the templates of the page, not by a chart library: those for Rust write fixed colours
//! and anonymous shapes, and here every point is an element with the file's numbers, and colours
//! are the reader's theme.

mod key;
mod pen;
mod plane;
mod rows;

use maud::{Markup, PreEscaped, html};

use self::{
    key::key,
    pen::{CHARACTER, LINE, Pen, WIDTH, number, shortened},
};
use super::chart::{Chart, Panel};

/// Most characters of a heading, which is bold.
const LONGEST: usize = (WIDTH / CHARACTER * 0.92) as usize;

/// Most lines of a chart that share planes and a legend; of more, each target has planes of its own.
const MOST_LINES: usize = 4;

/// The height of a plane that is alone in its chart, and of one among others.
const HEIGHTS: [f64; 2] = [190.0, 120.0];

/// The chart as a document of its own.
pub(super) fn standalone(chart: &Chart) -> String {
    let style = html! {
        style { (PreEscaped(include_str!("../chart.css"))) }
        title { (chart.title) }
        rect."ground" width="100%" height="100%" fill="#ffffff" {}
    };
    svg(chart, &style).into_string()
}

/// The chart as an element, with what stands before it.
pub(super) fn svg(chart: &Chart, before: &Markup) -> Markup {
    let mut pen = Pen { y: 4.0 };
    let mut keys = key::of(&chart.panels);
    let draw_plane = if keys.len() <= MOST_LINES {
        plane::draw
    } else {
        keys.clear();
        plane::multiples
    };
    keys.extend(&chart.keys);
    let legend = key(&keys, &mut pen);
    let last = chart.panels.len().saturating_sub(1);
    let draw = |(at, panel): (usize, &Panel)| {
        let top = pen.take(LINE + 6.0) + 1.0;
        let Some(plane) = &panel.plane else {
            return html! { (heading(&panel.title, top)) (rows::draw(panel, &mut pen)) };
        };
        let axes = plane::Axes {
            plane,
            id: format!("{}-{at}", chart.file_stem()),
            height: HEIGHTS[usize::from(last > 0)],
            named: at == last,
        };
        html! { (heading(&panel.title, top)) (draw_plane(panel, &axes, &mut pen)) }
    };
    let panels: Vec<Markup> = chart.panels.iter().enumerate().map(draw).collect();
    let series = chart.panels.iter().flat_map(|panel| &panel.series);
    let count: usize = series.map(|series| series.points.len()).sum();
    html! {
        svg.chart xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (number(pen.y + 2.0)) } role="img"
            aria-label={ (chart.title) ": " (count) " values" }
            font-family="system-ui, sans-serif" font-size="10.5" fill="#1f2328" color="#1f2328" {
            (before)
            (legend)
            @for panel in panels { (panel) }
        }
    }
}

fn heading(title: &str, top: f64) -> Markup {
    html! { text."panel" x="2" y=(number(top + LINE)) font-weight="600" { (shortened(title, LONGEST)) } }
}
