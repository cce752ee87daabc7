//! The cells of a heatmap, and their sums beside it.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    frame::AxisFrame,
    pen::{PALETTE, class, number},
};
use crate::page::chart::{Mark, Panel, Point};

/// The distance between the plane and the sums, and the longest bar of these.
const GAP: f64 = 4.0;
const LONGEST: f64 = 30.0;

/// Draws a cell. The panel's title names the series of all of them, which are many.
pub(super) fn cell(
    panel: &Panel,
    point: &Point,
    at: &str,
    (until, darkness): (f64, f64),
    frame: &AxisFrame,
) -> Markup {
    let [left, right] = [point.x.value(), until].map(|x| number(frame.x.place(x)));
    let range = point.range.unwrap_or([point.at; 2]);
    let [bottom, top] = range.map(|end| number(frame.y.place(end)));
    html! {
        path."pt" d={ "M" (left) " " (top) "H" (right) "V" (bottom) "H" (left) "z" } fill-opacity=(number(darkness))
            data-x=(maud::display(&point.x)) data-y=(maud::display(&point.y)) {
            title { (at) ": " (panel.shown(point)) }
        }
    }
}

/// Draws the sums of the columns above the plane, and those of the rows at its right.
pub(super) fn margins(panel: &Panel, frame: &AxisFrame) -> Markup {
    let colour = panel.series.first().map_or(0, |series| series.colour);
    let (mut columns, mut rows) = (BTreeMap::new(), BTreeMap::new());
    for point in panel.series.iter().flat_map(|series| &series.points) {
        let (Mark::Cell { until, .. }, Some(range)) = (point.mark, point.range) else {
            continue;
        };
        // Times are whole numbers of nanoseconds.
        let key = |ends: [f64; 2]| ends.map(|end| end as u64);
        *columns.entry(key([point.x.value(), until])).or_insert(0.0) += point.y;
        *rows.entry(key(range)).or_insert(0.0) += point.y;
    }
    let longest = |sums: &BTreeMap<[u64; 2], f64>| sums.values().fold(1.0, |a: f64, b| a.max(*b));
    let (widest, tallest) = (longest(&rows), longest(&columns));
    let column = |(ends, sum): (&[u64; 2], &f64)| {
        let [left, right] = ends.map(|end| number(frame.x.place(end as f64)));
        let (bottom, height) = (number(frame.top - GAP), number(sum / tallest * LONGEST));
        format!("M{left} {bottom}v-{height}H{right}v{height}z")
    };
    let row = |(ends, sum): (&[u64; 2], &f64)| {
        let [low, high] = ends.map(|end| number(frame.y.place(end as f64)));
        let (left, length) = (number(frame.right + GAP), number(sum / widest * LONGEST));
        format!("M{left} {low}h{length}V{high}h-{length}z")
    };
    let path: String = columns
        .iter()
        .map(column)
        .chain(rows.iter().map(row))
        .collect();
    html! {
        g class=(class(colour)) color=(PALETTE[colour % PALETTE.len()]) fill="currentColor" {
            path."sums" d=(path) fill-opacity="0.45" {}
        }
    }
}
