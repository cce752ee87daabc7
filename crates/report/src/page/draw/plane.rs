//! Panels with two axes.

use std::slice;

use maud::{Markup, html};

use super::{
    cells,
    frame::{Axes, AxisFrame, RIGHT, SUMS_ABOVE, has_cells},
    key::{self, key},
    labels::{Labels, apart},
    pen::{DIGIT, LINE, PALETTE, Pen, arrow, class, number, point, shape},
};
use crate::page::chart::{Mark, Panel, Plane, Point, Series};

/// More points than this in a panel are drawn small.
const MANY: usize = 40;

/// Most points of a series that all have marks. Of more, those have none that lie nearer to the one
/// before than this, along both axes: they would cover one another. The line goes through all points, and the table has
/// them.
const MOST_MARKS: usize = 300;
const APART: [f64; 2] = [1.0, 10.0];

/// The height of a plane that one target has to itself.
const SMALL: f64 = 64.0;

/// Draws a panel as one plane.
pub(super) fn draw(panel: &Panel, axes: &Axes<'_>, pen: &mut Pen) -> Markup {
    let above = if has_cells(panel) { SUMS_ABOVE } else { 5.0 };
    let top = pen.take(axes.height + above) + above;
    let frame = AxisFrame::of(panel, axes, [top, top + axes.height], pen.width);
    html! {
        (grid(panel, axes.plane, &frame))
        (numbers(axes, &frame, pen))
        @for series in &panel.series { (line(panel, axes, series, &frame)) }
        @if has_cells(panel) { (cells::margins(panel, &frame)) }
        (events(axes.plane, &frame))
        (names(&panel.series, &frame))
    }
}

