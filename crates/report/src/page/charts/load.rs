//! Charts of a value against the load: callers of a closed loop, the planned rate of an open one.

use crate::page::{
    chart::{Axis, Chart, Exact, Form, Mark, Panel, Point, Series},
    scale::Scale,
    strand::{Strand, strands},
    unit::Unit,
};
use netping_results::run::{Run, Step};

/// What a chart shows against the load.
pub(super) struct Against {
    pub(super) kind: &'static str,
    /// What is shown, as the title begins.
    pub(super) title: &'static str,
    pub(super) note: &'static str,
    pub(super) panels: Vec<Finding>,
}

/// What a panel shows.
pub(super) struct Finding {
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    pub(super) scale: Scale,
    /// The value of a step and its interval; absent where there is none.
    pub(super) value: Value,
    /// A second value of the steps of an open loop, and what it is called.
    pub(super) beside: Option<(&'static str, Value)>,
}

/// A number of a step, and its 95 % interval.
type Value = fn(&Step) -> Option<(Exact, Option<[f64; 2]>)>;

/// How requests came about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Callers,
    Planned,
}

/// A chart for closed loops and one for open ones, where there are any.
pub(super) fn charts(runs: &[Run], against: &Against) -> Vec<Chart> {
    let strands = strands(runs);
    [Load::Callers, Load::Planned]
        .into_iter()
        .filter_map(|load| chart(&strands, against, load))
        .collect()
}

fn chart(strands: &[Strand<'_>], against: &Against, load: Load) -> Option<Chart> {
    let mut loads: Vec<Exact> = strands
        .iter()
        .flat_map(|strand| &strand.steps)
        .filter_map(|step| load.of(step))
        .collect();
    loads.dedup();
    let panels: Vec<Panel> = against
        .panels
        .iter()
        .filter_map(|shown| panel(strands, shown, load, &loads))
        .collect();
    let (variant, of, x_title) = match load {
        Load::Callers => (None, "callers", "callers"),
        Load::Planned => (Some("open"), "planned rate", "planned req/s"),
    };
    (!panels.is_empty()).then(|| Chart {
        kind: against.kind,
        variant,
        title: format!("{} against {of}", against.title),
        note: against.note.to_owned(),
        x_title,
        keys: Vec::new(),
        panels,
    })
}

impl Load {
    /// The load of a step, where it is of this kind.
    fn of(self, step: &Step) -> Option<Exact> {
        match (self, step.settings.planned_rate) {
            (Self::Callers, None) => Some(step.settings.callers.into()),
            (Self::Planned, Some(rate)) => Some(rate.into()),
            _ => None,
        }
    }

    fn axis(self) -> Axis {
        match self {
            Self::Callers => Axis {
                title: "callers",
                unit: Unit::Count("callers"),
                scale: Scale::Log,
            },
            Self::Planned => Axis {
                title: "planned rate, req/s",
                unit: Unit::Rate,
                scale: Scale::Linear,
            },
        }
    }
}

/// `loads` are those of all steps; of a single one, a line has nothing to show, and rows compare better.
fn panel(strands: &[Strand<'_>], shown: &Finding, load: Load, loads: &[Exact]) -> Option<Panel> {
    let mut series = Vec::new();
    for strand in strands {
        let mut add = |name: String, dashed: bool, value: Value| {
            let mut points: Vec<Point> = strand
                .steps
                .iter()
                .filter_map(|step| {
                    let (y, range) = value(step)?;
                    Some(Point::new(load.of(step)?, y).with_range(range))
                })
                .collect();
            points.sort_by(|a, b| a.x.value().total_cmp(&b.x.value()));
            if !points.is_empty() {
                series.push(Series {
                    name,
                    colour: strand.colour,
                    dashed,
                    points,
                });
            }
        };
        add(strand.name.clone(), false, shown.value);
        if let (Load::Planned, Some((name, value))) = (load, shown.beside) {
            add(format!("{}, {name}", strand.name), true, value);
        }
    }
    let (title, form) = if let [single] = loads {
        for series in &mut series {
            if let [only] = series.points.as_mut_slice() {
                only.mark = Mark::BAR;
            }
        }
        (
            format!(
                "{} at {}",
                shown.title,
                load.axis().unit.shown(single.value())
            ),
            Form::Rows,
        )
    } else {
        (
            shown.title.to_owned(),
            Form::Plane {
                x: load.axis(),
                y: shown.scale,
                shaded: None,
            },
        )
    };
    (!series.is_empty()).then_some(Panel {
        title,
        unit: shown.unit,
        form,
        series,
    })
}
