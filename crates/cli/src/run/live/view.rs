//! The picture of a step.

use netping_measure::counts::Counts;
use netping_report::{bars::bars, table::is_unicode};
use netping_results::format::{nanos_as_micros, thousands};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    symbols::Marker,
    text::{Line, Text},
    widgets::{Axis, Block, Chart, Dataset, GraphType, LineGauge, Paragraph},
};

use super::cpu::CpuUse;
use crate::run::running::{RunningStep, whole_seconds};

/// Below this width, panels stand one above the other.
const WIDE: u16 = 80;

/// The lines of a histogram, with its heading and its frame.
const BARS: u16 = 14;

const KEYS: &str = "n  end this step and keep it    q  end the command";

pub(super) fn draw(frame: &mut Frame<'_>, step: &RunningStep, cpu: &CpuUse) {
    let balances = &cpu.balances;
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(6),
        Constraint::Length(BARS),
        Constraint::Length(balances.len() as u16),
        Constraint::Length(1),
    ];
    let [title, progress, charts, numbers, sharing, keys] =
        Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Line::from(step.what.as_str()).bold(), title);
    self::progress(frame, progress, step);
    let [rate, times] = halves(charts);
    self::rate(frame, rate, step);
    self::times(frame, times, step);
    let [histogram, counts] = halves(numbers);
    let drawn = bars(&step.times, is_unicode(), inner(histogram));
    frame.render_widget(panel("response times so far", drawn), histogram);
    frame.render_widget(panel("so far", self::counts(step, cpu)), counts);
    frame.render_widget(Paragraph::new(balances.join("\n")), sharing);
    frame.render_widget(Line::from(KEYS).dim(), keys);
}

/// Two panels beside each other where there is room, else one above the other.
fn halves(area: Rect) -> [Rect; 2] {
    let each = [Constraint::Percentage(50); 2];
    if area.width >= WIDE {
        Layout::horizontal(each).areas(area)
    } else {
        Layout::vertical(each).areas(area)
    }
}

/// The width within a panel's frame.
fn inner(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(2))
}

fn panel<'a>(title: &'a str, text: impl Into<Text<'a>>) -> Paragraph<'a> {
    Paragraph::new(text).block(block(title))
}

/// A title, and a frame where the terminal can draw one.
fn block<'a>(title: impl Into<Line<'a>>) -> Block<'a> {
    let block = if is_unicode() {
        Block::bordered()
    } else {
        Block::new()
    };
    block.title(title)
}

fn progress(frame: &mut Frame<'_>, area: Rect, step: &RunningStep) {
    let (phase, elapsed) = (step.phase, step.elapsed.as_secs_f64());
    let left = step.left.map(|left| format!(", {}", whole_seconds(left)));
    let label = format!("{phase} {elapsed:.0} s{}", left.unwrap_or_default());
    let planned = step
        .planned
        .map_or(f64::INFINITY, |planned| planned.as_secs_f64());
    let share = elapsed / planned.max(1e-9);
    let [done, ahead] = if is_unicode() {
        ["━", "─"]
    } else {
        ["=", "-"]
    };
    let gauge = LineGauge::default()
        .label(label)
        .filled_symbol(done)
        .unfilled_symbol(ahead)
        .filled_style(Style::new().fg(Color::Cyan))
        .ratio(share.clamp(0.0, 1.0));
    frame.render_widget(gauge, area);
}

fn rate(frame: &mut Frame<'_>, area: Rect, step: &RunningStep) {
    let replies = |number: u64| step.seconds.get(&number).map_or(0, Counts::len);
    let mut keys = step.seconds.keys();
    let first = keys.next();
    // A second without a reply is in no interval.
    let numbers = first.map_or(0..0, |first| *first..keys.next_back().unwrap_or(first) + 1);
    let points: Vec<_> = numbers
        .map(|number| (number as f64, replies(number) as f64))
        .collect();
    let most = points.iter().map(|point| point.1).fold(1.0, f64::max);
    let now = thousands(step.rate);
    plot(
        frame,
        area,
        format!("replies per second: {now} (0 to {})", thousands(most)),
        GraphType::Line,
        &[(Color::Cyan, points)],
        [0.0, most],
    );
}

