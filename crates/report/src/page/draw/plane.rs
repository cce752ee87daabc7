//! Panels with two axes.

use std::slice;

use maud::{Markup, html};

use super::{
    key::{self, key},
    pen::{LINE, PALETTE, Pen, WIDTH, class, number, point, shape},
};
use crate::page::{
    chart::{Guide, GuidePlace, Mark, Panel, Plane, Point, Series},
    scale::{AxisScale, Span},
};

/// Room for the numbers beside the vertical axis.
const LEFT: f64 = 72.0;

/// Where the horizontal axis ends, with room for half a number beyond it.
const RIGHT: f64 = WIDTH - 28.0;

/// More points than this in a panel are drawn small.
const MANY: usize = 40;

/// Most points of a series that all have marks. Of more, those have none that lie nearer to the one
/// before than this, along the horizontal axis: they would cover one another. The line goes through
/// all points, and the table has them.
const MOST_MARKS: usize = 300;
const APART: f64 = 1.0;

/// The height of a plane that one target has to itself.
const SMALL: f64 = 60.0;

/// The distance between ticks of the vertical axis, at least.
const TICK_Y: f64 = 30.0;

/// That of the horizontal axis.
const TICK_X: f64 = 54.0;

/// The axes of a panel.
pub(super) struct Axes<'a> {
    pub(super) plane: &'a Plane,
    pub(super) height: f64,
    /// The name of what its planes have in common, which no other panel of a page has.
    pub(super) id: String,
    /// True where the horizontal axis has a title.
    pub(super) named: bool,
}

/// Both axes, laid out.
struct AxisFrame {
    x: Span,
    y: Span,
    top: f64,
    bottom: f64,
}

/// Draws a panel as one plane.
pub(super) fn draw(panel: &Panel, axes: &Axes<'_>, pen: &mut Pen) -> Markup {
    let top = pen.take(axes.height + 5.0) + 5.0;
    let frame = frame(panel, axes, top, axes.height);
    html! {
        (grid(panel, axes, &frame))
        (numbers(axes, &frame, pen))
        @for own in &axes.plane.guides { (guide(own, &frame)) }
        @for series in &panel.series { (line(panel, axes, series, &frame)) }
    }
}

/// Draws a plane for each target, all with the same axes, and all lines faintly behind its own.
pub(super) fn multiples(panel: &Panel, axes: &Axes<'_>, pen: &mut Pen) -> Markup {
    let keys = key::of(slice::from_ref(panel));
    let mut colours: Vec<usize> = keys.iter().map(|key| key.colour).collect();
    colours.dedup();
    let last = colours.len().saturating_sub(1);
    // Drawn once, and placed behind each.
    let behind = frame(panel, axes, 0.0, SMALL);
    let all = panel
        .series
        .iter()
        .map(|series| joined(series, axes.plane, &behind));
    let all: String = all.collect();
    let plane = |(at, &colour): (usize, &usize)| {
        let own = keys.iter().filter(|key| key.colour == colour);
        let named = key(&own.copied().collect::<Vec<_>>(), pen);
        let top = pen.take(SMALL + 9.0) + 3.0;
        let frame = frame(panel, axes, top, SMALL);
        html! {
            (named)
            (grid(panel, axes, &frame))
            use href={ "#" (axes.id) } y=(number(top)) {}
            @for own in axes.plane.guides.iter().filter(|own| own.colour == colour) { (guide(own, &frame)) }
            @for own in panel.series.iter().filter(|own| own.colour == colour) { (line(panel, axes, own, &frame)) }
            @if at == last { (numbers(axes, &frame, pen)) }
        }
    };
    let planes: Vec<Markup> = colours.iter().enumerate().map(plane).collect();
    html! {
        defs {
            path."context" id=(axes.id) d=(all) fill="none" stroke="#8c959f" stroke-opacity="0.45" stroke-width="0.8" {}
        }
        @for plane in planes { (plane) }
    }
}

