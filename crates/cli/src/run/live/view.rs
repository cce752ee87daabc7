//! The picture of a step.

use netping_measure::counts::Counts;
use netping_report::{bars::bars, table::is_unicode};
use netping_results::{format::thousands, time_unit::time};
use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::{LineGauge, Paragraph, Wrap},
};

use super::plot::{self, NamedLine, Plot};
use crate::run::running::{KEPT, RunningStep, whole_seconds};

/// Charts stand beside each other from this width on, and one above the other from this height on.
const WIDE: u16 = 80;
const HIGH: u16 = 16;

/// The lines of the histogram, with its headings, and those that charts keep beside it.
const BARS: u16 = 13;
const CHARTS: u16 = 10;

/// The least height, in lines, at which the balance of the CPUs is shown.
const BALANCES: u16 = 18;

/// The characters of a line that may stay empty, as the next word does not fit.
const WORD: u16 = 10;

/// The shortest time axis, in seconds.
const SHORTEST: u64 = 10;

/// Replies in a second from which on it has a 99th percentile.
const FEWEST: u64 = 100;

/// Draws a step; `balances` says who had the CPUs.
pub(super) fn draw(frame: &mut Frame<'_>, step: &RunningStep, balances: &[String]) {
    let area = frame.area();
    let mut facts = vec![counts(step)];
    if area.height >= BALANCES {
        facts.extend_from_slice(balances);
    }
    let room: u16 = facts.iter().map(|fact| lines(fact, area.width)).sum();
    let mut left = area.height;
    let mut take = |wanted: u16| {
        let taken = wanted.min(left);
        left -= taken;
        taken
    };
    // Where there is no room for all, what comes first here is kept.
    let [title, keys, progress, numbers] = [1, 1, 1, room].map(&mut take);
    let rows = [title, progress, left, numbers, keys].map(Constraint::Length);
    let [title, progress, pictures, numbers, keys] = Layout::vertical(rows).areas(area);
    frame.render_widget(Line::from(step.what.as_str()).bold(), title);
    self::progress(frame, progress, step);
    self::pictures(frame, pictures, step);
    let facts = Paragraph::new(facts.join("\n")).wrap(Wrap { trim: true });
    frame.render_widget(facts, numbers);
    frame.render_widget(Line::from(self::keys(step, area.width)).dim(), keys);
    if !is_unicode() {
        spell(frame.buffer_mut());
    }
}

/// Returns what the keys do now.
fn keys(step: &RunningStep, width: u16) -> &'static str {
    match (step.measures, width >= WIDE) {
        (true, true) => "n: end this step, and keep what it measured   q: end the command",
        (true, false) => "n: end this step   q: end the command",
        (false, _) => "q: end the command",
    }
}

/// Returns the lines that a text takes when it is broken at words.
fn lines(text: &str, width: u16) -> u16 {
    let (length, width) = (text.chars().count() as u16, width.max(1));
    if length <= width {
        return 1;
    }
    // A word that does not fit leaves the end of a line empty.
    length.div_ceil(width.saturating_sub(WORD).max(1))
}

/// Draws the charts, as far as there is room for them: the times come first.
fn pictures(frame: &mut Frame<'_>, area: Rect, step: &RunningStep) {
    let mut charts = area;
    if area.height >= CHARTS + BARS {
        let rows = [Constraint::Min(0), Constraint::Length(BARS)];
        let [above, below] = Layout::vertical(rows).areas(area);
        charts = above;
        let drawn = bars(&step.times, is_unicode(), below.width.into());
        let histogram = format!("response times so far\n{drawn}");
        frame.render_widget(Paragraph::new(histogram), below);
    }
    let each = [Constraint::Percentage(50); 2];
    if charts.width >= WIDE {
        let [left, right] = Layout::horizontal(each).spacing(2).areas(charts);
        plot::draw(frame, left, times(step));
        plot::draw(frame, right, rate(step));
    } else if charts.height >= HIGH {
        let [above, below] = Layout::vertical(each).areas(charts);
        plot::draw(frame, above, times(step));
        plot::draw(frame, below, rate(step));
    } else {
        plot::draw(frame, charts, times(step));
    }
}

fn progress(frame: &mut Frame<'_>, area: Rect, step: &RunningStep) {
    let (phase, elapsed) = (step.phase, step.elapsed.as_secs_f64());
    let left = step.left.map(|left| format!(", {}", whole_seconds(left)));
    let label = format!("{phase} {elapsed:.0} s{}", left.unwrap_or_default());
    let planned = step
        .planned
        .map_or(f64::INFINITY, |planned| planned.as_secs_f64());
    let share = elapsed / planned.max(1e-9);
    let gauge = LineGauge::default()
        .label(label)
        .filled_symbol("━")
        .unfilled_symbol("─")
        .filled_style(Style::new().fg(Color::Cyan))
        .ratio(share.clamp(0.0, 1.0));
    frame.render_widget(gauge, area);
}

