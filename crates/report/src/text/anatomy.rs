//! The parts of round trips: a bar of the typical ones, one of the slowest, and what both are made of.
//! Those of several targets stand side by side.

use std::{collections::BTreeSet, iter};

use netping_measure::anatomy::Part;
use netping_results::{
    anatomy::{AnatomySummary, PartMeans},
    format::thousands,
    run::StepSettings,
    time_unit::{TimeUnit, time},
    times::Times,
};

use crate::finding::or_dash;
use crate::table::{Column, Table, is_unicode, terminal_width};

/// The length of a bar, in characters, where there is room for it behind its name and time.
const LENGTH: usize = 60;
const BEFORE: usize = 26;

/// Returns the mark of a part in bars: parts that follow each other have different ones.
fn mark(part: Part, unicode: bool) -> &'static str {
    let [with, without] = match part {
        Part::Send => ["█", "#"],
        Part::Away | Part::Network | Part::Out => ["░", "."],
        Part::Server => ["▓", "%"],
        Part::Back => ["·", ","],
        Part::Wake => ["▒", "="],
    };
    if unicode { with } else { without }
}

/// The length of a bar where there is hardly any room, and the width of the whole without a terminal, in characters.
const SHORTEST: usize = 10;
const WIDTH: usize = 80;

/// The groups of requests that are told by their parts.
const GROUPS: [&str; 2] = ["about p50", "beyond p99"];

/// Returns the parts of a measurement's round trips, and which of them is the largest.
pub(super) fn block(anatomy: &AnatomySummary, settings: &StepSettings) -> String {
    let width = terminal_width().unwrap_or(usize::MAX);
    in_width(anatomy, settings, is_unicode(), width)
}

fn in_width(
    anatomy: &AnatomySummary,
    settings: &StepSettings,
    unicode: bool,
    width: usize,
) -> String {
    let Some(typical) = &anatomy.typical else {
        let lacking = without(anatomy).map(|own| format!("  {own}"));
        return lacking.unwrap_or_default();
    };
    let length = width.saturating_sub(BEFORE).clamp(SHORTEST, LENGTH);
    let bar = |(name, means): (&str, Option<&PartMeans>)| {
        let total = means?.total();
        let bar = drawn(means?, unicode, length as f64 / total.max(1.0));
        let total = time(total);
        Some(format!("  {name:<10} {total:>11}  {bar}"))
    };
    let bars = GROUPS.into_iter().zip(groups(anatomy));
    let mut lines: Vec<String> = bars.filter_map(bar).collect();
    lines.push(table(anatomy, unicode));
    let is_woken = typical
        .largest()
        .is_some_and(|(part, _)| part == Part::Wake);
    let hint = if is_woken && !settings.busy_poll {
        ": --busy-poll shows the rest"
    } else {
        ""
    };
    lines.extend(largest(typical).map(|own| format!("  {own}{hint}")));
    lines.extend(without(anatomy).map(|own| format!("  {own}")));
    lines.join("\n")
}

/// Returns the parts of the round trips of several targets, by their names: those of the typical ones, and those of the
/// slowest, each with bars on one scale; and which part of the first target's is the largest.
pub(super) fn side_by_side(all: &[(&str, AnatomySummary)]) -> String {
    beside(all, is_unicode(), terminal_width().unwrap_or(WIDTH))
}

fn beside(all: &[(&str, AnatomySummary)], unicode: bool, width: usize) -> String {
    let parts: BTreeSet<Part> = all
        .iter()
        .flat_map(|(_, own)| own.parts.keys().copied())
        .collect();
    let group = |(at, title): (usize, &str)| {
        let means = all
            .iter()
            .filter_map(|(name, own)| Some((*name, groups(own)[at]?)));
        let means: Vec<(&str, &PartMeans)> = means.collect();
        (!means.is_empty()).then(|| rows_with_bars(title, &means, &parts, unicode, width))
    };
    let mut blocks: Vec<String> = GROUPS.into_iter().enumerate().filter_map(group).collect();
    let first = all
        .iter()
        .find_map(|(name, own)| Some((name, own.typical.as_ref()?)));
    let sentence = first.and_then(|(name, typical)| {
        let largest = largest(typical)?;
        Some(format!("{name}: {largest}"))
    });
    blocks.extend(sentence);
    let lacking = all
        .iter()
        .filter_map(|(name, own)| Some(format!("{name}: {}", without(own)?)));
    blocks.extend(lacking);
    blocks.join("\n")
}

