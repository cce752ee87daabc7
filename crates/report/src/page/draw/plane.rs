//! Panels with two axes.

use maud::{Markup, html};

use super::pen::{LINE, PALETTE, Pen, WIDTH, class, middle, number, point, shape};
use crate::page::{
    chart::{Joined, Panel, Plane, Point, Series},
    scale::{Scale, Span},
};

/// Room for the numbers beside the vertical axis.
const LEFT: f64 = 56.0;

/// Room for half a number beyond the horizontal axis.
const RIGHT: f64 = 20.0;

/// More points than this in a panel are drawn small.
const MANY: usize = 40;

/// The axes of a panel.
pub(super) struct Axes<'a> {
    pub(super) plane: &'a Plane,
    pub(super) height: f64,
    /// True where the horizontal axis has a title.
    pub(super) named: bool,
}

/// Both axes, laid out.
struct Frame {
    x: Span,
    y: Span,
    top: f64,
    bottom: f64,
}

pub(super) fn draw(panel: &Panel, axes: &Axes<'_>, pen: &mut Pen) -> Markup {
    let top = pen.take(axes.height + 5.0) + 5.0;
    let frame = frame(panel, axes, top);
    let numbers = pen.take(LINE);
    let title = axes.named.then(|| pen.take(LINE));
    pen.take(3.0);
    let points = panel
        .series
        .iter()
        .map(|series| series.points.len())
        .sum::<usize>();
    let radius = if points > MANY { 1.7 } else { 2.8 };
    html! {
        (grid(panel, axes, &frame, numbers))
        @if let Some(y) = title {
            text."axis-title" x=(number(f64::midpoint(LEFT, WIDTH - RIGHT))) y=(number(y + LINE - 2.0)) text-anchor="middle" {
                (axes.plane.x.title)
            }
        }
        @for (value, colour) in &axes.plane.knees { (knee(frame.x.place(*value), *colour, &frame)) }
        @for series in &panel.series { (line(panel, axes, series, &frame, radius)) }
    }
}

fn frame(panel: &Panel, axes: &Axes<'_>, top: f64) -> Frame {
    let bottom = top + axes.height;
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let values = points().flat_map(|point| {
        [point.at]
            .into_iter()
            .chain(point.range.into_iter().flatten())
    });
    // An interval below 0 is no reason for an axis below 0.
    let values = values.map(|value| value.max(0.0));
    let y = Span::new(axes.plane.y, values, [bottom, top], 4);
    let xs = points().map(|point| point.x.value());
    let mut x = Span::new(
        axes.plane.x.scale,
        xs.clone().chain(axes.plane.shaded),
        [LEFT, WIDTH - RIGHT],
        6,
    );
    match axes.plane.x.scale {
        Scale::Linear => x.tighten(xs.chain(axes.plane.shaded)),
        // Loads that were measured, rather than powers of ten.
        Scale::Log => x.tick_at(xs.collect(), 28.0),
        Scale::Nines => {}
    }
    Frame { x, y, top, bottom }
}

/// Lines at the ticks, and their numbers.
fn grid(panel: &Panel, axes: &Axes<'_>, frame: &Frame, numbers: f64) -> Markup {
    let (left, right) = (number(LEFT), number(WIDTH - RIGHT));
    html! {
        @if let Some(from) = axes.plane.shaded {
            @let x = frame.x.place(from);
            rect."shade" x=(number(x)) y=(number(frame.top)) width=(number(frame.x.place(0.0) - x))
                height=(number(frame.bottom - frame.top)) fill="#8c959f" fill-opacity="0.25" {
                title { "warm-up: not measured" }
            }
        }
        g."grid" stroke="#d0d7de" stroke-width="0.6" {
            @for tick in frame.y.ticks() {
                @let y = number(frame.y.place(*tick));
                path d={ "M" (left) " " (y) "H" (right) } {}
            }
            @for tick in frame.x.ticks() {
                @let x = number(frame.x.place(*tick));
                path d={ "M" (x) " " (number(frame.bottom)) "v3" } {}
            }
        }
        g."tick" fill="#57606a" {
            g text-anchor="end" {
                @for tick in frame.y.ticks() {
                    text x=(number(LEFT - 4.0)) y=(number(frame.y.place(*tick) + 3.2)) { (panel.unit.tick(*tick)) }
                }
            }
            g text-anchor="middle" {
                @for tick in frame.x.ticks() {
                    @let x = frame.x.place(*tick);
                    // A long one in the corner would stick out.
                    @let corner = x > WIDTH - RIGHT - 4.0;
                    text x=(number(if corner { WIDTH - 1.0 } else { x })) y=(number(numbers + LINE - 3.0))
                        text-anchor=[corner.then_some("end")] { (axes.plane.x.unit.tick(*tick)) }
                }
            }
        }
    }
}

/// A knee: a line, and its name at the top.
fn knee(x: f64, colour: usize, frame: &Frame) -> Markup {
    html! {
        g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) fill="currentColor" {
            path."knee" d={ "M" (number(x)) " " (number(frame.top)) "V" (number(frame.bottom)) } stroke="currentColor"
                stroke-width="0.8" stroke-dasharray="1 2" {}
            text x=(number(x + 3.0)) y=(number(frame.top + 8.0)) { "knee" }
        }
    }
}

/// A series: the line through its means, their error bars, and its points.
fn line(panel: &Panel, axes: &Axes<'_>, series: &Series, frame: &Frame, radius: f64) -> Markup {
    let mut path = String::new();
    let mut last = None;
    let mut bars = Vec::new();
    for points in series.points.chunk_by(|a, b| a.x == b.x) {
        let points: Vec<&Point> = points.iter().collect();
        let Some((mean, range)) = middle(&points) else {
            continue;
        };
        let value = points[0].x.value();
        let x = number(frame.x.place(value));
        let is_near = |last: f64| match axes.plane.joined {
            Joined::All => true,
            Joined::Within(most) => value - last <= most,
            Joined::None => false,
        };
        let start = if last.is_some_and(is_near) { "L" } else { "M" };
        last = Some(value);
        path.extend([start, &x, " ", &number(frame.y.place(mean))]);
        if let Some([low, high]) = range {
            let (low, high) = (number(frame.y.place(low)), number(frame.y.place(high)));
            bars.push(format!("M{x} {low}V{high}m-2.5 0h5M{x} {low}m-2.5 0h5"));
        }
    }
    html! {
        g class=(class(series.colour)) color=(PALETTE[series.colour % PALETTE.len()]) fill="currentColor" {
            path."line" d=(path) fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round"
                stroke-dasharray=[series.dashed.then_some("3 2")] {}
            @if !bars.is_empty() {
                path."bars" d=(bars.concat()) fill="none" stroke="currentColor" stroke-width="0.9" stroke-opacity="0.75" {}
            }
            @for each in &series.points {
                @let (x, y) = (frame.x.place(each.x.value()), frame.y.place(each.at));
                @let at = axes.plane.x.unit.shown(each.x.value());
                (point(panel, &series.name, &at, each, &shape(series.colour, series.dashed, x, y, radius)))
            }
        }
    }
}
