//! The picture of a step.

use std::time::Duration;

use humantime::format_duration;
use netping_report::{bars::bars, table::is_unicode};
use netping_results::format::{nanos_as_micros, thousands};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    symbols::{
        Marker,
        border::{PLAIN, Set},
    },
    text::{Line, Text},
    widgets::{Axis, Block, Chart, Dataset, GraphType, LineGauge, Paragraph},
};

use super::{
    cpu::Cores,
    state::{Second, State},
};

/// Seconds in a chart.
const SHOWN: usize = 60;

/// Below this width, panels stand one above the other.
const WIDE: u16 = 80;

/// The lines of a histogram, with its heading and its frame.
const BARS: u16 = 14;

/// A frame for terminals without UTF-8.
const ASCII: Set<'_> = Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

const KEYS: &str = "n  end this step and keep it    q  end the command";

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, cores: [Cores; 2]) {
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(6),
        Constraint::Length(BARS),
        Constraint::Length(1),
    ];
    let [title, progress, charts, numbers, keys] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Line::from(state.what.as_str()).bold(), title);
    self::progress(frame, progress, state);
    let [rate, times] = halves(charts);
    self::rate(frame, rate, state);
    self::times(frame, times, state);
    let [histogram, counts] = halves(numbers);
    let drawn = bars(&state.times, is_unicode(), inner(histogram));
    frame.render_widget(panel("response times so far", drawn), histogram);
    frame.render_widget(panel("so far", self::counts(state, cores)), counts);
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

/// A frame with a title.
fn block<'a>(title: impl Into<Line<'a>>) -> Block<'a> {
    let lines = if is_unicode() { PLAIN } else { ASCII };
    Block::bordered().border_set(lines).title(title)
}

fn progress(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let head = state.head;
    let left = head.left.map_or_else(String::new, |left| {
        let left = Duration::from_secs(left.as_secs());
        format!(", {} left", format_duration(left))
    });
    let label = format!("{} {:.0} s{left}", head.phase, head.elapsed.as_secs_f64());
    let share = head.planned.map_or(0.0, |planned| {
        head.elapsed.as_secs_f64() / planned.as_secs_f64().max(1e-9)
    });
    let (done, ahead) = if is_unicode() {
        ("━", "─")
    } else {
        ("=", "-")
    };
    let gauge = LineGauge::default()
        .label(label)
        .filled_symbol(done)
        .unfilled_symbol(ahead)
        .filled_style(Style::new().fg(Color::Cyan))
        .ratio(share.clamp(0.0, 1.0));
    frame.render_widget(gauge, area);
}

/// The last seconds, each with its number.
fn shown(state: &State) -> impl Iterator<Item = (u64, &Second)> {
    let skipped = state.seconds.len().saturating_sub(SHOWN);
    let shown = state.seconds.iter().skip(skipped);
    shown.map(|(number, second)| (*number, second))
}

fn rate(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let seconds: Vec<_> = shown(state).collect();
    let most = seconds.iter().map(|(_, second)| second.replies).max();
    let most = most.unwrap_or(0).max(1) as f64;
    let numbers = seconds.first().zip(seconds.last());
    // A second without a reply is in no interval.
    let numbers = numbers.map_or(0..0, |((first, _), (last, _))| *first..*last + 1);
    let replies = |number| {
        state
            .seconds
            .get(&number)
            .map_or(0, |second| second.replies)
    };
    let points: Vec<_> = numbers
        .map(|number| (number as f64, replies(number) as f64))
        .collect();
    let now = thousands(state.head.rate);
    let range = if points.is_empty() {
        String::new()
    } else {
        format!(" (0 to {})", thousands(most))
    };
    plot(
        frame,
        area,
        [format!("replies per second: {now}"), range],
        GraphType::Line,
        &[(Color::Cyan, points)],
        [0.0, most],
    );
}