/// Returns a row for each target: its name, its times, and a bar. All bars are on one scale, and the longest fills the
/// width.
fn rows_with_bars(
    title: &str,
    means: &[(&str, &PartMeans)],
    parts: &BTreeSet<Part>,
    unicode: bool,
    width: usize,
) -> String {
    let totals = means.iter().map(|(_, own)| own.total());
    let unit = TimeUnit::of(totals.clone());
    let most = totals.fold(1.0, f64::max);
    let whole = Column::number("").titled(format!("{title} {}", unit.name()));
    let of_part = |part: &Part| Column::number(part.name());
    let mut columns = vec![Column::text(""), whole];
    columns.extend(parts.iter().map(of_part));
    let row = |(name, own): &(&str, &PartMeans)| {
        let times = parts.iter().map(|part| own.means.get(part).copied());
        let times = iter::once(Some(own.total())).chain(times);
        let times = times.map(|time| or_dash(time.map(|time| unit.show(time))));
        iter::once((*name).to_owned()).chain(times).collect()
    };
    let mut rows: Vec<Vec<String>> = means.iter().map(row).collect();
    let numbers = Table::whole(&columns, &rows);
    let used = numbers.lines().map(|line| line.chars().count() + 2).max();
    let room = width.saturating_sub(used.unwrap_or(0));
    let scale = room.clamp(SHORTEST, LENGTH) as f64 / most;
    let key = |part: &Part| format!("{} {}", mark(*part, unicode), part.name());
    let key: Vec<String> = parts.iter().map(key).collect();
    columns.push(Column::text("").titled(key.join("  ")));
    for (row, (_, own)) in rows.iter_mut().zip(means) {
        row.push(drawn(own, unicode, scale));
    }
    Table::whole(&columns, &rows)
}

/// Returns the typical and the slowest requests.
fn groups(anatomy: &AnatomySummary) -> [Option<&PartMeans>; 2] {
    [anatomy.typical.as_ref(), anatomy.slowest.as_ref()]
}

/// Draws the parts one behind the other, on this scale, in characters for each nanosecond.
fn drawn(means: &PartMeans, unicode: bool, scale: f64) -> String {
    let (mut bar, mut sum, mut end) = (String::new(), 0.0, 0);
    for (part, mean) in &means.means {
        sum += mean;
        let upto = (sum * scale).round() as usize;
        bar += &mark(*part, unicode).repeat(upto - end);
        end = upto;
    }
    bar
}

/// Returns the numbers of each part: its own quantiles, and its means among the requests of both bars.
fn table(anatomy: &AnatomySummary, unicode: bool) -> String {
    let cells = |(part, times): (&Part, &Times)| {
        let quantile = |percent| times.time.quantile(percent).map(|own| own as f64);
        let mean = |means: &Option<PartMeans>| means.as_ref()?.means.get(part).copied();
        [
            quantile(50.0),
            quantile(99.0),
            mean(&anatomy.typical),
            mean(&anatomy.slowest),
        ]
    };
    let all: Vec<[Option<f64>; 4]> = anatomy.parts.iter().map(cells).collect();
    let unit = TimeUnit::of(all.iter().flatten().flatten().copied());
    let names = ["p50", "p99", GROUPS[0], GROUPS[1]];
    let columns: Vec<Column> = [Column::text("  part")]
        .into_iter()
        .chain(names.map(|name| Column::number("").titled(format!("{name} {}", unit.name()))))
        .collect();
    let row = |(part, cells): (&Part, &[Option<f64>; 4])| {
        let shown = cells.map(|own| or_dash(own.map(|own| unit.show(own))));
        [format!("  {} {}", mark(*part, unicode), part.name())]
            .into_iter()
            .chain(shown)
            .collect()
    };
    let rows: Vec<Vec<String>> = anatomy.parts.keys().zip(&all).map(row).collect();
    Table::whole(&columns, &rows)
}

/// Names the largest part of a measurement's typical round trips.
pub fn largest_part(anatomy: &AnatomySummary) -> Option<String> {
    largest(anatomy.typical.as_ref()?)
}

/// Names the largest part of typical requests.
fn largest(typical: &PartMeans) -> Option<String> {
    let (part, mean) = typical.largest()?;
    let what = match part {
        Part::Send => "until this client has sent the request",
        Part::Away => "in the network and the server",
        Part::Network => "on the way to the server and back",
        Part::Out => "until the server has read the request",
        Part::Server => "in the server",
        Part::Back => "on the way back from the server",
        Part::Wake => "waiting for this client to wake up",
    };
    let [total, mean] = [typical.total(), mean].map(time);
    Some(format!("{mean} of {total} are spent {what}"))
}

