//! The ladder as text: a table for each block, and what the differences show in words.

use netping_measure::statistics::trimmed::FEWEST;
use netping_report::table::{Column, Table, wrap};
use netping_results::{
    format::{micros, optional, plural, signed},
    metric::{self, Metric},
    round_difference::{RoundDifference, value},
    run::Step,
};

use super::{
    Cell,
    rungs::{AGAIN, Block},
};

/// Characters in a line, without a terminal.
const WIDTH: usize = 80;

/// Stands for a difference that is not shown, which is not the same as none.
const NOT_SHOWN: &str = "~";

/// Returns the tables of all blocks, and what they show in words. Each cell has steps, one for each
/// round, and perhaps a difference.
pub fn ladder(
    blocks: &[Block],
    cells: &[Cell<'_>],
    steps: &[Vec<Step>],
    differences: &[Option<RoundDifference>],
) -> String {
    let rounds = steps.first().map_or(0, Vec::len);
    let mut parts = Vec::new();
    for block in blocks {
        let rows = cells.iter().zip(steps).zip(differences);
        let own = rows.filter(|((cell, _), _)| cell.block == block);
        let rows: Vec<Vec<String>> = own
            .map(|((cell, steps), difference)| row(cell, steps, difference.as_ref()))
            .collect();
        let columns = columns(block.metric, rounds);
        parts.push(format!(
            "{}\n{}",
            block.title,
            Table::whole(&columns, &rows)
        ));
    }
    let all: Vec<&RoundDifference> = differences.iter().flatten().collect();
    let words = if rounds < FEWEST {
        format!(
            "{}: too few to call anything a difference (it takes {FEWEST}). Ranges are those of the rounds.",
            plural(rounds as u64, "round")
        )
    } else {
        format!("{}\n\n{}", clauses(&all).join("\n"), legend(rounds, &all))
    };
    parts.push(wrap(&words, WIDTH));
    parts.join("\n\n")
}

fn columns(metric: &Metric, rounds: usize) -> [Column; 8] {
    let (difference, ends) = (
        if is_rate(metric) { "x" } else { "+us" },
        if rounds < FEWEST {
            "range"
        } else {
            "95% interval"
        },
    );
    [
        Column::text("", 12),
        Column::number(metric.title, 8),
        Column::text("over", 10),
        Column::number(difference, 6),
        Column::number("cli us", 6),
        Column::number("srv us", 6),
        Column::number("+-", 5),
        Column::text(ends, 12),
    ]
}

fn row(cell: &Cell<'_>, rounds: &[Step], difference: Option<&RoundDifference>) -> Vec<String> {
    let metric = cell.block.metric;
    let own = value(metric, rounds);
    let half = own.and_then(|(_, half)| half);
    let cpu = |metric: &Metric| optional(value(metric, rounds).map(|(value, _)| value));
    let of = |text: &dyn Fn(&RoundDifference) -> String| difference.map(text).unwrap_or_default();
    vec![
        cell.rung.name.to_owned(),
        metric.cell(own.map(|(value, _)| value)),
        of(&|own| own.base.clone()),
        of(&|own| amount(metric, own)),
        cpu(&metric::CLIENT_CPU),
        cpu(&metric::SERVER_CPU),
        half.map_or_else(|| "-".to_owned(), |half| format!("{:.1}%", half * 100.0)),
        of(&|own| ends(metric, own)),
    ]
}

/// Returns a difference as its column has it: a ratio of rates, or microseconds added.
fn amount(metric: &Metric, difference: &RoundDifference) -> String {
    if difference.interval.is_some() && !difference.is_shown() {
        NOT_SHOWN.to_owned()
    } else if is_rate(metric) {
        format!("{:.2}", 1.0 + difference.relative)
    } else {
        signed(difference.absolute().0 / 1e3)
    }
}

/// Returns the ends of a difference's interval, or its range, as their column has them.
fn ends(metric: &Metric, difference: &RoundDifference) -> String {
    let [low, high] = if is_rate(metric) {
        let ends = difference.interval.unwrap_or(difference.range);
        ends.map(|end| format!("{:.2}", 1.0 + end))
    } else {
        difference.absolute().1.map(|end| signed(end / 1e3))
    };
    format!("{low}..{high}")
}

fn is_rate(metric: &Metric) -> bool {
    metric == &metric::RATE
}

/// Returns what the differences with small requests show, a clause for each rung.
fn clauses(all: &[&RoundDifference]) -> Vec<String> {
    let small = || {
        let own = all.iter().filter(|own| own.message.is_none());
        own.filter(|own| own.target != AGAIN)
    };
    let times = small().filter(|own| own.metric == metric::P50.name);
    let stacked = times.map(|time| {
        let mut rates = small().filter(|own| own.metric == metric::RATE.name);
        let rate = rates.find(|rate| rate.target == time.target && rate.base == time.base);
        if !time.is_shown() && !rate.is_some_and(|rate| rate.is_shown()) {
            return format!("{} over {} shows no difference.", time.target, time.base);
        }
        let rate = rate.map_or_else(String::new, |rate| format!(" and {}", rate_in_words(rate)));
        format!(
            "{} over {} {}{rate}.",
            time.target,
            time.base,
            time_in_words(time)
        )
    });
    let shared = small().filter(|own| own.target == own.base).map(|own| {
        let [few, many] = own.connections;
        format!(
            "{} on {few} connections instead of {many} {}.",
            own.target,
            rate_in_words(own)
        )
    });
    stacked.chain(shared).collect()
}

fn time_in_words(difference: &RoundDifference) -> String {
    if !difference.is_shown() {
        return "shows no difference in a round trip".to_owned();
    }
    let (added, [low, high]) = difference.absolute();
    let us = |time: f64| micros(time.abs() / 1e3);
    if added > 0.0 {
        format!(
            "adds {} us ({}..{}) to a round trip",
            us(added),
            us(low),
            us(high)
        )
    } else {
        format!(
            "saves {} us ({}..{}) of a round trip",
            us(added),
            us(high),
            us(low)
        )
    }
}

fn rate_in_words(difference: &RoundDifference) -> String {
    let Some([low, high]) = difference.interval.filter(|_| difference.is_shown()) else {
        return "shows no difference in the rate".to_owned();
    };
    let relative = difference.relative;
    let percent = |share: f64| format!("{:.0}", share.abs() * 100.0);
    if relative < 0.0 {
        let [taken, least, most] = [relative, high, low].map(percent);
        format!("takes {taken}% ({least}..{most}) of the rate")
    } else {
        let [times, low, high] = [relative, low, high].map(|share| format!("{:.2}", 1.0 + share));
        format!("has {times} ({low}..{high}) times the rate")
    }
}

fn legend(rounds: usize, all: &[&RoundDifference]) -> String {
    let noise = |metric: &Metric| {
        let again = all
            .iter()
            .find(|own| own.target == AGAIN && own.metric == metric.name);
        again.map_or_else(
            || "-".to_owned(),
            |own| format!("{:.1}%", own.relative.abs() * 100.0),
        )
    };
    format!(
        "{rounds} rounds in random order; differences are those within rounds, and all {} intervals hold with a \
         probability of 95%. {NOT_SHOWN}: no difference shown, \
         as its interval allows for none, or '{AGAIN}', a second server like the first, differs as much (p50 {}, rate {}). 'cli us' and 'srv us' are \
         the CPU time of client and server per request; '+-' is the 95% interval of the value.",
        all.len(),
        noise(&metric::P50),
        noise(&metric::RATE),
    )
}
