//! The ladder as text: a table for each block, and what the differences show in words.

use netping_measure::statistics::trimmed::FEWEST;
use netping_report::{
    ladder::in_words,
    table::{Column, Table, wrap},
};
use netping_results::{
    format::{optional, plural, signed},
    metric::{self, Metric},
    round_difference::{RoundDifference, value},
    run::{Run, Step},
};

use super::{
    super::text::columns as titles,
    Cell,
    rungs::{AGAIN, Block},
};

/// Characters in a line, without a terminal.
const WIDTH: usize = 80;

/// The columns of a run from a file.
const OF_RUN: &str = "<rung|callers|conns|p50 us|+-|req/s|+-|cli us|srv us";

/// Stands for a difference that is not shown, which is not the same as none.
const NOT_SHOWN: &str = "~";

/// Returns the tables of all blocks, and what they show in words. Each cell has steps, one for each
/// round, and perhaps a difference.
pub fn ladder(
    blocks: &[Block],
    cells: &[Cell<'_>],
    steps: &[Vec<&Step>],
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
        format!("{}\n\n{}", in_words(&all).join("\n"), legend(rounds, &all))
    };
    parts.push(wrap(&words, WIDTH));
    parts.join("\n\n")
}

/// Returns the rungs of a run from a file, with the values that the ladder showed.
pub fn of_run(run: &Run) -> String {
    let mut rungs: Vec<Vec<&Step>> = Vec::new();
    for step in &run.steps {
        let is_like = |own: &&mut Vec<&Step>| {
            own[0].name() == step.name()
                && own[0].settings.load() == step.settings.load()
                && own[0].settings.message == step.settings.message
        };
        match rungs.iter_mut().find(is_like) {
            Some(own) => own.push(step),
            None => rungs.push(vec![step]),
        }
    }
    let row = |rounds: &Vec<&Step>| {
        let settings = &rounds[0].settings;
        let mut cells = vec![
            rounds[0].name().to_owned(),
            settings.callers.to_string(),
            settings.connections.to_string(),
        ];
        for metric in [&metric::P50, &metric::RATE] {
            let own = value(metric, rounds);
            let half = own.and_then(|(_, half)| half);
            cells.push(metric.cell(own.map(|(value, _)| value)));
            cells.push(half_width(half));
        }
        let cpu = |metric: &Metric| optional(value(metric, rounds).map(|(value, _)| value));
        cells.extend([cpu(&metric::CLIENT_CPU), cpu(&metric::SERVER_CPU)]);
        cells
    };
    let rows: Vec<_> = rungs.iter().map(row).collect();
    Table::whole(&titles(OF_RUN), &rows)
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

fn row(cell: &Cell<'_>, rounds: &[&Step], difference: Option<&RoundDifference>) -> Vec<String> {
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
        half_width(half),
        of(&|own| ends(metric, own)),
    ]
}

/// Returns half the width of an interval, a share, as its column has it.
fn half_width(half: Option<f64>) -> String {
    half.map_or_else(|| "-".to_owned(), |half| format!("{:.1}%", half * 100.0))
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

fn legend(rounds: usize, all: &[&RoundDifference]) -> String {
    let noise = |metric: &Metric| {
        let again = all
            .iter()
            .find(|own| own.is_noise && own.metric == metric.name);
        again.map_or_else(
            || "-".to_owned(),
            |own| format!("{:.1}%", own.relative.abs() * 100.0),
        )
    };
    format!(
        "{rounds} rounds in random order; differences are those within rounds, and all {} intervals hold with a \
         probability of 95%. {NOT_SHOWN}: no difference shown, as its interval allows for none, or '{AGAIN}', a \
         second server like the first, differs as much (p50 {}, rate {}). Rates are those of client and server \
         together: 'cli us' and 'srv us', the CPU time of either per request, show which of them limits one. \
         '+-' is the 95% interval of the value.",
        all.len(),
        noise(&metric::P50),
        noise(&metric::RATE),
    )
}