/// Returns p50 and p99 of each second.
fn times(step: &RunningStep) -> Plot<'static> {
    let line = |name, colour, q: f64, fewest: u64| {
        let seconds = over(step).filter(|(_, replies)| replies.len() >= fewest);
        let points = seconds.filter_map(|(at, replies)| Some((at, replies.quantile(q)? as f64)));
        NamedLine {
            name,
            colour,
            points: points.collect(),
        }
    };
    let lines = vec![
        line("p50", Color::Cyan, 0.5, 1),
        line("p99", Color::Yellow, 0.99, FEWEST),
    ];
    let mut title = vec![Span::raw("response: ")];
    for (at, line) in lines.iter().enumerate() {
        let latest = line
            .points
            .last()
            .map(|&(_, nanoseconds)| time(nanoseconds));
        let latest = latest.unwrap_or_else(|| "-".to_owned());
        let text = format!("{} {latest}", line.name);
        title.extend((at > 0).then(|| Span::raw(", ")));
        title.push(Span::styled(text, line.colour));
    }
    Plot {
        title: Line::from(title),
        lines,
        seconds: seconds(step),
        may_be_logarithmic: true,
        label: time,
    }
}

/// Returns the replies of each second. One without a reply, between others, had none.
fn rate(step: &RunningStep) -> Plot<'static> {
    let count = |at: u64| step.seconds.get(&at).map_or(0, |replies| replies.len());
    let known = over(step).map(|(at, _)| at);
    let ends = known.clone().min().zip(known.max());
    let points = ends.map_or_else(Vec::new, |(first, last)| {
        (first..=last).map(|at| (at, count(at) as f64)).collect()
    });
    Plot {
        title: Line::from(format!("replies per second: {}", thousands(step.rate))),
        lines: vec![NamedLine {
            name: "",
            colour: Color::Cyan,
            points,
        }],
        seconds: seconds(step),
        may_be_logarithmic: false,
        label: |rate| format!("{}/s", thousands(rate)),
    }
}

/// Returns the replies of each second that is over.
fn over(step: &RunningStep) -> impl Iterator<Item = (u64, &Counts)> + Clone {
    let seconds = step.seconds.range(..step.over);
    seconds.map(|(at, replies)| (*at, replies.as_ref()))
}

/// Returns the ends of the time axis: the whole window if it is short, else the last seconds of it. Where
/// nobody knows how long it will be, the axis grows with it.
fn seconds(step: &RunningStep) -> [u64; 2] {
    let last = step.over.saturating_sub(1);
    let length = step.window.map_or(last, |window| window.as_secs());
    let length = length.clamp(SHORTEST, KEPT as u64);
    let first = last.saturating_sub(length);
    [first, first + length]
}

/// Returns the numbers of replies and of failures, and their kinds.
fn counts(step: &RunningStep) -> String {
    let replies = thousands(step.times.len() as f64);
    let kinds = step.errors.iter();
    let kinds: Vec<String> = kinds
        .map(|(kind, count)| format!("{} {kind}", thousands(*count as f64)))
        .collect();
    let failed = thousands(step.failed() as f64);
    match &kinds[..] {
        [] => format!("{replies} replies, none failed"),
        _ => format!("{replies} replies, {failed} failed: {}", kinds.join(", ")),
    }
}

