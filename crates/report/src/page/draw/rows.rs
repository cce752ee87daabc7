//! Panels with a row for each series.

use maud::{Markup, html};

use super::pen::{CHARACTER, LINE, Pen, WIDTH, coloured, number, point, shape, shortened};
use crate::page::{
    chart::{Mark, Panel, Point, Series},
    scale::{AxisScale, Span},
    unit::PageUnit,
};

/// Room at a side, for half a number under the axis.
const SIDE: f64 = 34.0;

/// Room at the left where the axis begins at 0.
const NARROW: f64 = 4.0;

/// The thickness of a bar.
const BAR: f64 = 11.0;

/// The height of a row's bar and of what keeps it from the next row.
const BELOW: f64 = BAR + 8.0;

/// Most characters in a line of text.
const LONGEST: usize = (WIDTH / CHARACTER) as usize;

/// The lines of text above each bar of a panel: one, where name and value fit beside each other, or
/// two.
fn lines(panel: &Panel) -> f64 {
    let fits = |series: &Series| {
        let length = series.name.chars().count() + value(panel, series).chars().count();
        length + 2 <= LONGEST
    };
    let is_one = panel.series.iter().all(fits);
    if is_one { 1.0 } else { 2.0 }
}

pub(super) fn draw(panel: &Panel, pen: &mut Pen) -> Markup {
    // A value that is alone needs no axis.
    if let [series] = &panel.series[..]
        && let [only] = &series.points[..]
        && only.mark == Mark::BAR
    {
        return single(panel, only, pen);
    }
    let text = LINE * lines(panel);
    let row_height = text + BELOW;
    let top = pen.take(row_height * panel.series.len() as f64 + 2.0);
    let numbers = pen.take(LINE + 3.0);
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let ends = || {
        points().flat_map(|point| {
            let from = match point.mark {
                Mark::Bar { from, .. } => from,
                Mark::Dot | Mark::Cell { .. } => 0.0,
            };
            let range = point.range.into_iter().flatten();
            let ends = range.chain([from, from + point.at]);
            ends.map(move |end| end.clamp(panel.unit.least(), point.most))
        })
    };
    let left = if ends().any(|end| end < 0.0) {
        SIDE
    } else {
        NARROW
    };
    let mut x = Span::new(AxisScale::Linear, ends(), [left, WIDTH - SIDE], 5);
    x.begin_at(panel.unit.least());
    // Only beside the bars: a line through a name makes it hard to read.
    let beside = |tick: f64| -> String {
        let tick = number(x.place(tick));
        let top = |row: usize| number(top + row as f64 * row_height + text + 1.0);
        let rows = 0..panel.series.len();
        let lines = rows.map(|row| format!("M{tick} {}v{}", top(row), BAR + 4.0));
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
            (row(panel, series, &x, top + at as f64 * row_height, text))
        }
    }
}

/// Draws a value that is alone, with its interval.
fn single(panel: &Panel, only: &Point, pen: &mut Pen) -> Markup {
    let series = &panel.series[0];
    let y = pen.take(LINE + 4.0) + LINE / 2.0;
    let mark = shape(series.colour, false, 8.0, y, 3.0);
    html! {
        (coloured(series.colour, &html! {
            g stroke="none" { (point(panel, &series.name, &only.x.to_string(), only, &mark)) }
        }))
        text."value" x="18" y=(number(y + 4.0)) { (panel.shown(only)) }
    }
}

/// Draws a row, with lines of text so high above its bar.
fn row(panel: &Panel, series: &Series, x: &Span, top: f64, text: f64) -> Markup {
    let bar = top + text + 3.0;
    let has_bar = series.points.iter().any(|point| point.mark != Mark::Dot);
    html! {
        text."row" x="2" y=(number(top + LINE)) {
            (shortened(&series.name, LONGEST))
            @if series.name.chars().count() > LONGEST { title { (series.name) } }
        }
        text."value" x=(number(WIDTH - 2.0)) y=(number(top + text)) text-anchor="end" { (value(panel, series)) }
        @for each in &series.points {
            @let colour = match each.mark { Mark::Bar { colour: Some(colour), .. } => colour, _ => series.colour };
            (coloured(colour, &mark(panel, series, each, has_bar, x, bar)))
        }
    }
}

/// The number at the end of a row: its first, or the whole of which its bars are the parts, if that has one.
fn value(panel: &Panel, series: &Series) -> String {
    let is_part = |point: &&Point| {
        matches!(
            point.mark,
            Mark::Bar {
                colour: Some(_),
                ..
            }
        )
    };
    let parts = || series.points.iter().filter(is_part);
    match series.points.first() {
        // The whole is 100 %.
        _ if panel.unit == PageUnit::CpuShare => String::new(),
        Some(first) if parts().count() < 2 => panel.value(first),
        _ => panel.unit.shown(parts().map(|part| part.at).sum()),
    }
}

fn mark(
    panel: &Panel,
    series: &Series,
    each: &Point,
    over_bar: bool,
    x: &Span,
    top: f64,
) -> Markup {
    let drawn = |path: &str| point(panel, &series.name, &each.x.to_string(), each, path);
    match each.mark {
        Mark::Bar { from, .. } => {
            let ends = [from, from + each.at].map(|end| number(x.place(end)));
            let bar = format!(
                "M{} {}H{}v{BAR}H{}z",
                ends[0],
                number(top),
                ends[1],
                ends[0]
            );
            html! {
                g stroke="none" fill-opacity="0.8" { (drawn(&bar)) }
                (whisker(x, each.range, top))
            }
        }
        Mark::Dot | Mark::Cell { .. } => {
            let dot = shape(series.colour, false, x.place(each.at), top + BAR / 2.0, 3.0);
            html! {
                (whisker(x, each.range, top))
                g."dot"[over_bar] stroke=(if over_bar { "#ffffff" } else { "none" }) stroke-width="0.8" {
                    (drawn(&dot))
                }
            }
        }
    }
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