/// Draws a plane for each target, all with the same axes, and all lines faintly behind its own.
pub(super) fn multiples(panel: &Panel, axes: &Axes<'_>, pen: &mut Pen) -> Markup {
    let keys = key::of(slice::from_ref(panel));
    let mut colours: Vec<usize> = keys.iter().map(|key| key.colour).collect();
    colours.dedup();
    let last = colours.len().saturating_sub(1);
    // Drawn once, and placed behind each.
    let behind = AxisFrame::of(panel, axes, [0.0, SMALL], pen.width);
    let all = panel
        .series
        .iter()
        .map(|series| joined(series, axes.plane, &behind));
    let all: String = all.collect();
    let plane = |(at, &colour): (usize, &usize)| {
        let own = keys.iter().filter(|key| key.colour == colour);
        let named = key(&own.copied().collect::<Vec<_>>(), pen);
        let top = pen.take(SMALL + 9.0) + 3.0;
        let frame = AxisFrame::of(panel, axes, [top, top + SMALL], pen.width);
        let own: Vec<Series> = panel
            .series
            .iter()
            .filter(|own| own.colour == colour)
            .cloned()
            .collect();
        html! {
            (named)
            (grid(panel, axes.plane, &frame))
            use href={ "#" (axes.id) } y=(number(top)) {}
            @for own in &own { (line(panel, axes, own, &frame)) }
            (names(&own, &frame))
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

/// Draws lines at the ticks of both axes, the numbers of the vertical one, and the grey area.
fn grid(panel: &Panel, plane: &Plane, frame: &AxisFrame) -> Markup {
    let [left, right, top, bottom] = [frame.left, frame.right, frame.top, frame.bottom].map(number);
    let ticks = frame.y.ticks();
    let texts = panel.unit.ticks(ticks);
    html! {
        @if !plane.grey.is_empty() { path."grey" d=(area(plane.grey.iter().copied(), frame)) fill="#8c959f" fill-opacity="0.3" {} }
        g."grid" stroke="#d0d7de" stroke-width="0.6" {
            @for tick in frame.x.ticks() {
                @let x = number(frame.x.place(*tick));
                path d={ "M" (x) " " (top) "V" (bottom) } {}
            }
            @for tick in ticks {
                @let y = number(frame.y.place(*tick));
                path."zero"[panel.unit.least() < 0.0 && *tick == 0.0] d={ "M" (left) " " (y) "H" (right) } {}
            }
        }
        g."tick" fill="#57606a" text-anchor="end" {
            @for (tick, text) in ticks.iter().zip(texts) {
                text x=(number(frame.left - 4.0)) y=(number(frame.y.place(*tick) + 4.0)) { (text) }
            }
        }
    }
}

/// Draws the numbers of the horizontal axis, and its title.
fn numbers(axes: &Axes<'_>, frame: &AxisFrame, pen: &mut Pen) -> Markup {
    let y = number(pen.take(LINE + 2.0) + LINE - 1.0);
    let title = axes.named.then(|| pen.take(LINE));
    pen.take(3.0);
    let ticks = frame.x.ticks();
    let texts = axes.plane.x.unit.ticks(ticks);
    let half = |text: &String| text.chars().count() as f64 * DIGIT / 2.0;
    let place = |at: usize| frame.x.place(ticks[at]);
    let spans = texts
        .iter()
        .enumerate()
        .map(|(at, text)| [place(at) - half(text), place(at) + half(text)]);
    let shown = apart(&spans.collect::<Vec<_>>());
    html! {
        g."tick" fill="#57606a" text-anchor="middle" {
            @for at in shown {
                text x=(number(place(at))) y=(y) { (texts[at]) }
            }
        }
        @if let Some(y) = title {
            text."axis-title" x=(number(f64::midpoint(frame.left, frame.right))) y=(number(y + LINE - 3.0)) text-anchor="middle" {
                (axes.plane.x.title)
            }
        }
    }
}

/// Draws a series: its band, the line through its points, their error bars, and the points.
fn line(panel: &Panel, axes: &Axes<'_>, series: &Series, frame: &AxisFrame) -> Markup {
    let path = joined(series, axes.plane, frame);
    let marked = marked(series, frame);
    let ranges = series
        .points
        .iter()
        .filter_map(|point| Some((point.x.value(), point.range?)));
    let (band, bars) = if series.banded {
        (area(ranges, frame), String::new())
    } else {
        (String::new(), bars(&marked, frame))
    };
    let points: usize = panel.series.iter().map(|series| series.points.len()).sum();
    let radius = if points > MANY || series.banded {
        1.7
    } else {
        2.8
    };
    html! {
        g class=(class(series.colour)) color=(PALETTE[series.colour % PALETTE.len()]) fill="currentColor" {
            @if !band.is_empty() { path."band" d=(band) fill-opacity="0.22" {} }
            @if !path.is_empty() {
                path."line" d=(path) fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round"
                    stroke-dasharray=[series.dashed.then_some("3 2")] {}
            }
            @if !bars.is_empty() {
                path."bars" d=(bars) fill="none" stroke="currentColor" stroke-width="0.9" stroke-opacity="0.75" {}
            }
            @for each in marked {
                @let at = axes.plane.x.unit.shown(each.x.value());
                @let [x, y] = frame.place(each);
                @match each.mark {
                    Mark::Cell { until, darkness } => (cells::cell(panel, each, &at, (until, darkness), frame)),
                    Mark::Column { until } => {
                        @let [from, end] = [x + 0.5, frame.x.place(until) - 0.5].map(number);
                        @let path = format!("M{from} {}V{}H{end}V{}z", number(frame.bottom), number(y), number(frame.bottom));
                        (point(panel, &series.name, &at, each, &path))
                    }
                    _ => {
                        @if each.stands_out {
                            circle."ring" cx=(number(x)) cy=(number(y)) r="7" fill="none" stroke="currentColor" stroke-width="1.6" {}
                        }
                        (point(panel, &series.name, &at, each, &shape(series.colour, series.dashed, x, y, radius)))
                    }
                }
            }
        }
    }
}

/// Draws triangles above the lower axis where something happened, each with its words.
fn events(plane: &Plane, frame: &AxisFrame) -> Markup {
    html! {
        @for (at, words) in &plane.events {
            @let x = number(frame.x.place(*at));
            path."event" d={ "M" (x) " " (number(frame.bottom - 10.0)) "l-5 9h10z" } fill="#a40e26" stroke="#ffffff" { title { (words) } }
        }
    }
}

/// Draws the names of points, those that stand out first, each where it covers nothing.
fn names(series: &[Series], frame: &AxisFrame) -> Markup {
    let mut labels = Labels::new([
        frame.left,
        frame.top,
        frame.right + RIGHT - 2.0,
        frame.bottom,
    ]);
    let points = || {
        series
            .iter()
            .flat_map(|own| own.points.iter().map(move |point| (own.colour, point)))
    };
    let mut named: Vec<_> = points()
        .filter_map(|(colour, point)| Some((colour, point, point.name.as_ref()?)))
        .collect();
    if named.is_empty() {
        return html! {};
    }
    for (_, point) in points() {
        labels.avoid(frame.place(point), radius(point));
    }
    // The ends of a line matter more than what lies between them.
    named.sort_by_key(|(_, point, _)| !point.stands_out);
    html! {
        @for (colour, point, name) in named {
            @if let Some([x, y]) = labels.place(name, frame.place(point), radius(point)) {
                g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) fill="currentColor" {
                    text."name" x=(number(x)) y=(number(y)) font-weight=[point.stands_out.then_some("600")] { (name) }
                }
            }
        }
    }
}

fn radius(point: &Point) -> f64 {
    if point.stands_out { 8.0 } else { 3.0 }
}

/// Returns the points that have marks of their own.
fn marked<'a>(series: &'a Series, frame: &AxisFrame) -> Vec<&'a Point> {
    let mut marked: Vec<&Point> = Vec::new();
    for point in &series.points {
        let covers = |last: &&Point| {
            let ([x, y], [last_x, last_y]) = (frame.place(point), frame.place(last));
            is_dot(point) && (x - last_x).abs() < APART[0] && (y - last_y).abs() < APART[1]
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
    for point in series
        .points
        .iter()
        .filter(|point| is_dot(point) && plane.is_joined)
    {
        let start = if path.is_empty() { "M" } else { "L" };
        let [x, y] = frame.place(point).map(number);
        path.extend([start, &x, " ", &y]);
    }
    path
}

/// Returns the outline of an area between two ends.
fn area(ends: impl Iterator<Item = (f64, [f64; 2])> + Clone, frame: &AxisFrame) -> String {
    let place = |x: f64, y: f64| {
        let [x, y] = [frame.x.place(x), frame.y.place(y)].map(number);
        format!("{x} {y}")
    };
    let upper = ends.clone().map(|(x, [_, high])| place(x, high));
    let mut corners: Vec<String> = upper.collect();
    let mut lower: Vec<String> = ends.map(|(x, [low, _])| place(x, low)).collect();
    lower.reverse();
    corners.extend(lower);
    if corners.is_empty() {
        return String::new();
    }
    format!("M{}z", corners.join("L"))
}

/// Returns the path of the points' error bars; an end beyond the axis is an arrow.
fn bars(points: &[&Point], frame: &AxisFrame) -> String {
    let bar = |point: &&Point| {
        let ends = point.range?;
        let x = frame.x.place(point.x.value());
        let places = ends.map(|end| frame.y.place(end));
        let heads = ends
            .iter()
            .zip(places)
            .zip([1.0, -1.0])
            .map(|((end, y), down)| {
                if frame.y.is_beyond(*end) {
                    arrow([x, y], [0.0, down])
                } else {
                    format!("M{} {}h5", number(x - 2.5), number(y))
                }
            });
        let heads: String = heads.collect();
        let [low, high] = places.map(number);
        Some(format!("M{} {low}V{high}{heads}", number(x)))
    };
    let dots = points.iter().filter(|point| is_dot(point));
    dots.filter_map(bar).collect()
}

fn is_dot(point: &Point) -> bool {
    point.mark == Mark::Dot
}