fn frame(panel: &Panel, axes: &Axes<'_>, top: f64, height: f64) -> AxisFrame {
    let (plane, bottom) = (axes.plane, top + height);
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let values = points().flat_map(|point| point.range.into_iter().flatten().chain([point.at]));
    let least = panel.unit.least();
    let values = values.map(|value| value.max(least));
    let most = (height / TICK_Y) as usize;
    let mut y = Span::new(plane.y, values, [bottom, top], most);
    y.begin_at(least);
    let ends = |point: &Point| match point.mark {
        Mark::Cell { until, .. } => [point.x.value(), until],
        _ => [point.x.value(); 2],
    };
    let xs = points().flat_map(ends).chain(plane.shaded);
    let most = ((RIGHT - LEFT) / TICK_X) as usize;
    let mut x = Span::new(plane.x.scale, xs.clone(), [LEFT, RIGHT], most);
    match plane.x.scale {
        AxisScale::Linear => x.tighten(xs),
        // Loads that were measured, rather than powers of ten.
        AxisScale::Log => x.tick_at(
            points().map(|point| point.x.value()).collect(),
            TICK_X * 0.8,
        ),
        AxisScale::Nines => x.tick_at(x.ticks().to_vec(), TICK_X * 0.8),
    }
    AxisFrame { x, y, top, bottom }
}

/// Draws lines at the ticks, and the numbers of the vertical axis.
fn grid(panel: &Panel, axes: &Axes<'_>, frame: &AxisFrame) -> Markup {
    let (left, right) = (number(LEFT), number(RIGHT));
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
                path."zero"[panel.unit.least() < 0.0 && *tick == 0.0] d={ "M" (left) " " (y) "H" (right) } {}
            }
            @for tick in frame.x.ticks() {
                @let x = number(frame.x.place(*tick));
                path d={ "M" (x) " " (number(frame.bottom)) "v3" } {}
            }
        }
        g."tick" fill="#57606a" text-anchor="end" {
            @for tick in frame.y.ticks() {
                text x=(number(LEFT - 4.0)) y=(number(frame.y.place(*tick) + 4.0)) { (panel.unit.tick(*tick)) }
            }
        }
    }
}

/// Draws the numbers of the horizontal axis, and its title.
fn numbers(axes: &Axes<'_>, frame: &AxisFrame, pen: &mut Pen) -> Markup {
    let y = number(pen.take(LINE) + LINE - 3.0);
    let title = axes.named.then(|| pen.take(LINE));
    pen.take(3.0);
    html! {
        g."tick" fill="#57606a" text-anchor="middle" {
            @for tick in frame.x.ticks() {
                @let x = frame.x.place(*tick);
                // A long one in the corner would stick out.
                @let corner = x > RIGHT - 4.0;
                text x=(number(if corner { WIDTH - 1.0 } else { x })) y=(y)
                    text-anchor=[corner.then_some("end")] { (axes.plane.x.unit.tick(*tick)) }
            }
        }
        @if let Some(y) = title {
            text."axis-title" x=(number(f64::midpoint(LEFT, RIGHT))) y=(number(y + LINE - 3.0)) text-anchor="middle" {
                (axes.plane.x.title)
            }
        }
    }
}

/// Draws a guide: a line across the plane, and its name.
fn guide(guide: &Guide, frame: &AxisFrame) -> Markup {
    let AxisFrame { top, bottom, .. } = *frame;
    let (path, [x, y]) = match guide.at {
        GuidePlace::X(value) => {
            let x = frame.x.place(value);
            let path = format!("M{} {}V{}", number(x), number(top), number(bottom));
            (path, [x + 3.0, top + 9.0])
        }
        GuidePlace::Y(value) => {
            let y = frame.y.place(value);
            let path = format!("M{} {}H{}", number(LEFT), number(y), number(RIGHT));
            (path, [LEFT + 3.0, y - 2.0])
        }
    };
    let colour = guide.colour;
    html! {
        g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) fill="currentColor" {
            path."guide" d=(path) stroke="currentColor" stroke-width="0.8" stroke-dasharray="1 2" {}
            text x=(number(x)) y=(number(y)) { (guide.name) }
        }
    }
}

