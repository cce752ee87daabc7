//! Lines over the seconds of a window: each with its name at its end, between axes with units.

use super::canvas::{Canvas, PLAIN, Style};

/// Times that are further apart than this factor are drawn on a logarithmic axis.
const FAR_APART: f64 = 5.0;

/// Lines of text from one tick of the vertical axis to the next, at least.
const LINES_PER_TICK: usize = 2;

/// The narrowest and the lowest area for lines.
const LEAST: [usize; 2] = [10, 3];

/// The distances between ticks of the time axis, in seconds.
const SECONDS: [u64; 7] = [1, 2, 5, 10, 20, 30, 60];

/// A line of values, each at a second.
#[derive(Debug, Clone)]
pub(super) struct NamedLine {
    /// Its name, which stands at its end.
    pub(super) name: &'static str,
    pub(super) style: Style,
    /// Seconds with their values, ascending. A line has a gap where a second is missing.
    pub(super) points: Vec<(u64, f64)>,
}

/// Lines over a time axis.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) title: Vec<(Style, String)>,
    pub(super) lines: Vec<NamedLine>,
    /// The first and the last second of the axis.
    pub(super) seconds: [u64; 2],
    /// A logarithmic axis where the values are far apart.
    pub(super) may_be_logarithmic: bool,
    /// A value with its unit.
    pub(super) label: fn(f64) -> String,
}

/// The area of the lines: below the title, and between the axes.
struct Pane {
    left: usize,
    columns: usize,
    rows: usize,
    seconds: [u64; 2],
    scale: Scale,
}

/// Draws the lines, or the title alone where there is no room for them or nothing to draw.
pub(super) fn draw(width: usize, height: usize, mut plot: Plot) -> Canvas {
    let mut canvas = Canvas::new(width, height);
    let mut column = 0;
    for (style, text) in &plot.title {
        column = canvas.write(0, column, style, text);
    }
    let [first, last] = plot.seconds;
    for line in &mut plot.lines {
        let points = &mut line.points;
        points.retain(|(second, value)| (first..=last).contains(second) && value.is_finite());
    }
    let rows = height.saturating_sub(2);
    let values = plot.lines.iter().flat_map(|line| &line.points);
    let values = values.map(|(_, value)| *value);
    let Some(scale) = Scale::of(values, plot.may_be_logarithmic, rows) else {
        return canvas;
    };
    let labels: Vec<_> = scale.ticks.iter().copied().map(plot.label).collect();
    let widest = labels.iter().map(|label| label.chars().count()).max();
    let left = widest.unwrap_or(0) + 1;
    let names = plot.lines.iter().map(|line| line.name.len() + 1).max();
    let columns = width.saturating_sub(left + names.unwrap_or(0));
    if columns < LEAST[0] || rows < LEAST[1] {
        return canvas;
    }
    let pane = Pane {
        left,
        columns,
        rows,
        seconds: plot.seconds,
        scale,
    };
    pane.draw_axes(&mut canvas, width, &labels);
    pane.draw_lines(&mut canvas, &plot.lines);
    pane.draw_names(&mut canvas, &plot.lines);
    canvas
}

impl Pane {
    /// Draws the vertical axis, and the seconds below the lines: as many as have room, with a second that is a round
    /// number each.
    fn draw_axes(&self, canvas: &mut Canvas, width: usize, labels: &[String]) {
        for row in 1..=self.rows {
            canvas.write(row, self.left - 1, PLAIN, "│");
        }
        for (tick, label) in self.scale.ticks.iter().zip(labels) {
            let label = format!("{label:>width$}┤", width = self.left - 1);
            canvas.write(self.row(*tick), 0, PLAIN, &label);
        }
        let [first, last] = self.seconds;
        let longest = format!("{last} s").len() as u64 + 2;
        let length = (last - first).max(1);
        let fits = |step: &u64| step * self.columns as u64 / length >= longest;
        let step = SECONDS.into_iter().find(fits).unwrap_or(length);
        for second in (first.next_multiple_of(step)..=last).step_by(step as usize) {
            let label = format!("{second} s");
            let column = (second - first) as usize * (self.columns - 1) / length as usize;
            let column = (self.left + column).saturating_sub(label.len() / 2);
            let column = column.min(width.saturating_sub(label.len()));
            canvas.write(self.rows + 1, column, PLAIN, &label);
        }
    }