fn times(frame: &mut Frame<'_>, area: Rect, step: &RunningStep) {
    let points = |q: f64| -> Vec<(f64, f64)> {
        let seconds = step.seconds.iter();
        let times = seconds.filter_map(|(at, second)| Some((*at as f64, second.quantile(q)?)));
        times
            .map(|(at, time)| (at, (time.max(1) as f64).log10()))
            .collect()
    };
    let lines = [(Color::Yellow, points(0.99)), (Color::Cyan, points(0.5))];
    let [low, high] = ends(&lines, |point| point.1);
    if low > high {
        frame.render_widget(panel("p50 and p99", ""), area);
        return;
    }
    // An axis has a length.
    let (low, high) = (low - 0.02, high + 0.02);
    let last = step.seconds.values().next_back();
    let of_last = |q| nanos_as_micros(last.and_then(|second| second.quantile(q)));
    let (p50, p99) = (of_last(0.5), of_last(0.99));
    let [from, to] = [low, high].map(|log| nanos_as_micros(Some(10_f64.powf(log) as u64)));
    let title = format!("p50 {p50} us, p99 {p99} us ({from} to {to}, logarithmic)");
    plot(frame, area, title, GraphType::Scatter, &lines, [low, high]);
}

/// A line with its colour.
type Coloured = (Color, Vec<(f64, f64)>);

/// Returns the least and the greatest coordinate of the points.
fn ends(lines: &[Coloured], of: fn(&(f64, f64)) -> f64) -> [f64; 2] {
    let all = || lines.iter().flat_map(|(_, points)| points).map(of);
    [
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    ]
}

/// Draws lines over the seconds that they have.
fn plot<'a>(
    frame: &mut Frame<'_>,
    area: Rect,
    title: String,
    form: GraphType,
    lines: &'a [Coloured],
    bounds: [f64; 2],
) {
    let marker = match form {
        _ if !is_unicode() => Marker::Custom('*'),
        GraphType::Scatter => Marker::Dot,
        _ => Marker::Braille,
    };
    let dataset = |(colour, points): &'a Coloured| {
        Dataset::default()
            .marker(marker)
            .graph_type(form)
            .style(Style::new().fg(*colour))
            .data(points)
    };
    let [first, last] = ends(lines, |point| point.0);
    let lines: Vec<Dataset<'_>> = lines.iter().map(dataset).collect();
    frame.render_widget(
        Chart::new(lines)
            .block(block(title))
            .x_axis(Axis::default().bounds([first, last.max(first + 1.0)]))
            .y_axis(Axis::default().bounds(bounds)),
        area,
    );
}

fn counts(step: &RunningStep, cpu: &CpuUse) -> String {
    let [client, server] = cpu.cores.map(|cores| {
        cores.map_or_else(|| "unknown".to_owned(), |cores| format!("{cores:.2} cores"))
    });
    let replies = thousands(step.times.len() as f64);
    let failed = thousands(step.failed() as f64);
    let mut lines = vec![
        format!("client CPU  {client}"),
        format!("server CPU  {server}"),
        format!("replies     {replies}"),
        format!("failed      {failed}"),
    ];
    let kinds = step.errors.iter();
    lines.extend(kinds.map(|(kind, count)| format!("  {kind}  {}", thousands(*count as f64))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netping_measure::{
        error_kind::ErrorKind, histogram::record, recorder::Interval, times::Time,
    };
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;

    fn drawn(step: &RunningStep, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let cpu = CpuUse {
            cores: [Some(0.75), None],
            balances: vec![
                "CPUs 0-1: client 37.5%, idle 62.5%".to_owned(),
                "CPUs 2-3: other programs 35.0% (rustc), idle 65.0%".to_owned(),
            ],
        };
        terminal.draw(|frame| draw(frame, step, &cpu)).unwrap();
        terminal.backend().to_string()
    }

    fn running() -> RunningStep {
        let mut state = RunningStep {
            what: "tcp://h:1  -c 64".to_owned(),
            ..RunningStep::default()
        };
        for index in 0..90 {
            let mut interval = Interval::new(index);
            for time in [40_000, 50_000, 900_000] {
                record(&mut interval.times[Time::Service], time);
            }
            interval.accounting.errors.insert(ErrorKind::Timeout, 2);
            state.add(&interval);
        }
        state.phase = "measuring";
        state.rate = 34_763.0;
        state.elapsed = Duration::from_secs(90);
        state.planned = Some(Duration::from_mins(2));
        state.left = Some(Duration::from_secs(30));
        state
    }

    #[test]
    fn a_running_step_is_told_in_full() {
        let text = drawn(&running(), 100, 30);
        for part in [
            "tcp://h:1  -c 64",
            "measuring 90 s, 30s left",
            "replies per second: 34,763",
            "p50 50.",
            "p99 900",
            "0.75 cores",
            "server CPU  unknown",
            "replies     270",
            "failed      180",
            "timeout  180",
            "CPUs 0-1: client 37.5%, idle 62.5%",
            "CPUs 2-3: other programs 35.0% (rustc), idle 65.0%",
            "end this step and keep it",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn no_size_of_a_terminal_and_no_state_panics() {
        for (width, height) in [(1, 1), (20, 5), (40, 24), (80, 24), (300, 100)] {
            for state in [RunningStep::default(), running()] {
                drawn(&state, width, height);
            }
        }
    }
}
