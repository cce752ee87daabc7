//! The content of a chart, before it is drawn.

use std::fmt;

use netping_results::estimate::Estimate;

use super::{
    scale::AxisScale,
    unit::{PageUnit, counted},
};
use crate::finding::{at_most, range};

/// A chart: panels one above the other, and how to read them.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Which of the charts it is, as `data-chart` has it.
    pub kind: &'static str,
    /// The variant among charts of its kind.
    pub variant: Option<&'static str>,
    /// Its caption.
    pub title: String,
    /// The explanation under the title.
    pub note: String,
    /// The title of the points' `data-x` in the table.
    pub x_title: &'static str,
    /// The meaning of colours where they do not tell series apart: series without points.
    pub keys: Vec<Series>,
    /// The panels.
    pub panels: Vec<Panel>,
    /// True where it answers the question of its page, and is drawn as wide as that.
    pub leads: bool,
}

impl Chart {
    /// Returns a chart of the panels that have points, without those that have none.
    pub(super) fn new(
        [kind, title, note]: [&'static str; 3],
        x_title: &'static str,
        panels: impl IntoIterator<Item = Panel>,
    ) -> Self {
        let mut panels: Vec<Panel> = panels.into_iter().collect();
        for panel in &mut panels {
            panel.series.retain(|series| !series.points.is_empty());
        }
        panels.retain(|panel| !panel.series.is_empty());
        Self {
            kind,
            variant: None,
            title: title.to_owned(),
            note: note.to_owned(),
            x_title,
            keys: Vec::new(),
            panels,
            leads: false,
        }
    }

    /// The name of its file, without `.svg`.
    pub fn file_stem(&self) -> String {
        let variant = self.variant.map(|variant| format!("-{variant}"));
        self.kind.to_owned() + &variant.unwrap_or_default()
    }
}

/// One pair of axes.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// The unit of the values.
    pub unit: PageUnit,
    /// Heading of the panels whose rows lie side by side where there is room; empty if all panels of the chart
    /// do.
    pub band: String,
    /// Its axes; without them, a row for each series, in which values go to the right.
    pub plane: Option<Plane>,
    /// The scale of rows.
    pub scale: AxisScale,
    /// Its lines or rows.
    pub series: Vec<Series>,
}

impl Panel {
    /// A panel with a row for each series.
    pub(super) fn rows(title: &str, unit: PageUnit, series: Vec<Series>) -> Self {
        Self {
            title: title.to_owned(),
            unit,
            band: String::new(),
            plane: None,
            scale: AxisScale::Linear,
            series,
        }
    }

    /// The panel with two axes.
    pub(super) fn on(self, plane: Plane) -> Self {
        let plane = Some(plane);
        Self { plane, ..self }
    }

    /// Returns a point's value as text: `>1,234 µs` for a lower bound.
    pub(super) fn value(&self, point: &Point) -> String {
        let sign = if point.is_bound { ">" } else { "" };
        sign.to_owned() + &at_most(point.at, point.most, |number| self.unit.shown(number))
    }

    /// Returns a point's value as text, with its interval or what is told beside it.
    pub fn shown(&self, point: &Point) -> String {
        let value = self.value(point);
        if let Some(aside) = &point.aside {
            return format!("{value} ({aside})");
        }
        match point.range {
            Some([low, high]) if matches!(point.mark, Mark::Cell { .. }) => format!(
                "{} that took {} to {}",
                counted(point.y, "responses"),
                self.unit.shown(low),
                self.unit.shown(high)
            ),
            Some(ends) => {
                let plain = |end| at_most(end, point.most, |number| self.unit.plain(number));
                format!("{value} ({})", range(ends, plain))
            }
            None => value,
        }
    }
}

/// Two axes.
#[derive(Debug, Clone)]
pub struct Plane {
    /// The horizontal one.
    pub x: Axis,
    /// The scale of the values.
    pub y: AxisScale,
    /// True where lines join the points of a series.
    pub is_joined: bool,
    /// A grey area from x to x: its ends there.
    pub grey: Vec<(f64, [f64; 2])>,
    /// Events, each with its place on the horizontal axis.
    pub events: Vec<(f64, String)>,
}