/// Says how many requests have no parts, if there are any.
fn without(anatomy: &AnatomySummary) -> Option<String> {
    let all = anatomy.requests() + anatomy.without_stamps + anatomy.clock_set;
    let reasons = [
        (anatomy.without_stamps, "without time stamps of their own"),
        (anatomy.clock_set, "in which the clock was set"),
    ];
    let lacking: Vec<String> = reasons
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(count as f64)))
        .collect();
    let [all, none] = [all, all - anatomy.requests()].map(|own| thousands(own as f64));
    (!lacking.is_empty()).then(|| {
        format!(
            "{none} of {all} requests have no parts: {}",
            lacking.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use netping_measure::anatomy::{Anatomy, Served};
    use netping_results::fixtures;

    use super::*;

    /// Returns the block of requests with these parts, each so often, as `change` leaves it.
    fn shown(requests: &[([u64; 3], u64)], change: impl Fn(&mut Anatomy)) -> String {
        let mut anatomy = Anatomy::default();
        for (parts, count) in requests {
            for _ in 0..*count {
                anatomy.record(fixtures::parts(*parts, None));
            }
        }
        change(&mut anatomy);
        let summary = AnatomySummary::of(&anatomy);
        in_width(&summary, &StepSettings::default(), false, 80)
    }

    #[test]
    fn the_bars_have_the_parts_of_typical_and_of_slow_requests() {
        let requests = [
            ([2_000, 30_000, 28_000], 990),
            ([2_000, 30_000, 268_000], 10),
        ];
        let text = shown(&requests, |_| {});
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  about p50      60.0 us  "), "{text}");
        let bar = |counts: [usize; 3]| {
            let parts = [Part::Send, Part::Away, Part::Wake].into_iter().zip(counts);
            parts
                .map(|(part, count)| mark(part, false).repeat(count))
                .collect::<String>()
        };
        assert!(
            lines[0].ends_with(&format!(" {}", bar([2, 27, 25]))),
            "{text}"
        );
        assert!(lines[1].starts_with("  beyond p99      300 us  "), "{text}");
        assert!(
            lines[1].ends_with(&format!(" {}", bar([0, 6, 48]))),
            "{text}"
        );
        let wake: Vec<&str> = lines[5].split_whitespace().collect();
        assert_eq!(wake, ["=", "wake", "28.0", "28.0", "28.0", "268"]);
        assert_eq!(
            lines[6],
            "  30.0 us of 60.0 us are spent in the network and the server"
        );
        assert_eq!(lines.len(), 7);
    }

    #[test]
    fn the_sentence_names_the_largest_part() {
        let of = |parts| shown(&[(parts, 10)], |_| {});
        let waking = of([1_000, 2_000, 5_000]);
        assert!(waking.ends_with(
            "  5.00 us of 8.00 us are spent waiting for this client to wake up: --busy-poll shows the rest"
        ), "{waking}");
        assert!(!waking.contains("beyond p99  "), "{waking}");
        let sending = of([9_000, 2_000, 5_000]);
        assert!(
            sending
                .ends_with("9.00 us of 16.0 us are spent until this client has sent the request"),
            "{sending}"
        );
    }

    #[test]
    fn the_time_away_is_divided_where_the_server_tells_its_times() {
        let mut anatomy = Anatomy::default();
        let served = Some(Served::Between(12_000, 52_000));
        for _ in 0..1_000 {
            anatomy.record(fixtures::parts([2_000, 60_000, 28_000], served));
        }
        let summary = AnatomySummary::of(&anatomy);
        let text = in_width(&summary, &StepSettings::default(), false, 126);
        let bar = " #.......%%%%%%%%%%%%%%%%%%%%%%%%%%%,,,,,,===================";
        assert!(text.lines().next().unwrap().contains(bar), "{text}");
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(names[3..8], ["send", "out", "server", "back", "wake"]);
        assert!(
            text.ends_with("  40.0 us of 90.0 us are spent in the server"),
            "{text}"
        );
    }

    #[test]
    fn several_targets_stand_side_by_side_on_one_scale() {
        let of = |away: u64, slow: u64| {
            let mut anatomy = Anatomy::default();
            for at in 0..1_000 {
                let wake = if at < 990 { 20_000 } else { slow };
                anatomy.record(fixtures::parts([2_000, away, wake], None));
            }
            anatomy.without_stamps = u64::from(slow > 100_000);
            AnatomySummary::of(&anatomy)
        };
        let all = [("TCP", of(8_000, 68_000)), ("gRPC", of(38_000, 260_000))];
        let text = beside(&all, false, 76);
        let expected = "      about p50 us  send  away  wake  # send  . away  = wake
TCP           30.0  2.00  8.00  20.0  #.....=============
gRPC          60.0  2.00  38.0  20.0  #........................=============
      beyond p99 us  send  away  wake  # send  . away  = wake
TCP            78.0  2.00  8.00  68.0  .=========
gRPC            300  2.00  38.0   260  .....================================
TCP: 20.0 us of 30.0 us are spent waiting for this client to wake up
gRPC: 1 of 1,001 requests have no parts: 1 without time stamps of their own";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_sentence_fits_beside_the_ladders_longest_rung() {
        for part in Part::ALL {
            let means = PartMeans {
                requests: 10.0,
                means: [(part, 100_000.0)].into(),
            };
            let sentence = format!("TCP threads: {}", largest(&means).unwrap());
            assert!(sentence.chars().count() <= 80, "{sentence}");
        }
    }

    #[test]
    fn requests_without_parts_are_told() {
        let lacking = |anatomy: &mut Anatomy| (anatomy.without_stamps, anatomy.clock_set) = (3, 1);
        let what = "  4 of 5 requests have no parts: 3 without time stamps of their own, 1 in which the clock was set";
        let some = shown(&[([1_000, 2_000, 5_000], 1)], lacking);
        assert_eq!(some.lines().last(), Some(what));
        assert_eq!(shown(&[], lacking), what.replace('5', "4"));
        assert_eq!(shown(&[], |_| {}), "");
    }
}