fn times(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let points = |of: fn(&Second) -> Option<u64>| -> Vec<(f64, f64)> {
        let times = shown(state).filter_map(|(at, second)| Some((at, of(second)?)));
        times
            .map(|(at, time)| (at as f64, (time.max(1) as f64).log10()))
            .collect()
    };
    let lines = [
        (Color::Yellow, points(|second| second.p99)),
        (Color::Cyan, points(|second| second.p50)),
    ];
    let all = || {
        lines
            .iter()
            .flat_map(|(_, points)| points)
            .map(|point| point.1)
    };
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        frame.render_widget(panel("p50 and p99", ""), area);
        return;
    }
    // An axis has a length.
    let (low, high) = (low - 0.02, high + 0.02);
    let last = state.seconds.values().next_back();
    let of_last = |of: fn(&Second) -> Option<u64>| nanos_as_micros(last.and_then(of));
    let (p50, p99) = (of_last(|second| second.p50), of_last(|second| second.p99));
    let [from, to] = [low, high].map(|log| nanos_as_micros(Some(10_f64.powf(log) as u64)));
    let title = [
        format!("p50 {p50} us, p99 {p99} us"),
        format!(" ({from} to {to}, logarithmic)"),
    ];
    plot(frame, area, title, GraphType::Scatter, &lines, [low, high]);
}

/// Returns a title without its second part where the frame is too narrow for it.
fn fitting([numbers, scale]: [String; 2], area: Rect) -> String {
    let inside = usize::from(area.width.saturating_sub(2));
    if numbers.len() + scale.len() <= inside {
        numbers + &scale
    } else {
        numbers
    }
}

/// Draws lines, each with its colour, over the seconds that they have. The second part of the title is
/// left out where it does not fit.
fn plot<'a>(
    frame: &mut Frame<'_>,
    area: Rect,
    title: [String; 2],
    form: GraphType,
    lines: &'a [(Color, Vec<(f64, f64)>)],
    bounds: [f64; 2],
) {
    let marker = match form {
        _ if !is_unicode() => Marker::Custom('*'),
        GraphType::Scatter => Marker::Dot,
        _ => Marker::Braille,
    };
    let dataset = |(colour, points): &'a (Color, Vec<(f64, f64)>)| {
        Dataset::default()
            .marker(marker)
            .graph_type(form)
            .style(Style::new().fg(*colour))
            .data(points)
    };
    let seconds = lines
        .iter()
        .flat_map(|(_, points)| points)
        .map(|point| point.0);
    let first = seconds.clone().fold(f64::INFINITY, f64::min);
    let last = seconds.fold(first + 1.0, f64::max);
    let lines: Vec<Dataset<'_>> = lines.iter().map(dataset).collect();
    frame.render_widget(
        Chart::new(lines)
            .block(block(fitting(title, area)))
            .x_axis(Axis::default().bounds([first, last]))
            .y_axis(Axis::default().bounds(bounds)),
        area,
    );
}

fn counts(state: &State, sides: [Cores; 2]) -> String {
    let cores = |side: Cores| {
        side.map_or_else(|| "unknown".to_owned(), |cores| format!("{cores:.2} cores"))
    };
    let mut lines = vec![
        format!("client CPU  {}", cores(sides[0])),
        format!("server CPU  {}", cores(sides[1])),
        format!("replies     {}", thousands(state.times.len() as f64)),
    ];
    let failures = state.errors.values().sum::<u64>();
    lines.push(format!("failed      {}", thousands(failures as f64)));
    let kinds = state.errors.iter();
    lines.extend(kinds.map(|(kind, count)| format!("  {kind}  {}", thousands(*count as f64))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netping_measure::{error_kind::ErrorKind, histogram::record, recorder::Interval};
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;

    fn drawn(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| draw(frame, state, [Some(0.75), None]))
            .unwrap();
        terminal.backend().to_string()
    }

    fn running() -> State {
        let mut state = State::new("tcp://h:1  -c 64");
        for index in 0..90 {
            let mut interval = Interval::new(index);
            for time in [40_000, 50_000, 900_000] {
                record(&mut interval.service, time);
            }
            interval.errors.insert(ErrorKind::Timeout, 2);
            state.add(&interval);
        }
        state.head.phase = "measuring";
        state.head.rate = 34_763.0;
        state.head.elapsed = Duration::from_secs(90);
        state.head.planned = Some(Duration::from_mins(2));
        state.head.left = Some(Duration::from_secs(30));
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
            "end this step and keep it",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn no_size_of_a_terminal_and_no_state_panics() {
        for (width, height) in [(1, 1), (20, 5), (40, 24), (80, 24), (300, 100)] {
            for state in [State::default(), running()] {
                drawn(&state, width, height);
            }
        }
    }
}
