//! The picture of a step.

use netping_measure::counts::Counts;
use netping_report::{bars::bars, table::is_unicode};
use netping_results::{format::thousands, time_unit::time};
use textwrap::fill;

use super::{
    canvas::{BOLD, CYAN, Canvas, DIM, PLAIN, YELLOW},
    plot::{self, NamedLine, Plot},
};
use crate::run::running::{KEPT, RunningStep, whole_seconds};

/// Charts stand beside each other from this width on, and one above the other from this height on.
const WIDE: usize = 80;
const HIGH: usize = 16;

/// The lines of the histogram, with its headings, and those that charts keep beside it.
const BARS: usize = 13;
const CHARTS: usize = 10;

/// The least height, in lines, at which the balance of the CPUs is shown.
const BALANCES: usize = 18;

/// The shortest time axis, in seconds.
const SHORTEST: u64 = 10;

/// Replies in a second from which on it has a 99th percentile.
const FEWEST: u64 = 100;

/// Draws a step; `balances` says who had the CPUs. Where there is no room for all, the charts are left out first, then
/// the numbers, the progress and the keys.
pub(super) fn draw(width: usize, height: usize, step: &RunningStep, balances: &[String]) -> Canvas {
    let mut facts = vec![counts(step)];
    if height >= BALANCES {
        facts.extend_from_slice(balances);
    }
    let facts = fill(&facts.join("\n"), width.max(1));
    let lines = facts.lines().count();
    let facts = Canvas::text(width, lines, PLAIN, &facts);
    let keys = Canvas::text(width, 1, DIM, keys(step, width));
    Canvas::text(width, 1, BOLD, &step.what)
        .above(1, progress(width, step))
        .above(2, pictures(width, height.saturating_sub(lines + 3), step))
        .above(height, facts)
        .above(height.saturating_sub(1).max(1), keys)
        .above(height, Canvas::new(width, 0))
}

/// Returns what the keys do now.
fn keys(step: &RunningStep, width: usize) -> &'static str {
    match (step.measures, width >= WIDE) {
        (true, true) => "n: end this step, and keep what it measured   q: end the command",
        (true, false) => "n: end this step   q: end the command",
        (false, _) => "q: end the command",
    }
}

/// Draws the charts, as far as there is room for them: the times come first.
fn pictures(width: usize, height: usize, step: &RunningStep) -> Canvas {
    let below = if height >= CHARTS + BARS { BARS } else { 0 };
    let drawn = bars(&step.times, is_unicode(), width);
    let histogram = format!("response times so far\n{drawn}");
    let histogram = Canvas::text(width, below, PLAIN, &histogram);
    let (rows, half) = (height - below, width / 2);
    let charts = if width >= WIDE {
        plot::draw(half - 1, rows, times(step))
            .beside(Canvas::new(2, rows))
            .beside(plot::draw(width - half - 1, rows, rate(step)))
    } else if rows >= HIGH {
        let above = plot::draw(width, rows / 2, times(step));
        above.above(rows, plot::draw(width, rows - rows / 2, rate(step)))
    } else {
        plot::draw(width, rows, times(step))
    };
    charts.above(rows, histogram)
}

/// Draws the phase in words, and a bar whose filled share is over.
fn progress(width: usize, step: &RunningStep) -> Canvas {
    let (phase, elapsed) = (step.phase, step.elapsed.as_secs_f64());
    let left = step.left.map(|left| format!(", {}", whole_seconds(left)));
    let label = format!("{phase} {elapsed:.0} s{} ", left.unwrap_or_default());
    let planned = step
        .planned
        .map_or(f64::INFINITY, |planned| planned.as_secs_f64());
    let share = (elapsed / planned.max(1e-9)).clamp(0.0, 1.0);
    let mut canvas = Canvas::new(width, 1);
    let start = canvas.write(0, 0, PLAIN, &label);
    let filled = ((width - start) as f64 * share) as usize;
    let end = canvas.write(0, start, CYAN, &"━".repeat(filled));
    canvas.write(0, end, PLAIN, &"─".repeat(width - end));
    canvas
}

/// Returns p50 and p99 of each second.
fn times(step: &RunningStep) -> Plot {
    let line = |name, style, q: f64, fewest: u64| {
        let seconds = over(step).filter(|(_, replies)| replies.len() >= fewest);
        let points = seconds.filter_map(|(at, replies)| Some((at, replies.quantile(q)? as f64)));
        NamedLine {
            name,
            style,
            points: points.collect(),
        }
    };
    let lines = vec![line("p50", CYAN, 0.5, 1), line("p99", YELLOW, 0.99, FEWEST)];
    let mut title = vec![(PLAIN, "response: ".to_owned())];
    for (at, line) in lines.iter().enumerate() {
        let latest = line
            .points
            .last()
            .map(|(_, nanoseconds)| time(*nanoseconds));
        let latest = latest.unwrap_or_else(|| "-".to_owned());
        title.extend((at > 0).then(|| (PLAIN, ", ".to_owned())));
        title.push((line.style, format!("{} {latest}", line.name)));
    }
    Plot {
        title,
        lines,
        seconds: seconds(step),
        may_be_logarithmic: true,
        label: time,
    }
}