    fn draw_lines(&self, canvas: &mut Canvas, lines: &[NamedLine]) {
        for line in lines {
            for (at, point) in line.points.iter().enumerate() {
                let before = line.points[at.saturating_sub(1)];
                let follows = before.0 + 1 == point.0;
                let start = if follows { before } else { *point };
                canvas.draw(line.style, self.dot(start), self.dot(*point));
            }
        }
    }

    /// Writes the name of each line beside its last value; where two would share a row, the lower one gives way.
    fn draw_names(&self, canvas: &mut Canvas, lines: &[NamedLine]) {
        let end = |line: &NamedLine| {
            let (_, value) = line.points.last()?;
            Some((self.row(*value), line.name, line.style))
        };
        let mut ends: Vec<_> = lines.iter().filter_map(end).collect();
        ends.sort_by_key(|(row, ..)| *row);
        let (mut free, count) = (1, ends.len());
        for ((row, name, style), at) in ends.into_iter().zip(1..) {
            // Those that follow need a row each.
            let row = row.max(free).min((self.rows + at).saturating_sub(count));
            free = row + 1;
            canvas.write(row, self.left + self.columns + 1, style, name);
        }
    }

    /// Returns the dot of a point, of which a character has two by four.
    fn dot(&self, (second, value): (u64, f64)) -> [usize; 2] {
        let [first, last] = self.seconds;
        let right = (second - first) as f64 / (last - first).max(1) as f64;
        let down = self.scale.share_above(value);
        let column = right * (2 * self.columns - 1) as f64;
        let row = down * (4 * self.rows - 1) as f64;
        [
            2 * self.left + column.round() as usize,
            4 + row.round() as usize,
        ]
    }

    fn row(&self, value: f64) -> usize {
        self.dot((self.seconds[0], value))[1] / 4
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
        let begin = all.iter().rposition(|tick| *tick <= low * 1.001);
        let end = all.iter().position(|tick| *tick >= high * 0.999);
        let (begin, end) = (begin.unwrap_or(0), end.unwrap_or(all.len() - 1));
        let ends = [all[begin], all[end]];
        // Of three ticks in a decade, of one, or of one in several decades.
        let mut ways = [1, 3, 6, 9].into_iter().map(|every| {
            let own = (begin..=end).filter(|at| at % every == 0);
            own.map(|at| all[at]).collect::<Vec<f64>>()
        });
        let few = ways.find(|ticks| ticks.len() <= most + 1);
        let ticks = few.filter(|ticks| ticks.len() > 1).unwrap_or(ends.to_vec());
        Self {
            is_logarithmic: true,
            ends,
            ticks,
        }
    }

    /// Returns the share of the axis that is above a value.
    fn share_above(&self, value: f64) -> f64 {
        let mut values = [self.ends[0], self.ends[1], value];
        if self.is_logarithmic {
            values = values.map(f64::log10);
        }
        let [low, high, value] = values;
        ((high - value) / (high - low)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &'static str, points: &[(u64, f64)]) -> NamedLine {
        NamedLine {
            name,
            style: PLAIN,
            points: points.to_vec(),
        }
    }

    fn drawn(lines: Vec<NamedLine>, seconds: [u64; 2], height: usize) -> Vec<String> {
        let plot = Plot {
            title: vec![(PLAIN, "times".to_owned())],
            lines,
            seconds,
            may_be_logarithmic: true,
            label: |value| format!("{value} us"),
        };
        let rows = draw(40, height, plot).rows(false).into_iter();
        rows.map(|row| row.trim_end().to_owned()).collect()
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
        assert!(!scale(0.0, 900.0).is_logarithmic);
        assert_eq!(scale(0.0, 0.0).ticks.last(), Some(&1.0));
        let never = Scale::of([30.0, 900.0].into_iter(), false, 12).unwrap();
        assert!(!never.is_logarithmic);
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
        // At the top of the axis, and at its bottom.
        for (value, height) in (5..9).flat_map(|height| [(5.0, height), (0.0, height)]) {
            let same = |name| line(name, &[(3, value)]);
            let rows = drawn(vec![same("p50"), same("p99")], [0, 20], height);
            let named = |name| rows[1..height - 1].iter().any(|row| row.ends_with(name));
            assert!(named("p50") && named("p99"), "{rows:?}");
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