/// Draws a series: the line through its points, their error bars, and the points.
fn line(panel: &Panel, axes: &Axes<'_>, series: &Series, frame: &AxisFrame) -> Markup {
    let path = joined(series, axes.plane, frame);
    let marked = marked(series, frame);
    let bars = bars(&marked, frame);
    let points: usize = panel.series.iter().map(|series| series.points.len()).sum();
    let radius = if points > MANY { 1.7 } else { 2.8 };
    html! {
        g class=(class(series.colour)) color=(PALETTE[series.colour % PALETTE.len()]) fill="currentColor" {
            @if !path.is_empty() {
                path."line" d=(path) fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round"
                    stroke-dasharray=[series.dashed.then_some("3 2")] {}
            }
            @if !bars.is_empty() {
                path."bars" d=(bars) fill="none" stroke="currentColor" stroke-width="0.9" stroke-opacity="0.75" {}
            }
            @for each in marked {
                @let at = axes.plane.x.unit.shown(each.x.value());
                @match each.mark {
                    // The panel's title names the series of all its cells, which are many.
                    Mark::Cell { until, darkness } => {
                        path."pt" d=(cell(each, until, frame)) fill-opacity=(number(darkness))
                            data-x=(maud::display(&each.x)) data-y=(maud::display(&each.y)) {
                            title { (at) ": " (panel.shown(each)) }
                        }
                    }
                    _ => {
                        @let (x, y) = (frame.x.place(each.x.value()), frame.y.place(each.at));
                        (point(panel, &series.name, &at, each, &shape(series.colour, series.dashed, x, y, radius)))
                    }
                }
            }
        }
    }
}

/// Returns the points that have marks of their own.
fn marked<'a>(series: &'a Series, frame: &AxisFrame) -> Vec<&'a Point> {
    let place = |point: &Point| frame.x.place(point.x.value());
    let mut marked: Vec<&Point> = Vec::new();
    for point in &series.points {
        let covers = |last: &&Point| {
            point.x != last.x && is_dot(point) && (place(point) - place(last)).abs() < APART
        };
        if series.points.len() <= MOST_MARKS || !marked.last().is_some_and(covers) {
            marked.push(point);
        }
    }
    marked
}

/// Returns the path through the dots of a series.
fn joined(series: &Series, plane: &Plane, frame: &AxisFrame) -> String {
    let mut path = String::new();
    let mut last = f64::NEG_INFINITY;
    for point in series.points.iter().filter(|point| is_dot(point)) {
        let value = point.x.value();
        let is_near = !path.is_empty() && value - last <= plane.joined;
        let start = if is_near { "L" } else { "M" };
        let [x, y] = [frame.x.place(value), frame.y.place(point.at)].map(number);
        path.extend([start, &x, " ", &y]);
        last = value;
    }
    path
}

/// Returns the path of the points' error bars.
fn bars(points: &[&Point], frame: &AxisFrame) -> String {
    let bar = |point: &&Point| {
        let x = number(frame.x.place(point.x.value()));
        let [low, high] = point.range?.map(|end| number(frame.y.place(end)));
        Some(format!("M{x} {low}V{high}m-2.5 0h5M{x} {low}m-2.5 0h5"))
    };
    let dots = points.iter().filter(|point| is_dot(point));
    dots.filter_map(bar).collect()
}

fn is_dot(point: &Point) -> bool {
    point.mark == Mark::Dot
}

/// Returns the outline of a heatmap's cell.
fn cell(point: &Point, until: f64, frame: &AxisFrame) -> String {
    let [left, right] = [point.x.value(), until].map(|x| number(frame.x.place(x)));
    let range = point.range.unwrap_or([point.at; 2]);
    let [bottom, top] = range.map(|end| number(frame.y.place(end)));
    format!("M{left} {top}H{right}V{bottom}H{left}z")
}
