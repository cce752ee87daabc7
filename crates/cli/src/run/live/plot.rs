//! Lines over the seconds of a window: each with its name at its end, between axes with units.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style},
    symbols::Marker,
    text::Line as Text,
    widgets::canvas::{Canvas, Line as Stroke, Points},
};

/// Times that are further apart than this factor are drawn on a logarithmic axis.
const FAR_APART: f64 = 5.0;

/// Lines of text from one tick of the vertical axis to the next, at least.
const LINES_PER_TICK: usize = 2;

/// The narrowest and the lowest area for lines.
const LEAST: [u16; 2] = [10, 3];

/// The distances between ticks of the time axis, in seconds.
const SECONDS: [u64; 7] = [1, 2, 5, 10, 20, 30, 60];

/// A line of values, each at a second.
#[derive(Debug, Clone)]
pub(super) struct NamedLine {
    /// Its name, which stands at its end.
    pub(super) name: &'static str,
    pub(super) colour: Color,
    /// Seconds with their values, ascending. A line has a gap where a second is missing.
    pub(super) points: Vec<(u64, f64)>,
}

/// Lines over a time axis.
#[derive(Debug)]
pub(super) struct Plot<'a> {
    pub(super) title: Text<'a>,
    pub(super) lines: Vec<NamedLine>,
    /// The first and the last second of the axis.
    pub(super) seconds: [u64; 2],
    /// A logarithmic axis where the values are far apart.
    pub(super) may_be_logarithmic: bool,
    /// A value with its unit.
    pub(super) label: fn(f64) -> String,
}

/// Draws the lines, or the title alone where there is no room for them or nothing to draw.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, mut plot: Plot<'_>) {
    for line in &mut plot.lines {
        line.points.retain(|(second, value)| {
            (plot.seconds[0]..=plot.seconds[1]).contains(second) && value.is_finite()
        });
    }
    let [title, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    frame.render_widget(&plot.title, title);
    let rows = rest.height.saturating_sub(1);
    let values = plot.lines.iter().flat_map(|line| &line.points);
    let values = values.map(|(_, value)| *value);
    let Some(scale) = Scale::of(values, plot.may_be_logarithmic, rows.into()) else {
        return;
    };
    let labels: Vec<(u16, String)> = scale
        .ticks
        .iter()
        .map(|tick| (scale.row(*tick, rows), (plot.label)(*tick)))
        .collect();
    let widest = labels.iter().map(|(_, label)| label.chars().count()).max();
    let names = plot.lines.iter().map(|line| line.name.len() + 1).max();
    let left = widest.unwrap_or(0) as u16 + 1;
    let right = names.unwrap_or(0) as u16;
    let columns = rest.width.saturating_sub(left + right);
    if columns < LEAST[0] || rows < LEAST[1] {
        return;
    }
    let inner = Rect {
        x: rest.x + left,
        width: columns,
        height: rows,
        ..rest
    };
    draw_vertical_axis(frame, inner, left, &labels);
    draw_time_axis(frame, rest, inner, plot.seconds);
    draw_lines(frame, inner, &plot, &scale);
    draw_names(frame, inner, &plot.lines, &scale);
}

fn draw_vertical_axis(frame: &mut Frame<'_>, inner: Rect, left: u16, labels: &[(u16, String)]) {
    let buffer = frame.buffer_mut();
    for row in 0..inner.height {
        buffer.set_string(inner.x - 1, inner.y + row, "│", Style::new());
    }
    for (row, label) in labels {
        let (y, width) = (inner.y + row, label.chars().count() as u16);
        buffer.set_string(inner.x - left + (left - 1 - width), y, label, Style::new());
        buffer.set_string(inner.x - 1, y, "┤", Style::new());
    }
}

/// Draws the seconds below the lines: as many as have room, with a second that is a round number
/// each.
fn draw_time_axis(frame: &mut Frame<'_>, rest: Rect, inner: Rect, seconds: [u64; 2]) {
    let [first, last] = seconds;
    let longest = format!("{last} s").len() as u64 + 2;
    let length = (last - first).max(1);
    let room = u64::from(inner.width);
    let fits = |step: &u64| step * room / length >= longest;
    let step = SECONDS.into_iter().find(fits).unwrap_or(length);
    let buffer = frame.buffer_mut();
    for second in (first.next_multiple_of(step)..=last).step_by(step as usize) {
        let label = format!("{second} s");
        let width = label.len() as u16;
        let column = ((second - first) * (room - 1) / length) as u16;
        let x = (inner.x + column).saturating_sub(width / 2);
        let x = x.clamp(rest.x, rest.right().saturating_sub(width).max(rest.x));
        buffer.set_string(x, inner.bottom(), &label, Style::new());
    }
}

