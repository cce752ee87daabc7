//! The parts of round trips: a bar of the typical ones, one of the slowest, and what both are made of.

use netping_measure::anatomy::Part;
use netping_results::{
    anatomy::{AnatomySummary, PartMeans},
    format::thousands,
    run::StepSettings,
    time_unit::{TimeUnit, time},
};

use crate::table::{Column, Table, is_unicode, terminal_width};

/// The length of a bar, in characters, where there is room for it behind its name and time.
const LENGTH: usize = 60;
const BEFORE: usize = 26;

/// The marks of the parts in bars, with and without Unicode.
const MARKS: [[&str; 3]; 2] = [["█", "░", "▒"], ["#", ".", "="]];

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
        return without(anatomy).unwrap_or_default();
    };
    let marks = &MARKS[usize::from(!unicode)];
    let bars = [
        ("about p50", Some(typical)),
        ("beyond p99", anatomy.slowest.as_ref()),
    ];
    let length = width.saturating_sub(BEFORE).clamp(10, LENGTH);
    let bar = |(name, means): (&str, Option<&PartMeans>)| {
        let total = time(means?.total());
        let bar = drawn(means?, marks, length);
        Some(format!("  {name:<10} {total:>11}  {bar}"))
    };
    let mut lines: Vec<String> = bars.into_iter().filter_map(bar).collect();
    lines.push(table(anatomy, marks));
    lines.push(largest(typical, settings));
    lines.extend(without(anatomy));
    lines.join("\n")
}

/// Draws the parts one behind the other, as shares of a bar of this length.
fn drawn(means: &PartMeans, marks: &[&str; 3], length: usize) -> String {
    let (mut bar, mut sum, mut end) = (String::new(), 0.0, 0);
    let total = means.total().max(1.0);
    for (part, mark) in Part::ALL.iter().zip(marks) {
        sum += means.means.get(part).copied().unwrap_or(0.0);
        let upto = (sum / total * length as f64).round() as usize;
        bar += &mark.repeat(upto - end);
        end = upto;
    }
    bar
}

/// Returns the numbers of each part: its own quantiles, and its means among the requests of both bars.
fn table(anatomy: &AnatomySummary, marks: &[&str; 3]) -> String {
    let cells = |part: &Part| {
        let times = anatomy.parts.get(part).map(|own| &own.time);
        let quantile = |percent| times?.quantile(percent).map(|own| own as f64);
        let mean = |means: &Option<PartMeans>| means.as_ref()?.means.get(part).copied();
        [
            quantile(50.0),
            quantile(99.0),
            mean(&anatomy.typical),
            mean(&anatomy.slowest),
        ]
    };
    let all = Part::ALL.map(|part| cells(&part));
    let unit = TimeUnit::of(all.iter().flatten().flatten().copied());
    let names = ["p50", "p99", "about p50", "beyond p99"];
    let columns: Vec<Column> = [Column::text("  part")]
        .into_iter()
        .chain(names.map(|name| Column::number("").titled(format!("{name} {}", unit.name()))))
        .collect();
    let row = |((part, mark), cells): ((Part, &&str), &[Option<f64>; 4])| {
        let shown = cells.map(|own| own.map_or_else(|| "-".to_owned(), |own| unit.show(own)));
        [format!("  {mark} {}", part.name())]
            .into_iter()
            .chain(shown)
            .collect()
    };
    let rows: Vec<Vec<String>> = Part::ALL
        .into_iter()
        .zip(marks)
        .zip(&all)
        .map(row)
        .collect();
    Table::whole(&columns, &rows)
}

/// Names the largest part of typical requests.
fn largest(typical: &PartMeans, settings: &StepSettings) -> String {
    let Some((part, mean)) = typical.largest() else {
        return String::new();
    };
    let what = match part {
        Part::Send => "this client sending the request",
        Part::Away => "the network and the server",
        Part::Wake if settings.busy_poll => "this client reading the reply",
        Part::Wake => "this client waking up and reading the reply: --busy-poll shows the rest",
    };
    format!("  of {}, {} are {what}", time(typical.total()), time(mean))
}

/// Says how many requests have no parts, if there are any.
fn without(anatomy: &AnatomySummary) -> Option<String> {
    let all = anatomy.requests() + anatomy.without_stamps + anatomy.clock_set;
    let reasons = [
        (anatomy.without_stamps, "time stamps of their own"),
        (anatomy.clock_set, "a clock that was not set meanwhile"),
    ];
    let lacking: Vec<String> = reasons
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} for lack of {what}", thousands(count as f64)))
        .collect();
    let all = thousands(all as f64);
    (!lacking.is_empty())
        .then(|| format!("  of {all} requests have no parts: {}", lacking.join(", ")))
}

#[cfg(test)]
mod tests {
    use netping_measure::anatomy::{Anatomy, Similar};

    use super::*;

    /// Returns the block of requests with these parts, each so often, as `change` leaves it.
    fn shown(requests: &[([u64; 3], u64)], change: impl Fn(&mut Anatomy)) -> String {
        let mut anatomy = Anatomy::default();
        for ([send, away, wake], count) in requests {
            for _ in 0..*count {
                anatomy.record(Similar::from([1, *send, *away, *wake]).sums);
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
            let parts = MARKS[1].iter().zip(counts);
            parts
                .map(|(mark, count)| mark.repeat(count))
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
            "  of 60.0 us, 30.0 us are the network and the server"
        );
        assert_eq!(lines.len(), 7);
    }

    #[test]
    fn the_sentence_names_the_largest_part() {
        let of = |parts| shown(&[(parts, 10)], |_| {});
        let waking = of([1_000, 2_000, 5_000]);
        assert!(waking.ends_with(
            "  of 8.00 us, 5.00 us are this client waking up and reading the reply: --busy-poll shows the rest"
        ), "{waking}");
        assert!(!waking.contains("beyond p99  "), "{waking}");
        let sending = of([9_000, 2_000, 5_000]);
        assert!(
            sending.ends_with("9.00 us are this client sending the request"),
            "{sending}"
        );
    }

    #[test]
    fn requests_without_parts_are_told() {
        let lacking = |anatomy: &mut Anatomy| (anatomy.without_stamps, anatomy.clock_set) = (3, 1);
        let what = "  of 5 requests have no parts: 3 for lack of time stamps of their own, 1 for lack of a clock that was \
                    not set meanwhile";
        let some = shown(&[([1_000, 2_000, 5_000], 1)], lacking);
        assert_eq!(some.lines().last(), Some(what));
        assert_eq!(shown(&[], lacking), what.replace('5', "4"));
        assert_eq!(shown(&[], |_| {}), "");
    }
}