/// Returns the replies of each second. One without a reply, between others, had none.
fn rate(step: &RunningStep) -> Plot {
    let count = |at: u64| step.seconds.get(&at).map_or(0, |replies| replies.len());
    let known = over(step).map(|(at, _)| at);
    let ends = known.clone().min().zip(known.max());
    let points = ends.map_or_else(Vec::new, |(first, last)| {
        (first..=last).map(|at| (at, count(at) as f64)).collect()
    });
    Plot {
        title: vec![(
            PLAIN,
            format!("replies per second: {}", thousands(step.rate)),
        )],
        lines: vec![NamedLine {
            name: "",
            style: CYAN,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netping_client::engine::Phase;
    use netping_measure::{
        error_kind::ErrorKind, histogram::record, recorder::Interval, times::Time,
    };

    use super::*;

    /// The sizes of the terminals: usual, small, large, and too small for anything.
    const SIZES: [(usize, usize); 6] = [(80, 24), (40, 12), (200, 50), (20, 5), (3, 2), (1, 1)];

    fn picture(step: &RunningStep, (width, height): (usize, usize)) -> Canvas {
        let balances = [
            "CPUs 0-1: client 37.5%, idle 62.5%".to_owned(),
            "CPUs 2-3: other programs 35.0% (rustc), idle 65.0%".to_owned(),
        ];
        draw(width, height, step, &balances)
    }

    fn drawn(step: &RunningStep, size: (usize, usize)) -> String {
        let rows = picture(step, size).rows(false).into_iter();
        let rows: Vec<_> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n")
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
        for name in [" p50", " p99"] {
            assert!(text.lines().any(|line| line.ends_with(name)), "{text}");
        }
        assert!(!text.contains("replies per second"), "{text}");
        let narrow = drawn(&measuring(90, None), (16, 24));
        assert!(!narrow.contains('┤'), "{narrow}");
    }

    #[test]
    fn a_high_terminal_has_charts_of_equal_height() {
        let text = drawn(&measuring(90, None), (60, 24));
        let row = |title| text.lines().position(|line| line.starts_with(title));
        assert_eq!(row("response: "), Some(2), "{text}");
        assert_eq!(row("replies per second: "), Some(11), "{text}");
    }

    #[test]
    fn a_short_window_is_on_the_axis_as_a_whole_from_the_beginning() {
        let text = drawn(&measuring(2, Some(Duration::from_secs(20))), (80, 24));
        assert!(text.contains(" 0 s ") && text.contains(" 20 s"), "{text}");
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
            for size in SIZES {
                let rows = picture(step, size).rows(false);
                let widths = rows.iter().map(|row| row.chars().count());
                assert_eq!(widths.collect::<Vec<_>>(), vec![size.0; size.1]);
            }
        }
    }

    #[test]
    fn what_has_no_room_is_dropped_the_charts_first() {
        let step = measuring(90, None);
        let shown = |height| {
            let text = drawn(&step, (80, height));
            let words = text.lines().filter_map(|line| line.split(' ').next());
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(shown(0).is_empty());
        assert_eq!(shown(1), ["tcp://h:1"]);
        assert_eq!(shown(2), ["tcp://h:1", "n:"]);
        assert_eq!(shown(3), ["tcp://h:1", "measuring", "n:"]);
        assert_eq!(shown(4), ["tcp://h:1", "measuring", "18,000", "n:"]);
    }

    #[test]
    fn the_bar_is_filled_by_the_share_that_is_over() {
        let bar = |window: Option<u64>| {
            let mut step = measuring(4, window.map(Duration::from_secs));
            step.tick(Duration::from_secs(5), 1.0);
            drawn(&step, (44, 3)).lines().nth(1).unwrap().to_owned()
        };
        for (window, filled) in [(Some(19), 5), (Some(5), 20), (Some(1), 20), (None, 0)] {
            let [filled, left] = ["━".repeat(filled), "─".repeat(20 - filled)];
            let expected = format!("measuring 5 s, 30s left {filled}{left}");
            assert_eq!(bar(window), expected);
        }
    }

    #[test]
    fn a_long_text_is_broken_at_words() {
        let text = drawn(&measuring(90, None), (30, 20));
        let broken = "18,000 replies, 180 failed:\n180 timeout\n";
        assert!(text.contains(broken), "{text}");
    }

    #[test]
    fn a_terminal_without_unicode_gets_none() {
        let mut canvas = picture(&measuring(90, None), (80, 24));
        canvas.spell();
        let text = canvas.rows(false).concat();
        assert!(
            text.is_ascii() && text.contains('*') && !text.contains('?'),
            "{text}"
        );
    }
}