fn draw_lines(frame: &mut Frame<'_>, inner: Rect, plot: &Plot<'_>, scale: &Scale) {
    let [first, last] = plot.seconds;
    let canvas = Canvas::default()
        .marker(Marker::Braille)
        .x_bounds([first as f64, last.max(first + 1) as f64])
        .y_bounds(scale.ends.map(|end| scale.place(end)))
        .paint(|context| {
            for line in &plot.lines {
                let at = |(second, value): (u64, f64)| (second as f64, scale.place(value));
                let points: Vec<_> = line.points.iter().copied().map(at).collect();
                context.draw(&Points::new(&points, line.colour));
                for pair in line
                    .points
                    .windows(2)
                    .filter(|pair| pair[0].0 + 1 == pair[1].0)
                {
                    let ((x1, y1), (x2, y2)) = (at(pair[0]), at(pair[1]));
                    context.draw(&Stroke::new(x1, y1, x2, y2, line.colour));
                }
            }
        });
    frame.render_widget(canvas, inner);
}

/// Writes the name of each line beside its last value; where two would share a row, the lower one gives way.
fn draw_names(frame: &mut Frame<'_>, inner: Rect, lines: &[NamedLine], scale: &Scale) {
    let end = |line: &NamedLine| {
        let (_, value) = line.points.last()?;
        Some((scale.row(*value, inner.height), line.name, line.colour))
    };
    let mut ends: Vec<_> = lines.iter().filter_map(end).collect();
    ends.sort_by_key(|(row, ..)| *row);
    let mut free = 0;
    let count = ends.len() as u16;
    for ((row, name, colour), at) in ends.into_iter().zip(1..) {
        // Those that follow need a row each.
        let row = row
            .max(free)
            .min(inner.height.saturating_sub(count + 1 - at));
        free = row + 1;
        let style = Style::new().fg(colour);
        frame
            .buffer_mut()
            .set_string(inner.right() + 1, inner.y + row, name, style);
    }
}

/// A vertical axis.
#[derive(Debug, PartialEq)]
struct Scale {
    is_logarithmic: bool,
    ends: [f64; 2],
    ticks: Vec<f64>,
}

impl Scale {
    /// Returns an axis for these values, on so many lines of text; `None` without values.
    fn of(
        values: impl Iterator<Item = f64>,
        may_be_logarithmic: bool,
        rows: usize,
    ) -> Option<Self> {
        let nothing = [f64::INFINITY, f64::NEG_INFINITY];
        let [low, high] = values.fold(nothing, |[low, high], value| {
            [low.min(value), high.max(value)]
        });
        let most = (rows / LINES_PER_TICK).max(1);
        if low > high {
            None
        } else if may_be_logarithmic && low > 0.0 && high / low > FAR_APART {
            Some(Self::logarithmic(low, high, most))
        } else {
            Some(Self::linear(high.max(1.0), most))
        }
    }

    /// Returns an axis from 0 to a tick at or above `high`.
    fn linear(high: f64, most: usize) -> Self {
        let rough = high / most as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let mut steps = [1.0, 2.0, 5.0, 10.0].iter().map(|factor| factor * power);
        let step = steps.find(|step| *step >= rough * 0.999).unwrap_or(high);
        let last = (high / step * 0.999).ceil();
        Self {
            is_logarithmic: false,
            ends: [0.0, last * step],
            ticks: (0..=last as u64).map(|tick| tick as f64 * step).collect(),
        }
    }