/// Spells what is drawn in ASCII, for a terminal that has nothing else.
fn spell(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let drawn = cell.symbol().chars().next().unwrap_or(' ');
        let spelt = match drawn {
            '\u{0}'..='\u{7f}' => continue,
            '─' | '━' => "-",
            '│' | '┤' => "|",
            '\u{2800}' => " ",
            '\u{2801}'..='\u{28ff}' => "*",
            _ => "?",
        };
        cell.set_symbol(spelt);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netping_client::engine::Phase;
    use netping_measure::{
        error_kind::ErrorKind, histogram::record, recorder::Interval, times::Time,
    };
    use ratatui::{Terminal, backend::TestBackend, buffer::Cell};

    use super::*;

    /// The sizes of the terminals: usual, small, large, and too small for anything.
    const SIZES: [(u16, u16); 6] = [(80, 24), (40, 12), (200, 50), (20, 5), (3, 2), (1, 1)];

    fn terminal((width, height): (u16, u16)) -> Terminal<TestBackend> {
        Terminal::new(TestBackend::new(width, height)).unwrap()
    }

    fn picture(terminal: &mut Terminal<TestBackend>, step: &RunningStep) -> String {
        let balances = [
            "CPUs 0-1: client 37.5%, idle 62.5%".to_owned(),
            "CPUs 2-3: other programs 35.0% (rustc), idle 65.0%".to_owned(),
        ];
        terminal.draw(|frame| draw(frame, step, &balances)).unwrap();
        terminal.backend().to_string()
    }

    fn drawn(step: &RunningStep, size: (u16, u16)) -> String {
        picture(&mut terminal(size), step)
    }

    /// Returns a step that has measured so many seconds of a window, with 200 replies in each.
    fn measuring(seconds: u64, window: Option<Duration>) -> RunningStep {
        let mut step = RunningStep {
            what: "tcp://h:1  -c 64".to_owned(),
            ..RunningStep::default()
        };
        step.begin_phase(Phase::Measure, window);
        for index in 0..seconds {
            let mut interval = Interval::new(index);
            for at in 0..200 {
                let time = if at % 50 == 0 { 900_000 } else { 50_000 };
                record(&mut interval.times[Time::Service], time);
            }
            interval.accounting.errors.insert(ErrorKind::Timeout, 2);
            step.add(&interval);
        }
        step.tick(Duration::from_millis(seconds * 1000 + 600), 34_763.0);
        step.left = Some(Duration::from_secs(30));
        step
    }

    #[test]
    fn a_running_step_is_told_in_full() {
        let step = measuring(90, Some(Duration::from_mins(2)));
        for size in [(80, 24), (200, 50)] {
            let text = drawn(&step, size);
            for part in [
                "tcp://h:1  -c 64",
                "measuring 91 s, 30s left",
                "replies per second: 34,763",
                "response: p50 50.0 us, p99 900 us",
                "18,000 replies, 180 failed: 180 timeout",
                "CPUs 0-1: client 37.5%, idle 62.5%",
                "CPUs 2-3: other programs 35.0% (rustc), idle 65.0%",
                "n: end this step, and keep what it measured   q: end the command",
            ] {
                assert!(text.contains(part), "{part}\n{text}");
            }
            // The axis has the last minute, and units.
            for part in [" 60 s", " 80 s", " 50.0 us", "1.00 ms", "200/s"] {
                assert!(text.contains(part), "{part}\n{text}");
            }
            assert!(!text.contains(" 20 s"), "{text}");
        }
    }

    #[test]
    fn a_small_terminal_has_the_times_the_counts_and_the_keys() {
        let text = drawn(&measuring(90, None), (40, 12));
        for part in [
            "measuring 91 s",
            "response: p50 50.0 us, p99 900 us",
            " 80 s",
            "18,000 replies",
            "n: end this step   q: end the command",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let ends = text
            .lines()
            .map(|line| line.trim_end_matches('"').trim_end());
        for name in [" p50", " p99"] {
            assert!(ends.clone().any(|line| line.ends_with(name)), "{text}");
        }
        assert!(!text.contains("replies per second"), "{text}");
    }

    #[test]
    fn a_short_window_is_on_the_axis_as_a_whole_from_the_beginning() {
        let text = drawn(&measuring(2, Some(Duration::from_secs(20))), (80, 24));
        assert!(text.contains("0 s ") && text.contains("20 s"), "{text}");
        let text = drawn(&measuring(200, None), (80, 24));
        assert!(text.contains("140 s") && !text.contains("130 s"), "{text}");
    }

    #[test]
    fn a_key_that_does_nothing_is_not_named() {
        let mut step = measuring(2, None);
        step.begin_phase(Phase::Drain, None);
        let text = drawn(&step, (80, 24));
        assert!(
            !text.contains("end this step") && text.contains("q: end the command"),
            "{text}"
        );
    }

    #[test]
    fn few_replies_have_no_99th_percentile() {
        let mut step = measuring(0, None);
        let mut interval = Interval::new(0);
        record(&mut interval.times[Time::Service], 50_000);
        step.add(&interval);
        step.tick(Duration::from_secs(2), 1.0);
        let text = drawn(&step, (80, 24));
        assert!(text.contains("p50 50.0 us, p99 -"), "{text}");
    }

    #[test]
    fn a_second_that_is_not_over_is_not_drawn() {
        let mut step = measuring(3, None);
        step.tick(Duration::from_millis(2400), 200.0);
        let seconds: Vec<u64> = over(&step).map(|(at, _)| at).collect();
        assert_eq!(seconds, [0]);
        step.tick(Duration::from_millis(2600), 200.0);
        assert_eq!(over(&step).count(), 2);
    }

    #[test]
    fn no_size_of_a_terminal_and_no_state_panics() {
        let mut broken = measuring(2, Some(Duration::ZERO));
        broken.rate = f64::NAN;
        broken.planned = Some(Duration::ZERO);
        let steps = [
            RunningStep::default(),
            measuring(0, None),
            measuring(1, None),
            measuring(5000, Some(Duration::from_mins(150))),
            broken,
        ];
        for step in &steps {
            let mut resized = terminal(SIZES[0]);
            for size in SIZES {
                let fresh = drawn(step, size);
                resized.backend_mut().resize(size.0, size.1);
                assert_eq!(picture(&mut resized, step), fresh, "{size:?}");
            }
        }
    }

    #[test]
    fn a_terminal_without_unicode_gets_none() {
        let mut terminal = terminal((80, 24));
        let step = measuring(90, None);
        let frame = terminal.draw(|frame| {
            draw(frame, &step, &[]);
            spell(frame.buffer_mut());
        });
        let text: String = frame
            .unwrap()
            .buffer
            .content
            .iter()
            .map(Cell::symbol)
            .collect();
        assert!(
            text.is_ascii() && text.contains('*') && !text.contains('?'),
            "{text}"
        );
    }
}
