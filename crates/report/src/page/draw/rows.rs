//! Panels with a row for each series.

use maud::{Markup, html};

use super::pen::{LINE, Pen, WIDTH, coloured, middle, number, point, shape, shortened};
use crate::page::{
    chart::{Mark, Panel, Point, Series},
    scale::{Scale, Span},
};

/// Room at a side, for half a number under the axis.
const SIDE: f64 = 26.0;

/// Room at the left where the axis begins at 0.
const NARROW: f64 = 4.0;

/// The thickness of a bar.
const BAR: f64 = 11.0;

/// The height of a row: its name, its bar and what keeps it from the next.
const ROW: f64 = LINE + BAR + 8.0;

/// The longest name that leaves room for a value next to it.
const LONGEST: usize = 44;

pub(super) fn draw(panel: &Panel, pen: &mut Pen) -> Markup {
    let top = pen.take(ROW * panel.series.len() as f64 + 2.0);
    let numbers = pen.take(LINE + 3.0);
    let ends = || {
        panel
            .series
            .iter()
            .flat_map(|series| &series.points)
            .flat_map(|point| {
                let from = match point.mark {
                    Mark::Bar { from, .. } => Some(from),
                    Mark::Dot => None,
                };
                [point.at + from.unwrap_or(0.0)]
                    .into_iter()
                    .chain(from)
                    .chain(point.range.into_iter().flatten())
            })
    };
    let left = if ends().any(|end| end < 0.0) {
        SIDE
    } else {
        NARROW
    };
    let x = Span::new(Scale::Linear, ends(), [left, WIDTH - SIDE], 5);
    // Only beside the bars: a line through a name makes it hard to read.
    let beside = |tick: f64| -> String {
        let from = |row: usize| number(top + row as f64 * ROW + LINE + 1.0);
        let tick = number(x.place(tick));
        let lines =
            (0..panel.series.len()).map(|row| format!("M{tick} {}v{}", from(row), BAR + 4.0));
        lines.collect::<Vec<_>>().concat()
    };
    html! {
        g."grid" stroke="#d0d7de" stroke-width="0.6" {
            @for tick in x.ticks() { path."zero"[*tick == 0.0] d=(beside(*tick)) {} }
        }
        g."tick" fill="#57606a" text-anchor="middle" {
            @for tick in x.ticks() {
                text x=(number(x.place(*tick))) y=(number(numbers + LINE - 3.0)) { (panel.unit.tick(*tick)) }
            }
        }
        @for (at, series) in panel.series.iter().enumerate() {
            (row(panel, series, &x, top + at as f64 * ROW))
        }
    }
}

fn row(panel: &Panel, series: &Series, x: &Span, top: f64) -> Markup {
    let bar = top + LINE + 3.0;
    let dots: Vec<&Point> = series
        .points
        .iter()
        .filter(|point| point.mark == Mark::Dot)
        .collect();
    let has_bar = dots.len() < series.points.len();
    // Values of repeated trials have a mean that no file holds.
    let mean = if has_bar || dots.len() < 2 {
        None
    } else {
        middle(&dots)
    };
    html! {
        text."row" x="2" y=(number(top + LINE)) {
            (shortened(&series.name, LONGEST))
            @if series.name.chars().count() > LONGEST { title { (series.name) } }
        }
        text."value" x=(number(WIDTH - 2.0)) y=(number(top + LINE)) text-anchor="end" { (value(panel, series, mean)) }
        @if let Some((mean, range)) = mean {
            (coloured(series.colour, &html! {
                path d=(bar_path(x, 0.0, mean, bar)) fill-opacity="0.35" stroke="none" {}
                (whisker(x, range, bar))
            }))
        }
        @for each in &series.points {
            @let colour = match each.mark { Mark::Bar { colour: Some(colour), .. } => colour, _ => series.colour };
            (coloured(colour, &mark(panel, series, each, has_bar || mean.is_some(), x, bar)))
        }
    }
}

/// The number at the end of a row: that of its bars, or its mean.
fn value(panel: &Panel, series: &Series, mean: Option<(f64, Option<[f64; 2]>)>) -> String {
    let bars = || series.points.iter().filter(|point| point.mark != Mark::Dot);
    match (mean, series.points.as_slice()) {
        (Some((mean, _)), _) => panel.unit.shown(mean),
        (None, [only]) => panel.unit.shown(only.at),
        (None, _) => panel.unit.shown(bars().map(|point| point.at).sum()),
    }
}

fn mark(
    panel: &Panel,
    series: &Series,
    each: &Point,
    over_bar: bool,
    x: &Span,
    bar: f64,
) -> Markup {
    let named = each.x.to_string();
    match each.mark {
        Mark::Bar { from, .. } => html! {
            g stroke="none" fill-opacity="0.8" {
                (point(panel, &series.name, &named, each, &bar_path(x, from, from + each.at, bar)))
            }
            (whisker(x, each.range, bar))
        },
        Mark::Dot => html! {
            (whisker(x, each.range, bar))
            g."dot"[over_bar] stroke=(if over_bar { "#ffffff" } else { "none" }) stroke-width="0.8" {
                (point(panel, &series.name, &named, each, &shape(series.colour, false, x.place(each.at), bar + BAR / 2.0, 3.0)))
            }
        },
    }
}

fn bar_path(x: &Span, from: f64, to: f64, top: f64) -> String {
    let (from, to) = (number(x.place(from)), number(x.place(to)));
    format!("M{from} {}H{to}v{BAR}H{from}z", number(top))
}

fn whisker(x: &Span, range: Option<[f64; 2]>, top: f64) -> Markup {
    let Some([low, high]) = range.map(|range| range.map(|end| number(x.place(end)))) else {
        return html! {};
    };
    let (cap, middle) = (number(top + 2.0), number(top + BAR / 2.0));
    let height = number(BAR - 4.0);
    html! {
        path."whisker" d={ "M" (low) " " (middle) "H" (high) "M" (low) " " (cap) "v" (height) "M" (high) " " (cap) "v" (height) }
            fill="none" stroke-width="1.2" {}
    }
}