impl Plane {
    /// Returns axes with nothing beside the points, which lines join.
    pub(super) fn new(x: Axis, y: AxisScale) -> Self {
        Self {
            x,
            y,
            is_joined: true,
            grey: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// A horizontal axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// Its title, with the unit.
    pub title: &'static str,
    /// The unit of its values.
    pub unit: PageUnit,
    /// Its scale.
    pub scale: AxisScale,
}

impl Axis {
    /// The time since the start of a step's window.
    pub(super) const ELAPSED: Self = Self {
        title: "since the window's start",
        unit: PageUnit::Elapsed,
        scale: AxisScale::Linear,
    };
}

/// The points that belong together: a line, or a row.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its colour's place in the palette.
    pub colour: usize,
    /// True for the secondary one of two with the same colour.
    pub dashed: bool,
    /// True where the intervals of its points make a band.
    pub banded: bool,
    /// The points, in the order in which a line joins them.
    pub points: Vec<Point>,
}

impl Series {
    /// A series that is not dashed.
    pub(super) fn new(name: String, colour: usize, points: Vec<Point>) -> Self {
        Self {
            name,
            colour,
            dashed: false,
            banded: false,
            points,
        }
    }

    /// Returns true if another series is drawn as this one is.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let drawn = |own: &Self| (own.colour, own.dashed);
        self.name == other.name && drawn(self) == drawn(other)
    }
}

/// One number, and where it is drawn.
#[derive(Debug, Clone)]
pub struct Point {
    /// The number or word that `data-x` holds.
    pub x: Exact,
    /// The number that `data-y` holds: an estimate, or one of the file.
    pub y: f64,
    /// The value on the panel's axis, where it is not that number itself.
    pub at: f64,
    /// Its 95 % interval, on the panel's axis.
    pub range: Option<[f64; 2]>,
    /// True where it is a lower bound, because some requests got no reply.
    pub is_bound: bool,
    /// The largest number that is shown as one, on the panel's axis, which does not go beyond it.
    pub most: f64,
    /// What is told in brackets beside its value, where it has no interval.
    pub aside: Option<String>,
    /// The name that stands at it in a plane.
    pub name: Option<String>,
    /// True where it stands out.
    pub stands_out: bool,
    /// Its mark.
    pub mark: Mark,
}

impl Point {
    /// A point drawn at its number.
    pub(super) fn new(x: impl Into<Exact>, y: f64) -> Self {
        Self {
            x: x.into(),
            y,
            at: y,
            range: None,
            is_bound: false,
            most: f64::INFINITY,
            aside: None,
            name: None,
            stands_out: false,
            mark: Mark::Dot,
        }
    }

    /// A point at an estimate.
    pub(super) fn estimated(x: impl Into<Exact>, estimate: Estimate) -> Self {
        Self {
            is_bound: estimate.is_bound,
            range: estimate.interval,
            ..Self::new(x, estimate.value)
        }
    }

    pub(super) fn with_range(self, range: Option<[f64; 2]>) -> Self {
        Self { range, ..self }
    }

    pub(super) fn marked(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }
}

/// The mark of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    /// A dot at its value.
    Dot,
    /// A line at its value, through the middle of its interval.
    Mean,
    /// A bar from 0 up to its value.
    Column {
        /// Its end on the horizontal axis.
        until: f64,
    },
    /// A cell of a heatmap, over its range on the vertical axis.
    Cell {
        /// Its end on the horizontal axis.
        until: f64,
        /// Its darkness, from 0 to 1.
        darkness: f64,
    },
    /// A bar as long as its value.
    Bar {
        /// Where it begins, on the panel's axis.
        from: f64,
        /// Its colour, where that is not its series'.
        colour: Option<usize>,
    },
}

impl Mark {
    /// A bar from 0 in the colour of its series.
    pub(super) const BAR: Self = Self::Bar {
        from: 0.0,
        colour: None,
    };
}

/// A number or a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Exact {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

impl Exact {
    /// The number; 0 for a word.
    pub fn value(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Word(_) => 0.0,
        }
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl From<f64> for Exact {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Exact {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}
