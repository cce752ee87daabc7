//! A distribution as bars in a terminal.

use netping_measure::counts::Counts;
use netping_results::{
    format::{share, thousands},
    time_unit::TimeUnit,
};

use crate::table::{Column, Table};

/// Rows of a distribution that is not narrower.
const ROWS: i32 = 11;

/// Length of the longest bar, in characters, where there is room for it beside the numbers.
const LENGTH: usize = 40;
const NUMBERS: usize = 28;

/// Returns the buckets of a histogram of times, in nanoseconds: the ends of each, and its count. The ends rise by one
/// factor from the shortest time to the longest, so that the tail is seen as well as the bulk; a factor of 1.1 at least.
pub fn buckets(times: &Counts) -> Vec<([u64; 2], u64)> {
    let (Some((shortest, _)), Some(longest)) = (times.iter().next(), times.max()) else {
        return Vec::new();
    };
    let (low, high) = (shortest.max(1) as f64, longest.max(1) as f64);
    let factor = (high / low).powf(1.0 / f64::from(ROWS)).max(1.1);
    let bucket = |time: u64| ((time.max(1) as f64 / low).ln() / factor.ln()).floor() as i32;
    let last = bucket(longest).clamp(0, ROWS - 1);
    let end = |place: i32| {
        if place > last {
            longest
        } else {
            (low * factor.powi(place)) as u64
        }
    };
    let mut buckets: Vec<_> = (0..=last).map(|at| ([end(at), end(at + 1)], 0)).collect();
    for (time, count) in times.iter() {
        buckets[bucket(time).clamp(0, last) as usize].1 += count;
    }
    buckets
}

/// Draws the [`buckets`] of times as bars: a row for each with its upper end, its count and its share. Lines have at
/// most `width` characters where that is 32 or more.
pub fn bars(times: &Counts, unicode: bool, width: usize) -> String {
    let buckets = buckets(times);
    if buckets.is_empty() {
        return String::new();
    }
    let most = buckets.iter().map(|(_, count)| *count).max();
    let most = most.unwrap_or(1).max(1) as f64;
    let total = times.len() as f64;
    let longest = width.saturating_sub(NUMBERS).clamp(4, LENGTH) as f64;
    let unit = TimeUnit::of(buckets.iter().map(|&([_, end], _)| end as f64));
    let mark = if unicode { "■" } else { "#" };
    let row = |&([_, end], count): &([u64; 2], u64)| {
        // What is there is seen.
        let length = (count as f64 / most * longest).round() as usize;
        let length = length.max(usize::from(count > 0));
        vec![
            unit.show(end as f64),
            thousands(count as f64),
            share(count as f64 / total),
            mark.repeat(length),
        ]
    };
    let rows: Vec<_> = buckets.iter().map(row).collect();
    let columns = [
        Column::number("").titled(format!("to {}", unit.name())),
        Column::number("requests"),
        Column::number("share"),
        Column::text(""),
    ];
    Table::plain(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(samples: &[(u64, u64)]) -> Vec<String> {
        let counts: Counts = samples.to_vec().into();
        bars(&counts, false, 80)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn every_sample_is_in_a_bar_and_the_rarest_is_seen() {
        let lines = drawn(&[(10_000, 5_000), (20_000, 4_999), (20_480_000, 1)]);
        assert_eq!(lines.len(), 12);
        assert!(
            lines[1].ends_with(&format!("  {}", "#".repeat(40))),
            "{lines:?}"
        );
        assert!(lines[11].contains("20,480"), "{lines:?}");
        assert!(lines[11].ends_with(" #"), "{lines:?}");
        let requests = |line: &String| {
            let cell = line.split_whitespace().nth(1).unwrap();
            cell.replace(',', "").parse::<u64>().unwrap()
        };
        assert_eq!(lines[1..].iter().map(requests).sum::<u64>(), 10_000);
    }

    #[test]
    fn equal_times_are_one_bar_and_none_are_nothing() {
        assert_eq!(drawn(&[(1_000, 3)]).len(), 2);
        assert!(drawn(&[]).is_empty());
    }
}
