//! Charts as SVG.
//!
//! Drawn with the templates of the page, not by a chart library: those for Rust write fixed colours
//! and anonymous shapes, and here every point is an element with the file's numbers, and colours
//! are the reader's theme.

mod cells;
mod frame;
mod key;
mod labels;
mod pen;
mod plane;
mod rows;

use std::slice;

use maud::{Markup, PreEscaped, html};

pub(super) use self::pen::{NARROW, WIDE};
use self::{
    key::key,
    pen::{LINE, Pen, number, shortened},
};
use super::chart::{Chart, Panel, Plane};

/// Most lines of a chart that share planes and a legend; of more, each target has planes of its own.
const MOST_LINES: usize = 4;

/// The height of a plane that is alone in its chart, and of one among others.
const HEIGHTS: [f64; 2] = [190.0, 120.0];

/// The height of the first plane of a wide chart.
const TALL: f64 = 300.0;

/// The chart as a document of its own.
pub(super) fn standalone(chart: &Chart) -> String {
    let style = html! {
        style { (PreEscaped(include_str!("../chart.css"))) }
        title { (chart.title) }
        rect."ground" width="100%" height="100%" fill="#ffffff" {}
    };
    let width = if chart.leads { WIDE } else { NARROW };
    svg(chart, width, &style).into_string()
}

/// The chart as an element of this width, with what stands before it.
pub(super) fn svg(chart: &Chart, width: f64, before: &Markup) -> Markup {
    let mut pen = Pen { y: 4.0, width };
    let planes = chart.panels.iter().filter(|panel| panel.plane.is_some());
    let planes: Vec<&Panel> = planes.collect();
    // One legend, or, where panels have other lines, one for each.
    let mut keys = key::of(&chart.panels);
    let are_alike = planes
        .iter()
        .all(|panel| key::of(slice::from_ref(panel)).len() == keys.len());
    if !are_alike || keys.len() > MOST_LINES {
        keys.clear();
    }
    keys.extend(&chart.keys);
    let legend = key(&keys, &mut pen);
    let are_rows_together =
        |a: &Panel, b: &Panel| a.plane.is_none() && b.plane.is_none() && (a.band == b.band);
    let mut drawn = 0;
    let mut all = Vec::new();
    for part in chart.panels.chunk_by(are_rows_together) {
        let Some(plane) = &part[0].plane else {
            all.push(rows::draw(part, &mut pen));
            continue;
        };
        let axes = frame::Axes {
            plane,
            xs: xs(chart, plane),
            id: format!("{}-{drawn}-{width}", chart.file_stem()),
            height: match drawn {
                0 if pen.is_wide() => TALL,
                0 if chart.leads => HEIGHTS[0],
                _ => HEIGHTS[usize::from(planes.len() > 1)],
            },
            named: drawn + 1 == planes.len(),
        };
        drawn += 1;
        all.push(on_plane(&part[0], &axes, are_alike, &mut pen));
    }
    let series = chart.panels.iter().flat_map(|panel| &panel.series);
    let count: usize = series.map(|series| series.points.len()).sum();
    let class = if pen.is_wide() { "chart wide" } else { "chart" };
    html! {
        svg class=(class) xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (number(pen.y + 2.0)) } role="img"
            aria-label={ (chart.title) ": " (count) " values" }
            font-family="system-ui, sans-serif" font-size="11.5" fill="#1f2328" color="#1f2328" {
            (before)
            (legend)
            @for part in all { (part) }
        }
    }
}

/// Draws a panel with two axes under its heading; `is_named`: the legend of the chart names its lines.
fn on_plane(panel: &Panel, axes: &frame::Axes<'_>, is_named: bool, pen: &mut Pen) -> Markup {
    let heading = heading(&panel.title, pen.take(LINE + 6.0) + 1.0, pen.width);
    let keys = key::of(slice::from_ref(panel));
    if keys.len() > MOST_LINES {
        return html! { (heading) (plane::multiples(panel, axes, pen)) };
    }
    let legend = if is_named || keys.len() < 2 {
        html! {}
    } else {
        key(&keys, pen)
    };
    html! { (heading) (legend) (plane::draw(panel, axes, pen)) }
}

/// Returns the places on a horizontal axis of all panels that have it.
fn xs(chart: &Chart, plane: &Plane) -> Vec<f64> {
    let is_alike = |panel: &&Panel| {
        let other = panel.plane.as_ref();
        other.is_some_and(|other| other.x.title == plane.x.title)
    };
    chart
        .panels
        .iter()
        .filter(is_alike)
        .flat_map(frame::xs)
        .collect()
}

/// Draws a heading, which is bold, and so wider than other text.
fn heading(title: &str, top: f64, width: f64) -> Markup {
    let most = Pen::characters(width * 0.92);
    html! { text."panel" x="2" y=(number(top + LINE)) font-weight="600" { (shortened(title, most)) } }
}