    /// Returns an axis between ticks of 1, 2 and 5 times powers of ten; those of them that have room are
    /// shown.
    fn logarithmic(low: f64, high: f64, most: usize) -> Self {
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all: Vec<f64> = powers
            .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power)))
            .collect();
        let begin = all
            .iter()
            .rposition(|tick| *tick <= low * 1.001)
            .unwrap_or(0);
        let end = all.iter().position(|tick| *tick >= high * 0.999);
        let end = end.unwrap_or(all.len() - 1);
        let ends = [all[begin], all[end]];
        // Of three ticks in a decade, of one, or of one in several decades.
        let thinned = |every: usize| {
            let own = all.iter().enumerate().take(end + 1).skip(begin);
            let own = own.filter(move |(at, _)| at % every == 0);
            own.map(|(_, tick)| *tick).collect::<Vec<f64>>()
        };
        let mut ways = [1, 3, 6, 9].map(thinned).into_iter();
        let few = ways.find(|ticks| ticks.len() <= most + 1);
        let ticks = few.filter(|ticks| ticks.len() > 1).unwrap_or(ends.to_vec());
        Self {
            is_logarithmic: true,
            ends,
            ticks,
        }
    }

    /// Returns the height of a value on the axis.
    fn place(&self, value: f64) -> f64 {
        if self.is_logarithmic {
            value.log10()
        } else {
            value
        }
    }

    /// Returns the row of a value, from the top, of so many rows.
    fn row(&self, value: f64, rows: u16) -> u16 {
        let [low, high] = self.ends.map(|end| self.place(end));
        let share = ((high - self.place(value)) / (high - low)).clamp(0.0, 1.0);
        // As the canvas rounds, which has four dots in a row.
        let dots = f64::from(4 * rows).max(1.0) - 1.0;
        (share * dots).round() as u16 / 4
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;

    fn line(name: &'static str, points: &[(u64, f64)]) -> NamedLine {
        NamedLine {
            name,
            colour: Color::Reset,
            points: points.to_vec(),
        }
    }

    fn drawn(lines: Vec<NamedLine>, seconds: [u64; 2], height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(40, height)).unwrap();
        let plot = Plot {
            title: "times".into(),
            lines,
            seconds,
            may_be_logarithmic: true,
            label: |value| format!("{value} us"),
        };
        terminal
            .draw(|frame| draw(frame, frame.area(), plot))
            .unwrap();
        let text = terminal.backend().to_string();
        text.lines()
            .map(|line| line.trim_matches('"').trim_end().to_owned())
            .collect()
    }

    #[test]
    fn lines_stand_between_axes_with_units_and_have_names() {
        let steady = |value: f64| -> Vec<(u64, f64)> { (0..=20).map(|at| (at, value)).collect() };
        let lines = vec![line("p50", &steady(10.0)), line("p99", &steady(1000.0))];
        assert_eq!(
            drawn(lines, [0, 20], 7),
            [
                "times",
                "1000 us┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉ p99",
                "       │",
                " 100 us┤",
                "       │",
                "  10 us┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀ p50",
                "       0 s   5 s   10 s   15 s   20 s",
            ]
        );
    }

    #[test]
    fn values_that_are_near_each_other_are_on_a_linear_axis() {
        let scale = |low: f64, high: f64| Scale::of([low, high].into_iter(), true, 12).unwrap();
        assert_eq!(
            scale(30.0, 90.0),
            Scale {
                is_logarithmic: false,
                ends: [0.0, 100.0],
                ticks: vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0],
            }
        );
        assert_eq!(
            scale(30.0, 900.0),
            Scale {
                is_logarithmic: true,
                ends: [20.0, 1000.0],
                ticks: vec![20.0, 50.0, 100.0, 200.0, 500.0, 1000.0],
            }
        );
        // Of three decades, those that have room; of less than one, the ends.
        assert_eq!(scale(1.0, 1e4).ticks, [1.0, 10.0, 100.0, 1e3, 1e4]);
        let low = Scale::of([30.0, 160.0].into_iter(), true, 3).unwrap();
        assert_eq!(low.ticks, [20.0, 200.0]);
        assert_eq!(Scale::of([].into_iter(), true, 12), None);
    }

    #[test]
    fn what_is_no_number_or_not_on_the_axis_is_left_out() {
        let lines = || vec![line("p50", &[(0, f64::NAN), (1, f64::INFINITY), (90, 5.0)])];
        assert_eq!(drawn(lines(), [0, 20], 8)[0], "times");
        assert!(drawn(lines(), [0, 20], 8)[1..].iter().all(String::is_empty));
        assert!(drawn(lines(), [80, 100], 8)[1..].concat().contains("p50"));
    }

    #[test]
    fn names_of_equal_values_do_not_cover_each_other() {
        let same = |name| line(name, &[(3, 5.0)]);
        for height in 5..9 {
            let text = drawn(vec![same("p50"), same("p99")], [0, 20], height).join("\n");
            assert!(text.contains("p50") && text.contains("p99"), "{text}");
        }
    }

    #[test]
    fn a_missing_second_is_a_gap() {
        let dots = |points: &[(u64, f64)]| {
            let text = drawn(vec![line("p50", points)], [0, 20], 7).concat();
            text.chars()
                .filter(|own| ('\u{2801}'..='\u{28ff}').contains(own))
                .count()
        };
        let [whole, broken] = [vec![0, 1, 2, 3], vec![0, 1, 3]]
            .map(|seconds| dots(&seconds.iter().map(|at| (*at, 5.0)).collect::<Vec<_>>()));
        assert!(broken < whole, "{broken} {whole}");
    }
}
