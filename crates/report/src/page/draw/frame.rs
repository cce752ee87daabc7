//! The axes of a panel: where on the page its values are.

use crate::page::{
    chart::{Mark, Panel, Plane, Point},
    scale::{AxisScale, Span, within_reach},
};

/// Room for the numbers beside the vertical axis.
const LEFT: f64 = 68.0;

/// Room for half a number beyond the horizontal axis.
pub(super) const RIGHT: f64 = 28.0;

/// Room for the sums of a heatmap's columns above the plane, and for those of its rows at its right.
pub(super) const SUMS_ABOVE: f64 = 36.0;
const SUMS_RIGHT: f64 = 40.0;

/// The distance between ticks of the vertical axis, at least.
const TICK_Y: f64 = 30.0;

/// That of the horizontal axis.
const TICK_X: f64 = 62.0;

/// The axes of a panel.
pub(super) struct Axes<'a> {
    pub(super) plane: &'a Plane,
    pub(super) height: f64,
    /// The places on the horizontal axis of all panels that have this one.
    pub(super) xs: Vec<f64>,
    /// The name of what its planes have in common, which no other panel of a page has.
    pub(super) id: String,
    /// True where the horizontal axis has a title.
    pub(super) named: bool,
}

/// Both axes, laid out.
pub(super) struct AxisFrame {
    pub(super) x: Span,
    pub(super) y: Span,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl AxisFrame {
    pub(super) fn of(panel: &Panel, axes: &Axes<'_>, [top, bottom]: [f64; 2], width: f64) -> Self {
        let plane = axes.plane;
        let margin = if has_cells(panel) { SUMS_RIGHT } else { RIGHT };
        let (left, right) = (LEFT, width - margin);
        let points = || panel.series.iter().flat_map(|series| &series.points);
        let mut y = Span::new(
            plane.y,
            values(panel, plane).into_iter(),
            [bottom, top],
            ((bottom - top) / TICK_Y) as usize,
        );
        y.begin_at(panel.unit.least());
        let xs = axes.xs.iter().copied();
        let most = ((right - left) / TICK_X) as usize;
        let mut x = Span::new(plane.x.scale, xs.clone(), [left, right], most);
        match plane.x.scale {
            AxisScale::Linear | AxisScale::Close => x.tighten(xs),
            // Loads that were measured, rather than powers of ten.
            AxisScale::Log if points().all(|point| point.mark == Mark::Dot) => x.tick_at(
                points().map(|point| point.x.value()).collect(),
                TICK_X * 0.8,
            ),
            AxisScale::Log => {}
            AxisScale::Odds => x.tick_at(x.ticks().to_vec(), TICK_X * 0.8),
        }
        Self {
            x,
            y,
            left,
            right,
            top,
            bottom,
        }
    }

    pub(super) fn place(&self, point: &Point) -> [f64; 2] {
        [self.x.place(point.x.value()), self.y.place(point.at)]
    }
}

/// Returns the places of a panel's points on its horizontal axis.
pub(super) fn xs(panel: &Panel) -> impl Iterator<Item = f64> {
    let points = panel.series.iter().flat_map(|series| &series.points);
    points.flat_map(|point| match point.mark {
        Mark::Cell { until, .. } | Mark::Column { until } => [point.x.value(), until],
        _ => [point.x.value(); 2],
    })
}

/// Returns the values that the vertical axis has room for.
fn values(panel: &Panel, plane: &Plane) -> Vec<f64> {
    let least = panel.unit.least();
    let mut marks = Vec::new();
    let mut ends = Vec::new();
    for point in panel.series.iter().flat_map(|series| &series.points) {
        let range = point.range.into_iter().flatten();
        if let Mark::Cell { .. } = point.mark {
            marks.extend(range);
        } else {
            marks.push(point.at);
            ends.extend(range.map(|end| end.max(least)));
        }
    }
    let grey = plane.grey.iter().flat_map(|(_, ends)| *ends);
    ends.extend(grey.map(|end| end.max(least)));
    let within = within_reach(plane.y, &marks, &ends);
    marks.extend(within);
    marks
}

/// Returns true for a heatmap.
pub(super) fn has_cells(panel: &Panel) -> bool {
    let mut points = panel.series.iter().flat_map(|series| &series.points);
    points.any(|point| matches!(point.mark, Mark::Cell { .. }))
}
